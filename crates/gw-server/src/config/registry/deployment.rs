//! The kind of deployment and its directory.

use crate::config::{
    ENVIRONMENT_KIND, Environment, kind,
    variable::{Section::Deployment, Variable},
};
use std::path::PathBuf;

registry! {
    /// Kind of deployment. Production refuses to start with weak or missing settings.
    ENVIRONMENT: Environment = Variable::new(Deployment, &ENVIRONMENT_KIND).default("development");
    /// Directory of the embedded stores, the journal and the development secrets.
    DATA_DIR: PathBuf = Variable::new(Deployment, &kind::PATH).default("./data");
}
