//! Grants the guest the permissions that the user names, and no others.

use std::env::VarError;
use std::path::{Path, PathBuf};

use afterimage_record::Command;
use anyhow::{Result, anyhow, bail};

/// The grants to a guest, as a user writes them.
#[derive(Clone, Copy, Debug, Default)]
pub struct Grants<'g> {
    /// Folders, as `HOST` or `HOST::GUEST`.
    pub dirs: &'g [String],
    /// Environment variables, as `NAME=VALUE`, or as `NAME` to pass on the value from the
    /// environment of this process.
    pub env: &'g [String],
    /// The file for standard input. If `None`, the guest gets the standard input of this process.
    pub stdin: Option<&'g Path>,
    /// The exported function to call instead of `_start`.
    pub invoke: Option<&'g str>,
}

impl Grants<'_> {
    /// Makes the command for the recorder.
    ///
    /// # Errors
    /// Returns an error if a folder, a variable or the file does not exist.
    pub fn command(&self, program: &Path, args: &[String]) -> Result<Command> {
        let env = self.env.iter().map(|text| variable(text));
        let dirs = self.dirs.iter().map(|text| folder(text));
        if let Some(path) = self.stdin {
            match std::fs::metadata(path) {
                Err(error) => bail!("--stdin {}: {error}", path.display()),
                Ok(data) if data.is_dir() => bail!(
                    "--stdin {}: a folder cannot be read; name a file",
                    path.display()
                ),
                Ok(_) => {}
            }
        }
        let name = program.file_name().map(|name| name.to_string_lossy());
        Ok(Command {
            name: name.map_or_else(|| "program".to_owned(), |name| name.into_owned()),
            args: args.to_vec(),
            env: env.collect::<Result<_>>()?,
            dirs: dirs.collect::<Result<_>>()?,
            stdin: self.stdin.map(Path::to_owned),
            invoke: self.invoke.map(str::to_owned),
        })
    }
}

fn variable(text: &str) -> Result<(String, String)> {
    if text.is_empty() || text.starts_with('=') {
        bail!("--env {text}: the name is missing; write --env NAME or --env NAME=VALUE");
    }
    if let Some((key, value)) = text.split_once('=') {
        return Ok((key.to_owned(), value.to_owned()));
    }
    let value = std::env::var(text).map_err(|error| match error {
        VarError::NotPresent => {
            anyhow!(
                "--env {text}: the variable is not set here; give it a value with --env \
                 {text}=VALUE"
            )
        }
        VarError::NotUnicode(_) => {
            anyhow!("--env {text}: its value is not UTF-8, which WASI requires")
        }
    })?;
    Ok((text.to_owned(), value))
}

fn folder(text: &str) -> Result<(PathBuf, String)> {
    let (host, guest) = text.split_once("::").unwrap_or((text, text));
    match std::fs::metadata(host) {
        Err(error) => bail!("--dir {host}: {error}"),
        Ok(data) if !data.is_dir() => {
            bail!("--dir {host}: not a folder; only folders can be granted")
        }
        Ok(_) => Ok((PathBuf::from(host), guest.to_owned())),
    }
}
