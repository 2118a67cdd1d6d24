//! Limits the number of connections to what the limit of open files (RLIMIT_NOFILE) allows.

use crate::{config::Limits, listener::ConnectionLimits};
use rustix::process::{Resource, getrlimit, setrlimit};

/// Files reserved for databases, the journal, the log, and requests that the gateway itself sends to the node.
const RESERVE: u64 = 256;
/// Fewest connections of the public listener; with fewer the service would be unusable.
const MIN_CONNECTIONS: u64 = 16;

/// How many connections each listener may have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct ListenerLimits {
    pub(super) public: ConnectionLimits,
    pub(super) internal: ConnectionLimits,
}

/// The connection limits of the configuration, reduced if the process cannot open enough files. Raises the soft limit
/// of open files as far as needed and allowed first, and logs a warning if the public limit is reduced.
pub(super) fn connection_limits(configured: &Limits, has_internal: bool) -> ListenerLimits {
    let needed = needed_files(configured, has_internal);
    let limits = limits_for_files(configured, has_internal, raise_open_files(needed));
    if u64::try_from(limits.public.total).is_ok_and(|total| total < u64::from(configured.connections)) {
        tracing::warn!(
            connections = limits.public.total,
            configured = configured.connections,
            needed,
            "the limit of open files allows fewer connections than MAX_CONNECTIONS: raise it to `needed` (`ulimit -n`, \
             LimitNOFILE)"
        );
    }
    limits
}

/// The number of files for the configured limits: two for each public connection (the client and the node), one for
/// each internal connection, and the reserve.
fn needed_files(configured: &Limits, has_internal: bool) -> u64 {
    let internal = if has_internal {
        u64::from(configured.internal_connections)
    } else {
        0
    };
    u64::from(configured.connections)
        .saturating_mul(2)
        .saturating_add(internal)
        .saturating_add(RESERVE)
}

/// Raises the soft limit of open files towards `needed`, and returns the limit; `None` if there is no limit.
fn raise_open_files(needed: u64) -> Option<u64> {
    let limit = getrlimit(Resource::Nofile);
    let current = limit.current?;
    if current >= needed {
        return Some(current);
    }
    let raised = limit.maximum.map_or(needed, |maximum| maximum.min(needed)).max(current);
    let wanted = rustix::process::Rlimit {
        current: Some(raised),
        maximum: limit.maximum,
    };
    Some(if setrlimit(Resource::Nofile, wanted).is_ok() {
        raised
    } else {
        current
    })
}

fn limits_for_files(configured: &Limits, has_internal: bool, files: Option<u64>) -> ListenerLimits {
    let count = |number: u64| usize::try_from(number).unwrap_or(usize::MAX);
    let files = files.unwrap_or(u64::MAX);
    let internal = if has_internal {
        u64::from(configured.internal_connections)
            .min(files / 8)
            .max(MIN_CONNECTIONS / 4)
    } else {
        0
    };
    let available = files.saturating_sub(RESERVE).saturating_sub(internal) / 2;
    let public = u64::from(configured.connections).min(available.max(MIN_CONNECTIONS));
    let per_address = count(u64::from(configured.connections_per_address));
    ListenerLimits {
        public: ConnectionLimits {
            total: count(public),
            per_address,
        },
        // Only the internal network reaches this listener, and one proxy or collector may use all its connections.
        internal: ConnectionLimits {
            total: count(internal),
            per_address: count(internal),
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::kind::Rate;

    const LIMITS: Limits = Limits {
        connections: 16_384,
        connections_per_address: 512,
        internal_connections: 256,
        answer_bytes: 1 << 29,
        answer_bytes_per_caller: 1 << 27,
        concurrent: 50,
        concurrent_anonymous: 50,
        auth: Rate::Off,
        rpc: Rate::Off,
        anonymous: Rate::Off,
        batch: 100,
    };

    #[test]
    fn rl7_connections_leave_files_for_everything_else() {
        let totals = |files| {
            let limits = limits_for_files(&LIMITS, true, files);
            (limits.public.total, limits.internal.total)
        };
        assert_eq!(totals(None), (16_384, 256));
        assert_eq!(totals(Some(needed_files(&LIMITS, true))), (16_384, 256));
        assert_eq!(totals(Some(1024)), (320, 128));
        assert_eq!(totals(Some(64)), (16, 8));
        assert_eq!(limits_for_files(&LIMITS, false, Some(1024)).public.total, 384);
    }
}
