//! Checks the declared reads and writes of WASI functions by calling all functions and observing
//! them.
//!
//! At its end, the guest passes all of its memory to `fd_write`. The recording contains the digest
//! of those bytes. So a re-execution in which the host writes one byte less, or a different byte,
//! differs from the recording.

use std::collections::BTreeMap;
use std::path::Path;

use afterimage_record::{
    Cache, Command, Interrupt, RecordError, RecordOptions, RecordedRun, check,
};
use afterimage_trace::{Ending, Event, Existing, RawValue, TraceFile, TraceWriter};

use crate::harness::{Recording, progress, quiet, start, try_record, wat};

/// Every WASI preview 1 function except `proc_exit`, with its parameter types. `w` is i32, and `l`
/// is i64.
const FUNCTIONS: &[(&str, &str)] = &[
    ("args_get", "ww"),
    ("args_sizes_get", "ww"),
    ("clock_res_get", "ww"),
    ("clock_time_get", "wlw"),
    ("environ_get", "ww"),
    ("environ_sizes_get", "ww"),
    ("fd_advise", "wllw"),
    ("fd_allocate", "wll"),
    ("fd_close", "w"),
    ("fd_datasync", "w"),
    ("fd_fdstat_get", "ww"),
    ("fd_fdstat_set_flags", "ww"),
    ("fd_fdstat_set_rights", "wll"),
    ("fd_filestat_get", "ww"),
    ("fd_filestat_set_size", "wl"),
    ("fd_filestat_set_times", "wllw"),
    ("fd_pread", "wwwlw"),
    ("fd_prestat_dir_name", "www"),
    ("fd_prestat_get", "ww"),
    ("fd_pwrite", "wwwlw"),
    ("fd_read", "wwww"),
    ("fd_readdir", "wwwlw"),
    ("fd_renumber", "ww"),
    ("fd_seek", "wlww"),
    ("fd_sync", "w"),
    ("fd_tell", "ww"),
    ("fd_write", "wwww"),
    ("path_create_directory", "www"),
    ("path_filestat_get", "wwwww"),
    ("path_filestat_set_times", "wwwwllw"),
    ("path_link", "wwwwwww"),
    ("path_open", "wwwwwllww"),
    ("path_readlink", "wwwwww"),
    ("path_remove_directory", "www"),
    ("path_rename", "wwwwww"),
    ("path_symlink", "wwwww"),
    ("path_unlink_file", "www"),
    ("poll_oneoff", "wwww"),
    ("proc_raise", "w"),
    ("random_get", "ww"),
    ("sched_yield", ""),
    ("sock_accept", "www"),
    ("sock_recv", "wwwwww"),
    ("sock_send", "wwwww"),
    ("sock_shutdown", "ww"),
];

/// Addresses in the guest: vectors to write, vectors to read into (two pairs), all of memory as a
/// vector, and subscriptions.
const OUT: i64 = 200;
const IN: i64 = 220;
const IN_AT: i64 = 260;
const ALL: i64 = 240;
const MOMENTS: i64 = 1024;
/// Strings, each as an address and a length.
const FILE: [i64; 2] = [100, 4];
const DIR: [i64; 2] = [110, 3];
const LINK: [i64; 2] = [120, 4];
const HARD: [i64; 2] = [130, 4];
const MOVED: [i64; 2] = [140, 5];
const MISSING: [i64; 2] = [150, 7];
/// An address outside memory.
const NOWHERE: i64 = 0xffff_ff00;
const ALL_RIGHTS: i64 = 0x1fff_ffff;

