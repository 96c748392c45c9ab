//! Answers the requests that come before there is a run to debug.

use std::io::{BufRead, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;

use afterimage::Session;
use afterimage::debugger::with_debugger;
use afterimage::sources::SourcePaths;
use anyhow::{Context, Result, anyhow, bail};
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::client::{Category, Client};
use crate::debuggee::{Debuggee, Numbering, sentence};
use crate::protocol::{Initialize, Launch, Request};

/// Records programs.
pub trait Recorder {
    /// Records a run of a program into a file. The guest gets only the resources that the
    /// configuration names, and must not use the client's streams. `output` receives the guest's
    /// output. Once `cancelled` is set, the guest is ended.
    ///
    /// # Errors
    /// Returns an error if the program cannot be recorded.
    fn record(
        &self,
        launch: &Launch,
        to: &Path,
        output: &mut dyn FnMut(Category, &str),
        cancelled: &AtomicBool,
    ) -> Result<()>;
}

/// Serves one client, until it leaves or its input cannot be read.
///
/// # Errors
/// Returns no error: the client receives all errors.
pub fn serve<W: Write + Send + 'static>(
    input: impl BufRead + Send + 'static,
    output: W,
    recorder: &dyn Recorder,
) -> Result<()> {
    let client = Client::new(input, output);
    let mut numbering = None;
    while let Some(request) = client.next() {
        client.is_interrupted();
        match request.command.as_str() {
            "initialize" if numbering.is_some() => {
                client.fail(&request, "initialize was already sent");
            }
            "initialize" => match Client::<W>::arguments::<Initialize>(&request) {
                Ok(wanted) if wanted.path_format.as_deref().is_some_and(|it| it != "path") => {
                    client.fail(
                        &request,
                        "URIs are not supported, only paths: set pathFormat to \"path\"",
                    );
                }
                Ok(wanted) => {
                    numbering = Some(Numbering {
                        lines: wanted.lines_start_at1.unwrap_or(true).into(),
                        columns: wanted.columns_start_at1.unwrap_or(true).into(),
                    });
                    client.succeed(&request, capabilities());
                }
                Err(error) => client.fail(&request, &sentence(&error)),
            },
            "disconnect" | "terminate" => {
                client.succeed(&request, Value::Null);
                if request.command == "disconnect" {
                    return Ok(());
                }
                client.event("terminated", Value::Null);
            }
            "cancel" => client.succeed(&request, Value::Null),
            "launch" | "attach" => {
                let Some(numbering) = numbering else {
                    client.fail(&request, "send initialize first");
                    continue;
                };
                match debug(&client, &request, numbering, recorder) {
                    Ok(Left::Over) => return Ok(()),
                    Ok(Left::Refused) => {}
                    Err(error) => client.fail(&request, &sentence(&error)),
                }
            }
            command if numbering.is_none() => {
                client.fail(&request, &format!("{command} came before initialize"));
            }
            command => client.fail(
                &request,
                &format!("{command}: nothing is being debugged yet; send launch or attach first"),
            ),
        }
    }
    Ok(())
}

/// The reason why debugging ended.
pub(crate) enum Left {
    /// The client has left.
    Over,
    /// The server refused the request, and has told the client.
    Refused,
}

/// Opens the recording that the client chose, and serves the client until it leaves.
fn debug<W: Write + Send + 'static>(
    client: &Client<W>,
    request: &Request,
    numbering: Numbering,
    recorder: &dyn Recorder,
) -> Result<Left> {
    let launch: Launch = Client::<W>::arguments(request)?;
    let (recording, _folder) = recording(client, request, &launch, recorder)?;
    let session = Session::open_finished(&recording, client.monitor())?;
    let code = launch.code.as_deref().map(str::parse);
    let code = code.transpose().context("code")?;
    let session = session.looking_at(code.unwrap_or_default());
    let moved = launch.source_path.iter().map(|text| text.parse());
    let moved = moved.collect::<Result<Vec<_>, _>>();
    let moved = moved.map_err(|error| anyhow!("sourcePath: {error}"))?;
    let session = session.reading(SourcePaths::new(moved));
    let left = with_debugger(&session, &client.cancelled, |debugger| {
        let mut debuggee = Debuggee::new(debugger, client, &launch, numbering)?;
        client.succeed(request, Value::Null);
        client.event("initialized", Value::Null);
        Ok(debuggee.serve())
    });
    match left {
        Ok(left) => Ok(left),
        Err(error) => {
            client.fail(request, &sentence(&error.into()));
            Ok(Left::Refused)
        }
    }
}

