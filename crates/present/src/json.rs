//! Reports as JSON. docs/JSON.md describes every field.

use std::io::Write;

use afterimage_ids::FuncId;
use afterimage_profile::{Profile, Report, Rows, Sort, Totals};
use afterimage_program::Location;
use serde::Serialize;
use serde::ser::{SerializeSeq, Serializer};

use crate::PresentError;

/// Writes a report as one JSON document, a row at a time. `note`: what a reader must know
/// about how exact it is, if it is not.
///
/// # Errors
/// If `out` fails.
pub fn json(
    out: &mut dyn Write,
    profile: &Profile<'_>,
    report: &Report,
    note: Option<&str>,
) -> Result<(), PresentError> {
    let (by, limited) = (by(&report.rows), report.available > report.rows.len());
    let document = Document {
        schema: "afterimage/profile/1",
        by,
        sort: match report.sort {
            Sort::Instructions => "instructions",
            Sort::Count => "count",
            Sort::Name => "name",
            Sort::Program => "program",
        },
        totals: totals(report.totals),
        available: report.available,
        complete: !limited,
        note,
        rows: RowList {
            profile,
            rows: &report.rows,
        },
    };
    serde_json::to_writer(&mut *out, &document)?;
    writeln!(out)?;
    Ok(())
}

/// What has a row, as the command line spells it.
fn by(rows: &Rows) -> &'static str {
    match rows {
        Rows::Functions(_) => "function",
        Rows::Lines(_) => "line",
        Rows::Blocks(_) => "block",
        Rows::Edges(_) => "edge",
        Rows::Instructions(_) => "instruction",
    }
}

#[derive(Serialize)]
struct Document<'r> {
    schema: &'static str,
    by: &'static str,
    sort: &'static str,
    totals: TotalsObject,
    available: usize,
    complete: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    note: Option<&'r str>,
    rows: RowList<'r>,
}

#[derive(Serialize)]
struct TotalsObject {
    instructions: u64,
    blocks: u64,
    entries: u64,
    functions: u64,
    executed_functions: u64,
    open: u64,
}

fn totals(totals: Totals) -> TotalsObject {
    let Totals {
        instructions,
        blocks,
        entries,
        functions,
        executed_functions,
        open,
    } = totals;
    TotalsObject {
        instructions,
        blocks,
        entries,
        functions,
        executed_functions,
        open,
    }
}

/// A row of any kind; each kind leaves out the fields that it does not have.
/// Their order is that of the columns of CSV.
#[derive(Default, Serialize)]
struct Row<'r> {
    #[serde(skip_serializing_if = "Option::is_none")]
    function: Option<FunctionObject<'r>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    block: Option<Option<u32>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    end: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    edge: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    from: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    to: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    kind: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    back: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    op: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    offset: Option<Option<u32>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    text: Option<&'r str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    entries: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    blocks: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    count: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    instructions: Option<u64>,
    source: Option<SourceObject<'r>>,
}

#[derive(Serialize)]
struct FunctionObject<'r> {
    index: u32,
    name: &'r str,
    #[serde(skip_serializing_if = "Option::is_none")]
    raw_name: Option<Option<&'r str>>,
}

#[derive(Serialize)]
struct SourceObject<'r> {
    file: &'r str,
    line: u32,
    #[serde(skip_serializing_if = "Option::is_none")]
    column: Option<u32>,
}

struct RowList<'r> {
    profile: &'r Profile<'r>,
    rows: &'r Rows,
}

impl Serialize for RowList<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut list = serializer.serialize_seq(Some(self.rows.len()))?;
        match self.rows {
            Rows::Functions(rows) => {
                for row in rows {
                    list.serialize_element(&Row {
                        function: self.whole_function(row.function),
                        offset: Some(Some(row.offset.0)),
                        entries: Some(row.entries),
                        blocks: Some(row.blocks),
                        instructions: Some(row.instructions),
                        source: self.source(row.position),
                        ..Row::default()
                    })?;
                }
            }
            Rows::Lines(rows) => {
                for row in rows {
                    let file = self.profile.file(row.line.file);
                    list.serialize_element(&Row {
                        count: Some(row.count),
                        instructions: Some(row.instructions),
                        source: Some(SourceObject {
                            file,
                            line: row.line.number,
                            column: None,
                        }),
                        ..Row::default()
                    })?;
                }
            }
            Rows::Blocks(rows) => {
                for row in rows {
                    list.serialize_element(&Row {
                        function: self.function(row.function),
                        block: Some(Some(row.block.as_u32())),
                        end: Some(row.end.to_string()),
                        op: Some(row.op.as_u32()),
                        offset: Some(Some(row.offset.0)),
                        count: Some(row.count),
                        instructions: Some(row.instructions),
                        source: self.source(row.position),
                        ..Row::default()
                    })?;
                }
            }
            Rows::Edges(rows) => {
                for row in rows {
                    list.serialize_element(&Row {
                        function: self.function(row.function),
                        edge: Some(row.edge.as_u32()),
                        from: Some(row.from.as_u32()),
                        to: Some(row.to.as_u32()),
                        kind: Some(row.kind.to_string()),
                        back: Some(row.back),
                        offset: Some(row.offset.map(|offset| offset.0)),
                        count: Some(row.count),
                        source: self.source(row.position),
                        ..Row::default()
                    })?;
                }
            }
            Rows::Instructions(rows) => {
                for row in rows {
                    list.serialize_element(&Row {
                        function: self.function(row.function),
                        block: Some(row.block.map(|block| block.as_u32())),
                        op: Some(row.op.as_u32()),
                        offset: Some(Some(row.offset.0)),
                        text: Some(&row.text),
                        count: Some(row.count),
                        source: self.source(row.position),
                        ..Row::default()
                    })?;
                }
            }
        }
        list.end()
    }
}

impl<'r> RowList<'r> {
    fn function(&self, id: FuncId) -> Option<FunctionObject<'r>> {
        let names = self.profile.names();
        Some(FunctionObject {
            index: id.as_u32(),
            name: names.function(id),
            raw_name: None,
        })
    }

    /// With the name as the module holds it, which only rows of functions repeat.
    fn whole_function(&self, id: FuncId) -> Option<FunctionObject<'r>> {
        let raw_name = Some(self.profile.names().raw(id));
        self.function(id).map(|function| FunctionObject {
            raw_name,
            ..function
        })
    }

    fn source(&self, position: Option<Location>) -> Option<SourceObject<'r>> {
        position.map(|position| SourceObject {
            file: self.profile.file(position.file),
            line: position.line,
            column: (position.column > 0).then_some(position.column),
        })
    }
}
