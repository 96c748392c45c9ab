//! Reads the path words of a live run from every position.

use afterimage_ids::{BlockId, EntityRef, FuncId, NodeId};
use afterimage_paths::{Counter, Cuts, ExecutedPath, PathPlan, Regenerator, Sink};
use afterimage_record::{
    CheckedWords, Interrupt, LivePath, RecordError, RecordOptions, verify_words,
};
use afterimage_testkit::modules::WANDERER;
use afterimage_trace::{Kind, TraceFile, TraceWriter};
use afterimage_wpp::{InMemory, WholePath};

use crate::harness::{Recording, invoke, open, quiet, try_record, wat};

/// Runs with more words than this are followed from a sample of positions.
const MOST_WORDS: usize = 4096;

/// Blocks in order, and the activations that begin and end.
#[derive(Default)]
struct StepLog {
    nodes: Vec<(FuncId, Vec<BlockId>)>,
    events: Vec<(u32, u32)>,
}

impl Sink for StepLog {
    fn define(&mut self, path: ExecutedPath<'_>) -> NodeId {
        self.nodes.push((path.function, path.blocks.to_vec()));
        NodeId::new(self.nodes.len() - 1)
    }

    fn path(&mut self, node: NodeId) {
        let (function, blocks) = &self.nodes[node.index()];
        let blocks = blocks.iter().map(|b| (function.as_u32(), b.as_u32()));
        self.events.extend(blocks);
    }

    fn enter(&mut self, function: FuncId) {
        self.events.push((function.as_u32(), u32::MAX));
    }

    fn leave(&mut self) {
        self.events.push((u32::MAX, u32::MAX));
    }
}

/// A call by the host or a written word, in order.
enum Item {
    Call(FuncId),
    Word(u64),
}

/// Reads the section's chunks as docs/FORMAT.md describes them.
fn items(file: &TraceFile) -> Vec<Item> {
    let Some(mut section) = file.last_begun(Kind::PATH_WORDS) else {
        return Vec::new();
    };
    let mut items = Vec::new();
    while section.advance().expect("a chunk") {
        let mut bytes = section.bytes();
        if bytes.is_empty() {
            break;
        }
        let mut number = || {
            let mut value = 0;
            for shift in (0..).step_by(7) {
                let byte = bytes[0];
                bytes = &bytes[1..];
                value |= u64::from(byte & 0x7f) << shift;
                if byte < 0x80 {
                    break;
                }
            }
            value
        };
        for _ in 0..number() {
            number();
        }
        for _ in 0..number() {
            items.push(Item::Call(FuncId::new(number() as usize)));
        }
        let words = bytes.chunks_exact(8);
        let words = words.map(|c| u64::from_le_bytes(c.try_into().expect("eight bytes")));
        items.extend(words.map(Item::Word));
    }
    items
}

/// Checks that counting agrees with regenerating after every word. Regenerating from that point
/// must continue as if it had started at the beginning.
pub fn check(recording: &Recording, blocks: &[(FuncId, BlockId)]) {
    let (program, file) = (&recording.program, &recording.file);
    let plan = PathPlan::new(program, None, Cuts::default()).expect("a plan");
    let items = items(file);
    let (mut counter, mut run) = (
        Counter::new(program, &plan),
        Regenerator::new(program, &plan),
    );
    let mut told = StepLog::default();
    let every = 1 + items.len() / MOST_WORDS;
    let mut moments = Vec::new();
    for (i, item) in items.iter().enumerate() {
        match *item {
            Item::Call(function) => {
                counter.host_call(function);
                run.host_call(function);
            }
            Item::Word(word) => {
                counter.feed(&[word]).expect("words of this run");
                run.feed(&[word], &mut told).expect("words of this run");
            }
        }
        if i % every == 0 {
            let waypoint = counter.waypoint().expect("a moment");
            assert_eq!(waypoint, run.waypoint(&mut told).expect("a moment"));
            assert!(counter.time() == run.time() && waypoint.time() == run.time());
            moments.push((i + 1, waypoint, told.events.len()));
        }
    }
    run.waypoint(&mut told).expect("a moment");
    let few = 1 + moments.len() / 24;
    for (from, waypoint, events) in moments.iter().step_by(few) {
        let mut run = Regenerator::resumed(program, &plan, waypoint).expect("a moment");
        let mut rest = StepLog::default();
        for item in &items[*from..] {
            match *item {
                Item::Call(function) => run.host_call(function),
                Item::Word(word) => run.feed(&[word], &mut rest).expect("words of this run"),
            }
        }
        run.waypoint(&mut rest).expect("a moment");
        assert!(rest.events == told.events[*events..], "from word {from} on");
    }
    verify_words(file, program, &recording.bytes).expect("sound words");
    stretches(recording, blocks);
}

