//! The predictors, and which of them was right: *ranked hits*.
//!
//! The predictors of Zhang and Gupta 2005, section 4.4, one size each, in a fixed order: finite contexts (FCM; Sazeides and Smith
//! 1997) of three values, differential ones (DFCM; Goeman, Vandierendonck and De Bosschere 2001) of two differences, finite ones of
//! a value, last stride, last values. Each in turn is asked "is it this?", unless one before said the same or it has nothing to
//! say; the answer is coded with a probability that depends on the predictor, its confidence, how many others agree, and how the
//! last two values were found. So a hit costs a hundredth of a bit where hits are the rule, and what a miss costs goes down
//! with its frequency.

use super::coder::{Coder, Probability};
use super::escape::Escapes;
use super::history::{History, Outcome};
use super::table::{SURE, Slot, Table};
use crate::varint;

/// How many predictors there are.
const PREDICTORS: usize = 6;
/// How many others can agree, as far as it is counted.
const AGREEING: usize = 3;
/// Levels of confidence.
const LEVELS: usize = SURE as usize + 1;

/// All that is learnt.
#[derive(Clone, Debug)]
pub(crate) struct Model {
    values3: Table,
    differences2: Table,
    value1: Table,
    hits: Box<[Probability]>,
    escapes: Escapes,
    history: History,
}

/// Where a value was learnt.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Learnt([Slot; 3]);

impl Model {
    /// A model that knows nothing, for about 2^`log` values.
    pub(super) fn new(log: u32) -> Self {
        Self {
            values3: Table::new(log),
            differences2: Table::new(log),
            value1: Table::new(log),
            hits: vec![Probability::EVEN; PREDICTORS * LEVELS * AGREEING * History::OUTCOMES]
                .into(),
            escapes: Escapes::new(),
            history: History::default(),
        }
    }

    /// Forgets what went before, as at the beginning of a block, but not what was learnt.
    pub(super) fn start_block(&mut self) {
        self.history = History::default();
    }

    /// Codes a value and learns from it. With `differences`, what no prediction meets is told as a difference. Beside the value, the
    /// answer is where it was learnt.
    #[inline(always)]
    pub(super) fn code(
        &mut self,
        coder: &mut impl Coder,
        value: u64,
        differences: bool,
    ) -> (u64, Learnt) {
        let slots = self.slots();
        let (predictions, confidence) = self.predict(&slots);
        // As sets of predictors, one bit each.
        let saying = |value: u64| {
            (0..PREDICTORS).fold(0u32, |set, at| {
                set | u32::from(predictions[at] == value) << at
            })
        };
        let mut left =
            (0..PREDICTORS).fold(0u32, |set, at| set | u32::from(confidence[at] > 0) << at);
        let mut found = None;
        let mut asked = 0;
        while left != 0 {
            let at = left.trailing_zeros() as usize % PREDICTORS;
            let prediction = predictions[at];
            let agreeing = saying(prediction) & left;
            left &= !agreeing;
            let others = (agreeing.count_ones() as usize - 1).min(AGREEING - 1);
            let context = ((at * LEVELS + confidence[at]) * AGREEING + others) * History::OUTCOMES
                + self.history.outcomes();
            if coder.bit(value == prediction, &mut self.hits[context]) {
                found = Some(prediction);
                break;
            }
            asked += 1;
        }
        let outcome = match (found, asked) {
            (Some(_), 0) => Outcome::First,
            (Some(_), _) => Outcome::Later,
            (None, _) => Outcome::Escape,
        };
        let value = found.unwrap_or_else(|| self.escape(coder, value, differences));
        self.learn(&slots, value, outcome);
        (value, Learnt(slots))
    }

    /// Makes this what `from` is, of which it was a copy before it learnt.
    pub(super) fn unlearn(&mut self, learnt: &[Learnt], from: &Self) {
        for Learnt([values3, differences2, value1]) in learnt {
            self.values3.restore(*values3, &from.values3);
            self.differences2.restore(*differences2, &from.differences2);
            self.value1.restore(*value1, &from.value1);
        }
        self.hits.copy_from_slice(&from.hits);
        self.escapes.clone_from(&from.escapes);
    }

    #[inline(never)]
    fn escape(&mut self, coder: &mut impl Coder, value: u64, differences: bool) -> u64 {
        if differences {
            let last = self.history.values[0];
            let number = varint::zigzag(value.wrapping_sub(last));
            last.wrapping_add(varint::unzigzag(self.escapes.code(coder, number)))
        } else {
            self.escapes.code(coder, value)
        }
    }

    /// Where each table keeps what follows.
    #[inline(always)]
    fn slots(&self) -> [Slot; 3] {
        let history = &self.history;
        [
            self.values3.slot(history.values3()),
            self.differences2.slot(history.differences2()),
            self.value1.slot(history.values[0]),
        ]
    }

    #[inline(always)]
    fn predict(&self, slots: &[Slot; 3]) -> ([u64; PREDICTORS], [usize; PREDICTORS]) {
        let [last, second] = self.history.values;
        let (values3, sure3) = self.values3.predict(slots[0]);
        let (difference, sure2) = self.differences2.predict(slots[1]);
        let (value1, sure1) = self.value1.predict(slots[2]);
        let predictions = [
            values3,
            last.wrapping_add(difference),
            value1,
            last.wrapping_add(self.history.difference),
            last,
            second,
        ];
        (predictions, [sure3, sure2, sure1, 1, 1, 1])
    }

    #[inline(always)]
    fn learn(&mut self, slots: &[Slot; 3], value: u64, outcome: Outcome) {
        let last = self.history.values[0];
        self.values3.update(slots[0], value);
        self.differences2.update(slots[1], value.wrapping_sub(last));
        self.value1.update(slots[2], value);
        self.history.push(value, outcome);
    }
}
