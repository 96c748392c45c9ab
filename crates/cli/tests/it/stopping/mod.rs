//! Tests runs that are stopped from outside, by Ctrl-C, --timeout, SIGTERM and kill -9.

mod builds;
mod killed;

use std::fs;
use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use rustix::process::Signal;

use crate::common::{CHATTY, Ran, SPIN, Sandbox, eventually, signal, text};

/// Reads its standard input, and ignores it.
const READER: &str = r#"(module
  (import "wasi_snapshot_preview1" "fd_write" (func $fd_write (param i32 i32 i32 i32) (result i32)))
  (import "wasi_snapshot_preview1" "fd_read" (func $fd_read (param i32 i32 i32 i32) (result i32)))
  (memory (export "memory") 1)
  (data (i32.const 0) "\10\00\00\00\06\00\00\00")
  (data (i32.const 16) "begun\n")
  (func $main (export "_start")
    (drop (call $fd_write (i32.const 1) (i32.const 0) (i32.const 1) (i32.const 8)))
    (drop (call $fd_read (i32.const 0) (i32.const 0) (i32.const 1) (i32.const 8)))))"#;

/// Starts a guest, and returns when the guest has printed that it begins.
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

/// Checks that the recording can be repeated, and that its counts equal those of a counter in every
/// block.
fn is_exact(sandbox: &Sandbox, file: &str, ending: &str) {
    let info = sandbox.ok(&format!("info {file}"));
    assert!(info.stdout.contains(ending), "{info:?}");
    sandbox.ok(&format!("verify {file}"));
    sandbox.ok(&format!("profile {file} --mode slow"));
    sandbox.ok(&format!("verify {file}"));
}

/// However little memory a re-execution has, it ends like the recording, or is refused for lack of
/// memory. Without room for the stack, the engine omits it, and a stop looks like a trap.
#[test]
fn with_little_memory_a_stop_is_a_stop_or_refused() {
    let sandbox = Sandbox::new();
    sandbox.write("spin.wat", SPIN);
    sandbox.run("record --timeout 0.2 spin.wat");
    let (mut sound, mut refused) = (0, 0);
    // Two memories take 8.2 GiB of addresses, and the stack takes half a GiB. A small arena has no
    // room for them.
    for mebibytes in (8_500..9_500).step_by(50) {
        let ran = sandbox.shell(&format!(
            "ulimit -v {}; MIMALLOC_ARENA_RESERVE=65536 exec $AFTERIMAGE verify spin.aft",
            mebibytes * 1024
        ));
        match ran.code {
            Some(0) => sound += 1,
            // Without any memory, the process may end in any way.
            Some(125) | None => refused += 1,
            _ => panic!("{mebibytes} MiB: {ran:?}"),
        }
    }
    assert!(sound > 0 && refused > 0, "{sound} {refused}");
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

/// Returns a guest that prints that it begins, and then does the same thing repeatedly.
fn that_calls(body: &str) -> String {
    format!(
        r#"(module
  (import "wasi_snapshot_preview1" "fd_write" (func $fd_write (param i32 i32 i32 i32) (result i32)))
  (import "wasi_snapshot_preview1" "sched_yield" (func $sched_yield (result i32)))
  (import "wasi_snapshot_preview1" "clock_time_get" (func $clock_time_get (param i32 i64 i32) (result i32)))
  (import "wasi_snapshot_preview1" "poll_oneoff" (func $poll_oneoff (param i32 i32 i32 i32) (result i32)))
  (memory (export "memory") 1)
  (data (i32.const 0) "\10\00\00\00\06\00\00\00")
  (data (i32.const 16) "begun\n")
  (func $print (drop (call $fd_write (i32.const 1) (i32.const 0) (i32.const 1) (i32.const 8))))
  (func $sleep (param $clock i32) (param $until i64) (param $flags i32) (param $events i32) (param $happened i32)
    (i32.store (i32.const 80) (local.get $clock))
    (i64.store (i32.const 88) (i64.add (local.get $until) (i64.const 100000000000)))
    (i32.store16 (i32.const 104) (local.get $flags))
    (drop (call $poll_oneoff (i32.const 64) (local.get $events) (i32.const 1) (local.get $happened))))
  (func $now (param $clock i32) (result i64)
    (drop (call $clock_time_get (local.get $clock) (i64.const 1) (i32.const 40)))
    (i64.load (i32.const 40)))
  (func $main (export "_start") (call $print) (loop $again {body} (br $again))))"#
    )
}

