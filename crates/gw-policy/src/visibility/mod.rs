//! Who sees which address, and which transaction, how far (spec/30 section 2).
//!
//! A [`Viewer`] is one person (or nobody) at one moment on one pinned snapshot, or that person with somebody looking over
//! their shoulder (HD7): then it sees what both of them see, each by their own rights. Its answers are pure functions of
//! that (R5); nothing is remembered between viewers. Not here: what a view prints ([`crate::view`]), and whether a call is
//! allowed at all ([`crate::access`]).
//!
//! Invariant: an address is Full only through a ground that holds *now*; a ground that cannot be evaluated gives
//! nothing (R1).

mod admission;
mod events;
mod ground;
mod owns;
mod person;

pub use admission::Admission;
pub(crate) use events::{Admitted, EventRights};
pub use ground::is_precompile;
pub(crate) use owns::knows;
pub use owns::owns;
pub(crate) use person::Person;

use crate::{Snapshot, knobs::Knobs, snapshot::Moment};
use gw_types::{Address, B256, Level, LevelReason, OrgId, Timestamp, UserId};

/// One person, or nobody, looking at one moment; alone, or with somebody beside them.
///
/// Rights are resolved once, here; whatever concerns an address is resolved when asked.
#[derive(Debug)]
pub struct Viewer<'s> {
    person: Person<'s>,
    beside: Option<Person<'s>>,
}

impl<'s> Viewer<'s> {
    /// The viewer `user` (`None`: nobody is logged in) at `now`. An unknown or shut-out user sees what nobody sees.
    #[must_use]
    pub fn new(snapshot: &'s Snapshot, user: Option<UserId>, now: Timestamp, knobs: &'s Knobs) -> Self {
        Self {
            person: Person::new(snapshot, user, now, knobs),
            beside: None,
        }
    }

    /// The same, as far as `operator` sees it too (HD7, I9). What is hidden from either is as if it were not there (HD40).
    #[must_use]
    pub fn beside(self, operator: UserId) -> Self {
        let Person {
            snapshot, knobs, now, ..
        } = self.person;
        Self {
            beside: Some(Person::new(snapshot, Some(operator), now, knobs)),
            ..self
        }
    }

    /// The same person with the rights of this organization and of no other one (HD39): what they see is what they would
    /// see if it were their only organization. Own addresses stay own, and so do own and shared transactions. `None`
    /// names no organization and changes nothing.
    #[must_use]
    pub fn restricted_to(mut self, named: Option<OrgId>) -> Self {
        self.person.member = self.person.member.map(|member| member.restricted_to(named));
        self
    }

    /// The same, who is shown no transactions but the own ones (HD17).
    #[must_use]
    pub fn own_only(mut self, own_only: bool) -> Self {
        self.person.own_only = own_only;
        self
    }

