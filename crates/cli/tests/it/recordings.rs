//! Damaged and hostile recordings lead to a refusal, or to the same answer as before the damage;
//! never to another answer, never to a panic.

use afterimage_trace::{Kind, SectionReader, TraceFile};

use crate::common::{HELLO, Ran, Sandbox};

const COMMANDS: [&str; 3] = [
    "info FILE",
    "verify FILE",
    "profile FILE --by edge --format csv",
];

fn recorded() -> Sandbox {
    let sandbox = Sandbox::new();
    sandbox.write("hello.wat", HELLO);
    assert_eq!(sandbox.run("record hello.wat").code, Some(3));
    sandbox.ok("profile hello.aft");
    sandbox
}

fn asked(sandbox: &Sandbox, command: &str) -> Ran {
    let mut ran = sandbox.run(&command.replace("FILE", "damaged.aft"));
    assert!(matches!(ran.code, Some(0 | 1 | 125)), "{command}: {ran:?}");
    assert!(!ran.stderr.contains("panicked"), "{command}: {ran:?}");
    if ran.code == Some(125) {
        // Intact parts are reported before damaged ones.
        if command.starts_with("info") {
            ran.stdout.clear();
        }
        ran.is_refusal(command, 125, &["damaged.aft"]);
    }
    ran
}

/// Replaces a damaged recording by a repaired copy, with the command that the refusal names.
fn repair(sandbox: &Sandbox, refusal: &str) {
    let named = refusal.split_once("with: afterimage ").expect(refusal).1;
    let named = named.lines().next().unwrap_or_default();
    let named = named.replace("FILE.aft", "damaged.aft");
    sandbox.ok(&named.replace("COPY.aft", "copy.aft"));
    std::fs::rename(sandbox.path("copy.aft"), sandbox.path("damaged.aft")).unwrap();
}

#[test]
fn a_bit_that_flipped_is_found_and_changes_no_answer() {
    let sandbox = recorded();
    let bytes = sandbox.read("hello.aft");
    let right = sandbox
        .ok("profile hello.aft --by edge --format csv")
        .stdout;
    for at in (0..bytes.len()).step_by(7) {
        let mut damaged = bytes.clone();
        damaged[at] ^= 1 << (at % 8);
        sandbox.write("damaged.aft", &damaged);
        let verify = asked(&sandbox, COMMANDS[1]);
        assert_ne!(verify.code, Some(0), "byte {at}: {verify:?}");
        asked(&sandbox, COMMANDS[0]);
        let profile = asked(&sandbox, COMMANDS[2]);
        assert!(
            profile.code != Some(0) || profile.stdout == right,
            "byte {at}: {profile:?}"
        );
    }
}

#[test]
fn a_recording_cut_anywhere_is_what_it_was_before_or_is_refused() {
    let sandbox = recorded();
    let bytes = sandbox.read("hello.aft");
    let right = sandbox
        .ok("profile hello.aft --by edge --format csv")
        .stdout;
    let mut complete = 0;
    for length in (0..bytes.len()).step_by(11) {
        sandbox.write("damaged.aft", &bytes[..length]);
        asked(&sandbox, COMMANDS[0]);
        asked(&sandbox, COMMANDS[1]);
        let profile = asked(&sandbox, COMMANDS[2]);
        if profile.code == Some(0) {
            complete += 1;
            assert_eq!(profile.stdout, right, "cut at {length}");
            // A cut index hides the sections that it listed, until the file is repaired.
            if profile.stderr.contains("verify --repair") {
                repair(&sandbox, &profile.stderr);
            }
            sandbox.ok("verify damaged.aft");
        }
    }
    assert!(
        complete > 0,
        "cut in what was appended, the recording is there"
    );
}

#[test]
fn a_path_that_is_damaged_is_built_again() {
    let sandbox = recorded();
    let bare = sandbox.read("hello.aft").len();
    let right = sandbox.ok("trace hello.aft").stdout;
    let bytes = sandbox.read("hello.aft");
    let mut refused = 0;
    for at in (bare..bytes.len()).step_by(19) {
        let mut damaged = bytes.clone();
        damaged[at] ^= 1 << (at % 8);
        sandbox.write("damaged.aft", &damaged);
        let ran = asked(&sandbox, "trace FILE");
        if ran.code == Some(0) {
            assert_eq!(ran.stdout, right, "byte {at}");
            continue;
        }
        if ran.stderr.contains("verify --repair") {
            repair(&sandbox, &ran.stderr);
            assert_eq!(sandbox.ok("trace damaged.aft").stdout, right, "byte {at}");
            continue;
        }
        assert!(ran.stderr.contains("--again"), "byte {at}: {ran:?}");
        refused += 1;
        sandbox.ok("build --lens paths --again damaged.aft");
        assert_eq!(sandbox.ok("trace damaged.aft").stdout, right, "byte {at}");
    }
    assert!(refused > 3, "{refused} of {} bytes", bytes.len() - bare);
}

