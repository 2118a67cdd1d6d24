use core::fmt;
use gw_store::record::{self, EventRules, FunctionRule};
use gw_types::{ContractId, GrantId, GroupId, Timestamp};
use serde::{
    Deserialize, Deserializer, Serialize,
    de::{Error, MapAccess, SeqAccess, Unexpected, Visitor},
};
use utoipa::ToSchema;

/// A group's rights on one contract.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct ContractGrant {
    #[schema(value_type = String, format = Uuid)]
    id: GrantId,
    #[schema(value_type = String, format = Uuid)]
    contract_id: ContractId,
    #[schema(value_type = String, format = Uuid)]
    group_id: GroupId,
    /// Claims on this contract only.
    claims: Vec<&'static str>,
    /// `null`: every function; otherwise only those listed.
    #[schema(value_type = Option<Vec<Object>>)]
    functions: Option<Vec<FunctionRule>>,
    /// `null` and `"*"`: every event, masked; `[]`: none; otherwise only those listed.
    #[schema(value_type = Object)]
    event_rules: EventRules,
    #[schema(value_type = String, format = DateTime)]
    created_at: Timestamp,
    #[schema(value_type = String, format = DateTime)]
    updated_at: Timestamp,
}

impl From<record::Grant> for ContractGrant {
    fn from(row: record::Grant) -> Self {
        Self {
            id: row.id,
            contract_id: row.contract,
            group_id: row.group,
            claims: row.claims.iter().map(gw_types::Claim::as_str).collect(),
            functions: row.functions,
            event_rules: row.event_rules,
            created_at: row.created_at,
            updated_at: row.updated_at,
        }
    }
}

/// Grants a group rights on a contract.
#[derive(Debug, Deserialize, ToSchema)]
pub(crate) struct ContractGrantCreateRequest {
    #[schema(value_type = String, format = Uuid)]
    pub(crate) group_id: String,
    /// On this contract only; `null` is none.
    #[serde(default)]
    pub(crate) claims: Option<Vec<String>>,
    #[serde(default)]
    #[schema(value_type = Option<Vec<Object>>)]
    pub(crate) functions: Option<Vec<FunctionRule>>,
    #[serde(default)]
    #[schema(value_type = Option<Object>)]
    pub(crate) event_rules: EventRulesField,
}

/// Changes a grant: an absent member is kept, `null` lifts a restriction and takes claims away (F1, C3, decision 19).
#[derive(Debug, Deserialize, ToSchema)]
pub(crate) struct ContractGrantUpdateRequest {
    #[serde(default, deserialize_with = "super::present")]
    #[schema(value_type = Option<Vec<String>>)]
    pub(crate) claims: Option<Option<Vec<String>>>,
    #[serde(default, deserialize_with = "super::present")]
    #[schema(value_type = Option<Vec<Object>>)]
    pub(crate) functions: Option<Option<Vec<FunctionRule>>>,
    #[serde(default, deserialize_with = "super::present")]
    #[schema(value_type = Option<Object>)]
    pub(crate) event_rules: Option<Option<EventRulesField>>,
}

/// Event rules as given: `null`, `"*"`, a list, or `{wildcard, rules}` (decision 48).
#[derive(Debug, Default)]
pub(crate) enum EventRulesField {
    Object {
        wildcard: bool,
        rules: Vec<record::EventRule>,
    },
    Plain(EventRules),
    #[default]
    Absent,
}

/// By hand: a derived untagged enum buffers what it reads, and members unknown below it would pass unseen (HD33).
impl<'de> Deserialize<'de> for EventRulesField {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Shapes;

        impl<'de> Visitor<'de> for Shapes {
            type Value = EventRulesField;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("null, \"*\", a list or an object with `wildcard` or `rules`")
            }

            fn visit_unit<E: Error>(self) -> Result<EventRulesField, E> {
                Ok(EventRulesField::Absent)
            }

            fn visit_str<E: Error>(self, text: &str) -> Result<EventRulesField, E> {
                match text {
                    "*" => Ok(EventRulesField::Plain(EventRules::Wildcard)),
                    _ => Err(E::invalid_value(Unexpected::Str(text), &self)),
                }
            }

            fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<EventRulesField, A::Error> {
                let mut rules = Vec::new();
                while let Some(rule) = items.next_element()? {
                    rules.push(rule);
                }
                Ok(EventRulesField::Plain(EventRules::List(rules)))
            }

            fn visit_map<A: MapAccess<'de>>(self, mut members: A) -> Result<EventRulesField, A::Error> {
                let (mut wildcard, mut rules) = (None, None);
                while let Some(name) = members.next_key::<String>()? {
                    let twice = match name.as_str() {
                        "wildcard" => wildcard.replace(members.next_value()?).is_some(),
                        "rules" => rules
                            .replace(members.next_value::<Option<_>>()?.unwrap_or_default())
                            .is_some(),
                        unknown => return Err(A::Error::unknown_field(unknown, &["wildcard", "rules"])),
                    };
                    if twice {
                        return Err(A::Error::custom(format_args!("duplicate field `{name}`")));
                    }
                }
                let (wildcard, rules) = (wildcard.unwrap_or_default(), rules.unwrap_or_default());
                Ok(EventRulesField::Object { wildcard, rules })
            }
        }

        deserializer.deserialize_any(Shapes)
    }
}

impl From<EventRulesField> for EventRules {
    fn from(field: EventRulesField) -> Self {
        match field {
            EventRulesField::Object { wildcard: true, .. } => Self::Wildcard,
            EventRulesField::Object { wildcard: false, rules } => Self::List(rules),
            EventRulesField::Plain(rules) => rules,
            EventRulesField::Absent => Self::Unset,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn f1_an_absent_member_is_not_null() {
        let read = |text| serde_json::from_str::<ContractGrantUpdateRequest>(text).unwrap();
        assert!(read("{}").functions.is_none() && read("{}").event_rules.is_none());
        assert!(matches!(read(r#"{"functions":null}"#).functions, Some(None)));
        assert!(matches!(read(r#"{"event_rules":null}"#).event_rules, Some(None)));
        assert!(read("{}").claims.is_none());
        assert!(
            matches!(read(r#"{"claims":null}"#).claims, Some(None)),
            "C3: cleared, not kept"
        );
        assert!(matches!(read(r#"{"functions":[]}"#).functions, Some(Some(list)) if list.is_empty()));
    }

    #[test]
    fn decision_48_event_rules_come_in_four_shapes() {
        let read = |text: &str| {
            let text = format!(r#"{{"group_id":"x","event_rules":{text}}}"#);
            EventRules::from(
                serde_json::from_str::<ContractGrantCreateRequest>(&text)
                    .unwrap()
                    .event_rules,
            )
        };
        assert_eq!(read("null"), EventRules::Unset);
        assert_eq!(read("\"*\""), EventRules::Wildcard);
        assert_eq!(read("[]"), EventRules::List(vec![]));
        assert_eq!(read(r#"{"wildcard":true}"#), EventRules::Wildcard);
        assert_eq!(read(r#"{"rules":[]}"#), EventRules::List(vec![]));
    }
}
