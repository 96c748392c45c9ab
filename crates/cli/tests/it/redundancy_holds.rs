//! Redundant loads agree with a search through all earlier events.

use std::collections::BTreeMap;

use afterimage_analyses::redundancy::load_redundancy;
use afterimage_dataflow::{Direction, Effect, Outcome, Question, Site, TimestampedGraph, solve};
use afterimage_replay::steps::{AccessSite, Level, Range, Step, Steps, Wanted, What, Within};
use afterimage_replay::whole_path::Window;
use afterimage_wpp::twpp::{Event, Series, collect};
use serde_json::Value as Json;

use crate::common::Sandbox;
use crate::common::generated::{each_recording, seeds};
use crate::common::memory_programs::memory_recording;
use crate::common::recorded::Recorded;

/// The number of seeds to try.
const SEEDS: u64 = 8;

/// The maximum number of blocks. Longer runs would take too long.
const MOST_BLOCKS: u64 = 20_000;

impl Recorded {
    /// Returns all steps that read or wrote memory.
    fn references(&self) -> Vec<Step> {
        let wanted = Wanted {
            level: Level::Memory,
            window: Window {
                first: 1,
                last: self.path().unwrap().length(),
            },
            within: Within::default(),
            function: None,
            range: None,
        };
        let mut steps =
            Steps::new(self.run_from(None), self.file().log().unwrap(), wanted).unwrap();
        std::iter::from_fn(|| steps.next().unwrap()).collect()
    }

    /// Returns, for each block from time 1 on, the time of the first block of its activation.
    fn began(&self) -> Vec<u64> {
        let mut began = Vec::new();
        let mut open = Vec::new();
        for event in collect(self.path().unwrap(), &|_| {}).unwrap().events() {
            match event {
                Event::Enter(_) => open.push(began.len() as u64 + 1),
                Event::Leave => drop(open.pop()),
                Event::Block(_) => began.push(*open.last().unwrap()),
            }
        }
        began
    }
}

/// Returns the access of a load or a store of a single value.
fn access(step: &Step) -> Option<(AccessSite, Range)> {
    let (What::Load(range, _) | What::Store(range, _)) = step.what else {
        return None;
    };
    let (function, op) = (step.function, step.op?);
    Some((AccessSite { function, op }, range))
}

fn covers(a: Range, b: Range) -> bool {
    a.memory == b.memory && a.address <= b.address && a.address + a.length >= b.address + b.length
}

/// The counts of a load: all executions, redundant executions, redundant executions in the same
/// call, and counts by source.
type Count = (u64, u64, u64, BTreeMap<AccessSite, u64>);
/// The counts by load.
type Counts = BTreeMap<AccessSite, Count>;

fn naive(references: &[Step], began: &[u64]) -> Counts {
    let mut counts = Counts::new();
    for (k, step) in references.iter().enumerate() {
        let (What::Load(range, _), Some((site, _))) = (&step.what, access(step)) else {
            continue;
        };
        let count = counts.entry(site).or_default();
        count.0 += 1;
        for before in references[..k].iter().rev() {
            if let Some((source, other)) = access(before)
                && covers(other, *range)
            {
                count.1 += 1;
                count.2 += u64::from(before.time >= began[step.time as usize - 1]);
                *count.3.entry(source).or_default() += 1;
                break;
            }
            let written = before.what.written();
            if written.is_some_and(|written| {
                let bytes = range.address..range.address + range.length;
                let first = written.address.max(bytes.start);
                let last = (written.address + written.length).min(bytes.end);
                written.memory == range.memory && first < last
            }) {
                break;
            }
        }
    }
    counts
}

/// The blocks of an activation, as nodes, with their times.
#[derive(Default)]
struct Activation {
    nodes: Vec<usize>,
    times: Vec<u64>,
}

