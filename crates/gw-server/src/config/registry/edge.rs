//! Listeners, public addresses and trusted networks.

use super::NARROW;
use crate::config::{
    kind,
    variable::{Section::Edge, Variable},
};
use ipnet::IpNet;
use std::net::{IpAddr, SocketAddr};
use url::Url;

registry! {
    /// TCP port of the public listener.
    PORT: u16 = Variable::new(Edge, &kind::PORT).default("8080");
    /// Address of the public listener.
    BIND_ADDRESS: IpAddr = Variable::new(Edge, &kind::ADDRESS).default_by_environment("0.0.0.0", "127.0.0.1");
    /// Second listener for `/metrics`, readiness details and the admin API; if set, the public listener no longer
    /// serves them. Of `ledger-gateway indexer` it is the only listener; without it, that listens on loopback and PORT.
    INTERNAL_BIND_ADDR: SocketAddr = Variable::new(Edge, &kind::SOCKET).rule("another port than PORT");
    /// Host names under which `/metrics`, the details of `/ready` and all routes of the internal listener answer, in
    /// addition to the local machine, to the IP address of that listener (to every IP address if it listens on all)
    /// and, without INTERNAL_BIND_ADDR, to the host of BASE_URL. A request for another host is refused, so that no web
    /// page reads them by a name that its author points here.
    INTERNAL_HOSTS: Vec<String> = Variable::new(Edge, &kind::HOSTS);
    /// Public address of this service: the issuer of its tokens and the base of callback addresses.
    BASE_URL: Url = Variable::new(Edge, &kind::WEB)
        .derived("`http://localhost:<PORT>`")
        .required()
        .rule("https in production");
    /// Address of the web front end.
    FRONTEND_URL: Url = Variable::new(Edge, &kind::WEB).rule("https in production");
    /// Browser origins that may call with credentials, in addition to the origins of BASE_URL and FRONTEND_URL.
    CORS_ALLOWED_ORIGINS: Vec<kind::ListedOrigin> = Variable::new(Edge, &kind::ORIGINS)
        .derived("none in production, `*` elsewhere")
        .rule("`*` means every origin of this machine and is rejected in production");
    /// Proxies whose forwarding headers are trusted.
    TRUSTED_PROXIES: Vec<IpNet> = Variable::new(Edge, &kind::NETWORKS).rule(NARROW);
    /// Networks that count as internal, in addition to the private ranges.
    TRUSTED_INTERNAL_CIDRS: Vec<IpNet> = Variable::new(Edge, &kind::NETWORKS).rule(NARROW);
}
