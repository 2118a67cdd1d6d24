//! Elements and texts of an XML stream: well-formed, in UTF-8, without a document type, within limits.

use super::input::{Limit, LimitedInput};
use gw_types::B256;
use quick_xml::{
    Reader, XmlVersion,
    escape::resolve_predefined_entity,
    events::{BytesStart, Event},
};
use std::{
    io::{self, BufReader, Read},
    sync::Arc,
};

/// Limits on a list.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ListLimits {
    /// The largest file, in bytes.
    pub max_size: u64,
    /// The largest number of addresses.
    pub max_addresses: usize,
}

/// Why a list was not read.
#[derive(Clone, Debug, thiserror::Error)]
pub enum ListError {
    /// The input exceeds [`ListLimits::max_size`].
    #[error("the list is larger than {0} bytes")]
    TooLarge(u64),
    /// The list has more addresses than [`ListLimits::max_addresses`].
    #[error("the list has more than {0} addresses")]
    TooManyAddresses(usize),
    /// A tag or text exceeds 1 MiB.
    #[error("a tag or text at byte {0} is longer than 1 MiB")]
    TokenTooLong(u64),
    /// The elements nest deeper than 64.
    #[error("the elements at byte {0} nest deeper than 64")]
    TooDeep(u64),
    /// The input could not be read.
    #[error("the list could not be read")]
    Read(#[source] Arc<io::Error>),
    /// The input is no well-formed XML.
    #[error("the XML is malformed at byte {position}")]
    Xml {
        /// Where reading stopped.
        position: u64,
        /// What the parser said.
        source: quick_xml::Error,
    },
    /// The input breaks a rule of XML or of this list.
    #[error("the list is malformed at byte {position}: {problem}")]
    Malformed {
        /// Where reading stopped.
        position: u64,
        /// The rule.
        problem: &'static str,
    },
    /// The root element is that of another document.
    #[error("not this list: the root element is `{0}`")]
    WrongRoot(String),
}

impl ListLimits {
    /// 512 MiB and 500,000 addresses. The largest public list has some 120 MB and some thousand addresses.
    pub const DEFAULT: Self = Self {
        max_size: 512 * 1024 * 1024,
        max_addresses: 500_000,
    };
}

impl Default for ListLimits {
    fn default() -> Self {
        Self::DEFAULT
    }
}

/// The longest tag or text, in bytes. It bounds the memory that a list takes.
const MAX_TOKEN: usize = 1024 * 1024;
/// The deepest nesting of elements.
const MAX_DEPTH: usize = 64;
/// The longest name of a root element that is repeated in an error.
const MAX_SHOWN_NAME: usize = 100;

/// A part of a document.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Node {
    Start(Element),
    /// A piece of text. A text may come in several pieces.
    Text(String),
    /// The end of the innermost element.
    End(String),
    /// The end of the document.
    Eof,
}

/// A start tag, without prefixes of namespaces.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Element {
    pub(super) name: String,
    pub(super) attributes: Vec<(String, String)>,
}

impl Element {
    pub(super) fn attribute(&self, name: &str) -> Option<&str> {
        let found = self.attributes.iter().find(|(key, _)| key == name);
        found.map(|(_, value)| value.as_str())
    }
}

/// Reads a document.
pub(super) struct Document<'a> {
    reader: Reader<BufReader<LimitedInput<'a>>>,
    buffer: Vec<u8>,
    /// The names of the open elements.
    path: Vec<String>,
    root: &'static str,
    has_root: bool,
    limits: ListLimits,
}

impl<'a> Document<'a> {
    /// A document with this root element.
    pub(super) fn new(input: &'a mut dyn Read, root: &'static str, limits: &ListLimits) -> Self {
        let max_token = u64::try_from(MAX_TOKEN).unwrap_or(u64::MAX);
        let mut reader = Reader::from_reader(BufReader::new(LimitedInput::new(input, limits.max_size, max_token)));
        let config = reader.config_mut();
        config.enable_all_checks(true);
        config.expand_empty_elements = true;
        Self {
            reader,
            buffer: Vec::new(),
            path: Vec::new(),
            root,
            has_root: false,
            limits: *limits,
        }
    }

    /// The names of the open elements, the root first.
    pub(super) fn path(&self) -> &[String] {
        &self.path
    }

    /// The next part.
    pub(super) fn next(&mut self) -> Result<Node, ListError> {
        loop {
            self.buffer.clear();
            self.reader.get_mut().get_mut().start_token();
            let node = match self.reader.read_event_into(&mut self.buffer) {
                Ok(event) => read_node(event),
                Err(error) => return Err(self.read_error(error)),
            };
            let node = node.map_err(|error| match error {
                NodeError::Xml(error) => self.xml_error(error),
                NodeError::Rule(problem) => self.malformed(problem),
            })?;
            if let Some(node) = node
                && self.accept(&node)?
            {
                return Ok(node);
            }
        }
    }

