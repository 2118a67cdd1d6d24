//! The OpenAPI document of all routes: the descriptions of the handlers, completed with their common parts.
//!
//! Handlers only list their statuses. The meaning of a status, the body of an error, the authentication and the naming
//! of operations are the same everywhere, and are added here.

use super::routes;
use anyhow::Context as _;
use serde_json::{Map, Value, json};
use std::collections::BTreeSet;
use utoipa::openapi::{Info, License, OpenApiBuilder};

/// The document that `/openapi.json` returns.
///
/// # Errors
/// If the document cannot be serialized.
pub(crate) fn api_document() -> anyhow::Result<String> {
    let mut api = OpenApiBuilder::new().info(info()).build();
    for part in [routes::api(), gw_identity::api(), gw_rpc::api(), gw_admin::api()] {
        api.merge(part);
    }
    let mut document = serde_json::to_value(&api).context("the API document cannot be serialized")?;
    complete(&mut document);
    let mut text = serde_json::to_string_pretty(&document).context("the API document cannot be serialized")?;
    text.push('\n');
    Ok(text)
}

fn info() -> Info {
    let license = License::builder()
        .name(env!("CARGO_PKG_LICENSE"))
        .identifier(Some(env!("CARGO_PKG_LICENSE")));
    Info::builder()
        .title("ledger-gateway")
        .version(env!("CARGO_PKG_VERSION"))
        .description(Some(DESCRIPTION))
        .license(Some(license.build()))
        .build()
}

const DESCRIPTION: &str = "Privacy-governed gateway in front of an EVM node.\n\n\
     Errors of the REST routes are `{error, code, correlation_id}` as `application/json`, and problem details of RFC \
     9457 for clients that accept `application/problem+json`. Errors of `/rpc` are JSON-RPC errors, those of \
     `/oauth/token` are of RFC 6749.";

/// Error statuses: the status, the name of the shared response, and its description.
const ERRORS: &[(&str, &str, &str)] = &[
    (
        "400",
        "BadRequest",
        "The request is malformed, or a value in it is invalid.",
    ),
    ("401", "Unauthorized", "No valid credentials were presented."),
    (
        "403",
        "Forbidden",
        "The caller may not do this, or the object is not theirs.",
    ),
    (
        "404",
        "NotFound",
        "There is no such object, or the caller may not know of it.",
    ),
    ("409", "Conflict", "The request conflicts with the present state."),
    ("412", "PreconditionFailed", "`If-Match` names another version."),
    ("413", "PayloadTooLarge", "The body is longer than 1 MiB."),
    (
        "422",
        "Unprocessable",
        "The idempotency key was used with another body.",
    ),
    (
        "429",
        "RateLimited",
        "Too many requests; `Retry-After` says when to come again.",
    ),
    ("500", "InternalError", "An internal error; nothing was changed."),
    ("502", "BadGateway", "The node failed, or its answer is unusable."),
    (
        "503",
        "Unavailable",
        "Something that the gateway depends on is unavailable; try again later.",
    ),
];

/// Descriptions of the other statuses, for handlers that have none of their own.
const DEFAULT_DESCRIPTIONS: &[(&str, &str)] = &[
    ("101", "The connection is a WebSocket from here on."),
    ("200", "Done."),
    ("201", "Created."),
    ("204", "Done; there is nothing to say."),
    ("302", "Go on at `Location`."),
    ("304", "Nothing changed."),
];

/// Completes the merged document in place.
fn complete(document: &mut Value) {
    let Some(root) = document.as_object_mut() else { return };
    root.insert(
        "servers".into(),
        json!([{ "url": "/", "description": "This gateway." }]),
    );
    let tag = |(name, description): &(&str, &str)| json!({ "name": name, "description": description });
    root.insert("tags".into(), TAGS.iter().map(tag).collect());
    let schemas = root
        .get("components")
        .and_then(|components| components.get("schemas"))
        .cloned();
    let mut schemas = refer_to_items(schemas.unwrap_or_default());
    open_maps(&mut schemas);
    let mut used = BTreeSet::new();
    for (path, _, operation) in operations(root) {
        let security = security(path, operation.contains_key("security"));
        operation.insert("security".into(), security);
        if let Some(Value::String(id)) = operation.get_mut("operationId") {
            *id = camel_case(id);
        }
        describe(operation);
        let responses = operation.get_mut("responses").and_then(Value::as_object_mut);
        for (status, response) in responses.into_iter().flatten() {
            used.extend(complete_response(path, status, response));
        }
    }
    root.insert(
        "components".into(),
        json!({ "schemas": schemas, "responses": error_responses(&used), "securitySchemes": security_schemes() }),
    );
}

