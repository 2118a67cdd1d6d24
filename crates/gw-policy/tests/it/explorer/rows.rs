//! Single rules of the explorer's rows, one world each.

use super::scenario::{address, viewer};
use gw_policy::{
    PolicySettings, Snapshot, Viewer,
    settings::{HiddenTransferMode, PartialRowMode, TransactionLogs},
    snapshot::Moment,
    testing::{World, address_of, hash_of, user_id, world},
    visibility::{
        TransactionAccess, TransactionRow,
        explorer::{
            AddressReason, AddressText, AddressVisibility, FrameEntry, TransactionEntry, TransactionEntryVisibility,
            TransactionSurvival, TransferEntry, TransferEntryVisibility,
        },
    },
};
use gw_types::{Level, LevelReason};

/// A bank with a token, an administrator, a member of staff with access, a guest without, and two wallets.
fn bank() -> World {
    world()
        .org("bank")
        .group("admins")
        .org_admin()
        .group("staff")
        .group("guests")
        .contract("token")
        .grant("staff")
        .user("admin")
        .member("admins")
        .user("clerk")
        .member("staff")
        .user("payer")
        .member("guests")
        .link("payer")
        .user("payee")
        .member("guests")
        .link("payee")
        .user("stranger")
}

fn transaction(name: &str, from: &str, to: Option<&str>) -> TransactionEntry<'static> {
    TransactionEntry {
        row: TransactionRow {
            hash: hash_of(name),
            from: address(from),
            to: to.map(address),
            moment: Moment::Block(5),
            time: None,
        },
        created: to.is_none().then(|| address_of("created")),
        transfers: &[],
    }
}

fn transfer(token: &str, from: &str, to: &str) -> TransferEntry {
    TransferEntry {
        token: address(token),
        from: address(from),
        to: address(to),
    }
}

fn shown(
    snapshot: &Snapshot,
    user: &str,
    settings: &PolicySettings,
    entry: &TransactionEntry<'_>,
) -> Option<TransactionEntryVisibility> {
    viewer(snapshot, user, settings).transaction_entry(entry)
}

fn shown_transfer(
    snapshot: &Snapshot,
    user: &str,
    settings: &PolicySettings,
    transfer: TransferEntry,
) -> Option<TransferEntryVisibility> {
    let entry = transaction("other", "relay", Some("router"));
    viewer(snapshot, user, settings).transfer_entry(&entry, &transfer)
}

const SPEC: PolicySettings = PolicySettings::SPEC;

fn private() -> AddressVisibility {
    AddressVisibility {
        text: AddressText::Private,
        reason: AddressReason::Level(LevelReason::NoAccess),
    }
}

/// K1: with one visible side a row is masked, or dropped; the administrator keeps it.
#[test]
fn k1_one_visible_side() {
    let snapshot = bank().snapshot();
    let entry = transaction("t", "payer", Some("token"));
    let strict = PolicySettings {
        one_sided: PartialRowMode::Drop,
        ..SPEC
    };
    for user in ["clerk", "admin"] {
        let seen = shown(&snapshot, user, &SPEC, &entry).unwrap();
        assert_eq!((seen.survival, seen.from), (TransactionSurvival::Visible, private()));
        let to = seen.to.unwrap();
        assert_eq!((to.reason.as_str(), to.reason.label()), ("rbac_group_member", "My Org"));
        assert!(to.is_clear() && !seen.value && !seen.payload && !seen.nonce && !seen.is_audited);
        assert_eq!(shown(&snapshot, user, &strict, &entry).is_some(), user == "admin");
    }
    assert_eq!(shown(&snapshot, "payee", &SPEC, &entry), None, "both sides hidden");
    assert_eq!(shown(&snapshot, "nobody", &SPEC, &entry), None);
}

/// Section 2.4: a participant sees the other side and the payload, but not the nonce of a hidden sender.
#[test]
fn r12_a_participant_sees_both_sides() {
    let snapshot = bank().snapshot();
    let entry = transaction("t", "payer", Some("payee"));
    let sender = shown(&snapshot, "payer", &SPEC, &entry).unwrap();
    assert_eq!(sender.to.unwrap().reason, AddressReason::ParticipantOverride);
    assert_eq!(sender.from.reason.label(), "Mine");
    assert!(sender.value && sender.payload && sender.nonce);
    let receiver = shown(&snapshot, "payee", &SPEC, &entry).unwrap();
    assert_eq!(receiver.from.reason, AddressReason::ParticipantOverride);
    assert_eq!(receiver.from.metadata().unwrap().label(), "Private");
    assert!(receiver.value && receiver.payload && !receiver.nonce);
}

