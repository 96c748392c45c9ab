//! The simulated outcomes of a run agree with a simulation statement by statement.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::ControlFlow;

use afterimage_analyses::simulate::{
    Caches, Epoch, Misses, Outcome, Predictor, Site, SiteKind, Spec, StoredError, StoredSimulation,
    Summary, Tally, simulate, stored_simulation, stored_simulations, verify_simulations,
};
use afterimage_ids::{EntityRef, FuncId, OpId};
use afterimage_program::{BlockEnd, Callee, EdgeKind, SourceMap};
use afterimage_replay::steps::{Level, Operators, Range, Step, Steps, Value, Wanted, What, Within};
use afterimage_replay::whole_path::Window;
use afterimage_trace::{Kind, TraceFile, TraceWriter};
use serde_json::Value as Json;
use wasmparser::Operator;

use crate::common::Sandbox;
use crate::common::generated::{each_recording, seeds};
use crate::common::recorded::Recorded;

/// The number of seeds to try.
const SEEDS: u64 = 8;

/// The maximum number of blocks. Longer runs would take too long.
const MOST_BLOCKS: u64 = 20_000;

/// The simulated models.
const SPECS: [&str; 5] = [
    "--branch-predictor bimodal:bits=3,targets=2",
    "--branch-predictor gshare:bits=8,history=5,targets=4",
    "--branch-predictor tage:tables=3,bits=4,min=2,max=9",
    "--cache 128,2,16",
    "--cache 64,full,4 --cache2 512,2,64",
];

/// For each execution, whether it missed, and whether it also missed the second level.
type Outcomes = BTreeMap<Site, Vec<(bool, bool)>>;

impl Recorded {
    fn recorded_steps(&self) -> Vec<Step> {
        let wanted = Wanted {
            level: Level::Statement,
            window: Window {
                first: 1,
                last: self.path().unwrap().length(),
            },
            within: Within::default(),
            function: None,
            range: None,
        };
        let mut steps =
            Steps::new(self.run().unwrap(), self.file().log().unwrap(), wanted).unwrap();
        std::iter::from_fn(|| steps.next().unwrap()).collect()
    }

    /// Returns the summaries, and the contents of the epochs of each history.
    fn simulated(&self, specs: &[Spec]) -> Vec<(Summary, Outcomes)> {
        let mut histories: Vec<BTreeMap<u64, (u64, Misses)>> = vec![BTreeMap::new(); specs.len()];
        let log = self.file().log().unwrap();
        let summaries = simulate(
            self.run().unwrap(),
            log,
            self.stops().unwrap(),
            specs,
            &mut |i, _, bytes| {
                let epoch = Epoch::open(bytes, specs[i].is_two())?;
                for site in &epoch.sites {
                    let (before, misses) = histories[i].entry(site.site).or_default();
                    site.misses(*before, misses)?;
                    *before += site.tally.executions;
                }
                Ok(())
            },
        );
        let summaries = summaries.unwrap();
        let found = summaries.into_iter().zip(histories);
        let found = found.map(|(summary, histories)| {
            let mut outcomes = Outcomes::new();
            for (number, (executions, misses)) in histories {
                let (site, tally) = summary.sites[number as usize];
                let mut bits = vec![(false, false); executions as usize];
                misses
                    .first
                    .iter()
                    .for_each(|&k| bits[k as usize - 1].0 = true);
                misses
                    .last
                    .iter()
                    .for_each(|&k| bits[k as usize - 1].1 = true);
                let counted = Tally {
                    executions,
                    missed: misses.first.len() as u64,
                    last: misses.last.len() as u64,
                };
                assert_eq!(tally, counted);
                outcomes.insert(site, bits);
            }
            (summary, outcomes)
        });
        found.collect()
    }
}

