//! The Poseidon hash with the parameters of the circom library, over BN254's scalar field, for 1 to 16 inputs.
//!
//! Round constants and matrices come from the Grain generator of the Poseidon paper (its reference script, field 1,
//! S-box x^5). They are generated once per width at first use. That takes a few milliseconds and replaces 700 kB
//! of tables that are too large to review. The constants published for circom begin with the same numbers; the tests
//! compare hashes.

use std::sync::OnceLock;

use ark_bn254::Fr;
use ark_ff::{AdditiveGroup, BigInteger256, Field, PrimeField};

/// Maximum number of inputs of one call.
pub const MAX_INPUTS: usize = 16;

const FULL_ROUNDS: usize = 8;

/// Partial rounds for 1, 2, … 16 inputs, as circom publishes them.
const PARTIAL_ROUNDS: [usize; MAX_INPUTS] = [56, 57, 56, 60, 60, 63, 64, 63, 60, 66, 60, 65, 70, 60, 64, 68];

static PARAMETERS: [OnceLock<Parameters>; MAX_INPUTS] = [const { OnceLock::new() }; MAX_INPUTS];

/// Hash of 1 to 16 field elements; `None` for another number of inputs.
///
/// The number of inputs is part of the hash: there is no padding.
#[must_use]
pub fn hash(inputs: &[Fr]) -> Option<Fr> {
    let slot = inputs.len().checked_sub(1)?;
    let partial_rounds = *PARTIAL_ROUNDS.get(slot)?;
    let parameters = PARAMETERS
        .get(slot)?
        .get_or_init(|| Parameters::generate(inputs.len().saturating_add(1), partial_rounds));
    Some(parameters.hash(inputs))
}

/// Hash of one field element.
#[must_use]
pub fn hash_one(input: Fr) -> Fr {
    let [one, ..] = &PARAMETERS;
    let [partial_rounds, ..] = PARTIAL_ROUNDS;
    one.get_or_init(|| Parameters::generate(2, partial_rounds))
        .hash(&[input])
}

/// Hash of exactly 16 field elements, the width of the byte-string hash.
#[must_use]
pub fn hash_sixteen(inputs: &[Fr; MAX_INPUTS]) -> Fr {
    let [.., sixteen] = &PARAMETERS;
    let [.., partial_rounds] = PARTIAL_ROUNDS;
    sixteen
        .get_or_init(|| Parameters::generate(MAX_INPUTS + 1, partial_rounds))
        .hash(inputs)
}

/// The parameters of one width.
struct Parameters {
    partial_rounds: usize,
    /// One row of `width` constants per round.
    constants: Vec<Vec<Fr>>,
    /// Rows of the mixing matrix.
    matrix: Vec<Vec<Fr>>,
}

impl Parameters {
    fn generate(width: usize, partial_rounds: usize) -> Self {
        let mut grain = Grain::new(width, partial_rounds);
        let rounds = FULL_ROUNDS.saturating_add(partial_rounds);
        let constants = (0..rounds)
            .map(|_| (0..width).map(|_| grain.field_element()).collect())
            .collect();
        let matrix = grain.matrix(width);
        Self {
            partial_rounds,
            constants,
            matrix,
        }
    }

    fn hash(&self, inputs: &[Fr]) -> Fr {
        let mut state: Vec<Fr> = std::iter::once(Fr::ZERO).chain(inputs.iter().copied()).collect();
        let first_partial = FULL_ROUNDS / 2;
        let partial = first_partial..first_partial.saturating_add(self.partial_rounds);
        for (round, constants) in self.constants.iter().enumerate() {
            for (element, constant) in state.iter_mut().zip(constants) {
                *element += constant;
            }
            let touched = if partial.contains(&round) { 1 } else { state.len() };
            for element in state.iter_mut().take(touched) {
                let square = element.square();
                *element *= square.square();
            }
            state = self
                .matrix
                .iter()
                .map(|row| row.iter().zip(&state).map(|(m, s)| *m * s).sum())
                .collect();
        }
        state.into_iter().next().unwrap_or_default()
    }
}

/// The 80-bit Grain LFSR in self-shrinking mode, seeded with the parameters of the hash.
struct Grain {
    /// Oldest bit first.
    state: std::collections::VecDeque<bool>,
}

const FIELD_BITS: usize = 254;

impl Grain {
    fn new(width: usize, partial_rounds: usize) -> Self {
        // Prime field, S-box x^alpha, bits of the field, width, full and partial rounds, then ones.
        let seed = [
            (1, 2),
            (0, 4),
            (FIELD_BITS, 12),
            (width, 12),
            (FULL_ROUNDS, 10),
            (partial_rounds, 10),
        ];
        let mut state: std::collections::VecDeque<bool> = seed
            .iter()
            .flat_map(|(value, bits)| (0..*bits).rev().map(move |bit| value >> bit & 1 == 1))
            .collect();
        state.extend([true; 30]);
        let mut grain = Self { state };
        for _ in 0..160 {
            grain.step();
        }
        grain
    }

    fn step(&mut self) -> bool {
        let next = [62, 51, 38, 23, 13, 0]
            .iter()
            .fold(false, |bit, tap| bit ^ self.state.get(*tap).is_some_and(|b| *b));
        self.state.pop_front();
        self.state.push_back(next);
        next
    }

    /// Reads bits in pairs: returns the second if the first is set, otherwise reads the next pair.
    fn bit(&mut self) -> bool {
        loop {
            let keep = self.step();
            let bit = self.step();
            if keep {
                return bit;
            }
        }
    }

    /// 254 bits, most significant first.
    fn number(&mut self) -> BigInteger256 {
        let mut limbs = [0_u64; 4];
        for position in (0..FIELD_BITS).rev() {
            let bit = u64::from(self.bit());
            if let Some(limb) = limbs.get_mut(position / 64) {
                *limb |= bit << (position % 64);
            }
        }
        BigInteger256::new(limbs)
    }

    /// Rejects numbers at or above the field's order.
    fn field_element(&mut self) -> Fr {
        loop {
            if let Some(element) = Fr::from_bigint(self.number()) {
                return element;
            }
        }
    }

    /// Reduces the number modulo the order instead, as the reference script does for the matrix.
    fn reduced(&mut self) -> Fr {
        let [a, b, c, d] = self.number().0.map(u64::to_le_bytes);
        Fr::from_le_bytes_mod_order([a, b, c, d].as_flattened())
    }

    /// A Cauchy matrix: `1 / (x_i + y_j)` for distinct numbers of which no sum is zero.
    fn matrix(&mut self, width: usize) -> Vec<Vec<Fr>> {
        loop {
            let numbers: Vec<Fr> = (0..width.saturating_mul(2)).map(|_| self.reduced()).collect();
            let distinct = numbers
                .iter()
                .enumerate()
                .all(|(i, a)| numbers.iter().skip(i.saturating_add(1)).all(|b| a != b));
            let (xs, ys) = numbers.split_at(width);
            let rows: Option<Vec<Vec<Fr>>> = xs
                .iter()
                .map(|x| ys.iter().map(|y| (*x + y).inverse()).collect())
                .collect();
            if let (true, Some(rows)) = (distinct, rows) {
                return rows;
            }
        }
    }
}
