//! An organization keeps somebody to administer it (spec/80 §6 rule 7).

use crate::{error::Failure, scope::Admin};
use gw_http::ApiError;
use gw_policy::snapshot;
use gw_store::Tx;
use gw_types::OrgId;

/// The organizations that had an administrator before a change.
#[derive(Debug)]
pub(crate) struct LastAdmin(Vec<OrgId>);

impl LastAdmin {
    /// Looks before the change.
    pub(crate) async fn of(tx: &Tx, orgs: &[OrgId]) -> Result<Self, Failure> {
        let mut had = Vec::new();
        for org in orgs {
            let system = [snapshot::Organization::DEFAULT, snapshot::Organization::ANONYMOUS].contains(org);
            if !system && tx.read().live_org_admins(*org, &[], tx.now()).await? > 0 {
                had.push(*org);
            }
        }
        Ok(Self(had))
    }

    /// Looks after it: who took the last one away is refused, and nothing has happened; super may, and the entries of
    /// the change say so.
    pub(crate) async fn keep(self, admin: &Admin, tx: &mut Tx) -> Result<(), Failure> {
        for org in self.0 {
            if tx.read().live_org_admins(org, &[], tx.now()).await? > 0 {
                continue;
            }
            if !admin.is_super() {
                return Err(ApiError::conflict("last organization admin").into());
            }
            tx.say_in_entries(org, "last_organization_admin");
        }
        Ok(())
    }
}
