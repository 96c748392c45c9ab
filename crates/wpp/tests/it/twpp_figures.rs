//! Tests Figures 1 to 7 of Zhang and Gupta 2001, with the program whose `main` calls `f` five times
//! from a loop.
//!
//! The block ids of `f` are chosen to match the paper's text.

use afterimage_ids::{BlockId, FuncId};
use afterimage_wpp::twpp::{
    CallStep, Collector, Dictionary, Event, Reader, Series, TimestampedTrace, Twpp, Wpp, write,
};

const MAIN: u32 = 0;
const F: u32 = 1;
const RIGHT: [u32; 5] = [2, 7, 8, 9, 6];
const LEFT: [u32; 5] = [2, 3, 4, 5, 6];

fn function(number: u32) -> FuncId {
    FuncId::from_u32(number)
}

fn blocks(numbers: impl IntoIterator<Item = u32>) -> Vec<BlockId> {
    numbers.into_iter().map(BlockId::from_u32).collect()
}

/// Returns a path trace of `f` with three iterations.
fn f(body: [u32; 5]) -> Vec<u32> {
    [&[1][..], &body.repeat(3), &[10]].concat()
}

/// Returns the whole program path of Figure 1. The loop in `main` iterates five times.
fn run() -> Vec<Event> {
    let block = |n: u32| Event::Block(BlockId::from_u32(n));
    let mut events = vec![Event::Enter(function(MAIN)), block(1)];
    for body in [RIGHT, LEFT, RIGHT, LEFT, RIGHT] {
        events.extend([2, 3, 4].map(block));
        events.push(Event::Enter(function(F)));
        events.extend(f(body).into_iter().map(block));
        events.push(Event::Leave);
        events.push(block(5));
    }
    events.extend([block(6), Event::Leave]);
    events
}

fn collected() -> Wpp {
    let mut collector = Collector::new();
    run().into_iter().for_each(|e| collector.push(e).unwrap());
    collector.finish().unwrap()
}

fn form(trace: &TimestampedTrace) -> Vec<(u32, Vec<i64>)> {
    let blocks = trace.blocks();
    blocks
        .map(|(block, series)| (block.as_u32(), series.to_integers()))
        .collect()
}

fn chains(dictionary: &Dictionary) -> Vec<Vec<BlockId>> {
    dictionary.chains().map(<[_]>::to_vec).collect()
}

#[test]
fn figure_1_the_run_comes_back() {
    let events: Vec<_> = collected().events().collect();
    assert_eq!(events, run());
}

#[test]
fn figure_2_partitioned_by_the_dynamic_call_graph() {
    let wpp = collected();
    let mut positions = Vec::new();
    let mut taken = Vec::new();
    for step in wpp.calls.walk() {
        let CallStep::Call { position, call } = step else {
            continue;
        };
        let call = wpp.calls.call(call);
        positions.push((call.function, position));
        taken.push(wpp.path(call).unwrap().trace.blocks().collect::<Vec<_>>());
    }
    let (main, f_) = (function(MAIN), function(F));
    assert_eq!(
        positions,
        [(main, 0), (f_, 4), (f_, 8), (f_, 12), (f_, 16), (f_, 20)],
        "f is called after main's fourth, eighth, … block"
    );
    let of_main = [&[1][..], &[2, 3, 4, 5].repeat(5), &[6]].concat();
    let traces = [of_main, f(RIGHT), f(LEFT), f(RIGHT), f(LEFT), f(RIGHT)];
    assert_eq!(taken, traces.map(blocks));
}

#[test]
fn figure_3_five_calls_of_f_have_two_unique_path_traces() {
    let wpp = collected();
    let paths = &wpp.function(function(F)).unwrap().paths;
    let seen: Vec<_> = paths
        .iter()
        .map(|p| (p.trace.blocks().collect(), p.calls, p.unfinished))
        .collect();
    assert_eq!(seen, [(blocks(f(RIGHT)), 3, 0), (blocks(f(LEFT)), 2, 0)]);
    assert_eq!(wpp.function(function(MAIN)).unwrap().paths.len(), 1);
    assert_eq!(wpp.calls.subtrees(), 3);
}

#[test]
fn figure_4_chains_of_static_blocks() {
    let twpp = Twpp::compact(collected());
    let main = twpp.function(function(MAIN)).unwrap();
    let of_main: Vec<_> = main.dictionaries.iter().map(chains).collect();
    assert_eq!(of_main, [[blocks([2, 3, 4, 5])]]);
    let f = twpp.function(function(F)).unwrap();
    let of_f: Vec<_> = f.dictionaries.iter().map(chains).collect();
    assert_eq!(of_f, [[blocks(RIGHT)], [blocks(LEFT)]]);
}

