//! The SDN list of OFAC in its advanced XML form.
//!
//! ```text
//! Sanctions
//!   DateOfIssue: Year, Month, Day
//!   ReferenceValueSets / FeatureTypeValues / FeatureType ID="345": Digital Currency Address - ETH
//!   DistinctParties / DistinctParty FixedRef="900" / Profile / Feature FeatureTypeID="345"
//!     FeatureVersion / VersionDetail: 0x...
//! ```
//!
//! A feature type says which currency an address is for. All of them are looked through: one key has the same address
//! on each EVM chain.

use super::{
    Collector, ListError, ListLimits, PublicList, SanctionsList, is_entry_id, scan,
    xml::{Document, Element, Node},
};
use std::{collections::BTreeMap, io::Read};
use time::{Date, Month};

/// How the feature types of addresses start.
const ADDRESS_TYPE: &str = "Digital Currency Address";
/// Currencies of EVM chains only: each of their addresses must be readable.
const EVM_CURRENCIES: &[&str] = &["ETH", "ETC", "BSC", "ARB", "MATIC"];
/// The largest number of feature types.
const MAX_FEATURE_TYPES: usize = 10_000;
/// The longest text of a feature type.
const MAX_TYPE_TEXT: usize = 100;

pub(super) fn parse(input: &mut dyn Read, limits: &ListLimits) -> Result<SanctionsList, ListError> {
    let mut document = Document::new(input, "Sanctions", limits);
    let mut parser = Parser::new(*limits);
    loop {
        match document.next()? {
            Node::Start(element) => parser.start(&document, &element)?,
            Node::Text(text) => {
                if let Some((_, captured)) = &mut parser.capture {
                    document.append(captured, &text)?;
                }
            }
            Node::End(name) => parser.end(&document, &name)?,
            Node::Eof => break,
        }
    }
    if !parser.feature_types.values().any(Option::is_some) {
        return Err(document.malformed("it declares no feature type of digital currency addresses"));
    }
    if parser.collector.entries == 0 {
        return Err(document.malformed("it has no parties"));
    }
    let date = parser
        .date
        .date()
        .ok_or_else(|| document.malformed("it has no valid date of issue"))?;
    Ok(parser.collector.finish(PublicList::OfacSdn, date, document.sha256()))
}

struct Parser {
    limits: ListLimits,
    date: DateOfIssue,
    /// The declared feature types, with the text of those of addresses.
    feature_types: BTreeMap<String, Option<String>>,
    /// The id of the party that is being read.
    party: Option<String>,
    /// The text of the type of the address that is being read.
    feature: Option<Feature>,
    /// The element whose text is being read, and the text so far.
    capture: Option<(Capture, String)>,
    collector: Collector,
}

struct Feature {
    kind: String,
    has_value: bool,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Capture {
    Year,
    Month,
    Day,
    FeatureType(String),
    Detail,
}

#[derive(Default)]
struct DateOfIssue {
    year: Option<i32>,
    month: Option<u8>,
    day: Option<u8>,
}

impl DateOfIssue {
    fn date(&self) -> Option<Date> {
        Date::from_calendar_date(self.year?, Month::try_from(self.month?).ok()?, self.day?).ok()
    }
}

impl Capture {
    const fn element(&self) -> &'static str {
        match self {
            Self::Year => "Year",
            Self::Month => "Month",
            Self::Day => "Day",
            Self::FeatureType(_) => "FeatureType",
            Self::Detail => "VersionDetail",
        }
    }
}

impl Parser {
    fn new(limits: ListLimits) -> Self {
        Self {
            limits,
            date: DateOfIssue::default(),
            feature_types: BTreeMap::new(),
            party: None,
            feature: None,
            capture: None,
            collector: Collector::default(),
        }
    }

    fn start(&mut self, document: &Document<'_>, element: &Element) -> Result<(), ListError> {
        let (name, parents) = document
            .path()
            .split_last()
            .map_or(("", [].as_slice()), |(name, parents)| (name.as_str(), parents));
        let is_date = matches!(parents, [_, date] if date == "DateOfIssue");
        let capture = match name {
            "Year" if is_date => Capture::Year,
            "Month" if is_date => Capture::Month,
            "Day" if is_date => Capture::Day,
            "FeatureType" if parents.last().is_some_and(|parent| parent == "FeatureTypeValues") => {
                let id = element.attribute("ID").filter(|id| is_entry_id(id));
                let id = id.ok_or_else(|| document.malformed("a feature type has no id"))?;
                Capture::FeatureType(id.to_owned())
            }
            "VersionDetail" if self.feature.is_some() => Capture::Detail,
            "DistinctParty" => return self.start_party(document, element),
            "Feature" if self.party.is_some() => return self.start_feature(document, element),
            _ => return Ok(()),
        };
        if self.capture.is_some() {
            return Err(document.malformed("an element has elements where a text is expected"));
        }
        self.capture = Some((capture, String::new()));
        Ok(())
    }

