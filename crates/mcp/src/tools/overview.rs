//! Implements the tool `overview`, which shows the contents of a recording, and where the run spent
//! its time.

use afterimage::analyses::why::{Printed, Stream};
use afterimage::explain::explain;
use afterimage::files::Loaded;
use afterimage::info::info;
use afterimage::profile::{CodeFilter, Sort};
use afterimage::{ProfileQuery, Session};
use anyhow::Result;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::{Question, Subject, next};
use crate::answer::{Next, ToolResult, Totals};
use crate::schemas;

/// The recording to summarise.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Arguments {
    /// The recording.
    recording: String,
    /// Skip this many functions, to continue an answer.
    #[serde(default)]
    offset: usize,
}

/// The contents of a recording.
#[derive(Serialize, JsonSchema)]
struct Overview {
    /// The name under which the program ran.
    program: String,
    /// Its arguments.
    args: Vec<String>,
    /// The ending of the run, in words; `null` if the recording was cut off or continues.
    ending: Option<String>,
    /// Whether the program is still being recorded.
    running: bool,
    /// The data that was built for the recording: `counts`, `paths`, `full`.
    lenses: Vec<&'static str>,
    /// The number of basic blocks executed. The time t counts these blocks.
    blocks: u64,
    /// The number of instructions executed.
    instructions: u64,
    /// The output of the run.
    output: Vec<Printing>,
    /// The executed functions of the user's own code, the most executed instructions first.
    functions: Vec<Executed>,
}

/// The text printed to a stream.
#[derive(Serialize, JsonSchema)]
struct Printing {
    /// `stdout` or `stderr`.
    stream: &'static str,
    /// The number of bytes.
    bytes: u64,
    /// The first bytes, as text.
    begins: String,
    /// The last bytes, if they are not among the first.
    ends: String,
}

/// A function.
#[derive(Serialize, JsonSchema)]
struct Executed {
    /// Its name.
    name: String,
    /// The number of its calls.
    calls: u64,
    /// The number of instructions that it executed itself.
    instructions: u64,
    /// Its line, if known: `parser.c:12`.
    source: Option<String>,
}

/// The maximum number of functions in an answer.
const FUNCTIONS: usize = 20;
/// The maximum number of bytes shown from the beginning of the output, and from its end.
const BYTES: u64 = 480;
/// The maximum number of lines of output in the text.
const LINES: usize = 5;

impl Question for Arguments {
    const NAME: &'static str = "overview";
    const TITLE: &'static str = "The contents of a recording";
    const ABOUT: &'static str = "Shows what was run, how it ended, what it printed, and the \
        functions of the user's own code with the number of calls to each. Begin here.";

    fn reports() -> Vec<Value> {
        vec![schemas::report::<Overview>()]
    }

    fn recordings(&self) -> Vec<&str> {
        vec![&self.recording]
    }

    fn answer(&self, asked: &Subject<'_>) -> Result<ToolResult> {
        let session = asked.session()?;
        let query = ProfileQuery {
            sort: Some(Sort::Instructions),
            code: Some(CodeFilter::Mine),
            ..ProfileQuery::default()
        };
        let profile = serde_json::to_value(session.execution_counts(&[], &query)?)?;
        let loaded = Loaded::of(session);
        let held = info(
            session.at(),
            session.file(),
            &loaded,
            (false, false),
            &CodeFilter::All,
            session.monitor(),
        )?;
        let output = asked.answered(|session| Ok(printed(session)?))?;
        let rows = profile["rows"].as_array().into_iter().flatten();
        let rows = rows.filter(|row| row["entries"].as_u64().is_some_and(|entries| entries > 0));
        let executed = rows.map(|row| {
            let source = &row["source"];
            Executed {
                name: row["function"]["name"]
                    .as_str()
                    .unwrap_or_default()
                    .to_owned(),
                calls: row["entries"].as_u64().unwrap_or(0),
                instructions: row["instructions"].as_u64().unwrap_or(0),
                source: source["file"]
                    .as_str()
                    .map(|file| format!("{file}:{}", source["line"])),
            }
        });
        let executed = Vec::from_iter(executed);
        let all = executed.len();
        let functions = executed.into_iter().skip(self.offset).take(FUNCTIONS);
        let report = Overview {
            program: held.program,
            args: held.args,
            ending: held.ending,
            running: held.running,
            lenses: held.lenses,
            blocks: profile["totals"]["blocks"].as_u64().unwrap_or(0),
            instructions: profile["totals"]["instructions"].as_u64().unwrap_or(0),
            output,
            functions: functions.collect(),
        };
        let until = self.offset + report.functions.len();
        let totals = Totals {
            unit: "functions of your own code",
            shown: report.functions.len() as u64,
            all: Some(all as u64),
        };
        let mut found = ToolResult::new(serde_json::to_value(&report)?, report.text(), totals);
        found.next = self.next(&report);
        found.more = (until < all).then(|| json!({ "offset": until }));
        Ok(found)
    }
}

