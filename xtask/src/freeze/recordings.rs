//! Builds and records the programs.

use crate::tool::start;
use crate::{copy, corpus, toolchain};
use anyhow::{Context, Result, bail};
use serde_json::Value;
use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};

/// A recording in the common folder.
pub struct Recording {
    /// The file's name without `.aft`.
    pub name: &'static str,
    /// The digest of the recording's module, in hexadecimal.
    pub sha256: String,
}

/// The tool that makes a module.
enum Compiler {
    /// clang, at an optimisation level.
    Clang(&'static str),
    /// rustc, at an optimisation level.
    Rustc(&'static str),
    /// The recorder itself, because the source is WebAssembly text.
    None,
    /// No tool. The recording is in the folder of sources, since its end cannot be reproduced.
    Recorded,
}

struct Program {
    name: &'static str,
    source: &'static str,
    compiler: Compiler,
    /// Options of `record`, before the module.
    options: &'static [&'static str],
    /// The guest's arguments, after the module.
    arguments: &'static [&'static str],
    /// The guest's standard input.
    stdin: &'static str,
}

const PLAIN: Program = Program {
    name: "",
    source: "",
    compiler: Compiler::None,
    options: &[],
    arguments: &[],
    stdin: "",
};

const ORDERS: &str =
    "ann + 100\nbob + 20\nann - 30\nbob - 50\nann % 0\ncid + 5\nbob ! 0\nann - 70\n";
const OTHER_ORDERS: &str = "ann + 100\nbob + 20\nann - 30\nbob - 15\nann % 0\ncid + 5\nann - 70\n";
const WORDS: &str = "the cat and the dog and the bird\n";

/// The programs, which cover all languages and all ways to end. Pairs with the same name and
/// different endings are compared with each other.
const PROGRAMS: &[Program] = &[
    Program {
        name: "bank",
        source: "bank.c",
        compiler: Compiler::Clang("-O0"),
        stdin: ORDERS,
        ..PLAIN
    },
    Program {
        name: "bank-other",
        source: "bank.c",
        compiler: Compiler::Clang("-O0"),
        stdin: OTHER_ORDERS,
        ..PLAIN
    },
    Program {
        name: "bank-optimised",
        source: "bank.c",
        compiler: Compiler::Clang("-O2"),
        stdin: ORDERS,
        ..PLAIN
    },
    Program {
        name: "crash",
        source: "crash.c",
        compiler: Compiler::Clang("-O0"),
        ..PLAIN
    },
    Program {
        name: "depart",
        source: "depart.c",
        compiler: Compiler::Clang("-O1"),
        ..PLAIN
    },
    Program {
        name: "shapes",
        source: "shapes.cc",
        compiler: Compiler::Clang("-O0"),
        ..PLAIN
    },
    Program {
        name: "inventory",
        source: "inventory.rs",
        compiler: Compiler::Rustc("1"),
        ..PLAIN
    },
    Program {
        name: "words",
        source: "words.rs",
        compiler: Compiler::Rustc("2"),
        stdin: WORDS,
        ..PLAIN
    },
    Program {
        name: "bulk",
        source: "bulk.wat",
        options: &["--invoke", "sum"],
        arguments: &["9"],
        ..PLAIN
    },
    Program {
        name: "overflow",
        source: "overflow.wat",
        options: &["--stack", "128"],
        ..PLAIN
    },
    Program {
        name: "tail",
        source: "tail.wat",
        ..PLAIN
    },
    Program {
        name: "throws",
        source: "throws.wat",
        ..PLAIN
    },
    Program {
        name: "forever",
        source: "forever.wat",
        compiler: Compiler::Recorded,
        ..PLAIN
    },
];

