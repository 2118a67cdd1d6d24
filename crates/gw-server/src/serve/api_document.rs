//! The OpenAPI document of all routes: the descriptions of the handlers, completed with their common parts.
//!
//! Handlers only list their statuses. The meaning of a status, the body of an error, the authentication and the naming
//! of operations are the same everywhere, and are added here.

use super::{api_examples, routes};
use anyhow::Context as _;
use gw_http::ErrorCode;
use serde_json::{Map, Value, json};
use std::collections::BTreeSet;
use utoipa::openapi::{Info, License, OpenApiBuilder};

/// The document that `/openapi.json` returns.
///
/// # Errors
/// If the document cannot be serialized.
pub(crate) fn api_document() -> anyhow::Result<String> {
    let mut api = OpenApiBuilder::new().info(info()).build();
    for part in [
        routes::api(),
        gw_identity::api(),
        gw_rpc::api(),
        gw_explorer::api(),
        gw_admin::api(),
        gw_disclosure::api(),
    ] {
        api.merge(part);
    }
    let mut document = serde_json::to_value(&api).context("the API document cannot be serialized")?;
    complete(&mut document, &api_examples::examples()?);
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
        "Too many requests; `Retry-After` contains the seconds to wait.",
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
fn complete(document: &mut Value, examples: &Map<String, Value>) {
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
        let needs_token = operation.contains_key("security");
        operation.insert("security".into(), security(path, needs_token));
        if let Some(Value::String(id)) = operation.get_mut("operationId") {
            *id = camel_case(id);
        }
        describe(operation);
        describe_parameters(path, operation);
        let surface = Surface::for_path(path);
        let common = surface.common_errors(operation.contains_key("requestBody"), needs_token);
        if let Some(responses) = operation.get_mut("responses").and_then(Value::as_object_mut) {
            for code in common {
                let status = code.status().as_str().to_owned();
                responses.entry(status).or_insert_with(|| json!({}));
            }
            for (status, response) in responses {
                used.extend(complete_response(surface, path, status, response));
            }
        }
        api_examples::add_examples(operation, examples);
    }
    let responses = error_responses(&used);
    let text = root.get("paths").map(Value::to_string).unwrap_or_default() + &responses.to_string();
    let components = json!({
        "schemas": schemas,
        "responses": responses,
        "examples": api_examples::components(examples, &text),
        "securitySchemes": security_schemes(),
    });
    root.insert("components".into(), components);
    remove_rules(document);
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
    (
        "disclosure",
        "Requests, grants and events of disclosure of a user's data.",
    ),
    ("eth", "Ethereum addresses linked to the caller's DID."),
    (
        "explorer",
        "Blocks, transactions and addresses, as the caller may see them.",
    ),
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
        "explorerKey": {
            "type": "apiKey", "in": "header", "name": "X-Explorer-Key",
            "description": "EXPLORER_BACKEND_KEY, for the backend of the web explorer.",
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
    } else if path.starts_with("/api/v1/explorer/") {
        json!([{}, { "explorerKey": [] }, bearer, cookie])
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

/// A group of routes with common layers and one format of errors.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Surface {
    /// The admin API: every caller is authenticated.
    Admin,
    /// The data API of the explorer: private networks only, and callers with a token or a key.
    Explorer,
    /// The other REST routes.
    Rest,
    /// Errors of JSON-RPC, and of REST from the layers before them.
    Rpc,
    /// Errors of RFC 6749, and of REST from the layers before them.
    Oauth,
    /// `/health` and `/ready`.
    Probe,
}

impl Surface {
    fn for_path(path: &str) -> Self {
        match path {
            "/health" | "/ready" => Self::Probe,
            "/oauth/token" | "/oauth/authorize" => Self::Oauth,
            _ if path.starts_with("/rpc") => Self::Rpc,
            _ if path.starts_with("/api/v1/admin/") => Self::Admin,
            _ if path.starts_with("/api/v1/explorer/") => Self::Explorer,
            _ => Self::Rest,
        }
    }

    /// The errors of the layers and extractors, which every operation of the surface can answer with: an unknown query
    /// parameter, missing credentials, a body that is too long, a panic, an instance that is starting or has no current
    /// policy.
    fn common_errors(self, has_body: bool, needs_token: bool) -> Vec<ErrorCode> {
        let mut codes = vec![ErrorCode::Internal];
        if self != Self::Probe {
            codes.push(ErrorCode::Unavailable);
        }
        if matches!(self, Self::Admin | Self::Explorer | Self::Rest) {
            codes.push(ErrorCode::BadRequest);
            if has_body {
                codes.push(ErrorCode::PayloadTooLarge);
            }
        }
        if matches!(self, Self::Admin | Self::Explorer) || needs_token {
            codes.extend([ErrorCode::Unauthorized, ErrorCode::Forbidden]);
        }
        if self == Self::Admin {
            codes.push(ErrorCode::RateLimited);
        }
        codes
    }

    /// The schemas of an error that its handler does not describe.
    fn error_schemas(self, path: &str, status: &str) -> &'static [&'static str] {
        const ENVELOPE: &str = "JSONRPCResponseEnvelope";
        match (self, status) {
            (Self::Rpc, "401" | "500") => &["APIError"],
            // While the instance starts, no call is read.
            (Self::Rpc, "503") => &[ENVELOPE, "APIError"],
            // A request that is no WebSocket handshake.
            (Self::Rpc, "400") if path == "/rpc/ws" => &[ENVELOPE, "APIError"],
            // An unknown URL is answered as an unknown path.
            (Self::Rpc, "404") if path.starts_with("/rpc/u/") => &[ENVELOPE, "APIError"],
            (Self::Rpc, _) => &[ENVELOPE],
            (Self::Admin | Self::Explorer | Self::Rest | Self::Oauth | Self::Probe, _) => &["APIError"],
        }
    }
}

