//! Counts functions, lines, blocks, edges and instructions in one or several runs of a program.
//!
//! The counts come from recordings, or from a dump of counters. The result is a [`Profile`] with
//! its names and lines.

use std::collections::HashSet;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use afterimage_ids::{Counts, FuncId};
use afterimage_present::{Format, ProfileDocument, counted, profile_document};
use afterimage_profile::{
    By, CodeFilter, Options, Profile, RangeCounts, Remarks, Report, Scope, Sort, Stop, WholeLines,
    add_counts,
};
use afterimage_program::{Module, Names, SourceMap};
use anyhow::{Context, Result, bail};
use serde::{Deserialize, Serialize};

use crate::counts::Counting;
use crate::error::{Reason, SessionError};
use crate::files::{self, Kind};
use crate::instrument::read_dump;
use crate::monitor::Monitor;
use crate::range::range_counts;
use crate::session::Session;
use crate::source::{check_code, source_map_with, without_lines};
use crate::sources::{SourceFiles, SourcePaths};
use crate::text::pasted;
use crate::trace::Bounds;
use crate::whole::whole_lines;

/// A question about execution counts.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProfileQuery {
    /// The parts of the program that the rows are about.
    pub by: By,
    /// The order of the rows. The default is program order, or most instructions first if only the
    /// top rows are requested.
    pub sort: Option<Sort>,
    /// The maximum number of rows. The default is all.
    pub top: Option<usize>,
    /// The functions to include, by index, name or demangled name. Empty means all.
    pub functions: Vec<String>,
    /// The code for which to report rows. The default is all code.
    pub code: Option<CodeFilter>,
    /// The stretch of the run to count. The default is the whole run.
    pub bounds: Bounds,
}

/// The default number of rows in text output.
pub(crate) const TEXT_ROWS: usize = 25;

impl ProfileQuery {
    /// Creates the query for text output. If it has no order or limit, only the rows with the most
    /// instructions are shown.
    #[must_use]
    pub fn for_people(self) -> Self {
        Self {
            sort: self.sort.or(Some(Sort::Instructions)),
            top: self.top.or(Some(TEXT_ROWS)),
            ..self
        }
    }

    /// Whether only a stretch of the run is counted.
    pub fn is_bound(&self) -> bool {
        self.bounds != Bounds::default()
    }

    /// Resolves the functions of the query.
    fn scope(&self, profiled: &Profiled<'_>) -> Result<Scope> {
        let functions = profiled.functions(&self.functions)?;
        Ok(match functions.is_empty() {
            true => Scope::All,
            false => Scope::Only(functions),
        })
    }

    /// Resolves the functions and the order of the query.
    ///
    /// # Errors
    /// Returns an error if the program has no such function.
    pub fn options(&self, profiled: &Profiled<'_>) -> Result<Options> {
        Ok(Options {
            by: self.by,
            sort: self.sort,
            top: self.top,
            scope: self.scope(profiled)?,
            // `all` leaves nothing out, not even functions without lines.
            code: self.code.clone().filter(|code| *code != CodeFilter::All),
            whole: profiled.counted.whole.clone(),
            inlined: true,
        })
    }

    /// Returns the code whose lines are shown with the cost of library code. Returns `None` unless
    /// the rows are lines of all functions in the whole run.
    pub fn whole(&self) -> Option<&CodeFilter> {
        let has_rows = self.by == By::Line && self.functions.is_empty() && !self.is_bound();
        self.code.as_ref().filter(|_| has_rows)
    }

    /// Returns the profile as a document with all rows in memory.
    pub(crate) fn answer(&self, profiled: &Profiled<'_>) -> Result<ProfileDocument> {
        let report = Report::new(&profiled.profile, &self.options(profiled)?)?;
        Ok(profile_document(&profiled.profile, &report, None))
    }
}

