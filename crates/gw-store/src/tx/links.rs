//! Linked addresses (spec/10 section 7).
//!
//! Invariant: one row per user and address. It stays when the link ends, so that an ended link is never inferred again
//! and a link revoked by an administrator never proved again.

use super::{
    Tx,
    audit::{Action, RecordWithReason},
};
use crate::{
    Missing, StoreError,
    entity::{
        address_links, contract_wallet_proofs, contracts, former_links, reservations, retired_contracts,
        shared_infrastructure,
    },
    record::{Link, LinkProof, LinkResult, ReservationState, SenderLink, WalletProof},
    row,
};
use gw_policy::snapshot::LinkKind;
use gw_types::{Address, ExternalId, OrgId, Seconds, UserId};
use sea_orm::{
    ActiveModelTrait, ActiveValue::Set, ColumnTrait, EntityTrait, IntoActiveModel, ModelTrait, PaginatorTrait,
    QueryFilter, QuerySelect, sea_query::Expr,
};

/// How long an administrator's revocation prevents a link from being inferred again (spec/80 section 7).
const REVOCATION_HOLDS: Seconds = Seconds(30 * 86_400);

/// Use of an address other than as a wallet.
enum AddressUse {
    /// A contract registered to this organization.
    Registered(OrgId),
    /// A contract whose registration was deleted.
    Retired(retired_contracts::Model),
    /// Shared infrastructure.
    Utility,
    /// Reserved for a deployment.
    Reserved,
}

impl Tx {
    /// Links an address that its owner proved; upgrades an inferred link, and restores one that its owner had ended.
    ///
    /// Fails with [`StoreError::LinkRevoked`] for a link that an administrator revoked (LK-2), and with
    /// [`StoreError::Rule`] for an address that is registered, shared or reserved as a contract (HD10), or was
    /// registered (HD27). Exceptions: a registered contract may be linked by its own confirmation if the proof names
    /// its organization; and a proof by key for an address whose registration was deleted shows that it never was a
    /// contract.
    ///
    /// # Errors
    /// [`StoreError::NotFound`] if there is no such user; [`StoreError::LinkRevoked`] if an administrator revoked the
    /// link; [`StoreError::Rule`] if the address is a contract and the proof is not one of a contract wallet, or it is
    /// registered or reserved; [`StoreError::Row`] if a stored row is malformed; any database error.
    pub async fn link_address(
        &mut self,
        user: UserId,
        address: Address,
        proof: LinkProof,
    ) -> Result<LinkResult, StoreError> {
        match (self.address_use(address).await?, &proof) {
            (None, LinkProof::Challenge | LinkProof::ContractWallet { owner: None, .. }) => {}
            (Some(AddressUse::Retired(row)), LinkProof::Challenge) => {
                row.delete(&self.db).await?;
            }
            (Some(AddressUse::Registered(org)), LinkProof::ContractWallet { owner: Some(owner), .. })
                if org == *owner => {}
            (
                None
                | Some(AddressUse::Registered(_) | AddressUse::Retired(_) | AddressUse::Utility | AddressUse::Reserved),
                _,
            ) => {
                return Err(StoreError::Rule("address_is_contract"));
            }
        }
        if self.was_revoked_before(user, address).await? {
            return Err(StoreError::LinkRevoked);
        }
        let proof = match proof {
            LinkProof::Challenge => {
                self.forget_past_contracts(address).await?;
                None
            }
            LinkProof::ContractWallet { proof, .. } => Some(proof),
        };
        let linked = match self.link_row(user, address).await? {
            None => self.insert_link(user, address, LinkKind::User, proof.is_some()).await?,
            Some(row) => {
                let before = Link::try_from(row.clone())?;
                if before.revoked_at.is_some() && before.revoked_by_admin {
                    return Err(StoreError::LinkRevoked);
                }
                self.revive(row, &before, LinkKind::User, proof.is_some()).await?
            }
        };
        self.end_inferred_links(user, address).await?;
        self.keep_wallet_proof(&linked.link, proof.as_ref()).await?;
        Ok(linked)
    }