    /// An error at the current position.
    pub(super) fn malformed(&self, problem: &'static str) -> ListError {
        ListError::Malformed {
            position: self.reader.buffer_position(),
            problem,
        }
    }

    /// Appends text to what an element has, within the limit.
    pub(super) fn append(&self, text: &mut String, piece: &str) -> Result<(), ListError> {
        if text.len().saturating_add(piece.len()) > MAX_TOKEN {
            return Err(ListError::TokenTooLong(self.reader.buffer_position()));
        }
        text.push_str(piece);
        Ok(())
    }

    /// The SHA-256 of the input. All of it was read once [`Node::Eof`] was returned.
    pub(super) fn sha256(&self) -> B256 {
        self.reader.get_ref().get_ref().sha256()
    }

    /// Keeps the path and checks that there is one root and nothing beside it. Says whether the part is of interest.
    fn accept(&mut self, node: &Node) -> Result<bool, ListError> {
        match node {
            Node::Start(element) => {
                if self.path.is_empty() {
                    if self.has_root {
                        return Err(self.malformed("it has a second root element"));
                    }
                    if element.name != self.root {
                        return Err(ListError::WrongRoot(
                            element.name.chars().take(MAX_SHOWN_NAME).collect(),
                        ));
                    }
                    self.has_root = true;
                }
                if self.path.len() >= MAX_DEPTH {
                    return Err(ListError::TooDeep(self.reader.buffer_position()));
                }
                self.path.push(element.name.clone());
                Ok(true)
            }
            Node::End(_) => {
                self.path.pop();
                Ok(true)
            }
            Node::Text(text) if self.path.is_empty() => {
                if text.trim().is_empty() {
                    Ok(false)
                } else {
                    Err(self.malformed("there is text outside of the root element"))
                }
            }
            Node::Text(_) => Ok(true),
            Node::Eof if !self.has_root || !self.path.is_empty() => Err(self.malformed("it ends too early")),
            Node::Eof => Ok(true),
        }
    }

    fn read_error(&self, error: quick_xml::Error) -> ListError {
        match self.reader.get_ref().get_ref().exceeded() {
            Some(Limit::Size) => ListError::TooLarge(self.limits.max_size),
            Some(Limit::Token) => ListError::TokenTooLong(self.reader.buffer_position()),
            None => self.xml_error(error),
        }
    }

    fn xml_error(&self, error: quick_xml::Error) -> ListError {
        match error {
            quick_xml::Error::Io(error) => ListError::Read(error),
            source => ListError::Xml {
                position: self.reader.error_position().max(self.reader.buffer_position()),
                source,
            },
        }
    }
}

