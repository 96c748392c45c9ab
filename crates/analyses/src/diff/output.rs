//! Compares the output of two runs, byte by byte.

use std::collections::{BTreeMap, VecDeque};

use afterimage_ids::{FuncId, OpId};
use afterimage_machine::{GlobalBits, Memory, Observer};
use afterimage_program::Program;
use afterimage_wpp::{Segments, Visit};

use super::{DiffError, Side};
use afterimage_replay::steps::Follower;

/// The first difference in the output of two runs to one file descriptor.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OutputDifference {
    /// The file descriptor, which is 1 for standard output and 2 for standard error.
    pub descriptor: u32,
    /// The number of equal bytes before the first difference.
    pub offset: u64,
    /// The last bytes before the difference, from the beginning of their line, at most 120.
    pub before: Vec<u8>,
    /// The number of the line with the difference, from 1.
    pub line: u64,
    /// The first run's output from the difference on. `None` if this output has ended.
    pub a: Option<Written>,
    /// The second run's output from the difference on. `None` if this output has ended.
    pub b: Option<Written>,
}

/// Output of one call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Written {
    /// The bytes up to the end of the line or the end of the write, at most 120.
    pub bytes: Vec<u8>,
    /// The time of the block that ends with the call to `fd_write`.
    pub time: u64,
    /// The function that makes the call.
    pub function: FuncId,
    /// The operator that calls `fd_write`.
    pub op: OpId,
}

/// The result of comparing the output of two runs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Outputs {
    /// The first difference for each file descriptor, ascending; empty if there is none.
    pub differences: Vec<OutputDifference>,
    /// Whether either run wrote any output.
    pub any: bool,
}

/// The number of bytes of a line to keep.
const KEPT: usize = 120;

/// Finds where the output of two WASI programs first differs. Output consists of the bytes that
/// `fd_write` wrote, in the order of the calls. File descriptors are identified by their numbers
/// alone.
///
/// Takes as long as following both runs to their ends. Needs memory for the two machines and for
/// the output that only one run has written so far.
///
/// # Errors
/// Returns an error if either run cannot be followed.
pub fn output_differences<S: Segments>(
    a: Side<'_, S>,
    b: Side<'_, S>,
) -> Result<Outputs, DiffError<S::Error>>
where
    S::Error: std::error::Error + 'static,
{
    let mut sides = (Writing::new(a)?, Writing::new(b)?);
    let mut streams = BTreeMap::<u32, Stream>::new();
    let (mut first, mut second) = (true, true);
    while first || second {
        // The run with the earlier time takes the next step.
        let (ta, tb) = (sides.0.time(), sides.1.time());
        if first && (ta <= tb || !second) {
            first = sides.0.advance(|chunk| take(&mut streams, chunk, false))?;
        } else {
            second = sides.1.advance(|chunk| take(&mut streams, chunk, true))?;
        }
    }
    let any = !streams.is_empty();
    let found = streams.into_iter();
    let found = found.filter_map(|(descriptor, stream)| stream.difference(descriptor));
    Ok(Outputs {
        differences: found.collect(),
        any,
    })
}

/// The output of one call.
struct Chunk {
    descriptor: u32,
    written: Written,
}

fn take(streams: &mut BTreeMap<u32, Stream>, chunk: Chunk, second: bool) {
    let stream = streams.entry(chunk.descriptor).or_default();
    stream.take(chunk.written, second);
}

/// The output of both runs to one descriptor.
#[derive(Default)]
struct Stream {
    /// The output that one run has written and the other run has not written yet.
    ahead: VecDeque<Written>,
    /// The number of bytes of the first chunk that the other run has also written.
    seen: usize,
    /// Whether the second run is ahead.
    second: bool,
    offset: u64,
    line: u64,
    before: Vec<u8>,
    found: Option<(Written, Written)>,
}

