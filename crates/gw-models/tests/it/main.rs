//! Each file models one protocol: its states and steps, its invariants, and the sizes at which all states are visited.

#[cfg(test)]
mod check;
#[cfg(test)]
mod commit;
#[cfg(test)]
mod epoch_feed;
#[cfg(test)]
mod sealer;
#[cfg(test)]
mod sends;
