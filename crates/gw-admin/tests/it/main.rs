//! The admin API on real stores, called without a socket.

#[cfg(test)]
mod orgs;
#[cfg(test)]
mod records;
#[cfg(test)]
mod world;
