//! `afterimage deps`

mod forward;
mod host;

use std::cell::RefCell;
use std::collections::{BTreeSet, HashMap, HashSet};
use std::io::Write;

use afterimage::Session;
use afterimage::places::{Site, chosen, line_of, statements};
use afterimage_ids::{BlockId, FuncId, OpId, OrigOffset};
use afterimage_present::{grouped, value_text};
use afterimage_profile::{operator_texts, readable};
use afterimage_program::{Names, OperatorIndex, SourceMap};
use afterimage_replay::Trap;
use afterimage_replay::values::{
    Controller, Controllers, Dependence, Execution, HostReads, HostReadsError, Instance, Kind,
    Origin, RecordedValues, Statement, Types, ValuesError, moves, of_statement,
};
use anyhow::{Context, Result, anyhow};
use serde_json::{Value, json};

use crate::arguments::ReportArguments;
use crate::build::Lens;
use crate::early;
use crate::exit::Exit;
use crate::lens;
use crate::output::{harmless, write};
use crate::record::counted;
use forward::Users;

/// Show what one execution of a statement depends on: who made its operands, who wrote what it reads, what let it run
///
/// An operand's maker is found through all copies: locals, the operand stack, arguments and results. What a load or a memory.copy reads may come
/// from several writers, byte by byte. Where branches chose which of several values an operand is, as those of an `if` with a result do, the ones that did are told as what moved it.
///
/// With --forward it is the other way round: who used what the execution made, in the order of time, and what it let run, if it decides or calls. These are
/// exactly those that name it when they are asked backward, but for what moved their operands. Of a call it is who used its results, whoever made them, and what the host wrote in it.
///
/// What the host reads of memory is among both: of a call of fd_write, who wrote the bytes that it put out; of a store, the calls of the host that read its bytes
/// before others wrote over them.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  afterimage deps app.aft --at parser.c:42#7
  afterimage deps app.aft --at parser.c:42#7 --depth 5 --data
  afterimage deps app.aft --at parser.c:42#7 --depth 5 --control
  afterimage deps app.aft --at parse+0x2a#last
  afterimage deps app.aft --at @0x1f3#1000 --data --format json
  afterimage deps app.aft --at parser.c:42#7 --forward
  afterimage deps app.aft --at malloc+0x2a#last --forward --data --limit 100
  afterimage deps app.aft --at parse+0x31#5 --forward --control")]
pub(crate) struct Arguments {
    /// The statement and which of its executions: func+0x2a#K, @0x1f3#last [default: the first]; or file.c:42#K, the statements that the K-th arrival at the line executes; of func#K, those of the K-th call, each where it is executed first in it
    #[arg(long, value_name = "PLACE#K")]
    at: String,
    /// What it depends on; this is what is shown without --forward
    #[arg(long, conflicts_with = "forward")]
    backward: bool,
    /// What depends on it: who used what it made, what it let run
    #[arg(long)]
    forward: bool,
    /// Dependences on data only
    #[arg(long, conflicts_with = "control")]
    data: bool,
    /// Dependences on control only
    #[arg(long)]
    control: bool,
    /// Go on so many steps along what is shown, data, control or both, at most 1000: 1 shows direct dependences only. What was shown before is not gone into again
    #[arg(
        long,
        value_name = "N",
        default_value_t = 1,
        value_parser = clap::value_parser!(u32).range(1..=DEEPEST)
    )]
    depth: u32,
    /// At most so many uses of one execution, and so many parts of what a copy reads; how many there are besides is said
    #[arg(long, value_name = "N", default_value_t = 20)]
    limit: u64,
    /// The format
    #[arg(long, default_value = "text")]
    format: Format,
    #[command(flatten)]
    report: ReportArguments,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
enum Format {
    Text,
    Json,
}