/// HD10: an address in a transfer, in calldata or in an event makes nobody a participant of the transaction.
#[test]
fn hd10_a_transfer_makes_no_participant() {
    let snapshot = bank().snapshot();
    let transfers = [transfer("token", "payer", "payee")];
    let entry = TransactionEntry {
        transfers: &transfers,
        ..transaction("t", "payer", Some("token"))
    };
    assert_eq!(shown(&snapshot, "payee", &SPEC, &entry), None);
    // The transfer itself is shown, with its other side.
    let payee = viewer(&snapshot, "payee", &SPEC);
    let seen = payee.transfer_entry(&entry, &transfers[0]).unwrap();
    assert_eq!(seen.from.reason, AddressReason::ParticipantOverride);
    assert!(seen.amounts && !seen.tx_hash);
    assert_eq!(seen.token, private());
    // Not of a token that nobody registered.
    let seen = shown_transfer(&snapshot, "payee", &SPEC, transfer("fake", "payer", "payee")).unwrap();
    assert_eq!(seen.from, private());
    assert!(!seen.amounts);
}

/// R13: a visible created contract does not show its deployment.
#[test]
fn r13_a_deployment_is_shown_by_its_sender_only() {
    let snapshot = bank().contract("created").grant("staff").snapshot();
    let entry = transaction("t", "payer", None);
    assert_eq!(shown(&snapshot, "clerk", &SPEC, &entry), None);
    let own = shown(&snapshot, "payer", &SPEC, &entry).unwrap();
    assert_eq!(own.created.unwrap().reason, AddressReason::ParticipantOverride);
    assert!(own.to.is_none() && own.value && own.payload && own.nonce);
}

/// Decision 18, R14: strangers see mints and burns of any token masked by default, and none under K1 `drop`.
#[test]
fn d18_r14_mints() {
    let snapshot = bank().snapshot();
    let mint = transfer("token", "zero", "payee");
    let burn = transfer("token", "payee", "zero");
    for user in ["stranger", "payer", "nobody"] {
        let seen = shown_transfer(&snapshot, user, &SPEC, mint).unwrap();
        assert_eq!((seen.to, seen.token), (private(), private()));
        assert_eq!(seen.from.reason, AddressReason::Level(LevelReason::PublicAddress));
        assert!(!seen.amounts && !seen.tx_hash);
        let seen = shown_transfer(&snapshot, user, &SPEC, burn).unwrap();
        assert_eq!((seen.from, seen.token), (private(), private()));
        assert!(seen.to.is_clear() && !seen.amounts && !seen.tx_hash);
    }
    // Access to the token shows the token, not the wallet.
    let seen = shown_transfer(&snapshot, "clerk", &SPEC, mint).unwrap();
    assert!(seen.token.is_clear() && !seen.amounts);
    assert_eq!(seen.to, private());
    // With two visible sides, K1 `drop` demands the token, too.
    let empty = transfer("token", "zero", "zero");
    assert!(shown_transfer(&snapshot, "stranger", &SPEC, empty).is_some());
    for (user, is_listed) in [
        ("stranger", false),
        ("payer", false),
        ("nobody", false),
        ("clerk", true),
    ] {
        let seen = shown_transfer(&snapshot, user, &PolicySettings::STRICT, empty);
        assert_eq!(seen.is_some(), is_listed, "{user}");
    }
    for row in [mint, burn] {
        for user in ["stranger", "payer", "nobody", "clerk"] {
            assert_eq!(shown_transfer(&snapshot, user, &PolicySettings::STRICT, row), None);
        }
        for settings in [&SPEC, &PolicySettings::STRICT] {
            let seen = shown_transfer(&snapshot, "payee", settings, row).unwrap();
            assert!(seen.from.is_clear() && seen.to.is_clear() && seen.amounts);
        }
    }
}

