//! Reports as comma-separated values (RFC 4180): a header line, CRLF, quotes where they are needed.

use std::borrow::Cow;
use std::io::{self, Write};

use afterimage_ids::FuncId;
use afterimage_profile::{Profile, Report, Rows};
use afterimage_program::Location;

use crate::PresentError;
use crate::plain::escaped;

/// Writes the rows of a report. What is not known is an empty field. The columns of each kind of
/// report are listed in docs/JSON.md.
///
/// # Errors
/// If `out` fails.
pub fn csv(
    out: &mut dyn Write,
    profile: &Profile<'_>,
    report: &Report,
) -> Result<(), PresentError> {
    let mut lines = Lines { out, profile };
    let header = match &report.rows {
        Rows::Functions(_) => "function,name,offset,entries,blocks,instructions,file,line,column",
        Rows::Lines(_) => "file,line,count,instructions",
        Rows::Blocks(_) => "function,name,block,end,op,offset,count,instructions,file,line,column",
        Rows::Edges(_) => "function,name,edge,from,to,kind,back,offset,count,file,line,column",
        Rows::Instructions(_) => "function,name,block,op,offset,text,count,file,line,column",
    };
    write!(lines.out, "{header}\r\n")?;
    match &report.rows {
        Rows::Functions(rows) => {
            for row in rows {
                let fields = [
                    row.offset.0.into(),
                    row.entries,
                    row.blocks,
                    row.instructions,
                ];
                let middle = fields.map(|n| n.to_string());
                lines.of_function(row.function, middle, row.position)?;
            }
        }
        Rows::Lines(rows) => {
            for row in rows {
                let file = quoted(profile.file(row.line.file)).into_owned();
                let counts = [row.line.number.into(), row.count, row.instructions];
                lines.write([file].into_iter().chain(counts.map(|n| n.to_string())))?;
            }
        }
        Rows::Blocks(rows) => {
            for row in rows {
                let middle = [
                    row.block.as_u32().to_string(),
                    row.end.to_string(),
                    row.op.as_u32().to_string(),
                    row.offset.0.to_string(),
                    row.count.to_string(),
                    row.instructions.to_string(),
                ];
                lines.of_function(row.function, middle, row.position)?;
            }
        }
        Rows::Edges(rows) => {
            for row in rows {
                let middle = [
                    row.edge.as_u32().to_string(),
                    row.from.as_u32().to_string(),
                    row.to.as_u32().to_string(),
                    row.kind.to_string(),
                    row.back.to_string(),
                    row.offset
                        .map_or(String::new(), |offset| offset.0.to_string()),
                    row.count.to_string(),
                ];
                lines.of_function(row.function, middle, row.position)?;
            }
        }
        Rows::Instructions(rows) => {
            for row in rows {
                let middle = [
                    row.block
                        .map_or(String::new(), |block| block.as_u32().to_string()),
                    row.op.as_u32().to_string(),
                    row.offset.0.to_string(),
                    quoted(&row.text).into_owned(),
                    row.count.to_string(),
                ];
                lines.of_function(row.function, middle, row.position)?;
            }
        }
    }
    Ok(())
}

struct Lines<'o> {
    out: &'o mut dyn Write,
    profile: &'o Profile<'o>,
}

impl Lines<'_> {
    fn of_function<const N: usize>(
        &mut self,
        function: FuncId,
        middle: [String; N],
        position: Option<Location>,
    ) -> io::Result<()> {
        let name = quoted(self.profile.names().function(function)).into_owned();
        let source = match position {
            None => [String::new(), String::new(), String::new()],
            Some(Location { file, line, column }) => [
                quoted(self.profile.file(file)).into_owned(),
                line.to_string(),
                if column > 0 {
                    column.to_string()
                } else {
                    String::new()
                },
            ],
        };
        let first = [function.as_u32().to_string(), name];
        self.write(first.into_iter().chain(middle).chain(source))
    }

    fn write(&mut self, fields: impl IntoIterator<Item = String>) -> io::Result<()> {
        for (i, field) in fields.into_iter().enumerate() {
            let comma = if i > 0 { "," } else { "" };
            write!(self.out, "{comma}{field}")?;
        }
        self.out.write_all(b"\r\n")
    }
}

/// A field as RFC 4180, section 2, wants it, in one line, and so that no spreadsheet takes it for a formula: a text that begins as one
/// does gets an apostrophe in front, and so does one that begins with an apostrophe. Numbers stay as they are.
pub(crate) fn quoted(field: &str) -> Cow<'_, str> {
    let mut text = escaped(field);
    let is_formula = text.starts_with(['=', '+', '-', '@', '\'']);
    if is_formula && field.parse::<f64>().is_err() {
        text = format!("'{text}").into();
    }
    if text.contains([',', '"']) {
        text = format!("\"{}\"", text.replace('"', "\"\"")).into();
    }
    text
}

#[cfg(test)]
mod tests {
    use super::quoted;

    #[test]
    fn fields_are_quoted_where_they_must_be() {
        assert_eq!(quoted("plain text"), "plain text");
        assert_eq!(quoted("f<a, b>"), "\"f<a, b>\"");
        assert_eq!(quoted("say \"x\"\n"), "\"say \"\"x\"\"\\n\"");
    }

    #[test]
    fn no_field_is_a_formula() {
        for (field, written) in [
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
            assert_eq!(quoted(field), written);
        }
    }
}
