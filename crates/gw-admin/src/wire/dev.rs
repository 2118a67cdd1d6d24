use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// A demo token to deploy.
#[derive(Debug, Default, Deserialize, ToSchema)]
#[schema(as = DeployDemoERC20Request)]
pub(crate) struct DeployDemoErc20Request {
    /// Up to 64 characters; `DemoERC20` if absent.
    #[serde(default)]
    pub(crate) name: Option<String>,
    /// Who owns it; may be absent for administrators of one organization.
    #[serde(default)]
    #[schema(format = Uuid)]
    pub(crate) org_id: Option<String>,
}

/// The token.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = DeployDemoERC20Response)]
pub(crate) struct DeployDemoErc20Response {
    pub(crate) address: String,
    pub(crate) name: String,
    pub(crate) tx_hash: String,
    /// Whether it is registered to the organization already.
    pub(crate) registered: bool,
}
