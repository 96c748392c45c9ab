//! Compares counts of lines, instructions and blocks with a naive walk along random paths through
//! random programs.

use std::collections::{BTreeMap, BTreeSet};

use afterimage_ids::{BlockId, Counts, EntityRef, FunctionCounts, OpId, OrigOffset};
use afterimage_profile::{InlinedCode, Line, Profile, Scope, Source, Stop, block_counts};
use afterimage_program::{BlockKind, FileId, Function, Location, Names, Program, SourceMap};
use proptest::prelude::*;

/// A line table. Each row holds until the next row. Line 0 means no line.
#[derive(Default)]
struct LineTable {
    rows: Vec<(OrigOffset, Location)>,
    /// The inlined calls of each function, with the function's body.
    calls: Vec<(std::ops::Range<OrigOffset>, Vec<InlinedCode>)>,
    /// The operators whose own line is not shown.
    hidden: BTreeSet<OrigOffset>,
}

impl Source for LineTable {
    fn locate(&self, offset: OrigOffset) -> Option<Location> {
        let after = self.rows.partition_point(|row| row.0 <= offset);
        Some(self.rows[..after].last()?.1).filter(|location| location.line > 0)
    }

    fn inlined_calls(&self, offset: OrigOffset) -> Vec<InlinedCode> {
        let mut all = self.calls.iter();
        let found = all.find(|(body, _)| body.contains(&offset));
        found.map_or_else(Vec::new, |(_, calls)| calls.clone())
    }

    fn shows_own_line(&self, offset: OrigOffset) -> Option<bool> {
        let _ = self.locate(offset)?;
        Some(!self.hidden.contains(&offset))
    }

    fn files(&self) -> &[String] {
        &[]
    }

    fn declared(&self, _: OrigOffset) -> Option<Location> {
        None
    }
}

/// Random choices, from the bytes that proptest makes. When they are used up, the choices are
/// zeros.
struct Choices<'b>(std::slice::Iter<'b, u8>);

impl Choices<'_> {
    fn below(&mut self, n: usize) -> usize {
        usize::from(self.0.next().copied().unwrap_or(0)) % n
    }

    fn done(&self) -> bool {
        self.0.len() == 0
    }
}

/// Writes a body of nested blocks, loops, ifs and branches. `depth` labels are open.
fn body(choices: &mut Choices<'_>, depth: usize, text: &mut String) {
    for _ in 0..choices.below(8) {
        match choices.below(12) {
            0 | 1 if depth < 5 => {
                let kind = ["block", "loop"][choices.below(2)];
                text.push_str(&format!("({kind}\n"));
                body(choices, depth + 1, text);
                text.push_str(")\n");
            }
            2 if depth < 5 => {
                text.push_str("(if (local.get 0) (then\n");
                body(choices, depth + 1, text);
                text.push_str(") (else\n");
                body(choices, depth + 1, text);
                text.push_str("))\n");
            }
            3 if depth < 5 => {
                text.push_str("(block (try_table (catch_all 0)\n");
                body(choices, depth + 2, text);
                text.push_str("))\n");
            }
            4 => text.push_str(&format!(
                "(br_if {} (local.get 0))\n",
                choices.below(depth + 1)
            )),
            5 => {
                let (a, b) = (choices.below(depth + 1), choices.below(depth + 1));
                text.push_str(&format!("(br_table {a} {b} {a} (local.get 0))\n"));
            }
            6 => text.push_str(&format!("(br {})\n", choices.below(depth + 1))),
            7 => text.push_str("(call 0 (local.get 0))\n"),
            8 => text.push_str(["(unreachable)\n", "(throw 0)\n"][choices.below(2)]),
            _ => text.push_str("nop\n"),
        }
    }
}

fn module(choices: &mut Choices<'_>) -> Vec<u8> {
    let mut text = String::from("(module (tag)\n");
    for _ in 0..1 + choices.below(3) {
        text.push_str("(func (param i32)\n");
        body(choices, 0, &mut text);
        text.push_str(")\n");
    }
    text.push(')');
    wat::parse_str(&text).expect("the generator writes valid modules")
}

