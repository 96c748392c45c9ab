//! Determines the effects of a program's functions on memory from their code.

use std::cell::RefCell;
use std::rc::Rc;

use afterimage_dataflow::{Events, Site};
use afterimage_ids::{BlockId, EntityRef, FuncId, OpId};
use afterimage_program::{Callee, Effect, Function, Program, Ssa};
use rustc_hash::FxHashMap;

use super::expressions::{Access, Expressions};
use afterimage_replay::values::Types;

/// An operator that may read or write memory.
#[derive(Clone, Copy, Debug)]
pub(super) enum Touch {
    /// A load or store, by number.
    Access(usize),
    /// An operator other than a plain load or store that writes to this memory, such as a bulk
    /// operation.
    Bulk(u32),
    /// A call to the host, which may write to any memory.
    Host,
    /// A call through a table that may contain functions of the host.
    MaybeHost,
}

/// A function's code, prepared for questions about memory.
pub(super) struct Code<'a> {
    pub function: &'a Function,
    pub ssa: Rc<Ssa>,
    pub expressions: Expressions,
    /// The operators that touch memory, in order.
    pub touches: Vec<(BlockId, OpId, Touch)>,
}

/// The code of the program's functions, each prepared on first use.
pub(super) struct Codes<'a> {
    program: &'a Program,
    module: &'a [u8],
    types: Types<'a>,
    known: RefCell<FxHashMap<FuncId, Option<Rc<Code<'a>>>>>,
    /// Whether tables may contain functions of the host.
    host_in_tables: bool,
}

impl<'a> Codes<'a> {
    pub fn new(program: &'a Program, module: &'a [u8]) -> Self {
        let mut taken = (0..program.imports.len() as u32).map(FuncId::from_u32);
        Self {
            program,
            module,
            types: Types::new(program, module),
            known: RefCell::default(),
            host_in_tables: taken.any(|import| program.address_taken.contains(import)),
        }
    }

    /// Returns the code of a function. `None` if the module does not define it.
    pub fn of(&self, function: FuncId) -> Option<Rc<Code<'a>>> {
        if let Some(known) = self.known.borrow().get(&function) {
            return known.clone();
        }
        let read = self.read(function).map(Rc::new);
        self.known.borrow_mut().insert(function, read.clone());
        read
    }

    fn read(&self, function: FuncId) -> Option<Code<'a>> {
        let ssa = self.types.statements(function)?;
        let function = self.program.function(function)?;
        let expressions = Expressions::of(self.program, self.module, function, &ssa);
        let mut accesses = expressions.accesses.iter().enumerate().peekable();
        let mut touches = Vec::new();
        for statement in ssa.statements.values() {
            let touch = match statement.effect {
                _ if let Some((k, _)) = accesses.next_if(|(_, a)| a.op == statement.op) => {
                    Touch::Access(k)
                }
                Effect::MemoryWrite(memory)
                | Effect::MemoryUpdate(memory)
                | Effect::MemoryCopy { to: memory, .. }
                | Effect::MemoryInit { memory, .. } => Touch::Bulk(memory),
                Effect::Call(callee) | Effect::TailCall(callee) => match callee {
                    Callee::Direct(f) if f.index() < self.program.imports.len() => Touch::Host,
                    Callee::Indirect { .. } if self.host_in_tables => Touch::MaybeHost,
                    _ => continue,
                },
                _ => continue,
            };
            touches.push((statement.block, statement.op, touch));
        }
        Some(Code {
            function,
            ssa,
            expressions,
            touches,
        })
    }
}

/// The bytes of memory that a load reads.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct Bytes {
    pub memory: u32,
    /// The address of the first byte, if the address is a constant.
    pub address: Option<u64>,
    pub bytes: u64,
}

