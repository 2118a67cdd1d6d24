//! The frames of a segment: each has a length and a CRC32C over length and payload (spec/70 rule 11).
//!
//! ```text
//! magic:4  length:4  crc32c:4  payload
//! payload: 1  lsn:8  entry length:4  entry  openings     an entry
//!          2  lsn:8                                      a marker: all records up to this lsn were fsynced (HD25)
//! ```

/// The longest payload in bytes. Longer records are rejected.
pub(crate) const MAX_PAYLOAD: usize = 64 * 1024;
/// The bytes that a frame adds to its entry and openings.
pub(crate) const OVERHEAD: usize = HEAD + ENTRY_HEAD;
/// The length of a marker's frame in bytes.
pub(crate) const MARKER: usize = HEAD + 9;

const MAGIC: [u8; 4] = *b"gwj\x01";
const HEAD: usize = 12;
const ENTRY_HEAD: usize = 13;
const ENTRY: u8 = 1;
const MARK: u8 = 2;

/// The content of a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Frame<'a> {
    /// An entry and its openings.
    Entry {
        lsn: u64,
        entry: &'a [u8],
        openings: &'a [u8],
    },
    /// All records up to this number were fsynced.
    Marker { lsn: u64 },
}

/// The result of reading a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum FrameRead<'a> {
    /// A frame and its length.
    Frame(Frame<'a>, usize),
    /// Only zeros: no frame was written here.
    End,
    /// Bytes that are not a valid frame.
    Damage,
    /// The slice ends before the frame does.
    Short,
}

/// Starts the frame of an entry in `out`; the caller then appends the entry's bytes.
pub(crate) fn start_entry(out: &mut Vec<u8>, lsn: u64) {
    out.extend_from_slice(&[0; HEAD]);
    out.push(ENTRY);
    out.extend_from_slice(&lsn.to_le_bytes());
    out.extend_from_slice(&[0; 4]);
}

/// Ends the frame that starts at `start`, after the entry's bytes were appended.
pub(crate) fn end_entry(out: &mut Vec<u8>, start: usize, openings: &[u8]) {
    let entry = out.len() - start - HEAD - ENTRY_HEAD;
    out.extend_from_slice(openings);
    if let Some(length) = out.get_mut(start + HEAD + 9..start + HEAD + ENTRY_HEAD) {
        length.copy_from_slice(&length_bytes(entry));
    }
    seal(out, start);
}

/// Appends a marker's frame.
pub(crate) fn put_marker(out: &mut Vec<u8>, lsn: u64) {
    let start = out.len();
    out.extend_from_slice(&[0; HEAD]);
    out.push(MARK);
    out.extend_from_slice(&lsn.to_le_bytes());
    seal(out, start);
}

fn seal(out: &mut [u8], start: usize) {
    let Some((head, payload)) = out
        .get_mut(start..)
        .and_then(|frame| frame.split_first_chunk_mut::<HEAD>())
    else {
        return;
    };
    let [m0, m1, m2, m3] = MAGIC;
    let length = length_bytes(payload.len());
    let [l0, l1, l2, l3] = length;
    let [c0, c1, c2, c3] = checksum(&length, payload).to_le_bytes();
    *head = [m0, m1, m2, m3, l0, l1, l2, l3, c0, c1, c2, c3];
}

/// Invariant: payloads are at most [`MAX_PAYLOAD`] long; a longer one would get a length that no reader accepts.
fn length_bytes(length: usize) -> [u8; 4] {
    u32::try_from(length).unwrap_or(u32::MAX).to_le_bytes()
}

fn checksum(length: &[u8; 4], payload: &[u8]) -> u32 {
    crc32c::crc32c_append(crc32c::crc32c(length), payload)
}

