//! The examples of the API document, from `api_examples.json`: one for each request body and each schema of a response.

use anyhow::Context as _;
use serde_json::{Map, Value, json};

/// A JSON object of examples by schema name; `NAME_batch` is a second example of the schema `NAME`.
const EXAMPLES: &str = include_str!("api_examples.json");
const BATCH: &str = "_batch";

/// All examples by name.
pub(super) fn examples() -> anyhow::Result<Map<String, Value>> {
    serde_json::from_str(EXAMPLES).context("the examples of the API document are no JSON object")
}

/// The `components/examples` of `document`: the examples that it refers to. An example of a row is part of the example
/// of its page, so it is no component.
pub(super) fn components(examples: &Map<String, Value>, document: &str) -> Value {
    let is_used = |name: &str| document.contains(&format!("#/components/examples/{name}\""));
    let used = examples.iter().filter(|(name, _)| is_used(name));
    let example = |(name, value): (&String, &Value)| (name.clone(), json!({ "value": value }));
    used.map(example).collect::<Map<_, _>>().into()
}

/// References to components of these names.
pub(super) fn references(names: &[&str]) -> Value {
    let one = |name: &&str| {
        let reference = json!({ "$ref": format!("#/components/examples/{name}") });
        ((*name).to_owned(), reference)
    };
    names.iter().map(one).collect::<Map<_, _>>().into()
}

/// Adds references to the examples of their schemas to the request body and the responses of an operation.
pub(super) fn add_examples(operation: &mut Map<String, Value>, examples: &Map<String, Value>) {
    let mut contents: Vec<&mut Value> = Vec::new();
    for (name, value) in operation.iter_mut() {
        match (&**name, value) {
            ("requestBody", body) => contents.extend(body.get_mut("content")),
            ("responses", Value::Object(responses)) => {
                contents.extend(
                    responses
                        .values_mut()
                        .filter_map(|response| response.get_mut("content")),
                );
            }
            _ => {}
        }
    }
    let media = contents.into_iter().filter_map(Value::as_object_mut);
    for media in media.flat_map(Map::values_mut).filter_map(Value::as_object_mut) {
        if let Some(example) = media.get("schema").and_then(|schema| schema_examples(schema, examples)) {
            media.extend(example);
        }
    }
}

/// The members `example` or `examples` for a media type with this schema; `None` if the schema has no example.
fn schema_examples(schema: &Value, examples: &Map<String, Value>) -> Option<Map<String, Value>> {
    let name = schema_name(schema)?;
    let mut members = Map::new();
    if let Some(row) = name.strip_prefix("Paged_").and_then(|item| examples.get(item)) {
        let page = json!({ "data": [row], "total": 1, "limit": 50, "offset": 0 });
        members.insert("example".into(), page);
        return Some(members);
    }
    let batch = format!("{name}{BATCH}");
    let names: Vec<&str> = [name, &*batch]
        .into_iter()
        .filter(|name| examples.contains_key(*name))
        .collect();
    if names.is_empty() {
        return None;
    }
    members.insert("examples".into(), references(&names));
    Some(members)
}