/// Decision 18, [S] rule 3, R12: a payment to the zero address by a hidden sender is masked, and dropped under K1
/// `drop`.
#[test]
fn d18_r12_a_payment_to_the_zero_address() {
    let snapshot = bank().snapshot();
    let entry = transaction("t", "payer", Some("zero"));
    let seen = shown(&snapshot, "stranger", &SPEC, &entry).unwrap();
    assert_eq!((seen.survival, seen.from), (TransactionSurvival::Visible, private()));
    assert!(seen.to.unwrap().is_clear() && !seen.value && !seen.payload && !seen.nonce);
    assert_eq!(shown(&snapshot, "stranger", &PolicySettings::STRICT, &entry), None);
}

/// HD9: shared infrastructure and precompiles make no row visible, but are printed in rows that are.
#[test]
fn hd9_utilities_make_no_row_visible() {
    let snapshot = bank().shared("infra").snapshot();
    for utility in ["infra", "precompile"] {
        let entry = transaction("t", "payer", Some(utility));
        assert_eq!(shown(&snapshot, "stranger", &SPEC, &entry), None);
        let own = shown(&snapshot, "payer", &SPEC, &entry).unwrap();
        assert_eq!(own.to.unwrap().reason.label(), "Public");
        let seen = shown_transfer(&snapshot, "stranger", &SPEC, transfer("token", utility, "payee"));
        assert_eq!(seen, None);
    }
}

/// A contract that is shared infrastructure, too, makes the rows of its organization visible (R4 names it public).
#[test]
fn hd9_a_utility_of_the_own_organization_makes_rows_visible() {
    let snapshot = bank().shared("token").snapshot();
    let entry = transaction("t", "payer", Some("token"));
    let seen = shown(&snapshot, "clerk", &SPEC, &entry).unwrap();
    assert_eq!(seen.to.unwrap().reason.label(), "Public");
    assert_eq!(shown(&snapshot, "stranger", &SPEC, &entry), None);
}

/// R28: a shared transaction is shown whole, its transfers with their third parties masked (K4).
#[test]
fn r28_a_shared_transaction() {
    let snapshot = bank().user("payer").share("t", &["stranger"]).snapshot();
    let entry = transaction("t", "payer", Some("token"));
    let stranger = viewer(&snapshot, "stranger", &SPEC);
    let seen = stranger.transaction_entry(&entry).unwrap();
    assert_eq!(seen.from.reason, AddressReason::VisibleToGrant);
    assert_eq!(seen.to.unwrap().reason.as_str(), "visible_to_grant");
    assert!(seen.value && seen.payload && seen.nonce);
    let seen = stranger
        .transfer_entry(&entry, &transfer("token", "payer", "payee"))
        .unwrap();
    assert!(seen.from.is_clear() && !seen.to.is_clear() && !seen.amounts && seen.tx_hash);
    let frame = |from: &str, to: &str| FrameEntry {
        from: address(from),
        to: Some(address(to)),
    };
    let seen = stranger.frame_entry(&entry, &frame("token", "vault")).unwrap();
    assert!(
        seen.from.is_clear() && !seen.content.value && !seen.content.payload,
        "only the side of the transaction"
    );
    assert_eq!(stranger.frame_entry(&entry, &frame("vault", "payee")), None);
}

/// K2: a participant sees all transfers of the transaction, or under `granted` only those of visible sides.
#[test]
fn k2_transfers_of_own_transactions() {
    let snapshot = bank().snapshot();
    let entry = transaction("t", "payer", Some("token"));
    let between_others = transfer("token", "payee", "vault");
    let seen = viewer(&snapshot, "payer", &SPEC)
        .transfer_entry(&entry, &between_others)
        .unwrap();
    assert!(seen.from.is_clear() && seen.to.is_clear() && seen.amounts);
    let granted = PolicySettings {
        participant_logs: TransactionLogs::Granted,
        ..SPEC
    };
    assert_eq!(
        viewer(&snapshot, "payer", &granted).transfer_entry(&entry, &between_others),
        None
    );
}

