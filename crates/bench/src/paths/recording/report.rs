//! Makes the tables about the cost of recording.

use super::Written;
use crate::paths::columns::{Column, table};
use crate::paths::{Row, name};
use crate::statistics::Sample;

pub(crate) fn report(rows: &[Row]) -> String {
    let names = rows.first().map_or(Vec::new(), |row| {
        let schemes = row.recording.schemes.iter();
        schemes.map(|scheme| scheme.name).collect()
    });
    let each = |of: fn(&Written) -> Sample, what: &str| -> Vec<Column<'_, Row>> {
        let column = |(i, name): (usize, &&str)| {
            Column::cost(format!("{name}{what}"), 3, move |row: &Row| {
                of(&row.recording.schemes[i])
            })
        };
        names.iter().enumerate().map(column).collect()
    };
    let mut time = vec![Column::fact("plain s", 3, |row: &Row| {
        row.recording.plain_seconds.median
    })];
    time.extend(each(|written| written.cpu, ""));
    time.push(Column::cost("record --lens paths", 3, |row: &Row| {
        row.recording.recorded_cpu
    }));
    let mut out = table(
        "Recording: processor time of the guest's thread, as a ratio to the plain program, with the words dropped; record: with the boundary log and with the words in the recording",
        rows,
        name,
        &time,
    );
    let mut wall = vec![Column::fact("plain s", 3, |row: &Row| {
        row.recording.plain_wall_seconds.median
    })];
    wall.extend(each(|written| written.wall, ""));
    wall.push(Column::cost("words in a file", 3, |row: &Row| {
        row.recording.kept_wall
    }));
    wall.push(Column::cost("words and moments", 3, |row: &Row| {
        row.recording.sought_wall
    }));
    wall.push(Column::cost("record with/without", 3, |row: &Row| {
        row.recording.recorded_wall
    }));
    wall.push(Column::cost("complete file", 3, |row: &Row| {
        row.recording.live_wall
    }));
    wall.push(Column::cost("its guest's thread", 3, |row: &Row| {
        row.recording.live_cpu
    }));
    out += &table(
        "Recording: elapsed time, as a ratio; words in a file: the consumer writes them unchanged; words and moments: the consumer also follows them, and stores the position of the run every 16,384 words; record: the whole command with the path, as a ratio to the same without it; complete file: the path is regenerated, compacted, coded and written on the second core at the same time, until the file is complete",
        rows,
        name,
        &wall,
    );
    let mut rest = vec![Column::fact("compile s", 2, |row: &Row| {
        row.recording.plain_compile_seconds
    })];
    for (i, name) in names.iter().enumerate() {
        rest.push(Column::cost(
            format!("{name} compile"),
            2,
            move |row: &Row| row.recording.schemes[i].compile,
        ));
    }
    for (i, name) in names.iter().enumerate() {
        rest.push(Column::cost(format!("{name} bits"), 3, move |row: &Row| {
            row.recording.schemes[i].bits_per_block()
        }));
    }
    for (i, name) in names.iter().enumerate() {
        rest.push(Column::gain(format!("{name} M/s"), 0, move |row: &Row| {
            row.recording.schemes[i].regenerate
        }));
    }
    rest.push(Column::fact("record MiB", 0, |row: &Row| {
        row.memory.without
    }));
    rest.push(Column::cost("with path MiB", 0, |row: &Row| {
        row.memory.recording
    }));
    rest.push(Column::cost("compaction MiB", 0, |row: &Row| {
        row.memory.compaction
    }));
    out += &table(
        "Recording: compile time as a ratio to the plain program, bits written per executed block, millions of blocks regenerated from them per second, and the peak memory, including the guest's, of a process that records without the path, records with it, or compacts it",
        rows,
        name,
        &rest,
    );
    out
}

/// Makes the analogue of the 1992 paper's Table 3, which compares every branch's outcome with the
/// data that recordings write.
pub(crate) fn branches(rows: &[Row]) -> String {
    let megabytes = |row: &Row, which: usize| {
        row.recording.branches_and_ours()[which].0 * row.blocks as f64 / 8e6
    };
    let seconds = |row: &Row, which: usize| row.recording.branches_and_ours()[which].1;
    table(
        "1992, Table 3: every branch's outcome when the branch is taken (old), compared with the bits that recordings write (new): megabytes and seconds",
        rows,
        name,
        &[
            Column::fact("old MB", 2, move |row: &Row| megabytes(row, 0)),
            Column::fact("new MB", 2, move |row: &Row| megabytes(row, 1)),
            Column::gain("old/new", 2, |row: &Row| row.recording.branches_to_ours().0),
            Column::fact("plain s", 3, |row: &Row| row.recording.plain_seconds.median),
            Column::fact("old s", 3, move |row: &Row| seconds(row, 0)),
            Column::fact("new s", 3, move |row: &Row| seconds(row, 1)),
            Column::gain("old/new", 2, |row: &Row| row.recording.branches_to_ours().1),
        ],
    )
}
