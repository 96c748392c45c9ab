//! The library, on a recording that was stopped after 383 blocks.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex};

use afterimage::profile::Scope;
use afterimage::{
    Monitor, Note, Reason, Recording, RecordingError, Session, WhyAbout, WhyQuery, Work,
};

const BLOCKS: u64 = 383;

fn recording(folder: &tempfile::TempDir) -> PathBuf {
    let kept = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../xtask/freeze/forever.aft");
    let at = folder.path().join("forever.aft");
    fs::copy(kept, &at).unwrap();
    at
}

/// Writes down what it hears.
#[derive(Clone, Default)]
struct Heard(Arc<Mutex<Vec<String>>>);

impl Monitor for Heard {
    fn begin(&self, work: Work, _: Option<u64>) -> afterimage::Progress {
        self.0.lock().unwrap().push(work.to_string());
        Arc::new(|_| {})
    }

    fn note(&self, at: &Path, note: &Note) {
        self.0.lock().unwrap().push(note.about(at));
    }
}

#[test]
fn what_was_not_built_is_named_and_a_session_builds_it_once() {
    let folder = tempfile::tempdir().unwrap();
    let at = recording(&folder);
    let reading = Recording::open(&at).unwrap();
    assert!(matches!(reading.path(), Err(RecordingError::NoPath)));
    let heard = Heard::default();
    let session = Session::of(Recording::open(&at).unwrap(), heard.clone());
    assert_eq!(session.ensure_path().unwrap().length(), BLOCKS);
    session.ensure_values(&AtomicBool::new(false)).unwrap();
    session.ensure_values(&AtomicBool::new(false)).unwrap();
    let said = heard.0.lock().unwrap().join("\n");
    assert_eq!(said.matches("following the path").count(), 1, "{said}");
    assert_eq!(said.matches("following the values").count(), 1, "{said}");
    // Who opened the recording before sees what was added.
    assert_eq!(reading.path().unwrap().length(), BLOCKS);
    assert!(reading.values().is_ok());
}

#[test]
fn counts_agree_with_the_path() {
    let folder = tempfile::tempdir().unwrap();
    let session = Session::open(&recording(&folder)).unwrap();
    let executed = session.profile(|profile| {
        let blocks = profile.block_rows(&Scope::All)?;
        Ok(blocks.iter().map(|row| row.count).sum::<u64>())
    });
    assert_eq!(executed.unwrap(), BLOCKS);
    assert_eq!(session.ensure_path().unwrap().length(), BLOCKS);
}

#[test]
fn why_answers_and_what_is_not_there_is_refused_in_one_sentence() {
    let folder = tempfile::tempdir().unwrap();
    let session = Session::open(&recording(&folder)).unwrap();
    let about = |at: &str| {
        WhyQuery::new(WhyAbout::Statement {
            at: at.to_owned(),
            operand: None,
        })
    };
    let report = session.why(&about("@0x6e#2")).unwrap();
    assert_eq!(report.head.value, "2");
    assert!(!report.entries.is_empty());
    let json = serde_json::to_value(&report).unwrap();
    assert_eq!(json["value"], "2");
    let refused = session.why(&about("@0x6e#500")).unwrap_err().to_string();
    assert!(refused.contains("forever.aft"), "{refused}");
    assert!(!refused.contains('\n'), "{refused}");
}

#[test]
fn a_build_that_is_cancelled_says_how_to_go_on() {
    let folder = tempfile::tempdir().unwrap();
    let session = Session::open(&recording(&folder)).unwrap();
    session.ensure_path().unwrap();
    let error = session.ensure_values(&AtomicBool::new(true)).unwrap_err();
    assert!(matches!(*error.why, Reason::Cancelled { .. }), "{error}");
    session.ensure_values(&AtomicBool::new(false)).unwrap();
}
