//! Follows a value back to its origin. At each computation, the chain follows one operand.

use std::collections::HashMap;
use std::rc::Rc;

use afterimage_ids::{FuncId, OpId};
use afterimage_machine::Register;

use super::bits::BitsQuery;
use super::nearest::{Choice, Part, nearest};
use super::{At, Computed, End, Move, StepBack, Walk, WhyError};
use afterimage_replay::values::{Bits, Controller, Controllers, Execution, Instance};

/// The total number of links to examine in the search for operands that lead to host input.
const LOOKED_AT: u32 = 1000;
/// The number of moves to list for a step. Further moves are only counted.
const TOLD: usize = 8;
/// The number of moves to follow back to the maker of an operand.
const MOVES: usize = 64;

/// An operator in an execution.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Spot {
    /// The function that contains the operator.
    pub function: FuncId,
    /// The operator that was executed.
    pub op: OpId,
    /// The time of the operator's block.
    pub time: u64,
    /// The execution of the operator's node.
    pub instance: Instance,
}

/// A step, which describes how a value was made and how it was moved afterwards.
#[derive(Clone, Debug, PartialEq)]
pub struct Step {
    /// The moves since the value was made, latest first.
    pub moves: Vec<Moved>,
    /// The number of moves left out between the maker and the listed moves.
    pub more_moves: u64,
    /// The maker of the value.
    pub link: Link,
}

/// A move of a value.
#[derive(Clone, Debug, PartialEq)]
pub struct Moved {
    /// The kind of move.
    pub how: Move,
    /// The place where the value was moved.
    pub spot: Spot,
    /// The value at that place. `None` for a copy of memory.
    pub value: Option<Bits>,
    /// The number of other parts that were read. Only one part is followed.
    pub besides: u64,
    /// Whether the value was read from an address that is not a constant.
    pub address_computed: bool,
}

/// The maker of a value.
#[derive(Clone, Debug, PartialEq)]
pub enum Link {
    /// An operator.
    Made(Made),
    /// The value has no earlier origin.
    End(End),
    /// The value comes from further back than requested.
    Cut,
}

/// A computed value.
#[derive(Clone, Debug, PartialEq)]
pub struct Made {
    /// The place of the operator that computed the value.
    pub spot: Spot,
    /// The value.
    pub value: Bits,
    /// The operands from which the value was computed.
    pub operands: Vec<Operand>,
    /// The operand that is followed. `None` if there are no operands, or only constants that are
    /// not [`elsewhere`](Operand::elsewhere).
    pub followed: Option<usize>,
    /// Whether the value was looked up in a constant table. If so, the operand is the address.
    pub lookup: bool,
}

/// An operand of a computation.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Operand {
    /// The role of the operand in the operator.
    pub role: &'static str,
    /// The value of the operand.
    pub value: Bits,
    /// Whether the operand is a constant of the code.
    pub constant: bool,
    /// Whether all operands are constants and this operand was passed, returned, or set in another
    /// block.
    pub elsewhere: bool,
    /// The register of the operand.
    pub register: Register,
}

/// The work that may still be spent on building values of the run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Room {
    /// Enough to continue, and also to search for operands that lead to host input.
    Looking,
    /// Enough to continue.
    GoingOn,
    /// Not enough to continue, so the last step is cut.
    Nothing,
}

/// Goes back from a value, step by step.
///
/// Among several operands, the chain follows the first in this list that exists:
///
/// 1. Among the operands found to lead to host input, the operand on the shortest way to it. A
///    chain examines at most a thousand links in total to find such ways. The length of a way is
///    its number of computing operators.
/// 2. Among computed operands, the operand that was computed first.
/// 3. An operand that is not a constant.
///
/// Constants are not followed if there are other operands. If only some bits are of interest, such
/// as the bits kept by a mask, only operands on which these bits depend are followed. On the way to
/// host input, a value read from a table that nothing ever wrote counts as computed from its
/// address.
pub struct Chain<'v, 'a> {
    walk: Walk<'v, 'a>,
    controllers: &'v Controllers<'a>,
    asked: Option<BitsQuery>,
    choices: HashMap<Part, Choice>,
    left: u32,
    room: Rc<dyn Fn() -> Room + 'v>,
    is_search_cut: bool,
    links: u64,
    most: u64,
}

impl<'v, 'a> Chain<'v, 'a> {
    /// Creates a chain that starts at a value.
    pub fn new(walk: Walk<'v, 'a>, controllers: &'v Controllers<'a>, at: At) -> Self {
        Self {
            walk,
            controllers,
            asked: Some(at.into()),
            choices: HashMap::new(),
            left: LOOKED_AT,
            room: Rc::new(|| Room::Looking),
            is_search_cut: false,
            links: 0,
            most: u64::MAX,
        }
    }

    /// Limits the chain to `most` moves and computations. The last step is cut at this limit, even
    /// between two moves.
    #[must_use]
    pub fn at_most(self, most: u64) -> Self {
        Self { most, ..self }
    }

    /// Goes back as far as `room` allows. The chain calls `room` from time to time.
    #[must_use]
    pub fn within(self, room: impl Fn() -> Room + 'v) -> Self {
        Self {
            room: Rc::new(room),
            ..self
        }
    }

