//! Disclosure against naive models that are written from the words of spec/50.

use gw_policy::{
    disclosure::{
        ActivityRow, ClassCheck, DataClass, GrantState, GrantStatus, RequestActor, RequestState, RequestStatus,
        ScopeError, ScopeInput, Transition, TransitionError, Trigger, coverage, scope,
    },
    snapshot::{DisclosureGrant, DisclosureScope},
};
use gw_types::{Address, DisclosureGrantId, Level, OrgId, SealedGrantSecret, Timestamp, UserId};
use proptest::prelude::*;

/// The table of spec/50 section 3, one line per row: status at the time, trigger, who, result.
const TABLE: &[(&str, Trigger, RequestActor, &str)] = &[
    ("pending", Trigger::Approve, RequestActor::Owner, "approved"),
    ("pending", Trigger::Reject, RequestActor::Owner, "rejected"),
    ("pending", Trigger::Delete, RequestActor::FullAdmin, "gone"),
    ("approved", Trigger::Revoke, RequestActor::Owner, "revoked"),
    ("approved", Trigger::RevokeGrant, RequestActor::FullAdmin, "revoked"),
    // A second revocation is no error.
    ("revoked", Trigger::RevokeGrant, RequestActor::FullAdmin, "revoked"),
];

const TRIGGERS: [Trigger; 6] = [
    Trigger::Approve,
    Trigger::Reject,
    Trigger::Revoke,
    Trigger::Delete,
    Trigger::RevokeGrant,
    Trigger::Expire,
];
const ACTORS: [RequestActor; 5] = [
    RequestActor::Owner,
    RequestActor::FullAdmin,
    RequestActor::ReadOnlyAdmin,
    RequestActor::Other,
    RequestActor::Clock,
];

fn result(transition: Transition, before: RequestStatus) -> &'static str {
    match transition {
        Transition::Approve => "approved",
        Transition::Reject => "rejected",
        Transition::Revoke => "revoked",
        Transition::Delete => "gone",
        Transition::Expire => "expired",
        Transition::Keep => before.as_str(),
    }
}

#[test]
fn ds10_the_request_machine_is_the_table_of_the_specification() {
    let now = Timestamp::from_secs(1000);
    for status in RequestStatus::ALL {
        for end in [None, Some(999), Some(1000), Some(1001)] {
            let state = RequestState {
                status,
                expires_at: end.map(Timestamp::from_secs),
            };
            // "past expires_at": the condition of rule 10 is `expires_at > now()`.
            let has_passed = end.is_some_and(|end| end <= 1000);
            let effective = if status == RequestStatus::Pending && has_passed {
                "expired"
            } else {
                status.as_str()
            };
            assert_eq!(state.status_at(now).as_str(), effective);
            for trigger in TRIGGERS {
                for by in ACTORS {
                    let actual = state.transition(trigger, by, now);
                    let row = TABLE
                        .iter()
                        .find(|row| (row.0, row.1, row.2) == (effective, trigger, by));
                    match (row, trigger, by) {
                        (Some(row), ..) => assert_eq!(actual.map(|to| result(to, status)), Ok(row.3)),
                        // The sweeper writes what every reader sees already, and refuses nothing.
                        (None, Trigger::Expire, RequestActor::Clock) => {
                            assert_eq!(actual.map(|to| result(to, status)), Ok(effective));
                        }
                        (None, ..) => assert!(actual.is_err(), "{state:?} {trigger:?} {by:?} {actual:?}"),
                    }
                }
            }
        }
    }
}

#[test]
fn ds3_every_refusal_has_the_text_and_status_of_the_specification() {
    let expected = [
        (TransitionError::Forbidden, 403, "access denied to target resource"),
        (TransitionError::NotPending, 400, "request is not pending"),
        (TransitionError::Expired, 400, "request has expired"),
        (TransitionError::NotApproved, 400, "can only revoke approved requests"),
        (
            TransitionError::DeleteNotPending,
            400,
            "can only delete pending requests",
        ),
    ];
    for (refusal, status, text) in expected {
        assert_eq!((refusal.http_status(), refusal.to_string().as_str()), (status, text));
    }
    let text = |class, methods: &[&str]| {
        let scope = scope_of(Some(methods), None, None, Level::Full);
        coverage::check_class(&scope, class, ClassCheck::Strict)
            .unwrap_err()
            .to_string()
    };
    assert_eq!(
        text(DataClass::Transactions, &["activity_logs"]),
        "grant scope does not include transaction_history"
    );
    assert_eq!(
        text(DataClass::Activity, &["transaction_history"]),
        "grant scope does not include activity_logs"
    );
}