/// The routes that browsers are sent to: their errors are pages for them.
const NAVIGATED: [&str; 2] = ["/oauth/authorize", "/oauth/session/{id}/restart"];

fn reference(schema: &str) -> Value {
    json!({ "$ref": format!("#/components/schemas/{schema}") })
}

/// The content of an error with one of these bodies. Every `APIError` is also served as problem details.
fn error_content(schemas: &[&str]) -> Map<String, Value> {
    let schema = match schemas {
        [only] => reference(only),
        _ => json!({ "oneOf": schemas.iter().map(|schema| reference(schema)).collect::<Vec<_>>() }),
    };
    let mut content = Map::new();
    content.insert("application/json".into(), json!({ "schema": schema }));
    if schemas.contains(&"APIError") || schemas.contains(&"OAuthOrAPIError") {
        let problem = json!({ "schema": reference("ProblemDetails") });
        content.insert("application/problem+json".into(), problem);
    }
    content
}

/// The headers of an error status.
fn error_headers(surface: Surface, status: &str) -> Option<Value> {
    match status {
        "401" => Some(json!({ "WWW-Authenticate": {
            "description": "The scheme, and what is wrong with the token.", "schema": { "type": "string" },
        } })),
        "429" | "503" if surface != Surface::Probe => Some(json!({ "Retry-After": {
            "description": "Seconds to wait before the next attempt.", "schema": { "type": "integer" },
        } })),
        _ => None,
    }
}

/// The shared responses of all error statuses in use.
fn error_responses(used: &BTreeSet<&'static str>) -> Value {
    let response = |status: &str, description: &str| {
        let mut content = error_content(&["APIError"]);
        for (media, example) in [
            ("application/json", "APIError"),
            ("application/problem+json", "ProblemDetails"),
        ] {
            if let Some(Value::Object(media)) = content.get_mut(media) {
                media.insert("examples".into(), api_examples::references(&[example]));
            }
        }
        let mut response = json!({ "description": description, "content": content });
        if let (Some(headers), Some(members)) = (error_headers(Surface::Rest, status), response.as_object_mut()) {
            members.insert("headers".into(), headers);
        }
        response
    };
    ERRORS
        .iter()
        .filter(|(_, name, _)| used.contains(name))
        .map(|(status, name, description)| ((*name).to_owned(), response(status, description)))
        .collect::<Map<_, _>>()
        .into()
}

