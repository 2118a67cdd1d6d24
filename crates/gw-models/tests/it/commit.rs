//! A commit on the one writer connection of SQLite, on a disk that becomes full and free again (RL1, HD24).
//!
//! Code: `gw-store/src/dialect/sqlite.rs` and `tx/mod.rs`. A mutation begins, writes, commits and is acknowledged; at
//! any step the disk may be full, and at any point the process may be killed. A COMMIT that fails for lack of room
//! leaves its transaction open on the connection; the driver then opens the next transaction as a savepoint inside it,
//! and releasing the savepoint succeeds without committing.
//!
//! Invariant: every acknowledged mutation is on disk. Sizes: three mutations, two full disks, one kill.

use crate::check::check;
use stateright::{Model, Property};
use std::collections::BTreeSet;

const MUTATIONS: u8 = 3;
const ACKNOWLEDGED_IS_DURABLE: &str = "what was acknowledged is on disk";
const NEVER_STOPS: &str = "with room on the disk a mutation can be acknowledged";

/// Actions after a failed write, and before the acknowledgement.
#[derive(Clone, Copy, Debug)]
struct Rules {
    /// The connection is dropped after a failed write, together with any open transaction.
    drops_connection: bool,
    /// Before the acknowledgement another connection must see the mutation.
    reads_back: bool,
}

const OLD: Rules = Rules {
    drops_connection: false,
    reads_back: false,
};
const NEW: Rules = Rules {
    drops_connection: true,
    reads_back: true,
};

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Phase {
    Idle,
    Written(u8),
    Committed(u8),
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct State {
    durable: BTreeSet<u8>,
    acknowledged: BTreeSet<u8>,
    refused: u8,
    /// Rows of the open transaction on the connection.
    open: BTreeSet<u8>,
    /// Number of transactions that the driver believes to be open on the connection.
    depth: u8,
    phase: Phase,
    full: bool,
    fills: u8,
    kills: u8,
    next: u8,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Step {
    Begin,
    Commit,
    Answer,
    Fill,
    Free,
    Kill,
}

impl Model for Rules {
    type State = State;
    type Action = Step;

    fn init_states(&self) -> Vec<State> {
        vec![State {
            durable: BTreeSet::new(),
            acknowledged: BTreeSet::new(),
            refused: 0,
            open: BTreeSet::new(),
            depth: 0,
            phase: Phase::Idle,
            full: false,
            fills: 0,
            kills: 0,
            next: 0,
        }]
    }

    fn actions(&self, state: &State, steps: &mut Vec<Step>) {
        match state.phase {
            Phase::Idle if state.next < MUTATIONS => steps.push(Step::Begin),
            Phase::Idle => {}
            Phase::Written(_) => steps.push(Step::Commit),
            Phase::Committed(_) => steps.push(Step::Answer),
        }
        match state.full {
            true => steps.push(Step::Free),
            false if state.fills < 2 => steps.push(Step::Fill),
            false => {}
        }
        if state.kills < 1 {
            steps.push(Step::Kill);
        }
    }

    fn next_state(&self, last: &State, step: Step) -> Option<State> {
        let mut state = last.clone();
        match (step, state.phase) {
            // BEGIN writes nothing, and rows first go to the cache of the connection: only COMMIT needs room.
            (Step::Begin, _) => {
                state.depth += 1;
                state.open.insert(state.next);
                state.phase = Phase::Written(state.next);
                state.next += 1;
            }
            (Step::Commit, Phase::Written(change)) => {
                if state.depth > 1 {
                    // Releases a savepoint.
                    state.depth -= 1;
                    state.phase = Phase::Committed(change);
                } else if state.full {
                    state.refused += 1;
                    state.phase = Phase::Idle;
                    if self.drops_connection {
                        state.drop_connection();
                    }
                } else {
                    state.durable.append(&mut state.open);
                    state.depth = 0;
                    state.phase = Phase::Committed(change);
                }
            }
            (Step::Answer, Phase::Committed(change)) => {
                if self.reads_back && !state.durable.contains(&change) {
                    state.refused += 1;
                    state.drop_connection();
                } else {
                    state.acknowledged.insert(change);
                }
                state.phase = Phase::Idle;
            }
            (Step::Fill, _) => (state.full, state.fills) = (true, state.fills + 1),
            (Step::Free, _) => state.full = false,
            (Step::Kill, _) => {
                state.kills += 1;
                state.drop_connection();
                state.phase = Phase::Idle;
            }
            (Step::Commit | Step::Answer, _) => return None,
        }
        Some(state)
    }

    fn properties(&self) -> Vec<Property<Self>> {
        vec![
            Property::always(ACKNOWLEDGED_IS_DURABLE, |_, state: &State| {
                state.acknowledged.is_subset(&state.durable)
            }),
            // Recovery must not need a restart: with room and without a fault, the next commit succeeds.
            Property::always(NEVER_STOPS, |_, state: &State| {
                state.phase != Phase::Idle || state.full || state.depth == 0
            }),
        ]
    }
}

impl State {
    fn drop_connection(&mut self) {
        self.open.clear();
        self.depth = 0;
    }
}

#[test]
fn rl1_a_failed_commit_left_open_swallows_what_is_acknowledged_after_it() {
    let verdict = check(OLD);
    verdict.breaks(ACKNOWLEDGED_IS_DURABLE);
    verdict.breaks(NEVER_STOPS);
}

#[test]
fn rl1_a_dropped_connection_and_reading_back_lose_nothing() {
    check(NEW).holds(100);
}

/// Each rule alone: with reading back alone no acknowledged mutation is lost, but the service may never recover; with
/// dropping alone both invariants hold, as long as every failed write is noticed.
#[test]
fn rl1_reading_back_alone_keeps_the_promise() {
    let verdict = check(Rules {
        reads_back: true,
        drops_connection: false,
    });
    assert!(
        verdict.broken.iter().all(|(name, _)| *name != ACKNOWLEDGED_IS_DURABLE),
        "{verdict}"
    );
    check(Rules {
        reads_back: false,
        drops_connection: true,
    })
    .holds(100);
}
