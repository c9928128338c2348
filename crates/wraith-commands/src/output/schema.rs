//! Documentation of `--json`, generated from the event types: `docs/events.schema.json`, and the
//! tables in `docs/json.md`. After a change of [`super::Event`] or [`wraith::json::Event`], run:
//!
//! ```console
//! $ WRAITH_BLESS=1 cargo test -p wraith-p2p-commands documented
//! ```
//!
//! The documents describe the program with all commands, so these tests need the feature `crypto`.
//!
//! The integration tests check the other direction: every line that the program prints in a test
//! must match the schema (`tests/support/schema.rs`).

use std::fmt::Write;
use std::path::PathBuf;

use schemars::JsonSchema;
use schemars::generate::SchemaSettings;
use serde_json::{Map, Value, json};

use super::Event;
use crate::failure::Exit;

/// Renamed events, keys and values: the earlier name, and the present one.
const RENAMED: [(&str, &str); 6] = [
    ("event `guests`", "event `contacts_changed`"),
    ("event `openings`", "event `risky_entries`"),
    ("event `lacks`", "event `not_received`"),
    ("event `good`", "event `signature_valid`"),
    ("`lacking` of `verified`", "`not_received`"),
    ("`not-said` as `durability` of `done` and `signed`", "`unknown`"),
];

const BEGIN: &str = "<!-- generated from the event types: begin -->\n";
const END: &str = "<!-- generated from the event types: end -->\n";

/// Fields that every event has or may have. The document describes them once.
const ENVELOPE: [&str; 2] = ["event", "receiver"];

fn docs(name: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../docs").join(name)
}

/// Returns the schema of one line. It allows unknown fields, because later versions add some.
fn schema() -> Value {
    let mut schema = schema_of::<Event<'static>>();
    add_events::<wraith::json::Event>(&mut schema, "calling");
    // In front of those about settings.
    add_events::<wraith_crypto_commands::Event<'static>>(&mut schema, "setting");
    let root = schema.as_object_mut().unwrap();
    root.insert("title".into(), json!("A line of wraith --json"));
    root.insert(
        "description".into(),
        json!("One event. Later versions may add events and fields."),
    );
    let names: Vec<_> = Exit::ALL.iter().map(|exit| exit.name()).collect();
    let codes: Vec<_> = Exit::ALL.iter().map(|exit| *exit as u8).collect();
    for event in schema["oneOf"].as_array_mut().unwrap() {
        let properties = &mut event["properties"];
        properties["receiver"] = json!({
            "type": "integer",
            "minimum": 0,
            "description": "Number of the receiver; only if a sender has several.",
        });
        if properties["event"]["const"] == "error" {
            properties["code"]["enum"] = json!(names);
            properties["exit"]["enum"] = json!(codes);
        }
    }
    schema
}

fn schema_of<E: JsonSchema>() -> Value {
    let generator = SchemaSettings::draft2020_12().for_serialize().into_generator();
    generator.into_root_schema_for::<E>().to_value()
}

/// Adds the events of another crate, in front of the event `before`.
fn add_events<E: JsonSchema>(schema: &mut Value, before: &str) {
    let added = schema_of::<E>()["oneOf"].as_array().unwrap().clone();
    let events = schema["oneOf"].as_array_mut().unwrap();
    let at = events.iter().position(|event| event["properties"]["event"]["const"] == before);
    let at = at.unwrap();
    events.splice(at..at, added);
}

fn tables(schema: &Value) -> String {
    let mut text = String::new();
    for event in schema["oneOf"].as_array().unwrap() {
        let properties = event["properties"].as_object().unwrap();
        let name = properties["event"]["const"].as_str().unwrap();
        writeln!(text, "### `{name}`\n\n{}\n", described(event, name)).unwrap();
        writeln!(text, "| field | type | |\n|---|---|---|").unwrap();
        for (field, of) in
            properties.iter().filter(|(field, _)| !ENVELOPE.contains(&field.as_str()))
        {
            let what = described(of, field);
            writeln!(text, "| `{field}` | {} | {what} |", type_of(of)).unwrap();
        }
        text.push('\n');
    }
    text.push_str("## Renamed\n\n| before | now |\n|---|---|\n");
    for (before, now) in RENAMED {
        writeln!(text, "| {before} | {now} |").unwrap();
    }
    text.push('\n');
    text
}

fn described(of: &Value, name: &str) -> String {
    let text = of["description"].as_str();
    text.unwrap_or_else(|| panic!("{name} has no comment that says what it is")).replace('\n', " ")
}

fn type_of(field: &Value) -> String {
    let word = |name: &Value| match name.as_str() {
        Some("string") => "text".to_owned(),
        Some("array") => "list of text".to_owned(),
        Some(other) => other.to_owned(),
        None => panic!("a type without a name: {field}"),
    };
    match &field["type"] {
        Value::Array(several) => several.iter().map(word).collect::<Vec<_>>().join(" or "),
        one => word(one),
    }
}

/// Returns the document with the part between the marks replaced.
fn with_tables(document: &str, tables: &str) -> String {
    let (before, rest) = document.split_once(BEGIN).expect("docs/json.md has the first mark");
    let (_, after) = rest.split_once(END).expect("docs/json.md has the second mark");
    format!("{before}{BEGIN}\n{tables}{END}{after}")
}

#[test]
fn every_event_and_field_is_documented() {
    let schema = schema();
    let written = serde_json::to_string_pretty(&schema).unwrap() + "\n";
    let (schema_file, document_file) = (docs("events.schema.json"), docs("json.md"));
    let document = std::fs::read_to_string(&document_file).unwrap();
    let wanted = with_tables(&document, &tables(&schema));
    if std::env::var_os("WRAITH_BLESS").is_some() {
        std::fs::write(&schema_file, &written).unwrap();
        std::fs::write(&document_file, &wanted).unwrap();
    }
    let again = "run WRAITH_BLESS=1 cargo test -p wraith-p2p-commands documented";
    let committed = std::fs::read_to_string(&schema_file).unwrap_or_default();
    assert!(committed == written, "docs/events.schema.json is out of date: {again}");
    let document = std::fs::read_to_string(&document_file).unwrap();
    assert!(document == wanted, "docs/json.md is out of date: {again}");
}

/// The schema must use only keywords that the checker of the tests supports. The tests would not
/// enforce an unknown one.
#[test]
fn the_schema_uses_only_checked_keywords() {
    let known = ["type", "const", "enum", "minimum", "maximum", "format", "items", "description"];
    for event in schema()["oneOf"].as_array().unwrap() {
        let keys = |of: &Map<String, Value>| of.keys().cloned().collect::<Vec<_>>();
        let event = event.as_object().unwrap();
        for key in keys(event) {
            let allowed = ["type", "properties", "required", "description"];
            assert!(allowed.contains(&key.as_str()), "{key} of an event");
        }
        for (name, of) in event["properties"].as_object().unwrap() {
            for key in keys(of.as_object().unwrap()) {
                assert!(known.contains(&key.as_str()), "{key} of {name}");
            }
        }
    }
}