#[test]
fn ds10_a_grant_is_revoked_once_and_ends_at_its_end() {
    let at = Timestamp::from_secs;
    let grant = GrantState {
        expires_at: at(100),
        revoked_at: None,
    };
    assert_eq!(grant.status_at(at(99)), GrantStatus::Active);
    assert_eq!(grant.status_at(at(100)), GrantStatus::Expired);
    let revoked = grant.revoked(at(50));
    assert_eq!(revoked.revoked_at, Some(at(50)));
    assert_eq!(revoked.revoked(at(60)), revoked);
    assert_eq!(revoked.status_at(at(200)), GrantStatus::Revoked);
    assert_eq!(grant.revoked(at(100)), grant, "an expired grant stays expired");
    assert_eq!((revoked.end(), grant.end()), (at(50), at(100)));
    for status in [GrantStatus::Active, GrantStatus::Revoked, GrantStatus::Expired] {
        assert_eq!(GrantStatus::parse(status.as_str()), Some(status));
    }
    assert_eq!(GrantStatus::Active.as_str(), "approved");
}

fn texts(list: &[&str]) -> Option<Vec<String>> {
    Some(list.iter().map(|text| (*text).to_owned()).collect())
}

fn scope_of(
    methods: Option<&[&str]>,
    addresses: Option<Vec<u8>>,
    dates: Option<(i64, i64)>,
    level: Level,
) -> DisclosureScope {
    DisclosureScope {
        level,
        dates: dates.map(|(start, end)| (Timestamp::from_secs(start), Timestamp::from_secs(end))),
        addresses: addresses.map(|list| list.into_iter().map(Address::with_last_byte).collect()),
        methods: methods.and_then(texts),
    }
}

#[test]
fn ds6_each_member_of_a_scope_is_validated() {
    let requested = |input: ScopeInput| scope::requested(&input);
    let methods = |list: &[&str]| {
        requested(ScopeInput {
            methods: texts(list),
            ..Default::default()
        })
    };
    // Rule 6: redacted, and unset members restrict nothing.
    assert_eq!(
        requested(ScopeInput::default()),
        Ok(scope_of(None, None, None, Level::Redacted))
    );
    assert!(
        methods(&[
            "transaction_history",
            "activity_logs",
            "full_disclosure",
            "eth_call",
            "0_x"
        ])
        .is_ok()
    );
    for bad in [
        "eth",
        "_call",
        "eth_",
        "Eth_call",
        "eth_call_x",
        "eth_c-ll",
        "",
        "activity_logs ",
        "eth_\u{e9}",
        // Rule 24: a class with an error in it is no method, which would restrict no transactions.
        "transaction_histroy",
        "transactions_history",
        "tranaction_history",
        "activty_logs",
        "activity_log",
        "full_disclosur",
        "ful_disclosure",
    ] {
        assert_eq!(methods(&[bad]), Err(ScopeError::Method), "{bad}");
    }
    assert_eq!(methods(&["eth_call", "eth_call"]), Err(ScopeError::DuplicateMethod));
    let many: Vec<String> = (0..51).map(|n| format!("eth_m{n}")).collect();
    let many: Vec<&str> = many.iter().map(String::as_str).collect();
    assert!(methods(&many[..50]).is_ok());
    assert_eq!(methods(&many), Err(ScopeError::MethodCount));

    let addresses = |list: Vec<String>| {
        requested(ScopeInput {
            addresses: Some(list),
            ..Default::default()
        })
    };
    let hex = |n: usize| format!("0x{n:040X}");
    let both_cases = vec![hex(0xab), hex(0xab).to_lowercase().replace("0X", "0x")];
    assert_eq!(
        addresses(both_cases).map(|scope| scope.addresses),
        Ok(Some(vec![Address::with_last_byte(0xab)]))
    );
    assert!(addresses((0..200).map(hex).collect()).is_ok());
    assert_eq!(addresses((0..201).map(hex).collect()), Err(ScopeError::AddressCount));
    for bad in ["", "0x", "0x12", "Address-0123456789AB", &format!("{}00", hex(1))] {
        assert_eq!(addresses(vec![bad.to_owned()]), Err(ScopeError::Address), "{bad}");
    }

    let dates = |start: Option<&str>, end: Option<&str>| {
        requested(ScopeInput {
            date_range: Some((start.map(str::to_owned), end.map(str::to_owned))),
            ..Default::default()
        })
    };
    let (early, late) = ("2026-01-01T00:00:00Z", "2026-02-01T00:00:00+01:00");
    assert!(dates(Some(early), Some(late)).is_ok());
    assert!(dates(Some(early), Some(early)).is_ok());
    assert_eq!(dates(Some(late), Some(early)), Err(ScopeError::DateOrder));
    for (start, end) in [
        (None, Some(late)),
        (Some(early), None),
        (None, None),
        (Some("2026-01-01"), Some(late)),
    ] {
        assert_eq!(dates(start, end), Err(ScopeError::DateRange));
    }

    let level = |text: &str| {
        requested(ScopeInput {
            level: Some(text.to_owned()),
            ..Default::default()
        })
        .map(|scope| scope.level)
    };
    assert_eq!(level("full"), Ok(Level::Full));
    assert_eq!(level("pseudonymous"), Ok(Level::Pseudonymous));
    assert_eq!(level("redacted"), Ok(Level::Redacted));
    // Decision 30: not offered for new grants.
    for bad in ["truncated", "hidden", "Full", ""] {
        assert_eq!(level(bad), Err(ScopeError::Level), "{bad}");
    }
    assert_eq!(scope::stored_level("truncated"), Level::Pseudonymous);
    assert_eq!(scope::stored_level("anything"), Level::Redacted);
    for known in [Level::Full, Level::Pseudonymous, Level::Redacted] {
        assert_eq!(scope::stored_level(scope::level_text(known)), known);
    }
}

