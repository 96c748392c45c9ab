//! Finds the times of a pattern's occurrences.

use super::automaton::State;
use super::count::Counting;
use crate::{Kind, Symbol};

/// A rule on the descent from a symbol to an occurrence.
struct Frame {
    next: u32,
    end: u32,
    start: u32,
    /// The number of remaining executions.
    again: u64,
    state: State,
    /// The number of occurrences still to come in the rule.
    left: u64,
    /// The number of blocks executed before the rule's next symbol.
    time: u64,
}

/// Appends the times of the last blocks of the occurrences in a symbol, until there are `most` in
/// total. `time` is the number of blocks executed before the symbol.
pub(super) fn list(
    counting: &mut Counting<'_, '_>,
    symbol: Symbol,
    state: State,
    time: u64,
    most: usize,
    times: &mut Vec<u64>,
) {
    let mut frames: Vec<Frame> = Vec::new();
    let mut wanted = Some((symbol, state, time));
    while times.len() < most {
        if let Some((symbol, state, time)) = wanted.take() {
            frames.extend(go(counting, symbol, state, time, most, times));
        }
        let Some(frame) = frames.last_mut() else {
            return;
        };
        if frame.left == 0 {
            frames.pop();
            continue;
        }
        if frame.next == frame.end {
            // Execute the rule again if executions remain.
            match frame.again.checked_sub(1) {
                Some(again) => (frame.again, frame.next) = (again, frame.start),
                None => {
                    frames.pop();
                }
            }
            continue;
        }
        let symbol = counting.search.symbol(frame.next);
        let (state, time) = (frame.state, frame.time);
        let outcome = counting.symbol(symbol, state);
        frame.next += 1;
        frame.state = outcome.state;
        frame.time += counting.search.length(symbol);
        frame.left -= outcome.count;
        if outcome.count > 0 {
            wanted = Some((symbol, state, time));
        }
    }
}

/// Lists the occurrences of a node, or returns the frame of a rule.
fn go(
    counting: &mut Counting<'_, '_>,
    symbol: Symbol,
    state: State,
    time: u64,
    most: usize,
    times: &mut Vec<u64>,
) -> Option<Frame> {
    let left = counting.symbol(symbol, state).count;
    let Some(id) = symbol.as_rule() else {
        let node = &counting.search.nodes[symbol.as_node()?];
        let (function, blocks) = (node.function, &node.blocks);
        counting
            .automaton
            .execute(state, function, blocks, |position| {
                if times.len() < most {
                    times.push(time + position as u64 + 1);
                }
            });
        return None;
    };
    let rule = counting.search.rule(id);
    Some(Frame {
        next: rule.start,
        end: rule.start + rule.len,
        start: rule.start,
        again: match rule.kind {
            Kind::Repeat(times) => times - 1,
            _ => 0,
        },
        state: counting.inner(rule, state),
        left,
        time,
    })
}
