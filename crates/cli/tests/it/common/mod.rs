//! Runs the command line in a separate folder.

pub mod generated;
pub mod memory_programs;
pub mod recorded;
pub mod stacks;
pub mod tiny;

use std::ffi::OsStr;
use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

use afterimage_testkit::tools;
use tempfile::TempDir;

/// Checks that two validators accept a module: wasmparser, and wabt's or Node's, if one is
/// installed and accepts the original module.
#[track_caller]
pub fn valid(sandbox: &Sandbox, name: &str, original: &str) {
    let features = wasmparser::WasmFeatures::all();
    let bytes = sandbox.read(name);
    let checked = wasmparser::Validator::new_with_features(features).validate_all(&bytes);
    checked.unwrap_or_else(|error| panic!("{name}: {error}"));
    let wabt = |file: &str| {
        let mut command = sandbox.any("wasm-validate");
        let features = ["tail-call", "memory64", "multi-memory", "threads"];
        command.args(features.map(|feature| format!("--enable-{feature}")));
        command.arg(file).output()
    };
    let node = |file: &str| {
        const VALIDATE: &str = "process.exit(WebAssembly.validate(require('fs').readFileSync(process.argv[1])) ? 0 : 1)";
        let mut command = sandbox.any("node");
        command.args(["--experimental-wasm-multi-memory", "-e", VALIDATE, file]);
        command.output()
    };
    sandbox.write("two-memories.wasm", b"\0asm\x01\0\0\0\x05\x05\x02\0\0\0\0");
    type Validator<'a> = &'a dyn Fn(&str) -> std::io::Result<Output>;
    let mut seconds = 0;
    for (who, validates) in [("wabt", &wabt as Validator<'_>), ("node", &node)] {
        // A validator cannot judge unknown features.
        let knows = |file: &str| validates(file).is_ok_and(|out| out.status.success());
        if knows(original) && knows("two-memories.wasm") {
            seconds += 1;
            let out = validates(name).unwrap();
            let errors = String::from_utf8_lossy(&out.stderr);
            assert!(out.status.success(), "{who} refuses {name}: {errors}");
        }
    }
    if seconds == 0 {
        tools::skipped(
            "no second validator knows this module: neither wabt's wasm-validate nor node",
        );
    }
}

/// A folder with a cache of compiled modules that no other test uses.
pub struct Sandbox {
    folder: TempDir,
}

/// How a command ended, as text.
#[derive(Debug)]
pub struct Ran {
    pub code: Option<i32>,
    pub stdout: String,
    pub stderr: String,
}

impl Sandbox {
    pub fn new() -> Self {
        Self {
            folder: tempfile::tempdir().unwrap(),
        }
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    pub fn write(&self, name: &str, bytes: impl AsRef<[u8]>) -> PathBuf {
        let path = self.path(name);
        fs::write(&path, bytes).unwrap();
        path
    }

    /// Writes a module in binary form.
    pub fn wasm(&self, name: &str, text: &str) -> PathBuf {
        self.write(name, wat::parse_str(text).unwrap())
    }

    pub fn read(&self, name: &str) -> Vec<u8> {
        fs::read(self.path(name)).unwrap()
    }

    pub fn names(&self) -> Vec<String> {
        let entries = fs::read_dir(self.folder.path()).unwrap();
        let mut names: Vec<String> = entries
            .map(|e| e.unwrap().file_name().into_string().unwrap())
            .collect();
        names.retain(|name| name != "cache");
        names.sort();
        names
    }

    /// Creates a command with this folder as its current folder, and an environment that does not
    /// depend on who runs the tests.
    pub fn any(&self, program: impl AsRef<OsStr>) -> Command {
        let mut command = tools::command(program);
        self.place(&mut command);
        command
    }

    /// Makes a command run in this folder.
    fn place(&self, command: &mut Command) {
        command
            .current_dir(self.folder.path())
            .env("AFTERIMAGE_CACHE", self.path("cache"))
            .env("COLUMNS", "100");
    }

    /// Creates a command that runs `afterimage` with these words.
    pub fn command<S: AsRef<OsStr>>(&self, args: impl IntoIterator<Item = S>) -> Command {
        let mut command = self.any(afterimage());
        command.args(args);
        command
    }

    /// Runs `afterimage` with these words.
    pub fn run(&self, words: &str) -> Ran {
        ran(&mut self.command(words.split_whitespace()))
    }

    /// Runs a line of shell, in which `$AFTERIMAGE` is the command.
    pub fn shell(&self, line: &str) -> Ran {
        ran(self
            .any("sh")
            .args(["-c", line])
            .env("AFTERIMAGE", afterimage()))
    }

    /// Runs `afterimage` and expects success.
    pub fn ok(&self, words: &str) -> Ran {
        let ran = self.run(words);
        assert_eq!(ran.code, Some(0), "afterimage {words}\n{ran:?}");
        ran
    }

    /// Runs `afterimage` and expects a refusal: one sentence with all `parts`, nothing on standard
    /// output, and no panic.
    #[track_caller]
    pub fn refused(&self, words: &str, code: i32, parts: &[&str]) {
        let ran = self.run(words);
        ran.is_refusal(words, code, parts);
    }
}

impl Ran {
    #[track_caller]
    pub fn is_refusal(&self, words: &str, code: i32, parts: &[&str]) {
        let stderr = &self.stderr;
        assert_eq!(self.code, Some(code), "afterimage {words}\n{self:?}");
        assert!(!stderr.contains("panicked"), "afterimage {words}\n{stderr}");
        assert_eq!(self.stdout, "", "afterimage {words}\n{self:?}");
        let sentence = stderr
            .strip_prefix("afterimage: ")
            .unwrap_or_else(|| panic!("afterimage {words}\n{stderr}"));
        assert_eq!(
            sentence.trim_end().lines().count(),
            1,
            "afterimage {words}\n{stderr}"
        );
        assert!(
            !sentence.trim_end().ends_with('.'),
            "afterimage {words}\n{stderr}"
        );
        for part in parts {
            assert!(
                sentence.contains(part),
                "afterimage {words}\nlacks {part:?}: {stderr}"
            );
        }
    }
}

/// Returns the path of the binary under test.
pub fn afterimage() -> &'static Path {
    Path::new(env!("CARGO_BIN_EXE_afterimage"))
}

/// Runs a command to its end.
pub fn ran(command: &mut Command) -> Ran {
    text(command.output().unwrap())
}

/// Runs a command that reads `input`.
pub fn ran_with_input(command: &mut Command, input: &[u8]) -> Ran {
    let mut child = command
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    child.stdin.take().unwrap().write_all(input).unwrap();
    text(child.wait_with_output().unwrap())
}

pub fn text(output: Output) -> Ran {
    Ran {
        code: output.status.code(),
        stdout: String::from_utf8_lossy(&output.stdout).into_owned(),
        stderr: String::from_utf8_lossy(&output.stderr).into_owned(),
    }
}

/// Sends a signal by its name.
pub fn signal(child: &Child, name: rustix::process::Signal) {
    let id = rustix::process::Pid::from_raw(child.id() as i32).unwrap();
    rustix::process::kill_process(id, name).unwrap();
}

/// Waits until `condition` holds. Fails after half a minute.
#[track_caller]
pub fn eventually(mut condition: impl FnMut() -> bool) {
    let start = Instant::now();
    while !condition() {
        assert!(
            start.elapsed() < Duration::from_secs(30),
            "it did not happen"
        );
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// Prints `hello` three times and exits with 3.
pub const HELLO: &str = r#"(module
  (import "wasi_snapshot_preview1" "fd_write" (func $fd_write (param i32 i32 i32 i32) (result i32)))
  (import "wasi_snapshot_preview1" "proc_exit" (func $proc_exit (param i32)))
  (memory (export "memory") 1)
  (data (i32.const 0) "\10\00\00\00\06\00\00\00")
  (data (i32.const 16) "hello\n")
  (func $main (export "_start") (local $i i32)
    (loop $again
      (drop (call $fd_write (i32.const 1) (i32.const 0) (i32.const 1) (i32.const 8)))
      (local.set $i (i32.add (local.get $i) (i32.const 1)))
      (br_if $again (i32.lt_u (local.get $i) (i32.const 3))))
    (call $proc_exit (i32.const 3))))"#;

/// Prints `x` forever.
pub const CHATTY: &str = r#"(module
  (import "wasi_snapshot_preview1" "fd_write" (func $fd_write (param i32 i32 i32 i32) (result i32)))
  (memory (export "memory") 1)
  (data (i32.const 0) "\10\00\00\00\02\00\00\00")
  (data (i32.const 16) "x\n")
  (func (export "_start")
    (loop $again
      (br_if $again (i32.eqz (call $fd_write (i32.const 1) (i32.const 0) (i32.const 1) (i32.const 8)))))))"#;

/// Prints that it has begun, and then computes forever.
pub const SPIN: &str = r#"(module
  (import "wasi_snapshot_preview1" "fd_write" (func $fd_write (param i32 i32 i32 i32) (result i32)))
  (memory (export "memory") 1)
  (data (i32.const 0) "\10\00\00\00\06\00\00\00")
  (data (i32.const 16) "begun\n")
  (func $spin (param $n i64)
    (loop $again
      (local.set $n (i64.add (local.get $n) (i64.const 1)))
      (br $again)))
  (func $main (export "_start")
    (drop (call $fd_write (i32.const 1) (i32.const 0) (i32.const 1) (i32.const 8)))
    (call $spin (i64.const 0))))"#;

impl Sandbox {
    /// Compiles a Rust program with debug information to `NAME.wasm`; its source is `NAME.rs`.
    pub fn rust(&self, name: &str, source: &str) {
        self.write(&format!("{name}.rs"), source);
        self.rustc(name, name, 0);
    }

    /// Compiles the Rust program in `SOURCE.rs` to `NAME.wasm` at this level of optimisation.
    pub fn rustc(&self, source: &str, name: &str, level: u32) {
        self.rustc_with(&[], source, name, level);
    }

    /// Like [`rustc`](Self::rustc), with these options.
    pub fn rustc_with(&self, options: &[&str], source: &str, name: &str, level: u32) {
        let mut rustc = tools::rustc();
        rustc.args(options);
        self.place(&mut rustc);
        rustc.args(["-g", "--edition", "2024"]);
        rustc.args(["-C", &format!("opt-level={level}")]);
        let ran = ran(rustc.args(["-o", &format!("{name}.wasm"), &format!("{source}.rs")]));
        assert_eq!(ran.code, Some(0), "rustc for wasm32-wasip1: {}", ran.stderr);
    }
}
