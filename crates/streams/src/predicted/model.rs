//! Predicts values, and codes which predictor was right (*ranked hits*).
//!
//! The predictors follow Zhang and Gupta 2005, section 4.4, with one size each, in a fixed order.
//! They are finite contexts of three values (FCM; Sazeides and Smith 1997), differential contexts
//! of two differences (DFCM; Goeman, Vandierendonck and De Bosschere 2001), finite contexts of one
//! value, last stride, and last values. Each predictor in turn offers its prediction, unless it has
//! none or an earlier predictor offered the same. The answer's probability depends on the
//! predictor, its confidence, the number of other predictors that agree, and the outcomes of the
//! last two values. So a hit costs a hundredth of a bit where hits are the rule, and a miss costs
//! less where misses are frequent.

use super::coder::{Coder, Probability};
use super::escape::Escapes;
use super::history::{History, Outcome};
use super::table::{SURE, Slot, Table};
use crate::varint;

/// The number of predictors.
const PREDICTORS: usize = 6;
/// The number of values that the capped count of agreeing predictors can take.
const AGREEING: usize = 3;
/// The number of levels of confidence.
const LEVELS: usize = SURE as usize + 1;

/// The number of contexts of answers.
const HITS: usize = PREDICTORS * LEVELS * AGREEING * History::OUTCOMES;

/// The model, which contains everything that has been learnt.
#[derive(Clone, Debug)]
pub(crate) struct Model {
    values3: Table,
    differences2: Table,
    value1: Table,
    hits: Box<[Probability; HITS]>,
    escapes: Escapes,
    history: History,
}

/// The places where a value was learnt.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Learnt([Slot; 3]);

/// The state while the predictors are queried.
struct Asking<'m> {
    predictions: [u64; PREDICTORS],
    confidence: [usize; PREDICTORS],
    /// The predictors that are still to be queried, one bit each.
    left: u32,
    /// The outcomes of the last two values.
    outcomes: usize,
    hits: &'m mut [Probability; HITS],
    /// The number of wrong predictions so far.
    asked: u32,
}

/// The number of other predictors that agree, indexed by their set. The number is capped.
const OTHERS: [u8; 1 << PREDICTORS] = {
    let mut others = [0; 1 << PREDICTORS];
    let mut set = 1;
    while set < others.len() {
        let one = others[set & (set - 1)] + 1;
        others[set] = if one < AGREEING as u8 {
            one
        } else {
            AGREEING as u8 - 1
        };
        set += 1;
    }
    others
};

impl Asking<'_> {
    /// Asks one predictor after another, and returns the value found. A decoder ignores `value`.
    #[inline(always)]
    fn all(&mut self, coder: &mut impl Coder, value: u64) -> Option<u64> {
        // Expands to separate code for each predictor, so that the compiler knows each comparison.
        macro_rules! ask {
            ($($at:literal)*) => {
                $(if let Some(found) = self.one::<$at>(coder, value) {
                    return Some(found);
                })*
            };
        }
        ask!(0 1 2 3 4 5);
        None
    }

    /// Tries a predictor, unless it has no prediction or an earlier predictor made the same
    /// prediction.
    #[inline(always)]
    fn one<const AT: usize>(&mut self, coder: &mut impl Coder, value: u64) -> Option<u64> {
        if self.left >> AT & 1 == 0 {
            return None;
        }
        let prediction = self.predictions[AT];
        let agreeing = (AT + 1..PREDICTORS).fold(0, |set, at| {
            set | u32::from(self.predictions[at] == prediction) << at
        });
        let agreeing = agreeing & self.left;
        self.left &= !agreeing;
        let others = usize::from(OTHERS[agreeing as usize]);
        let context = ((AT * LEVELS + self.confidence[AT]) * AGREEING + others) * History::OUTCOMES
            + self.outcomes;
        if coder.bit(value == prediction, &mut self.hits[context]) {
            return Some(prediction);
        }
        self.asked += 1;
        None
    }
}

impl Model {
    /// Returns an untrained model for about 2^`log` values.
    pub(super) fn new(log: u32) -> Self {
        Self {
            values3: Table::new(log),
            differences2: Table::new(log),
            value1: Table::new(log),
            hits: Box::new([Probability::EVEN; HITS]),
            escapes: Escapes::new(),
            history: History::default(),
        }
    }

    /// Resets the history, as at the beginning of a block, but keeps the learnt tables.
    pub(super) fn start_block(&mut self) {
        self.history = History::default();
    }

    /// Codes a value and learns from it. With `differences`, an unpredicted value is stored as a
    /// difference. Returns the value and the places where it was learnt.
    #[inline(always)]
    pub(super) fn code(
        &mut self,
        coder: &mut impl Coder,
        value: u64,
        differences: bool,
    ) -> (u64, Learnt) {
        let slots = self.slots();
        let (predictions, confidence) = self.predict(&slots);
        let mut asking = Asking {
            predictions,
            confidence,
            left: (0..PREDICTORS).fold(0, |set, at| set | u32::from(confidence[at] > 0) << at),
            outcomes: self.history.outcomes(),
            hits: &mut self.hits,
            asked: 0,
        };
        let found = asking.all(coder, value);
        let asked = asking.asked;
        let outcome = match (found, asked) {
            (Some(_), 0) => Outcome::First,
            (Some(_), _) => Outcome::Later,
            (None, _) => Outcome::Escape,
        };
        let value = found.unwrap_or_else(|| self.escape(coder, value, differences));
        self.learn(&slots, value, outcome);
        (value, Learnt(slots))
    }

    /// Restores the state of `from`. `self` must be a copy of `from` that has since learnt.
    pub(super) fn unlearn(&mut self, learnt: &[Learnt], from: &Self) {
        for Learnt([values3, differences2, value1]) in learnt {
            self.values3.restore(*values3, &from.values3);
            self.differences2.restore(*differences2, &from.differences2);
            self.value1.restore(*value1, &from.value1);
        }
        self.hits.copy_from_slice(&from.hits[..]);
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

    /// Returns the slot of the current context in each table.
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
