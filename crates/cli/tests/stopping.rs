//! Runs that are stopped from outside: Ctrl-C, --timeout, SIGTERM, kill -9.

mod common;

use std::fs;
use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use common::{Ran, SPIN, Sandbox, eventually, signal, text};
use rustix::process::Signal;

/// Reads its standard input, and does not care.
const READER: &str = r#"(module
  (import "wasi_snapshot_preview1" "fd_write" (func $fd_write (param i32 i32 i32 i32) (result i32)))
  (import "wasi_snapshot_preview1" "fd_read" (func $fd_read (param i32 i32 i32 i32) (result i32)))
  (memory (export "memory") 1)
  (data (i32.const 0) "\10\00\00\00\06\00\00\00")
  (data (i32.const 16) "begun\n")
  (func $main (export "_start")
    (drop (call $fd_write (i32.const 1) (i32.const 0) (i32.const 1) (i32.const 8)))
    (drop (call $fd_read (i32.const 0) (i32.const 0) (i32.const 1) (i32.const 8)))))"#;

/// Starts a guest, and returns when it has said that it begins.
fn begun(command: &mut Command) -> Child {
    let mut child = command
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut line = String::new();
    BufReader::new(child.stdout.as_mut().unwrap())
        .read_line(&mut line)
        .unwrap();
    assert_eq!(line, "begun\n");
    child
}

fn ended(child: Child) -> Ran {
    let ran = text(child.wait_with_output().unwrap());
    assert!(!ran.stderr.contains("panicked"), "{ran:?}");
    ran
}

/// The recording repeats, and its counts are exact: a counter in every block says the same.
fn is_exact(sandbox: &Sandbox, file: &str, ending: &str) {
    let info = sandbox.ok(&format!("info {file}"));
    assert!(info.stdout.contains(ending), "{info:?}");
    sandbox.ok(&format!("verify {file}"));
    sandbox.ok(&format!("profile {file} --mode slow"));
    sandbox.ok(&format!("verify {file}"));
}

#[test]
fn interrupts_give_an_exact_profile_up_to_that_moment() {
    for (name, code, ending) in [
        (Signal::INT, 130, "stopped by Ctrl-C"),
        (Signal::TERM, 143, "stopped by"),
        (Signal::HUP, 143, "stopped by"),
    ] {
        let sandbox = Sandbox::new();
        sandbox.write("spin.wat", SPIN);
        let child = begun(&mut sandbox.command(["record", "spin.wat"]));
        signal(&child, name);
        let ran = ended(child);
        assert_eq!(ran.code, Some(code), "{ran:?}");
        is_exact(&sandbox, "spin.aft", ending);
        let csv = sandbox
            .ok("profile spin.aft --format csv --function spin")
            .stdout;
        let row: Vec<&str> = csv.lines().nth(1).unwrap().split(',').collect();
        assert_eq!((row[1], row[3]), ("spin", "1"), "{csv}");
        assert!(
            row[5].parse::<u64>().unwrap() > 0,
            "it had run for a while: {csv}"
        );
    }
}

#[test]
fn time_limits_give_an_exact_profile_too() {
    let sandbox = Sandbox::new();
    sandbox.write("spin.wat", SPIN);
    let ran = sandbox.run("record --timeout 0.1 spin.wat");
    assert_eq!(ran.code, Some(124), "{ran:?}");
    is_exact(&sandbox, "spin.aft", "stopped by the time limit");
    let ran = sandbox.run("record --lens counts --timeout 0.1 -o live.aft spin.wat");
    assert_eq!(ran.code, Some(124), "{ran:?}");
    is_exact(&sandbox, "live.aft", "stopped by the time limit");
    let ran = sandbox.run("profile --timeout 0.1 spin.wat");
    assert_eq!(ran.code, Some(0), "{ran:?}");
    assert!(
        ran.stdout.contains("spin") && ran.stderr.contains("time limit"),
        "{ran:?}"
    );
}

#[test]
fn guests_that_wait_in_the_host_are_stopped_there() {
    let sandbox = Sandbox::new();
    sandbox.write("reader.wat", READER);
    let mut child = begun(
        sandbox
            .command(["record", "reader.wat"])
            .stdin(Stdio::piped()),
    );
    let input = child.stdin.take();
    signal(&child, Signal::INT);
    let ran = ended(child);
    assert_eq!(ran.code, Some(130), "{ran:?}");
    is_exact(&sandbox, "reader.aft", "stopped by Ctrl-C");
    drop(input);
    let child = begun(
        sandbox
            .command(["record", "--timeout", "0.1", "-o", "slow.aft", "reader.wat"])
            .stdin(Stdio::piped()),
    );
    let ran = ended(child);
    assert!(matches!(ran.code, Some(0 | 124)), "{ran:?}");
}

