//! The journal on a real file system.

#[cfg(test)]
mod access;
#[cfg(test)]
mod full_disk;
#[cfg(test)]
mod journal;
#[cfg(test)]
mod reconcile;
#[cfg(test)]
mod salvage;
#[cfg(test)]
mod streams;
#[cfg(test)]
mod support;
