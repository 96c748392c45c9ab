//! Checks that calling contexts and timelines agree with a naive expansion.

use std::collections::{BTreeMap, BTreeSet};

use afterimage_ids::{BlockId, FuncId, OrigOffset};
use afterimage_profile::Source;
use afterimage_program::{FileId, InlinedFrame, Location, Program};
use afterimage_replay::whole_path::{
    CallLengths, ContextLimits, ContextTree, Frame, InlinedFrames, Inlining, Merging, RecordedPath,
    Rest, Timeline, TimelineEvent, TimelineLimits, Window, recorded_path,
};
use afterimage_testkit::modules::{ModuleConfig, SplitMix64, module_from_seed};
use afterimage_wpp::Segments;
use wasmparser::Operator;

use crate::gaps::leave_out;
use crate::walk::{Event, Options, Parts, walk};

/// An activation, given by the numbers of blocks executed before it and until its end.
#[derive(Clone, Debug)]
struct Call {
    stack: Vec<FuncId>,
    from: u64,
    to: u64,
    own: Vec<(u64, u64)>,
    gaps: Vec<(u64, u64)>,
    parent: Option<usize>,
}

/// Returns the number of blocks of some stretches in a window.
fn inside(stretches: &[(u64, u64)], window: Window) -> u64 {
    let blocks = |&(from, to): &(u64, u64)| {
        to.min(window.last)
            .saturating_sub(from.max(window.first - 1))
    };
    stretches.iter().map(blocks).sum()
}

/// Returns all activations, in the order in which they begin.
fn calls(parts: &Parts) -> Vec<Call> {
    let mut calls: Vec<Call> = Vec::new();
    let mut open: Vec<usize> = Vec::new();
    let mut time = 0;
    for event in &parts.events {
        match *event {
            Event::Enter(function) => {
                let parent = open.last().copied();
                let mut stack = parent.map_or_else(Vec::new, |at: usize| calls[at].stack.clone());
                stack.push(function);
                open.push(calls.len());
                calls.push(Call {
                    stack,
                    from: time,
                    to: 0,
                    own: Vec::new(),
                    gaps: Vec::new(),
                    parent,
                });
            }
            Event::Node(node) => {
                let node = &parts.directory.nodes[node];
                let end = time + node.length();
                let call = &mut calls[*open.last().unwrap()];
                match node.left_out {
                    0 => call.own.push((time, end)),
                    _ => call.gaps.push((time, end)),
                }
                time = end;
            }
            Event::Leave => calls[open.pop().unwrap()].to = time,
        }
    }
    for at in open {
        calls[at].to = time;
    }
    calls
}

/// The functions that are shown: all, or every other one.
const SHOWN: [fn(FuncId) -> bool; 2] = [|_| true, |function| function.as_u32() % 2 == 0];

/// Returns the activations without those of functions that are not shown.
fn folded(calls: &[Call], is_shown: fn(FuncId) -> bool) -> Vec<Call> {
    let mut folded: Vec<Call> = Vec::new();
    // For each activation, its place if it is shown, or the place of the nearest enclosing
    // activation that is shown.
    let mut places: Vec<Option<usize>> = Vec::new();
    for call in calls {
        let parent = call.parent.and_then(|parent| places[parent]);
        if !is_shown(*call.stack.last().unwrap()) {
            places.push(parent);
            continue;
        }
        places.push(Some(folded.len()));
        let mut call = Call {
            parent,
            ..call.clone()
        };
        call.stack.retain(|&function| is_shown(function));
        folded.push(call);
    }
    folded
}

/// The sums of one context.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Sums {
    calls: u64,
    own: u64,
    left_out: u64,
    total: u64,
    shorter: Rest,
    deeper: Rest,
}

/// A source with invented inlined functions. Most operators come from inlined functions, some do
/// not, and not all operators have a line.
struct MadeUp;

