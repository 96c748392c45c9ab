//! Tests of the library, on a recording that was stopped after 383 blocks.

mod questions;
mod snapshots;
mod stretches;

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use afterimage::present::{DependsOn, RedundancyOf, UsedBy};
use afterimage::profile::Scope;
use afterimage::{
    Cancel, DataflowQuery, DepsAlong, DepsDirection, DepsQuery, Monitor, Note, Reason, Recording,
    RecordingError, RedundancyQuery, Session, SliceAbout, SliceAlong, SliceQuery, StateQuery,
    WhyAbout, WhyNotQuery, WhyQuery, Work,
};
use questions::sent;

const BLOCKS: u64 = 383;

fn recording(folder: &tempfile::TempDir) -> PathBuf {
    let kept = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../xtask/freeze/forever.aft");
    let at = folder.path().join("forever.aft");
    fs::copy(kept, &at).unwrap();
    at
}

/// A monitor that keeps the reports that it receives.
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
    // A recording that was opened earlier sees the additions.
    assert_eq!(reading.path().unwrap().length(), BLOCKS);
    assert!(reading.values().is_ok());
}

/// Long work: its name, its total and the latest progress.
type Begun = (String, Option<u64>, Arc<AtomicU64>);

/// A monitor that keeps the total and the progress of each piece of work.
#[derive(Clone, Default)]
struct Totals(Arc<Mutex<Vec<Begun>>>);

impl Monitor for Totals {
    fn begin(&self, work: Work, total: Option<u64>) -> afterimage::Progress {
        let done = Arc::new(AtomicU64::new(0));
        let begun = (work.to_string(), total, Arc::clone(&done));
        self.0.lock().unwrap().push(begun);
        Arc::new(move |now| {
            let before = done.swap(now, Ordering::Relaxed);
            assert!(before <= now, "{work} went back from {before} to {now}");
        })
    }
}

