//! Public lists (CO-36), read from files of our own making.

use gw_compliance::lists::{ListError, ListLimits, PublicList, SanctionsList};
use proptest::prelude::*;

const OFAC: &str = include_str!("../lists/ofac-sdn-advanced.xml");
const EU: &str = include_str!("../lists/eu-consolidated.xml");

fn parse(list: PublicList, text: &str) -> Result<SanctionsList, ListError> {
    list.parse(&mut text.as_bytes(), &ListLimits::default())
}

fn ofac(text: &str) -> Result<SanctionsList, ListError> {
    parse(PublicList::OfacSdn, text)
}

fn eu(text: &str) -> Result<SanctionsList, ListError> {
    parse(PublicList::EuConsolidated, text)
}

/// The addresses with their reasons.
fn addresses(list: &SanctionsList) -> Vec<(String, &str)> {
    let addresses = list.addresses.iter();
    addresses
        .map(|(address, reason)| (format!("{address:#x}"), reason.as_str()))
        .collect()
}

/// The unreadable texts with their entries.
fn unreadable(list: &SanctionsList) -> Vec<(&str, &str)> {
    let values = list.unreadable.iter();
    values
        .map(|value| (value.entry.as_str(), value.text.as_str()))
        .collect()
}

fn repeated(digit: &str) -> String {
    format!("0x{}", digit.repeat(40))
}

/// CO-36: all feature types of digital currencies are looked through, whatever the currency.
#[test]
fn co36_the_ofac_list_gives_addresses_with_entries() {
    let list = ofac(OFAC).unwrap();
    assert_eq!((list.list, list.entries), (PublicList::OfacSdn, 3));
    assert_eq!(list.date.to_string(), "2026-08-20");
    assert_eq!(
        addresses(&list),
        [
            (
                repeated("1"),
                "OFAC SDN list, entry 90001: Digital Currency Address - ETH; \
                 OFAC SDN list, entry 90002: Digital Currency Address - BSC"
            ),
            (
                repeated("2"),
                "OFAC SDN list, entry 90002: Digital Currency Address - USDT"
            ),
            (
                repeated("3"),
                "OFAC SDN list, entry 90002: Digital Currency Address - ETH"
            ),
            (
                repeated("6"),
                "OFAC SDN list, entry 90003: Digital Currency Address - USDC"
            ),
            (
                repeated("7"),
                "OFAC SDN list, entry 90003: Digital Currency Address - USDC"
            ),
            (
                "0xabcdefabcdefabcdefabcdefabcdefabcdefabcd".to_owned(),
                "OFAC SDN list, entry 90002: Digital Currency Address - ETH"
            ),
        ]
    );
    assert_eq!(
        unreadable(&list),
        [
            ("90002", "0x44444444444444444444444444444444444444"),
            ("90002", "example.eth"),
            ("90002", "Digital Currency Address - ETH"),
        ]
    );
}

/// CO-36: remarks and identifications of the EU list are looked through.
#[test]
fn co36_the_eu_list_gives_addresses_with_entries() {
    let list = eu(EU).unwrap();
    assert_eq!((list.list, list.entries), (PublicList::EuConsolidated, 3));
    assert_eq!(list.date.to_string(), "2026-08-05");
    assert_eq!(
        addresses(&list),
        [
            (
                repeated("1"),
                "EU consolidated list, entry EU.90.1; EU consolidated list, entry 902"
            ),
            (repeated("2"), "EU consolidated list, entry EU.90.1"),
            (repeated("4"), "EU consolidated list, entry 902"),
            (
                "0xabcdefabcdefabcdefabcdefabcdefabcdefabcd".to_owned(),
                "EU consolidated list, entry EU.90.1"
            ),
        ]
    );
    assert_eq!(unreadable(&list), [("902", "0x55555555555555555555")]);
}

/// CO-36: the fingerprint is that of the file. The digests are those of `sha256sum`.
#[test]
fn co36_the_fingerprint_is_that_of_the_file() {
    for (list, text, digest) in [
        (
            PublicList::OfacSdn,
            OFAC,
            include_str!("../lists/ofac-sdn-advanced.sha256"),
        ),
        (
            PublicList::EuConsolidated,
            EU,
            include_str!("../lists/eu-consolidated.sha256"),
        ),
    ] {
        let sha256 = parse(list, text).unwrap().sha256;
        assert_eq!(hex::encode(sha256), digest.split(' ').next().unwrap());
        let longer = parse(list, &format!("{text}\n")).unwrap();
        assert_ne!(longer.sha256, sha256);
        assert_eq!(longer.addresses, parse(list, text).unwrap().addresses);
    }
}

/// CO-36: a list that was cut off is an error, wherever it was cut.
#[test]
fn co36_no_part_of_a_list_is_a_list() {
    for (list, text) in [(PublicList::OfacSdn, OFAC), (PublicList::EuConsolidated, EU)] {
        let end = text.trim_end().len();
        for length in (0..end).step_by(5).filter(|length| text.is_char_boundary(*length)) {
            assert!(parse(list, text.get(..length).unwrap()).is_err(), "{length} bytes");
        }
        assert!(parse(list, text.get(..end - 1).unwrap()).is_err());
        assert!(parse(list, text.get(..end).unwrap()).is_ok());
    }
}