/// All operations with their paths and methods.
fn operations(root: &mut Map<String, Value>) -> impl Iterator<Item = (&str, &str, &mut Map<String, Value>)> {
    let paths = root
        .get_mut("paths")
        .and_then(Value::as_object_mut)
        .into_iter()
        .flatten();
    paths.flat_map(|(path, item)| {
        let methods = item.as_object_mut().into_iter().flatten();
        methods.filter_map(|(method, operation)| Some((path.as_str(), method.as_str(), operation.as_object_mut()?)))
    })
}

/// The areas of the document, in alphabetical order.
const TAGS: &[(&str, &str)] = &[
    ("approved code", "Creation code that members may deploy."),
    ("auth", "Logins by zero-knowledge proof of a DID."),
    ("contracts", "Contracts of organizations."),
    ("dev", "Help for development; absent in production."),
    ("diagnostics", "What a member may do and see, and why."),
    ("directory", "Logins by enterprise directory."),
    ("eth", "Ethereum addresses linked to the caller's DID."),
    ("grants", "Rights of groups on contracts."),
    ("groups", "Groups of an organization, and what their members may do."),
    ("links", "Linked addresses, as administrators see them."),
    ("logs", "The access log, the audit log and legal holds."),
    ("me", "The caller's own organizations, sessions and personal RPC URLs."),
    ("memberships", "Memberships of users in groups."),
    (
        "mined",
        "Transactions whose execution broke the rules, and their consequences.",
    ),
    ("oauth", "Authorization code flow for applications of the gateway."),
    ("operation", "Liveness and readiness."),
    ("organizations", "Organizations on the chain."),
    ("rpc", "Ethereum JSON-RPC."),
    ("sessions", "Logins under way and logins of users."),
    ("shared infrastructure", "Contracts that every organization may call."),
    ("system", "State and switches of this instance."),
    ("tokens", "Refresh, revocation and introspection of tokens."),
    ("users", "Users and their KYC state."),
];

fn security_schemes() -> Value {
    json!({
        "bearer": {
            "type": "http", "scheme": "bearer", "bearerFormat": "JWT",
            "description": "An access token of a login.",
        },
        "cookie": {
            "type": "apiKey", "in": "cookie", "name": gw_http::auth::COOKIE,
            "description": "The same token, for pages of the gateway's own origin.",
        },
        "adminToken": {
            "type": "apiKey", "in": "header", "name": "X-Admin-Token",
            "description": "ADMIN_API_TOKEN or OPERATOR_API_TOKEN, from the private network.",
        },
        "client": {
            "type": "http", "scheme": "basic",
            "description": "Id and secret of an OAuth application.",
        },
    })
}

/// The security requirements of an operation. `needs_token` is true if its handler declares a token.
fn security(path: &str, needs_token: bool) -> Value {
    let (bearer, cookie) = (json!({ "bearer": [] }), json!({ "cookie": [] }));
    if path.starts_with("/api/v1/admin/") {
        json!([{ "adminToken": [] }, bearer, cookie])
    } else if needs_token {
        json!([bearer, cookie])
    } else if path.starts_with("/rpc/u/") {
        json!([])
    } else if path.starts_with("/rpc") {
        json!([{}, bearer, cookie])
    } else if path == "/oauth/token" || path == "/api/v1/introspect" {
        json!([{}, { "client": [] }])
    } else {
        json!([])
    }
}

/// The shared responses of all error statuses in use.
fn error_responses(used: &BTreeSet<&'static str>) -> Value {
    let response = |description: &str| {
        json!({
            "description": description,
            "content": {
                "application/json": { "schema": { "$ref": "#/components/schemas/APIError" } },
                "application/problem+json": { "schema": { "$ref": "#/components/schemas/ProblemDetails" } },
            },
        })
    };
    ERRORS
        .iter()
        .filter(|(_, name, _)| used.contains(name))
        .map(|(_, name, description)| ((*name).to_owned(), response(description)))
        .collect::<Map<_, _>>()
        .into()
}

