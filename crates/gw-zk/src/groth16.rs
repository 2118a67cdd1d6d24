//! Groth16 over BN254: parsing of keys and proofs, and the pairing check (ZK-33, ZK-34).
//!
//! Invariant: the points of a [`Proof`] are in the right group, are not infinity, and were parsed from their only text
//! form. The security proof of the pairing equation requires this.

use crate::number::{NumberError, coordinate};
use ark_bn254::{Bn254, Fq, Fq2, Fr, G1Affine, G1Projective, G2Affine};
use ark_ec::AffineRepr;
use ark_ff::{BigInteger256, PrimeField, Zero};
use ark_groth16::{Groth16, PreparedVerifyingKey, VerifyingKey, prepare_verifying_key};
use serde::Deserialize;

/// A proof as wallets write it, with decimal texts.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub struct RawProof {
    /// A point of the first group, projective.
    pub pi_a: [String; 3],
    /// A point of the second group, projective.
    pub pi_b: [[String; 2]; 3],
    /// A point of the first group, projective.
    pub pi_c: [String; 3],
    /// `groth16`.
    pub protocol: String,
    /// `bn128`, if it is given.
    #[serde(default)]
    pub curve: Option<String>,
}

/// A proof whose points are checked.
#[derive(Clone, Debug, PartialEq)]
pub struct Proof(ark_groth16::Proof<Bn254>);

/// A prepared verification key.
#[derive(Clone, Debug)]
pub struct Key(PreparedVerifyingKey<Bn254>);

/// Why a proof is rejected.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ProofError {
    /// Another protocol or curve.
    #[error("not a groth16 proof over bn128")]
    Protocol,
    /// A coordinate is not a canonical number.
    #[error("a coordinate is not canonical")]
    Coordinate(#[source] NumberError),
    /// A third coordinate other than one: the point at infinity, or a second form of the same point.
    #[error("a third coordinate is not one")]
    Projective,
    /// A point that is not on its curve.
    #[error("a point is not on the curve")]
    OffCurve,
    /// A point of the curve outside the group of prime order.
    #[error("a point is not in the subgroup")]
    Subgroup,
    /// The number of signals does not match the key.
    #[error("the number of public signals is wrong")]
    Signals,
    /// The pairing equation does not hold.
    #[error("the pairing check failed")]
    Pairing,
    /// The key is not usable.
    #[error("the verification key is unusable")]
    Key(#[from] KeyError),
}

/// Why a key cannot be used.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum KeyError {
    /// The bytes do not have the pinned hash.
    #[error("the key is not the pinned one")]
    Pin,
    /// The length does not match the number of signals.
    #[error("the key has the wrong length")]
    Length,
    /// An invalid number or point.
    #[error("the key contains an invalid number or point")]
    Point,
    /// Not the JSON form of a key.
    #[error("not a verification key")]
    Json,
}

impl Proof {
    /// Parses a proof and checks its points.
    ///
    /// # Errors
    /// [`ProofError`] if the protocol or curve differs, a coordinate is not canonical, or a point is not in its group.
    pub fn read(raw: &RawProof) -> Result<Self, ProofError> {
        if raw.protocol != "groth16" || raw.curve.as_deref().is_some_and(|curve| curve != "bn128") {
            return Err(ProofError::Protocol);
        }
        Ok(Self(ark_groth16::Proof {
            a: g1(&raw.pi_a)?,
            b: g2(&raw.pi_b)?,
            c: g1(&raw.pi_c)?,
        }))
    }
}

impl Key {
    /// The number of public signals that the key takes.
    pub fn signals(&self) -> usize {
        self.0.vk.gamma_abc_g1.len().saturating_sub(1)
    }

    /// Parses the compact form described in `keys/README.md`.
    ///
    /// # Errors
    /// [`KeyError::Length`] if the length does not match `signals`; [`KeyError::Point`] for an invalid number or point.
    pub fn from_bytes(bytes: &[u8], signals: usize) -> Result<Self, KeyError> {
        let (numbers, rest) = bytes.as_chunks::<32>();
        if !rest.is_empty() || numbers.len() != 14 + 2 * (signals + 1) {
            return Err(KeyError::Length);
        }
        let mut numbers = numbers.iter().map(|bytes| {
            let limbs = gw_types::U256::from_be_bytes(*bytes).into_limbs();
            Fq::from_bigint(BigInteger256::new(limbs)).ok_or(KeyError::Point)
        });
        let mut number = || numbers.next().unwrap_or(Err(KeyError::Length));
        let alpha_g1 = G1Affine::new_unchecked(number()?, number()?);
        let mut second = || {
            let (x, y) = (Fq2::new(number()?, number()?), Fq2::new(number()?, number()?));
            Ok::<_, KeyError>(G2Affine::new_unchecked(x, y))
        };
        let (beta_g2, gamma_g2, delta_g2) = (second()?, second()?, second()?);
        let points = (0..=signals).map(|_| Ok(G1Affine::new_unchecked(number()?, number()?)));
        let gamma_abc_g1 = points.collect::<Result<Vec<_>, KeyError>>()?;
        Self::prepare(VerifyingKey {
            alpha_g1,
            beta_g2,
            gamma_g2,
            delta_g2,
            gamma_abc_g1,
        })
    }

