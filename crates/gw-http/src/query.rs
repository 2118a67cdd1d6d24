//! Query strings: parameters as a struct, and rejection of parameters that the API description does not name (HD33,
//! decision 61).

use crate::{error::ApiError, nearest::unknown_parameter};
use axum::{
    extract::{FromRequestParts, MatchedPath, Query, Request, State},
    middleware::Next,
    response::{IntoResponse, Response},
};
use http::{Method, request::Parts};
use serde::de::DeserializeOwned;
use std::{collections::HashMap, sync::Arc};
use utoipa::openapi::{
    OpenApi, RefOr,
    path::{Operation, Parameter, ParameterIn, PathItem},
};

/// The parameters of a query as `T`. Invalid ones are answered with a 400 that names the parameter.
#[derive(Clone, Copy, Debug)]
pub struct QueryParams<T>(pub T);

impl<S: Sync, T: DeserializeOwned> FromRequestParts<S> for QueryParams<T> {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, ApiError> {
        Query::try_from_uri(&parts.uri)
            .map(|Query(value)| Self(value))
            .map_err(|rejection| {
                let text = rejection.body_text();
                let cause = text.split_once("query string: ").map_or(&*text, |(_, cause)| cause);
                ApiError::bad_request(format!("invalid query: {cause}"))
            })
    }
}

/// The operations of one route, each with its parameters.
type Operations = Vec<(Method, Vec<String>)>;

/// The query parameters of every described route.
#[derive(Clone, Debug, Default)]
pub struct KnownQueries(Arc<HashMap<String, Operations>>);

impl KnownQueries {
    /// Reads the parameters from an API description. Routes with one of the `lenient` paths accept any parameter.
    pub fn from_api(api: &OpenApi, lenient: &[&str]) -> Self {
        let paths = api
            .paths
            .paths
            .iter()
            .filter(|(path, _)| !lenient.contains(&path.as_str()));
        Self(Arc::new(
            paths.map(|(path, item)| (path.clone(), operations(item))).collect(),
        ))
    }

    /// Rejects parameters that the route does not have. A route that is not described accepts any.
    ///
    /// # Errors
    ///
    /// 400 that names the parameter and the nearest known one.
    pub fn check(&self, method: &Method, route: &str, query: &str) -> Result<(), ApiError> {
        if query.is_empty() {
            return Ok(());
        }
        let operations = self.0.get(route).or_else(|| self.0.get(&format!("/api/v1{route}")));
        let method = if *method == Method::HEAD { &Method::GET } else { method };
        let operation = operations.into_iter().flatten().find(|(known, _)| known == method);
        let Some((_, known)) = operation else { return Ok(()) };
        let mut names = form_urlencoded::parse(query.as_bytes()).map(|(name, _)| name);
        match names.find(|name| !known.iter().any(|known| **known == **name)) {
            None => Ok(()),
            Some(name) => Err(ApiError::bad_request(unknown_parameter(&name, known))),
        }
    }

    /// Checks the query of a request that is routed already.
    ///
    /// # Errors
    ///
    /// As [`check`](Self::check).
    pub fn check_request(&self, parts: &Parts) -> Result<(), ApiError> {
        let route = parts.extensions.get::<MatchedPath>().map_or("", MatchedPath::as_str);
        self.check(&parts.method, route, parts.uri.query().unwrap_or_default())
    }
}

/// Middleware: rejects unknown query parameters before the handler runs.
pub async fn known_queries(State(known): State<KnownQueries>, request: Request, next: Next) -> Response {
    let (parts, body) = request.into_parts();
    match known.check_request(&parts) {
        Ok(()) => next.run(Request::from_parts(parts, body)).await,
        Err(refusal) => refusal.into_response(),
    }
}

fn operations(item: &PathItem) -> Vec<(Method, Vec<String>)> {
    let shared = item.parameters.as_deref().unwrap_or_default();
    let query_names = |method: Method, operation: &Option<Operation>| {
        let own = operation.as_ref()?.parameters.as_deref().unwrap_or_default();
        let in_query = |parameter: &RefOr<Parameter>| match parameter {
            RefOr::T(own) if own.parameter_in == ParameterIn::Query => Some(own.name.clone()),
            RefOr::T(_) | RefOr::Ref(_) => None,
        };
        Some((method, own.iter().chain(shared).filter_map(in_query).collect()))
    };
    [
        query_names(Method::GET, &item.get),
        query_names(Method::POST, &item.post),
        query_names(Method::PUT, &item.put),
        query_names(Method::DELETE, &item.delete),
        query_names(Method::PATCH, &item.patch),
    ]
    .into_iter()
    .flatten()
    .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use utoipa::openapi::{
        HttpMethod, OpenApiBuilder, PathsBuilder,
        path::{OperationBuilder, ParameterBuilder},
    };

    #[test]
    fn hd33_unknown_query_parameters_are_named() {
        let parameter = |name: &str| {
            ParameterBuilder::new()
                .name(name)
                .parameter_in(ParameterIn::Query)
                .build()
        };
        let in_path = ParameterBuilder::new()
            .name("id")
            .parameter_in(ParameterIn::Path)
            .build();
        let list = OperationBuilder::new()
            .parameter(parameter("search"))
            .parameter(parameter("limit"))
            .parameter(in_path);
        let open = OperationBuilder::new().parameter(parameter("code"));
        let paths = PathsBuilder::new()
            .path("/api/v1/users/{id}", PathItem::new(HttpMethod::Get, list))
            .path("/oauth/authorize", PathItem::new(HttpMethod::Get, open))
            .build();
        let known = KnownQueries::from_api(&OpenApiBuilder::new().paths(paths).build(), &["/oauth/authorize"]);
        let check = |method, route, query| {
            known
                .check(&method, route, query)
                .map_err(|error| error.text().to_owned())
        };

        assert_eq!(
            check(Method::GET, "/api/v1/users/{id}", "search=x&limit=1&search=y"),
            Ok(())
        );
        let refusal = Err("unknown query parameter `serach`: did you mean `search`?".to_owned());
        assert_eq!(check(Method::GET, "/api/v1/users/{id}", "limit=1&serach=x"), refusal);
        assert_eq!(
            check(Method::HEAD, "/users/{id}", "serach=x"),
            refusal,
            "aliases and HEAD are the same route"
        );
        assert!(
            check(Method::GET, "/api/v1/users/{id}", "id=1").is_err(),
            "the path's are not the query's"
        );
        assert_eq!(check(Method::GET, "/oauth/authorize", "nonce=x"), Ok(()));
        assert_eq!(check(Method::GET, "/not/described", "nonce=x"), Ok(()));
    }
}
