//! Answers questions that have the form of commands. Each question has the options of its command,
//! and the answer is the JSON that the command writes.

use std::sync::Arc;

use afterimage::calls::{show_call, show_calls};
use afterimage::check::{self, Needs};
use afterimage::debugger::{Direction, Step};
use afterimage::explain::explain_with;
use afterimage::explore::{
    ExecutionsQuery, FilesQuery, FlowQuery, InfluenceQuery, MomentQuery, Move, OutputQuery,
    SourceQuery, StepQuery,
};
use afterimage::export::{ExportFormat, ExportQuery, Least};
use afterimage::files::Loaded;
use afterimage::info::info;
use afterimage::memory::{MemoryBytes, MemoryQuery, addresses};
use afterimage::named::with_names;
use afterimage::path::{GraphOf, dynamic_graph};
use afterimage::present::document::{Document, begin};
use afterimage::present::{
    CfgView, Content, DepsAlong, DepsDirection, DynamicCfgView, Format, ProfileDocument, Render,
    Style, Whole, WhyNotView, render,
};
use afterimage::profile::location::Occurrence;
use afterimage::profile::{By, CodeFilter, Sort};
use afterimage::rows::{Form, Output};
use afterimage::trace::{Bounds, Level, LineVariables, StepInto, TraceQuery};
use afterimage::values::{ConditionQuery, Detail, Instances, Wanted};
use afterimage::why::show;
use afterimage::why::{Byte, WhyAbout, WhyQuery};
use afterimage::{
    DepsQuery, PathsAbout, PathsQuery, ProfileQuery, Session, StateQuery, ValuesQuery,
    VariableQuery, WhyNotQuery,
};
use afterimage_replay::whole_path::{CountOrder, GraphNodes};
use anyhow::{Context, Result, anyhow, bail};

use crate::parameters::{Parameters, malformed};

/// A lane for questions. Questions in different lanes do not wait for each other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Lane {
    /// Answers from data in the file, so that the page shows at once how the run ended.
    File,
    /// Answers from counts.
    Counts,
    /// Answers that need the path.
    Path,
    /// Answers about the output, for which the run is followed if there are no values, and the list
    /// of files in a range.
    Output,
    /// Answers that need values.
    Values,
    /// Answers that the page will probably need next. They delay no other question.
    Ahead,
}

impl Lane {
    /// All lanes, in order.
    pub const ALL: [Self; 6] = [
        Self::File,
        Self::Counts,
        Self::Path,
        Self::Output,
        Self::Values,
        Self::Ahead,
    ];
}

/// An answer.
pub(crate) struct Answer {
    pub content_type: &'static str,
    pub body: Vec<u8>,
    /// Whether the same question will always have the same answer.
    pub is_final: bool,
    /// The equivalent command, if it is known only after the answer.
    pub command: Option<String>,
}

/// Returns the lane of a question, or `None` if there is no such question.
pub(crate) fn lane(command: &str, parameters: &Parameters) -> Option<Lane> {
    Some(match command {
        "info" => Lane::File,
        "names" => Lane::Counts,
        "profile" | "files" | "source" | "cfg"
            if !parameters.has("from") && !parameters.has("to") && !parameters.has("dynamic") =>
        {
            Lane::Counts
        }
        "profile" | "source" | "cfg" | "flow" | "calls" | "paths" | "export" => Lane::Path,
        "executions" if !parameters.has_limit(ExecutionsQuery::FEW) => Lane::Path,
        "output" | "files" => Lane::Output,
        "executions" | "moment" | "step" | "trace" | "state" | "why" | "why-not" | "deps"
        | "values" | "memory" | "influence" => Lane::Values,
        _ => return None,
    })
}

