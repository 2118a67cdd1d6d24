//! The conditions of readiness: which parts of the gateway must be up.

use super::{
    audit_log::AuditLog,
    explorer::{ExplorerApi, Unavailable},
    ready::{Level, Readiness},
    storage::Storage,
};
use gw_cache::Cache;
use gw_node::Node;
use gw_store::Feed;
use std::sync::{Arc, OnceLock};

/// The parts of the gateway that decide whether it is ready.
#[derive(Clone, Copy, Debug)]
pub(super) struct Conditions<'a> {
    pub(super) storage: &'a Storage,
    pub(super) feed: &'a Feed,
    pub(super) cache: &'a Cache,
    pub(super) audit_log: &'a AuditLog,
    /// Empty until the first node is reached.
    pub(super) node: &'a Arc<OnceLock<Arc<Node>>>,
    pub(super) explorer: &'a ExplorerApi,
}

impl Conditions<'_> {
    /// The readiness of this instance, which `/ready` shows.
    pub(super) fn readiness(self) -> Readiness {
        self.with_explorer(self.with_nodes(self.with_audit_log(self.with_stores(Readiness::new()))))
    }

    fn with_stores(self, readiness: Readiness) -> Readiness {
        readiness
            .with("db", {
                let feed = self.feed.clone();
                move || feed.pin().fresh
            })
            // Shows why `db` is down: not the database is at fault, but the clock of one of the two machines.
            .with("clock", {
                let feed = self.feed.clone();
                move || feed.clocks_agree()
            })
            // Not required: reads still work, and another instance could not write to this database either.
            .showing("writes", {
                let store = self.storage.store.clone();
                move || store.takes_writes()
            })
            // Not required: without the cache logins fail, but everything else works.
            .showing("cache", {
                let cache = self.cache.clone();
                move || cache.is_up()
            })
    }

    fn with_audit_log(self, readiness: Readiness) -> Readiness {
        let AuditLog { journal, trust, health } = self.audit_log;
        readiness
            .with("audit", {
                let journal = Arc::clone(journal);
                move || journal.can_admit()
            })
            // Not required after a chain of the journal was rewritten: the journal buffers its records, and other
            // instances may be attacked in the same way.
            .with_if(
                "sealing",
                {
                    let health = Arc::clone(health);
                    move || health.is_in_step()
                },
                {
                    let health = Arc::clone(health);
                    move || health.must_stop()
                },
            )
            // Not required: the journal buffers records while the audit store is down (spec/70 rule 14).
            .showing("audit_store", {
                let (health, audit) = (Arc::clone(health), self.storage.audit.clone());
                move || health.is_store_reachable() && audit.may_write()
            })
            // Not required: the other instances would have the same finding.
            .showing_level("audit_chain", {
                let (trust, health) = (Arc::clone(trust), Arc::clone(health));
                move || match () {
                    () if trust.alarm.is_raised() => Level::Down,
                    () if trust.alarm.is_verified() && health.is_store_reachable() => Level::Ok,
                    () => Level::Unknown,
                }
            })
    }

    /// Not required: everything else works without the explorer. Not shown if it is off.
    fn with_explorer(self, readiness: Readiness) -> Readiness {
        let explorer = self.explorer.clone();
        if explorer.state().index.err() == Some(Unavailable::NotConfigured) {
            return readiness;
        }
        readiness.showing_level("explorer", move || match explorer.state().index {
            Ok(parts) if !parts.store.is_reachable() => Level::Down,
            Ok(parts) if parts.index.newest_block().is_some() => Level::Ok,
            Ok(_) | Err(Unavailable::Opening | Unavailable::NotConfigured) => Level::Unknown,
            Err(Unavailable::Failed | Unavailable::OtherChain) => Level::Down,
        })
    }

    fn with_nodes(self, readiness: Readiness) -> Readiness {
        readiness
            .with("node", {
                let node = Arc::clone(self.node);
                move || node.get().is_some_and(|node| node.head().is_some())
            })
            .with("tracing", {
                let node = Arc::clone(self.node);
                move || node.get().is_some_and(|node| node.trace_form().is_some())
            })
            .showing_nodes({
                let node = Arc::clone(self.node);
                move || node.get().map(|node| node.statuses()).unwrap_or_default()
            })
    }
}
