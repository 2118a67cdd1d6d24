//! The admin API on real stores, called without a socket.

#[cfg(test)]
mod areas;
#[cfg(test)]
mod logs;
#[cfg(test)]
mod orgs;
#[cfg(test)]
mod records;
#[cfg(test)]
mod webhook;
#[cfg(test)]
mod world;
