//! The explorer's API on a real chain store, called without a socket.

#[cfg(test)]
mod agreement;
#[cfg(test)]
mod chain;
#[cfg(test)]
mod noninterference;
#[cfg(test)]
mod paging;
#[cfg(test)]
mod requests;
#[cfg(test)]
mod world;
