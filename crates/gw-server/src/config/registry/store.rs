//! The policy store and the shared cache.

use super::DAY;
use crate::config::{
    kind::{self, number, span, words},
    variable::{Kind, Section::Store, Variable},
};
use gw_types::Secret;
use std::time::Duration;

registry! {
    /// Address of the policy store.
    DATABASE_URL: Secret = Variable::new(Store, &kind::DATABASE)
        .secret()
        .derived("SQLite, `<DATA_DIR>/gateway.db`")
        .required()
        .rule("in production PostgreSQL with a password");
    /// Most open connections to the store.
    DB_MAX_OPEN_CONNS: u32 =
        Variable::new(Store, kind!(u32, "a whole number from 1 to 10000", |t| number(t, 1, 10_000)))
            .default("50");
    /// Longest lifetime of a connection to the store.
    DB_CONN_MAX_LIFETIME: Duration =
        Variable::new(Store, kind!(Duration, "a span from 10s to 24h", |t| span(t, 10, DAY)))
            .default("5m");
    /// Applies migrations at start (`auto`), or only checks that the schema is current (`off`).
    MIGRATE: Migrate = Variable::new(Store, &MIGRATE_KIND).default("auto");
    /// Redis or Valkey server that instances share for pending logins, challenges and limits. Required with several
    /// instances.
    REDIS_URL: Secret = Variable::new(Store, &kind::CACHE)
        .secret()
        .derived("none: kept in the process, for a single instance only")
        .rule("in production with a password");
}

words! {
    /// When schema migrations are applied.
    Migrate, MIGRATE_KIND, "`auto` or `off`" {
        /// By the service at start.
        Auto = "auto",
        /// By an operator before the start.
        Off = "off",
    }
}
