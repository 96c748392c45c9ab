//! Keeps the JSON Schemas of all documents in `docs/json`, and their descriptions in
//! `docs/JSON.md`. Both are made from the structs and their comments: `BLESS=1 cargo test -p
//! afterimage-present --test it documents::` writes them. Without `BLESS`, the test compares them.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};

use afterimage_present::document::{Description, VERSION, descriptions};
use schemars::Schema;
use serde_json::Value;

fn docs() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs")
}

/// Compares a file with its expected text, or writes it.
fn is(path: &Path, text: &str) {
    if std::env::var_os("BLESS").is_some() {
        fs::write(path, text).unwrap();
        return;
    }
    let held = fs::read_to_string(path).unwrap_or_default();
    assert!(
        held == text,
        "{} is not what the structs say; BLESS=1 writes it anew",
        path.display()
    );
}

#[test]
fn schemas_are_those_of_the_structs() {
    for Description {
        name, head, rows, ..
    } in descriptions()
    {
        let write = |kind: &str, schema: &Schema| {
            let text = serde_json::to_string_pretty(schema).unwrap() + "\n";
            let path = format!("json/{name}{kind}.schema.json");
            is(&docs().join(path), &text);
        };
        write("", &head);
        if let Some(rows) = &rows {
            write(".rows", rows);
        }
    }
}

/// The lines before and after the generated part.
const BEGIN: &str = "<!-- What follows is made by crates/present/tests/it/documents.rs. -->\n";
const END: &str = "<!-- What is made ends here. -->\n";

#[test]
fn the_description_is_that_of_the_structs() {
    let path = docs().join("JSON.md");
    let text = fs::read_to_string(&path).unwrap();
    let (before, rest) = text.split_once(BEGIN).expect("a place for what is made");
    let (_, after) = rest.split_once(END).expect("an end of what is made");
    let made = described(&descriptions());
    is(&path, &format!("{before}{BEGIN}{made}{END}{after}"));
}

/// Describes all documents in words, and then the objects in them.
fn described(all: &[Description]) -> String {
    let mut text = String::new();
    let mut objects = BTreeMap::new();
    for Description {
        name,
        command,
        head,
        rows,
    } in all
    {
        let head = head.as_value();
        let _ = writeln!(text, "\n## `afterimage/{name}/{VERSION}`\n");
        let _ = match command.strip_prefix("GET ") {
            Some(_) => writeln!(text, "Answered by `afterimage explore` to `{command}`.\n"),
            None => writeln!(text, "Written by `afterimage {command} --format json`.\n"),
        };
        object(&mut text, head);
        collect(head, &mut objects);
        if let Some(rows) = rows {
            let rows = rows.as_value();
            text.push_str("\nEach line after the first one:\n\n");
            object(&mut text, rows);
            collect(rows, &mut objects);
        }
    }
    text.push_str("\n## Objects that are in documents\n");
    for (name, schema) in objects {
        let _ = writeln!(text, "\n### `{name}`\n");
        object(&mut text, schema);
    }
    text.push('\n');
    text
}

/// Collects the definitions in a schema. A name has the same meaning in all documents.
fn collect<'s>(schema: &'s Value, objects: &mut BTreeMap<&'s str, &'s Value>) {
    let Some(definitions) = schema["$defs"].as_object() else {
        return;
    };
    for (name, definition) in definitions {
        if let Some(other) = objects.insert(name, definition) {
            assert_eq!(other, definition, "two things are called {name}");
        }
    }
}

/// Describes an object, a choice among kinds of object, or a choice among words.
fn object(text: &mut String, schema: &Value) {
    if let Some(description) = schema["description"].as_str() {
        let _ = writeln!(text, "{}\n", description.replace('\n', " "));
    }
    if schema["properties"].is_object() {
        fields(text, schema);
    }
    let kinds = schema["oneOf"].as_array().or(schema["anyOf"].as_array());
    if kinds.is_some() && schema["properties"].is_object() {
        text.push('\n');
    }
    for kind in kinds.into_iter().flatten() {
        let description = kind["description"].as_str().unwrap_or_default();
        let description = description.replace('\n', " ");
        match word(kind) {
            Some(word) => {
                let _ = writeln!(text, "- `{word}`: {description}");
            }
            None => {
                let line = match title(kind) {
                    title if title.is_empty() => format!("**{description}**"),
                    title => format!("**{title}** {description}"),
                };
                let _ = writeln!(text, "{}\n", line.trim_end());
                if kind["properties"].is_object() {
                    fields(text, kind);
                    text.push('\n');
                }
            }
        }
    }
    let words = schema["enum"].as_array();
    if let Some(words) = words {
        let words = words.iter().filter_map(Value::as_str);
        let words = Vec::from_iter(words.map(|word| format!("`{word}`")));
        let _ = writeln!(text, "One of {}.", words.join(", "));
    }
}

/// Returns the only word that a schema allows, if there is just one.
fn word(schema: &Value) -> Option<&str> {
    schema["const"].as_str()
}

/// Returns the title of a kind of object: the field that selects the kind, or the definition that
/// it refers to.
fn title(kind: &Value) -> String {
    let fields = kind["properties"].as_object();
    let tag = fields
        .into_iter()
        .flatten()
        .find_map(|(name, field)| Some(format!("`{name}`: `{}`.", word(field)?)));
    let reference = kind["$ref"].as_str().map(|_| format!("{}.", of(kind)));
    match (tag, reference) {
        (Some(tag), Some(also)) => format!("{tag} Also the fields of {also}"),
        (tag, reference) => {
            let is_empty = kind.as_object().is_some_and(|kind| kind.is_empty());
            let empty = is_empty.then(|| "No further fields.".to_owned());
            tag.or(reference).or(empty).unwrap_or_default()
        }
    }
}

fn fields(text: &mut String, schema: &Value) {
    text.push_str("| field | type | meaning |\n|---|---|---|\n");
    let required = schema["required"].as_array();
    for (name, field) in schema["properties"].as_object().unwrap() {
        let always = required.is_some_and(|all| all.iter().any(|one| one == name));
        let description = field["description"].as_str().unwrap_or_default();
        let description = description.replace('\n', " ").replace('|', "\\|");
        let absent = if always { "" } else { ", may be absent" };
        let _ = writeln!(text, "| `{name}` | {}{absent} | {description} |", of(field));
    }
}

/// Describes a type in one or two words.
fn of(schema: &Value) -> String {
    if let Some(word) = word(schema) {
        return format!("`{word}`");
    }
    if let Some(path) = schema["$ref"].as_str() {
        let name = path.trim_start_matches("#/$defs/");
        return format!("[`{name}`](#{})", name.to_lowercase());
    }
    let kinds = schema["anyOf"].as_array().or(schema["oneOf"].as_array());
    if let Some(kinds) = kinds {
        return Vec::from_iter(kinds.iter().map(of)).join(" or ");
    }
    let one = |kind: &str| match kind {
        "array" => format!("array of {}", of(&schema["items"])),
        "integer" => "number".to_owned(),
        other => other.to_owned(),
    };
    match &schema["type"] {
        Value::String(kind) => one(kind),
        Value::Array(kinds) => {
            let kinds = kinds.iter().filter_map(Value::as_str).map(one);
            Vec::from_iter(kinds).join(" or ")
        }
        _ => "any".to_owned(),
    }
}