#[test]
fn long_work_has_a_total_and_reports_progress_up_to_it() {
    let folder = tempfile::tempdir().unwrap();
    let at = recording(&folder);
    let totals = Totals::default();
    let session = Session::open_with(&at, totals.clone()).unwrap();
    session.ensure_path().unwrap();
    session.ensure_values(&AtomicBool::new(false)).unwrap();
    for fact in ["available:@0x6d", "reaching:@0x57", "available:step"] {
        let query = DataflowQuery {
            fact: fact.to_owned(),
            paths: 1,
            instances: 1,
        };
        session.dataflow(&query).unwrap();
    }
    for of in [RedundancyOf::Loads, RedundancyOf::Expressions] {
        let query = RedundancyQuery {
            of,
            function: None,
            top: None,
            ways: 0,
            own: false,
            by_path: true,
        };
        session.redundancy(&query).unwrap();
    }
    let why = WhyQuery {
        steps: 20,
        ..WhyQuery::new(WhyAbout::Statement {
            at: "@0x6e#100".to_owned(),
            operand: None,
        })
    };
    session.why(&why).unwrap();
    let begun = totals.0.lock().unwrap();
    let named = |name: &str| Vec::from_iter(begun.iter().filter(|one| one.0 == name));
    for one in [
        "following the values",
        "collecting path traces",
        "asking about each execution",
        "going back along the path",
        "looking for causes",
    ] {
        assert!(!named(one).is_empty(), "{one} of {begun:?}");
    }
    for (name, total, done) in begun.iter() {
        let done = done.load(Ordering::Relaxed);
        assert!(total.is_some_and(|total| done <= total), "{begun:?} {name}");
    }
    // All of the work is done, so the share is 1.
    let whole = |name: &str| {
        let all = named(name).into_iter();
        all.filter(|one| Some(one.2.load(Ordering::Relaxed)) == one.1)
            .count()
    };
    assert_eq!(whole("asking about each execution"), 3, "{begun:?}");
    assert!(whole("going back along the path") > 0, "{begun:?}");
    assert_eq!(whole("looking for causes"), 1, "{begun:?}");
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

#[test]
fn a_build_that_is_cancelled_adds_nothing_and_can_be_made_later() {
    let folder = tempfile::tempdir().unwrap();
    let session = Session::open(&recording(&folder)).unwrap();
    let cancel = Arc::new(Cancel::default());
    let cancelled = session.cancelled_by(Arc::clone(&cancel));
    let before = fs::read(session.at()).unwrap();
    cancel.stop();
    let error = cancelled.ensure_path().map(drop).unwrap_err();
    assert!(matches!(*error.why, Reason::Stopped("the path")), "{error}");
    let counted =
        |session: &Session| session.profile(|profile| Ok(profile.block_rows(&Scope::All)?));
    let error = counted(&cancelled).map(drop).unwrap_err().to_string();
    assert!(
        error.ends_with("building the counts was cancelled; nothing was added"),
        "{error}"
    );
    assert_eq!(fs::read(session.at()).unwrap(), before);
    cancel.allow();
    assert_eq!(cancelled.ensure_path().unwrap().length(), BLOCKS);
    assert!(counted(&cancelled).is_ok());
}

#[test]
fn dependences_are_the_same_from_both_ends_and_in_the_slice() {
    let folder = tempfile::tempdir().unwrap();
    let session = Session::open(&recording(&folder)).unwrap();
    let data = |at: &str, direction| DepsQuery {
        direction,
        along: DepsAlong::Data,
        ..DepsQuery::new(at)
    };
    let at = "@0x6e#2";
    let report = session.deps(&data(at, DepsDirection::Backward)).unwrap();
    let user = &report.statements[0];
    let slice = session
        .slice(&SliceQuery {
            along: SliceAlong::Data,
            depth: Some(1),
            ..SliceQuery::new(SliceAbout::Statement { at: at.to_owned() })
        })
        .unwrap();
    let mut compared = 0;
    for dependence in user.dependences.as_ref().unwrap() {
        let DependsOn::Operator(maker) = &dependence.from else {
            continue;
        };
        let mut sliced = slice.statements.iter();
        assert!(sliced.any(|one| one.offset == maker.offset), "{maker:?}");
        // Find the execution at that time among the first executions of the operator.
        let forward = (1..4).find_map(|number| {
            let at = format!("@{:#x}#{number}", maker.offset);
            let found = session.deps(&data(&at, DepsDirection::Forward)).unwrap();
            let one = found.statements.into_iter().next().unwrap();
            (one.execution.t == maker.t).then_some(one)
        });
        let users = forward.unwrap().users.unwrap();
        let is_it =
            |to: &UsedBy| matches!(to, UsedBy::Operator(by) if by.execution == user.execution);
        assert!(users.uses.iter().any(|one| is_it(&one.to)), "{users:?}");
        compared += 1;
    }
    assert!(compared > 0);
}

#[test]
fn a_state_and_what_was_not_executed_are_told() {
    let folder = tempfile::tempdir().unwrap();
    let session = Session::open(&recording(&folder)).unwrap();
    let state = session.state(&StateQuery::new("step#2")).unwrap();
    let open = state.report.frames.iter().map(|frame| frame.name.as_str());
    assert_eq!(Vec::from_iter(open), ["step", "_start"]);
    let refused = session.why_not(&WhyNotQuery::new("step")).unwrap_err();
    assert!(refused.to_string().contains("127 times"), "{refused}");
}

#[test]
fn questions_are_plain_data() {
    let at = "a.c:4#last".to_owned();
    sent(DepsQuery::new("@0x6e#2"));
    sent(WhyNotQuery::new("a.c:4"));
    sent(StateQuery::new("50%"));
    sent(SliceQuery::new(SliceAbout::Trap));
    sent(SliceQuery {
        chop: Some("f#2".to_owned()),
        ..SliceQuery::new(SliceAbout::Operand {
            at,
            operand: "left".to_owned(),
        })
    });
}
