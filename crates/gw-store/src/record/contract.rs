//! Contracts, the grants on them, and the rules inside a grant (spec/20 sections 4 and 5).

use super::JsonObject;
pub use gw_policy::snapshot::Comparison;
use gw_types::{Address, B256, Claims, ContractId, GrantId, GroupId, OrgId, Timestamp, UserId};
use serde::{
    Deserialize, Deserializer, Serialize,
    de::{Error, MapAccess, SeqAccess, Visitor, value::MapAccessDeserializer},
};
use std::fmt;

/// A registered contract (K1).
#[derive(Clone, Debug, PartialEq)]
pub struct Contract {
    /// Row id.
    pub id: ContractId,
    /// The owning organization.
    pub org: OrgId,
    /// Its address, unique over all organizations.
    pub address: Address,
    /// Display name.
    pub name: String,
    /// The uploaded ABI as JSON text.
    pub abi: Option<String>,
    /// Free metadata; `token_type` names a built-in ABI.
    pub metadata: JsonObject,
    /// When it was deployed on the chain, if the gateway observed that.
    pub deployed_at: Option<Timestamp>,
    /// Who deployed it through the gateway (K7).
    pub deployer: Option<UserId>,
    /// R29.
    pub allow_visibleto_unlock: bool,
    /// K5 attestation.
    pub events_allow_dynamic_payload: bool,
    /// F5: the organization's administrators vouch for the calls that it forwards.
    pub trusted_router: bool,
    /// The first block that belongs to the organization, if another one had the contract before (HD41).
    pub owned_from: Option<u64>,
    /// When the row was created.
    pub created_at: Timestamp,
    /// When it last changed.
    pub updated_at: Timestamp,
}

impl Contract {
    /// Returns since when the organization owns it (H1): for a deployment through the gateway, ownership begins before
    /// the row was written.
    pub fn since(&self) -> Timestamp {
        self.deployed_at.map_or(self.created_at, |at| at.min(self.created_at))
    }
}

/// Input for creating a contract.
#[derive(Clone, Debug)]
pub struct NewContract {
    /// The owning organization.
    pub org: OrgId,
    /// Its address.
    pub address: Address,
    /// Display name.
    pub name: String,
    /// The uploaded ABI.
    pub abi: Option<AbiText>,
    /// Free metadata.
    pub metadata: JsonObject,
    /// When it was deployed on the chain.
    pub deployed_at: Option<Timestamp>,
    /// Who deployed it through the gateway.
    pub deployer: Option<UserId>,
    /// Whether it may replace another organization's contract whose registration was deleted (HD27).
    pub takes_over_retired: bool,
    /// The first block that may belong to the organization, if another one had the contract before (HD41). The store
    /// then requires it.
    pub first_block: Option<u64>,
}

impl NewContract {
    /// Creates an input with only an owner, an address and a name.
    pub fn plain(org: OrgId, address: Address, name: impl Into<String>) -> Self {
        Self {
            org,
            address,
            name: name.into(),
            abi: None,
            metadata: JsonObject::new(),
            deployed_at: None,
            deployer: None,
            takes_over_retired: false,
            first_block: None,
        }
    }
}

/// The text of an ABI that the snapshot can read. It is parsed here, not while a transaction holds the writer: an ABI
/// may have thousands of entries.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AbiText(String);

impl AbiText {
    /// Checks that a text is an ABI.
    ///
    /// # Errors
    /// The parser's error.
    pub fn parse(text: String) -> Result<Self, gw_evm::abi::AbiTextError> {
        gw_evm::abi::ContractAbi::parse(&text)?;
        Ok(Self(text))
    }

    pub(crate) fn into_text(self) -> String {
        self.0
    }
}

/// A partial change of a contract.
#[derive(Clone, Debug, Default)]
pub struct ContractPatch {
    /// New name.
    pub name: Option<String>,
    /// New metadata, replacing the old.
    pub metadata: Option<JsonObject>,
    /// New ABI; `Some(None)` clears it.
    pub abi: Option<Option<AbiText>>,
    /// New value of the flag.
    pub allow_visibleto_unlock: Option<bool>,
    /// New value of the flag.
    pub events_allow_dynamic_payload: Option<bool>,
    /// New value of the flag.
    pub trusted_router: Option<bool>,
}

/// A group's rights on one contract (F1).
#[derive(Clone, Debug, PartialEq)]
pub struct Grant {
    /// Row id.
    pub id: GrantId,
    /// The contract.
    pub contract: ContractId,
    /// The group.
    pub group: GroupId,
    /// Claims on this contract only (C3).
    pub claims: Claims,
    /// `None`: all functions; an empty list: none.
    pub functions: Option<Vec<FunctionRule>>,
    /// The events that members of the group see.
    pub event_rules: EventRules,
    /// When the row was created.
    pub created_at: Timestamp,
    /// When it last changed.
    pub updated_at: Timestamp,
}