#[test]
fn a_second_interrupt_ends_the_process() {
    let sandbox = Sandbox::new();
    sandbox.write("spin.wat", SPIN);
    let mut child = begun(&mut sandbox.command(["record", "--no-clock", "spin.wat"]));
    signal(&child, Signal::INT);
    let mut hint = String::new();
    BufReader::new(child.stderr.as_mut().unwrap())
        .read_line(&mut hint)
        .unwrap();
    assert!(hint.contains("interrupt again"), "{hint}");
    signal(&child, Signal::INT);
    let ran = ended(child);
    assert_eq!(ran.code, Some(130), "{ran:?}");
    assert!(sandbox.ok("info spin.aft").stdout.contains("cut off"));
}

#[test]
fn without_the_clock_an_asynchronous_end_cannot_be_repeated_but_counted_live() {
    let sandbox = Sandbox::new();
    sandbox.write("reader.wat", READER);
    for lens in ["", "--lens counts"] {
        let words = format!("record --force --no-clock {lens} reader.wat");
        let mut child = begun(
            sandbox
                .command(words.split_whitespace())
                .stdin(Stdio::piped()),
        );
        let input = child.stdin.take();
        signal(&child, Signal::INT);
        let ran = ended(child);
        drop(input);
        assert_eq!(ran.code, Some(130), "stopped in the host call: {ran:?}");
        let verify = sandbox.ok("verify reader.aft");
        assert!(verify.stdout.contains("executed"), "{verify:?}");
        sandbox.ok("profile reader.aft");
    }
    sandbox.write(
        "deep.wat",
        "(module (func $f (call $f)) (export \"_start\" (func $f)))",
    );
    let ran = sandbox.run("record --no-clock deep.wat");
    assert_eq!(ran.code, Some(134), "{ran:?}");
    let verify = sandbox.ok("verify deep.aft");
    assert!(
        verify.stdout.contains("not re-executed") && verify.stdout.contains("--lens counts"),
        "{verify:?}"
    );
    sandbox.refused(
        "profile deep.aft",
        125,
        &["deep.aft", "stop clock", "--lens counts"],
    );
    let ran = sandbox.run("record --force --no-clock --lens counts deep.wat");
    assert_eq!(ran.code, Some(134), "{ran:?}");
    sandbox.ok("profile deep.aft");
    let info = sandbox.ok("info deep.aft").stdout;
    assert!(info.contains("calls deep)"), "{info}");
}

#[test]
fn interrupts_while_profiling_a_program_give_its_report() {
    let sandbox = Sandbox::new();
    sandbox.write("spin.wat", SPIN);
    let temporary = sandbox.path("temporary");
    fs::create_dir(&temporary).unwrap();
    let mut command = sandbox.command(["profile", "spin.wat"]);
    let mut child = command
        .env("TMPDIR", &temporary)
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut line = String::new();
    BufReader::new(child.stderr.as_mut().unwrap())
        .read_line(&mut line)
        .unwrap();
    assert_eq!(line, "begun\n", "the guest's output goes to standard error");
    signal(&child, Signal::INT);
    let ran = ended(child);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    assert!(ran.stdout.contains("inside 2 calls"), "{ran:?}");
    assert_eq!(
        fs::read_dir(&temporary).unwrap().count(),
        0,
        "the temporary recording is gone"
    );
}

#[test]
fn a_killed_recording_says_what_is_there() {
    let sandbox = Sandbox::new();
    sandbox.write("spin.wat", SPIN);
    let mut child = begun(&mut sandbox.command(["record", "spin.wat"]));
    let ran = sandbox.run("record spin.wat");
    ran.is_refusal("record beside a recorder", 125, &["spin.aft"]);
    let ran = sandbox.run("record --force spin.wat");
    ran.is_refusal(
        "record beside a recorder",
        125,
        &["spin.aft", "being written by another process"],
    );
    // It is not over, so nobody can say how it ended.
    let info = sandbox.ok("info spin.aft");
    let running = "ending    none yet: the program is still being recorded";
    assert!(info.stdout.contains(running), "{info:?}");
    for words in ["profile spin.aft", "build --lens full spin.aft"] {
        sandbox.refused(words, 125, &["spin.aft", "still being recorded"]);
    }
    signal(&child, Signal::KILL);
    child.wait().unwrap();
    let info = sandbox.ok("info spin.aft");
    assert!(
        info.stdout.contains("program   spin.wat") && info.stdout.contains("cut off"),
        "{info:?}"
    );
    let verify = sandbox.ok("verify spin.aft");
    assert!(
        verify.stdout.contains("cut off, and sound as far"),
        "{verify:?}"
    );
    assert!(verify.stdout.contains("its log ends after"), "{verify:?}");
    let json = sandbox.ok("info spin.aft --format json");
    let json: serde_json::Value = serde_json::from_str(&json.stdout).unwrap();
    assert!(
        json["ending"].is_null() && json["events"].is_null(),
        "{json}"
    );
    sandbox.refused("profile spin.aft", 125, &["spin.aft", "cut off"]);
    assert!(
        sandbox
            .ok("cfg spin.aft --function spin")
            .stdout
            .contains("back")
    );
}

