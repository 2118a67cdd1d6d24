//! Random sequences of requests, approvals, rejections, revocations, deletions, sweeps and clock moves against a model
//! that is written from the tables of spec/50 section 3, on both engines: the rows, the snapshot of two instances and
//! the number of audit entries are those of the model after every step.

use crate::{
    disclosure::{ALL, cipher, people},
    world::{World, did},
};
use gw_policy::disclosure::{GrantLimits, GrantStatus, RequestStatus, ScopeInput};
use gw_store::{
    Actor, BootClock, DisclosureError, Feed, FeedTiming, Store,
    read::{DisclosureFilter, Scope},
    record::DisclosureApproval,
};
use gw_types::{Clock, DisclosureGrantId, DisclosureRequestId, Seconds, Timestamp, UserId};
use proptest::{collection::vec, prelude::*, strategy::ValueTree, test_runner::TestRunner};
use std::{sync::Arc, time::Duration};

const LEVELS: [&str; 3] = ["redacted", "pseudonymous", "full"];
/// How long secrets are kept after the end of their grants.
const KEPT: Seconds = Seconds(7200);

/// One step; the number chooses among the requests so far.
#[derive(Clone, Debug)]
enum Step {
    /// Level and hours until the request ends; 0 means never.
    Create(usize, i64),
    /// Level and hours of the grant.
    Approve(usize, usize, i64),
    /// Two instances approve at once.
    ApproveTwice(usize),
    /// Somebody who is not the owner approves.
    ApproveAsOther(usize),
    Reject(usize),
    Delete(usize),
    RevokeAsOwner(usize),
    RevokeAsAdmin(usize),
    Pass(i64),
    Sweep,
}

fn step() -> impl Strategy<Value = Step> {
    let n = || 0..32_usize;
    let level = || 0..LEVELS.len();
    prop_oneof![
        6 => (level(), 0..3_i64).prop_map(|(level, hours)| Step::Create(level, hours)),
        4 => (n(), level(), -1..4_i64).prop_map(|(n, level, hours)| Step::Approve(n, level, hours)),
        2 => n().prop_map(Step::ApproveTwice),
        1 => n().prop_map(Step::ApproveAsOther),
        2 => n().prop_map(Step::Reject),
        2 => n().prop_map(Step::Delete),
        3 => n().prop_map(Step::RevokeAsOwner),
        3 => n().prop_map(Step::RevokeAsAdmin),
        4 => (1..100_i64).prop_map(Step::Pass),
        3 => Just(Step::Sweep),
    ]
}

#[derive(Clone, Debug)]
struct Grant {
    id: DisclosureGrantId,
    level: usize,
    expires_at: Timestamp,
    revoked_at: Option<Timestamp>,
    is_end_recorded: bool,
    has_secret: bool,
}

impl Grant {
    fn status(&self, now: Timestamp) -> GrantStatus {
        match self.revoked_at {
            Some(_) => GrantStatus::Revoked,
            None if self.expires_at <= now => GrantStatus::Expired,
            None => GrantStatus::Active,
        }
    }

    fn end(&self) -> Timestamp {
        self.revoked_at.unwrap_or(self.expires_at)
    }
}

#[derive(Clone, Debug)]
struct Request {
    id: DisclosureRequestId,
    level: usize,
    expires_at: Option<Timestamp>,
    status: RequestStatus,
    is_deleted: bool,
    grant: Option<Grant>,
}

impl Request {
    fn status(&self, now: Timestamp) -> RequestStatus {
        if self.status == RequestStatus::Pending && self.expires_at.is_some_and(|end| end <= now) {
            RequestStatus::Expired
        } else {
            self.status
        }
    }

    fn is_pending(&self, now: Timestamp) -> bool {
        !self.is_deleted && self.status(now) == RequestStatus::Pending
    }

    /// Approved or revoked in the same way by owner and administrator. Returns the number of entries.
    fn revoke(&mut self, now: Timestamp) -> i64 {
        self.status = RequestStatus::Revoked;
        match &mut self.grant {
            Some(grant) if grant.status(now) == GrantStatus::Active => {
                grant.revoked_at = Some(now);
                grant.is_end_recorded = true;
                2
            }
            _ => 1,
        }
    }
}

