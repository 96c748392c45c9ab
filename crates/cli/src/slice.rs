//! `afterimage slice`

mod kept;

use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::io::Write;
use std::path::Path;

use afterimage::Session;
use afterimage::places::and_why_not;
use afterimage::slice::question::{self, SliceQuery, Subject};
use afterimage::steps::follow_for;
use afterimage_analyses::slices::{
    self, Algorithm as Exactness, Criterion, Direction, Edge, Follows, Origin, Reach, SavedSlice,
    Slice, SliceReport, by_statements, exercised_of,
};
use afterimage_ids::OrigOffset;
use afterimage_present::{SliceRows, SliceScene, SliceView, grouped, render};
use afterimage_profile::Line;
use afterimage_profile::operator_texts;
use afterimage_program::{Names, SourceMap};
use afterimage_replay::state::Written;
use afterimage_replay::steps::{FileCheckpoints, Operators, Range, Run};
use afterimage_replay::values::{HostReads, RecordedValues};
use anyhow::{Context, Result, bail};
use clap::{Args, FromArgMatches};

use crate::arguments::{ReportArguments, entries, formats};
use crate::build::Lens;
use crate::early;
use crate::exit::Exit;
use crate::lens::explain;
use crate::lens::{self, traced_whole};
use crate::memory::addresses;
use crate::output::{SourceFiles, say, write};
use crate::why;

/// Show what an execution of a statement depends on, directly or not, or what depends on it: a dynamic slice
///
/// In the slice is every execution of a statement that a value went through on its way, that made an address on it, or that decided whether it was executed; through
/// memory, calls and the host, over the whole run. What is not in it had no influence on what was executed; it may still be that it would have let something else be executed (docs/SLICES.md).
///
/// The slice is of one execution of a place: of a line, of what one arrival at it executed. With --var it is of what a variable held right before the place was
/// executed, with --address of bytes of memory. With --forward it is everything whose own slice has the place in it.
#[derive(Debug, clap::Args)]
#[command(override_usage = "\
afterimage slice [OPTIONS] --at <PLACE#K> <FILE.aft>
       afterimage slice [OPTIONS] --trap <FILE.aft>
       afterimage slice [OPTIONS] --saved <NAME> <FILE.aft>")]
#[command(after_help = "\
Examples:
  afterimage slice app.aft --at parser.c:42#7
  afterimage slice app.aft --at parser.c:42#last --var 'p->next'
  afterimage slice app.aft --at parser.c:42#7 --thin --by statement
  afterimage slice app.aft --at parser.c:42#7 --chain
  afterimage slice app.aft --at @0x1f3#1000 --operand 2 --data-only
  afterimage slice app.aft --at end --address 0x1040..0x1043
  afterimage slice app.aft --trap
  afterimage slice app.aft --at parser.c:42#7 --forward
  afterimage slice app.aft --at report.c:10#last --chop parser.c:42#7
  afterimage slice app.aft --at parser.c:42#7 --depth 2 --by statement
  afterimage slice app.aft --at parser.c:42#7 --save crash
  afterimage slice app.aft --saved crash --annotate
  afterimage slice app.aft --at parser.c:42#7 --format dot | dot -Tsvg > a.svg
  afterimage slice app.aft --at parser.c:42#7 --format html -o slice.html")]
