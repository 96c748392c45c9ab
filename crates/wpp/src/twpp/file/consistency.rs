//! Checks that a call graph and path traces belong to the same run.

use crate::twpp::call_graph::CallId;
use crate::twpp::compact::{MOST_BLOCKS, Twpp};

/// Checks that the call graph and the path traces agree. Returns a contradiction as the error.
/// Time: O(subtrees + runs + bytes).
pub(super) fn check(twpp: &Twpp) -> Result<(), &'static str> {
    let mut executed = 0;
    for function in &twpp.functions {
        // Neither summand exceeds `MOST_BLOCKS`, so the sum does not overflow.
        executed += function.executed()?;
        if executed > MOST_BLOCKS {
            return Err("it has more blocks than a run can execute");
        }
    }
    // The position at which each function's traces begin in the sequence of all functions' path
    // traces, and the number of blocks of each trace.
    let mut begin = Vec::with_capacity(twpp.functions.len());
    let mut lengths = Vec::new();
    for function in &twpp.functions {
        begin.push(lengths.len());
        lengths.extend((0..function.paths.len()).map(|k| function.blocks(k)));
    }
    // The position, in that sequence, of the trace of a subtree's outermost call.
    let place = |id: CallId| {
        let call = twpp.calls.call(id);
        let k = twpp
            .functions
            .binary_search_by_key(&call.function, |f| f.function)
            .ok()?;
        let path = call.path as usize;
        (path < twpp.functions[k].paths.len()).then(|| begin[k] + path)
    };
    let mut calls = vec![0u64; lengths.len()];
    let mut unfinished = vec![0u64; lengths.len()];
    for (id, count) in twpp.calls.ids().zip(twpp.calls.occurrences()) {
        let k = place(id).ok_or("a call takes a path trace that does not exist")?;
        calls[k] += count;
        let last = twpp.calls.calls(id).last();
        if last.is_some_and(|run| run.last() > lengths[k]) {
            return Err("a call comes after its caller's end");
        }
    }
    let open = twpp.calls.open_calls();
    if open.len() as u64 != twpp.calls.open() {
        return Err("more calls are open than exist");
    }
    for id in open {
        let k = place(id).ok_or("a call takes a path trace that does not exist")?;
        unfinished[k] += 1;
    }
    let counted = calls.into_iter().zip(unfinished);
    let all = twpp.functions.iter().flat_map(|f| &f.paths);
    if !all.map(|p| (p.calls, p.unfinished)).eq(counted) {
        return Err("its calls differ from those of the path traces");
    }
    Ok(())
}
