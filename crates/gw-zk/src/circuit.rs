//! The circuits of wallets' proofs, and their verification keys.

use crate::groth16::{Key, KeyError};
use alloy_primitives::hex;
use sha2::{Digest, Sha256};
use std::sync::OnceLock;

/// A circuit whose verification key this crate contains.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[non_exhaustive]
pub enum Circuit {
    /// Proves control of an identity: the envelope that every wallet makes.
    AuthV2,
    /// AuthV2's third version.
    AuthV3,
    /// AuthV3 with smaller trees.
    AuthV3Small,
    /// A credential in the issuer's tree satisfies one predicate.
    MtpV2,
    /// A credential signed by the issuer satisfies one predicate.
    SigV2,
    /// Either kind of credential, with nullifier and link.
    V3,
    /// The first public version of V3.
    V3Beta1,
    /// V3 with smaller trees.
    V3Small,
    /// Ten further predicates on a linked credential.
    Linked10,
    /// The first public version of Linked10.
    Linked10Beta1,
    /// Five further predicates.
    Linked5,
    /// Three further predicates.
    Linked3,
}

/// The constants of a circuit.
struct CircuitConstants {
    id: &'static str,
    signals: usize,
    /// The key in the format of `keys/README.md`.
    key: &'static [u8],
    /// Hash of `key`.
    sha256: [u8; 32],
    /// Hash of the published JSON file that the numbers were taken from.
    published: [u8; 32],
}

impl Circuit {
    /// All circuits.
    pub const ALL: [Self; 12] = [
        Self::AuthV2,
        Self::AuthV3,
        Self::AuthV3Small,
        Self::MtpV2,
        Self::SigV2,
        Self::V3,
        Self::V3Beta1,
        Self::V3Small,
        Self::Linked10,
        Self::Linked10Beta1,
        Self::Linked5,
        Self::Linked3,
    ];

