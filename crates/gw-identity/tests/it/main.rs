//! Logins, tokens and links over HTTP, on a real store.

// `cfg(test)` although this is a test already: clippy grants its exemptions to what is marked so.
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