#[test]
fn figure_5_one_path_trace_and_two_dictionaries() {
    let twpp = Twpp::compact(collected());
    let main = twpp.function(function(MAIN)).unwrap();
    assert_eq!(
        main.traces[0].expand().unwrap(),
        blocks([1, 2, 2, 2, 2, 2, 6])
    );
    let f = twpp.function(function(F)).unwrap();
    assert_eq!(f.traces.len(), 1);
    assert_eq!(f.traces[0].expand().unwrap(), blocks([1, 2, 2, 2, 10]));
    let tuples: Vec<_> = f.paths.iter().map(|p| (p.trace, p.dictionary)).collect();
    assert_eq!(tuples, [(0, 0), (0, 1)]);
}

#[test]
fn figure_6_timestamps() {
    let twpp = Twpp::compact(collected());
    let main = &twpp.function(function(MAIN)).unwrap().traces[0];
    let of = |n| main.timestamps(BlockId::from_u32(n)).unwrap();
    assert_eq!(of(1).iter().collect::<Vec<_>>(), [1]);
    assert_eq!(of(2).iter().collect::<Vec<_>>(), [2, 3, 4, 5, 6]);
    assert_eq!(of(6).iter().collect::<Vec<_>>(), [7]);
    assert_eq!(main.timestamps(BlockId::from_u32(3)), None);
}

#[test]
fn figure_7_compacted() {
    let twpp = Twpp::compact(collected());
    let main = twpp.function(function(MAIN)).unwrap();
    assert_eq!(
        form(&main.traces[0]),
        [(1, vec![-1]), (2, vec![2, -6]), (6, vec![-7])]
    );
    let f = twpp.function(function(F)).unwrap();
    assert_eq!(
        form(&f.traces[0]),
        [(1, vec![-1]), (2, vec![2, -4]), (10, vec![-5])]
    );
}

/// Section 3 says that the file holds the call graph, then the functions, most frequently called
/// first.
#[test]
fn figure_7_as_a_file() {
    let twpp = Twpp::compact(collected());
    let bytes = write(&twpp);
    let reader = Reader::open(&bytes).unwrap();
    let f = reader.entry(function(F)).unwrap();
    let main = reader.entry(function(MAIN)).unwrap();
    assert_eq!((f.calls, f.paths, main.calls, main.paths), (5, 2, 1, 1));
    assert!(f.offset < main.offset, "f is called more often than main");
    let alone = reader.function(function(F)).unwrap().unwrap();
    let alone = alone.check().unwrap().into_owned();
    assert_eq!(Some(&alone), twpp.function(function(F)));
    assert_eq!(reader.twpp(1 << 20).unwrap(), twpp);
}

/// Tests the timestamp-annotated dynamic control-flow graph of `main`'s call, from section 4.1.
#[test]
fn figure_7_as_a_dynamic_control_flow_graph() {
    let twpp = Twpp::compact(collected());
    let cfg = twpp
        .function(function(MAIN))
        .unwrap()
        .dynamic_cfg(0)
        .unwrap();
    let nodes: Vec<_> = cfg
        .nodes()
        .iter()
        .map(|n| (n.blocks.clone(), n.timestamps.to_string()))
        .collect();
    let expected = [
        (blocks([1]), "1".to_owned()),
        (blocks([2, 3, 4, 5]), "2:6".to_owned()),
        (blocks([6]), "7".to_owned()),
    ];
    assert_eq!(nodes, expected);
    let edges: Vec<_> = cfg
        .edges()
        .iter()
        .map(|e| (e.from, e.to, e.count))
        .collect();
    assert_eq!(edges, [(0, 1, 1), (1, 1, 4), (1, 2, 1)]);
    assert_eq!(cfg.after(2, 1), Some(1));
    assert_eq!(cfg.after(6, 1), Some(2));
    assert_eq!(cfg.before(2, 1), Some(0));
    assert_eq!(cfg.before(1, 0), None);
}

/// Tests Figure 10's timestamps, which show how the paper writes two timestamps that are not
/// neighbours, and a series of three.
#[test]
fn figure_10_timestamps_of_the_sliced_program() {
    let path = [
        &[1, 2, 3, 4, 5, 6, 7, 9, 10, 11, 12][..],
        &[4, 5, 6, 8, 9, 10, 11, 12],
        &[4, 5, 6, 7, 9, 10, 11, 12],
        &[4, 13, 14],
    ];
    let trace = TimestampedTrace::of(blocks(path.concat()));
    let shown: Vec<_> = trace.blocks().map(|(_, s)| s.to_string()).collect();
    let figure = [
        "1", "2", "3", "4:28:8", "5:21:8", "6:22:8", "7, 23", "15", "8:24:8", "9:25:8", "10:26:8",
        "11:27:8", "29", "30",
    ];
    assert_eq!(shown, figure);
    assert_eq!(Series::compact([7, 23]).to_integers(), [-7, -23]);
    assert_eq!(Series::compact([4, 12, 20, 28]).to_integers(), [4, 28, -8]);
}