/// Refuses options about rows if the format fixes the contents of a report. `given` lists the
/// options, and whether each is set.
///
/// # Errors
/// Returns an error if an option is set that would have no effect.
pub fn refuse_without_effect(format: Format, annotate: bool, given: &[(&str, bool)]) -> Result<()> {
    match format {
        Format::Text => {}
        _ if annotate => bail!("--annotate only writes text: leave out --format"),
        Format::Json | Format::Csv => {}
        _ => {
            if let Some((option, _)) = given.iter().find(|option| option.1) {
                bail!(
                    "{option} has no effect here, because the format decides what the report \
                     contains; leave it out"
                );
            }
        }
    }
    Ok(())
}

/// Returns the recordings on a command line. All arguments must be recordings.
///
/// # Errors
/// Returns an error if one of the arguments is not a recording.
pub fn recordings<'a>(first: &'a Path, others: &'a [String]) -> Result<Vec<&'a Path>> {
    let mut all = vec![first];
    for text in others {
        let at = Path::new(text);
        match files::kind(at) {
            Ok(Kind::Recording) => all.push(at),
            Err(error) if at.extension().is_some_and(|end| end == "aft") => return Err(error),
            Ok(Kind::Program) if files::program(at).is_ok() => bail!(
                "{} is a program among recordings; record it first, and name the recording: afterimage record {}",
                at.display(),
                pasted(at)
            ),
            _ => nothing_runs(&format!("{} is a recording", first.display()), Some(text))?,
        }
    }
    Ok(all)
}

/// Refuses an argument for a guest if no guest will run.
///
/// # Errors
/// Returns an error if there is such an argument.
pub fn nothing_runs(why: &str, argument: Option<&String>) -> Result<()> {
    match argument {
        Some(argument) => {
            bail!("{why}, so no program runs and the argument {argument:?} has no use")
        }
        None => Ok(()),
    }
}

/// Exact counts of one run, or of several runs of one program, and where each run ended.
pub struct Counted {
    /// The name used in messages: the first recording, or the program.
    name: PathBuf,
    /// The file with the counts.
    from: PathBuf,
    module: Arc<Module>,
    counts: Counts,
    stops: Vec<Stop>,
    runs: u64,
    /// A note if the counts are not exact.
    note: Option<String>,
    /// The cost of lines including library code, if requested and known.
    whole: Option<Arc<WholeLines>>,
    /// The counts of a range, if only a range is counted.
    range: Option<RangeCounts>,
    sources: Arc<SourceFiles>,
}

impl Counted {
    /// Returns the counts of a recording. If `counting` is given, executes the run again with it
    /// and checks or stores the counts. Otherwise executes the run again only if the recording does
    /// not contain them. `name` is the recording's name in messages.
    ///
    /// # Errors
    /// Returns an error if the run cannot be executed again, or its end is unknown.
    pub fn of(session: &Session, name: &Path, counting: Option<&Counting<'_>>) -> Result<Self> {
        let failed = |why| SessionError {
            at: name.to_owned(),
            why,
        };
        let counts = match counting {
            None => session.ensure_counts(),
            Some(counting) => session.count(counting),
        };
        let Some(counts) = counts.map_err(|error| failed(error.why))? else {
            files::ended(session.at())?;
            return Err(failed(Box::new(Reason::NoCounts)).into());
        };
        let stops = session.stops();
        let stops = stops.with_context(|| name.display().to_string())?.to_vec();
        // The user may have named the program instead of the recording. The sources are then beside
        // the program.
        let sources = if session.at() == name {
            Arc::clone(session.sources())
        } else {
            Arc::new(SourceFiles::new(name, session.sources().paths().clone()))
        };
        Ok(Self {
            name: name.to_owned(),
            from: name.to_owned(),
            module: Arc::clone(session.module()),
            counts,
            stops,
            runs: 1,
            note: None,
            whole: None,
            range: None,
            sources,
        })
    }