#[test]
fn files_that_only_look_like_recordings() {
    let sandbox = Sandbox::new();
    sandbox.write("empty.aft", "");
    sandbox.write("random.aft", [0x9c, 0x11, 0xfe, 0x07].repeat(64));
    sandbox.write("label.aft", b"\x89AFT");
    sandbox.write("zeros.aft", [b"\x89AFT".as_slice(), &[0; 500]].concat());
    sandbox.write("ones.aft", [b"\x89AFT".as_slice(), &[0xff; 500]].concat());
    for (file, part) in [
        ("empty.aft", "empty"),
        ("random.aft", "not a recording"),
        ("label.aft", ""),
        ("zeros.aft", ""),
        ("ones.aft", ""),
    ] {
        for command in COMMANDS {
            sandbox.refused(&command.replace("FILE", file), 125, &[file, part]);
        }
    }
}

#[test]
fn counts_are_made_again_when_only_they_are_lost() {
    let sandbox = recorded();
    let with = sandbox.read("hello.aft");
    sandbox.run("record -o bare.aft hello.wat");
    let bare = sandbox.read("bare.aft");
    sandbox.write("damaged.aft", &with[..bare.len().min(with.len()) + 20]);
    let info = sandbox.ok("info damaged.aft");
    assert!(
        info.stdout.contains("lenses    none yet") && info.stdout.contains("ignored"),
        "{info:?}"
    );
    sandbox.ok("profile damaged.aft");
    sandbox.ok("verify damaged.aft");
    assert!(
        sandbox
            .ok("info damaged.aft")
            .stdout
            .contains("lenses    counts")
    );
}

#[test]
fn a_recording_that_cannot_be_written_is_still_profiled() {
    let sandbox = recorded();
    sandbox.run("record -o bare.aft hello.wat");
    let right = sandbox.ok("profile hello.aft --format csv").stdout;
    let ran = sandbox.shell("$AFTERIMAGE profile /dev/fd/3 --format csv 3<bare.aft");
    assert!(
        ran.code == Some(0) && ran.stdout == right || ran.code == Some(125),
        "{ran:?}"
    );
    assert!(!ran.stderr.contains("panicked"), "{ran:?}");
}

/// Every command that adds something to a recording.
const ADDING: [&str; 5] = [
    "profile FILE",
    "build --lens paths --again FILE",
    "build --lens full --again FILE",
    "simulate --branch-predictor bimodal FILE",
    "slice FILE --at _start --save another",
];

/// Makes a recording with every kind of section.
fn with_everything() -> Sandbox {
    let sandbox = recorded();
    sandbox.ok("build --lens full hello.aft");
    sandbox.ok("simulate --branch-predictor gshare hello.aft");
    sandbox.ok("slice hello.aft --at _start --save kept");
    sandbox
}

/// Returns the readable sections of a recording.
fn readable(sandbox: &Sandbox, file: &str) -> Vec<(Kind, Vec<u8>)> {
    let Ok(file) = TraceFile::open(&sandbox.path(file)) else {
        return vec![];
    };
    let sections = (0..).map_while(|position| file.section(position));
    let read = |mut section: SectionReader| {
        let mut bytes = Vec::new();
        while section.advance().is_ok_and(|more| more) {
            bytes.extend(section.bytes());
        }
        (section.kind(), bytes)
    };
    sections.map(read).collect()
}

