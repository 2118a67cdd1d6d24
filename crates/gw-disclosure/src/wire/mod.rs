//! The types of bodies and answers. Names and members are those of the specification.

mod event;
mod grant;
mod report;
mod request;
mod scope;

pub(crate) use event::{DataSummary, Event, EventRow, TamperedRow};
pub(crate) use grant::{
    DisclosureApproveResponse, DisclosureCheckAccessResponse, DisclosureCounters, Grant, GrantListResult,
    GrantWithRequest,
};
pub(crate) use report::{ActivityLogEntry, ActivitySummary, DisclosureTokenResponse, Report};
pub(crate) use request::{
    ApproveDisclosureRequestBody, CreateDisclosureRequestBody, DisclosureListResult, DisclosureReasonBody,
    DisclosureStatusResponse, GrantDisclosureBody, OtherGrant, OwnedRequest, Request, RequestWithDetails,
};
pub(crate) use scope::DateRange;