pub(crate) fn run(arguments: Arguments) -> Result<Exit> {
    let session = lens::finished(&arguments.report.file)?;
    early::places(&session, Lens::Full, [arguments.at.as_str()])?;
    let traced = lens::with_whole_path(session)?;
    answer(&arguments, &traced).with_context(|| arguments.report.file.display().to_string())?;
    Ok(Exit::Success)
}

/// What is known of the program, for telling where things are.
struct Scene<'a> {
    traced: &'a Session,
    names: &'a Names,
    source: &'a SourceMap<'a>,
    index: OperatorIndex<'a>,
    types: &'a Types<'a>,
    /// What trapped, if the run ended so.
    trapped: Option<Trap>,
    /// The operators whose texts are needed: they are found all at once.
    named: RefCell<BTreeSet<OrigOffset>>,
}

/// Most steps that are shown.
const DEEPEST: i64 = 1000;

/// Of what is read so many parts are shown at least: as many as the bytes of a vector.
const LEAST_PARTS: u64 = 16;

/// An execution of a statement, told.
struct Section {
    head: String,
    /// It is what the run trapped in.
    trapped: bool,
    found: Found,
    json: Value,
}

/// What is asked for.
struct DependenceQuery<'q, 'a> {
    host: &'q HostReads<'q, 'a>,
    controllers: &'q Controllers<'a>,
    /// Dependences on data are.
    data: bool,
    /// Dependences on control are.
    control: bool,
    limit: u64,
    depth: u32,
}

/// An operator of an execution of a node. Without `takes` it is gone into only because of where it went, or that it called or threw: then what it passes on does not matter.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
struct Point {
    instance: Instance,
    op: OpId,
    takes: bool,
}

enum Found {
    /// What it depends on.
    Backward(Vec<DependenceRow>),
    /// What depends on it.
    Forward(Users),
}

/// What is said of an operator, around its text.
#[derive(Default)]
struct Line {
    before: String,
    at: Option<(FuncId, OrigOffset)>,
    after: String,
}

impl Line {
    fn at(time: u64, function: FuncId, offset: OrigOffset) -> Self {
        Self {
            before: format!("t={}  ", grouped(time)),
            at: Some((function, offset)),
            after: String::new(),
        }
    }
}

/// The texts of operators.
type Texts = HashMap<OrigOffset, String>;

/// A dependence, told.
struct DependenceRow {
    role: String,
    value: String,
    from: Line,
    json: Value,
    /// What the operator that it comes from depends on.
    further: Vec<DependenceRow>,
}