/// Completes a response: the description of its status, and for an error its bodies, media types and headers. An error
/// of which its handler says nothing becomes the shared response, whose name is returned.
fn complete_response(surface: Surface, path: &str, status: &str, response: &mut Value) -> Option<&'static str> {
    let members = response.as_object_mut()?;
    let error = ERRORS.iter().find(|(code, ..)| *code == status);
    let described = members
        .get("content")
        .and_then(|content| content.pointer("/application~1json/schema/$ref"))
        .and_then(Value::as_str)
        .and_then(|schema| schema.rsplit('/').next())
        .map(str::to_owned);
    let has_description = |text: &Value| text.as_str().is_some_and(|text| !text.is_empty());
    let is_described = members.get("description").is_some_and(has_description);
    if let Some((_, name, _)) = error {
        let schemas = match (surface, described.as_deref(), status) {
            (_, None | Some("APIError"), _) => surface.error_schemas(path, status).to_vec(),
            // The layers before the handler answer these as for every route.
            (Surface::Oauth, Some("OAuthErrorResponse"), "403" | "429" | "500" | "503") => vec!["OAuthOrAPIError"],
            // The layers before the handler answer as for every route.
            (Surface::Admin, Some(body), _) => vec![body, "APIError"],
            (_, Some(body), _) => vec![body],
        };
        let is_page = NAVIGATED.contains(&path);
        if schemas == ["APIError"] && !is_described && !is_page && surface != Surface::Rpc {
            *response = json!({ "$ref": format!("#/components/responses/{name}") });
            return Some(name);
        }
        let mut content = error_content(&schemas);
        if is_page {
            content.insert("text/html".into(), json!({ "schema": { "type": "string" } }));
        }
        members.insert("content".into(), content.into());
        if let Some(headers) = error_headers(surface, status) {
            members.insert("headers".into(), headers);
        }
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
    if status == "201" {
        let location = json!({ "description": "The path of what was created.", "schema": { "type": "string" } });
        members.insert("headers".into(), json!({ "Location": location }));
    }
    None
}

/// The descriptions of path parameters, by the end of the path that they stand in.
const PARAMETERS: &[(&str, &str)] = &[
    ("/orgs/{org_id}", "The organization's id."),
    ("/in/{org_id}", "The organization in which the call is made."),
    ("/rpc/{org_id}", "The organization to act in: its id or its slug."),
    ("/groups/{group_id}", "The group's id."),
    ("/grants/{group_id}", "The id of the group that holds the grant."),
    ("/users/{user_id}", "The user's id."),
    ("/memberships/{membership_id}", "The membership's id."),
    ("/contracts/{address}", "The contract's address."),
    ("/by-address/{address}", "The contract's address."),
    ("/shared-infrastructure/{address}", "The shared contract's address."),
    ("/linked-addresses/{address}", "The linked address."),
    ("/addresses/{address}", "The linked address."),
    ("/approved-code/{hash}", "The Keccak-256 hash of the creation code."),
    ("/sessions/{session_id}", "The session's id, from the list."),
    (
        "/directory-tenants/{id}",
        "The id of the list entry, not the directory's own tenant id.",
    ),
    ("/legal-holds/{id}", "The hold's id."),
    ("/convictions/{id}", "The id from the list of withheld transactions."),
    ("/suspensions/{id}", "The id from the list of suspensions."),
    ("/quarantines/{id}", "The id from the list of quarantines."),
    ("/rpc-urls/{id}", "The id of the personal URL, which is not its secret."),
    ("/session/{id}", "The session's id."),
    ("/sessions/{id}", "The session's id, from the list."),
];

/// Describes the path parameters that their handler does not describe.
fn describe_parameters(path: &str, operation: &mut Map<String, Value>) {
    let parameters = operation.get_mut("parameters").and_then(Value::as_array_mut);
    for parameter in parameters.into_iter().flatten().filter_map(Value::as_object_mut) {
        let name = parameter.get("name").and_then(Value::as_str).unwrap_or_default();
        let ending = format!("{{{name}}}");
        let text = PARAMETERS
            .iter()
            .find(|(place, _)| place.ends_with(&ending) && path.contains(place));
        if let Some((_, text)) = text {
            let description = parameter.entry("description").or_insert(Value::Null);
            if description.as_str().is_none_or(str::is_empty) {
                *description = (*text).into();
            }
        }
    }
}

