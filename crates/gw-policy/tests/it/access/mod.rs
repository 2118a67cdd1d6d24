//! Who may do what (spec/20).

mod beside;
mod decide;
mod differential;
mod extras;
mod identify;
mod mined;
mod orgs;
mod properties;
mod send;
mod shared;
mod support;
mod table;
mod target;
mod trace;
