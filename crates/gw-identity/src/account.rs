//! The user behind a proved name (spec/10 ZK-80, ZK-81).

use crate::login::Proved;
use gw_http::Amr;
use gw_policy::snapshot::Group;
use gw_store::{
    StoreError, Tx,
    record::{NewUser, User},
};

/// The user of the proved name, made in the default group if it is new. Existing users keep what they have: a login
/// never alters KYC, groups or claims.
///
/// A banned name stays banned though its row was deleted; the caller looks at `banned` before committing.
pub(crate) async fn find_or_create(tx: &mut Tx, proved: &Proved, auto_kyc: bool) -> Result<User, StoreError> {
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
