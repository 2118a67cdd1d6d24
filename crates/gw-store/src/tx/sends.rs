//! Rows that the send path writes (R1-R4, W5, W6, HD14), in few statements.
//!
//! Reservations and links have audit entries; visibility rows have none, as the send's own record names them.

use super::{Tx, audit::Action};
use crate::{
    StoreError,
    entity::{
        contracts, groups, memberships, organizations, reservations, retired_contracts, tx_visibility, users,
        watched_sends,
    },
    record::{
        Contract, Mined, NewContract, NewGrant, NewGroup, NewMembership, OpenReservation, ReservationState,
        SendAccepted, SendRows, SendStart, SenderLink,
    },
    row,
};
use gw_types::{B256, ContractId, ExternalId, GroupId, OrgId, ReservationId, Timestamp, UserId};
use sea_orm::{
    ActiveValue::Set, ColumnTrait, Condition, EntityTrait, ModelTrait, QueryFilter, QueryOrder, sea_query::Expr,
};
use serde_json::json;
use sha2::{Digest, Sha256};
use std::collections::HashSet;

impl Tx {
    /// Writes the rows of a send before forwarding: reservations, the watched send and the inactive visibility row. The
    /// first visibility row of a hash stays: a later send of the same bytes writes none (R27, decision 59).
    ///
    /// # Errors
    /// [`StoreError::Rule`] if the send is to be visible to others and its hash is unknown, or the user or the
    /// organization does not exist; [`StoreError::Row`] if a stored row is malformed; any database error.
    pub async fn start_send(&mut self, start: SendStart) -> Result<SendRows, StoreError> {
        let mut rows = SendRows::default();
        let tx_hash = if start.visible_to.is_empty() {
            None
        } else {
            let tx_hash = start.tx_hash.ok_or(StoreError::Rule("visibility_without_hash"))?;
            let first = tx_visibility::Entity::find().filter(tx_visibility::Column::TxHash.eq(tx_hash.to_string()));
            first.one(&self.db).await?.is_none().then_some(tx_hash)
        };
        if let Some(tx_hash) = tx_hash {
            let id = self.new_id();
            let row = tx_visibility::ActiveModel {
                id: Set(id),
                tx_hash: Set(tx_hash.to_string()),
                sender_user_id: Set(start.user.0),
                recipients: Set(json!(start.visible_to)),
                active: Set(false),
                created_at: Set(self.now.micros()),
            };
            tx_visibility::Entity::insert(row)
                .exec_without_returning(&self.db)
                .await?;
            rows.visibility = Some(id.into());
        }
        if let Some(watch) = start.watch {
            let id = self.new_id();
            let authorized_runs = watch.authorized_runs.as_ref();
            let row = watched_sends::Model {
                id,
                tx_hash: start.tx_hash.map(|hash| hash.to_string()),
                sender: row::address_text(watch.sender),
                nonce: watch.nonce.to_string(),
                external_id: watch.external_id.as_str().to_owned(),
                org_id: start.org.0,
                org_ids: json!(watch.orgs),
                is_named: watch.is_named,
                created_at: self.now.micros(),
                block_number: None,
                judged_block: authorized_runs.map(|authorized_runs| authorized_runs.block.to_string()),
                judged_number: authorized_runs
                    .map(|authorized_runs| i64::try_from(authorized_runs.number).unwrap_or(i64::MAX)),
                judged_runs: authorized_runs.map(|authorized_runs| json!(authorized_runs.digests)),
                judged_may_vary: authorized_runs.map(|authorized_runs| authorized_runs.may_vary),
                judged_changes: authorized_runs
                    .and_then(|authorized_runs| authorized_runs.changes.as_ref())
                    .map(|changes| json!(changes)),
            };
            watched_sends::Entity::insert(watched_sends::ActiveModel::from(row))
                .exec_without_returning(&self.db)
                .await?;
            rows.watch = Some(id.into());
        }
        let mut reserved = Vec::with_capacity(start.reservations.len());
        for new in &start.reservations {
            let id = self.new_id();
            rows.reservations.push(id.into());
            reserved.push(reservations::Model {
                id,
                address: row::address_text(new.address),
                org_id: start.org.0,
                user_id: start.user.0,
                kind: new.kind.as_str().to_owned(),
                sender: row::address_text(new.sender),
                nonce: new.nonce.to_string(),
                tx_hash: start.tx_hash.map(|hash| hash.to_string()),
                state: ReservationState::Reserved.as_str().to_owned(),
                expires_at: new.expires_at.micros(),
                created_at: self.now.micros(),
            });
        }
        if !reserved.is_empty() {
            let models = reserved.iter().cloned().map(reservations::ActiveModel::from);
            reservations::Entity::insert_many(models)
                .exec_without_returning(&self.db)
                .await?;
            for row in reserved {
                self.record_audit::<OpenReservation>(Action::Create, Some(start.org), None, Some(&row.try_into()?));
            }
        }
        Ok(rows)
    }