/// Returns rows at random operators. They have few lines, so that lines repeat, and include line 0
/// and gaps.
fn line_table(program: &Program, bytes: &[u8], choices: &mut Choices<'_>) -> LineTable {
    let mut rows = Vec::new();
    for function in &program.functions {
        for (_, offset, _) in program.operators(bytes, function) {
            let line = choices.below(4) as u32;
            if choices.below(3) == 0 {
                rows.push((
                    offset,
                    Location {
                        file: FileId(0),
                        line,
                        column: 0,
                    },
                ));
            }
        }
        rows.push((
            function.body.end,
            Location {
                file: FileId(0),
                line: 0,
                column: 0,
            },
        ));
    }
    let calls = program.functions.iter().map(|function| {
        let offsets = program.operators(bytes, function);
        let offsets = Vec::from_iter(offsets.map(|(_, offset, _)| offset));
        let mut calls = Vec::new();
        inline(choices, 0, &offsets, &mut calls);
        calls.sort_by_key(|code| (code.depth, code.range.start));
        (function.body.start..function.body.end, calls)
    });
    let calls = calls.collect();
    let mut hidden = BTreeSet::new();
    let hides = choices.below(3) > 0;
    for function in program.functions.iter().filter(|_| hides) {
        let offsets = program.operators(bytes, function);
        let offsets = offsets.map(|(_, offset, _)| offset);
        hidden.extend(offsets.filter(|_| choices.below(4) > 0));
    }
    LineTable {
        rows,
        calls,
        hidden,
    }
}

/// Adds random inlined calls that cover consecutive operators, and calls nested in them. Some of
/// their lines have no other code.
fn inline(
    choices: &mut Choices<'_>,
    depth: u32,
    mut offsets: &[OrigOffset],
    calls: &mut Vec<InlinedCode>,
) {
    while !offsets.is_empty() && depth < 3 {
        let (here, after) = offsets.split_at((1 + choices.below(6)).min(offsets.len()));
        offsets = after;
        if choices.below(3) == 0 {
            let call = Location {
                file: FileId(0),
                line: 2 + choices.below(5) as u32,
                column: 0,
            };
            let end = OrigOffset(here[here.len() - 1].0 + 1);
            let range = here[0]..end;
            calls.push(InlinedCode { depth, range, call });
            inline(choices, depth + 1, here, calls);
        }
    }
}

/// An instruction that control reached. It was executed unless the run stopped before it. `arrives`
/// is true at the activation's start, after an iteration of a loop that can stay on its line, and
/// after a vertex that executes nothing.
struct Reached {
    offset: OrigOffset,
    line: Option<Line>,
    arrives: bool,
    /// Whether control came through a vertex that executes nothing, or began the activation.
    through_nothing: bool,
    executed: bool,
    /// Whether it is a jump that is passed over, which still counts as an instruction.
    passed: bool,
}

/// An instruction: its offset, its line, and whether it is a jump that is passed over.
type Instruction = (OrigOffset, Option<Line>, bool);

/// The path of control from the last instruction that was not passed over.
#[derive(Clone, Copy)]
struct Way {
    /// The block of that instruction.
    from: Option<BlockId>,
    back: bool,
    /// Whether control came through a vertex that executes nothing, or began the activation.
    arrives: bool,
}

impl Way {
    fn arrives(
        self,
        (function, source): (&Function, &LineTable),
        instructions: &BTreeMap<OpId, Instruction>,
        at: BlockId,
    ) -> bool {
        let round = |from| {
            stays(function, instructions, at, from)
                && !is_hidden((function, source), instructions, at)
        };
        self.arrives || self.back && self.from.is_some_and(round)
    }
}

/// Whether a path leads from one block to the other through blocks of one line only.
fn stays(
    function: &Function,
    instructions: &BTreeMap<OpId, Instruction>,
    start: BlockId,
    end: BlockId,
) -> bool {
    let lines = |block: BlockId| {
        let own = instructions.range(function.cfg.blocks[block].ops.clone());
        let steps = own.filter(|(_, (.., passed))| !passed);
        steps
            .map(|(_, (_, line, _))| *line)
            .collect::<BTreeSet<_>>()
    };
    let line = lines(start);
    let goes_on = |block: BlockId| {
        let is_jump = !instructions
            .range(function.cfg.blocks[block].ops.clone())
            .eq([]);
        let own = lines(block);
        own == line || own.is_empty() && is_jump
    };
    let (mut seen, mut open) = (BTreeSet::new(), vec![start]);
    while let Some(block) = open.pop() {
        if line.len() == 1 && goes_on(block) && seen.insert(block) {
            if block == end {
                return true;
            }
            open.extend(function.cfg.graph.successors(block));
        }
    }
    false
}

