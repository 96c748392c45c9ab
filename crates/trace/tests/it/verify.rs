//! Checks that each rule of `verify` can fire, and fires alone if possible.

use afterimage_ids::{BlockId, ImportId};
use afterimage_trace::{
    CountsLens, End, Ending, Event, Existing, HostStop, Kind, Meta, RawValue, Rule, Standing,
    TraceFile, TraceWriter,
};

use crate::sample;

/// The parts of a recording.
struct Parts {
    meta: Meta,
    module: Vec<u8>,
    events: Vec<Event>,
    end: End,
    counts: CountsLens,
}

impl Parts {
    fn sound() -> Parts {
        Parts {
            meta: sample::meta(),
            module: sample::MODULE.to_vec(),
            events: sample::events(),
            end: sample::end(),
            counts: sample::counts(),
        }
    }

    /// Returns the rules that do not hold for a file of these parts.
    fn broken(&self) -> Vec<Rule> {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("a.aft");
        let writer = TraceWriter::create(&path, Existing::Kept).unwrap();
        writer.meta(&self.meta).unwrap();
        writer.module(&self.module).unwrap();
        let mut log = writer.log().unwrap();
        for event in &self.events {
            log.event(event).unwrap();
        }
        log.finish().unwrap();
        writer.end(&self.end).unwrap();
        writer.counts(&self.counts).unwrap();
        writer.commit().unwrap();
        broken(&TraceFile::open(&path).unwrap())
    }
}

/// Returns the rules that do not hold, each once.
fn broken(file: &TraceFile) -> Vec<Rule> {
    let mut rules = Vec::new();
    for finding in file.verify().findings {
        if !rules.contains(&finding.rule) {
            rules.push(finding.rule);
        }
    }
    rules
}

fn mutated(change: impl FnOnce(&mut Parts)) -> Vec<Rule> {
    let mut parts = Parts::sound();
    change(&mut parts);
    parts.broken()
}

/// Returns the rules that do not hold for a file whose sections are written by hand.
fn handmade(write: impl FnOnce(&TraceWriter)) -> Vec<Rule> {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("a.aft");
    let writer = TraceWriter::create(&path, Existing::Kept).unwrap();
    write(&writer);
    writer.commit().unwrap();
    broken(&TraceFile::open(&path).unwrap())
}

fn changed(change: impl FnOnce(&mut Vec<u8>, usize)) -> Vec<Rule> {
    let (mut bytes, first) = sample::two_states();
    change(&mut bytes, first);
    broken(&TraceFile::from_bytes(bytes).unwrap())
}

#[test]
fn a_sound_file_breaks_no_rule() {
    assert_eq!(mutated(|_| ()), []);
    let (bytes, _) = sample::two_states();
    let file = TraceFile::from_bytes(bytes.clone()).unwrap();
    let report = file.verify();
    assert!(report.is_sound() && report.ended);
    assert_eq!((report.states, report.events, report.sections), (2, 7, 5));
    assert_eq!((report.bytes, report.chunks), (bytes.len() as u64, 7));
}

#[test]
fn a_cut_recording_is_sound_but_for_its_cut() {
    assert_eq!(
        handmade(|writer| sample::write_recording(writer).unwrap()),
        []
    );
    let report = |length: usize| {
        let (bytes, _) = sample::two_states();
        TraceFile::from_bytes(bytes[..length].to_vec())
            .unwrap()
            .verify()
    };
    assert!(report(16).is_sound() && !report(16).ended);
}

#[test]
fn what_an_interrupted_addition_left_is_no_damage() {
    let (bytes, first) = sample::two_states();
    let footer = bytes.len() - 32;
    let index = u64::from_le_bytes(bytes[footer + 8..footer + 16].try_into().unwrap()) as usize;
    let report = |bytes: &[u8]| {
        let file = TraceFile::from_bytes(bytes.to_vec()).unwrap();
        let rules = file.verify().findings.into_iter().map(|found| found.rule);
        (
            file.ignored_bytes(),
            file.is_interrupted(),
            Vec::from_iter(rules),
        )
    };
    assert_eq!(report(&bytes[..first]), (0, false, vec![]));
    for length in first + 1..=index {
        let ignored = (length - first) as u64;
        assert_eq!(
            report(&bytes[..length]),
            (ignored, true, vec![]),
            "{length}"
        );
    }
    // The index was complete once, so the sections that it listed are lost.
    for length in index + 40..bytes.len() {
        let ignored = (length - first) as u64;
        let expected = (ignored, false, vec![Rule::Tail]);
        assert_eq!(report(&bytes[..length]), expected, "{length}");
    }
    // Bytes that are not headers may follow, for example if the disk lost recent writes.
    for length in first + 1..=index {
        let cut = [&bytes[..length], &[0; 64]].concat();
        let (_, interrupted, rules) = report(&cut);
        // If these bytes are inside a chunk, they count as its content, which is not checked.
        assert_eq!(interrupted, rules.is_empty());
    }
    let zeros = [&bytes[..first], &[0; 64]].concat();
    assert_eq!(report(&zeros), (64, false, vec![Rule::Tail]));
}

