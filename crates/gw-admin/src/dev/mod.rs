//! `/dev`: development tools; refused in production.
pub(crate) mod deploy_demo_erc20;
