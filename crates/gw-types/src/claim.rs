//! Group claims (spec/20 C1).

use serde::{Deserialize, Serialize};

/// One claim of a group's access or of a contract grant.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Claim {
    /// Organization administration; implies the other two.
    Admin,
    /// Creating contracts.
    Deploy,
    /// Changing a proxy's implementation.
    Upgrade,
}

/// Error for a text that is not a claim.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("unknown claim `{0}`: expected one of admin, upgrade, deploy")]
pub struct UnknownClaim(pub String);

impl core::str::FromStr for Claim {
    type Err = UnknownClaim;
    fn from_str(text: &str) -> Result<Self, Self::Err> {
        match text {
            "admin" => Ok(Self::Admin),
            "deploy" => Ok(Self::Deploy),
            "upgrade" => Ok(Self::Upgrade),
            other => Err(UnknownClaim(other.to_owned())),
        }
    }
}

impl Claim {
    /// Returns the wire name.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Admin => "admin",
            Self::Deploy => "deploy",
            Self::Upgrade => "upgrade",
        }
    }

    const fn bit(self) -> u8 {
        match self {
            Self::Admin => 0b001,
            Self::Deploy => 0b010,
            Self::Upgrade => 0b100,
        }
    }
}

/// A set of claims, always closed under "admin implies the others" (C1).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Claims(u8);

impl Claims {
    /// No claim.
    pub const NONE: Self = Self(0);
    /// Every claim.
    pub const ALL: Self = Self(0b111);

    /// Whether the set contains `claim`.
    pub const fn has(self, claim: Claim) -> bool {
        self.0 & claim.bit() != 0
    }

    /// Returns the set with `claim` and the claims it implies.
    #[must_use]
    pub const fn with(self, claim: Claim) -> Self {
        match claim {
            Claim::Admin => Self::ALL,
            Claim::Deploy | Claim::Upgrade => Self(self.0 | claim.bit()),
        }
    }

    /// Returns the union of both sets.
    #[must_use]
    pub const fn union(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }

    /// Whether the set is empty.
    pub const fn is_empty(self) -> bool {
        self.0 == 0
    }

    /// Iterates over the claims in a fixed order.
    pub fn iter(self) -> impl Iterator<Item = Claim> {
        [Claim::Admin, Claim::Deploy, Claim::Upgrade]
            .into_iter()
            .filter(move |c| self.has(*c))
    }
}

impl FromIterator<Claim> for Claims {
    fn from_iter<I: IntoIterator<Item = Claim>>(claims: I) -> Self {
        claims.into_iter().fold(Self::NONE, Self::with)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn c1_admin_implies_the_others() {
        let claims: Claims = [Claim::Admin].into_iter().collect();
        assert!(claims.has(Claim::Deploy) && claims.has(Claim::Upgrade));
        let deploy: Claims = [Claim::Deploy].into_iter().collect();
        assert!(!deploy.has(Claim::Admin) && !deploy.has(Claim::Upgrade));
        assert!("write".parse::<Claim>().is_err());
    }
}