/// Reads the frame at the start of `bytes`.
pub(crate) fn read(bytes: &[u8]) -> FrameRead<'_> {
    let Some((head, rest)) = bytes.split_first_chunk::<HEAD>() else {
        return FrameRead::Short;
    };
    let [magic @ .., l0, l1, l2, l3, c0, c1, c2, c3] = head;
    if *magic != MAGIC {
        return if head == &[0; HEAD] {
            FrameRead::End
        } else {
            FrameRead::Damage
        };
    }
    let length = [*l0, *l1, *l2, *l3];
    let Ok(len) = usize::try_from(u32::from_le_bytes(length)) else {
        return FrameRead::Damage;
    };
    if len > MAX_PAYLOAD {
        return FrameRead::Damage;
    }
    let Some(payload) = rest.get(..len) else {
        return FrameRead::Short;
    };
    if checksum(&length, payload) != u32::from_le_bytes([*c0, *c1, *c2, *c3]) {
        return FrameRead::Damage;
    }
    match parse(payload) {
        Some(frame) => FrameRead::Frame(frame, HEAD + len),
        None => FrameRead::Damage,
    }
}

fn parse(payload: &[u8]) -> Option<Frame<'_>> {
    let (kind, rest) = payload.split_first()?;
    let (lsn, rest) = rest.split_first_chunk::<8>()?;
    let lsn = u64::from_le_bytes(*lsn);
    match *kind {
        ENTRY => {
            let (length, rest) = rest.split_first_chunk::<4>()?;
            let (entry, openings) = rest.split_at_checked(usize::try_from(u32::from_le_bytes(*length)).ok()?)?;
            Some(Frame::Entry { lsn, entry, openings })
        }
        MARK if rest.is_empty() => Some(Frame::Marker { lsn }),
        _ => None,
    }
}

/// All valid frames in `bytes`, skipping any other bytes between them, to salvage records behind damage.
pub(crate) fn scan(bytes: &[u8]) -> impl Iterator<Item = Frame<'_>> {
    let mut rest = bytes;
    std::iter::from_fn(move || {
        loop {
            let start = rest.windows(MAGIC.len()).position(|window| window == MAGIC)?;
            rest = rest.get(start..)?;
            if let FrameRead::Frame(frame, len) = read(rest) {
                rest = rest.get(len..)?;
                return Some(frame);
            }
            rest = rest.get(1..)?;
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn frames() -> Vec<u8> {
        let mut out = Vec::new();
        start_entry(&mut out, 7);
        out.extend_from_slice(b"entry");
        end_entry(&mut out, 0, b"openings");
        put_marker(&mut out, 7);
        out
    }

    #[test]
    fn rule_11_written_frames_are_read_back() {
        let out = frames();
        let FrameRead::Frame(entry, len) = read(&out) else {
            panic!("{:?}", read(&out))
        };
        assert_eq!(
            entry,
            Frame::Entry {
                lsn: 7,
                entry: b"entry",
                openings: b"openings"
            }
        );
        assert_eq!(len, OVERHEAD + 13);
        assert_eq!(read(&out[len..]), FrameRead::Frame(Frame::Marker { lsn: 7 }, MARKER));
        assert_eq!(read(&[0; 64]), FrameRead::End);
        assert_eq!(read(&out[..len - 1]), FrameRead::Short);
    }

    #[test]
    fn rule_11_every_changed_bit_is_damage() {
        let out = frames();
        for bit in 0..(OVERHEAD + 13) * 8 {
            let mut changed = out.clone();
            changed[bit / 8] ^= 1 << (bit % 8);
            assert!(!matches!(read(&changed), FrameRead::Frame(..)), "bit {bit}");
        }
    }

    #[test]
    fn hd25_frames_behind_damage_are_found() {
        let mut out = frames();
        out[20] ^= 1;
        assert_eq!(scan(&out).collect::<Vec<_>>(), [Frame::Marker { lsn: 7 }]);
        let shifted = [&b"gwgwj"[..], &frames()].concat();
        assert_eq!(scan(&shifted).count(), 2);
    }
}
