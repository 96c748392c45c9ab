//! Measures how many statements of an optimised version are matched correctly with statements of
//! the unoptimised version, and how long matching takes. This is the analogue of Table IX of Zhang
//! and Gupta 2005.

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use afterimage_analyses::matching::{
    Accuracy, LIKELY, Matched, Matching, Sketched, Trial, TruthSide, accuracy, copies, judge,
    match_runs_by, version,
};
use afterimage_program::{Names, Program, SourceMap};
use afterimage_record::Cache;
use afterimage_replay::steps::{Run, recorded_checkpoints};
use afterimage_replay::whole_path::{FileSegments, recorded_path};
use afterimage_trace::{TraceFile, TraceWriter};
use anyhow::{Context, Result, bail};
use serde::Serialize;

use crate::corpus::{Entry, entries};
use crate::machine::Machine;
use crate::paths::subject::{Settings, build, make_recording};
use crate::publish::publish;

/// The options of the measurement.
#[derive(Debug, clap::Args)]
pub(crate) struct Options {
    #[command(flatten)]
    common: crate::Arguments,
    /// Recordings with their paths, in pairs: first the unoptimised version, then the optimised
    /// version, on the same input [default: the versions in the corpus (build them first: cargo
    /// xtask corpus --versions), which are recorded]
    #[arg(value_name = "FILE.aft")]
    recordings: Vec<PathBuf>,
    /// Also match each statement again, given correct matches of all others, which takes twice as
    /// long
    #[arg(long)]
    others: bool,
}

/// The measurements of a pair of versions.
#[derive(Debug, Serialize)]
struct Row {
    a: String,
    b: String,
    executed: [u64; 2],
    /// The number of distinct statements that the optimised version executed, including libraries.
    distinct: usize,
    /// The number of statements in functions that were recompiled.
    own: u64,
    true_counterpart: u64,
    matched: u64,
    correct: u64,
    /// The number of statements with a correct match among their matches, and the number of matches
    /// of statements with a true counterpart. `found_of_unchanged` has these numbers for unchanged
    /// functions.
    found: [u64; 2],
    found_of_unchanged: [u64; 2],
    /// The number of matches and the number of right matches, by the stated likelihood of the
    /// match.
    by_likelihood: [[u64; 2]; LIKELY.len() + 1],
    equivalent: u64,
    /// The number of wrong matches with a copy of a true counterpart's values.
    copies: u64,
    /// The number of right matches in changed and in unchanged functions, if the counterparts of
    /// all other statements are known.
    others: Option<[u64; 2]>,
    same_line: u64,
    /// The number of statements with an equal statement at the same line and column in the first
    /// version, and the number of such statements that are matched with an equal statement.
    of_column: [u64; 2],
    /// The number of statements in functions that are the same in both versions, and the number of
    /// such statements that are matched with themselves.
    unchanged: [u64; 2],
    sketching_seconds: f64,
    matching_seconds: f64,
}

impl Row {
    /// Returns the number of statements with a true counterpart, including statements of unchanged
    /// functions.
    fn all(&self) -> u64 {
        self.true_counterpart + self.unchanged[0]
    }

    /// Returns the number of statements counted by `all` with a correct match among their matches.
    fn all_found(&self) -> u64 {
        self.found[0] + self.found_of_unchanged[0]
    }

    /// Returns the mean number of matches of the statements counted by `all`.
    fn all_matches(&self) -> f64 {
        let matches = self.found[1] + self.found_of_unchanged[1];
        matches as f64 / self.all().max(1) as f64
    }
}

#[derive(Debug, Serialize)]
struct Results {
    machine: Machine,
    rows: Vec<Row>,
}

/// A recording, with the data for matching it and judging the matches.
pub(crate) struct Loaded {
    name: String,
    file: TraceFile,
    bytes: Vec<u8>,
    program: Program,
    /// The folder of the recording, if it was made for the benchmark.
    _folder: Option<tempfile::TempDir>,
}