/// Returns the equivalent command or, if there is none, the nearest command.
pub(crate) fn as_command(command: &str, parameters: &Parameters, file: &str) -> String {
    match command {
        "files" if parameters.has("from") || parameters.has("to") => {
            in_range(parameters, &[("by", "line")], file)
        }
        "source" if parameters.has("from") || parameters.has("to") => {
            let path = parameters.clone().text("file").unwrap_or_default();
            in_range(parameters, &[("annotate", ""), ("path", &path)], file)
        }
        // No command answers this question, so show the nearest command.
        "files" => format!(
            "{} --by line",
            Parameters::default().command("profile", file)
        ),
        "names" => Parameters::default().command("profile", file),
        "flow" if parameters.has("from") || parameters.has("to") => {
            let function = parameters.clone().text("function").unwrap_or_default();
            in_range(
                parameters,
                &[("by", "block"), ("function", &function)],
                file,
            )
        }
        "source" => format!(
            "{} --annotate",
            Parameters::default().command("profile", file)
        ),
        "flow" => {
            let function = parameters.clone().text("function").unwrap_or_default();
            Parameters::of(&[("function", &function)]).command("paths", file)
        }
        // The page cuts long lists of blocks, and the command does not.
        "paths" => parameters.without("blocks").command(command, file),
        "output" => {
            let limit = parameters.clone().text("limit");
            let mut options = vec![("output", "")];
            options.extend(limit.as_deref().map(|limit| ("limit", limit)));
            Parameters::of(&options).command("info", file)
        }
        // Only the answer contains the address of the byte, so show a command about the file first.
        "influence" => Parameters::default().command("info", file),
        "executions" | "moment" | "step" => {
            let mut parameters = parameters.clone();
            let at = parameters.text("at").unwrap_or_default();
            Parameters::of(&[("at", &at)]).command("state", file)
        }
        _ => parameters.command(command, file),
    }
}

/// Returns the command that counts the executions in the range of a question.
fn in_range(parameters: &Parameters, options: &[(&str, &str)], file: &str) -> String {
    let (from, to) = (
        parameters.clone().text("from"),
        parameters.clone().text("to"),
    );
    let mut options = options.to_vec();
    options.extend(from.as_deref().map(|from| ("from", from)));
    options.extend(to.as_deref().map(|to| ("to", to)));
    Parameters::of(&options).command("profile", file)
}

/// Returns the lines of an answer as JSON.
///
/// # Errors
/// Returns the same errors as [`answer`].
pub(crate) fn json_lines(
    session: &Session,
    command: &str,
    options: &[(&str, &str)],
) -> Result<Vec<serde_json::Value>> {
    let answer = answer(session, command, Parameters::of(options))?;
    let lines = serde_json::Deserializer::from_slice(&answer.body).into_iter();
    Ok(lines.collect::<Result<_, _>>()?)
}

/// Answers a question.
///
/// # Errors
/// Returns an error if the question has no answer, or `command` is not a question.
pub(crate) fn answer(session: &Session, command: &str, parameters: Parameters) -> Result<Answer> {
    let mut asked = Exchange {
        session,
        parameters,
        out: Vec::new(),
        command: None,
    };
    match command {
        "info" => asked.info()?,
        "profile" => asked.profile()?,
        "names" => {
            asked.parameters.finish()?;
            asked.document(&session.names()?)?;
        }
        "files" => {
            let bounds = asked.bounds();
            asked.parameters.finish()?;
            let document = session.files(&FilesQuery { bounds })?;
            asked.document(&document)?;
        }
        "source" => asked.source()?,
        "cfg" => asked.cfg()?,
        "flow" => asked.flow()?,
        "calls" => asked.calls()?,
        "paths" => asked.paths()?,
        "export" => asked.export()?,
        "executions" => asked.executions()?,
        "moment" => asked.moment()?,
        "step" => asked.step()?,
        "trace" => asked.trace()?,
        "state" => asked.state()?,
        "why" => asked.why()?,
        "why-not" => asked.why_not()?,
        "deps" => asked.deps()?,
        "values" => asked.values()?,
        "memory" => asked.memory()?,
        "output" => asked.output()?,
        "influence" => asked.influence()?,
        other => bail!("there is no question {other}"),
    }
    Ok(Answer {
        content_type: match command {
            "export" => "text/plain; charset=utf-8",
            _ => "application/json",
        },
        body: asked.out,
        is_final: match command {
            // The answer changes when a lens is built.
            "info" => false,
            // A running program may print more.
            "output" => session.file().end().is_ok_and(|end| end.is_some()),
            // Some arrivals can be counted only after the path is built.
            "moment" | "step" => check::is_built(session, Needs::Path),
            _ => true,
        },
        command: asked.command,
    })
}

/// A question and its answer.
struct Exchange<'s> {
    session: &'s Session,
    parameters: Parameters,
    out: Vec<u8>,
    command: Option<String>,
}

/// An output that keeps a report in memory.
struct InMemory<'o>(&'o std::sync::Mutex<Vec<u8>>);

impl Output for InMemory<'_> {
    fn write(
        &self,
        _: Content,
        report: &mut dyn FnMut(&mut dyn std::io::Write) -> Result<()>,
    ) -> Result<()> {
        let mut out = self
            .0
            .lock()
            .unwrap_or_else(std::sync::PoisonError::into_inner);
        report(&mut *out)
    }
}

