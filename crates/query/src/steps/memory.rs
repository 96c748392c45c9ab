//! What memory held at a time, and who wrote and read it.

use std::rc::Rc;

use afterimage_machine::{PAGE, Range, State};
use afterimage_trace::LogReader;
use afterimage_wpp::Segments;

use super::follow::Run;
use super::step::overlap;
use super::{Level, Step, Steps, StepsError, Wanted, What};
use crate::paths::Window;

/// Most bytes that can be asked about at once.
pub const LARGEST_RANGE: u64 = 1 << 16;

/// When.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum At {
    /// When the block with this time begins.
    Before(u64),
    /// When the run has ended.
    End,
}

/// Bytes next to each other of which the same is known.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MemoryPart {
    /// Which bytes.
    pub range: Range,
    /// The last write before; `None` if there was none: the module says what it holds, or it is zero.
    pub written: Option<Rc<Step>>,
    /// The next read after.
    pub read_next: Option<Rc<Step>>,
    /// The next write after.
    pub written_next: Option<Rc<Step>>,
}

/// What memory held, and what happened to it before and after.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MemoryAnswer {
    /// The bytes.
    pub bytes: Vec<u8>,
    /// How many bytes the memory had.
    pub size: u64,
    /// All of the bytes, in parts.
    pub parts: Vec<MemoryPart>,
}

/// What is known of a byte.
#[derive(Clone, Default)]
struct Byte {
    written: Option<Rc<Step>>,
    read_next: Option<Rc<Step>>,
    written_next: Option<Rc<Step>>,
}

/// What some bytes, at most [`LARGEST_RANGE`], held at a time. The run is followed until it is known what happens to each of them next.
///
/// # Errors
/// If the bytes are not there at that time, or the run cannot be followed.
pub fn memory_at<S: Segments>(
    run: Run<'_, S>,
    log: LogReader,
    range: Range,
    at: At,
) -> Result<MemoryAnswer, StepsError<S::Error>>
where
    S::Error: std::error::Error + 'static,
{
    let length = run.path.length();
    let wanted = Wanted {
        level: Level::Memory,
        window: Window {
            first: 1,
            last: length,
        },
        function: None,
        range: Some(range),
    };
    let mut steps = Steps::new(run, log, wanted)?;
    let time = match at {
        At::Before(time) => time,
        At::End => length.saturating_add(1),
    };
    let mut bytes = vec![Byte::default(); range.length as usize];
    let mut held: Option<(Vec<u8>, u64)> = None;
    while let Some(visit) = steps.follower.next()? {
        if held.is_none() && time <= visit.last() {
            if visit.start < time {
                // The block is inside of a node: what the node did before it is done to a copy, too.
                let mut state = steps.follower.machine.state.clone();
                steps.want(Wanted {
                    level: Level::Statement,
                    range: None,
                    ..wanted
                });
                steps.execute(visit)?;
                steps.want(wanted);
                let done = Vec::from_iter(steps.taken());
                for step in done.iter().filter(|step| step.time < time) {
                    apply(&mut state, &step.what);
                }
                held = Some(contents(&state, range)?);
                for step in done.into_iter().filter(|step| step.what.touches(range)) {
                    note(&mut bytes, range, step, time);
                }
                continue;
            }
            held = Some(contents(&steps.follower.machine.state, range)?);
        }
        steps.execute(visit)?;
        for step in steps.taken() {
            note(&mut bytes, range, step, time);
        }
        if held.is_some() && bytes.iter().all(Byte::is_known) {
            break;
        }
    }
    let (held, size) = match held {
        Some(held) => held,
        None => contents(&steps.follower.machine.state, range)?,
    };
    Ok(MemoryAnswer {
        bytes: held,
        size,
        parts: parts(&bytes, range),
    })
}

impl Byte {
    fn is_known(&self) -> bool {
        self.read_next.is_some() && self.written_next.is_some()
    }
}

/// Notes what a step did to the bytes of a range.
fn note(bytes: &mut [Byte], range: Range, step: Step, time: u64) {
    let (read, written) = (step.what.read(), step.what.written());
    let (before, step) = (step.time < time, Rc::new(step));
    if let Some(written) = written {
        for byte in touched(bytes, range, written) {
            if before {
                byte.written = Some(Rc::clone(&step));
            } else if byte.written_next.is_none() {
                byte.written_next = Some(Rc::clone(&step));
            }
        }
    }
    if let Some(read) = read.filter(|_| !before) {
        for byte in touched(bytes, range, read) {
            if byte.read_next.is_none() {
                byte.read_next = Some(Rc::clone(&step));
            }
        }
    }
}

