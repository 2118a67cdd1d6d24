//! The fixed rows: the default and the anonymous organization, each with its group (A2, A3, A6).
//!
//! Inserted only if missing, so that changes by administrators stay.

use crate::{
    StoreError,
    dialect::Transaction,
    entity::{group_access, groups, organizations},
};
use gw_evm::{Class, Method};
use gw_policy::snapshot::{Group, Organization};
use gw_types::{GroupId, OrgId, Timestamp};
use sea_orm::{ActiveValue::Set, EntityTrait};

pub(crate) async fn insert(tx: &Transaction, now: Timestamp) -> Result<(), StoreError> {
    plant_one(tx, now, Organization::DEFAULT, Group::DEFAULT, "default", "Default").await?;
    plant_one(
        tx,
        now,
        Organization::ANONYMOUS,
        Group::ANONYMOUS,
        "anonymous",
        "Anonymous",
    )
    .await
}

async fn plant_one(
    tx: &Transaction,
    now: Timestamp,
    org: OrgId,
    group: GroupId,
    slug: &str,
    name: &str,
) -> Result<(), StoreError> {
    if organizations::Entity::find_by_id(org.0).one(tx).await?.is_some() {
        return Ok(());
    }
    organizations::Entity::insert(organizations::ActiveModel {
        id: Set(org.0),
        slug: Set(slug.to_owned()),
        name: Set(name.to_owned()),
        settings: Set(serde_json::json!({})),
        is_system: Set(true),
        created_at: Set(now.micros()),
        updated_at: Set(now.micros()),
    })
    .exec_without_returning(tx)
    .await?;
    groups::Entity::insert(groups::ActiveModel {
        id: Set(group.0),
        org_id: Set(org.0),
        parent_id: Set(None),
        slug: Set(slug.to_owned()),
        name: Set(name.to_owned()),
        name_key: Set(name.to_lowercase()),
        description: Set(String::new()),
        is_org_admin: Set(false),
        is_org_readonly_admin: Set(false),
        is_system: Set(true),
        auto_created: Set(false),
        created_at: Set(now.micros()),
        updated_at: Set(now.micros()),
    })
    .exec_without_returning(tx)
    .await?;
    let methods: Vec<_> = Method::ALL
        .iter()
        .filter(|m| m.class() == Class::Meta)
        .map(|m| m.as_str())
        .collect();
    group_access::Entity::insert(group_access::ActiveModel {
        group_id: Set(group.0),
        allowed_methods: Set(serde_json::json!(methods)),
        claims: Set(String::new()),
        rpc_api_key: Set(None),
        verbose_errors: Set(false),
        created_at: Set(now.micros()),
        updated_at: Set(now.micros()),
        denied_methods: Set(serde_json::json!([])),
        expires_at: Set(None),
    })
    .exec_without_returning(tx)
    .await?;
    Ok(())
}