    /// The person alone.
    pub(crate) fn person(&self) -> &Person<'s> {
        &self.person
    }

    /// Who looks over their shoulder.
    pub(crate) fn operator(&self) -> Option<&Person<'s>> {
        self.beside.as_ref()
    }

    /// Whether it holds for the person, and for whoever is beside them.
    pub(crate) fn all(&self, holds: impl Fn(&Person<'s>) -> bool) -> bool {
        holds(&self.person) && self.beside.as_ref().is_none_or(holds)
    }

    /// Whether only own transactions show.
    pub(crate) fn is_own_only(&self) -> bool {
        self.person.own_only
    }

    /// The settings this viewer's views follow.
    pub fn knobs(&self) -> &'s Knobs {
        self.person.knobs
    }

    /// How much of an address this viewer sees, and why: the strongest ground wins, on equal rank the earlier reason
    /// (R2, R3, R4). With somebody beside, the lower of both levels (HD7).
    pub fn level(&self, address: Address) -> (Level, LevelReason) {
        let own = self.person.level(address);
        match self.beside.as_ref().map(|beside| beside.level(address)) {
            Some(other) if other.0 < own.0 => other,
            Some(_) | None => own,
        }
    }

    /// Whether the address is Full.
    pub fn sees(&self, address: Address) -> bool {
        self.all(|person| person.sees(address))
    }

    /// Whether the address is the viewer's own (R6).
    pub fn owns(&self, address: Address) -> bool {
        self.all(|person| person.owns(address))
    }

    /// Whether anybody who looks owns any address, and so can be a participant at all.
    pub fn owns_any(&self) -> bool {
        self.person.owns_any() || self.beside.as_ref().is_some_and(Person::owns_any)
    }

    /// Whether anything can show that the viewer does not reach: who looks owns an address, or was shared a transaction.
    pub fn owns_or_was_shared_any(&self) -> bool {
        self.owns_any() || self.person.has_shares() || self.beside.as_ref().is_some_and(Person::has_shares)
    }

    /// The viewer's own addresses, in the order they were linked.
    pub fn own_addresses(&self) -> Vec<Address> {
        let mut own = self.person.own_addresses();
        own.retain(|address| self.sees(*address));
        own
    }

    /// By what right this viewer sees the transaction, which was carried out at this moment.
    pub fn admission(&self, tx_hash: B256, from: Address, to: Option<Address>, moment: Moment) -> Admission {
        let own = self.person.admission(tx_hash, from, to, moment);
        self.beside
            .as_ref()
            .map_or(own, |beside| beside.admission(tx_hash, from, to, moment).min(own))
    }

    /// Whether a mined finding withholds the transaction: to this viewer it is not there, by whatever method (HD28).
    pub fn withholds(&self, tx_hash: B256) -> bool {
        !self.all(|person| !person.withholds(tx_hash))
    }

    /// Whether the viewer owns the transaction's sender or receiver (HD10).
    pub fn is_participant(&self, from: Address, to: Option<Address>) -> bool {
        self.all(|person| person.is_participant(from, to))
    }

    /// Whether the transaction was shared with the viewer and the node accepted it (R27, W5).
    pub fn is_recipient(&self, tx_hash: B256) -> bool {
        self.all(|person| person.is_recipient(tx_hash))
    }

    /// Whether the viewer administers the organization: an active `is_org_admin` group, or the claim `admin` (K11).
    pub fn administers(&self, org: OrgId) -> bool {
        self.all(|person| person.administers(org))
    }

    /// Whether the viewer reaches this contract: administrator, grant, deployer, or reservation (spec/20 section 10,
    /// column code-touching). By the same grounds it is Full in the explorer (I1).
    pub fn reaches(&self, address: Address) -> bool {
        self.all(|person| person.reaches(address))
    }

    /// Whether the viewer reaches the contract as it was registered then (HD41): what it did at that moment is theirs to see.
    pub fn reaches_at(&self, address: Address, moment: Moment) -> bool {
        self.all(|person| person.reaches_at(address, moment))
    }

    /// Whether the viewer reaches the contract, or did in blocks of the past that are still theirs to see (HD41).
    pub(crate) fn reaches_ever(&self, address: Address) -> bool {
        self.all(|person| person.reaches(address) || person.reaches_any_time(address))
    }

    /// Whether the viewer reaches the contract that stands there: as [`Self::reaches`], without reservations, which end
    /// with the first code at the address (HD14).
    pub fn reaches_code(&self, address: Address) -> bool {
        self.all(|person| person.reaches(address) && !person.only_reserves(address))
    }

    /// Whether the viewer may read any storage slot of the contract: holds `admin` on it (spec/20 section 9).
    pub fn reads_every_slot(&self, address: Address) -> bool {
        self.all(|person| person.reads_every_slot(address))
    }

    /// Whether the address is a utility of everybody: a precompile or shared infrastructure. It is shown in rows that
    /// survive otherwise, and has no lists, counts or statistics of its own (HD9).
    pub fn is_utility(&self, address: Address) -> bool {
        is_precompile(address) || self.person.snapshot.shared(address).is_some()
    }

    /// Whether it is such a utility, and no mined finding closed it to this viewer (HD28).
    pub(crate) fn is_open_utility(&self, address: Address) -> bool {
        self.is_utility(address) && self.all(|person| !person.is_closed(address))
    }

    /// Whether balance and nonce of the address may be told (K8).
    pub fn shows_account(&self, address: Address) -> bool {
        self.all(|person| person.shows_account(address))
    }
}
