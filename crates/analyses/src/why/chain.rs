//! The chain from a value back to where it came from: one operand of each that was computed.

use std::collections::HashMap;
use std::rc::Rc;

use afterimage_ids::{FuncId, OpId};
use afterimage_machine::Register;

use super::bits::BitsQuery;
use super::nearest::{Choice, Part, nearest};
use super::{At, Computed, End, Move, StepBack, Walk, WhyError};
use afterimage_replay::values::{Bits, Controller, Controllers, Execution, Instance};

/// So many links at most are gone back in all, to find out which operands lead to what the host gave.
const LOOKED_AT: u32 = 1000;
/// So many moves of a step are told: the rest is counted.
const TOLD: usize = 8;
/// So many moves at most are gone through to find an operand's maker.
const MOVES: usize = 64;

/// An operator of an execution.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Spot {
    /// Its function.
    pub function: FuncId,
    /// The operator.
    pub op: OpId,
    /// The time of its block.
    pub time: u64,
    /// The execution of its node.
    pub instance: Instance,
}

/// A step: how a value was made, and how it was moved from there.
#[derive(Clone, Debug, PartialEq)]
pub struct Step {
    /// The moves since it was made, the last one first.
    pub moves: Vec<Moved>,
    /// How many moves before these are left out, between them and what made it.
    pub more_moves: u64,
    /// What made it.
    pub link: Link,
}

/// A move of a value.
#[derive(Clone, Debug, PartialEq)]
pub struct Moved {
    /// How.
    pub how: Move,
    /// Where.
    pub spot: Spot,
    /// The value there, if it is one.
    pub value: Option<Bits>,
    /// Other parts of what was read: how many. Only one is gone back from.
    pub besides: u64,
    /// It was read from an address that is not a constant.
    pub address_computed: bool,
}

/// What made a value.
#[derive(Clone, Debug, PartialEq)]
pub enum Link {
    /// An operator.
    Made(Made),
    /// It comes from nowhere further back.
    End(End),
    /// It comes from further back than is wanted.
    Cut,
}

/// A computed value.
#[derive(Clone, Debug, PartialEq)]
pub struct Made {
    /// Where.
    pub spot: Spot,
    /// The value.
    pub value: Bits,
    /// What it was computed from.
    pub operands: Vec<Operand>,
    /// Which of the operands is followed; `None` if all are constants, or there are none.
    pub followed: Option<usize>,
    /// It was looked up in a constant table: the operand is the address.
    pub lookup: bool,
}

/// An operand.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Operand {
    /// What it is for the operator.
    pub role: &'static str,
    /// Its value.
    pub value: Bits,
    /// It is a constant of the code.
    pub constant: bool,
    /// It is one as all operands are, and was passed, returned, or set in another block.
    pub elsewhere: bool,
    /// Its register.
    pub register: Register,
}

/// How much more of a run may be asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Room {
    /// Also to look for operands that lead to what the host gave.
    Looking,
    /// Enough to go on.
    GoingOn,
    /// Nothing more: the last step is cut.
    Nothing,
}

/// Goes back from a value, step by step.
///
/// Which operand of several is followed: none that is a constant, if there are others; if something that the host gave can be reached through operands, by going back a thousand links at most, the one
/// that is on the shortest way to it, counted in computing operators; otherwise one that was computed itself, and of several such the one that was computed first; otherwise one that is no constant.
/// Where only some bits are asked about, as those that a mask leaves, none is followed of which they do not depend on.
/// On the way to what the host gave, a read of a table that nothing ever wrote counts as computed from its address.
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
    /// From a value.
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

    /// Only so many moves and computations back: then the last step is cut, also between two moves.
    #[must_use]
    pub fn at_most(self, most: u64) -> Self {
        Self { most, ..self }
    }

    /// Goes back as far as `room` says, which is asked now and then.
    #[must_use]
    pub fn within(self, room: impl Fn() -> Room + 'v) -> Self {
        Self {
            room: Rc::new(room),
            ..self
        }
    }

    /// Only from some bits of it: of a register counted from its lowest one, of what was written from the first byte on.
    #[must_use]
    pub fn only(self, bits: u64) -> Self {
        let asked = self.asked.map(|asked| BitsQuery::bits(asked.at, bits));
        Self { asked, ..self }
    }

    /// How many moves and computations were gone back.
    pub fn links(&self) -> u64 {
        self.links
    }

    /// The next step back. `None` after the end.
    ///
    /// # Errors
    /// If the trace is damaged or holds too little.
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
            // What was found before that is told.
            Err(error) if error.is_too_many() && (self.room)() == Room::Nothing => {}
            Err(error) => return Err(error),
        }
        Ok(Some(step))
    }

    /// The link of a step, which gets the moves on the way to it.
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

    /// Whether operands that lead to what the host gave were not looked for as far as they are where there is [room](Self::within).
    pub fn is_search_cut(&self) -> bool {
        self.is_search_cut
    }

    /// The shortest way to what the host gave, from operands of what was computed.
    fn nearest(
        &mut self,
        of: Part,
        operands: &[(usize, BitsQuery)],
    ) -> Result<Option<Vec<(Part, Choice)>>, WhyError> {
        let found = nearest(&self.walk, of, operands, (&mut self.left, &*self.room))?;
        self.is_search_cut |= found.is_none() && (self.room)() != Room::Looking;
        Ok(found)
    }

    /// Whether a read of what nothing wrote is gone on from at its address, because that leads to something that the host gave.
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

    /// A value where it was moved.
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

    /// What computed something, and what is gone on from.
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

    /// Of constants one that was passed, returned, or set in another block: something led there. First come those that a branch led to that did not lead to what takes them as well, then
    /// those that were returned.
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

    /// When the branch was executed that led to an operator of its activation; `None` if the call alone did.
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

    /// When a value was computed; those that were not come after all others, and constants last.
    fn age(&self, mut at: At) -> Result<(Age, u64), WhyError> {
        for _ in 0..MOVES {
            match self.walk.back(at) {
                Ok(StepBack::Computed(made)) => return Ok((Age::Computed, made.instance.time)),
                Ok(StepBack::Moved { next, .. }) => at = next,
                Ok(StepBack::End(End::Constant { .. })) => return Ok((Age::Constant, 0)),
                Ok(StepBack::End(_)) => return Ok((Age::Given, 0)),
                Err(error) if error.is_outside() => return Ok((Age::Given, 0)),
                Err(error) => return Err(error),
            }
        }
        Ok((Age::Given, 0))
    }
}

/// What is gone back to first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Age {
    Computed,
    /// It comes from where nothing was computed, or from too far away.
    Given,
    Constant,
}

/// How a constant came to be an operand of what is in another block.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Chosen {
    /// A branch of its own led to it.
    Led,
    Returned,
    /// It was passed, or stood in a local before.
    Before,
}
