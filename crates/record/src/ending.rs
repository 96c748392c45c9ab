//! Determines how an execution ended and where each activation was at that moment.

use std::ops::Range;

use afterimage_ids::{BlockId, FuncId, InstrOffset, OrigOffset};
use afterimage_placement::OpenFrame;
use afterimage_program::{BlockEnd, Effect, Function, OperatorIndex, Program};
use afterimage_rewrite::{OffsetMap, OriginalPlace};
use afterimage_trace::{Ending, Frame, Interrupter, Standing, TraceError, TrapCode};
use wasmtime::{ThrownException, Trap, WasmBacktrace};
use wasmtime_wasi::I32Exit;

use crate::RecordError;
use crate::live::Stopped;

/// The end of an execution, with places in the rewritten module.
#[derive(Debug)]
pub(crate) enum Outcome {
    /// Every call into the guest returned.
    Returned,
    /// The guest ended early.
    Early {
        how: Early,
        /// The function and offset of each activation in the rewritten module, innermost first.
        /// Without an offset, the activation is before its first operator.
        stack: Vec<(FuncId, Option<InstrOffset>)>,
    },
}

/// The ways to end early.
#[derive(Debug)]
pub(crate) enum Early {
    Exit(i32),
    /// Stopped inside a host call.
    Stopped,
    Trap(Trap),
    Exception,
    Host(String),
}

/// Classifies the error that the engine returned for a call into the guest. `called` is the
/// function that the host called. If it is an import, it has no frame.
///
/// # Errors
/// Returns the error's cause if the error is not one of the ways in which a run can end. Returns
/// [`RecordError::NoBacktrace`] if the engine does not report the guest's stack. The engine omits
/// the stack when memory runs out.
pub(crate) fn classify(
    error: wasmtime::Error,
    program: &Program,
    called: FuncId,
) -> Result<Outcome, RecordError> {
    let stack: Vec<_> = error
        .downcast_ref::<WasmBacktrace>()
        .map(|trace| {
            trace
                .frames()
                .iter()
                .map(|f| {
                    let offset = f
                        .module_offset()
                        .and_then(|o| u32::try_from(o).ok())
                        .map(InstrOffset);
                    (FuncId::from_u32(f.func_index()), offset)
                })
                .collect()
        })
        .unwrap_or_default();
    let how = if let Some(exit) = error.downcast_ref::<I32Exit>() {
        Early::Exit(exit.0)
    } else if error.is::<Stopped>() {
        Early::Stopped
    } else if let Some(trap) = error.downcast_ref::<Trap>() {
        Early::Trap(*trap)
    } else if error.is::<ThrownException>() {
        // The exception has already unwound the stack. The engine reports the place where the
        // exception was thrown, but in offsets that depend on the instrumentation.
        return Ok(Outcome::Early {
            how: Early::Exception,
            stack: Vec::new(),
        });
    } else {
        match error.downcast::<RecordError>() {
            Ok(ours) => return Err(ours),
            Err(error) => match error.downcast::<TraceError>() {
                Ok(ours) => return Err(ours.into()),
                Err(error) => Early::Host(root_message(&error)),
            },
        }
    };
    if stack.is_empty() && program.function(called).is_some() {
        return Err(RecordError::NoBacktrace);
    }
    Ok(Outcome::Early { how, stack })
}

/// Returns an error's message without the engine's backtrace.
fn root_message(error: &wasmtime::Error) -> String {
    error
        .chain()
        .last()
        .map_or_else(|| error.to_string(), ToString::to_string)
}

/// The place of one activation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Activation {
    pub function: FuncId,
    pub place: OriginalPlace,
}

/// The uncertainty about where a run trapped.
#[derive(Debug)]
pub(crate) struct Doubt {
    /// The function that trapped.
    pub function: FuncId,
    /// One of the loads or stores between these offsets may have trapped.
    pub loads: Range<OrigOffset>,
    /// An operator in the block that trapped, if known. It is either the operator that the engine
    /// named, or the last load if all loads are in one block.
    pub at: Option<OrigOffset>,
}

impl Doubt {
    /// Returns the most likely place of the trap if the operator is uncertain. The block of that
    /// place is certain.
    pub(crate) fn known(&self) -> Option<Frame> {
        Some(Frame {
            function: self.function,
            offset: self.at?,
            standing: Standing::At,
        })
    }
}

