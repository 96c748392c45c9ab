//! Defines the END section, which says how the run ended.

use std::fmt;

use afterimage_ids::{FuncId, OrigOffset};

use crate::Result;
use crate::event::entity;
use crate::limits::{MAX_END, MAX_FUNCTIONS, check};
use crate::wire::{Bytes, Fault, put_bytes, put_signed, put_varint};

/// The end of a run, with the activations on the stack.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct End {
    /// The way in which the run ended.
    pub ending: Ending,
    /// The activations on the stack at the end, innermost first.
    pub frames: Vec<Frame>,
    /// The reading of the stop clock at the end, if the recording kept one. It is the number of
    /// polls.
    pub clock: Option<u64>,
    /// The number of events in the log.
    pub events: u64,
    /// The number of calls to each import, indexed by `ImportId`, including calls that did not
    /// return.
    pub host_call_counts: Vec<u64>,
}

/// The way in which a run ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Ending {
    /// Every call into the guest returned.
    Returned,
    /// The guest asked to exit.
    Exited {
        /// The guest's exit code.
        code: i32,
    },
    /// An operator trapped.
    Trapped {
        /// The kind of trap.
        code: TrapCode,
        /// The engine's message about the trap.
        message: String,
    },
    /// An exception left the outermost function.
    Exception {
        /// A description, which may be empty.
        message: String,
    },
    /// The guest's stack was exhausted.
    StackOverflow,
    /// The run was stopped from outside.
    Interrupted {
        /// The source of the request to stop.
        by: Interrupter,
    },
    /// An import failed.
    HostError {
        /// The host's message about the failure.
        message: String,
    },
}

impl fmt::Display for Ending {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Ending::Returned => f.write_str("returned"),
            Ending::Exited { code } => write!(f, "exited with code {code}"),
            Ending::Trapped {
                code: TrapCode::Other,
                message,
            } => write!(f, "trapped: {message}"),
            Ending::Trapped { code, .. } => write!(f, "trapped: {code}"),
            Ending::Exception { message } => {
                f.write_str("threw an exception that nothing caught")?;
                if message.is_empty() {
                    return Ok(());
                }
                write!(f, ": {message}")
            }
            Ending::StackOverflow => f.write_str("exhausted its stack"),
            Ending::Interrupted { by } => write!(f, "was stopped by {by}"),
            Ending::HostError { message } => write!(f, "failed in a host call: {message}"),
        }
    }
}

impl fmt::Display for Interrupter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Interrupter::CtrlC => "Ctrl-C",
            Interrupter::Terminate => "a request to terminate",
            Interrupter::Timeout => "the time limit",
        })
    }
}

/// The source of a request to stop a run from outside.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Interrupter {
    /// The user, with Ctrl-C (SIGINT).
    CtrlC,
    /// Another process, with SIGTERM or SIGHUP.
    Terminate,
    /// The time limit.
    Timeout,
}

macro_rules! trap_codes {
    ($($(#[$doc:meta])* $name:ident = $code:literal, $text:literal;)*) => {
        /// The reason why an operator trapped.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub enum TrapCode {$(
            $(#[$doc])*
            $name,
        )*}

        impl TrapCode {
            /// All kinds of traps.
            pub const ALL: &[TrapCode] = &[$(TrapCode::$name),*];

            fn code(self) -> u8 {
                match self {$(TrapCode::$name => $code,)*}
            }

            fn from_code(code: u8) -> Option<TrapCode> {
                match code {
                    $($code => Some(TrapCode::$name),)*
                    _ => None,
                }
            }
        }

        impl fmt::Display for TrapCode {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(match self {$(TrapCode::$name => $text,)*})
            }
        }
    };
}

trap_codes! {
    /// A kind that this list does not name; see the message.
    Other = 0, "other trap";
    /// `unreachable` was executed.
    Unreachable = 1, "unreachable executed";
    /// A load, store or bulk operation beyond a memory's end.
    MemoryOutOfBounds = 2, "memory access out of bounds";
    /// An access beyond a table's end.
    TableOutOfBounds = 3, "table access out of bounds";
    /// `call_indirect` through a null element.
    IndirectCallToNull = 4, "indirect call to null";
    /// `call_indirect` to a function of another type.
    BadSignature = 5, "indirect call type mismatch";
    /// A signed division whose quotient does not fit.
    IntegerOverflow = 6, "integer overflow";
    /// A division or remainder by zero.
    DivisionByZero = 7, "integer division by zero";
    /// A float that does not fit the integer type.
    BadConversionToInteger = 8, "invalid conversion to integer";
    /// A null reference where a non-null one is required.
    NullReference = 9, "null reference";
    /// The engine could not allocate memory.
    OutOfMemory = 10, "out of memory";
    /// The address of an atomic operator is not a multiple of its width.
    UnalignedAtomic = 11, "unaligned atomic";
    /// `memory.atomic.wait` on memory that is not shared.
    UnsharedWait = 12, "atomic wait on non-shared memory";
}

