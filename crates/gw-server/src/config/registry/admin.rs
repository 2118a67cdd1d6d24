//! Tokens and rules of the administration.

use super::STRONG;
use crate::config::{
    kind,
    variable::{Section::Admin, Variable},
};
use gw_types::Secret;

registry! {
    /// Super administrator's token (`X-Admin-Token`).
    ADMIN_API_TOKEN: Secret = Variable::new(Admin, &kind::SECRET)
        .secret()
        .derived("generated at each start and printed once")
        .required()
        .rule(STRONG);
    /// Older super administrator's token, accepted during a rotation.
    ADMIN_API_TOKEN_PREVIOUS: Secret = Variable::new(Admin, &kind::SECRET).secret().rule(STRONG);
    /// Platform administrator's token: may create organizations and appoint their administrators, but reads no data.
    OPERATOR_API_TOKEN: Secret = Variable::new(Admin, &kind::SECRET)
        .secret()
        .rule(
            "differs from ADMIN_API_TOKEN, the older one included; in production at least 32 bytes, 8 of them \
             distinct, and different from every other secret, older ones included",
        );
    /// Only membership in an organization-admin group makes an administrator; the `admin` claim alone does not.
    ADMIN_REQUIRE_ORG_ADMIN_GROUP: bool = Variable::new(Admin, &kind::BOOL).default("false");
    /// Organization administrators may grant the `admin` claim.
    ADMIN_CLAIM_DELEGATION: bool = Variable::new(Admin, &kind::BOOL).default("false");
    /// Deleting an organization that has contracts or members needs `confirm=<slug>`.
    ADMIN_CONFIRM_DELETES: bool = Variable::new(Admin, &kind::BOOL).default("false");
}