/// R10, R18, K12: a surviving transfer keeps its transaction without revealing it, or shows no hash of it.
#[test]
fn r10_k12_a_transfer_keeps_its_transaction_without_revealing_it() {
    let snapshot = bank().contract("vault").grant("staff").snapshot();
    let transfers = [transfer("token", "payee", "vault")];
    let entry = TransactionEntry {
        transfers: &transfers,
        ..transaction("t", "payer", Some("router"))
    };
    let keep = PolicySettings {
        anchor: HiddenTransferMode::Keep,
        ..SPEC
    };
    let seen = shown(&snapshot, "clerk", &keep, &entry).unwrap();
    assert_eq!(
        (seen.survival, seen.from, seen.to),
        (TransactionSurvival::HiddenTransfer, private(), Some(private()))
    );
    assert!(!seen.value && !seen.payload && !seen.nonce);
    assert_eq!(shown(&snapshot, "clerk", &SPEC, &entry), None);
    let hash = |settings| {
        let clerk = viewer(&snapshot, "clerk", settings);
        clerk.transfer_entry(&entry, &transfers[0]).unwrap().tx_hash
    };
    assert_eq!((hash(&keep), hash(&SPEC)), (true, false));
}

/// K10: an administrator sees the value, not the addresses, of members' transactions; each such request is audited.
#[test]
fn k10_transactions_of_members() {
    let snapshot = bank().user("invited").invited("guests").link("invited").snapshot();
    let enabled = PolicySettings {
        org_admin_view_user_txs: true,
        ..SPEC
    };
    let entry = transaction("t", "payer", Some("elsewhere"));
    let seen = shown(&snapshot, "admin", &enabled, &entry).unwrap();
    assert_eq!(
        (seen.survival, seen.from),
        (TransactionSurvival::MemberOfOrg, private())
    );
    assert!(seen.value && !seen.payload && !seen.nonce && seen.is_audited);
    assert_eq!(shown(&snapshot, "admin", &SPEC, &entry), None);
    assert_eq!(shown(&snapshot, "clerk", &enabled, &entry), None);
    let entry = transaction("t", "invited", Some("elsewhere"));
    assert_eq!(shown(&snapshot, "admin", &enabled, &entry), None, "HD32: not accepted");
}

/// Section 2.4, R15, K6: what a grant of each level shows of the rows of its address.
#[test]
fn r15_grants_of_disclosure() {
    let disclosed = |level| {
        let built = bank().org("bank").user("payer").disclosed_to("clerk", level);
        built.snapshot()
    };
    let entry = transaction("t", "payer", Some("elsewhere"));
    let keeps_beside_alias = PolicySettings {
        alias_strip: false,
        ..SPEC
    };
    for settings in [SPEC, PolicySettings::STRICT] {
        let full = shown(&disclosed(Level::Full), "clerk", &settings, &entry).unwrap();
        assert_eq!(full.survival, TransactionSurvival::Visible);
        assert_eq!(full.from.reason.label(), "Disclosed");
        assert_eq!(full.to.unwrap().reason, AddressReason::DisclosureLens);
        assert!(full.value && full.payload && full.nonce && full.is_audited);

        let pseudonymous = shown(&disclosed(Level::Pseudonymous), "clerk", &settings, &entry).unwrap();
        assert_eq!(pseudonymous.survival, TransactionSurvival::PartialGrant);
        assert!(!pseudonymous.survival.shows_hash());
        let is_alias = |shown: AddressVisibility| matches!(shown.text, AddressText::Alias(_));
        assert!(is_alias(pseudonymous.from) && is_alias(pseudonymous.to.unwrap()));
        assert_eq!(pseudonymous.from.metadata(), None, "R11");
        assert!(!pseudonymous.value && !pseudonymous.payload && !pseudonymous.nonce && !pseudonymous.is_audited);

        let redacted = shown(&disclosed(Level::Redacted), "clerk", &settings, &entry).unwrap();
        assert_eq!((redacted.from, redacted.to), (private(), Some(private())));
        assert_eq!(redacted.survival, TransactionSurvival::PartialGrant);
        assert!(!redacted.value && !redacted.nonce);
        assert_eq!(shown(&disclosed(Level::Hidden), "clerk", &settings, &entry), None, "R1");
    }
    let kept = shown(&disclosed(Level::Pseudonymous), "clerk", &keeps_beside_alias, &entry).unwrap();
    assert!(kept.value && kept.payload && kept.nonce);
}

