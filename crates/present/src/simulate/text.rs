//! Writes simulations as text for people.

use std::io::Write;

use afterimage_analyses::simulate::{
    LevelSpec, MissesBy, MissesPlace, PredictorKind, SiteKind, Spec, Summary, Tally,
};

use super::SimulationView;
use crate::PresentError;
use crate::number::{grouped, percent};
use crate::steps::StepScene;
use crate::table::{Align::Left, Align::Right, Paint, Table, plain};

/// Writes a simulation: a summary in one sentence, sums by kind, and the places with the most
/// misses. Returns whether there are more rows.
///
/// # Errors
/// Returns an error if `out` fails.
pub fn misses_text(
    out: &mut dyn Write,
    scene: &StepScene<'_>,
    report: &SimulationView<'_>,
) -> Result<bool, PresentError> {
    let summary = report.summary;
    let head = sentence(summary);
    writeln!(out, "{}", scene.style.paint(Paint::Bold, &head))?;
    writeln!(out)?;
    sums(out, scene, summary)?;
    if let Spec::Caches(_) = summary.spec {
        traffic(out, summary)?;
    }
    // Leave out places without misses.
    let missed = report.rows.partition_point(|row| row.tally.missed > 0);
    let report = SimulationView {
        rows: &report.rows[..missed],
        ..*report
    };
    if missed == 0 {
        return Ok(false);
    }
    writeln!(out)?;
    rows(out, scene, &report)?;
    Ok(report.shown().len() < missed)
}

/// Writes the misses of the code that has no rows.
pub(super) fn left_out(
    out: &mut dyn Write,
    scene: &StepScene<'_>,
    report: &SimulationView<'_>,
) -> Result<(), PresentError> {
    let missed = report.left_out.missed;
    if let Some(own) = scene.own
        && missed > 0
    {
        let all = report.summary.sum(|_| true).missed;
        let (code, what) = (own.folded.left_out(), misses(report.summary));
        let (missed, share) = (grouped(missed), percent(missed, all));
        writeln!(
            out,
            "{code}: {missed} {what} ({share}); --code all shows them"
        )?;
    }
    Ok(())
}

/// Returns the word for the misses of a simulation.
fn misses(summary: &Summary) -> &'static str {
    match summary.spec {
        Spec::Branches(_) => "mispredicted",
        Spec::Caches(_) => "missed",
    }
}

/// Formats the summary as a sentence.
fn sentence(summary: &Summary) -> String {
    let all = summary.sum(|_| true);
    let missed = grouped(all.missed);
    let share = percent(all.missed, all.executions);
    match summary.spec {
        Spec::Branches(predictor) => {
            let model = match predictor.kind {
                PredictorKind::Bimodal { bits } => {
                    format!("a bimodal predictor of {} counters", grouped(1 << bits))
                }
                PredictorKind::Gshare { bits, history } => format!(
                    "a gshare predictor of {} counters and a history of {history}",
                    grouped(1 << bits)
                ),
                PredictorKind::Tage(tage) => format!(
                    "a TAGE predictor of {} tables of {} entries and histories of {} to {}",
                    tage.tables,
                    grouped(1 << tage.bits),
                    tage.min,
                    tage.max
                ),
            };
            format!(
                "{model} mispredicts {missed} of {} branches ({share}), {} per 1,000 instructions",
                grouped(all.executions),
                per_thousand(all.missed, summary.instructions)
            )
        }
        Spec::Caches(caches) => {
            let behind = caches.second.map_or(String::new(), |second| {
                format!(
                    ", and {} ({}) also miss a second level of {}",
                    grouped(all.last),
                    percent(all.last, all.executions),
                    level(&second)
                )
            });
            format!(
                "{missed} of {} accesses ({share}) miss a cache of {}{behind}",
                grouped(all.executions),
                level(&caches.first)
            )
        }
    }
}

/// Describes a level of cache in words.
fn level(level: &LevelSpec) -> String {
    let size = match level.size {
        size if size >= 1 << 20 && size % (1 << 20) == 0 => format!("{} MiB", size >> 20),
        size if size % (1 << 10) == 0 => format!("{} KiB", grouped(size >> 10)),
        size => format!("{} bytes", grouped(size)),
    };
    let ways = match (level.sets(), level.ways) {
        (1, _) => "fully associative".to_owned(),
        (_, 1) => "direct-mapped".to_owned(),
        (_, ways) => format!("{ways} ways"),
    };
    format!("{size} ({ways}, lines of {} bytes)", level.line)
}

