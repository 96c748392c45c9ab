//! Checks that damage leads to a typed error or a finding, and never to a wrong answer.

use afterimage_ids::{FuncId, NodeId};
use afterimage_program::Program;
use afterimage_replay::whole_path::{RecordedPath, recorded_path, verify_path};
use afterimage_trace::{Kind, TraceFile, TraceWriter};
use afterimage_wpp::{CallEvent, Segments};

use crate::walk::{Options, Parts, walk};

struct Sample {
    module: Vec<u8>,
    program: Program,
    parts: Parts,
}

fn sample() -> Sample {
    let module = wat::parse_str(crate::EXCEPTIONS).unwrap();
    let program = Program::parse(&module).unwrap();
    let options = Options {
        blocks: 80,
        depth: 6,
        segment: 6,
        regular: false,
    };
    let parts = walk(&program, 1, options);
    let (segments, nodes) = (parts.segments.len(), parts.directory.nodes.len());
    assert!(
        segments > 1 && nodes > 5,
        "{segments} segments, {nodes} nodes"
    );
    Sample {
        module,
        program,
        parts,
    }
}

/// Returns all executed nodes, in order, or `None` if a segment cannot be read.
fn executed(path: &RecordedPath) -> Option<Vec<(NodeId, u64)>> {
    let mut cursor = path.cursor();
    let mut visits = Vec::new();
    while let Some(visit) = cursor.next().ok()? {
        visits.push((visit.node, visit.start));
    }
    // Collect the same nodes backward.
    let mut back = Vec::new();
    while let Some(visit) = cursor.previous().ok()? {
        back.push((visit.node, visit.start));
    }
    back.reverse();
    assert_eq!(visits, back);
    Some(visits)
}

/// Returns the functions that are entered.
fn entered(path: &RecordedPath) -> Option<Vec<FuncId>> {
    let mut calls = path.calls(0, usize::MAX).ok()?;
    let mut entered = Vec::new();
    while let Some(event) = calls.next().ok()? {
        if let CallEvent::Enter { function, .. } = event {
            entered.push(function);
        }
    }
    Some(entered)
}

impl Sample {
    fn open(&self, file: &TraceFile) -> Option<RecordedPath> {
        recorded_path(file, &self.program).ok().flatten()
    }

    /// Checks that the file's path equals that of the sample, cannot be read, or leads to a
    /// finding.
    fn assert_never_wrong(&self, file: &TraceFile, what: &str) {
        let Some(path) = self.open(file) else { return };
        let (Some(visits), Some(calls)) = (executed(&path), entered(&path)) else {
            return;
        };
        let right = self.open(&self.parts.file()).unwrap();
        let same = Some(visits) == executed(&right)
            && Some(calls) == entered(&right)
            && path.segments().directory().nodes == right.segments().directory().nodes
            && path.segments().summaries() == right.segments().summaries();
        let report = verify_path(file, &self.program, &self.module).unwrap();
        assert!(same || !report.findings.is_empty(), "{what}");
    }
}

/// The chunks' checksums are right, so the decoders and the rules have to find the damage.
#[test]
fn flipped_bits_with_right_checksums_are_found() {
    let sample = sample();
    let mut found = 0;
    for kind in [Kind::PATHS, Kind::PATH_INDEX] {
        for bit in 0..8 * sample.parts.directory.encode().len() {
            let bytes = sample.parts.bytes(|of, bytes| {
                if of == kind && bit / 8 < bytes.len() {
                    bytes[bit / 8] ^= 1 << (bit % 8);
                }
            });
            let file = TraceFile::from_bytes(bytes).unwrap();
            sample.assert_never_wrong(&file, &format!("{kind}, bit {bit}"));
            let report = verify_path(&file, &sample.program, &sample.module).unwrap();
            found += usize::from(!report.findings.is_empty());
        }
    }
    assert!(found > 100);
}

