//! Tests timestamped whole program paths of runs that are deep, long or repetitive.

use afterimage_ids::{BlockId, FuncId};
use afterimage_wpp::twpp::{
    Collector, Event, EventError, FileError, Outside, Reader, Twpp, Wpp, write,
};

fn function(number: u32) -> FuncId {
    FuncId::from_u32(number)
}

fn block(number: u32) -> BlockId {
    BlockId::from_u32(number)
}

fn round_trip(wpp: &Wpp) -> Twpp {
    let twpp = Twpp::compact(wpp.clone());
    let bytes = write(&twpp);
    let read = Reader::open(&bytes).unwrap().twpp(1 << 28).unwrap();
    assert!(read == twpp);
    assert!(read.expand().unwrap() == *wpp);
    twpp
}

/// Tests a function that calls itself 100,000 times, with a different trace at every tenth depth.
/// Half of the activations never return.
#[test]
fn deep_recursion_without_recursion() {
    const DEPTH: u32 = 100_000;
    let mut events = Vec::new();
    for depth in 0..DEPTH {
        events.extend([Event::Enter(function(7)), Event::Block(block(1))]);
        if depth % 10 == 0 {
            events.push(Event::Block(block(2)));
        }
    }
    for _ in 0..DEPTH / 2 {
        events.extend([Event::Block(block(3)), Event::Leave]);
    }
    let mut collector = Collector::new();
    events.iter().for_each(|&e| collector.push(e).unwrap());
    assert_eq!(collector.depth(), DEPTH as usize / 2);
    let wpp = collector.finish().unwrap();
    assert!(wpp.events().eq(events));
    let twpp = round_trip(&wpp);
    let paths = &twpp.functions[0].paths;
    assert_eq!(paths.len(), 4, "with block 2 or without, returned or not");
    assert_eq!(
        paths.iter().map(|p| p.unfinished).sum::<u64>(),
        u64::from(DEPTH) / 2
    );
}

/// Checks that memory grows with different data, not with repetition. The run has a million calls
/// from a loop, and a loop of ten million blocks.
#[test]
fn repetition_takes_no_memory() {
    let mut collector = Collector::new();
    collector.enter(function(0));
    for _ in 0..1_000_000 {
        collector.blocks(&[block(1), block(2)]).unwrap();
        collector.enter(function(1));
        collector.block(block(5)).unwrap();
        collector.leave().unwrap();
    }
    let body = [1, 2, 3, 4, 5].map(block);
    collector.repeat(&body, 2_000_000).unwrap();
    collector.leave().unwrap();
    let wpp = collector.finish().unwrap();
    assert_eq!(wpp.blocks(), 13_000_000);
    let main = &wpp.function(function(0)).unwrap().paths[0].trace;
    assert!(main.heap_bytes() < 200, "{} bytes", main.heap_bytes());
    assert!(wpp.calls.heap_bytes() < 100);
    assert_eq!(wpp.events().count(), 13_000_000 + 2 * 1_000_001);
    let twpp = round_trip(&wpp);
    let stages = twpp.stages();
    assert!(stages.timestamped < 200);
    assert!(stages.trace_factor() > 100_000.0);
}

/// Tests Fibonacci trees of up to 2^41 calls, in which each subtree is repeated with `again`.
#[test]
fn what_happens_again_takes_constant_time() {
    let mut collector = Collector::new();
    let mut trees = Vec::new();
    for depth in 0..60 {
        collector.enter(function(0));
        collector.block(block(1)).unwrap();
        if let [.., a, b] = trees[..] {
            collector.again(b);
            collector.block(block(2)).unwrap();
            collector.again(a);
        }
        collector.block(block(3)).unwrap();
        // Every tree is also a call from outside. The last tree never returns.
        if depth < 59 {
            trees.push(collector.leave().unwrap());
        }
    }
    let wpp = collector.finish().unwrap();
    let fibonacci = |n: usize| (0..n).fold((1u64, 1u64), |(a, b), _| (b, a + b)).0;
    // A tree of depth n makes 2 F(n) − 1 calls. The total is the sum of these numbers.
    let calls: u64 = (0..60).map(|n| 2 * fibonacci(n) - 1).sum();
    let paths = &wpp.function(function(0)).unwrap().paths;
    assert_eq!(paths.iter().map(|p| p.calls).sum::<u64>(), calls);
    let leaves: u64 = (0..60).map(fibonacci).sum();
    assert_eq!((paths[0].calls, paths[1].calls), (leaves, calls - leaves));
    assert_eq!(paths[1].unfinished, 1);
    assert_eq!(wpp.calls.subtrees(), 59, "the first two are equal");
}