    /// Stores a link of an account that is being deleted, by the account's external id (HD37).
    pub(super) async fn remember_link(&self, name: &ExternalId, link: &address_links::Model) -> Result<(), StoreError> {
        let former_link = former_links::Entity::find()
            .filter(former_links::Column::ExternalId.eq(name.as_str()))
            .filter(former_links::Column::Address.eq(&link.address))
            .one(&self.db)
            .await?;
        // A revocation stays in force, however often the account is deleted and created again.
        let was_revoked = former_link
            .as_ref()
            .is_some_and(|former_link| former_link.revoked_by_admin);
        if let Some(former_link) = former_link {
            former_link.delete(&self.db).await?;
        }
        let row = former_links::ActiveModel {
            id: Set(self.new_id()),
            address: Set(link.address.clone()),
            external_id: Set(name.as_str().to_owned()),
            revoked_by_admin: Set(was_revoked || (link.revoked_at.is_some() && link.revoked_by_admin)),
            ended_at: Set(link.revoked_at.unwrap_or_else(|| self.now.micros())),
        };
        row.insert(&self.db).await?;
        Ok(())
    }

    /// Ends inferred links of other users to an address that a user proves: they must not become effective again when
    /// the proved link ends, and show what its owner did meanwhile (LK-5, LK-7).
    async fn end_inferred_links(&mut self, user: UserId, address: Address) -> Result<(), StoreError> {
        let inferred = address_links::Column::LinkType.eq(row::link_kind_text(LinkKind::System));
        for row in self.others(user, address).filter(inferred).all(&self.db).await? {
            self.end_link(row.user_id.into(), address, false, "another user proved the address")
                .await?;
        }
        Ok(())
    }

    /// Whether another user ever proved the address; any former link of a deleted account counts, as its kind is
    /// unknown.
    async fn was_proved_by_others(&self, user: UserId, address: Address) -> Result<bool, StoreError> {
        let text = row::address_text(address);
        let proved = address_links::Entity::find()
            .filter(address_links::Column::Address.eq(&text))
            .filter(address_links::Column::UserId.ne(user.0))
            .filter(address_links::Column::LinkType.eq(row::link_kind_text(LinkKind::User)));
        if proved.count(&self.db).await? > 0 {
            return Ok(true);
        }
        let name = self.name_of(user).await?;
        let former = former_links::Entity::find()
            .filter(former_links::Column::Address.eq(&text))
            .filter(former_links::Column::ExternalId.ne(name.as_str()));
        Ok(former.count(&self.db).await? > 0)
    }

    /// Whether an administrator revoked the link of a since deleted account with this name (LK-2, HD37).
    async fn was_revoked_before(&self, user: UserId, address: Address) -> Result<bool, StoreError> {
        let name = self.name_of(user).await?;
        let row = former_links::Entity::find()
            .filter(former_links::Column::ExternalId.eq(name.as_str()))
            .filter(former_links::Column::Address.eq(row::address_text(address)))
            .filter(former_links::Column::RevokedByAdmin.eq(true))
            .count(&self.db)
            .await?;
        Ok(row > 0)
    }

    /// Stores what a contract wallet confirmed, so that it can be queried again; a proof by key deletes it.
    async fn keep_wallet_proof(&self, link: &Link, proof: Option<&WalletProof>) -> Result<(), StoreError> {
        contract_wallet_proofs::Entity::delete_by_id(link.id.0)
            .exec(&self.db)
            .await?;
        let Some(proof) = proof else { return Ok(()) };
        let row = contract_wallet_proofs::ActiveModel {
            link_id: Set(link.id.0),
            hash: Set(format!("{:#x}", proof.hash)),
            signature: Set(hex::encode(&proof.signature)),
            checked_at: Set(self.now.micros()),
        };
        row.insert(&self.db).await?;
        Ok(())
    }

    /// Records that a contract wallet confirmed again.
    ///
    /// # Errors
    /// [`StoreError::NotFound`] if the user has no live link to the address; any database error.
    pub async fn confirm_wallet_link(&mut self, user: UserId, address: Address) -> Result<(), StoreError> {
        let link = self.live_link_row(user, address).await?;
        contract_wallet_proofs::Entity::update_many()
            .col_expr(
                contract_wallet_proofs::Column::CheckedAt,
                Expr::value(self.now.micros()),
            )
            .filter(contract_wallet_proofs::Column::LinkId.eq(link.id))
            .exec(&self.db)
            .await?;
        Ok(())
    }

