pub(crate) mod approve;
pub(crate) mod get;
pub(crate) mod list;
pub(crate) mod reject;
pub(crate) mod revoke;
