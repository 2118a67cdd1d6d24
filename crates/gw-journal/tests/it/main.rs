//! The journal on a real file system.

#[cfg(test)]
mod journal;
#[cfg(test)]
mod reconcile;
#[cfg(test)]
mod support;
