//! Logins, tokens and links over HTTP, on a real store.

// `cfg(test)` even in a test crate: clippy applies its test exemptions only to modules that are marked so.
#[cfg(test)]
mod api;
#[cfg(test)]
mod attacks;
#[cfg(test)]
mod ends;
#[cfg(test)]
mod links;
#[cfg(test)]
mod logins;
#[cfg(test)]
mod me;
#[cfg(feature = "mock-login")]
#[cfg(test)]
mod mock;
#[cfg(test)]
mod oauth;
#[cfg(test)]
mod outage;
#[cfg(test)]
mod parallel;
#[cfg(test)]
mod tokens;
#[cfg(test)]
mod world;
