//! Makes tables with a line for each program, followed by the geometric mean and the worst value.

use crate::statistics::{Sample, geometric};
use crate::table::Table;

/// A number, with its range if it was measured several times.
pub(crate) struct Cell {
    value: f64,
    range: Option<(f64, f64)>,
}

impl From<f64> for Cell {
    fn from(value: f64) -> Self {
        Self { value, range: None }
    }
}

impl From<u64> for Cell {
    fn from(value: u64) -> Self {
        (value as f64).into()
    }
}

impl From<Sample> for Cell {
    fn from(sample: Sample) -> Self {
        Self {
            value: sample.median,
            range: (sample.runs > 1).then_some((sample.min, sample.max)),
        }
    }
}

/// The direction in which values become worse.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Worse {
    Larger,
    Smaller,
    /// Neither direction, because no value is better or worse than another.
    Neither,
}

/// A column with its title, its number in each row, and the number of digits after the point.
pub(crate) struct Column<'a, R> {
    pub title: String,
    digits: usize,
    worse: Worse,
    value: Box<dyn Fn(&R) -> Cell + 'a>,
}

impl<'a, R> Column<'a, R> {
    fn new<C: Into<Cell>>(
        title: impl Into<String>,
        digits: usize,
        worse: Worse,
        value: impl Fn(&R) -> C + 'a,
    ) -> Self {
        Self {
            title: title.into(),
            digits,
            worse,
            value: Box::new(move |row| value(row).into()),
        }
    }

    /// Returns a column for a cost. The worst value is the largest.
    pub(crate) fn cost<C: Into<Cell>>(
        title: impl Into<String>,
        digits: usize,
        value: impl Fn(&R) -> C + 'a,
    ) -> Self {
        Self::new(title, digits, Worse::Larger, value)
    }

    /// Returns a column for a gain. The worst value is the smallest.
    pub(crate) fn gain<C: Into<Cell>>(
        title: impl Into<String>,
        digits: usize,
        value: impl Fn(&R) -> C + 'a,
    ) -> Self {
        Self::new(title, digits, Worse::Smaller, value)
    }

    /// Returns a column for a fact, which is neither a cost nor a gain and has no meaningful mean.
    pub(crate) fn fact<C: Into<Cell>>(
        title: impl Into<String>,
        digits: usize,
        value: impl Fn(&R) -> C + 'a,
    ) -> Self {
        Self::new(title, digits, Worse::Neither, value)
    }

    fn shown(&self, value: f64) -> String {
        if value.is_finite() {
            format!("{value:.*}", self.digits)
        } else {
            "–".to_owned()
        }
    }

    fn cell(&self, row: &R) -> String {
        let cell = (self.value)(row);
        let value = self.shown(cell.value);
        match cell.range {
            Some((min, max)) => format!("{value} ({}–{})", self.shown(min), self.shown(max)),
            None => value,
        }
    }

    /// Returns the geometric mean over the rows, or an empty text for a fact.
    pub(crate) fn mean(&self, rows: &[R]) -> String {
        self.summary(rows, |values| geometric(values.iter().copied()))
    }

    /// Returns the worst value of the rows, or an empty text for a fact.
    pub(crate) fn worst(&self, rows: &[R]) -> String {
        let extreme = match self.worse {
            Worse::Smaller => f64::min,
            _ => f64::max,
        };
        self.summary(rows, |values| {
            values.iter().copied().fold(f64::NAN, extreme)
        })
    }

    fn summary(&self, rows: &[R], of: impl Fn(&[f64]) -> f64) -> String {
        if self.worse == Worse::Neither {
            return String::new();
        }
        let values = rows.iter().map(|row| (self.value)(row).value);
        let values: Vec<f64> = values.filter(|value| value.is_finite()).collect();
        self.shown(of(&values))
    }
}

/// Returns a table under a heading.
pub(crate) fn table<R>(
    heading: &str,
    rows: &[R],
    name: impl Fn(&R) -> &str,
    columns: &[Column<'_, R>],
) -> String {
    let mut header = vec!["program"];
    header.extend(columns.iter().map(|column| column.title.as_str()));
    let mut table = Table::new(&header);
    for row in rows {
        let mut cells = vec![name(row).to_owned()];
        cells.extend(columns.iter().map(|column| column.cell(row)));
        table.row(cells);
    }
    if columns.iter().any(|column| column.worse != Worse::Neither) {
        let mut mean = vec!["geometric mean".to_owned()];
        let mut worst = vec!["worst".to_owned()];
        for column in columns {
            mean.push(column.mean(rows));
            worst.push(column.worst(rows));
        }
        table.row(mean);
        table.row(worst);
    }
    format!("\n{heading}\n\n{}", table.markdown())
}

/// Returns a table with targets. Each line has the required value, the ideal value, and the mean
/// and the worst value of a column over the rows.
pub(crate) fn targets<R>(rows: &[R], all: &[(&str, &str, Column<'_, R>)]) -> String {
    let mut table = Table::new(&["", "must", "aim", "geometric mean", "worst"]);
    for (must, aim, column) in all {
        table.row(vec![
            column.title.clone(),
            (*must).to_owned(),
            (*aim).to_owned(),
            column.mean(rows),
            column.worst(rows),
        ]);
    }
    format!("\nTargets\n\n{}", table.markdown())
}

#[cfg(test)]
mod tests {
    use super::{Column, table};

    #[test]
    fn the_worst_is_the_largest_cost_and_the_smallest_gain() {
        let columns = [
            Column::cost("cost", 1, |row: &(&str, f64)| row.1),
            Column::gain("gain", 1, |row: &(&str, f64)| row.1),
            Column::fact("fact", 0, |row: &(&str, f64)| row.1),
        ];
        let text = table(
            "Title",
            &[("a", 2.0), ("b", 8.0), ("c", f64::NAN)],
            |r| r.0,
            &columns,
        );
        let line = |start: &str| {
            let line = text.lines().find(|line| line.starts_with(start));
            line.unwrap().split('|').map(str::trim).collect::<Vec<_>>()[2..5].join(" ")
        };
        assert_eq!(line("| geometric"), "4.0 4.0 ");
        assert_eq!(line("| worst"), "8.0 2.0 ");
        assert_eq!(line("| c"), "– – –");
    }
}