    /// Ends a link whose contract wallet no longer confirms (HD10). Its owner may prove it again.
    ///
    /// # Errors
    /// [`StoreError::NotFound`] if the user has no live link to the address; [`StoreError::Row`] if a stored row is
    /// malformed; any database error.
    pub async fn end_wallet_link(&mut self, user: UserId, address: Address) -> Result<Link, StoreError> {
        self.end_link(
            user,
            address,
            false,
            "the contract wallet no longer confirms the signature",
        )
        .await
    }

    /// Links the recovered sender of an accepted raw transaction, unless another user proved the address, its owner
    /// ended the link, or an administrator revoked it within the last 30 days (LK-7, W6).
    ///
    /// # Errors
    /// [`StoreError::NotFound`] if there is no such user; [`StoreError::Row`] if a stored row is malformed; any
    /// database error.
    pub async fn link_sender(&mut self, user: UserId, sender: Address) -> Result<SenderLink, StoreError> {
        let stored = self.link_row(user, sender).await?;
        if let Some(row) = &stored {
            let ended = row.revoked_at.map(gw_types::Timestamp::from_micros);
            match ended {
                None => return Ok(SenderLink::Unchanged),
                Some(_) if !row.revoked_by_admin => return Ok(SenderLink::Unchanged),
                Some(at) if self.now < at.plus(REVOCATION_HOLDS) => return Ok(SenderLink::Unchanged),
                Some(_) => {}
            }
        }
        let proved_by_others = self
            .others(user, sender)
            .filter(address_links::Column::LinkType.eq(row::link_kind_text(LinkKind::User)))
            .count(&self.db)
            .await?;
        if proved_by_others > 0 {
            return Ok(SenderLink::Contested {
                others: proved_by_others,
            });
        }
        let is_open = self.address_use(sender).await?.is_none()
            && !self.was_revoked_before(user, sender).await?
            && !self.was_proved_by_others(user, sender).await?;
        if !is_open {
            return Ok(SenderLink::Unchanged);
        }
        let linked = match stored {
            Some(row) => {
                let before = Link::try_from(row.clone())?;
                self.revive(row, &before, LinkKind::System, false).await?
            }
            None => self.insert_link(user, sender, LinkKind::System, false).await?,
        };
        Ok(SenderLink::Linked(linked))
    }

    /// Ends the user's own link.
    ///
    /// # Errors
    /// [`StoreError::NotFound`] if the user has no live link to the address; [`StoreError::Row`] if a stored row is
    /// malformed; any database error.
    pub async fn unlink_address(&mut self, user: UserId, address: Address) -> Result<Link, StoreError> {
        self.end_link(user, address, false, "").await
    }

    /// Ends a link as administrator; the audit entry contains the reason.
    ///
    /// # Errors
    /// [`StoreError::NotFound`] if the user has no live link to the address; [`StoreError::Row`] if a stored row is
    /// malformed; any database error.
    pub async fn revoke_link(&mut self, user: UserId, address: Address, reason: &str) -> Result<Link, StoreError> {
        self.end_link(user, address, true, reason).await
    }

    /// Stores the ENS name of a linked address.
    ///
    /// # Errors
    /// [`StoreError::NotFound`] if the user has no live link to the address; [`StoreError::Row`] if a stored row is
    /// malformed; any database error.
    pub async fn set_ens_name(
        &mut self,
        user: UserId,
        address: Address,
        name: Option<&str>,
    ) -> Result<Link, StoreError> {
        let row = self.live_link_row(user, address).await?;
        let before = Link::try_from(row.clone())?;
        let mut row = row.into_active_model();
        row.ens_name = Set(name.map(str::to_owned));
        row.ens_resolved_at = Set(Some(self.now.micros()));
        let after = Link::try_from(row.update(&self.db).await?)?;
        self.record_audit(Action::Update, None, Some(&before), Some(&after));
        Ok(after)
    }

    async fn insert_link(
        &mut self,
        user: UserId,
        address: Address,
        kind: LinkKind,
        contract_wallet: bool,
    ) -> Result<LinkResult, StoreError> {
        let row = address_links::ActiveModel {
            id: Set(self.new_id()),
            user_id: Set(user.0),
            address: Set(row::address_text(address)),
            link_type: Set(row::link_kind_text(kind).to_owned()),
            contract_wallet: Set(contract_wallet),
            verified_at: Set(self.now.micros()),
            ens_name: Set(None),
            ens_resolved_at: Set(None),
            revoked_at: Set(None),
            revoked_by_admin: Set(false),
            created_at: Set(self.now.micros()),
        };
        let link = Link::try_from(row.insert(&self.db).await?)?;
        self.record_audit(Action::Create, None, None, Some(&link));
        let others = self.others(user, address).count(&self.db).await?;
        Ok(LinkResult { link, others })
    }

