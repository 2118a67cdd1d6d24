//! Models of the protocols that must not lose a record, checked exhaustively at small sizes. Everything is in
//! `tests/it`; nothing depends on this crate.
//!
//! A model is a set of states and the steps between them: what a process does between two points where it can die, and
//! what disks, networks and operators do to it. The checker visits every state that any order of steps reaches, and
//! shows the shortest way to one that breaks an invariant. Each model has a switch for a rule that was found to lose
//! records; a test asserts that the checker finds the loss with that rule, and nothing without it.
//!
//! A model proves the protocol, not the code. Where the code takes a decision by a pure function, the model calls that
//! function (`gw_store::feed_rules`); where it does not, the model's step names the code it stands for.