/// A call, as a function and its arguments.
type Call = (&'static str, Vec<i64>);

/// Returns calls to all functions, some of which succeed and some of which fail. The granted folder
/// has descriptor 3, and the opened file has descriptor 4.
fn calls() -> Vec<Call> {
    let mut calls: Vec<Call> = Vec::new();
    // Each call has its own place for results.
    let mut place = 0x4000;
    let mut add = |name: &'static str, args: &dyn Fn(i64) -> Vec<i64>| {
        calls.push((name, args(place)));
        place += 0x100;
    };
    let path = |before: &[i64], string: [i64; 2], after: &[i64]| [before, &string, after].concat();
    add("args_sizes_get", &|r| vec![r, r + 8]);
    add("args_get", &|r| vec![r, r + 64]);
    add("environ_sizes_get", &|r| vec![r, r + 8]);
    add("environ_get", &|r| vec![r, r + 64]);
    for clock in [0, 1, 2] {
        add("clock_res_get", &|r| vec![clock, r]);
        add("clock_time_get", &|r| vec![clock, 0, r]);
    }
    add("path_open", &|r| {
        path(&[3, 0], FILE, &[1, ALL_RIGHTS, ALL_RIGHTS, 0, r])
    });
    add("path_open", &|r| {
        path(&[3, 0], MISSING, &[0, ALL_RIGHTS, ALL_RIGHTS, 0, r])
    });
    add("path_open", &|r| {
        path(&[77, 0], FILE, &[0, ALL_RIGHTS, ALL_RIGHTS, 0, r])
    });
    for fd in [4, 1, 77] {
        add("fd_write", &|r| vec![fd, OUT, 2, r]);
        add("fd_pwrite", &|r| vec![fd, OUT, 1, 3, r]);
        add("fd_seek", &|r| vec![fd, 2, 0, r]);
        add("fd_tell", &|r| vec![fd, r]);
        add("fd_read", &|r| vec![fd, IN, 2, r]);
        add("fd_read", &|r| vec![fd, IN, 2, r]);
        add("fd_pread", &|r| vec![fd, IN_AT, 2, 1, r]);
        add("fd_advise", &|_| vec![fd, 0, 0, 0]);
        add("fd_allocate", &|_| vec![fd, 0, 10]);
        add("fd_datasync", &|_| vec![fd]);
        add("fd_sync", &|_| vec![fd]);
        add("fd_fdstat_get", &|r| vec![fd, r]);
        add("fd_fdstat_set_flags", &|_| vec![fd, 1]);
        add("fd_fdstat_set_rights", &|_| vec![fd, 0, 0]);
        add("fd_filestat_get", &|r| vec![fd, r]);
        add("fd_filestat_set_size", &|_| vec![fd, 9]);
        add("fd_filestat_set_times", &|_| vec![fd, 0, 0, 10]);
        add("fd_readdir", &|r| vec![fd, 0xc000, 1024, 0, r]);
        add("sock_accept", &|r| vec![fd, 0, r]);
        add("sock_recv", &|r| vec![fd, IN, 2, 0, r, r + 8]);
        add("sock_send", &|r| vec![fd, OUT, 2, 0, r]);
        add("sock_shutdown", &|_| vec![fd, 1]);
    }
    add("fd_seek", &|r| vec![4, 0, 2, r]);
    add("fd_read", &|r| vec![0, IN, 2, r]);
    add("fd_read", &|r| vec![0, IN, 2, r]);
    add("fd_prestat_get", &|r| vec![3, r]);
    add("fd_prestat_get", &|r| vec![4, r]);
    for length in [8, 40, 3] {
        add("fd_prestat_dir_name", &|r| vec![3, r, length]);
    }
    add("path_create_directory", &|_| path(&[3], DIR, &[]));
    add("path_create_directory", &|_| path(&[3], DIR, &[]));
    for name in [FILE, DIR, MISSING] {
        add("path_filestat_get", &|r| path(&[3, 0], name, &[r]));
        add("path_filestat_set_times", &|_| {
            path(&[3, 0], name, &[0, 0, 10])
        });
    }
    add("path_link", &|_| {
        path(&path(&[3, 0], FILE, &[3]), HARD, &[])
    });
    add("path_link", &|_| {
        path(&path(&[3, 0], MISSING, &[3]), HARD, &[])
    });
    add("path_symlink", &|_| path(&path(&[], FILE, &[3]), LINK, &[]));
    add("path_symlink", &|_| path(&path(&[], FILE, &[3]), LINK, &[]));
    add("path_readlink", &|r| path(&[3], LINK, &[r, 64, r + 128]));
    add("path_readlink", &|r| path(&[3], LINK, &[r, 2, r + 128]));
    add("path_readlink", &|r| path(&[3], MISSING, &[r, 64, r + 128]));
    add("path_rename", &|_| {
        path(&path(&[3], HARD, &[3]), MOVED, &[])
    });
    add("path_rename", &|_| {
        path(&path(&[3], HARD, &[3]), MOVED, &[])
    });
    add("fd_readdir", &|r| vec![3, 0xc000, 1024, 0, r]);
    add("fd_readdir", &|r| vec![3, 0xc400, 30, 1, r]);
    add("path_unlink_file", &|_| path(&[3], MOVED, &[]));
    add("path_unlink_file", &|_| path(&[3], MOVED, &[]));
    add("path_remove_directory", &|_| path(&[3], DIR, &[]));
    add("path_remove_directory", &|_| path(&[3], DIR, &[]));
    for count in [1, 2, 4, 0] {
        add("poll_oneoff", &|r| vec![MOMENTS, r, count, r + 200]);
    }
    add("random_get", &|r| vec![r, 64]);
    add("sched_yield", &|_| vec![]);
    add("proc_raise", &|_| vec![6]);
    add("fd_renumber", &|_| vec![4, 4]);
    add("fd_renumber", &|_| vec![4, 77]);
    add("fd_close", &|_| vec![4]);
    add("fd_close", &|_| vec![4]);
    calls
}

