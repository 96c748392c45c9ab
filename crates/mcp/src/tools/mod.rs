//! The tools, one per file. A tool's arguments are a struct. The schema that agents read comes from
//! this struct and its comments.

mod call;
mod diff;
mod find;
mod history;
mod near;
mod overview;
mod paths;
mod slice;
mod source;
mod state;
mod why;
mod why_not;

use std::rc::Rc;
use std::sync::atomic::AtomicBool;

use afterimage::check::Needs;
use afterimage::places::{NoPlace, no_place};
use afterimage::text::sentence;
use afterimage::{QuestionError, Session};
use anyhow::{Context, Error, Result, anyhow};
use schemars::JsonSchema;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value, json};

use crate::answer::{Next, ToolResult, failure};
use crate::calls::{commands_as_calls, options_as_arguments};
use crate::schemas;
use crate::sessions::{KeptAnswers, Sessions};

/// A tool, as the protocol describes it.
#[derive(Clone, Copy)]
pub(crate) struct Tool {
    pub name: &'static str,
    title: &'static str,
    about: &'static str,
    arguments: fn() -> Value,
    reports: fn() -> Vec<Value>,
    run: fn(&Map<String, Value>, &mut Sessions, &AtomicBool) -> Result<ToolResult>,
}

/// A question to a tool, given by the tool's arguments.
trait Question: DeserializeOwned + JsonSchema {
    const NAME: &'static str;
    const TITLE: &'static str;
    /// The description by which an agent chooses the tool.
    const ABOUT: &'static str;

    /// Returns the schemas that the report may have.
    fn reports() -> Vec<Value>;

    /// Returns the recordings that the question is about.
    fn recordings(&self) -> Vec<&str>;

    /// Answers the question.
    fn answer(&self, asked: &Subject<'_>) -> Result<ToolResult>;
}

/// The recording or recordings that a question is about.
struct Subject<'a> {
    sessions: &'a [&'a Session],
    cancel: &'a AtomicBool,
    /// The question, without the part of the answer that is shown.
    key: &'a str,
    kept: &'a KeptAnswers,
}

impl<'a> Subject<'a> {
    fn session(&self) -> Result<&'a Session> {
        let first = self.sessions.first();
        first.copied().context("no recording was named")
    }

    /// Returns the whole answer, made by `make`. The next calls that show other parts of it, with
    /// another `offset`, reuse it.
    fn once<T: 'static>(&self, make: impl FnOnce() -> Result<T>) -> Result<Rc<T>> {
        self.kept.get(self.key, make)
    }

    /// Answers a question from stretches of the run if they suffice. Otherwise, builds all values
    /// first. The build can be cancelled.
    fn answered<R>(&self, ask: impl Fn(&Session) -> Result<R, QuestionError>) -> Result<R> {
        let build = |session: &Session| {
            session.ensure_whole_path()?;
            Ok(session.ensure_values(self.cancel)?)
        };
        let ask = |session: &Session| Ok(ask(session)?);
        Ok(self.session()?.answer(Needs::Values, build, ask)?)
    }
}

/// The error for invalid arguments of a question.
#[derive(Debug)]
struct BadArguments(String);

