//! Organizations, groups and their access, users, memberships and linked addresses of a test world.

use super::{FUTURE, PAST, World, address_of, did, group_id, names::uuid, org_id, user_id};
use crate::snapshot::{
    AddressLink, Group, GroupAccess, LinkKind, Membership, MembershipState, OrgUserRecord, Organization, Revocation,
    User,
};
use gw_evm::{CustomMethodNames, Method, MethodSet};
use gw_types::{Address, Claim, Claims, GroupId, LinkId, MembershipId, OrgUserRecordId, Timestamp, TokenId, UserId};

impl World {
    fn group_path(&self, name: &str) -> String {
        if name.contains('/') {
            name.to_owned()
        } else {
            format!("{}/{name}", self.org)
        }
    }

    pub(super) fn existing_group(&self, name: &str) -> GroupId {
        let path = self.group_path(name);
        let id = group_id(&path);
        assert!(
            self.groups.contains_key(&id),
            "the test world has no group `{path}`: add it first"
        );
        id
    }

    pub(super) fn current_user(&self) -> UserId {
        assert!(
            self.user.is_some(),
            "the test world has no current user: call `user` first"
        );
        self.user.unwrap_or(user_id(""))
    }

    /// Adds an organization. The following groups, contracts and reservations belong to it.
    #[must_use]
    pub fn org(mut self, name: &str) -> Self {
        let id = org_id(name);
        self.org = name.to_owned();
        let new_row = Organization {
            id,
            slug: name.into(),
            name: name.into(),
            is_system: false,
        };
        self.orgs.entry(id).or_insert(new_row);
        self
    }

    /// Adds a group to the organization.
    #[must_use]
    pub fn group(mut self, name: &str) -> Self {
        let id = group_id(&self.group_path(name));
        self.group = Some(id);
        let new_row = Group {
            id,
            org: org_id(&self.org),
            slug: name.into(),
            is_org_admin: false,
            is_org_readonly_admin: false,
            is_system: false,
        };
        self.groups.entry(id).or_insert(new_row);
        self
    }

    fn with_group(mut self, change: impl FnOnce(&mut Group)) -> Self {
        let group = self.group.and_then(|id| self.groups.get_mut(&id));
        assert!(
            group.is_some(),
            "the test world has no current group: call `group` first"
        );
        if let Some(group) = group {
            change(group);
        }
        self
    }

    fn with_access(mut self, change: impl FnOnce(&mut GroupAccess)) -> Self {
        assert!(
            self.group.is_some(),
            "the test world has no current group: call `group` first"
        );
        if let Some(group) = self.group {
            let new_row = GroupAccess {
                group,
                methods: MethodSet::EMPTY,
                custom_methods: CustomMethodNames::default(),
                claims: Claims::NONE,
                expires_at: None,
                upstream_key: None,
            };
            change(self.access.entry(group).or_insert(new_row));
        }
        self
    }

    /// Sets the upstream API key of the group, in its stored form.
    #[must_use]
    pub fn upstream_key(self, stored: &str) -> Self {
        self.with_access(|access| access.upstream_key = Some(gw_types::Secret::new(stored)))
    }

    /// Grants these methods to the group.
    #[must_use]
    pub fn methods(self, methods: impl IntoIterator<Item = Method>) -> Self {
        self.with_access(|access| {
            access.methods = access.methods.union(methods.into_iter().collect());
        })
    }

    /// Grants every method of the registry to the group (`*`).
    #[must_use]
    pub fn every_method(self) -> Self {
        self.with_access(|access| access.methods = MethodSet::ALL)
    }

    /// Sets the custom methods that the group's lists allow and deny.
    #[must_use]
    pub fn custom_methods(self, allowed: &[&str], denied: &[&str]) -> Self {
        let owned = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect::<Vec<_>>();
        self.with_access(|access| access.custom_methods = CustomMethodNames::new(&owned(allowed), &owned(denied)))
    }

    /// Gives a claim to the group.
    #[must_use]
    pub fn claim(self, claim: Claim) -> Self {
        self.with_access(|access| access.claims = access.claims.with(claim))
    }

    /// Sets when the access of the group expires.
    #[must_use]
    pub fn access_until(self, end: Timestamp) -> Self {
        self.with_access(|access| access.expires_at = Some(end))
    }

    /// Makes the members of the group administrators of its organization.
    #[must_use]
    pub fn org_admin(self) -> Self {
        self.with_group(|group| group.is_org_admin = true)
    }

    /// Gives the members of the group read-only access to the administration of its organization.
    #[must_use]
    pub fn readonly_admin(self) -> Self {
        self.with_group(|group| group.is_org_readonly_admin = true)
    }

    /// Adds a user with KYC and without memberships.
    #[must_use]
    pub fn user(mut self, name: &str) -> Self {
        let id = user_id(name);
        self.user = Some(id);
        let new_row = User {
            id,
            external_id: did(name),
            kyc: true,
            banned: false,
            tenant: None,
            tokens_valid_from: None,
        };
        self.users.entry(id).or_insert(new_row);
        self
    }

    fn with_user(mut self, change: impl FnOnce(&mut User)) -> Self {
        let id = self.current_user();
        if let Some(user) = self.users.get_mut(&id) {
            change(user);
        }
        self
    }