#[test]
fn ds14_an_approval_that_drops_classes_or_names_is_no_subset() {
    let parent = |methods: &[&str]| scope_of(Some(methods), None, None, Level::Full);
    let approve = |parent: &DisclosureScope, methods: &[&str]| {
        let input = ScopeInput {
            methods: texts(methods),
            ..Default::default()
        };
        scope::approved(parent, &input).map(|scope| scope.methods)
    };
    // Without a class the grant would disclose transactions, which nobody requested.
    let activity = parent(&["activity_logs", "eth_call"]);
    assert_eq!(approve(&activity, &["eth_call"]), Err(ScopeError::NotSubset));
    // Without a name it would disclose the activity of all methods.
    assert_eq!(approve(&activity, &["activity_logs"]), Err(ScopeError::NotSubset));
    assert!(approve(&activity, &["eth_call", "activity_logs"]).is_ok());
    // An explicit empty list is an unset child under a set parent.
    assert_eq!(approve(&activity, &[]), Err(ScopeError::NotSubset));
    assert_eq!(approve(&scope_of(None, None, None, Level::Full), &[]), Ok(None));
}

const METHODS: [&str; 5] = [
    "transaction_history",
    "activity_logs",
    "full_disclosure",
    "eth_call",
    "eth_getLogs",
];

fn any_scope() -> impl Strategy<Value = DisclosureScope> {
    let methods = prop::option::of(prop::sample::subsequence(&METHODS[..], 1..=5));
    let addresses = prop::option::of(prop::collection::vec(0u8..4, 1..4));
    let dates = prop::option::of((1i64..6, 0i64..6).prop_map(|(start, span)| (start, start + span)));
    (
        methods,
        addresses,
        dates,
        prop::sample::select(&[Level::Redacted, Level::Pseudonymous, Level::Full][..]),
    )
        .prop_map(|(methods, addresses, dates, level)| scope_of(methods.as_deref(), addresses, dates, level))
}

