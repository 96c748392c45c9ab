//! Reports the contents of a recording.

mod disclosed;
mod sizes;

use std::io::Write;

use schemars::JsonSchema;
use serde::Serialize;

use crate::document::objects::{Function, Position};
use crate::document::{Document, NoRows, begin};
use crate::number::{counted, grouped, size};
use crate::plain::plain;
use crate::render::Render;
use crate::{PresentError, ResultValue, Style, shell_word};

pub use disclosed::{InfoDisclosed, InfoSource, InfoSources, InfoTraffic};
use sizes::sections;
pub use sizes::{InfoClass, InfoOriginal, InfoSection, InfoStream, InfoStreams, InfoWindow};

/// The message about bytes that an interrupted addition left.
pub(crate) const LEFT_OVER: &str = "were left by an interrupted addition: nothing else is lost; \
    they are ignored, and removed with the next addition";

/// The contents of a recording: the program, how the run ended, and the data built for it.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct InfoReport {
    /// The program's name, as the guest receives it.
    pub program: String,
    /// The program's arguments.
    pub args: Vec<String>,
    /// The exported function that was called instead of `_start`.
    pub invoke: Option<String>,
    /// The granted folders, by their guest paths.
    pub dirs: Vec<String>,
    /// The names of the granted environment variables.
    pub env: Vec<String>,
    /// The module's digest, in hexadecimal.
    pub module_sha256: String,
    /// The time at which the recording began, in seconds since 1970-01-01 UTC.
    pub recorded_unix: u64,
    /// The engine that ran the program.
    pub engine: String,
    /// The version of afterimage that recorded the run.
    pub tool_version: String,
    /// The ending of the run, in words; `null` if the recording was cut off or is unfinished.
    pub ending: Option<String>,
    /// The results of the invoked function; `null` if none was invoked, or it did not return.
    pub results: Option<Vec<ResultValue>>,
    /// Whether the program is still being recorded.
    pub running: bool,
    /// The places at which activations were open at the end, the innermost first, at most 20.
    pub frames: Vec<InfoFrame>,
    /// The number of activations that were open at the end.
    pub frames_total: usize,
    /// The code that the text form leaves out, in words.
    #[serde(skip)]
    pub hidden_code: &'static str,
    /// The value of the stop clock at the end; `null` if there was no clock, or the recording was
    /// cut off.
    pub clock: Option<u64>,
    /// The number of events in the log; `null` in the same cases as `ending`.
    pub events: Option<u64>,
    /// The number of calls to imports in the log.
    pub host_calls: Option<u64>,
    /// The lenses that were built: `counts`, `paths`, `full`.
    pub lenses: Vec<&'static str>,
    /// Whether the path was written while the program ran, so that it can be followed even if the
    /// end is unknown.
    pub path_words: bool,
    /// The whole path of the run, if it was built.
    pub path: Option<InfoPath>,
    /// The values, for each window.
    pub values: Vec<InfoValues>,
    /// The checkpoints from which the run can be followed, if there are any.
    pub checkpoints: Option<InfoCheckpoints>,
    /// The stored simulations.
    pub simulations: Vec<InfoSimulation>,
    /// The stored slices.
    pub slices: Vec<InfoSlice>,
    /// The data that the file discloses to its receivers.
    pub disclosed: InfoDisclosed,
    /// The size of the file in bytes.
    pub length: u64,
    /// The number of bytes after the last complete state.
    pub ignored_bytes: u64,
    /// `true` if an interrupted addition left the ignored bytes, so that they are not damage;
    /// otherwise absent.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub interrupted: bool,
    /// The parts of the file. The rest of `length` is the file's header, indexes and footers, and
    /// the ignored bytes.
    pub sections: Vec<InfoSection>,
    /// The bytes that answer questions about values, with `--sizes`.
    pub streams: Option<InfoStreams>,
    /// Descriptions of unreadable parts. If there are any, the exit code is 125.
    pub problems: Vec<String>,
    /// Whether the text form also shows sizes.
    #[serde(skip)]
    pub sized: bool,
}

impl Document for InfoReport {
    const NAME: &'static str = "info";
    const COMMAND: &'static str = "info";
    type Row = NoRows;
}

