//! The client of third-party hosts.

use gw_http::{ConnectionPool, HttpClient};
use std::{io, time::Duration};

/// Creates a client for the nodes, gateways and documents of third parties.
///
/// # Errors
/// If the certificates that this machine trusts cannot be read.
pub(crate) fn third_party_client() -> Result<HttpClient, io::Error> {
    HttpClient::new(ConnectionPool {
        connect_timeout: Duration::from_secs(3),
        idle_per_host: 4,
        https_only: false,
    })
}
