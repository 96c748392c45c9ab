//! Reports what a program printed, and when.

use std::io::Write;

use schemars::JsonSchema;
use serde::Serialize;

use crate::document::{Document, NoRows, begin};
use crate::render::Render;
use crate::table::{Align::*, Paint, Table};
use crate::{PresentError, Style, counted, grouped};

/// A program's output, and its times.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct OutputDocument {
    /// The calls that wrote to standard output or standard error, in order.
    pub writes: Vec<OutputWrite>,
    /// The number of bytes written to each stream in the whole run.
    pub totals: OutputTotals,
    /// Whether the output is complete. If not, it ends at the limit or where the recording was cut
    /// off.
    pub complete: bool,
}

impl Document for OutputDocument {
    const NAME: &'static str = "output";
    const COMMAND: &'static str = "info --output";
    type Row = NoRows;
}

/// The number of bytes that a run printed.
#[derive(Clone, Copy, Debug, Default, Serialize, JsonSchema)]
pub struct OutputTotals {
    /// The number of bytes written to standard output.
    pub stdout: u64,
    /// The number of bytes written to standard error.
    pub stderr: u64,
}

/// A call that wrote output.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct OutputWrite {
    /// `stdout` or `stderr`.
    pub stream: &'static str,
    /// The number of the host call, from 1.
    pub call: u64,
    /// The time of the block that ends with the call.
    pub t: u64,
    /// The number of its first byte, from 0, in the form that `why --stdout` takes.
    pub first: u64,
    /// The bytes, as hexadecimal digits.
    pub bytes: String,
}

impl Render for OutputDocument {
    const NAME: &'static str = "output";

    fn text(&self, out: &mut dyn Write, style: Style) -> Result<(), PresentError> {
        let OutputTotals { stdout, stderr } = self.totals;
        writeln!(
            out,
            "{} to standard output, {} to standard error",
            counted(stdout, "byte"),
            counted(stderr, "byte")
        )?;
        if self.writes.is_empty() {
            return Ok(());
        }
        writeln!(out)?;
        let mut table = Table::new(&[
            ("t", Right),
            ("stream", Left),
            ("byte", Right),
            ("text", Left),
        ]);
        for write in &self.writes {
            table.row([
                grouped(write.t),
                write.stream.to_owned(),
                grouped(write.first),
                write.text(),
            ]);
        }
        table.write(out, style, |_| Paint::Plain)?;
        if !self.complete {
            writeln!(out, "\nthe rest is not shown; raise --limit")?;
        }
        Ok(())
    }

    fn json(&self, out: &mut dyn Write) -> Result<(), PresentError> {
        begin(out, self)
    }
}

impl OutputWrite {
    /// Returns the bytes as text in quotes.
    fn text(&self) -> String {
        let digit = |byte: &u8| char::from(*byte).to_digit(16).unwrap_or(0) as u8;
        let pairs = self.bytes.as_bytes().chunks_exact(2);
        let bytes = Vec::from_iter(pairs.map(|pair| digit(&pair[0]) * 16 + digit(&pair[1])));
        format!("{:?}", String::from_utf8_lossy(&bytes))
    }
}
