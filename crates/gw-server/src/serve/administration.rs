//! The thread of the admin API.
//!
//! The admin API returns long lists, and reads, masks and serializes each without yielding. On the threads that serve
//! calls, a dozen such requests would block all calls. On a separate thread, administrators wait only for each other
//! (spec/85).

use anyhow::Context as _;
use axum::{
    Router,
    extract::Request,
    middleware::{Next, from_fn},
    response::IntoResponse as _,
};
use gw_http::ApiError;
use tokio::runtime::{Builder, Runtime};
use tokio_util::task::AbortOnDropHandle;
use tracing::Instrument as _;

/// One thread with its own runtime.
#[derive(Debug)]
pub(super) struct AdminThread(Option<Runtime>);

impl AdminThread {
    pub(super) fn start() -> anyhow::Result<Self> {
        let runtime = Builder::new_multi_thread()
            .worker_threads(1)
            .thread_name("administration")
            .enable_all()
            .build();
        Ok(Self(Some(
            runtime.context("the thread of the admin API cannot be started")?,
        )))
    }

    /// Wraps the routes so that their handlers run on this thread. If the client disconnects, its request is aborted.
    pub(super) fn offload(&self, routes: Router) -> Router {
        let Some(runtime) = &self.0 else { return routes };
        let handle = runtime.handle().clone();
        routes.layer(from_fn(move |request: Request, next: Next| {
            let task = handle.spawn(next.run(request).in_current_span());
            async move {
                let response = AbortOnDropHandle::new(task).await;
                response.unwrap_or_else(|_| ApiError::internal().into_response())
            }
        }))
    }
}

impl Drop for AdminThread {
    fn drop(&mut self) {
        // A runtime must not be dropped in async code. Tasks that must finish are in the task tracker.
        if let Some(runtime) = self.0.take() {
            runtime.shutdown_background();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use axum::{body::Body, routing::get};
    use std::thread;
    use tower::ServiceExt as _;

    async fn get_text(routes: &Router, path: &str) -> (u16, String) {
        let request = Request::get(path).body(Body::empty()).unwrap();
        let response = routes.clone().oneshot(request).await.unwrap();
        let status = response.status().as_u16();
        let body = axum::body::to_bytes(response.into_body(), 1 << 20).await.unwrap();
        (status, String::from_utf8(body.to_vec()).unwrap())
    }

    async fn panics() -> String {
        panic!("a handler panics")
    }

    /// Spec/85: a long list of an administrator does not delay calls.
    #[tokio::test(flavor = "current_thread")]
    async fn spec85_admin_routes_run_on_their_own_thread() {
        let administration = AdminThread::start().unwrap();
        let name = || async { thread::current().name().unwrap_or_default().to_owned() };
        let routes = Router::new().route("/name", get(name)).route("/panic", get(panics));
        let routes = administration.offload(routes);
        assert_eq!(get_text(&routes, "/name").await, (200, "administration".to_owned()));
        assert_eq!(
            get_text(&routes, "/panic").await.0,
            500,
            "a panic ends one request only"
        );
        assert_eq!(get_text(&routes, "/name").await.0, 200);
    }
}