/// Returns the target of a branch by table: a vertex of the function.
fn target(recorded: &Recorded, function: FuncId, op: OpId, value: Value) -> u64 {
    let known = recorded.program().function(function).unwrap();
    let operators = recorded.program().operators(recorded.bytes(), known);
    let operator = operators.into_iter().find(|(other, ..)| *other == op);
    let Some((_, _, Operator::BrTable { targets })) = operator else {
        panic!("{function}, {op} is no br_table");
    };
    let depths: Vec<u32> = targets.targets().collect::<Result<_, _>>().unwrap();
    let index = value.bits.0 as u32 as usize;
    let depth = depths.get(index).copied().unwrap_or(targets.default());
    let block = known.block_of(op).unwrap();
    let graph = &known.cfg.graph;
    let mut edges = graph.out_edges(block).iter();
    let edge = edges.find(|&&edge| known.cfg.edges[edge].kind == EdgeKind::Table(depth));
    graph.to(*edge.expect("an edge")).index() as u64
}

/// A branch: its site, its place and its target.
enum Branch {
    Taken(bool),
    To(u64),
}

/// The simulated events of a run.
#[derive(Default)]
struct Events {
    branches: Vec<(Site, u64, Branch)>,
    accesses: Vec<(Site, Vec<(Range, bool)>)>,
}

impl Events {
    fn of(recorded: &Recorded, operators: &Operators<'_>, steps: &[Step]) -> Self {
        let mut events = Self::default();
        for step in steps {
            let Some(op) = step.op else { continue };
            let function = step.function;
            let site = |kind| Site {
                function: function.as_u32(),
                op: op.as_u32(),
                kind,
            };
            let place = operators.get(function, op).unwrap().unwrap();
            let at = u64::from(place.offset.0);
            match &step.what {
                What::Load(range, _) => {
                    events
                        .accesses
                        .push((site(SiteKind::Load), vec![(*range, false)]));
                }
                What::Store(range, _) => {
                    events
                        .accesses
                        .push((site(SiteKind::Store), vec![(*range, true)]));
                }
                What::Copy { from, to } => {
                    let ranges = vec![(*from, false), (*to, true)];
                    events.accesses.push((site(SiteKind::Bulk), ranges));
                }
                What::Fill(range, _) | What::Init { to: range, .. } => {
                    events
                        .accesses
                        .push((site(SiteKind::Bulk), vec![(*range, true)]));
                }
                What::Branch(value) if &*place.name == "br_table" => {
                    let to = target(recorded, function, op, *value);
                    events
                        .branches
                        .push((site(SiteKind::Table), at, Branch::To(to)));
                }
                What::Branch(value) => {
                    let known = recorded.program().function(function).unwrap();
                    let graph = &known.cfg.graph;
                    let edges = graph.out_edges(known.block_of(op).unwrap());
                    // An operator whose directions have the same target is not a branch.
                    if edges
                        .iter()
                        .any(|&edge| graph.to(edge) != graph.to(edges[0]))
                    {
                        let taken = Branch::Taken(value.bits.0 as u32 != 0);
                        events
                            .branches
                            .push((site(SiteKind::Conditional), at, taken));
                    }
                }
                What::Call { callee, .. } => {
                    let known = recorded.program().function(function).unwrap();
                    let block = &known.cfg.blocks[known.block_of(op).unwrap()];
                    let (BlockEnd::Call(called) | BlockEnd::TailCall(called)) = &block.end else {
                        panic!("{function}, {op} calls inside a block");
                    };
                    if !matches!(called, Callee::Direct(_)) {
                        let to = Branch::To(callee.as_u32().into());
                        events.branches.push((site(SiteKind::Call), at, to));
                    }
                }
                _ => {}
            }
        }
        events
    }

    fn simulated(&self, spec: &Spec) -> Outcomes {
        let mut outcomes = Outcomes::new();
        match spec {
            Spec::Branches(spec) => {
                let mut predictor = Predictor::new(spec);
                for (site, place, branch) in &self.branches {
                    let right = match *branch {
                        Branch::Taken(taken) => predictor.conditional(*place, taken),
                        Branch::To(to) => predictor.indirect(*place, to),
                    };
                    outcomes.entry(*site).or_default().push((!right, false));
                }
            }
            Spec::Caches(spec) => {
                let mut caches = Caches::new(spec);
                for (site, ranges) in &self.accesses {
                    let (mut first, mut last) = (false, false);
                    for (range, write) in ranges {
                        let memory = u64::from(range.memory) << 48;
                        let missed = caches.access(memory + range.address, range.length, *write);
                        first |= missed.first > 0;
                        last |= missed.last > 0 && spec.second.is_some();
                    }
                    outcomes.entry(*site).or_default().push((first, last));
                }
            }
        }
        outcomes
    }
}