impl Source for MadeUp {
    fn locate(&self, offset: OrigOffset) -> Option<Location> {
        let location = Location {
            file: FileId(0),
            line: 1 + offset.0,
            column: 0,
        };
        (!offset.0.is_multiple_of(3)).then_some(location)
    }

    fn files(&self) -> &[String] {
        &[]
    }

    fn declared(&self, _: OrigOffset) -> Option<Location> {
        None
    }

    fn inlined_frames(&self, offset: OrigOffset) -> Vec<InlinedFrame> {
        let frame = |name: &str| InlinedFrame {
            function: Some(name.to_owned()),
            declared: None,
            location: self.locate(offset),
        };
        let inlined = match offset.0 / 2 % 7 {
            0 | 1 => &[][..],
            2 | 3 => &["a"],
            4 => &["b", "a"],
            5 => &["a", "a"],
            _ => &["c", "b", "a"],
        };
        let all = inlined.iter().chain(&["the function itself"]);
        all.map(|name| frame(name)).collect()
    }
}

/// A block that was executed or left out, or a call, each with the functions that enclose it.
struct Moment {
    time: u64,
    stack: Vec<String>,
    what: What,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum What {
    Own,
    Gap,
    Call,
}

/// Returns the inlined functions from which a block and the call at its end come, the outermost
/// first.
fn inlined(guest: &Guest, function: FuncId, block: BlockId) -> [Vec<String>; 2] {
    let function = guest.program.function(function).unwrap();
    let block = &function.cfg.blocks[block];
    let is_marker = |operator: &Operator<'_>| {
        matches!(
            operator,
            Operator::Block { .. }
                | Operator::Loop { .. }
                | Operator::End
                | Operator::Else
                | Operator::TryTable { .. }
        )
    };
    let operators = guest.program.operators(&guest.module, function);
    let offsets = operators
        .filter(|(op, _, operator)| block.ops.contains(op) && !is_marker(operator))
        .map(|(_, offset, _)| offset);
    let offsets = Vec::from_iter(offsets);
    let with_line = offsets
        .iter()
        .find(|offset| MadeUp.locate(**offset).is_some());
    let first = with_line.or(offsets.first());
    let names = |offset: Option<&OrigOffset>| {
        let frames = MadeUp.inlined_frames(*offset.unwrap_or(&block.offsets.start));
        let names = frames.into_iter().filter_map(|frame| frame.function);
        Vec::from_iter(Vec::from_iter(names).into_iter().rev().skip(1))
    };
    [names(first), names(offsets.last().or(first))]
}

/// Returns all moments of a run, in order.
fn moments(parts: &Parts, guest: Option<&Guest>) -> Vec<Moment> {
    let mut moments = Vec::new();
    // These are the open functions, each with the inlined functions at the place of its last block.
    let mut open: Vec<(String, Vec<String>)> = Vec::new();
    let mut time = 0;
    let stack = |open: &[(String, Vec<String>)]| {
        let each = open.iter();
        each.flat_map(|(name, inlined)| [name].into_iter().chain(inlined).cloned())
            .collect()
    };
    for event in &parts.events {
        match *event {
            Event::Enter(function) => {
                open.push((function.to_string(), Vec::new()));
                moments.push(Moment {
                    time,
                    stack: stack(&open),
                    what: What::Call,
                });
            }
            Event::Leave => drop(open.pop()),
            Event::Node(node) => {
                let node = &parts.directory.nodes[node];
                for _ in 0..node.left_out {
                    moments.push(Moment {
                        time,
                        stack: stack(&open),
                        what: What::Gap,
                    });
                    time += 1;
                }
                for &block in &node.blocks {
                    let none = Default::default;
                    let [own, call] = guest.map_or_else(none, |g| inlined(g, node.function, block));
                    open.last_mut().unwrap().1 = own;
                    moments.push(Moment {
                        time,
                        stack: stack(&open),
                        what: What::Own,
                    });
                    open.last_mut().unwrap().1 = call;
                    time += 1;
                }
            }
        }
    }
    moments
}