impl Render for InfoReport {
    const NAME: &'static str = "a report on a recording";

    fn text(&self, out: &mut dyn Write, style: Style) -> Result<(), PresentError> {
        text(out, self, style)
    }

    fn json(&self, out: &mut dyn Write) -> Result<(), PresentError> {
        begin(out, self)
    }
}

/// A place at which activations were open at the end.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct InfoFrame {
    /// The function.
    pub function: Function,
    /// The offset in the original module of the next operator.
    pub offset: u32,
    /// Its line, if known.
    pub source: Option<Position>,
    /// The number of consecutive activations at this place.
    pub times: usize,
    /// If library code was inlined into the user's own code, the line of the user's code. Only the
    /// text form shows it.
    #[serde(skip)]
    pub around: Option<Position>,
    /// Whether the text form leaves it out, because it belongs to library code.
    #[serde(skip)]
    pub library: bool,
}

/// A whole path.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct InfoPath {
    /// The number of executed blocks.
    pub blocks: u64,
    /// The number of segments.
    pub segments: u64,
    /// The number of distinct paths in it.
    pub nodes: u64,
    /// The size in bytes of the segments, and of the data that readers need to open a segment.
    pub stored_bytes: u64,
    /// The size in bits per block; `null` if no block was executed.
    pub bits_per_block: Option<f64>,
    /// A description of the parts left out on request; empty if there are none.
    pub left_out: String,
}

/// The values of a window of the run.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct InfoValues {
    /// The first block with stored values.
    pub first: u64,
    /// The last block with stored values.
    pub last: u64,
    /// The number of statements executed in the window, except in functions that were left out.
    pub statements: u64,
    /// The functions that were left out, in words; empty if there are none.
    pub left_out: String,
    /// The number of epochs.
    pub epochs: u64,
    /// The size of the epochs in the file in bytes, including their index.
    pub stored_bytes: u64,
    /// The size in bytes per statement.
    pub bytes_per_statement: Option<f64>,
    /// The size of each part before its chunks are compressed.
    pub parts: Vec<InfoPart>,
}

/// A part of the values.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct InfoPart {
    /// Its contents.
    pub what: &'static str,
    /// The count of numbers in the part.
    pub numbers: u64,
    /// The size of the numbers in bytes.
    pub bytes: u64,
}

/// The checkpoints from which a run can be followed.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct InfoCheckpoints {
    /// The number of intervals.
    pub intervals: u64,
    /// The last block of the last interval.
    pub last: u64,
    /// The size of the checkpoints in the file in bytes.
    pub stored_bytes: u64,
    /// The size in bytes per statement with a stored value; `null` if there is no such statement.
    pub bytes_per_statement: Option<f64>,
}

/// A simulation whose result is stored.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct InfoSimulation {
    /// The options that request it.
    pub simulation: String,
    /// The number of executions for which a bit is stored.
    pub executions: u64,
    /// The number of these executions that missed.
    pub missed: u64,
    /// Its size in the file in bytes.
    pub stored_bytes: u64,
    /// The size in bits per execution; `null` if there were no executions.
    pub bits_per_execution: Option<f64>,
}

/// A slice that is stored.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct InfoSlice {
    /// Its name.
    pub slice: String,
    /// The question, in words.
    pub about: String,
    /// The number of statements in it.
    pub statements: u64,
    /// The number of executions of statements in the slice.
    pub executions: u64,
}

fn simulation_text(out: &mut dyn Write, row: &InfoSimulation) -> Result<(), PresentError> {
    let each = row.bits_per_execution;
    let each = each.map_or(String::new(), |each| {
        format!(", {} bits each", significant(each))
    });
    writeln!(
        out,
        "simulated {}: {}, {} missed: {}{each}",
        row.simulation,
        counted(row.executions, "execution"),
        grouped(row.missed),
        size(row.stored_bytes),
    )?;
    Ok(())
}