    /// Its public name.
    pub fn id(self) -> &'static str {
        self.constants().id
    }

    /// The circuit with this name.
    pub fn from_id(id: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|circuit| circuit.id() == id)
    }

    /// The number of public signals of a proof.
    pub fn signals(self) -> usize {
        self.constants().signals
    }

    /// Whether the circuit proves control of an identity, so that it can sign a message.
    pub fn is_auth(self) -> bool {
        matches!(self, Self::AuthV2 | Self::AuthV3 | Self::AuthV3Small)
    }

    /// SHA-256 of the published JSON form of the key.
    pub fn published_sha256(self) -> [u8; 32] {
        self.constants().published
    }

    /// The official key, parsed once. An error is permanent: no proof is accepted with a key that is not the pinned
    /// one.
    ///
    /// # Errors
    /// [`KeyError`] if the embedded key is not the pinned one or cannot be parsed.
    pub fn key(self) -> Result<&'static Key, KeyError> {
        static KEYS: [OnceLock<Result<Key, KeyError>>; Circuit::ALL.len()] =
            [const { OnceLock::new() }; Circuit::ALL.len()];
        let read = || {
            let constants = self.constants();
            if Sha256::digest(constants.key).as_slice() != constants.sha256 {
                return Err(KeyError::Pin);
            }
            Key::from_bytes(constants.key, constants.signals)
        };
        let index = Self::ALL
            .iter()
            .position(|circuit| *circuit == self)
            .and_then(|index| KEYS.get(index));
        index
            .ok_or(KeyError::Pin)?
            .get_or_init(read)
            .as_ref()
            .map_err(|error| *error)
    }

    fn constants(self) -> CircuitConstants {
        match self {
            Self::AuthV2 => CircuitConstants {
                id: "authV2",
                signals: 3,
                key: include_bytes!("../keys/authV2.vk"),
                sha256: hex!("0bb32e85158779eb9519498eaaaad393fd6ecf01f427a870948d3c6d840045a4"),
                published: hex!("79cf543dd8300c0149454ddd200a0a1ac83eed1df4fb49bdceea4b5ebd2cec96"),
            },
            Self::AuthV3 => CircuitConstants {
                id: "authV3",
                signals: 3,
                key: include_bytes!("../keys/authV3.vk"),
                sha256: hex!("a5b0418e9fb7e12b61cf239693aeb4852e7ce8f1336ab15ff753694ebcab2d0f"),
                published: hex!("493636f7d13aa5d0be66f34e30ad7a11b142b297f57724a3b3390e1304822538"),
            },
            Self::AuthV3Small => CircuitConstants {
                id: "authV3-8-32",
                signals: 3,
                key: include_bytes!("../keys/authV3-8-32.vk"),
                sha256: hex!("5bb939d42d0416a3d908030e567aa35c42e1b8ce7f5d50122742d27f68475d96"),
                published: hex!("82ca51c1b9352a1bfe220ed293ce91b0353812bfdb9f33c2c9e947dcc57b7f4f"),
            },
            Self::MtpV2 => CircuitConstants {
                id: "credentialAtomicQueryMTPV2",
                signals: 77,
                key: include_bytes!("../keys/credentialAtomicQueryMTPV2.vk"),
                sha256: hex!("5ccab634db9da493bebac57ad1e717dcb69a8f556573cca7f52410f9e85ed8c5"),
                published: hex!("c4f25200625b28f8a91c1ab3b22e0e74d29f906920e7b886607a80ff97e88e77"),
            },
            Self::SigV2 => CircuitConstants {
                id: "credentialAtomicQuerySigV2",
                signals: 77,
                key: include_bytes!("../keys/credentialAtomicQuerySigV2.vk"),
                sha256: hex!("eb8d150de868a75789c40d0b274951b1f274cb5c55feb69225583bd4531aae11"),
                published: hex!("f90286b8bff8d00ca4ae3b81578108967257f2efa3c103777a7306e1a8b94597"),
            },
            Self::V3 => CircuitConstants {
                id: "credentialAtomicQueryV3",
                signals: 83,
                key: include_bytes!("../keys/credentialAtomicQueryV3.vk"),
                sha256: hex!("cab6f0b8f35370f6d92078f5677aa45b656b0cc00d01186e73ff2e847b7004ff"),
                published: hex!("7caa29b8c751f3300f67f997e639436945c720926089de81314bc7062687c5d1"),
            },
            Self::V3Beta1 => CircuitConstants {
                id: "credentialAtomicQueryV3-beta.1",
                signals: 83,
                key: include_bytes!("../keys/credentialAtomicQueryV3-beta.1.vk"),
                sha256: hex!("fc97440b43e881149db4715ab068ce56945e3a5d777d0bd6a70d2929602546fd"),
                published: hex!("7dd54e88a4a6447126bb53da058e0b26a0efdc0aa1d116789126120f7cb520a0"),
            },
            Self::V3Small => CircuitConstants {
                id: "credentialAtomicQueryV3-16-16-64",
                signals: 83,
                key: include_bytes!("../keys/credentialAtomicQueryV3-16-16-64.vk"),
                sha256: hex!("942ff5ba7452bc486e29bfdd0ebe165157870bc54acb064d045cb78d107ee8ad"),
                published: hex!("6886945f57f584ba41a387aaf99ccbdcb5c050a81842c337eba1c7ada8632335"),
            },
            Self::Linked10 => CircuitConstants {
                id: "linkedMultiQuery",
                signals: 22,
                key: include_bytes!("../keys/linkedMultiQuery.vk"),
                sha256: hex!("ef7bbca31145dfd0198fb2f8863abf30845dc2fb5e1608a442a2a4987ec7b953"),
                published: hex!("265bb369802282d4816a60fff4f7029bbeb6e24838d0e8dfe30e0b40f0359e16"),
            },
            Self::Linked10Beta1 => CircuitConstants {
                id: "linkedMultiQuery10-beta.1",
                signals: 22,
                key: include_bytes!("../keys/linkedMultiQuery10-beta.1.vk"),
                sha256: hex!("9d0710bf99fc7e8481f7494f55d97afb397d353a859b8f6335cdd95c7a85fc42"),
                published: hex!("e9abd7da8e2ddf83d117a661eb6cd43ce986cdfaa32387151cdf7e1af37d7c89"),
            },
            Self::Linked5 => CircuitConstants {
                id: "linkedMultiQuery5",
                signals: 12,
                key: include_bytes!("../keys/linkedMultiQuery5.vk"),
                sha256: hex!("dce9d161f5d8cdb34d4576babdcb6096d196f76d27510e1d2208449a299af65d"),
                published: hex!("8bc10082145dcea9bf18f617c7e71b7cbf093aa7fdaa80b8c914c0a7f747c4b7"),
            },
            Self::Linked3 => CircuitConstants {
                id: "linkedMultiQuery3",
                signals: 8,
                key: include_bytes!("../keys/linkedMultiQuery3.vk"),
                sha256: hex!("fcd63d8104c41ca3c29247f63e4511a92060a5689d431d65ab03881f93cdf2ec"),
                published: hex!("59585c3f301e5df1d3a9c600efcc35d274eed91a1127d8f5fbcff38dc9aa7a13"),
            },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn zk34_every_embedded_key_is_the_pinned_one() {
        for circuit in Circuit::ALL {
            assert_eq!(
                circuit.key().map(Key::signals),
                Ok(circuit.signals()),
                "{}",
                circuit.id()
            );
            assert_eq!(Circuit::from_id(circuit.id()), Some(circuit));
        }
        assert_eq!(Circuit::from_id("auth"), None);
        assert_eq!(Circuit::from_id("AUTHV2"), None);
    }
}