fn answer(arguments: &Arguments, traced: &Session) -> Result<()> {
    let loaded = traced.module();
    let source = traced.source_map();
    let names = loaded.names(&source);
    let types = Types::new(&loaded.program, &loaded.bytes);
    let found = statements(traced, &names, &source, &types, &arguments.at)?;
    let values = lens::values(traced)?;
    let scene = Scene {
        traced,
        names: &names,
        source: &source,
        index: OperatorIndex::new(&loaded.program, &loaded.bytes),
        types: &types,
        trapped: traced.trap()?,
        named: RefCell::default(),
    };
    let run = traced.run_from_checkpoints()?;
    let host = HostReads::new(&values, run, traced.newest());
    let controllers = Controllers::new(&loaded.program);
    let asked = DependenceQuery {
        host: &host,
        controllers: &controllers,
        data: !arguments.control,
        control: !arguments.data,
        limit: arguments.limit,
        depth: arguments.depth,
    };
    let mut chosen = chosen(traced, &values, (&names, &source), &found, &arguments.at)?;
    chosen.sort_by_key(|chosen| chosen.site.offset);
    let mut sections = Vec::new();
    let mut outside = None;
    for one in &chosen {
        let Some(execution) = one.get(traced, &values)? else {
            continue;
        };
        match scene.section(&asked, arguments.forward, one.site, &execution) {
            Ok(section) => sections.push(section),
            // It is told of the others.
            Err(error) if chosen.len() > 1 && is_outside(&error) => outside = Some(error),
            Err(error) => return Err(error),
        }
    }
    if sections.is_empty() {
        let ended = || {
            anyhow!(
                "{}: the run ended before any of its statements",
                arguments.at
            )
        };
        return Err(outside.unwrap_or_else(ended));
    }
    if arguments.forward && sections.len() > 1 {
        // Those that decide nothing only take room.
        sections.retain(|section| !arguments.control || !section.found.is_empty());
    }
    let texts = scene.texts()?;
    write(arguments.report.output.as_deref(), false, |out| {
        match arguments.format {
            Format::Text => {
                for (i, section) in sections.iter().enumerate() {
                    if i > 0 {
                        writeln!(out)?;
                    }
                    writeln!(out, "{}", section.head)?;
                    match &section.found {
                        found if found.is_empty() => {
                            let nothing = if section.trapped && arguments.forward {
                                "nothing depends on it: it trapped, and gave nothing"
                            } else {
                                nothing(arguments)
                            };
                            writeln!(out, "  {nothing}")?;
                        }
                        Found::Backward(told) => scene.tree(out, &texts, told, 1)?,
                        Found::Forward(users) => scene.users_tree(out, &texts, users, 1)?,
                    }
                }
                if sections.is_empty() {
                    let (nothing, at) = (nothing(arguments), harmless(&arguments.at));
                    writeln!(
                        out,
                        "{at}: {nothing}: no statement decides or calls anything there"
                    )?;
                }
            }
            Format::Json => {
                let all = sections.iter_mut().map(|section| {
                    name_operators(&mut section.json, &texts);
                    section.json.take()
                });
                let all = Vec::from_iter(all);
                let all = json!({
                    "schema": "afterimage/deps/1",
                    "at": arguments.at,
                    "statements": all,
                });
                serde_json::to_writer(&mut *out, &all)?;
                writeln!(out)?;
            }
        }
        Ok(())
    })
}

/// Whether an operand is what a call or a throw hands on, which does not matter to that it happens.
fn is_passed_on(role: &str) -> bool {
    matches!(role, "argument" | "carried")
}

/// What is said where nothing was found.
fn nothing(arguments: &Arguments) -> &'static str {
    match (arguments.forward, arguments.data, arguments.control) {
        (true, _, true) => "nothing depends on it by control",
        (true, true, _) => "nothing uses what it made",
        (true, ..) => "nothing in the program depends on it",
        (false, true, _) => "it depends on no data: it has no operands and reads nothing",
        (false, ..) => "it depends on nothing",
    }
}

/// Whether it is about a part of the run of which no values are kept.
fn is_outside(error: &anyhow::Error) -> bool {
    let values = error.downcast_ref::<ValuesError>();
    let host = error.downcast_ref::<HostReadsError>();
    matches!(values, Some(ValuesError::Outside { .. }))
        || host.is_some_and(HostReadsError::is_outside)
}

/// Adds the texts of operators to all objects that tell of one.
fn name_operators(json: &mut Value, texts: &Texts) {
    let mut work = vec![json];
    while let Some(json) = work.pop() {
        match json {
            Value::Array(all) => work.extend(all),
            Value::Object(object) => {
                let kind = object.get("from").or(object.get("to"));
                let offset = object.get("offset").and_then(Value::as_u64);
                if let (Some("operator" | "branch" | "call" | "throw" | "host"), Some(offset)) =
                    (kind.and_then(Value::as_str), offset)
                    && let Some(text) = texts.get(&OrigOffset(offset as u32))
                {
                    object.insert("operator".to_owned(), json!(text));
                }
                work.extend(object.values_mut().filter(|value| value.is_array()));
            }
            _ => {}
        }
    }
}

impl Found {
    fn is_empty(&self) -> bool {
        match self {
            Self::Backward(told) => told.is_empty(),
            Self::Forward(users) => users.is_empty(),
        }
    }
}

