//! Creates the text of `views.sql`, with which DuckDB finds the tables by name.

use std::fmt::Write;

use crate::schema::{Table, WHOLE};

/// The places of statements: function, file and line.
const PLACES: &str = "\
-- Where statements are.
CREATE OR REPLACE VIEW places AS
SELECT s.statement_id, s.name, s.executions, f.name AS function, l.file, l.line
FROM statements s
JOIN functions f USING (function_id)
LEFT JOIN lines l ON l.line_id = s.line_id;
";

/// Returns the text of `views.sql` for a data set with these tables in its windows.
pub(crate) fn text(tables: &[&'static Table]) -> String {
    let mut text = "\
-- The tables of this data set as views. Start DuckDB in this folder: duckdb -init views.sql
-- The names of tables and columns are explained in afterimage's docs/PARQUET.md.
"
    .to_owned();
    for table in WHOLE {
        let name = table.name;
        let _ = writeln!(
            text,
            "CREATE OR REPLACE VIEW {name} AS SELECT * FROM '{name}.parquet';"
        );
    }
    for table in tables {
        let name = table.name;
        // `values` is a reserved word in SQL.
        let _ = writeln!(
            text,
            "CREATE OR REPLACE VIEW \"{name}\" AS SELECT * FROM read_parquet('window=*/{name}.parquet', hive_partitioning = true);"
        );
    }
    text + PLACES
}
