//! Signed reports under a grant (rules 33 to 37).

use super::reader::GrantReader;
use crate::{DisclosureState, activity::check_activity, error::GrantError, wire::Report};
use gw_audit::{ChainId, Stream};
use gw_cache::{Entry, Namespace};
use gw_policy::disclosure::OpenGrant;
use gw_store::{Missing, StoreError};
use gw_types::{DisclosureGrantId, Timestamp};
use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};
use std::time::Duration;

/// The type of a report (rule 33).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ReportType {
    ActivitySummary,
    SanctionsCheck,
    ComplianceReport,
}

impl ReportType {
    const ALL: [Self; 3] = [Self::ActivitySummary, Self::SanctionsCheck, Self::ComplianceReport];

    const fn as_str(self) -> &'static str {
        match self {
            Self::ActivitySummary => "activity_summary",
            Self::SanctionsCheck => "sanctions_check",
            Self::ComplianceReport => "compliance_report",
        }
    }

    pub(crate) fn parse(text: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.as_str() == text)
    }
}

/// The report of this type: the one that was made within a day, or else a new one. The grant covers activity if the
/// report has any.
///
/// # Errors
/// 403 if the report has activity and the grant does not cover it; any error of the stores.
pub(crate) async fn report(
    state: &DisclosureState,
    reader: &GrantReader,
    grant: &OpenGrant,
    kind: ReportType,
) -> Result<Report, GrantError> {
    match kind {
        ReportType::ActivitySummary | ReportType::ComplianceReport => check_activity(&grant.grant)?,
        ReportType::SanctionsCheck => {}
    }
    let key = cache_key(grant.grant.id, kind);
    // Without the cache a new report is made.
    let cached = state.cache.get(Namespace::DisclosureReport, &key).await.ok().flatten();
    if let Some(report) = cached.and_then(|text| serde_json::from_slice(&text).ok()) {
        return Ok(report);
    }
    let now = reader.now;
    let expires_at = now
        .plus(Namespace::DisclosureReport.seconds())
        .min(grant.grant.expires_at);
    let mut document = json!({
        "id": state.http_context.entropy.uuid().to_string(),
        "grant_id": grant.grant.id.to_string(),
        "report_type": kind.as_str(),
        "report_data": data(state, reader, grant, kind).await?,
        "generated_at": now.to_rfc3339(),
        "expires_at": expires_at.to_rfc3339(),
    });
    let checkpoint = checkpoint_digest(state).await?;
    if let (Some(digest), Value::Object(members)) = (checkpoint, &mut document) {
        members.insert("checkpoint".to_owned(), digest.into());
    }
    let signed = state.sign(document)?;
    let left = u64::try_from(expires_at.micros().saturating_sub(now.micros())).unwrap_or_default();
    let text = signed.to_string();
    let entry = Entry::new(Namespace::DisclosureReport, &key, text.as_bytes());
    // A report that is not kept is made anew the next time.
    let _kept = state.cache.put(entry.with_ttl(Duration::from_micros(left))).await;
    serde_json::from_value(signed).map_err(|_| GrantError::Report)
}

/// Drops the reports of a grant that was revoked. A report is never returned without a check of the grant, so this only
/// makes room.
pub(crate) async fn forget_reports(state: &DisclosureState, grant: DisclosureGrantId) {
    for kind in ReportType::ALL {
        let key = cache_key(grant, kind);
        let _dropped = state.cache.take(Namespace::DisclosureReport, &key).await;
    }
}

fn cache_key(grant: DisclosureGrantId, kind: ReportType) -> String {
    format!("{grant} {}", kind.as_str())
}

async fn data(
    state: &DisclosureState,
    reader: &GrantReader,
    grant: &OpenGrant,
    kind: ReportType,
) -> Result<Value, GrantError> {
    let owner = &grant.owner;
    let summary = async || -> Result<Value, GrantError> {
        let summary = state.summary(&grant.grant, &owner.external_id, reader.now).await?;
        serde_json::to_value(summary).map_err(|_| GrantError::Report)
    };
    Ok(match kind {
        ReportType::ActivitySummary => summary().await?,
        ReportType::SanctionsCheck => sanctions(reader.now),
        ReportType::ComplianceReport => json!({
            "summary": summary().await?,
            "sanctions": sanctions(reader.now),
            "kyc_verified": owner.kyc,
            // The gateway makes no compliance decisions yet, so there are none to count.
            "decisions": Value::Null,
        }),
    })
}

/// Rule 35. The gateway has no sanctions lists yet: the report says so, and does not claim that an address is clear.
fn sanctions(now: Timestamp) -> Value {
    json!({
        "is_clear": Value::Null,
        "screening": "not_configured",
        "sanctioned_addresses": [],
        "list_version": Value::Null,
        "checked_at": now.to_rfc3339(),
    })
}

/// The digest of the newest signed checkpoint of this instance's access log, if there is one: the records that a report
/// was drawn from are below it, or are sealed later. Not the checkpoint itself: its size is the number of the calls of
/// all organizations (HD40).
pub(crate) async fn checkpoint_digest(state: &DisclosureState) -> Result<Option<String>, StoreError> {
    let chain = ChainId {
        stream: Stream::Access,
        shard: state.journal.shard(),
    };
    match state.audit.last_checkpoint(chain).await {
        // The sealer has not begun the chain yet.
        Err(StoreError::NotFound(Missing::Chain)) => Ok(None),
        Ok(note) => Ok(note.map(|note| format!("sha256:{}", hex::encode(Sha256::digest(note))))),
        Err(error) => Err(error),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ds33_three_types_of_reports() {
        for kind in ReportType::ALL {
            assert_eq!(ReportType::parse(kind.as_str()), Some(kind));
        }
        for text in ["", "summary", "Activity_Summary", "activity_summary "] {
            assert_eq!(ReportType::parse(text), None, "{text}");
        }
    }
}