    fn start_party(&mut self, document: &Document<'_>, element: &Element) -> Result<(), ListError> {
        if self.party.is_some() {
            return Err(document.malformed("a party is inside of a party"));
        }
        let id = element.attribute("FixedRef").filter(|id| is_entry_id(id));
        let id = id.ok_or_else(|| document.malformed("a party has no id"))?;
        self.party = Some(id.to_owned());
        self.collector.entries = self.collector.entries.saturating_add(1);
        Ok(())
    }

    fn start_feature(&mut self, document: &Document<'_>, element: &Element) -> Result<(), ListError> {
        if self.feature.is_some() {
            return Err(document.malformed("a feature is inside of a feature"));
        }
        let id = element.attribute("FeatureTypeID");
        let id = id.ok_or_else(|| document.malformed("a feature has no type"))?;
        let kind = self.feature_types.get(id);
        let kind = kind.ok_or_else(|| document.malformed("a feature has a type that is not declared before"))?;
        self.feature = kind.clone().map(|kind| Feature { kind, has_value: false });
        Ok(())
    }

    fn end(&mut self, document: &Document<'_>, name: &str) -> Result<(), ListError> {
        if let Some((capture, text)) = self.capture.take_if(|(capture, _)| capture.element() == name) {
            return self.captured(document, capture, &text);
        }
        match name {
            "Feature" => {
                if let Some(Feature { kind, has_value: false }) = self.feature.take() {
                    self.unreadable(&kind)?;
                }
            }
            "DistinctParty" => self.party = None,
            _ => {}
        }
        Ok(())
    }

    fn captured(&mut self, document: &Document<'_>, capture: Capture, text: &str) -> Result<(), ListError> {
        let text = text.trim();
        let not_a_number = || document.malformed("the date of issue has a part that is no number");
        match capture {
            Capture::Year => self.date.year = Some(text.parse().map_err(|_| not_a_number())?),
            Capture::Month => self.date.month = Some(text.parse().map_err(|_| not_a_number())?),
            Capture::Day => self.date.day = Some(text.parse().map_err(|_| not_a_number())?),
            Capture::FeatureType(id) => {
                if self.feature_types.len() >= MAX_FEATURE_TYPES {
                    return Err(document.malformed("it declares too many feature types"));
                }
                let start: String = text.chars().take(ADDRESS_TYPE.len()).collect();
                let is_address = start.eq_ignore_ascii_case(ADDRESS_TYPE);
                let kind = is_address.then(|| text.chars().take(MAX_TYPE_TEXT).collect());
                if self.feature_types.insert(id, kind).is_some() {
                    return Err(document.malformed("it declares a feature type twice"));
                }
            }
            Capture::Detail => self.detail(text)?,
        }
        Ok(())
    }

    fn detail(&mut self, text: &str) -> Result<(), ListError> {
        let (Some(feature), Some(party)) = (&mut self.feature, &self.party) else {
            return Ok(());
        };
        let mut found = scan::scan(text);
        if found.addresses.is_empty() {
            found.addresses.extend(bare_address(text));
        }
        let is_evm = feature
            .kind
            .rsplit_once('-')
            .is_some_and(|(_, currency)| EVM_CURRENCIES.contains(&currency.trim()));
        if found.addresses.is_empty() && found.unreadable.is_empty() && is_evm && !text.is_empty() {
            found.unreadable.push(text.to_owned());
        }
        feature.has_value |= !text.is_empty();
        let reason = format!("{}, entry {party}: {}", PublicList::OfacSdn.name(), feature.kind);
        for address in found.addresses {
            self.collector.add(address, reason.clone(), &self.limits)?;
        }
        for text in found.unreadable {
            self.collector.add_unreadable(party, &text, &self.limits)?;
        }
        Ok(())
    }

    /// Reports a feature without a value.
    fn unreadable(&mut self, kind: &str) -> Result<(), ListError> {
        let party = self.party.as_deref().unwrap_or_default();
        self.collector.add_unreadable(party, kind, &self.limits)
    }
}

/// An address without its `0x`, or with the prefix of the XDC network.
fn bare_address(text: &str) -> Option<gw_types::Address> {
    let text = scan::without_invisible(text).to_ascii_lowercase();
    scan::address(text.strip_prefix("xdc").unwrap_or(&text))
}