/// The opened grammars are compared with the segments, so no difference goes unnoticed.
#[test]
fn every_flipped_bit_of_an_opened_grammar_is_found() {
    let mut sample = sample();
    sample.parts.grammars = true;
    let sound = sample.parts.file();
    let report = verify_path(&sound, &sample.program, &sample.module).unwrap();
    assert_eq!(report.findings, []);
    let path = sample.open(&sound).unwrap();
    assert!(path.segments().grammars().is_some());
    sample.parts.grammars = false;
    let without = sample.open(&sample.parts.file()).unwrap();
    assert!(without.segments().grammars().is_none());
    assert_eq!(executed(&path), executed(&without));
    sample.parts.grammars = true;
    let longest = std::cell::Cell::new(0);
    let _ = sample.parts.bytes(|kind, bytes| {
        if kind == Kind::PATH_GRAMMARS {
            longest.set(longest.get().max(bytes.len()));
        }
    });
    for bit in 0..8 * longest.get() {
        let bytes = sample.parts.bytes(|kind, bytes| {
            if kind == Kind::PATH_GRAMMARS && bit / 8 < bytes.len() {
                bytes[bit / 8] ^= 1 << (bit % 8);
            }
        });
        let file = TraceFile::from_bytes(bytes).unwrap();
        let report = verify_path(&file, &sample.program, &sample.module).unwrap();
        assert!(!report.findings.is_empty(), "bit {bit}");
        // Reading the file anyway gives its contents or an error.
        if let Some(path) = sample.open(&file) {
            let _ = executed(&path);
        }
    }
}

#[test]
fn opened_grammars_hold_only_behind_their_path() {
    let mut sample = sample();
    sample.parts.grammars = true;
    let dir = tempfile::tempdir().unwrap();
    let at = dir.path().join("a.aft");
    std::fs::write(&at, sample.parts.bytes(|_, _| ())).unwrap();
    let grammars = |file: &TraceFile| sample.open(file).unwrap().segments().grammars();
    let before = TraceFile::open(&at).unwrap();
    let first = grammars(&before).unwrap();
    let index = before.last_whole(Kind::PATH_INDEX, 1 << 20).unwrap();
    let writer = TraceWriter::append(&at).unwrap();
    writer
        .whole(Kind::PATH_INDEX, None, &index.unwrap())
        .unwrap();
    writer.commit().unwrap();
    let rebuilt = TraceFile::open(&at).unwrap();
    assert_eq!(grammars(&rebuilt), None);
    let path = sample.open(&rebuilt).unwrap();
    path.segments().write_grammars(&writer).unwrap();
    writer.commit().unwrap();
    let again = TraceFile::open(&at).unwrap();
    assert!(grammars(&again).unwrap() > first);
    let all = executed(&sample.open(&again).unwrap());
    assert_eq!(all, executed(&path));
    let report = verify_path(&again, &sample.program, &sample.module).unwrap();
    assert_eq!(report.findings, []);
}

#[test]
fn sections_that_are_cut_short_with_right_checksums_are_refused() {
    let sample = sample();
    for kind in [Kind::PATHS, Kind::PATH_INDEX] {
        for length in 0..sample.parts.directory.encode().len() {
            let mut cut = false;
            let bytes = sample.parts.bytes(|of, bytes| {
                if of == kind {
                    bytes.truncate(length);
                }
            });
            cut |= bytes != sample.parts.bytes(|_, _| ());
            let file = TraceFile::from_bytes(bytes).unwrap();
            let report = verify_path(&file, &sample.program, &sample.module).unwrap();
            assert_eq!(cut, !report.findings.is_empty(), "{kind}, {length} bytes");
            let path = sample.open(&file);
            let readable = path.as_ref().and_then(executed);
            assert_eq!(cut, readable.is_none(), "{kind}, {length} bytes");
        }
    }
}

/// Checks damage to the file itself.
#[test]
fn a_file_that_is_cut_or_damaged_has_the_path_or_none() {
    let sample = sample();
    let bytes = sample.parts.bytes(|_, _| ());
    for length in 0..bytes.len() {
        if let Ok(file) = TraceFile::from_bytes(bytes[..length].to_vec()) {
            sample.assert_never_wrong(&file, &format!("cut at {length}"));
        }
    }
    for at in 0..bytes.len() {
        let mut bytes = bytes.clone();
        bytes[at] ^= 1 << (at % 8);
        if let Ok(file) = TraceFile::from_bytes(bytes) {
            sample.assert_never_wrong(&file, &format!("byte {at}"));
        }
    }
}
