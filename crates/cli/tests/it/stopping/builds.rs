//! Tests interrupted builds.

use std::fs;
use std::process::Stdio;
use std::time::Duration;

use afterimage_trace::{Kind, TraceFile, TraceWriter};
use rustix::process::Signal;

use super::ended;
use super::killed::recorder_that_pauses;
use crate::common::{HELLO, Sandbox, eventually, signal};

/// However an interrupted build ended, the recording is unchanged, and the build can be repeated.
#[test]
fn builds_that_are_interrupted_leave_a_sound_recording() {
    let sandbox = Sandbox::new();
    let mut child = recorder_that_pauses(&sandbox);
    signal(&child, Signal::CONT);
    signal(&child, Signal::INT);
    assert_eq!(child.wait().unwrap().code(), Some(130));
    let before = sandbox.read("asking.aft");
    for (lens, built) in [("paths", "paths"), ("full", "full")] {
        for (name, wait) in [(Signal::INT, 5), (Signal::KILL, 40), (Signal::TERM, 90)] {
            let mut child = sandbox
                .command(["build", "--lens", lens, "asking.aft"])
                .spawn()
                .unwrap();
            std::thread::sleep(Duration::from_millis(wait));
            signal(&child, name);
            let status = child.wait().unwrap();
            assert!(
                sandbox.read("asking.aft").starts_with(&before),
                "nothing that was there is changed"
            );
            // A process killed between the commit and the end has completed its addition.
            let file = TraceFile::open(&sandbox.path("asking.aft")).unwrap();
            let ignored = file.ignored_bytes() > 0;
            assert!(!(ignored && status.success()), "{status:?}");
            let info = sandbox.ok("info asking.aft");
            assert!(info.stdout.contains("stopped by Ctrl-C"), "{info:?}");
            let verify = sandbox.ok("verify --no-execute asking.aft");
            let told = verify
                .stdout
                .contains("that an interrupted process had begun to add");
            assert_eq!(told, ignored, "{verify:?}");
            assert_eq!(info.stdout.contains("leftover"), ignored, "{info:?}");
        }
        sandbox.ok(&format!("build --lens {lens} asking.aft"));
        let info = sandbox.ok("info asking.aft").stdout;
        assert!(info.contains(built), "{info}");
        sandbox.ok("verify --no-execute asking.aft");
    }
    sandbox.ok("verify asking.aft");
}

/// A new build replaces the old one only when it is complete.
#[test]
fn an_interrupted_build_again_keeps_what_was_there() {
    let sandbox = Sandbox::new();
    let mut child = recorder_that_pauses(&sandbox);
    signal(&child, Signal::CONT);
    signal(&child, Signal::INT);
    assert_eq!(child.wait().unwrap().code(), Some(130));
    sandbox.ok("build --lens full asking.aft");
    let before = sandbox.read("asking.aft");
    let mut interrupted = 0;
    for wait in [50, 100, 200, 400] {
        for (name, code) in [(Signal::INT, 130), (Signal::TERM, 143)] {
            let child = sandbox
                .command(["build", "--lens", "full", "--again", "asking.aft"])
                .stdout(Stdio::piped())
                .stderr(Stdio::piped())
                .spawn()
                .unwrap();
            std::thread::sleep(Duration::from_millis(wait));
            signal(&child, name);
            let ran = ended(child);
            match ran.code {
                Some(found) if found == code => {
                    let said = ran.stderr.contains("keeps its old values")
                        || ran.stderr.contains("nothing was added");
                    assert!(said, "{ran:?}");
                    assert!(sandbox.read("asking.aft") == before, "nothing is changed");
                    interrupted += 1;
                }
                // The command was complete by then.
                Some(0) => {
                    sandbox.write("asking.aft", &before);
                }
                // The process ended before it began to add anything.
                None => assert!(sandbox.read("asking.aft") == before),
                _ => panic!("{ran:?}"),
            };
        }
    }
    eprintln!("{interrupted} of 8 were interrupted");
    sandbox.ok("verify --no-execute asking.aft");
}

/// Counts for a long time, mostly in memory.
const COUNTS: &str = r#"(module
  (memory (export "memory") 1)
  (func (export "_start") (local $i i32)
    (loop $again
      (i32.store (i32.const 64) (i32.add (i32.load (i32.const 64)) (local.get $i)))
      (br_if $again (i32.lt_u (local.tee $i (i32.add (local.get $i) (i32.const 1))) (i32.const 6000000))))))"#;

