//! Finds the writers of the host's reads, by tracking the last writer of each byte.

use std::collections::HashMap;

use afterimage_ids::OpId;
use afterimage_replay::steps::{Level, Range, Run, Steps, Wanted, What, Within};
use afterimage_replay::whole_path::{FileSegments, Window};
use afterimage_trace::LogReader;

/// A writer: the time, and the operator unless the host acted on its own. `None` means that nothing
/// wrote.
pub type Wrote = Option<(u64, Option<OpId>)>;

/// For each host call, by its time, the parts that the host read, in order.
pub type Reads = HashMap<u64, Vec<(Range, Wrote)>>;

/// Follows a run.
pub fn host_reads(run: Run<'_, FileSegments>, log: LogReader) -> Reads {
    let wanted = Wanted {
        level: Level::Memory,
        window: Window {
            first: 1,
            last: run.path.length(),
        },
        within: Within::default(),
        function: None,
        range: None,
    };
    let mut steps = Steps::new(run, log, wanted).expect("a run");
    let mut memory: HashMap<(u32, u64), (u64, Option<OpId>)> = HashMap::new();
    let mut reads = Reads::new();
    while let Some(step) = steps.next().expect("a step") {
        if let What::HostRead(_, range) = step.what
            && step.op.is_some()
        {
            let parts = reads.entry(step.time).or_default();
            for i in 0..range.length {
                let address = range.address + i;
                let wrote = memory.get(&(range.memory, address)).copied();
                match parts.last_mut() {
                    Some((last, same)) if i > 0 && *same == wrote => last.length += 1,
                    _ => parts.push((
                        Range {
                            address,
                            length: 1,
                            ..range
                        },
                        wrote,
                    )),
                }
            }
        }
        if let Some(range) = step.what.written() {
            for address in range.address..range.address + range.length {
                memory.insert((range.memory, address), (step.time, step.op));
            }
        }
    }
    reads
}
