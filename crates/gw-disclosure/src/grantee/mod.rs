//! What grantees read under a grant besides the explorer's pages: logs, summary and reports; and the tokens for them
//! (rule 38).

pub(crate) mod events;
pub(crate) mod logs;
pub(crate) mod reader;
pub(crate) mod report;
pub(crate) mod reports;
pub(crate) mod summary;
pub(crate) mod token;