#[test]
fn tail() {
    assert_eq!(changed(|bytes, _| bytes.push(0)), [Rule::Tail]);
}

#[test]
fn layout() {
    // The first change is in the first state's footer, and the second is in its index.
    assert_eq!(
        changed(|bytes, first| bytes[first - 1] ^= 1),
        [Rule::Layout]
    );
    assert_eq!(
        changed(|bytes, first| bytes[first - 40] ^= 1),
        [Rule::Layout]
    );
    // A footer, and an index before it, that number the second state 3.
    let renumbered = |bytes: &mut Vec<u8>, _| {
        let footer = bytes.len() - 32;
        bytes[footer + 24] = 3;
        let crc = crc32fast::hash(&bytes[footer..footer + 28]);
        bytes[footer + 28..].copy_from_slice(&crc.to_le_bytes());
    };
    assert_eq!(changed(renumbered), [Rule::Layout]);
}

#[test]
fn chunk() {
    // The first change is in META's header, and the second is in its payload.
    assert_eq!(changed(|bytes, _| bytes[16 + 5] ^= 1), [Rule::Chunk]);
    assert_eq!(changed(|bytes, _| bytes[16 + 40] ^= 1), [Rule::Chunk]);
}

#[test]
fn complete() {
    let unfinished = |writer: &TraceWriter| {
        sample::write_recording(writer).unwrap();
        writer
            .section(Kind(800), None)
            .unwrap()
            .put(0, b"begun")
            .unwrap();
    };
    assert_eq!(handmade(unfinished), [Rule::Complete]);
}

#[test]
fn single() {
    // The writer refuses this, so a chunk of a kind that it does not know becomes a second MODULE.
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("a.aft");
    let writer = TraceWriter::create(&path, Existing::Kept).unwrap();
    sample::write_recording(&writer).unwrap();
    writer
        .section(Kind(0x5a5a), None)
        .unwrap()
        .finish(0, b"another")
        .unwrap();
    drop(writer);
    let mut bytes = std::fs::read(&path).unwrap();
    let at = bytes.len() - 40 - b"another".len();
    bytes[at + 4..at + 6].copy_from_slice(&Kind::MODULE.0.to_le_bytes());
    let crc = crc32fast::hash(&bytes[at..at + 36]);
    bytes[at + 36..at + 40].copy_from_slice(&crc.to_le_bytes());
    let file = TraceFile::from_bytes(bytes).unwrap();
    assert_eq!(broken(&file), [Rule::Single]);
    assert!(file.module().is_err());
}

#[test]
fn required() {
    assert_eq!(handmade(|_| ()), [Rule::Required]);
}

#[test]
fn decode() {
    for kind in [
        Kind::META,
        Kind::LOG,
        Kind::END,
        Kind::COUNTS,
        Kind::SOURCES,
    ] {
        let garbled = |writer: &TraceWriter| {
            for other in [Kind::META, Kind::MODULE, Kind::LOG] {
                let content: &[u8] = match other {
                    _ if other == kind => &[],
                    Kind::META => &serde_json::to_vec(&sample::meta()).unwrap(),
                    Kind::MODULE => sample::MODULE,
                    _ => &[],
                };
                let content = if other == kind { b"\x01\x77" } else { content };
                writer
                    .section(other, None)
                    .unwrap()
                    .finish(0, content)
                    .unwrap();
            }
            if kind > Kind::LOG {
                writer
                    .section(kind, None)
                    .unwrap()
                    .finish(0, b"\x77")
                    .unwrap();
            }
        };
        assert_eq!(handmade(garbled), [Rule::Decode], "{kind}");
    }
}

#[test]
fn decode_notices_chunks_of_the_log_that_do_not_follow_each_other() {
    let gap = |writer: &TraceWriter| {
        writer.meta(&sample::meta()).unwrap();
        writer.module(sample::MODULE).unwrap();
        let mut log = writer.section(Kind::LOG, None).unwrap();
        // One event, a growth that was granted.
        log.put(0, b"\x02\x04\x01").unwrap();
        log.finish(2, b"\x02\x04\x01").unwrap();
    };
    assert_eq!(handmade(gap), [Rule::Decode]);
}