/// Why an event gives no part.
enum NodeError {
    Xml(quick_xml::Error),
    Rule(&'static str),
}

impl From<quick_xml::Error> for NodeError {
    fn from(error: quick_xml::Error) -> Self {
        Self::Xml(error)
    }
}

/// The part of an event; `None` for comments and the like.
fn read_node(event: Event<'_>) -> Result<Option<Node>, NodeError> {
    match event {
        Event::Start(tag) => Ok(Some(Node::Start(read_tag(&tag)?))),
        Event::End(tag) => Ok(Some(Node::End(tag.local_name().as_ref().to_owned()))),
        Event::Text(text) => Ok(Some(Node::Text(text.xml10_content().into_owned()))),
        Event::CData(text) => Ok(Some(Node::Text(text.xml10_content().into_owned()))),
        Event::GeneralRef(reference) => {
            let text = match reference.resolve_char_ref()? {
                Some(character) => character.to_string(),
                None => resolve_predefined_entity(&reference)
                    .ok_or(NodeError::Rule("an entity is not defined"))?
                    .to_owned(),
            };
            Ok(Some(Node::Text(text)))
        }
        Event::Decl(declaration) => {
            let is_utf8 = match declaration.encoding().transpose() {
                Ok(encoding) => encoding.is_none_or(|name| name.eq_ignore_ascii_case("utf-8")),
                Err(_) => false,
            };
            if is_utf8 {
                Ok(None)
            } else {
                Err(NodeError::Rule("the encoding is not UTF-8"))
            }
        }
        Event::DocType(_) => Err(NodeError::Rule("it has a document type")),
        Event::Comment(_) | Event::PI(_) | Event::Empty(_) => Ok(None),
        Event::Eof => Ok(Some(Node::Eof)),
    }
}

fn read_tag(tag: &BytesStart<'_>) -> Result<Element, quick_xml::Error> {
    let mut attributes = Vec::new();
    for attribute in tag.attributes() {
        let attribute = attribute?;
        let value = attribute.normalized_value(XmlVersion::Explicit1_0)?.into_owned();
        attributes.push((attribute.key.local_name().as_ref().to_owned(), value));
    }
    Ok(Element {
        name: tag.local_name().as_ref().to_owned(),
        attributes,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Result<String, ListError> {
        let mut bytes = text.as_bytes();
        let mut document = Document::new(&mut bytes, "a", &ListLimits::DEFAULT);
        let mut out = String::new();
        loop {
            match document.next()? {
                Node::Start(element) => {
                    out.push_str(&format!("<{}", element.name));
                    for (name, value) in element.attributes {
                        out.push_str(&format!(" {name}={value}"));
                    }
                    out.push('>');
                }
                Node::Text(text) => out.push_str(&text),
                Node::End(name) => out.push_str(&format!("</{name}>")),
                Node::Eof => return Ok(out),
            }
        }
    }

    #[test]
    fn elements_texts_and_references_are_read() {
        let text = "\u{feff}<?xml version=\"1.0\" encoding=\"utf-8\"?><!-- c --><x:a xmlns:x=\"u\">\
                    <b c=\"1&amp;&#50;\" x:d='e'/>f&lt;<![CDATA[<g>]]>&#x68;<!-- i -->j</x:a>\n";
        assert_eq!(read(text).unwrap(), "<a x=u><b c=1&2 d=e></b>f<<g>hj</a>");
    }

    #[test]
    fn malformed_documents_are_errors() {
        for text in [
            "",
            " ",
            "<a>",
            "<a><b></a></b>",
            "<a></a><a></a>",
            "<a></a>text",
            "text<a></a>",
            "<a></b>",
            "</a>",
            "<a b=1/>",
            "<a b='1' b='2'/>",
            "<a b/>",
            "<a>&unknown;</a>",
            "<a>&#0;</a>",
            "<a>& b</a>",
            "<a b='&unknown;'/>",
            "<a><!-- -- --></a>",
            "<a><![CDATA[</a>",
            "<a",
            "<?xml version=\"1.0\" encoding=\"ISO-8859-1\"?><a/>",
            "<?xml version=\"1.0\" encoding=utf-8?><a/>",
            "<!DOCTYPE a [<!ENTITY e \"x\">]><a>&e;</a>",
            "<!DOCTYPE a SYSTEM \"file:///etc/passwd\"><a/>",
            "<b/>",
        ] {
            assert!(read(text).is_err(), "{text}");
        }
        let mut bytes = b"<a>\xff</a>".as_slice();
        let mut document = Document::new(&mut bytes, "a", &ListLimits::DEFAULT);
        assert!(
            std::iter::from_fn(|| Some(document.next()))
                .take(5)
                .any(|node| node.is_err())
        );
    }

    #[test]
    fn deep_documents_and_long_tokens_are_errors() {
        let deep = |depth: usize| format!("<a>{}{}</a>", "<b>".repeat(depth - 1), "</b>".repeat(depth - 1));
        assert!(read(&deep(64)).is_ok());
        assert!(matches!(read(&deep(65)), Err(ListError::TooDeep(_))));

        let long = "x".repeat(MAX_TOKEN + 10_000);
        for text in [
            format!("<a>{long}</a>"),
            format!("<a b='{long}'/>"),
            format!("<a><!--{long}--></a>"),
        ] {
            assert!(matches!(read(&text), Err(ListError::TokenTooLong(_))));
        }
        assert!(read(&format!("<a>{}</a>", "<b>x</b>".repeat(MAX_TOKEN / 4))).is_ok());
    }

    #[test]
    fn a_text_of_many_pieces_is_limited_too() {
        let mut bytes = b"<a/>".as_slice();
        let document = Document::new(&mut bytes, "a", &ListLimits::DEFAULT);
        let mut text = "x".repeat(MAX_TOKEN - 1);
        assert!(document.append(&mut text, "y").is_ok());
        assert!(document.append(&mut text, "z").is_err());
    }

    #[test]
    fn errors_of_the_input_are_kept() {
        struct Broken;
        impl Read for Broken {
            fn read(&mut self, _: &mut [u8]) -> io::Result<usize> {
                Err(io::Error::other("broken"))
            }
        }
        let mut input = Broken;
        let mut document = Document::new(&mut input, "a", &ListLimits::DEFAULT);
        assert!(matches!(document.next(), Err(ListError::Read(_))));

        let limits = ListLimits {
            max_size: 3,
            ..ListLimits::DEFAULT
        };
        let mut bytes = b"<a/>".as_slice();
        let mut document = Document::new(&mut bytes, "a", &limits);
        assert!(matches!(document.next(), Err(ListError::TooLarge(3))));
    }
}