/// Adding to a file with small damage either refuses, names the remedy and leaves the file
/// unchanged, or loses nothing that was readable.
#[test]
fn adding_to_a_damaged_recording_loses_nothing() {
    let sandbox = with_everything();
    let bytes = sandbox.read("hello.aft");
    let slice = sandbox.ok("slice hello.aft --saved kept").stdout;
    let (mut added, mut refused) = (0, 0);
    // Damage the last footer, its index, and other places.
    let places = [bytes.len() - 5, bytes.len() - 60];
    let places = places
        .into_iter()
        .chain((20..bytes.len()).step_by(bytes.len() / 20));
    for (number, at) in places.enumerate() {
        let mut damaged = bytes.clone();
        damaged[at] ^= 1 << (at % 8);
        damaged.extend(&b"rubbish"[..number % 3]);
        for command in ADDING {
            sandbox.write("damaged.aft", &damaged);
            let before = readable(&sandbox, "damaged.aft");
            let ran = sandbox.run(&command.replace("FILE", "damaged.aft"));
            let what = format!("byte {at}, {command}: {ran:?}");
            assert!(!ran.stderr.contains("panicked"), "{what}");
            if sandbox.read("damaged.aft") == damaged {
                refused += usize::from(ran.stderr.contains("verify --repair"));
                continue;
            }
            added += 1;
            let mut after = readable(&sandbox, "damaged.aft");
            for section in before {
                let found = after.iter().position(|it| *it == section);
                let found = found.unwrap_or_else(|| panic!("{} is lost: {what}", section.0));
                after.swap_remove(found);
            }
        }
        // Data can be added to the repaired copy, and it still has the slice, unless the slice was
        // damaged.
        sandbox.write("damaged.aft", &damaged);
        let _ = std::fs::remove_file(sandbox.path("copy.aft"));
        let repaired = sandbox.run("verify --repair damaged.aft -o copy.aft");
        assert_eq!(sandbox.read("damaged.aft"), damaged);
        if repaired.code == Some(0) && !repaired.stderr.contains("section") {
            panic!("it says how many sections: {repaired:?}");
        }
        if repaired.code == Some(0)
            && !repaired.stderr.contains("is left out")
            && !repaired.stderr.contains("is cut")
        {
            assert_eq!(sandbox.ok("slice copy.aft --saved kept").stdout, slice);
            sandbox.ok("simulate --branch-predictor bimodal copy.aft");
        }
    }
    assert!(
        added > 10 && refused > 10,
        "{added} added, {refused} refused"
    );
}

/// The remains of an interrupted addition are removed, with a message.
#[test]
fn what_an_interrupted_addition_left_is_removed_aloud() {
    let sandbox = recorded();
    let bytes = sandbox.read("hello.aft");
    sandbox.ok("build --lens paths hello.aft");
    let more = sandbox.read("hello.aft");
    sandbox.write("torn.aft", &more[..bytes.len() + 100]);
    let ran = sandbox.ok("build --lens paths torn.aft");
    assert!(ran.stderr.contains("removed 100 bytes"), "{ran:?}");
    assert_eq!(sandbox.read("torn.aft"), more);
}

/// Native code in the cache with a changed bit is compiled again, and foreign files there stay.
#[test]
fn cached_code_that_is_damaged_is_not_executed() {
    let sandbox = Sandbox::new();
    let body = (0..10_000).map(|i| format!(
        "(func $f{i} (param i32) (result i32) (i32.add (i32.mul (local.get 0) (i32.const {i})) (i32.load (i32.and (i32.rotl (local.get 0) (i32.const 3)) (i32.const 255)))))"
    ));
    let calls = (0..10_000).map(|i| format!("(local.set 0 (call $f{i} (local.get 0)))"));
    sandbox.wasm(
        "big.wasm",
        &format!(
            "(module (memory 1) {} (func (export \"f\") (result i32) (local i32) {} (local.get 0)))",
            body.collect::<String>(),
            calls.collect::<String>()
        ),
    );
    let record = "record --invoke f --force -o big.aft big.wasm";
    let right = sandbox.ok(record);
    sandbox.write("cache/thesis.txt", "mine");
    let kept = || {
        let files = std::fs::read_dir(sandbox.path("cache/code")).unwrap();
        Vec::from_iter(files.map(|file| file.unwrap().path()))
    };
    let files = kept();
    assert_eq!(
        files.len(),
        1,
        "it takes long enough to compile that it is kept"
    );
    let sound = std::fs::read(&files[0]).unwrap();
    for times in 1..=10usize {
        let mut damaged = sound.clone();
        for bit in 0..12 {
            let at = (times * 7919 + bit * 104_729) * 131 % damaged.len();
            damaged[at] ^= 1 << (bit % 8);
        }
        std::fs::write(&files[0], &damaged).unwrap();
        let ran = sandbox.ok(record);
        // The size of the file varies by a few bytes with the time of day.
        let said = |text: &str| text.split(" (").next().map(str::to_owned);
        assert_eq!(
            (ran.stdout, said(&ran.stderr)),
            (right.stdout.clone(), said(&right.stderr))
        );
        assert!(
            kept()
                .iter()
                .all(|file| std::fs::read(file).unwrap() != damaged)
        );
    }
    assert_eq!(sandbox.read("cache/thesis.txt"), b"mine");
}
