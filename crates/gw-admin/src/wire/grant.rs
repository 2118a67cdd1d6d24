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
    /// The allowed functions; `null` means every function.
    #[schema(value_type = Option<Vec<super::rules::FunctionRule>>)]
    functions: Option<Vec<FunctionRule>>,
    /// The visible events. `null` and `"*"` mean every event, masked; `[]` means none.
    #[schema(value_type = Option<super::rules::EventRulesField>)]
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
    /// Claims on this contract only; `null` means none.
    #[serde(default)]
    pub(crate) claims: Option<Vec<String>>,
    #[serde(default)]
    #[schema(value_type = Option<Vec<super::rules::FunctionRule>>)]
    pub(crate) functions: Option<Vec<FunctionRule>>,
    #[serde(default)]
    #[schema(value_type = Option<super::rules::EventRulesField>)]
    pub(crate) event_rules: EventRulesField,
}

/// Changes a grant. An absent member keeps its value; `null` removes a restriction, and for `claims` it removes all
/// claims (F1, C3, decision 19).
#[derive(Debug, Deserialize, ToSchema)]
pub(crate) struct ContractGrantUpdateRequest {
    #[serde(default, deserialize_with = "super::deserialize_some")]
    #[schema(value_type = Option<Vec<String>>)]
    pub(crate) claims: Option<Option<Vec<String>>>,
    #[serde(default, deserialize_with = "super::deserialize_some")]
    #[schema(value_type = Option<Vec<super::rules::FunctionRule>>)]
    pub(crate) functions: Option<Option<Vec<FunctionRule>>>,
    #[serde(default, deserialize_with = "super::deserialize_some")]
    #[schema(value_type = Option<super::rules::EventRulesField>)]
    pub(crate) event_rules: Option<Option<EventRulesField>>,
}

/// Event rules in a request: `null`, `"*"`, a list, or `{wildcard, rules}` (decision 48).
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

/// Implemented by hand: a derived untagged enum buffers its input, and unknown members inside of it would be accepted
/// (HD33).
impl<'de> Deserialize<'de> for EventRulesField {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct EventRulesVisitor;

        impl<'de> Visitor<'de> for EventRulesVisitor {
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
                    let is_duplicate = match name.as_str() {
                        "wildcard" => wildcard.replace(members.next_value()?).is_some(),
                        "rules" => rules
                            .replace(members.next_value::<Option<_>>()?.unwrap_or_default())
                            .is_some(),
                        unknown => return Err(A::Error::unknown_field(unknown, &["wildcard", "rules"])),
                    };
                    if is_duplicate {
                        return Err(A::Error::custom(format_args!("duplicate field `{name}`")));
                    }
                }
                let (wildcard, rules) = (wildcard.unwrap_or_default(), rules.unwrap_or_default());
                Ok(EventRulesField::Object { wildcard, rules })
            }
        }

        deserializer.deserialize_any(EventRulesVisitor)
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
        let parse = |text| serde_json::from_str::<ContractGrantUpdateRequest>(text).unwrap();
        assert!(parse("{}").functions.is_none() && parse("{}").event_rules.is_none());
        assert!(matches!(parse(r#"{"functions":null}"#).functions, Some(None)));
        assert!(matches!(parse(r#"{"event_rules":null}"#).event_rules, Some(None)));
        assert!(parse("{}").claims.is_none());
        assert!(
            matches!(parse(r#"{"claims":null}"#).claims, Some(None)),
            "C3: cleared, not kept"
        );
        assert!(matches!(parse(r#"{"functions":[]}"#).functions, Some(Some(list)) if list.is_empty()));
    }

    #[test]
    fn decision_48_event_rules_come_in_four_shapes() {
        let parse = |text: &str| {
            let text = format!(r#"{{"group_id":"x","event_rules":{text}}}"#);
            EventRules::from(
                serde_json::from_str::<ContractGrantCreateRequest>(&text)
                    .unwrap()
                    .event_rules,
            )
        };
        assert_eq!(parse("null"), EventRules::Unset);
        assert_eq!(parse("\"*\""), EventRules::Wildcard);
        assert_eq!(parse("[]"), EventRules::List(vec![]));
        assert_eq!(parse(r#"{"wildcard":true}"#), EventRules::Wildcard);
        assert_eq!(parse(r#"{"rules":[]}"#), EventRules::List(vec![]));
    }
}
