//! Encodes the dynamic call graph as a sequence of numbers, which lists the paper's tree call by
//! call.
//!
//! The sequence begins with the number of calls open at the end, and the number of calls from
//! outside. The calls from outside follow. A call consists of its function, its path trace, the
//! number of its own calls, and these calls. Each of its calls is preceded by the distance of the
//! call's position from the previous call's position. All numbers have variable length. Welch's
//! compression is applied to the resulting bytes.

use afterimage_ids::FuncId;

use super::call_graph::{Call, CallGraph, CallGraphBuilder};
use super::call_runs::{RunBuilder, Runs};
use super::lzw::LzwEncoder;
use super::varint::{self, Reading};
use super::walk::CallStep;

/// The number of four-byte words per call in the paper's plain form. They are the function, the
/// path trace, the number of calls, and the position.
pub(super) const WORDS_PER_CALL: u64 = 4;

/// The reason why bytes are not a call graph.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum CallsError<E> {
    /// The bytes themselves could not be read.
    Source(E),
    /// The bytes are malformed, as the text describes.
    Malformed(&'static str),
    /// The graph exceeds the memory limit.
    TooLarge,
}

/// Passes the bytes of a call graph to `sink`, a few at a time. Time: O(calls). Memory is
/// proportional to the depth.
pub(super) fn write(graph: &CallGraph, mut sink: impl FnMut(&[u8])) {
    let mut bytes = Vec::new();
    varint::put(&mut bytes, graph.open());
    varint::put(&mut bytes, count(graph.top()));
    let mut positions: Vec<u64> = Vec::new();
    for step in graph.walk() {
        match step {
            CallStep::Call { position, call } => {
                if let Some(last) = positions.last_mut() {
                    varint::put(&mut bytes, position - *last);
                    *last = position;
                }
                positions.push(0);
                let Call { function, path } = graph.call(call);
                varint::put(&mut bytes, u64::from(function.as_u32()));
                varint::put(&mut bytes, u64::from(path));
                varint::put(&mut bytes, count(graph.calls(call)));
                sink(&bytes);
                bytes.clear();
            }
            CallStep::End => {
                positions.pop();
            }
        }
    }
    sink(&bytes);
}

/// Returns the bytes of a call graph with Welch's compression, and the number of bytes before
/// compression.
pub(super) fn compress(graph: &CallGraph) -> (Vec<u8>, u64) {
    let mut encoder = LzwEncoder::default();
    let mut plain = 0;
    write(graph, |bytes| {
        plain += bytes.len() as u64;
        encoder.push(bytes);
    });
    (encoder.finish(), plain)
}

fn count(runs: Runs<'_>) -> u64 {
    runs.map(|run| run.count).sum()
}

/// Reads a call graph in at most `limit` bytes of memory. Time: O(calls).
pub(super) fn read<E>(
    source: impl Iterator<Item = Result<u8, E>>,
    limit: usize,
) -> Result<CallGraph, CallsError<E>> {
    let mut numbers = Numbers(source);
    let open = numbers.next()?;
    let mut parser = Parser {
        limit,
        graph: CallGraphBuilder::default(),
        top: RunBuilder::default(),
        stack: Vec::new(),
        pending: 0,
    };
    let mut top = numbers.next()?;
    loop {
        while parser.stack.last().is_some_and(|call| call.left == 0) {
            parser.end()?;
        }
        let position = match parser.stack.last_mut() {
            Some(caller) => {
                caller.left -= 1;
                let next = caller.position.checked_add(numbers.next()?);
                caller.position = next.ok_or(CallsError::Malformed("a position is too large"))?;
                caller.position
            }
            None if top == 0 => break,
            None => {
                top -= 1;
                0
            }
        };
        let function = super::timestamped::number_below_reserved(numbers.next()?);
        let path = u32::try_from(numbers.next()?).ok();
        let (Some(function), Some(path)) = (function, path) else {
            return Err(CallsError::Malformed(
                "a function or path is not a 32-bit number",
            ));
        };
        let left = numbers.next()?;
        parser.stack.push(Unfinished {
            call: Call {
                function: FuncId::from_u32(function),
                path,
            },
            at: position,
            left,
            position: 0,
            runs: RunBuilder::default(),
        });
        parser.check()?;
    }
    if numbers.0.next().is_some() {
        return Err(CallsError::Malformed("bytes follow the last call"));
    }
    Ok(parser.graph.finish(parser.top.finish(), open))
}

struct Parser {
    limit: usize,
    graph: CallGraphBuilder,
    top: RunBuilder,
    stack: Vec<Unfinished>,
    /// The size in bytes of the runs of unfinished calls.
    pending: usize,
}

/// A call whose own calls have not all been read.
struct Unfinished {
    call: Call,
    /// The position of this call in its caller.
    at: u64,
    left: u64,
    /// The position of the latest call that this call made.
    position: u64,
    runs: RunBuilder,
}

impl Parser {
    /// Completes the innermost call.
    fn end<E>(&mut self) -> Result<(), CallsError<E>> {
        let Some(mut done) = self.stack.pop() else {
            return Ok(());
        };
        self.pending -= done.runs.len();
        let subtree = self.graph.subtree(done.call, done.runs.finish());
        let subtree = subtree.map_err(|_| CallsError::TooLarge)?;
        let runs = match self.stack.last_mut() {
            Some(caller) => &mut caller.runs,
            None => &mut self.top,
        };
        let before = runs.len();
        runs.push(subtree, done.at);
        self.pending += runs.len() - before;
        self.check()
    }

    fn check<E>(&self) -> Result<(), CallsError<E>> {
        let stack = self.stack.capacity() * size_of::<Unfinished>();
        if self.graph.heap_bytes() + self.pending + stack > self.limit {
            return Err(CallsError::TooLarge);
        }
        Ok(())
    }
}

/// The numbers of a sequence of bytes.
struct Numbers<I>(I);

impl<E, I: Iterator<Item = Result<u8, E>>> Numbers<I> {
    fn next(&mut self) -> Result<u64, CallsError<E>> {
        let mut reading = Reading::default();
        loop {
            let byte = self.0.next();
            let byte = byte.ok_or(CallsError::Malformed("it ends early"))?;
            let done = reading.push(byte.map_err(CallsError::Source)?);
            if let Some(number) = done.ok_or(CallsError::Malformed("a number is too large"))? {
                return Ok(number);
            }
        }
    }
}