/// Adds the description of the status to a response, or replaces an error by the shared response and returns its name.
fn complete_response(path: &str, status: &str, response: &mut Value) -> Option<&'static str> {
    // These routes use the error formats of JSON-RPC and OAuth.
    let own_errors = path.starts_with("/rpc") || path == "/oauth/token";
    let members = response.as_object_mut()?;
    let error = ERRORS.iter().find(|(code, ..)| *code == status);
    let schema = members
        .get("content")
        .and_then(|content| content.pointer("/application~1json/schema/$ref"));
    let is_plain = members.get("content").is_none() || schema == Some(&"#/components/schemas/APIError".into());
    let has_description = |text: &Value| text.as_str().is_some_and(|text| !text.is_empty());
    let is_described = members.get("description").is_some_and(has_description);
    if let Some((_, name, _)) = error
        && is_plain
        && !is_described
        && !own_errors
    {
        *response = json!({ "$ref": format!("#/components/responses/{name}") });
        return Some(name);
    }
    if !is_described {
        let error_text = error.map(|(.., text)| *text);
        let text = error_text.or_else(|| {
            DEFAULT_DESCRIPTIONS
                .iter()
                .find(|(code, _)| *code == status)
                .map(|(_, text)| *text)
        });
        members.insert("description".into(), text.unwrap_or("See the summary.").into());
    }
    // A legal hold has no route of its own, so there is no `Location`.
    if status == "201" && !path.ends_with("/legal-holds") {
        let location = json!({ "description": "The path of what was created.", "schema": { "type": "string" } });
        members.insert("headers".into(), json!({ "Location": location }));
    }
    None
}

/// Replaces the inlined item schemas of pages by references to their named schemas, and adds `ProblemDetails`.
fn refer_to_items(schemas: Value) -> Value {
    let Value::Object(mut schemas) = schemas else {
        return schemas;
    };
    let names: Vec<String> = schemas.keys().cloned().collect();
    for name in &names {
        let Some(item) = name
            .strip_prefix("Paged_")
            .filter(|item| names.iter().any(|name| name == item))
        else {
            continue;
        };
        if let Some(items) = schemas
            .get_mut(name)
            .and_then(|page| page.pointer_mut("/properties/data/items"))
        {
            *items = json!({ "$ref": format!("#/components/schemas/{item}") });
        }
    }
    schemas.insert(
        "ProblemDetails".into(),
        json!({
            "type": "object",
            "description": "An error as RFC 9457 has it.",
            "required": ["type", "title", "status", "detail", "code"],
            "properties": {
                "type": { "type": "string", "description": "Always `about:blank`." },
                "title": { "type": "string", "description": "The reason phrase of the status." },
                "status": { "type": "integer", "description": "The HTTP status." },
                "detail": { "type": "string", "description": "What is wrong, in words." },
                "code": { "type": "string", "description": "A stable code for programs." },
                "correlation_id": { "type": "string", "description": "The id of this request in the logs." },
            },
        }),
    );
    Value::Object(schemas)
}

