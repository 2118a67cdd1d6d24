//! Requests and grants of disclosure (spec/50 sections 2, 3, 6 and 8). This module holds what their tests share: an
//! owner, an auditor, and the steps from a request to a grant.

mod decisions;
mod reads;
mod requests;
mod secrets;

use crate::world::{World, did};
use gw_crypto::KeyCipher;
use gw_policy::disclosure::{GrantLimits, RequestStatus, ScopeInput};
use gw_store::{
    DisclosureError, Store,
    read::{DisclosureFilter, Paging, Scope},
    record::{
        DisclosureApproval, GrantWithRequest, NewDisclosureRequest, NewGroup, NewMembership, NewOrganization, NewUser,
    },
};
use gw_types::{DisclosureRequestId, GroupId, OrgId, Secret, UserId};

/// A page that holds every row.
pub(crate) const ALL: Paging = Paging { limit: 1000, offset: 0 };

pub(crate) fn cipher() -> KeyCipher {
    KeyCipher::new(&Secret::new("11".repeat(32))).unwrap()
}

/// An organization with a group, whose members are the owners of data.
pub(crate) struct People {
    pub(crate) org: OrgId,
    pub(crate) group: GroupId,
    pub(crate) owner: UserId,
    pub(crate) auditor: UserId,
}

pub(crate) async fn people(world: &World) -> People {
    let mut tx = world.begin().await;
    let org = tx
        .create_organization(NewOrganization {
            slug: "bank".into(),
            ..NewOrganization::default()
        })
        .await
        .unwrap();
    let group = tx
        .create_group(NewGroup::plain(org.id, "members", "members"))
        .await
        .unwrap();
    let mut users = Vec::new();
    for name in ["owner", "auditor"] {
        let new = NewUser {
            external_id: did(name),
            kyc: true,
            auth_tenant_id: None,
            groups: Vec::new(),
        };
        users.push(tx.create_user(new).await.unwrap().id);
    }
    tx.add_membership(NewMembership {
        user: users[0],
        group: group.id,
        expires_at: None,
    })
    .await
    .unwrap();
    tx.commit().await.unwrap();
    People {
        org: org.id,
        group: group.id,
        owner: users[0],
        auditor: users[1],
    }
}

impl People {
    /// A request of the auditor for everything of the owner.
    pub(crate) fn request(&self) -> NewDisclosureRequest {
        NewDisclosureRequest {
            requester: None,
            requester_did: Some(did("auditor")),
            target: self.owner,
            org: self.org,
            scope: ScopeInput {
                level: Some("full".to_owned()),
                ..ScopeInput::default()
            },
            reason: "yearly audit".to_owned(),
            legal_basis: None,
            expires_in_hours: None,
            requires_legal_basis_for_full: false,
        }
    }

    /// Creates a request, changed by `change`.
    async fn pending(&self, world: &World, change: impl FnOnce(&mut NewDisclosureRequest)) -> DisclosureRequestId {
        let mut new = self.request();
        change(&mut new);
        let mut tx = world.begin().await;
        let request = tx.create_disclosure_request(new).await.unwrap();
        tx.commit().await.unwrap();
        request.id
    }

    /// Creates a request and approves it as requested.
    async fn approved(&self, world: &World) -> GrantWithRequest {
        let id = self.pending(world, |_| {}).await;
        approve(world, id, self.owner, &DisclosureApproval::default())
            .await
            .unwrap()
    }
}

pub(crate) async fn approve(
    world: &World,
    id: DisclosureRequestId,
    owner: UserId,
    approval: &DisclosureApproval,
) -> Result<GrantWithRequest, DisclosureError> {
    approve_in(&world.store, id, owner, approval).await
}

pub(crate) async fn approve_in(
    store: &Store,
    id: DisclosureRequestId,
    owner: UserId,
    approval: &DisclosureApproval,
) -> Result<GrantWithRequest, DisclosureError> {
    let actor = gw_store::Actor::named("did:test:owner");
    let mut tx = store.begin(&actor).await.unwrap();
    let limits = GrantLimits::default();
    let granted = tx.approve_disclosure(id, owner, approval, limits, &cipher()).await;
    match granted {
        Ok(_) => drop(tx.commit().await.unwrap()),
        Err(_) => tx.rollback().await.unwrap(),
    }
    granted
}

async fn status(world: &World, id: DisclosureRequestId) -> RequestStatus {
    let details = world.store.read().find_disclosure_request(id).await.unwrap();
    details.unwrap().request.status
}

async fn grants(world: &World) -> Vec<GrantWithRequest> {
    let filter = DisclosureFilter::all(Scope::All);
    world
        .store
        .read()
        .list_disclosure_grants(&filter, ALL)
        .await
        .unwrap()
        .rows
}