/// The amount of data compared.
#[derive(Default)]
struct Compared {
    runs: u64,
    kinds: BTreeMap<SiteKind, u64>,
}

fn compare(sandbox: &Sandbox, compared: &mut Compared) {
    let recorded = Recorded::open(sandbox);
    if !(1..=MOST_BLOCKS).contains(&recorded.path().unwrap().length()) {
        return;
    }
    let source = SourceMap::build(recorded.bytes());
    let operators = Operators::new(recorded.program(), recorded.bytes(), &source);
    let events = Events::of(&recorded, &operators, &recorded.recorded_steps());
    let specs = SPECS.map(|text| text.parse::<Spec>().expect(text));
    let ran = sandbox.ok("profile --format json run.aft");
    let profile: Json = serde_json::from_str(&ran.stdout).unwrap();
    for (spec, (summary, outcomes)) in specs.iter().zip(recorded.simulated(&specs)) {
        assert_eq!(summary.spec, *spec);
        assert_eq!(summary.blocks, recorded.path().unwrap().length());
        let told = profile["totals"]["instructions"].as_u64();
        assert_eq!(Some(summary.instructions), told, "{spec}");
        assert_eq!(outcomes, events.simulated(spec), "{spec}");
    }
    compared.runs += 1;
    let branches = events.branches.iter().map(|(site, ..)| site.kind);
    for kind in branches.chain(events.accesses.iter().map(|(site, _)| site.kind)) {
        *compared.kinds.entry(kind).or_default() += 1;
    }
}

#[test]
fn simulations_of_generated_programs_hold() {
    let mut compared = Compared::default();
    each_recording(seeds(SEEDS), 4, "paths", |sandbox| {
        compare(sandbox, &mut compared);
    });
    assert!(compared.runs >= seeds(SEEDS), "few runs: {}", compared.runs);
}

/// A program with every kind of site, over bytes in two memories. It traps after a branch.
pub const ALL: &str = r#"(module
  (memory 1)
  (memory $other 1)
  (data $passive "ABCDEFGH")
  (table funcref (elem $even $odd))
  (type $t (func (param i32) (result i32)))
  (func $even (param $n i32) (result i32) (i32.load offset=60 (local.get $n)))
  (func $odd (param $n i32) (result i32) (i32.load8_u $other (i32.shl (local.get $n) (i32.const 3))))
  (func $choose (param $n i32) (result i32)
    (block $two (block $one (block $zero
      (br_table $zero $one $two (i32.rem_u (local.get $n) (i32.const 4))))
      (return (i32.const 0)))
      (i64.store offset=30 (local.get $n) (i64.load (i32.const 62)))
      (br_if $two (i32.and (local.get $n) (i32.const 4)))
      (return (i32.const 1)))
    (br_if 0 (i32.const 5) (local.get $n))
    (return_call_indirect (type $t) (local.get $n) (i32.and (local.get $n) (i32.const 1))))
  (func (export "main") (result i32) (local $i i32) (local $sum i32)
    (loop $again
      (local.set $sum (i32.add (local.get $sum) (call $choose (local.get $i))))
      (local.set $sum (i32.add (local.get $sum)
        (call_indirect (type $t) (local.get $i) (i32.rem_u (local.get $i) (i32.const 2)))))
      (if (i32.and (local.get $i) (i32.const 6))
        (then (memory.copy $other 0 (local.get $i) (i32.const 50) (i32.const 40)))
        (else (memory.init 0 $passive (local.get $i) (i32.const 3) (i32.const 4))))
      (memory.fill $other (i32.const 7) (local.get $i) (local.get $i))
      (v128.store offset=8 (local.get $i) (v128.load offset=121 (local.get $i)))
      (local.set $i (i32.add (local.get $i) (i32.const 1)))
      (if (i32.lt_u (local.get $i) (i32.const 60)) (then (br $again))))
    (if (local.get $sum) (then (drop (i32.load (i32.const -1)))))
    (local.get $sum)))"#;

