//! Makes the circuit and keys of the tests' wallet if necessary, prints where they are, and proves posted witnesses
//! until standard input closes.

use gw_testkit::wallet::{Kit, prover_url};
use std::io::{Read as _, Write as _};

fn main() -> std::io::Result<()> {
    let kit = Kit::prepare();
    let settings = serde_json::json!({
        "GW_PROVER_URL": prover_url(&kit),
        "GW_CIRCUIT": kit.circuit(),
        "verification_key": kit.verification_key(),
    });
    writeln!(std::io::stdout(), "{settings}")?;
    std::io::stdin().read_to_end(&mut Vec::new()).map(drop)
}