fn values_text(out: &mut dyn Write, values: &InfoValues) -> Result<(), PresentError> {
    let each = values.bytes_per_statement;
    let each = each.map_or(String::new(), |each| {
        format!(", {} bytes each", significant(each))
    });
    writeln!(
        out,
        "values    {} from t={} to t={} in {}: {}{each}",
        counted(values.statements, "executed statement"),
        grouped(values.first),
        grouped(values.last),
        counted(values.epochs, "epoch"),
        size(values.stored_bytes),
    )?;
    if !values.left_out.is_empty() {
        writeln!(out, "          without {}", plain(&values.left_out))?;
    }
    Ok(())
}

fn path_text(out: &mut dyn Write, path: &InfoPath) -> Result<(), PresentError> {
    let each = |bits: Option<f64>| {
        bits.map_or(String::new(), |bits| {
            format!(", {} bits each", significant(bits))
        })
    };
    writeln!(
        out,
        "path      {} in {}: {}{}",
        counted(path.blocks, "executed block"),
        counted(path.segments, "segment"),
        size(path.stored_bytes),
        each(path.bits_per_block),
    )?;
    if !path.left_out.is_empty() {
        writeln!(out, "          without {}", plain(&path.left_out))?;
    }
    Ok(())
}

fn text(out: &mut dyn Write, d: &InfoReport, style: Style) -> Result<(), PresentError> {
    let words = |first: &String| {
        std::iter::once(first)
            .chain(&d.args)
            .map(|word| shell_word(word))
            .collect::<Vec<_>>()
            .join(" ")
    };
    match &d.invoke {
        None => writeln!(out, "program   {}", words(&d.program))?,
        Some(export) => writeln!(
            out,
            "program   {}\ninvoked   {}",
            shell_word(&d.program),
            words(export)
        )?,
    }
    writeln!(out, "recorded  {}", date(d.recorded_unix))?;
    match &d.ending {
        Some(ending) => {
            writeln!(out, "ending    {}", plain(ending))?;
            for result in d.results.iter().flatten() {
                writeln!(out, "result    {}", result.text)?;
            }
        }
        None if d.running => writeln!(
            out,
            "ending    none yet: the program is still being recorded; {}",
            if d.path_words {
                "its path can be followed up to now: afterimage trace"
            } else {
                "ask again when it has ended"
            }
        )?,
        None => writeln!(
            out,
            "ending    unknown: the recording was cut off; {}",
            if d.path_words {
                "its path can be followed up to there: afterimage trace"
            } else {
                "record the program again to profile it"
            }
        )?,
    }
    for frame in d.frames.iter().filter(|frame| !frame.library) {
        let place = frame.around.as_ref().or(frame.source.as_ref());
        let place = place.map(|at| format!("{}:{}", at.file, at.line));
        let place = place.unwrap_or_else(|| format!("@0x{:x}", frame.offset));
        let (name, place) = (plain(&frame.function.name), plain(&place));
        write!(out, "          in {name} at {place}")?;
        if frame.times > 1 {
            write!(out, " ({} calls deep)", frame.times)?;
        }
        writeln!(out)?;
    }
    let library = d.frames.iter().filter(|frame| frame.library);
    let library: usize = library.map(|frame| frame.times).sum();
    if library > 0 {
        let frames = counted(library as u64, "frame");
        let code = d.hidden_code;
        writeln!(out, "          {code}: {frames}; --code all shows them")?;
    }
    let shown: usize = d.frames.iter().map(|frame| frame.times).sum();
    if d.frames_total > shown {
        let more = counted((d.frames_total - shown) as u64, "more frame");
        writeln!(out, "          and {more}")?;
    }
    if let (Some(events), Some(calls)) = (d.events, d.host_calls) {
        writeln!(
            out,
            "boundary  {} in {}",
            counted(calls, "host call"),
            counted(events, "event")
        )?;
    }
    for dir in &d.dirs {
        writeln!(out, "folder    {}", shell_word(dir))?;
    }
    if !d.env.is_empty() {
        writeln!(
            out,
            "env       {}",
            d.env
                .iter()
                .map(|name| shell_word(name))
                .collect::<Vec<_>>()
                .join(" ")
        )?;
    }
    writeln!(out, "sha256    {}", d.module_sha256)?;
    writeln!(out, "engine    {}", plain(&d.engine))?;
    let lenses = if d.lenses.is_empty() {
        "none yet".to_owned()
    } else {
        d.lenses.join(", ")
    };
    writeln!(out, "lenses    {lenses}")?;
    if let Some(path) = &d.path {
        path_text(out, path)?;
    }
    for values in &d.values {
        values_text(out, values)?;
    }
    if let Some(checkpoints) = d.checkpoints.as_ref().filter(|_| d.sized) {
        let each = checkpoints.bytes_per_statement;
        let each = each.map_or(String::new(), |each| {
            format!(", {} bytes for each statement", significant(each))
        });
        writeln!(
            out,
            "          checkpoints, up to t={}, in {}: {}{each}",
            grouped(checkpoints.last),
            counted(checkpoints.intervals, "interval"),
            size(checkpoints.stored_bytes),
        )?;
    }
    for simulation in &d.simulations {
        simulation_text(out, simulation)?;
    }
    for row in &d.slices {
        writeln!(
            out,
            "slice {:?}: {}: {}, {}",
            row.slice,
            row.about,
            counted(row.statements, "statement"),
            counted(row.executions, "execution")
        )?;
    }
    writeln!(out, "size      {}", size(d.length))?;
    if d.ignored_bytes > 0 {
        let (name, what) = if d.interrupted {
            ("leftover", LEFT_OVER)
        } else {
            ("damage", "after the last complete state are ignored")
        };
        writeln!(out, "{name:<8}  {} {what}", size(d.ignored_bytes))?;
    }
    if d.sized {
        if let Some(streams) = &d.streams {
            streams.text(out)?;
        }
        let ignored = if d.interrupted {
            "left by an interrupted addition"
        } else {
            "damaged"
        };
        sections(out, &d.sections, d.length, (ignored, d.ignored_bytes))?;
    }
    disclosed::text(out, d, style)
}