    async fn revive(
        &mut self,
        row: address_links::Model,
        before: &Link,
        kind: LinkKind,
        contract_wallet: bool,
    ) -> Result<LinkResult, StoreError> {
        let mut row = row.into_active_model();
        row.link_type = Set(row::link_kind_text(kind).to_owned());
        row.contract_wallet = Set(contract_wallet);
        row.verified_at = Set(self.now.micros());
        row.revoked_at = Set(None);
        row.revoked_by_admin = Set(false);
        let link = Link::try_from(row.update(&self.db).await?)?;
        self.record_audit(Action::Update, None, Some(before), Some(&link));
        let others = self.others(link.user, link.address).count(&self.db).await?;
        Ok(LinkResult { link, others })
    }

    async fn end_link(
        &mut self,
        user: UserId,
        address: Address,
        by_admin: bool,
        reason: &str,
    ) -> Result<Link, StoreError> {
        let row = self.live_link_row(user, address).await?;
        let before = Link::try_from(row.clone())?;
        let mut row = row.into_active_model();
        row.revoked_at = Set(Some(self.now.micros()));
        row.revoked_by_admin = Set(by_admin);
        let after = Link::try_from(row.update(&self.db).await?)?;
        let (old, new) = (
            RecordWithReason {
                record: &before,
                reason: "",
            },
            RecordWithReason { record: &after, reason },
        );
        self.record_audit(Action::Revoke, None, Some(&old), Some(&new));
        Ok(after)
    }

    async fn link_row(&self, user: UserId, address: Address) -> Result<Option<address_links::Model>, StoreError> {
        Ok(address_links::Entity::find()
            .filter(address_links::Column::UserId.eq(user.0))
            .filter(address_links::Column::Address.eq(row::address_text(address)))
            .one(&self.db)
            .await?)
    }

    async fn live_link_row(&self, user: UserId, address: Address) -> Result<address_links::Model, StoreError> {
        let row = self.link_row(user, address).await?;
        row.filter(|row| row.revoked_at.is_none())
            .ok_or(StoreError::NotFound(Missing::Link))
    }

    /// Query for live links of other users to an address.
    fn others(&self, user: UserId, address: Address) -> sea_orm::Select<address_links::Entity> {
        address_links::Entity::find()
            .filter(address_links::Column::Address.eq(row::address_text(address)))
            .filter(address_links::Column::UserId.ne(user.0))
            .filter(address_links::Column::RevokedAt.is_null())
    }

    /// Returns the use of an address as a contract: shared, registered, formerly registered, or reserved and not
    /// expired (HD10, HD27).
    async fn address_use(&self, address: Address) -> Result<Option<AddressUse>, StoreError> {
        let text = row::address_text(address);
        let shared = shared_infrastructure::Column::Address.eq(&text);
        if shared_infrastructure::Entity::find()
            .filter(shared)
            .count(&self.db)
            .await?
            > 0
        {
            return Ok(Some(AddressUse::Utility));
        }
        let registered = contracts::Entity::find()
            .select_only()
            .column(contracts::Column::OrgId)
            .filter(contracts::Column::Address.eq(&text))
            .into_tuple::<uuid::Uuid>()
            .one(&self.db)
            .await?;
        if let Some(org) = registered {
            return Ok(Some(AddressUse::Registered(org.into())));
        }
        if let Some(row) = self.retired_row(address).await? {
            return Ok(Some(AddressUse::Retired(row)));
        }
        let open = [ReservationState::Reserved, ReservationState::Sent].map(ReservationState::as_str);
        let reserved = reservations::Entity::find()
            .filter(reservations::Column::Address.eq(&text))
            .filter(reservations::Column::State.is_in(open))
            .filter(reservations::Column::ExpiresAt.gt(self.now.micros()))
            .count(&self.db)
            .await?;
        Ok((reserved > 0).then_some(AddressUse::Reserved))
    }
}
