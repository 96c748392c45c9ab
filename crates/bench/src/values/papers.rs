//! Compares the paper's figures with ours.

use super::{Row, name};
use crate::paths::columns::{Column, table};
use crate::statistics::geometric;
use crate::table::Table;

/// From Table I: the ratio of the original to the compressed size.
const TOTAL: &[f64] = &[
    18.04, 58.84, 51.22, 18.02, 25.33, 46.34, 83.63, 54.02, 16.49,
];
/// From Table II: the factors for timestamps, after both tiers.
const TIMES: &[f64] = &[
    47.13, 126.63, 105.88, 152.76, 127.09, 101.82, 176.55, 1171.6, 69.49,
];
/// From Table II: the factors for values, after both tiers.
const VALUES: &[f64] = &[6.33, 17.62, 17.33, 4.02, 7.02, 12.45, 23.82, 10.61, 4.36];
/// From Table III: the factors for dependences, after both tiers.
const LABELS: &[f64] = &[
    26.00, 118.94, 84.74, 60.37, 46.56, 133.92, 212.35, 455.44, 34.43,
];
/// From Table V, after both tiers, in MB/s.
const FORWARD: &[f64] = &[
    4.87, 106.15, 165.43, 130.18, 128.99, 149.93, 92.59, 304.55, 55.41,
];
/// From Table V, backward, after both tiers, in MB/s.
const BACKWARD: &[f64] = &[
    5.32, 108.97, 176.17, 137.70, 122.50, 144.67, 94.55, 314.58, 63.83,
];
/// From Table VI, after both tiers, in MB/s.
const LOADS: &[f64] = &[0.32, 2.28, 1.77, 0.08, 0.05, 1.86, 2.52, 5.55, 0.26];
/// From Table VII, after both tiers, in MB/s.
const ADDRESSES: &[f64] = &[0.27, 2.24, 0.97, 0.20, 0.07, 1.57, 2.23, 3.93, 0.35];

/// A figure from the paper, with the values of its nine programs in the paper's order, and our
/// column.
type Figure<'a> = (&'static str, &'static [f64], Column<'a, Row>);

fn figures<'a>() -> Vec<Figure<'a>> {
    vec![
        (
            "Table I",
            TOTAL,
            Column::gain("original / stored", 1, |row: &Row| row.factor(false)),
        ),
        (
            "Table I",
            TOTAL,
            Column::gain(
                "the same, control dependences one per block",
                1,
                |row: &Row| row.factor(true),
            ),
        ),
        (
            "Table I",
            TOTAL,
            Column::gain(
                "the same, 15.5 bytes a statement as there",
                1,
                Row::factor_by_table,
            ),
        ),
        (
            "Table II",
            TIMES,
            Column::gain("timestamps", 1, Row::factor_times),
        ),
        (
            "Table II",
            VALUES,
            Column::gain("values", 1, Row::factor_values),
        ),
        (
            "Table III",
            LABELS,
            Column::gain("dependence labels", 1, |row: &Row| row.factor_labels(false)),
        ),
        (
            "Table III",
            LABELS,
            Column::gain(
                "the same, control dependences one per block",
                1,
                |row: &Row| row.factor_labels(true),
            ),
        ),
        (
            "Table III",
            LABELS,
            Column::gain(
                "the same, 1.09 dependences a statement as there",
                1,
                Row::factor_labels_by_table,
            ),
        ),
        (
            "Table V",
            FORWARD,
            Column::gain("control flow forward, MB/s", 0, |row: &Row| {
                row.follow.forward
            }),
        ),
        (
            "Table V",
            BACKWARD,
            Column::gain("control flow backward, MB/s", 0, |row: &Row| {
                row.follow.backward
            }),
        ),
        (
            "Table VI",
            LOADS,
            Column::gain("load values, MB/s", 0, |row: &Row| row.follow.loads),
        ),
        (
            "Table VII",
            ADDRESSES,
            Column::gain("load and store addresses, MB/s", 0, |row: &Row| {
                row.follow.addresses
            }),
        ),
        (
            "section 5.1",
            &[6.0],
            Column::cost("explicit dependences, percent of all", 2, |row: &Row| {
                100.0 * row.explicit_share(true)
            }),
        ),
    ]
}

pub(crate) fn report(rows: &[Row]) -> String {
    let header = [
        "",
        "2005",
        "paper: from",
        "to",
        "geometric mean",
        "ours: geometric mean",
        "worst",
    ];
    let mut beside = Table::new(&header);
    for (place, paper, column) in figures() {
        let least = paper.iter().copied().fold(f64::INFINITY, f64::min);
        let most = paper.iter().copied().fold(0.0, f64::max);
        beside.row(vec![
            column.title.clone(),
            place.to_owned(),
            format!("{least:.2}"),
            format!("{most:.2}"),
            format!("{:.2}", geometric(paper.iter().copied())),
            column.mean(rows),
            column.worst(rows),
        ]);
    }
    format!(
        "\nThe paper's figures beside ours: other programs, on another machine\n\n{}{}",
        beside.markdown(),
        intervals(rows)
    )
}

/// Makes the analogues of Figures 15 and 16, at five points with about the same number of epochs
/// between them.
fn intervals(rows: &[Row]) -> String {
    const PARTS: usize = 5;
    let part = |title: &str, value: fn(&Row, usize) -> f64, digits| {
        let columns = (1..=PARTS).map(|part| {
            Column::fact(
                format!("{title} {} %", 100 * part / PARTS),
                digits,
                move |row: &Row| value(row, part),
            )
        });
        columns.collect::<Vec<_>>()
    };
    let mut columns = part("B", |row, part| row.grown(part, PARTS).0, 4);
    columns.extend(part("s", |row, part| row.grown(part, PARTS).1, 1));
    table(
        "Bytes of labels, values and copies per statement, and seconds of building, until a given percentage of the epochs (Figures 15 and 16)",
        rows,
        name,
        &columns,
    )
}

impl Row {
    /// Returns the bytes per statement, and the seconds, up to a part of the epochs.
    fn grown(&self, part: usize, parts: usize) -> (f64, f64) {
        let epochs = &self.built.epochs;
        let last = (epochs.len() * part).div_ceil(parts);
        match last.checked_sub(1).and_then(|last| epochs.get(last)) {
            Some(epoch) => {
                let statements = self.epoch_ends.get(last - 1).copied().unwrap_or(0);
                (epoch.bytes as f64 / statements as f64, epoch.seconds)
            }
            None => (f64::NAN, f64::NAN),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_tables_have_the_means_that_the_paper_gives_and_the_known_geometric_ones() {
        let tables = [
            (TOTAL, 41.33, 35.3),
            (TIMES, 230.99, 138.0),
            (VALUES, 11.51, 9.7),
            (LABELS, 130.31, 88.0),
            (FORWARD, 126.46, 88.6),
            (BACKWARD, 129.81, 92.0),
            (LOADS, 1.63, 0.69),
            (ADDRESSES, 1.32, 0.70),
        ];
        for (table, arithmetic, known) in tables {
            assert_eq!(table.len(), 9);
            let mean = table.iter().sum::<f64>() / 9.0;
            assert!(
                (mean / arithmetic - 1.0).abs() < 0.01,
                "{mean} {arithmetic}"
            );
            let mean = geometric(table.iter().copied());
            assert!((mean / known - 1.0).abs() < 0.01, "{mean} {known}");
        }
    }
}
