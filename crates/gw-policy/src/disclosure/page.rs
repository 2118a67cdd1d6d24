//! How a row of the chain is shown on the page of a disclosed address (the table of spec/50 section 5).

use super::{
    alias::{GrantAliases, PartyName, Side},
    coverage::covers_row,
};
use crate::snapshot::DisclosureGrant;
use gw_types::{Address, Level, Timestamp};

/// A transaction of the disclosed address.
#[derive(Clone, Copy, Debug)]
pub struct PageRow {
    /// The block time; `None` or 0 if it is missing.
    pub time: Option<Timestamp>,
    /// The sender.
    pub from: Address,
    /// The receiver; `None` for a deployment.
    pub to: Option<Address>,
}

/// The page of one disclosed address.
#[derive(Clone, Copy, Debug)]
pub struct GrantPage<'a> {
    /// The grant.
    pub grant: &'a DisclosureGrant,
    /// Its names.
    pub names: &'a GrantAliases,
    /// The addresses that it discloses.
    pub disclosed: &'a [Address],
    /// The address of the page.
    pub address: Address,
}

/// The direction of a transaction, seen from the disclosed address (rule 21).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Direction {
    /// To the address.
    In,
    /// From the address.
    Out,
    /// From and to the address.
    Own,
}

/// How a row is shown. Direction, status, gas, block and time are shown at every level.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PageRowVisibility {
    /// The sender.
    pub from: PartyName,
    /// The receiver; `None` for a deployment.
    pub to: Option<PartyName>,
    /// The direction.
    pub direction: Direction,
    /// Whether the hash and the value are shown, and block and time exactly.
    pub is_full: bool,
}

impl Direction {
    /// The text in answers.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::In => "in",
            Self::Out => "out",
            Self::Own => "self",
        }
    }
}

impl GrantPage<'_> {
    /// How a row is shown to the grantee, whose own addresses `is_own` knows; `None` for a row that the grant does not
    /// cover, or that has no part of the address.
    pub fn row(&self, row: PageRow, is_own: impl Fn(Address) -> bool) -> Option<PageRowVisibility> {
        let sides: Vec<Address> = std::iter::once(row.from).chain(row.to).collect();
        let scope = &self.grant.scope;
        if !sides.contains(&self.address) || !covers_row(scope, row.time, &sides) {
            return None;
        }
        let name = |address: Address| {
            let side = if self.disclosed.contains(&address) {
                Side::Disclosed
            } else if is_own(address) {
                Side::Own
            } else {
                Side::Other
            };
            self.names.party(scope.level, side, address)
        };
        let direction = match (row.from == self.address, row.to == Some(self.address)) {
            (true, true) => Direction::Own,
            (true, false) => Direction::Out,
            (false, _) => Direction::In,
        };
        Some(PageRowVisibility {
            from: name(row.from),
            to: row.to.map(name),
            direction,
            is_full: scope.level == Level::Full,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{snapshot::DisclosureScope, testing::NOW};
    use gw_types::{DisclosureGrantId, ExternalId, OrgId, SealedGrantSecret, UserId};

    const WALLET: Address = Address::repeat_byte(0xa1);
    const SECOND: Address = Address::repeat_byte(0xa2);
    const MINE: Address = Address::repeat_byte(0xb1);
    const OTHER: Address = Address::repeat_byte(0xc1);

    fn grant(level: Level) -> DisclosureGrant {
        DisclosureGrant {
            id: DisclosureGrantId::fixed(1),
            owner: UserId::fixed(1),
            grantee: ExternalId::new("did:test:grantee").unwrap(),
            org: OrgId::fixed(1),
            granted_at: NOW,
            expires_at: NOW,
            revoked_at: None,
            include_future_addresses: false,
            scope: DisclosureScope {
                level,
                dates: None,
                addresses: None,
                methods: None,
            },
            secret: SealedGrantSecret([0; SealedGrantSecret::SIZE]),
        }
    }

    fn shown(grant: &DisclosureGrant, from: Address, to: Option<Address>) -> Option<PageRowVisibility> {
        let names = GrantAliases::new(&[7; 32]).unwrap();
        let page = GrantPage {
            grant,
            names: &names,
            disclosed: &[WALLET, SECOND],
            address: WALLET,
        };
        let row = PageRow {
            time: Some(NOW),
            from,
            to,
        };
        page.row(row, |address| address == MINE)
    }

    #[test]
    fn ds21_the_direction_is_seen_from_the_address() {
        let grant = grant(Level::Full);
        let direction = |from, to| shown(&grant, from, to).map(|row| row.direction.as_str());
        assert_eq!(direction(WALLET, Some(OTHER)), Some("out"));
        assert_eq!(direction(OTHER, Some(WALLET)), Some("in"));
        assert_eq!(direction(WALLET, Some(WALLET)), Some("self"));
        assert_eq!(direction(WALLET, None), Some("out"), "a deployment");
        assert_eq!(direction(SECOND, Some(OTHER)), None, "a row of another address");
    }

    /// The table of section 5, and rule 22: below Full no name contains an address.
    #[test]
    fn ds22_only_a_full_page_shows_addresses() {
        for (level, other, mine) in [
            (Level::Full, None, None),
            (Level::Pseudonymous, Some("External-"), Some("Mine")),
            (Level::Redacted, Some("[PRIVATE]"), Some("[PRIVATE]")),
            (Level::Hidden, Some("[PRIVATE]"), Some("[PRIVATE]")),
        ] {
            let grant = grant(level);
            for (side, expected) in [(OTHER, other), (MINE, mine)] {
                let row = shown(&grant, side, Some(WALLET)).unwrap();
                assert_eq!(row.is_full, level == Level::Full);
                let real = format!("{side:#x}");
                let text = row.from.to_string();
                match expected {
                    None => assert_eq!(text, real),
                    Some(start) => assert!(
                        text.starts_with(start) && !text.contains(real.trim_start_matches("0x")),
                        "{text}"
                    ),
                }
                let own = row.to.unwrap().to_string();
                assert_eq!(own.contains("a1a1"), level == Level::Full, "{own}");
            }
            let second = shown(&grant, SECOND, Some(WALLET)).unwrap().from.to_string();
            assert_eq!(second.starts_with("Address-"), level == Level::Pseudonymous, "{second}");
        }
    }

    #[test]
    fn ds23_rows_outside_of_the_scope_are_not_on_the_page() {
        let mut narrow = grant(Level::Full);
        narrow.scope.addresses = Some(vec![OTHER]);
        assert!(shown(&narrow, OTHER, Some(WALLET)).is_some());
        assert!(shown(&narrow, MINE, Some(WALLET)).is_none());
        narrow.scope = DisclosureScope {
            dates: Some((NOW.plus(gw_types::Seconds(1)), NOW.plus(gw_types::Seconds(2)))),
            ..grant(Level::Full).scope
        };
        assert!(shown(&narrow, OTHER, Some(WALLET)).is_none());
    }
}