impl Stream {
    fn take(&mut self, chunk: Written, second: bool) {
        if self.found.is_some() {
            return;
        }
        if self.ahead.is_empty() || self.second == second {
            self.second = second;
            self.ahead.push_back(chunk);
            return;
        }
        let mut at = 0;
        while at < chunk.bytes.len() {
            let Some(other) = self.ahead.front() else {
                // This run is ahead now.
                self.second = second;
                self.seen = at;
                self.ahead.push_back(chunk);
                return;
            };
            let pairs = chunk.bytes[at..].iter().zip(&other.bytes[self.seen..]);
            let same = pairs.take_while(|(x, y)| x == y).count();
            let passed = &chunk.bytes[at..at + same];
            self.offset += same as u64;
            self.line += passed.iter().filter(|&&byte| byte == b'\n').count() as u64;
            match passed.iter().rposition(|&byte| byte == b'\n') {
                Some(end) => self.before = passed[end + 1..].to_vec(),
                None => self.before.extend(passed),
            }
            let excess = self.before.len().saturating_sub(KEPT);
            self.before.drain(..excess);
            at += same;
            self.seen += same;
            let ended = self.seen == other.bytes.len();
            if !ended && at < chunk.bytes.len() {
                let mine = part(&chunk, at);
                let other = part(other, self.seen);
                self.found = Some(if second { (other, mine) } else { (mine, other) });
                self.ahead.clear();
                return;
            }
            if ended {
                self.ahead.pop_front();
                self.seen = 0;
            }
        }
    }

    fn difference(self, descriptor: u32) -> Option<OutputDifference> {
        let (a, b) = match (self.found, self.ahead.front()) {
            (Some((a, b)), _) => (Some(a), Some(b)),
            (None, None) => return None,
            (None, Some(more)) => {
                let more = Some(part(more, self.seen));
                if self.second {
                    (None, more)
                } else {
                    (more, None)
                }
            }
        };
        Some(OutputDifference {
            descriptor,
            offset: self.offset,
            before: self.before,
            line: self.line + 1,
            a,
            b,
        })
    }
}

/// Returns the output from a byte to the end of its line.
fn part(written: &Written, from: usize) -> Written {
    let rest = &written.bytes[from..];
    let line = rest.iter().position(|&byte| byte == b'\n');
    let end = line.map_or(rest.len(), |end| end + 1).min(KEPT);
    Written {
        bytes: rest[..end].to_vec(),
        ..*written
    }
}

/// The state of a run being followed.
struct Writing<'a, S: Segments> {
    follower: Follower<'a, S>,
    side: Side<'a, S>,
    calls: Calls<'a>,
}

/// An observer of calls to `fd_write`.
struct Calls<'a> {
    program: &'a Program,
    /// The arguments of the call: the descriptor, the address and length of the list of buffers,
    /// and the address for the number of bytes written.
    open: Option<[u32; 4]>,
    succeeded: bool,
}

impl Observer for Calls<'_> {
    const REGISTERS: bool = false;

    fn called(&mut self, function: FuncId, arguments: &[GlobalBits]) {
        let import = self.program.imports.get(function.as_u32() as usize);
        let writes = import.is_some_and(|import| {
            import.module == "wasi_snapshot_preview1" && import.name == "fd_write"
        });
        if let (true, [fd, list, count, size]) = (writes, arguments) {
            self.open = Some([fd.0 as u32, list.0 as u32, count.0 as u32, size.0 as u32]);
        }
    }

    fn returned(&mut self, values: &[GlobalBits]) {
        self.succeeded = matches!(values, [(0, _)]);
    }
}

