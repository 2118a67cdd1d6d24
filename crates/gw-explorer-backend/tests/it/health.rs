//! The probes.

use crate::world::World;

#[tokio::test]
async fn section_7_probes_are_local_and_503_while_draining() {
    let world = World::new().await;
    for path in ["/health", "/health/live", "/health/ready"] {
        assert_eq!(world.get(path).await.expect(200).json()["status"], "ok", "{path}");
    }
    world.readiness.drain();
    for (path, status) in [("/health", 200), ("/health/live", 200), ("/health/ready", 503)] {
        world.get(path).await.expect(status);
    }
    assert!(world.gateway.take_received().is_empty(), "the gateway is not asked");
}