pub(crate) struct Arguments {
    /// The place and which of its executions: file.c:42#K, func+0x2a#last, @0x1f3#3 [default: the first]; with --var and --address, any moment
    #[arg(long, value_name = "PLACE#K", allow_hyphen_values = true)]
    at: Option<String>,
    /// Of what killed the program: the statement that trapped, or the call or throw that ended it, with what it took and what let it run; not with --at, --var, --address, --operand, --forward, --algorithm or --chain
    #[arg(long, conflicts_with_all = ["at", "var", "address", "operand", "forward", "algorithm"])]
    trap: bool,
    /// Of what a variable of the source held, or an expression such as `total` or `p->next`
    #[arg(long, value_name = "NAME", conflicts_with_all = ["address", "operand"])]
    var: Option<String>,
    /// Of bytes of memory 0: A for the 8 bytes from there on, or A..B, both included
    #[arg(long, value_name = "A[..B]", value_parser = addresses, conflicts_with = "operand")]
    address: Option<(u64, u64)>,
    /// Of one of the values that the statement takes: left, right, address, value, condition, …, or its number from 1
    #[arg(long, value_name = "NAME")]
    operand: Option<String>,
    /// What depends on it instead: everything that it had an influence on
    #[arg(long)]
    forward: bool,
    /// Only what also depends on this other place: how that had an influence on --at; not with --forward, --depth or --chain
    #[arg(long, value_name = "PLACE#K", conflicts_with = "forward")]
    chop: Option<String>,
    /// How exact the slice is
    #[arg(long, value_name = "ALGORITHM", default_value = "full")]
    algorithm: Algorithm,
    /// Along data only, not along what let statements run
    #[arg(long, conflicts_with_all = ["control_only", "thin"])]
    data_only: bool,
    /// Along what let statements run only, not along data
    #[arg(long, conflicts_with = "thin")]
    control_only: bool,
    /// Along values only: neither along what let statements run nor along how addresses were computed
    #[arg(long)]
    thin: bool,
    /// Only what is at most so many dependences away, up to 253; not with --chop
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u8).range(1..=Reach::DEEPEST.into()), conflicts_with = "chop")]
    depth: Option<u8>,
    /// Keep the slice in the recording under a name; whoever asks the same again has it at once
    #[arg(long, value_name = "NAME", value_parser = kept::name)]
    save: Option<String>,
    /// Show a slice that was kept under a name; not with what says of what a slice is, nor with --save or --chain
    #[arg(long, value_name = "NAME", conflicts_with_all = ["at", "trap", "var", "address", "operand", "forward", "chop", "algorithm", "data_only", "control_only", "thin", "depth", "save"])]
    saved: Option<String>,
    /// Behind the slice, in text, also the chain of values that leads to --at from where it comes from, as `afterimage why` finds it; not with --trap, --saved, --address, --forward or --chop
    #[arg(long, conflicts_with_all = ["saved", "trap", "address", "forward", "chop"])]
    chain: bool,
    /// What has a row [default: line]
    #[arg(long, conflicts_with = "annotate")]
    by: Option<By>,
    /// Show whole source files, with the slice marked, as text; not with --by
    #[arg(long)]
    annotate: bool,
    /// At most so many rows of text [default: 200 on standard output]; not with --annotate
    #[arg(long, value_name = "N", value_parser = entries, conflicts_with = "annotate")]
    limit: Option<u64>,
    /// The format
    #[arg(long, default_value = "text")]
    format: Format,
    #[command(flatten)]
    report: ReportArguments,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
enum By {
    Line,
    Statement,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
enum Format {
    Text,
    Json,
    Csv,
    /// A page with the source files, and the slice marked in them
    Html,
    /// A graph for Graphviz: which lines of the slice depended on which
    Dot,
}

formats!(Text, Json, Csv, Html, Dot);

#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
enum Algorithm {
    /// By executions: whatever this one execution depends on; instances is the same
    #[value(alias = "instances")]
    Full,
    /// By statements: over dependences that were exercised in some execution or other up to then, or forward, in the whole run
    Edges,
    /// By statements that were executed: over dependences that the code allows, whatever memory they go through
    Nodes,
}

/// Rows that text has on standard output if nothing else is asked for.
const ROWS: u64 = 200;

/// Graphviz lays out so many edges in seconds.
const MANY_EDGES: usize = 20_000;

pub(crate) fn run(arguments: Arguments) -> Result<Exit> {
    if arguments.at.is_none() && !arguments.trap && arguments.saved.is_none() {
        bail!(
            "say what the slice is of: an execution of a place with --at, what ended the run with --trap, or a slice that was kept with --saved"
        );
    }
    let session = lens::finished(&arguments.report.file)?;
    if arguments.annotate && arguments.format != Format::Text {
        bail!("--annotate writes text; --format html has the same files, as a page");
    }
    if arguments.limit.is_some() && arguments.format != Format::Text {
        bail!("--limit is for rows of text; the other formats have everything");
    }
    if arguments.by.is_some() && arguments.format == Format::Html {
        bail!("--by says what a row of a table is; the page of --format html has whole files");
    }
    if arguments.chain && arguments.format != Format::Text {
        bail!("--chain writes text; in other formats, afterimage why writes it");
    }
    let file = &arguments.report.file;
    let asked = [arguments.at.as_deref(), arguments.chop.as_deref()];
    early::places(&session, Lens::Full, asked.into_iter().flatten())?;
    if arguments.trap {
        early::killed(&session, "ask with --at")?;
    }
    let traced = lens::with_whole_path(session)?;
    let to = arguments.report.output.as_deref();
    let found = answer(&arguments, &traced, |told| {
        write(to, false, |out| told(out))
    });
    found.with_context(|| file.display().to_string())?;
    Ok(Exit::Success)
}

/// Writes what the command line with these words, of a recording, would write.
pub(crate) fn told(out: &mut dyn Write, words: &[&str], file: &Path) -> Result<()> {
    let command = Arguments::augment_args(clap::Command::new("slice").no_binary_name(true));
    let words = words.iter().map(OsStr::new);
    let words = words.chain([OsStr::new("--"), file.as_os_str()]);
    let arguments = Arguments::from_arg_matches(&command.try_get_matches_from(words)?)?;
    let traced = traced_whole(file)?;
    let found = answer(&arguments, &traced, |told| told(out));
    found.with_context(|| file.display().to_string())
}

impl Arguments {
    fn follows(&self) -> Follows {
        Follows {
            control: !(self.data_only || self.thin),
            addresses: !self.thin,
            data: !self.control_only,
        }
    }

