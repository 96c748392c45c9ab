//! Follows a run on one thread while another thread consumes the events of its statements.

use std::collections::HashSet;
use std::panic::resume_unwind;
use std::sync::mpsc::{Receiver, Sender, SyncSender, channel, sync_channel};
use std::thread;

use afterimage_ids::FuncId;
use afterimage_machine::Range;
use afterimage_matching::Class;
use afterimage_trace::LogReader;
use afterimage_wpp::Segments;

use super::take::{Gave, Listen, StatementSite, Take, Taken, Taking};
use super::walk::{Walk, Walked};
use afterimage_replay::steps::{Run, StepsError};

/// The number of events in a batch.
const AT_ONCE: usize = 1 << 13;
/// The number of batches that may wait.
const WAITING: usize = 4;

/// A call to a [`Listen`] method. Operands of computations are not included.
#[derive(Clone, Copy, Debug)]
enum Happening {
    Begin {
        place: StatementSite,
        context: u32,
        class: Class,
    },
    Gave {
        statement: u32,
        value: u64,
        operands: Option<u64>,
        time: u64,
    },
    /// The next `parameters` parameters of the batch are the activation's arguments.
    Enter {
        function: FuncId,
        time: u64,
        parameters: usize,
    },
    Read(u32, Range),
    Write(u32, Range),
    Copy(Range, Range),
    HostWrite(Range),
}

/// Consecutive events, in order.
#[derive(Debug, Default)]
struct Batch {
    happenings: Vec<Happening>,
    parameters: Vec<u64>,
}

impl Batch {
    fn tell<L: Listen>(&self, listener: &mut L) {
        let mut parameters = &self.parameters[..];
        for happening in &self.happenings {
            match *happening {
                Happening::Begin {
                    place,
                    context,
                    class,
                } => listener.begin(place, context, class),
                Happening::Gave {
                    statement,
                    value,
                    operands,
                    time,
                } => {
                    let taken = Taken::default();
                    let gave = Gave {
                        value,
                        operands,
                        taken,
                    };
                    listener.gave(statement, gave, time);
                }
                Happening::Enter {
                    function,
                    time,
                    parameters: count,
                } => {
                    let own;
                    (own, parameters) = parameters.split_at(count);
                    listener.enter(function, time, own);
                }
                Happening::Read(statement, range) => listener.read(statement, range),
                Happening::Write(statement, range) => listener.write(statement, range),
                Happening::Copy(from, to) => listener.copy(from, to),
                Happening::HostWrite(range) => listener.host_write(range),
            }
        }
    }
}

/// A listener that passes events on to the other thread.
struct Handing {
    batch: Batch,
    full: SyncSender<Batch>,
    /// Emptied batches for reuse.
    empty: Receiver<Batch>,
}

impl Handing {
    #[inline(always)]
    fn hand(&mut self, happening: Happening) {
        self.batch.happenings.push(happening);
        if self.batch.happenings.len() == AT_ONCE {
            self.flush();
        }
    }

    #[inline(never)]
    fn flush(&mut self) {
        let next = self.empty.try_recv().unwrap_or_default();
        let batch = std::mem::replace(&mut self.batch, next);
        // The other thread lives until this thread ends, unless the other thread panics. Joining it
        // resumes that panic.
        let _ = self.full.send(batch);
    }
}

impl Listen for Handing {
    const TAKEN: bool = false;

    fn begin(&mut self, place: StatementSite, context: u32, class: Class) {
        self.hand(Happening::Begin {
            place,
            context,
            class,
        });
    }

    /// Only the listener on the other thread can answer this question.
    fn is_known(&self, _: u32) -> bool {
        true
    }

    #[inline(always)]
    fn gave(&mut self, statement: u32, gave: Gave, time: u64) {
        let Gave {
            value, operands, ..
        } = gave;
        self.hand(Happening::Gave {
            statement,
            value,
            operands,
            time,
        });
    }

    fn enter(&mut self, function: FuncId, time: u64, parameters: &[u64]) {
        self.batch.parameters.extend_from_slice(parameters);
        self.hand(Happening::Enter {
            function,
            time,
            parameters: parameters.len(),
        });
    }

    #[inline(always)]
    fn read(&mut self, statement: u32, range: Range) {
        self.hand(Happening::Read(statement, range));
    }

    #[inline(always)]
    fn write(&mut self, statement: u32, range: Range) {
        self.hand(Happening::Write(statement, range));
    }

    fn copy(&mut self, from: Range, to: Range) {
        self.hand(Happening::Copy(from, to));
    }

    fn host_write(&mut self, range: Range) {
        self.hand(Happening::HostWrite(range));
    }
}

/// Takes batches from the queue until there are no more.
fn take_all(listener: &mut impl Listen, full: &Receiver<Batch>, empty: &Sender<Batch>) {
    for mut batch in full {
        batch.tell(listener);
        batch.happenings.clear();
        batch.parameters.clear();
        // The follower may have ended.
        let _ = empty.send(batch);
    }
}

