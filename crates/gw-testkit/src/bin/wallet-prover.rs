//! Makes the circuit and keys of the tests' wallet if need be, says where they are, and proves witnesses posted to it
//! until standard input closes.

use gw_testkit::wallet::{Kit, prover_url};
use std::io::{Read as _, Write as _};

fn main() -> std::io::Result<()> {
    let kit = Kit::prepare();
    let facts = serde_json::json!({
        "GW_PROVER_URL": prover_url(&kit),
        "GW_CIRCUIT": kit.circuit(),
        "verification_key": kit.verification_key(),
    });
    writeln!(std::io::stdout(), "{facts}")?;
    std::io::stdin().read_to_end(&mut Vec::new()).map(drop)
}
