//! The record of a request, and the answer when it cannot be written.

use crate::http_context::{World, send};
use axum::{
    Router,
    extract::Request,
    middleware::{Next, from_fn},
    routing::{get, post},
};
use gw_http::RequestRecorder;
use gw_journal::{Journal, JournalConfig};
use gw_types::{Clock, Seconds};
use std::{path::Path, sync::Arc};
use tokio_util::task::TaskTracker;

fn journal(world: &World, dir: &Path) -> Arc<Journal> {
    let config = JournalConfig {
        dir: dir.to_owned(),
        holder: "the test".to_owned(),
        cluster: "test".to_owned(),
        checkpoint_key: [7; 32],
        max_bytes: 8 << 20,
        segment_bytes: 1 << 20,
        retain_bytes: 8 << 20,
        retain_for: Seconds(3600),
    };
    let clock = Arc::clone(&world.clock) as Arc<dyn Clock>;
    let (journal, _) = Journal::open(config, clock, Arc::clone(&world.http_context.entropy)).unwrap();
    Arc::new(journal)
}

fn app(world: &World, journal: &Arc<Journal>) -> Router {
    let (context, journal, tasks) = (Arc::clone(&world.http_context), Arc::clone(journal), TaskTracker::new());
    Router::new()
        .route("/change", post(|| async { "changed" }))
        .route("/read", get(|| async { "read" }))
        .layer(from_fn(move |request: Request, next: Next| {
            let (context, journal, tasks) = (Arc::clone(&context), Arc::clone(&journal), tasks.clone());
            async move {
                let recorder = RequestRecorder {
                    context: &context,
                    journal: &journal,
                    tasks: &tasks,
                };
                recorder.record(request, next, |_, _| {}).await
            }
        }))
}

/// HD22: the record of a change cannot be written after the change was made. The answer does not claim that nothing
/// happened.
#[tokio::test]
async fn hd22_a_change_without_a_record_is_answered_as_one_that_may_stand() {
    let world = World::new();
    let folder = tempfile::tempdir().unwrap();
    let dir = folder.path().join("journal");
    let journal = journal(&world, &dir);
    let app = app(&world, &journal);
    assert_eq!(send(&app, "10.0.0.1", "POST", "/change", &[]).await.status, 200);
    std::fs::rename(&dir, folder.path().join("moved")).unwrap();
    let made = send(&app, "10.0.0.1", "POST", "/change", &[]).await;
    assert_eq!(
        made.refusal(),
        (
            503,
            "audit unavailable; the change may stand: read it back before repeating it"
        )
    );
    // By now the journal admits nothing, so nothing happens.
    let refused = send(&app, "10.0.0.1", "POST", "/change", &[]).await;
    assert_eq!(refused.refusal(), (503, "audit unavailable"));
    let read = send(&app, "10.0.0.1", "GET", "/read", &[]).await;
    assert_eq!(read.refusal(), (503, "audit unavailable"));
}
