//! Identifiers and DIDs of identities (DI-1 to DI-4).
//!
//! Invariant: a [`Did`] is the only text of its id: method, chain and network in the text match the id's bytes.

use crate::number;
use ark_bn254::Fr;
use ark_ff::{BigInteger, PrimeField, Zero};
use gw_types::{ExternalId, U256};

const LEN: usize = 31;

/// The identifier of an identity: two bytes of type, 27 of genesis, two of checksum.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Id([u8; LEN]);

/// The DID of an identity on a known network.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Did {
    id: Id,
    text: ExternalId,
}

/// A network that identities belong to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Network {
    /// The second byte of an id.
    pub byte: u8,
    /// The DID's third part.
    pub blockchain: &'static str,
    /// The DID's fourth part.
    pub name: &'static str,
    /// The chain id: the chain's answer to `eth_chainId`.
    pub chain_id: u64,
}

/// Why something is not an identifier.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum IdError {
    /// Not base58, or not of 31 bytes.
    #[error("not the base58 text of 31 bytes")]
    Base58,
    /// The number has more than 31 bytes.
    #[error("wider than 31 bytes")]
    Wide,
    /// The checksum is zero or wrong.
    #[error("the checksum does not fit")]
    Checksum,
    /// An unsupported DID method.
    #[error("the method is not supported")]
    Method,
}

/// Why something is not a supported DID.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum DidError {
    /// Not `did:<method>:<blockchain>:<network>:<base58>`.
    #[error("not of the form `did:<method>:<blockchain>:<network>:<id>`")]
    Shape,
    /// The last part is not an identifier.
    #[error("the identifier is invalid")]
    Id(#[from] IdError),
    /// The identifier's network is not in the table.
    #[error("the network is unknown")]
    Network,
    /// The text has another method, chain or network than the identifier.
    #[error("the text differs from the identifier")]
    Differs,
}

/// All networks by their byte (DI-2). Byte 0, for identities without a network, is not included: there is no contract
/// to read their state from.
pub const NETWORKS: &[Network] = &[
    network(0xa1, "privado", "main", 21000),
    network(0xa2, "privado", "test", 21001),
    network(0xb1, "billions", "main", 45056),
    network(0xb2, "billions", "test", 6913),
    network(0x11, "polygon", "main", 137),
    network(0x12, "polygon", "mumbai", 80001),
    network(0x13, "polygon", "amoy", 80002),
    network(0x14, "polygon", "zkevm", 1101),
    network(0x15, "polygon", "cardona", 2442),
    network(0x21, "eth", "main", 1),
    network(0x22, "eth", "goerli", 5),
    network(0x23, "eth", "sepolia", 11_155_111),
    network(0x49, "linea", "main", 59144),
    network(0x48, "linea", "sepolia", 59141),
    network(0x51, "base", "main", 8453),
    network(0x52, "base", "sepolia", 84532),
    network(0x61, "bnb", "main", 56),
    network(0x62, "bnb", "test", 97),
];

const fn network(byte: u8, blockchain: &'static str, name: &'static str, chain_id: u64) -> Network {
    Network {
        byte,
        blockchain,
        name,
        chain_id,
    }
}

impl Network {
    /// The network with this byte.
    pub fn from_byte(byte: u8) -> Option<&'static Self> {
        NETWORKS.iter().find(|network| network.byte == byte)
    }

    /// The network with the key `<blockchain>:<network>`.
    pub fn from_key(key: &str) -> Option<&'static Self> {
        let (blockchain, name) = key.split_once(':')?;
        NETWORKS
            .iter()
            .find(|network| network.blockchain == blockchain && network.name == name)
    }

    /// `<blockchain>:<network>`.
    pub fn key(&self) -> String {
        format!("{}:{}", self.blockchain, self.name)
    }
}

impl Id {
    /// Checks type and checksum of the bytes.
    ///
    /// # Errors
    /// [`IdError::Checksum`] or [`IdError::Method`].
    pub fn new(bytes: [u8; LEN]) -> Result<Self, IdError> {
        let (body, checksum) = split(&bytes);
        if checksum == [0, 0] || checksum != checksum_of(body) {
            return Err(IdError::Checksum);
        }
        let id = Self(bytes);
        if id.method_byte().is_some_and(|byte| method(byte).is_some()) {
            Ok(id)
        } else {
            Err(IdError::Method)
        }
    }

