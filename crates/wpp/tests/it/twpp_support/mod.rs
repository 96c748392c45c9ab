//! Generates runs of random programs, and analyses runs in slow, obvious ways.

use std::collections::HashMap;

use afterimage_ids::{BlockId, FuncId};
use afterimage_wpp::twpp::{Collector, Event, Wpp};
use proptest::prelude::*;

/// A statement of a random program.
#[derive(Clone, Debug)]
pub enum Item {
    Block(u8),
    Call(u8),
    /// A loop, with the number of following statements to repeat and the number of times to repeat
    /// them.
    Loop(u8, u8),
    /// Skips this number of statements at every second execution.
    Sometimes(u8),
    Return,
}

fn item() -> impl Strategy<Value = Item> {
    prop_oneof![
        10 => (0u8..12).prop_map(Item::Block),
        3 => (0u8..4).prop_map(Item::Call),
        2 => (1u8..5, 0u8..20).prop_map(|(length, count)| Item::Loop(length, count)),
        1 => (1u8..4).prop_map(Item::Sometimes),
        1 => Just(Item::Return),
    ]
}

/// Calls at greater depths are left out. Otherwise, nearly all runs of recursive programs would
/// only descend.
const DEEP: usize = 7;

/// Generates runs of random programs, which may call recursively. A run ends after at most `events`
/// events, wherever it is.
pub fn run(events: usize) -> impl Strategy<Value = Vec<Event>> {
    let body = prop::collection::vec(item(), 0..16);
    let program = prop::collection::vec(body, 4);
    (program, 1usize..4).prop_map(move |(program, times)| execute(&program, times, events))
}

fn execute(program: &[Vec<Item>], times: usize, limit: usize) -> Vec<Event> {
    struct Frame {
        function: usize,
        next: usize,
        /// The first statement of a loop, the statement after it, and the number of remaining
        /// repetitions.
        loops: Vec<(usize, usize, u8)>,
    }
    let mut events = Vec::new();
    let mut coin = false;
    let mut stack: Vec<Frame> = Vec::new();
    let mut top = 0;
    while events.len() < limit {
        let depth = stack.len();
        let Some(frame) = stack.last_mut() else {
            if top == times {
                break;
            }
            top += 1;
            events.push(Event::Enter(FuncId::from_u32(0)));
            stack.push(Frame {
                function: 0,
                next: 0,
                loops: Vec::new(),
            });
            continue;
        };
        if let Some((first, after, left)) = frame.loops.last_mut()
            && frame.next >= *after
        {
            frame.next = *first;
            *left -= 1;
            if *left == 0 {
                frame.loops.pop();
            }
            continue;
        }
        let item = program[frame.function].get(frame.next);
        frame.next += 1;
        match item {
            None | Some(Item::Return) => {
                stack.pop();
                events.push(Event::Leave);
            }
            Some(&Item::Block(block)) => {
                events.push(Event::Block(BlockId::from_u32(u32::from(block))));
            }
            Some(Item::Call(_)) if depth > DEEP => {}
            Some(&Item::Call(function)) => {
                events.push(Event::Enter(FuncId::from_u32(u32::from(function))));
                stack.push(Frame {
                    function: usize::from(function),
                    next: 0,
                    loops: Vec::new(),
                });
            }
            Some(&Item::Loop(length, count)) if count > 0 && frame.loops.len() < 3 => {
                let after = frame.next + usize::from(length);
                frame.loops.push((frame.next, after, count));
            }
            Some(Item::Loop(..)) => {}
            Some(&Item::Sometimes(length)) => {
                coin = !coin;
                frame.next += if coin { usize::from(length) } else { 0 };
            }
        }
    }
    events
}

/// Collects a run.
pub fn collect(events: &[Event]) -> Wpp {
    let mut collector = Collector::new();
    for &event in events {
        collector.push(event).expect("the run is well formed");
    }
    collector.finish().expect("the run is small")
}

/// A call, found in the slow way.
#[derive(Clone, Debug)]
pub struct NaiveCall {
    pub function: FuncId,
    pub blocks: Vec<BlockId>,
    /// The number of blocks that the caller itself had executed.
    pub position: usize,
    pub depth: usize,
    pub returned: bool,
}

/// Returns the calls of a run in the order in which they begin.
pub fn naive_calls(events: &[Event]) -> Vec<NaiveCall> {
    let mut calls: Vec<NaiveCall> = Vec::new();
    let mut stack: Vec<usize> = Vec::new();
    for event in events {
        match *event {
            Event::Enter(function) => {
                let position = stack.last().map_or(0, |&k| calls[k].blocks.len());
                calls.push(NaiveCall {
                    function,
                    blocks: Vec::new(),
                    position,
                    depth: stack.len(),
                    returned: false,
                });
                stack.push(calls.len() - 1);
            }
            Event::Block(block) => {
                let innermost = *stack.last().expect("a block is in a call");
                calls[innermost].blocks.push(block);
            }
            Event::Leave => {
                let innermost = stack.pop().expect("a call ends");
                calls[innermost].returned = true;
            }
        }
    }
    calls
}

/// For each path trace, the number of calls that took it, and the number of these calls that never
/// returned.
pub type Uses = HashMap<(FuncId, Vec<BlockId>), (u64, u64)>;

/// Returns the unique path traces of a run.
pub fn naive_paths(calls: &[NaiveCall]) -> Uses {
    let mut paths = Uses::new();
    for call in calls {
        let key = (call.function, call.blocks.clone());
        let uses = paths.entry(key).or_default();
        uses.0 += 1;
        uses.1 += u64::from(!call.returned);
    }
    paths
}

/// Returns the dynamic basic blocks of a path trace by definition. These are maximal chains.
/// Wherever they occur, every block except the last is followed by the next block, and every block
/// except the first is preceded by the previous block.
pub fn naive_dynamic_blocks(trace: &[BlockId]) -> Vec<Vec<BlockId>> {
    let continues = |a: BlockId, b: BlockId| {
        let followed = (0..trace.len())
            .filter(|&k| trace[k] == a)
            .all(|k| trace.get(k + 1) == Some(&b));
        let preceded = (0..trace.len())
            .filter(|&k| trace[k] == b)
            .all(|k| k > 0 && trace[k - 1] == a);
        followed && preceded
    };
    let mut chains: Vec<Vec<BlockId>> = Vec::new();
    for (k, &block) in trace.iter().enumerate() {
        if trace[..k].contains(&block) {
            continue;
        }
        match chains.last_mut() {
            Some(chain) if continues(trace[k - 1], block) => chain.push(block),
            _ => chains.push(vec![block]),
        }
    }
    chains
}