    /// Also finds the cost of this code's lines, including the library code that they call. Builds
    /// the path of the run if it does not exist yet. Sends a remark to the monitor if the cost
    /// cannot be found.
    #[must_use]
    pub fn with_whole_lines(mut self, session: &Session, code: Option<&CodeFilter>) -> Self {
        let Some(code) = code else { return self };
        match whole_lines(session, &self.counts, code) {
            Ok(whole) => self.whole = whole.map(Arc::new),
            Err(error) => session.remark(format!(
                "library code is not added to the lines that call it: {error:#}"
            )),
        }
        self
    }

    /// Counts only the range of the query, if it has one. Counts lines only if the rows are lines,
    /// or if the source will be annotated. Builds the path of the run if it does not exist yet.
    ///
    /// # Errors
    /// Returns an error if the run has no such range, or the query asks for counts that a range
    /// does not have.
    pub fn in_range(
        mut self,
        session: &Session,
        query: &ProfileQuery,
        is_annotated: bool,
    ) -> Result<Self> {
        if !query.is_bound() {
            return Ok(self);
        }
        if query.by == By::Edge {
            bail!(
                "--from and --to cannot count edges: choose --by function, line, block or instruction"
            );
        }
        session.ensure_whole_path()?;
        let has_lines = query.by == By::Line || is_annotated;
        let counts = self.ask(session.monitor(), |profiled| {
            let scope = query.scope(profiled)?;
            let lines = has_lines.then_some(&scope);
            range_counts(session, &profiled.profile, &query.bounds, lines)
        })?;
        self.range = Some(counts);
        Ok(self)
    }

    /// Adds up the counts of these recordings, which `open` opens one at a time. Also finds the
    /// cost of the lines that `whole` selects, including the library code that they call.
    ///
    /// # Errors
    /// Returns the same errors as [`of`](Self::of) and [`add`](Self::add).
    pub fn of_all<'p>(
        recordings: impl IntoIterator<Item = &'p Path>,
        open: impl Fn(&Path) -> Result<Session>,
        counting: Option<&Counting<'_>>,
        whole: Option<&CodeFilter>,
    ) -> Result<Self> {
        let (mut sum, mut known, mut twice) = (None::<Self>, HashSet::new(), HashSet::new());
        for at in recordings {
            let session = open(at)?;
            let file = at.canonicalize().unwrap_or_else(|_| at.to_owned());
            if !known.insert(file.clone()) && twice.insert(file) {
                session.remark(format!(
                    "{}: given more than once; its counts are added each time",
                    at.display()
                ));
            }
            let one = Self::of(&session, at, counting)?.with_whole_lines(&session, whole);
            match &mut sum {
                Some(sum) => sum.add(one)?,
                None => sum = Some(one),
            }
        }
        sum.context("name a recording")
    }

    /// Reads the counts left by an instrumented module.
    ///
    /// # Errors
    /// Returns an error if the program or dump does not exist, or the dump belongs to another
    /// module.
    pub fn of_dump(dump: &Path, program: &Path, paths: SourcePaths) -> Result<Self> {
        let loaded = files::program(program)?;
        let read = read_dump(dump, files::open(dump)?, program, &loaded)?;
        Ok(Self {
            name: program.to_owned(),
            from: dump.to_owned(),
            module: loaded.module,
            counts: read.counts,
            stops: read.stops,
            runs: 1,
            note: read.note,
            whole: None,
            range: None,
            sources: Arc::new(SourceFiles::new(program, paths)),
        })
    }

    /// Adds the counts of other runs of the same program.
    ///
    /// # Errors
    /// Returns an error if they belong to another program, or a sum exceeds 64 bits.
    pub fn add(&mut self, other: Self) -> Result<()> {
        let place = || other.name.display().to_string();
        if !self.is_same_program(&other) {
            bail!(
                "{}: a recording of a different program from {}; only counts of the same program can \
                 be added up",
                place(),
                self.name.display()
            );
        }
        let program = &self.module.program;
        add_counts(program, &mut self.counts, &other.counts).with_context(place)?;
        self.stops.extend(other.stops);
        self.runs += other.runs;
        self.whole = match (self.whole.take(), other.whole) {
            (Some(sum), Some(other)) => {
                let mut sum = Arc::unwrap_or_clone(sum);
                let added = sum.add(Arc::unwrap_or_clone(other));
                added.map(|()| Arc::new(sum))
            }
            _ => None,
        };
        Ok(())
    }

    pub(crate) fn is_same_program(&self, other: &Self) -> bool {
        self.module.bytes == other.module.bytes
    }

    /// Returns the sources of the program.
    pub fn sources(&self) -> &SourceFiles {
        &self.sources
    }

    /// Returns the name used in messages.
    pub fn name(&self) -> &Path {
        &self.name
    }

    /// Makes the profile from the counts and passes it to `ask`. The monitor receives warnings
    /// about unreadable debug information.
    ///
    /// # Errors
    /// Returns an error if the counts contradict each other, or `ask` fails.
    pub fn ask<R>(
        &self,
        monitor: &dyn Monitor,
        ask: impl FnOnce(&Profiled<'_>) -> Result<R>,
    ) -> Result<R> {
        let sources = Arc::clone(&self.sources);
        let source = source_map_with(&self.name, &self.module, monitor, sources);
        let names = self.module.names(&source);
        let Module { program, bytes, .. } = &*self.module;
        let (counts, stops) = (&self.counts, &self.stops);
        let profile = Profile::new(program, bytes, counts, stops, &names, &source);
        let profile = profile.with_context(|| self.from.display().to_string())?;
        let profile = match &self.range {
            Some(range) => profile.in_range(range.clone())?,
            None => profile.over(self.runs),
        };
        ask(&Profiled {
            profile,
            names: &names,
            source: &source,
            counted: self,
        })
    }
}

