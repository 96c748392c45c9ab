//! Implements `afterimage diff`.

use std::io::Write;
use std::path::PathBuf;

use afterimage::Session;
use afterimage::diff::Programs;
use afterimage::diff::rank::{RankQuery, rank};
use afterimage::diff::same::{SameQuery, same};
use afterimage::diff::slices::{SlicesShown, write_slices};
use afterimage::diff::versions::versions;
use afterimage::files;
use afterimage::sources::{FirstOf, SourcePaths};
use afterimage_present::{NextQuestion, PresentError, Render, render};
use afterimage_profile::CodeFilter;
use anyhow::{Result, bail};

use crate::arguments::{CodeArguments, OutputArguments, SourceArguments, formats, rows};
use crate::exit::Exit;
use crate::lens::{self, session, traced};
use crate::output::{say, say_not_at_hand};

/// Show where two runs first differ
///
/// They may differ in control, a value, an address, what the host does, or the output. Two
/// recordings of the same program are followed side by side, so the first difference is exact:
/// everything before it is the same in both. If the runs ended differently, the report says that
/// first. Then it shows where control diverges, the first byte of output that differs, the lines
/// that ran a different number of times, and questions to ask next.
///
/// Programs that differ only in at most 64 operators, or in bytes of data, are also followed side
/// by side. The report names each replaced operator, and the executions in which its result differs
/// from what the old operator would return for the same operands.
///
/// Recordings of other programs are treated as two versions that ran on the same input. The report
/// compares their output, and the statements that correspond according to `afterimage match`.
/// Suspects are operators that differ in otherwise equal functions, and statements with equal
/// inputs and a first output that no similar statement has.
///
/// With --pass and --fail it ranks lines and values that separate failing executions from passing
/// executions, by Ochiai's coefficient. A line scores 1 if it ran in every failing execution and in
/// no passing execution. A statement scores 1 if a predicate held for one of its values in every
/// failing execution and in no passing execution. The predicates are negative, zero, positive, and
/// above or below all its values in passing executions.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  afterimage diff good.aft bad.aft
  afterimage diff good.aft bad.aft --slice
  afterimage diff good.aft bad.aft --format json
  afterimage diff unoptimised.aft optimised.aft
  afterimage diff --pass ok1.aft ok2.aft --fail bad1.aft bad2.aft")]
pub(crate) struct Arguments {
    /// Do not count how often lines ran
    #[arg(long)]
    no_lines: bool,
    /// After the text, also show the slices of the commands under "questions to ask next"
    #[arg(long)]
    slice: bool,
    /// Output format
    #[arg(long, default_value = "text")]
    format: Format,
    #[command(flatten)]
    to: OutputArguments,
    /// Recordings of correct executions
    #[arg(long, value_name = "FILE.aft", num_args = 1..)]
    pass: Vec<PathBuf>,
    /// Recordings of failing executions
    #[arg(long, value_name = "FILE.aft", num_args = 1..)]
    fail: Vec<PathBuf>,
    /// Rank only lines; ranking values follows each run from beginning to end
    #[arg(long)]
    no_values: bool,
    /// Show at most N rows of each list [default: all; in text, 25 ranked lines or values, 20 lines
    /// that differ between two recordings, 10 rows of other lists]
    #[arg(long = "limit", alias = "top", value_name = "N", value_parser = rows)]
    top: Option<usize>,
    #[command(flatten)]
    code: CodeArguments,
    #[command(flatten)]
    sources: SourceArguments,
    /// The first recording
    #[arg(
        value_name = "A.aft",
        required_unless_present_any = ["pass", "fail"]
    )]
    a: Option<PathBuf>,
    /// The second recording
    #[arg(
        value_name = "B.aft",
        required_unless_present_any = ["pass", "fail"]
    )]
    b: Option<PathBuf>,
}

formats! {
    Text,
    Json,
    /// The ranked lines
    Csv,
}

/// The default number of ranked rows in text.
const ROWS: usize = 25;
/// The default number of lines of a slice.
const LINES: usize = 20;