pub(crate) fn load(at: &Path) -> Result<Loaded> {
    let name = at
        .file_stem()
        .map_or("?".into(), |stem| stem.to_string_lossy().into_owned());
    let file = TraceFile::open(at).with_context(|| at.display().to_string())?;
    let bytes = file.module()?;
    let program = Program::parse(&bytes)?;
    Ok(Loaded {
        name,
        file,
        bytes,
        program,
        _folder: None,
    })
}

/// Records a version, with its path.
fn recorded(entry: &Entry, corpus: &Path) -> Result<Loaded> {
    let bytes = entry.module(corpus)?;
    let program = Program::parse(&bytes)?;
    let folder = tempfile::tempdir()?;
    let at = folder.path().join("run.aft");
    let settings = Settings {
        cache: &Cache::none(),
        paths: false,
        deterministic: true,
    };
    make_recording(&bytes, &program, &entry.command(corpus), &at, settings)?;
    let out = TraceWriter::append(&at)?;
    build(&TraceFile::open(&at)?, &bytes, &program, &out)?;
    out.commit()?;
    Ok(Loaded {
        name: entry.name.clone(),
        file: TraceFile::open(&at)?,
        bytes,
        program,
        _folder: Some(folder),
    })
}

/// Compares the optimised versions in the corpus with the unoptimised versions.
fn of_corpus(options: &Options) -> Result<Vec<Row>> {
    let common = &options.common;
    let all = entries(common)?;
    let mut rows = Vec::new();
    for unoptimised in all.iter().filter(|entry| entry.name.ends_with("-O0")) {
        let stem = unoptimised.name.trim_end_matches("-O0");
        let optimised = all.iter().filter(|entry| {
            let level = entry
                .name
                .strip_prefix(stem)
                .and_then(|n| n.strip_prefix("-O"));
            level.is_some_and(|level| level != "0")
        });
        let a = recorded(unoptimised, &common.corpus).with_context(|| unoptimised.name.clone())?;
        for entry in optimised {
            eprintln!("{} and {} …", a.name, entry.name);
            let b = recorded(entry, &common.corpus).with_context(|| entry.name.clone())?;
            rows.push(measure(&a, &b, options.others)?);
        }
    }
    if rows.is_empty() {
        bail!(
            "{} has no versions of programs; build them with: cargo xtask corpus --versions --out {0}",
            common.corpus.display()
        );
    }
    Ok(rows)
}

type RecordedRun<'a> = Run<'a, FileSegments>;

