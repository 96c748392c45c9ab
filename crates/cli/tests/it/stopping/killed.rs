//! Tests killed recorders, and runs that continue.

use std::fs;
use std::path::Path;
use std::process::Child;
use std::time::Duration;

use afterimage_ids::grouped;
use afterimage_trace::{Existing, Kind, TraceFile, TraceWriter};
use rustix::process::Signal;

use super::begun;
use crate::common::{SPIN, Sandbox, eventually, signal};

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
        &["spin.aft", "is writing the trace file"],
    );
    // The run is not over, so its end is unknown.
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
        verify.stdout.contains("cut off, but sound as far"),
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
    // Half of the ring is written every few milliseconds.
    eventually(|| size() > before);
    std::thread::sleep(Duration::from_millis(100));
    // The run continues, and its path is already there.
    let lines = |of: &str| of.lines().count();
    let live = sandbox.ok("trace spin.aft --from 50% --limit 5");
    assert_eq!(lines(&live.stdout), 1 + 5 + 1, "{live:?}");
    assert!(live.stderr.is_empty(), "{live:?}");
    signal(&child, Signal::KILL);
    child.wait().unwrap();
    let built_later = [
        "trace spin.aft --to 3000 --limit all",
        "trace spin.aft --from 1_002_000 --to 1_000_000 --reverse",
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

/// Returns a program that computes forever. It sometimes requests bytes from the host, which select
/// one of 64 paths, so that its path soon becomes long.
fn asking() -> String {
    let ways = 0..64;
    let begins = String::from_iter(ways.clone().map(|_| "(block "));
    let names = String::from_iter(ways.clone().map(|way| format!("{way} ")));
    let ends = ways.map(|way| {
        format!(") (local.set $s (i32.add (local.get $s) (i32.const {way}))) (br $next)")
    });
    let ends = String::from_iter(ends);
    format!(
        r#"(module
  (import "wasi_snapshot_preview1" "fd_write" (func $fd_write (param i32 i32 i32 i32) (result i32)))
  (import "wasi_snapshot_preview1" "random_get" (func $random_get (param i32 i32) (result i32)))
  (memory (export "memory") 1)
  (data (i32.const 0) "\10\00\00\00\06\00\00\00")
  (data (i32.const 16) "begun\n")
  (func $work (param $n i32) (result i32) (local $s i32)
    (loop $again
      (block $next
        {begins}
          (br_table {names} (i32.and (i32.load8_u offset=64 (i32.and (local.get $n) (i32.const 0x3ff))) (i32.const 63)))
        {ends})
      (br_if $again (local.tee $n (i32.sub (local.get $n) (i32.const 1)))))
    (local.get $s))
  (func (export "_start") (local $i i32)
    (drop (call $fd_write (i32.const 1) (i32.const 0) (i32.const 1) (i32.const 8)))
    (loop $again
      (drop (call $random_get (i32.const 64) (i32.const 1024)))
      (i32.store (i32.const 4096) (i32.add (i32.load (i32.const 4096)) (call $work (i32.const 20_000))))
      (br $again))))"#
    )
}

/// Records this program until its path has a few megabytes, and then stops the recorder.
pub(super) fn recorder_that_pauses(sandbox: &Sandbox) -> Child {
    sandbox.write("asking.wat", asking());
    let child = begun(&mut sandbox.command(["record", "--lens", "paths", "asking.wat"]));
    let chunks = |kind| {
        let file = TraceFile::open(&sandbox.path("asking.aft")).ok();
        let section = file.and_then(|file| file.last_begun(kind));
        section.map_or(0, |section| section.chunks())
    };
    // Each half of the ring has eight chunks, and one chunk of the log comes with it.
    eventually(|| chunks(Kind::PATH_WORDS) >= 2 * 8 && chunks(Kind::LOG) >= 2);
    signal(&child, Signal::STOP);
    // The data being written when the signal came is complete.
    let pid = Some(rustix::process::Pid::from_child(&child));
    rustix::process::waitpid(pid, rustix::process::WaitOptions::UNTRACED).unwrap();
    child
}

#[test]
fn a_run_that_goes_on_can_be_asked() {
    let sandbox = Sandbox::new();
    let mut child = recorder_that_pauses(&sandbox);
    let before = sandbox.read("asking.aft");
    let silent = sandbox.ok("trace asking.aft --level path --limit 3");
    assert_eq!(silent.stdout.lines().count(), 1 + 3 + 1, "{silent:?}");
    assert!(silent.stderr.is_empty(), "{silent:?}");
    let all = [
        "trace asking.aft --from work#3 --limit 3",
        "trace asking.aft --level call --limit 5",
        "trace asking.aft --level statement --from work#2 --limit 5",
        "calls asking.aft",
        "memory asking.aft --address 4096 --at work#3",
        "addresses asking.aft --at work --stats",
    ];
    let told = all.map(|words| {
        let ran = sandbox.ok(words);
        let process = format!("still being recorded by another process ({})", child.id());
        if cfg!(target_os = "linux") {
            assert!(ran.stderr.contains(&process), "{ran:?}");
        }
        ran.stdout
    });
    for words in [
        "state asking.aft --at 1000",
        "values asking.aft --at work",
        "deps asking.aft --at work",
        "profile asking.aft",
        "build --lens full asking.aft",
        "paths asking.aft --function work",
    ] {
        sandbox.refused(words, 125, &["asking.aft", "still being recorded", "ended"]);
    }
    assert!(sandbox.read("asking.aft") == before, "nobody writes to it");
    signal(&child, Signal::KILL);
    child.wait().unwrap();
    // The answers are the same as before.
    for (words, before) in all.iter().zip(told) {
        assert_eq!(sandbox.ok(words).stdout, before, "{words}");
    }
    sandbox.ok("state asking.aft --at work#3");
}