    /// Whether only what is a few dependences away is asked for, backward.
    fn is_near(&self) -> bool {
        self.depth.is_some() && !self.forward && self.algorithm == Algorithm::Full
    }

    fn subject(&self) -> Subject<'_> {
        match (&self.var, self.address, &self.operand) {
            (Some(name), ..) => Subject::Variable(name),
            (_, Some((address, length)), _) => Subject::Bytes(Range {
                memory: 0,
                address,
                length,
            }),
            (.., Some(operand)) => Subject::Operand(operand),
            _ => Subject::Statement,
        }
    }

    fn limit(&self) -> usize {
        let on_screen =
            self.format == Format::Text && self.report.output.is_none() && !self.annotate;
        let limit = self.limit.or(on_screen.then_some(ROWS));
        limit.map_or(usize::MAX, |limit| {
            usize::try_from(limit).unwrap_or(usize::MAX)
        })
    }
}

/// Finds the slice, and has `writing` call what writes it.
fn answer(
    arguments: &Arguments,
    traced: &Session,
    writing: impl FnOnce(&mut dyn FnMut(&mut dyn Write) -> Result<()>) -> Result<()>,
) -> Result<()> {
    let loaded = traced.module();
    let values = match arguments.saved {
        None => Some(lens::values(traced)?),
        Some(_) => None,
    };
    let checkpoints = if arguments.is_near() {
        traced.checkpoints()?
    } else {
        None
    };
    let source = traced.source_map();
    let names = loaded.names(&source);
    let (saved, written) = match (&arguments.saved, &values) {
        (None, Some(values)) => asked(arguments, traced, (values, checkpoints), (&names, &source))?,
        (name, _) => {
            let name = name.as_deref().unwrap_or_default();
            (kept::named(traced, name)?, None)
        }
    };
    let operators = Operators::new(&loaded.program, &loaded.bytes, &source);
    let report = SliceReport::new(&saved.slice, &loaded.program, traced.path()?, &operators)?;
    let lines = saved.offsets.iter();
    let lines = lines.filter_map(|&offset| source.locate(offset).map(Line::from));
    let mut lines = Vec::from_iter(lines);
    lines.sort_unstable();
    lines.dedup();
    let by_line = arguments.by != Some(By::Statement);
    let limit = arguments.limit();
    let texts = match (arguments.format, by_line) {
        (Format::Text, false) => {
            let shown = report.operators.iter().take(limit);
            let offsets: Vec<OrigOffset> = shown.map(|one| one.offset).collect();
            texts(&loaded.bytes, offsets)?
        }
        _ => Vec::new(),
    };
    let scene = SliceScene {
        title: &saved.about,
        written,
        criterion: &lines,
        source: &source,
        names: &names,
        sources: &SourceFiles,
        limit,
        texts: &texts,
    };
    let edges = match arguments.format {
        Format::Dot => edges(traced, &saved.question)?,
        _ => BTreeSet::new(),
    };
    if edges.len() > MANY_EDGES {
        say(format_args!(
            "the graph is of {} dependences between statements; if Graphviz takes too long for it, --depth, --thin and --chop make it smaller",
            grouped(edges.len() as u64)
        ));
    }
    let view = SliceView {
        report: &report,
        scene,
        rows: match (arguments.annotate, by_line) {
            (true, _) => SliceRows::Annotated,
            (false, true) => SliceRows::Lines,
            (false, false) => SliceRows::Statements,
        },
        edges,
    };
    let style = arguments.report.style();
    let told = writing(&mut |out| {
        render(out, &view, arguments.format, style)?;
        if arguments.chain {
            chain(arguments, traced, out)
        } else {
            Ok(())
        }
    });
    // What cannot be kept has been shown, and what nobody reads to its end is kept.
    if let Some(name) = &arguments.save {
        kept::keep(&arguments.report.file, traced, name, &saved)?;
    }
    told
}

