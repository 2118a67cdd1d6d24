//! The states of requests and grants (spec/50 section 3). Times are arguments: a request that is past its end counts as
//! expired, whether a sweeper has written so or not.

use gw_types::Timestamp;

/// The status of a request, as stored and as shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum RequestStatus {
    /// The owner has not decided.
    Pending,
    /// The owner approved it: it has a grant.
    Approved,
    /// The owner rejected it.
    Rejected,
    /// Its end passed before a decision.
    Expired,
    /// It was approved, and its grant was revoked.
    Revoked,
}

impl RequestStatus {
    /// Every status.
    pub const ALL: [Self; 5] = [
        Self::Pending,
        Self::Approved,
        Self::Rejected,
        Self::Expired,
        Self::Revoked,
    ];

    /// The text in columns and answers.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Pending => "pending",
            Self::Approved => "approved",
            Self::Rejected => "rejected",
            Self::Expired => "expired",
            Self::Revoked => "revoked",
        }
    }

    /// The status with this text.
    pub fn parse(text: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|status| status.as_str() == text)
    }
}

/// Whoever causes a transition, as far as the state machines distinguish them (spec/50 section 1).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum RequestActor {
    /// The user whose data is requested.
    Owner,
    /// An administrator with full rights in the organization of the request, or the platform administrator.
    FullAdmin,
    /// An administrator who may only read.
    ReadOnlyAdmin,
    /// Any other user or administrator.
    Other,
    /// The sweeper.
    Clock,
}

/// What is to happen to a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Trigger {
    /// The owner approves it.
    Approve,
    /// The owner rejects it.
    Reject,
    /// The owner revokes the approval.
    Revoke,
    /// An administrator deletes it.
    Delete,
    /// An administrator revokes its grant.
    RevokeGrant,
    /// Its end may have passed.
    Expire,
}

/// The stored state of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RequestState {
    /// The stored status.
    pub status: RequestStatus,
    /// When it ends if it is not decided; `None`: never.
    pub expires_at: Option<Timestamp>,
}

/// A permitted change of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Transition {
    /// The request becomes approved, and gets its grant.
    Approve,
    /// The request becomes rejected.
    Reject,
    /// The request becomes revoked, and so does its grant.
    Revoke,
    /// The row is removed.
    Delete,
    /// The request becomes expired.
    Expire,
    /// Nothing changes, and that is no error.
    Keep,
}

/// Why a change is refused. Its text is the answer's text.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, thiserror::Error)]
pub enum TransitionError {
    /// 403: another actor may do it.
    #[error("access denied to target resource")]
    Forbidden,
    /// 400: the owner has decided, or the request has ended.
    #[error("request is not pending")]
    NotPending,
    /// 400: the end of the request has passed.
    #[error("request has expired")]
    Expired,
    /// 400: a request without an approval has nothing to revoke.
    #[error("can only revoke approved requests")]
    NotApproved,
    /// 400: the owner has decided, or the request has ended.
    #[error("can only delete pending requests")]
    DeleteNotPending,
}

impl TransitionError {
    /// The HTTP status of the answer.
    pub const fn http_status(self) -> u16 {
        match self {
            Self::Forbidden => 403,
            Self::NotPending | Self::Expired | Self::NotApproved | Self::DeleteNotPending => 400,
        }
    }
}

impl RequestState {
    /// The status at `now`: a pending request whose end has passed is expired (`expires_at > now` is the condition of
    /// rule 10).
    pub fn status_at(self, now: Timestamp) -> RequestStatus {
        let has_ended = self.expires_at.is_some_and(|end| end <= now);
        match self.status {
            RequestStatus::Pending if has_ended => RequestStatus::Expired,
            status @ (RequestStatus::Pending
            | RequestStatus::Approved
            | RequestStatus::Rejected
            | RequestStatus::Expired
            | RequestStatus::Revoked) => status,
        }
    }