/// Checks that stretches equal the corresponding parts of the whole path.
fn stretches(recording: &Recording, blocks: &[(FuncId, BlockId)]) {
    let Recording { program, file, .. } = recording;
    let live = LivePath::open(file, &recording.bytes, program).expect("a path");
    let Some(live) = live else { return };
    let length = blocks.len() as u64;
    assert_eq!(live.length(), length);
    for part in [
        (1, 1),
        (length, length),
        (1, length),
        (length / 3, length / 2),
    ] {
        let (first, last) = (part.0.max(1), part.1.min(length));
        if first > last {
            continue;
        }
        let stretch = live.stretch(first, last).expect("a stretch");
        let nodes = std::sync::Arc::new(stretch.directory.nodes);
        let path = WholePath::new(stretch.segments.into_iter().collect::<InMemory>(), nodes)
            .expect("segments");
        path.check().expect("sound segments");
        assert_eq!(path.length(), length);
        let mut cursor = path.cursor();
        let mut at = first;
        let mut visit = cursor.seek(first).expect("a position");
        while at <= last {
            let here = visit.expect("blocks to the end");
            let node = &path.nodes()[here.node];
            for (i, &block) in node.blocks.iter().enumerate() {
                let time = here.start + i as u64;
                assert_eq!(
                    (node.function, block),
                    blocks[time as usize - 1],
                    "t={time}"
                );
            }
            assert!(!node.blocks.is_empty(), "t={at} is left out");
            at = here.last() + 1;
            visit = cursor.next().expect("a step");
        }
    }
}

/// Rewrites the words with a changed first chunk. `change` receives its time in the file and its
/// bytes.
fn changed(recording: &Recording, change: impl Fn(&mut u64, &mut Vec<u8>)) -> TraceFile {
    changed_where(recording, |chunk, _| chunk == 1, change)
}

/// Changes the chunk selected by `is_it`, which receives the chunk's number from 1 and the total
/// number.
fn changed_where(
    recording: &Recording,
    is_it: impl Fn(usize, usize) -> bool,
    change: impl Fn(&mut u64, &mut Vec<u8>),
) -> TraceFile {
    let folder = tempfile::tempdir().expect("a folder");
    let at = folder.path().join("a.aft");
    std::fs::write(&at, &recording.whole).expect("a copy");
    let mut section = recording.file.last(Kind::PATH_WORDS).expect("words");
    let out = TraceWriter::append(&at).expect("a writer");
    let name = section.name().expect("a name").map(str::to_owned);
    let mut copy = out
        .section(Kind::PATH_WORDS, name.as_deref())
        .expect("a section");
    let chunks = section.chunks();
    for chunk in 1..=chunks {
        section.advance().expect("a chunk");
        let (mut first, mut bytes) = (section.first(), section.bytes().to_vec());
        if is_it(chunk, chunks) {
            change(&mut first, &mut bytes);
        }
        if chunk < chunks {
            copy.put(first, &bytes).expect("a chunk");
        }
    }
    let last = section.first();
    copy.finish(last, &[]).expect("the last chunk");
    out.commit().expect("a commit");
    open(&at)
}

#[test]
fn words_that_lie_are_found() {
    let live = RecordOptions {
        paths: true,
        ..quiet()
    };
    let command = invoke("wander", &["2000"]);
    let recording = try_record(&wat(WANDERER), &command, &live, &Interrupt::default());
    let recording = recording.unwrap_or_else(|error| panic!("{error}"));
    let verified = |file: &TraceFile| verify_words(file, &recording.program, &recording.bytes);
    assert!(matches!(
        verified(&changed(&recording, |_, _| {})),
        Ok(Some(CheckedWords { moments: 1.., .. }))
    ));
    // First, change the number of blocks in the chunk's header. Then change it in the waypoint,
    // too. Finally, change another number of the waypoint.
    let late = changed(&recording, |first, _| *first += 1);
    assert!(matches!(verified(&late), Err(RecordError::Words)));
    let later = changed(&recording, |first, bytes| {
        *first += 1;
        bytes[1] = 1;
    });
    let found = verified(&later);
    assert!(matches!(
        found,
        Err(RecordError::Moment { said: 1, found: 0 })
    ));
    let kept = changed(&recording, |_, bytes| bytes[2] = 2);
    assert!(matches!(
        verified(&kept),
        Err(RecordError::Moment { said: 0, found: 0 })
    ));
    let short = changed(&recording, |_, bytes| bytes.clear());
    assert!(matches!(verified(&short), Err(RecordError::Words)));
    // The chunk before the last, empty chunk contains no calls. Add a call after the numbers of the
    // waypoint.
    let is_last = |chunk, chunks| chunk + 1 == chunks;
    let called = changed_where(&recording, is_last, |_, bytes| {
        let mut calls = 1;
        for _ in 0..bytes[0] {
            calls += bytes[calls..]
                .iter()
                .position(|&byte| byte < 0x80)
                .expect("a number")
                + 1;
        }
        assert_eq!(bytes[calls], 0, "nobody is called");
        bytes[calls] = 1;
        bytes.insert(calls + 1, 0);
    });
    assert!(matches!(verified(&called), Err(RecordError::Regenerate(_))));
}