/// One activation on the stack.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Frame {
    /// The activation's function.
    pub function: FuncId,
    /// The operator's offset in the original module, or the start of the function's body at its
    /// entry.
    pub offset: OrigOffset,
    /// Whether the activation has begun to execute the operator.
    pub standing: Standing,
}

/// Whether an activation has begun to execute its operator.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Standing {
    /// The operator began. It trapped, or it is a call that has not returned.
    At,
    /// The operator is next. The run was stopped before it.
    Before,
    /// The activation never began, because its entry overflowed the stack.
    NotEntered,
}

impl Standing {
    fn code(self) -> u8 {
        match self {
            Standing::At => 0,
            Standing::Before => 1,
            Standing::NotEntered => 2,
        }
    }

    fn read(bytes: &mut Bytes<'_>) -> Result<Self, Fault> {
        match bytes.byte()? {
            0 => Ok(Standing::At),
            1 => Ok(Standing::Before),
            2 => Ok(Standing::NotEntered),
            _ => bytes.fault("an unknown standing of a frame"),
        }
    }
}

const RETURNED: u8 = 0;
const EXITED: u8 = 1;
const TRAPPED: u8 = 2;
const EXCEPTION: u8 = 3;
const STACK_OVERFLOW: u8 = 4;
const INTERRUPTED: u8 = 5;
const HOST_ERROR: u8 = 6;

pub(crate) fn encode(end: &End) -> Result<Vec<u8>> {
    check(
        "the number of imports",
        end.host_call_counts.len(),
        MAX_FUNCTIONS,
    )?;
    let mut bytes = Vec::new();
    let out = &mut bytes;
    match &end.ending {
        Ending::Returned => out.push(RETURNED),
        Ending::Exited { code } => {
            out.push(EXITED);
            put_signed(out, *code);
        }
        Ending::Trapped { code, message } => {
            out.extend([TRAPPED, code.code()]);
            put_bytes(out, message.as_bytes());
        }
        Ending::Exception { message } => {
            out.push(EXCEPTION);
            put_bytes(out, message.as_bytes());
        }
        Ending::StackOverflow => out.push(STACK_OVERFLOW),
        Ending::Interrupted { by } => out.extend([INTERRUPTED, by.code()]),
        Ending::HostError { message } => {
            out.push(HOST_ERROR);
            put_bytes(out, message.as_bytes());
        }
    }
    out.push(end.clock.is_some().into());
    if let Some(clock) = end.clock {
        put_varint(out, clock);
    }
    put_varint(out, end.events);
    put_varint(out, end.host_call_counts.len() as u64);
    for &count in &end.host_call_counts {
        put_varint(out, count);
    }
    put_varint(out, end.frames.len() as u64);
    for frame in &end.frames {
        put_varint(out, frame.function.as_u32().into());
        put_varint(out, frame.offset.0.into());
        out.push(frame.standing.code());
    }
    Ok(bytes)
}

pub(crate) fn decode(bytes: &[u8]) -> Result<End, Fault> {
    let bytes = &mut Bytes::new(bytes);
    let ending = match bytes.byte()? {
        RETURNED => Ending::Returned,
        EXITED => Ending::Exited {
            code: bytes.signed()?,
        },
        TRAPPED => {
            let Some(code) = TrapCode::from_code(bytes.byte()?) else {
                return bytes.fault("an unknown kind of trap");
            };
            Ending::Trapped {
                code,
                message: bytes.text()?,
            }
        }
        EXCEPTION => Ending::Exception {
            message: bytes.text()?,
        },
        STACK_OVERFLOW => Ending::StackOverflow,
        INTERRUPTED => match Interrupter::from_code(bytes.byte()?) {
            Some(by) => Ending::Interrupted { by },
            None => return bytes.fault("an unknown interrupter"),
        },
        HOST_ERROR => Ending::HostError {
            message: bytes.text()?,
        },
        _ => return bytes.fault("an unknown ending"),
    };
    let clock = if bytes.flag()? {
        Some(bytes.varint()?)
    } else {
        None
    };
    let events = bytes.varint()?;
    let host_call_counts = bytes.list(1, MAX_FUNCTIONS, Bytes::varint)?;
    let mut counts = host_call_counts.iter().copied();
    if counts.try_fold(0, u64::checked_add).is_none() {
        return bytes.fault("more host calls than can be counted");
    }
    let frames = bytes.list(3, MAX_END, |bytes| {
        let function = FuncId::from_u32(entity(bytes)?);
        let offset = OrigOffset(bytes.varint32()?);
        Ok(Frame {
            function,
            offset,
            standing: Standing::read(bytes)?,
        })
    })?;
    bytes.end()?;
    Ok(End {
        ending,
        frames,
        clock,
        events,
        host_call_counts,
    })
}

impl Interrupter {
    fn code(self) -> u8 {
        match self {
            Interrupter::CtrlC => 0,
            Interrupter::Terminate => 1,
            Interrupter::Timeout => 2,
        }
    }

    fn from_code(code: u8) -> Option<Interrupter> {
        match code {
            0 => Some(Interrupter::CtrlC),
            1 => Some(Interrupter::Terminate),
            2 => Some(Interrupter::Timeout),
            _ => None,
        }
    }
}
