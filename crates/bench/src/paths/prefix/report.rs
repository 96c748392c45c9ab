//! Makes the tables that compare other forms with ours.

use super::{BLOCKS, LEVEL, PATHS};
use crate::paths::columns::{Column, table};
use crate::paths::{Row, name};

pub(crate) fn report(rows: &[Row]) -> String {
    let bits = |bytes: f64, blocks: u64| bytes * 8.0 / blocks as f64;
    let mut out = table(
        &format!(
            "Stored size of the same beginning of each run in different forms, in bits per executed block: the first {PATHS} executed paths, or all if there are fewer. Sequitur reads the same sequence of paths, as for Larus's whole program paths; packed: as few bits for each symbol as distinguish all symbols. Neither size of Sequitur's includes the blocks of the paths, which our directory lists"
        ),
        rows,
        name,
        &[
            Column::fact("Mblocks", 1, |row: &Row| row.prefix.blocks as f64 / 1e6),
            Column::cost("Sequitur words", 4, move |row: &Row| {
                bits(row.prefix.sequitur_words as f64, row.prefix.blocks)
            }),
            Column::cost("Sequitur packed", 4, move |row: &Row| {
                bits(row.prefix.sequitur_packed as f64, row.prefix.blocks)
            }),
            Column::cost("TWPP file", 4, move |row: &Row| {
                bits(row.prefix.twpp_file as f64, row.prefix.blocks)
            }),
            Column::cost("our segments", 4, move |row: &Row| {
                bits(row.prefix.ours.segments as f64, row.prefix.blocks)
            }),
            Column::cost("with directory", 4, move |row: &Row| {
                bits(row.prefix.ours.total(), row.prefix.blocks)
            }),
            Column::cost("segments/packed", 3, |row: &Row| {
                row.prefix.ours.segments as f64 / row.prefix.sequitur_packed as f64
            }),
            Column::cost("all/packed", 3, |row: &Row| {
                row.prefix.ours.total() / row.prefix.sequitur_packed as f64
            }),
            Column::cost("all/words", 3, |row: &Row| {
                row.prefix.ours.total() / row.prefix.sequitur_words as f64
            }),
            Column::cost("all/TWPP", 3, |row: &Row| {
                row.prefix.ours.total() / row.prefix.twpp_file as f64
            }),
        ],
    );
    out += &table(
        &format!("The first {BLOCKS} blocks: zstd -{LEVEL} of the raw trace, and ours"),
        rows,
        name,
        &[
            Column::cost("zstd bits/block", 4, move |row: &Row| {
                bits(row.prefix.raw_zstd as f64, row.prefix.raw_blocks)
            }),
            Column::cost("ours, with directory", 4, move |row: &Row| {
                bits(row.prefix.raw_ours.total(), row.prefix.raw_blocks)
            }),
            Column::cost("ours/zstd", 3, |row: &Row| {
                row.prefix.raw_ours.total() / row.prefix.raw_zstd as f64
            }),
        ],
    );
    out += &table(
        "2001, Table 5: the same beginning as Sequitur's grammar (packed) and as a TWPP file in megabytes, and milliseconds to extract one function's traces from each",
        rows,
        name,
        &[
            Column::fact("Sequitur MB", 3, |row: &Row| {
                row.prefix.sequitur_packed as f64 / 1e6
            }),
            Column::fact("TWPP MB", 3, |row: &Row| row.prefix.twpp_file as f64 / 1e6),
            Column::fact("ours MB", 3, |row: &Row| row.prefix.ours.total() / 1e6),
            Column::cost("TWPP/Sequitur", 2, |row: &Row| {
                row.prefix.twpp_file as f64 / row.prefix.sequitur_packed as f64
            }),
            Column::cost("read ms", 1, |row: &Row| row.prefix.sequitur_read_ms),
            Column::cost("process ms", 1, |row: &Row| row.prefix.sequitur_process_ms),
            Column::cost("TWPP ms", 3, |row: &Row| row.prefix.twpp_ms),
            Column::gain("Sequitur/TWPP", 0, |row: &Row| {
                row.prefix.sequitur_to_twpp()
            }),
            Column::gain("Sequitur Mpaths/s", 1, |row: &Row| {
                row.prefix.paths as f64 / 1e6 / row.prefix.sequitur_seconds
            }),
        ],
    );
    out
}
