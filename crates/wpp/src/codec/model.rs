//! Predicts each step of a segment from the steps before it.

use super::coder::Coder;
use super::escapes::Escapes;
use super::history::{History, Tail};
use super::numbers::Gamma;
use super::predictor::Predictor;
use super::step::{Step, Token};
use super::successors::hash;
use super::{CodecError, NodeContext};

/// The number of slots for the counts of recent loops.
const LOOPS: usize = 1 << 10;
/// The number of contexts of a step.
const ORDERS: usize = 5;

/// The bounds that the writer and the reader know before the first step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Bounds {
    /// A number above all numbers of nodes.
    pub(super) nodes: u32,
    /// A number above all numbers of functions.
    pub(super) functions: u32,
    /// The binary logarithm of the number of slots in the tables.
    pub(super) table_bits: u32,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Within {
    Root,
    Sequence,
    Call(u32),
}

#[derive(Clone, Copy)]
struct Frame {
    within: Within,
    /// The history at the rule's beginning.
    before: History,
    /// The number of the rule's symbols so far.
    symbols: u32,
}

/// Codes steps, and learns from them.
pub(super) struct Model<'a> {
    contexts: &'a [NodeContext],
    history: History,
    frames: Vec<Frame>,
    tails: Vec<Tail>,
    steps: Predictor<ORDERS>,
    times: Predictor<3>,
    /// The latest counts of loops, by the point where the last node of their body ends.
    last_times: Vec<u64>,
    /// The iteration count of the last loop.
    latest_times: u64,
    escapes: Escapes,
    /// The counts of loops that no table has predicted, by the bit length of the previous count.
    escaped_times: Vec<Gamma>,
}

impl<'a> Model<'a> {
    pub(super) fn new(contexts: &'a [NodeContext], bounds: Bounds) -> Self {
        let bits = bounds.table_bits;
        // The lowest order has at most a few contexts for each node, so its table need not be
        // larger.
        let low = bits
            .min(u32::BITS - bounds.nodes.leading_zeros() + 2)
            .max(4);
        Self {
            contexts,
            history: History::default(),
            frames: vec![Frame {
                within: Within::Root,
                before: History::default(),
                symbols: 0,
            }],
            tails: Vec::new(),
            steps: Predictor::new([low, bits, bits, bits, bits], 8),
            times: Predictor::new([bits.min(12); 3], 4),
            last_times: vec![0; LOOPS],
            latest_times: 0,
            escapes: Escapes::new(bounds.nodes, bounds.functions),
            escaped_times: (0..9).map(|_| Gamma::new()).collect(),
        }
    }

    /// Codes a step. The decoder ignores the given step.
    pub(super) fn step(&mut self, coder: &mut impl Coder, given: Step) -> Result<Step, CodecError> {
        let contexts = self.contexts();
        let frame = &self.frames[self.frames.len() - 1];
        let given_token = Token::of(given);
        let (step, token) = match self.steps.code(coder, given_token, contexts, |token| {
            is_allowed(token, frame)
        }) {
            Some(token) => (
                if token == given_token {
                    given
                } else {
                    token.step()
                },
                token,
            ),
            None => {
                let step = self.escape(coder, given)?;
                (step, Token::of(step))
            }
        };
        self.steps.update(token);
        if coder.exhausted() {
            return Err(CodecError::Truncated);
        }
        self.learn(coder, step, given)
    }

    /// Returns the contexts of the last nodes. Sequences have contexts of their own.
    #[inline]
    fn contexts(&self) -> [u64; ORDERS] {
        let frame = &self.frames[self.frames.len() - 1];
        let place = match frame.within {
            Within::Root | Within::Call(_) => 0,
            Within::Sequence => 1 + u32::from(frame.symbols > 0),
        };
        self.history.contexts(place)
    }

    fn escape(&mut self, coder: &mut impl Coder, given: Step) -> Result<Step, CodecError> {
        let frame = self.frames[self.frames.len() - 1];
        let calls = self
            .history
            .last()
            .and_then(|node| self.contexts.get(node as usize))
            .is_some_and(|c| c.calls);
        let within = match frame.within {
            Within::Root => 0,
            Within::Call(_) => 1,
            Within::Sequence => 2,
        };
        let place = within * 4 + usize::from(calls) * 2 + usize::from(self.history.has_returned());
        self.escapes
            .code(coder, given, place, frame.symbols, self.tails.len())
    }

