//! The whole pipeline behind `/rpc`, from the bytes of a request to the bytes of its answer, before a node that says
//! anything. What must hold stands with the tests that share it.
#![no_main]

#[allow(dead_code)]
#[path = "../../crates/gw-rpc/tests/it/fuzz_pipeline.rs"]
mod fuzz_pipeline;
#[allow(dead_code)]
#[path = "../../crates/gw-rpc/tests/it/world.rs"]
mod world;

use fuzz_pipeline::PipelineFuzz;
use libfuzzer_sys::fuzz_target;
use std::sync::OnceLock;
use tokio::runtime::Runtime;

static WORLD: OnceLock<(Runtime, PipelineFuzz)> = OnceLock::new();

fuzz_target!(|bytes: &[u8]| {
    let (runtime, assault) = WORLD.get_or_init(|| {
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
        let assault = runtime.block_on(PipelineFuzz::start());
        (runtime, assault)
    });
    runtime.block_on(assault.one(bytes));
});