impl std::fmt::Display for BadArguments {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for BadArguments {}

const fn tool<Q: Question>() -> Tool {
    Tool {
        name: Q::NAME,
        title: Q::TITLE,
        about: Q::ABOUT,
        arguments: schemas::arguments::<Q>,
        reports: Q::reports,
        run: run::<Q>,
    }
}

/// All tools, in the order in which agents receive them.
pub(crate) const ALL: [Tool; 11] = [
    tool::<overview::Arguments>(),
    tool::<source::Arguments>(),
    tool::<call::Arguments>(),
    tool::<find::Arguments>(),
    tool::<state::Arguments>(),
    tool::<history::Arguments>(),
    tool::<why::Arguments>(),
    tool::<why_not::Arguments>(),
    tool::<slice::Arguments>(),
    tool::<diff::Arguments>(),
    tool::<paths::Arguments>(),
];

/// Returns the tool with this name.
pub(crate) fn find(name: &str) -> Option<Tool> {
    ALL.into_iter().find(|tool| tool.name == name)
}

/// Returns the descriptions of all tools.
pub(crate) fn list() -> Vec<Value> {
    let described = |tool: Tool| {
        json!({
            "name": tool.name,
            "title": tool.title,
            "description": tool.about,
            "inputSchema": (tool.arguments)(),
            "outputSchema": schemas::answer((tool.reports)()),
            "annotations": {
                "readOnlyHint": true,
                "destructiveHint": false,
                "idempotentHint": true,
                "openWorldHint": false,
            },
        })
    };
    ALL.into_iter().map(described).collect()
}

/// Answers a call.
pub(crate) fn answer(
    tool: &Tool,
    arguments: &Map<String, Value>,
    sessions: &mut Sessions,
    cancel: &AtomicBool,
) -> Result<ToolResult> {
    (tool.run)(arguments, sessions, cancel)
}

fn run<Q: Question>(
    arguments: &Map<String, Value>,
    sessions: &mut Sessions,
    cancel: &AtomicBool,
) -> Result<ToolResult> {
    let question: Q = serde_json::from_value(Value::Object(arguments.clone()))
        .map_err(|error| BadArguments(format!("{}: {error}", Q::NAME)))?;
    let mut whole = arguments.clone();
    whole.remove("offset");
    let key = format!("{} {}", Q::NAME, Value::Object(whole));
    sessions.with(&question.recordings(), |sessions, kept| {
        question.answer(&Subject {
            sessions,
            cancel,
            key: &key,
            kept,
        })
    })
}

/// Returns the result of a failed call. If a call is likely to help, suggests it.
pub(crate) fn failed(tool: &Tool, arguments: &Map<String, Value>, error: &Error) -> Value {
    let why = sentence(error);
    if error.is::<BadArguments>() {
        let schema = (tool.arguments)();
        let known = schema["properties"].as_object();
        let known = known.map_or(String::new(), |known| {
            Vec::from_iter(known.keys().map(String::as_str)).join(", ")
        });
        return failure(&format!("{why}; its arguments are: {known}"), &[]);
    }
    let schema = (tool.arguments)();
    let known = schema["properties"].as_object();
    let known = known.map_or(Vec::new(), |known| Vec::from_iter(known.keys()));
    let why = options_as_arguments(&commands_as_calls(&why), &known);
    let next = no_place(error).and_then(|why| suggested(tool, arguments, why));
    failure(&why, next.as_slice())
}

/// Returns the call that helps if a place does not exist.
fn suggested(tool: &Tool, arguments: &Map<String, Value>, why: NoPlace) -> Option<Next> {
    let recording = arguments.get("recording")?.as_str()?;
    let at = arguments.get("at").and_then(Value::as_str);
    let call = |tool, about: &str, more: Value| {
        Some(next(tool, recording, more, (about.to_owned(), true)))
    };
    let again = |about: &str, name: &str, value: String| {
        let mut again = arguments.clone();
        again.insert(name.to_owned(), json!(value));
        call(tool.name, about, Value::Object(again))
    };
    match why {
        NoPlace::Executed => {
            let at = json!({ "at": last(at?) });
            call("call", "what its last execution did", at)
        }
        NoPlace::Never if tool.name != "why_not" => {
            let at = json!({ "at": place(at?) });
            call("why_not", "why it was not executed", at)
        }
        NoPlace::Never => None,
        NoPlace::Fewer if arguments.contains_key("instances") => {
            again("its last execution", "instances", "last".to_owned())
        }
        NoPlace::Fewer => again("its last execution", "at", last(at?)),
        NoPlace::NoCode(line) => {
            let (file, _) = at?.split_once(':')?;
            again("the nearest line with code", "at", format!("{file}:{line}"))
        }
        NoPlace::NoFunction(name) => {
            let name = name.rsplit("::").next().unwrap_or(&name);
            let name = json!({ "name": name });
            call("find", "which functions have that name", name)
        }
    }
}

/// Removes the number of the execution from a position.
fn place(at: &str) -> &str {
    at.split_once('#').map_or(at, |(place, _)| place)
}

fn last(at: &str) -> String {
    format!("{}#last", place(at))
}

/// Returns a possible next call, about the same recording.
fn next(
    tool: &'static str,
    recording: &str,
    arguments: Value,
    (about, own): (String, bool),
) -> Next {
    let mut all = Map::from_iter([("recording".to_owned(), json!(recording))]);
    all.extend(arguments.as_object().cloned().unwrap_or_default());
    Next {
        tool,
        arguments: all,
        about,
        own,
    }
}

/// Returns the error for a missing or invalid argument.
fn needs(what: &str) -> Error {
    anyhow!(BadArguments(what.to_owned()))
}
