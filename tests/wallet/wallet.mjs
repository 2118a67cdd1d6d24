// A real wallet for login tests: the identity network's own library with our circuit and our prover plugged in.
//
// Reads one command a line from standard input, as JSON, and writes one JSON line for each: {"ok": …} or
// {"error": "…"}. Commands are the functions of `commands` below. Identities come from seeds, so a run can be repeated;
// nothing is stored.
//
// GW_PROVER_URL  where to post a witness and get a proof
// GW_CIRCUIT     the compiled circuit that calculates the witness
import { readFileSync } from "node:fs";
import { createInterface } from "node:readline";
import * as sdk from "@0xpolygonid/js-sdk";
import { DID } from "@iden3/js-iden3-core";
import { proving, ProvingMethodAlg, Token, witnessBuilder } from "@iden3/js-jwz";
import { InMemoryDB, Merkletree, str2Bytes } from "@iden3/js-merkletree";
import { poseidon } from "@iden3/js-crypto";
import { groth16 } from "snarkjs";

const { GW_PROVER_URL, GW_CIRCUIT } = process.env;
const GLOBAL_LEVELS = 64;

// --- the prover, in place of the one that needs a proving key in JavaScript's own format

async function prove(inputs) {
  calculator ??= await witnessBuilder(readFileSync(GW_CIRCUIT));
  const witness = await calculator.calculateWTNSBin(JSON.parse(new TextDecoder().decode(inputs)), 0);
  const answer = await fetch(GW_PROVER_URL, { method: "POST", body: witness });
  const text = await answer.text();
  if (!answer.ok) throw new Error(`prover: ${text}`);
  return JSON.parse(text);
}

let calculator;

const algorithm = new ProvingMethodAlg("groth16", sdk.CircuitId.AuthV2);
const official = proving.provingMethodGroth16AuthV2Instance;
const method = {
  methodAlg: algorithm,
  alg: algorithm.alg,
  circuitId: algorithm.circuitId,
  verify: official.verify.bind(official),
  prove,
};
await proving.registerProvingMethod(algorithm, () => method);

// --- the global state, as the contract would hold it

const global = {
  tree: new Merkletree(new InMemoryDB(str2Bytes("global")), true, GLOBAL_LEVELS),

  async set(id, state) {
    const key = poseidon.hash([id]);
    const { proof } = await this.tree.generateProof(key);
    await (proof.existence ? this.tree.update(key, state) : this.tree.add(key, state));
  },

  async root() {
    return (await this.tree.root()).bigInt();
  },
};

// Somebody else is always there: an empty tree would hide mistakes.
for (const n of [1n, 2n, 3n, 4n]) await global.set(n, n * 1000n);

const states = {
  async getGISTProof(id) {
    const { proof, value } = await global.tree.generateProof(poseidon.hash([id]));
    const siblings = proof.allSiblings().map((sibling) => sibling.bigInt());
    while (siblings.length < GLOBAL_LEVELS) siblings.push(0n);
    return {
      root: await global.root(),
      existence: proof.existence,
      siblings,
      index: poseidon.hash([id]),
      value,
      auxExistence: proof.nodeAux !== undefined,
      auxIndex: proof.nodeAux?.key.bigInt() ?? 0n,
      auxValue: proof.nodeAux?.value.bigInt() ?? 0n,
    };
  },
  getLatestStateById: () => Promise.reject(new Error("State does not exist")),
  // The wallet sends no transactions.
  getRpcProvider: () => undefined,
};

// --- the wallet

const kms = new sdk.KMS();
kms.registerKeyProvider(
  sdk.KmsKeyType.BabyJubJub,
  new sdk.BjjProvider(sdk.KmsKeyType.BabyJubJub, new sdk.InMemoryPrivateKeyStore()),
);
const storage = {
  credential: new sdk.CredentialStorage(new sdk.InMemoryDataSource()),
  identity: new sdk.IdentityStorage(new sdk.InMemoryDataSource(), new sdk.InMemoryDataSource()),
  mt: new sdk.InMemoryMerkleTreeStorage(40),
  states,
};
const circuits = {
  // Neither is used: the registered method proves elsewhere. The packer wants them to be there.
  loadCircuitData: async (circuitId) => ({ circuitId, provingKey: new Uint8Array(1), wasm: new Uint8Array(1) }),
  saveCircuitData: async () => {},
};
const credentials = new sdk.CredentialWallet(storage);
const identities = new sdk.IdentityWallet(kms, storage, credentials);
const proofs = new sdk.ProofService(identities, credentials, circuits, states, { prover: method });
const packages = new sdk.PackageManager();
packages.registerPackers([new sdk.DefaultZKPPacker(circuits, proofs), new sdk.PlainPacker()]);
const handler = new sdk.AuthHandler(packages, proofs);

/** What was made of a seed: it must not be made twice. */
const known = new Map();

