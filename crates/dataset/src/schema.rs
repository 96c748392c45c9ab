//! Defines the tables, their columns, and the columns' encodings. `docs/PARQUET.md` describes them
//! for users, and a test compares it with this module.

/// The version of the tables. It is increased when a column is removed, or changes its meaning,
/// type or name.
pub const VERSION: u32 = 1;

/// A table: one Parquet file in the data set's folder, or one in the folder of each window.
#[derive(Debug)]
pub struct Table {
    /// The table's name, which is also the name of its file without the extension.
    pub name: &'static str,
    /// The table's columns.
    pub columns: &'static [Column],
}

/// A column of a table.
#[derive(Debug)]
pub struct Column {
    /// The column's name.
    pub name: &'static str,
    /// The type of the column's values.
    pub ty: Type,
    /// Whether values may be missing.
    pub optional: bool,
    /// The column's encoding.
    pub coding: Coding,
}

/// The type of a column.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Type {
    /// 32-bit integers.
    Int,
    /// 64-bit integers.
    Long,
    /// 64-bit floating-point numbers.
    Double,
    /// Truth values.
    Bool,
    /// Text.
    Text,
    /// Lists of 64-bit integers.
    Longs,
}

/// The encoding of a column before compression.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Coding {
    /// Each value unchanged.
    Plain,
    /// Indices into a dictionary of the values, for few distinct values.
    Dictionary,
    /// Differences between neighbours, for ascending values.
    Delta,
}

const fn column(name: &'static str, ty: Type, coding: Coding) -> Column {
    Column {
        name,
        ty,
        optional: false,
        coding,
    }
}

const fn optional(name: &'static str, ty: Type, coding: Coding) -> Column {
    Column {
        name,
        ty,
        optional: true,
        coding,
    }
}

use Coding::{Delta, Dictionary, Plain};
use Type::{Bool, Double, Int, Long, Longs, Text};

/// The run, in one row.
pub static RUN: Table = Table {
    name: "run",
    columns: &[
        column("version", Int, Plain),
        column("program", Text, Plain),
        column("module_sha256", Text, Plain),
        column("ended", Text, Plain),
        column("blocks", Long, Plain),
        column("instructions", Long, Plain),
        column("host_calls", Long, Plain),
        column("windows", Int, Plain),
        column("window_blocks", Long, Plain),
    ],
};

/// The functions, imports included.
pub static FUNCTIONS: Table = Table {
    name: "functions",
    columns: &[
        column("function_id", Int, Delta),
        column("name", Text, Plain),
        column("is_import", Bool, Plain),
        optional("line_id", Int, Plain),
        column("calls", Long, Plain),
        column("blocks", Long, Plain),
        column("instructions", Long, Plain),
    ],
};

/// The source lines with code.
pub static LINES: Table = Table {
    name: "lines",
    columns: &[
        column("line_id", Int, Delta),
        column("file", Text, Dictionary),
        column("line", Int, Plain),
        column("arrivals", Long, Plain),
        column("instructions", Long, Plain),
    ],
};

/// The basic blocks.
pub static BLOCKS: Table = Table {
    name: "blocks",
    columns: &[
        column("block_id", Int, Delta),
        column("function_id", Int, Delta),
        column("block", Int, Delta),
        column("ends", Text, Dictionary),
        column("offset", Long, Delta),
        optional("line_id", Int, Plain),
        column("executions", Long, Plain),
        column("instructions", Long, Plain),
    ],
};

/// The edges between blocks.
pub static EDGES: Table = Table {
    name: "edges",
    columns: &[
        column("edge_id", Int, Delta),
        column("function_id", Int, Delta),
        optional("from_block_id", Int, Plain),
        optional("to_block_id", Int, Plain),
        column("kind", Text, Dictionary),
        column("is_back", Bool, Plain),
        column("executions", Long, Plain),
    ],
};

/// The instructions.
pub static STATEMENTS: Table = Table {
    name: "statements",
    columns: &[
        column("statement_id", Int, Delta),
        column("function_id", Int, Delta),
        optional("block_id", Int, Plain),
        column("offset", Long, Delta),
        column("name", Text, Dictionary),
        optional("line_id", Int, Plain),
        column("executions", Long, Plain),
    ],
};

/// The paths of blocks that functions executed.
pub static PATHS: Table = Table {
    name: "paths",
    columns: &[
        column("path_id", Int, Delta),
        column("function_id", Int, Plain),
        column("block_ids", Longs, Plain),
        column("executions", Long, Plain),
    ],
};

/// The calls to imported functions.
pub static HOST_CALLS: Table = Table {
    name: "host_calls",
    columns: &[
        column("host_call_id", Long, Delta),
        column("ts", Long, Delta),
        optional("statement_id", Int, Dictionary),
        column("function_id", Int, Dictionary),
        column("arguments", Longs, Plain),
        column("results", Longs, Plain),
        column("bytes_read", Long, Plain),
        column("bytes_written", Long, Plain),
    ],
};

/// The activations of functions.
pub static CALLS: Table = Table {
    name: "calls",
    columns: &[
        column("ts", Long, Delta),
        column("dur", Long, Plain),
        column("depth", Int, Plain),
        column("call_id", Long, Delta),
        optional("parent_id", Long, Plain),
        column("function_id", Int, Plain),
        optional("site_block_id", Int, Plain),
        column("is_open", Bool, Plain),
    ],
};

/// The executed blocks.
pub static STEPS: Table = Table {
    name: "steps",
    columns: &[
        column("ts", Long, Delta),
        column("block_id", Int, Plain),
        column("call_id", Long, Plain),
        column("path_id", Int, Plain),
    ],
};

/// The values of executed statements.
pub static VALUES: Table = Table {
    name: "values",
    columns: &[
        column("ts", Long, Delta),
        column("statement_id", Int, Plain),
        optional("value", Long, Plain),
        optional("number", Double, Plain),
        optional("high", Long, Plain),
    ],
};

/// The accesses to memory.
pub static MEMORY: Table = Table {
    name: "memory",
    columns: &[
        column("ts", Long, Delta),
        optional("statement_id", Int, Plain),
        column("access", Text, Dictionary),
        column("memory", Int, Dictionary),
        column("address", Long, Plain),
        column("bytes", Long, Dictionary),
    ],
};

/// The direct dependences of executed statements and blocks.
pub static DEPENDENCES: Table = Table {
    name: "dependences",
    columns: &[
        column("ts", Long, Delta),
        optional("statement_id", Int, Plain),
        column("role", Text, Dictionary),
        column("origin", Text, Dictionary),
        optional("def_ts", Long, Plain),
        optional("def_statement_id", Int, Plain),
        optional("host_call_id", Long, Plain),
        column("bytes", Long, Dictionary),
    ],
};

/// The tables about the whole run, in the data set's folder.
pub static WHOLE: [&Table; 8] = [
    &RUN,
    &FUNCTIONS,
    &LINES,
    &BLOCKS,
    &EDGES,
    &STATEMENTS,
    &PATHS,
    &HOST_CALLS,
];

/// The tables in the folder of each window.
pub static DYNAMIC: [&Table; 5] = [&CALLS, &STEPS, &VALUES, &MEMORY, &DEPENDENCES];