#[derive(Debug)]
struct Model {
    owner: UserId,
    other: UserId,
    requests: Vec<Request>,
    entries: i64,
}

async fn approve(
    store: &Store,
    id: DisclosureRequestId,
    by: UserId,
    level: usize,
    hours: i64,
) -> Result<DisclosureGrantId, DisclosureError> {
    let mut tx = store.begin(&Actor::named("did:test:owner")).await.unwrap();
    let approval = DisclosureApproval {
        scope: ScopeInput {
            level: Some(LEVELS[level].to_owned()),
            ..ScopeInput::default()
        },
        duration_hours: Some(hours),
        ..DisclosureApproval::default()
    };
    let granted = tx
        .approve_disclosure(id, by, &approval, GrantLimits::default(), &cipher())
        .await;
    match granted {
        Ok(granted) => {
            tx.commit().await.unwrap();
            Ok(granted.grant.id)
        }
        Err(error) => {
            tx.rollback().await.unwrap();
            Err(error)
        }
    }
}

impl Model {
    fn approved(&mut self, index: usize, id: DisclosureGrantId, level: usize, hours: i64, now: Timestamp) {
        let hours = if hours == 0 { 24 } else { hours };
        let request = &mut self.requests[index];
        request.status = RequestStatus::Approved;
        request.grant = Some(Grant {
            id,
            level,
            expires_at: now.plus(Seconds(u32::try_from(hours * 3600).unwrap())),
            revoked_at: None,
            is_end_recorded: false,
            has_secret: true,
        });
        self.entries += 2;
    }

    async fn take(&mut self, world: &World, other: &Store, people: &crate::disclosure::People, step: &Step) {
        let now = world.clock.now();
        let pick = |n: usize| n.checked_rem(self.requests.len());
        match *step {
            Step::Create(level, hours) => {
                let mut new = people.request();
                new.scope.level = Some(LEVELS[level].to_owned());
                new.expires_in_hours = Some(hours);
                let mut tx = world.begin().await;
                let request = tx.create_disclosure_request(new).await.unwrap();
                tx.commit().await.unwrap();
                let end = now.plus(Seconds(u32::try_from(hours * 3600).unwrap()));
                self.requests.push(Request {
                    id: request.id,
                    level,
                    expires_at: (hours > 0).then_some(end),
                    status: RequestStatus::Pending,
                    is_deleted: false,
                    grant: None,
                });
                self.entries += 1;
            }
            Step::Approve(n, level, hours) => {
                let Some(index) = pick(n) else { return };
                let request = self.requests[index].clone();
                let outcome = approve(&world.store, request.id, self.owner, level, hours).await;
                let may = request.is_pending(now) && level <= request.level && hours >= 0;
                assert_eq!(outcome.is_ok(), may, "{step:?} {request:?}");
                match outcome {
                    Ok(id) => self.approved(index, id, level, hours, now),
                    Err(error) => {
                        let expected = if request.is_deleted { 404 } else { 400 };
                        assert_eq!(error.http_status(), Some(expected), "{error}");
                    }
                }
            }
            Step::ApproveTwice(n) => {
                let Some(index) = pick(n) else { return };
                let request = self.requests[index].clone();
                let (one, another) = tokio::join!(
                    approve(&world.store, request.id, self.owner, 0, 1),
                    approve(other, request.id, self.owner, 0, 1)
                );
                let granted: Vec<_> = [one, another].into_iter().filter_map(Result::ok).collect();
                assert_eq!(granted.len(), usize::from(request.is_pending(now)), "{request:?}");
                for id in granted {
                    self.approved(index, id, 0, 1, now);
                }
            }
            Step::ApproveAsOther(n) => {
                let Some(index) = pick(n) else { return };
                let request = &self.requests[index];
                let refused = approve(&world.store, request.id, self.other, 0, 1).await.unwrap_err();
                let expected = if request.is_deleted { 404 } else { 403 };
                assert_eq!(refused.http_status(), Some(expected));
            }
            Step::Reject(n) | Step::Delete(n) | Step::RevokeAsOwner(n) | Step::RevokeAsAdmin(n) => {
                let Some(index) = pick(n) else { return };
                self.end(world, index, step).await;
            }
            Step::Pass(minutes) => world.clock.pass(minutes * 60),
            Step::Sweep => {
                let is_due = world.store.read().has_overdue_disclosures(KEPT).await.unwrap();
                let mut tx = world.begin().await;
                tx.sweep_disclosures(KEPT, 1000).await.unwrap();
                tx.commit().await.unwrap();
                assert_eq!(self.sweep(now) > 0, is_due);
            }
        }
    }

