//! Maps a function over `0..count` in parallel, and keeps the order of the results.
//!
//! The results do not depend on the number of threads. There is at most one thread per available
//! processor.

use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

/// The largest batch that a thread takes at once. Because batches are small, the last thread to
/// finish has little work left when the others are done.
const AT_ONCE: usize = 16;

/// Calls `of` with each index below `count`, in parallel, and returns the results in order.
pub fn map<T: Send>(count: usize, of: impl Fn(usize) -> T + Sync) -> Vec<T> {
    map_with(count, || (), |(), at| of(at))
}

/// Does the same as [`map`], with a scratch value that each thread creates once and passes to every
/// call.
pub fn map_with<R, T: Send>(
    count: usize,
    room: impl Fn() -> R + Sync,
    of: impl Fn(&mut R, usize) -> T + Sync,
) -> Vec<T> {
    let threads = thread::available_parallelism().map_or(1, usize::from);
    // Small counts get small batches, so that each thread takes several batches.
    let at_once = (count / (4 * threads)).clamp(1, AT_ONCE);
    let next = AtomicUsize::new(0);
    let found = Mutex::new(Vec::new());
    let work = || {
        let (mut own, mut room) = (Vec::new(), room());
        loop {
            let first = next.fetch_add(at_once, Ordering::Relaxed);
            if first >= count {
                break;
            }
            let last = (first + at_once).min(count);
            own.push((
                first,
                Vec::from_iter((first..last).map(|at| of(&mut room, at))),
            ));
        }
        // Each critical section leaves the list complete, so a poisoned lock is harmless.
        let mut found = found
            .lock()
            .unwrap_or_else(|poisoned| poisoned.into_inner());
        found.append(&mut own);
    };
    thread::scope(|scope| {
        for _ in 1..threads.min(count.div_ceil(at_once)) {
            // If no thread can be created, the current thread does all the work.
            let _ = thread::Builder::new().spawn_scoped(scope, work);
        }
        work();
    });
    let mut found = found
        .into_inner()
        .unwrap_or_else(|poisoned| poisoned.into_inner());
    found.sort_unstable_by_key(|(first, _): &(usize, _)| *first);
    let mut all = Vec::with_capacity(count);
    all.extend(found.into_iter().flat_map(|(_, part)| part));
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_is_there_once_and_in_order() {
        for count in [0, 1, AT_ONCE - 1, AT_ONCE, AT_ONCE + 1, 10 * AT_ONCE + 3] {
            assert_eq!(
                map(count, |at| at * 2),
                Vec::from_iter((0..count).map(|at| at * 2))
            );
        }
    }
}