/// Whatever the host does for a guest, a stop request ends the run in an orderly way. This covers
/// all kinds of sleep, unread output and, without the stop clock, calls that do not wait.
#[test]
fn a_request_is_heard_in_every_host_call() {
    let calls = [
        ("(call $print)", true),
        ("(call $print)", false),
        ("(drop (call $sched_yield))", false),
        ("(drop (call $now (i32.const 1)))", false),
        (
            "(call $sleep (i32.const 1) (i64.const 0) (i32.const 0) (i32.const 128) (i32.const 192))",
            true,
        ),
        // There is no valid place for the result: 132 is not aligned for a 64-bit number, and the
        // other address is beyond memory.
        (
            "(call $sleep (i32.const 1) (i64.const 0) (i32.const 0) (i32.const 132) (i32.const 192))",
            true,
        ),
        (
            "(call $sleep (i32.const 0) (i64.const 0) (i32.const 0) (i32.const 128) (i32.const -4))",
            false,
        ),
        (
            "(call $sleep (i32.const 1) (call $now (i32.const 1)) (i32.const 1) (i32.const 128) (i32.const 192))",
            true,
        ),
        (
            "(call $sleep (i32.const 0) (call $now (i32.const 0)) (i32.const 1) (i32.const 128) (i32.const 192))",
            false,
        ),
    ];
    for (body, clock) in calls {
        let sandbox = Sandbox::new();
        sandbox.write("guest.wat", that_calls(body));
        let words = match clock {
            true => "record guest.wat",
            false => "record --no-clock guest.wat",
        };
        // Only the guest's first line of output is read before the guest ends.
        let mut child = begun(&mut sandbox.command(words.split_whitespace()));
        std::thread::sleep(Duration::from_millis(50));
        signal(&child, Signal::TERM);
        let start = Instant::now();
        while child.try_wait().unwrap().is_none() {
            if start.elapsed() > Duration::from_secs(20) {
                signal(&child, Signal::KILL);
                panic!("not stopped: {words}, {body}");
            }
            std::thread::sleep(Duration::from_millis(5));
        }
        let ran = ended(child);
        assert_eq!(ran.code, Some(143), "{words}, {body}: {ran:?}");
        is_exact(&sandbox, "guest.aft", "stopped by a request to terminate");
    }
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
    assert!(hint.contains("a second Ctrl-C"), "{hint}");
    // Repeating the first signal does not end the process.
    for name in [Signal::INT, Signal::TERM, Signal::HUP] {
        signal(&child, name);
    }
    eventually(|| {
        signal(&child, Signal::INT);
        child.try_wait().unwrap().is_some()
    });
    let ran = ended(child);
    assert_eq!(ran.code, Some(130), "{ran:?}");
    assert!(sandbox.ok("info spin.aft").stdout.contains("cut off"));
}

/// `timeout` sends two signals, a shell's `kill 0` several, and a closed terminal its own.
#[test]
fn signals_that_come_together_keep_the_ending() {
    let sandbox = Sandbox::new();
    sandbox.write("spin.wat", SPIN);
    // After compilation, the other runs are quick.
    let all = [Signal::TERM, Signal::HUP, Signal::INT];
    for (number, first) in all.into_iter().enumerate() {
        for second in all {
            for lens in ["", "--lens paths"] {
                let words = format!("record --force {lens} -o run.aft spin.wat");
                let child = begun(&mut sandbox.command(words.split_whitespace()));
                // The third signal comes while the recording is being finished, or later.
                for (name, wait) in [(first, 0), (second, number as u64 * 2), (second, 5)] {
                    std::thread::sleep(Duration::from_millis(wait));
                    let id = rustix::process::Pid::from_child(&child);
                    let _ = rustix::process::kill_process(id, name);
                }
                let ran = ended(child);
                let code = if first == Signal::INT { 130 } else { 143 };
                // The code depends on which signal the kernel delivers first.
                let codes = [code, if second == Signal::INT { 130 } else { 143 }];
                assert!(codes.map(Some).contains(&ran.code), "{ran:?}");
                let info = sandbox.ok("info run.aft").stdout;
                assert!(info.contains("stopped by"), "{first:?} {second:?} {info}");
                if !lens.is_empty() {
                    assert!(info.contains("blocks"), "the path is made: {info}");
                }
            }
        }
    }
    sandbox.ok("verify run.aft");
}

