//! Handwritten executions, one for every kind of ending.

use afterimage_trace::{Ending, TrapCode};

use crate::harness::{exact, invoke, quiet, wat};

#[test]
fn recursion_returns() {
    let bytes = wat(afterimage_testkit::modules::HANDWRITTEN[0].1);
    let recording = exact(&bytes, &invoke("run", &["9"]), &quiet());
    assert_eq!(recording.ending(), &Ending::Returned);
}

#[test]
fn traps_some_frames_down() {
    let (_, text) = afterimage_testkit::modules::HANDWRITTEN.iter().find(|m| m.0 == "traps").unwrap();
    let codes = [
        TrapCode::Unreachable,
        TrapCode::DivisionByZero,
        TrapCode::MemoryOutOfBounds,
        TrapCode::IndirectCallToNull,
    ];
    for (kind, expected) in codes.into_iter().enumerate() {
        let recording = exact(&wat(text), &invoke("run", &[&kind.to_string()]), &quiet());
        assert!(matches!(recording.ending(), Ending::Trapped { code, .. } if *code == expected), "{:?}", recording.ending());
    }
}