    /// Follows only some bits of the value. In a register, bits are counted from the lowest. In
    /// written bytes, they are counted from the first byte on.
    #[must_use]
    pub fn only(self, bits: u64) -> Self {
        let asked = self.asked.map(|asked| BitsQuery::bits(asked.at, bits));
        Self { asked, ..self }
    }

    /// Returns the number of moves and computations followed.
    pub fn links(&self) -> u64 {
        self.links
    }

    /// Returns the next step back; `None` after the end.
    ///
    /// # Errors
    /// Returns an error if the trace is damaged or incomplete.
    #[expect(clippy::should_implement_trait, reason = "it can fail")]
    pub fn next(&mut self) -> Result<Option<Step>, WhyError> {
        let Some(asked) = self.asked.take() else {
            return Ok(None);
        };
        let mut step = Step {
            moves: Vec::new(),
            more_moves: 0,
            link: Link::Cut,
        };
        match self.link(asked, &mut step) {
            Ok(link) => step.link = link,
            // Links found before the error are still returned.
            Err(error) if error.is_too_many() && (self.room)() == Room::Nothing => {}
            Err(error) => return Err(error),
        }
        Ok(Some(step))
    }

    /// Returns the link of a step, and adds the moves on the way to it to the step.
    fn link(&mut self, mut asked: BitsQuery, step: &mut Step) -> Result<Link, WhyError> {
        loop {
            let found = asked.back(&self.walk)?;
            let is_end = matches!(found, StepBack::End(_));
            if !is_end && self.links == self.most {
                return Ok(Link::Cut);
            }
            match found {
                StepBack::End(end) => return Ok(Link::End(end)),
                StepBack::Computed(computed) => {
                    let (made, from) = self.made(computed, asked)?;
                    self.links += 1;
                    self.asked = from;
                    return Ok(Link::Made(made));
                }
                StepBack::Moved {
                    how,
                    instance,
                    inst,
                    next,
                    besides,
                } => {
                    let read = Computed { instance, inst };
                    if let At::End(End::Memory(_)) = next
                        && self.is_lookup(read)?
                    {
                        let made = self.looked_up(read)?;
                        self.links += 1;
                        let address = made.operands.first().map(|address| address.register);
                        self.asked = address.map(|address| At::Register(instance, address).into());
                        return Ok(Link::Made(made));
                    }
                    if step.moves.len() < TOLD {
                        step.moves.push(Moved {
                            how,
                            spot: self.walk.spot(instance, inst)?,
                            value: self.moved(how, instance, inst)?,
                            besides,
                            address_computed: self.walk.address_computed(how, read)?,
                        })
                    } else {
                        step.more_moves += 1
                    }
                    self.links += 1;
                    asked = self.walk.before(asked, how, (instance, inst), next)?;
                }
            }
        }
    }

    /// Whether lack of [room](Self::within) cut short the search for operands that lead to host
    /// input.
    pub fn is_search_cut(&self) -> bool {
        self.is_search_cut
    }

    /// Finds the shortest way to host input from operands of a computed value.
    fn nearest(
        &mut self,
        of: Part,
        operands: &[(usize, BitsQuery)],
    ) -> Result<Option<Vec<(Part, Choice)>>, WhyError> {
        let found = nearest(&self.walk, of, operands, (&mut self.left, &*self.room))?;
        self.is_search_cut |= found.is_none() && (self.room)() != Room::Looking;
        Ok(found)
    }

    /// Whether to continue from the address of a read whose value nothing wrote, because the
    /// address leads to host input.
    fn is_lookup(&mut self, computed: Computed) -> Result<bool, WhyError> {
        let instance = computed.instance;
        let read = (computed, None);
        if !self.choices.contains_key(&read) && self.left > 0 {
            let operands = self.walk.operands(computed)?;
            let open = operands.iter().filter(|it| !it.constant);
            let open = open.map(|it| (0, At::Register(instance, it.register).into()));
            let open = Vec::from_iter(open);
            if let Some(mut found) = self.nearest(read, &open)? {
                found.retain(|(of, _)| *of != read);
                self.choices.extend(found);
                self.choices.insert(read, Choice::Address);
            }
        }
        Ok(self.choices.get(&read) == Some(&Choice::Address))
    }

    /// Returns the value at the place of a move.
    fn moved(&self, how: Move, instance: Instance, inst: usize) -> Result<Option<Bits>, WhyError> {
        let values = self.walk.values;
        let compiled = values.compiled(instance.node)?;
        let one = &compiled.code.insts[inst];
        let register = match how {
            Move::Load(_) | Move::GlobalGet(_) | Move::Select(_) => {
                compiled.code.first_result() + inst as u32
            }
            Move::Lanes { operand: 0, .. } => one.a,
            Move::Lanes { .. } | Move::Store(_) | Move::Fill(_) => one.b,
            Move::GlobalSet(_) => one.a,
            Move::Copy { .. } => return Ok(None),
        };
        Ok(Some(values.value(instance, register)?))
    }