impl Arguments {
    fn next(&self, report: &Overview) -> Vec<Next> {
        let call = |tool, arguments, about: &str| {
            next(tool, &self.recording, arguments, (about.to_owned(), true))
        };
        let mut all = Vec::new();
        let returned = report
            .ending
            .as_deref()
            .is_none_or(|ending| ending.starts_with("returned"));
        if !returned {
            all.push(call("why", json!({ "trap": true }), "what ended the run"));
        }
        if report
            .output
            .iter()
            .any(|one| one.stream == "stdout" && one.bytes > 0)
        {
            let arguments = json!({ "stdout": "line:last" });
            all.push(call(
                "why",
                arguments,
                "where the last line of output came from",
            ));
        }
        if let Some(first) = report.functions.first() {
            let about = format!("the first call to {}", first.name);
            all.push(call(
                "call",
                json!({ "at": format!("{}#1", first.name) }),
                &about,
            ));
        }
        all
    }
}

impl Overview {
    fn text(&self) -> String {
        let mut text = format!("{} {}\n", self.program, self.args.join(" "));
        let ending = match (&self.ending, self.running) {
            (Some(ending), _) => ending.as_str(),
            (None, true) => "is still being recorded",
            (None, false) => "was cut off",
        };
        text += &format!(
            "the run {ending}; {} instructions in {} blocks\n",
            self.instructions, self.blocks
        );
        for one in &self.output {
            text += &format!("{}, {} bytes:\n", one.stream, one.bytes);
            let begins = Vec::from_iter(one.begins.lines());
            let ends = if one.ends.is_empty() {
                begins[begins.len().min(LINES)..].to_vec()
            } else {
                Vec::from_iter(one.ends.lines())
            };
            for line in begins.iter().take(LINES) {
                text += &format!("  {line}\n");
            }
            if !one.ends.is_empty() || ends.len() > LINES {
                text += "  …\n";
            }
            for line in &ends[ends.len().saturating_sub(LINES)..] {
                text += &format!("  {line}\n");
            }
        }
        text += "instructions      calls  function\n";
        for one in &self.functions {
            let source = one.source.as_deref().unwrap_or("no line");
            text += &format!(
                "{:>12}  {:>9}  {}  {source}\n",
                one.instructions, one.calls, one.name
            );
        }
        text
    }
}

/// Returns the run's output.
fn printed(session: &Session) -> Result<Vec<Printing>> {
    explain(session, |scene| {
        let mut found = Vec::new();
        for (name, stream) in [("stdout", Stream::Output), ("stderr", Stream::Error)] {
            let imports = &session.program().imports;
            let mut puts = Vec::new();
            let mut all = Printed::new(session.file(), imports)?;
            let mut bytes = 0;
            while let Some(put) = all.next(&stream)? {
                bytes = put.before + put.bytes;
                // Only the beginning and the end of the output are shown, so other pieces are
                // dropped.
                puts.retain(|held: &afterimage::analyses::why::Put| {
                    held.before < BYTES || held.before + held.bytes + BYTES > bytes
                });
                puts.push(put);
            }
            let part = |from: u64, to: u64| -> Result<String> {
                let mut text = Vec::new();
                for put in &puts {
                    let first = put.before.max(from);
                    let last = (put.before + put.bytes).min(to);
                    if first < last {
                        let held = put.open(&scene.host)?;
                        text.extend(put.bytes(&held, &scene.host, first, last - first)?);
                    }
                }
                Ok(String::from_utf8_lossy(&text).into_owned())
            };
            if bytes > 0 {
                found.push(Printing {
                    stream: name,
                    bytes,
                    begins: part(0, BYTES.min(bytes))?,
                    ends: if bytes > BYTES {
                        part((bytes - BYTES).max(BYTES), bytes)?
                    } else {
                        String::new()
                    },
                });
            }
        }
        Ok(found)
    })
}
