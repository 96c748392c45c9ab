//! Tests every command on recordings made to do harm. Each command must end soon, with a documented
//! exit code and a sentence, and without excessive memory.
//!
//! `AFTERIMAGE_HOSTILE=SEED..SEED` tries these seeds, with one recording each, instead of a few.
//! Failing recordings are kept beside the tests' temporary files.

mod mutate;
mod seeds;

use std::fs;
use std::ops::Range;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use afterimage_testkit::modules::SplitMix64;
use afterimage_trace::TraceFile;
use mutate::Parts;

use crate::common::{Ran, Sandbox, afterimage, text};

/// Commands that only read: FILE is the recording.
const READING: [&str; 64] = [
    "info FILE",
    "info FILE --sizes --format json",
    "verify --no-execute FILE",
    "slice FILE --saved kept",
    "slice FILE --at work --by statement --limit 9",
    "slice FILE --at work#last --forward --format json",
    "slice FILE --at work --algorithm nodes --format csv",
    "slice FILE --at work --algorithm edges --format dot",
    "why FILE --at work#last",
    "why FILE --trap",
    "why-not FILE --at work",
    "redundancy FILE --limit 9",
    "dataflow FILE --fact reaching:work",
    "slice FILE --saved kept --format json",
    "verify --no-execute --format json FILE",
    "trace FILE --limit 20",
    "trace FILE --level path --last 5",
    "trace FILE --level path --limit 200 --format json",
    "trace FILE --level call --limit 50",
    "trace FILE --level call --last 5",
    "trace FILE --level statement --limit 50",
    "trace FILE --level statement --last 5",
    "trace FILE --level memory --limit 50",
    "trace FILE --from 50% --reverse --limit 9",
    "trace FILE --from work --limit 9",
    "trace FILE --function work --limit 9",
    "trace FILE --format bin -o /dev/null --limit 5000",
    "trace FILE --level statement --format bin -o /dev/null --limit 5000",
    "values FILE --at work",
    "values FILE --at work --histogram",
    "values FILE --at work --instances last --format json",
    "values FILE --loads --limit 20",
    "values FILE --loads --each --limit 20",
    "values FILE --at work --var n",
    "deps FILE --at work",
    "deps FILE --at work --depth 30",
    "deps FILE --at work+0x10#2 --forward",
    "deps FILE --at work+0x10#last --depth 5 --format json",
    "state FILE --at end --globals",
    "state FILE --at 50%",
    "state FILE --at work#last --format json",
    "memory FILE --address 0..64",
    "memory FILE --address 16 --at 50%",
    "memory FILE --address 1024..1100 --all --limit 20",
    "addresses FILE --all --limit 20",
    "addresses FILE --at work",
    "addresses FILE --at work --stats",
    "simulate FILE --limit 9",
    "simulate FILE --by instruction --format json",
    "simulate FILE --at work",
    "simulate FILE --at work+0x10#last",
    "why FILE --stdout 0",
    "why FILE --stderr line:1",
    "match FILE FILE --limit 9",
    "diff FILE FILE",
    "simulate FILE --worst",
    "calls FILE",
    "calls FILE --function work",
    "paths FILE",
    "paths FILE --function work",
    "cfg FILE --function work",
    "cfg FILE --function work#1",
    "export FILE --format perfetto -o /dev/null",
    "export FILE --format collapsed -o /dev/null",
];
/// Commands that may execute the program again, or write.
const EXECUTING: [&str; 10] = [
    "verify FILE",
    "profile FILE",
    "profile FILE --by block --format json",
    "profile FILE --annotate",
    "profile FILE --format html",
    "build --lens paths --again FILE",
    "build --lens full --again FILE",
    "build --lens full --again --window 5..60 FILE",
    "build --lens full FILE",
    "simulate FILE --cache 1k,2,64 --branch-predictor gshare --again",
];

/// The memory limit in bytes, which is more than any recording needs.
const MOST_MEMORY: u64 = 1 << 30;
/// The time limit, which is longer than any command takes on a busy machine.
const LONGEST: Duration = Duration::from_secs(30);

/// Runs a command with limited memory and time.
fn limited(sandbox: &Sandbox, words: &str) -> (Option<Ran>, Duration) {
    let start = Instant::now();
    let line = format!(
        "ulimit -c 0; ulimit -d {}; exec \"$0\" \"$@\"",
        MOST_MEMORY >> 10
    );
    let mut command: Command = sandbox.any("sh");
    command
        .args(["-c", &line])
        .arg(afterimage())
        .args(words.split_whitespace())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    let child = command.spawn().unwrap();
    let id = rustix::process::Pid::from_raw(child.id() as i32).unwrap();
    let waiting = std::thread::spawn(move || text(child.wait_with_output().unwrap()));
    while !waiting.is_finished() {
        if start.elapsed() > LONGEST {
            let _ = rustix::process::kill_process(id, rustix::process::Signal::KILL);
            let _ = waiting.join();
            return (None, start.elapsed());
        }
        std::thread::sleep(Duration::from_millis(2));
    }
    (Some(waiting.join().unwrap()), start.elapsed())
}

