//! The backend as a function from requests to responses, in front of a scripted gateway on a real socket.

#[cfg(test)]
mod forwarding;
#[cfg(test)]
mod health;
#[cfg(test)]
mod page;
#[cfg(test)]
mod scripted_gateway;
#[cfg(test)]
mod sessions;
#[cfg(test)]
mod sign_in;
#[cfg(test)]
mod view_as;
#[cfg(test)]
mod world;
