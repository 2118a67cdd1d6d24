//! Each rule of the sealer is needed, and with all of them nothing is lost without an alarm.

use super::{ALL, NEW, NONE, OLD, ONCE, Rules, Sizes, TOLD};
use crate::check::{check, check_for};

/// Restored backups (RL3, RL6), with crashes and takeovers around them.
const POLICY_RESTORED: Sizes = Sizes {
    mutations: 3,
    crashes: 1,
    takeovers: 1,
    policy_restores: 1,
    forgets: 1,
    ..NONE
};
const AUDIT_RESTORED: Sizes = Sizes {
    mutations: 2,
    calls: [1, 0],
    crashes: 1,
    takeovers: 1,
    audit_restores: 1,
    forgets: 1,
    ..NONE
};
const BOTH_RESTORED: Sizes = Sizes {
    mutations: 3,
    policy_restores: 1,
    audit_restores: 1,
    ..NONE
};
const CHAIN_BLOCKED: Sizes = Sizes {
    mutations: 1,
    calls: [1, 1],
    crashes: 1,
    jams: 1,
    ..NONE
};
const COMMIT_LOST: Sizes = Sizes {
    mutations: 2,
    calls: [1, 0],
    crashes: 1,
    takeovers: 1,
    phantoms: 1,
    ..NONE
};

#[test]
fn rl3_after_an_older_policy_store_rows_below_the_highest_id_are_never_sealed() {
    check_for(
        ALL,
        Rules {
            sizes: POLICY_RESTORED,
            ..OLD
        },
    )
    .breaks(ALL);
}

#[test]
fn rl6_what_an_older_audit_store_lost_is_gone() {
    check_for(
        ALL,
        Rules {
            sizes: AUDIT_RESTORED,
            ..OLD
        },
    )
    .breaks(ALL);
}

#[test]
fn rl4_a_blocked_chain_blocks_all_and_nobody_is_told() {
    check_for(
        ALL,
        Rules {
            sizes: CHAIN_BLOCKED,
            ..OLD
        },
    )
    .breaks(ALL);
    check_for(
        TOLD,
        Rules {
            sizes: CHAIN_BLOCKED,
            ..OLD
        },
    )
    .breaks(TOLD);
}

#[test]
fn rl1_a_commit_that_was_none_is_taken_for_one() {
    check_for(
        ALL,
        Rules {
            sizes: COMMIT_LOST,
            ..OLD
        },
    )
    .breaks(ALL);
}

/// Each rule is needed: without it, some record is lost without an alarm.
#[test]
fn each_rule_of_the_sealer_is_needed() {
    let by_highest = Rules {
        by_row: false,
        raises_before_serving: false,
        ..NEW
    };
    check_for(
        ALL,
        Rules {
            sizes: POLICY_RESTORED,
            ..by_highest
        },
    )
    .breaks(ALL);
    let believing = Rules {
        reads_back: false,
        compares_live: false,
        compares_kept: false,
        ..NEW
    };
    check_for(
        ALL,
        Rules {
            sizes: COMMIT_LOST,
            ..believing
        },
    )
    .breaks(ALL);
    let at_start_only = Rules {
        compares_live: false,
        compares_kept: false,
        ..NEW
    };
    check_for(
        ALL,
        Rules {
            sizes: AUDIT_RESTORED,
            ..at_start_only
        },
    )
    .breaks(ALL);
    check_for(
        ALL,
        Rules {
            independent: false,
            sizes: CHAIN_BLOCKED,
            ..NEW
        },
    )
    .breaks(ALL);
}

/// Two sealers with claims of the same fence continue the same chain with the same record.
#[test]
fn rl6_a_restored_audit_store_gives_a_fence_out_twice() {
    check_for(
        ONCE,
        Rules {
            compares_holder: false,
            sizes: AUDIT_RESTORED,
            ..NEW
        },
    )
    .breaks(ONCE);
}

/// A sealer with an expired lease marks a row after the audit store was restored: the new sealer never reads the row
/// again, and it is deleted.
#[test]
fn rl6_kept_rows_are_compared_before_they_go() {
    check_for(
        ALL,
        Rules {
            compares_kept: false,
            sizes: AUDIT_RESTORED,
            ..NEW
        },
    )
    .breaks(ALL);
}

/// A restored policy store that accepts a mutation before its ids are raised gives it the id of a lost one, and the
/// loss goes unnoticed.
#[test]
fn rl3_ids_are_raised_before_the_first_mutation_is_taken() {
    check_for(
        ALL,
        Rules {
            raises_before_serving: false,
            sizes: POLICY_RESTORED,
            ..NEW
        },
    )
    .breaks(ALL);
}

#[test]
fn rl3_rl4_rl6_the_sealer_loses_nothing_without_a_word() {
    for sizes in [
        POLICY_RESTORED,
        AUDIT_RESTORED,
        BOTH_RESTORED,
        CHAIN_BLOCKED,
        COMMIT_LOST,
    ] {
        check(Rules { sizes, ..NEW }).holds(1_000);
    }
}