/// A profile with the names and lines of its program.
pub struct Profiled<'p> {
    /// The profile.
    pub profile: Profile<'p>,
    names: &'p Names,
    source: &'p SourceMap<'p>,
    counted: &'p Counted,
}

impl Profiled<'_> {
    /// Refuses a glob that selects no source file of the program.
    ///
    /// # Errors
    /// Returns an error if the glob selects no source file.
    pub fn check_code(&self, code: &CodeFilter) -> Result<()> {
        check_code(self.source, code)
    }

    /// Returns the sources of the program.
    pub fn sources(&self) -> &SourceFiles {
        self.counted.sources()
    }

    /// Returns a note for the reader if the counts are not exact.
    pub fn note(&self) -> Option<&str> {
        self.counted.note.as_deref()
    }

    /// Returns the subject, for a title: `app.aft`, `app.aft and 2 more recordings`.
    pub fn title(&self) -> String {
        let name = self.counted.name.display();
        match self.counted.runs {
            1 => name.to_string(),
            runs => format!("{name} and {}", counted(runs - 1, "more recording")),
        }
    }

    /// Refuses a format that cannot contain a note, if the counts are not exact.
    ///
    /// # Errors
    /// Returns an error if the counts are not exact and the format cannot contain a note.
    pub fn refuse_format(&self, format: Format) -> Result<()> {
        match (self.note(), format) {
            (None, _) | (_, Format::Text | Format::Json) => Ok(()),
            (Some(note), _) => {
                bail!("{note}; this format cannot contain this note: choose --format text or json")
            }
        }
    }

    /// Describes the executed functions without lines, which a report by line leaves out.
    pub fn without_lines(&self, scope: &Scope) -> Option<String> {
        without_lines(self.counted.name(), &self.profile, scope, self.source)
    }

    /// Returns the functions with these names.
    fn functions(&self, texts: &[String]) -> Result<Vec<FuncId>> {
        let place = || self.counted.name().display().to_string();
        let found = texts.iter().map(|text| self.names.find(text, self.source));
        let found = found.collect::<Result<Vec<_>, _>>().with_context(place)?;
        for &id in &found {
            if self.profile.function(id).is_none() {
                bail!(
                    "{}: {} is imported, so it has no counts; see its callers",
                    place(),
                    self.names.short(id)
                );
            }
        }
        Ok(found)
    }
}
