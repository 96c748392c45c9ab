//! Compares the results with the project's targets.

use super::Row;
use super::columns::Column;
use crate::table::Table;

/// A target, with its required and its ideal value as text, and the number to compare.
type Target<'a> = (&'static str, &'static str, Column<'a, Row>);

fn targets<'a>() -> Vec<Target<'a>> {
    vec![
        (
            "1.30, worst 1.6",
            "1.12, worst 1.2",
            Column::cost(
                "recording, processor time of the guest, ratio",
                3,
                |row: &Row| row.recording.schemes[0].cpu,
            ),
        ),
        (
            "",
            "",
            Column::cost(
                "record --lens paths, processor time of the guest, ratio",
                3,
                |row: &Row| row.recording.recorded_cpu,
            ),
        ),
        (
            "1.6",
            "1.2",
            Column::cost(
                "with a complete file that can be searched, elapsed time, ratio",
                3,
                |row: &Row| row.recording.sought_wall,
            ),
        ),
        (
            "",
            "",
            Column::cost(
                "with only the words in a file, elapsed time, ratio",
                3,
                |row: &Row| row.recording.kept_wall,
            ),
        ),
        (
            "",
            "",
            Column::cost(
                "with compaction at the same time, elapsed time, ratio",
                3,
                |row: &Row| row.recording.live_wall,
            ),
        ),
        (
            "0.9",
            "0.5",
            Column::cost("bits recorded per executed block", 3, |row: &Row| {
                row.sizes.recorded as f64 / row.blocks as f64
            }),
        ),
        (
            "0.20",
            "0.10",
            Column::cost("bits stored per executed block", 4, |row: &Row| {
                row.sizes.file as f64 / row.blocks as f64
            }),
        ),
        (
            "1",
            "0.5",
            Column::cost(
                "stored size as a ratio to Sequitur's, packed",
                3,
                |row: &Row| row.prefix.ours.total() / row.prefix.sequitur_packed as f64,
            ),
        ),
        (
            "1000",
            "10000",
            Column::gain(
                "one function's path traces: times faster than a scan, means over functions",
                0,
                |row: &Row| row.extraction.scan.mean / row.extraction.file.mean,
            ),
        ),
        (
            "",
            "",
            Column::gain(
                "the same, every timestamp decoded and checked",
                0,
                |row: &Row| row.extraction.scan.mean / row.extraction.checked.mean,
            ),
        ),
        (
            "",
            "",
            Column::gain(
                "the same as the first, geometric mean over functions",
                0,
                |row: &Row| row.extraction.faster,
            ),
        ),
        (
            "",
            "",
            Column::gain("the same from the recording alone", 0, |row: &Row| {
                row.extraction.scan.mean / row.extraction.recording.mean
            }),
        ),
        (
            "500",
            "150",
            Column::cost("random access, ns", 0, |row: &Row| row.access.seek_ns),
        ),
        (
            "10",
            "3",
            Column::cost("step forward, ns", 1, |row: &Row| row.access.forward_ns),
        ),
        (
            "10",
            "3",
            Column::cost("step backward, ns", 1, |row: &Row| row.access.backward_ns),
        ),
        (
            "1024",
            "256",
            Column::cost(
                "memory while recording, including the guest's, MiB",
                0,
                |row: &Row| row.memory.recording,
            ),
        ),
        (
            "100",
            "400",
            Column::gain(
                "regeneration, millions of blocks a second",
                0,
                |row: &Row| row.speed.regenerate,
            ),
        ),
        (
            "25",
            "150",
            Column::gain(
                "compaction, millions of blocks a second and core",
                0,
                |row: &Row| row.speed.compact,
            ),
        ),
    ]
}

pub(crate) fn report(rows: &[Row]) -> String {
    let mut table = Table::new(&["", "must", "aim", "geometric mean", "worst"]);
    for (must, aim, column) in targets() {
        table.row(vec![
            column.title.clone(),
            must.to_owned(),
            aim.to_owned(),
            column.mean(rows),
            column.worst(rows),
        ]);
    }
    format!("\nTargets\n\n{}", table.markdown())
}