    /// Removes the user's KYC.
    #[must_use]
    pub fn no_kyc(self) -> Self {
        self.with_user(|user| user.kyc = false)
    }

    /// Bans the user.
    #[must_use]
    pub fn banned(self) -> Self {
        self.with_user(|user| user.banned = true)
    }

    /// Invalidates the user's tokens that were issued before this time.
    #[must_use]
    pub fn tokens_valid_from(self, valid_from: Timestamp) -> Self {
        self.with_user(|user| user.tokens_valid_from = Some(valid_from))
    }

    fn membership(self, group: &str, expires_at: Option<Timestamp>) -> Self {
        self.membership_in(group, expires_at, MembershipState::Accepted, Timestamp::from_secs(0))
    }

    fn membership_in(
        mut self,
        group: &str,
        expires_at: Option<Timestamp>,
        state: MembershipState,
        since: Timestamp,
    ) -> Self {
        let (user, group) = (self.current_user(), self.existing_group(group));
        let id = MembershipId(uuid("membership", &format!("{user}{group}")));
        self.memberships.insert(
            id,
            Membership {
                id,
                user,
                group,
                expires_at,
                state,
                since,
            },
        );
        self
    }

    /// Adds an invited membership, which the user has not accepted.
    #[must_use]
    pub fn invited(self, group: &str) -> Self {
        self.membership_in(group, None, MembershipState::Invited, Timestamp::from_secs(0))
    }

    /// Adds a provisional membership, which the user has not accepted.
    #[must_use]
    pub fn provisional(self, group: &str) -> Self {
        self.provisional_since(group, 0)
    }

    /// Adds a provisional membership that was created at this Unix time in seconds.
    #[must_use]
    pub fn provisional_since(self, group: &str, since: i64) -> Self {
        self.membership_in(group, None, MembershipState::Provisional, Timestamp::from_secs(since))
    }

    fn org_user(mut self, org: &str, change: impl FnOnce(&mut OrgUserRecord)) -> Self {
        let (user, org) = (self.current_user(), org_id(org));
        let Some(user) = self.users.get(&user) else { return self };
        let id = OrgUserRecordId(uuid("org_user_record", &format!("{org}{}", user.external_id)));
        let external_id = user.external_id.clone();
        let new_row = OrgUserRecord {
            id,
            org,
            external_id,
            kyc: false,
            banned: false,
        };
        change(self.org_users.entry(id).or_insert(new_row));
        self
    }

    /// Bans the user in the organization.
    #[must_use]
    pub fn banned_in(self, org: &str) -> Self {
        self.org_user(org, |record| record.banned = true)
    }

    /// Marks the user's KYC as completed by the organization.
    #[must_use]
    pub fn verified_in(self, org: &str) -> Self {
        self.org_user(org, |record| record.kyc = true)
    }

    /// Adds a permanent, accepted membership.
    #[must_use]
    pub fn member(self, group: &str) -> Self {
        self.membership(group, None)
    }

    /// Adds an accepted membership that expires at `end`.
    #[must_use]
    pub fn member_until(self, group: &str, end: Timestamp) -> Self {
        self.membership(group, Some(end))
    }

    fn linked(mut self, address: Address, kind: LinkKind, verified_at: Timestamp) -> Self {
        let user = self.current_user();
        let id = LinkId(uuid("link", &format!("{user}{address}{kind:?}")));
        self.links.insert(
            id,
            AddressLink {
                id,
                user,
                address,
                kind,
                contract_wallet: false,
                verified_at,
            },
        );
        self
    }

    /// Adds a proved link of the user to the wallet with this name.
    #[must_use]
    pub fn link(self, wallet: &str) -> Self {
        self.linked(address_of(wallet), LinkKind::User, PAST)
    }

    /// Adds an inferred link of the user to the wallet with this name.
    #[must_use]
    pub fn system_link(self, wallet: &str) -> Self {
        self.linked(address_of(wallet), LinkKind::System, PAST)
    }

    /// Adds a link of the user to the wallet with this name that the wallet's own code proved (ERC-1271).
    #[must_use]
    pub fn contract_link(mut self, wallet: &str) -> Self {
        self = self.linked(address_of(wallet), LinkKind::User, PAST);
        let user = self.current_user();
        for link in self
            .links
            .values_mut()
            .filter(|link| link.user == user && link.address == address_of(wallet))
        {
            link.contract_wallet = true;
        }
        self
    }

    /// Adds a proved link of the user to this address.
    #[must_use]
    pub fn link_address(self, address: Address) -> Self {
        self.linked(address, LinkKind::User, PAST)
    }

    /// Adds an ended link of the user to the wallet with this name.
    #[must_use]
    pub fn unlinked(mut self, wallet: &str) -> Self {
        let (user, address) = (self.current_user(), address_of(wallet));
        self.ended_links
            .insert(LinkId(uuid("link", &format!("{user}{address}"))), address);
        self
    }

    /// Adds the revocation of a token or token family.
    #[must_use]
    pub fn revoked(mut self, id: TokenId) -> Self {
        self.revocations.insert(id, Revocation { id, until: FUTURE });
        self
    }
}
