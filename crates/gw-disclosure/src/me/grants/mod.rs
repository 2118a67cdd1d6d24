pub(crate) mod create;
pub(crate) mod events;
pub(crate) mod get;
pub(crate) mod list;
pub(crate) mod receipt;
