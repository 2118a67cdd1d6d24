//! Layers, gates and extractors in front of small routers.

// `cfg(test)` although this is a test already: clippy grants its exemptions to what is marked so.
#[cfg(test)]
mod admin;
#[cfg(test)]
mod edge;
#[cfg(test)]
mod layers;