    /// Updates the position of the walk and the history after a step.
    fn learn(
        &mut self,
        coder: &mut impl Coder,
        step: Step,
        given: Step,
    ) -> Result<Step, CodecError> {
        let top = self.frames.len() - 1;
        match step {
            Step::Loop { symbols, .. } => {
                let given = if let Step::Loop { times, .. } = given {
                    times
                } else {
                    0
                };
                let times = self.times(coder, symbols, given)?;
                self.history.looped(symbols, times);
                self.frames[top].symbols -= symbols - 1;
                return Ok(Step::Loop { symbols, times });
            }
            Step::Node(node) => {
                let point = self
                    .contexts
                    .get(node.as_u32() as usize)
                    .map_or(0, |context| context.next.wrapping_add(1));
                self.history.push(node.as_u32(), point);
            }
            Step::Again(number) => self.history.apply(&self.tails[number as usize]),
            Step::Sequence => return Ok(self.begin(Within::Sequence, step)),
            Step::Call(function) => {
                self.begin(Within::Call(function.as_u32()), step);
                self.history = self.history.entry(function.as_u32());
                return Ok(step);
            }
            Step::Enter(function) => {
                self.begin(Within::Root, step);
                self.history = self.history.entry(function.as_u32());
                return Ok(step);
            }
            Step::Leave => {
                self.history = self.frames[top].before;
                if top > 0 {
                    self.frames.pop();
                }
                if let Some(frame) = self.frames.last_mut() {
                    frame.symbols = 0;
                }
                return Ok(step);
            }
            Step::End => {
                let Frame { within, before, .. } = self.frames[top];
                match within {
                    Within::Root => return Ok(step),
                    Within::Call(function) => {
                        let callee = std::mem::replace(&mut self.history, before);
                        self.history.returned(function, &callee);
                    }
                    Within::Sequence => {}
                }
                self.frames.pop();
                self.tails.push(self.history.tail(&before));
                self.symbol();
                return Ok(step);
            }
        }
        self.symbol();
        Ok(step)
    }

    /// Codes the number of times that a loop's body was executed.
    fn times(
        &mut self,
        coder: &mut impl Coder,
        symbols: u32,
        given: u64,
    ) -> Result<u64, CodecError> {
        let [first, round, _, third, _] = self.contexts().map(|context| hash(context, 0));
        let previous = &mut self.last_times[first as usize % LOOPS];
        let contexts = [
            hash(round, symbols),
            hash(hash(first, symbols), *previous as u32),
            hash(third, symbols),
        ];
        let token = u32::try_from(given).map_or(Token::NONE, Token);
        let times = match self.times.code(coder, token, contexts, |_| true) {
            Some(token) => token.0.into(),
            None => {
                let class = (u64::BITS - previous.leading_zeros()).min(8);
                let more = self.escaped_times[class as usize].code(coder, given.wrapping_sub(2));
                more.and_then(|more| more.checked_add(2))
                    .ok_or(CodecError::Malformed("a repetition count of 2^64 or more"))?
            }
        };
        self.times
            .update(u32::try_from(times).map_or(Token::NONE, Token));
        *previous = times;
        self.latest_times = times;
        Ok(times)
    }

    /// Begins a rule, or an activation in the root.
    fn begin(&mut self, within: Within, step: Step) -> Step {
        self.frames.push(Frame {
            within,
            before: self.history,
            symbols: 0,
        });
        step
    }

    /// Counts one more symbol of the innermost rule.
    fn symbol(&mut self) {
        if let Some(frame) = self.frames.last_mut() {
            frame.symbols += 1;
        }
    }
}

/// Whether a step is possible at this point.
#[inline]
fn is_allowed(token: Token, frame: &Frame) -> bool {
    if !token.is_structure() {
        return true;
    }
    match token.step() {
        Step::End => frame.within != Within::Sequence || frame.symbols >= 2,
        Step::Loop { symbols, .. } => symbols > 0 && symbols <= frame.symbols,
        Step::Enter(_) | Step::Leave => frame.within == Within::Root,
        Step::Node(_) | Step::Again(_) | Step::Sequence | Step::Call(_) => true,
    }
}
