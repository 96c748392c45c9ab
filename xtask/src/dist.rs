//! `cargo xtask dist`: makes the archive that a release offers.

use crate::{corpus::workspace, tool};
use anyhow::{Context, Result, bail};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, Stdio};

/// The shells with completions in the archive, each with the file name that the shell looks for.
const SHELLS: [(&str, &str); 3] = [
    ("bash", "afterimage.bash"),
    ("zsh", "_afterimage"),
    ("fish", "afterimage.fish"),
];

/// Files of the checkout that the archive contains.
const FILES: [&str; 4] = ["README.md", "CHANGELOG.md", "LICENSE-APACHE", "LICENSE-MIT"];

/// Builds the command line in the profile of the tests, strips it, and writes
/// `target/dist/afterimage-VERSION-TARGET.tar.gz` and its checksum. The archive contains the
/// program, its manual pages, completions for three shells, and the licences. Building a commit
/// twice with the same compiler gives the same archive.
///
/// # Errors
/// Returns an error if the program cannot be built, or a file cannot be written.
pub fn run() -> Result<ExitCode> {
    let program = tool::build()?;
    let version = output(tool::start(&program).arg("--version"))?;
    let version = version.trim().replace(' ', "-");
    let name = format!("{version}-{}", host()?);
    let dist = workspace().join("target/dist");
    let folder = dist.join(&name);
    if folder.exists() {
        fs::remove_dir_all(&folder)
            .with_context(|| format!("cannot remove {}", folder.display()))?;
    }
    let manual = made(folder.join("man/man1"))?;
    let completions = made(folder.join("completions"))?;
    let stripped = folder.join("afterimage");
    succeed(tool::start("strip").arg("-o").args([&stripped, &program]))?;
    succeed(tool::start(&stripped).arg("man").arg(&manual))?;
    for (shell, file) in SHELLS {
        let script = output(tool::start(&stripped).args(["completions", shell]))?;
        let at = completions.join(file);
        fs::write(&at, script).with_context(|| format!("cannot write {}", at.display()))?;
    }
    for file in FILES {
        fs::copy(workspace().join(file), folder.join(file))
            .with_context(|| format!("cannot copy {file}"))?;
    }
    let archive = format!("{name}.tar.gz");
    // The same files must give the same bytes, so the archive has no owners, fixed times and a
    // fixed order.
    succeed(
        tool::start("tar")
            .args(["--sort=name", "--owner=0", "--group=0", "--numeric-owner"])
            .args(["--mtime=@0", "--use-compress-program=gzip -9n", "-cf"])
            .args([&archive, &name])
            .current_dir(&dist),
    )?;
    let sum = output(tool::start("sha256sum").arg(&archive).current_dir(&dist))?;
    let at = dist.join(format!("{archive}.sha256"));
    fs::write(&at, sum).with_context(|| format!("cannot write {}", at.display()))?;
    let megabytes = |path: &Path| -> Result<String> {
        let bytes = fs::metadata(path)
            .with_context(|| format!("cannot read {}", path.display()))?
            .len();
        Ok(format!("{:.1} MB", bytes as f64 / 1e6))
    };
    println!("{}: {}", stripped.display(), megabytes(&stripped)?);
    let archive = dist.join(archive);
    println!("{}: {}", archive.display(), megabytes(&archive)?);
    Ok(ExitCode::SUCCESS)
}

/// Creates a folder with its parents.
fn made(folder: PathBuf) -> Result<PathBuf> {
    fs::create_dir_all(&folder).with_context(|| format!("cannot make {}", folder.display()))?;
    Ok(folder)
}

/// Returns the target for which the compiler builds, such as `x86_64-unknown-linux-gnu`.
fn host() -> Result<String> {
    let said = output(tool::start("rustc").arg("-vV"))?;
    let host = said.lines().find_map(|line| line.strip_prefix("host: "));
    Ok(host.context("rustc -vV does not name its host")?.to_owned())
}

fn succeed(command: &mut Command) -> Result<()> {
    output(command).map(drop)
}

/// Returns the output of a command.
fn output(command: &mut Command) -> Result<String> {
    let name = command.get_program().to_string_lossy().into_owned();
    let ran = command
        .stdin(Stdio::null())
        .stderr(Stdio::inherit())
        .output()
        .with_context(|| format!("cannot run {name}"))?;
    if !ran.status.success() {
        bail!("{name} failed ({})", ran.status);
    }
    Ok(String::from_utf8_lossy(&ran.stdout).into_owned())
}
