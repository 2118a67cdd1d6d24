//! Disclosure (spec/50): a user lets a grantee see the user's data at a level, for a limited time.
//!
//! [`request`] has the states of requests and grants, [`scope`] the validation and narrowing of scopes, [`duration`]
//! the lifetimes, [`coverage`] the tests of rows against a grant, [`alias`] the names of addresses under a grant,
//! [`open_grant`] a grant with its names and addresses, and [`page`] how rows are shown on the page of a disclosed
//! address.
//!
//! Not here: who is a current member of an organization (`principal`), and rows of the store (`gw-store`).
//!
//! Invariant: in each member that the requested scope restricts, the scope that an owner approves discloses no more.

pub mod alias;
pub mod coverage;
pub mod duration;
pub mod open_grant;
pub mod page;
pub mod request;
pub mod scope;

pub use alias::{AddressId, GrantAliases, PartyName};
pub use coverage::{ActivityRow, ClassCheck, DataClass};
pub use duration::{DurationError, GrantLimits};
pub use open_grant::OpenGrant;
pub use page::{Direction, GrantPage, PageRow, PageRowVisibility};
pub use request::{
    GrantState, GrantStatus, RequestActor, RequestState, RequestStatus, Transition, TransitionError, Trigger,
};
pub use scope::{ScopeError, ScopeInput};