impl<'a, S: Segments> Writing<'a, S>
where
    S::Error: std::error::Error + 'static,
{
    fn new(side: Side<'a, S>) -> Result<Self, DiffError<S::Error>> {
        Ok(Self {
            follower: Follower::new(side.run, (side.log)()?)?,
            calls: Calls {
                program: side.run.program,
                open: None,
                succeeded: false,
            },
            side,
        })
    }

    fn time(&self) -> u64 {
        self.follower.machine.time()
    }

    /// Executes the next node. Returns `false` at the end.
    fn advance(&mut self, take: impl FnOnce(Chunk)) -> Result<bool, DiffError<S::Error>> {
        let Some(visit) = self.follower.advance()? else {
            return Ok(false);
        };
        self.calls.succeeded = false;
        self.follower.execute(visit, &mut self.calls)?;
        if let Some(open) = self.calls.open.take()
            && self.calls.succeeded
            && let Some(memory) = self.follower.machine.state.memories.first()
            && let Some(bytes) = gathered(memory, open)
            && let Some((function, op)) = self.call(visit)
            && !bytes.is_empty()
        {
            take(Chunk {
                descriptor: open[0],
                written: Written {
                    bytes,
                    time: visit.last(),
                    function,
                    op,
                },
            });
        }
        Ok(true)
    }

    /// Returns the call that ends a node.
    fn call(&self, visit: Visit) -> Option<(FuncId, OpId)> {
        let node = &self.side.run.path.nodes()[visit.node];
        let function = self.side.run.program.function(node.function)?;
        let block = function.cfg.blocks.get(*node.blocks.last()?)?;
        let last = block.ops.end.as_u32().checked_sub(1)?;
        Some((node.function, OpId::from_u32(last)))
    }
}

/// Returns the bytes that a call to `fd_write` wrote.
fn gathered(memory: &Memory, [_, list, count, size]: [u32; 4]) -> Option<Vec<u8>> {
    let bytes = |address: u32, length: u32| {
        let place = memory.range(u64::from(address), u64::from(length)).ok()?;
        memory.bytes.get(place)
    };
    let word = |address: u32| {
        let bytes = bytes(address, 4)?.try_into().ok()?;
        Some(u32::from_le_bytes(bytes))
    };
    let mut left = word(size)?;
    let mut all = Vec::new();
    for index in 0..count {
        let entry = list.checked_add(index.checked_mul(8)?)?;
        let length = word(entry.checked_add(4)?)?.min(left);
        all.extend(bytes(word(entry)?, length)?);
        left -= length;
        if left == 0 {
            break;
        }
    }
    Some(all)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn written(text: &str) -> Written {
        Written {
            bytes: text.as_bytes().to_vec(),
            time: 1,
            function: FuncId::from_u32(0),
            op: OpId::from_u32(0),
        }
    }

    /// Returns the difference found when these chunks of output arrive in this order. `true` marks
    /// a chunk of the second run.
    fn found(chunks: &[(&str, bool)]) -> Option<(u64, u64, String, String, String)> {
        let mut stream = Stream::default();
        for &(text, second) in chunks {
            stream.take(written(text), second);
        }
        let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).unwrap();
        let rest = |w: Option<Written>| w.map_or("-".into(), |w| text(&w.bytes));
        stream
            .difference(1)
            .map(|d| (d.offset, d.line, text(&d.before), rest(d.a), rest(d.b)))
    }

    #[test]
    fn how_output_is_cut_into_calls_does_not_matter() {
        assert_eq!(
            found(&[("a\nbc", false), ("a", true), ("\nb", true), ("c", true)]),
            None
        );
        assert_eq!(
            found(&[("ab", true), ("a", false), ("bc", false), ("c", true)]),
            None
        );
    }

    #[test]
    fn the_first_byte_that_differs_is_found() {
        let expected = Some((4, 2, "xy".into(), "1z\n".into(), "2".into()));
        let expected =
            expected.map(|(o, l, b, x, y): (u64, u64, String, String, String)| (o, l, b, x, y));
        assert_eq!(
            found(&[("a\nxy1z\nq", false), ("a\nx", true), ("y2", true)]),
            expected
        );
        let expected = Some((4, 2, "xy".into(), "2".into(), "1z\n".into()));
        assert_eq!(
            found(&[("a\nxy1z\nq", true), ("a\nx", false), ("y2", false)]),
            expected
        );
    }

    #[test]
    fn one_may_put_out_more() {
        assert_eq!(
            found(&[("ab", false), ("a", true)]),
            Some((1, 1, "a".into(), "b".into(), "-".into()))
        );
        assert_eq!(
            found(&[("ab", false), ("ab", true), ("c", true)]),
            Some((2, 1, "ab".into(), "-".into(), "c".into()))
        );
    }
}
