//! Legal holds, and the audit entries about prunes and erasures.

use super::{
    Tx,
    audit::{Action, Auditable},
};
use crate::{
    Missing, StoreError,
    entity::legal_holds,
    record::{HoldScope, LegalHold, PruneRecord},
};
use gw_audit::{ErasureRecord, ResourceType, Stream};
use gw_types::LegalHoldId;
use sea_orm::{ActiveModelTrait, ActiveValue::Set, ModelTrait};
use serde_json::{Value, json};

impl Tx {
    /// Places a hold.
    ///
    /// # Errors
    /// If the database fails.
    pub async fn place_hold(&mut self, scope: HoldScope, reason: &str) -> Result<LegalHold, StoreError> {
        let (org, stream) = match scope {
            HoldScope::Organization(org) => (Some(org), None),
            HoldScope::Stream(stream) => (None, Some(stream)),
        };
        let row = legal_holds::ActiveModel {
            id: Set(self.new_id()),
            org_id: Set(org.map(|org| org.0)),
            stream: Set(stream.map(|stream| stream.as_str().to_owned())),
            reason: Set(reason.to_owned()),
            placed_by: Set(self.actor.external_id.clone()),
            created_at: Set(self.now.micros()),
        };
        let hold = LegalHold::try_from(row.insert(&self.db).await?)?;
        self.record_audit(
            Action::Create,
            None,
            None,
            Some(&HoldChange {
                hold: &hold,
                lifted_because: None,
            }),
        );
        Ok(hold)
    }

    /// Lifts a hold.
    ///
    /// # Errors
    /// [`Missing::LegalHold`], or if the database fails.
    pub async fn clear_legal_hold(&mut self, id: LegalHoldId, reason: &str) -> Result<LegalHold, StoreError> {
        let row = legal_holds::Entity::find_by_id(id.0).one(&self.db).await?;
        let row = row.ok_or(StoreError::NotFound(Missing::LegalHold))?;
        let lifted = LegalHold::try_from(row.clone())?;
        row.delete(&self.db).await?;
        self.record_audit(
            Action::Revoke,
            None,
            Some(&HoldChange {
                hold: &lifted,
                lifted_because: Some(reason),
            }),
            None,
        );
        Ok(lifted)
    }

    /// Writes the entry about a prune.
    pub fn note_prune(&mut self, prune: &PruneRecord) {
        let action = match prune.chain.stream {
            Stream::Admin => Action::PruneAdmin,
            Stream::Access => Action::PruneAccess,
            Stream::Compliance => Action::PruneCompliance,
            Stream::Disclosure => Action::PruneDisclosure,
            Stream::Security => Action::PruneSecurity,
        };
        self.record_audit(action, None, None, Some(prune));
    }

    /// Writes the entry that justifies missing openings.
    pub fn note_erasure(&mut self, erasure: &ErasureRecord) {
        self.record_audit(Action::Delete, None, None, Some(erasure));
    }
}

/// A hold with the reason for lifting it, if lifted.
struct HoldChange<'a> {
    hold: &'a LegalHold,
    lifted_because: Option<&'a str>,
}

impl Auditable for HoldChange<'_> {
    const RESOURCE: ResourceType = ResourceType::Audit;
    fn resource_id(&self) -> String {
        self.hold.id.to_string()
    }
    fn resource_name(&self) -> String {
        "legal hold".to_owned()
    }
    fn image(&self) -> Value {
        let (org, stream) = match self.hold.scope {
            HoldScope::Organization(org) => (Some(org), None),
            HoldScope::Stream(stream) => (None, Some(stream)),
        };
        json!({ "held_org_id": org, "held_stream": stream, "reason": self.hold.reason,
            "lifted_because": self.lifted_because })
    }
}

impl PruneRecord {
    /// Whether the image in a sealed entry is that of this prune.
    pub(crate) fn matches_image(&self, image: &Value) -> bool {
        self.image() == *image
    }
}

impl Auditable for PruneRecord {
    const RESOURCE: ResourceType = ResourceType::Audit;
    fn resource_id(&self) -> String {
        format!("{}/{}", self.chain.stream, self.chain.shard)
    }
    fn resource_name(&self) -> String {
        String::new()
    }
    fn image(&self) -> Value {
        let bound = match self.reason {
            crate::record::PruneReason::Ttl => "retention",
            crate::record::PruneReason::Fifo => "max_rows",
        };
        json!({
            "reason": self.reason.as_str(),
            "deleted_count": self.size.saturating_sub(self.first_seq),
            "lowest_id": self.lowest_id,
            "highest_id": self.highest_id,
            "size": self.size,
            "new_anchor_hash": self.anchor_hash,
            (bound): self.bound,
            "cutoff": self.cutoff.to_rfc3339(),
        })
    }
}

/// The image is the whole record: verification reads it from there.
impl Auditable for ErasureRecord {
    const RESOURCE: ResourceType = ResourceType::Audit;
    fn resource_id(&self) -> String {
        self.erased.chain.clone()
    }
    fn resource_name(&self) -> String {
        "erasure".to_owned()
    }
    fn image(&self) -> Value {
        json!({ "erased": self.erased, "reason": self.reason })
    }
}
