//! Compliance, the parts without effects: data of travel-rule records ([`ivms101`]), public lists of sanctioned
//! addresses ([`lists`]) and presets of configurations ([`presets`]).
//!
//! Not here: the decision on a transfer, stored rows, and requests.

pub mod ivms101;
pub mod lists;
pub mod presets;