/// Computes the contexts by their chains, slowly.
fn naive(moments: &[Moment], window: Window, limits: ContextLimits) -> BTreeMap<Vec<String>, Sums> {
    let times = window.first - 1..window.last;
    let mut sums: BTreeMap<Vec<String>, Sums> = BTreeMap::new();
    sums.entry(Vec::new()).or_default().total = window.last - window.first + 1;
    for moment in moments.iter().filter(|moment| times.contains(&moment.time)) {
        for n in 1..=moment.stack.len() {
            let sum = sums.entry(moment.stack[..n].to_vec()).or_default();
            sum.total += u64::from(moment.what != What::Call);
        }
        let sum = sums.entry(moment.stack.clone()).or_default();
        match moment.what {
            What::Own => sum.own += 1,
            What::Gap => sum.left_out += 1,
            What::Call => sum.calls += 1,
        }
    }
    // Add contexts beyond the limits to the sums of the contexts that contain them.
    let mut kept: BTreeMap<Vec<String>, Sums> = BTreeMap::new();
    for (stack, sum) in &sums {
        let cut =
            (1..=stack.len()).find(|&n| n > limits.depth || sums[&stack[..n]].total < limits.min);
        let Some(n) = cut else {
            kept.insert(stack.clone(), sum.clone());
            continue;
        };
        let into = kept.get_mut(&stack[..n - 1]).unwrap();
        let rest = if n > limits.depth {
            &mut into.deeper
        } else {
            &mut into.shorter
        };
        rest.calls += sum.calls;
        rest.blocks += sum.own + sum.left_out;
        rest.left_out += sum.left_out;
    }
    kept
}

fn found(tree: &ContextTree, inlining: &Inlining) -> BTreeMap<Vec<String>, Sums> {
    let mut stacks: Vec<Vec<String>> = Vec::new();
    let mut sums = BTreeMap::new();
    for context in &tree.contexts {
        let mut stack = context
            .parent
            .map_or_else(Vec::new, |parent| stacks[parent].clone());
        match context.frame {
            Frame::Host => {}
            Frame::Function(function) => stack.push(function.to_string()),
            Frame::Inlined(inlinee) => stack.push(inlining.function(inlinee).name.clone()),
            Frame::Line(_) => unreachable!("not wanted"),
        }
        stacks.push(stack.clone());
        let children = context.children.iter();
        let below: u64 = children.map(|&child| tree.contexts[child].total).sum();
        let own = context.own + context.left_out;
        let parts = own + below + context.shorter.blocks + context.deeper.blocks;
        assert_eq!(context.total, parts);
        let sum = Sums {
            calls: context.calls,
            own: context.own,
            left_out: context.left_out,
            total: context.total,
            shorter: context.shorter,
            deeper: context.deeper,
        };
        assert_eq!(sums.insert(stack, sum), None, "a context stands once");
    }
    assert_eq!(tree.walk().count(), tree.contexts.len());
    sums
}

/// A program and its source.
struct Guest {
    program: Program,
    module: Vec<u8>,
}

/// Checks runs with their paths. A part of every third path is left out.
fn each_run(mut check: impl FnMut(&Parts, &RecordedPath, &mut SplitMix64, &Guest)) {
    for seed in 0..60 {
        let module = match seed % 2 {
            0 => module_from_seed(seed, &ModuleConfig::default()),
            _ => wat::parse_str(crate::EXCEPTIONS).unwrap(),
        };
        let program = Program::parse(&module).unwrap();
        let segment = [1 << 20, 20, 2][seed as usize / 2 % 3];
        let options = Options {
            blocks: 400,
            depth: 30,
            segment,
            regular: false,
        };
        let mut parts = walk(&program, seed, options);
        if seed % 3 == 0 {
            leave_out(&mut parts, &mut SplitMix64(seed));
        }
        let path = recorded_path(&parts.file(), &program).unwrap().unwrap();
        if path.length() > 0 {
            let guest = Guest { program, module };
            check(&parts, &path, &mut SplitMix64(seed), &guest);
        }
    }
}

