//! HD39: if a request names an organization, decisions and views are the same as if it were the caller's only
//! organization.

use super::{
    properties::{decisions, organization, steps},
    support::{request_as, verdict},
};
use gw_policy::testing::world;
use proptest::prelude::*;

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    /// RT28: rights in another organization neither allow nor deny a request that names this one. Only the recorded
    /// deny reason may differ.
    #[test]
    fn rt28_rights_elsewhere_do_not_affect_a_request_that_names_an_organization(
        mine in steps(), theirs in steps(), elsewhere in steps(),
    ) {
        use super::properties::Step;
        let build = |member: bool| {
            let mut taken = Vec::new();
            let bank_world = organization(world(), "bank", "person", &mine, &mut taken);
            let rows: Vec<Step> = theirs.iter().chain(&elsewhere).copied().filter(|step| match step {
                Step::Member { .. } => member,
                // A link belongs to the person and not to an organization, so it is left out here.
                Step::Link { .. } => false,
                Step::Contract { .. } | Step::Grant { .. } | Step::Methods { .. } | Step::Reservation { .. } => true,
            }).collect();
            organization(bank_world, "rival", "person", &rows, &mut taken).snapshot()
        };
        let (in_rival, outside_rival) = (build(true), build(false));
        let normalized = |verdict: String| verdict.replace("org_mismatch", "foreign_org");
        let named_requests = |snapshot| decisions(&request_as(snapshot, "person").in_org("bank"));
        for ((name, with_membership), (_, without)) in
            named_requests(&in_rival).into_iter().zip(named_requests(&outside_rival))
        {
            let (with_membership, without) = (normalized(verdict(&with_membership)), normalized(verdict(&without)));
            // O3: the logs of another organization of the caller are denied if the request names this one.
            if with_membership != without {
                prop_assert!(
                    name.starts_with("logs") && with_membership == "foreign_org",
                    "{name}: {without} became {with_membership}"
                );
            }
        }
    }
}
