//! Reads tables back.

use std::fs::File;
use std::path::Path;

use parquet::file::reader::{FileReader, SerializedFileReader};
use parquet::record::{Field, Row};

/// Reads the rows of a file.
pub fn rows(at: &Path) -> Vec<Row> {
    let file = File::open(at).unwrap_or_else(|error| panic!("{}: {error}", at.display()));
    let reader = SerializedFileReader::new(file).unwrap();
    reader
        .get_row_iter(None)
        .unwrap()
        .map(Result::unwrap)
        .collect()
}

/// Reads the rows of a table in all windows, in order.
pub fn all(folder: &Path, table: &str) -> Vec<Row> {
    let mut found = Vec::new();
    for window in 0.. {
        let at = folder.join(format!("window={window:06}"));
        if !at.exists() {
            break;
        }
        found.extend(rows(&at.join(format!("{table}.parquet"))));
    }
    found
}

/// Reads the rows of a table about the whole run.
pub fn whole(folder: &Path, table: &str) -> Vec<Row> {
    rows(&folder.join(format!("{table}.parquet")))
}

fn field<'r>(row: &'r Row, column: &str) -> &'r Field {
    let found = row.get_column_iter().find(|(name, _)| *name == column);
    found.unwrap_or_else(|| panic!("no column {column}")).1
}

/// Returns an integer, if there is one.
pub fn maybe(row: &Row, column: &str) -> Option<i64> {
    match field(row, column) {
        Field::Null => None,
        Field::Int(value) => Some(i64::from(*value)),
        Field::Long(value) => Some(*value),
        other => panic!("{column} is {other}"),
    }
}

/// Returns an integer.
pub fn int(row: &Row, column: &str) -> i64 {
    maybe(row, column).unwrap_or_else(|| panic!("no {column}"))
}

/// Returns the bits of a number, if there is one.
pub fn number(row: &Row, column: &str) -> Option<u64> {
    match field(row, column) {
        Field::Null => None,
        Field::Double(value) => Some(value.to_bits()),
        other => panic!("{column} is {other}"),
    }
}

/// Returns text.
pub fn text(row: &Row, column: &str) -> String {
    match field(row, column) {
        Field::Str(value) => value.clone(),
        other => panic!("{column} is {other}"),
    }
}

/// Returns a truth value.
pub fn truth(row: &Row, column: &str) -> bool {
    matches!(field(row, column), Field::Bool(true))
}

/// Returns a list of integers.
pub fn list(row: &Row, column: &str) -> Vec<i64> {
    match field(row, column) {
        Field::ListInternal(list) => list
            .elements()
            .iter()
            .map(|element| match element {
                Field::Long(value) => *value,
                other => panic!("{column} has {other}"),
            })
            .collect(),
        other => panic!("{column} is {other}"),
    }
}
