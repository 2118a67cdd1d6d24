//! The epoch feed (HD23 E-1 to E-4 and E-6, HD21): how instances follow one history of policy.
//!
//! Code: `gw-store/src/feed` and `snapshot/mod.rs`; the code's own functions ([`gw_store::feed_rules`]) decide
//! succession, gaps and freshness. Writers commit epochs; each instance queries the head, gets an answer from one state
//! of the database (E-3), applies and confirms, with any delay between the steps. The primary may fail over to a
//! standby that lacks the newest epochs, whose numbers other commits then take; a replica may answer a query; change
//! rows are pruned. Time passes in ticks at any point.
//!
//! Invariants: no instance calls a snapshot fresh that lacks a change acknowledged earlier than the staleness bound, if
//! the database still has that change; and a mutation is acknowledged only when its own instance has applied it. A
//! change that a failover undid is not required: asynchronous replication lost it.
//!
//! Sizes: two instances, of which one commits; two or three commits; any number of ticks, of which two make a snapshot
//! stale (times are stored as ages, limited to that bound); and, where a test says so, one each of failover, pruning
//! and an answer by a replica.

use crate::check::{check, check_for};
use gw_store::feed_rules::{Succession, is_fresh, is_gapless, succession};
use gw_types::Epoch;
use stateright::{Model, Property};

/// Staleness bound in ticks.
const STALE_AFTER: u8 = 2;
const FRESH_HAS_ALL: &str = "a fresh snapshot has every change acknowledged before the staleness bound";
const OWN_IS_APPLIED: &str = "an acknowledged mutation is applied on its own instance";

/// How heads are compared, and when a mutation is acknowledged.
#[derive(Clone, Copy, Debug)]
struct Rules {
    /// Epochs have stamps, so that an epoch of another history with the same number is recognized.
    compares_stamps: bool,
    /// A head from a replica is rejected (E-3).
    only_primary: bool,
    answers: Answers,
    sizes: Sizes,
}

/// Maximum number of each event.
#[derive(Clone, Copy, Debug)]
struct Sizes {
    commits: usize,
    failovers: u8,
    prunings: u8,
    replicas: u8,
}

const FAILOVER: Sizes = Sizes {
    commits: 3,
    failovers: 1,
    prunings: 0,
    replicas: 0,
};
const PRUNING: Sizes = Sizes {
    commits: 2,
    failovers: 1,
    prunings: 1,
    replicas: 0,
};
const REPLICA: Sizes = Sizes {
    commits: 2,
    failovers: 0,
    prunings: 1,
    replicas: 1,
};

/// When the committing instance responds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Answers {
    /// When it has applied the epoch's number, or has waited long enough: then it turns stale and acknowledges anyway.
    AnyWay,
    /// When it has applied the epoch's number; after the wait it responds with 503.
    AppliedNumber,
    /// When it has applied the change itself; after the wait it responds with 503.
    Applied,
}

const NEW: Rules = Rules {
    compares_stamps: true,
    only_primary: true,
    answers: Answers::Applied,
    sizes: FAILOVER,
};

/// The changes of a history in order, as the stamps of its epochs.
type History = Vec<u8>;

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Instance {
    applied: History,
    /// Ticks since the query that confirmed it was sent; `None`: not confirmed.
    confirmed: Option<u8>,
    look: Look,
    /// Whether a full load is needed.
    whole: bool,
}

