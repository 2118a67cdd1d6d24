//! Layers, gates and extractors in front of small routers.

// `cfg(test)` even in a test crate: clippy applies its test exemptions only to modules that are marked so.
#[cfg(test)]
mod admin;
#[cfg(test)]
mod http_context;
#[cfg(test)]
mod layers;
#[cfg(test)]
mod outbound;
#[cfg(test)]
mod record;