/// The part of a grant that is kept when its contract's registration ends (HD41): the events that its holders see.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct PastGrant {
    pub(crate) id: uuid::Uuid,
    pub(crate) group: uuid::Uuid,
    /// The column text.
    pub(crate) claims: String,
    pub(crate) events: EventRules,
}

/// Input for creating a grant.
#[derive(Clone, Debug)]
pub struct NewGrant {
    /// The contract.
    pub contract: ContractId,
    /// The group.
    pub group: GroupId,
    /// Claims on this contract only.
    pub claims: Claims,
    /// `None`: all functions; an empty list: none.
    pub functions: Option<Vec<FunctionRule>>,
    /// The events that members of the group see.
    pub event_rules: EventRules,
}

impl NewGrant {
    /// Creates a grant without restrictions.
    pub fn full(contract: ContractId, group: GroupId) -> Self {
        Self {
            contract,
            group,
            claims: Claims::NONE,
            functions: None,
            event_rules: EventRules::Unset,
        }
    }
}

/// A partial change of a grant.
#[derive(Clone, Debug, Default)]
pub struct GrantPatch {
    /// New claims.
    pub claims: Option<Claims>,
    /// New functions; `Some(None)` removes the restriction.
    pub functions: Option<Option<Vec<FunctionRule>>>,
    /// New event rules.
    pub event_rules: Option<EventRules>,
}

/// One permitted function.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FunctionRule {
    /// The selector.
    #[serde(with = "selector")]
    pub selector: [u8; 4],
    /// Parameter rules; all must hold (F3).
    #[serde(default)]
    pub param_rules: Vec<ParamRule>,
}

/// A condition on one parameter.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ParamRule {
    /// Position in the ABI's inputs.
    pub index: u16,
    /// The constraint on the parameter.
    pub must_be: MustBe,
}

/// Constraint on a parameter: `self`, a literal of at most 32 bytes, or `{op, value}` (F3).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "MustBeWire", into = "MustBeWire")]
pub enum MustBe {
    /// An address linked to the caller.
    Own,
    /// An address of the contract's organization.
    Org,
    /// A hex literal.
    Literal(Literal),
    /// One of several literals.
    OneOf(Vec<Literal>),
    /// Comparison with a literal.
    Compare(Comparison, Literal),
}

/// A hex literal.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Literal {
    /// The text as given.
    pub text: String,
    /// Its ABI word: shorter literals are numbers or addresses, padded on the left.
    pub word: B256,
}

/// Error for a text that is neither `self` nor a hex literal of 1 to 32 bytes, or for an operator without its value.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("neither `self`, a hex literal of at most 32 bytes, nor an operator with its value")]
pub struct MustBeError;

#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Operator {
    Eq,
    Ne,
    In,
    Lt,
    Lte,
    Gt,
    Gte,
    #[serde(rename = "self")]
    Own,
    Org,
}

#[derive(Clone, Debug, Serialize)]
#[serde(untagged)]
enum OneOrMore {
    One(String),
    More(Vec<String>),
}

#[derive(Clone, Debug, Serialize)]
#[serde(untagged)]
enum MustBeWire {
    Text(String),
    Operator(OperatorWire),
}

#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct OperatorWire {
    op: Operator,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    value: Option<OneOrMore>,
}

/// Implemented by hand, here and below: the error of a derived untagged enum names our types, not what is wrong (HD33).
impl<'de> Deserialize<'de> for OneOrMore {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Shapes;

        impl<'de> Visitor<'de> for Shapes {
            type Value = OneOrMore;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a hex literal or a list of them")
            }

            fn visit_str<E: Error>(self, text: &str) -> Result<OneOrMore, E> {
                Ok(OneOrMore::One(text.to_owned()))
            }

            fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<OneOrMore, A::Error> {
                let mut texts = Vec::new();
                while let Some(text) = items.next_element()? {
                    texts.push(text);
                }
                Ok(OneOrMore::More(texts))
            }
        }

        deserializer.deserialize_any(Shapes)
    }
}

impl<'de> Deserialize<'de> for MustBeWire {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Shapes;

        impl<'de> Visitor<'de> for Shapes {
            type Value = MustBeWire;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("`self`, a hex literal or an object with `op` and `value`")
            }

            fn visit_str<E: Error>(self, text: &str) -> Result<MustBeWire, E> {
                Ok(MustBeWire::Text(text.to_owned()))
            }

