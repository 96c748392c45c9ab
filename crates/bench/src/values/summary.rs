//! Compares the results with the project's targets.

use super::Row;
use crate::paths::columns::{self, Column};

/// A target, with its required and its ideal value as text, and the number to compare.
type Target<'a> = (&'static str, &'static str, Column<'a, Row>);

fn targets<'a>() -> Vec<Target<'a>> {
    vec![
        (
            "0.20",
            "0.10",
            Column::cost("bytes per executed statement", 4, Row::bytes_per_statement),
        ),
        (
            "80",
            "150",
            Column::gain(
                "factor against the original size, 4 bytes a value",
                1,
                |row: &Row| row.factor(false),
            ),
        ),
        (
            "",
            "",
            Column::gain(
                "the same, control dependences one per block",
                1,
                |row: &Row| row.factor(true),
            ),
        ),
        (
            "",
            "",
            Column::gain(
                "the same, 15.5 bytes a statement as in the paper's Table I",
                1,
                Row::factor_by_table,
            ),
        ),
        (
            "",
            "",
            Column::gain(
                "the same as the first, values as wide as they are",
                1,
                Row::factor_true_width,
            ),
        ),
        (
            "20",
            "40",
            Column::gain("factor of values alone", 1, Row::factor_values),
        ),
        (
            "130",
            "300",
            Column::gain("factor of dependence labels alone", 1, |row: &Row| {
                row.factor_labels(false)
            }),
        ),
        (
            "",
            "",
            Column::gain(
                "the same, control dependences one per block",
                1,
                |row: &Row| row.factor_labels(true),
            ),
        ),
        (
            "",
            "",
            Column::gain(
                "the same, with 1.09 dependences per statement as in the paper's Table III",
                1,
                Row::factor_labels_by_table,
            ),
        ),
        (
            "500",
            "1000",
            Column::gain("factor of timestamps alone", 0, Row::factor_times),
        ),
        (
            "25",
            "100",
            Column::gain(
                "building, millions of statements a second and core",
                1,
                |row: &Row| row.statements() / 1e6 / row.built.processor_seconds,
            ),
        ),
        (
            "60",
            "30",
            Column::cost(
                "building, elapsed time as a ratio to the plain program",
                1,
                Row::building_to_plain,
            ),
        ),
        (
            "1000",
            "4000",
            Column::gain("control flow forward, MB/s", 0, |row: &Row| {
                row.follow.forward
            }),
        ),
        (
            "1000",
            "4000",
            Column::gain("control flow backward, MB/s", 0, |row: &Row| {
                row.follow.backward
            }),
        ),
        (
            "200",
            "1000",
            Column::gain("values of all loads, MB/s", 0, |row: &Row| row.follow.loads),
        ),
        (
            "200",
            "1000",
            Column::gain("addresses of all loads and stores, MB/s", 0, |row: &Row| {
                row.follow.addresses
            }),
        ),
        (
            "1000",
            "50",
            Column::cost("k-th value of a statement, µs, median", 1, |row: &Row| {
                row.questions.warm.median
            }),
        ),
        (
            "1000",
            "50",
            Column::cost("the same, 99th percentile", 0, |row: &Row| {
                row.questions.warm.most
            }),
        ),
        (
            "1000",
            "50",
            Column::cost(
                "last writer of an address at a time, µs, median",
                1,
                |row: &Row| row.last_writes.without.median,
            ),
        ),
        (
            "1000",
            "50",
            Column::cost("the same, 99th percentile", 0, |row: &Row| {
                row.last_writes.without.most
            }),
        ),
        (
            "1000",
            "20",
            Column::cost(
                "direct data dependences of an instance, µs, median",
                1,
                |row: &Row| row.questions.data.median,
            ),
        ),
        (
            "1000",
            "20",
            Column::cost("the same, 99th percentile", 0, |row: &Row| {
                row.questions.data.most
            }),
        ),
        (
            "2048",
            "1024",
            Column::cost(
                "peak memory of building, without the guest's and its shadow, MiB",
                0,
                |row: &Row| row.memory.beyond(),
            ),
        ),
        (
            "",
            "",
            Column::gain(
                "a sample of streams, by the paper's predictors / by ours, size",
                2,
                Row::predictors_to_ours,
            ),
        ),
        (
            "",
            "",
            Column::cost("opening the file, ms", 1, |row: &Row| {
                row.questions.open.median / 1e3
            }),
        ),
    ]
}

pub(crate) fn report(rows: &[Row]) -> String {
    columns::targets(rows, &targets())
}
