//! Sealer, claim and outbox (spec/70 rules 3, 13 and 15, HD25; RL1, RL3, RL4, RL6): how records get into the audit
//! store.
//!
//! Code: `gw-server/src/workers/sealer`, `gw-store/src/audit`. Mutations leave a row in the outbox of the policy store;
//! calls leave a record in one of two streams of the journal. Sealers move both into chains of the audit store: a
//! sealer reads a row, inserts its entry if the chain ends where expected and the claim's fence is the newest, reads
//! the store back, and marks the row as sealed; the row is kept. A sealer may die at any point; its lease expires and
//! another sealer continues. Meanwhile an operator restores an older policy store or audit store, an insert is
//! acknowledged and not stored, or a chain's end is altered.
//!
//! Invariants: no record is sealed twice; an acknowledged record whose chain is not blocked ends in the store, or an
//! alarm names its id; a blocked chain does not block others, and is reported.
//!
//! This module holds the state; `steps` changes it, and `checks` runs the model.
//!
//! Sizes: two sealers on the outbox, up to three mutations and two calls, one or two of the faults at a time.

mod checks;
mod steps;

use std::collections::BTreeSet;

/// Names of the properties.
const ONCE: &str = "no record is sealed twice";
const ALL: &str = "an acknowledged record is sealed or named by an alarm";
const TOLD: &str = "a blocked chain is told of";
/// The chains: one of mutations, two of the journal's streams.
const ADMIN: usize = 0;
const STREAMS: [usize; 2] = [1, 2];

#[derive(Clone, Copy, Debug)]
struct Rules {
    /// Waiting rows are those not marked as sealed, after comparison with the entry under their id. Otherwise: those
    /// above the highest sealed id, deleted once sealed.
    by_row: bool,
    /// Rows and marks advance only after the entry was read back from the store.
    reads_back: bool,
    /// A chain's end is compared with the confirmed one while the sealer runs, not only at start.
    compares_live: bool,
    /// A chain that cannot continue does not hold up others.
    independent: bool,
    /// Ids known outside the policy store are raised in it before it accepts the first mutation.
    raises_before_serving: bool,
    /// Kept rows are compared with the store again before they are deleted, not only when a sealer takes the chain.
    compares_kept: bool,
    /// An insert requires the claim's holder, not only its fence: a restored audit store issues fences again.
    compares_holder: bool,
    sizes: Sizes,
}

#[derive(Clone, Copy, Debug)]
struct Sizes {
    mutations: u8,
    /// Number of calls in each stream.
    calls: [u8; 2],
    crashes: u8,
    takeovers: u8,
    policy_restores: u8,
    audit_restores: u8,
    phantoms: u8,
    jams: u8,
    forgets: u8,
}

const NONE: Sizes = Sizes {
    mutations: 0,
    calls: [0, 0],
    crashes: 0,
    takeovers: 0,
    policy_restores: 0,
    audit_restores: 0,
    phantoms: 0,
    jams: 0,
    forgets: 0,
};
/// The rules of the sealer.
const NEW: Rules = Rules {
    by_row: true,
    reads_back: true,
    compares_live: true,
    independent: true,
    raises_before_serving: true,
    compares_kept: true,
    compares_holder: true,
    sizes: NONE,
};
/// None of the rules.
const OLD: Rules = Rules {
    by_row: false,
    reads_back: false,
    compares_live: false,
    independent: false,
    raises_before_serving: false,
    compares_kept: false,
    compares_holder: false,
    sizes: NONE,
};

/// A record: the id of its row, and its content.
type Record = (u8, u8);

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Policy {
    /// Rows of the outbox, and whether they are marked as sealed.
    rows: Vec<(Record, bool)>,
    last_id: u8,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Audit {
    chains: [Vec<Record>; 3],
    fence: u8,
    holder: usize,
    /// The chain whose end was altered: it cannot be continued.
    jammed: Option<usize>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
struct Sealer {
    fence: Option<u8>,
    known: Option<Known>,
    stage: Stage,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Known {
    /// The chain as known to the sealer; stands for the hash of its end.
    chain: Vec<Record>,
    /// The highest sealed id.
    newest: u8,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
enum Stage {
    #[default]
    Rest,
    Insert(Record),
    ReadBack(Record),
    Mark(Record),
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct State {
    policy: Policy,
    policy_backup: Option<Policy>,
    audit: Audit,
    audit_backup: Option<Audit>,
    /// The records of the journal's two streams, which are kept.
    journal: [Vec<Record>; 2],
    /// Number of records per stream that count as sealed.
    marks: [usize; 2],
    /// Whether an insert per stream awaits its read-back.
    inserted: [bool; 2],
    sealers: [Sealer; 2],
    /// The highest committed id known outside the policy store.
    outside: u8,
    acknowledged: BTreeSet<Record>,
    /// Ids that an alarm named.
    named: BTreeSet<u8>,
    blocked: Option<usize>,
    next: u8,
    left: Left,
}

/// Events that may still happen.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Left {
    mutations: u8,
    calls: [u8; 2],
    crashes: u8,
    takeovers: u8,
    policy_restores: u8,
    audit_restores: u8,
    phantoms: u8,
    jams: u8,
    forgets: u8,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Step {
    Mutate,
    Call(usize),
    BackUpPolicy,
    BackUpAudit,
    /// The service is stopped for this.
    RestorePolicy,
    RestoreAudit,
    /// The next insert is acknowledged and not stored.
    Phantom {
        sealer: usize,
    },
    PhantomOfStream(usize),
    Jam(usize),
    /// A sealed row was kept long enough and is deleted.
    Forget,
    Crash {
        sealer: usize,
    },
    Claim {
        sealer: usize,
    },
    Look {
        sealer: usize,
    },
    Insert {
        sealer: usize,
    },
    ReadBack {
        sealer: usize,
    },
    Mark {
        sealer: usize,
    },
    Compare {
        sealer: usize,
    },
    InsertOfStream(usize),
    MarkOfStream(usize),
    CompareStream(usize),
    Alarm(usize),
}
