//! Tests imports that the caller provides. Their writes are found by comparing memory.

use afterimage_record::{HostFunction, RecordOptions};
use afterimage_trace::{Ending, Event, RawValue};

use crate::harness::{exact, invoke, quiet, wat};

const GUEST: &str = r#"(module
  (import "env" "fill" (func $fill (param i32 i64) (result i32)))
  (memory (export "memory") 1)
  (func (export "sum") (param $n i32) (result i32) (local $i i32) (local $sum i32)
    (loop $again
      (local.set $sum (i32.add (local.get $sum)
        (call $fill (i32.mul (local.get $i) (i32.const 8)) (i64.extend_i32_u (local.get $i)))))
      (local.set $sum (i32.add (local.get $sum)
        (i32.load (i32.mul (local.get $i) (i32.const 8)))))
      (br_if $again (i32.lt_u
        (local.tee $i (i32.add (local.get $i) (i32.const 1))) (local.get $n))))
    (local.get $sum)))"#;

/// Returns options with a host function. The function writes the square of its second argument at
/// the address in its first argument, and returns the number of its calls.
fn options() -> RecordOptions {
    let mut calls = 0;
    let fill = HostFunction::new("env", "fill", move |memory, args| {
        let [RawValue::I32(at), RawValue::I64(value)] = *args else {
            return Err("other arguments".to_owned());
        };
        if value == 9 {
            return Err("nine is too much".to_owned());
        }
        calls += 1;
        let square = (value * value) as u32;
        memory[at as usize..at as usize + 4].copy_from_slice(&square.to_le_bytes());
        Ok(vec![RawValue::I32(calls)])
    });
    RecordOptions {
        functions: vec![fill],
        ..quiet()
    }
}

#[test]
fn what_they_write_is_recorded_and_repeated() {
    let recording = exact(&wat(GUEST), &invoke("sum", &["5"]), &options());
    let (calls, squares) = (1 + 2 + 3 + 4 + 5, 1 + 4 + 9 + 16);
    assert_eq!(recording.recorded.results, [RawValue::I32(calls + squares)]);
    let written: Vec<_> = recording
        .file
        .log()
        .expect("a log")
        .filter_map(|event| match event.expect("an event") {
            Event::HostCall { writes, .. } => Some(writes),
            _ => None,
        })
        .collect();
    // Zero squared changes nothing.
    assert!(written[0].is_empty());
    assert_eq!(
        (written[4][0].address, written[4][0].bytes.as_slice()),
        (32, &[16][..])
    );
}

#[test]
fn one_that_fails_ends_the_run_there() {
    let recording = exact(&wat(GUEST), &invoke("sum", &["12"]), &options());
    let message = "nine is too much".to_owned();
    assert_eq!(*recording.ending(), Ending::HostError { message });
}