/// Makes all recordings in `folder`, with the sources beside them. Recordings that need a missing
/// compiler are left out, with a message.
///
/// # Errors
/// Returns an error if a compiler or the recorder fails.
pub fn make(tool: &Path, folder: &Path) -> Result<Vec<Recording>> {
    toolchain::ensure_wasm_target()?;
    let sources = corpus::workspace().join("xtask/freeze");
    copy::folder(&sources, folder, |_, bytes| Ok(bytes))?;
    let lacking = toolchain::missing_c_packages();
    let mut made = Vec::new();
    for program in PROGRAMS {
        if matches!(program.compiler, Compiler::Clang(_)) && !lacking.is_empty() {
            println!(
                "SKIPPED {}: not installed: {} (apt-get install {0})",
                program.name,
                lacking.join(" ")
            );
            continue;
        }
        record(tool, folder, program)?;
        made.push(Recording {
            name: program.name,
            sha256: digest(tool, folder, program.name)?,
        });
    }
    Ok(made)
}

/// Compiles a program and records it in `folder`.
fn record(tool: &Path, folder: &Path, program: &Program) -> Result<()> {
    let module = format!("{}.wasm", program.name);
    let object = format!("{}.o", program.name);
    let module = match program.compiler {
        Compiler::Clang(level) => {
            // Compiles in two steps. In one step, clang would run any `wasm-opt` on the path.
            let cpp = program.source.ends_with(".cc");
            let compiler = if cpp { "clang++-19" } else { "clang-19" };
            let common = ["--target=wasm32-wasi", "-fno-exceptions"];
            let compile = [
                "-g",
                level,
                "-ffile-compilation-dir=.",
                "-c",
                program.source,
                "-o",
                &object,
            ];
            let link = [object.as_str(), "-o", &module];
            quietly(start(compiler).args(common).args(compile), folder)?;
            quietly(start(compiler).args(common).args(link), folder)?;
            &module
        }
        Compiler::Rustc(level) => {
            let level = format!("opt-level={level}");
            let here = format!("--remap-path-prefix={}=.", folder.display());
            let options = [
                "--edition=2024",
                "--target",
                toolchain::TARGET,
                "-g",
                "-C",
                &level,
            ];
            let files = [here.as_str(), program.source, "-o", &module];
            quietly(start("rustc").args(options).args(files), folder)?;
            &module
        }
        Compiler::None => program.source,
        Compiler::Recorded => return Ok(()),
    };
    let input = format!("{}.in", program.name);
    let path = folder.join(&input);
    fs::write(&path, program.stdin)
        .with_context(|| format!("{}: cannot be written", path.display()))?;
    let recording = format!("{}.aft", program.name);
    let status = start(tool)
        .args(["record", "-q", "-o", &recording, "--stdin", &input])
        .args(program.options)
        .arg(module)
        .args(program.arguments)
        .current_dir(folder)
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status()
        .context("cannot run afterimage")?;
    // Guests end with their own codes. The recorder's codes are 125 and above, except for the codes
    // that report how the guest ended.
    if matches!(status.code(), Some(125..=127) | None) {
        bail!("afterimage cannot record {module}: {status}");
    }
    Ok(())
}

/// Runs a command that prints only if it fails.
fn quietly(command: &mut Command, folder: &Path) -> Result<()> {
    let output = command
        .current_dir(folder)
        .stdin(Stdio::null())
        .output()
        .with_context(|| format!("cannot run {command:?}"))?;
    if !output.status.success() {
        bail!(
            "{command:?} failed: {}",
            String::from_utf8_lossy(&output.stderr)
        );
    }
    Ok(())
}

/// Returns the digest of a recording's module.
fn digest(tool: &Path, folder: &Path, name: &str) -> Result<String> {
    let output = start(tool)
        .args(["info", "--format", "json", &format!("{name}.aft")])
        .current_dir(folder)
        .output()
        .context("cannot run afterimage")?;
    let info: Value = serde_json::from_slice(&output.stdout)
        .with_context(|| format!("{name}.aft: afterimage info prints no JSON"))?;
    let digest = info["module_sha256"].as_str();
    Ok(digest
        .with_context(|| format!("{name}.aft: no digest of the module"))?
        .to_owned())
}