#[test]
fn a_build_that_is_interrupted_goes_on_later() {
    let sandbox = Sandbox::new();
    sandbox.wasm("a.wasm", COUNTS);
    sandbox.ok("record --lens paths -o whole.aft a.wasm");
    fs::copy(sandbox.path("whole.aft"), sandbox.path("parts.aft")).unwrap();
    let mut windows = 0;
    for wait in [150, 300, 600, 1200] {
        let mut command = sandbox.command(["build", "--lens", "full", "parts.aft"]);
        let child = command
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn();
        let child = child.unwrap();
        std::thread::sleep(Duration::from_millis(wait));
        // The process may have ended already. Two signals in succession are one request.
        let _ =
            rustix::process::kill_process(rustix::process::Pid::from_child(&child), Signal::INT);
        std::thread::sleep(Duration::from_millis(20));
        let _ =
            rustix::process::kill_process(rustix::process::Pid::from_child(&child), Signal::INT);
        let ran = ended(child);
        match ran.code {
            Some(0) => break,
            Some(130) if ran.stderr.contains("continue from there") => windows += 1,
            Some(130) => assert!(ran.stderr.contains("nothing was added"), "{ran:?}"),
            // The process ended before it handled signals.
            None => {}
            _ => panic!("{ran:?}"),
        }
        sandbox.ok("verify parts.aft");
    }
    assert!(windows > 0, "no build was interrupted in the middle");
    sandbox.ok("build --lens full parts.aft");
    sandbox.ok("build --lens full whole.aft");
    sandbox.ok("verify parts.aft");
    for question in [
        "values FILE --at _start --instances last",
        "values FILE --at _start --instances 100..103",
        "deps FILE --at @0x41#4000000",
    ] {
        let ask = |file: &str| sandbox.ok(&question.replace("FILE", file)).stdout;
        assert_eq!(ask("parts.aft"), ask("whole.aft"));
    }
}

/// However early or late a signal ends `strip`, it leaves no unfinished file.
#[test]
fn strip_that_is_interrupted_leaves_nothing() {
    let sandbox = Sandbox::new();
    sandbox.write("hello.wat", HELLO);
    sandbox.run("record hello.wat");
    sandbox.ok("build --lens paths hello.aft");
    // The recording has bytes that stay and cannot be compressed, so that rewriting takes a while.
    let mut state = 1u64;
    let noise = std::iter::repeat_with(|| {
        state = state
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1);
        (state >> 56) as u8
    });
    let noise = Vec::from_iter(noise.take(64 << 20));
    let out = TraceWriter::append(&sandbox.path("hello.aft")).unwrap();
    out.whole(Kind::SOURCES, None, &noise).unwrap();
    out.commit().unwrap();
    drop(out);
    let before = sandbox.read("hello.aft");
    let names = sandbox.names();
    let mut interrupted = 0;
    for (words, begins, name, code) in [
        (&["strip", "hello.aft"][..], ".part", Signal::INT, 130),
        (&["strip", "hello.aft"], ".part", Signal::TERM, 143),
        (
            &["strip", "hello.aft", "-o", "b.aft"],
            "b.aft",
            Signal::INT,
            130,
        ),
        (
            &["strip", "hello.aft", "-o", "b.aft"],
            ".part",
            Signal::INT,
            130,
        ),
    ] {
        let mut command = sandbox.command(words);
        let mut child = command.stderr(Stdio::piped()).spawn().unwrap();
        eventually(|| {
            let begun = sandbox.names().iter().any(|name| name.ends_with(begins));
            begun || child.try_wait().unwrap().is_some()
        });
        // The process may have ended already.
        let _ = rustix::process::kill_process(rustix::process::Pid::from_child(&child), name);
        let ran = ended(child);
        if ran.code == Some(0) {
            // The command was complete by then.
            let _ = fs::remove_file(sandbox.path("b.aft"));
            sandbox.write("hello.aft", &before);
        } else {
            assert_eq!(ran.code, Some(code), "{ran:?}");
            assert!(ran.stderr.contains("was interrupted"), "{ran:?}");
            interrupted += 1;
        }
        assert_eq!(sandbox.names(), names, "{ran:?}");
        assert!(sandbox.read("hello.aft") == before, "nothing is changed");
    }
    eprintln!("{interrupted} of 4 were interrupted");
    assert!(interrupted > 0);
    sandbox.ok("strip hello.aft");
}