/// The name of the schema that `$ref` names. Of a `oneOf`, the first named schema counts.
fn schema_name(schema: &Value) -> Option<&str> {
    let schema = match schema.get("oneOf") {
        Some(schemas) => schemas.as_array()?.iter().find(|schema| schema.get("$ref").is_some())?,
        None => schema,
    };
    schema.get("$ref")?.as_str()?.rsplit('/').next()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::serve::api_document::api_document;

    /// Validates a value and returns its violations. Supports only the parts of JSON Schema that the document uses.
    fn faults(document: &Value, schema: &Value, value: &Value, at: &str) -> Vec<String> {
        let fault = |text: &str| vec![format!("{at}: {text}: {value}")];
        if let Some(path) = schema["$ref"].as_str() {
            let schema = document
                .pointer(path.trim_start_matches('#'))
                .unwrap_or_else(|| panic!("{path}"));
            return faults(document, schema, value, at);
        }
        for alternatives in ["oneOf", "anyOf"] {
            if let Some(schemas) = schema[alternatives].as_array() {
                let all: Vec<_> = schemas
                    .iter()
                    .map(|schema| faults(document, schema, value, at))
                    .collect();
                if all.iter().any(Vec::is_empty) {
                    return Vec::new();
                }
                return all.concat();
            }
        }
        if let Some(schemas) = schema["allOf"].as_array() {
            // A member may belong to any of the parts.
            let mut merged = json!({ "type": "object", "properties": {}, "required": [] });
            for part in schemas {
                let part = part["$ref"].as_str().map_or(part, |path| {
                    document
                        .pointer(path.trim_start_matches('#'))
                        .unwrap_or_else(|| panic!("{path}"))
                });
                let properties = part["properties"].as_object().unwrap().clone();
                merged["properties"].as_object_mut().unwrap().extend(properties);
                let required = part["required"].as_array().cloned().unwrap_or_default();
                merged["required"].as_array_mut().unwrap().extend(required);
            }
            return faults(document, &merged, value, at);
        }
        if let Some(words) = schema["enum"].as_array()
            && !words.contains(value)
        {
            return fault("not one of the words");
        }
        let kind = match value {
            Value::Null => "null",
            Value::Bool(_) => "boolean",
            Value::Number(number) if number.is_f64() => "number",
            Value::Number(_) => "integer",
            Value::String(_) => "string",
            Value::Array(_) => "array",
            Value::Object(_) => "object",
        };
        let fits = match &schema["type"] {
            Value::String(known) => known == kind,
            Value::Array(known) => known.iter().any(|known| known == kind),
            _ => true,
        };
        if !fits {
            return fault("another type");
        }
        match value {
            Value::Array(items) => items
                .iter()
                .flat_map(|item| faults(document, &schema["items"], item, &format!("{at}[]")))
                .collect(),
            Value::Object(members) => {
                let required = schema["required"]
                    .as_array()
                    .into_iter()
                    .flatten()
                    .filter_map(Value::as_str);
                let mut faulty: Vec<_> = required
                    .filter(|name| !members.contains_key(*name))
                    .map(|name| format!("{at}: `{name}` is missing"))
                    .collect();
                let open = schema.get("properties").is_none() || schema.get("additionalProperties").is_some();
                for (name, value) in members {
                    match &schema["properties"][name] {
                        Value::Null if open => {}
                        Value::Null => faulty.push(format!("{at}: `{name}` is unknown")),
                        schema => faulty.extend(faults(document, schema, value, &format!("{at}.{name}"))),
                    }
                }
                faulty
            }
            _ => Vec::new(),
        }
    }

    fn document() -> Value {
        serde_json::from_str(&api_document().unwrap()).unwrap()
    }

    #[test]
    fn every_example_fits_its_schema() {
        let document = document();
        let mut faulty = Vec::new();
        for (name, value) in &examples().unwrap() {
            let schema = &document["components"]["schemas"][name.trim_end_matches(BATCH)];
            assert!(schema.is_object(), "no schema `{name}`");
            faulty.extend(faults(&document, schema, value, name));
        }
        assert!(faulty.is_empty(), "{}", faulty.join("\n"));
        let schema = json!({ "$ref": "#/components/schemas/OrgCreateRequest" });
        for wrong in [
            json!({}),
            json!({ "slug": 1, "name": "x" }),
            json!({ "slug": "x", "name": "x", "more": 1 }),
        ] {
            assert!(!faults(&document, &schema, &wrong, "").is_empty(), "{wrong}");
        }
    }

    /// Every JSON body that a client sends has an example, and so has every kind of object in the answers.
    #[test]
    fn every_request_body_has_an_example() {
        let document = document();
        let mut bodies = 0;
        for (path, operations) in document["paths"].as_object().unwrap() {
            for (method, operation) in operations.as_object().unwrap() {
                let content = operation["requestBody"]["content"].as_object().into_iter().flatten();
                for (kind, media) in content.filter(|(_, media)| media["schema"]["type"] != "string") {
                    bodies += 1;
                    let has_example = media.get("example").is_some() || media.get("examples").is_some();
                    assert!(has_example, "{method} {path} {kind}");
                }
            }
        }
        assert!(bodies > 40, "{bodies}");
        let answers = document["paths"]["/api/v1/admin/orgs"]["get"]["responses"]["200"]["content"].to_string();
        assert!(answers.contains("meridian"), "{answers}");
    }
}