/// Whether all operators in the loop of a block, which stays on one line, have the line of the code
/// that encloses them.
fn is_hidden(
    (function, source): (&Function, &LineTable),
    instructions: &BTreeMap<OpId, Instruction>,
    at: BlockId,
) -> bool {
    let mut shown = BTreeSet::new();
    for (block, vertex) in function.cfg.blocks.iter() {
        let own = instructions.range(vertex.ops.clone());
        let steps = own.filter(|(_, (.., passed))| !passed);
        let there = |from, to| stays(function, instructions, from, to);
        if vertex.kind == BlockKind::Code && there(at, block) && there(block, at) {
            shown.extend(steps.filter_map(|(_, (offset, ..))| source.shows_own_line(*offset)));
        }
    }
    shown.into_iter().eq([false])
}

/// The naive walk's view of one function.
#[derive(Default)]
struct Naive {
    counts: FunctionCounts,
    stops: Vec<Stop>,
    trace: Vec<Reached>,
}

impl Naive {
    /// Simulates one activation. It leaves each block by a random edge, and stays open after `fuel`
    /// blocks.
    fn activation(
        &mut self,
        (function, source): (&Function, &LineTable),
        instructions: &BTreeMap<OpId, Instruction>,
        choices: &mut Choices<'_>,
    ) {
        let graph = &function.cfg.graph;
        self.counts.entries += 1;
        let (mut block, mut fuel) = (graph.root(), 40);
        let mut way = Way {
            from: None,
            back: false,
            arrives: true,
        };
        while block != graph.exit() {
            let vertex = &function.cfg.blocks[block];
            let own: Vec<_> = instructions.range(vertex.ops.clone()).collect();
            let stuck = graph.out_edges(block).is_empty() || fuel == 0 || choices.below(20) == 19;
            let stop = (stuck && !own.is_empty()).then(|| choices.below(own.len() + 1));
            let executed = stop.unwrap_or(own.len());
            // The first instruction of a block is reached even if the run stops right before it.
            for (i, (_, (offset, line, passed))) in own.iter().take(executed.max(1)).enumerate() {
                self.trace.push(Reached {
                    offset: *offset,
                    line: *line,
                    arrives: way.arrives((function, source), instructions, block),
                    through_nothing: way.arrives,
                    executed: i < executed,
                    passed: *passed,
                });
                if !passed {
                    way = Way {
                        from: Some(block),
                        back: false,
                        arrives: false,
                    };
                }
            }
            if stop.is_some() {
                if own.iter().all(|(_, (.., passed))| *passed) {
                    self.reach_behind_jumps((function, source), instructions, block, way);
                }
                let last = executed.checked_sub(1).map(|last| own[last].0.as_u32() + 1);
                let next = last.map_or(vertex.ops.start, OpId::from_u32);
                self.stops.push(Stop {
                    function: function.id,
                    block,
                    next,
                });
                let open = &mut self.counts.open;
                match open.binary_search_by_key(&block, |open| open.0) {
                    Ok(i) => open[i].1 += 1,
                    Err(i) => open.insert(i, (block, 1)),
                }
                return;
            }
            way.arrives |= vertex.kind != BlockKind::Code || own.is_empty();
            let ways = graph.out_edges(block);
            let edge = ways[choices.below(ways.len())];
            self.counts.edges[edge.index()] += 1;
            way.back |= function.cfg.edges[edge].back;
            block = graph.to(edge);
            fuel = usize::saturating_sub(fuel, 1);
        }
    }

    /// Handles a run that stops in a block with only a skipped jump. The targets of the jumps are
    /// reached, but not executed.
    fn reach_behind_jumps(
        &mut self,
        (function, source): (&Function, &LineTable),
        instructions: &BTreeMap<OpId, Instruction>,
        mut block: BlockId,
        mut way: Way,
    ) {
        let graph = &function.cfg.graph;
        for _ in 0..graph.vertex_count() {
            let [edge] = *graph.out_edges(block) else {
                return;
            };
            way.back |= function.cfg.edges[edge].back;
            block = graph.to(edge);
            let mut own = instructions.range(function.cfg.blocks[block].ops.clone());
            let Some((_, (offset, line, passed))) = own.next() else {
                return;
            };
            if !passed {
                let (offset, line) = (*offset, *line);
                self.trace.push(Reached {
                    offset,
                    line,
                    arrives: way.arrives((function, source), instructions, block),
                    through_nothing: way.arrives,
                    executed: false,
                    passed: false,
                });
                return;
            }
        }
    }