/// Tests 2^61 calls, which fit in 64 bits, and 2^69 calls, which do not.
#[test]
fn a_run_longer_than_any_is_refused() {
    for doublings in [62, 70] {
        let mut collector = Collector::new();
        let mut tree = None;
        for _ in 0..doublings {
            collector.enter(function(0));
            for call in [tree, tree].into_iter().flatten() {
                collector.again(call);
            }
            tree = Some(collector.leave().unwrap());
        }
        assert_eq!(collector.finish(), Err(EventError::TooLong));
    }
}

/// Repeating a call with `again` gives the same result as executing it again.
#[test]
fn again_is_the_same_as_happening() {
    let call = |collector: &mut Collector| {
        collector.enter(function(1));
        collector.blocks(&[block(1), block(2)]).unwrap();
        collector.enter(function(2));
        collector.leave().unwrap();
        collector.leave().unwrap()
    };
    let (mut said, mut happened) = (Collector::new(), Collector::new());
    for collector in [&mut said, &mut happened] {
        collector.enter(function(0));
        collector.block(block(7)).unwrap();
    }
    let seen = call(&mut said);
    call(&mut happened);
    for _ in 0..3 {
        said.block(block(8)).unwrap();
        said.again(seen);
        happened.block(block(8)).unwrap();
        call(&mut happened);
    }
    assert_eq!(said.finish(), happened.finish());
}

#[test]
fn a_call_graph_takes_no_more_memory_than_allowed() {
    let mut collector = Collector::new();
    collector.enter(function(0));
    for k in 0..20_000u32 {
        collector.enter(function(1));
        (0..k % 100).for_each(|_| collector.block(block(1)).unwrap());
        collector.leave().unwrap();
        (0..k % 7).for_each(|_| collector.block(block(2)).unwrap());
    }
    let bytes = write(&Twpp::compact(collector.finish().unwrap()));
    let reader = Reader::open(&bytes).unwrap();
    assert_eq!(reader.calls(5_000), Err(FileError::TooLarge(5_000)));
    assert!(reader.calls(1 << 20).is_ok());
}

/// Equal subtrees take memory only once, even while they are read.
#[test]
fn a_repetitive_call_graph_needs_little_memory() {
    let mut collector = Collector::new();
    for _ in 0..500 {
        collector.enter(function(0));
        for k in 0..1_000u32 {
            (0..k % 7).for_each(|_| collector.block(block(1)).unwrap());
            collector.enter(function(1 + k % 3));
            collector.leave().unwrap();
        }
        collector.leave().unwrap();
    }
    let bytes = write(&Twpp::compact(collector.finish().unwrap()));
    let calls = Reader::open(&bytes).unwrap().calls(20_000).unwrap();
    assert_eq!(calls.walk().count(), 2 * 500 * 1_001);
}

#[test]
fn what_happens_outside_every_call_is_refused() {
    let mut collector = Collector::new();
    let outside = |what| Err(EventError::NoActivation(what));
    assert_eq!(collector.block(block(1)), outside(Outside::Block(block(1))));
    assert_eq!(
        collector.blocks(&[block(2)]),
        outside(Outside::Block(block(2)))
    );
    assert_eq!(collector.push(Event::Leave), outside(Outside::Leave));
    assert_eq!(collector.blocks(&[]), Ok(()));
    let wpp = collector.finish().unwrap();
    assert_eq!(wpp, Wpp::default());
    round_trip(&wpp);
}