const genesis = async (did) => (await identities.getGenesisDIDMetadata(DID.parse(did))).genesisDID;

/** The message behind a QR code's text, or the message itself. */
function scan(request) {
  if (typeof request !== "string") return request;
  const encoded = new URL(request).searchParams.get("i_m");
  return JSON.parse(Buffer.from(encoded, "base64").toString("utf8"));
}

const base64url = (text) => Buffer.from(text, "utf8").toString("base64url");

const commands = {
  /** Makes the identity of a seed; `profile` other than 0 makes one of its profiles. */
  async identity({ seed, blockchain = "privado", network = "main", method = "iden3", profile = 0 }) {
    const name = [seed, method, blockchain, network].join();
    const made = known.get(name) ?? (await identities.createIdentity({
      method,
      blockchain,
      networkId: network,
      seed: new Uint8Array(32).fill(seed),
      revocationOpts: {
        type: sdk.CredentialStatusType.Iden3ReverseSparseMerkleTreeProof,
        id: "http://127.0.0.1:1",
        genesisPublishingDisabled: true,
      },
    }));
    known.set(name, made);
    const { did } = made;
    const shown = profile === 0 ? did : await identities.createProfile(did, profile, `test-${profile}`);
    const { state } = await identities.getDIDTreeModel(did);
    return {
      did: shown.string(),
      id: DID.idFromDID(shown).bigInt().toString(),
      state: state.bigInt().toString(),
    };
  },

  /** Changes an identity's state and takes the new one into the global tree, as a published transition does. */
  async transit({ did }) {
    const first = await genesis(did);
    const { claimsTree } = await identities.getDIDTreeModel(first);
    const root = (await claimsTree.root()).bigInt();
    await storage.mt.addToMerkleTree(first.string(), sdk.MerkleTreeType.Roots, root, 0n);
    const { state } = await identities.getDIDTreeModel(first);
    await global.set(DID.idFromDID(first).bigInt(), state.bigInt());
    return { state: state.bigInt().toString(), root: (await global.root()).toString() };
  },

  /** Somebody else's state changes: the global root moves on. */
  async advance({ id, state }) {
    await global.set(BigInt(id), BigInt(state));
    return commands.root();
  },

  async root() {
    return { root: (await global.root()).toString() };
  },

  /** Scans a request and makes the token that answers it. `believe` replaces parts of the request before. */
  async answer({ did, request, believe = {} }) {
    const message = { ...scan(request), ...believe };
    const bytes = new TextEncoder().encode(JSON.stringify(message));
    const { token, authRequest, authResponse } = await handler.handleAuthorizationRequest(DID.parse(did), bytes);
    return { token, callback: authRequest.body.callbackUrl, response: authResponse };
  },

  /** The same token around another payload: `change` replaces parts of the signed message. */
  async alter({ token, change }) {
    const [header, payload, proof] = token.split(".");
    const message = { ...JSON.parse(Buffer.from(payload, "base64url").toString("utf8")), ...change };
    return { token: [header, base64url(JSON.stringify(message)), proof].join(".") };
  },

  /** Posts a token to a callback, as wallets do: the bare token as the body. */
  async post({ callback, token }) {
    const answer = await fetch(callback, { method: "POST", body: token });
    const text = await answer.text();
    let body;
    try {
      body = JSON.parse(text);
    } catch {
      body = text;
    }
    return { status: answer.status, body };
  },

  /** Scans, answers and posts to where the request says. */
  async login(asked) {
    const { token, callback, response } = await commands.answer(asked);
    return { ...(await commands.post({ callback, token })), token, response };
  },

  /** Milliseconds of one of several checks of a token's proof by snarkjs. */
  async time({ token, key, turns }) {
    const { proof, pub_signals } = JSON.parse(Buffer.from(token.split(".")[2], "base64url").toString("utf8"));
    const start = performance.now();
    for (let turn = 0; turn < turns; turn += 1) {
      if (!(await groth16.verify(key, pub_signals, proof))) throw new Error("snarkjs: the proof does not hold");
    }
    return { ms: (performance.now() - start) / turns };
  },

  /** What the library's own check says of a token's proof under a verification key. */
  async verify({ token, key }) {
    const parsed = await Token.parse(token);
    return { valid: await parsed.verify(new TextEncoder().encode(JSON.stringify(key))) };
  },
};

for await (const line of createInterface({ input: process.stdin })) {
  if (line.trim() === "") continue;
  let said;
  try {
    const { command, ...rest } = JSON.parse(line);
    if (!Object.hasOwn(commands, command)) throw new Error(`no command \`${command}\``);
    said = { ok: await commands[command](rest) };
  } catch (error) {
    said = { error: `${error?.stack ?? error}` };
  }
  process.stdout.write(`${JSON.stringify(said)}\n`);
}
// snarkjs keeps threads that would keep the process.
process.exit(0);