fn input_of(scope: &DisclosureScope, keep: [bool; 4]) -> ScopeInput {
    ScopeInput {
        methods: scope.methods.clone().filter(|_| keep[0]),
        addresses: scope
            .addresses
            .as_ref()
            .filter(|_| keep[1])
            .map(|list| list.iter().map(|address| address.to_checksum(None)).collect()),
        date_range: scope
            .dates
            .filter(|_| keep[2])
            .map(|(start, end)| (Some(start.to_rfc3339()), Some(end.to_rfc3339()))),
        level: keep[3].then(|| scope::level_text(scope.level).to_owned()),
    }
}

fn grant(id: u128, scope: DisclosureScope) -> DisclosureGrant {
    DisclosureGrant {
        id: DisclosureGrantId::fixed(id),
        owner: UserId::fixed(1),
        grantee: "did:test:grantee".parse().unwrap(),
        org: OrgId::fixed(id % 2 + 1),
        granted_at: Timestamp::from_secs(2),
        expires_at: Timestamp::from_secs(9),
        revoked_at: None,
        include_future_addresses: false,
        scope,
        secret: SealedGrantSecret([0; SealedGrantSecret::SIZE]),
    }
}

/// Rule 23 in its own words.
fn naive_covers_row(scope: &DisclosureScope, time: i64, sides: &[Address]) -> bool {
    if let Some((start, end)) = scope.dates
        && (time == 0 || time < start.secs() || time > end.secs())
    {
        return false;
    }
    match &scope.addresses {
        Some(listed) => sides.iter().any(|side| listed.iter().any(|address| address == side)),
        None => true,
    }
}

/// Rules 24 and 25 in their own words: "when `methods` names a class".
fn naive_class(scope: &DisclosureScope, class: DataClass) -> bool {
    let has = |name: &str| scope.methods.iter().flatten().any(|method| method == name);
    let names_class = has("transaction_history") || has("activity_logs") || has("full_disclosure");
    match class {
        DataClass::Transactions => !names_class || has("transaction_history") || has("full_disclosure"),
        DataClass::Activity => has("activity_logs") || has("full_disclosure"),
    }
}

fn naive_activity(grant: &DisclosureGrant, time: i64, method: &str, org: OrgId) -> bool {
    let names: Vec<&String> = grant
        .scope
        .methods
        .iter()
        .flatten()
        .filter(|method| method.starts_with("eth_"))
        .collect();
    naive_class(&grant.scope, DataClass::Activity)
        && (2..=9).contains(&time)
        && grant
            .scope
            .dates
            .is_none_or(|(start, end)| start.secs() <= time && time <= end.secs())
        && (names.is_empty() || names.into_iter().any(|name| name == method))
        && org == grant.org
}

