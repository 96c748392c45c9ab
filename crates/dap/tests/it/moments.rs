//! Checks that stacks and variables at random moments equal the stacks and variables in reports of
//! `state`.

use std::sync::atomic::AtomicBool;

use afterimage::debugger::{Position, with_debugger};
use afterimage::{Session, StateQuery};
use afterimage_replay::state::Limits;
use serde_json::json;

use crate::client::Client;
use crate::programs::{Random, recording};

/// Compares stacks and variables at `count` moments of a run.
fn holds(level: &str, rounds: &str, count: usize) {
    let folder = tempfile::tempdir().unwrap();
    let at = recording(&folder, level, &[rounds]);
    let session = Session::open(&at).unwrap();
    let asked = Session::open(&at).unwrap();
    let mut random = Random(count as u64);
    let mut compared = 0;
    with_debugger(&session, &AtomicBool::new(false), |debugger| {
        for _ in 0..count {
            let time = 1 + random.below(debugger.length());
            let state = asked.state(&StateQuery::new(format!("t={time}")))?.report;
            let position = debugger.position(&format!("t={time}"))?;
            let (frames, open) = debugger.stack(position, 400)?;
            assert_eq!(open, state.open);
            for frame in &state.frames {
                let own = frames.iter().filter(|one| one.number == frame.number);
                let own = Vec::from_iter(own);
                let last = own.last().unwrap();
                assert_eq!((&last.name, last.entered), (&frame.name, frame.entered));
                assert_eq!(
                    (last.time, last.offset),
                    (frame.time, frame.offset),
                    "t={time}"
                );
                let inlined = own[..own.len() - 1].iter().map(|one| one.name.clone());
                let calls = frame.inlined.iter().map(|one| one.name.clone());
                assert_eq!(Vec::from_iter(inlined), Vec::from_iter(calls), "t={time}");
                if frame.number == 0 {
                    let line =
                        |line: &afterimage::profile::SourceLine| (line.path.clone(), line.line);
                    assert_eq!(
                        own[0].line.as_ref().map(line),
                        frame.line.as_ref().map(line)
                    );
                }
                if frame.library && frame.number > 0 {
                    continue;
                }
                let shown = debugger.inspect(position, frame.number + 1, |inspection| {
                    inspection.variables(frame.number, &Limits::default())
                })?;
                let shown = shown.map(|all| Vec::from_iter(all.into_iter().map(|(one, _)| one)));
                assert_eq!(shown, frame.variables, "t={time}, frame {}", frame.number);
                compared += frame.variables.as_ref().map_or(0, Vec::len);
            }
        }
        Ok(())
    })
    .unwrap();
    assert!(compared > count, "{compared} variables");
}

#[test]
fn two_hundred_of_a_short_run() {
    holds("0", "20", 200);
}

#[test]
fn two_hundred_of_a_long_run_that_is_followed_from_snapshots() {
    holds("0", "20000", 200);
}

#[test]
fn some_of_an_optimised_program() {
    holds("2", "20000", 60);
}

#[test]
fn a_client_is_shown_the_same() {
    let folder = tempfile::tempdir().unwrap();
    let at = recording(&folder, "0", &["20"]);
    let mut client = Client::at(&at);
    let asked = Session::open(&at).unwrap();
    let length = asked.ensure_path().unwrap().length();
    let mut random = Random(3);
    let mut compared = 0;
    for _ in 0..100 {
        let time = 1 + random.below(length);
        client.console(&format!("goto t={time}"));
        client.stopped();
        let state = asked
            .state(&StateQuery::new(format!("t={time}")))
            .unwrap()
            .report;
        let frames = client.frames();
        let shown = frames
            .iter()
            .filter(|one| one["presentationHint"] != "label");
        let mut shown = shown.filter(|one| one["presentationHint"] != "subtle");
        for frame in state
            .frames
            .iter()
            .filter(|frame| !frame.library && frame.inlined.is_empty())
        {
            let own = shown.find(|one| one["name"] == frame.name).unwrap();
            if let Some(line) = &frame.line {
                assert_eq!(own["line"], line.line, "t={time}");
                assert!(
                    own["source"]["path"]
                        .as_str()
                        .unwrap()
                        .ends_with(&line.path)
                );
            }
            let locals = client.locals(own["id"].as_u64().unwrap());
            let Ok(variables) = &frame.variables else {
                continue;
            };
            for (variable, local) in variables.iter().zip(&locals) {
                let name = match variable.name.as_str() {
                    "" => "(unnamed)",
                    name => name,
                };
                assert_eq!(local["name"], name);
                if let Ok(value) = &variable.value
                    && !value.contains('…')
                    && !local["value"].as_str().unwrap().contains('…')
                    && variable.written.is_none()
                {
                    assert_eq!(local["value"], *value, "t={time}: {}", variable.name);
                    compared += 1;
                }
            }
        }
    }
    assert!(compared > 100, "{compared}");
    client.done("disconnect", json!({}));
}

#[test]
fn positions_are_written_as_commands_take_them() {
    let folder = tempfile::tempdir().unwrap();
    let session = Session::open(&recording(&folder, "0", &["20"])).unwrap();
    with_debugger(&session, &AtomicBool::new(false), |debugger| {
        let mut random = Random(9);
        for _ in 0..50 {
            let time = 1 + random.below(debugger.length());
            let at = debugger.position(&format!("t={time}"))?;
            assert_eq!(debugger.position(&debugger.written(at)?)?, at);
        }
        assert!(
            debugger.last()?
                >= Position {
                    ahead: 0,
                    time: debugger.length(),
                    op: 0
                }
        );
        Ok(())
    })
    .unwrap();
}