/// Passes the run of a version to `of`.
fn with_run<T>(loaded: &Loaded, of: impl FnOnce(RecordedRun<'_>) -> Result<T>) -> Result<T> {
    let path = recorded_path(&loaded.file, &loaded.program)?;
    let path = path.with_context(|| {
        format!(
            "{}: the recording has no path; make it with: afterimage build --lens paths",
            loaded.name
        )
    })?;
    let checkpoints = recorded_checkpoints(&loaded.file, &path)?;
    of(Run {
        program: &loaded.program,
        module: &loaded.bytes,
        path: &path,
        continuations: &path.segments().directory().continuations,
        stopped: None,
        checkpoints: checkpoints.as_ref(),
        snapshots: None,
        progress: &|_| (),
    })
}

fn sketched(loaded: &Loaded) -> Result<Sketched> {
    with_run(loaded, |run| Ok(version(run, loaded.file.log()?)?))
}

/// Two executed versions of a program.
pub(crate) struct Pair<'l> {
    a: &'l Loaded,
    b: &'l Loaded,
    /// The time to follow both runs.
    following: Duration,
    sources: [SourceMap<'l>; 2],
    names: [Names; 2],
    sketched: [Sketched; 2],
}

impl<'l> Pair<'l> {
    pub fn new(a: &'l Loaded, b: &'l Loaded) -> Result<Self> {
        let start = Instant::now();
        let sketched = std::thread::scope(|scope| -> Result<_> {
            let of_b = scope.spawn(|| sketched(b));
            let of_a = sketched(a)?;
            Ok([of_a, of_b.join().expect("it does not panic")?])
        })?;
        let following = start.elapsed();
        let sources = [SourceMap::build(&a.bytes), SourceMap::build(&b.bytes)];
        let names = [
            Names::build(&a.program, &a.bytes, &sources[0]),
            Names::build(&b.program, &b.bytes, &sources[1]),
        ];
        Ok(Self {
            a,
            b,
            following,
            sources,
            names,
            sketched,
        })
    }

    pub fn name(&self) -> String {
        format!("{}, {}", self.a.name, self.b.name)
    }

    /// Matches the versions, without their names.
    pub fn matched_by(&self, trial: Trial<'_>) -> Result<Matched> {
        let (a, b) = (self.a, self.b);
        with_run(a, |run_a| {
            with_run(b, |run_b| {
                let logs = (|| a.file.log(), || b.file.log());
                let runs = [(run_a, &logs.0 as _), (run_b, &logs.1 as _)];
                let versions = self.sketched.each_ref();
                Ok(match_runs_by(versions, None, runs, trial)?)
            })
        })
    }

    /// Returns one of the versions, with its line tables.
    fn side(&self, which: usize) -> TruthSide<'_> {
        let of = [self.a, self.b][which];
        TruthSide {
            program: &of.program,
            module: &of.bytes,
            names: &self.names[which],
            source: &self.sources[which],
            sketched: &self.sketched[which],
        }
    }

    /// Returns, for each statement of the second version with a true counterpart, the first
    /// version's statements from the same line and column.
    pub fn right(&self) -> Vec<Option<Vec<u32>>> {
        let nothing = Matching {
            of_b: vec![None; self.sketched[1].places.len()],
            ..Matching::default()
        };
        let judged = judge(self.side(0), self.side(1), &nothing).into_iter();
        let right = judged.map(|judged| {
            let judged = judged.filter(|judged| !judged.counterparts.is_empty())?;
            Some(judged.from_there)
        });
        right.collect()
    }

    pub fn accuracy(&self, matching: &Matching) -> Accuracy {
        accuracy(self.side(0), self.side(1), matching)
    }
}

pub(crate) fn run(options: &Options) -> Result<()> {
    if !options.recordings.len().is_multiple_of(2) {
        bail!("recordings come in pairs: of the unoptimised version, then of the optimised one");
    }
    let mut rows = Vec::new();
    for pair in options.recordings.chunks(2) {
        rows.push(measure(&load(&pair[0])?, &load(&pair[1])?, options.others)?);
    }
    if options.recordings.is_empty() {
        rows = of_corpus(options)?;
    }
    let results = Results {
        machine: Machine::this(),
        rows,
    };
    let text = report(&results);
    let date = &results.machine.date;
    publish(
        options.common.out.as_deref(),
        date,
        "matching",
        &text,
        &results,
    )
}

fn measure(a: &Loaded, b: &Loaded, others: bool) -> Result<Row> {
    let pair = Pair::new(a, b)?;
    let start = Instant::now();
    let found = pair.matched_by(Trial::default())?;
    let matching = start.elapsed();
    let Accuracy {
        executed: own,
        true_counterpart,
        matched,
        correct,
        found: one_right,
        listed,
        by_likelihood,
        equivalent,
        same_line,
        of_column,
        correct_of_column,
        unchanged,
        correct_of_unchanged,
        found_of_unchanged,
        listed_of_unchanged,
        ..
    } = pair.accuracy(&found.matching);
    let others = if others {
        let trial = Trial {
            right: Some(&pair.right()),
            ..Trial::default()
        };
        let found = pair.accuracy(&pair.matched_by(trial)?.matching);
        Some([found.correct, found.correct_of_unchanged])
    } else {
        None
    };
    let [of_a, of_b] = &pair.sketched;
    Ok(Row {
        a: a.name.clone(),
        b: b.name.clone(),
        executed: [of_a.executed, of_b.executed],
        distinct: of_b.places.len(),
        own,
        true_counterpart,
        matched,
        correct,
        found: [one_right, listed],
        found_of_unchanged: [found_of_unchanged, listed_of_unchanged],
        by_likelihood,
        equivalent,
        copies: copies(pair.side(0), pair.side(1), &found),
        others,
        same_line,
        of_column: [of_column, correct_of_column],
        unchanged: [unchanged, correct_of_unchanged],
        sketching_seconds: pair.following.as_secs_f64(),
        matching_seconds: matching.as_secs_f64(),
    })
}