/// HD10: the holder of a full grant sees the other side of a row only where its owner does.
#[test]
fn hd10_a_grant_shows_no_more_of_the_other_side_than_its_owner_sees() {
    let snapshot = bank()
        .org("bank")
        .user("payer")
        .disclosed_to("clerk", Level::Full)
        .snapshot();
    let own = [
        SPEC,
        PolicySettings {
            participant_logs: TransactionLogs::Granted,
            ..SPEC
        },
    ];
    // A transaction between others moves tokens, and calls, between the owner's wallet and a foreign one.
    let inner = transaction("t", "elsewhere", Some("vault"));
    let party = transaction("u", "payer", Some("vault"));
    for settings in own {
        let [owner, grantee] = ["payer", "clerk"].map(|user| viewer(&snapshot, user, &settings));
        let frame = |from: &str, to: &str| FrameEntry {
            from: address(from),
            to: Some(address(to)),
        };
        let mut shown_by_grant = 0;
        for entry in [&inner, &party] {
            for token in ["token", "unregistered"] {
                for transfer in [transfer(token, "payer", "foreign"), transfer(token, "foreign", "payer")] {
                    let of_owner = owner.transfer_entry(entry, &transfer).unwrap();
                    let of_grantee = grantee.transfer_entry(entry, &transfer).unwrap();
                    for (seen, limit) in [(of_grantee.from, of_owner.from), (of_grantee.to, of_owner.to)] {
                        assert!(
                            limit.is_clear() || seen.text == AddressText::Private,
                            "{token} {seen:?}"
                        );
                        shown_by_grant += usize::from(seen.reason == AddressReason::DisclosureLens && seen.is_clear());
                    }
                    assert!(of_owner.amounts || !of_grantee.amounts, "{token}");
                }
            }
            for frame in [
                frame("payer", "foreign"),
                frame("foreign", "payer"),
                frame("payer", "vault"),
            ] {
                let of_owner = owner.frame_entry(entry, &frame);
                let of_grantee = grantee.frame_entry(entry, &frame);
                let (Some(of_owner), Some(of_grantee)) = (of_owner, of_grantee) else {
                    continue;
                };
                let sides = [
                    (of_grantee.from, of_owner.from),
                    (of_grantee.to.unwrap(), of_owner.to.unwrap()),
                ];
                for (seen, limit) in sides {
                    assert!(
                        limit.is_clear() || seen.text == AddressText::Private,
                        "{frame:?} {seen:?}"
                    );
                }
                assert!(of_owner.content.value || !of_grantee.content.value);
            }
        }
        assert!(shown_by_grant > 0, "some other sides are shown");
    }
}

/// HD28: a withheld transaction does not exist with any of its rows, nor do transfers of a closed token.
#[test]
fn hd28_withheld_rows_do_not_exist() {
    let snapshot = bank().convicted(hash_of("t"), "payer").quarantined("token").snapshot();
    let (entry, transfer) = (
        transaction("t", "payer", Some("payee")),
        transfer("coin", "payer", "payee"),
    );
    let frame = FrameEntry {
        from: address("payer"),
        to: Some(address("payee")),
    };
    for user in ["payer", "payee", "admin"] {
        let viewer = viewer(&snapshot, user, &SPEC);
        assert_eq!(viewer.transaction_entry(&entry), None);
        assert_eq!(viewer.transfer_entry(&entry, &transfer), None);
        assert_eq!(viewer.frame_entry(&entry, &frame), None);
        let closed = self::transfer("token", "payer", "payee");
        assert_eq!(shown_transfer(&snapshot, user, &SPEC, closed), None);
    }
    assert!(shown_transfer(&snapshot, "payee", &SPEC, transfer).is_some());
}

/// HD41: rows of a contract follow the organization that owned it at their block.
#[test]
fn hd41_rows_follow_the_owner_at_their_block() {
    let snapshot = bank()
        .org("bank")
        .contract("moved")
        .grant("staff")
        .owned_until(5)
        .org("fund")
        .group("staff")
        .owned_from("moved", 8)
        .grant("staff")
        .user("buyer")
        .member("fund/staff")
        .snapshot();
    let at = |block| {
        let entry = transaction("t", "payer", Some("moved"));
        TransactionEntry {
            row: TransactionRow {
                moment: Moment::Block(block),
                ..entry.row
            },
            ..entry
        }
    };
    let seen = |user: &str| {
        let is_seen = |block| shown(&snapshot, user, &SPEC, &at(block)).is_some();
        [1, 5, 6, 7, 8, 900].map(is_seen)
    };
    assert_eq!(seen("clerk"), [true, true, false, false, false, false]);
    assert_eq!(seen("buyer"), [false, false, false, false, true, true]);
    assert_eq!(seen("payer"), [true; 6]);
    let scope = |user: &str| {
        let blocks = viewer(&snapshot, user, &SPEC).address_list_blocks(address("moved"));
        blocks
            .into_iter()
            .map(|visible| (visible.blocks.start, visible.blocks.end))
            .collect::<Vec<_>>()
    };
    assert_eq!(scope("clerk"), [(0, 6)]);
    assert_eq!(scope("buyer"), [(8, u64::MAX)]);
}

