//! The two binary formats of the circuit compiler: constraints (`.r1cs`) and the values that satisfy them (`.wtns`).
//!
//! Both consist of sections of little-endian numbers, described at <https://github.com/iden3/r1csfile>. Existing crates
//! that read them depend on a whole WebAssembly runtime. The wallet calculates the values in JavaScript, so none is
//! needed here.

use ark_bn254::Fr;
use ark_ff::{BigInt, PrimeField};
use ark_relations::{
    gr1cs::{ConstraintSynthesizer, ConstraintSystemRef, LinearCombination, SynthesisError, Variable},
    utils::matrix::Matrix,
};

const FIELD_BYTES: usize = 32;

/// Constraints `a · b = c` over numbered wires. Wire 0 is the constant one; outputs, public inputs and all others
/// follow.
#[derive(Debug)]
pub(crate) struct Circuit {
    /// Number of wires that a verifier knows, the constant one included.
    pub(crate) public: usize,
    pub(crate) wires: usize,
    /// `a`, `b` and `c`, with one row per constraint.
    pub(crate) rows: [Matrix<Fr>; 3],
}

impl Circuit {
    pub(crate) fn read(file: &[u8]) -> Option<Self> {
        let mut header = section(file, *b"r1cs", 1)?;
        field(&mut header)?;
        let wires = header.count()?;
        let public = 1 + header.count()? + header.count()?;
        let (_private, _labels) = (header.count()?, header.take(8)?);
        let constraints = header.count()?;
        let mut body = section(file, *b"r1cs", 2)?;
        let mut rows = [const { Vec::new() }; 3];
        for _ in 0..constraints {
            for rows in &mut rows {
                let terms = body.count()?;
                let row = (0..terms).map(|_| {
                    let wire = body.count().filter(|wire| *wire < wires)?;
                    Some((body.element()?, wire))
                });
                rows.push(row.collect::<Option<Vec<_>>>()?);
            }
        }
        Some(Self { public, wires, rows })
    }

    pub(crate) fn constraints(&self) -> usize {
        self.rows[0].len()
    }
}

impl ConstraintSynthesizer<Fr> for &Circuit {
    /// Only for key setup: the variables have no values.
    fn generate_constraints(self, cs: ConstraintSystemRef<Fr>) -> Result<(), SynthesisError> {
        let unknown = || Err(SynthesisError::AssignmentMissing);
        for _ in 1..self.public {
            let _variable = cs.new_input_variable(unknown)?;
        }
        for _ in self.public..self.wires {
            let _variable = cs.new_witness_variable(unknown)?;
        }
        let variable = |wire: usize| match wire.checked_sub(self.public) {
            Some(private) => Variable::witness(private),
            None => Variable::instance(wire),
        };
        let sum = |row: &[(Fr, usize)]| {
            LinearCombination(row.iter().map(|(factor, wire)| (*factor, variable(*wire))).collect())
        };
        let [a, b, c] = &self.rows;
        for ((a, b), c) in a.iter().zip(b).zip(c) {
            cs.enforce_r1cs_constraint(|| sum(a), || sum(b), || sum(c))?;
        }
        Ok(())
    }
}

/// The value of each wire.
pub(crate) fn witness(file: &[u8]) -> Option<Vec<Fr>> {
    let mut header = section(file, *b"wtns", 1)?;
    field(&mut header)?;
    let wires = header.count()?;
    let mut body = section(file, *b"wtns", 2)?;
    (0..wires).map(|_| body.element()).collect()
}

/// Checks that the file's field is the scalar field of BN254.
fn field(header: &mut Reader<'_>) -> Option<()> {
    let is_bn254 = header.count()? == FIELD_BYTES && header.limbs()? == Fr::MODULUS.0;
    is_bn254.then_some(())
}

fn section(file: &[u8], magic: [u8; 4], wanted_kind: usize) -> Option<Reader<'_>> {
    let mut file = Reader(file);
    if file.take(4)? != magic {
        return None;
    }
    let (_version, sections) = (file.count()?, file.count()?);
    for _ in 0..sections {
        let kind = file.count()?;
        let length = u64::from_le_bytes(file.take(8)?.try_into().ok()?);
        let body = file.take(usize::try_from(length).ok()?)?;
        if kind == wanted_kind {
            return Some(Reader(body));
        }
    }
    None
}

struct Reader<'a>(&'a [u8]);

impl<'a> Reader<'a> {
    fn take(&mut self, length: usize) -> Option<&'a [u8]> {
        let (head, tail) = self.0.split_at_checked(length)?;
        self.0 = tail;
        Some(head)
    }

    fn count(&mut self) -> Option<usize> {
        usize::try_from(u32::from_le_bytes(self.take(4)?.try_into().ok()?)).ok()
    }

    fn limbs(&mut self) -> Option<[u64; 4]> {
        let mut limbs = [0; 4];
        for limb in &mut limbs {
            *limb = u64::from_le_bytes(self.take(8)?.try_into().ok()?);
        }
        Some(limbs)
    }

    fn element(&mut self) -> Option<Fr> {
        Fr::from_bigint(BigInt(self.limbs()?))
    }
}
