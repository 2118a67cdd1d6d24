//! HD39: the organization that a request names bounds what is decided and what is shown: it is as if it were the
//! caller's only one.

use super::{
    properties::{organization, questions, steps},
    support::{ask, verdict},
};
use gw_policy::testing::world;
use proptest::prelude::*;

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    /// RT28: what a person may do in another organization opens nothing under the name of this one, and closes nothing.
    /// Only the reason on record knows better.
    #[test]
    fn rt28_a_named_organization_is_as_if_it_were_the_only_one(mine in steps(), theirs in steps(), elsewhere in steps()) {
        use super::properties::Step;
        let build = |member: bool| {
            let mut taken = Vec::new();
            let both = organization(world(), "bank", "person", &mine, &mut taken);
            let rows: Vec<Step> = theirs.iter().chain(&elsewhere).copied().filter(|step| match step {
                Step::Member { .. } => member,
                // The person's own doing, wherever it is told.
                Step::Link { .. } => false,
                Step::Contract { .. } | Step::Grant { .. } | Step::Methods { .. } | Step::Reservation { .. } => true,
            }).collect();
            organization(both, "rival", "person", &rows, &mut taken).snapshot()
        };
        let (both, alone) = (build(true), build(false));
        let plain = |verdict: String| verdict.replace("org_mismatch", "foreign_org");
        let named = |snapshot| questions(&ask(snapshot, "person").naming("bank"));
        for ((what, two), (_, one)) in named(&both).into_iter().zip(named(&alone)) {
            let (two, one) = (plain(verdict(&two)), plain(verdict(&one)));
            // O3: the logs of another of one's own organizations are refused under this one's name.
            if two != one {
                prop_assert!(what.starts_with("logs") && two == "foreign_org", "{what}: {one} became {two}");
            }
        }
    }
}