    /// Decodes an id from a signal: little-endian.
    ///
    /// # Errors
    /// [`IdError`] if the number has more than 31 bytes, or type or checksum are invalid.
    pub fn from_scalar(scalar: &Fr) -> Result<Self, IdError> {
        match scalar.into_bigint().to_bytes_le().as_slice() {
            [bytes @ .., 0] => Self::new(bytes.try_into().map_err(|_| IdError::Wide)?),
            _ => Err(IdError::Wide),
        }
    }

    /// Decodes an id from a contract's word.
    ///
    /// # Errors
    /// [`IdError`] if the number has more than 31 bytes, or type or checksum are invalid.
    pub fn from_word(word: U256) -> Result<Self, IdError> {
        Self::from_scalar(&number::scalar_from_word(word).ok_or(IdError::Wide)?)
    }

    /// Decodes an id from base58.
    ///
    /// # Errors
    /// [`IdError`] if the text is not the base58 form of 31 bytes, or type or checksum are invalid.
    pub fn from_base58(text: &str) -> Result<Self, IdError> {
        // 31 bytes need at most 43 characters; longer texts are not decoded.
        if text.len() > 43 {
            return Err(IdError::Base58);
        }
        let mut bytes = [0u8; LEN + 1];
        match bs58::decode(text).onto(&mut bytes) {
            Ok(LEN) => {}
            Ok(_) | Err(_) => return Err(IdError::Base58),
        }
        let [id @ .., _] = bytes;
        Self::new(id)
    }

    /// The id as a signal.
    pub fn scalar(&self) -> Fr {
        Fr::from_le_bytes_mod_order(&self.0)
    }

    /// The id as a contract's word.
    pub fn word(&self) -> U256 {
        number::word(&self.scalar())
    }

    /// The bytes.
    pub fn bytes(&self) -> &[u8; LEN] {
        &self.0
    }

    /// The byte that names the network.
    pub fn network_byte(&self) -> u8 {
        let [_, network, ..] = self.0;
        network
    }

    /// The network, if it is in the table.
    pub fn network(&self) -> Option<&'static Network> {
        Network::from_byte(self.network_byte())
    }

    /// The id of an identity of the same type that begins with this state (DI-4).
    pub fn genesis_of(&self, state: &Fr) -> Self {
        let [kind, network, ..] = self.0;
        let mut bytes = [0u8; LEN];
        let state = state.into_bigint().to_bytes_le();
        // The last 27 of the 32 bytes.
        let genesis = state.iter().skip(5);
        let head = [kind, network];
        for (place, byte) in bytes.iter_mut().zip(head.iter().chain(genesis)) {
            *place = *byte;
        }
        let (body, _) = split(&bytes);
        let checksum = checksum_of(body);
        for (place, byte) in bytes.iter_mut().skip(LEN - 2).zip(checksum) {
            *place = byte;
        }
        Self(bytes)
    }

    /// Whether `state` is the genesis state of this identity.
    pub fn is_genesis(&self, state: &Fr) -> bool {
        !state.is_zero() && self.genesis_of(state) == *self
    }

    fn method_byte(&self) -> Option<u8> {
        self.0.first().copied()
    }
}

impl core::fmt::Display for Id {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.write_str(&bs58::encode(&self.0).into_string())
    }
}

impl core::fmt::Debug for Id {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        write!(f, "Id({self})")
    }
}

impl Did {
    /// The DID of an id.
    ///
    /// # Errors
    /// [`DidError::Network`] if the id's network is not in [`NETWORKS`].
    pub fn from_id(id: Id) -> Result<Self, DidError> {
        let method = id.method_byte().and_then(method).ok_or(IdError::Method)?;
        let network = id.network().ok_or(DidError::Network)?;
        let text = format!("did:{method}:{}:{}:{id}", network.blockchain, network.name);
        ExternalId::new(&text)
            .map(|text| Self { id, text })
            .map_err(|_| DidError::Shape)
    }

    /// Parses a DID. Accepts only the canonical text, without a fragment (DI-3).
    ///
    /// # Errors
    /// [`DidError`] if the text is not the canonical DID of an identity on a known network.
    pub fn parse(text: &str) -> Result<Self, DidError> {
        let mut parts = text.split(':');
        let (Some("did"), Some(_), Some(_), Some(_), Some(id), None) = (
            parts.next(),
            parts.next(),
            parts.next(),
            parts.next(),
            parts.next(),
            parts.next(),
        ) else {
            return Err(DidError::Shape);
        };
        let did = Self::from_id(Id::from_base58(id)?)?;
        if did.as_str() == text {
            Ok(did)
        } else {
            Err(DidError::Differs)
        }
    }

    /// Its identifier.
    pub fn id(&self) -> Id {
        self.id
    }

