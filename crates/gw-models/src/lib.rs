//! Models of the protocols that must not lose a record, checked exhaustively at small sizes. All code is in `tests/it`;
//! nothing depends on this crate.
//!
//! A model is a set of states and the steps between them: a step is what a process does between two points where it can
//! die, or what disks, networks and operators do to it. The checker visits every state that any order of steps reaches,
//! and shows the shortest path to one that breaks an invariant. Each model has a switch for a rule that was found to
//! lose records; a test asserts that the checker finds the loss with that rule, and nothing without it.
//!
//! A model proves the protocol, not the code. If the code makes a decision by a pure function, the model calls that
//! function (`gw_store::feed_rules`); otherwise the model's step names the code that it represents.
