//! Whether a call graph and path traces are of the same run.

use super::call_graph::CallId;
use super::compact::{MOST_BLOCKS, Twpp};

/// What contradicts what, if anything does. O(subtrees + runs + bytes).
pub(super) fn check(twpp: &Twpp) -> Result<(), &'static str> {
    let blocks = twpp.functions.iter().try_fold(0u64, |sum, function| {
        function.executed().and_then(|n| sum.checked_add(n))
    });
    if blocks.is_none_or(|n| n > MOST_BLOCKS) {
        return Err("it executes more blocks than a run can");
    }
    let mut begin = Vec::with_capacity(twpp.functions.len());
    let mut paths = 0;
    for function in &twpp.functions {
        begin.push(paths);
        paths += function.paths.len();
    }
    // The place of a subtree's outermost call among the path traces of all functions.
    let place = |id: CallId| {
        let call = twpp.calls.call(id);
        let k = twpp
            .functions
            .binary_search_by_key(&call.function, |f| f.function)
            .ok()?;
        let path = call.path as usize;
        (path < twpp.functions[k].paths.len()).then_some((k, path))
    };
    let mut calls = vec![0u64; paths];
    let mut unfinished = vec![0u64; paths];
    for (id, count) in twpp.calls.ids().zip(twpp.calls.occurrences()) {
        let (k, path) = place(id).ok_or("a call takes a path trace that there is not")?;
        calls[begin[k] + path] += count;
        if let Some(last) = twpp.calls.calls(id).last()
            && twpp.functions[k].blocks(path) < last.last()
        {
            return Err("a call comes after its caller's end");
        }
    }
    let open = twpp.calls.open_calls();
    if open.len() as u64 != twpp.calls.open() {
        return Err("more calls are open than there are");
    }
    for id in open {
        let (k, path) = place(id).ok_or("a call takes a path trace that there is not")?;
        unfinished[begin[k] + path] += 1;
    }
    let counted = calls.into_iter().zip(unfinished);
    let all = twpp.functions.iter().flat_map(|f| &f.paths);
    if !all.map(|p| (p.calls, p.unfinished)).eq(counted) {
        return Err("it does not make the calls that the path traces are of");
    }
    Ok(())
}
