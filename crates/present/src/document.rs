//! Defines the common form of JSON documents, and describes them.
//!
//! A document is a plain struct. It is written as one object on one line. A document with rows is
//! written as a head of that form, followed by one line with an object for each row. The JSON
//! Schema comes from the struct and its comments, and `docs/JSON.md` from the schema, so the three
//! cannot diverge.

pub mod objects;

use std::io::{self, Write};

use schemars::{JsonSchema, Schema, SchemaGenerator, generate::SchemaSettings};
use serde::Serialize;
use serde_json::json;

use crate::PresentError;

/// The version of all documents: the `2` in `afterimage/why/2`.
pub const VERSION: u32 = 2;

/// A document, or the head of one.
pub trait Document: Serialize {
    /// The name of the document: the `why` in `afterimage/why/2`.
    const NAME: &'static str;
    /// The command that writes it when given `--format json`.
    const COMMAND: &'static str;
    /// The rows on the lines after the head.
    type Row: Serialize;
}

/// The row type of documents without rows.
#[derive(Clone, Copy, Debug, Serialize, JsonSchema)]
pub enum NoRows {}

/// Rows that are made one at a time while they are written, because all rows together may not fit
/// into memory.
pub(crate) struct Lazy<I>(pub I);

impl<I: Iterator<Item: Serialize> + Clone> Serialize for Lazy<I> {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_seq(self.0.clone())
    }
}

/// Returns the first `top` items of a list, and the number of items left out.
pub(crate) fn at_most<T>(mut all: Vec<T>, top: Option<usize>) -> (Vec<T>, usize) {
    let more = all.len().saturating_sub(top.unwrap_or(usize::MAX));
    all.truncate(all.len() - more);
    (all, more)
}

/// A document with its name.
#[derive(Serialize)]
struct Named<'d, D> {
    schema: String,
    #[serde(flatten)]
    document: &'d D,
}

/// Whether a number is 0. A document omits such a number.
pub(crate) fn is_zero<T: Default + PartialEq>(number: &T) -> bool {
    *number == T::default()
}

fn name<D: Document>() -> String {
    format!("afterimage/{}/{VERSION}", D::NAME)
}

/// Writes a document, or the head of one.
///
/// # Errors
/// Returns an error if `out` fails.
pub fn begin<D: Document>(out: &mut dyn Write, document: &D) -> Result<(), PresentError> {
    let schema = name::<D>();
    line(out, &Named { schema, document })
}

/// Writes one of the rows that follow a head.
///
/// # Errors
/// Returns an error if `out` fails.
pub fn row<D: Document>(out: &mut dyn Write, row: &D::Row) -> Result<(), PresentError> {
    line(out, row)
}

/// A receiver of a document with rows. It takes the head first, then each row.
pub trait TakeRows<D: Document> {
    /// Takes the head.
    ///
    /// # Errors
    /// Returns an error if the head cannot be written.
    fn head(&mut self, head: D) -> Result<(), PresentError>;

    /// Takes a row.
    ///
    /// # Errors
    /// Returns an error if the row cannot be written.
    fn row(&mut self, row: D::Row) -> Result<(), PresentError>;
}

/// Writes the head and each row as a line of JSON.
pub struct JsonLines<'o>(pub &'o mut dyn Write);

impl<D: Document> TakeRows<D> for JsonLines<'_> {
    fn head(&mut self, head: D) -> Result<(), PresentError> {
        begin(self.0, &head)
    }

    fn row(&mut self, entry: D::Row) -> Result<(), PresentError> {
        row::<D>(self.0, &entry)
    }
}

/// Collects documents with their rows in memory.
pub struct Listed<D: Document>(Vec<WithRows<D>>);

/// A document with its rows.
#[derive(Clone, Debug, Serialize)]
#[serde(bound = "")]
pub struct WithRows<D: Document> {
    /// Its head.
    #[serde(flatten)]
    pub head: D,
    /// Its rows.
    pub rows: Vec<D::Row>,
}

impl<D: Document> Default for Listed<D> {
    fn default() -> Self {
        Self(Vec::new())
    }
}

impl<D: Document> Listed<D> {
    /// Returns all documents that were collected.
    pub fn all(self) -> Vec<WithRows<D>> {
        self.0
    }
}

impl<D: Document> TakeRows<D> for Listed<D> {
    fn head(&mut self, head: D) -> Result<(), PresentError> {
        let rows = Vec::new();
        self.0.push(WithRows { head, rows });
        Ok(())
    }