impl<'a> Scene<'a> {
    /// Writes dependences, and those that they lead to, farther to the right.
    fn tree(
        &self,
        out: &mut dyn Write,
        texts: &Texts,
        all: &[DependenceRow],
        depth: usize,
    ) -> Result<()> {
        let roles = all.iter().map(|told| told.role.len()).max().unwrap_or(0);
        let wide = all.iter().map(|told| told.value.len()).max().unwrap_or(0);
        for told in all {
            writeln!(
                out,
                "{:indent$}{:<roles$}  {:<wide$}  ← {}",
                "",
                told.role,
                told.value,
                self.line(&told.from, texts),
                indent = 2 * depth
            )?;
            self.tree(out, texts, &told.further, depth + 1)?;
        }
        Ok(())
    }

    fn line(&self, line: &Line, texts: &Texts) -> String {
        let operator = line.at.map_or(String::new(), |(function, offset)| {
            let text = texts.get(&offset).map_or("", String::as_str);
            self.operator(function, offset, text)
        });
        format!("{}{operator}{}", line.before, line.after)
    }

    /// The texts of all operators that were named.
    fn texts(&self) -> Result<Texts> {
        let named = Vec::from_iter(self.named.take());
        let texts = operator_texts(self.traced.bytes(), &named)?;
        let texts = texts.iter().map(|text| readable(text.trim()));
        Ok(named.iter().copied().zip(texts).collect())
    }

    /// What an operator depends on, `depth` steps back.
    fn dependences(
        &self,
        asked: &DependenceQuery<'_, 'a>,
        point: Point,
        depth: u32,
        seen: &mut HashSet<Point>,
    ) -> Result<Vec<DependenceRow>> {
        let values = asked.host.values();
        let statement = self.statement(values, point.instance, point.op)?;
        let mut all = Vec::new();
        if asked.data
            && let Some(statement) = statement
        {
            self.data(asked, point, statement, &mut all)?;
        }
        if asked.control {
            let (time, function, _) = self.when(values, point.instance, point.op)?;
            let execution = Execution {
                number: 0,
                time,
                instance: point.instance,
                statement,
            };
            let controllers = asked.controllers.of_execution(values, &execution)?;
            for &controller in &controllers {
                all.push(self.control(values, function, controller, "control")?);
            }
            if asked.data
                && let Some(statement) = statement
            {
                self.moved(asked, point, statement, controllers, &mut all)?;
            }
        }
        let mut dependences = Vec::with_capacity(all.len());
        for (mut told, from) in all {
            if depth > 1
                && let Some(from) = from
                && seen.insert(from)
            {
                told.further = match self.dependences(asked, from, depth - 1, seen) {
                    Err(error) if is_outside(&error) => vec![unknown(&error)],
                    further => further?,
                };
                let further = told.further.iter().map(|told| told.json.clone());
                told.json["dependences"] = further.collect();
            }
            dependences.push(told);
        }
        Ok(dependences)
    }

