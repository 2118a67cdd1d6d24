//! Currencies (CO-10).

mod list;
mod table;

use serde::{Deserialize, Deserializer, Serialize, Serializer, de};
use std::{cmp::Ordering, fmt, hash, str::FromStr};

pub use list::{CurrencyList, CurrencyListError};

/// An active alphabetic code of ISO 4217. Its text is read in any case and written in lower case.
#[derive(Clone, Copy)]
pub struct Currency(&'static Row);

/// A text that is no active code.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("not an active currency code of ISO 4217")]
pub struct CurrencyError;

/// A row of the table.
struct Row {
    /// Three lower-case letters.
    code: &'static str,
    name: &'static str,
    symbol: &'static str,
    digits: Option<u8>,
}

impl Currency {
    /// The dollar of the United States.
    pub const USD: Self = Self::known(b"usd");
    /// The euro.
    pub const EUR: Self = Self::known(b"eur");
    /// The Swiss franc.
    pub const CHF: Self = Self::known(b"chf");
    /// The pound sterling.
    pub const GBP: Self = Self::known(b"gbp");
    /// The dirham of the United Arab Emirates.
    pub const AED: Self = Self::known(b"aed");

    /// All active currencies, sorted by code.
    pub fn all() -> impl Iterator<Item = Self> {
        table::ROWS.iter().map(Self)
    }

    /// The code in lower case.
    pub const fn code(self) -> &'static str {
        self.0.code
    }

    /// The English name.
    pub const fn name(self) -> &'static str {
        self.0.name
    }

    /// The symbol, or the code in upper case if the currency has none.
    pub const fn symbol(self) -> &'static str {
        self.0.symbol
    }

    /// The number of decimal places of the minor unit. `None` if the currency has no minor unit, like gold.
    pub const fn minor_unit_digits(self) -> Option<u8> {
        self.0.digits
    }

    /// Only for constants: the build fails if the table has no such code.
    const fn known(code: &[u8; 3]) -> Self {
        let mut rows = table::ROWS;
        loop {
            match rows {
                [] => unreachable!(),
                [row, rest @ ..] => {
                    if equals(row.code.as_bytes(), code) {
                        return Self(row);
                    }
                    rows = rest;
                }
            }
        }
    }
}

const fn equals(left: &[u8], right: &[u8]) -> bool {
    match (left, right) {
        ([a, b, c], [x, y, z]) => *a == *x && *b == *y && *c == *z,
        _ => false,
    }
}

impl FromStr for Currency {
    type Err = CurrencyError;

    fn from_str(text: &str) -> Result<Self, CurrencyError> {
        if text.len() != 3 {
            return Err(CurrencyError);
        }
        let code = text.to_ascii_lowercase();
        let position = table::ROWS.binary_search_by(|row| row.code.cmp(&code));
        position
            .ok()
            .and_then(|position| table::ROWS.get(position))
            .map(Self)
            .ok_or(CurrencyError)
    }
}

/// The code in lower case.
impl fmt::Display for Currency {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.code())
    }
}

impl fmt::Debug for Currency {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Currency").field(&self.code()).finish()
    }
}

impl PartialEq for Currency {
    fn eq(&self, other: &Self) -> bool {
        self.code() == other.code()
    }
}

impl Eq for Currency {}

impl Ord for Currency {
    fn cmp(&self, other: &Self) -> Ordering {
        self.code().cmp(other.code())
    }
}

impl PartialOrd for Currency {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl hash::Hash for Currency {
    fn hash<H: hash::Hasher>(&self, state: &mut H) {
        self.code().hash(state);
    }
}

/// The code in lower case.
impl Serialize for Currency {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.code())
    }
}

/// A code in any case.
impl<'de> Deserialize<'de> for Currency {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Code;
        impl de::Visitor<'_> for Code {
            type Value = Currency;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a currency code")
            }

            fn visit_str<E: de::Error>(self, text: &str) -> Result<Currency, E> {
                text.parse().map_err(E::custom)
            }
        }
        deserializer.deserialize_str(Code)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// CO-10.
    #[test]
    fn co10_codes_are_read_in_any_case_and_written_in_lower_case() {
        for text in ["usd", "USD", "Usd", "uSd"] {
            let currency: Currency = text.parse().unwrap();
            assert_eq!(currency, Currency::USD);
            assert_eq!(currency.to_string(), "usd");
        }
        for text in [
            "",
            "us",
            "usdt",
            "usd ",
            " usd",
            "eth",
            "hrk",
            "bgn",
            "zwl",
            "€€",
            "ＵＳＤ",
            "ůsd",
        ] {
            assert_eq!(text.parse::<Currency>(), Err(CurrencyError), "{text}");
        }
        assert_eq!(serde_json::to_string(&Currency::EUR).unwrap(), r#""eur""#);
        assert_eq!(serde_json::from_str::<Currency>(r#""EUR""#).unwrap(), Currency::EUR);
        assert!(serde_json::from_str::<Currency>(r#""eth""#).is_err());
        assert!(serde_json::from_str::<Currency>("978").is_err());
    }

    /// CO-10.
    #[test]
    fn co10_names_symbols_and_minor_units_come_from_the_table() {
        for (code, name, symbol, digits) in [
            ("usd", "US dollar", "$", Some(2)),
            ("eur", "Euro", "€", Some(2)),
            ("jpy", "Yen", "¥", Some(0)),
            ("kwd", "Kuwaiti dinar", "KWD", Some(3)),
            ("clf", "Unidad de Fomento", "UF", Some(4)),
            ("xau", "Gold", "XAU", None),
        ] {
            let currency: Currency = code.parse().unwrap();
            assert_eq!(
                (currency.name(), currency.symbol(), currency.minor_unit_digits()),
                (name, symbol, digits)
            );
        }
    }

    /// CO-10: the search needs the order, and no code stands twice.
    #[test]
    fn co10_the_table_is_sorted_and_complete() {
        let codes: Vec<&str> = Currency::all().map(Currency::code).collect();
        assert!(codes.is_sorted_by(|left, right| left < right));
        assert_eq!(codes.len(), 178, "codes of list one");
        for currency in Currency::all() {
            let code = currency.code();
            assert!(
                code.len() == 3 && code.bytes().all(|byte| byte.is_ascii_lowercase()),
                "{code}"
            );
            assert!(!currency.name().is_empty() && !currency.symbol().is_empty(), "{code}");
            assert_eq!(code.parse::<Currency>(), Ok(currency));
        }
    }
}