/// Moving a file over an unfinished recording keeps both files.
#[test]
fn a_recording_that_is_replaced_while_it_is_made_is_kept() {
    let sandbox = Sandbox::new();
    sandbox.write("spin.wat", SPIN);
    let child = begun(&mut sandbox.command(["record", "spin.wat"]));
    sandbox.write("other", "theirs");
    fs::rename(sandbox.path("other"), sandbox.path("spin.aft")).unwrap();
    signal(&child, Signal::INT);
    let ran = ended(child);
    assert_eq!(ran.code, Some(125), "{ran:?}");
    assert_eq!(ran.stderr.lines().count(), 1, "{ran:?}");
    assert_eq!(sandbox.read("spin.aft"), b"theirs");
    let names = sandbox.names();
    let kept = names.iter().find(|name| name.ends_with(".part")).unwrap();
    assert!(
        ran.stderr
            .contains(&format!("a complete copy is in {kept}")),
        "{ran:?}"
    );
    is_exact(&sandbox, kept, "stopped by Ctrl-C");
}

/// When a terminal is closed, the output has no reader, and the shell sends its signal.
#[test]
fn a_terminal_that_is_closed_keeps_the_ending() {
    let sandbox = Sandbox::new();
    sandbox.write("spin.wat", SPIN);
    let mut child = begun(&mut sandbox.command(["record", "--lens", "paths", "spin.wat"]));
    drop((child.stdout.take(), child.stderr.take()));
    signal(&child, Signal::HUP);
    let ran = ended(child);
    assert_eq!(ran.code, Some(143), "{ran:?}");
    is_exact(&sandbox, "spin.aft", "stopped by a request to terminate");
    sandbox.write("chatty.wat", CHATTY);
    let ran = sandbox.shell("$AFTERIMAGE record chatty.wat | head -1");
    assert_eq!(ran.stdout, "x\n", "{ran:?}");
    is_exact(&sandbox, "chatty.aft", "returned");
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

/// A question waits while another process builds the data that it needs.
#[test]
fn first_questions_at_once_are_all_answered() {
    let sandbox = Sandbox::new();
    let counts = r#"(module (memory 1)
  (func (export "_start") (local $i i32)
    (loop $next
      (br_if $next (i32.lt_u (local.tee $i (i32.add (local.get $i) (i32.const 1))) (i32.const 200000))))))"#;
    sandbox.write("counts.wat", counts);
    sandbox.ok("record counts.wat");
    let questions = [
        "slice counts.aft --at end --address 0..7".to_owned(),
        "simulate counts.aft --branch-predictor bimodal".to_owned(),
        "why counts.aft --at _start#1".to_owned(),
        "slice counts.aft --at _start --save one".to_owned(),
        "slice counts.aft --at _start --forward --save two".to_owned(),
        "trace counts.aft --limit 3".to_owned(),
    ];
    let children = questions.each_ref().map(|words| {
        let mut command = sandbox.command(words.split_whitespace());
        command.stdout(Stdio::piped()).stderr(Stdio::piped());
        command.spawn().unwrap()
    });
    for (child, words) in children.into_iter().zip(&questions) {
        let ran = ended(child);
        let refused = ran.stderr.contains("being written");
        assert!(ran.code == Some(0) && !refused, "{words}: {ran:?}");
    }
    sandbox.ok("verify counts.aft");
    sandbox.ok("slice counts.aft --saved one");
    sandbox.ok("slice counts.aft --saved two");
}

/// Returns a guest that counts, prints the count, and traps where the engine cannot identify the
/// trapping operator.
fn traps_late(count: u32, operators: &str) -> String {
    format!(
        r#"(module
          (import "wasi_snapshot_preview1" "fd_write" (func $fd_write (param i32 i32 i32 i32) (result i32)))
          (memory (export "memory") 1)
          (global $g (mut i32) (i32.const 0))
          (data (i32.const 0) "\10\00\00\00\06\00\00\00")
          (data (i32.const 16) "begun\n")
          (func (export "_start") (local $i i32)
            (drop (i32.load (i32.const 32)))
            (loop $again
              (i32.store (i32.const 64) (local.get $i))
              (br_if $again (i32.lt_u (local.tee $i (i32.add (local.get $i) (i32.const 1))) (i32.const {count}))))
            (drop (call $fd_write (i32.const 1) (i32.const 0) (i32.const 1) (i32.const 8)))
            {operators}))"#
    )
}