            fn visit_map<A: MapAccess<'de>>(self, members: A) -> Result<MustBeWire, A::Error> {
                OperatorWire::deserialize(MapAccessDeserializer::new(members)).map(MustBeWire::Operator)
            }
        }

        deserializer.deserialize_any(Shapes)
    }
}

impl MustBe {
    /// Reads `self` or a `0x` literal.
    ///
    /// # Errors
    /// [`MustBeError`] if the text is no constraint.
    pub fn parse(text: &str) -> Result<Self, MustBeError> {
        if text == "self" {
            Ok(Self::Own)
        } else {
            Literal::parse(text).map(Self::Literal)
        }
    }

    /// Returns its literals for modification, so that they can be replaced by whole words.
    pub fn literals_mut(&mut self) -> &mut [Literal] {
        match self {
            Self::Own | Self::Org => &mut [],
            Self::Literal(one) | Self::Compare(_, one) => std::slice::from_mut(one),
            Self::OneOf(literals) => literals,
        }
    }

    /// Returns its literals.
    pub fn literals(&self) -> &[Literal] {
        match self {
            Self::Own | Self::Org => &[],
            Self::Literal(one) | Self::Compare(_, one) => std::slice::from_ref(one),
            Self::OneOf(literals) => literals,
        }
    }
}

impl Literal {
    /// Returns the bytes as given; `None` if the number of digits is odd.
    pub fn bytes(&self) -> Option<Vec<u8>> {
        hex::decode(self.text.strip_prefix("0x")?).ok()
    }

    /// Creates a literal that is a whole ABI word.
    pub fn whole(word: B256) -> Self {
        Self {
            text: word.to_string(),
            word,
        }
    }

    fn parse(text: &str) -> Result<Self, MustBeError> {
        literal_word(text)
            .map(|word| Self {
                text: text.to_owned(),
                word,
            })
            .ok_or(MustBeError)
    }
}

fn literal_word(text: &str) -> Option<B256> {
    let digits = text.strip_prefix("0x")?;
    if digits.is_empty() || digits.len() > 64 || !digits.bytes().all(|b| b.is_ascii_hexdigit()) {
        return None;
    }
    format!("0x{digits:0>64}").parse().ok()
}

impl TryFrom<MustBeWire> for MustBe {
    type Error = MustBeError;
    fn try_from(wire: MustBeWire) -> Result<Self, MustBeError> {
        let wire = match wire {
            MustBeWire::Text(text) => return Self::parse(&text),
            MustBeWire::Operator(wire) => wire,
        };
        let comparison = match (wire.op, &wire.value) {
            (Operator::Own, None) => return Ok(Self::Own),
            (Operator::Org, None) => return Ok(Self::Org),
            (Operator::In, Some(OneOrMore::More(texts))) if !texts.is_empty() => {
                return texts
                    .iter()
                    .map(|text| Literal::parse(text))
                    .collect::<Result<_, _>>()
                    .map(Self::OneOf);
            }
            (Operator::Own | Operator::Org | Operator::In, _) => return Err(MustBeError),
            (Operator::Eq, _) => None,
            (Operator::Ne, _) => Some(Comparison::NotEqual),
            (Operator::Lt, _) => Some(Comparison::Less),
            (Operator::Lte, _) => Some(Comparison::AtMost),
            (Operator::Gt, _) => Some(Comparison::More),
            (Operator::Gte, _) => Some(Comparison::AtLeast),
        };
        let Some(OneOrMore::One(text)) = wire.value else {
            return Err(MustBeError);
        };
        let literal = Literal::parse(&text)?;
        Ok(match comparison {
            None => Self::Literal(literal),
            Some(comparison) => Self::Compare(comparison, literal),
        })
    }
}

impl From<MustBe> for MustBeWire {
    fn from(rule: MustBe) -> Self {
        let one = |op, literal: Literal| {
            Self::Operator(OperatorWire {
                op,
                value: Some(OneOrMore::One(literal.text)),
            })
        };
        match rule {
            MustBe::Own => Self::Text("self".to_owned()),
            MustBe::Org => Self::Operator(OperatorWire {
                op: Operator::Org,
                value: None,
            }),
            MustBe::Literal(literal) => Self::Text(literal.text),
            MustBe::OneOf(literals) => {
                let texts = literals.into_iter().map(|literal| literal.text).collect();
                Self::Operator(OperatorWire {
                    op: Operator::In,
                    value: Some(OneOrMore::More(texts)),
                })
            }
            MustBe::Compare(Comparison::NotEqual, literal) => one(Operator::Ne, literal),
            MustBe::Compare(Comparison::Less, literal) => one(Operator::Lt, literal),
            MustBe::Compare(Comparison::AtMost, literal) => one(Operator::Lte, literal),
            MustBe::Compare(Comparison::More, literal) => one(Operator::Gt, literal),
            MustBe::Compare(Comparison::AtLeast, literal) => one(Operator::Gte, literal),
        }
    }
}