/// Formats a part per thousand of a whole, to two decimals.
fn per_thousand(part: u64, whole: u64) -> String {
    let hundredths = match whole {
        0 => 0,
        whole => (u128::from(part) * 200_000 + u128::from(whole)) / (2 * u128::from(whole)),
    };
    format!(
        "{}.{:02}",
        grouped((hundredths / 100) as u64),
        hundredths % 100
    )
}

/// Writes the executions and misses by kind.
fn sums(out: &mut dyn Write, scene: &StepScene<'_>, summary: &Summary) -> Result<(), PresentError> {
    let kinds: &[(&str, SiteKind)] = match summary.spec {
        Spec::Branches(_) => &[
            ("conditional branches", SiteKind::Conditional),
            ("branches by table", SiteKind::Table),
            ("indirect calls", SiteKind::Call),
        ],
        Spec::Caches(_) => &[
            ("loads", SiteKind::Load),
            ("stores", SiteKind::Store),
            ("bulk operators", SiteKind::Bulk),
        ],
    };
    let what = misses(summary);
    let mut columns = vec![
        ("", Left),
        ("executed", Right),
        (what, Right),
        ("rate", Right),
    ];
    if summary.spec.is_two() {
        columns.extend([("both levels", Right), ("rate", Right)]);
    }
    let mut table = Table::new(&columns);
    for (name, kind) in kinds {
        let sum = summary.sum(|other| other == *kind);
        if sum.executions > 0 {
            table.row(std::iter::once((*name).to_owned()).chain(cells(summary, sum)));
        }
    }
    table.write(out, scene.style, |_| Paint::Plain)?;
    Ok(())
}

fn cells(summary: &Summary, tally: Tally) -> Vec<String> {
    let mut cells = vec![
        grouped(tally.executions),
        grouped(tally.missed),
        percent(tally.missed, tally.executions),
    ];
    if summary.spec.is_two() {
        cells.extend([grouped(tally.last), percent(tally.last, tally.executions)]);
    }
    cells
}

fn traffic(out: &mut dyn Write, summary: &Summary) -> Result<(), PresentError> {
    let traffic = summary.traffic;
    let lines = |count: u64| match count {
        1 => "1 line".to_owned(),
        count => format!("{} lines", grouped(count)),
    };
    let second = if summary.spec.is_two() {
        format!(
            "; second level: {} read, {} written back",
            grouped(traffic.second),
            grouped(traffic.second_back)
        )
    } else {
        String::new()
    };
    writeln!(
        out,
        "{} touched; first level: {} read, {} written back{second}",
        lines(traffic.touched),
        grouped(traffic.first),
        grouped(traffic.first_back)
    )?;
    writeln!(
        out,
        "for linear memory only: locals, globals and the operand stack count as registers, and \
         accesses by the host are left out"
    )?;
    Ok(())
}

fn rows(
    out: &mut dyn Write,
    scene: &StepScene<'_>,
    report: &SimulationView<'_>,
) -> Result<(), PresentError> {
    let summary = report.summary;
    let all = summary.sum(|_| true);
    let what = misses(summary);
    let mut columns = vec![
        ("of all", Right),
        ("executed", Right),
        (what, Right),
        ("rate", Right),
    ];
    if summary.spec.is_two() {
        columns.extend([("both levels", Right), ("rate", Right)]);
    }
    match report.by {
        MissesBy::Line => columns.push(("source", Left)),
        MissesBy::Function => columns.push(("function", Left)),
        MissesBy::Instruction => {
            columns.extend([
                ("offset", Left),
                ("operator", Left),
                ("source", Left),
                ("function", Left),
            ]);
        }
    }
    let mut table = Table::new(&columns);
    let shown = report.shown();
    for row in shown {
        let mut line = vec![percent(row.tally.missed, all.missed)];
        line.extend(cells(summary, row.tally));
        match &row.place {
            MissesPlace::Line(None) => line.push("(no line known)".to_owned()),
            MissesPlace::Line(Some(at)) => {
                let file = scene.source.short_path(at.file);
                line.push(plain(&format!("{file}:{}", at.number)));
            }
            MissesPlace::Function(function) => line.push(plain(scene.names.function(*function))),
            MissesPlace::Instruction {
                function, place, ..
            } => {
                let position = place.position.map(|position| {
                    plain(&format!(
                        "{}:{}",
                        scene.source.short_path(position.file),
                        position.line
                    ))
                });
                line.extend([
                    format!("@{}", place.offset),
                    place.name.to_string(),
                    position.unwrap_or_default(),
                    plain(scene.names.function(*function)),
                ]);
            }
        }
        table.row(line);
    }
    table.write(out, scene.style, |i| {
        Paint::of_share(shown[i].tally.missed, all.missed)
    })?;
    Ok(())
}