fn report(results: &Results) -> String {
    let percent = |part: u64, whole: u64| 100.0 * part as f64 / whole.max(1) as f64;
    let mut text = String::from(
        "# Matching of versions\n\n\
         Function names are not used. A statement counts if the optimised run executed it at least once, in a function whose code differs between the versions. It has a *true counterpart*\n\
         if the unoptimised run executed a statement of the same operator from the same position, with some value or some difference between values in common. A match is *right* if it comes from that\n\
         position. A position is a file, line and column in an instance of a function. Inlined calls on the way to it are part of the position if both versions inlined them, according to their debug information. (`branch<u8>` and `branch<char>` have the same lines and are two instances.)\n\
         *Did the same* also counts matches with a statement that did exactly the same as a true counterpart: operator, every value and address, in the same parts of the run. An optimiser that finds a common subexpression keeps one position of\n\
         several. *Or a copy* also counts statements that gave the same values in the same order as a true counterpart, through the same calls, wherever they read or wrote them: no comparison of values distinguishes these. *By line and column* counts any instance. The columns under *all* also count functions that are the same in both versions, such as those of the C library: there the true counterpart is\n\
         the same operator of the function of the same name, if both versions executed it.\n\n\
         *Right* is about the likeliest match alone. *Found* is the measure of Zhang and Gupta (2005, Table IX): a statement of the optimised run is matched with one or more statements, and it counts if one of these is right. Its matches are those at least a tenth as likely\n\
         as the likeliest; *matches each* is their mean number.\n\n\
         | pair | statements executed (M) | distinct | own | with a true counterpart | matched | right | right, or did the same | right, or a copy | right line | by line and column | all with a true counterpart | all right | all right, or did the same | found | matches each | all found | all matches each | following both (s) | matching (s) |\n\
         |---|---|---|---|---|---|---|---|---|---|---|---|---|---|---|---|---|---|---|---|\n",
    );
    for row in &results.rows {
        let _ = writeln!(
            text,
            "| {}, {} | {:.1}, {:.1} | {} | {} | {} | {:.1} % | {:.1} % | {:.1} % | {:.1} % | {:.1} % | {:.1} % | {} | {:.1} % | {:.1} % | {:.1} % | {:.2} | {:.1} % | {:.2} | {:.2} | {:.2} |",
            row.a,
            row.b,
            row.executed[0] as f64 / 1e6,
            row.executed[1] as f64 / 1e6,
            row.distinct,
            row.own,
            row.true_counterpart,
            percent(row.matched, row.true_counterpart),
            percent(row.correct, row.true_counterpart),
            percent(row.equivalent, row.true_counterpart),
            percent(row.correct + row.copies, row.true_counterpart),
            percent(row.same_line, row.true_counterpart),
            percent(row.of_column[1], row.of_column[0]),
            row.all(),
            percent(row.correct + row.unchanged[1], row.all()),
            percent(row.equivalent + row.unchanged[1], row.all()),
            percent(row.found[0], row.true_counterpart),
            row.found[1] as f64 / row.true_counterpart.max(1) as f64,
            percent(row.all_found(), row.all()),
            row.all_matches(),
            row.sketching_seconds,
            row.matching_seconds,
        );
    }
    text.push('\n');
    // Reports each level of optimisation separately, because a mean over several levels would hide
    // their differences.
    let levels = BTreeSet::from_iter(results.rows.iter().map(|row| level(&row.b)));
    for of in levels {
        let rows = || results.rows.iter().filter(|row| level(&row.b) == of);
        let mean = |part: fn(&Row) -> u64, whole: fn(&Row) -> u64| {
            let shares = rows().map(|row| percent(part(row), whole(row)));
            shares.sum::<f64>() / rows().count() as f64
        };
        let own: fn(&Row) -> u64 = |row| row.true_counterpart;
        let _ = writeln!(
            text,
            "Mean of {} pairs with {}: {:.1} % right, {:.1} % right or did the same, {:.1} % right or a copy; of all {:.1}, {:.1} and {:.1} %.",
            rows().count(),
            if of.is_empty() { "others" } else { of },
            mean(|row| row.correct, own),
            mean(|row| row.equivalent, own),
            mean(|row| row.correct + row.copies, own),
            mean(|row| row.correct + row.unchanged[1], Row::all),
            mean(|row| row.equivalent + row.unchanged[1], Row::all),
            mean(|row| row.correct + row.copies + row.unchanged[1], Row::all),
        );
        let each = rows().map(Row::all_matches).sum::<f64>() / rows().count() as f64;
        let _ = writeln!(
            text,
            "Found: {:.1} %, or **{:.1} %** of all, with {each:.2} matches each.",
            mean(|row| row.found[0], own),
            mean(Row::all_found, Row::all),
        );
    }
    text.push_str(&how_likely(&results.rows));
    if results.rows.iter().any(|row| row.others.is_some()) {
        text.push_str(&if_others_were_right(&results.rows));
    }
    text
}

