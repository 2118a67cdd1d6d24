//! Input of limited size, with its SHA-256.

use gw_types::B256;
use sha2::{Digest as _, Sha256};
use std::io::{self, Read};

/// Reads at most `max_size` bytes in all, and at most `max_token` between two calls of [`LimitedInput::start_token`].
pub(super) struct LimitedInput<'a> {
    inner: &'a mut dyn Read,
    digest: Sha256,
    left: u64,
    max_token: u64,
    token_left: u64,
    exceeded: Option<Limit>,
}

/// The limit that the input exceeded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Limit {
    Size,
    Token,
}

impl<'a> LimitedInput<'a> {
    pub(super) fn new(inner: &'a mut dyn Read, max_size: u64, max_token: u64) -> Self {
        Self {
            inner,
            digest: Sha256::new(),
            left: max_size,
            max_token,
            token_left: max_token,
            exceeded: None,
        }
    }

    /// Allows as many bytes again for the next tag or text.
    pub(super) fn start_token(&mut self) {
        self.token_left = self.max_token;
    }

    pub(super) fn exceeded(&self) -> Option<Limit> {
        self.exceeded
    }

    /// The SHA-256 of what was read.
    pub(super) fn sha256(&self) -> B256 {
        let digest: [u8; 32] = self.digest.clone().finalize().into();
        B256::new(digest)
    }
}

impl Read for LimitedInput<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if self.token_left == 0 {
            self.exceeded = Some(Limit::Token);
            return Err(io::Error::other("a tag or text is too long"));
        }
        // One byte more than is allowed tells the end of the input from an input that is too large.
        let allowed = self.left.saturating_add(1).min(self.token_left);
        let length = usize::try_from(allowed).unwrap_or(usize::MAX).min(buffer.len());
        let read = self.inner.read(buffer.get_mut(..length).unwrap_or_default())?;
        let size = u64::try_from(read).unwrap_or(u64::MAX);
        if size > self.left {
            self.exceeded = Some(Limit::Size);
            return Err(io::Error::other("the input is too large"));
        }
        self.left = self.left.saturating_sub(size);
        self.token_left = self.token_left.saturating_sub(size);
        self.digest.update(buffer.get(..read).unwrap_or_default());
        Ok(read)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read_all(input: &mut LimitedInput<'_>) -> io::Result<usize> {
        let mut buffer = [0; 3];
        let mut total = 0;
        loop {
            match input.read(&mut buffer)? {
                0 => return Ok(total),
                read => total += read,
            }
        }
    }

    #[test]
    fn the_digest_is_that_of_the_input() {
        let mut bytes = b"abc".as_slice();
        let mut input = LimitedInput::new(&mut bytes, 3, 100);
        assert_eq!(read_all(&mut input).unwrap(), 3);
        assert_eq!(
            hex::encode(input.sha256()),
            "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"
        );
    }

    #[test]
    fn larger_inputs_and_tokens_are_errors() {
        let mut bytes = b"abcd".as_slice();
        let mut input = LimitedInput::new(&mut bytes, 3, 100);
        assert!(read_all(&mut input).is_err());
        assert_eq!(input.exceeded(), Some(Limit::Size));

        let mut bytes = b"abcdef".as_slice();
        let mut input = LimitedInput::new(&mut bytes, 100, 3);
        let mut buffer = [0; 10];
        assert_eq!(input.read(&mut buffer).unwrap(), 3);
        input.start_token();
        assert_eq!(input.read(&mut buffer).unwrap(), 3);
        assert!(input.read(&mut buffer).is_err());
        assert_eq!(input.exceeded(), Some(Limit::Token));
    }
}
