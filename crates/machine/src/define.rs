//! Compiles the nodes of a path in parallel.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

use afterimage_ids::{BlockId, FuncId};
use afterimage_program::Program;

use crate::MachineError;
use crate::code::NodeCode;
use crate::compile::{self, Body};
use crate::machine::{MOST_CODE, Machine, position};

/// A node, given by its function, its blocks, and the block where the activation continues.
pub type Path<'n> = (FuncId, &'n [BlockId], Option<BlockId>);

/// The number of nodes compiled as one batch.
const AT_ONCE: usize = 64;

impl<'a> Machine<'a> {
    /// Compiles the next nodes on all processors. This is equivalent to calling
    /// [`define`](Self::define) for each node in order. Takes the total compile time divided by the
    /// number of threads.
    ///
    /// # Errors
    /// Returns the errors of [`define`](Self::define) for the first faulty node.
    pub fn define_all(&mut self, nodes: &[Path<'_>]) -> Result<(), MachineError> {
        let threads = thread::available_parallelism().map_or(1, usize::from);
        let (program, bytes) = (self.program, self.bytes);
        let mut functions = Vec::from_iter(nodes.iter().map(|&(function, ..)| function));
        functions.sort_unstable();
        functions.dedup();
        functions.retain(|&function| self.known_body(function).is_none());
        let read = |&function: &FuncId| body(program, bytes, function).ok();
        let bodies = all(&functions, threads, 1, read, |_| false);
        for (&function, body) in functions.iter().zip(bodies) {
            // If a body cannot be read, its first node reports the error.
            if let Some(known) = self.bodies.get_mut(position(program, function)) {
                *known = body.map(Box::new);
            }
        }
        let room = MOST_CODE - self.instructions;
        let sum = AtomicUsize::new(0);
        let compile = |&(function, blocks, next): &Path<'_>| {
            let code = match self.known_body(function) {
                Some(body) => compile::compile(program, body, blocks, next)?,
                None => compile::compile(program, &body(program, bytes, function)?, blocks, next)?,
            };
            let count = code.insts.len();
            if sum.fetch_add(count, Ordering::Relaxed) + count > room {
                return Err(MachineError::Unsupported("too many nodes or too much code"));
            }
            Ok(code)
        };
        for code in all(nodes, threads, AT_ONCE, compile, Result::is_err) {
            let code: NodeCode = code?;
            self.instructions += code.insts.len();
            self.codes.push(code);
        }
        Ok(())
    }
}

fn body<'a>(
    program: &'a Program,
    bytes: &'a [u8],
    function: FuncId,
) -> Result<Body<'a>, MachineError> {
    match program.function(function) {
        Some(known) if position(program, function) < program.functions.len() => {
            Body::read(program, bytes, known)
        }
        _ => Err(MachineError::Unsupported(
            "a function that is not in the program",
        )),
    }
}

/// Applies a function to items in parallel, and returns the results in order, up to the first
/// result for which `last` is true. Threads take batches of `at_once` items.
fn all<T: Sync, R: Send>(
    things: &[T],
    threads: usize,
    at_once: usize,
    does: impl Fn(&T) -> R + Sync,
    last: impl Fn(&R) -> bool + Sync,
) -> Vec<R> {
    let pieces = Vec::from_iter(things.chunks(at_once));
    let (next, end) = (AtomicUsize::new(0), AtomicUsize::new(usize::MAX));
    let work = || {
        let mut done = Vec::new();
        loop {
            let number = next.fetch_add(1, Ordering::Relaxed);
            // Batches are begun in order, so all batches before the last one are completed.
            let Some(piece) = pieces
                .get(number)
                .filter(|_| number <= end.load(Ordering::Relaxed))
            else {
                return done;
            };
            let mut results = Vec::with_capacity(piece.len());
            for thing in *piece {
                results.push(does(thing));
                if results.last().is_some_and(&last) {
                    end.fetch_min(number, Ordering::Relaxed);
                    break;
                }
            }
            done.push((number, results));
        }
    };
    let mut done = Vec::with_capacity(pieces.len());
    thread::scope(|scope| {
        let others = threads.min(pieces.len()).saturating_sub(1);
        let others = Vec::from_iter((0..others).map(|_| scope.spawn(work)));
        done.extend(work());
        for other in others {
            match other.join() {
                Ok(of_other) => done.extend(of_other),
                Err(panic) => std::panic::resume_unwind(panic),
            }
        }
    });
    done.sort_unstable_by_key(|(number, _)| *number);
    let mut results = Vec::with_capacity(things.len());
    for result in done.into_iter().flat_map(|(_, results)| results) {
        let ends = last(&result);
        results.push(result);
        if ends {
            break;
        }
    }
    results
}