impl Outcome {
    /// Returns the activations on the stack, innermost first. `trapped` is the place of the trap,
    /// if known.
    ///
    /// The engine may report a trap at an operator after the operator that trapped; see
    /// [`Outcome::in_doubt`].
    pub(crate) fn standing(
        &self,
        program: &Program,
        index: &OperatorIndex<'_>,
        map: &OffsetMap,
        trapped: Option<&Frame>,
    ) -> Result<Vec<Activation>, RecordError> {
        let Outcome::Early { stack, how } = self else {
            return Ok(Vec::new());
        };
        stack
            .iter()
            .enumerate()
            .map(|(depth, &(function, offset))| match offset {
                _ if depth == 0
                    && let Some(trapped) = trapped
                    && self.may_be(program, index, map, trapped) =>
                {
                    Ok(Activation {
                        function,
                        place: OriginalPlace::Operator(trapped.offset),
                    })
                }
                Some(offset) => {
                    let place = map.lookup(offset).filter(|found| found.0 == function);
                    let (_, place) =
                        place.ok_or_else(|| RecordError::UnknownPlace(offset.to_string()))?;
                    Ok(Activation { function, place })
                }
                // Only a stack overflow occurs before a function's code.
                None if depth == 0 && matches!(how, Early::Trap(Trap::StackOverflow)) => {
                    Ok(Activation {
                        function,
                        place: OriginalPlace::Prologue,
                    })
                }
                None => Err(RecordError::UnknownPlace(function.to_string())),
            })
            .collect()
    }

    /// Returns the function that trapped and the place that the engine reported. Returns `None` if
    /// the run did not trap, or if the place of this kind of trap is certain.
    fn trapped(&self, map: &OffsetMap) -> Option<(FuncId, Option<OrigOffset>)> {
        let Outcome::Early {
            how: Early::Trap(trap),
            stack,
        } = self
        else {
            return None;
        };
        if matches!(trap, Trap::StackOverflow | Trap::UnreachableCodeReached) {
            return None;
        }
        let &(function, offset) = stack.first()?;
        let place = offset.and_then(|offset| map.lookup(offset));
        Some((
            function,
            match place {
                Some((of, OriginalPlace::Operator(offset))) if of == function => Some(offset),
                _ => None,
            },
        ))
    }

    /// Whether the trap may come from a load merged with another operator into one instruction.
    fn may_be_folded(&self) -> bool {
        self.beyond().is_some()
    }

    /// If the trap is an access outside a memory or table, returns a test for operators that can
    /// cause it.
    fn beyond(&self) -> Option<fn(Effect) -> bool> {
        match self {
            Outcome::Early {
                how: Early::Trap(Trap::MemoryOutOfBounds),
                ..
            } => Some(Effect::may_leave_memory),
            Outcome::Early {
                how: Early::Trap(Trap::TableOutOfBounds),
                ..
            } => Some(Effect::may_leave_table),
            _ => None,
        }
    }

    /// Returns the doubt about where the run trapped, if there is any.
    ///
    /// The engine merges a load and the operator that takes its value into one instruction if
    /// nothing is between them. The engine reports the trap at that operator, or reports no place
    /// if the operator became several instructions. If the named operator cannot cause this trap,
    /// the engine may have moved the operator, so the operator's block need not contain the load.
    /// The engine may omit a store if a later store overwrites its bytes. The trap then occurs in
    /// the later store.
    pub(crate) fn in_doubt(
        &self,
        program: &Program,
        bytes: &[u8],
        index: &OperatorIndex<'_>,
        map: &OffsetMap,
    ) -> Option<Doubt> {
        let (function, at) = self.trapped(map)?;
        if at.is_some() && !self.may_be_folded() {
            return None;
        }
        let code = program.function(function)?;
        let found = at.and_then(|at| Some((at, block_of(program, index, at)?.1)));
        let before = found.map(|(at, block)| code.cfg.blocks[block].offsets.start..at);
        let mut itself = None;
        // Whether there are other stores that may trap, and whether they are all in the block of
        // the operator that the engine names.
        let (mut other_stores, mut stores_here) = (false, true);
        let mut loads_before = false;
        // The last load, and whether all other loads are in its block.
        let mut last: Option<(OrigOffset, BlockId)> = None;
        let mut one_block = true;
        for (op, offset, operator) in program.operators(bytes, code) {
            let effect = Effect::of(&operator);
            let may = self.beyond().is_some_and(|may| may(effect));
            if at == Some(offset) {
                itself = Some(effect).filter(|_| may);
            } else if may && effect.is_store() {
                other_stores = true;
                stores_here &= code.block_of(op) == found.map(|(_, block)| block);
            }
            if effect.is_load()
                && let Some(block) = code.block_of(op)
            {
                let before = before.as_ref();
                loads_before |= before.is_some_and(|before| before.contains(&offset));
                one_block &= last.is_none_or(|(_, other)| other == block);
                last = Some((offset, block));
            }
        }
        match before {
            Some(_) if itself.is_some_and(Effect::is_store) && other_stores => Some(Doubt {
                function,
                loads: code.body.clone(),
                at: at.filter(|_| stores_here),
            }),
            Some(before) if itself.is_some() => loads_before.then_some(Doubt {
                function,
                loads: before,
                at,
            }),
            Some(_) => Some(Doubt {
                function,
                loads: code.body.clone(),
                at: at.filter(|&at| {
                    let block = block_of(program, index, at).map(|(_, block)| block);
                    one_block && block.is_some() && last.map(|(_, block)| block) == block
                }),
            }),
            None => Some(Doubt {
                function,
                loads: code.body.clone(),
                at: last
                    .filter(|_| one_block && self.may_be_folded())
                    .map(|(offset, _)| offset),
            }),
        }
    }