/// Follows a run to its end. Another thread consumes the events of the run's statements, which is
/// half the work. The functions in `standing` stand alone. If `standing` is `None`, all functions
/// do.
pub(super) fn follow_taking<S: Segments, T>(
    run: Run<'_, S>,
    log: LogReader,
    taker: T,
    standing: Option<&HashSet<FuncId>>,
) -> Result<Walked<Taking<T>>, StepsError<S::Error>>
where
    S::Error: std::error::Error + 'static,
    T: Take + Send,
    T::Kept: Send,
{
    const { assert!(!T::TAKEN, "operands of computations are not passed on") };
    let mut taking = Taking::new(taker);
    let walked = thread::scope(|scope| {
        let (full, filled) = sync_channel(WAITING);
        let (emptied, empty) = channel();
        let taking = &mut taking;
        let aside = move || take_all(taking, &filled, &emptied);
        let Ok(aside) = thread::Builder::new().spawn_scoped(scope, aside) else {
            return Err(log);
        };
        let batch = Batch::default();
        let handing = Handing { batch, full, empty };
        let walked = Walk::within(run, log, handing, standing).and_then(Walk::follow);
        let walked = walked.map(|walked| walked.heard_by((), |mut handing| handing.flush()));
        aside.join().unwrap_or_else(|panic| resume_unwind(panic));
        Ok(walked)
    });
    match walked {
        Ok(walked) => Ok(walked?.heard_by(taking, |()| {})),
        // Without a second thread, this thread does all the work.
        Err(log) => Walk::within(run, log, taking, standing)?.follow(),
    }
}

#[cfg(test)]
mod tests {
    use afterimage_ids::{EntityRef, OpId};
    use proptest::prelude::*;

    use super::*;

    /// A listener that writes down every event.
    #[derive(Debug, Default, PartialEq)]
    struct Scribe(Vec<String>);

    impl Listen for Scribe {
        const TAKEN: bool = false;

        fn begin(&mut self, place: StatementSite, context: u32, class: Class) {
            self.0.push(format!("begin {place:?} {context} {class:?}"));
        }

        fn is_known(&self, _: u32) -> bool {
            true
        }

        fn gave(&mut self, statement: u32, gave: Gave, time: u64) {
            self.0.push(format!("gave {statement} {gave:?} {time}"));
        }

        fn enter(&mut self, function: FuncId, time: u64, parameters: &[u64]) {
            self.0
                .push(format!("enter {function:?} {time} {parameters:?}"));
        }

        fn read(&mut self, statement: u32, range: Range) {
            self.0.push(format!("read {statement} {range:?}"));
        }

        fn write(&mut self, statement: u32, range: Range) {
            self.0.push(format!("write {statement} {range:?}"));
        }

        fn copy(&mut self, from: Range, to: Range) {
            self.0.push(format!("copy {from:?} {to:?}"));
        }

        fn host_write(&mut self, range: Range) {
            self.0.push(format!("host {range:?}"));
        }
    }

    fn tell(listener: &mut impl Listen, (what, x, y): (u8, u32, u64)) {
        let range = Range {
            memory: x,
            address: y,
            length: y / 2,
        };
        let gave = |operands| Gave {
            value: y,
            operands,
            taken: Taken::default(),
        };
        let function = FuncId::new(x as usize);
        match what {
            0 => {
                let op = OpId::new(y as usize);
                listener.begin(StatementSite { function, op }, x, Class::Load);
            }
            1 => listener.gave(x, gave(None), y),
            2 => listener.gave(x, gave(Some(y + 1)), y),
            3 => listener.enter(function, y, &Vec::from_iter(0..u64::from(x))),
            4 => listener.read(x, range),
            5 => listener.write(x, range),
            6 => listener.copy(
                range,
                Range {
                    address: 0,
                    ..range
                },
            ),
            _ => listener.host_write(range),
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]

        /// Repeats the events until they fill several batches, so that some batches are reused.
        #[test]
        fn what_is_handed_on_is_told_in_order(told in prop::collection::vec((0u8..8, 0u32..5, 0u64..100), 1..60), times in 0usize..2000) {
            let (mut directly, mut aside) = (Scribe::default(), Scribe::default());
            let all = || std::iter::repeat_n(&told, times).flatten().take(5 * AT_ONCE);
            all().for_each(|&told| tell(&mut directly, told));
            let (full, filled) = sync_channel(WAITING);
            let (emptied, empty) = channel();
            thread::scope(|scope| {
                let mut handing = Handing { batch: Batch::default(), full, empty };
                let aside = &mut aside;
                scope.spawn(move || take_all(aside, &filled, &emptied));
                all().for_each(|&told| tell(&mut handing, told));
                handing.flush();
            });
            prop_assert!(directly == aside);
        }
    }
}