    /// Records that the node accepted a send: activates the visibility row, marks the reservations as sent, and links
    /// the sender unless a rule forbids it.
    ///
    /// # Errors
    /// [`StoreError::NotFound`] if the user to link does not exist; [`StoreError::Row`] if a stored row is malformed;
    /// any database error.
    pub async fn accept_send(&mut self, accepted: SendAccepted) -> Result<SenderLink, StoreError> {
        let SendAccepted { rows, tx_hash, link } = accepted;
        if let Some(id) = rows.visibility {
            tx_visibility::Entity::update_many()
                .col_expr(tx_visibility::Column::Active, Expr::value(true))
                .filter(tx_visibility::Column::Id.eq(id.0))
                .exec(&self.db)
                .await?;
        }
        if !rows.reservations.is_empty() {
            reservations::Entity::update_many()
                .col_expr(
                    reservations::Column::State,
                    Expr::value(ReservationState::Sent.as_str()),
                )
                .col_expr(reservations::Column::TxHash, Expr::value(tx_hash.to_string()))
                .filter(by_ids(&rows.reservations))
                .filter(reservations::Column::State.eq(ReservationState::Reserved.as_str()))
                .exec(&self.db)
                .await?;
        }
        if let Some(id) = rows.watch {
            watched_sends::Entity::update_many()
                .col_expr(watched_sends::Column::TxHash, Expr::value(tx_hash.to_string()))
                .filter(watched_sends::Column::Id.eq(id.0))
                .filter(watched_sends::Column::TxHash.is_null())
                .exec(&self.db)
                .await?;
        }
        match link {
            Some((user, sender)) => self.link_sender(user, sender).await,
            None => Ok(SenderLink::Unchanged),
        }
    }

    /// Records that the node rejected a send: deletes the send's own rows.
    ///
    /// # Errors
    /// [`StoreError::Row`] if a stored row is malformed; any database error.
    pub async fn refuse_send(&mut self, rows: SendRows) -> Result<(), StoreError> {
        if let Some(id) = rows.visibility {
            tx_visibility::Entity::delete_many()
                .filter(tx_visibility::Column::Id.eq(id.0))
                .filter(tx_visibility::Column::Active.eq(false))
                .exec(&self.db)
                .await?;
        }
        if let Some(id) = rows.watch {
            watched_sends::Entity::delete_by_id(id.0).exec(&self.db).await?;
        }
        let unsent = Condition::all()
            .add(by_ids(&rows.reservations))
            .add(reservations::Column::State.eq(ReservationState::Reserved.as_str()));
        for row in reservations::Entity::find().filter(unsent).all(&self.db).await? {
            let org = row.org_id.into();
            let before = OpenReservation::try_from(row.clone())?;
            row.delete(&self.db).await?;
            self.record_audit(Action::Delete, Some(org), Some(&before), None);
        }
        Ok(())
    }

