//! Address slots of logs (R19-R22).

use super::{
    ContractAbi, clean_address,
    function::Word,
    possible_address,
    types::{Type, WordKind},
    walk::{DecodedAbi, Layout, WalkError, walk},
};
use alloy_json_abi::Event;
use alloy_primitives::{Address, B256};

/// The address that a topic may contain.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AddressCandidate {
    /// Not an address.
    None,
    /// Declared as an address.
    Address(Address),
    /// Not declared as an address, but its value has the form of one (R22, HD31).
    Possible(Address),
    /// Declared as an address, but its encoding is not canonical. It must be zeroed.
    NonCanonical,
}

impl AddressCandidate {
    /// Classifies a word that is not declared as an address, by the form of its value (R20, HD31).
    pub fn undeclared(word: &B256) -> Self {
        possible_address(word).map_or(Self::None, Self::Possible)
    }
}

/// An event with its types resolved.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EventShape {
    anonymous: bool,
    /// Indexed inputs, in order; `None` for types of which the topic holds only a hash.
    indexed: Vec<Option<WordKind>>,
    /// The other inputs, in order.
    data: Vec<Type>,
    /// Location of each input.
    inputs: Vec<AbiLocation>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum AbiLocation {
    /// Position among the indexed inputs.
    Indexed(usize),
    /// Position among the others, and the offset of its head.
    Data(usize, usize),
}

impl EventShape {
    /// Resolves the types of an event; `None` if an input has an unknown type.
    pub(super) fn new(event: &Event) -> Option<Self> {
        let (mut indexed, mut data, mut inputs, mut head) = (Vec::new(), Vec::new(), Vec::new(), 0_usize);
        for input in &event.inputs {
            let ty = Type::of_event_param(input)?;
            if input.indexed {
                inputs.push(AbiLocation::Indexed(indexed.len()));
                indexed.push(ty.word_kind());
            } else {
                inputs.push(AbiLocation::Data(data.len(), head));
                head = head.checked_add(ty.head)?;
                data.push(ty);
            }
        }
        Some(Self {
            anonymous: event.anonymous,
            indexed,
            data,
            inputs,
        })
    }

    /// Whether the event is anonymous, so that topic0 is not its signature. An anonymous event matches no event rule.
    pub fn is_anonymous(&self) -> bool {
        self.anonymous
    }

    fn signature_topics(&self) -> usize {
        usize::from(!self.anonymous)
    }

    pub(super) fn matches(&self, topics: &[B256]) -> bool {
        topics.len() == self.indexed.len() + self.signature_topics()
    }

    /// Classifies the topic at `position` of the log (R19, R20). A word with the form of an address counts as a
    /// possible address even if another type is declared, because the author of the ABI chooses the declared types
    /// (HD31).
    pub fn topic(&self, position: usize, topic: &B256) -> AddressCandidate {
        let Some(index) = position.checked_sub(self.signature_topics()) else {
            return AddressCandidate::None;
        };
        match self.indexed.get(index).copied().flatten() {
            Some(WordKind::Address) => {
                clean_address(topic).map_or(AddressCandidate::NonCanonical, AddressCandidate::Address)
            }
            Some(WordKind::Function) => topic.first_chunk().map_or(AddressCandidate::NonCanonical, |bytes| {
                AddressCandidate::Address(bytes.into())
            }),
            Some(WordKind::Uint(_) | WordKind::Int(_) | WordKind::Bool | WordKind::FixedBytes(_)) | None => {
                AddressCandidate::undeclared(topic)
            }
        }
    }

    /// Decodes the data of a log.
    ///
    /// # Errors
    ///
    /// A [`WalkError`] if the data does not match the types; all data must then be zeroed (R22).
    pub fn data(&self, data: &[u8]) -> Result<DecodedAbi, WalkError> {
        walk(&self.data, data, Layout::Any)
    }

    /// Whether an input that is not indexed contains `bytes` or `string` (K5).
    pub fn has_opaque(&self) -> bool {
        self.data.iter().any(Type::is_opaque)
    }

    /// The input at `index`; `None` if its type is not a single word or its encoding is not canonical (F4).
    pub fn input(&self, index: usize, topics: &[B256], data: &[u8]) -> Option<Word> {
        let (kind, word) = match *self.inputs.get(index)? {
            AbiLocation::Indexed(position) => (
                self.indexed.get(position).copied().flatten()?,
                *topics.get(position + self.signature_topics())?,
            ),
            AbiLocation::Data(position, head) => {
                let bytes = data.get(head..)?.first_chunk::<32>()?;
                (self.data.get(position)?.word_kind()?, B256::from(bytes))
            }
        };
        kind.is_clean(&word).then_some(Word { kind, word })
    }

    /// Whether the input at `index` is a topic.
    pub fn is_indexed(&self, index: usize) -> bool {
        matches!(self.inputs.get(index), Some(AbiLocation::Indexed(_)))
    }

    /// The position of the topic that holds the input at `index`; `None` if the input is in the data.
    pub fn topic_position(&self, index: usize) -> Option<usize> {
        match *self.inputs.get(index)? {
            AbiLocation::Indexed(position) => Some(position + self.signature_topics()),
            AbiLocation::Data(_, _) => None,
        }
    }

    /// The type of the input at `index`; `None` if it is not a single word. Parameter rules apply to single words
    /// only.
    pub fn input_kind(&self, index: usize) -> Option<WordKind> {
        match *self.inputs.get(index)? {
            AbiLocation::Indexed(position) => self.indexed.get(position).copied().flatten(),
            AbiLocation::Data(position, _) => self.data.get(position)?.word_kind(),
        }
    }
}

impl ContractAbi {
    /// The event of a log. Among the events with its topic0, this is the first with the right number of indexed
    /// inputs; if there is no event with its topic0, the only anonymous event with that number. `None` means that the
    /// log must be treated as a log without ABI.
    pub fn event(&self, topics: &[B256]) -> Option<&EventShape> {
        let candidates = topics.first().and_then(|topic0| self.events.get(topic0));
        if let Some(shapes) = candidates {
            return shapes.iter().find(|shape| shape.matches(topics));
        }
        let mut anonymous = self.anonymous.iter().filter(|shape| shape.matches(topics));
        let only = anonymous.next()?;
        anonymous.next().is_none().then_some(only)
    }

    /// The first topics of the declared events that are not anonymous.
    pub fn first_topics(&self) -> impl Iterator<Item = B256> {
        self.events.keys().copied()
    }

    /// The declared events of every first topic, and the anonymous ones.
    pub fn all_events(&self) -> impl Iterator<Item = &EventShape> {
        self.events.values().flatten().chain(&self.anonymous)
    }

    /// The declared events with this topic0. They differ in the indexed inputs.
    pub fn declared(&self, topic0: &B256) -> &[EventShape] {
        self.events.get(topic0).map_or(&[], Vec::as_slice)
    }
}
