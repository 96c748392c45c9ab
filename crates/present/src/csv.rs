//! Writes reports as comma-separated values (RFC 4180), with a header line, CRLF, and quotes where
//! needed.

use std::fmt::{Display, Write as _};
use std::io::Write;

use ::csv::{Terminator, Writer, WriterBuilder};
use afterimage_ids::FuncId;
use afterimage_profile::{Profile, Report, Rows};
use afterimage_program::Location;

use crate::PresentError;
use crate::plain::escaped;

/// Writes the rows of a report. Unknown values are empty fields. docs/JSON.md lists the columns of
/// each kind of report.
///
/// # Errors
/// Returns an error if `out` fails.
pub fn csv(
    out: &mut dyn Write,
    profile: &Profile<'_>,
    report: &Report,
) -> Result<(), PresentError> {
    let header = match &report.rows {
        Rows::Functions(_) => "function,name,offset,entries,blocks,instructions,file,line,column",
        Rows::Lines(_) => "file,line,count,instructions,with_library",
        Rows::Blocks(_) => "function,name,block,end,op,offset,count,instructions,file,line,column",
        Rows::Edges(_) => "function,name,edge,from,to,kind,back,offset,count,file,line,column",
        Rows::Instructions(_) => "function,name,block,op,offset,text,count,file,line,column",
    };
    let mut lines = Lines {
        table: Csv::new(out, header)?,
        profile,
    };
    match &report.rows {
        Rows::Functions(rows) => {
            for row in rows {
                let middle: [&dyn Display; 4] =
                    [&row.offset.0, &row.entries, &row.blocks, &row.instructions];
                lines.of_function(row.function, &middle, row.position)?;
            }
        }
        Rows::Lines(rows) => {
            for row in rows {
                lines.table.row(&[
                    &profile.file(row.line.file),
                    &row.line.number,
                    &row.count,
                    &row.instructions,
                    &known(row.with_library),
                ])?;
            }
        }
        Rows::Blocks(rows) => {
            for row in rows {
                let middle: [&dyn Display; 6] = [
                    &row.block.as_u32(),
                    &row.end,
                    &row.op.as_u32(),
                    &row.offset.0,
                    &row.count,
                    &row.instructions,
                ];
                lines.of_function(row.function, &middle, row.position)?;
            }
        }
        Rows::Edges(rows) => {
            for row in rows {
                let middle: [&dyn Display; 7] = [
                    &row.edge.as_u32(),
                    &row.from.as_u32(),
                    &row.to.as_u32(),
                    &row.kind,
                    &row.back,
                    &known(row.offset.map(|offset| offset.0)),
                    &row.count,
                ];
                lines.of_function(row.function, &middle, row.position)?;
            }
        }
        Rows::Instructions(rows) => {
            for row in rows {
                let middle: [&dyn Display; 5] = [
                    &known(row.block.map(|block| block.as_u32())),
                    &row.op.as_u32(),
                    &row.offset.0,
                    &row.text,
                    &row.count,
                ];
                lines.of_function(row.function, &middle, row.position)?;
            }
        }
    }
    lines.table.finish()
}

struct Lines<'o> {
    table: Csv<'o>,
    profile: &'o Profile<'o>,
}

impl Lines<'_> {
    fn of_function(
        &mut self,
        function: FuncId,
        middle: &[&dyn Display],
        position: Option<Location>,
    ) -> Result<(), PresentError> {
        let file = known(position.map(|at| self.profile.file(at.file)));
        let line = known(position.map(|at| at.line));
        let column = known(position.map(|at| at.column).filter(|&column| column > 0));
        let (number, name) = (function.as_u32(), self.profile.names().function(function));
        let mut fields: Vec<&dyn Display> = vec![&number, &name];
        fields.extend(middle);
        fields.extend([&file as &dyn Display, &line, &column]);
        self.table.row(&fields)
    }
}

/// A table that is written row by row.
pub(crate) struct Csv<'o> {
    to: Writer<&'o mut dyn Write>,
    field: String,
}

impl<'o> Csv<'o> {
    /// Creates a table with the columns in `header`. With an empty header, the rows continue an
    /// earlier table.
    pub(crate) fn new(out: &'o mut dyn Write, header: &str) -> Result<Self, PresentError> {
        if !header.is_empty() {
            write!(out, "{header}\r\n")?;
        }
        let to = WriterBuilder::new()
            .terminator(Terminator::CRLF)
            .from_writer(out);
        Ok(Self {
            to,
            field: String::new(),
        })
    }

    /// Writes a row. Makes each field safe for spreadsheets, as [`harmless`] describes.
    pub(crate) fn row(&mut self, fields: &[&dyn Display]) -> Result<(), PresentError> {
        for field in fields {
            self.field.clear();
            write!(self.field, "{field}")?;
            self.to.write_field(harmless(&self.field).as_bytes())?;
        }
        Ok(self.to.write_record(None::<&[u8]>)?)
    }

    /// Writes the rest of the buffered data.
    pub(crate) fn finish(mut self) -> Result<(), PresentError> {
        Ok(self.to.flush()?)
    }
}

/// Returns the text of a field, which is empty if the value is unknown.
pub(crate) fn known(field: Option<impl Display>) -> String {
    field.map_or(String::new(), |field| field.to_string())
}

/// Makes a field safe: puts it on one line, and prevents a spreadsheet from reading it as a
/// formula. Adds an apostrophe before a string that begins like a formula, or with an apostrophe.
/// Numbers are unchanged.
fn harmless(field: &str) -> std::borrow::Cow<'_, str> {
    let text = escaped(field);
    let is_formula = text.starts_with(['=', '+', '-', '@', '\'']);
    if is_formula && field.parse::<f64>().is_err() {
        format!("'{text}").into()
    } else {
        text
    }
}

#[cfg(test)]
mod tests {
    use super::Csv;

    fn written(field: &str) -> String {
        let mut out = Vec::new();
        let mut table = Csv::new(&mut out, "").unwrap();
        table.row(&[&1, &field]).unwrap();
        table.finish().unwrap();
        let row = String::from_utf8(out).unwrap();
        let field = row.strip_prefix("1,").unwrap();
        field.strip_suffix("\r\n").unwrap().to_owned()
    }

    #[test]
    fn fields_are_quoted_where_they_must_be() {
        assert_eq!(written("plain text"), "plain text");
        assert_eq!(written(""), "");
        assert_eq!(written("f<a, b>"), "\"f<a, b>\"");
        assert_eq!(written("say \"x\"\n"), "\"say \"\"x\"\"\\n\"");
    }

    #[test]
    fn no_field_is_a_formula() {
        for (field, row) in [
            ("=1+1", "'=1+1"),
            ("+a", "'+a"),
            ("-[A b]", "'-[A b]"),
            ("@sum(1,2)", "\"'@sum(1,2)\""),
            ("'=x", "''=x"),
            ("\t=x", "\\t=x"),
            ("-3", "-3"),
            ("-1.5e3", "-1.5e3"),
            ("a=b", "a=b"),
        ] {
            assert_eq!(written(field), row);
        }
    }
}