    /// Counts arrivals and instructions per line, by the definition. `calls` returns the lines that
    /// have only inlined calls, of which one contains the operator at an offset.
    fn lines(
        &self,
        sums: &mut BTreeMap<Line, (u64, u64)>,
        calls: impl Fn(OrigOffset) -> Vec<Line>,
        source: &LineTable,
    ) {
        let mut before = None;
        let mut left = Vec::new();
        for now in &self.trace {
            let mut enters = false;
            if !now.passed {
                let here = calls(now.offset);
                for line in &here {
                    enters |= now.through_nothing || !left.contains(line);
                    sums.entry(*line).or_default().0 += u64::from(enters);
                }
                left = here;
            }
            enters &= source.locate(now.offset).is_some();
            if let Some(line) = now.line {
                let sum = sums.entry(line).or_default();
                sum.0 += u64::from(!now.passed && (now.arrives || enters || before != Some(line)));
                sum.1 += u64::from(now.executed);
            }
            if !now.passed {
                before = now.line;
            }
        }
    }
}

/// Finds the jumps that are skipped, and the jumps that belong to no line, by the rules of
/// `afterimage_profile`'s lines, one jump at a time.
fn settle(function: &Function, own: &mut BTreeMap<OpId, Instruction>) {
    let all = own.clone();
    let same = |line: Line| {
        let here = all
            .iter()
            .filter(move |(_, (_, other, _))| *other == Some(line));
        here.filter(|(op, _)| function.block_of(**op).is_some())
    };
    let leads_back = |op: OpId, line: Line| {
        let block = function.block_of(op).unwrap();
        let edge = function.cfg.graph.out_edges(block)[0];
        let target = function.cfg.blocks[function.cfg.graph.to(edge)].ops.clone();
        let first = all.range(target).find_map(|(_, (_, line, _))| *line);
        function.cfg.edges[edge].back && first.is_some_and(|first| first > line)
    };
    for (op, (_, line, jump)) in own {
        let (Some(here), true, Some(_)) = (*line, *jump, function.block_of(*op)) else {
            continue;
        };
        if same(here).all(|(_, (.., jump))| *jump) {
            if same(here).all(|(op, _)| leads_back(*op, here)) {
                *line = None
            } else {
                *jump = false
            }
        }
    }
}

/// Returns the instructions of a function with their lines, by the rule stated at
/// `OperatorCount::position`. For an instruction without a line, walks back along all paths.
fn instructions(
    program: &Program,
    bytes: &[u8],
    function: &Function,
    source: &LineTable,
) -> BTreeMap<OpId, Instruction> {
    use wasmparser::Operator as O;
    let mut own = BTreeMap::new();
    for (op, offset, operator) in program.operators(bytes, function) {
        let is_marker = matches!(
            operator,
            O::Block { .. } | O::Loop { .. } | O::Else | O::End | O::TryTable { .. }
        );
        if !is_marker {
            let line = source.locate(offset).map(Line::from);
            own.insert(op, (offset, line, matches!(operator, O::Br { .. })));
        }
    }
    settle(function, &mut own);
    let last_in =
        |ops: std::ops::Range<OpId>| own.range(ops).rev().find_map(|(_, (_, line, _))| *line);
    let graph = &function.cfg.graph;
    let came_from = |block: BlockId| {
        let mut lines = BTreeSet::new();
        let (mut seen, mut open) = (BTreeSet::new(), vec![block]);
        while let Some(block) = open.pop() {
            if block == graph.root() {
                lines.insert(None);
            }
            for before in graph.predecessors(block) {
                match last_in(function.cfg.blocks[before].ops.clone()) {
                    Some(line) => {
                        lines.insert(Some(line));
                    }
                    None if seen.insert(before) => open.push(before),
                    None => {}
                }
            }
        }
        match lines.into_iter().collect::<Vec<_>>()[..] {
            [only] => only,
            _ => None,
        }
    };
    let mut unreachable = None;
    own.iter()
        .map(|(op, (offset, line, passed))| {
            let found = match (line, function.block_of(*op)) {
                (Some(line), _) => Some(*line),
                (None, Some(block)) => {
                    let start = function.cfg.blocks[block].ops.start;
                    last_in(start..*op).or_else(|| came_from(block))
                }
                // Control never arrives there, so the jump takes the line before it.
                (None, None) => unreachable,
            };
            unreachable = found;
            (*op, (*offset, found, *passed))
        })
        .collect()
}

