//! Address slots of logs (R19-R22).

use super::{
    ContractAbi, clean_address,
    function::Word,
    possible_address,
    types::{Type, WordKind},
    walk::{Layout, Walk, WalkError, walk},
};
use alloy_json_abi::Event;
use alloy_primitives::{Address, B256};

/// What a word outside the data may hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Held {
    /// No address.
    Nothing,
    /// An address.
    Address(Address),
    /// Declared as something else, or not at all, but shaped like an address (R22, HD31).
    Perhaps(Address),
    /// Something in the place of an address that is none; to be zeroed.
    Dirty,
}

impl Held {
    /// A word that nobody declared an address (R20, HD31): an address by its shape.
    pub fn undeclared(word: &B256) -> Self {
        possible_address(word).map_or(Self::Nothing, Self::Perhaps)
    }
}

/// An event with its types resolved.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EventShape {
    anonymous: bool,
    /// Indexed inputs, in order; `None` for those of which only a hash is stored.
    indexed: Vec<Option<WordKind>>,
    /// The other inputs, in order.
    data: Vec<Type>,
    /// Where each input is found.
    inputs: Vec<Place>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Place {
    /// Position among the indexed inputs.
    Indexed(usize),
    /// Position among the others, and the offset of its head.
    Data(usize, usize),
}

impl EventShape {
    /// `None` if an input has a type that is none.
    pub(super) fn new(event: &Event) -> Option<Self> {
        let (mut indexed, mut data, mut inputs, mut head) = (Vec::new(), Vec::new(), Vec::new(), 0_usize);
        for input in &event.inputs {
            let ty = Type::of_event_param(input)?;
            if input.indexed {
                inputs.push(Place::Indexed(indexed.len()));
                indexed.push(ty.word_kind());
            } else {
                inputs.push(Place::Data(data.len(), head));
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

    /// Whether the event has no topic0 of its own; it then matches no event rule.
    pub fn is_anonymous(&self) -> bool {
        self.anonymous
    }

    fn signature_topics(&self) -> usize {
        usize::from(!self.anonymous)
    }

    pub(super) fn matches(&self, topics: &[B256]) -> bool {
        topics.len() == self.indexed.len() + self.signature_topics()
    }

    /// What the topic at `position` of the log holds (R19, R20). A declared type may only add to what is taken for an
    /// address: which inputs are indexed is what the author of the ABI says (HD31).
    pub fn topic(&self, position: usize, topic: &B256) -> Held {
        let Some(index) = position.checked_sub(self.signature_topics()) else {
            return Held::Nothing;
        };
        match self.indexed.get(index).copied().flatten() {
            Some(WordKind::Address) => clean_address(topic).map_or(Held::Dirty, Held::Address),
            Some(WordKind::Function) => topic
                .first_chunk()
                .map_or(Held::Dirty, |bytes| Held::Address(bytes.into())),
            Some(WordKind::Uint(_) | WordKind::Int(_) | WordKind::Bool | WordKind::FixedBytes(_)) | None => {
                Held::undeclared(topic)
            }
        }
    }

    /// Walks the log's data. An error means that all of it has to be zeroed (R22).
    pub fn data(&self, data: &[u8]) -> Result<Walk, WalkError> {
        walk(&self.data, data, Layout::Any)
    }

    /// Whether an input that is not indexed holds `bytes` or `string` anywhere (K5).
    pub fn has_opaque(&self) -> bool {
        self.data.iter().any(Type::is_opaque)
    }

    /// The input at `index`, if it is one word and the log holds a clean one there (F4).
    pub fn input(&self, index: usize, topics: &[B256], data: &[u8]) -> Option<Word> {
        let (kind, word) = match *self.inputs.get(index)? {
            Place::Indexed(position) => (
                self.indexed.get(position).copied().flatten()?,
                *topics.get(position + self.signature_topics())?,
            ),
            Place::Data(position, head) => {
                let bytes = data.get(head..)?.first_chunk::<32>()?;
                (self.data.get(position)?.word_kind()?, B256::from(bytes))
            }
        };
        kind.is_clean(&word).then_some(Word { kind, word })
    }

    /// Whether the input at `index` is a topic.
    pub fn is_indexed(&self, index: usize) -> bool {
        matches!(self.inputs.get(index), Some(Place::Indexed(_)))
    }

    /// The type of the input at `index`, if it is one word: what a parameter rule can be about.
    pub fn input_kind(&self, index: usize) -> Option<WordKind> {
        match *self.inputs.get(index)? {
            Place::Indexed(position) => self.indexed.get(position).copied().flatten(),
            Place::Data(position, _) => self.data.get(position)?.word_kind(),
        }
    }
}

impl ContractAbi {
    /// The event of a log: the one with its topic0 and as many indexed inputs, else the only anonymous one with as
    /// many. `None` means the log is to be treated as without ABI.
    pub fn event(&self, topics: &[B256]) -> Option<&EventShape> {
        let named = topics.first().and_then(|topic0| self.events.get(topic0));
        if let Some(shapes) = named {
            return shapes.iter().find(|shape| shape.matches(topics));
        }
        let mut anonymous = self.anonymous.iter().filter(|shape| shape.matches(topics));
        let only = anonymous.next()?;
        anonymous.next().is_none().then_some(only)
    }

    /// The events declared with this topic0; more than one if they differ in what is indexed.
    pub fn declared(&self, topic0: &B256) -> &[EventShape] {
        self.events.get(topic0).map_or(&[], Vec::as_slice)
    }
}