/// CO-36: what is not the expected list is refused with a reason.
#[test]
fn co36_malformed_lists_are_refused() {
    let reason = |result: Result<SanctionsList, ListError>| result.unwrap_err().to_string();
    for (text, replacement, problem) in [
        ("<Year>2026</Year>", "", "no valid date of issue"),
        ("<Month>8</Month>", "<Month>13</Month>", "no valid date of issue"),
        ("<Day>20</Day>", "<Day>x</Day>", "a part that is no number"),
        ("ID=\"504\"", "ID=\"8\"", "declares a feature type twice"),
        ("ID=\"504\"", "Id=\"504\"", "a feature type has no id"),
        (
            "<FeatureType ID=\"504\" FeatureTypeGroupID=\"1\">Website</FeatureType>",
            "",
            "a type that is not declared before",
        ),
        (
            "FeatureTypeID=\"887\"",
            "FeatureTypeID=\"\"",
            "a type that is not declared before",
        ),
        ("FeatureTypeID=\"887\"", "TypeID=\"887\"", "a feature has no type"),
        ("FixedRef=\"90003\"", "", "a party has no id"),
        ("FixedRef=\"90003\"", "FixedRef=\"9 3\"", "a party has no id"),
        ("FixedRef=\"90003\"", "FixedRef=\"\"", "a party has no id"),
        ("<Sanctions ", "<Sanction ", "the root element is `Sanction`"),
        ("<?xml", "<!DOCTYPE a><?xml", "document type"),
        ("Website", "&website;", "an entity is not defined"),
    ] {
        assert!(OFAC.contains(text), "{text}");
        let message = reason(ofac(&OFAC.replacen(text, replacement, 1)));
        assert!(message.contains(problem), "{replacement}: {message}");
    }
    let renamed = OFAC.replace("Digital Currency Address", "Virtual Currency Address");
    assert!(reason(ofac(&renamed)).contains("no feature type of digital currency"));
    let empty = OFAC.replace("DistinctParty", "Other");
    assert!(reason(ofac(&empty)).contains("no parties"));

    for (text, replacement, problem) in [
        ("generationDate=\"2026-08-05T16:47:04.449+02:00\"", "", "no valid date"),
        ("2026-08-05T16", "2026-13-05T16", "no valid date"),
        ("2026-08-05T16:47:04.449+02:00", "5 August 2026", "no valid date"),
        ("logicalId=\"902\"", "", "an entity has no id"),
        ("<export ", "<exports ", "the root element is `exports`"),
        (
            "    <sanctionEntity euReferenceNumber=\"EU.90.3\"",
            "<sanctionEntity logicalId=\"1\"><sanctionEntity",
            "inside of an entity",
        ),
    ] {
        assert!(EU.contains(text), "{text}");
        let message = reason(eu(&EU.replacen(text, replacement, 1)));
        assert!(message.contains(problem), "{replacement}: {message}");
    }
    let empty = EU.replace("sanctionEntity", "other");
    assert!(reason(eu(&empty)).contains("no entities"));
    assert!(ofac(EU).is_err() && eu(OFAC).is_err());
    assert!(eu("<html><body>Service unavailable</body></html>").is_err());
}

/// CO-36: a date without a time is a date too.
#[test]
fn co36_the_date_of_a_list_may_have_no_time() {
    let list = eu(&EU.replacen("2026-08-05T16:47:04.449+02:00", "2026-08-05", 1)).unwrap();
    assert_eq!(list.date.to_string(), "2026-08-05");
}

/// CO-36: limits on the file and on its addresses.
#[test]
fn co36_lists_above_a_limit_are_refused() {
    let size = u64::try_from(OFAC.len()).unwrap();
    let limits = |max_size, max_addresses| ListLimits {
        max_size,
        max_addresses,
    };
    let parse = |limits| PublicList::OfacSdn.parse(&mut OFAC.as_bytes(), &limits);
    assert!(parse(limits(size, 6)).is_ok());
    assert!(matches!(parse(limits(size - 1, 6)), Err(ListError::TooLarge(limit)) if limit == size - 1));
    assert!(matches!(parse(limits(size, 5)), Err(ListError::TooManyAddresses(5))));
    let deep = OFAC.replacen("<Comment />", &"<c>".repeat(70), 1);
    assert!(matches!(ofac(&deep), Err(ListError::TooDeep(_))));
    let long = OFAC.replacen("EXAMPLE", &"E".repeat(2_000_000), 1);
    assert!(matches!(ofac(&long), Err(ListError::TokenTooLong(_))));
    // Each piece is short; the text is too long.
    let pieces = EU.replacen("Cut off", &"a&amp;".repeat(700_000), 1);
    assert!(matches!(eu(&pieces), Err(ListError::TokenTooLong(_))));
}

/// The input may come in pieces of any size.
#[test]
fn co36_a_slow_input_gives_the_same_list() {
    struct Slow<'a>(&'a [u8]);
    impl std::io::Read for Slow<'_> {
        fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
            let length = buffer.len().min(3);
            self.0.read(&mut buffer[..length])
        }
    }
    for (list, text) in [(PublicList::OfacSdn, OFAC), (PublicList::EuConsolidated, EU)] {
        let slow = list.parse(&mut Slow(text.as_bytes()), &ListLimits::default());
        assert_eq!(slow.unwrap(), parse(list, text).unwrap());
    }
}

proptest! {
    /// No bytes make a parser fail otherwise than by an error.
    #[test]
    fn co36_any_change_gives_a_list_or_an_error(at in 0usize..1000, with in prop::collection::vec(any::<u8>(), 0..4)) {
        for (list, text) in [(PublicList::OfacSdn, OFAC), (PublicList::EuConsolidated, EU)] {
            let mut bytes = text.as_bytes().to_vec();
            let at = at * bytes.len() / 1000;
            let end = (at + with.len()).min(bytes.len());
            bytes.splice(at..end, with.iter().copied());
            let _ = list.parse(&mut bytes.as_slice(), &ListLimits::default());
        }
    }
}
