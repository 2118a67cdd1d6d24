//! Linked addresses and collisions.

use super::{Queries, Scope, all, one, users::agreed_members};
use crate::{
    StoreError,
    entity::{address_links, contract_wallet_proofs, groups, users},
    record::{Collision, Link, WalletLink, WalletProof},
    row::{self, RowRef},
};
use gw_types::{Address, Timestamp, UserId};
use sea_orm::{
    ColumnTrait, Condition, EntityTrait, JoinType, QueryFilter, QueryOrder, QuerySelect, QueryTrait, RelationDef,
    sea_query::{Expr, ExprTrait},
};
use uuid::Uuid;

impl Queries<'_> {
    /// Lists a user's live links, newest first.
    ///
    /// # Errors
    /// [`StoreError::Row`] if a stored row is malformed; any database error.
    pub async fn list_links(&self, user: UserId) -> Result<Vec<Link>, StoreError> {
        let live = Condition::all()
            .add(address_links::Column::UserId.eq(user.0))
            .add(address_links::Column::RevokedAt.is_null());
        self.links(live).await
    }

    /// Lists a user's links, including ended ones, newest first.
    ///
    /// # Errors
    /// [`StoreError::Row`] if a stored row is malformed; any database error.
    pub async fn list_all_links(&self, user: UserId) -> Result<Vec<Link>, StoreError> {
        self.links(Condition::all().add(address_links::Column::UserId.eq(user.0)))
            .await
    }

    /// Returns the link row of a user and an address, live or ended.
    ///
    /// # Errors
    /// [`StoreError::Row`] if a stored row is malformed; any database error.
    pub async fn find_link(&self, user: UserId, address: Address) -> Result<Option<Link>, StoreError> {
        let query = address_links::Entity::find()
            .filter(address_links::Column::UserId.eq(user.0))
            .filter(address_links::Column::Address.eq(row::address_text(address)));
        one(query.one(&self.conn).await?)
    }

    /// Lists addresses with live links of several users, of whom at least one is in scope; all holders are listed.
    ///
    /// # Errors
    /// [`StoreError::Row`] if a stored row is malformed; any database error.
    pub async fn list_collisions(&self, scope: &Scope) -> Result<Vec<Collision>, StoreError> {
        let shared = live_addresses()
            .group_by(address_links::Column::Address)
            .having(Expr::col(address_links::Column::UserId).count().gt(1))
            .into_query();
        let mut condition = Condition::all()
            .add(address_links::Column::RevokedAt.is_null())
            .add(address_links::Column::Address.in_subquery(shared));
        if let Some(in_scope) = scope.holds(groups::Column::OrgId) {
            let members = agreed_members(in_scope, self.now);
            let touching = live_addresses()
                .filter(address_links::Column::UserId.in_subquery(members))
                .into_query();
            condition = condition.add(address_links::Column::Address.in_subquery(touching));
        }
        let rows: Vec<(Uuid, String, Uuid, String, String)> = address_links::Entity::find()
            .join(JoinType::InnerJoin, links_to_users())
            .select_only()
            .column(address_links::Column::Id)
            .column(address_links::Column::Address)
            .column(users::Column::Id)
            .column(users::Column::ExternalId)
            .column(address_links::Column::LinkType)
            .filter(condition)
            .order_by_asc(address_links::Column::Address)
            .order_by_asc(users::Column::ExternalId)
            .into_tuple()
            .all(&self.conn)
            .await?;
        let mut collisions: Vec<Collision> = Vec::new();
        for (link, address, user, name, kind) in rows {
            let place = RowRef::new("address_links", link);
            let address = place.parse("address", &address)?;
            let kind = row::link_kind(&kind).ok_or_else(|| place.invalid_column("link_type"))?;
            let holder = (
                user.into(),
                RowRef::new("users", user).parse("external_id", &name)?,
                kind,
            );
            match collisions.last_mut() {
                Some(last) if last.address == address => last.holders.push(holder),
                _ => collisions.push(Collision {
                    address,
                    holders: vec![holder],
                }),
            }
        }
        Ok(collisions)
    }

    /// Lists at most `limit` live links of contract wallets last queried before `before`, least recently queried first.
    ///
    /// # Errors
    /// [`StoreError::Row`] if a stored row is malformed; any database error.
    pub async fn list_unconfirmed_wallets(&self, before: Timestamp, limit: u64) -> Result<Vec<WalletLink>, StoreError> {
        let query = contract_wallet_proofs::Entity::find()
            .join(
                JoinType::InnerJoin,
                contract_wallet_proofs::Entity::belongs_to(address_links::Entity)
                    .from(contract_wallet_proofs::Column::LinkId)
                    .to(address_links::Column::Id)
                    .into(),
            )
            .join(JoinType::InnerJoin, links_to_users())
            .select_only()
            .column(address_links::Column::Id)
            .column(address_links::Column::UserId)
            .column(users::Column::ExternalId)
            .column(address_links::Column::Address)
            .column(contract_wallet_proofs::Column::Hash)
            .column(contract_wallet_proofs::Column::Signature)
            .filter(address_links::Column::RevokedAt.is_null())
            .filter(contract_wallet_proofs::Column::CheckedAt.lt(before.micros()))
            .order_by_asc(contract_wallet_proofs::Column::CheckedAt)
            .limit(limit);
        let rows: Vec<(Uuid, Uuid, String, String, String, String)> = query.into_tuple().all(&self.conn).await?;
        let parse_row = |(link, user, name, address, hash, signature): (Uuid, Uuid, String, String, String, String)| {
            let place = RowRef::new("contract_wallet_proofs", link);
            Ok(WalletLink {
                user: user.into(),
                external_id: RowRef::new("users", user).parse("external_id", &name)?,
                address: RowRef::new("address_links", link).parse("address", &address)?,
                proof: WalletProof {
                    hash: place.parse("hash", &hash)?,
                    signature: hex::decode(&signature).map_err(|_| place.invalid_column("signature"))?,
                },
            })
        };
        rows.into_iter().map(parse_row).collect()
    }

    async fn links(&self, condition: Condition) -> Result<Vec<Link>, StoreError> {
        let query = address_links::Entity::find()
            .filter(condition)
            .order_by_desc(address_links::Column::VerifiedAt)
            .order_by_asc(address_links::Column::Id);
        all(query.all(&self.conn).await?)
    }
}

fn links_to_users() -> RelationDef {
    address_links::Entity::belongs_to(users::Entity)
        .from(address_links::Column::UserId)
        .to(users::Column::Id)
        .into()
}

fn live_addresses() -> sea_orm::Select<address_links::Entity> {
    address_links::Entity::find()
        .select_only()
        .column(address_links::Column::Address)
        .filter(address_links::Column::RevokedAt.is_null())
}
