//! Disclosure: what users show to grantees.

use super::{DAY, HOUR, NARROW};
use crate::config::{
    kind::{self, number, span},
    variable::{Kind, Section::Policy, Variable},
};
use ipnet::IpNet;
use std::time::Duration;

registry! {
    /// Longest lifetime of a grant of disclosure, in hours.
    DISCLOSURE_MAX_GRANT_HOURS: u32 =
        Variable::new(Policy, kind!(u32, "a whole number from 1 to 876000", |t| number(t, 1, 876_000)))
            .default("8760");
    /// Requires a legal basis in requests for full disclosure.
    DISCLOSURE_REQUIRE_LEGAL_BASIS_FULL: bool = Variable::new(Policy, &kind::BOOL).default("false");
    /// A grant whose scope names classes of data shows transactions only if it names `transaction_history` or
    /// `full_disclosure`. Switched off, the classes limit activity only.
    DISCLOSURE_STRICT_SCOPE: bool = Variable::new(Policy, &kind::BOOL).default("true");
    /// Rounds the block times on the pages of a grant below full disclosure down to multiples of this many seconds, and
    /// shows block number 0 there. 0 shows both exactly. The feeds of the explorer, in which members of the requesting
    /// organization see the rows, show both exactly.
    DISCLOSURE_TIME_BUCKET_SECONDS: u32 =
        Variable::new(Policy, kind!(u32, "a whole number from 0 to 31536000", |t| number(t, 0, 31_536_000)))
            .default("0");
    /// How long after its end the secret of a grant of disclosure is kept. Then the names of addresses under the grant
    /// cannot be computed any more.
    DISCLOSURE_SECRET_RETENTION: Duration =
        Variable::new(Policy, kind!(Duration, "a span from 1h to 8760h", |t| span(t, HOUR, 365 * DAY)))
            .default("720h");
    /// Networks that the webhooks of organizations may be in, apart from public addresses. Private, link-local and
    /// other special addresses are refused otherwise; loopback addresses only in production.
    WEBHOOK_ALLOWED_NETWORKS: Vec<IpNet> = Variable::new(Policy, &kind::NETWORKS).rule(NARROW);
}
