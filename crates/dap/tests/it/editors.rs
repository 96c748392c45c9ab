//! Checks that the extensions under `editors/` offer exactly the settings that the server reads.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use afterimage_dap::Launch;
use serde_json::{Map, Value, json};

fn editors() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../editors")
}

fn text(file: &str) -> String {
    fs::read_to_string(editors().join(file)).unwrap()
}

fn document(file: &str) -> Value {
    serde_json::from_str(&text(file)).unwrap()
}

/// Returns the settings of a JSON schema, each with a value of its type.
fn examples(schema: &Value) -> Map<String, Value> {
    let properties = schema["properties"].as_object().unwrap();
    let example = |(name, of): (&String, &Value)| {
        let value = match of["type"].as_str().unwrap_or_default() {
            "string" => json!("text"),
            "boolean" => json!(true),
            "integer" => json!(7),
            "array" if of["items"]["type"] == "string" => json!(["text"]),
            _ => panic!("{name}: {of} is of no type that the server reads"),
        };
        (name.clone(), value)
    };
    properties.iter().map(example).collect()
}

/// Reads settings with the server's struct, which drops unknown settings and refuses wrong types.
fn read(settings: &Map<String, Value>) -> Map<String, Value> {
    let launch: Launch = serde_json::from_value(json!(settings)).unwrap();
    let Value::Object(all) = serde_json::to_value(launch).unwrap() else {
        panic!("settings are an object");
    };
    all.into_iter()
        .filter(|(name, _)| settings.contains_key(name))
        .collect()
}

/// Returns the names of all settings of the server.
fn names() -> BTreeSet<String> {
    let all = serde_json::to_value(Launch::default()).unwrap();
    all.as_object().unwrap().keys().cloned().collect()
}

#[test]
fn vs_code_offers_the_settings_of_the_server() {
    let manifest = document("vscode/package.json");
    let debugger = &manifest["contributes"]["debuggers"][0];
    let schemas = &debugger["configurationAttributes"];
    let launch = examples(&schemas["launch"]);
    assert_eq!(read(&launch), launch);
    assert_eq!(launch.keys().cloned().collect::<BTreeSet<_>>(), names());
    let attach = examples(&schemas["attach"]);
    assert_eq!(read(&attach), attach);
}

#[test]
fn configurations_for_vs_code_have_known_settings() {
    let manifest = document("vscode/package.json");
    let debugger = &manifest["contributes"]["debuggers"][0];
    let schemas = &debugger["configurationAttributes"];
    let initial = debugger["initialConfigurations"].as_array().unwrap().iter();
    let snippets = debugger["configurationSnippets"].as_array().unwrap().iter();
    let all = Vec::from_iter(initial.chain(snippets.map(|snippet| &snippet["body"])));
    assert!(!all.is_empty());
    for one in all {
        assert_eq!(one["type"], debugger["type"]);
        let schema = &schemas[one["request"].as_str().unwrap()];
        for name in one.as_object().unwrap().keys() {
            let is_editors = ["type", "request", "name"].contains(&name.as_str());
            assert!(
                is_editors || schema["properties"][name].is_object(),
                "{name}"
            );
        }
        for name in schema["required"].as_array().into_iter().flatten() {
            assert!(
                one[name.as_str().unwrap()].is_string(),
                "{one} lacks {name}"
            );
        }
    }
}

#[test]
fn commands_in_vs_code_exist() {
    let contributes = &document("vscode/package.json")["contributes"];
    let script = text("vscode/extension.js");
    let command = |of: &Value| of["command"].as_str().unwrap().to_owned();
    let commands = contributes["commands"].as_array().unwrap().iter();
    let commands = commands.map(command).collect::<BTreeSet<_>>();
    for name in &commands {
        let registered = format!("registerCommand(\"{name}\"");
        assert!(script.contains(&registered), "extension.js lacks {name}");
    }
    let menus = contributes["menus"].as_object().unwrap().values();
    let keys = &contributes["keybindings"];
    for used in menus.chain([keys]).flat_map(|all| all.as_array().unwrap()) {
        assert!(commands.contains(&command(used)), "{used}");
    }
}

#[test]
fn zed_offers_the_settings_of_the_server() {
    let manifest: toml::Table = text("zed/extension.toml").parse().unwrap();
    for required in ["id", "name", "version"] {
        assert!(manifest[required].is_str(), "{required}");
    }
    assert_eq!(manifest["schema_version"].as_integer(), Some(1));
    let adapter = &manifest["debug_adapters"]["afterimage"];
    let at = format!("zed/{}", adapter["schema_path"].as_str().unwrap());
    let mut schema = document(&at);
    // Zed reads this setting itself.
    let request = schema["properties"]
        .as_object_mut()
        .unwrap()
        .remove("request");
    assert_eq!(request.unwrap()["enum"], json!(["launch", "attach"]));
    let settings = examples(&schema);
    assert_eq!(read(&settings), settings);
    assert_eq!(settings.keys().cloned().collect::<BTreeSet<_>>(), names());
}
