//! Creates the JSON Schemas of arguments and answers.

use afterimage::present::document::{Description, descriptions};
use schemars::generate::SchemaSettings;
use schemars::{JsonSchema, SchemaGenerator};
use serde_json::{Map, Value, json};

use crate::answer::{Next, Totals};

/// Returns the schema of a tool's arguments.
pub(crate) fn arguments<T: JsonSchema>() -> Value {
    schema::<T>(SchemaSettings::draft2020_12())
}

/// Returns the schema of a struct that appears in answers.
pub(crate) fn report<T: JsonSchema>() -> Value {
    schema::<T>(SchemaSettings::draft2020_12().for_serialize())
}

fn schema<T: JsonSchema>(settings: SchemaSettings) -> Value {
    let mut schema = SchemaGenerator::new(settings)
        .into_root_schema_for::<T>()
        .to_value();
    if let Some(object) = schema.as_object_mut() {
        object.remove("title");
        object.remove("$schema");
    }
    schema
}

/// Returns the schema of a document of `docs/JSON.md`. If the document has rows and `rows` is
/// given, the schema lists them as an array with this name.
pub(crate) fn document(name: &str, rows: Option<&str>) -> Value {
    let found = descriptions().into_iter().find(|one| one.name == name);
    let Some(Description {
        head, rows: of_row, ..
    }) = found
    else {
        return json!({ "type": "object" });
    };
    let mut head = head.to_value();
    if let (Some(rows), Some(of_row)) = (rows, of_row) {
        let mut of_row = of_row.to_value();
        take_definitions(&mut of_row, &mut head);
        add(&mut head, rows, json!({ "type": "array", "items": of_row }));
    }
    head
}

/// Adds a field to the schema of a document.
pub(crate) fn add(document: &mut Value, name: &str, mut field: Value) {
    take_definitions(&mut field, document);
    document["properties"][name] = field;
}

/// Returns the schema of an answer whose report has one of these schemas.
pub(crate) fn answer(reports: Vec<Value>) -> Value {
    let mut whole = json!({
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "type": "object",
        "properties": {
            "recording": { "type": "string", "description": "The recording, as the call named it." },
            "shortened": {
                "type": "object",
                "description": "The lists of the report that were cut: the place of each, and its original number of entries.",
                "additionalProperties": { "type": "integer" },
            },
            "more": {
                "description": "The call that continues with the rest; null if there is none.",
                "type": ["object", "null"],
                "properties": { "tool": { "type": "string" }, "arguments": { "type": "object" } },
            },
            "notes": {
                "type": "array",
                "items": { "type": "string" },
                "description": "Notes about the recording and this answer.",
            },
            "untrusted": { "type": "string", "description": "The parts that are data of the recorded program." },
        },
        "required": ["recording", "totals", "report", "next", "more", "notes", "untrusted"],
    });
    let mut parts = Vec::new();
    for mut report in reports {
        take_definitions(&mut report, &mut whole);
        parts.push(report);
    }
    whole["properties"]["report"] = match parts.len() {
        1 => parts.remove(0),
        _ => json!({ "anyOf": parts }),
    };
    for (name, mut schema) in [
        ("totals", report::<Totals>()),
        ("next", report::<Vec<Next>>()),
    ] {
        take_definitions(&mut schema, &mut whole);
        whole["properties"][name] = schema;
    }
    whole
}

/// Moves the definitions of a schema to the schema that will contain it. This loses nothing,
/// because a name has the same meaning in all documents.
fn take_definitions(from: &mut Value, to: &mut Value) {
    let Some(object) = from.as_object_mut() else {
        return;
    };
    for own in ["$schema", "$id"] {
        object.remove(own);
    }
    let Some(Value::Object(definitions)) = object.remove("$defs") else {
        return;
    };
    let Some(to) = to.as_object_mut() else { return };
    let all = to.entry("$defs").or_insert_with(|| Map::new().into());
    if let Some(all) = all.as_object_mut() {
        all.extend(definitions);
    }
}