    /// Records that a transaction was mined: registers the contracts it created, with a grant to the deployer's group
    /// (R3), and settles its reservations. Returns the contracts registered now.
    ///
    /// # Errors
    /// [`StoreError::NotFound`] if the deployer was deleted meanwhile; [`StoreError::Row`] if a stored row is
    /// malformed; any database error.
    pub async fn settle_mined(&mut self, mined: Mined) -> Result<Vec<ContractId>, StoreError> {
        let created: HashSet<String> = mined.created.iter().map(|new| row::address_text(new.address)).collect();
        let of_transaction = reservations::Column::TxHash.eq(mined.tx_hash.to_string());
        for row in reservations::Entity::find()
            .filter(of_transaction)
            .all(&self.db)
            .await?
        {
            let is_created = created.contains(&row.address);
            let state = if is_created {
                ReservationState::Mined
            } else {
                ReservationState::Reverted
            };
            // Several users may have sent the transaction. One whose contracts are withheld passes none, and does not
            // take back the registration for another; only `undo_mined` does.
            if is_created || row.state != ReservationState::Mined.as_str() {
                self.settle(row, state).await?;
            }
        }
        let registered = contracts::Entity::find().filter(contracts::Column::Address.is_in(created.iter()));
        let registered: HashSet<String> = registered
            .all(&self.db)
            .await?
            .into_iter()
            .map(|contract| contract.address)
            .collect();
        // Contracts that another organization registered and deleted stay unregistered too (HD27).
        let retired = retired_contracts::Entity::find()
            .filter(retired_contracts::Column::Address.is_in(created.iter()))
            .filter(retired_contracts::Column::OrgId.ne(mined.org.0));
        let retired: HashSet<String> = retired
            .all(&self.db)
            .await?
            .into_iter()
            .map(|row| row.address)
            .collect();
        let is_taken = |address: &String| registered.contains(address) || retired.contains(address);
        let mut fresh = mined.created.clone();
        let mut addresses = HashSet::new();
        fresh.retain(|new| addresses.insert(new.address) && !is_taken(&row::address_text(new.address)));
        if fresh.is_empty() {
            return Ok(Vec::new());
        }
        // A deleted organization owns nothing; contracts of a deleted user still belong to the organization.
        if organizations::Entity::find_by_id(mined.org.0)
            .one(&self.db)
            .await?
            .is_none()
        {
            return Ok(Vec::new());
        }
        let deployer = match mined.user {
            Some(user) => users::Entity::find_by_id(user.0).one(&self.db).await?.map(|_| user),
            None => None,
        };
        let group = match deployer.filter(|_| mined.grant) {
            Some(user) => Some(self.deployer_group(user, mined.org).await?),
            None => None,
        };
        let mut contracts = Vec::with_capacity(fresh.len());
        for new in fresh {
            let mut metadata = new.metadata;
            metadata.insert("auto_registered".to_owned(), true.into());
            metadata.insert("via".to_owned(), new.kind.as_str().into());
            metadata.insert("tx_hash".to_owned(), mined.tx_hash.to_string().into());
            metadata.insert("block_hash".to_owned(), mined.block_hash.to_string().into());
            let contract = self
                .create_contract(NewContract {
                    metadata,
                    deployed_at: Some(mined.at),
                    deployer,
                    first_block: Some(mined.block_number),
                    ..NewContract::plain(mined.org, new.address, row::address_text(new.address))
                })
                .await?;
            if let Some(group) = group {
                self.create_grant(NewGrant::full(contract.id, group)).await?;
            }
            contracts.push(contract.id);
        }
        Ok(contracts)
    }

    /// Like [`Self::settle_mined`], but changes nothing if the reservation was settled since it was read. Then the
    /// contracts are already registered or withheld.
    ///
    /// # Errors
    /// The errors of [`Self::settle_mined`].
    pub async fn settle_mined_reservation(
        &mut self,
        reservation: ReservationId,
        mined: Mined,
    ) -> Result<Vec<ContractId>, StoreError> {
        let row = reservations::Entity::find_by_id(reservation.0).one(&self.db).await?;
        let is_open = match row {
            Some(row) => OpenReservation::try_from(row)?.state.is_open(),
            None => false,
        };
        if is_open {
            self.settle_mined(mined).await
        } else {
            Ok(Vec::new())
        }
    }

    /// Undoes the effects of a mined transaction that a reorganization dropped: deletes its registrations and reopens
    /// its reservations (HD14).
    ///
    /// # Errors
    /// [`StoreError::Row`] if a stored row is malformed; any database error.
    pub async fn undo_mined(&mut self, org: OrgId, tx_hash: B256) -> Result<(), StoreError> {
        let own = reservations::Entity::find().filter(reservations::Column::TxHash.eq(tx_hash.to_string()));
        for row in own.all(&self.db).await? {
            if row.state == ReservationState::Mined.as_str() {
                self.settle(row, ReservationState::Sent).await?;
            }
        }
        for row in contracts::Entity::find()
            .filter(contracts::Column::OrgId.eq(org.0))
            .all(&self.db)
            .await?
        {
            let contract = Contract::try_from(row)?;
            let registered = contract.metadata.get("auto_registered") == Some(&true.into());
            if registered && contract.metadata.get("tx_hash") == Some(&json!(tx_hash.to_string())) {
                self.drop_contract(contract.id).await?;
            }
        }
        Ok(())
    }