    /// Returns how a value was computed, and where to continue.
    fn made(
        &mut self,
        computed: Computed,
        asked: BitsQuery,
    ) -> Result<(Made, Option<BitsQuery>), WhyError> {
        let mut operands = self.walk.operands(computed)?;
        let open = self.walk.open(computed, &operands, asked)?;
        let (followed, from) = match &*open {
            [] => {
                let followed = self.chosen_before(computed, &mut operands)?;
                let register = followed.map(|followed| operands[followed].register);
                let from = register.map(|it| At::Register(computed.instance, it).into());
                (followed, from)
            }
            [(only, from)] => (Some(*only), Some(*from)),
            [(first, _), ..] => {
                let chosen = self.choose((computed, asked.mask()), &open)?;
                let chosen = chosen.unwrap_or(*first);
                let from = open.iter().find(|(operand, _)| *operand == chosen);
                (Some(chosen), from.map(|(_, from)| *from))
            }
        };
        let made = Made {
            spot: self.walk.spot(computed.instance, computed.inst)?,
            value: self.walk.value(computed)?,
            operands,
            followed,
            lookup: false,
        };
        Ok((made, from))
    }

    /// Chooses a constant operand that was passed, returned, or set in another block. A decision
    /// led to that block, so the chain can continue. Constants with a branch of their own come
    /// first, then returned constants.
    fn chosen_before(
        &self,
        computed: Computed,
        operands: &mut [Operand],
    ) -> Result<Option<usize>, WhyError> {
        let here = self.walk.spot(computed.instance, computed.inst)?;
        let mut best = None;
        for (i, operand) in operands.iter_mut().enumerate() {
            let at = At::Register(computed.instance, operand.register);
            let StepBack::End(End::Constant { instance, op, .. }) = self.walk.back(at)? else {
                continue;
            };
            let there = self.walk.spot_of(instance, op);
            operand.elsewhere = there.time != here.time;
            if !operand.elsewhere {
                continue;
            }
            let branch = self.branch_to(there)?;
            let chosen = if branch.is_some() && branch != self.branch_to(here)? {
                Chosen::Led
            } else if self
                .walk
                .was_returned(computed.instance, operand.register)?
            {
                Chosen::Returned
            } else {
                Chosen::Before
            };
            if best.is_none_or(|(most, _)| chosen < most) {
                best = Some((chosen, i));
            }
        }
        Ok(best.map(|(_, operand)| operand))
    }

    /// Returns the time of the branch in the same activation that led to an operator. `None` if
    /// only the call led to the operator.
    fn branch_to(&self, spot: Spot) -> Result<Option<u64>, WhyError> {
        let execution = Execution {
            number: 0,
            time: spot.time,
            instance: spot.instance,
            statement: None,
        };
        let found = self
            .controllers
            .of_execution(self.walk.values, &execution)?;
        Ok(match found.first() {
            Some(&Controller::Branch { time, .. }) => Some(time),
            _ => None,
        })
    }

    fn looked_up(&self, read: Computed) -> Result<Made, WhyError> {
        Ok(Made {
            spot: self.walk.spot(read.instance, read.inst)?,
            value: self.walk.value(read)?,
            operands: self.walk.operands(read)?,
            followed: Some(0),
            lookup: true,
        })
    }

    fn choose(
        &mut self,
        part: Part,
        open: &[(usize, BitsQuery)],
    ) -> Result<Option<usize>, WhyError> {
        if !self.choices.contains_key(&part) && self.left > 0 {
            let found = self.nearest(part, open)?;
            self.choices.extend(found.into_iter().flatten());
        }
        if let Some(Choice::Operand(chosen)) = self.choices.get(&part) {
            return Ok(Some(*chosen));
        }
        let mut best = None;
        for &(operand, asked) in open {
            let age = self.age(asked.at)?;
            if best.is_none_or(|(least, _)| age < least) {
                best = Some((age, operand));
            }
        }
        Ok(best.map(|(_, operand)| operand))
    }

    /// Returns a key that orders values. Computed values come first, by the times of the executions
    /// that computed them. Values that were not computed follow, and constants come last.
    fn age(&self, mut at: At) -> Result<(Age, u64), WhyError> {
        for _ in 0..MOVES {
            match self.walk.back(at) {
                Ok(StepBack::Computed(made)) => return Ok((Age::Computed, made.instance.time)),
                Ok(StepBack::Moved { next, .. }) => at = next,
                Ok(StepBack::End(End::Constant { .. })) => return Ok((Age::Constant, 0)),
                Ok(StepBack::End(_)) => return Ok((Age::InputSource, 0)),
                Err(error) if error.is_outside() => return Ok((Age::InputSource, 0)),
                Err(error) => return Err(error),
            }
        }
        Ok((Age::InputSource, 0))
    }
}

/// The kinds of operands, preferred kinds first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Age {
    Computed,
    /// The operand was not computed, or its computation is too far away.
    InputSource,
    Constant,
}

/// The reason for choosing a constant as the operand to follow.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Chosen {
    /// The constant has a branch of its own that led to it.
    Led,
    Returned,
    /// The constant was passed, or was in a local before.
    Before,
}