#[test]
fn a_killed_recording_stays_sound_when_its_path_is_added() {
    let sandbox = Sandbox::new();
    sandbox.write("spin.wat", SPIN);
    let mut child = begun(&mut sandbox.command(["record", "--lens", "paths", "spin.wat"]));
    let size = || fs::metadata(sandbox.path("spin.aft")).map_or(0, |file| file.len());
    let before = size();
    // A half of the ring is handed over every few milliseconds.
    eventually(|| size() > before);
    std::thread::sleep(Duration::from_millis(100));
    // The run goes on, and its path is there already.
    let lines = |of: &str| of.lines().count();
    let live = sandbox.ok("trace spin.aft --from 50% --limit 5");
    assert_eq!(lines(&live.stdout), 1 + 5 + 1, "{live:?}");
    assert!(live.stderr.is_empty(), "{live:?}");
    signal(&child, Signal::KILL);
    child.wait().unwrap();
    let built_later = [
        "trace spin.aft --to 3000 --limit all",
        "trace spin.aft --from 1_000_000 --to 1_002_000 --reverse",
        "trace spin.aft --from 70_001 --to 70_900 --level path",
        "trace spin.aft --last 400",
    ];
    let from_words = built_later.map(|command| sandbox.ok(command).stdout);
    assert!(sandbox.ok("info spin.aft").stdout.contains("none yet"));
    sandbox.ok("build --lens paths spin.aft");
    for (command, before) in built_later.iter().zip(from_words) {
        assert_eq!(sandbox.ok(command).stdout, before, "{command}");
        assert!(lines(&before) > 1, "{command}: {before}");
    }
    let last = sandbox.ok("trace spin.aft --last 1 --format json");
    let head = last.stdout.lines().next().unwrap();
    let head: serde_json::Value = serde_json::from_str(head).unwrap();
    assert!(head["length"].as_u64() > Some(1_000_000), "{head}");
    assert!(
        head["left_out"]
            .as_str()
            .is_some_and(|text| !text.is_empty()),
        "{head}"
    );
    assert!(!last.stderr.contains("afterimage profile"), "{last:?}");
    let verify = sandbox.ok("verify spin.aft");
    assert!(verify.stdout.contains("sound as far"), "{verify:?}");
}

#[test]
fn a_recorder_that_is_killed_leaves_the_recording_that_it_was_to_replace() {
    let sandbox = Sandbox::new();
    sandbox.write("spin.wat", SPIN);
    let ran = sandbox.run("record --timeout 0.05 spin.wat");
    assert_eq!(ran.code, Some(124), "{ran:?}");
    let before = sandbox.read("spin.aft");
    let mut child = begun(&mut sandbox.command(["record", "--force", "spin.wat"]));
    signal(&child, Signal::KILL);
    child.wait().unwrap();
    assert_eq!(sandbox.read("spin.aft"), before);
    eventually(|| sandbox.names().iter().any(|name| name.ends_with(".part")));
    let ran = sandbox.run("record --force --timeout 0.05 spin.wat");
    assert_eq!(ran.code, Some(124), "{ran:?}");
}

/// Counts for long, and mostly in memory.
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
        // It may have ended already.
        let _ =
            rustix::process::kill_process(rustix::process::Pid::from_child(&child), Signal::INT);
        let ran = ended(child);
        match ran.code {
            Some(0) => break,
            Some(130) if ran.stderr.contains("it goes on from there") => windows += 1,
            Some(130) => assert!(ran.stderr.contains("nothing was added"), "{ran:?}"),
            // Before it looked for signals.
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
        "values FILE --at @LAST --instances last",
        "values FILE --at @LAST --stats",
    ] {
        let offset = sandbox
            .ok("values whole.aft --at _start --stats --format json")
            .stdout;
        let offset: serde_json::Value = serde_json::from_str(&offset).unwrap();
        let offset = offset["statements"][0]["offset"].as_u64().unwrap();
        let ask = |file: &str| {
            let words = question
                .replace("FILE", file)
                .replace("LAST", &format!("{offset:#x}"));
            sandbox.ok(&words).stdout
        };
        assert_eq!(ask("parts.aft"), ask("whole.aft"));
    }
}
