//! Checks a line of `--json` against `docs/events.schema.json`. It is stricter than the schema,
//! which allows unknown fields: an undocumented event or field is a failure.

use std::path::Path;
use std::sync::OnceLock;

use serde_json::Value;

fn schema() -> &'static Value {
    static SCHEMA: OnceLock<Value> = OnceLock::new();
    SCHEMA.get_or_init(|| {
        let docs = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs");
        let text = std::fs::read_to_string(docs.join("events.schema.json")).unwrap();
        serde_json::from_str(&text).unwrap()
    })
}

/// Returns the names of all documented events.
pub fn events() -> Vec<&'static str> {
    let all = schema()["oneOf"].as_array().unwrap();
    all.iter().map(|event| event["properties"]["event"]["const"].as_str().unwrap()).collect()
}

/// Returns the fault of an event; None if it matches the documentation.
pub fn fault(event: &Value) -> Option<String> {
    let all = schema()["oneOf"].as_array().unwrap();
    let of = |documented: &&Value| documented["properties"]["event"]["const"] == event["event"];
    let Some(documented) = all.iter().find(of) else {
        return Some(format!("the event {} is not documented", event["event"]));
    };
    let (name, fields) = (&event["event"], event.as_object()?);
    let properties = documented["properties"].as_object().unwrap();
    let required = documented["required"].as_array().unwrap();
    let missing = required.iter().find(|field| !fields.contains_key(field.as_str().unwrap()));
    if let Some(field) = missing {
        return Some(format!("{name} lacks {field}"));
    }
    fields.iter().find_map(|(field, value)| match properties.get(field) {
        None => Some(format!("the field {field} of {name} is not documented")),
        Some(of) => mismatch(of, value).map(|what| format!("{field} of {name} is {what}: {value}")),
    })
}

fn mismatch(of: &Value, value: &Value) -> Option<String> {
    let allowed: Vec<&str> = match &of["type"] {
        Value::Array(several) => several.iter().map(|one| one.as_str().unwrap()).collect(),
        one => one.as_str().into_iter().collect(),
    };
    if !allowed.is_empty() && !allowed.iter().any(|name| is_of_type(name, value)) {
        return Some(format!("no {}", allowed.join(" or ")));
    }
    if of.get("const").is_some_and(|only| only != value) {
        return Some(format!("not {}", of["const"]));
    }
    if of["enum"].as_array().is_some_and(|all| !all.contains(value)) {
        return Some(format!("none of {}", of["enum"]));
    }
    if let (Some(number), Some(minimum)) = (value.as_f64(), of["minimum"].as_f64())
        && number < minimum
    {
        return Some(format!("below {minimum}"));
    }
    if let (Some(number), Some(maximum)) = (value.as_f64(), of["maximum"].as_f64())
        && number > maximum
    {
        return Some(format!("above {maximum}"));
    }
    let items = value.as_array().filter(|_| of.get("items").is_some());
    items?.iter().find_map(|item| mismatch(&of["items"], item))
}

fn is_of_type(name: &str, value: &Value) -> bool {
    match name {
        "string" => value.is_string(),
        "integer" => value.is_u64() || value.is_i64(),
        "number" => value.is_number(),
        "boolean" => value.is_boolean(),
        "array" => value.is_array(),
        "object" => value.is_object(),
        "null" => value.is_null(),
        other => panic!("the schema has a type {other}, which this check does not know"),
    }
}
