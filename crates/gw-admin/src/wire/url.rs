//! Personal RPC URLs as administrators see them.
use gw_policy::snapshot::UrlReach;
use gw_store::record;
use gw_types::{OrgId, PersonalUrlId, Timestamp};
use serde::Serialize;
use utoipa::ToSchema;

/// A personal RPC URL without its secret address.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct RpcUrlEntry {
    #[schema(value_type = String, format = Uuid)]
    id: PersonalUrlId,
    name: String,
    scope: &'static str,
    contracts: Vec<String>,
    #[schema(value_type = String, format = Uuid)]
    org_id: OrgId,
    #[schema(value_type = String, format = DateTime)]
    created_at: Timestamp,
    #[schema(value_type = String, format = DateTime)]
    expires_at: Timestamp,
}

impl From<record::PersonalUrl> for RpcUrlEntry {
    fn from(row: record::PersonalUrl) -> Self {
        let scope = row.scope();
        let contracts = match row.reach {
            UrlReach::Contracts(contracts) => contracts.iter().copied().map(super::lower).collect(),
            UrlReach::Wallet | UrlReach::All => Vec::new(),
        };
        let (id, name, org_id) = (row.id, row.name, row.org);
        Self {
            id,
            name,
            scope,
            contracts,
            org_id,
            created_at: row.created_at,
            expires_at: row.expires_at,
        }
    }
}
