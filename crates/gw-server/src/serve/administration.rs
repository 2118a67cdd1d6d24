//! The thread of the admin API.
//!
//! Its lists are long, and each is read, masked and written in one go. On the threads that serve calls a dozen of them would
//! hold up everybody; on one of their own administrators wait for each other only (spec/85).

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

/// One thread with its runtime.
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

    /// The same routes, carried out on this thread. Like any request, one whose client goes away ends.
    pub(super) fn carry_out(&self, routes: Router) -> Router {
        let Some(runtime) = &self.0 else { return routes };
        let handle = runtime.handle().clone();
        routes.layer(from_fn(move |request: Request, next: Next| {
            let work = handle.spawn(next.run(request).in_current_span());
            async move {
                let answer = AbortOnDropHandle::new(work).await;
                answer.unwrap_or_else(|_| ApiError::internal().into_response())
            }
        }))
    }
}

impl Drop for AdminThread {
    fn drop(&mut self) {
        // What had to end in order was waited for before.
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

    async fn asked(routes: &Router, path: &str) -> (u16, String) {
        let request = Request::get(path).body(Body::empty()).unwrap();
        let answer = routes.clone().oneshot(request).await.unwrap();
        let status = answer.status().as_u16();
        let body = axum::body::to_bytes(answer.into_body(), 1 << 20).await.unwrap();
        (status, String::from_utf8(body.to_vec()).unwrap())
    }

    async fn panics() -> String {
        panic!("as it happens")
    }

    /// Spec/85: however long an administrator's list takes, calls go on.
    #[tokio::test(flavor = "current_thread")]
    async fn spec85_routes_are_carried_out_on_a_thread_of_their_own() {
        let administration = AdminThread::start().unwrap();
        let name = || async { thread::current().name().unwrap_or_default().to_owned() };
        let routes = Router::new().route("/name", get(name)).route("/panic", get(panics));
        let routes = administration.carry_out(routes);
        assert_eq!(asked(&routes, "/name").await, (200, "administration".to_owned()));
        assert_eq!(asked(&routes, "/panic").await.0, 500, "a panic is one request's");
        assert_eq!(asked(&routes, "/name").await.0, 200);
    }
}
