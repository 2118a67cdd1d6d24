//! Logins, tokens and links over HTTP, on a real store.

// `cfg(test)` even in a test crate: clippy applies its test exemptions only to modules that are marked so.
#[cfg(test)]
mod api;
#[cfg(test)]
mod browser;
#[cfg(test)]
mod browser_binding;
#[cfg(test)]
mod ends;
#[cfg(test)]
mod links;
#[cfg(test)]
mod login_end;
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
mod oauth_flow;
#[cfg(test)]
mod oauth_silent;
#[cfg(test)]
mod outage;
#[cfg(test)]
mod parallel;
#[cfg(test)]
mod responses;
#[cfg(test)]
mod session_limits;
#[cfg(test)]
mod tokens;
#[cfg(test)]
mod world;