/// The event rules of a grant as given (decisions 19 and 48): `null`, `"*"` or a list.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum EventRules {
    /// `null`: every event, masked.
    #[default]
    Unset,
    /// `"*"`: every event, masked, stated explicitly.
    Wildcard,
    /// Only these events; an empty list allows none.
    List(Vec<EventRule>),
}

/// One permitted event; its parameter rules are OR-ed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct EventRule {
    /// The event's topic0.
    pub topic0: B256,
    /// The event's display name.
    #[serde(default)]
    pub name: String,
    /// Parameter rules; an empty list is no condition.
    #[serde(default)]
    pub param_rules: Vec<ParamRule>,
}

impl Serialize for EventRules {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Unset => serializer.serialize_none(),
            Self::Wildcard => serializer.serialize_str("*"),
            Self::List(rules) => rules.serialize(serializer),
        }
    }
}

impl<'de> Deserialize<'de> for EventRules {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        #[derive(Deserialize)]
        #[serde(untagged)]
        enum Wire {
            Text(String),
            List(Vec<EventRule>),
        }
        match Option::<Wire>::deserialize(deserializer)? {
            None => Ok(Self::Unset),
            Some(Wire::Text(star)) if star == "*" => Ok(Self::Wildcard),
            Some(Wire::Text(_)) => Err(serde::de::Error::custom("expected null, \"*\" or a list")),
            Some(Wire::List(rules)) => Ok(Self::List(rules)),
        }
    }
}

mod selector {
    use serde::{Deserialize, Deserializer, Serializer, de::Error};

    pub(super) fn serialize<S: Serializer>(selector: &[u8; 4], serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&format!("0x{}", hex::encode(selector)))
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<[u8; 4], D::Error> {
        let text = String::deserialize(deserializer)?;
        let mut selector = [0; 4];
        let digits = text.strip_prefix("0x").unwrap_or(&text);
        hex::decode_to_slice(digits, &mut selector).map_err(|_| D::Error::custom("expected four bytes in hex"))?;
        Ok(selector)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn f3_literals_become_words_padded_on_the_left() {
        let rule = MustBe::parse("0xABc").unwrap();
        assert!(matches!(&rule, MustBe::Literal(literal) if literal.word.0[30..] == [0x0a, 0xbc]));
        assert_eq!(
            serde_json::to_string(&rule).unwrap(),
            "\"0xABc\"",
            "what was given is shown again"
        );
        assert_eq!(MustBe::parse("self"), Ok(MustBe::Own));
        for bad in ["", "0x", "Self", "12", "0xzz", &format!("0x{}", "0".repeat(65))] {
            assert_eq!(MustBe::parse(bad), Err(MustBeError), "{bad}");
        }
    }

    #[test]
    fn f3_operators_come_with_their_values() {
        for good in [
            r#""self""#,
            r#"{"op":"org"}"#,
            r#"{"op":"ne","value":"0x00"}"#,
            r#"{"op":"in","value":["0x01","0x02"]}"#,
            r#"{"op":"lte","value":"0x64"}"#,
        ] {
            let rule: MustBe = serde_json::from_str(good).unwrap();
            assert_eq!(serde_json::to_string(&rule).unwrap(), good);
        }
        assert_eq!(serde_json::from_str::<MustBe>(r#"{"op":"self"}"#).unwrap(), MustBe::Own);
        assert_eq!(
            serde_json::from_str::<MustBe>(r#"{"op":"eq","value":"0x1"}"#).unwrap(),
            MustBe::parse("0x1").unwrap()
        );
        for bad in [
            "1",
            r#"{"op":"lt"}"#,
            r#"{"op":"in","value":[]}"#,
            r#"{"op":"in","value":"0x1"}"#,
            r#"{"op":"gt","value":["0x1"]}"#,
            r#"{"op":"self","value":"0x1"}"#,
            r#"{"op":"like","value":"0x1"}"#,
            r#"{"op":"eq","value":"0x1","also":1}"#,
        ] {
            assert!(serde_json::from_str::<MustBe>(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn f4_event_rules_keep_null_star_and_list_apart() {
        for text in ["null", "\"*\"", "[]"] {
            let rules: EventRules = serde_json::from_str(text).unwrap();
            assert_eq!(serde_json::to_string(&rules).unwrap(), text);
        }
        assert!(serde_json::from_str::<EventRules>("\"all\"").is_err());
    }
}
