use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// A demo token to deploy.
#[derive(Debug, Default, Deserialize, ToSchema)]
#[schema(as = DeployDemoERC20Request)]
pub(crate) struct DeployDemoErc20Request {
    /// Up to 64 characters; `DemoERC20` if absent.
    #[serde(default)]
    pub(crate) name: Option<String>,
    /// The organization of the contract; administrators of exactly one organization may leave it out.
    #[serde(default)]
    #[schema(format = Uuid)]
    pub(crate) org_id: Option<String>,
}

/// The deployed token.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = DeployDemoERC20Response)]
pub(crate) struct DeployDemoErc20Response {
    pub(crate) address: String,
    pub(crate) name: String,
    pub(crate) tx_hash: String,
    /// Whether the contract is registered to the organization already.
    pub(crate) registered: bool,
}
