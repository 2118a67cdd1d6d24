//! What a user may know of an address, written from the tables of spec/30 section 2 and the scenario, not from the
//! code.

use super::scenario::{Disclosure, FIRST_OF_B, LAST_OF_A, Limits, Link, RESERVED, Scenario, Tx, WALLETS};
use gw_types::Level;

/// One user of a scenario under the settings SPEC.
#[derive(Clone, Copy, Debug)]
pub(super) struct Knowledge<'a> {
    pub(super) scenario: &'a Scenario,
    pub(super) user: usize,
}

impl Knowledge<'_> {
    fn is_in(self, group: &str) -> bool {
        self.scenario.members[self.user].contains(&group)
    }

    fn is_of_org(self, org: &str) -> bool {
        let prefix = format!("{org}/");
        self.scenario.members[self.user]
            .iter()
            .any(|group| group.starts_with(&prefix))
    }

    /// Basis 4 and R6.
    pub(super) fn owns(self, name: &str) -> bool {
        let links = || self.scenario.links.iter().filter(|(_, address, _)| *address == name);
        let is_own = |user: usize| user == self.user;
        let proved = |own: bool| links().any(|(user, _, kind)| *kind != Link::Inferred && is_own(*user) == own);
        let inferred = links().any(|(user, _, kind)| *kind == Link::Inferred && is_own(*user));
        let owns = proved(true) || (inferred && !proved(false));
        // HD10: a contract of an organization that its own code linked belongs to a member only.
        let by_key = links().any(|(user, _, kind)| is_own(*user) && *kind != Link::ByCode);
        owns && (name != "a-plain" || by_key || self.is_of_org("a"))
    }

    /// HD10: whether the user is a participant of what is sent to the address.
    pub(super) fn receives(self, name: &str) -> bool {
        let by_code = self
            .scenario
            .links
            .iter()
            .any(|(user, address, kind)| *user == self.user && *address == name && *kind == Link::ByCode);
        self.owns(name) && !by_code && name != "a-plain"
    }

    /// Bases 5 to 8, at a block (HD41).
    fn reaches(self, name: &str, block: u64) -> bool {
        let admin_of_a = self.is_in("a/admins");
        let staff_of_b = self.is_in("b/staff") || self.is_in("b/claim");
        let is_closed = self.scenario.closed.contains(&name);
        !is_closed
            && match name {
                "a-token" => {
                    let is_deployer = self.scenario.deployer == Some(self.user) && self.is_of_org("a");
                    admin_of_a || self.is_in("a/staff") || self.is_in("a/own") || self.is_in("a/none") || is_deployer
                }
                "a-plain" => admin_of_a || self.is_in("a/staff") || self.is_in("a/own"),
                "b-token" => staff_of_b,
                "moved" if block <= LAST_OF_A => admin_of_a || self.is_in("a/staff"),
                "moved" if block >= FIRST_OF_B => staff_of_b,
                "ended" if block <= LAST_OF_A => admin_of_a || self.is_in("a/own"),
                RESERVED => self.scenario.reserved_by.is_some() && staff_of_b,
                _ => false,
            }
    }

    /// Basis 9 outside of rows: the level that unrestricted grants of disclosure give (HD8).
    pub(super) fn disclosed(self, name: &str, block: u64) -> Option<Level> {
        self.disclosed_by(name, block, |grant| grant.limits == Limits::default())
    }

    /// Spec/50 rules 23, 24 and 27: the level that grants of disclosure give in a row with these sides.
    pub(super) fn disclosed_in(self, name: &str, block: u64, sides: &[&str]) -> Option<Level> {
        self.disclosed_by(name, block, |grant| {
            let Limits {
                blocks,
                addresses,
                methods,
            } = &grant.limits;
            // The times of the first two blocks are missing.
            let in_dates = blocks.is_none_or(|(first, last)| block > 1 && first <= block && block <= last);
            let in_addresses = addresses
                .as_ref()
                .is_none_or(|listed| sides.iter().any(|side| listed.contains(side)));
            let in_classes = methods
                .as_ref()
                .is_none_or(|methods| !methods.is_empty() && methods != &["activity_logs"]);
            in_dates && in_addresses && in_classes
        })
    }

    /// Whether any grant of disclosure covers the address, in some rows at least.
    pub(super) fn has_grant(self, name: &str) -> bool {
        self.disclosed_by(name, 100, |_| true).is_some()
    }

    fn disclosed_by(self, name: &str, block: u64, covers: impl Fn(&Disclosure) -> bool) -> Option<Level> {
        // A contract is judged by its registration at the block.
        let is_steady = match name {
            "moved" => block >= FIRST_OF_B,
            "ended" => block > LAST_OF_A,
            _ => true,
        };
        let of_grant = |grant: &Disclosure| {
            let Disclosure {
                owner,
                grantee,
                org,
                level,
                ..
            } = grant;
            let by_owner = Knowledge { user: *owner, ..self };
            let is_proved = self
                .scenario
                .links
                .iter()
                .any(|(user, address, kind)| user == owner && *address == name && *kind != Link::Inferred);
            let counts = *grantee == self.user && self.is_of_org(org) && is_proved && by_owner.owns(name);
            (counts && covers(grant)).then_some(*level)
        };
        let level = self.scenario.disclosures.iter().filter_map(of_grant).max();
        level.filter(|level| is_steady && *level > Level::Hidden)
    }

    /// Whether the address is Full on a basis other than the public one.
    pub(super) fn is_full(self, name: &str, block: u64) -> bool {
        self.owns(name) || self.reaches(name, block) || self.disclosed(name, block) == Some(Level::Full)
    }

    /// Whether the address is printed in clear by its own level.
    pub(super) fn reads(self, name: &str, block: u64) -> bool {
        self.is_full(name, block) || ["zero", "precompile", "infra"].contains(&name)
    }

    pub(super) fn is_participant(self, tx: &Tx) -> bool {
        self.owns(tx.from) || tx.to.is_some_and(|to| self.receives(to))
    }

    pub(super) fn is_shared(self, tx: &Tx) -> bool {
        tx.shared_with.contains(&self.user)
    }

    /// [S] rule 2, R12, R13, R15, HD9, HD10: whether the transaction is in the user's list.
    pub(super) fn lists(self, tx: &Tx) -> bool {
        let sides: Vec<&str> = std::iter::once(tx.from).chain(tx.to).collect();
        let counts = |name: &str| {
            name == "zero" || self.is_full(name, tx.block) || self.disclosed_in(name, tx.block, &sides).is_some()
        };
        !tx.convicted && (self.is_participant(tx) || self.is_shared(tx) || counts(tx.from) || tx.to.is_some_and(counts))
    }

    /// Whether a registered token's contract was registered at the block (HD10).
    pub(super) fn is_registered(name: &str, block: u64) -> bool {
        match name {
            "a-token" | "a-plain" | "b-token" => true,
            "moved" => block <= LAST_OF_A || block >= FIRST_OF_B,
            "ended" => block <= LAST_OF_A,
            _ => false,
        }
    }
}

#[test]
fn the_model_knows_its_wallets() {
    let scenario = Scenario {
        members: vec![vec![]; 5],
        links: vec![(0, "w0", Link::Proved), (1, "w0", Link::Inferred)],
        disclosures: Vec::new(),
        deployer: None,
        reserved_by: None,
        closed: Vec::new(),
        transactions: Vec::new(),
    };
    let owners = WALLETS.map(|wallet| {
        let users = (0..5).filter(|user| {
            let knows = Knowledge {
                scenario: &scenario,
                user: *user,
            };
            knows.owns(wallet)
        });
        users.count()
    });
    assert_eq!(owners, [1, 0, 0, 0, 0]);
}
