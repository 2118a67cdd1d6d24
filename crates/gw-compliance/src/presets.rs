//! Named thresholds and currencies to start from (spec/60 section 14). They are templates and no legal advice.

use gw_money::{Currency, Threshold};

/// A preset of an organization's configuration.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Preset {
    /// FATF recommendations 15 and 16: de minimis 1000 USD.
    Fatf,
    /// Regulation (EU) 2023/1113: no minimum between providers since 30 December 2024.
    Eu,
    /// The travel rule of the United States: 3000 USD.
    Us,
}

impl Preset {
    /// All presets.
    pub const ALL: [Self; 3] = [Self::Fatf, Self::Eu, Self::Us];

    /// The preset of this name.
    pub fn find(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|preset| preset.name() == name)
    }

    /// The name in requests and answers.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Fatf => "fatf",
            Self::Eu => "eu",
            Self::Us => "us",
        }
    }

    /// The currency that it sets.
    pub const fn currency(self) -> Currency {
        match self {
            Self::Fatf | Self::Us => Currency::USD,
            Self::Eu => Currency::EUR,
        }
    }

    /// The threshold that it sets.
    pub const fn threshold(self) -> Threshold {
        match self {
            Self::Fatf => Threshold::DEFAULT,
            Self::Eu => Threshold::ZERO,
            Self::Us => US_THRESHOLD,
        }
    }
}

/// 3000.
const US_THRESHOLD: Threshold = match Threshold::from_mantissa(300_000_000_000) {
    Ok(threshold) => threshold,
    Err(_) => unreachable!(),
};

#[cfg(test)]
mod tests {
    use super::*;

    /// The rows of spec/60 section 14.
    #[test]
    fn presets_set_threshold_and_currency() {
        let shown: Vec<_> = Preset::ALL
            .into_iter()
            .map(|preset| (preset.name(), preset.threshold().to_string(), preset.currency().code()))
            .collect();
        let expected = [("fatf", "1000", "usd"), ("eu", "0", "eur"), ("us", "3000", "usd")];
        assert_eq!(
            shown,
            expected.map(|(name, threshold, code)| (name, threshold.to_owned(), code))
        );
        for preset in Preset::ALL {
            assert_eq!(Preset::find(preset.name()), Some(preset));
        }
        for name in ["", "FATF", "uk"] {
            assert_eq!(Preset::find(name), None);
        }
    }
}