/// The whole run, and some windows of it.
fn windows(length: u64, random: &mut SplitMix64) -> Vec<Window> {
    let mut time = || 1 + random.below(length as usize) as u64;
    let mut windows = vec![Window {
        first: 1,
        last: length,
    }];
    for _ in 0..5 {
        let (one, other) = (time(), time());
        windows.push(Window {
            first: one.min(other),
            last: one.max(other),
        });
    }
    windows
}

#[test]
fn contexts_are_those_of_the_expansion() {
    let (mut deep, mut chains) = (0, 0);
    each_run(|parts, path, random, guest| {
        let functions = InlinedFrames {
            functions: true,
            lines: false,
        };
        let inlining =
            Inlining::new(path, &guest.program, &guest.module, &MadeUp, functions).unwrap();
        let ways = [
            (Inlining::default(), moments(parts, None)),
            (inlining, moments(parts, Some(guest))),
        ];
        for window in windows(path.length(), random) {
            for (depth, min) in [(usize::MAX, 0), (3, 0), (usize::MAX, 40), (5, 20), (0, 0)] {
                let limits = ContextLimits { depth, min };
                for (inlining, moments) in &ways {
                    let tree = ContextTree::new(path, window, limits, inlining).unwrap();
                    let expected = naive(moments, window, limits);
                    deep += expected.values().filter(|sum| sum.deeper.calls > 0).count();
                    let is_chain =
                        |stack: &&Vec<String>| stack.ends_with(&["a".into(), "b".into()]);
                    chains += expected.keys().filter(is_chain).count();
                    assert_eq!(found(&tree, inlining), expected, "{window:?} {limits:?}");
                }
            }
        }
    });
    assert!(deep > 100 && chains > 100, "{deep} {chains}");
}

/// The shown and the merged events of a timeline, which are checked against each other.
#[derive(Default)]
struct Shown {
    calls: Vec<(FuncId, u64, u64)>,
    merged: u64,
    left_out: u64,
    /// The kinds of merged stretches.
    kinds: BTreeSet<&'static str>,
}

fn shown(mut timeline: Timeline<'_, impl Segments>, window: Window) -> Shown {
    let mut shown = Shown::default();
    let mut open: Vec<usize> = Vec::new();
    let mut last = window.first - 1;
    while let Some(event) = timeline.next_event().ok().flatten() {
        match event {
            TimelineEvent::Begin { function, time } => {
                assert!(time >= last, "{event:?}");
                open.push(shown.calls.len());
                shown.calls.push((function, time, 0));
                last = time;
            }
            TimelineEvent::End { time } => {
                assert!(time >= last, "{event:?}");
                shown.calls[open.pop().unwrap()].2 = time;
                last = time;
            }
            TimelineEvent::Merged {
                from,
                to,
                calls,
                blocks,
                left_out,
                why,
            } => {
                assert!(
                    last <= from && from <= to && blocks <= to - from,
                    "{event:?}"
                );
                assert!(why == Merging::Deeper || blocks > 0);
                assert!(left_out <= blocks, "{event:?}");
                let is_gap = (calls, left_out) == (0, blocks);
                assert!(is_gap || why != Merging::LeftOut, "{event:?}");
                shown.kinds.insert(match why {
                    Merging::Shorter => "shorter",
                    Merging::Deeper => "deeper",
                    Merging::LeftOut => "left out",
                });
                shown.merged += calls;
                shown.left_out += left_out;
                last = to;
            }
        }
    }
    assert!(open.is_empty() && last <= window.last);
    shown
}