    /// The data dependences of a statement, and what each comes from.
    fn data(
        &self,
        asked: &DependenceQuery<'_, 'a>,
        point: Point,
        statement: Statement,
        all: &mut Vec<(DependenceRow, Option<Point>)>,
    ) -> Result<()> {
        let DependenceQuery { host, limit, .. } = *asked;
        let values = host.values();
        let instance = point.instance;
        let function = values.path().nodes()[instance.node].function;
        let operands = self.types.of(function, point.op).map(|(types, _)| types);
        let mut operands = operands.unwrap_or_default().into_iter();
        let (mut parts, mut more) = (0, 0);
        let mut role = "memory";
        for dependence in of_statement(values, instance, statement)? {
            let ty = operands.next();
            if !point.takes && is_passed_on(dependence.role) {
                continue;
            }
            // A copy may have as many parts as bytes.
            if dependence.bytes > 0 || dependence.elements > 0 {
                parts += 1;
                role = dependence.role;
                if parts > limit.max(LEAST_PARTS) {
                    more += 1;
                    continue;
                }
            }
            let value = match (dependence.value, ty) {
                (Some(bits), Some(ty)) => value_text(ty, bits),
                _ => String::new(),
            };
            all.push(self.datum(host, &dependence, value)?);
        }
        if let (Kind::Call(_), true) = (statement.kind, point.takes) {
            let (parts, besides) = host.parts(instance, limit.max(LEAST_PARTS))?;
            let held = self.held(host, instance, &parts)?;
            for (part, held) in parts.iter().zip(held) {
                all.push(self.host_part(host, part, &held)?);
            }
            more += besides;
        }
        if more > 0 {
            let told = DependenceRow {
                role: role.to_owned(),
                value: String::new(),
                from: Line {
                    before: format!("… {} more parts: --limit N", grouped(more)),
                    ..Line::default()
                },
                json: json!({ "role": role, "from": "more", "parts": more }),
                further: Vec::new(),
            };
            all.push((told, None));
        }
        Ok(())
    }

    /// What decided that the values which a statement takes were moved to where it takes them, besides what is `known` to decide that it is executed.
    fn moved(
        &self,
        asked: &DependenceQuery<'_, 'a>,
        point: Point,
        statement: Statement,
        mut known: Vec<Controller>,
        all: &mut Vec<(DependenceRow, Option<Point>)>,
    ) -> Result<()> {
        let values = asked.host.values();
        let is_taken = |_, role: &str| point.takes || !is_passed_on(role);
        for moved in moves(values, point.instance, statement, is_taken)? {
            let function = values.path().nodes()[moved.instance.node].function;
            for controller in asked.controllers.of_execution(values, &moved)? {
                if controller != Controller::Host && !known.contains(&controller) {
                    known.push(controller);
                    all.push(self.control(values, function, controller, "moved")?);
                }
            }
        }
        Ok(())
    }

    /// What an operator is in a node.
    fn statement(
        &self,
        values: &RecordedValues<'_>,
        instance: Instance,
        op: OpId,
    ) -> Result<Option<Statement>> {
        let program = self.traced.program();
        let node = &values.path().nodes()[instance.node];
        let function = program.function(node.function);
        let block = function.and_then(|function| function.block_of(op));
        let position = node.blocks.iter().position(|&other| Some(other) == block);
        let Some(position) = position else {
            return Ok(None);
        };
        let compiled = values.compiled(instance.node)?;
        let last = position + 1 == node.blocks.len();
        let position = position as u64;
        Ok(Statement::find(program, &compiled.code, position, op, last))
    }

    fn section(
        &self,
        asked: &DependenceQuery<'_, 'a>,
        forward: bool,
        site: &Site,
        execution: &Execution,
    ) -> Result<Section> {
        let values = asked.host.values();
        let trapped = self.trapped_at(site.function, site.op, execution.time);
        let given = match trapped {
            Some(_) => Vec::new(),
            None => self.types.given(values, execution, site.op)?,
        };
        let shown = given.iter().map(|value| value_text(value.ty, value.bits));
        let given = Vec::from_iter(shown);
        let shown = match (trapped, given.is_empty()) {
            (Some(why), _) => format!("  trapped ({why})"),
            (None, true) => String::new(),
            (None, false) => format!(" = {}", given.join(", ")),
        };
        let head = format!(
            "#{} t={}  {}{shown}",
            grouped(execution.number),
            grouped(execution.time),
            self.operator(site.function, site.offset, &site.text)
        );
        let mut json = json!({
            "function": self.names.function(site.function),
            "offset": site.offset.0,
            "operator": site.text,
            "number": execution.number,
            "t": execution.time,
            "values": given,
        });
        if let Some(why) = trapped {
            json["trapped"] = json!(why);
        }
        let point = Point {
            instance: execution.instance,
            op: site.op,
            takes: true,
        };
        let mut seen = HashSet::from([point]);
        let found = if forward && trapped.is_some() {
            // What trapped gave nothing, and let nothing run.
            let users = Users::default();
            users.json(&mut json);
            Found::Forward(users)
        } else if forward {
            let users = self.users(asked, point, asked.depth, &mut seen)?;
            users.json(&mut json);
            Found::Forward(users)
        } else {
            let told = self.dependences(asked, point, asked.depth, &mut seen)?;
            json["dependences"] = told.iter().map(|told| told.json.clone()).collect();
            Found::Backward(told)
        };
        let trapped = trapped.is_some();
        Ok(Section {
            head,
            trapped,
            found,
            json,
        })
    }

