//! Reserve, send, outcome (HD21, HD22, spec/20 §12): the path of a transaction through the gateway.
//!
//! Code: `gw-rpc/src/send`. The intent is appended to the journal and made durable; rows are reserved in the policy
//! store; the transaction is sent to the node, which accepts or rejects it, or gives no answer; rows are settled; the
//! outcome is made durable; the client gets a response. The process may die between any two of these steps, and then
//! only durable data is left; at the next start open intents are resolved by querying the node. Journal and policy
//! store may fail.
//!
//! Invariants: the node receives no transaction without a durable intent; no intent has two outcomes; when all is at
//! rest, each durable intent has the outcome that the node's state gives it; a client told of success has a durable
//! outcome; and a transaction reported to a client as successful is never concluded as rejected.
//!
//! Assumed: a nonce that something else used stays used, so that the transaction can never be mined. The gateway
//! queries for a transaction until it is there or its nonce is used, however late it arrives. Sizes: two sends, two
//! deaths, one fault of the journal, one of the policy store.

use crate::check::{check, check_for};
use stateright::{Model, Property};

const INTENT_FIRST: &str = "the node hears of nothing without a durable intent";
const ONE_OUTCOME: &str = "no intent has two outcomes";
const OUTCOME_TRUE: &str = "at rest each durable intent has the outcome the node gives it";
const TOLD_AFTER_OUTCOME: &str = "a client told of success has a durable outcome";
const TOLD_IS_TRUE: &str = "what a client was told of is taken, and its intent is durable";

#[derive(Clone, Copy, Debug)]
struct Rules {
    /// The node receives a transaction only when its intent is durable.
    waits_for_intent: bool,
    /// Success is reported only when the outcome is durable; otherwise also when the outcome is left to the resolver.
    waits_for_outcome: bool,
    /// The resolver keeps querying for as long as the transaction may still arrive: until its nonce is used.
    asks_on: bool,
}

