//! The development binary of the gateway, with mock login and the demo. It does not run in production (HD19).

use std::process::ExitCode;

fn main() -> ExitCode {
    gw_server::cli::main(gw_server::config::Build::Mock)
}