/// Returns the recording to debug, after making it if the client named a program. For a temporary
/// recording, also returns its folder, which is removed at the end.
fn recording<W: Write + Send + 'static>(
    client: &Client<W>,
    request: &Request,
    launch: &Launch,
    recorder: &dyn Recorder,
) -> Result<(PathBuf, Option<TempDir>)> {
    let from = |text: &str| match &launch.cwd {
        Some(cwd) => Path::new(cwd).join(text),
        None => PathBuf::from(text),
    };
    match (&launch.recording, &launch.program) {
        (Some(_), Some(_)) => {
            bail!("name a recording or a program, not both")
        }
        (Some(recording), None) => Ok((from(recording), None)),
        (None, None) => bail!(
            "{} names nothing to debug: set \"recording\" to a file, or \"program\" to a .wasm file",
            request.command
        ),
        (None, Some(_)) if request.command == "attach" => {
            bail!("attach takes a recording; use launch to record a program")
        }
        (None, Some(program)) => {
            let folder;
            let to = match &launch.output {
                Some(output) => {
                    folder = None;
                    let to = from(output);
                    if to.exists() && !launch.force {
                        bail!(
                            "{} already exists; set \"force\" to overwrite it, or another \
                             \"output\"",
                            to.display()
                        );
                    }
                    to
                }
                None => {
                    let made = tempfile::tempdir().context("cannot make a temporary folder")?;
                    let to = made.path().join("run.aft");
                    folder = Some(made);
                    to
                }
            };
            let launch = Launch {
                program: Some(from(program).display().to_string()),
                stdin: launch
                    .stdin
                    .as_deref()
                    .map(|at| from(at).display().to_string()),
                dirs: launch
                    .dirs
                    .iter()
                    .map(|text| granted(text, &from))
                    .collect(),
                ..launch.clone()
            };
            let mut output = |category, text: &str| client.output(category, text);
            recorder.record(&launch, &to, &mut output, &client.cancelled)?;
            Ok((to, folder))
        }
    }
}

/// Resolves the host part of `HOST` or `HOST::GUEST` from the folder of the configuration.
fn granted(text: &str, from: &dyn Fn(&str) -> PathBuf) -> String {
    let (host, guest) = text.split_once("::").unwrap_or((text, text));
    format!("{}::{guest}", from(host).display())
}

/// Returns the capabilities of this server, including a few that are explicitly unsupported.
fn capabilities() -> Value {
    json!({
        "supportsConfigurationDoneRequest": true,
        "supportsFunctionBreakpoints": true,
        "supportsConditionalBreakpoints": true,
        "supportsHitConditionalBreakpoints": true,
        "supportsLogPoints": true,
        "supportsDataBreakpoints": true,
        "supportsDataBreakpointBytes": true,
        "supportsInstructionBreakpoints": true,
        "supportsBreakpointLocationsRequest": true,
        "supportsExceptionInfoRequest": true,
        "exceptionBreakpointFilters": [{
            "filter": "trap",
            "label": "Traps",
            "description": "Stop where the program trapped, or left an exception uncaught",
            "default": true,
        }],
        "supportsStepBack": true,
        "supportsSteppingGranularity": true,
        "supportsGotoTargetsRequest": true,
        "supportsEvaluateForHovers": true,
        "supportsDelayedStackTraceLoading": true,
        "supportsReadMemoryRequest": true,
        "supportsDisassembleRequest": true,
        "supportsTerminateRequest": true,
        "supportsCancelRequest": true,
        "supportsLoadedSourcesRequest": true,
        "supportsSetVariable": false,
        "supportsRestartRequest": false,
    })
}