    /// Parses the JSON form that setup tools write.
    ///
    /// # Errors
    /// [`KeyError::Json`] if the text is not a key for groth16 over bn128; [`KeyError::Point`] for an invalid point.
    pub fn from_json(json: &[u8]) -> Result<Self, KeyError> {
        let json: KeyJson = serde_json::from_slice(json).map_err(|_| KeyError::Json)?;
        let signals = json.ic.len().checked_sub(1);
        if json.protocol != "groth16" || json.curve != "bn128" || signals != Some(json.n_public) {
            return Err(KeyError::Json);
        }
        let key = VerifyingKey {
            alpha_g1: g1(&json.alpha)?,
            beta_g2: g2(&json.beta)?,
            gamma_g2: g2(&json.gamma)?,
            delta_g2: g2(&json.delta)?,
            gamma_abc_g1: json.ic.iter().map(g1).collect::<Result<_, _>>()?,
        };
        Self::prepare(key)
    }

    fn prepare(key: VerifyingKey<Bn254>) -> Result<Self, KeyError> {
        let second = [key.beta_g2, key.gamma_g2, key.delta_g2];
        let sound = key
            .gamma_abc_g1
            .iter()
            .chain([&key.alpha_g1])
            .all(|point| check_g1(*point).is_ok())
            && second.into_iter().all(|point| check_g2(point).is_ok());
        if sound {
            Ok(Self(prepare_verifying_key(&key)))
        } else {
            Err(KeyError::Point)
        }
    }

    /// The compact form described in `keys/README.md`.
    pub fn to_bytes(&self) -> Vec<u8> {
        let key = &self.0.vk;
        let first = |point: &G1Affine| [point.x, point.y];
        let second = |point: &G2Affine| [point.x.c0, point.x.c1, point.y.c0, point.y.c1];
        let numbers = first(&key.alpha_g1)
            .into_iter()
            .chain(
                [&key.beta_g2, &key.gamma_g2, &key.delta_g2]
                    .into_iter()
                    .flat_map(second),
            )
            .chain(key.gamma_abc_g1.iter().flat_map(first));
        numbers
            .flat_map(|number| gw_types::U256::from_limbs(number.into_bigint().0).to_be_bytes::<32>())
            .collect()
    }

    /// Checks the proof for these signals.
    ///
    /// # Errors
    /// [`ProofError::Signals`] if their number is wrong; [`ProofError::Pairing`] if the pairing equation does not hold.
    pub fn verify(&self, proof: &Proof, signals: &[Fr]) -> Result<(), ProofError> {
        let inputs = self.inputs(signals)?;
        match Groth16::<Bn254>::verify_proof_with_prepared_inputs(&self.0, &proof.0, &inputs) {
            Ok(true) => Ok(()),
            Ok(false) | Err(_) => Err(ProofError::Pairing),
        }
    }

    /// Combines the signals into one point. Skips zeros, since most signals of a credential proof are zero.
    fn inputs(&self, signals: &[Fr]) -> Result<G1Projective, ProofError> {
        let [constant, points @ ..] = self.0.vk.gamma_abc_g1.as_slice() else {
            return Err(ProofError::Signals);
        };
        if points.len() != signals.len() {
            return Err(ProofError::Signals);
        }
        let terms = points.iter().zip(signals).filter(|(_, signal)| !signal.is_zero());
        Ok(terms.fold(constant.into_group(), |sum, (point, signal)| {
            sum + point.into_group() * signal
        }))
    }
}

/// The JSON form of a key. Members that can be computed from the others are not read.
#[derive(Deserialize)]
struct KeyJson {
    protocol: String,
    curve: String,
    #[serde(rename = "nPublic")]
    n_public: usize,
    #[serde(rename = "vk_alpha_1")]
    alpha: [String; 3],
    #[serde(rename = "vk_beta_2")]
    beta: [[String; 2]; 3],
    #[serde(rename = "vk_gamma_2")]
    gamma: [[String; 2]; 3],
    #[serde(rename = "vk_delta_2")]
    delta: [[String; 2]; 3],
    #[serde(rename = "IC")]
    ic: Vec<[String; 3]>,
}

impl From<ProofError> for KeyError {
    fn from(_: ProofError) -> Self {
        Self::Point
    }
}

fn g1([x, y, z]: &[String; 3]) -> Result<G1Affine, ProofError> {
    let number = |text: &str| coordinate(text).map_err(ProofError::Coordinate);
    let point = G1Affine::new_unchecked(number(x)?, number(y)?);
    if z != "1" {
        return Err(ProofError::Projective);
    }
    check_g1(point)
}

fn g2([x, y, z]: &[[String; 2]; 3]) -> Result<G2Affine, ProofError> {
    let number = |[real, imaginary]: &[String; 2]| {
        let number = |text: &str| coordinate(text).map_err(ProofError::Coordinate);
        Ok::<_, ProofError>(Fq2::new(number(real)?, number(imaginary)?))
    };
    let point = G2Affine::new_unchecked(number(x)?, number(y)?);
    if z != &["1", "0"] {
        return Err(ProofError::Projective);
    }
    check_g2(point)
}

/// On the first curve every point is in the group of prime order, so there is no subgroup check.
fn check_g1(point: G1Affine) -> Result<G1Affine, ProofError> {
    if point.is_on_curve() && !point.is_zero() {
        Ok(point)
    } else {
        Err(ProofError::OffCurve)
    }
}

fn check_g2(point: G2Affine) -> Result<G2Affine, ProofError> {
    if !point.is_on_curve() || point.is_zero() {
        return Err(ProofError::OffCurve);
    }
    if point.is_in_correct_subgroup_assuming_on_curve() {
        Ok(point)
    } else {
        Err(ProofError::Subgroup)
    }
}
