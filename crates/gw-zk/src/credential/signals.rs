//! The positions of the public signals of each circuit (spec/10 section 2.7).

use ark_bn254::Fr;

use crate::circuit::Circuit;

/// Public signals of a proof about one credential.
#[derive(Clone, Debug)]
pub(super) struct AtomicSignals<'a> {
    pub(super) merklized: Fr,
    pub(super) user: Fr,
    pub(super) request: Fr,
    pub(super) issuer: Fr,
    /// The issuer's state that contains the credential or the signing key.
    pub(super) issuance_state: Fr,
    pub(super) revocation_checked: Fr,
    pub(super) non_revocation_state: Fr,
    pub(super) timestamp: Fr,
    pub(super) schema: Fr,
    pub(super) key: Fr,
    pub(super) slot: Fr,
    pub(super) operator: Fr,
    pub(super) values: &'a [Fr],
    pub(super) version: Version,
}

/// The signals that only some circuits have.
#[derive(Clone, Copy, Debug)]
pub(super) enum Version {
    V2 {
        /// 1 if the proof shows that the field is absent.
        path_absent: Fr,
    },
    V3 {
        link: Fr,
        nullifier: Fr,
        operator_output: Fr,
        proof_type: Fr,
        value_count: Fr,
        verifier: Fr,
        nullifier_session: Fr,
    },
}

/// Public signals of a proof of further predicates.
#[derive(Clone, Debug)]
pub(super) struct LinkedSignals<'a> {
    pub(super) link: Fr,
    pub(super) merklized: Fr,
    pub(super) query_hashes: &'a [Fr],
}

/// Public signals by kind of circuit.
#[derive(Clone, Debug)]
#[expect(
    clippy::large_enum_variant,
    reason = "one lives at a time, on the stack of one check"
)]
pub(super) enum Signals<'a> {
    Atomic(AtomicSignals<'a>),
    Linked(LinkedSignals<'a>),
}

impl<'a> Signals<'a> {
    /// Returns `None` if the number of signals is not the circuit's.
    pub(super) fn read(circuit: Circuit, signals: &'a [Fr]) -> Option<Self> {
        if signals.len() != circuit.signals() {
            return None;
        }
        match circuit {
            Circuit::MtpV2 => {
                let [merklized, user, request, issuer, issuance_state, rest @ ..] = signals else {
                    return None;
                };
                v2([merklized, user, request, issuer, issuance_state], rest)
            }
            Circuit::SigV2 => {
                let [merklized, user, issuance_state, request, issuer, rest @ ..] = signals else {
                    return None;
                };
                v2([merklized, user, request, issuer, issuance_state], rest)
            }
            Circuit::V3 | Circuit::V3Beta1 | Circuit::V3Small => v3(signals),
            Circuit::Linked10 | Circuit::Linked10Beta1 | Circuit::Linked5 | Circuit::Linked3 => {
                let [link, merklized, rest @ ..] = signals else {
                    return None;
                };
                let (_outputs, query_hashes) = rest.split_at_checked(rest.len() / 2)?;
                Some(Self::Linked(LinkedSignals {
                    link: *link,
                    merklized: *merklized,
                    query_hashes,
                }))
            }
            Circuit::AuthV2 | Circuit::AuthV3 | Circuit::AuthV3Small => None,
        }
    }
}

fn v2<'a>(head: [&Fr; 5], rest: &'a [Fr]) -> Option<Signals<'a>> {
    let [merklized, user, request, issuer, issuance_state] = head.map(|signal| *signal);
    let [
        checked,
        non_revocation,
        timestamp,
        schema,
        path_absent,
        key,
        slot,
        operator,
        values @ ..,
    ] = rest
    else {
        return None;
    };
    Some(Signals::Atomic(AtomicSignals {
        merklized,
        user,
        request,
        issuer,
        issuance_state,
        revocation_checked: *checked,
        non_revocation_state: *non_revocation,
        timestamp: *timestamp,
        schema: *schema,
        key: *key,
        slot: *slot,
        operator: *operator,
        values,
        version: Version::V2 {
            path_absent: *path_absent,
        },
    }))
}

fn v3(signals: &[Fr]) -> Option<Signals<'_>> {
    let [
        merklized,
        user,
        issuance_state,
        link,
        nullifier,
        operator_output,
        proof_type,
        request,
        issuer,
        rest @ ..,
    ] = signals
    else {
        return None;
    };
    let [
        checked,
        non_revocation,
        timestamp,
        schema,
        key,
        slot,
        operator,
        rest @ ..,
    ] = rest
    else {
        return None;
    };
    let [values @ .., value_count, verifier, nullifier_session] = rest else {
        return None;
    };
    Some(Signals::Atomic(AtomicSignals {
        merklized: *merklized,
        user: *user,
        request: *request,
        issuer: *issuer,
        issuance_state: *issuance_state,
        revocation_checked: *checked,
        non_revocation_state: *non_revocation,
        timestamp: *timestamp,
        schema: *schema,
        key: *key,
        slot: *slot,
        operator: *operator,
        values,
        version: Version::V3 {
            link: *link,
            nullifier: *nullifier,
            operator_output: *operator_output,
            proof_type: *proof_type,
            value_count: *value_count,
            verifier: *verifier,
            nullifier_session: *nullifier_session,
        },
    }))
}
