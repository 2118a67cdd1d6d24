//! The configuration of the commands that need the chain and the explorer's database alone: `ledger-gateway indexer`,
//! `explorer reindex` and `explorer status`.
//!
//! They may run where `serve` runs, with its configuration, or in a zone of their own (spec/40 E8) without its secrets.

use super::{
    Build, Environment, Explorer, Node, Operation, Problem, ProcessEnv, Report, Settings, need, registry as var, rules,
    variable::Entry,
};
use gw_chain_store::Location;
use ipnet::IpNet;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};

/// The configuration of the indexer and of the commands on its database.
#[derive(Clone, Debug)]
pub struct IndexerConfig {
    /// The internal address of the read API.
    pub listen: SocketAddr,
    /// Networks that count as internal, besides the private ranges.
    pub internal_networks: Vec<IpNet>,
    /// Host names under which it answers, in addition to the local machine and the listener's address.
    pub internal_hosts: Vec<String>,
    /// Connections to the listener.
    pub connections: u32,
    /// The database.
    pub location: Location,
    /// The most connections to the database.
    pub database_connections: u32,
    /// The indexer.
    pub explorer: Explorer,
    /// The upstream node.
    pub node: Node,
    /// Bytes of large responses of the node held in memory at once.
    pub answer_bytes: u64,
    /// Logs and shutdown.
    pub operation: Operation,
}

impl IndexerConfig {
    /// Reads, checks and parses the configuration. Problems with variables that it does not need are ignored.
    ///
    /// # Errors
    ///
    /// A [`Report`] with every problem, if any value is missing, malformed or breaks a rule.
    pub fn load(env: &ProcessEnv) -> Result<Self, Report> {
        let mut report = Report::default();
        let settings = Settings::read(env, var::all().chain(var::explorer_backend_only()), &mut report);
        rules::check(&settings, Build::Release, &mut report);
        let own: Vec<&str> = var::indexer_all().map(Entry::name).collect();
        // A name that is no variable is a misspelt one in the configuration file.
        report.retain(|name| own.contains(&name) || !var::is_declared(name));
        // It has one listener: the port of the internal one may be PORT.
        if settings.get(&var::INTERNAL_BIND_ADDR).is_some() {
            report.retain(|name| name != var::INTERNAL_BIND_ADDR.name());
        }
        check(&settings, &mut report);
        report.into_result(|| Self::typed(&settings))
    }

    fn typed(settings: &Settings) -> Result<Self, &'static str> {
        let port = need(settings, &var::PORT)?;
        let loopback = SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), port);
        Ok(Self {
            listen: settings.get(&var::INTERNAL_BIND_ADDR).unwrap_or(loopback),
            internal_networks: settings.get(&var::TRUSTED_INTERNAL_CIDRS).unwrap_or_default(),
            internal_hosts: settings.get(&var::INTERNAL_HOSTS).unwrap_or_default(),
            connections: need(settings, &var::MAX_INTERNAL_CONNECTIONS)?,
            location: need(settings, &var::EXPLORER_DATABASE_URL)?,
            database_connections: need(settings, &var::DB_MAX_OPEN_CONNS)?,
            explorer: super::explorer(settings)?,
            node: super::node(settings)?,
            answer_bytes: need(settings, &var::ANSWER_BYTES_MAX)?,
            operation: super::operation(settings)?,
        })
    }
}

/// The rules that the gateway has not.
fn check(settings: &Settings, report: &mut Report) {
    if !settings.is_set(&var::EXPLORER_DATABASE_URL) && !report.names(var::EXPLORER_DATABASE_URL.name()) {
        report.add(Problem::new(var::EXPLORER_DATABASE_URL.name(), "is required"));
    }
    if settings.environment() == Some(Environment::Production) && !settings.is_set(&var::NODE_URL) {
        report.add(Problem::new(var::NODE_URL.name(), "is required in production"));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn load(pairs: &[(&str, &str)]) -> Result<IndexerConfig, String> {
        let base = [("EXPLORER_DATABASE_URL", "sqlite:///var/lib/explorer.db")];
        let pairs: Vec<_> = base.into_iter().chain(pairs.iter().copied()).collect();
        IndexerConfig::load(&ProcessEnv::from_pairs(pairs)).map_err(|report| report.to_string())
    }

    #[test]
    fn x2_it_listens_on_loopback_unless_an_internal_address_is_set() {
        let listen = |pairs| load(pairs).unwrap().listen.to_string();
        assert_eq!(
            listen(&[("BIND_ADDRESS", "0.0.0.0"), ("PORT", "9000")]),
            "127.0.0.1:9000"
        );
        let production = [("ENVIRONMENT", "production"), ("NODE_URL", "http://10.0.0.1")];
        assert_eq!(listen(&production), "127.0.0.1:8080");
        assert_eq!(listen(&[("INTERNAL_BIND_ADDR", "10.0.0.7:8080")]), "10.0.0.7:8080");
        let malformed = load(&[("INTERNAL_BIND_ADDR", "9000")]).unwrap_err();
        assert!(malformed.starts_with("INTERNAL_BIND_ADDR: must be"), "{malformed}");
    }

    #[test]
    fn it_needs_no_variable_of_the_gateway_and_reports_its_own() {
        let of_the_gateway = [
            ("ENVIRONMENT", "production"),
            ("NODE_URL", "http://10.0.0.1"),
            ("JWT_SECRET", "short"),
            ("JWT_REFRESH_SECRET_FILE", "/missing"),
            ("ACCESS_TOKEN_TTL", "never"),
        ];
        load(&of_the_gateway).unwrap();
        assert_eq!(
            load(&[("EXPLORER_CONFIRMATIONS", "-1")]).unwrap_err(),
            "EXPLORER_CONFIRMATIONS: must be a whole number from 0 to 10000, found `-1`"
        );
        assert_eq!(
            load(&[("ENVIRONMENT", "production")]).unwrap_err(),
            "NODE_URL: is required in production"
        );
        let missing = IndexerConfig::load(&ProcessEnv::from_pairs(Vec::<(&str, &str)>::new()));
        assert_eq!(missing.unwrap_err().to_string(), "EXPLORER_DATABASE_URL: is required");
    }
}