    /// The text.
    pub fn as_str(&self) -> &str {
        self.text.as_str()
    }

    /// The DID as an external id.
    pub fn external_id(&self) -> &ExternalId {
        &self.text
    }
}

impl core::fmt::Display for Did {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.write_str(self.as_str())
    }
}

/// The DID method of an id's first byte.
fn method(byte: u8) -> Option<&'static str> {
    match byte {
        0x01 => Some("iden3"),
        0x02 => Some("polygonid"),
        _ => None,
    }
}

fn split(bytes: &[u8; LEN]) -> (&[u8], [u8; 2]) {
    let [body @ .., low, high] = bytes;
    (body, [*low, *high])
}

/// The sum of the bytes, little-endian. 29 bytes cannot overflow it.
fn checksum_of(body: &[u8]) -> [u8; 2] {
    body.iter()
        .fold(0u16, |sum, byte| sum.wrapping_add(u16::from(*byte)))
        .to_le_bytes()
}

#[cfg(test)]
mod tests {
    use super::*;

    const DID: &str = "did:iden3:privado:main:2SeytAhJWLi5a68GX2bBmFNoaFCbRvyfLU6LUXBMfK";

    #[test]
    fn di1_di3_text_bytes_and_number_are_one() {
        let did = Did::parse(DID).unwrap();
        assert_eq!(did.to_string(), DID);
        assert_eq!(Id::from_scalar(&did.id().scalar()), Ok(did.id()));
        assert_eq!(Id::from_word(did.id().word()), Ok(did.id()));
        assert_eq!(Id::new(*did.id().bytes()), Ok(did.id()));
        assert_eq!(did.id().network().map(Network::key).as_deref(), Some("privado:main"));
    }

    #[test]
    fn di3_only_the_canonical_text_is_taken() {
        for (text, error) in [
            (
                "did:iden3:billions:main:2SeytAhJWLi5a68GX2bBmFNoaFCbRvyfLU6LUXBMfK",
                DidError::Differs,
            ),
            (
                "did:polygonid:privado:main:2SeytAhJWLi5a68GX2bBmFNoaFCbRvyfLU6LUXBMfK",
                DidError::Differs,
            ),
            (
                "DID:iden3:privado:main:2SeytAhJWLi5a68GX2bBmFNoaFCbRvyfLU6LUXBMfK",
                DidError::Shape,
            ),
            (
                "did:iden3:privado:main:12SeytAhJWLi5a68GX2bBmFNoaFCbRvyfLU6LUXBMfK",
                IdError::Base58.into(),
            ),
            (
                "did:iden3:privado:main:2SeytAhJWLi5a68GX2bBmFNoaFCbRvyfLU6LUXBMfK#key",
                IdError::Base58.into(),
            ),
            (
                "did:iden3:privado:main:2SeytAhJWLi5a68GX2bBmFNoaFCbRvyfLU6LUXBMfK:",
                DidError::Shape,
            ),
            (
                "did:iden3:privado:2SeytAhJWLi5a68GX2bBmFNoaFCbRvyfLU6LUXBMfK",
                DidError::Shape,
            ),
            ("did:iden3:privado:main:", IdError::Base58.into()),
            (
                "did:pkh:eip155:1:0x0000000000000000000000000000000000000001",
                IdError::Base58.into(),
            ),
            ("", DidError::Shape),
        ] {
            assert_eq!(Did::parse(text), Err(error), "{text}");
        }
    }

    #[test]
    fn di1_checksum_method_and_width_are_checked() {
        let mut bytes = *Did::parse(DID).unwrap().id().bytes();
        bytes[3] ^= 1;
        assert_eq!(Id::new(bytes), Err(IdError::Checksum));
        assert_eq!(Id::new([0; LEN]), Err(IdError::Checksum));
        let mut other = [0u8; LEN];
        (other[0], other[29]) = (0xff, 0xff);
        assert_eq!(Id::new(other), Err(IdError::Method));
        assert_eq!(Id::from_scalar(&Fr::zero()), Err(IdError::Checksum));
        assert_eq!(Id::from_word(U256::from(1) << 248), Err(IdError::Wide));
        assert_eq!(Id::from_word(U256::MAX), Err(IdError::Wide));
    }

    #[test]
    fn di2_bytes_and_keys_are_unique() {
        for network in NETWORKS {
            assert_eq!(Network::from_byte(network.byte), Some(network));
            assert_eq!(Network::from_key(&network.key()), Some(network));
        }
        assert_eq!(Network::from_byte(0), None);
    }
}