#[test]
fn module_digest() {
    assert_eq!(mutated(|parts| parts.module[4] = 2), [Rule::ModuleDigest]);
    assert_eq!(
        mutated(|parts| parts.meta.module_sha256[31] ^= 1),
        [Rule::ModuleDigest]
    );
}

#[test]
fn nesting() {
    let returns_too_often =
        |parts: &mut Parts| parts.events[0] = Event::MemoryGrow { granted: true };
    assert_eq!(mutated(returns_too_often), [Rule::Nesting]);
    assert_eq!(mutated(|parts| parts.events.swap(5, 6)), [Rule::Nesting]);
}

#[test]
fn signatures() {
    let second_call = |args: Vec<RawValue>, results: Vec<RawValue>| {
        mutated(|parts| {
            let import = ImportId::from_u32(0);
            let call = Event::HostCall {
                import,
                args,
                results,
                writes: vec![],
                reads: vec![],
                read_digest: 0,
            };
            parts.events.insert(6, call);
            parts.end.events += 1;
            parts.end.host_call_counts[0] += 1;
        })
    };
    let args = || vec![RawValue::I32(7), RawValue::F32(7)];
    let results = || vec![RawValue::I32(7)];
    assert_eq!(second_call(args(), results()), []);
    assert_eq!(second_call(results(), results()), [Rule::Signatures]);
    assert_eq!(second_call(args(), args()), [Rule::Signatures]);
}

#[test]
fn event_counts() {
    assert_eq!(mutated(|parts| parts.end.events += 1), [Rule::EventCounts]);
    assert_eq!(
        mutated(|parts| parts.end.host_call_counts[1] = 0),
        [Rule::EventCounts]
    );
    assert_eq!(
        mutated(|parts| parts.end.host_call_counts.truncate(1)),
        [Rule::EventCounts]
    );
}

#[test]
fn ending() {
    assert_eq!(
        mutated(|parts| parts.end.ending = Ending::Exited { code: 4 }),
        [Rule::Ending]
    );
    assert_eq!(
        mutated(|parts| parts.end.ending = Ending::Returned),
        [Rule::Ending]
    );
    let frames_after_return = |parts: &mut Parts| {
        parts.end.ending = Ending::Returned;
        parts.events[6] = Event::Leave { results: vec![] };
        parts.end.host_call_counts[1] = 0;
    };
    assert_eq!(mutated(frames_after_return), [Rule::Ending]);
    let not_an_exit = |parts: &mut Parts| {
        if let Event::HostStop { outcome, .. } = &mut parts.events[6] {
            *outcome = HostStop::Error("no".into());
        }
    };
    assert_eq!(mutated(not_an_exit), [Rule::Ending]);
}

#[test]
fn open() {
    assert_eq!(
        mutated(|parts| parts.end.frames[1].standing = Standing::NotEntered),
        [Rule::Open]
    );
    assert_eq!(
        mutated(|parts| parts.counts.counts.functions[0].open[0].1 = 2),
        [Rule::Open]
    );
    let zero = |parts: &mut Parts| {
        parts.counts.counts.functions[1]
            .open
            .push((BlockId::from_u32(0), 0));
    };
    assert_eq!(mutated(zero), [Rule::Open]);
    let descending = |parts: &mut Parts| {
        let open = &mut parts.counts.counts.functions[0].open;
        open.push((BlockId::from_u32(1), 1));
        let frame = parts.end.frames[2];
        parts.end.frames.push(frame);
    };
    assert_eq!(mutated(descending), [Rule::Open]);
}

/// Checks that a hostile file cannot cause an endless report.
#[test]
fn findings_are_limited_per_rule() {
    let (dir, mut end) = (tempfile::tempdir().unwrap(), sample::end());
    let path = dir.path().join("a.aft");
    let writer = TraceWriter::create(&path, Existing::Kept).unwrap();
    writer.log().unwrap().finish().unwrap();
    end.host_call_counts = vec![5; 1000];
    end.ending = Ending::StackOverflow;
    end.events = 0;
    writer.end(&end).unwrap();
    let findings = TraceFile::open(&path).unwrap().verify().findings;
    assert_eq!(findings.len(), 10);
    assert_eq!(findings[9].rule, Rule::EventCounts);
}