fn chain(arguments: &Arguments, traced: &Session, out: &mut dyn Write) -> Result<()> {
    let file = &arguments.report.file;
    let at = arguments.at.as_deref().unwrap_or_default();
    let operand = arguments.operand.as_deref();
    writeln!(out)?;
    explain(traced, |scene| {
        why::chain(out, file, scene, at, (arguments.var.as_deref(), operand))
            .map_err(|error| and_why_not(error, file, at))
    })
}

/// The slice that is asked for, from the recording if it is kept there.
fn asked<'a>(
    arguments: &Arguments,
    traced: &'a Session,
    (values, checkpoints): (&RecordedValues<'a>, Option<&'a FileCheckpoints>),
    scene: (&'a Names, &'a SourceMap<'a>),
) -> Result<(SavedSlice, Option<Written>)> {
    let file = &arguments.report.file;
    let at = arguments.at.as_deref().unwrap_or_default();
    let to = if arguments.trap {
        question::of_trap(traced, values, scene, arguments.thin)?
    } else {
        SliceQuery::read(traced, values, scene, at, &arguments.subject())
            .map_err(|error| and_why_not(error, file, at))?
    };
    let from = arguments.chop.as_ref().map(|at| {
        SliceQuery::read(traced, values, scene, at, &Subject::Statement)
            .map_err(|error| and_why_not(error, file, at))
            .with_context(|| format!("--chop {at}"))
    });
    let from = from.transpose()?;
    let about = arguments.about(&to, from.as_ref());
    let (offsets, written) = (to.offsets.clone(), to.written);
    let question = slices::Question {
        algorithm: match arguments.algorithm {
            Algorithm::Full => Exactness::Full,
            Algorithm::Edges => Exactness::Edges,
            Algorithm::Nodes => Exactness::Nodes,
        },
        direction: if arguments.forward {
            Direction::Forward
        } else {
            Direction::Backward
        },
        follows: arguments.follows(),
        operators: to.operators.clone(),
        from: from.map(|from| Origin {
            criteria: from.criteria,
            operators: from.operators,
        }),
        criteria: arguments.limited(to),
    };
    let question = match (arguments.algorithm, arguments.subject()) {
        (Algorithm::Full, _) | (_, Subject::Statement) => question,
        _ => follow_for(traced, "finding the statements", |run, log| {
            Ok(by_statements(run, log, question.clone())?)
        })?,
    };
    if let Some(name) = &arguments.save {
        kept::free(traced, name, &question)?;
    }
    let saved = match kept::known(traced, &question)? {
        Some(saved) => SavedSlice {
            about,
            offsets,
            ..saved
        },
        None => {
            let slice = match near(arguments, traced, (values, checkpoints), &question)? {
                Some(slice) => slice,
                None => follow_for(traced, "slicing", |run, log| {
                    let logs = [log, traced.file().log()?];
                    Ok(slices::answer(run, logs, &question)?)
                })?,
            };
            SavedSlice {
                question,
                about,
                offsets,
                path: kept::identity(traced.path()?),
                slice,
            }
        }
    };
    Ok((saved, written))
}