    async fn end(&mut self, world: &World, index: usize, step: &Step) {
        let now = world.clock.now();
        let request = self.requests[index].clone();
        // What has expired cannot be revoked.
        let has_expired = |grant: &Grant| grant.status(now) == GrantStatus::Expired;
        let has_expired = request.grant.as_ref().is_some_and(has_expired);
        let mut tx = world.begin().await;
        let (outcome, may) = match step {
            Step::Reject(_) => {
                let outcome = tx.reject_disclosure(request.id, self.owner, None).await.map(drop);
                (outcome, request.is_pending(now))
            }
            Step::Delete(_) => {
                let outcome = tx.delete_disclosure_request(request.id).await.map(drop);
                (outcome, request.is_pending(now))
            }
            Step::RevokeAsOwner(_) => {
                let outcome = tx.revoke_disclosure(request.id, self.owner, None).await.map(drop);
                (outcome, request.status == RequestStatus::Approved && !has_expired)
            }
            _ => {
                let Some(grant) = &request.grant else {
                    tx.rollback().await.unwrap();
                    return;
                };
                (tx.revoke_disclosure_grant(grant.id, None).await, !has_expired)
            }
        };
        assert_eq!(outcome.is_ok(), may, "{step:?} {request:?} {outcome:?}");
        if outcome.is_err() {
            tx.rollback().await.unwrap();
            return;
        }
        tx.commit().await.unwrap();
        let request = &mut self.requests[index];
        self.entries += match step {
            Step::Reject(_) => {
                request.status = RequestStatus::Rejected;
                1
            }
            Step::Delete(_) => {
                request.is_deleted = true;
                1
            }
            _ if request.status == RequestStatus::Approved => request.revoke(now),
            _ => 0,
        };
    }

    /// Returns the number of changes.
    fn sweep(&mut self, now: Timestamp) -> i64 {
        let mut changes = 0;
        for request in &mut self.requests {
            if !request.is_deleted && request.status(now) != request.status {
                request.status = RequestStatus::Expired;
                changes += 1;
            }
            let Some(grant) = &mut request.grant else { continue };
            if !grant.is_end_recorded && grant.expires_at <= now {
                grant.is_end_recorded = true;
                changes += 1;
            }
            if grant.has_secret && grant.is_end_recorded && grant.end() <= now.minus(KEPT) {
                grant.has_secret = false;
                changes += 1;
            }
        }
        self.entries += changes;
        changes
    }

