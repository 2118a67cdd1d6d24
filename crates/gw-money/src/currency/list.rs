//! The currencies that the operator allows.

use super::Currency;
use std::collections::BTreeSet;

/// The allowed currencies: usd, eur, chf, gbp and aed, and those of `COMPLIANCE_CURRENCIES` (CO-10).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CurrencyList(BTreeSet<Currency>);

/// Why a list is refused.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CurrencyListError {
    /// Two commas without a code between them, or one at an end.
    #[error("an entry of the list is empty")]
    EmptyEntry,
    /// An entry is no active code.
    #[error("`{0}` is not an active currency code of ISO 4217")]
    UnknownCode(String),
}

impl CurrencyList {
    /// The standard currencies and those of a text with codes between commas. An empty text adds none.
    ///
    /// # Errors
    /// [`CurrencyListError`] for the first entry that is no code.
    pub fn with_additional(codes: &str) -> Result<Self, CurrencyListError> {
        let mut list = Self::default();
        if codes.trim().is_empty() {
            return Ok(list);
        }
        for entry in codes.split(',').map(str::trim) {
            if entry.is_empty() {
                return Err(CurrencyListError::EmptyEntry);
            }
            let currency = entry
                .parse()
                .map_err(|_| CurrencyListError::UnknownCode(entry.to_owned()))?;
            list.0.insert(currency);
        }
        Ok(list)
    }

    /// Whether the currency is allowed.
    pub fn contains(&self, currency: Currency) -> bool {
        self.0.contains(&currency)
    }

    /// The allowed currency of this code; `None` if the code is unknown or not allowed.
    pub fn find(&self, code: &str) -> Option<Currency> {
        code.parse().ok().filter(|currency| self.contains(*currency))
    }

    /// The currencies, sorted by code.
    pub fn iter(&self) -> impl Iterator<Item = Currency> {
        self.0.iter().copied()
    }
}

/// The standard currencies.
impl Default for CurrencyList {
    fn default() -> Self {
        Self(BTreeSet::from([
            Currency::USD,
            Currency::EUR,
            Currency::CHF,
            Currency::GBP,
            Currency::AED,
        ]))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn codes(list: &CurrencyList) -> Vec<&'static str> {
        list.iter().map(Currency::code).collect()
    }

    /// CO-10.
    #[test]
    fn co10_the_list_is_sorted_and_can_be_extended() {
        assert_eq!(codes(&CurrencyList::default()), ["aed", "chf", "eur", "gbp", "usd"]);
        for text in ["", "  "] {
            assert_eq!(CurrencyList::with_additional(text), Ok(CurrencyList::default()));
        }
        let list = CurrencyList::with_additional(" JPY,kwd , usd,jpy").unwrap();
        assert_eq!(codes(&list), ["aed", "chf", "eur", "gbp", "jpy", "kwd", "usd"]);
        assert_eq!(list.find("Jpy"), Some("jpy".parse().unwrap()));
        assert_eq!(list.find("cny"), None, "active, but not allowed");
        assert_eq!(list.find("eth"), None);
    }

    /// CO-10.
    #[test]
    fn co10_a_list_with_an_unknown_code_is_refused() {
        for text in [",", "jpy,", ",jpy", "jpy,,kwd"] {
            assert_eq!(
                CurrencyList::with_additional(text),
                Err(CurrencyListError::EmptyEntry),
                "{text}"
            );
        }
        assert_eq!(
            CurrencyList::with_additional("jpy,eth"),
            Err(CurrencyListError::UnknownCode("eth".to_owned()))
        );
    }
}
