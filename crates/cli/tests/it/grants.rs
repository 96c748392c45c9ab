//! A guest gets no folder, variable or network that was not granted.

use std::fs;

use crate::common::{Sandbox, ran};

/// Exits with 16 times the number of its variables, plus the number of its preopened descriptors,
/// including sockets.
const GRANTS: &str = r#"(module
  (import "wasi_snapshot_preview1" "environ_sizes_get" (func $environ_sizes_get (param i32 i32) (result i32)))
  (import "wasi_snapshot_preview1" "fd_fdstat_get" (func $fd_fdstat_get (param i32 i32) (result i32)))
  (import "wasi_snapshot_preview1" "proc_exit" (func $proc_exit (param i32)))
  (memory (export "memory") 1)
  (func (export "_start") (local $fd i32)
    (local.set $fd (i32.const 3))
    (block $none
      (loop $next
        (br_if $none (call $fd_fdstat_get (local.get $fd) (i32.const 64)))
        (local.set $fd (i32.add (local.get $fd) (i32.const 1)))
        (br $next)))
    (drop (call $environ_sizes_get (i32.const 0) (i32.const 4)))
    (call $proc_exit
      (i32.add
        (i32.mul (i32.load (i32.const 0)) (i32.const 16))
        (i32.sub (local.get $fd) (i32.const 3))))))"#;

#[test]
fn guests_see_what_was_granted_and_nothing_else() {
    let sandbox = Sandbox::new();
    sandbox.write("grants.wat", GRANTS);
    fs::create_dir(sandbox.path("data")).unwrap();
    for (options, variables, folders) in [
        ("", 0, 0),
        ("--env A=B", 1, 0),
        ("--env SECRET --env EMPTY=", 2, 0),
        ("--dir data", 0, 1),
        ("--dir data::/a --dir data::/b --env A=B", 1, 2),
    ] {
        let mut command =
            sandbox.command(format!("record --force {options} grants.wat").split_whitespace());
        let ran = ran(command.env("SECRET", "value"));
        assert_eq!(
            ran.code,
            Some(16 * variables + folders),
            "{options}: {ran:?}"
        );
    }
    // The recording contains the names of folders and variables, and `info` warns about secrets.
    let mut command =
        sandbox.command("record --force --env SECRET --dir data grants.wat".split_whitespace());
    ran(command.env("SECRET", "hush"));
    let info = sandbox.ok("info grants.aft").stdout;
    assert!(
        info.contains("folder    data") && info.contains("env       SECRET"),
        "{info}"
    );
    assert!(!info.contains("hush"), "{info}");
    assert!(info.contains("Before you share this file"), "{info}");
    sandbox.ok("verify grants.aft");
}
