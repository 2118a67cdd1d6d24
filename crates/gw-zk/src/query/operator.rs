//! The comparison operators of predicates.

use crate::circuit::Circuit;
use crate::encode::Datatype;

/// The operators that a query can name, in the circuits' numbering.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Operator {
    /// No comparison.
    Noop,
    /// Equal.
    Eq,
    /// Less.
    Lt,
    /// Greater.
    Gt,
    /// One of a list.
    In,
    /// None of a list.
    Nin,
    /// Not equal.
    Ne,
    /// At most.
    Lte,
    /// At least.
    Gte,
    /// Within two bounds.
    Between,
    /// Outside two bounds.
    NonBetween,
    /// The field is present, or absent.
    Exists,
    /// The value is disclosed.
    Disclose,
}

/// The number of values of an operator.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Arity {
    None,
    One,
    Two,
    Many,
}

const NAMED: [(&str, Operator, u8); 13] = [
    ("$noop", Operator::Noop, 0),
    ("$eq", Operator::Eq, 1),
    ("$lt", Operator::Lt, 2),
    ("$gt", Operator::Gt, 3),
    ("$in", Operator::In, 4),
    ("$nin", Operator::Nin, 5),
    ("$ne", Operator::Ne, 6),
    ("$lte", Operator::Lte, 7),
    ("$gte", Operator::Gte, 8),
    ("$between", Operator::Between, 9),
    ("$nonbetween", Operator::NonBetween, 10),
    ("$exists", Operator::Exists, 11),
    ("$sd", Operator::Disclose, 16),
];

impl Operator {
    /// The operator with this name.
    #[must_use]
    pub fn from_name(name: &str) -> Option<Self> {
        NAMED
            .iter()
            .find(|(known, ..)| *known == name)
            .map(|(_, operator, _)| *operator)
    }

    /// Its name in a query.
    #[must_use]
    pub fn name(self) -> &'static str {
        NAMED
            .iter()
            .find(|(_, known, _)| *known == self)
            .map_or("$noop", |(name, ..)| name)
    }

    /// The operator's number in the signals.
    #[must_use]
    pub fn number(self) -> u8 {
        NAMED
            .iter()
            .find(|(_, known, _)| *known == self)
            .map_or(0, |(.., number)| *number)
    }

    /// Whether `ALTNET_CREDENTIAL_QUERY_FILE` may use the operator.
    #[must_use]
    pub fn is_configurable(self) -> bool {
        match self {
            Self::Eq | Self::Lt | Self::Gt | Self::In | Self::Nin | Self::Ne => true,
            Self::Noop | Self::Lte | Self::Gte | Self::Between | Self::NonBetween | Self::Exists | Self::Disclose => {
                false
            }
        }
    }

    /// Whether values of this type have the order or equality that the operator needs (ZK-75).
    #[must_use]
    pub fn fits(self, datatype: Datatype) -> bool {
        match self {
            Self::Noop | Self::Eq | Self::Ne | Self::Exists | Self::Disclose => true,
            Self::In | Self::Nin => datatype != Datatype::Boolean,
            Self::Lt | Self::Gt | Self::Lte | Self::Gte | Self::Between | Self::NonBetween => {
                matches!(datatype, Datatype::Integer | Datatype::DateTime)
            }
        }
    }

    /// Whether the circuit supports the operator.
    #[must_use]
    pub fn is_supported_by(self, circuit: Circuit) -> bool {
        match circuit {
            Circuit::MtpV2 | Circuit::SigV2 => self.number() <= 6 || self == Self::Disclose,
            Circuit::V3 | Circuit::V3Beta1 | Circuit::V3Small => true,
            Circuit::Linked10 | Circuit::Linked10Beta1 | Circuit::Linked5 | Circuit::Linked3 => self != Self::Disclose,
            Circuit::AuthV2 | Circuit::AuthV3 | Circuit::AuthV3Small => false,
        }
    }

    pub(super) fn arity(self) -> Arity {
        match self {
            Self::Noop | Self::Disclose => Arity::None,
            Self::Eq | Self::Ne | Self::Lt | Self::Gt | Self::Lte | Self::Gte | Self::Exists => Arity::One,
            Self::Between | Self::NonBetween => Arity::Two,
            Self::In | Self::Nin => Arity::Many,
        }
    }
}