/// Every row that the scopes of these tests can distinguish.
fn rows() -> impl Iterator<Item = (i64, Vec<Address>)> {
    (0..13).flat_map(|time| {
        (0u8..5).flat_map(move |from| {
            (0u8..5).map(move |to| (time, vec![Address::with_last_byte(from), Address::with_last_byte(to)]))
        })
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    #[test]
    fn ds14_an_approval_never_discloses_what_was_not_requested(
        parent in any_scope(),
        child in any_scope(),
        keep in prop::array::uniform4(any::<bool>()),
    ) {
        let merged = scope::approved(&parent, &input_of(&child, keep));
        // Rule 14 in its own words, member by member.
        let inherits = |set: bool, is_set: bool| !(set && is_set);
        let listed = |child: &Option<Vec<Address>>, parent: &Option<Vec<Address>>| match (child, parent) {
            (_, None) => true,
            (None, Some(_)) => false,
            (Some(child), Some(parent)) => child.iter().all(|one| parent.contains(one)),
        };
        let is_addresses = inherits(keep[1], child.addresses.is_some()) || listed(&child.addresses, &parent.addresses);
        let is_dates = inherits(keep[2], child.dates.is_some())
            || parent.dates.is_none_or(|(start, end)| {
                let is_inside = |child: (_, _)| start <= child.0 && child.1 <= end;
                child.dates.is_some_and(is_inside)
            });
        let is_level = !keep[3] || child.level <= parent.level;
        let is_methods = inherits(keep[0], child.methods.is_some())
            || parent.methods.as_ref().is_none_or(|parent| {
                child.methods.as_ref().is_some_and(|child| child.iter().all(|one| parent.contains(one)))
            });
        if !(is_addresses && is_dates && is_level && is_methods) {
            prop_assert_eq!(merged, Err(ScopeError::NotSubset));
            return Ok(());
        }
        // Whatever else the rule refuses, what it accepts discloses a part of what was requested.
        let Ok(merged) = merged else { return Ok(()) };
        prop_assert!(merged.level <= parent.level);
        let (narrow, wide) = (grant(1, merged.clone()), grant(1, parent.clone()));
        for (time, sides) in rows() {
            let shown = |scope: &DisclosureScope| {
                naive_class(scope, DataClass::Transactions) && naive_covers_row(scope, time, &sides)
            };
            prop_assert!(!shown(&merged) || shown(&parent));
            for method in ["eth_call", "eth_getLogs", "eth_sign"] {
                let org = OrgId::fixed(2);
                // An unset parent restricts nothing, so the owner may name activity that needs to be named.
                let is_wide = parent.methods.is_none() || naive_activity(&wide, time, method, org);
                prop_assert!(!naive_activity(&narrow, time, method, org) || is_wide);
            }
        }
    }

    #[test]
    fn ds23_ds24_ds25_rows_and_classes_are_covered_as_the_specification_says(scope in any_scope()) {
        let granted = grant(1, scope.clone());
        for (time, sides) in rows() {
            let at = Timestamp::from_secs(time);
            prop_assert_eq!(
                coverage::covers_row(&scope, Some(at), &sides),
                naive_covers_row(&scope, time, &sides)
            );
            if time == 0 {
                prop_assert_eq!(coverage::covers_row(&scope, None, &sides), naive_covers_row(&scope, 0, &sides));
            }
            for method in ["eth_call", "eth_getLogs", "eth_sign", "activity_logs"] {
                for org in [OrgId::fixed(1), OrgId::fixed(2)] {
                    let row = ActivityRow { time: at, method, org: Some(org) };
                    prop_assert_eq!(
                        coverage::covers_activity(&granted, &row),
                        naive_activity(&granted, time, method, org)
                    );
                }
                let nowhere = ActivityRow { time: at, method, org: None };
                prop_assert!(!coverage::covers_activity(&granted, &nowhere));
            }
        }
        for class in [DataClass::Transactions, DataClass::Activity] {
            let actual = coverage::check_class(&scope, class, ClassCheck::Strict).is_ok();
            prop_assert_eq!(actual, naive_class(&scope, class));
        }
        // Divergence D1: the peer checks transactions for no class.
        prop_assert!(coverage::check_class(&scope, DataClass::Transactions, ClassCheck::ActivityOnly).is_ok());
    }

    #[test]
    fn ds26_ds27_the_highest_level_of_the_covering_grants_wins(
        scopes in prop::collection::vec(any_scope(), 0..5),
        member in prop::array::uniform2(any::<bool>()),
        now in 0i64..12,
    ) {
        let grants: Vec<DisclosureGrant> = (1..).zip(scopes).map(|(id, scope)| grant(id, scope)).collect();
        let is_member = |org: OrgId| if org == OrgId::fixed(1) { member[0] } else { member[1] };
        for (time, sides) in rows() {
            let mut best: Option<&DisclosureGrant> = None;
            for grant in &grants {
                let counts = now < 9
                    && is_member(grant.org)
                    && naive_class(&grant.scope, DataClass::Transactions)
                    && naive_covers_row(&grant.scope, time, &sides);
                if counts && best.is_none_or(|best| grant.scope.level > best.scope.level) {
                    best = Some(grant);
                }
            }
            let now = Timestamp::from_secs(now);
            let time = Some(Timestamp::from_secs(time));
            let actual = coverage::strongest_for_row(&grants, is_member, ClassCheck::Strict, now, time, &sides);
            prop_assert_eq!(actual.map(|grant| grant.id), best.map(|grant| grant.id));
        }
    }
}

#[test]
fn ds24_an_empty_list_of_methods_in_a_stored_row_covers_nothing() {
    let scope = scope_of(Some(&[]), None, None, Level::Full);
    for check in [ClassCheck::Strict, ClassCheck::ActivityOnly] {
        for class in [DataClass::Transactions, DataClass::Activity] {
            assert!(coverage::check_class(&scope, class, check).is_err());
        }
    }
}
