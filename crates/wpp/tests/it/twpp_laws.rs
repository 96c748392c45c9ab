//! Compares timestamped whole program paths of random programs with results computed the slow,
//! obvious way.

use std::collections::{HashMap, HashSet};

use crate::twpp_support::{collect, naive_calls, naive_dynamic_blocks, naive_paths, run};
use afterimage_ids::{BlockId, FuncId};
use afterimage_wpp::twpp::{
    CallStep, DynamicCfg, Event, PathTrace, RedundancyPoint, Series, TimestampedTrace, Twpp,
};
use proptest::prelude::*;

fn timestamps() -> impl Strategy<Value = Vec<u64>> {
    let stretch = (1u64..40, 1u64..6, 1usize..8);
    prop::collection::vec(stretch, 0..12).prop_map(|stretches| {
        let mut t = 0;
        let mut all = Vec::new();
        for (gap, step, count) in stretches {
            t += gap;
            for _ in 0..count {
                all.push(t);
                t += step;
            }
        }
        all
    })
}

fn blocks(numbers: &[u32]) -> Vec<BlockId> {
    numbers.iter().map(|&n| BlockId::from_u32(n)).collect()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1000))]

    #[test]
    fn expanding_undoes_compacting(events in run(3000)) {
        let wpp = collect(&events);
        prop_assert!(wpp.events().eq(events.iter().copied()));
        let twpp = Twpp::compact(wpp.clone());
        prop_assert_eq!(twpp.expand().unwrap(), wpp);
    }

    #[test]
    fn the_call_graph_is_the_tree_of_calls(events in run(1000)) {
        let wpp = collect(&events);
        let calls = naive_calls(&events);
        let mut depth = 0;
        let mut seen = Vec::new();
        for step in wpp.calls.walk() {
            match step {
                CallStep::Call { position, call } => {
                    let call = wpp.calls.call(call);
                    let trace = &wpp.path(call).unwrap().trace;
                    let blocks: Vec<_> = trace.blocks().collect();
                    seen.push((call.function, position as usize, depth, blocks));
                    depth += 1;
                }
                CallStep::End => depth -= 1,
            }
        }
        let open = calls.iter().filter(|c| !c.returned).count();
        prop_assert_eq!(wpp.calls.open(), open as u64);
        prop_assert_eq!(wpp.calls.open_calls().len(), open);
        let occurrences: u64 = wpp.calls.occurrences().iter().sum();
        prop_assert_eq!(occurrences, calls.len() as u64);
        let expected = calls.into_iter().map(|c| (c.function, c.position, c.depth, c.blocks));
        prop_assert_eq!(seen, expected.collect::<Vec<_>>());
    }

    #[test]
    fn path_traces_are_unique_and_counted(events in run(3000)) {
        let wpp = collect(&events);
        let mut seen = HashMap::new();
        for f in &wpp.functions {
            for path in &f.paths {
                let key = (f.function, path.trace.blocks().collect::<Vec<_>>());
                prop_assert_eq!(path.trace.len() as usize, key.1.len());
                let before = seen.insert(key, (path.calls, path.unfinished));
                prop_assert_eq!(before, None, "a path trace stands twice");
            }
        }
        prop_assert_eq!(seen, naive_paths(&naive_calls(&events)));
    }

    #[test]
    fn dynamic_basic_blocks_are_those_of_the_definition(events in run(1000)) {
        let wpp = collect(&events);
        let twpp = Twpp::compact(wpp.clone());
        for (paths, traces) in wpp.functions.iter().zip(&twpp.functions) {
            for (k, path) in paths.paths.iter().enumerate() {
                let blocks: Vec<_> = path.trace.blocks().collect();
                let (trace, dictionary) = traces.parts(k);
                let mut chains = naive_dynamic_blocks(&blocks);
                let heads: HashSet<_> = chains.iter().map(|c| c[0]).collect();
                chains.retain(|c| c.len() > 1);
                chains.sort();
                prop_assert!(dictionary.chains().eq(chains.iter().map(|c| &c[..])));
                let steps = blocks.iter().copied().filter(|b| heads.contains(b));
                prop_assert_eq!(trace.expand().unwrap(), steps.collect::<Vec<_>>());
                prop_assert_eq!(traces.blocks(k), blocks.len() as u64);
            }
        }
    }

    #[test]
    fn traces_dictionaries_and_their_pairs_stand_once(events in run(3000)) {
        for f in Twpp::compact(collect(&events)).functions {
            prop_assert_eq!(f.traces.iter().collect::<HashSet<_>>().len(), f.traces.len());
            let dictionaries: HashSet<_> = f.dictionaries.iter().collect();
            prop_assert_eq!(dictionaries.len(), f.dictionaries.len());
            let pairs: HashSet<_> = f.paths.iter().map(|p| (p.trace, p.dictionary)).collect();
            prop_assert_eq!(pairs.len(), f.paths.len());
        }
    }

    #[test]
    fn series_hold_what_was_compacted(timestamps in timestamps()) {
        let series = Series::compact(timestamps.iter().copied());
        prop_assert!(series.iter().eq(timestamps.iter().copied()));
        prop_assert_eq!(series.count(), timestamps.len() as u64);
        let integers = series.to_integers();
        prop_assert!(integers.len() <= timestamps.len(), "no more integers than timestamps");
        prop_assert_eq!(series.width(), integers.len() as u64);
        let ends = integers.iter().filter(|&&n| n < 0).count();
        prop_assert_eq!(ends, series.entries().len(), "a negative integer ends each entry");
        prop_assert_eq!(Series::from_integers(&integers), Ok(series.clone()));
        let end = timestamps.last().map_or(3, |t| t + 3);
        for t in 0..end {
            prop_assert_eq!(series.contains(t), timestamps.contains(&t));
        }
    }

    #[test]
    fn any_integers_are_series_or_refused(integers in prop::collection::vec(-9i64..30, 0..8)) {
        if let Ok(series) = Series::from_integers(&integers) {
            prop_assert!(series.iter().is_sorted_by(|a, b| a < b));
            prop_assert!(series.iter().all(|t| t > 0));
            prop_assert_eq!(series.to_integers().len() <= integers.len(), true);
        }
    }

    #[test]
    fn timestamps_map_blocks_to_when_they_execute(numbers in prop::collection::vec(0u32..6, 0..200)) {
        let sequence = blocks(&numbers);
        let trace = TimestampedTrace::of(sequence.iter().copied());
        prop_assert_eq!(trace.len(), sequence.len() as u64);
        for (block, series) in trace.blocks() {
            let when = (1u64..).zip(&sequence).filter(|&(_, &b)| b == block).map(|(t, _)| t);
            prop_assert_eq!(series, Series::compact(when));
        }
        prop_assert_eq!(trace.expand().unwrap(), sequence);
    }

    #[test]
    fn the_dynamic_graph_walks_both_ways(numbers in prop::collection::vec(0u32..6, 1..100)) {
        let sequence = blocks(&numbers);
        let trace = TimestampedTrace::of(sequence.iter().copied());
        let graph = DynamicCfg::of(&trace, &Default::default()).unwrap();
        let mut node = graph.at(1);
        for (t, &block) in (1u64..).zip(&sequence) {
            let here = node.expect("a node executes at every step");
            prop_assert_eq!(&graph.nodes()[here].blocks, &[block]);
            prop_assert_eq!(graph.at(t), Some(here));
            node = graph.after(t, here);
            if let Some(next) = node {
                prop_assert_eq!(graph.before(t + 1, next), Some(here));
            }
        }
        prop_assert_eq!(node, None);
        prop_assert_eq!(graph.before(1, graph.at(1).unwrap()), None);
        let mut edges: HashMap<(BlockId, BlockId), u64> = HashMap::new();
        for pair in sequence.windows(2) {
            *edges.entry((pair[0], pair[1])).or_default() += 1;
        }
        let block = |node: usize| graph.nodes()[node].blocks[0];
        let drawn = graph.edges().iter().map(|e| ((block(e.from), block(e.to)), e.count));
        prop_assert_eq!(drawn.collect::<HashMap<_, _>>(), edges);
    }

    #[test]
    fn sizes_and_counts_are_those_of_the_stages(events in run(2000)) {
        let calls = naive_calls(&events);
        let paths = naive_paths(&calls);
        let twpp = Twpp::compact(collect(&events));
        let stages = twpp.stages();
        let blocks = events.iter().filter(|e| matches!(e, Event::Block(_))).count() as u64;
        prop_assert_eq!((stages.calls, stages.blocks), (calls.len() as u64, blocks));
        prop_assert_eq!((stages.original, stages.call_graph), (4 * blocks, 16 * stages.calls));
        prop_assert_eq!(stages.paths, paths.len() as u64);
        let unique: usize = paths.keys().map(|(_, blocks)| 4 + 4 * blocks.len()).sum();
        prop_assert_eq!(stages.unique, unique as u64);
        let (mut compacted, mut timestamped, mut dictionary) = (0, 0, 0);
        for f in &twpp.functions {
            for trace in &f.traces {
                compacted += 4 + 4 * trace.expand().unwrap().len();
                let of_blocks = trace.blocks().map(|(_, s)| 8 + 4 * s.to_integers().len());
                timestamped += 4 + of_blocks.sum::<usize>();
            }
            for d in &f.dictionaries {
                dictionary += 4 + d.chains().map(|c| 4 + 4 * c.len()).sum::<usize>();
            }
        }
        prop_assert_eq!(stages.compacted, compacted as u64);
        prop_assert_eq!(stages.timestamped, timestamped as u64);
        prop_assert_eq!(stages.dictionary, dictionary as u64);

        let mut of_function: HashMap<FuncId, u64> = HashMap::new();
        paths.keys().for_each(|(f, _)| *of_function.entry(*f).or_default() += 1);
        let points = twpp.redundancy();
        prop_assert!(points.is_sorted_by(|a, b| a.paths < b.paths));
        for RedundancyPoint { paths, functions, calls: share } in points {
            let few = |f: &FuncId| of_function[f] <= paths;
            prop_assert_eq!(of_function.keys().filter(|f| few(f)).count() as u64, functions);
            prop_assert_eq!(calls.iter().filter(|c| few(&c.function)).count() as u64, share);
        }
    }
}

