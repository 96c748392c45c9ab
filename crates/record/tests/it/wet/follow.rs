//! Builds every guest's trace in several ways and compares it with the naive record.

use std::collections::HashMap;
use std::slice::from_ref;

use afterimage_testkit::modules::SplitMix64;
use afterimage_wet::{LeftOut, Run, WholeTrace};
use afterimage_wpp::InMemory;

use super::compare::compare;
use super::epochs::InEpochs;
use super::forward;
use super::naive::Naive;
use crate::harness::Recording;
use crate::stored::Stored;

/// In runs with more executions of nodes than this, only a sample from all parts is compared.
const MANY: usize = 600;
/// In runs with at most this many executions, all dependences are also checked forward.
const FEW: usize = 100;
/// Runs with more blocks are not recorded in full, for lack of memory.
const MOST_BLOCKS: u64 = 1_000_000;
/// For a real program, the number of executions whose effects are compared, and the number of
/// executions whose uses are compared.
const BACKWARD: usize = 10_000;
const FORWARD: usize = 500;
/// Longer runs are built fewer times.
const LONG: usize = 200_000;

/// Checks that the run's whole execution trace is right, however it is cut into epochs and windows.
pub fn agree(recording: &Recording, stored: &Stored) {
    let mut cursor = stored.path.cursor();
    let mut nodes = 0;
    while cursor.next().expect("a step").is_some() {
        nodes += 1;
    }
    let naive = Naive::record(recording, stored, chosen(nodes));
    orders(stored, &naive);
    let length = stored.path.length();
    let epochs = |windows: &[_], size| InEpochs::build(recording, stored, windows, size);
    let check = |epochs: &InEpochs, window| {
        let trace = WholeTrace::new(
            &recording.program,
            &recording.bytes,
            &stored.path,
            &stored.directory.continuations,
            epochs,
        );
        let trace = trace.expect("a trace");
        compare(&trace, &naive, &window, &epochs.left_out, |_| true);
        if nodes <= FEW && epochs.left_out.is_nothing() {
            forward::compare(&trace, &naive, &window, |_| true);
        }
    };
    let whole = 1..=length.max(1);
    check(
        &epochs(from_ref(&whole), Run::<InMemory>::EPOCH),
        whole.clone(),
    );
    let small = epochs(from_ref(&whole), 1 + nodes / 40);
    assert!(small.count() <= 4096);
    check(&small, whole.clone());
    if length < 4 || nodes > LONG {
        return;
    }
    let (a, b) = (length / 3, 2 * length / 3);
    let windows = [1..=a, a + 1..=b, b + 1..=length];
    for window in &windows {
        check(&epochs(from_ref(window), 1 + nodes / 20), window.clone());
    }
    check(&epochs(&windows, 1 + nodes / 20), whole.clone());
    // Test each half of the functions, over the whole run and over a window.
    for (odd, window) in [(0, &whole), (1, &windows[1])] {
        let odd = (nodes as u32 + odd) % 2;
        let functions = recording.program.functions.iter();
        let functions = functions.map(|function| function.id);
        let half = functions.filter(|id| id.as_u32() % 2 == odd);
        let half = LeftOut::new(half.collect(), "one half".to_owned());
        let size = 1 + nodes / 20;
        let without = InEpochs::without(recording, stored, from_ref(window), size, half);
        check(&without, window.clone());
    }
}

/// Compares the effects and uses of many executions of a real program with a full naive record.
pub fn agree_on_many(recording: &Recording, stored: &Stored) {
    if stored.path.length() > MOST_BLOCKS {
        println!(
            "  LEFT OUT: everything about {} blocks",
            stored.path.length()
        );
        return;
    }
    let naive = Naive::record(recording, stored, |_| true);
    let whole = 1..=stored.path.length();
    let epochs = InEpochs::build(recording, stored, from_ref(&whole), Run::<InMemory>::EPOCH);
    let trace = WholeTrace::new(
        &recording.program,
        &recording.bytes,
        &stored.path,
        &stored.directory.continuations,
        &epochs,
    );
    let trace = trace.expect("a trace");
    let nodes = naive.executed.len();
    println!("  {} blocks, {nodes} executions of paths", whole.end());
    let some = |most| move |at| SplitMix64(at as u64).next() as usize % nodes < most;
    compare(&trace, &naive, &whole, &epochs.left_out, some(BACKWARD));
    forward::compare(&trace, &naive, &whole, some(FORWARD));
}

/// Chooses the executions to compare: all, or those near both ends and some in between.
fn chosen(nodes: usize) -> impl Fn(usize) -> bool {
    move |at| {
        let near_an_end = at < MANY / 4 || at + MANY / 4 > nodes;
        let random = SplitMix64(at as u64).next() as usize;
        nodes <= MANY || near_an_end || random % nodes < MANY / 2
    }
}

/// Checks that executions are counted and found alike in both directions.
fn orders(stored: &Stored, naive: &Naive<'_>) {
    let mut cursor = stored.path.cursor();
    cursor.seek(stored.path.length()).expect("a position");
    let mut visit = cursor.visit();
    let mut left = HashMap::new();
    for executed in &naive.executed {
        *left.entry(executed.instance.node).or_insert(0u64) += 1;
    }
    for executed in naive.executed.iter().rev() {
        let (instance, found) = (executed.instance, visit.expect("an execution"));
        assert_eq!((found.node, found.start), (instance.node, instance.time));
        assert_eq!(left[&instance.node], instance.number);
        left.entry(instance.node).and_modify(|number| *number -= 1);
        visit = cursor.previous().expect("a step");
    }
    assert!(visit.is_none());
}