/// Returns calls with results that cannot be written or strings outside memory. Each call runs in a
/// separate guest, because the host may also trap.
fn faults() -> Vec<Call> {
    let mut faults = Vec::new();
    for (name, args) in calls() {
        let parameters = FUNCTIONS
            .iter()
            .find(|f| f.0 == name)
            .expect("a WASI function")
            .1;
        for (i, kind) in parameters.bytes().enumerate() {
            let pointer = kind == b'w' && args[i] >= 100;
            if pointer
                && !faults
                    .iter()
                    .any(|(n, a): &Call| *n == name && a[i] == NOWHERE)
            {
                let mut args = args.clone();
                args[i] = NOWHERE;
                faults.push((name, args));
            }
        }
    }
    faults
}

/// Builds a guest that makes these calls and then passes all of its memory to `fd_write`.
fn guest(calls: &[Call]) -> Vec<u8> {
    let mut text = String::from("(module\n");
    for (name, parameters) in FUNCTIONS {
        let parameters: Vec<&str> = parameters
            .bytes()
            .map(|p| if p == b'w' { "i32" } else { "i64" })
            .collect();
        text += &format!(
            "(import \"wasi_snapshot_preview1\" \"{name}\" (func ${name} (param {}) (result i32)))\n",
            parameters.join(" ")
        );
    }
    text += r#"
      (memory (export "memory") 1)
      (data (i32.const 100) "file......dir.......link......hard......moved.....missing")
      (data (i32.const 200) "\00\30\00\00\05\00\00\00\05\30\00\00\07\00\00\00")
      (data (i32.const 220) "\00\38\00\00\04\00\00\00\20\38\00\00\40\00\00\00")
      (data (i32.const 260) "\00\39\00\00\04\00\00\00\20\39\00\00\40\00\00\00")
      (data (i32.const 240) "\00\00\00\00\00\00\01\00")
      (data (i32.const 0x3000) "hello world!")
      (func $check (param $call i32) (param $errno i32)
        (i32.store16 (i32.add (i32.const 0xf000) (i32.mul (local.get $call) (i32.const 2))) (local.get $errno)))
      (func (export "_start")
        (memory.fill (i32.const 0x3800) (i32.const 0xaa) (i32.const 0xb000))
        ;; Subscriptions: two moments, reading the file, writing to standard output.
        (i64.store (i32.const 1024) (i64.const 7)) (i32.store (i32.const 1040) (i32.const 1))
        (i64.store (i32.const 1048) (i64.const 1000))
        (i64.store (i32.const 1072) (i64.const 8)) (i32.store (i32.const 1088) (i32.const 1))
        (i64.store (i32.const 1096) (i64.const 2000))
        (i64.store (i32.const 1120) (i64.const 9)) (i32.store8 (i32.const 1128) (i32.const 1))
        (i32.store (i32.const 1136) (i32.const 4))
        (i64.store (i32.const 1168) (i64.const 10)) (i32.store8 (i32.const 1176) (i32.const 2))
        (i32.store (i32.const 1184) (i32.const 1))
    "#;
    for (i, (name, args)) in calls.iter().enumerate() {
        let parameters = FUNCTIONS
            .iter()
            .find(|f| f.0 == *name)
            .expect("a WASI function")
            .1;
        assert_eq!(parameters.len(), args.len(), "{name}");
        text += &format!("(call $check (i32.const {i}) (call ${name}");
        for (parameter, arg) in parameters.bytes().zip(args) {
            let ty = if parameter == b'w' { "i32" } else { "i64" };
            text += &format!(" ({ty}.const {arg})");
        }
        text += "))\n";
    }
    text += &format!(
        "(drop (call $fd_write (i32.const 1) (i32.const {ALL}) (i32.const 1) (i32.const 8)))))"
    );
    wat(&text)
}

/// Runs a guest in its own folder.
fn record(calls: &[Call], check_effects: bool) -> Recording {
    let folder = tempfile::tempdir().unwrap();
    let stdin = folder.path().join("stdin");
    std::fs::write(&stdin, "what is typed in").unwrap();
    let granted = folder.path().join("granted");
    std::fs::create_dir(&granted).unwrap();
    let command = Command {
        args: vec!["one".to_owned(), String::new(), "two words".to_owned()],
        env: vec![
            ("KEY".to_owned(), "value".to_owned()),
            ("EMPTY".to_owned(), String::new()),
        ],
        dirs: vec![(granted, "/sandbox".to_owned())],
        stdin: Some(stdin),
        ..start()
    };
    let options = RecordOptions {
        check_effects,
        ..quiet()
    };
    try_record(&guest(calls), &command, &options, &Interrupt::new())
        .unwrap_or_else(|error| panic!("{error}"))
}

/// Counts the successful and the failed calls in a log, by function.
fn outcomes(recording: &Recording) -> BTreeMap<&str, [u32; 2]> {
    let mut outcomes = BTreeMap::new();
    for event in recording.file.log().unwrap() {
        if let Event::HostCall {
            import, results, ..
        } = event.unwrap()
        {
            let name = recording.program.imports[import.as_u32() as usize]
                .name
                .as_str();
            let failed = results != [RawValue::I32(0)];
            outcomes.entry(name).or_insert([0, 0])[usize::from(failed)] += 1;
        }
    }
    outcomes
}

#[test]
fn every_function_writes_what_is_declared() {
    for check_effects in [true, false] {
        let recording = record(&calls(), check_effects);
        assert_eq!(recording.ending(), &Ending::Returned);
        recording.check();
        let outcomes = outcomes(&recording);
        assert_eq!(outcomes.len(), FUNCTIONS.len());
        let never = |kind: usize| -> Vec<&str> {
            outcomes
                .iter()
                .filter(|(_, o)| o[kind] == 0)
                .map(|(name, _)| *name)
                .collect()
        };
        assert_eq!(
            never(0),
            [
                "fd_allocate",
                "fd_fdstat_set_rights",
                "proc_raise",
                "sock_accept",
                "sock_recv",
                "sock_send",
                "sock_shutdown"
            ],
            "functions that never succeed, because the host does not have them"
        );
        assert_eq!(
            never(1),
            [
                "args_get",
                "args_sizes_get",
                "environ_get",
                "environ_sizes_get",
                "random_get",
                "sched_yield"
            ],
            "functions that cannot fail but for their pointers"
        );
    }
}

#[test]
fn calls_with_bad_pointers_write_what_is_declared() {
    let faults = faults();
    assert!(faults.len() > 40, "{}", faults.len());
    let open = calls()
        .into_iter()
        .find(|call| call.0 == "path_open")
        .unwrap();
    let mut trapped = 0;
    for fault in faults {
        println!("{fault:?}");
        // If the host has not trapped, the call that outputs memory follows the failing call.
        let recording = record(&[open.clone(), fault.clone()], true);
        match recording.ending() {
            Ending::Returned => {}
            Ending::HostError { message } => {
                trapped += 1;
                assert!(!message.contains("not declared"), "{fault:?}: {message}");
            }
            other => panic!("{fault:?}: {other}"),
        }
        check(&recording.run(&Cache::none(), &progress()))
            .unwrap_or_else(|error| panic!("{fault:?}: {error}"));
    }
    assert!(trapped > 0);
}

/// Copies a recording with changed events.
fn changed(
    recording: &Recording,
    path: &Path,
    mut change: impl FnMut(u64, &mut Event),
) -> TraceFile {
    let out = TraceWriter::create(path, Existing::Kept).unwrap();
    out.meta(&recording.file.meta().unwrap()).unwrap();
    out.module(&recording.bytes).unwrap();
    let mut log = out.log().unwrap();
    for (i, event) in (0..).zip(recording.file.log().unwrap()) {
        let mut event = event.unwrap();
        change(i, &mut event);
        log.event(&event).unwrap();
    }
    log.finish().unwrap();
    out.end(&recording.recorded.end).unwrap();
    out.commit().unwrap();
    TraceFile::open(path).unwrap()
}

/// If a declaration omitted a write or its last byte, the re-execution would differ.
#[test]
fn a_write_that_is_left_out_is_noticed() {
    let recording = record(&calls(), false);
    let folder = tempfile::tempdir().unwrap();
    let mut noticed = BTreeMap::new();
    let events: Vec<Event> = recording.file.log().unwrap().map(Result::unwrap).collect();
    for (at, event) in (0..).zip(&events) {
        let Event::HostCall { import, writes, .. } = event else {
            continue;
        };
        let name = recording.program.imports[import.as_u32() as usize]
            .name
            .as_str();
        for (changed_write, whole) in (0..writes.len()).flat_map(|i| [(i, true), (i, false)]) {
            let noticed = noticed.entry((name, changed_write, whole)).or_insert(false);
            if *noticed {
                continue;
            }
            let path = folder
                .path()
                .join(format!("{at}-{changed_write}-{whole}.aft"));
            let copy = changed(&recording, &path, |i, event| {
                if let (true, Event::HostCall { writes, .. }) = (i == at, event) {
                    if whole {
                        writes.remove(changed_write);
                    } else {
                        writes[changed_write].bytes.pop();
                    }
                }
            });
            let outcome = check(&RecordedRun {
                file: &copy,
                ..recording.run(&Cache::none(), &progress())
            });
            *noticed = matches!(outcome, Err(RecordError::Diverged { .. }));
        }
    }
    let missed: Vec<_> = noticed
        .iter()
        .filter(|(_, noticed)| !**noticed)
        .map(|(what, _)| *what)
        .collect();
    // An event ends with padding, which the host does not write.
    assert_eq!(missed, [("poll_oneoff", 0, false)]);
    assert!(noticed.len() >= 60, "{}", noticed.len());
}