/// Returns how often each load was redundant in its own call, by queries on the calls' timestamped
/// graphs. The addresses of all accesses determine what generates and kills an address, and at
/// which steps.
fn by_queries(recorded: &Recorded, references: &[Step]) -> BTreeMap<AccessSite, u64> {
    let (mut activations, mut open): (Vec<Activation>, Vec<usize>) = Default::default();
    let mut by_time = vec![0];
    for event in collect(recorded.path().unwrap(), &|_| {}).unwrap().events() {
        match event {
            Event::Enter(_) => {
                open.push(activations.len());
                activations.push(Activation::default());
            }
            Event::Leave => drop(open.pop()),
            Event::Block(block) => {
                let own = *open.last().unwrap();
                activations[own].nodes.push(block.as_u32() as usize);
                activations[own].times.push(by_time.len() as u64);
                by_time.push(own);
            }
        }
    }
    // The indices of references, by activation, load and bytes read.
    let mut asked: BTreeMap<(usize, AccessSite, u64, u64), Vec<usize>> = BTreeMap::new();
    for (k, step) in references.iter().enumerate() {
        if let (What::Load(range, _), Some((site, _))) = (&step.what, access(step)) {
            let key = (
                by_time[step.time as usize],
                site,
                range.address,
                range.length,
            );
            asked.entry(key).or_default().push(k);
        }
    }
    let mut found: BTreeMap<AccessSite, u64> = BTreeMap::new();
    for ((own, site, address, length), loads) in asked {
        let activation = &activations[own];
        let graph = TimestampedGraph::of_path(&activation.nodes);
        let memory = references[loads[0]].what.read().unwrap().memory;
        let range = Range {
            memory,
            address,
            length,
        };
        // Returns the deciding reference, searching from the last.
        let decides = |references: &[Step]| {
            references.iter().rev().find_map(|step| {
                if access(step).is_some_and(|(_, other)| covers(other, range)) {
                    return Some(Site(1));
                }
                let written = step.what.written()?;
                let end = (written.address + written.length).min(address + length);
                let shared = written.memory == memory && written.address.max(address) < end;
                shared.then_some(Site(0))
            })
        };
        let at = |time: u64| references.partition_point(|step| step.time < time);
        let step_of = |time: u64| activation.times.partition_point(|&t| t <= time) as u64;
        let effect = |timestamps: &Series, decided: &dyn Fn(u64) -> Option<Site>| {
            let all = |site| Series::compact(timestamps.iter().filter(|&t| decided(t) == site));
            Effect::Differs {
                decided: vec![(all(Some(Site(0))), Site(0)), (all(Some(Site(1))), Site(1))],
                rest: all(None),
            }
        };
        let steps: BTreeMap<u64, usize> = loads
            .iter()
            .map(|&k| (step_of(references[k].time), k))
            .collect();
        let times = Series::compact(steps.keys().copied());
        let question = Question {
            direction: Direction::Backward,
            node: activation.nodes[*steps.keys().next().unwrap() as usize - 1],
            times: &times,
            own: effect(&times, &|t| {
                let load = steps[&t];
                decides(&references[at(references[load].time)..load])
            }),
        };
        let solution = solve(&graph, &question, |node| {
            effect(graph.timestamps(node), &|t| {
                let begin = at(activation.times[t as usize - 1]);
                let next = activation.times.get(t as usize);
                let end = next.map_or(references.len(), |&next| at(next));
                decides(&references[begin..end])
            })
        });
        assert_eq!(solution.count(), loads.len() as u64);
        let available = solution.count_where(|outcome| outcome == Outcome::Decided(Site(1)));
        *found.entry(site).or_default() += available;
    }
    found
}

/// The amount of data compared.
#[derive(Default)]
struct Compared {
    runs: u64,
    redundant: u64,
    across_calls: u64,
}

fn compare(sandbox: &Sandbox, compared: &mut Compared) {
    let recorded = Recorded::open(sandbox);
    if !(1..=MOST_BLOCKS).contains(&recorded.path().unwrap().length()) {
        return;
    }
    let references = recorded.references();
    let expected = naive(&references, &recorded.began());
    let by_queries = by_queries(&recorded, &references);
    let within = expected.iter().map(|(&site, load)| (site, load.2));
    assert_eq!(by_queries, within.collect());
    let found = load_redundancy(recorded.run_from(None), recorded.file().log().unwrap()).unwrap();
    assert!(found.operators.is_sorted_by_key(|load| load.site));
    let found: Counts = found
        .operators
        .into_iter()
        .map(|load| {
            let sources = load.sources.iter();
            let sources = sources.map(|source| (source.site, source.times)).collect();
            let counts = (load.executions, load.redundant, load.within, sources);
            (load.site, counts)
        })
        .collect();
    assert_eq!(found, expected);
    let sum = |of: fn(&Count) -> u64| -> u64 { expected.values().map(of).sum() };
    let ran = sandbox.ok("redundancy --format json run.aft");
    let json: Json = serde_json::from_str(&ran.stdout).unwrap();
    assert_eq!(json["executions"], sum(|load| load.0));
    assert_eq!(json["redundant"], sum(|load| load.1));
    assert_eq!(json["same_call"], sum(|load| load.2));
    compared.runs += 1;
    compared.redundant += sum(|load| load.1);
    compared.across_calls += sum(|load| load.1 - load.2);
}