/// Removes rule ids from every description.
fn remove_rules(value: &mut Value) {
    match value {
        Value::Object(members) => {
            if let Some(Value::String(text)) = members.get_mut("description") {
                *text = without_rules(text);
            }
            members.values_mut().for_each(remove_rules);
        }
        Value::Array(items) => items.iter_mut().for_each(remove_rules),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
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
            .or(name.strip_prefix("ExplorerListResponse_"))
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
                "code": { "$ref": "#/components/schemas/ErrorCode", "description": "A stable code for programs." },
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

    fn document() -> Value {
        serde_json::from_str(&api_document().unwrap()).unwrap()
    }

    /// Follows a reference to a component.
    fn resolved<'a>(document: &'a Value, value: &'a Value) -> &'a Value {
        value["$ref"].as_str().map_or(value, |path| {
            document
                .pointer(path.trim_start_matches('#'))
                .unwrap_or_else(|| panic!("{path}"))
        })
    }

    /// Each operation has security requirements, a known tag, and an id of its own; each parameter and each response
    /// has a description; each error has a body, and each `APIError` is served as problem details, too.
    #[test]
    fn every_operation_is_complete() {
        let (whole, mut document) = (document(), document());
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
            let is_text = |value: &Value| value.as_str().is_some_and(|text| !text.trim().is_empty());
            for parameter in operation
                .get("parameters")
                .and_then(Value::as_array)
                .into_iter()
                .flatten()
            {
                assert!(is_text(&parameter["description"]), "{method} {path}: {parameter}");
            }
            let responses = operation["responses"].as_object().unwrap();
            for (status, response) in responses {
                let response = resolved(&whole, response);
                assert!(is_text(&response["description"]), "{method} {path} {status}");
                if status.as_str() < "400" {
                    continue;
                }
                let schema = &response["content"]["application/json"]["schema"];
                assert!(schema.is_object(), "{method} {path} {status} has no body");
                let is_api_error = schema.to_string().contains("APIError\"");
                let problem = &response["content"]["application/problem+json"]["schema"];
                assert_eq!(problem.is_object(), is_api_error, "{method} {path} {status}");
            }
            assert!(responses.contains_key("500"), "{method} {path}");
            assert!(path == "/health" || responses.contains_key("503"), "{method} {path}");
            let is_rest = path.starts_with("/api/");
            assert!(
                !is_rest || !operation.contains_key("requestBody") || responses.contains_key("413"),
                "{method} {path}"
            );
        }
        assert!(count > 100);
    }

    /// Rule ids are for readers of the code.
    #[test]
    fn no_description_names_a_rule() {
        fn check(at: &str, value: &Value) {
            match value {
                Value::Object(members) => {
                    for (name, value) in members {
                        if let (true, Value::String(text)) = (matches!(&**name, "description" | "summary"), value) {
                            let words = text.split(|c: char| !c.is_ascii_alphanumeric() && !matches!(c, '-' | '/'));
                            let named: Vec<_> = words.filter(|word| is_rule(word)).collect();
                            let standards = ["SHA-", "UTF-", "P-", "EIP", "ERC", "RFC", "S256"];
                            let named: Vec<_> = named
                                .into_iter()
                                .filter(|word| !standards.iter().any(|standard| word.starts_with(standard)))
                                .filter(|word| !word.chars().all(|c| c.is_ascii_digit() || c == '-'))
                                .collect();
                            assert!(named.is_empty(), "{at}: {named:?} in {text:?}");
                            assert!(
                                !text.contains("decision ") || !text.contains("(decision"),
                                "{at}: {text:?}"
                            );
                        }
                        check(&format!("{at}/{name}"), value);
                    }
                }
                Value::Array(items) => items.iter().for_each(|value| check(at, value)),
                Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
            }
        }
        check("", &document());
    }

    /// The codes of an error are a closed list.
    #[test]
    fn the_codes_of_errors_are_a_closed_list() {
        let document = document();
        let schemas = &document["components"]["schemas"];
        let words: Vec<_> = ErrorCode::ALL.iter().map(|code| code.as_str()).collect();
        assert_eq!(schemas["ErrorCode"]["enum"], json!(words));
        for body in ["APIError", "ProblemDetails"] {
            assert!(
                schemas[body]["properties"]["code"]
                    .to_string()
                    .contains("schemas/ErrorCode"),
                "{body}"
            );
        }
    }
}