    fn row(&mut self, row: D::Row) -> Result<(), PresentError> {
        let last = self.0.last_mut();
        let last = last.ok_or_else(|| io::Error::other("a row comes before the head"))?;
        last.rows.push(row);
        Ok(())
    }
}

fn line(out: &mut dyn Write, object: &impl Serialize) -> Result<(), PresentError> {
    serde_json::to_writer(&mut *out, object)?;
    Ok(writeln!(out)?)
}

/// A document's description.
pub struct Description {
    /// Its name: `why`.
    pub name: &'static str,
    /// The command that writes it when given `--format json`.
    pub command: &'static str,
    /// The JSON Schema of the document, or of its head.
    pub head: Schema,
    /// The JSON Schema of its rows.
    pub rows: Option<Schema>,
}

/// Describes a document.
fn describe<D: Document<Row: JsonSchema> + JsonSchema>() -> Description {
    let generator = || SchemaGenerator::new(SchemaSettings::draft2020_12().for_serialize());
    let mut head = generator().into_root_schema_for::<D>();
    head.insert("$id".to_owned(), json!(name::<D>()));
    let schema = json!({ "const": name::<D>(), "description": "The name of this kind of document, and the version of its format." });
    let object = head.ensure_object();
    object.entry("properties").or_insert(json!({}))["schema"] = schema;
    let required = object.entry("required").or_insert(json!([]));
    if let Some(required) = required.as_array_mut() {
        required.insert(0, json!("schema"));
    }
    let has_rows = D::Row::schema_id() != NoRows::schema_id();
    Description {
        name: D::NAME,
        command: D::COMMAND,
        head,
        rows: has_rows.then(|| generator().into_root_schema_for::<D::Row>()),
    }
}

/// Returns the descriptions of all documents.
pub fn descriptions() -> Vec<Description> {
    vec![
        describe::<crate::accessed::AccessedHead>(),
        describe::<crate::activation::ActivationReport>(),
        describe::<crate::addresses::AddressesHead>(),
        describe::<crate::addresses::AddressStatsHead>(),
        describe::<crate::calls::CallDocument>(),
        describe::<crate::calls::CallsDocument>(),
        describe::<crate::cfg::CfgDocument>(),
        describe::<crate::compare::CompareDocument>(),
        describe::<crate::currency::CurrenciesDocument>(),
        describe::<crate::currency::CurrencyDocument>(),
        describe::<crate::dataflow::DataflowDocument>(),
        describe::<crate::deps::DepsReport>(),
        describe::<crate::diff::DiffDocument>(),
        describe::<crate::dynamic_cfg::DynamicCfgDocument>(),
        describe::<crate::explore::ExecutionsDocument>(),
        describe::<crate::explore::FilesDocument>(),
        describe::<crate::explore::FlowDocument>(),
        describe::<crate::explore::InfluenceDocument>(),
        describe::<crate::explore::MomentDocument>(),
        describe::<crate::OutputDocument>(),
        describe::<crate::explore::NamesDocument>(),
        describe::<crate::explore::SourceDocument>(),
        describe::<crate::explore::StepDocument>(),
        describe::<crate::cfg::InstrumentDocument>(),
        describe::<crate::info::InfoReport>(),
        describe::<crate::loads::LoadValuesHead>(),
        describe::<crate::loads::LoadedHead>(),
        describe::<crate::matching::MatchDocument>(),
        describe::<crate::memory::MemoryReport>(),
        describe::<crate::paths::PathsDocument>(),
        describe::<crate::json::ProfileDocument>(),
        describe::<crate::rank::RankDocument>(),
        describe::<crate::redundancy::RedundancyDocument>(),
        describe::<crate::simulate::SimulateHead>(),
        describe::<crate::simulate::SimulateHistoryHead>(),
        describe::<crate::simulate::SimulateWorstHead>(),
        describe::<crate::slice::SliceReport>(),
        describe::<crate::state::StateDocument>(),
        describe::<crate::trace::TraceHead>(),
        describe::<crate::values::ValuesReport>(),
        describe::<crate::values::VariableReport>(),
        describe::<crate::values::ConditionReport>(),
        describe::<crate::verify::VerifyReport>(),
        describe::<crate::diff::VersionsDocument>(),
        describe::<crate::WhyHead>(),
        describe::<crate::WhyNotReport>(),
    ]
}
