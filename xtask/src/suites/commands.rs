//! Runs the commands on the modules of the test suite. Each command must answer, and the output of
//! `instrument` must be valid.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Output, Stdio};
use std::sync::Mutex;

use anyhow::{Context, Result, bail};
use wasmparser::{Validator, WasmFeatures};

use crate::tool;

/// The export that makes the calls in a script.
const EXPORT: &str = "drive";

/// The commands to run on each recording.
const COMMANDS: &[&str] = &[
    "build --lens full",
    "verify",
    "profile --mode slow --format json",
    "profile --by function",
    "trace --limit 30",
    "trace --level statement --reverse --limit 30",
    "state --at end",
    "values --at drive",
    "slice --at drive",
    "calls",
    "redundancy",
    "simulate --cache 32k,8,64 --branch-predictor gshare",
    "export --format collapsed",
];

/// The ways in which modules are instrumented.
const INSTRUMENTED: &[&str] = &["program", "slow"];

/// Refusals that docs/LIMITS.md lists, and the message for a driver that calls nothing.
const LIMITS: &[&str] = &[
    "more than 67,108,864 locals and operands",
    "drive has no statement:",
];

/// Counts, by a description of what is counted.
type Done = BTreeMap<&'static str, u64>;

/// Runs everything on all modules in a folder. Returns whether all checks passed.
///
/// # Errors
/// Returns an error if the folder cannot be read.
pub fn run(tool: &Path, modules: &Path, out: &Path) -> Result<bool> {
    let mut waiting = Vec::new();
    for entry in fs::read_dir(modules)? {
        waiting.push(entry?.path());
    }
    let wabt = tool::start("wasm-validate").arg("--version").output();
    let wabt = wabt.is_ok_and(|ran| ran.status.success());
    if !wabt {
        eprintln!("SKIPPED: wasm-validate on instrumented modules, because it is not installed");
    }
    let all = waiting.len();
    let waiting = Mutex::new(waiting);
    let done = Mutex::new(Done::new());
    let wrong = Mutex::new(0);
    std::thread::scope(|scope| {
        for worker in 0..2 {
            let asked = Asked {
                tool,
                folder: out.join(format!("worker{worker}")),
                wabt,
            };
            let (waiting, done, wrong) = (&waiting, &done, &wrong);
            scope.spawn(move || {
                while let Some(module) = next(waiting) {
                    let mut own = Done::new();
                    if let Err(error) = asked.all(&module, &mut own) {
                        println!("WRONG {}: {error:#}", module.display());
                        *wrong.lock().expect("no panic") += 1;
                    }
                    let mut done = done.lock().expect("no panic");
                    for (what, count) in own {
                        *done.entry(what).or_default() += count;
                    }
                }
            });
        }
    });
    println!("{all} modules of the test suite, by the command line");
    for (what, count) in done.into_inner().expect("no panic") {
        println!("{count:>8} {what}");
    }
    Ok(wrong.into_inner().expect("no panic") == 0)
}

fn next(waiting: &Mutex<Vec<PathBuf>>) -> Option<PathBuf> {
    waiting.lock().expect("no panic").pop()
}

struct Asked<'a> {
    tool: &'a Path,
    /// The output folder. Nothing else writes there.
    folder: PathBuf,
    wabt: bool,
}

impl Asked<'_> {
    fn run(&self, words: &[&str]) -> Result<Output> {
        let mut command = tool::start(self.tool);
        command.args(words).current_dir(&self.folder);
        command.env("AFTERIMAGE_CACHE", self.folder.join("cache"));
        let ran = command.stdin(Stdio::null()).output();
        ran.context("cannot run afterimage")
    }

    fn answered(&self, words: &[&str], done: &mut Done) -> Result<()> {
        let ran = self.run(words)?;
        let error = String::from_utf8_lossy(&ran.stderr);
        match ran.status.code() {
            Some(0) => *done.entry("questions answered").or_default() += 1,
            Some(125) if LIMITS.iter().any(|limit| error.contains(limit)) => {
                *done.entry("questions refused by a limit").or_default() += 1;
            }
            code => bail!("{}: {code:?}: {}", words.join(" "), error.trim()),
        }
        Ok(())
    }

    fn all(&self, module: &Path, done: &mut Done) -> Result<()> {
        fs::create_dir_all(&self.folder)?;
        let file = module
            .to_str()
            .context("the path of a module is not UTF-8")?;
        self.instrumented(module, file, done)?;
        let words = ["record", "-q", "--force", "--invoke", EXPORT, "-o", "a.aft"];
        let ran = self.run(&[&words[..], &[file]].concat())?;
        let error = String::from_utf8_lossy(&ran.stderr);
        let trapped = match ran.status.code() {
            Some(0) => false,
            Some(134) => true,
            Some(126) if error.contains("cannot be instantiated") => return Ok(()),
            code => bail!("record: {code:?}: {}", error.trim()),
        };
        *done.entry("recordings").or_default() += 1;
        for command in COMMANDS {
            let mut words = Vec::from_iter(command.split(' '));
            words.push("a.aft");
            self.answered(&words, done)?;
        }
        if trapped {
            self.answered(&["why", "--trap", "a.aft"], done)?;
        }
        Ok(())
    }

    /// Validates an instrumented module with two validators, which may not support everything in
    /// the module.
    fn instrumented(&self, module: &Path, file: &str, done: &mut Done) -> Result<()> {
        let known = self.wabt && valid(module)?;
        for mode in INSTRUMENTED {
            let words = ["instrument", "--mode", mode, "-o", "i.wasm", file];
            self.answered(&words, done)?;
            let made = self.folder.join("i.wasm");
            let mut validator = Validator::new_with_features(WasmFeatures::all());
            let sound = validator.validate_all(&fs::read(&made)?);
            sound.with_context(|| format!("instrument --mode {mode}"))?;
            *done.entry("modules valid by wasmparser").or_default() += 1;
            if known {
                if !valid(&made)? {
                    bail!("instrument --mode {mode}: wasm-validate refuses what it makes");
                }
                *done.entry("modules valid by wasm-validate").or_default() += 1;
            }
        }
        Ok(())
    }
}

fn valid(module: &Path) -> Result<bool> {
    let mut command = tool::start("wasm-validate");
    let ran = command.arg("--enable-all").arg(module).output()?;
    Ok(ran.status.success())
}
