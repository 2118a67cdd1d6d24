//! Tests of the explorer's rows and scopes (spec/30 sections 2.4, 4, 9 and 11).

mod agreement;
mod entities;
mod model;
mod properties;
mod rows;
mod scenario;