/// So many executions at most are asked about one by one.
const NEAR: usize = 10_000;

/// A slice of a depth, without following the run, if that can be.
fn near<'a>(
    arguments: &Arguments,
    traced: &'a Session,
    (values, checkpoints): (&RecordedValues<'a>, Option<&'a FileCheckpoints>),
    question: &slices::Question,
) -> Result<Option<Slice>> {
    if !arguments.is_near() {
        return Ok(None);
    }
    let loaded = traced.module();
    let run = Run {
        checkpoints,
        ..traced.run()?
    };
    let host = HostReads::new(values, run, traced.newest());
    let (follows, criteria) = (question.follows, &question.criteria);
    let found = slices::near(&host, &loaded.bytes, follows, criteria, NEAR);
    Ok(found?)
}

impl Arguments {
    /// What is asked, in words.
    fn about(&self, to: &SliceQuery, from: Option<&SliceQuery>) -> String {
        let title = &to.title;
        let alone = title.trim_end_matches(',');
        let within = match self.depth {
            None => String::new(),
            Some(1) => " directly".to_owned(),
            Some(depth) => format!(" over at most {depth} dependences"),
        };
        if let Some(from) = from {
            let from = from.title.trim_end_matches(',');
            return match self.algorithm {
                Algorithm::Full => format!("how {from} had an influence on {alone}"),
                Algorithm::Edges => format!(
                    "how statements of {from} may have had an influence on {alone}, over dependences that were ever exercised"
                ),
                Algorithm::Nodes => format!(
                    "how statements of {from} may have had an influence on {alone}, by the code"
                ),
            };
        }
        let of_statements = matches!(self.subject(), Subject::Statement);
        let whose = match (of_statements, self.forward) {
            (true, _) => "statements of",
            (false, true) => "statements that used",
            (false, false) => "statements that made",
        };
        match (self.forward, self.algorithm) {
            (true, Algorithm::Full) => format!("what depends on {alone}{within}"),
            (false, Algorithm::Full) => format!("what {title} depends on{within}"),
            (true, Algorithm::Edges) => format!("what ever depended on {whose} {alone}{within}"),
            (false, Algorithm::Edges) => {
                format!("what {whose} {title} had ever depended on{within}")
            }
            (true, Algorithm::Nodes) => {
                format!("what may depend on {whose} {alone}{within}, by the code")
            }
            (false, Algorithm::Nodes) => {
                format!("what {whose} {title} may depend on{within}, by the code")
            }
        }
    }

    /// What is to be followed so far as --depth says. A variable, bytes and an operand are made by what is one dependence away.
    fn limited(&self, to: SliceQuery) -> Vec<Criterion> {
        let (mut criteria, mut taken) = (to.criteria, to.taken);
        if let Some(depth) = self.depth {
            let of_statements = matches!(self.subject(), Subject::Statement);
            let left = if of_statements || self.forward {
                depth
            } else {
                depth - 1
            };
            let reach = |left| Reach::of_depth(left).unwrap_or(Reach::ALL);
            criteria.iter_mut().for_each(|one| one.reach = reach(left));
            taken
                .iter_mut()
                .for_each(|one| one.reach = reach(depth - 1));
        }
        criteria.append(&mut taken);
        criteria
    }
}

/// The dependences between statements that were exercised.
fn edges(traced: &Session, question: &slices::Question) -> Result<BTreeSet<Edge>> {
    follow_for(traced, "collecting dependences", |run, log| {
        Ok(exercised_of(run, log, question)?)
    })
}

/// The texts of operators, in the order in which they are given.
fn texts(module: &[u8], offsets: Vec<OrigOffset>) -> Result<Vec<String>> {
    let mut sorted = offsets.clone();
    sorted.sort_unstable();
    sorted.dedup();
    let texts = operator_texts(module, &sorted)?;
    let of = |offset: &OrigOffset| {
        let at = sorted.binary_search(offset).ok()?;
        texts.get(at).cloned()
    };
    Ok(offsets
        .iter()
        .map(|offset| of(offset).unwrap_or_default())
        .collect())
}
