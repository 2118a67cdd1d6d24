//! The pages at `/` and `/view-as`.

use crate::world::{Answer, Browser, World};

#[track_caller]
fn assert_nothing_inline(page: &Answer) {
    let policy = page.header("content-security-policy").unwrap();
    assert!(policy.starts_with("default-src 'none'; script-src 'self'"), "{policy}");
    assert!(!policy.contains("unsafe"), "{policy}");
    for inline in [
        "<script>",
        "<style",
        " style=",
        " onclick=",
        "http://",
        "https://",
        "javascript:",
    ] {
        assert!(!page.body.contains(inline), "{inline}");
    }
    assert_eq!(page.header("x-frame-options"), Some("DENY"));
}

#[tokio::test]
async fn the_pages_load_their_own_files_only_and_nothing_inline() {
    let world = World::new().await;
    for (target, files) in [
        (
            "/",
            [
                ("/explorer.js", "text/javascript; charset=utf-8"),
                ("/explorer.css", "text/css; charset=utf-8"),
                ("/explorer.svg", "image/svg+xml"),
            ],
        ),
        (
            "/view-as?did=did:test:a&org_id=x",
            [
                ("/explorer-view-as.js", "text/javascript; charset=utf-8"),
                ("/explorer.css", "text/css; charset=utf-8"),
                ("/explorer.svg", "image/svg+xml"),
            ],
        ),
    ] {
        let page = world.get(target).await.expect(200);
        assert_nothing_inline(&page);
        for (file, content_type) in files {
            assert!(page.body.contains(file.trim_start_matches('/')), "{file}");
            assert_eq!(
                world.get(file).await.expect(200).header("content-type"),
                Some(content_type)
            );
        }
    }
    for (file, content_type) in [
        ("/explorer-lock.svg", "image/svg+xml"),
        ("/explorer-shared.js", "text/javascript; charset=utf-8"),
    ] {
        let answer = world.get(file).await.expect(200);
        assert_eq!(answer.header("content-type"), Some(content_type));
    }
    assert!(world.gateway.take_received().is_empty());
}

/// E4: nothing is cached between viewers. The pages are the same bytes for everybody, and contain no name.
#[tokio::test]
async fn e4_pages_contain_nothing_of_a_viewer_and_are_not_stored() {
    let world = World::new().await;
    let mut browser = Browser::default();
    browser.sign_in(&world, 1, 900).await;
    for target in ["/", "/view-as"] {
        let (own, others) = (browser.get(&world, target).await, world.get(target).await);
        assert_eq!(own.body, others.body, "{target}");
        assert_eq!(own.header("cache-control"), Some("no-store"));
    }
    for target in ["/api/auth/status", "/api/blocks"] {
        world.gateway.json("/api/v1/explorer/blocks", 200, "[]");
        let answer = browser.get(&world, target).await.expect(200);
        assert_eq!(answer.header("cache-control"), Some("no-store"), "{target}");
    }
}

#[tokio::test]
async fn e6_there_is_no_websocket() {
    let world = World::new().await;
    let headers = [("connection", "upgrade"), ("upgrade", "websocket")];
    assert_eq!(world.send("GET", "/ws", &headers, "").await.status, 404);
}
