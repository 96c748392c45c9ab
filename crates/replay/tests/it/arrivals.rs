//! Checks that arrivals at lines, and the steps of each arrival, agree with a walk block by block.

use std::collections::{BTreeSet, HashMap, HashSet};
use std::path::Path;

use afterimage_ids::{BlockId, FuncId, OpId, OrigOffset};
use afterimage_profile::location::Place;
use afterimage_profile::{Line, Resolver, Source};
use afterimage_program::{Location, Names, Program, SourceMap};
use afterimage_replay::steps::{
    Enter, LineStep, LineSteps, LineStepsError, Run, WantedLines, Within,
};
use afterimage_replay::whole_path::{
    Positions, RecordedPath, Step, Window, WindowCounts, line_arrivals, recorded_path,
};
use afterimage_testkit::modules::{HANDWRITTEN, ModuleConfig, SplitMix64, module_from_seed};
use wasmparser::Operator;

use crate::walk::{Event, Options, Parts, walk};

/// Returns the module with a line table, in which a line has several instructions.
fn with_lines(text: &str, random: &mut SplitMix64) -> Vec<u8> {
    let mut joined = String::new();
    for line in text.lines() {
        joined.push_str(line.split(";;").next().unwrap_or(""));
        joined.push(if random.below(3) == 0 { '\n' } else { ' ' });
    }
    let mut parser = wat::Parser::new();
    parser.generate_dwarf(wat::GenerateDwarf::Lines);
    parser.parse_str(Some(Path::new("a.wat")), &joined).unwrap()
}

/// A block that was executed.
struct Executed {
    function: FuncId,
    block: BlockId,
    /// The block's activation, and the block that the activation executed before it.
    activation: usize,
    before: Option<BlockId>,
    /// The number of activations that enclose the block's activation.
    depth: usize,
}

/// Returns all executed blocks, in order. Number 0 has time 1.
fn executed(parts: &Parts) -> Vec<Executed> {
    let mut all = Vec::new();
    let mut open: Vec<(usize, Option<BlockId>)> = Vec::new();
    let mut begun = 0;
    for event in &parts.events {
        match *event {
            Event::Enter(_) => {
                open.push((begun, None));
                begun += 1;
            }
            Event::Leave => drop(open.pop()),
            Event::Node(node) => {
                let node = &parts.directory.nodes[node];
                let depth = open.len() - 1;
                let (activation, before) = open.last_mut().unwrap();
                for &block in &node.blocks {
                    all.push(Executed {
                        function: node.function,
                        block,
                        activation: *activation,
                        before: before.replace(block),
                        depth,
                    });
                }
            }
        }
    }
    all
}

/// A line of a program, and the places of its instructions other than jumps.
struct LineOperators<'a> {
    program: &'a Program,
    module: &'a [u8],
    source: &'a SourceMap<'a>,
    line: Line,
    operators: HashSet<(FuncId, OpId)>,
}

impl LineOperators<'_> {
    fn functions(&self) -> BTreeSet<FuncId> {
        self.operators
            .iter()
            .map(|(function, _)| *function)
            .collect()
    }

    /// Returns the times of all arrivals, computed from their places, or `None` if the places do
    /// not determine the arrivals.
    fn times(&self, all: &[Executed]) -> Option<Vec<u64>> {
        let mut places = HashMap::new();
        for function in self.functions() {
            let code = self.program.function(function).unwrap();
            let found = line_arrivals(self.program, self.module, self.source, code, self.line);
            places.insert(function, found.unwrap()?);
        }
        let mut times = Vec::new();
        for (time, executed) in (1..).zip(all) {
            let Some(places) = places.get(&executed.function) else {
                continue;
            };
            let joined = match executed.before {
                None => places.entry,
                Some(before) => places.over.contains(&(before, executed.block)),
            };
            let inside = places.inside.iter();
            let inside = inside.filter(|(block, _)| *block == executed.block);
            let count = u64::from(joined) + inside.map(|(_, count)| count).sum::<u64>();
            times.extend((0..count).map(|_| time));
        }
        Some(times)
    }

    /// The executed instructions of the line, each with its activation.
    fn steps(&self, all: &[Executed]) -> Vec<(usize, Step)> {
        let mut steps = Vec::new();
        for (time, executed) in (1..).zip(all) {
            let function = executed.function;
            let code = self.program.function(function).unwrap();
            let ops = code.cfg.blocks[executed.block].ops.clone();
            let ops = (ops.start.as_u32()..ops.end.as_u32()).map(OpId::from_u32);
            let own = ops.filter(|&op| self.operators.contains(&(function, op)));
            steps.extend(own.map(|op| (executed.activation, Step { time, function, op })));
        }
        steps
    }
}

/// The amount of data compared.
#[derive(Default)]
struct Seen {
    lines: usize,
    arrivals: usize,
    steps: usize,
    /// The number of lines that were stepped through.
    by_line: usize,
    /// The number of times that a window contained some arrivals at a line, but not all.
    cut: u64,
}

/// A source in which only every `part`-th function has lines.
struct SomeFunctions<'a> {
    source: &'a SourceMap<'a>,
    program: &'a Program,
    part: u32,
}

