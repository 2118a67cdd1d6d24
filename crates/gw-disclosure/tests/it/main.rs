//! The routes of disclosure without a socket, on SQLite and on PostgreSQL.

#[cfg(test)]
mod admins;
#[cfg(test)]
mod attacks;
#[cfg(test)]
mod documents;
#[cfg(test)]
mod grantees;
#[cfg(test)]
mod owners;
#[cfg(test)]
mod world;