const NEW: Rules = Rules {
    waits_for_intent: true,
    waits_for_outcome: true,
    asks_on: true,
};

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Outcome {
    Accepted,
    Refused,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Phase {
    New,
    /// The intent is written.
    Intended,
    /// The intent counts as durable; rows are reserved.
    Reserved,
    /// The transaction is on its way, without an answer.
    Sent,
    /// The node has accepted or rejected the transaction.
    Answered(Outcome),
    /// Rows are settled.
    Settled(Outcome),
    /// The outcome is durable, or the resolver does the rest.
    Concluded(Outcome),
    /// Left to the resolver, without an answer from the node.
    Unknown,
    /// The client has its response, or is gone.
    Over,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Rows {
    None,
    Reserved,
    Settled(Outcome),
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Send {
    phase: Phase,
    /// A written intent is lost with the process unless it is durable.
    intent: Durability,
    outcomes: Vec<Outcome>,
    rows: Rows,
    /// Whether the transaction is on its way to the node.
    wire: bool,
    /// Whether the node rejected it, or it was lost on the way.
    gone: bool,
    taken: bool,
    /// Whether something else used its nonce, so that the node can never take it.
    replaced: bool,
    /// Whether the resolver of this process handles it.
    resolving: bool,
    told_success: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Durability {
    None,
    Written,
    Durable,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct State {
    sends: [Send; 2],
    deaths: u8,
    journal_faults: u8,
    store_faults: u8,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Step {
    Write(usize),
    Sync(usize),
    Forward(usize),
    /// The node receives the transaction and accepts or rejects it; its answer arrives or not.
    Arrive {
        send: usize,
        takes: bool,
        answers: bool,
    },
    /// The transaction is lost on its way.
    Lose(usize),
    /// Something else uses the nonce.
    Replace(usize),
    GiveUp(usize),
    Settle(usize),
    StoreFails(usize),
    Conclude(usize),
    JournalFails(usize),
    Tell(usize),
    Resolve(usize),
    Die,
}

impl Send {
    fn is_open(&self) -> bool {
        self.intent == Durability::Durable && self.outcomes.is_empty()
    }

    /// Returns the outcome that the resolver concludes now, if any.
    fn resolution(&self, rules: Rules) -> Option<Outcome> {
        match (self.taken, self.replaced || !rules.asks_on) {
            (true, _) => Some(Outcome::Accepted),
            (false, true) => Some(Outcome::Refused),
            (false, false) => None,
        }
    }
}

impl Model for Rules {
    type State = State;
    type Action = Step;

    fn init_states(&self) -> Vec<State> {
        let send = Send {
            phase: Phase::New,
            intent: Durability::None,
            outcomes: Vec::new(),
            rows: Rows::None,
            wire: false,
            gone: false,
            taken: false,
            replaced: false,
            resolving: false,
            told_success: false,
        };
        vec![State {
            sends: [send.clone(), send],
            deaths: 0,
            journal_faults: 0,
            store_faults: 0,
        }]
    }

    fn actions(&self, state: &State, steps: &mut Vec<Step>) {
        for (index, send) in state.sends.iter().enumerate() {
            match send.phase {
                Phase::New => steps.push(Step::Write(index)),
                Phase::Intended => {
                    steps.push(Step::Sync(index));
                    if !self.waits_for_intent {
                        steps.push(Step::Forward(index));
                    }
                }
                Phase::Reserved => steps.push(Step::Forward(index)),
                Phase::Sent => steps.push(Step::GiveUp(index)),
                Phase::Answered(_) => {
                    steps.push(Step::Settle(index));
                    if state.store_faults < 1 {
                        steps.push(Step::StoreFails(index));
                    }
                }
                Phase::Settled(_) => {
                    steps.push(Step::Conclude(index));
                    if state.journal_faults < 1 {
                        steps.push(Step::JournalFails(index));
                    }
                }
                Phase::Concluded(_) | Phase::Unknown => steps.push(Step::Tell(index)),
                Phase::Over => {}
            }
            if send.wire {
                for takes in [true, false].into_iter().filter(|takes| !(*takes && send.replaced)) {
                    steps.extend([true, false].map(|answers| Step::Arrive {
                        send: index,
                        takes,
                        answers,
                    }));
                }
                steps.push(Step::Lose(index));
            }
            if send.intent == Durability::Durable && !send.taken && !send.replaced {
                steps.push(Step::Replace(index));
            }
            if send.resolving && send.is_open() && send.resolution(*self).is_some() {
                steps.push(Step::Resolve(index));
            }
        }
        if state.deaths < 2 {
            steps.push(Step::Die);
        }
    }

    fn next_state(&self, last: &State, step: Step) -> Option<State> {
        let mut state = last.clone();
        match step {
            Step::Write(index) => {
                state.sends[index].intent = Durability::Written;
                state.sends[index].phase = Phase::Intended;
            }
            Step::Sync(index) => {
                state.sends[index].intent = Durability::Durable;
                state.sends[index].rows = Rows::Reserved;
                state.sends[index].phase = Phase::Reserved;
            }
            Step::Forward(index) => {
                state.sends[index].wire = true;
                state.sends[index].phase = Phase::Sent;
            }
            Step::Arrive { send, takes, answers } => {
                let send = &mut state.sends[send];
                send.wire = false;
                (send.taken, send.gone) = (takes, !takes);
                if answers && send.phase == Phase::Sent {
                    send.phase = Phase::Answered(if takes { Outcome::Accepted } else { Outcome::Refused });
                }
            }
            Step::Lose(index) => (state.sends[index].wire, state.sends[index].gone) = (false, true),
            Step::Replace(index) => state.sends[index].replaced = true,
            Step::GiveUp(index) => {
                state.sends[index].phase = Phase::Unknown;
                state.sends[index].resolving = true;
            }
            Step::Settle(index) => {
                let Phase::Answered(outcome) = state.sends[index].phase else {
                    return None;
                };
                state.sends[index].rows = Rows::Settled(outcome);
                state.sends[index].phase = Phase::Settled(outcome);
            }
            Step::StoreFails(index) => {
                state.store_faults += 1;
                let Phase::Answered(outcome) = state.sends[index].phase else {
                    return None;
                };
                state.sends[index].resolving = true;
                state.sends[index].phase = Phase::Concluded(outcome);
            }
            Step::Conclude(index) => {
                let Phase::Settled(outcome) = state.sends[index].phase else {
                    return None;
                };
                state.sends[index].outcomes.push(outcome);
                state.sends[index].phase = Phase::Concluded(outcome);
            }
            Step::JournalFails(index) => {
                state.journal_faults += 1;
                let Phase::Settled(outcome) = state.sends[index].phase else {
                    return None;
                };
                // This process does not retry: the intent stays open until the next start.
                state.sends[index].phase = Phase::Concluded(outcome);
            }
            Step::Tell(index) => {
                let send = &mut state.sends[index];
                let success = send.phase == Phase::Concluded(Outcome::Accepted);
                send.told_success = success && (!self.waits_for_outcome || !send.outcomes.is_empty());
                send.phase = Phase::Over;
            }
            Step::Resolve(index) => {
                let outcome = state.sends[index].resolution(*self)?;
                state.sends[index].rows = Rows::Settled(outcome);
                state.sends[index].outcomes.push(outcome);
            }
            Step::Die => {
                state.deaths += 1;
                for send in &mut state.sends {
                    if send.phase != Phase::New {
                        send.phase = Phase::Over;
                    }
                    if send.intent == Durability::Written {
                        send.intent = Durability::None;
                    }
                    send.resolving = send.is_open();
                }
            }
        }
        Some(state)
    }

    fn properties(&self) -> Vec<Property<Self>> {
        fn all(holds: impl Fn(&Send) -> bool, state: &State) -> bool {
            state.sends.iter().all(holds)
        }
        vec![
            Property::always(INTENT_FIRST, |_, state: &State| {
                all(
                    |send| !(send.wire || send.taken) || send.intent == Durability::Durable,
                    state,
                )
            }),
            Property::always(ONE_OUTCOME, |_, state: &State| {
                all(|send| send.outcomes.len() <= 1, state)
            }),
            Property::always(OUTCOME_TRUE, |_, state: &State| {
                all(
                    |send| match send.outcomes.first() {
                        Some(outcome) => {
                            let node = if send.taken {
                                Outcome::Accepted
                            } else {
                                Outcome::Refused
                            };
                            send.wire || (*outcome == node && send.rows == Rows::Settled(node))
                        }
                        // Open: the resolver handles it now or after the next start.
                        None => true,
                    },
                    state,
                )
            }),
            Property::always(TOLD_AFTER_OUTCOME, |_, state: &State| {
                all(
                    |send| !send.told_success || send.outcomes.first() == Some(&Outcome::Accepted),
                    state,
                )
            }),
            Property::always(TOLD_IS_TRUE, |_, state: &State| {
                all(
                    |send| !send.told_success || (send.taken && send.intent == Durability::Durable),
                    state,
                )
            }),
        ]
    }
}

#[test]
fn hd22_a_send_has_an_intent_before_and_one_true_outcome_after() {
    check(NEW).holds(5_000);
}

#[test]
fn hd22_forwarding_before_the_intent_is_durable_leaves_no_trace() {
    check_for(
        INTENT_FIRST,
        Rules {
            waits_for_intent: false,
            ..NEW
        },
    )
    .breaks(INTENT_FIRST);
}

#[test]
fn hd22_a_resolver_that_gives_up_early_refuses_what_the_node_takes() {
    check_for(OUTCOME_TRUE, Rules { asks_on: false, ..NEW }).breaks(OUTCOME_TRUE);
}

/// A send that the node accepted, but whose rows or outcome could not be written, is answered with its hash, and its
/// intent stays open: the response is true, though the outcome follows later.
#[test]
fn hd22_success_told_before_the_outcome_is_true_all_the_same() {
    let rules = Rules {
        waits_for_outcome: false,
        ..NEW
    };
    check_for(TOLD_AFTER_OUTCOME, rules).breaks(TOLD_AFTER_OUTCOME);
    let verdict = check(rules);
    assert!(
        verdict.broken.iter().all(|(name, _)| *name == TOLD_AFTER_OUTCOME),
        "{verdict}"
    );
}