#[test]
fn all_kinds_of_sites_hold() {
    let sandbox = Sandbox::new();
    sandbox.wasm("a.wasm", ALL);
    let ran = sandbox.run("record --invoke main -o run.aft a.wasm");
    assert_eq!(ran.code, Some(134), "{ran:?}");
    sandbox.ok("build --lens paths run.aft");
    let mut compared = Compared::default();
    compare(&sandbox, &mut compared);
    assert_eq!(compared.runs, 1);
    assert_eq!(compared.kinds.len(), 6, "{:?}", compared.kinds);
}

/// Makes a recording of all kinds of sites, with all possible simulations.
fn kept() -> Sandbox {
    let sandbox = Sandbox::new();
    sandbox.wasm("a.wasm", ALL);
    sandbox.run("record --invoke main -o run.aft a.wasm");
    for spec in SPECS {
        sandbox.ok(&format!("simulate run.aft {spec}"));
    }
    sandbox
}

/// Expands the runs of a history to single executions.
fn bits(stored: &StoredSimulation, site: usize) -> Vec<(bool, bool)> {
    let mut bits = Vec::new();
    let mut last = None;
    let ended = stored.runs(site, |run| {
        assert_eq!(run.first, bits.len() as u64 + 1);
        assert_ne!(
            last.replace(run.outcome),
            Some(run.outcome),
            "runs are long"
        );
        let outcome = (
            run.outcome != Outcome::Hit,
            run.outcome == Outcome::MissedBoth,
        );
        bits.extend((0..run.count).map(|_| outcome));
        ControlFlow::Continue(())
    });
    ended.unwrap();
    bits
}

#[test]
fn histories_that_are_kept_answer_about_each_execution() {
    let sandbox = kept();
    let recorded = Recorded::open(&sandbox);
    let source = SourceMap::build(recorded.bytes());
    let operators = Operators::new(recorded.program(), recorded.bytes(), &source);
    let events = Events::of(&recorded, &operators, &recorded.recorded_steps());
    let all = stored_simulations(recorded.file()).unwrap().sound;
    assert_eq!(all.len(), SPECS.len());
    let mut missed = 0;
    for (text, stored) in SPECS.iter().zip(&all) {
        let spec: Spec = text.parse().unwrap();
        assert_eq!(stored.summary.spec, spec);
        let expected = events.simulated(&spec);
        let sites = stored.summary.sites.iter().enumerate();
        // A trapped operator was not executed.
        let executed = sites.filter(|(_, (_, tally))| tally.executions > 0);
        let executed = Vec::from_iter(executed);
        assert_eq!(executed.len(), expected.len());
        for (number, (site, tally)) in executed {
            let expected = &expected[site];
            assert_eq!(bits(stored, number), *expected);
            let misses = (1..).zip(expected).filter(|(_, bits)| bits.0);
            let misses = Vec::from_iter(misses.map(|(k, _): (u64, _)| k));
            for (k, bits) in (1..).zip(expected) {
                let one = stored.outcome(number, k).unwrap().expect("an execution");
                let outcome = match bits {
                    (false, _) => Outcome::Hit,
                    (true, false) => Outcome::Missed,
                    (true, true) => Outcome::MissedBoth,
                };
                assert_eq!(one.outcome, outcome);
                let before = misses.iter().copied().filter(|&miss| miss < k);
                let after = misses.iter().copied().find(|&miss| miss > k);
                let up_to = misses.iter().filter(|&&miss| miss <= k).count() as u64;
                let expected = (up_to, before.max(), after);
                assert_eq!((one.missed, one.before, one.after), expected);
            }
            let none = stored.outcome(number, tally.executions + 1).unwrap();
            assert!(none.is_none() && stored.outcome(number, 0).unwrap().is_none());
            for most in [1, 2, 5, 1000] {
                let sample = stored.sample(number, most).unwrap();
                let of_both = tally.last > 0 && tally.last >= tally.missed / 10;
                let of = (1..).zip(expected);
                let of = of.filter(|(_, bits)| if of_both { bits.1 } else { bits.0 });
                let of = Vec::from_iter(of.map(|(k, _): (u64, _)| k));
                assert_eq!(sample.len() as u64, most.min(of.len() as u64));
                assert_eq!(sample.first(), of.first());
                assert!(sample.is_sorted() && sample.iter().all(|k| of.contains(k)));
                assert!(most == 1 || sample.last() == of.last());
            }
            missed += misses.len();
        }
    }
    assert!(missed > 200);
}