/// HD7, HD40: a view of a member shows the administrator no row that would tell which wallet is the member's, neither
/// in a list nor on RPC.
#[test]
fn hd7_an_impersonated_list_tells_no_wallet() {
    let snapshot = bank().snapshot();
    let entry = transaction("t", "payer", Some("token"));
    let viewer = |user: &str| -> Viewer<'_> { viewer(&snapshot, user, &SPEC).restricted_to(user_id("admin")) };
    for user in ["payer", "payee"] {
        assert_eq!(viewer(user).transaction_entry(&entry), None);
    }
    let on_rpc = |user: &str| viewer(user).transaction_access(&entry.row);
    assert_eq!(
        (on_rpc("payer"), on_rpc("payee")),
        (TransactionAccess::None, TransactionAccess::None)
    );
    let seen = viewer("clerk").transaction_entry(&entry).unwrap();
    assert!(seen.to.unwrap().is_clear() && !seen.from.is_clear());
}

/// Section 9: contracts pass on the calldata of a transaction, so a frame between two visible contracts shows its
/// payload only to those who see that of the transaction. Its value goes by its own sides.
#[test]
fn the_payload_of_a_frame_is_no_wider_than_that_of_its_transaction() {
    let snapshot = bank()
        .org("bank")
        .contract("logic")
        .grant("staff")
        .shared("router")
        .user("payer")
        .share("shared", &["stranger"])
        .snapshot();
    let frame = |from: &str, to: &str| FrameEntry {
        from: address(from),
        to: Some(address(to)),
    };
    let frames = [frame("token", "logic"), frame("router", "token")];
    let content = |viewer: &Viewer<'_>, name: &str, frame: &FrameEntry| {
        let entry = transaction(name, "payer", Some("token"));
        let shown = viewer.frame_entry(&entry, frame).unwrap();
        (shown.content.value, shown.content.payload)
    };
    for sides in &frames {
        for user in ["admin", "clerk"] {
            let own = viewer(&snapshot, user, &SPEC);
            assert_eq!(content(&own, "t", sides), (true, false), "{user}: the sender is hidden");
            let restricted = viewer(&snapshot, user, &SPEC).restricted_to(user_id("admin"));
            assert_eq!(content(&restricted, "t", sides), (true, false), "{user}");
        }
    }
    // A participant and a recipient see the payload of the transaction, and so of frames whose sides they see.
    let known = frame("router", "token");
    assert_eq!(content(&viewer(&snapshot, "payer", &SPEC), "t", &known), (true, true));
    assert_eq!(
        content(&viewer(&snapshot, "stranger", &SPEC), "shared", &known),
        (true, true)
    );
    let unknown = frame("token", "logic");
    assert_eq!(
        content(&viewer(&snapshot, "payer", &SPEC), "t", &unknown),
        (false, false)
    );
}

/// Section 9: frames are masked and stripped like transactions.
#[test]
fn frames_are_shown_by_their_sides() {
    let snapshot = bank().snapshot();
    let entry = transaction("t", "payer", Some("token"));
    let clerk = viewer(&snapshot, "clerk", &SPEC);
    let frame = |from: &str, to: Option<&str>| FrameEntry {
        from: address(from),
        to: to.map(address),
    };
    let seen = clerk.frame_entry(&entry, &frame("token", Some("vault"))).unwrap();
    assert!(seen.from.is_clear() && seen.to == Some(private()) && seen.tx_hash);
    assert!(!seen.content.value && !seen.content.payload);
    assert!(clerk.frame_entry(&entry, &frame("token", None)).unwrap().content.value);
    assert_eq!(clerk.frame_entry(&entry, &frame("vault", Some("payee"))), None);
    let elsewhere = transaction("t", "payer", Some("elsewhere"));
    assert_eq!(clerk.frame_entry(&elsewhere, &frame("token", None)), None, "[S] rule 2");
}
