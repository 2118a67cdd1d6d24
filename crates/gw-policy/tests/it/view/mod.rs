//! Tests of visibility rules and views (spec/30).

mod chain;
mod convictions;
mod corpus;
mod disclosure;
mod golden;
mod impersonation;
mod levels;
mod live;
mod logs;
mod masking;
mod moved;
mod objects;
mod properties;
mod rows;
mod support;
mod tree;
mod uploads;