fn occurrence(text: &str) -> Result<Occurrence> {
    text.parse()
        .map_err(|why| malformed(format!("call {text}: {why}")))
}

impl Exchange<'_> {
    fn named<T>(&self, found: Result<T>) -> Result<T> {
        found.with_context(|| self.session.at().display().to_string())
    }

    fn document<D: Document>(&mut self, document: &D) -> Result<()> {
        Ok(begin(&mut self.out, document)?)
    }

    fn report(&mut self, report: &impl Render) -> Result<()> {
        Ok(render(
            &mut self.out,
            report,
            Format::Json,
            Style::default(),
        )?)
    }

    fn bounds(&mut self) -> Bounds {
        Bounds {
            from: self.parameters.text("from"),
            to: self.parameters.text("to"),
        }
    }

    fn code(&mut self) -> Result<Option<CodeFilter>> {
        self.parameters.parsed("code", "mine, all or a glob")
    }

    fn info(&mut self) -> Result<()> {
        self.parameters.finish()?;
        // The newest state of the file contains data that was built in the meantime.
        let file = afterimage::files::recording(self.session.at())?;
        let loaded = Loaded::of(self.session);
        let found = info(
            self.session.at(),
            &file,
            &loaded,
            (false, false),
            &CodeFilter::All,
            self.session.monitor(),
        );
        let report = self.named(found)?;
        self.report(&report)
    }

    fn profile(&mut self) -> Result<()> {
        let by = [
            ("function", By::Function),
            ("line", By::Line),
            ("block", By::Block),
            ("edge", By::Edge),
            ("instruction", By::Instruction),
        ];
        let sort = [
            ("instructions", Sort::Instructions),
            ("count", Sort::Count),
            ("name", Sort::Name),
            ("program", Sort::Program),
        ];
        let code = self.code()?;
        let parameters = &mut self.parameters;
        let query = ProfileQuery {
            by: parameters.word("by", &by)?.unwrap_or_default(),
            sort: parameters.word("sort", &sort)?,
            top: parameters.number("limit")?.map(|top| top as usize),
            functions: parameters.text("function").into_iter().collect(),
            code,
            bounds: Bounds {
                from: parameters.text("from"),
                to: parameters.text("to"),
            },
        };
        parameters.finish()?;
        let document: ProfileDocument = self.session.execution_counts(&[], &query)?;
        self.document(&document)
    }

    fn source(&mut self) -> Result<()> {
        let query = SourceQuery {
            file: self.parameters.needed("file")?,
            bounds: self.bounds(),
        };
        self.parameters.finish()?;
        let document = self.session.source(&query)?;
        self.document(&document)
    }

    fn flow(&mut self) -> Result<()> {
        let query = FlowQuery {
            function: self.parameters.needed("function")?,
            bounds: self.bounds(),
        };
        self.parameters.finish()?;
        let document = self.session.flow(&query)?;
        self.document(&document)
    }

    fn output(&mut self) -> Result<()> {
        let limit = self.parameters.number("limit")?;
        self.parameters.finish()?;
        let limit = limit.unwrap_or(OutputQuery::LIMIT);
        let document = self.session.output(&OutputQuery { limit })?;
        self.document(&document)
    }

    fn influence(&mut self) -> Result<()> {
        let query = InfluenceQuery {
            file: self.parameters.text("file"),
            byte: self
                .parameters
                .parsed("byte", "a number from 0 on")?
                .ok_or_else(|| malformed("byte is missing"))?,
            thin: self.parameters.flag("thin")?,
        };
        self.parameters.finish()?;
        let document = self.session.influence(&query)?;
        let (at, address) = (
            format!("t={}", document.t + 1),
            format!("{0:#x}..{0:#x}", document.address),
        );
        let mut options = vec![("at", &*at), ("address", &*address), ("forward", "")];
        options.extend(query.thin.then_some(("thin", "")));
        let file = self.session.at().display().to_string();
        self.command = Some(Parameters::of(&options).command("slice", &file));
        self.document(&document)
    }

    fn executions(&mut self) -> Result<()> {
        let query = ExecutionsQuery {
            at: self.parameters.needed("at")?,
            bounds: self.bounds(),
            limit: self
                .parameters
                .number("limit")?
                .unwrap_or(1000)
                .min(100_000),
            by: self.parameters.text("by"),
        };
        self.parameters.finish()?;
        let document = self.session.executions(&query)?;
        self.document(&document)
    }

    fn moment(&mut self) -> Result<()> {
        let query = MomentQuery {
            at: self.parameters.needed("at")?,
            offset: self.parameters.parsed("offset", "a number")?,
        };
        self.parameters.finish()?;
        let document = self.session.moment(&query)?;
        self.document(&document)
    }

    fn step(&mut self) -> Result<()> {
        let steps = [
            ("in", Some(Step::In)),
            ("over", Some(Step::Over)),
            ("out", Some(Step::Out)),
            ("write", None),
        ];
        let step = self.parameters.word("step", &steps)?;
        let missing = || malformed("step is missing: give in, over, out or write");
        let by = match step.ok_or_else(missing)? {
            Some(step) => Move::Line(step),
            None => Move::Write {
                variable: self.parameters.needed("var")?,
                activation: self
                    .parameters
                    .parsed("activation", "a number")?
                    .unwrap_or(0),
                inlined: self.parameters.parsed("inlined", "a number")?,
            },
        };
        let query = StepQuery {
            at: self.parameters.needed("at")?,
            offset: self.parameters.parsed("offset", "a number")?,
            ahead: self.parameters.parsed("ahead", "a number")?.unwrap_or(0),
            by,
            direction: if self.parameters.flag("reverse")? {
                Direction::Backward
            } else {
                Direction::Forward
            },
        };
        self.parameters.finish()?;
        let document = self.session.step(&query)?;
        self.document(&document)
    }

    fn cfg(&mut self) -> Result<()> {
        let name = self.parameters.needed("function")?;
        let dynamic = self.parameters.flag("dynamic")?;
        let call = self.parameters.text("call");
        let trace = self.parameters.number("trace")?;
        let nodes = [("dbb", GraphNodes::Dynamic), ("blocks", GraphNodes::Blocks)];
        let nodes = self.parameters.word("nodes", &nodes)?;
        self.parameters.finish()?;
        let call = call.as_deref().map(occurrence).transpose()?;
        let loaded = Loaded::of(self.session);
        let source = self.session.source_map();
        let names = self.session.program_names();
        let id = self.named(Ok(names.find(&name, source)?))?;
        let name = names.function(id);
        let function = loaded.program.function(id);
        let function = function.ok_or_else(|| anyhow!("{name} is imported, so it has no graph"))?;
        if !dynamic {
            let counters = None;
            return self.report(&CfgView {
                function,
                name,
                counters,
            });
        }
        let path = self.session.ensure_path()?;
        let whose = match (trace, call) {
            (Some(trace), _) => GraphOf::Trace(trace as usize),
            (None, call) => GraphOf::Call(call.unwrap_or(Occurrence::Kth(1))),
        };
        let nodes = nodes.unwrap_or(GraphNodes::Dynamic);
        let graph = self.named(dynamic_graph(path, (id, name), whose, nodes))?;
        self.report(&DynamicCfgView {
            graph,
            function,
            name,
            whole: Whole::Beginning,
        })
    }

    fn calls(&mut self) -> Result<()> {
        let function = self.parameters.text("function");
        let call = self.parameters.text("call");
        self.parameters.finish()?;
        let call = call.as_deref().map(occurrence).transpose()?;
        let session = self.session;
        session.ensure_path()?;
        let found = with_names(session, |program| {
            let function = function
                .as_deref()
                .map(|text| program.function(text))
                .transpose()?;
            match (function, call) {
                (Some(function), Some(which)) => {
                    show_call(program, function, which, Style::default(), |call| {
                        self.report(call)
                    })
                }
                (None, Some(_)) => Err(malformed("call needs a function")),
                (only, None) => show_calls(program, only, usize::MAX, |calls| self.report(calls)),
            }
        });
        found.with_context(|| session.at().display().to_string())
    }

    fn paths(&mut self) -> Result<()> {
        let query = PathsQuery {
            about: match (self.parameters.text("find"), self.parameters.flag("hot")?) {
                (Some(text), _) => PathsAbout::Occurrences(text),
                (None, true) => PathsAbout::Hot,
                (None, false) => PathsAbout::Traces(CountOrder::Calls),
            },
            function: self.parameters.text("function"),
            code: self.code()?.unwrap_or(CodeFilter::All),
            top: self.parameters.number("limit")?.map(|top| top as usize),
            blocks: self
                .parameters
                .number("blocks")?
                .map(|blocks| blocks as usize),
        };
        self.parameters.finish()?;
        let document = self.session.paths(&query)?;
        self.document(&document)
    }

    fn export(&mut self) -> Result<()> {
        let formats = [
            ("collapsed", ExportFormat::Collapsed),
            ("perfetto", ExportFormat::Perfetto),
        ];
        let format = self.parameters.word("format", &formats)?;
        let query = ExportQuery {
            format: format
                .ok_or_else(|| malformed("format is missing: give collapsed or perfetto"))?,
            bounds: self.bounds(),
            depth: self
                .parameters
                .number("depth")?
                .map_or(ExportQuery::DEPTH, |depth| depth as usize),
            least: self
                .parameters
                .parsed::<Least>("min", "a number of blocks, or a share such as 1%")?,
            code: self.code()?.unwrap_or(CodeFilter::All),
            inlined: !self.parameters.flag("no-inlined")?,
        };
        self.parameters.finish()?;
        self.session.ensure_path()?;
        let out = std::sync::Mutex::default();
        self.named(query.write(self.session, &InMemory(&out)))?;
        self.out = out.into_inner().unwrap_or_default();
        Ok(())
    }

    fn trace(&mut self) -> Result<()> {
        let levels = [
            ("block", Level::Block),
            ("path", Level::Path),
            ("call", Level::Call),
            ("line", Level::Line),
            ("statement", Level::Statement),
            ("memory", Level::Memory),
        ];
        let parameters = &mut self.parameters;
        let query = TraceQuery {
            last: parameters.number("last")?,
            reverse: parameters.flag("reverse")?,
            function: parameters.text("function"),
            level: parameters.word("level", &levels)?.unwrap_or(Level::Block),
            depth: parameters
                .number("depth")?
                .map_or(usize::MAX, |depth| depth as usize),
            into: match (parameters.text("into"), parameters.flag("over")?) {
                (Some(function), _) => StepInto::Function(function),
                (None, true) => StepInto::Nothing,
                (None, false) => StepInto::Calls,
            },
            variables: if parameters.flag("no-variables")? {
                LineVariables::Omitted
            } else {
                LineVariables::Changed
            },
            limit: Some(parameters.number("limit")?.unwrap_or(ROWS).min(MOST_ROWS)),
            bounds: self.bounds(),
        };
        self.parameters.finish()?;
        query.check()?;
        let (session, sources) = (self.session, Arc::clone(self.session.sources()));
        let shown = (&*sources as _, Style::default());
        let build = |session: &Session| session.ensure_path().map(drop).map_err(Into::into);
        session.answer(Needs::Path, build, |session| {
            self.out.clear();
            query.write(session, false, Form::Json, shown, |write| {
                write(&mut self.out)
            })
        })?;
        Ok(())
    }

    fn state(&mut self) -> Result<()> {
        let parameters = &mut self.parameters;
        let query = StateQuery {
            at: parameters.needed("at")?,
            depth: parameters
                .number("depth")?
                .map_or(StateQuery::DEPTH, |depth| depth as usize),
            frame: parameters.parsed("frame", "a number from 0 on")?,
            globals: parameters.flag("globals")?,
        };
        parameters.finish()?;
        let view = self.session.state(&query)?;
        self.report(&view)
    }

    fn why(&mut self) -> Result<()> {
        let parameters = &mut self.parameters;
        let (at, name) = (parameters.text("at"), parameters.text("var"));
        let operand = parameters.text("operand");
        let (stdout, stderr) = (parameters.text("stdout"), parameters.text("stderr"));
        let byte = |text: &str| {
            let parsed = text.parse::<Byte>();
            parsed.map_err(|why| malformed(format!("{text}: {why}")))
        };
        let about = match (at, name, parameters.flag("trap")?, stdout, stderr) {
            (Some(at), Some(name), false, None, None) => WhyAbout::Variable { at, name },
            (Some(at), None, false, None, None) => WhyAbout::Statement { at, operand },
            (None, None, true, None, None) => WhyAbout::Trap,
            (None, None, false, Some(text), None) => WhyAbout::Output(byte(&text)?),
            (None, None, false, None, Some(text)) => WhyAbout::Error(byte(&text)?),
            _ => return Err(malformed("give one of at, stdout, stderr and trap")),
        };
        let query = WhyQuery {
            about,
            steps: parameters.number("steps")?.unwrap_or(WhyQuery::STEPS),
            digit: parameters.flag("digit")?,
        };
        parameters.finish()?;
        if query.about == WhyAbout::Trap {
            check::killed(self.session, "click a byte of its output instead")?;
        }
        let session = self.session;
        session.answer(
            Needs::Values,
            |_| Ok(()),
            |session| {
                self.out.clear();
                explain_with(session, recorded, |scene| {
                    let start = query.start(scene)?;
                    start.show(&mut self.out, scene, query.steps, show::Form::Json)
                })
            },
        )?;
        Ok(())
    }

    fn why_not(&mut self) -> Result<()> {
        let parameters = &mut self.parameters;
        let query = WhyNotQuery {
            at: parameters.needed("at")?,
            after: parameters.text("after"),
            steps: parameters.number("steps")?.unwrap_or(WhyNotQuery::STEPS),
        };
        parameters.finish()?;
        let report = self.session.why_not(&query)?;
        let file = afterimage::text::pasted(self.session.at());
        self.report(&WhyNotView {
            report: &report,
            file,
        })
    }

    fn deps(&mut self) -> Result<()> {
        let parameters = &mut self.parameters;
        let query = DepsQuery {
            at: parameters.needed("at")?,
            direction: if parameters.flag("forward")? {
                DepsDirection::Forward
            } else {
                DepsDirection::Backward
            },
            along: match (parameters.flag("data")?, parameters.flag("control")?) {
                (true, _) => DepsAlong::Data,
                (_, true) => DepsAlong::Control,
                _ => DepsAlong::Both,
            },
            depth: parameters
                .number("depth")?
                .map_or(1, |depth| depth.min(u64::from(DepsQuery::DEEPEST)) as u32),
            limit: parameters.number("limit")?.unwrap_or(DepsQuery::LIMIT),
        };
        parameters.finish()?;
        let report = self.session.deps(&query)?;
        self.report(&report)
    }

    fn values(&mut self) -> Result<()> {
        let parameters = &mut self.parameters;
        let condition = parameters.text("where");
        let name = parameters.text("var");
        let wanted = match (
            parameters.flag("first")?,
            parameters.flag("last")?,
            parameters.flag("count")?,
        ) {
            (true, ..) => Wanted::First,
            (_, true, _) => Wanted::Last,
            (.., true) => Wanted::Count,
            _ => Wanted::All,
        };
        let values = ValuesQuery {
            at: parameters.needed("at")?,
            instances: match parameters.text("instances") {
                None => Instances::All,
                Some(text) => text
                    .parse()
                    .map_err(|why| malformed(format!("instances {text}: {why}")))?,
            },
            detail: match (parameters.flag("stats")?, parameters.flag("histogram")?) {
                (true, _) => Detail::Stats,
                (_, true) => Detail::Histogram,
                _ => Detail::Each,
            },
            limit: parameters
                .number("limit")?
                .unwrap_or(ValuesQuery::LIMIT)
                .min(MOST_ROWS),
        };
        parameters.finish()?;
        match (condition, name) {
            (Some(condition), None) => {
                let query = ConditionQuery {
                    condition,
                    values,
                    wanted,
                };
                let report = self.session.condition(&query)?;
                self.report(&report)
            }
            (None, Some(name)) => {
                let report = self
                    .session
                    .variable_values(&VariableQuery { name, values })?;
                self.report(&report)
            }
            (None, None) => {
                let report = self.session.statement_values(&values)?;
                self.report(&report)
            }
            (Some(_), Some(_)) => Err(malformed("give var or where, not both")),
        }
    }

    fn memory(&mut self) -> Result<()> {
        let parameters = &mut self.parameters;
        let memory = parameters
            .parsed("memory", "the number of a memory")?
            .unwrap_or(0);
        let bytes = match (parameters.text("var"), parameters.text("address")) {
            (Some(name), None) => MemoryBytes::Variable(name),
            (None, Some(text)) => {
                let (address, bytes) =
                    addresses(&text).map_err(|why| malformed(format!("address {text}: {why}")))?;
                MemoryBytes::Range {
                    memory,
                    address,
                    bytes,
                }
            }
            _ => return Err(malformed("give var or address")),
        };
        let at = parameters.text("at");
        parameters.finish()?;
        let report = self.session.memory(&MemoryQuery { bytes, at })?;
        self.report(&report)
    }
}

/// The default number of rows of a trace.
const ROWS: u64 = 1000;
/// The maximum number of rows in an answer. A page cannot show more.
const MOST_ROWS: u64 = 100_000;

/// Returns the values of a recording. Builds them if they do not exist yet.
fn recorded(session: &Session) -> Result<afterimage_replay::values::RecordedValues<'_>> {
    session.ensure_all_values()?;
    Ok(session.values()?)
}