#[test]
fn histories_that_are_kept_are_used_again() {
    let sandbox = kept();
    let before = sandbox.read("run.aft");
    let [all, one] = ["simulate run.aft", "simulate run.aft --cache 128,2,16"].map(|words| {
        let ran = sandbox.ok(words);
        assert_eq!(ran.stderr, "");
        ran.stdout
    });
    assert!(all.contains(&one));
    assert_eq!(sandbox.read("run.aft"), before);
    let fresh = sandbox
        .ok("simulate run.aft --cache 128,2,16 --no-save")
        .stdout;
    assert_eq!(
        (fresh, sandbox.read("run.aft") == before),
        (one.clone(), true)
    );
    // Of several simulations with the same name, the last one counts.
    sandbox.ok("simulate run.aft --cache 128,2,16 --again");
    assert!(sandbox.read("run.aft").len() > before.len());
    let text = sandbox.ok("info run.aft --sizes").stdout;
    let told = |what: &str| text.lines().filter(|line| line.starts_with(what)).count();
    assert_eq!((told("simulated "), told("SIMULATION ")), (5, 6));
    assert!(
        text.contains("SIMULATION --cache 128,2,16 (replaced)"),
        "{text}"
    );
    let verified = sandbox.ok("verify run.aft").stdout;
    let again = verified.matches("the same when it is simulated again");
    assert_eq!(again.count(), 5, "{verified}");
}

/// Replaces a history in the file: its epochs, with the blocks before them, and its summary.
fn replace(sandbox: &Sandbox, change: impl FnOnce(&mut Vec<(u64, Vec<u8>)>, &mut Summary)) {
    let at = sandbox.path("run.aft");
    let file = TraceFile::open(&at).unwrap();
    let sections = file.sections().unwrap();
    let name = SPECS[4];
    let position = sections.iter().rposition(|section| {
        section.kind == Kind::SIMULATION && section.name.as_deref() == Some(name)
    });
    let mut reader = file.section(position.unwrap()).unwrap();
    let mut chunks = Vec::new();
    while reader.advance().unwrap() {
        chunks.push((reader.first(), reader.bytes().to_vec()));
    }
    let (_, summary) = chunks.pop().unwrap();
    let mut summary = Summary::decode(&summary).unwrap();
    change(&mut chunks, &mut summary);
    let out = TraceWriter::append(&at).unwrap();
    let mut section = out.section(Kind::SIMULATION, Some(name)).unwrap();
    for (first, bytes) in chunks {
        section.put(first, &bytes).unwrap();
    }
    section.finish(summary.blocks, &summary.encode()).unwrap();
    out.commit().unwrap();
}

#[test]
fn what_is_wrong_with_a_history_is_found() {
    let sandbox = kept();
    replace(&sandbox, |_, _| {});
    sandbox.ok("verify run.aft");
    let sound = sandbox.read("run.aft");
    type Change = fn(&mut Vec<(u64, Vec<u8>)>, &mut Summary);
    let changes: [(&str, Change); 8] = [
        ("ends too early", |epochs, _| epochs.clear()),
        ("continues past the end of the run", |epochs, _| {
            epochs.push(epochs[0].clone())
        }),
        ("begins after 1 blocks", |epochs, _| epochs[0].0 = 1),
        // The executions of the first site.
        ("executions", |epochs, _| epochs[0].1[3] ^= 1),
        ("", |epochs, _| epochs[0].1.truncate(9)),
        ("version 2", |epochs, _| epochs[0].1[0] = 2),
        ("summary", |_, summary| summary.instructions += 1),
        ("summary", |_, summary| summary.sites[0].1.executions += 1),
    ];
    for (says, change) in changes {
        sandbox.write("run.aft", &sound);
        replace(&sandbox, change);
        let ran = sandbox.run("verify run.aft");
        assert_eq!(ran.code, Some(1), "{says}: {ran:?}");
        let line = ran.stdout.lines().next().unwrap();
        assert!(
            line.starts_with("Simulation: ") && line.contains(says),
            "{says}: {line}"
        );
        assert!(!ran.stderr.contains("panicked"), "{}", ran.stderr);
        // Another simulation replaces the damaged history.
        sandbox.ok(&format!("simulate run.aft {} --again", SPECS[4]));
        sandbox.ok("verify run.aft");
    }
}

