//! The gateway with mock login and the demo; runs in development only (HD19).

use std::process::ExitCode;

fn main() -> ExitCode {
    gw_server::cli::main(gw_server::config::Build::Mock)
}