    /// What `trigger` does to the request (the table of spec/50 section 3).
    ///
    /// # Errors
    /// [`TransitionError`] if another actor may do it, or the status at `now` does not allow it.
    pub fn transition(self, trigger: Trigger, by: RequestActor, now: Timestamp) -> Result<Transition, TransitionError> {
        let permitted = match trigger {
            Trigger::Approve | Trigger::Reject | Trigger::Revoke => RequestActor::Owner,
            Trigger::Delete | Trigger::RevokeGrant => RequestActor::FullAdmin,
            Trigger::Expire => RequestActor::Clock,
        };
        if by != permitted {
            return Err(TransitionError::Forbidden);
        }
        let status = self.status_at(now);
        match trigger {
            Trigger::Approve => self.decide(status, Transition::Approve),
            Trigger::Reject => self.decide(status, Transition::Reject),
            Trigger::Delete if status == RequestStatus::Pending => Ok(Transition::Delete),
            Trigger::Delete => Err(TransitionError::DeleteNotPending),
            Trigger::Revoke if status == RequestStatus::Approved => Ok(Transition::Revoke),
            Trigger::Revoke => Err(TransitionError::NotApproved),
            // The grant of a revoked request is revoked already: a second revocation keeps the first.
            Trigger::RevokeGrant => match status {
                RequestStatus::Approved => Ok(Transition::Revoke),
                RequestStatus::Revoked => Ok(Transition::Keep),
                RequestStatus::Pending | RequestStatus::Rejected | RequestStatus::Expired => {
                    Err(TransitionError::NotApproved)
                }
            },
            Trigger::Expire if self.status == RequestStatus::Pending && status == RequestStatus::Expired => {
                Ok(Transition::Expire)
            }
            Trigger::Expire => Ok(Transition::Keep),
        }
    }

    fn decide(self, status: RequestStatus, transition: Transition) -> Result<Transition, TransitionError> {
        match status {
            RequestStatus::Pending => Ok(transition),
            RequestStatus::Expired => Err(TransitionError::Expired),
            RequestStatus::Approved | RequestStatus::Rejected | RequestStatus::Revoked => {
                Err(TransitionError::NotPending)
            }
        }
    }
}

/// The stored state of a grant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct GrantState {
    /// When it ends.
    pub expires_at: Timestamp,
    /// When it was revoked.
    pub revoked_at: Option<Timestamp>,
}

/// The status of a grant. It is computed, never stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum GrantStatus {
    /// It is in force.
    Active,
    /// It was revoked.
    Revoked,
    /// Its end has passed.
    Expired,
}

impl GrantStatus {
    /// The text of the list filter: an active grant is `approved` (spec/50 section 3).
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Active => "approved",
            Self::Revoked => "revoked",
            Self::Expired => "expired",
        }
    }

    /// The status with this text.
    pub fn parse(text: &str) -> Option<Self> {
        [Self::Active, Self::Revoked, Self::Expired]
            .into_iter()
            .find(|status| status.as_str() == text)
    }
}

impl GrantState {
    /// The status at `now`. A revoked grant stays revoked after its end.
    pub fn status_at(self, now: Timestamp) -> GrantStatus {
        if self.revoked_at.is_some() {
            GrantStatus::Revoked
        } else if self.expires_at <= now {
            GrantStatus::Expired
        } else {
            GrantStatus::Active
        }
    }

    /// The grant after a revocation at `now`: an active one is revoked, any other one is unchanged. A second revocation
    /// keeps the first time.
    #[must_use]
    pub fn revoked(self, now: Timestamp) -> Self {
        match self.status_at(now) {
            GrantStatus::Active => Self {
                revoked_at: Some(now),
                ..self
            },
            GrantStatus::Revoked | GrantStatus::Expired => self,
        }
    }

    /// When the grant ended or will end.
    pub fn end(self) -> Timestamp {
        self.revoked_at.map_or(self.expires_at, |at| at.min(self.expires_at))
    }
}
