//! Grants of disclosure, as their grantees see them. The disclosure feature provides them.

use gw_audit::DisclosureRead;
use gw_http::ApiError;
use gw_policy::{Snapshot, disclosure::OpenGrant};
use gw_types::{DisclosureGrantId, ExternalId, Timestamp, UserId};
use std::{future::Future, pin::Pin};

/// Grants of disclosure (spec/40 section 4, spec/50).
pub trait Grants: Send + Sync + std::fmt::Debug {
    /// A grant that this person may use at `now`, by the policy of this snapshot.
    ///
    /// # Errors
    /// [`GrantRefusal`] if the person has no such grant, or it has ended.
    fn find(
        &self,
        snapshot: &Snapshot,
        grantee: &ExternalId,
        grant: DisclosureGrantId,
        now: Timestamp,
    ) -> Result<OpenGrant, GrantRefusal>;

    /// The grants that this person may use at `now`, the newest first.
    fn list(&self, snapshot: &Snapshot, grantee: &ExternalId, now: Timestamp) -> Vec<OpenGrant>;

    /// A page of the owner's calls that the grant covers, the newest first.
    fn activity<'a>(&'a self, grant: &'a OpenGrant, limit: u64, offset: u64) -> GrantFuture<'a, ActivityPage>;

    /// The grant that the owner's approval of a request would make: the body is that of the approval. Nothing is
    /// stored, and its names are not those of the grant.
    fn preview<'a>(
        &'a self,
        snapshot: &'a Snapshot,
        owner: UserId,
        request: &'a str,
        approval: &'a [u8],
    ) -> PreviewFuture<'a>;

    /// Journals reads under grants, and waits until they are on disk. The answer leaves afterwards (spec/50 rule 39).
    fn record(&self, reads: Vec<DisclosureRead>) -> GrantFuture<'_, ()>;
}

/// Why a grantee may not use a grant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum GrantRefusal {
    /// There is no such grant, or another person is its grantee: both get the same answer.
    Unknown,
    /// It was revoked. Only the grantee is told.
    Revoked,
    /// It has expired. Only the grantee is told.
    Expired,
    /// It cannot be used because of a fault, which is logged.
    Unusable,
}

/// A page of the owner's calls.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ActivityPage {
    /// The calls.
    pub calls: Vec<ActivityCall>,
    /// The number of all calls that the grant covers.
    pub total: u64,
}

/// A call of the owner.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ActivityCall {
    /// The JSON-RPC method.
    pub method: String,
    /// The status that the owner was told.
    pub status_code: u16,
    /// When it was made.
    pub time: Timestamp,
}

/// Why a read under a grant failed. The cause is logged.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum GrantFault {
    /// The journal takes no record, so nothing may be shown.
    Unrecorded,
    /// The audit store cannot be reached.
    Unavailable,
    /// The audit store failed.
    Store,
}

/// The answer of an operation of [`Grants`].
pub type GrantFuture<'a, T> = Pin<Box<dyn Future<Output = Result<T, GrantFault>> + Send + 'a>>;

/// The answer of [`Grants::preview`]; an error is the answer to the owner.
pub type PreviewFuture<'a> = Pin<Box<dyn Future<Output = Result<OpenGrant, ApiError>> + Send + 'a>>;

/// No grants: there is no disclosure.
#[derive(Clone, Copy, Debug)]
pub struct NoGrants;

impl Grants for NoGrants {
    fn find(
        &self,
        _: &Snapshot,
        _: &ExternalId,
        _: DisclosureGrantId,
        _: Timestamp,
    ) -> Result<OpenGrant, GrantRefusal> {
        Err(GrantRefusal::Unknown)
    }

    fn list(&self, _: &Snapshot, _: &ExternalId, _: Timestamp) -> Vec<OpenGrant> {
        Vec::new()
    }

    fn activity<'a>(&'a self, _: &'a OpenGrant, _: u64, _: u64) -> GrantFuture<'a, ActivityPage> {
        Box::pin(async { Ok(ActivityPage::default()) })
    }

    fn preview<'a>(&'a self, _: &'a Snapshot, _: UserId, _: &'a str, _: &'a [u8]) -> PreviewFuture<'a> {
        Box::pin(async { Err(ApiError::not_found("request not found")) })
    }

    fn record(&self, _: Vec<DisclosureRead>) -> GrantFuture<'_, ()> {
        Box::pin(async { Ok(()) })
    }
}
