//! Records a program for a client.

use std::io::{self, Read};
use std::path::Path;
use std::process::{Child, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::thread;
use std::time::Duration;

use anyhow::{Context, Result, bail};
use rustix::process::{Pid, Signal, kill_process};

use crate::client::Category;
use crate::protocol::Launch;
use crate::server::Recorder;

/// Records with `afterimage record` in a separate process, so that the guest cannot use the
/// client's streams.
#[derive(Clone, Copy, Debug)]
pub struct ByCommand;

/// The interval at which to check whether the client is still waiting.
const LOOK: Duration = Duration::from_millis(50);

/// The maximum length in bytes of the error output to search for the reason for a failure.
const MOST_ERRORS: usize = 1 << 16;

/// The environment variables with which `record` finds its cache and folders. The guest receives
/// only those that the configuration names.
const OWN: [&str; 6] = [
    "AFTERIMAGE_CACHE",
    "HOME",
    "PATH",
    "TMPDIR",
    "USERPROFILE",
    "XDG_CACHE_HOME",
];

impl Recorder for ByCommand {
    fn record(
        &self,
        launch: &Launch,
        to: &Path,
        output: &mut dyn FnMut(Category, &str),
        cancelled: &AtomicBool,
    ) -> Result<()> {
        let program = launch.program.as_deref().unwrap_or_default();
        let mut child = start(launch, to)?;
        let (sender, said) = channel();
        let streams = [
            (Category::Stdout, child.stdout.take().map(Stream::Out)),
            (Category::Stderr, child.stderr.take().map(Stream::Err)),
        ];
        for (category, stream) in streams {
            if let Some(stream) = stream {
                let sender = sender.clone();
                thread::spawn(move || listen(stream, category, &sender));
            }
        }
        drop(sender);
        let (mut asked, mut errors) = (false, String::new());
        loop {
            match said.recv_timeout(LOOK) {
                Ok((category, text)) => {
                    if category == Category::Stderr && errors.len() < MOST_ERRORS {
                        errors.push_str(&text);
                    }
                    output(category, &text);
                }
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => break,
            }
            if cancelled.load(Ordering::Relaxed) && !std::mem::replace(&mut asked, true) {
                let pid = Pid::from_child(&child);
                let _ = kill_process(pid, Signal::INT);
            }
        }
        let status = child.wait().context("cannot wait for afterimage record")?;
        match status.code() {
            Some(125..=127) => {
                let mut own = errors
                    .lines()
                    .filter_map(|line| line.strip_prefix("afterimage: "));
                let why = own.next_back().unwrap_or("afterimage record failed");
                bail!("{program} cannot be recorded: {why}")
            }
            _ if asked => bail!("{program}: recording was interrupted"),
            None => bail!("{program}: recording was killed ({status})"),
            Some(_) if !to.exists() => bail!("{program}: nothing was recorded"),
            Some(_) => Ok(()),
        }
    }
}

#[expect(
    clippy::disallowed_methods,
    reason = "its environment is cleared right away"
)]
fn start(launch: &Launch, to: &Path) -> Result<Child> {
    let own = std::env::current_exe().context("cannot find this program")?;
    let mut command = std::process::Command::new(own);
    command.env_clear();
    let named = launch.env.iter().filter(|text| !text.contains('='));
    let kept = OWN.iter().copied().chain(named.map(String::as_str));
    for name in kept {
        if let Some(value) = std::env::var_os(name) {
            command.env(name, value);
        }
    }
    command.args(["record", "--quiet", "--force", "-o"]).arg(to);
    for dir in &launch.dirs {
        command.arg("--dir").arg(dir);
    }
    for variable in &launch.env {
        command.arg("--env").arg(variable);
    }
    if let Some(stdin) = &launch.stdin {
        command.arg("--stdin").arg(stdin);
    }
    if let Some(function) = &launch.invoke {
        command.arg("--invoke").arg(function);
    }
    if let Some(seconds) = launch.timeout {
        command.arg("--timeout").arg(seconds.to_string());
    }
    let program = launch.program.as_deref().unwrap_or_default();
    command.arg("--").arg(program).arg("--").args(&launch.args);
    command.stdin(Stdio::null());
    command.stdout(Stdio::piped()).stderr(Stdio::piped());
    command.spawn().context("cannot start afterimage record")
}

enum Stream {
    Out(std::process::ChildStdout),
    Err(std::process::ChildStderr),
}

impl Read for Stream {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        match self {
            Self::Out(stream) => stream.read(into),
            Self::Err(stream) => stream.read(into),
        }
    }
}

fn listen(mut stream: Stream, category: Category, to: &Sender<(Category, String)>) {
    let mut bytes = vec![0; 1 << 13];
    // The first bytes of a character whose other bytes have not arrived yet.
    let mut cut = Vec::new();
    while let Ok(count) = stream.read(&mut bytes)
        && count > 0
    {
        cut.extend_from_slice(&bytes[..count]);
        let whole = match std::str::from_utf8(&cut) {
            Err(error) if error.error_len().is_none() => error.valid_up_to(),
            _ => cut.len(),
        };
        let text = String::from_utf8_lossy(&cut[..whole]).into_owned();
        cut.drain(..whole);
        if !text.is_empty() && to.send((category, text)).is_err() {
            return;
        }
    }
}