    /// Whether the engine's report allows a trap at `trapped`. Time: O(operators of the function).
    fn may_be(
        &self,
        program: &Program,
        index: &OperatorIndex<'_>,
        map: &OffsetMap,
        trapped: &Frame,
    ) -> bool {
        self.trapped(map).is_some_and(|(function, at)| {
            let block = |at| block_of(program, index, at).map(|(_, block)| block);
            // An operator that cannot cause this trap may have been moved out of the load's block.
            let moved = |at| {
                !index
                    .effect(at)
                    .zip(self.beyond())
                    .is_some_and(|(e, may)| may(e))
            };
            let stores = |at| index.effect(at).is_some_and(Effect::is_store);
            // If the doubt was not resolved, the recording may name either of the two operators.
            let folded = |at| {
                self.may_be_folded()
                    && (block(at) == block(trapped.offset)
                        || moved(at)
                        || stores(at) && stores(trapped.offset))
            };
            function == trapped.function && at.is_none_or(|at| at == trapped.offset || folded(at))
        })
    }

    /// Returns how the run ended. `by` says who asked the run to stop, if anybody did.
    pub(crate) fn ending(&self, standing: &[Activation], by: Option<Interrupter>) -> Ending {
        let Outcome::Early { how, .. } = self else {
            return Ending::Returned;
        };
        let at = standing.first().map(|first| first.place);
        let at_poll = matches!(at, Some(OriginalPlace::Poll(_)));
        let at_prologue = at == Some(OriginalPlace::Prologue);
        let at_wait = matches!(at, Some(OriginalPlace::Wait(_)));
        match how {
            Early::Exit(code) => Ending::Exited { code: *code },
            Early::Stopped => Ending::Interrupted {
                by: by.unwrap_or(Interrupter::Terminate),
            },
            Early::Trap(Trap::UnreachableCodeReached) if at_poll => Ending::Interrupted {
                by: by.unwrap_or(Interrupter::Terminate),
            },
            Early::Trap(Trap::UnreachableCodeReached) if at_wait => {
                let trap = Trap::AtomicWaitNonSharedMemory;
                Ending::Trapped {
                    code: trap_code(trap),
                    message: trap.to_string(),
                }
            }
            Early::Trap(Trap::UnreachableCodeReached) if at_prologue => Ending::StackOverflow,
            Early::Trap(Trap::StackOverflow) => Ending::StackOverflow,
            Early::Trap(trap) => Ending::Trapped {
                code: trap_code(*trap),
                message: trap.to_string(),
            },
            Early::Exception => Ending::Exception {
                message: String::new(),
            },
            Early::Host(message) => Ending::HostError {
                message: message.clone(),
            },
        }
    }

    /// Whether the run ended at an `unreachable`, either in the guest or in a probe that stops the
    /// run.
    pub(crate) fn is_unreachable(&self) -> bool {
        matches!(
            self,
            Outcome::Early {
                how: Early::Trap(Trap::UnreachableCodeReached),
                ..
            }
        )
    }

    /// Whether activations were still open when the run ended. None are open after the host's last
    /// call returned or an exception unwound the stack.
    pub(crate) fn stands(&self) -> bool {
        matches!(self, Outcome::Early { how, .. } if !matches!(how, Early::Exception))
    }

    /// Whether the innermost activation was inside a host call.
    fn in_host_call(&self) -> bool {
        matches!(
            self,
            Outcome::Early {
                how: Early::Exit(_) | Early::Stopped | Early::Host(_),
                ..
            }
        )
    }
}

fn trap_code(trap: Trap) -> TrapCode {
    match trap {
        Trap::UnreachableCodeReached => TrapCode::Unreachable,
        Trap::MemoryOutOfBounds => TrapCode::MemoryOutOfBounds,
        Trap::TableOutOfBounds => TrapCode::TableOutOfBounds,
        Trap::IndirectCallToNull => TrapCode::IndirectCallToNull,
        Trap::BadSignature => TrapCode::BadSignature,
        Trap::IntegerOverflow => TrapCode::IntegerOverflow,
        Trap::IntegerDivisionByZero => TrapCode::DivisionByZero,
        Trap::BadConversionToInteger => TrapCode::BadConversionToInteger,
        Trap::NullReference => TrapCode::NullReference,
        Trap::HeapMisaligned => TrapCode::UnalignedAtomic,
        Trap::AtomicWaitNonSharedMemory => TrapCode::UnsharedWait,
        _ => TrapCode::Other,
    }
}