/// One poll of the head, with its age in ticks.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
enum Look {
    None,
    Asked {
        age: u8,
    },
    /// The snapshot after the answer; `None`: a full load is needed.
    Answered {
        age: u8,
        history: Option<History>,
    },
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Write {
    by: usize,
    stamp: u8,
    epoch: usize,
    answer: Answer,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Answer {
    Waiting,
    /// Acknowledged `age` ticks ago; `applied`: whether its own instance had applied the change.
    Acknowledged {
        age: u8,
        applied: bool,
    },
    Refused,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct State {
    primary: History,
    /// Change rows up to this epoch are pruned.
    pruned: usize,
    instances: [Instance; 2],
    writes: Vec<Write>,
    failovers: u8,
    prunings: u8,
    replicas: u8,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Step {
    Tick,
    Commit {
        by: usize,
    },
    Ask {
        instance: usize,
    },
    Answer {
        instance: usize,
    },
    /// A standby with the first `has` epochs answers.
    AnswerOfReplica {
        instance: usize,
        has: usize,
    },
    Apply {
        instance: usize,
    },
    Acknowledge {
        write: usize,
    },
    GiveUp {
        write: usize,
    },
    /// Fails over to a standby with the first `has` epochs.
    FailOver {
        has: usize,
    },
    Prune,
}

impl Rules {
    /// Returns the snapshot after an answer with this database's head; `None` if a full load is needed.
    fn follow(self, instance: &Instance, database: &History, pruned: usize) -> Option<History> {
        if instance.whole {
            return Some(database.clone());
        }
        let (seen, head) = (Epoch(instance.applied.len() as u64), Epoch(database.len() as u64));
        let stamp = instance.applied.last().copied();
        let recorded = instance
            .applied
            .len()
            .checked_sub(1)
            .map(|index| database.get(index).copied());
        let recorded = match recorded {
            // Before the first commit both are at the start.
            None => Some(None),
            Some(committed) => committed.map(Some),
        };
        let recorded = if self.compares_stamps { recorded } else { Some(stamp) };
        match succession(seen, stamp, head, recorded) {
            Succession::Same => Some(instance.applied.clone()),
            Succession::Later => {
                let rows =
                    (pruned.max(instance.applied.len()) + 1..=database.len()).map(|epoch| Some(Epoch(epoch as u64)));
                is_gapless(seen, head, rows).then(|| {
                    let mut history = instance.applied.clone();
                    history.extend(database.iter().skip(instance.applied.len()));
                    history
                })
            }
            Succession::WentBack | Succession::Another => None,
        }
    }
}

impl Instance {
    fn is_fresh(&self) -> bool {
        const NOW: u64 = 100;
        is_fresh(
            self.confirmed.map_or(0, |age| NOW - u64::from(age)),
            NOW,
            u64::from(STALE_AFTER),
        )
    }
}

impl State {
    fn answered(&mut self, instance: usize, history: Option<History>) {
        if let Look::Asked { age } = self.instances[instance].look {
            self.instances[instance].look = Look::Answered { age, history };
        }
    }

    fn tick(&mut self) {
        let older = |age: &mut u8| *age = (*age + 1).min(STALE_AFTER);
        for instance in &mut self.instances {
            instance.confirmed.iter_mut().for_each(older);
            match &mut instance.look {
                Look::Asked { age } | Look::Answered { age, .. } => older(age),
                Look::None => {}
            }
        }
        for write in &mut self.writes {
            match &mut write.answer {
                Answer::Acknowledged { age, .. } => older(age),
                Answer::Waiting | Answer::Refused => {}
            }
        }
    }

    fn acknowledge(&mut self, write: usize) {
        let Write { by, stamp, .. } = self.writes[write];
        let applied = self.instances[by].applied.contains(&stamp);
        self.writes[write].answer = Answer::Acknowledged { age: 0, applied };
    }
}

impl Model for Rules {
    type State = State;
    type Action = Step;

    fn init_states(&self) -> Vec<State> {
        let instance = Instance {
            applied: Vec::new(),
            confirmed: Some(0),
            look: Look::None,
            whole: false,
        };
        vec![State {
            primary: Vec::new(),
            pruned: 0,
            instances: [instance.clone(), instance],
            writes: Vec::new(),
            failovers: 0,
            prunings: 0,
            replicas: 0,
        }]
    }

    fn actions(&self, state: &State, steps: &mut Vec<Step>) {
        steps.push(Step::Tick);
        if state.writes.len() < self.sizes.commits {
            steps.push(Step::Commit { by: 0 });
        }
        for (index, instance) in state.instances.iter().enumerate() {
            match instance.look {
                Look::None => steps.push(Step::Ask { instance: index }),
                Look::Asked { .. } => {
                    steps.push(Step::Answer { instance: index });
                    if state.replicas < self.sizes.replicas {
                        steps
                            .extend((0..state.primary.len()).map(|has| Step::AnswerOfReplica { instance: index, has }));
                    }
                }
                Look::Answered { .. } => steps.push(Step::Apply { instance: index }),
            }
        }
        for (index, write) in state
            .writes
            .iter()
            .enumerate()
            .filter(|(_, write)| write.answer == Answer::Waiting)
        {
            let own = &state.instances[write.by];
            let applied = match self.answers {
                Answers::Applied => own.applied.contains(&write.stamp),
                Answers::AppliedNumber | Answers::AnyWay => own.applied.len() >= write.epoch,
            };
            steps.push(if applied {
                Step::Acknowledge { write: index }
            } else {
                Step::GiveUp { write: index }
            });
        }
        if state.failovers < self.sizes.failovers {
            steps.extend((0..state.primary.len()).map(|has| Step::FailOver { has }));
        }
        if state.prunings < self.sizes.prunings && state.pruned < state.primary.len() {
            steps.push(Step::Prune);
        }
    }

    fn next_state(&self, last: &State, step: Step) -> Option<State> {
        let mut state = last.clone();
        match step {
            Step::Tick => state.tick(),
            Step::Commit { by } => {
                let stamp = u8::try_from(state.writes.len()).ok()?;
                state.primary.push(stamp);
                state.writes.push(Write {
                    by,
                    stamp,
                    epoch: state.primary.len(),
                    answer: Answer::Waiting,
                });
            }
            Step::Ask { instance } => state.instances[instance].look = Look::Asked { age: 0 },
            Step::Answer { instance } => {
                let history = self.follow(&state.instances[instance], &state.primary, state.pruned);
                state.answered(instance, history);
            }
            Step::AnswerOfReplica { instance, has } => {
                state.replicas += 1;
                if self.only_primary {
                    // The query fails: nothing is confirmed, and the snapshot stays fresh while the last confirmation
                    // holds.
                    state.instances[instance].look = Look::None;
                } else {
                    let replica = state.primary[..has].to_vec();
                    let history = self.follow(&state.instances[instance], &replica, state.pruned.min(has));
                    state.answered(instance, history);
                }
            }
            Step::Apply { instance } => {
                let instance = &mut state.instances[instance];
                match std::mem::replace(&mut instance.look, Look::None) {
                    Look::Answered {
                        age,
                        history: Some(history),
                    } => {
                        (instance.applied, instance.confirmed, instance.whole) = (history, Some(age), false);
                    }
                    Look::Answered { history: None, .. } => (instance.confirmed, instance.whole) = (None, true),
                    Look::None | Look::Asked { .. } => return None,
                }
            }
            Step::Acknowledge { write } => state.acknowledge(write),
            Step::GiveUp { write } => {
                let by = state.writes[write].by;
                state.instances[by].confirmed = None;
                match self.answers {
                    Answers::AnyWay => state.acknowledge(write),
                    Answers::AppliedNumber | Answers::Applied => state.writes[write].answer = Answer::Refused,
                }
            }
            Step::FailOver { has } => {
                state.failovers += 1;
                state.primary.truncate(has);
                state.pruned = state.pruned.min(has);
            }
            Step::Prune => {
                state.prunings += 1;
                state.pruned = state.primary.len();
            }
        }
        Some(state)
    }

    fn properties(&self) -> Vec<Property<Self>> {
        vec![
            Property::always(FRESH_HAS_ALL, |_, state: &State| {
                let due = state.writes.iter().filter(|write| match write.answer {
                    Answer::Acknowledged { age, .. } => age >= STALE_AFTER,
                    Answer::Waiting | Answer::Refused => false,
                });
                let due: Vec<_> = due
                    .map(|write| write.stamp)
                    .filter(|stamp| state.primary.contains(stamp))
                    .collect();
                let mut fresh = state.instances.iter().filter(|instance| instance.is_fresh());
                fresh.all(|instance| due.iter().all(|stamp| instance.applied.contains(stamp)))
            }),
            Property::always(OWN_IS_APPLIED, |_, state: &State| {
                state
                    .writes
                    .iter()
                    .all(|write| !matches!(write.answer, Answer::Acknowledged { applied: false, .. }))
            }),
        ]
    }
}

#[test]
fn hd23_the_feed_keeps_its_promises_through_gaps_and_failover() {
    check(NEW).holds(100_000);
    check(Rules { sizes: PRUNING, ..NEW }).holds(10_000);
    check(Rules { sizes: REPLICA, ..NEW }).holds(10_000);
}

#[test]
fn hd23_e1_numbers_alone_take_another_history_for_the_own_one() {
    check_for(
        FRESH_HAS_ALL,
        Rules {
            compares_stamps: false,
            ..NEW
        },
    )
    .breaks(FRESH_HAS_ALL);
}

#[test]
fn hd23_e3_a_head_told_by_a_replica_is_none() {
    check_for(
        FRESH_HAS_ALL,
        Rules {
            only_primary: false,
            sizes: REPLICA,
            ..NEW
        },
    )
    .breaks(FRESH_HAS_ALL);
}

/// A response after the wait for the feed ended: 200 for a mutation that may never have been committed (RL1).
#[test]
fn rl1_an_answer_after_a_vain_wait_acknowledges_what_is_not_applied() {
    check_for(
        OWN_IS_APPLIED,
        Rules {
            answers: Answers::AnyWay,
            ..NEW
        },
    )
    .breaks(OWN_IS_APPLIED);
}

/// An epoch's number does not prove that the change is applied: after a failover another change has it.
#[test]
fn rl1_waiting_for_a_number_acknowledges_another_history() {
    check_for(
        OWN_IS_APPLIED,
        Rules {
            answers: Answers::AppliedNumber,
            ..NEW
        },
    )
    .breaks(OWN_IS_APPLIED);
}