/// All values of a killed run are available, up to the end of the data in the file.
#[test]
fn a_killed_run_can_be_followed_as_far_as_its_path_goes() {
    let sandbox = Sandbox::new();
    let mut child = recorder_that_pauses(&sandbox);
    signal(&child, Signal::KILL);
    child.wait().unwrap();
    let whole = sandbox.read("asking.aft");
    // A full disk or a machine failure may cut the file anywhere.
    for part in [9, 7, 4] {
        sandbox.write("cut.aft", &whole[..whole.len() / 10 * part]);
        let built = sandbox.ok("build --lens full cut.aft");
        assert!(!built.stderr.contains("its log ends"), "{built:?}");
        let state = sandbox.ok("state cut.aft --at end");
        assert!(state.stdout.contains("work"), "{state:?}");
        sandbox.ok("trace cut.aft --level statement --last 3");
        sandbox.ok("memory cut.aft --address 4096");
        sandbox.ok("values cut.aft --at work --instances last");
        sandbox.ok("deps cut.aft --at work#last");
    }
    sandbox.ok("verify cut.aft");
}

/// Copies a recording without the end of its log, as older versions left recordings that were
/// killed.
fn without_end_of_log(file: &TraceFile, to: &Path) {
    let out = TraceWriter::create(to, Existing::Kept).unwrap();
    out.meta(&file.meta().unwrap()).unwrap();
    out.module(&file.module().unwrap()).unwrap();
    for kind in [Kind::LOG, Kind::PATH_WORDS] {
        let mut from = file.last_begun(kind).unwrap();
        let mut section = out.section(kind, from.name().unwrap()).unwrap();
        let chunks = match kind {
            Kind::LOG => from.chunks() / 2,
            _ => from.chunks(),
        };
        assert!(chunks > 0);
        for _ in 0..chunks {
            from.advance().unwrap();
            section.put(from.first(), from.bytes()).unwrap();
        }
    }
}

#[test]
fn where_the_log_ends_before_the_path_is_said() {
    let sandbox = Sandbox::new();
    let mut child = recorder_that_pauses(&sandbox);
    signal(&child, Signal::KILL);
    child.wait().unwrap();
    let whole = TraceFile::open(&sandbox.path("asking.aft")).unwrap();
    without_end_of_log(&whole, &sandbox.path("short.aft"));
    let time = |text: &str, before: &str| {
        let at = text.find(before).unwrap_or_else(|| panic!("{text}")) + before.len();
        let digits = text[at..].chars().filter(|&c| c != ',');
        let digits: String = digits.take_while(char::is_ascii_digit).collect();
        digits.parse::<u64>().unwrap_or_else(|_| panic!("{text}"))
    };
    // The run is followed without stored values.
    let refused = |words: &str, part: &str| {
        let ran = sandbox.run(words);
        assert_eq!(
            (ran.code, &*ran.stdout),
            (Some(125), ""),
            "{words}: {ran:?}"
        );
        let last = ran.stderr.lines().last().unwrap().to_owned();
        let parts = ["afterimage: short.aft: ", part];
        assert!(
            parts.iter().all(|part| last.contains(part)),
            "{words}: {last}"
        );
        last
    };
    let late = "trace short.aft --level statement --from 99% --limit 3";
    let log = time(&refused(late, "the recording was cut off"), "up to t=");
    assert!(log > 10_000);
    let early = format!(
        "trace short.aft --level statement --from {} --to {log}",
        log - 20
    );
    assert!(sandbox.ok(&early).stdout.lines().count() > 20);
    let up_to = format!("up to t={}", grouped(log));
    refused("memory short.aft --address 4096", &up_to);
    // With values, the answers are the same.
    let built = sandbox.ok("build --lens full short.aft");
    assert_eq!(time(&built.stderr, "its log ends at t="), log, "{built:?}");
    let path = time(&built.stderr, "its path at t=");
    assert!(path > log);
    sandbox.ok(&format!("state short.aft --at {log}"));
    sandbox.ok("values short.aft --at work --instances 1..3");
    sandbox.ok(&format!("memory short.aft --address 4096 --at {log}"));
    refused("state short.aft --at end", &format!("t={}", grouped(log)));
    let values = sandbox.ok("values short.aft --at work#last").stdout;
    assert!(
        values.contains(&format!("only from t=1 to t={}", grouped(log))),
        "{values}"
    );
    assert!(
        sandbox
            .ok("trace short.aft --last 3")
            .stdout
            .contains("cut off")
    );
    sandbox.ok("verify short.aft");
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
    let names = sandbox.names();
    let part = names.iter().find(|name| name.ends_with(".part")).unwrap();
    // The help names the file and its use.
    let help = sandbox.ok("record --help").stdout;
    assert!(help.contains(".part"), "{help}");
    let info = sandbox.ok(&format!("info {part}"));
    assert!(info.stdout.contains("cut off"), "{info:?}");
    fs::remove_file(sandbox.path(part)).unwrap();
    let ran = sandbox.run("record --force --timeout 0.05 spin.wat");
    assert_eq!(ran.code, Some(124), "{ran:?}");
}
