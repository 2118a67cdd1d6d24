//! Runs the checker.

use stateright::{Checker as _, HasDiscoveries, Model};
use std::{fmt::Debug, hash::Hash};

/// Result of visiting every state.
#[derive(Debug)]
pub(crate) struct Verdict {
    /// Number of states.
    pub(crate) states: usize,
    /// The broken invariants, each with the steps that lead there.
    pub(crate) broken: Vec<(&'static str, String)>,
}

impl Verdict {
    /// Asserts that no invariant is ever broken, and that the model has at least `at_least` states: a model with only a
    /// few states checks nothing.
    #[track_caller]
    pub(crate) fn holds(&self, at_least: usize) {
        assert!(self.broken.is_empty(), "{self}");
        assert!(
            self.states >= at_least,
            "{} states are fewer than {at_least}: the steps do not happen",
            self.states
        );
    }

    /// Asserts that this invariant is broken by some order of steps.
    #[track_caller]
    pub(crate) fn breaks(&self, invariant: &str) {
        assert!(
            self.broken.iter().any(|(name, _)| *name == invariant),
            "{invariant} holds: {self}"
        );
    }
}

impl core::fmt::Display for Verdict {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        write!(f, "{} states", self.states)?;
        for (name, way) in &self.broken {
            write!(f, "\nbroken: {name}\n{way}")?;
        }
        Ok(())
    }
}

/// Visits every state that any order of steps reaches.
pub(crate) fn check<M>(model: M) -> Verdict
where
    M: Model + Send + Sync + 'static,
    M::State: Clone + Debug + Hash + Send + Sync + PartialEq,
    M::Action: Clone + Debug + PartialEq,
{
    run(model, HasDiscoveries::All)
}

/// Visits states until this invariant is found broken.
pub(crate) fn check_for<M>(invariant: &'static str, model: M) -> Verdict
where
    M: Model + Send + Sync + 'static,
    M::State: Clone + Debug + Hash + Send + Sync + PartialEq,
    M::Action: Clone + Debug + PartialEq,
{
    run(model, HasDiscoveries::AnyOf([invariant].into()))
}

fn run<M>(model: M, until: HasDiscoveries) -> Verdict
where
    M: Model + Send + Sync + 'static,
    M::State: Clone + Debug + Hash + Send + Sync + PartialEq,
    M::Action: Clone + Debug + PartialEq,
{
    let checker = model.checker().finish_when(until).spawn_bfs().join();
    let mut broken: Vec<_> = checker
        .discoveries()
        .into_iter()
        .map(|(name, path)| {
            let last = path.last_state().clone();
            let steps: Vec<_> = path.into_actions().iter().map(|step| format!("  {step:?}")).collect();
            (name, format!("{}\n  {last:?}", steps.join("\n")))
        })
        .collect();
    broken.sort_by_key(|(name, _)| *name);
    let verdict = Verdict {
        states: checker.unique_state_count(),
        broken,
    };
    eprintln!("{}: {verdict}", std::any::type_name::<M>());
    verdict
}
