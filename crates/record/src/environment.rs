//! Sets up the guest's environment: its arguments, variables, folders and standard streams. The
//! guest gets nothing else.

use std::fs::File;
use std::io;
use std::path::Path;
use std::sync::mpsc::{self, RecvTimeoutError};

use rand_core::SeedableRng;
use rand_xorshift::XorShiftRng;
use wasmtime_wasi::p1::WasiP1Ctx;
use wasmtime_wasi::{FsPerms, WasiCtxBuilder};

use crate::live::{Command, RecordOptions};
use crate::output::Output;
use crate::replay::ASK;
use crate::{Interrupt, RecordError};

/// Returns the guest's `argv`.
pub(crate) fn arguments(command: &Command) -> Vec<String> {
    let mut arguments = vec![command.name.clone()];
    if command.invoke.is_none() {
        arguments.extend(command.args.iter().cloned());
    }
    arguments
}

/// Builds the guest's WASI context, which contains only what the command grants.
pub(crate) fn wasi_context(
    command: &Command,
    arguments: &[String],
    options: &RecordOptions,
    interrupt: &Interrupt,
) -> Result<WasiP1Ctx, RecordError> {
    let mut builder = WasiCtxBuilder::new();
    builder
        .allow_blocking_current_thread(true)
        .args(arguments)
        .envs(&command.env);
    if !options.silent {
        builder.stdout(Output::Stdout).stderr(Output::Stderr);
    }
    if options.output_to_stderr {
        builder.stdout(Output::Stderr);
    }
    if let Some(seed) = options.seed {
        builder.secure_random(XorShiftRng::seed_from_u64(seed));
    }
    match &command.stdin {
        None => {
            builder.inherit_stdin();
        }
        Some(path) => {
            let open = |message: String| RecordError::Open {
                path: path.display().to_string(),
                message,
            };
            let file = open_unless(interrupt, path)?.map_err(|e| open(e.to_string()))?;
            if file.metadata().is_ok_and(|m| m.is_dir()) {
                return Err(open("it is a folder".to_owned()));
            }
            builder.stdin(wasmtime_wasi::cli::InputFile::new(file));
        }
    }
    for (host, guest) in &command.dirs {
        builder
            .preopened_dir(host, guest, FsPerms::ReadWrite)
            .map_err(|e| RecordError::Open {
                path: host.display().to_string(),
                message: format!("{e:#}"),
            })?;
    }
    Ok(builder.build_p1())
}

/// Opens a file on another thread, because opening a pipe waits for a writer. If a stop is
/// requested, the thread is abandoned.
fn open_unless(interrupt: &Interrupt, path: &Path) -> Result<io::Result<File>, RecordError> {
    let (send, opened) = mpsc::channel();
    let path = path.to_owned();
    // The receiver may be gone.
    std::thread::spawn(move || drop(send.send(File::open(path))));
    loop {
        match opened.recv_timeout(ASK) {
            Ok(file) => return Ok(file),
            Err(RecvTimeoutError::Timeout) if interrupt.requested().is_none() => {}
            Err(_) => return Err(RecordError::Interrupted),
        }
    }
}