/// For every set of timestamps up to 13, the encoding loses nothing and never takes more integers
/// than there are timestamps.
#[test]
fn every_small_set_of_timestamps() {
    for set in 0u32..1 << 13 {
        let timestamps = (1..=13).filter(|t| set >> (t - 1) & 1 == 1);
        let series = Series::compact(timestamps.clone());
        assert!(series.iter().eq(timestamps));
        assert!(series.width() <= u64::from(set.count_ones()), "{series}");
        assert_eq!(Series::from_integers(&series.to_integers()), Ok(series));
    }
}

/// The forms of short and long traces agree at the length where one form replaces the other.
#[test]
fn long_traces_expand_and_compare_as_short_ones() {
    for length in [16_383, 16_384, 16_385, 100_000u32] {
        let sequence: Vec<_> = (0..length)
            .map(|k| BlockId::from_u32(k * 37 % 1009 % 7))
            .collect();
        let one_by_one: PathTrace = sequence.iter().copied().collect();
        assert_eq!(one_by_one.len(), u64::from(length));
        assert!(one_by_one.blocks().eq(sequence.iter().copied()));
        let mut collector = afterimage_wpp::twpp::Collector::new();
        for _ in 0..2 {
            collector.enter(FuncId::from_u32(3));
            sequence
                .chunks(777)
                .for_each(|c| collector.blocks(c).unwrap());
            collector.leave().unwrap();
        }
        let wpp = collector.finish().unwrap();
        let paths = &wpp.functions[0].paths;
        assert_eq!((paths.len(), paths[0].calls), (1, 2));
        assert_eq!(paths[0].trace, one_by_one);
    }
}