    /// Why an operator trapped when its block was executed at a time, if it did.
    fn trapped_at(&self, function: FuncId, op: OpId, time: u64) -> Option<&str> {
        let trapped = self.trapped.as_ref();
        let here = trapped.filter(|trapped| trapped.is_at(function, op, time));
        here.map(|trapped| trapped.why.as_str())
    }

    /// A stretch of the code of a function.
    fn stretch(&self, function: FuncId, first: OrigOffset, last: OrigOffset, what: &str) -> String {
        let line = line_of(self.source, first);
        let line = if line.is_empty() {
            String::new()
        } else {
            format!("  {}", harmless(&line))
        };
        let name = harmless(self.names.function(function));
        format!("@{first}..@{last}, {what}{line}  in {name}")
    }

    fn operator(&self, function: FuncId, offset: OrigOffset, text: &str) -> String {
        let line = line_of(self.source, offset);
        let line = if line.is_empty() {
            String::new()
        } else {
            format!("  {}", harmless(&line))
        };
        let name = harmless(self.names.function(function));
        format!("@{offset} {}{line}  in {name}", harmless(text))
    }

    /// An operator of an execution of a node: when, and which. Its text will be known.
    fn when(
        &self,
        values: &RecordedValues<'_>,
        instance: Instance,
        op: OpId,
    ) -> Result<(u64, FuncId, OrigOffset)> {
        let node = &values.path().nodes()[instance.node];
        let function = self.traced.program().function(node.function);
        let function = function.context("a function that the program does not have")?;
        let block = function.block_of(op);
        let position = node.blocks.iter().position(|&other| Some(other) == block);
        let time = instance.time + position.unwrap_or(0) as u64;
        let offset = self.index.offsets(function).get(op.as_u32() as usize);
        let offset = *offset.context("an operator that the program does not have")?;
        self.named.borrow_mut().insert(offset);
        Ok((time, function.id, offset))
    }

    fn last_op(&self, function: FuncId, block: BlockId) -> Option<OpId> {
        let function = self.traced.program().function(function)?;
        let end = function.cfg.blocks.get(block)?.ops.end.as_u32();
        Some(OpId::from_u32(end.checked_sub(1)?))
    }

    /// A dependence on data, and what it comes from.
    fn datum(
        &self,
        host: &HostReads<'_, 'a>,
        dependence: &Dependence,
        value: String,
    ) -> Result<(DependenceRow, Option<Point>)> {
        let role = match (dependence.bytes, dependence.elements) {
            (0, many @ 2..) => format!("{} ({many} elements)", dependence.role),
            (0, _) => dependence.role.to_owned(),
            (bytes, _) => format!("{} ({})", dependence.role, counted(bytes, "byte")),
        };
        let (from, mut json, point) = self.origin(host, dependence.origin)?;
        json["role"] = json!(dependence.role);
        if dependence.bytes > 0 {
            json["bytes"] = json!(dependence.bytes);
        }
        if dependence.elements > 0 {
            json["elements"] = json!(dependence.elements);
        }
        if !value.is_empty() {
            json["value"] = json!(value);
        }
        let told = DependenceRow {
            role,
            value,
            from,
            json,
            further: Vec::new(),
        };
        Ok((told, point))
    }

