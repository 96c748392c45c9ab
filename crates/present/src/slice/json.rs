//! Slices for programs. docs/JSON.md describes every field.

use std::io::Write;

use afterimage_analyses::slices::SliceReport;
use serde_json::{Value, json};

use super::{SliceScene, without_lines};
use crate::PresentError;

/// Writes a slice as one JSON document.
///
/// # Errors
/// If `out` fails.
pub fn slice_json(
    out: &mut dyn Write,
    report: &SliceReport,
    scene: &SliceScene<'_>,
) -> Result<(), PresentError> {
    let lines = report.lines.iter().map(|one| {
        json!({
            "file": scene.file(one.line),
            "line": one.line.number,
            "statements": one.operators,
            "sliced": one.sliced,
            "executed": one.executed,
            "criterion": scene.begins(one.line),
        })
    });
    let operators = report.operators.iter().map(|one| {
        json!({
            "function": one.function.as_u32(),
            "name": scene.names.function(one.function),
            "op": one.op.as_u32(),
            "offset": one.offset.0,
            "file": one.line.map(|line| scene.file(line)),
            "line": one.line.map(|line| line.number),
            "sliced": one.sliced,
            "executed": one.executed,
        })
    });
    let document = json!({
        "schema": "afterimage/slice/1",
        "title": scene.title,
        "executions": report.executions,
        "executed_lines": report.executed_lines,
        "initial_bytes": report.initial,
        "lines": lines.collect::<Vec<Value>>(),
        "statements": operators.collect::<Vec<Value>>(),
    });
    serde_json::to_writer(&mut *out, &document)?;
    writeln!(out)?;
    Ok(())
}

/// Writes the lines of a slice, or its statements, as comma-separated values. Behind the lines each function with statements of no known line has a row.
///
/// # Errors
/// If `out` fails.
pub fn slice_csv(
    out: &mut dyn Write,
    report: &SliceReport,
    scene: &SliceScene<'_>,
    by_line: bool,
) -> Result<(), PresentError> {
    let quoted = crate::csv::quoted;
    if by_line {
        write!(out, "file,line,statements,sliced,executed,function\r\n")?;
        for one in &report.lines {
            let file = scene.file(one.line);
            let (file, line) = (quoted(file), one.line.number);
            let (operators, sliced, executed) = (one.operators, one.sliced, one.executed);
            write!(out, "{file},{line},{operators},{sliced},{executed},\r\n")?;
        }
        for one in without_lines(report) {
            let (operators, (sliced, executed)) = (one.statements, one.most);
            let name = quoted(scene.names.function(one.function));
            write!(out, ",,{operators},{sliced},{executed},{name}\r\n")?;
        }
        return Ok(());
    }
    write!(out, "function,name,op,offset,file,line,sliced,executed\r\n")?;
    for one in &report.operators {
        let (function, op, offset) = (one.function.as_u32(), one.op.as_u32(), one.offset.0);
        let name = quoted(scene.names.function(one.function));
        let file = one.line.map_or("", |line| scene.file(line));
        let line = one
            .line
            .map_or(String::new(), |line| line.number.to_string());
        let (file, sliced, executed) = (quoted(file), one.sliced, one.executed);
        write!(
            out,
            "{function},{name},{op},{offset},{file},{line},{sliced},{executed}\r\n"
        )?;
    }
    Ok(())
}
