//! Writes a world of the policy tests ([`gw_policy::testing`]) into the store, as its administrators, users and sends
//! would write it.
//!
//! Invariant: every row of the policy world is written, or the test fails; no row is skipped.

use crate::world::World;
use gw_policy::{
    Change,
    snapshot::{self, LinkKind},
    testing::{World as PolicyWorld, did},
};
use gw_store::{
    Tx,
    record::{
        AbiText, AccessInput, ContractPatch, CreationKind, EventRule, EventRules, FunctionRule, LinkProof, MustBe,
        NewContract, NewGrant, NewGroup, NewMembership, NewOrganization, NewReservation, NewTenant, NewUser, ParamRule,
        SendAccepted, SendStart, SenderLink, SharedInfraInput, UserPatch,
    },
};
use gw_types::{Address, ContractId, ExternalId, GroupId, OrgId, UserId};
use std::collections::BTreeMap;

/// The rows of a policy world that are in the store: ids of the policy world to ids of the store.
#[derive(Debug, Default)]
pub(crate) struct Settled {
    orgs: BTreeMap<OrgId, OrgId>,
    groups: BTreeMap<GroupId, GroupId>,
    users: BTreeMap<UserId, (UserId, ExternalId)>,
    contracts: BTreeMap<ContractId, ContractId>,
    written: Vec<Change>,
}

impl Settled {
    /// Writes the rows that are not written yet, in one transaction: a world that has grown adds only its new rows.
    pub(crate) async fn write(&mut self, world: &World, policy_world: &PolicyWorld) {
        let mut changes = policy_world.changes();
        changes.retain(|change| !self.written.contains(change));
        // A proved link of an address comes after another user's inferred link: in the other order nothing is inferred.
        changes.sort_by_key(|change| match change {
            Change::Link(_, Some(link)) if link.kind == LinkKind::System => 0,
            Change::Link(..) | Change::LinkEnded(..) => 1,
            Change::User(..)
            | Change::Organization(..)
            | Change::Group(..)
            | Change::GroupAccess(..)
            | Change::Tenant(..) => -2,
            Change::Membership(..)
            | Change::OrgUserRecord(..)
            | Change::Contract(..)
            | Change::RetiredContract(..)
            | Change::PastContract(..)
            | Change::Grant(..) => -1,
            Change::Reservation(..)
            | Change::Visibility(..)
            | Change::Revocation(..)
            | Change::SharedInfra(..)
            | Change::Toggle(..)
            | Change::PersonalUrl(..)
            | Change::Suspension(..)
            | Change::Quarantine(..)
            | Change::Conviction(..)
            | Change::Withheld(..)
            | Change::ApprovedCode(..)
            | Change::Disclosure(..) => 2,
        });
        world
            .fixture
            .change(async |tx| {
                for change in &changes {
                    self.row(tx, change).await;
                }
            })
            .await;
        self.written.extend(changes);
    }

    /// A token of each user of the world, by name.
    pub(crate) fn token(&self, world: &World, user: &str) -> String {
        let name = did(user);
        assert!(
            self.users.values().any(|(_, known)| *known == name),
            "`{user}` is not a user of this world"
        );
        world.fixture.issue_token(&name).0
    }

