//! Holds the debugged run: its position, and the data shown to the client.

use std::io::Write;
use std::path::{Path, PathBuf};

use afterimage::OpenedFile;
use afterimage::debugger::{Debugger, Position};
use anyhow::{Context, Result, anyhow, bail};
use serde::Serialize;
use serde_json::{Value, json};

use crate::breakpoints::Points;
use crate::client::Client;
use crate::motion::Motion;
use crate::protocol::{Goto, Launch, Request, Source, SourceText, Stepping};
use crate::server::Left;
use crate::stack::ShownFrame;
use crate::variables::Handle;

/// The numbers that the client gives to the first line and to the first column: 0 or 1.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Numbering {
    pub lines: i64,
    pub columns: i64,
}

impl Numbering {
    /// Converts a line number, counted from 1, to the client's numbering.
    pub(crate) fn line(self, number: u32) -> i64 {
        i64::from(number) - 1 + self.lines
    }

    /// Converts a column number, counted from 1, to the client's numbering. An unknown column, 0,
    /// becomes the first.
    pub(crate) fn column(self, number: u32) -> i64 {
        i64::from(number.max(1)) - 1 + self.columns
    }

    /// Converts the client's line number to one that counts from 1.
    pub(crate) fn number_of(self, line: i64) -> Result<u32> {
        let number = line
            .checked_add(1)
            .and_then(|line| line.checked_sub(self.lines));
        let number = number.and_then(|number| u32::try_from(number).ok());
        number
            .filter(|number| *number > 0)
            .with_context(|| format!("there is no line {line}"))
    }
}

/// The identifier of the only thread.
pub(crate) const THREAD: u64 = 1;

/// The run that is debugged.
pub(crate) struct Debuggee<'d, 'a, W> {
    pub debugger: &'d Debugger<'a>,
    pub client: &'d Client<W>,
    pub launch: &'d Launch,
    pub numbering: Numbering,
    /// The position of the run.
    pub at: Position,
    pub points: Points<'a>,
    /// The frames shown to the client since the last stop. A frame's identifier is its position in
    /// this list, counted from 1.
    pub frames: Vec<ShownFrame>,
    /// The objects that the client may open at the current stop. A reference is a position in this
    /// list, counted from 1.
    pub handles: Vec<Handle>,
    /// The positions that the client may jump to. A target's identifier is its position in this
    /// list, counted from 1.
    pub targets: Vec<Position>,
    /// The files that the client reads through this server. A reference is a position in this list,
    /// counted from 1.
    pub files: Vec<String>,
    /// The reason why the run trapped or left an exception uncaught, if the run has stopped at that
    /// point.
    pub exception: Option<String>,
    /// Whether the client has finished configuring the session.
    pub is_running: bool,
    file: OpenedFile,
}

/// The result of a request: its answer, and the motion of the run that follows.
pub(crate) struct Answer {
    pub body: Value,
    pub motion: Option<Motion>,
}

impl Answer {
    fn of(body: impl Serialize) -> Result<Self> {
        Ok(Self {
            body: serde_json::to_value(body)?,
            motion: None,
        })
    }

    fn going(motion: Motion) -> Result<Self> {
        Ok(Self {
            body: Value::Null,
            motion: Some(motion),
        })
    }
}