    async fn compare(&self, world: &World, feed: &Feed) {
        let now = world.clock.now();
        let filter = DisclosureFilter::for_owner(self.owner);
        let read = world.store.read();
        let stored = read.list_disclosure_requests(&filter, ALL).await.unwrap();
        let grants = read.list_disclosure_grants(&filter, ALL).await.unwrap();
        let expected: Vec<&Request> = self.requests.iter().filter(|request| !request.is_deleted).collect();
        assert_eq!(stored.total, expected.len() as u64);
        for request in &expected {
            let details = stored.rows.iter().find(|details| details.request.id == request.id);
            let details = details.unwrap();
            assert_eq!(details.request.status, request.status(now), "{request:?}");
            let grant = grants.rows.iter().find(|row| row.request.id == request.id);
            assert_eq!(
                grant.map(|row| row.grant.id),
                request.grant.as_ref().map(|grant| grant.id)
            );
            if let (Some(row), Some(grant)) = (grant, &request.grant) {
                assert_eq!(row.grant.status_at(now), grant.status(now), "{grant:?}");
                assert_eq!(row.grant.has_secret, grant.has_secret);
                assert_eq!(
                    (row.grant.revoked_at, row.grant.expires_at),
                    (grant.revoked_at, grant.expires_at)
                );
            }
        }
        // Never two grants of one request.
        assert_eq!(
            grants.total,
            expected.iter().filter(|request| request.grant.is_some()).count() as u64
        );
        for status in RequestStatus::ALL {
            let filter = DisclosureFilter {
                request_status: Some(status),
                ..DisclosureFilter::all(Scope::All)
            };
            let total = read.list_disclosure_requests(&filter, ALL).await.unwrap().total;
            let of_status = expected.iter().filter(|request| request.status(now) == status);
            assert_eq!(total, of_status.count() as u64, "{status:?}");
        }
        // Rule 15: as many entries as transitions.
        let entries = "SELECT count(*) AS n FROM audit_outbox WHERE resource_type LIKE 'disclosure%'";
        assert_eq!(world.rows(entries, "n").await, [self.entries]);
        // The instance that changed something has applied it (spec/50 section 8).
        let snapshot = feed.pin().snapshot;
        let of_owner = snapshot.disclosures_by(self.owner).len();
        assert_eq!(of_owner, snapshot.disclosures_to(&did("auditor")).len());
        let with_secret = expected.iter().filter_map(|request| request.grant.as_ref());
        let with_secret: Vec<&Grant> = with_secret.filter(|grant| grant.has_secret).collect();
        assert_eq!(of_owner, with_secret.len());
        for grant in with_secret {
            let row = snapshot.find_disclosure(grant.id).unwrap();
            assert_eq!(row.is_active(now), grant.status(now) == GrantStatus::Active);
            assert_eq!(
                gw_policy::disclosure::scope::level_text(row.scope.level),
                LEVELS[grant.level]
            );
        }
    }
}

async fn run(world: &World, steps: &[Step]) {
    let timing = FeedTiming {
        max_skew: Duration::MAX,
        stale_after: Duration::from_secs(30),
        ..FeedTiming::default()
    };
    let people = people(world).await;
    let other = world.another_store(7).await;
    let feed = Feed::start(&world.store, timing, Arc::new(BootClock)).await.unwrap();
    let elsewhere = Feed::start(&other, timing, Arc::new(BootClock)).await.unwrap();
    let mut model = Model {
        owner: people.owner,
        other: people.auditor,
        requests: Vec::new(),
        entries: 0,
    };
    for step in steps {
        model.take(world, &other, &people, step).await;
        // A concurrent approval of the other instance is applied here by its notification.
        assert!(feed.catch_up_to(world.store.load().await.unwrap().epoch()).await);
        model.compare(world, &feed).await;
    }
    let loaded = world.store.load().await.unwrap();
    assert!(feed.pin().snapshot.same_rows(&loaded));
    assert!(elsewhere.catch_up_to(loaded.epoch()).await);
    assert!(elsewhere.pin().snapshot.same_rows(&loaded), "another instance follows");
    let approved = model.requests.iter().filter(|request| request.grant.is_some()).count();
    assert!(
        approved * 10 >= model.requests.len(),
        "only {approved} approvals meant anything"
    );
}

fn cases() -> Vec<Vec<Step>> {
    let mut runner = TestRunner::deterministic();
    (0..6)
        .map(|_| vec(step(), 60..90).new_tree(&mut runner).unwrap().current())
        .collect()
}

/// Rules 10 to 15 and 29, section 8.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn ds10_random_sequences_follow_the_model_on_sqlite() {
    for case in cases() {
        run(&World::sqlite().await, &case).await;
    }
}

/// Rules 10 to 15 and 29, section 8.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn ds10_random_sequences_follow_the_model_on_postgres() {
    for case in cases() {
        let Some(world) = World::postgres().await else { return };
        run(&world, &case).await;
    }
}