impl SomeFunctions<'_> {
    fn has(&self, function: FuncId) -> bool {
        function.as_u32().is_multiple_of(self.part)
    }
}

impl Source for SomeFunctions<'_> {
    fn locate(&self, offset: OrigOffset) -> Option<Location> {
        let function = self.program.function_at(offset)?;
        self.has(function.id).then(|| self.source.locate(offset))?
    }

    fn files(&self) -> &[String] {
        Source::files(self.source)
    }

    fn declared(&self, start: OrigOffset) -> Option<Location> {
        let function = self.program.function_at(start)?;
        self.has(function.id).then(|| self.source.declared(start))?
    }
}

/// Walks through the run line by line. Checks that the steps are the same backward, in parts, and
/// without callees. Returns `None` if the path does not determine all arrivals.
fn line_steps(
    (program, module, source): (&Program, &[u8], &SourceMap<'_>),
    path: &RecordedPath,
    all: &[Executed],
) -> Option<Vec<LineStep>> {
    let run = Run {
        program,
        module,
        path,
        continuations: &path.segments().directory().continuations,
        stopped: None,
        checkpoints: None,
        snapshots: None,
        progress: &|_| {},
    };
    let stepped_by = |source: &dyn Source, patience, window, reverse, enter| {
        let wanted = WantedLines {
            window,
            within: Within::default(),
            reverse,
            enter,
            function: None,
        };
        let steps = LineSteps::new(run, source, None, wanted).unwrap();
        let mut steps = steps.with_patience(patience);
        let mut found = Vec::new();
        loop {
            match steps.next() {
                Ok(Some(step)) => found.push(step),
                Ok(None) => return Some(found),
                Err(LineStepsError::Ambiguous(..)) => return None,
                Err(error) => panic!("{error}"),
            }
        }
    };
    let stepped = |window, reverse, enter| stepped_by(source, u32::MAX, window, reverse, enter);
    let length = all.len() as u64;
    let whole = Window {
        first: 1,
        last: length,
    };
    let steps = stepped(whole, false, Enter::Calls)?;
    let depth = |time: u64| all[time as usize - 1].depth;
    let parts = [
        (1, length),
        (length / 3 + 1, length / 2 + 1),
        (length, length),
    ];
    for (first, last) in parts {
        let window = Window { first, last };
        let own = steps
            .iter()
            .filter(|step| (first..=last).contains(&step.time));
        let own = Vec::from_iter(own.copied());
        assert_eq!(stepped(window, false, Enter::Calls).unwrap(), own);
        let mut backwards = own.clone();
        backwards.reverse();
        assert_eq!(stepped(window, true, Enter::Calls).unwrap(), backwards);
        // Functions without lines are skipped, immediately or later.
        for (patience, part) in [(1, 2), (1, 3), (2, 3)] {
            let some = SomeFunctions {
                source,
                program,
                part,
            };
            let is_own = |step: &&LineStep| some.has(step.function);
            for (reverse, all) in [(false, &own), (true, &backwards)] {
                let found = stepped_by(&some, patience, window, reverse, Enter::Calls).unwrap();
                let own = Vec::from_iter(all.iter().filter(is_own).copied());
                assert_eq!(found, own);
            }
        }
        // This is the smallest number of activations that enclose any block in a stretch.
        let least = |from: u64, to: u64| (from..=to).map(depth).min().unwrap();
        let begin = own.first().map_or(first, |step| step.time);
        let is_over = |step: &&LineStep| depth(step.time) <= least(begin, step.time);
        let over = Vec::from_iter(own.iter().filter(is_over).copied());
        assert_eq!(stepped(window, false, Enter::Nothing).unwrap(), over);
        let end = own.last().map_or(last, |step| step.time);
        let is_over = |step: &&LineStep| depth(step.time) <= least(step.time, end);
        let over = Vec::from_iter(backwards.iter().filter(is_over).copied());
        assert_eq!(stepped(window, true, Enter::Nothing).unwrap(), over);
        for function in program.functions.iter().take(3) {
            let is_wanted = |step: &&LineStep| {
                step.function == function.id || depth(step.time) <= least(begin, step.time)
            };
            let into = Vec::from_iter(own.iter().filter(is_wanted).copied());
            let found = stepped(window, false, Enter::Function(function.id)).unwrap();
            assert_eq!(found, into);
        }
    }
    Some(steps)
}

fn compare(module: &[u8], seed: u64, options: Options, seen: &mut Seen) {
    let program = Program::parse(module).unwrap();
    let source = SourceMap::build(module);
    let names = Names::build(&program, module, &source);
    let parts = walk(&program, seed, options);
    let file = parts.file();
    let path = recorded_path(&file, &program).unwrap().unwrap();
    let positions = Positions::new(&path, &program, module, &names, &source, &[]);
    let resolver = Resolver::new(&program, module, &names, &source);
    let all = executed(&parts);
    let mut jumps = HashSet::new();
    for function in &program.functions {
        let operators = program.operators(module, function);
        let is_jump = |operator: &Operator<'_>| matches!(operator, Operator::Br { .. });
        let found = operators.filter(|(_, _, operator)| is_jump(operator));
        jumps.extend(found.map(|(op, ..)| (function.id, op)));
    }
    let steps = line_steps((&program, module, &source), &path, &all);
    let mut random = SplitMix64(seed);
    let windows = (0..8).map(|_| {
        let [a, b] = [(); 2].map(|()| 1 + random.below(path.length() as usize) as u64);
        let (first, last) = (a.min(b), a.max(b));
        let window = Window { first, last };
        (window, WindowCounts::new(&path, window).unwrap())
    });
    let windows = Vec::from_iter(windows);
    for number in 1..200 {
        let Ok(resolved) = resolver.location(&format!("a.wat:{number}")) else {
            continue;
        };
        let (line, operators) = match resolved.place {
            Place::Line(line, operators) => (line, operators),
            // A line without code that declares a function means the function's entry.
            Place::Function(_) => continue,
            Place::Operator(..) => panic!("a line is no operator"),
        };
        let own = operators.into_iter().filter(|place| !jumps.contains(place));
        let asked = LineOperators {
            program: &program,
            module,
            source: &source,
            line,
            operators: own.collect(),
        };
        let Some(times) = asked.times(&all) else {
            continue;
        };
        let arrivals = positions
            .arrivals(line, asked.functions().into_iter())
            .unwrap();
        let count = times.len() as u64;
        assert_eq!(arrivals.count(), count, "line {number}");
        if let Some(steps) = &steps {
            let own = steps
                .iter()
                .filter(|step| step.line == line && asked.functions().contains(&step.function));
            let own = Vec::from_iter(own.map(|step| (step.time, step.op)));
            let told = (1..=count).map(|k| arrivals.get(k).unwrap().unwrap());
            let told = Vec::from_iter(told.map(|at| (at.time, at.op)));
            assert_eq!(own, told, "seed {seed}, line {number}");
            seen.by_line += 1;
        }
        for (k, &time) in (1..).zip(&times) {
            assert_eq!(arrivals.time(k).unwrap(), Some(time), "line {number}, #{k}");
        }
        assert_eq!(arrivals.time(count + 1).unwrap(), None);
        for (window, counts) in &windows {
            let functions = asked.functions().into_iter();
            let functions = functions.filter_map(|function| program.function(function));
            let found = functions.map(|function| {
                let all = positions.arrivals_in(function, *window, counts);
                all.unwrap().at(line)
            });
            let found = found.sum::<Option<u64>>();
            let inside = times
                .iter()
                .filter(|&&time| window.first <= time && time <= window.last);
            let expected = inside.count() as u64;
            assert_eq!(
                found.unwrap(),
                expected,
                "seed {seed}, line {number}, {window:?}"
            );
            seen.cut += u64::from(0 < expected && expected < count);
        }
        // An executed block belongs to the last earlier arrival in its activation.
        let mut last = HashMap::new();
        let mut expected = vec![Vec::new(); times.len()];
        let mut moments = (0..).zip((1..=count).map(|k| arrivals.get(k).unwrap().unwrap()));
        let mut next = moments.next();
        for (activation, step) in asked.steps(&all) {
            while let Some((k, at)) = next
                && at.op.is_none_or(|op| (at.time, op) <= (step.time, step.op))
            {
                if at.op.is_some() {
                    last.insert(all[at.time as usize - 1].activation, k);
                }
                next = moments.next();
            }
            expected[last[&activation]].push(step);
        }
        for (k, expected) in (1..).zip(expected) {
            let found = arrivals.executed(k).unwrap();
            assert_eq!(found, expected, "seed {seed}, line {number}, #{k}");
            seen.steps += found.len();
        }
        seen.lines += 1;
        seen.arrivals += times.len();
    }
}

fn compare_all(text: &str, seed: u64, seen: &mut Seen) {
    let module = with_lines(text, &mut SplitMix64(seed));
    for (blocks, segment, regular) in [(400, 1 << 20, true), (400, 8, true), (300, 5, false)] {
        let options = Options {
            blocks,
            depth: 12,
            segment,
            regular,
        };
        compare(&module, seed, options, seen);
    }
}

#[test]
fn what_an_arrival_executes_is_what_a_walk_finds() {
    let mut seen = Seen::default();
    for seed in 0..40 {
        let module = module_from_seed(seed, &ModuleConfig::default());
        let text = wasmprinter::print_bytes(module).unwrap();
        compare_all(&text, seed, &mut seen);
    }
    for (_, text) in HANDWRITTEN {
        for seed in 0..5 {
            compare_all(text, seed, &mut seen);
        }
    }
    for seed in 0..20 {
        compare_all(crate::EXCEPTIONS, seed, &mut seen);
    }
    assert!(
        seen.lines > 1000
            && seen.by_line > 1000
            && seen.cut > 1000
            && seen.arrivals > 20_000
            && seen.steps > seen.arrivals,
        "{} lines, {} by line, {} arrivals, {} steps",
        seen.lines,
        seen.by_line,
        seen.arrivals,
        seen.steps
    );
}
