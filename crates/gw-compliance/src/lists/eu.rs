//! The consolidated list of the European Union, XML form 1.1.
//!
//! ```text
//! export generationDate="2026-08-05T16:47:04.449+02:00"
//!   sanctionEntity euReferenceNumber="EU.27.28" logicalId="13"
//!     remark: ...
//!     identification number="..."
//!       remark: ...
//! ```
//!
//! The form has no place for addresses of chains; they stand in remarks and in numbers of identifications. All texts
//! and attributes of an entity are looked through.

use super::{
    Collector, ListError, ListLimits, PublicList, SanctionsList, is_entry_id, scan,
    xml::{Document, Element, Node},
};
use std::io::Read;
use time::{Date, macros::format_description};

pub(super) fn parse(input: &mut dyn Read, limits: &ListLimits) -> Result<SanctionsList, ListError> {
    let mut document = Document::new(input, "export", limits);
    let mut collector = Collector::default();
    let mut date = None;
    let mut entity: Option<String> = None;
    let mut text = String::new();
    loop {
        let node = document.next()?;
        if let Node::Text(piece) = node {
            if entity.is_some() {
                document.append(&mut text, &piece)?;
            }
            continue;
        }
        // A text ends where an element starts or ends.
        if let Some(entry) = &entity {
            collect(&mut collector, entry, &std::mem::take(&mut text), limits)?;
        }
        match node {
            Node::Start(element) => {
                if document.path().len() == 1 {
                    let day = element.attribute("generationDate").and_then(day);
                    date = Some(day.ok_or_else(|| document.malformed("it has no valid date of generation"))?);
                } else if element.name == "sanctionEntity" {
                    if entity.is_some() {
                        return Err(document.malformed("an entity is inside of an entity"));
                    }
                    entity = Some(entry_id(&element).ok_or_else(|| document.malformed("an entity has no id"))?);
                    collector.entries = collector.entries.saturating_add(1);
                }
                if let Some(entry) = &entity {
                    for (_, value) in &element.attributes {
                        collect(&mut collector, entry, value, limits)?;
                    }
                }
            }
            Node::End(name) => {
                if name == "sanctionEntity" {
                    entity = None;
                }
            }
            Node::Text(_) => {}
            Node::Eof => break,
        }
    }
    if collector.entries == 0 {
        return Err(document.malformed("it has no entities"));
    }
    let date = date.ok_or_else(|| document.malformed("it has no valid date of generation"))?;
    Ok(collector.finish(PublicList::EuConsolidated, date, document.sha256()))
}

fn collect(collector: &mut Collector, entry: &str, text: &str, limits: &ListLimits) -> Result<(), ListError> {
    let found = scan::scan(text);
    for address in found.addresses {
        let reason = format!("{}, entry {entry}", PublicList::EuConsolidated.name());
        collector.add(address, reason, limits)?;
    }
    for text in found.unreadable {
        collector.add_unreadable(entry, &text, limits)?;
    }
    Ok(())
}

/// The reference number, or else the logical id.
fn entry_id(element: &Element) -> Option<String> {
    let id = |name| element.attribute(name).map(str::trim).filter(|id| is_entry_id(id));
    id("euReferenceNumber").or_else(|| id("logicalId")).map(str::to_owned)
}

/// The day of a date with a time, or of one without.
fn day(text: &str) -> Option<Date> {
    let day = match text.split_once('T') {
        Some((day, _)) => day,
        None => text,
    };
    Date::parse(day, format_description!("[year]-[month]-[day]")).ok()
}