/// Those of the bytes of a range that another one has, too.
fn touched(bytes: &mut [Byte], range: Range, by: Range) -> &mut [Byte] {
    if !overlap(range, by) {
        return &mut [];
    }
    let first = by.address.saturating_sub(range.address);
    let last = by.address.saturating_add(by.length - 1) - range.address;
    let end = last.saturating_add(1).min(range.length);
    &mut bytes[first as usize..end as usize]
}

/// The bytes of a range, and how many the memory has.
fn contents<E: std::error::Error + 'static>(
    state: &State,
    range: Range,
) -> Result<(Vec<u8>, u64), StepsError<E>> {
    let count = state.memories.len();
    let missing = StepsError::NoMemory {
        memory: range.memory,
        count,
    };
    let memory = state.memories.get(range.memory as usize).ok_or(missing)?;
    let size = memory.bytes.len() as u64;
    let Ok(place) = memory.range(range.address, range.length) else {
        return Err(StepsError::Outside {
            memory: range.memory,
            size,
            address: range.address.max(size),
        });
    };
    Ok((memory.bytes[place].to_vec(), size))
}

/// Does to memory what a step did.
fn apply(state: &mut State, what: &What) {
    match *what {
        What::Store(range, value) => {
            let (low, high) = value.bits;
            let bits = u128::from(low) | u128::from(high) << 64;
            let length = (range.length as usize).min(16);
            put(state, range, &bits.to_le_bytes()[..length]);
        }
        What::Fill(range, byte) => put(state, range, &vec![byte; range.length as usize]),
        What::Init { to, segment, from } => {
            let Some(data) = state.data.get(segment as usize).cloned() else {
                return;
            };
            let end = from.saturating_add(to.length);
            if let Some(data) = data.get(from as usize..end as usize) {
                put(state, to, data);
            }
        }
        What::Copy { from, to } => {
            let memory = state.memories.get(from.memory as usize);
            let bytes = memory.and_then(|memory| {
                let place = memory.range(from.address, from.length).ok()?;
                Some(memory.bytes[place].to_vec())
            });
            put(state, to, &bytes.unwrap_or_default());
        }
        What::Grow { memory, by, result } => {
            let Some(memory) = state.memories.get_mut(memory as usize) else {
                return;
            };
            // It gives what there was, unless it was refused.
            let before = memory.bytes.len() as u64 / PAGE;
            if result.bits.0 == before {
                memory.bytes.resize(((before + by) * PAGE) as usize, 0);
            }
        }
        _ => {}
    }
}

fn put(state: &mut State, to: Range, bytes: &[u8]) {
    let Some(memory) = state.memories.get_mut(to.memory as usize) else {
        return;
    };
    let place = memory.range(to.address, bytes.len() as u64);
    if let Some(place) = place.ok().and_then(|place| memory.bytes.get_mut(place)) {
        place.copy_from_slice(bytes);
    }
}

/// Bytes next to each other of which the same is known, as parts.
fn parts(bytes: &[Byte], range: Range) -> Vec<MemoryPart> {
    let same = |a: &Option<Rc<Step>>, b: &Option<Rc<Step>>| match (a, b) {
        (Some(a), Some(b)) => Rc::ptr_eq(a, b),
        (None, None) => true,
        _ => false,
    };
    let groups = bytes.chunk_by(|a, b| {
        same(&a.written, &b.written)
            && same(&a.read_next, &b.read_next)
            && same(&a.written_next, &b.written_next)
    });
    let mut address = range.address;
    let parts = groups.map(|group| {
        let length = group.len() as u64;
        let part = MemoryPart {
            range: Range {
                memory: range.memory,
                address,
                length,
            },
            written: group[0].written.clone(),
            read_next: group[0].read_next.clone(),
            written_next: group[0].written_next.clone(),
        };
        address = address.wrapping_add(length);
        part
    });
    parts.collect()
}

#[cfg(test)]
mod tests {
    use super::{Byte, Range, touched};

    #[test]
    fn touched_bytes_are_those_of_both_ranges() {
        for (address, length) in (0..12).flat_map(|a| (0..12).map(move |l| (a, l))) {
            let range = Range {
                memory: 0,
                address: 4,
                length: 5,
            };
            let by = Range {
                memory: 0,
                address,
                length,
            };
            let expected = (4..9).filter(|at| (address..address + length).contains(at));
            let mut bytes = vec![Byte::default(); 5];
            let base = bytes.as_ptr() as usize;
            let found = touched(&mut bytes, range, by);
            let first = (found.as_ptr() as usize).wrapping_sub(base) / size_of::<Byte>();
            let found = (0..found.len()).map(|i| 4 + (first + i) as u64);
            assert!(expected.eq(found), "{by:?}");
        }
    }
}