#[test]
fn looking_for_what_trapped_is_interrupted_and_the_recording_stays() {
    let two = "(drop (i32.load (i32.const 8))) (drop (i32.load (local.get $i)))";
    let nowhere =
        "(global.set $g (i32.add (i32.add (i32.load (local.get $i)) (i32.const 5)) (i32.const 7)))";
    for (operators, placed) in [(two, true), (nowhere, false)] {
        let sandbox = Sandbox::new();
        sandbox.write("late.wat", traps_late(600_000_000, operators));
        let child = begun(&mut sandbox.command(["record", "late.wat"]));
        // The run ends at once, but repeating it takes a second.
        std::thread::sleep(Duration::from_millis(100));
        signal(&child, Signal::INT);
        let ran = ended(child);
        assert_eq!(ran.code, Some(134), "{ran:?}");
        assert!(ran.stderr.contains("was interrupted"), "{ran:?}");
        if placed {
            assert!(ran.stderr.contains("not the load that trapped"), "{ran:?}");
            is_exact(&sandbox, "late.aft", "trapped: memory access out of bounds");
        } else {
            assert!(ran.stderr.contains("as if it had been cut off"), "{ran:?}");
            sandbox.ok("info late.aft");
            sandbox.ok("verify late.aft");
        }
    }
}

#[test]
fn what_looks_for_what_trapped_is_not_kept_in_the_cache() {
    let sandbox = Sandbox::new();
    let filler = "(drop (i32.const 0))".repeat(360_000);
    let operators =
        format!("{filler} (drop (i32.load (i32.const 8))) (drop (i32.load (local.get $i)))");
    sandbox.wasm("large.wasm", &traps_late(9_999_999, &operators));
    let ran = sandbox.run("record large.wasm");
    assert_eq!(ran.code, Some(134), "{ran:?}");
    assert_eq!(ran.stderr.lines().count(), 1, "{ran:?}");
    assert!(fs::read_dir(sandbox.path("cache")).unwrap().count() <= 1);
}

/// Returns a guest that takes a long time to compile, and then runs forever.
fn slow_to_compile() -> String {
    let mut text = String::from("(module (memory 1)");
    for k in 0..4 {
        text.push_str("(func (param i64 i64 i64 i64) (result i64)");
        for i in 0..30_000 {
            let (to, a, b) = (i % 4, (i * 7 + 1) % 4, (i * 5 + 2) % 4);
            let at = (i * 13 + k) % 60_000;
            text.push_str(&format!(
                "local.get {a} local.get {b} i64.mul local.get {a} i32.wrap_i64 i64.load offset={at} i64.add local.set {to}\n"
            ));
        }
        text.push_str("local.get 0)");
    }
    text.push_str(r#"(func (export "_start") (loop $on (br $on))))"#);
    text
}

#[test]
fn who_is_stopped_while_the_guest_is_compiled_says_that_nothing_ran() {
    let sandbox = Sandbox::new();
    sandbox.wasm("slow.wasm", &slow_to_compile());
    let is_there = || sandbox.names().iter().any(|name| name == "slow.aft");
    let ends = |ran: Ran, code: i32, ending: &str, says: &str| {
        assert_eq!(ran.code, Some(code), "{ran:?}");
        if is_there() {
            println!("SKIPPED: the guest was compiled before it could be stopped");
            is_exact(&sandbox, "slow.aft", ending);
            return fs::remove_file(sandbox.path("slow.aft")).unwrap();
        }
        assert!(ran.stderr.contains(says), "{ran:?}");
        assert_eq!(ran.stderr.lines().count(), 1, "{ran:?}");
    };
    let interrupted = "slow.wasm: nothing was recorded, because the guest had not begun";
    for (name, code, ending) in [
        (Signal::INT, 130, "stopped by Ctrl-C"),
        (Signal::TERM, 143, "stopped by"),
    ] {
        let mut command = sandbox.command(["record", "--force", "slow.wasm"]);
        let child = command.stderr(Stdio::piped()).stdout(Stdio::piped());
        let child = child.spawn().unwrap();
        // The file is created right before the guest is compiled.
        eventually(is_there);
        signal(&child, name);
        ends(ended(child), code, ending, interrupted);
    }
    let ran = sandbox.run("record --force --timeout 0.1 slow.wasm");
    let says = "slow.wasm: compilation took longer than the time limit, so nothing ran";
    ends(ran, 124, "stopped by the time limit", says);
}
