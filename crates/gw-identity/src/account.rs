//! The user account of a verified login (spec/10 ZK-80, ZK-81).

use crate::login::VerifiedLogin;
use gw_http::Amr;
use gw_policy::snapshot::Group;
use gw_store::{
    StoreError, Tx,
    record::{NewUser, User},
};

/// Finds the user of a verified login, or creates one in the default group. A login never alters KYC, groups or claims
/// of an existing user.
///
/// A ban outlives the deletion of the user's row, so a new user may be banned: the caller checks `banned` before it
/// commits.
pub(crate) async fn find_or_create(tx: &mut Tx, proved: &VerifiedLogin, auto_kyc: bool) -> Result<User, StoreError> {
    if let Some(user) = tx.read().find_user_by_external_id(&proved.subject).await? {
        return Ok(user);
    }
    let groups = vec![Group::DEFAULT];
    #[cfg(feature = "mock-login")]
    let groups = groups
        .into_iter()
        .chain(crate::login::mock::admin_group(tx, proved).await?)
        .collect();
    let new = NewUser {
        external_id: proved.subject.clone(),
        kyc: auto_kyc && proved.amr == Amr::Zk,
        auth_tenant_id: None,
        groups,
    };
    tx.create_user(new).await
}