    /// Settles reservations whose transaction failed or was replaced.
    ///
    /// A reservation that was settled, or got another transaction, since it was read stays unchanged: the decision was
    /// about an earlier state of it.
    ///
    /// # Errors
    /// [`StoreError::Row`] if a stored reservation is malformed; any database error.
    pub async fn settle_reservations(
        &mut self,
        decided: &[OpenReservation],
        state: ReservationState,
    ) -> Result<(), StoreError> {
        let ids: Vec<ReservationId> = decided.iter().map(|reservation| reservation.id).collect();
        for row in reservations::Entity::find().filter(by_ids(&ids)).all(&self.db).await? {
            let current = OpenReservation::try_from(row.clone())?;
            let is_unchanged = decided
                .iter()
                .any(|read| read.id == current.id && read.tx_hash == current.tx_hash);
            if current.state.is_open() && is_unchanged {
                self.settle(row, state).await?;
            }
        }
        Ok(())
    }

    async fn settle(&mut self, row: reservations::Model, state: ReservationState) -> Result<(), StoreError> {
        let org = row.org_id.into();
        let before = OpenReservation::try_from(row)?;
        if before.state == state {
            return Ok(());
        }
        reservations::Entity::update_many()
            .col_expr(reservations::Column::State, Expr::value(state.as_str()))
            .filter(reservations::Column::Id.eq(before.id.0))
            .exec(&self.db)
            .await?;
        let after = OpenReservation {
            state,
            ..before.clone()
        };
        self.record_audit(Action::Update, Some(org), Some(&before), Some(&after));
        Ok(())
    }

    /// Returns the deployer's own group in the organization; creates it on first use (R3, decision 48).
    async fn deployer_group(&mut self, user: UserId, org: OrgId) -> Result<GroupId, StoreError> {
        let name: ExternalId =
            row::RowRef::new("users", user.0).parse("external_id", &self.user_row(user).await?.external_id)?;
        let mut digest = hex::encode(Sha256::digest(name.as_str()));
        digest.truncate(12);
        let slug = format!("deployer-{digest}");
        // A group created by an administrator is never a deployer's group, whatever its slug.
        let stored = groups::Entity::find()
            .filter(groups::Column::OrgId.eq(org.0))
            .filter(groups::Column::AutoCreated.eq(true))
            .filter(groups::Column::Slug.starts_with(&slug))
            .order_by_asc(groups::Column::Id)
            .one(&self.db)
            .await?;
        // A deployer who is no longer a member was removed: a deployment does not undo that.
        if let Some(group) = stored {
            return Ok(group.id.into());
        }
        // A name or slug used by an administrator must not keep a block from being settled (HD36).
        let taken = groups::Entity::find()
            .filter(groups::Column::OrgId.eq(org.0))
            .filter(
                Condition::any()
                    .add(groups::Column::NameKey.eq(&slug))
                    .add(groups::Column::Slug.eq(&slug)),
            )
            .one(&self.db)
            .await?;
        let slug = if taken.is_some() {
            format!("{slug}-{}", self.new_id())
        } else {
            slug
        };
        let new = NewGroup {
            auto_created: true,
            ..NewGroup::plain(org, slug.clone(), slug)
        };
        let group = self.create_group(new).await?.id;
        // A deployment is no agreement: if the user has not accepted the organization yet, this membership is pending
        // too (HD32).
        let expires_at = self.end_of_memberships(user, org).await?;
        self.offer_membership(NewMembership {
            user,
            group,
            expires_at,
        })
        .await?;
        Ok(group)
    }

    /// Returns when the last membership of a user in an organization ends; `None` if one never ends. A membership added
    /// by a deployment lasts no longer than those it derives from (HD35).
    async fn end_of_memberships(&self, user: UserId, org: OrgId) -> Result<Option<Timestamp>, StoreError> {
        let rows = memberships::Entity::find()
            .filter(memberships::Column::UserId.eq(user.0))
            .all(&self.db)
            .await?;
        let own = groups::Entity::find()
            .filter(groups::Column::OrgId.eq(org.0))
            .filter(groups::Column::Id.is_in(rows.iter().map(|row| row.group_id)));
        let own: HashSet<_> = own.all(&self.db).await?.into_iter().map(|group| group.id).collect();
        let ends = rows
            .into_iter()
            .filter(|row| own.contains(&row.group_id))
            .map(|row| row.expires_at);
        let ends: Option<Vec<i64>> = ends.collect();
        Ok(ends.and_then(|ends| ends.into_iter().max()).map(Timestamp::from_micros))
    }
}

fn by_ids(ids: &[ReservationId]) -> sea_orm::sea_query::Expr {
    reservations::Column::Id.is_in(ids.iter().map(|id| id.0))
}