pub(crate) fn run(arguments: Arguments) -> Result<Exit> {
    let is_ranking = !arguments.pass.is_empty() || !arguments.fail.is_empty();
    if is_ranking && arguments.a.is_some() {
        bail!(
            "give either two recordings to compare, or --pass and --fail to rank their \
             differences"
        );
    }
    if is_ranking && arguments.slice {
        bail!("--slice works for two recordings; --pass and --fail rank lines and values");
    }
    if is_ranking && arguments.no_lines {
        bail!("--no-lines works for two recordings; --pass and --fail rank lines");
    }
    if arguments.pass.is_empty() != arguments.fail.is_empty() {
        bail!(
            "give --pass and --fail together: correct executions with --pass, failing executions \
             with --fail"
        );
    }
    let fails = Vec::from_iter(arguments.fail.iter().map(|file| file.canonicalize().ok()));
    let is_both = |file: &&PathBuf| {
        let file = file.canonicalize().ok();
        file.is_some() && fails.contains(&file)
    };
    if let Some(both) = arguments.pass.iter().find(is_both) {
        bail!(
            "{} is given with --pass and with --fail: an execution is either correct or failing",
            both.display()
        );
    }
    let (code, sources) = (arguments.code.filter()?, arguments.sources.paths()?);
    let (Some(first), Some(second)) = (&arguments.a, &arguments.b) else {
        arguments.rank(&sources, &code)?;
        say_not_at_hand(&sources, &code);
        return Ok(Exit::Success);
    };
    if arguments.format == Format::Csv {
        bail!("--format csv works only with --pass and --fail");
    }
    if arguments.no_values {
        bail!("--no-values works only with --pass and --fail");
    }
    if arguments.slice && arguments.format != Format::Text {
        bail!("--slice writes only text; for other formats use afterimage slice");
    }
    let opened = |at| {
        let session = traced(at)?.looking_at(code.clone());
        session.ensure_inputs()?;
        Ok::<_, anyhow::Error>(session.reading(sources.clone()))
    };
    let (first, second) = (opened(first)?, opened(second)?);
    // One version may lack a file of the other.
    first.check_code().or_else(|_| second.check_code())?;
    arguments.compare([&first, &second])?;
    say_not_at_hand(&sources, &code);
    Ok(Exit::Success)
}

impl Arguments {
    fn compare(&self, sessions: [&Session; 2]) -> Result<()> {
        let style = self.to.style();
        let alike = match Programs::of(sessions) {
            Programs::Same => None,
            Programs::Alike(alike) => Some(alike),
            Programs::Versions => {
                return versions(sessions, self.top, |view| {
                    self.shown(view, sessions, || view.questions())
                });
            }
        };
        let sources = FirstOf(sessions.map(|session| &**session.sources()).to_vec());
        let query = SameQuery {
            lines: !self.no_lines,
            top: self.top,
            sources: &sources,
            style,
        };
        same(sessions, alike, &query, |view| {
            self.shown(view, sessions, || view.questions())
        })
    }

    /// Writes a report and, if requested, the slices of its questions.
    fn shown(
        &self,
        view: &impl Render,
        sessions: [&Session; 2],
        questions: impl FnOnce() -> Result<Vec<NextQuestion>, PresentError>,
    ) -> Result<()> {
        self.to.write(|out| {
            render(out, view, self.format, self.to.style())?;
            if self.slice {
                self.slices(out, sessions, &questions()?)?;
            }
            Ok(())
        })
    }

    /// Ranks lines and values that separate failing executions from passing executions.
    fn rank(&self, sources: &SourcePaths, code: &CodeFilter) -> Result<()> {
        let opened = |paths: &[PathBuf]| -> Result<Vec<Session>> {
            let open = |at: &PathBuf| {
                files::ended(at)?;
                let session = session(at)?.looking_at(code.clone());
                Ok(session.reading(sources.clone()))
            };
            paths.iter().map(open).collect()
        };
        let (passing, failing) = (opened(&self.pass)?, opened(&self.fail)?);
        let both = passing.iter().chain(&failing);
        let sources = FirstOf(both.map(|session| &**session.sources()).collect());
        let query = RankQuery {
            values: !self.no_values && self.format != Format::Csv,
            top: match self.format {
                Format::Text => self.top.or(Some(ROWS)),
                Format::Json | Format::Csv => self.top,
            },
        };
        rank(&passing, &failing, query, &sources, |report| {
            self.to.show(report, self.format)
        })
    }

    /// Writes the slices of some questions, each with at most `--top` or [`LINES`] lines.
    fn slices(
        &self,
        out: &mut dyn Write,
        sessions: [&Session; 2],
        questions: &[NextQuestion],
    ) -> Result<()> {
        let shown = SlicesShown {
            limit: self.top.unwrap_or(LINES),
            style: self.to.style(),
            ensure_values: &lens::ensure_values,
        };
        if !write_slices(out, sessions, questions, &shown)? {
            say("--slice: no difference between the executions can be sliced");
        }
        Ok(())
    }
}