    async fn row(&mut self, tx: &mut Tx, change: &Change) {
        match change {
            Change::Organization(policy_id, Some(org)) => {
                let id = if org.is_system {
                    *policy_id
                } else {
                    let (slug, name) = (org.slug.to_string(), org.name.to_string());
                    tx.create_organization(NewOrganization {
                        slug,
                        name,
                        settings: Default::default(),
                    })
                    .await
                    .unwrap()
                    .id
                };
                self.orgs.insert(*policy_id, id);
            }
            Change::Group(policy_id, Some(group)) => {
                let id = if group.is_system {
                    *policy_id
                } else {
                    let new = NewGroup {
                        is_org_admin: group.is_org_admin,
                        is_org_readonly_admin: group.is_org_readonly_admin,
                        ..NewGroup::plain(self.orgs[&group.org], &*group.slug, &*group.slug)
                    };
                    tx.create_group(new).await.unwrap().id
                };
                self.groups.insert(*policy_id, id);
            }
            Change::GroupAccess(policy_id, Some(access)) => {
                let input = AccessInput {
                    allowed_methods: access.methods.names().into_iter().map(str::to_owned).collect(),
                    claims: access.claims,
                    expires_at: access.expires_at,
                    ..AccessInput::default()
                };
                tx.set_access(self.groups[policy_id], input).await.unwrap();
            }
            Change::User(policy_id, Some(user)) => {
                assert_eq!(user.tokens_valid_from, None, "the store sets this itself");
                let new = NewUser {
                    external_id: user.external_id.clone(),
                    kyc: user.kyc,
                    auth_tenant_id: user.tenant,
                    groups: Vec::new(),
                };
                let id = tx.create_user(new).await.unwrap().id;
                if user.banned {
                    tx.update_user(
                        id,
                        UserPatch {
                            banned: Some(true),
                            ..UserPatch::default()
                        },
                    )
                    .await
                    .unwrap();
                }
                self.users.insert(*policy_id, (id, user.external_id.clone()));
            }
            Change::Membership(_, Some(member)) => {
                let (user, group) = (self.users[&member.user].0, self.groups[&member.group]);
                tx.add_membership(NewMembership {
                    user,
                    group,
                    expires_at: member.expires_at,
                })
                .await
                .unwrap();
            }
            Change::Contract(policy_id, Some(contract)) => self.contract(tx, *policy_id, contract).await,
            Change::RetiredContract(_, Some(retired)) => {
                let new = NewContract::plain(self.orgs[&retired.org], retired.address, "retired");
                let created = tx.create_contract(new).await.unwrap();
                tx.delete_contract(created.id, None).await.unwrap();
            }
            Change::Grant(_, Some(grant)) => {
                let new = NewGrant {
                    contract: self.contracts[&grant.contract],
                    group: self.groups[&grant.group],
                    claims: grant.claims,
                    functions: grant
                        .functions
                        .as_ref()
                        .map(|rules| rules.iter().map(function).collect()),
                    event_rules: events(&grant.events),
                };
                tx.create_grant(new).await.unwrap();
            }
            Change::Link(_, Some(link)) => {
                let user = self.users[&link.user].0;
                match link.kind {
                    LinkKind::User => drop(tx.link_address(user, link.address, LinkProof::Challenge).await.unwrap()),
                    LinkKind::System => {
                        let linked = tx.link_sender(user, link.address).await.unwrap();
                        assert!(matches!(linked, SenderLink::Linked(_)), "{linked:?}");
                    }
                }
            }
            Change::Tenant(_, Some(tenant)) => {
                let new = NewTenant {
                    tenant: tenant.tenant,
                    label: String::new(),
                    auto_provision: false,
                    disabled: tenant.disabled,
                    default_org: None,
                    default_group: None,
                };
                tx.create_tenant(new).await.unwrap();
            }
            Change::Reservation(_, Some(reservation)) => {
                let new = NewReservation {
                    address: reservation.address,
                    kind: CreationKind::Plain,
                    sender: Address::ZERO,
                    nonce: 0,
                    expires_at: reservation.expires_at,
                };
                let start = SendStart {
                    user: self.users[&reservation.user].0,
                    org: self.orgs[&reservation.org],
                    tx_hash: None,
                    visible_to: Vec::new(),
                    reservations: vec![new],
                    watch: None,
                };
                let _kept = tx.start_send(start).await.unwrap();
            }
            Change::Visibility(_, Some(shared)) => {
                let start = SendStart {
                    user: self.users[&shared.sender].0,
                    // Only for reservations.
                    org: snapshot::Organization::DEFAULT,
                    tx_hash: Some(shared.tx_hash),
                    visible_to: shared.recipients.clone(),
                    reservations: Vec::new(),
                    watch: None,
                };
                let rows = tx.start_send(start).await.unwrap();
                if shared.active {
                    let accepted = SendAccepted {
                        rows,
                        tx_hash: shared.tx_hash,
                        link: None,
                    };
                    assert_eq!(tx.accept_send(accepted).await.unwrap(), SenderLink::Unchanged);
                }
            }
            Change::SharedInfra(_, Some(shared)) => {
                let input = SharedInfraInput {
                    name: "shared".to_owned(),
                    description: String::new(),
                    codehash: shared.pin.map(|pin| pin.code),
                    implementation_codehash: shared.pin.and_then(|pin| pin.implementation),
                };
                tx.create_shared_infra(shared.address, input).await.unwrap();
            }
            Change::Revocation(..)
            | Change::SharedInfra(_, None)
            | Change::Toggle(..)
            | Change::Suspension(..)
            | Change::Quarantine(..)
            | Change::Conviction(..)
            | Change::ApprovedCode(..)
            | Change::Disclosure(..)
            | Change::Withheld(..)
            | Change::RetiredContract(_, None)
            | Change::PastContract(..)
            | Change::OrgUserRecord(..)
            | Change::Organization(_, None)
            | Change::Group(_, None)
            | Change::GroupAccess(_, None)
            | Change::User(_, None)
            | Change::Membership(_, None)
            | Change::Contract(_, None)
            | Change::Grant(_, None)
            | Change::Link(_, None)
            | Change::LinkEnded(..)
            | Change::Reservation(_, None)
            | Change::Visibility(_, None)
            | Change::PersonalUrl(..)
            | Change::Tenant(_, None) => panic!("cannot be written: {change:?}"),
        }
    }

