pragma circom 2.1.0;

// A login circuit of our own with the signals of the network's authV2: what a wallet feeds in, what a verifier reads.
// It exists because the official proving key is not among the packages the tests may use. It proves the same thing:
// the challenge was signed by a key that the identity's state holds and has not revoked, the state is the one the
// global tree knows (or the identity's first, which that tree need not know), and `userID` is the identity or one
// of its profiles.

include "circomlib/circuits/bitify.circom";
include "circomlib/circuits/comparators.circom";
include "circomlib/circuits/eddsaposeidon.circom";
include "circomlib/circuits/mux1.circom";
include "circomlib/circuits/poseidon.circom";
include "circomlib/circuits/smt/smtverifier.circom";

// An identifier of the same type for a profile of the identity: type (2 bytes), low 27 bytes of
// Poseidon(identity, nonce), sum of those 29 bytes (2 bytes), all little-endian.
template ProfileOf() {
    signal input idBits[248];
    signal input id;
    signal input nonce;
    signal output out;

    signal hash <== Poseidon(2)([id, nonce]);
    signal hashBits[254] <== Num2Bits_strict()(hash);

    signal bits[232];
    for (var i = 0; i < 16; i++) bits[i] <== idBits[i];
    for (var i = 0; i < 216; i++) bits[16 + i] <== hashBits[i];

    var body = 0;
    var checksum = 0;
    for (var i = 0; i < 232; i++) {
        body += bits[i] * (1 << i);
        checksum += bits[i] * (1 << (i % 8));
    }
    out <== body + checksum * (1 << 232);
}

// Whether the identity's 27 genesis bytes are the last 27 of the state's 32.
template IsFirstState() {
    signal input idBits[248];
    signal input state;
    signal output out;

    signal stateBits[254] <== Num2Bits_strict()(state);
    var genesis = 0;
    for (var i = 0; i < 216; i++) genesis += idBits[16 + i] * (1 << i);
    var cut = 0;
    for (var i = 40; i < 254; i++) cut += stateBits[i] * (1 << (i - 40));
    out <== IsEqual()([genesis, cut]);
}

template AuthV2(levels, globalLevels) {
    // Type of the claim that authorizes a signing key.
    var AUTH_SCHEMA = 80551937543569765027552589160822318028;

    signal input genesisID;
    signal input profileNonce;

    signal input state;
    signal input claimsTreeRoot;
    signal input revTreeRoot;
    signal input rootsTreeRoot;

    signal input authClaim[8];
    signal input authClaimIncMtp[levels];
    signal input authClaimNonRevMtp[levels];
    signal input authClaimNonRevMtpNoAux;
    signal input authClaimNonRevMtpAuxHi;
    signal input authClaimNonRevMtpAuxHv;

    signal input challenge;
    signal input challengeSignatureR8x;
    signal input challengeSignatureR8y;
    signal input challengeSignatureS;

    signal input gistRoot;
    signal input gistMtp[globalLevels];
    signal input gistMtpAuxHi;
    signal input gistMtpAuxHv;
    signal input gistMtpNoAux;

    signal output userID;

    // The claim is one for a signing key.
    signal headerBits[254] <== Num2Bits_strict()(authClaim[0]);
    var schema = 0;
    for (var i = 0; i < 128; i++) schema += headerBits[i] * (1 << i);
    schema === AUTH_SCHEMA;

    // The claim is in the claims tree.
    signal claimIndex <== Poseidon(4)([authClaim[0], authClaim[1], authClaim[2], authClaim[3]]);
    signal claimValue <== Poseidon(4)([authClaim[4], authClaim[5], authClaim[6], authClaim[7]]);
    SMTVerifier(levels)(
        enabled <== 1, fnc <== 0, root <== claimsTreeRoot, siblings <== authClaimIncMtp,
        oldKey <== 0, oldValue <== 0, isOld0 <== 0, key <== claimIndex, value <== claimValue
    );

    // Its revocation nonce is not in the revocation tree.
    signal revocationBits[254] <== Num2Bits_strict()(authClaim[4]);
    var revocation = 0;
    for (var i = 0; i < 64; i++) revocation += revocationBits[i] * (1 << i);
    SMTVerifier(levels)(
        enabled <== 1, fnc <== 1, root <== revTreeRoot, siblings <== authClaimNonRevMtp,
        oldKey <== authClaimNonRevMtpAuxHi, oldValue <== authClaimNonRevMtpAuxHv, isOld0 <== authClaimNonRevMtpNoAux,
        key <== revocation, value <== 0
    );

    // Its key signed the challenge.
    EdDSAPoseidonVerifier()(
        enabled <== 1, Ax <== authClaim[2], Ay <== authClaim[3], S <== challengeSignatureS,
        R8x <== challengeSignatureR8x, R8y <== challengeSignatureR8y, M <== challenge
    );

    // The three trees make the state.
    signal stateHash <== Poseidon(3)([claimsTreeRoot, revTreeRoot, rootsTreeRoot]);
    stateHash === state;

    // The global tree has this state for the identity, or nothing if it is its first.
    signal idBits[248] <== Num2Bits(248)(genesisID);
    signal isFirst <== IsFirstState()(idBits <== idBits, state <== state);
    signal globalIndex <== Poseidon(1)([genesisID]);
    SMTVerifier(globalLevels)(
        enabled <== 1, fnc <== isFirst, root <== gistRoot, siblings <== gistMtp,
        oldKey <== gistMtpAuxHi, oldValue <== gistMtpAuxHv, isOld0 <== gistMtpNoAux,
        key <== globalIndex, value <== state
    );

    // The name shown is the identity's own, or that of a profile.
    signal profile <== ProfileOf()(idBits <== idBits, id <== genesisID, nonce <== profileNonce);
    signal isPlain <== IsZero()(profileNonce);
    userID <== Mux1()(c <== [profile, genesisID], s <== isPlain);
}

component main {public [challenge, gistRoot]} = AuthV2(40, 64);
