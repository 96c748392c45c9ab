//! Compares the papers' figures with ours.

use super::Row;
use super::columns::Column;
use crate::table::Table;

/// A figure from a paper, with its table, the values of the paper's programs in the table's order,
/// and our column.
type Figure<'a> = (&'static str, &'static [f64], Column<'a, Row>);

fn figures<'a>() -> Vec<Figure<'a>> {
    let traces = |title: &str, before: fn(&Row) -> u64, after: fn(&Row) -> u64| {
        Column::gain(title, 2, move |row: &Row| {
            before(row) as f64 / after(row) as f64
        })
    };
    vec![
        (
            "1992, Table 3",
            &[3.0, 1.2, 2.7, 1.4],
            Column::gain(
                "trace of every branch / of what is recorded",
                2,
                |row: &Row| row.recording.branches_to_ours().0,
            ),
        ),
        (
            "1992, Table 3",
            &[1.2, 0.9, 1.2, 1.1],
            Column::gain("time of the same", 2, |row: &Row| {
                row.recording.branches_to_ours().1
            }),
        ),
        (
            "2001, Table 2",
            &[6.30, 5.66, 9.21, 9.50, 5.76],
            traces(
                "redundant path trace elimination",
                |row| row.traces.original,
                |row| row.traces.unique,
            ),
        ),
        (
            "2001, Table 2",
            &[1.58, 1.70, 1.60, 1.35, 4.24],
            traces(
                "dictionaries",
                |row| row.traces.unique,
                |row| row.traces.compacted,
            ),
        ),
        (
            "2001, Table 2",
            &[0.97, 1.54, 4.81, 3.65, 85.0],
            traces(
                "timestamped form",
                |row| row.traces.compacted,
                |row| row.traces.timestamped,
            ),
        ),
        (
            "2001, Table 3",
            &[7.0, 10.0, 13.0, 37.0, 64.0],
            Column::gain("original / TWPP", 2, |row: &Row| row.traces.factor()),
        ),
        (
            "2001, Table 3",
            &[7.0, 10.0, 13.0, 37.0, 64.0],
            Column::gain("original / our file", 0, |row: &Row| {
                row.traces.original_total() as f64 * 8.0 / row.sizes.file as f64
            }),
        ),
        (
            "2001, Table 4",
            &[629.0, 3813.0, 1269.0, 1195.0, 434.0],
            Column::gain(
                "a function's traces, raw / compacted file",
                0,
                |row: &Row| row.extraction.scan.mean / row.extraction.file.mean,
            ),
        ),
        (
            // Table 5 swaps the rows of two programs. Table 3 shows the right order.
            "2001, Table 5",
            &[26.5 / 8.4, 51.6 / 11.2, 7.3 / 0.7, 6.4 / 7.8, 0.7 / 0.4],
            Column::cost("TWPP / Sequitur, size", 2, |row: &Row| {
                row.prefix.twpp_file as f64 / row.prefix.sequitur_packed as f64
            }),
        ),
        (
            "2001, Table 5",
            &[26.5 / 8.4, 51.6 / 11.2, 7.3 / 0.7, 6.4 / 7.8, 0.7 / 0.4],
            Column::cost("our form / Sequitur, size", 3, |row: &Row| {
                row.prefix.ours.total() / row.prefix.sequitur_packed as f64
            }),
        ),
        (
            "2001, Table 5",
            &[
                1937.0 / 8.0,
                3321.0 / 6.0,
                2194.0 / 6.0,
                179.0 / 2.0,
                59.0 / 0.2,
            ],
            Column::gain(
                "a function's traces, Sequitur / TWPP, time",
                0,
                |row: &Row| row.prefix.sequitur_to_twpp(),
            ),
        ),
        (
            "2001, Table 6",
            &[11.9, 14.0, 51.2, 18.1, 3.9],
            Column::cost("integers of a node's timestamps", 1, |row: &Row| {
                row.traces.integers
            }),
        ),
    ]
}

pub(crate) fn report(rows: &[Row]) -> String {
    let mut table = Table::new(&[
        "",
        "table",
        "paper: from",
        "to",
        "geometric mean",
        "ours: geometric mean",
        "worst",
    ]);
    for (place, values, ours) in figures() {
        let paper = Column::cost("", 2, |value: &f64| *value);
        let least = values.iter().copied().fold(f64::NAN, f64::min);
        table.row(vec![
            ours.title.clone(),
            place.to_owned(),
            format!("{least:.2}"),
            paper.worst(values),
            paper.mean(values),
            ours.mean(rows),
            ours.worst(rows),
        ]);
    }
    format!(
        "\nThe papers' figures beside ours: other programs, on other machines. Table 5 of 2001 swaps two programs' sizes of TWPP; here they are as in its Table 3\n\n{}",
        table.markdown()
    )
}