    async fn contract(&mut self, tx: &mut Tx, policy_id: ContractId, contract: &snapshot::Contract) {
        let new = NewContract {
            abi: contract
                .abi
                .as_ref()
                .map(|abi| AbiText::parse(serde_json::to_string(abi.json()).unwrap()).unwrap()),
            deployer: contract.deployer.map(|user| self.users[&user].0),
            ..NewContract::plain(self.orgs[&contract.org], contract.address, &*contract.name)
        };
        let id = tx.create_contract(new).await.unwrap().id;
        if contract.allow_visibleto_unlock || contract.events_allow_dynamic_payload || contract.trusted_router {
            let patch = ContractPatch {
                allow_visibleto_unlock: Some(contract.allow_visibleto_unlock),
                events_allow_dynamic_payload: Some(contract.events_allow_dynamic_payload),
                trusted_router: Some(contract.trusted_router),
                ..ContractPatch::default()
            };
            tx.update_contract(id, patch).await.unwrap();
        }
        self.contracts.insert(policy_id, id);
    }
}

fn function(rule: &snapshot::FunctionRule) -> FunctionRule {
    FunctionRule {
        selector: rule.selector,
        param_rules: params(&rule.params),
    }
}

fn events(rules: &snapshot::EventRules) -> EventRules {
    match rules {
        snapshot::EventRules::All => EventRules::Unset,
        snapshot::EventRules::Only(rules) => EventRules::List(
            rules
                .iter()
                .map(|rule| EventRule {
                    topic0: rule.topic0,
                    name: String::new(),
                    param_rules: params(&rule.params),
                })
                .collect(),
        ),
    }
}

fn params(rules: &[snapshot::ParamRule]) -> Vec<ParamRule> {
    let must_be = |rule: &snapshot::Constraint| match rule {
        snapshot::Constraint::Own => MustBe::Own,
        snapshot::Constraint::Word(word) => MustBe::parse(&word.to_string()).unwrap(),
        snapshot::Constraint::Org | snapshot::Constraint::OneOf(_) | snapshot::Constraint::Compare(..) => {
            panic!("no policy world needs it: {rule:?}")
        }
    };
    rules
        .iter()
        .map(|rule| ParamRule {
            index: rule.index.try_into().unwrap(),
            must_be: must_be(&rule.must_be),
        })
        .collect()
}