/// Allows additional properties in object schemas that declare no properties.
fn open_maps(schema: &mut Value) {
    match schema {
        Value::Object(members) => {
            let is_object = members.get("type").is_some_and(|kind| match kind {
                Value::Array(kinds) => kinds.iter().any(|kind| kind == "object"),
                kind => kind == "object",
            });
            let is_open = ["properties", "additionalProperties", "oneOf", "allOf"]
                .iter()
                .all(|name| !members.contains_key(*name));
            if is_object && is_open {
                members.insert("additionalProperties".into(), true.into());
            }
            members.values_mut().for_each(open_maps);
        }
        Value::Array(items) => items.iter_mut().for_each(open_maps),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

/// Converts `list_orgs` to `listOrgs`.
fn camel_case(id: &str) -> String {
    let mut words = id.split('_');
    let first = words.next().unwrap_or_default().to_owned();
    words.fold(first, |mut name, word| {
        let mut letters = word.chars();
        name.extend(letters.next().map(|first| first.to_ascii_uppercase()));
        name.push_str(letters.as_str());
        name
    })
}

/// Splits the doc comment of a handler: the summary is the first sentence, without its full stop. If more text follows,
/// the whole text is the description. Rule ids are removed, because they are for readers of the code.
fn describe(operation: &mut Map<String, Value>) {
    let member = |name: &str| {
        operation
            .get(name)
            .and_then(Value::as_str)
            .unwrap_or_default()
            .to_owned()
    };
    let whole = without_rules(&format!("{}\n\n{}", member("summary"), member("description")));
    let (summary, description) = first_sentence(whole.trim());
    operation.insert("summary".into(), summary.into());
    if description.is_empty() {
        operation.remove("description");
    } else {
        operation.insert("description".into(), description.into());
    }
}

fn first_sentence(text: &str) -> (String, String) {
    let paragraph = text.find("\n\n").unwrap_or(text.len());
    let ends = |stop: &str| text.find(stop).filter(|at| *at < paragraph);
    let end = [ends(". "), ends(".\n"), ends(": "), ends("; "), ends("? ")]
        .into_iter()
        .flatten()
        .min();
    let end = end.unwrap_or(paragraph);
    let (summary, rest) = text.split_at_checked(end).unwrap_or((text, ""));
    let one_line = |text: &str| text.split_whitespace().collect::<Vec<_>>().join(" ");
    let description = if rest.trim_start_matches(['.', ':', ';', '?']).trim().is_empty() {
        ""
    } else {
        text
    };
    (one_line(summary.trim_end_matches('.')), description.to_owned())
}

/// Removes parentheses that hold only rule ids, such as `(C4)`, `(V2, HD30)` or `(spec/80 §8)`.
fn without_rules(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some((before, after)) = rest.split_once('(') {
        let Some((inside, behind)) = after.split_once(')') else {
            break;
        };
        if inside.split([',', ';']).all(|id| is_rule(id.trim())) {
            out.push_str(before.trim_end_matches(' '));
        } else {
            out.extend([before, "(", inside, ")"]);
        }
        rest = behind;
    }
    out.push_str(rest);
    out
}

fn is_rule(id: &str) -> bool {
    let is_family = |id: &str| {
        let letters = id.chars().take_while(char::is_ascii_uppercase).count();
        let is_standard = ["EIP", "ERC", "RFC"].iter().any(|standard| id.starts_with(standard));
        let number = id.get(letters..).unwrap_or_default().trim_start_matches('-');
        !is_standard
            && (1..=4).contains(&letters)
            && !number.is_empty()
            && number.starts_with(|c: char| c.is_ascii_digit())
    };
    let is_range = |id: &str| {
        id.split(['-', '–'])
            .all(|id| is_family(id) || id.chars().all(|c| c.is_ascii_digit()))
    };
    id.starts_with("decision ") || id.starts_with("spec/") || is_family(id) || (id.len() > 1 && is_range(id))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rule_ids_are_removed_and_other_parentheses_stay() {
        assert_eq!(without_rules("Makes an organization (A1)."), "Makes an organization.");
        assert_eq!(
            without_rules("Changes it (F1, C3, decision 19); see (RFC 6749)."),
            "Changes it; see (RFC 6749)."
        );
        assert_eq!(
            without_rules("Grants rights (F1-F4). Pins (ERC-1967, ERC-1167) it (spec/80 §8)"),
            "Grants rights. Pins (ERC-1967, ERC-1167) it"
        );
        assert_eq!(without_rules("one (open"), "one (open");
    }

    #[test]
    fn the_first_sentence_is_the_summary() {
        let (summary, description) = first_sentence("All holds, the oldest first; super only.");
        assert_eq!(
            (summary.as_str(), description.as_str()),
            (
                "All holds, the oldest first",
                "All holds, the oldest first; super only."
            )
        );
        assert_eq!(first_sentence("One group."), ("One group".to_owned(), String::new()));
        assert_eq!(camel_case("rpc_by_personal_url"), "rpcByPersonalUrl");
        assert_eq!(camel_case("oauthToken"), "oauthToken");
    }

    /// Each response has a description, each operation has security requirements, and operation ids are unique.
    #[test]
    fn every_operation_is_complete() {
        let mut document: Value = serde_json::from_str(&api_document().unwrap()).unwrap();
        let mut names = std::collections::HashSet::new();
        let mut count = 0;
        for (path, method, operation) in operations(document.as_object_mut().unwrap()) {
            count += 1;
            assert!(operation.contains_key("security"), "{method} {path}");
            let tag = operation["tags"][0].as_str().unwrap();
            assert!(TAGS.iter().any(|(name, _)| *name == tag), "{tag}");
            assert!(
                names.insert(operation["operationId"].as_str().unwrap().to_owned()),
                "{method} {path}"
            );
            for (status, response) in operation["responses"].as_object().unwrap() {
                assert!(
                    response.get("$ref").is_some()
                        || response["description"].as_str().is_some_and(|text| !text.is_empty()),
                    "{method} {path} {status}"
                );
            }
        }
        assert!(count > 100);
    }
}
