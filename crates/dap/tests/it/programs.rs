//! Makes the program that is debugged, and its recordings.

use std::path::{Path, PathBuf};
use std::sync::OnceLock;
use std::sync::atomic::AtomicBool;

use afterimage::files;
use afterimage::grants::Grants;
use afterimage::launch::{Existing, LiveLens, RecordQuery, create};
use afterimage_dap::{Category, Launch, Recorder};
use afterimage_record::{Interrupt, RecordOptions, Repeating};
use afterimage_testkit::tools::rustc;
use anyhow::Result;
use tempfile::TempDir;

pub const SOURCE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/guests/ledger.rs");

/// The source of a program with lines whose calls are all inlined.
pub const INLINED: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/guests/inlined.rs");

/// The source of a program with a recursive function.
pub const RECURSIVE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/guests/recursive.rs");

/// Returns the line of the source that has this text.
pub fn line_of(text: &str) -> i64 {
    line_in(SOURCE, text)
}

/// Returns the line of a file that has this text.
pub fn line_in(source: &str, text: &str) -> i64 {
    let source = std::fs::read_to_string(source).unwrap();
    let found = source.lines().position(|line| line.contains(text));
    found.unwrap_or_else(|| panic!("no line has {text}")) as i64 + 1
}

/// Compiles the program at a level of optimisation.
pub fn program(level: &str) -> PathBuf {
    static FOLDER: OnceLock<TempDir> = OnceLock::new();
    static PROGRAMS: [OnceLock<PathBuf>; 3] = [const { OnceLock::new() }; 3];
    let folder = FOLDER.get_or_init(|| tempfile::tempdir().unwrap());
    let number: usize = level.parse().unwrap();
    let compile = || {
        let at = folder.path().join(format!("ledger{level}.wasm"));
        compile(SOURCE, level, &at);
        at
    };
    PROGRAMS[number].get_or_init(compile).clone()
}

fn compile(source: &str, level: &str, to: &Path) {
    let mut rustc = rustc();
    rustc.args([
        "-g",
        "--edition",
        "2024",
        "-C",
        &format!("opt-level={level}"),
    ]);
    let status = rustc.arg(source).arg("-o").arg(to).status().unwrap();
    assert!(status.success());
}

/// A recorder that records in this process. The guest's output goes to standard error.
pub struct Here;

impl Recorder for Here {
    fn record(
        &self,
        launch: &Launch,
        to: &Path,
        output: &mut dyn FnMut(Category, &str),
        _: &AtomicBool,
    ) -> Result<()> {
        let program = PathBuf::from(launch.program.as_deref().unwrap());
        output(Category::Console, "recording\n");
        let grants = Grants {
            dirs: &launch.dirs,
            env: &launch.env,
            stdin: Some(Path::new("/dev/null")),
            invoke: launch.invoke.as_deref(),
        };
        recorded(&program, grants, &launch.args, to)
    }
}

fn recorded(program: &Path, grants: Grants<'_>, args: &[String], to: &Path) -> Result<()> {
    let query = RecordQuery {
        command: grants.command(program, args)?,
        lens: LiveLens::Nothing,
        no_clock: false,
        timeout: None,
        stack: RecordOptions::default().stack,
        seed: None,
        output_to_stderr: true,
    };
    let loaded = files::program(program)?;
    let out = create(to, Existing::Replaced)?;
    query.run(&loaded, &Interrupt::default(), Repeating::default(), &out)?;
    Ok(())
}

/// Makes a recording of a program in the text format.
pub fn recorded_program(folder: &TempDir, text: &str) -> PathBuf {
    let program = folder.path().join("program.wasm");
    std::fs::write(&program, wat::parse_str(text).unwrap()).unwrap();
    let at = folder.path().join("program.aft");
    let grants = Grants {
        stdin: Some(Path::new("/dev/null")),
        ..Grants::default()
    };
    recorded(&program, grants, &[], &at).unwrap();
    at
}

/// Makes a recording of the program with these arguments.
pub fn recording(folder: &TempDir, level: &str, args: &[&str]) -> PathBuf {
    let at = folder.path().join("ledger.aft");
    let args = Vec::from_iter(args.iter().map(|arg| (*arg).to_owned()));
    let grants = Grants {
        stdin: Some(Path::new("/dev/null")),
        ..Grants::default()
    };
    recorded(&program(level), grants, &args, &at).unwrap();
    at
}

/// Makes a recording of a program that is compiled with optimisation.
pub fn optimised(folder: &TempDir, source: &str) -> PathBuf {
    let program = folder.path().join("program.wasm");
    compile(source, "2", &program);
    let at = folder.path().join("program.aft");
    let grants = Grants {
        stdin: Some(Path::new("/dev/null")),
        ..Grants::default()
    };
    recorded(&program, grants, &[], &at).unwrap();
    at
}

/// A generator that gives the same numbers in each run of the test.
pub struct Random(pub u64);

impl Random {
    pub fn below(&mut self, end: u64) -> u64 {
        self.0 = self
            .0
            .wrapping_mul(6364136223846793005)
            .wrapping_add(1442695040888963407);
        (self.0 >> 33) % end
    }
}
