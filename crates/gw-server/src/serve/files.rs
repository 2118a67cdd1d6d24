//! How many connections the limit of open files leaves room for.

use super::quota::ConnectionLimits;
use crate::config::Limits;
use rustix::process::{Resource, getrlimit, setrlimit};

/// Files for databases, the journal, the log, and the questions the gateway asks for itself.
const RESERVE: u64 = 256;
/// Fewer connections than these are none.
const FEWEST: u64 = 16;

/// How many connections each listener may have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct ListenerLimits {
    pub(super) public: ConnectionLimits,
    pub(super) internal: ConnectionLimits,
}

/// Those of the configuration, or as many as files can be opened for after the process's own limit was raised as far as
/// it goes. Warns of fewer.
pub(super) fn connection_limits(configured: &Limits, has_internal: bool) -> ListenerLimits {
    let needed = needed(configured, has_internal);
    let limits = bounded(configured, has_internal, open_files(needed));
    if u64::try_from(limits.public.total).is_ok_and(|total| total < u64::from(configured.connections)) {
        tracing::warn!(
            connections = limits.public.total,
            configured = configured.connections,
            needed,
            "the limit of open files leaves room for fewer connections than MAX_CONNECTIONS: raise it to what is needed \
             (`ulimit -n`, LimitNOFILE)"
        );
    }
    limits
}

/// One file for each connection, and one for what its request asks the node.
fn needed(configured: &Limits, has_internal: bool) -> u64 {
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

/// How many files may be open; nothing if there is no limit.
fn open_files(needed: u64) -> Option<u64> {
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

fn bounded(configured: &Limits, has_internal: bool, files: Option<u64>) -> ListenerLimits {
    let count = |number: u64| usize::try_from(number).unwrap_or(usize::MAX);
    let files = files.unwrap_or(u64::MAX);
    let internal = if has_internal {
        u64::from(configured.internal_connections)
            .min(files / 8)
            .max(FEWEST / 4)
    } else {
        0
    };
    let left = files.saturating_sub(RESERVE).saturating_sub(internal) / 2;
    let public = u64::from(configured.connections).min(left.max(FEWEST));
    let per_address = count(u64::from(configured.connections_per_address));
    ListenerLimits {
        public: ConnectionLimits {
            total: count(public),
            per_address,
        },
        // Who reaches it is one network's, and a proxy or collector may be all of it.
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
        let of = |files| {
            let limits = bounded(&LIMITS, true, files);
            (limits.public.total, limits.internal.total)
        };
        assert_eq!(of(None), (16_384, 256));
        assert_eq!(of(Some(needed(&LIMITS, true))), (16_384, 256));
        assert_eq!(of(Some(1024)), (320, 128));
        assert_eq!(of(Some(64)), (16, 8));
        assert_eq!(bounded(&LIMITS, false, Some(1024)).public.total, 384);
    }
}