#[test]
fn redundant_loads_of_generated_programs_hold() {
    let mut compared = Compared::default();
    each_recording(seeds(SEEDS), 4, "paths", |sandbox| {
        compare(sandbox, &mut compared);
    });
    assert!(compared.runs >= seeds(SEEDS), "few runs: {}", compared.runs);
}

#[test]
fn redundant_loads_of_programs_that_load_much_hold() {
    let mut compared = Compared::default();
    for seed in 0..seeds(SEEDS) {
        compare(&memory_recording(seed), &mut compared);
    }
    assert!(
        compared.runs >= seeds(SEEDS) / 2,
        "few runs: {}",
        compared.runs
    );
    assert!(compared.redundant > 1000 && compared.across_calls > 100);
}

/// Loads and stores of all widths, bulk operations, growth and host writes, over shared bytes, in
/// calls and their callers.
const SHARED: &str = r#"(module
  (import "wasi_snapshot_preview1" "clock_res_get" (func $resolution (param i32 i32) (result i32)))
  (import "wasi_snapshot_preview1" "random_get" (func $random (param i32 i32) (result i32)))
  (memory (export "memory") 1 4)
  (data (i32.const 4) "0123456789abcdef")
  (data $passive "ABCDEFGH")
  (func $peek (param $at i32) (result i32)
    (i32.add (i32.load (local.get $at)) (i32.load16_u offset=1 (local.get $at))))
  (func $poke (param $at i32) (i32.store8 offset=3 (local.get $at) (local.get $at)))
  (func $deep (param $at i32) (param $n i32) (result i32)
    (if (result i32) (local.get $n)
      (then
        (drop (i32.load (i32.const 40)))
        (i32.add
          (call $deep (local.get $at) (i32.sub (local.get $n) (i32.const 1)))
          (i32.load (i32.const 40))))
      (else (return_call $peek (local.get $at)))))
  (func $mix (param $at i32) (result i64)
    (drop (call $peek (local.get $at)))
    (i64.store (local.get $at) (i64.mul (i64.load offset=3 (local.get $at)) (i64.const 0x123456789abcdef)))
    (drop (i32.load offset=2 (local.get $at)))
    (drop (call $peek (local.get $at)))
    (drop (i32.load (local.get $at)))
    (if (i32.and (local.get $at) (i32.const 1))
      (then (i32.store16 offset=2 (local.get $at) (i32.load8_s offset=5 (local.get $at)))))
    (if (i32.and (local.get $at) (i32.const 2))
      (then (memory.copy (local.get $at) (i32.const 2) (i32.const 9)))
      (else (memory.init $passive (local.get $at) (i32.const 3) (i32.const 4))))
    (v128.store offset=8 (local.get $at) (v128.load offset=1 (local.get $at)))
    (drop (i64.load offset=9 (local.get $at)))
    (call $poke (local.get $at))
    (drop (call $deep (local.get $at) (i32.and (local.get $at) (i32.const 3))))
    (drop (v128.load8_lane 3 (local.get $at) (v128.const i64x2 1 2)))
    (if (i32.eq (local.get $at) (i32.const 6))
      (then (drop (memory.grow (i32.const 1)))
            (memory.copy (i32.const 65533) (i32.const 0) (i32.const 12))))
    (if (i32.eq (local.get $at) (i32.const 8))
      (then (drop (call $resolution (i32.const 1) (i32.const 16)))
            (drop (call $random (i32.const 41) (i32.const 2)))))
    (memory.fill (i32.const 7) (local.get $at) (i32.const 2))
    (f32.store offset=1 (local.get $at) (f32.convert_i32_u (i32.load16_s (local.get $at))))
    (i64.load32_s (local.get $at)))
  (func (export "main") (result i64) (local $i i32) (local $sum i64)
    (loop $again
      (local.set $sum (i64.add (local.get $sum) (call $mix (local.get $i))))
      (br_if $again (i32.lt_u (local.tee $i (i32.add (local.get $i) (i32.const 1))) (i32.const 12))))
    (drop (i32.load (i32.const 65534)))
    (drop (i32.load (i32.const 65534)))
    (i64.add (local.get $sum) (i64.load (i32.const 0x30000)))))"#;

#[test]
fn redundant_loads_of_shared_bytes_hold() {
    let sandbox = Sandbox::new();
    sandbox.write("a.wasm", wat::parse_str(SHARED).unwrap());
    sandbox.run("record --invoke main -o run.aft a.wasm");
    sandbox.ok("build --lens paths run.aft");
    let mut compared = Compared::default();
    compare(&sandbox, &mut compared);
    assert_eq!(compared.runs, 1);
    assert!(compared.redundant > 50 && compared.across_calls > 5);
}
