//! The release binary of the gateway.

use std::process::ExitCode;

fn main() -> ExitCode {
    gw_server::cli::main(gw_server::config::Build::Release)
}