fn check(bytes_of_choices: &[u8]) {
    let mut choices = Choices(bytes_of_choices.iter());
    let bytes = module(&mut choices);
    let program = Program::parse(&bytes).expect("the generator writes valid modules");
    let source = line_table(&program, &bytes, &mut choices);

    let mut counts = Counts::default();
    let mut stops = Vec::new();
    let mut lines = BTreeMap::new();
    let mut executed = BTreeMap::<OrigOffset, u64>::new();
    for function in &program.functions {
        let own = instructions(&program, &bytes, function, &source);
        own.values()
            .filter_map(|(_, line, _)| *line)
            .for_each(|line| {
                lines.entry(line).or_insert((0, 0));
            });
        own.values().for_each(|(offset, ..)| {
            executed.entry(*offset).or_default();
        });
        let mut naive = Naive::default();
        naive.counts.edges = vec![0; function.cfg.edges.len()];
        while !choices.done() && naive.counts.entries < 1 + choices.below(6) as u64 {
            naive.activation((function, &source), &own, &mut choices);
        }
        let steps = own.iter().filter(|(_, (.., passed))| !passed);
        let with_code: BTreeSet<Line> = steps.clone().filter_map(|(_, step)| step.1).collect();
        let all_calls = source.inlined_calls(function.body.start);
        let calls = |offset: OrigOffset| {
            let here = all_calls.iter().filter(|code| code.range.contains(&offset));
            let mut lines = Vec::new();
            for line in here.map(|code| Line::from(code.call)) {
                if !with_code.contains(&line) && !lines.contains(&line) {
                    lines.push(line);
                }
            }
            lines
        };
        for (op, (offset, ..)) in steps {
            if function.block_of(*op).is_some() {
                for line in calls(*offset) {
                    lines.entry(line).or_insert((0, 0));
                }
            }
        }
        naive.lines(&mut lines, calls, &source);
        for step in &naive.trace {
            *executed.entry(step.offset).or_default() += u64::from(step.executed);
        }
        stops.append(&mut naive.stops);
        counts.functions.push(naive.counts);
    }

    let names = Names::build(&program, &bytes, &SourceMap::build(&bytes));
    let profile = Profile::new(&program, &bytes, &counts, &stops, &names, &source).unwrap();
    let got: BTreeMap<_, _> = profile
        .line_rows(&Scope::All)
        .unwrap()
        .into_iter()
        .map(|row| (row.line, (row.count, row.instructions)))
        .collect();
    assert_eq!(got, lines, "lines");
    let got: BTreeMap<_, _> = profile
        .instruction_rows(&Scope::All)
        .unwrap()
        .into_iter()
        .map(|row| (row.offset, row.count))
        .collect();
    assert_eq!(got, executed, "instructions");

    let total: u64 = executed.values().sum();
    assert_eq!(profile.totals().instructions, total);
    assert_eq!(profile.totals().open, stops.len() as u64);
    let by_block: u64 = profile
        .block_rows(&Scope::All)
        .unwrap()
        .iter()
        .map(|row| row.instructions)
        .sum();
    assert_eq!(by_block, total);
    for branch in profile.branch_rows(&Scope::All).unwrap() {
        let at = (branch.function, branch.block, branch.op.as_u32() + 1);
        let open = stops
            .iter()
            .filter(|s| (s.function, s.block, s.next.as_u32()) == at);
        let out: u64 = branch.ways.iter().map(|way| way.1).sum();
        assert_eq!(branch.count, out + open.count() as u64);
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    #[test]
    fn derived_counts_are_those_of_a_naive_walk(
        choices in proptest::collection::vec(any::<u8>(), 0..3000),
    ) {
        check(&choices);
    }

    #[test]
    fn one_edge_or_frame_more_is_refused(
        choices in proptest::collection::vec(any::<u8>(), 100..600),
        which in any::<prop::sample::Index>(),
    ) {
        let mut choices = Choices(choices.iter());
        let bytes = module(&mut choices);
        let program = Program::parse(&bytes).unwrap();
        let function = &program.functions[0];
        let mut naive = Naive::default();
        naive.counts.edges = vec![0; function.cfg.edges.len()];
        let own = instructions(&program, &bytes, function, &LineTable::default());
        naive.activation((function, &LineTable::default()), &own, &mut choices);
        prop_assert!(block_counts(function, &naive.counts).is_ok());

        let mut wrong = naive.counts.clone();
        // Another iteration of a self-loop is a different execution, not an impossible one.
        let edges: Vec<_> = function.cfg.edges.iter().filter(|(_, e)| e.from != e.to).collect();
        if !edges.is_empty() {
            wrong.edges[edges[which.index(edges.len())].0.index()] += 1;
            prop_assert!(block_counts(function, &wrong).is_err());
        }
        let mut wrong = naive.counts.clone();
        wrong.entries += 1;
        prop_assert!(block_counts(function, &wrong).is_err());
        let mut wrong = naive.counts;
        wrong.open.push((BlockId::new(function.cfg.blocks.len()), 1));
        prop_assert!(block_counts(function, &wrong).is_err());
    }
}