impl<'d, 'a, W: Write + Send + 'static> Debuggee<'d, 'a, W> {
    pub(crate) fn new(
        debugger: &'d Debugger<'a>,
        client: &'d Client<W>,
        launch: &'d Launch,
        numbering: Numbering,
    ) -> Result<Self> {
        let at = match &launch.goto {
            Some(moment) => debugger.position(moment).context("goto")?,
            None => debugger.first()?,
        };
        Ok(Self {
            debugger,
            client,
            launch,
            numbering,
            at,
            points: Points::default(),
            frames: Vec::new(),
            handles: Vec::new(),
            targets: Vec::new(),
            files: Vec::new(),
            exception: None,
            is_running: false,
            file: OpenedFile::of(debugger.session().at())?,
        })
    }

    /// Answers requests until the client leaves.
    pub(crate) fn serve(&mut self) -> Left {
        while let Some(request) = self.client.next() {
            match request.command.as_str() {
                "disconnect" => {
                    self.client.succeed(&request, Value::Null);
                    return Left::Over;
                }
                "terminate" => {
                    self.client.succeed(&request, Value::Null);
                    self.client.event("terminated", Value::Null);
                    continue;
                }
                // The operation that the request should interrupt has already ended.
                "cancel" | "pause" => {
                    self.client.is_interrupted();
                    self.client.succeed(&request, Value::Null);
                    continue;
                }
                _ => {}
            }
            self.client.is_interrupted();
            if let Some(why) = self.file.cut() {
                self.client.fail(&request, &why);
                continue;
            }
            match self.answer(&request) {
                Ok(Answer { body, motion }) => {
                    self.client.succeed(&request, body);
                    if let Some(motion) = motion {
                        self.go(motion);
                    }
                }
                Err(error) => self.client.fail(&request, &sentence(&error)),
            }
        }
        Left::Over
    }

    fn answer(&mut self, request: &Request) -> Result<Answer> {
        let command = request.command.as_str();
        if let Some(motion) = self.motion(request)? {
            let body = match command {
                "continue" => json!({ "allThreadsContinued": true }),
                _ => Value::Null,
            };
            return Ok(Answer {
                body,
                motion: Some(motion),
            });
        }
        match command {
            "configurationDone" => Answer::going(self.begin()),
            "threads" => Answer::of(json!({ "threads": [{ "id": THREAD, "name": "main" }] })),
            "setBreakpoints" => Answer::of(self.set_lines(of::<W, _>(request)?)?),
            "setFunctionBreakpoints" => Answer::of(self.set_functions(of::<W, _>(request)?)?),
            "setInstructionBreakpoints" => Answer::of(self.set_operators(of::<W, _>(request)?)?),
            "setDataBreakpoints" => Answer::of(self.set_data(of::<W, _>(request)?)?),
            "setExceptionBreakpoints" => Answer::of(self.set_exceptions(of::<W, _>(request)?)?),
            "dataBreakpointInfo" => Answer::of(self.data_info(&of::<W, _>(request)?)?),
            "breakpointLocations" => Answer::of(self.locations(&of::<W, _>(request)?)?),
            "exceptionInfo" => Answer::of(self.exception_info()?),
            "stackTrace" => Answer::of(self.stack_trace(&of::<W, _>(request)?)?),
            "scopes" => Answer::of(self.scopes(&of::<W, _>(request)?)?),
            "variables" => Answer::of(self.variables(&of::<W, _>(request)?)?),
            "evaluate" => self.evaluate(&of::<W, _>(request)?),
            "gotoTargets" => Answer::of(self.goto_targets(&of::<W, _>(request)?)?),
            "goto" => {
                let Goto { target_id } = of::<W, _>(request)?;
                let target = position(target_id).and_then(|at| self.targets.get(at));
                let target =
                    target.context("there is no such target; ask for gotoTargets again")?;
                Answer::going(Motion::To(*target))
            }
            "readMemory" => Answer::of(self.read_memory(&of::<W, _>(request)?)?),
            "disassemble" => Answer::of(self.disassemble(&of::<W, _>(request)?)?),
            "source" => Answer::of(self.source_text(&of::<W, SourceText>(request)?)?),
            "loadedSources" => Answer::of(self.loaded_sources()),
            "afterimage/origins" => Answer::of(self.origins(&of::<W, _>(request)?)?),
            "initialize" => bail!("initialize was already sent"),
            "launch" | "attach" => bail!("a run is already being debugged; disconnect first"),
            "setVariable" | "setExpression" | "writeMemory" | "restartFrame" => {
                bail!("{command}: a recording cannot be changed")
            }
            _ => bail!(unsupported(command)),
        }
    }

    fn motion(&self, request: &Request) -> Result<Option<Motion>> {
        use afterimage::debugger::{Direction, Step};
        let (step, direction) = match request.command.as_str() {
            "continue" => return Ok(Some(Motion::Run(Direction::Forward))),
            "reverseContinue" => return Ok(Some(Motion::Run(Direction::Backward))),
            "next" => (Step::Over, Direction::Forward),
            "stepIn" => (Step::In, Direction::Forward),
            "stepOut" => (Step::Out, Direction::Forward),
            "stepBack" => (Step::Over, Direction::Backward),
            "afterimage/reverseStepIn" => (Step::In, Direction::Backward),
            "afterimage/reverseStepOut" => (Step::Out, Direction::Backward),
            _ => return Ok(None),
        };
        let Stepping { granularity } = of::<W, _>(request)?;
        Ok(Some(match granularity.as_deref() {
            Some("instruction") if step != Step::Out => Motion::Operator(direction),
            _ => Motion::Step(step, direction),
        }))
    }

    /// Describes a source file to the client.
    pub(crate) fn source(&mut self, path: &str) -> Source {
        let name = Path::new(path).file_name();
        let name = name.map(|name| name.to_string_lossy().into_owned());
        let sources = self.debugger.session().sources();
        if let Some(at) = sources.locate(path) {
            let at = std::path::absolute(&at).unwrap_or(at);
            return Source {
                name,
                path: Some(at.display().to_string()),
                ..Source::default()
            };
        }
        if sources.has(path) {
            let known = self.files.iter().position(|known| known == path);
            let known = known.unwrap_or_else(|| {
                self.files.push(path.to_owned());
                self.files.len() - 1
            });
            return Source {
                name,
                path: Some(path.to_owned()),
                source_reference: Some(known as u64 + 1),
                origin: Some("embedded in the recording".to_owned()),
                ..Source::default()
            };
        }
        Source {
            name,
            path: Some(path.to_owned()),
            presentation_hint: Some("deemphasize".to_owned()),
            origin: Some("source not found; set sourcePath".to_owned()),
            ..Source::default()
        }
    }

    /// Returns the path in the debug information for a source that the client names.
    pub(crate) fn file_of(&self, source: &Source) -> Result<String> {
        let known = source.source_reference.and_then(position);
        if let Some(path) = known.and_then(|known| self.files.get(known)) {
            return Ok(path.clone());
        }
        let Some(path) = &source.path else {
            bail!("the source has no path");
        };
        let map = self.debugger.source();
        if map.files().contains(path) {
            return Ok(path.clone());
        }
        let wanted = PathBuf::from(path);
        let wanted = wanted.canonicalize().unwrap_or(wanted);
        let name = wanted.file_name();
        let alike = map
            .files()
            .iter()
            .filter(|one| Path::new(one).file_name() == name);
        let sources = self.debugger.session().sources();
        for one in alike {
            let at = sources.locate(one);
            if at.is_some_and(|at| at.canonicalize().unwrap_or(at) == wanted) {
                return Ok(one.clone());
            }
        }
        match map.find_file(path) {
            Ok(file) => Ok(map.path(file).to_owned()),
            // The file may be in a different folder on this machine.
            Err(error) => {
                let name = name.and_then(|name| name.to_str());
                let by_name = name.and_then(|name| map.find_file(name).ok());
                let by_name = by_name.map(|file| map.path(file).to_owned());
                by_name.ok_or_else(|| anyhow!("{error}"))
            }
        }
    }

    /// Moves the run to a position, and discards the data shown for the previous position.
    pub(crate) fn moved_to(&mut self, at: Position) {
        self.at = at;
        self.frames.clear();
        self.handles.clear();
        self.exception = None;
    }
}

/// Returns the error for an unknown request.
pub(crate) fn unsupported(command: &str) -> String {
    format!("{command} is not supported")
}

/// Reads the arguments of a request.
fn of<W: Write + Send + 'static, T: for<'de> serde::Deserialize<'de>>(
    request: &Request,
) -> Result<T> {
    Client::<W>::arguments(request)
}

/// Converts a number that counts from 1 to a position in a list.
pub(crate) fn position(number: u64) -> Option<usize> {
    usize::try_from(number).ok()?.checked_sub(1)
}

/// Formats an error as one line, without the names of options of the command line.
pub(crate) fn sentence(error: &anyhow::Error) -> String {
    let text = afterimage::text::sentence(error).replace('\n', " ");
    ["--var ", "--at "]
        .iter()
        .fold(text, |text, option| text.replace(option, ""))
}