/// Any byte that changes the meaning of a history is found.
#[test]
fn no_other_history_holds() {
    let sandbox = kept();
    let recorded = Recorded::open(&sandbox);
    let all = stored_simulations(recorded.file()).unwrap().sound;
    let read = |stored: &StoredSimulation| {
        let mut found = Vec::new();
        for site in 0..stored.summary.sites.len() {
            let ended = stored.misses(site, |before, tally, misses| -> Result<(), StoredError> {
                found.push((site, before, tally, misses.clone()));
                Ok(())
            });
            ended.ok()?;
        }
        Some(found)
    };
    let sound = read(&all[4]).expect("a sound history");
    let before = sandbox.read("run.aft");
    let mut length = 0;
    replace(&sandbox, |epochs, _| length = epochs[0].1.len());
    assert!(length > 60);
    let mut found = 0;
    for at in 0..length {
        sandbox.write("run.aft", &before);
        replace(&sandbox, |epochs, _| epochs[0].1[at] ^= 1 << (at % 8));
        let recorded = Recorded::open(&sandbox);
        let (program, module) = (recorded.program(), recorded.bytes());
        let report = verify_simulations(recorded.file(), program, module, &|_| {});
        let report = report.expect("simulations");
        let stored = stored_simulation(recorded.file(), &SPECS[4].parse().unwrap()).unwrap();
        let is_same = stored.and_then(|stored| read(&stored)).as_ref() == Some(&sound);
        assert_eq!(report.findings.is_empty(), is_same, "byte {at}: {report:?}");
        found += report.findings.len();
    }
    assert!(found > length / 2, "{found} of {length}");
}

/// A damaged history is reported with a remedy that does not read the history. It hides no other
/// history.
#[test]
fn a_damaged_history_hides_no_other_one() {
    let sandbox = kept();
    let right = sandbox.ok("simulate run.aft").stdout;
    let sound = sandbox.read("run.aft");
    // The last history is the last section; its name precedes its data.
    let name = SPECS[SPECS.len() - 1].as_bytes();
    let is_there = |at: &usize| sound[*at..].starts_with(name);
    let at = (0..sound.len()).rev().filter(is_there);
    let mut seen = BTreeSet::new();
    for at in at.filter(|at| sound[at - 1] as usize == name.len()) {
        for behind in [0, name.len()] {
            let mut damaged = sound.clone();
            damaged[at + behind + 4..][..4].fill(0xff);
            sandbox.write("run.aft", &damaged);
            let ran = sandbox.run("simulate run.aft");
            let first = right.split("\n\n").next().unwrap();
            assert!(ran.stdout.starts_with(first), "{ran:?}");
            let spec = SPECS[SPECS.len() - 1];
            let named = format!("afterimage simulate run.aft {spec} --again");
            // If a name is lost, the message cannot say what to simulate again.
            let (code, remedy) = if ran.stderr.contains(&named) {
                (125, &*named)
            } else {
                (0, "its options cannot be read")
            };
            seen.insert(code);
            assert_eq!(ran.code, Some(code), "{ran:?}");
            assert!(ran.stderr.contains(remedy), "{ran:?}");
            let info = sandbox.run("info run.aft");
            assert!(info.stdout.contains(SPECS[0]), "{info:?}");
            sandbox.ok("simulate run.aft --again");
            if code != 0 {
                assert_eq!(sandbox.ok("simulate run.aft").stdout, right);
            }
        }
    }
    assert!(seen.contains(&125), "{seen:?}");
}