/// Returns the function and block of an operator.
fn block_of<'p>(
    program: &'p Program,
    index: &OperatorIndex<'_>,
    at: OrigOffset,
) -> Option<(&'p Function, BlockId)> {
    let (function, op) = index.find(at)?;
    let function = program.function(function)?;
    Some((function, function.block_of(op)?))
}

/// Converts the activations to the form stored in the file.
pub(crate) fn frames(
    program: &Program,
    standing: &[Activation],
) -> Result<Vec<Frame>, RecordError> {
    standing
        .iter()
        .map(|s| {
            let function = program
                .function(s.function)
                .ok_or_else(|| RecordError::UnknownPlace(s.function.to_string()))?;
            let (offset, standing) = match s.place {
                OriginalPlace::Operator(offset) | OriginalPlace::Wait(offset) => {
                    (offset, Standing::At)
                }
                OriginalPlace::Poll(block) => (block_start(function, block), Standing::Before),
                OriginalPlace::Prologue => (function.body.start, Standing::NotEntered),
            };
            Ok(Frame {
                function: s.function,
                offset,
                standing,
            })
        })
        .collect()
}

/// Returns the start of a block. For the root, this is the start of the function.
fn block_start(function: &Function, block: BlockId) -> OrigOffset {
    if block == function.cfg.graph.root() {
        function.body.start
    } else {
        function.cfg.blocks[block].offsets.start
    }
}

/// Converts the activations on the stack to the frames that the solver of the counts needs.
pub(crate) fn open_frames(
    program: &Program,
    index: &OperatorIndex<'_>,
    outcome: &Outcome,
    standing: &[Activation],
) -> Result<Vec<OpenFrame>, RecordError> {
    let mut open = Vec::with_capacity(standing.len());
    let mut callee_entered = outcome.in_host_call();
    for s in standing {
        let function = program
            .function(s.function)
            .ok_or_else(|| RecordError::UnknownPlace(s.function.to_string()))?;
        let block = match s.place {
            // This activation is not counted; see `not_entered`.
            OriginalPlace::Prologue => {
                callee_entered = true;
                continue;
            }
            OriginalPlace::Poll(block) => block,
            OriginalPlace::Operator(offset) | OriginalPlace::Wait(offset) => index
                .find(offset)
                .and_then(|(_, op)| function.block_of(op))
                .ok_or_else(|| RecordError::UnknownPlace(offset.to_string()))?,
        };
        let calls = matches!(
            function.cfg.blocks[block].end,
            BlockEnd::Call(_) | BlockEnd::TailCall(_)
        );
        open.push(OpenFrame {
            function: s.function,
            block,
            callee_entered: calls && callee_entered,
        });
        callee_entered = true;
    }
    Ok(open)
}

/// Returns the function for which the stack had no room, if the stack overflowed. This need not be
/// the function that its caller called, because a tail call may have replaced that function.
pub(crate) fn not_entered(standing: &[Activation]) -> Vec<FuncId> {
    let prologues = standing
        .iter()
        .filter(|s| s.place == OriginalPlace::Prologue);
    prologues.map(|s| s.function).collect()
}

#[cfg(test)]
mod tests {
    use afterimage_ids::FuncId;
    use afterimage_program::Program;
    use wasmtime::Trap;

    use super::{Early, Outcome, classify};
    use crate::RecordError;

    /// The engine omits the stack when memory runs out. A poll of the stop clock then looks like an
    /// `unreachable` in the guest.
    #[test]
    fn a_trap_without_a_stack_is_refused() {
        let module = r#"(module (import "a" "f" (func)) (func unreachable))"#;
        let module = wat::parse_str(module).unwrap();
        let program = Program::parse(&module).unwrap();
        let trapped = || wasmtime::Error::from(Trap::UnreachableCodeReached);
        let [import, own] = [0, 1].map(FuncId::from_u32);
        let refused = classify(trapped(), &program, own);
        assert!(matches!(refused, Err(RecordError::NoBacktrace)));
        // The host called its own function, so the guest has no stack.
        let early = classify(trapped(), &program, import).unwrap();
        let Outcome::Early { how, stack } = early else {
            panic!("{early:?}")
        };
        assert!(matches!(how, Early::Trap(_)) && stack.is_empty());
    }
}
