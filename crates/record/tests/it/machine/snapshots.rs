//! Checks that snapshots in a file, with the changed pages of memory, restore a machine's earlier
//! state.

use afterimage_machine::{
    MachineError, Restored, SnapshotBuilder, SnapshotError, Snapshots, WrittenPages,
};
use afterimage_testkit::modules::SplitMix64;
use afterimage_trace::{Existing, Kind, TraceFile, TraceWriter};

use super::checkpoints::{Runner, snapshot};
use super::follow::Path;
use crate::harness::Recording;

/// The approximate number of snapshots of a run.
const SNAPSHOTS: usize = 9;
/// The maximum number of nodes executed after each snapshot.
const MOST: usize = 300;
/// Snapshots are tried only if memories have at most this many bytes.
const LARGE: usize = 1 << 21;

/// Returns a file with only these snapshots.
fn stored(builder: SnapshotBuilder) -> Vec<u8> {
    let folder = tempfile::tempdir().expect("a folder");
    let at = folder.path().join("a.aft");
    let out = TraceWriter::create(&at, Existing::Kept).expect("a file");
    builder.write(&out).expect("a section");
    out.commit().expect("a state");
    std::fs::read(&at).expect("a file")
}

fn opened(bytes: Vec<u8>) -> Result<Snapshots, SnapshotError> {
    Ok(Snapshots::open(&TraceFile::from_bytes(bytes)?)?.expect("snapshots"))
}

/// Takes and stores snapshots of a run, and continues from each. Tries all snapshots, and the
/// snapshots that remain when there is room for only a few.
pub fn go_on(recording: &Recording, path: &Path) {
    let mut runner = Runner::new(recording, path);
    path.define(&mut runner.machine).expect("nodes");
    let count = path.visits.len();
    let every = count / SNAPSHOTS + 1;
    let mut written = WrittenPages::default();
    let mut all = SnapshotBuilder::new(usize::MAX);
    let mut few = SnapshotBuilder::new(40_000);
    // The memories and the rest of the state, by position.
    let mut known = Vec::new();
    for position in 0..count {
        if position % every == 0 {
            let memories = &runner.machine.state.memories;
            if memories
                .iter()
                .map(|memory| memory.bytes.len())
                .sum::<usize>()
                > LARGE
            {
                return;
            }
            let bytes = Vec::from_iter(memories.iter().map(|memory| memory.bytes.to_vec()));
            let state = snapshot(&mut runner.machine);
            let pages = written.take();
            let memories = &runner.machine.state.memories;
            assert!(
                all.add((&state, &[]), &pages, memories)
                    && few.add((&state, &[]), &pages, memories)
            );
            assert!(
                !all.add((&state, &[]), &pages, memories),
                "the same one again"
            );
            known.push((position, state, bytes));
        }
        runner.observed(position, &mut written);
    }
    if known.is_empty() {
        return;
    }
    assert_eq!((all.len(), all.spacing()), (known.len(), 1));
    let bytes = stored(all);
    let all = opened(bytes.clone()).expect("snapshots");
    let few = Snapshots::in_memory(few);
    assert_eq!(all.times().len(), known.len());
    assert_eq!(few.times().last(), all.times().last(), "the last one stays");
    for snapshots in [&all, &few] {
        for (number, &time) in snapshots.times().iter().enumerate() {
            assert_eq!(snapshots.at(time), Some(number));
            let mut same = known.iter().filter(|(_, state, _)| state.time == time);
            let (position, state, bytes) = same.next().expect("a time of a snapshot");
            let mut other = Runner::new(recording, path);
            other.machine.expect(path.directory.nodes.len());
            let restored = snapshots.restore(&mut other.machine, number);
            restored.unwrap_or_else(|error| panic!("{error}, {}", recording.ending()));
            assert_eq!(snapshot(&mut other.machine), *state);
            assert_eq!(other.machine.state.memories.len(), bytes.len());
            for (memory, bytes) in other.machine.state.memories.iter().zip(bytes) {
                assert!(memory.bytes[..] == bytes[..], "memory at t={time}");
            }
            let end = known.iter().find(|(next, ..)| next > position);
            let end = end.map_or(count, |(next, ..)| *next);
            for position in *position..end.min(position + MOST) {
                other.compile(path.visits[position]);
                other.observed(position, &mut ());
            }
            if let Some((_, next, _)) = known.iter().find(|known| known.0 == end)
                && end <= position + MOST
            {
                assert_eq!(snapshot(&mut other.machine), *next);
            }
        }
    }
    assert!(all.at(0) == Some(0) && all.at(u64::MAX) == Some(known.len() - 1));
    forged(recording, path, &bytes);
}

/// Checks that forged snapshots with correct checksums are either rejected or valid but different.
fn forged(recording: &Recording, path: &Path, bytes: &[u8]) {
    let file = TraceFile::from_bytes(bytes.to_vec()).expect("a file");
    let mut section = file.last(Kind::SNAPSHOTS).expect("snapshots");
    let mut original = Vec::new();
    while section.advance().expect("a chunk") {
        original.push(section.bytes().to_vec());
    }
    let mut random = SplitMix64(path.visits.len() as u64);
    for _ in 0..8 {
        let chunks = original.clone();
        let chosen = random.below(chunks.len());
        let folder = tempfile::tempdir().expect("a folder");
        let at = folder.path().join("a.aft");
        let out = TraceWriter::create(&at, Existing::Kept).expect("a file");
        let mut section = out.section(Kind::SNAPSHOTS, None).expect("a section");
        let count = chunks.len();
        for (number, mut chunk) in chunks.into_iter().enumerate() {
            if number == chosen && !chunk.is_empty() {
                let at = random.below(chunk.len());
                chunk[at] = random.below(256) as u8;
                if random.below(4) == 0 {
                    chunk.truncate(at);
                }
            }
            if number + 1 < count {
                section.put(0, &chunk).expect("a chunk");
            } else {
                section.finish(0, &chunk).expect("a chunk");
                break;
            }
        }
        out.commit().expect("a state");
        let Ok(snapshots) = opened(std::fs::read(&at).expect("a file")) else {
            continue;
        };
        let number = random.below(snapshots.times().len().max(1));
        let mut runner = Runner::new(recording, path);
        runner.machine.expect(path.directory.nodes.len());
        let restored = snapshots.restore(&mut runner.machine, number);
        let mut steps = path.visits.iter().take(20);
        let stepped = steps.try_for_each(|&node| {
            let length = path.length(node);
            runner.compile(node);
            runner.machine.step(node, length, &mut ())
        });
        let _: (Result<Restored, SnapshotError>, Result<(), MachineError>) = (restored, stepped);
    }
}
