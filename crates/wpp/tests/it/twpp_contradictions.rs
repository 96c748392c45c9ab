//! Checks that every rule about the consistency of a TWPP file can fire.

use afterimage_ids::{BlockId, FuncId};
use afterimage_wpp::twpp::{Collector, Event, FileError, Part, Reader, Twpp, write};

const LIMIT: usize = 1 << 20;

/// Function 0 executes `blocks` blocks around `calls` calls to function 1. It returns if `returns`
/// is set.
fn run(blocks: u32, calls: u32, returns: bool) -> Twpp {
    let mut collector = Collector::new();
    let block = |n| Event::Block(BlockId::from_u32(n));
    let mut events = vec![Event::Enter(FuncId::from_u32(0))];
    events.extend((0..blocks).map(block));
    for _ in 0..calls {
        events.extend([Event::Enter(FuncId::from_u32(1)), block(9), Event::Leave]);
    }
    events.extend(returns.then_some(Event::Leave));
    for event in events {
        collector.push(event).unwrap();
    }
    Twpp::compact(collector.finish().unwrap())
}

fn read(twpp: &Twpp) -> Result<Twpp, FileError> {
    let bytes = write(twpp);
    Reader::open(&bytes)?.twpp(LIMIT)
}

fn calls(what: &'static str) -> Result<Twpp, FileError> {
    Err(FileError::Malformed(Part::Calls, what))
}

fn of_main(what: &'static str) -> Result<Twpp, FileError> {
    let part = Part::Function(FuncId::from_u32(0));
    Err(FileError::Malformed(part, what))
}

/// Returns the path traces of one run with the call graph of another.
fn crossed(traces: Twpp, calls: Twpp) -> Twpp {
    Twpp {
        functions: traces.functions,
        calls: calls.calls,
    }
}

#[test]
fn what_belongs_together_is_accepted() {
    let twpp = run(3, 2, true);
    assert_eq!(read(&twpp), Ok(twpp));
}

#[test]
fn numbers_of_calls_must_agree() {
    let what = "its calls differ from those of the path traces";
    let crossed_calls = crossed(run(3, 2, true), run(3, 1, true));
    assert_eq!(read(&crossed_calls), calls(what));
    let crossed_ends = crossed(run(3, 2, true), run(3, 2, false));
    assert_eq!(read(&crossed_ends), calls(what));
}

#[test]
fn a_call_must_take_a_path_trace_that_exists() {
    let unknown = crossed(run(3, 0, true), run(3, 2, true));
    let what = "a call takes a path trace that does not exist";
    assert_eq!(read(&unknown), calls(what));
}

#[test]
fn a_call_must_not_come_after_its_callers_end() {
    let late = crossed(run(2, 2, true), run(3, 2, true));
    assert_eq!(read(&late), calls("a call comes after its caller's end"));
}

#[test]
fn path_traces_must_name_what_is_there() {
    let mut unknown = run(3, 2, true);
    unknown.functions[0].paths[0].trace = 1;
    let what = "it names a trace or dictionary that it does not have";
    assert_eq!(read(&unknown), of_main(what));
    let mut unused = run(3, 2, true);
    let trace = unused.functions[1].traces[0].clone();
    unused.functions[0].traces.push(trace);
    let what = "it has a trace or dictionary that it does not name";
    assert_eq!(read(&unused), of_main(what));
}

#[test]
fn a_path_trace_must_have_a_possible_number_of_calls() {
    let mut impossible = run(3, 2, true);
    impossible.functions[0].paths[0].calls = 1 << 62;
    let what = "it has more blocks than a run can execute";
    assert_eq!(read(&impossible), of_main(what));
    let what = "a path trace has no calls, or fewer than did not return";
    for (calls, unfinished) in [(0, 0), (1, 2)] {
        let mut impossible = run(3, 2, true);
        impossible.functions[0].paths[0].calls = calls;
        impossible.functions[0].paths[0].unfinished = unfinished;
        assert_eq!(read(&impossible), of_main(what));
    }
    let mut together = run(2, 2, true);
    for function in &mut together.functions {
        function.paths[0].calls = 1 << 58;
    }
    let what = "it has more blocks than a run can execute";
    assert_eq!(read(&together), calls(what), "each alone would be possible");
}