/// Returns the fault in the way a command ended, if there is one.
fn complaint(words: &str, ran: &Ran) -> Option<String> {
    let Ran { code, stderr, .. } = ran;
    let unsound = words.starts_with("verify");
    if stderr.contains("panicked") {
        return Some("it panicked".to_owned());
    }
    if stderr.starts_with("error: ") {
        return Some("there is no such option".to_owned());
    }
    match code {
        Some(0) => None,
        Some(1) if unsound => None,
        Some(125 | 126) => {
            let last = stderr.lines().last().unwrap_or_default();
            let sentence = last.strip_prefix("afterimage: ");
            match sentence {
                Some(sentence) if !sentence.ends_with('.') => None,
                _ => Some("it does not say why in a sentence".to_owned()),
            }
        }
        code => Some(format!("exit code {code:?}")),
    }
}

/// Runs some commands on a recording that was tampered with in a way that the seed chooses.
fn try_seed(sandbox: &Sandbox, originals: &[Parts], seed: u64) -> Vec<String> {
    let mut random = SplitMix64(seed);
    let mut parts = originals[random.below(originals.len())].clone();
    let other = &originals[random.below(originals.len())];
    let changes = 1 + random.below(3);
    let changed = Vec::from_iter((0..changes).map(|_| parts.mutate(other, &mut random)));
    let mut bytes = parts.write(random.below(6) > 0);
    match random.below(16) {
        0 => mutate::change(&mut bytes, 0, &mut random),
        1 => mutate::change(&mut bytes, 4, &mut random),
        _ => {}
    }
    // With a different program, end or host answers, a run may take forever, like any recorded run.
    let endless = ["MODULE", "END", "LOG"];
    let executes = !changed
        .iter()
        .any(|what| endless.iter().any(|kind| what.contains(kind)));
    let mut commands = vec![READING[0], READING[2]];
    let has_path = !changed.iter().any(|what| what.contains("PATH"));
    if executes || parts.is_built() && has_path {
        commands.extend((0..3).map(|_| READING[random.below(READING.len())]));
    }
    if executes {
        commands.push(EXECUTING[random.below(EXECUTING.len())]);
    }
    let mut complaints = Vec::new();
    for command in commands {
        let name = format!("hostile-{seed}.aft");
        sandbox.write(&name, &bytes);
        let words = command.replace("FILE", &name);
        let (ran, took) = limited(sandbox, &words);
        let wrong = match &ran {
            None => Some(format!("it had not ended after {took:?}")),
            Some(ran) => complaint(&words, ran),
        };
        if let Some(wrong) = wrong {
            let kept = std::path::Path::new(env!("CARGO_TARGET_TMPDIR")).join(&name);
            fs::write(&kept, &bytes).unwrap();
            complaints.push(format!("{words}: {wrong} ({changed:?}): {ran:?}"));
        }
        fs::remove_file(sandbox.path(&name)).unwrap();
    }
    complaints
}

fn wanted() -> Range<u64> {
    let given = std::env::var("AFTERIMAGE_HOSTILE").ok();
    let given = given.as_deref().and_then(|text| text.split_once(".."));
    match given {
        Some((first, end)) => first.parse().unwrap()..end.parse().unwrap(),
        None => 0..120,
    }
}

#[test]
fn no_recording_does_harm() {
    let sandbox = Sandbox::new();
    let originals = seeds::recordings(&sandbox);
    let originals = originals.iter().map(|name| {
        let file = TraceFile::open(&sandbox.path(name)).unwrap();
        Parts::of(&file)
    });
    let originals = Vec::from_iter(originals);
    // A reassembled file equals the original.
    let commands = READING.iter().chain(&EXECUTING);
    for (command, parts) in commands.zip(originals.iter().cycle()) {
        sandbox.write("same.aft", parts.write(true));
        let words = command.replace("FILE", "same.aft");
        let (ran, _) = limited(&sandbox, &words);
        let ran = ran.unwrap_or_else(|| panic!("{words} does not end"));
        assert_eq!(complaint(&words, &ran), None, "{words}: {ran:?}");
    }
    let complaints = wanted().flat_map(|seed| try_seed(&sandbox, &originals, seed));
    let complaints = Vec::from_iter(complaints);
    assert!(complaints.is_empty(), "{}", complaints.join("\n\n"));
}