#[test]
fn timelines_are_those_of_the_expansion() {
    let mut kinds: BTreeSet<&str> = BTreeSet::new();
    each_run(|parts, path, random, _| {
        let calls = calls(parts);
        for window in windows(path.length(), random) {
            let left_out: u64 = calls.iter().map(|call| inside(&call.gaps, window)).sum();
            for is_shown in SHOWN {
                let calls = folded(&calls, is_shown);
                for (depth, min) in [(usize::MAX, 0), (3, 0), (usize::MAX, 10), (6, 5), (0, 0)] {
                    let limits = TimelineLimits { depth, min };
                    let shown = shown(Timeline::new(path, window, limits, &is_shown), window);
                    assert_eq!(shown.left_out, left_out, "{limits:?} {window:?}");
                    is_timeline(&shown, &calls, window, limits);
                    kinds.extend(&shown.kinds);
                }
            }
        }
    });
    assert_eq!(kinds.len(), 3, "{kinds:?}");
}

/// Checks that every call that must be shown is shown, and that all others are merged.
fn is_timeline(shown: &Shown, calls: &[Call], window: Window, limits: TimelineLimits) {
    let (from, to) = (window.first - 1, window.last);
    let is_inside = |call: &&Call| call.from < to && call.to > from;
    assert_eq!(
        shown.calls.len() + shown.merged as usize,
        calls.iter().filter(is_inside).count(),
        "{limits:?} {window:?}"
    );
    let mut kept: Vec<bool> = Vec::new();
    let mut expected = Vec::new();
    for call in calls {
        let keep = call.parent.is_none_or(|parent| kept[parent])
            && call.to - call.from >= limits.min
            && call.stack.len() <= limits.depth;
        kept.push(keep);
        if keep && is_inside(&call) {
            let function = *call.stack.last().unwrap();
            expected.push((function, call.from.max(from), call.to.min(to)));
        }
    }
    // Without merging, all calls are shown.
    if limits.min == 0 {
        assert_eq!(shown.calls, expected, "{limits:?} {window:?}");
    }
    for call in expected {
        assert!(
            shown.calls.contains(&call),
            "{call:?}, {limits:?} {window:?}"
        );
    }
}

#[test]
fn lengths_of_calls_are_those_of_the_expansion() {
    each_run(|parts, path, random, _| {
        let all = calls(parts);
        let is_shown = SHOWN[random.below(SHOWN.len())];
        let calls = folded(&all, is_shown);
        for window in windows(path.length(), random) {
            let lengths = CallLengths::new(path, window, &is_shown).unwrap();
            let (from, to) = (window.first - 1, window.last);
            let inside = calls.iter().filter(|call| call.from < to && call.to > from);
            let gaps = all.iter().flat_map(|call| &call.gaps);
            let gaps: Vec<u64> = gaps
                .filter(|gap| gap.0 < to && gap.1 > from)
                .map(|gap| gap.1 - gap.0)
                .collect();
            // Calls that are open at the beginning of the window, or between two segments, may be
            // counted regardless of their length.
            let open = inside
                .clone()
                .filter(|call| call.from < from || call.to > to)
                .count() as u64;
            let across = lengths.at_least(63);
            for log in 0..10 {
                let found = lengths.at_least(log);
                let long = inside.clone().filter(|c| c.to - c.from >= 1 << log).count() as u64;
                let long_gaps = gaps.iter().filter(|&&gap| gap >= 1 << log).count() as u64;
                let (long, cut) = (long + long_gaps, long_gaps.min(2));
                assert!(
                    found + open + cut >= long && found <= long + across,
                    "{found} of {long} and {across}"
                );
            }
            check_resolution(&lengths);
        }
        let whole = Window {
            first: 1,
            last: path.length(),
        };
        let lengths = CallLengths::new(path, whole, &is_shown).unwrap();
        let gaps: usize = all.iter().map(|call| call.gaps.len()).sum();
        assert_eq!(lengths.at_least(0), (calls.len() + gaps) as u64);
    });
}

fn check_resolution(lengths: &CallLengths) {
    for most in [1, 5, 50] {
        let min = lengths.resolution(most);
        assert!(min == 1 << 63 || lengths.at_least(min.ilog2()) <= most);
        assert!(min == 1 || lengths.at_least(min.ilog2() - 1) > most);
    }
}
