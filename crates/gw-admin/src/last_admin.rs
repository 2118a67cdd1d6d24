//! An organization keeps at least one administrator (spec/80 §6 rule 7).

use crate::{error::AdminError, scope::Admin};
use gw_http::ApiError;
use gw_policy::snapshot;
use gw_store::Tx;
use gw_types::OrgId;

/// The organizations that had an administrator before a change.
#[derive(Debug)]
pub(crate) struct LastAdmin(Vec<OrgId>);

impl LastAdmin {
    /// Records which of `orgs` have an administrator before the change. The seeded system organizations are skipped.
    pub(crate) async fn for_orgs(tx: &Tx, orgs: &[OrgId]) -> Result<Self, AdminError> {
        let mut administered = Vec::new();
        for org in orgs {
            let system = [snapshot::Organization::DEFAULT, snapshot::Organization::ANONYMOUS].contains(org);
            if !system && tx.read().live_org_admins(*org, &[], tx.now()).await? > 0 {
                administered.push(*org);
            }
        }
        Ok(Self(administered))
    }

    /// Checks the organizations again after the change. A change that left one of them without an administrator is
    /// refused. A super administrator may do it, and the change's audit entries are annotated.
    ///
    /// # Errors
    /// 409 if the caller is not a super administrator and an organization lost its last administrator.
    pub(crate) async fn keep(self, admin: &Admin, tx: &mut Tx) -> Result<(), AdminError> {
        for org in self.0 {
            if tx.read().live_org_admins(org, &[], tx.now()).await? > 0 {
                continue;
            }
            if !admin.is_super() {
                return Err(ApiError::conflict("last organization admin").into());
            }
            tx.annotate_audit_entries(org, "last_organization_admin");
        }
        Ok(())
    }
}