    /// Where a value comes from.
    fn origin(
        &self,
        host: &HostReads<'_, 'a>,
        origin: Origin,
    ) -> Result<(Line, Value, Option<Point>)> {
        let plain = |from: &str| {
            let before = from.to_owned();
            let line = Line {
                before,
                ..Line::default()
            };
            (line, json!({ "from": from }), None)
        };
        let values = host.values();
        Ok(match origin {
            Origin::Constant => plain("constant"),
            Origin::Zero => plain("a local that nothing wrote"),
            Origin::Initial => plain("the module: nothing wrote it before"),
            Origin::Argument { index, .. } => {
                plain(&format!("the host's call: argument {}", index + 1))
            }
            Origin::Host { call } => {
                let caller = match values.host()?.of_guest(call) {
                    Some(_) => Some(host.caller_of(call)?),
                    // The host did it by itself.
                    None => None,
                };
                self.of_host(values, call, caller, None)?
            }
            Origin::Returned { instance, index } => {
                let call = values.host_call(instance)?;
                let call = call.context("a call of the host that the log does not have")?;
                self.of_host(values, call, Some(instance), Some(index))?
            }
            Origin::Operator { instance, op } => {
                let (time, function, offset) = self.when(values, instance, op)?;
                let from = Line::at(time, function, offset);
                let json = json!({
                    "from": "operator",
                    "t": time,
                    "function": self.names.function(function),
                    "offset": offset.0,
                });
                let takes = true;
                (
                    from,
                    json,
                    Some(Point {
                        instance,
                        op,
                        takes,
                    }),
                )
            }
        })
    }

    fn control(
        &self,
        values: &RecordedValues<'_>,
        function: FuncId,
        controller: Controller,
        role: &str,
    ) -> Result<(DependenceRow, Option<Point>)> {
        let told = |from: Line, mut json: Value| {
            json["role"] = json!(role);
            DependenceRow {
                role: role.to_owned(),
                value: String::new(),
                from,
                json,
                further: Vec::new(),
            }
        };
        let (time, function, block) = match controller {
            Controller::Host => {
                let from = Line {
                    before: "the host's call".to_owned(),
                    ..Line::default()
                };
                return Ok((told(from, json!({ "from": "host's call" })), None));
            }
            Controller::Branch { time, block } => (time, function, Some(block)),
            Controller::Call { time } | Controller::Throw { time } => {
                let caller = values.at(time)?.context("a call at no time")?;
                let node = &values.path().nodes()[caller.node];
                (time, node.function, node.blocks.last().copied())
            }
        };
        let op = block.and_then(|block| self.last_op(function, block));
        let (Some(op), Some(instance)) = (op, values.at(time)?) else {
            let from = Line {
                before: format!("t={}", grouped(time)),
                ..Line::default()
            };
            return Ok((told(from, json!({ "t": time })), None));
        };
        let (_, function, offset) = self.when(values, instance, op)?;
        let from = Line::at(time, function, offset);
        let json = json!({
            "from": match controller {
                Controller::Call { .. } => "call",
                Controller::Throw { .. } => "throw",
                Controller::Branch { .. } | Controller::Host => "branch",
            },
            "t": time,
            "function": self.names.function(function),
            "offset": offset.0,
        });
        let point = Point {
            instance,
            op,
            takes: false,
        };
        Ok((told(from, json), Some(point)))
    }
}

/// What needs values that were not kept.
fn unknown(error: &anyhow::Error) -> DependenceRow {
    DependenceRow {
        role: "?".to_owned(),
        value: String::new(),
        from: Line {
            before: error.to_string(),
            ..Line::default()
        },
        json: json!({ "from": "unknown", "why": error.to_string() }),
        further: Vec::new(),
    }
}