/// Formats a number with three decimals, or with more if two significant digits require them.
pub(super) fn significant(number: f64) -> String {
    let decimals = (3..20).find(|&decimals| number * 10f64.powi(decimals) >= 10.0);
    let decimals = decimals.filter(|_| number > 0.0).unwrap_or(3);
    format!("{number:.0$}", decimals as usize)
}

/// Converts seconds since 1970 to a date of the Gregorian calendar, which repeats every 400 years.
fn date(unix: u64) -> String {
    let (mut days, second) = (unix / 86400, unix % 86400);
    let leap = |year: u64| {
        year.is_multiple_of(4) && (!year.is_multiple_of(100) || year.is_multiple_of(400))
    };
    const DAYS_OF_400_YEARS: u64 = 146_097;
    let mut year = 1970 + 400 * (days / DAYS_OF_400_YEARS);
    days %= DAYS_OF_400_YEARS;
    while days >= 365 + u64::from(leap(year)) {
        days -= 365 + u64::from(leap(year));
        year += 1;
    }
    let lengths = [
        31,
        28 + u64::from(leap(year)),
        31,
        30,
        31,
        30,
        31,
        31,
        30,
        31,
        30,
        31,
    ];
    let mut month = 0;
    while days >= lengths[month] {
        days -= lengths[month];
        month += 1;
    }
    let (hour, minute, second) = (second / 3600, second / 60 % 60, second % 60);
    format!(
        "{year}-{:02}-{:02} {hour:02}:{minute:02}:{second:02} UTC",
        month + 1,
        days + 1
    )
}

#[cfg(test)]
mod tests {
    use super::{date, significant};

    #[test]
    fn small_numbers_keep_two_digits() {
        let all = [0.0, 1.0, 0.161_4, 0.000_199_7, 2e-9].map(significant);
        assert_eq!(all, ["0.000", "1.000", "0.161", "0.00020", "0.0000000020"]);
    }

    #[test]
    fn dates_are_those_of_the_calendar() {
        assert_eq!(date(0), "1970-01-01 00:00:00 UTC");
        assert_eq!(date(951_782_399), "2000-02-28 23:59:59 UTC");
        assert_eq!(date(951_782_400), "2000-02-29 00:00:00 UTC");
        assert_eq!(date(1_735_689_599), "2024-12-31 23:59:59 UTC");
        assert_eq!(date(4_107_542_400), "2100-03-01 00:00:00 UTC");
        assert!(date(u64::MAX).ends_with("UTC"));
    }
}