/// Returns whether an access makes bytes at a known distance available. `Some(false)` means that it
/// makes them unavailable. `None` means that it does not affect them. `from` is the address of the
/// first byte minus the address of the access.
pub(super) fn relation(access: &Access, from: i128, bytes: u64) -> Option<bool> {
    let (from, length) = (from, i128::from(access.bytes));
    let to = from + i128::from(bytes);
    if from >= 0 && to <= length {
        return Some(true);
    }
    let overlaps = from < length && to > 0;
    (overlaps && access.is_store).then_some(false)
}

/// The site that decided a fact.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Decider {
    /// This operator makes the fact true.
    Gen(FuncId, OpId),
    /// This operator makes the fact false.
    Kill(FuncId, OpId),
    /// The fact is false at the beginning of this block, because one of its values may come from
    /// several places.
    Meets(FuncId, BlockId),
    /// A call to this function makes the fact true.
    GenEntry(FuncId),
    /// A call to this function makes the fact false.
    KillEntry(FuncId),
    /// An unidentified event makes the fact false.
    Something,
}

impl Decider {
    /// Whether the decider makes the fact true.
    pub fn holds(self) -> bool {
        matches!(self, Self::Gen(..) | Self::GenEntry(_))
    }
}

/// Numbers the deciders.
#[derive(Debug, Default)]
pub(super) struct Sites {
    known: RefCell<(Vec<Decider>, FxHashMap<Decider, u32>)>,
    kills_are_alike: bool,
}

impl Sites {
    /// Gives the same number to all deciders that make a fact false, so that more calls are alike.
    pub fn with_kills_alike() -> Self {
        Self {
            kills_are_alike: true,
            ..Self::default()
        }
    }

    pub fn of(&self, decider: Decider) -> Site {
        let decider = if self.kills_are_alike && !decider.holds() {
            Decider::Something
        } else {
            decider
        };
        let (all, numbers) = &mut *self.known.borrow_mut();
        let number = numbers.entry(decider).or_insert_with(|| {
            all.push(decider);
            all.len() as u32 - 1
        });
        Site(*number)
    }

    pub fn get(&self, site: Site) -> Decider {
        self.known.borrow().0[site.0 as usize]
    }
}

/// The effects of callees on bytes of memory. If the address is not a constant, any store may write
/// them.
pub(super) struct InCallees<'a, 'c> {
    pub codes: &'c Codes<'a>,
    pub sites: &'c Sites,
    pub bytes: Bytes,
}

impl InCallees<'_, '_> {
    fn decides(&self, function: FuncId, code: &Code<'_>, op: OpId, touch: Touch) -> Option<Site> {
        let available = match touch {
            Touch::Host | Touch::MaybeHost => false,
            Touch::Bulk(memory) if memory == self.bytes.memory => false,
            Touch::Bulk(_) => return None,
            Touch::Access(k) => {
                let access = &code.expressions.accesses[k];
                match (access.address, self.bytes.address) {
                    _ if access.memory != self.bytes.memory => return None,
                    (Some(other), Some(address)) => {
                        let from = i128::from(address) - i128::from(other);
                        relation(access, from, self.bytes.bytes)?
                    }
                    _ if access.is_store => false,
                    _ => return None,
                }
            }
        };
        Some(self.sites.of(if available {
            Decider::Gen(function, op)
        } else {
            Decider::Kill(function, op)
        }))
    }
}

impl Events for InCallees<'_, '_> {
    fn of_block(&self, function: FuncId, block: BlockId) -> Option<Site> {
        let code = self.codes.of(function)?;
        let begin = code.touches.partition_point(|touch| touch.0 < block);
        let own = code.touches[begin..].iter().take_while(|t| t.0 == block);
        let own = Vec::from_iter(own);
        let mut own = own.into_iter().rev();
        own.find_map(|&(_, op, touch)| self.decides(function, &code, op, touch))
    }

    fn any_in(&self, function: FuncId) -> bool {
        let code = self.codes.of(function);
        code.is_some_and(|code| !code.touches.is_empty())
    }
}
