//! The explorer's API on a real chain store, called without a socket.

#[cfg(test)]
mod abi;
#[cfg(test)]
mod addresses;
#[cfg(test)]
mod agreement;
#[cfg(test)]
mod audited;
#[cfg(test)]
mod chain;
#[cfg(test)]
mod disclosure_table;
#[cfg(test)]
mod grant_feeds;
#[cfg(test)]
mod grants;
#[cfg(test)]
mod indexing;
#[cfg(test)]
mod log_selection;
#[cfg(test)]
mod named_org;
#[cfg(test)]
mod noninterference;
#[cfg(test)]
mod paging;
#[cfg(test)]
mod put_back;
#[cfg(test)]
mod readings;
#[cfg(test)]
mod requests;
#[cfg(test)]
mod section_9;
#[cfg(test)]
mod size;
#[cfg(test)]
mod viewer_reads;
#[cfg(test)]
mod world;