/// Reports whether the stated likelihoods agree with the shares of right matches.
fn how_likely(rows: &[Row]) -> String {
    let mut text = String::from(
        "\n## How likely\n\n\
         For each stated likelihood of a match: how many matches are right, among the statements above with a true counterpart, all pairs together.\n\n\
         | stated likelihood | matches | right |\n|---|---|---|\n",
    );
    let bounds = LIKELY.map(|bound| format!("{:.0} %", 100.0 * bound));
    for band in 0..=LIKELY.len() {
        let said = match band.checked_sub(1).map(|below| &bounds[below]) {
            None => format!("below {}", bounds[0]),
            Some(from) => match bounds.get(band) {
                Some(to) => format!("{from} to {to}"),
                None => format!("{from} and more"),
            },
        };
        let sum = |of: usize| {
            rows.iter()
                .map(|row| row.by_likelihood[band][of])
                .sum::<u64>()
        };
        let (all, right) = (sum(0), sum(1));
        let share = 100.0 * right as f64 / all.max(1) as f64;
        let _ = writeln!(text, "| {said} | {all} | {share:.1} % |");
    }
    text
}

/// Returns a table with the shares of matches that would be right if the counterparts of all other
/// statements were known.
fn if_others_were_right(rows: &[Row]) -> String {
    let mut text = String::from(
        "\n## If all others were right\n\n\
         Each statement is matched once more, with the same weights, and with the true counterparts of all other statements known, as far as they are candidates. Matches that are wrong even then are not wrong because of their surroundings.\n\n\
         | pair | right | all right |\n|---|---|---|\n",
    );
    let mut sums = [0.0; 2];
    let given = rows.iter().filter_map(|row| Some((row, row.others?)));
    let given = Vec::from_iter(given);
    for (row, [own, unchanged]) in &given {
        let shares = [
            100.0 * *own as f64 / row.true_counterpart.max(1) as f64,
            100.0 * (own + unchanged) as f64 / row.all().max(1) as f64,
        ];
        let _ = writeln!(
            text,
            "| {}, {} | {:.1} % | {:.1} % |",
            row.a, row.b, shares[0], shares[1]
        );
        for (sum, share) in sums.iter_mut().zip(shares) {
            *sum += share / given.len() as f64;
        }
    }
    let _ = writeln!(text, "| mean | {:.1} % | {:.1} % |", sums[0], sums[1]);
    text
}

/// Returns the level of optimisation at the end of a version's name, such as `-O2` in `lua-O2`.
fn level(name: &str) -> &str {
    name.rfind("-O").map_or("", |at| &name[at..])
}
