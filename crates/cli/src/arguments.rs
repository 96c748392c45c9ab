//! Arguments that several commands take.

use std::path::PathBuf;
use std::time::Duration;

use afterimage_record::{Command, Interrupt};
use afterimage_trace::Interrupter;
use anyhow::{Context, Result, bail};

/// What a guest is run with.
#[derive(Clone, Debug, clap::Args)]
pub(crate) struct RunArguments {
    /// Grant a folder to the guest
    #[arg(long, value_name = "HOST[::GUEST]")]
    pub dir: Vec<String>,
    /// Give the guest an environment variable, or hand on ours
    #[arg(long, value_name = "K[=V]")]
    pub env: Vec<String>,
    /// Let the guest read this file as its standard input
    #[arg(long, value_name = "FILE")]
    pub stdin: Option<PathBuf>,
    /// Call this exported function instead of _start; ARGS are its arguments
    #[arg(long, value_name = "EXPORT")]
    pub invoke: Option<String>,
    /// Stop the guest after so many seconds
    #[arg(long, value_name = "SECONDS")]
    pub timeout: Option<f64>,
    /// Record without the stop clock: a little faster, but a run that is stopped from outside cannot be repeated
    #[arg(long)]
    pub no_clock: bool,
    /// Stack for the guest in KiB
    #[arg(long, value_name = "KIB", default_value_t = afterimage_record::RECORD_STACK / 1024)]
    pub stack: usize,
}

impl RunArguments {
    /// The command for the recorder.
    pub(crate) fn command(&self, program: &std::path::Path, args: &[String]) -> Result<Command> {
        let mut env = Vec::new();
        for variable in &self.env {
            match variable.split_once('=') {
                Some((key, value)) => env.push((key.to_owned(), value.to_owned())),
                None => {
                    let value = std::env::var(variable)
                        .with_context(|| format!("--env {variable}: this variable is not set here (write --env {variable}=VALUE)"))?;
                    env.push((variable.clone(), value));
                }
            }
        }
        let dirs = self
            .dir
            .iter()
            .map(|dir| {
                let (host, guest) = dir.split_once("::").unwrap_or((dir, dir));
                (PathBuf::from(host), guest.to_owned())
            })
            .collect();
        let name = program.file_name().map_or_else(|| "program".to_owned(), |n| n.to_string_lossy().into_owned());
        Ok(Command { name, args: args.to_vec(), env, dirs, stdin: self.stdin.clone(), invoke: self.invoke.clone() })
    }

    /// The time limit.
    pub(crate) fn limit(&self) -> Result<Option<Duration>> {
        self.timeout
            .map(|seconds| match Duration::try_from_secs_f64(seconds) {
                Ok(limit) if !limit.is_zero() => Ok(limit),
                _ => bail!("--timeout {seconds}: give a positive number of seconds"),
            })
            .transpose()
    }

    /// The stack in bytes.
    pub(crate) fn stack_bytes(&self) -> Result<usize> {
        if !(16..=64 << 10).contains(&self.stack) {
            bail!("--stack {}: give between 16 and 65536 KiB", self.stack);
        }
        Ok(self.stack << 10)
    }
}

/// Lets Ctrl-C stop the guest; a second Ctrl-C ends the process.
pub(crate) fn stop_on_signals(interrupt: &Interrupt) -> Result<()> {
    let interrupt = interrupt.clone();
    ctrlc::set_handler(move || {
        if interrupt.requested().is_some() {
            std::process::exit(130);
        }
        interrupt.stop(Interrupter::CtrlC);
    })
    .context("cannot watch for Ctrl-C")
}
