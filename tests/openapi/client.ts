// Twenty ordinary calls through a client that is generated from the API document, compiled with --strict.
//
// GW_URL: the gateway; GW_TOKEN, GW_REFRESH: the tokens of a member; GW_ADMIN: ADMIN_API_TOKEN; GW_PRIVATE_KEY: a key that no
// user has linked; GW_ORG: the member's organization; GW_CONTRACT: a contract of it.
import createClient from "openapi-fetch";
import { privateKeyToAccount } from "viem/accounts";
import type { components, paths } from "./api.js";

declare const process: { env: Record<string, string | undefined>; exit(code: number): never };

const need = (name: string): string => {
  const value = process.env[name];
  if (!value) throw new Error(`${name} is not set`);
  return value;
};

const baseUrl = need("GW_URL");
const anonymous = createClient<paths>({ baseUrl });
const member = createClient<paths>({ baseUrl, headers: { Authorization: `Bearer ${need("GW_TOKEN")}` } });
const admin = createClient<paths>({ baseUrl, headers: { "X-Admin-Token": need("GW_ADMIN") } });
const org_id = need("GW_ORG");
const account = privateKeyToAccount(need("GW_PRIVATE_KEY") as `0x${string}`);

let passed = 0;
let failed = 0;

async function check(name: string, run: () => Promise<void>): Promise<void> {
  try {
    await run();
    passed += 1;
    console.log(`ok ${name}`);
  } catch (error) {
    failed += 1;
    console.log(`not ok ${name}: ${error instanceof Error ? (error.stack ?? error.message) : String(error)}`);
  }
}

/** The body of a success; an error throws. */
function body<T>(answer: { data?: T | undefined; error?: unknown; response: Response }): T {
  if (answer.data === undefined) throw new Error(`${answer.response.status} ${JSON.stringify(answer.error)}`);
  return answer.data;
}

function equal<T>(actual: T, expected: T): void {
  if (actual !== expected) throw new Error(`${JSON.stringify(actual)}, expected ${JSON.stringify(expected)}`);
}

type Single = components["schemas"]["JSONRPCResponseEnvelope"];
const call = (id: number, method: string): components["schemas"]["JSONRPCRequestEnvelope"] => ({
  jsonrpc: "2.0",
  id,
  method,
  params: [],
});

await check("liveness and readiness", async () => {
  equal(body(await anonymous.GET("/health")).status, "ok");
  equal(body(await anonymous.GET("/ready")).status, "ready");
});
await check("login providers", async () => {
  if (body(await anonymous.GET("/api/v1/auth/providers")).providers.length === 0) throw new Error("no provider");
});
await check("a login begins", async () => {
  const login = body(await anonymous.POST("/api/v1/auth/request"));
  if (login.session_id === "") throw new Error("no session");
});
await check("one call", async () => {
  const answer = body(await member.POST("/rpc", { body: call(1, "eth_chainId") }));
  if (Array.isArray(answer)) throw new Error("a batch");
  if (typeof answer.result !== "string") throw new Error(JSON.stringify(answer));
});
await check("a batch", async () => {
  const answer = body(await member.POST("/rpc", { body: [call(1, "eth_chainId"), call(2, "eth_blockNumber")] }));
  if (!Array.isArray(answer)) throw new Error("a single answer");
  equal(answer.map((one: Single) => one.id).join(), "1,2");
});
await check("one call in an organization", async () => {
  const answer = body(
    await member.POST("/rpc/{org_id}", { params: { path: { org_id } }, body: call(7, "eth_chainId") }),
  );
  equal(Array.isArray(answer) ? undefined : answer.id, 7);
});
await check("linking an address", async () => {
  const challenge = body(await member.POST("/api/v1/eth/link/challenge"));
  const signature = await account.signMessage({ message: challenge.message });
  body(
    await member.POST("/api/v1/eth/link/verify", {
      body: { nonce: challenge.nonce, signature, address: account.address },
    }),
  );
  const linked = body(await member.GET("/api/v1/eth/addresses")).addresses.map((link) => link.address.toLowerCase());
  if (!linked.includes(account.address.toLowerCase())) throw new Error(linked.join());
});
await check("my organizations, sessions and rights", async () => {
  const { organizations } = body(await member.GET("/api/v1/me/orgs"));
  if (!organizations.some((org) => org.id === org_id)) throw new Error(JSON.stringify(organizations));
  if (body(await member.GET("/api/v1/me/sessions")).total === 0) throw new Error("no session");
  equal(typeof body(await member.GET("/api/v1/me/admin-status")).is_admin, "boolean");
});
await check("a personal RPC URL", async () => {
  const made = body(await member.POST("/api/v1/me/rpc-urls", { body: { scope: "wallet" } }));
  const urls = body(await member.GET("/api/v1/me/rpc-urls")).rpc_urls;
  if (!urls.some((url) => url.id === made.id)) throw new Error(JSON.stringify(urls));
});
await check("refreshing tokens", async () => {
  const tokens = body(await anonymous.POST("/api/v1/refresh", { body: { refresh_token: need("GW_REFRESH") } }));
  if (tokens.access_token === "") throw new Error("no token");
});
await check("an error says its code", async () => {
  const { error, response } = await anonymous.GET("/api/v1/me/orgs");
  equal(response.status, 401);
  equal((error as components["schemas"]["APIError"] | undefined)?.code, "unauthorized");
});
await check("organizations", async () => {
  const answer = await admin.POST("/api/v1/admin/orgs", { body: { slug: "typed", name: "Typed" } });
  const made = body(answer);
  equal(answer.response.headers.get("location"), `/api/v1/admin/orgs/${made.id}`);
  const page = body(await admin.GET("/api/v1/admin/orgs", { params: { query: { limit: 100 } } }));
  if (!page.data.some((org) => org.id === made.id)) throw new Error("the new organization is not listed");
  const path = { org_id: made.id };
  body(await admin.PUT("/api/v1/admin/orgs/{org_id}", { params: { path }, body: { name: "Typed twice" } }));
  equal(body(await admin.GET("/api/v1/admin/orgs/{org_id}", { params: { path } })).name, "Typed twice");
});
await check("groups and their access", async () => {
  const path = { org_id };
  const group = body(
    await admin.POST("/api/v1/admin/orgs/{org_id}/groups", { params: { path }, body: { name: "Typed group", slug: "typed-group" } }),
  );
  const access = body(
    await admin.PUT("/api/v1/admin/orgs/{org_id}/groups/{group_id}/access", {
      params: { path: { org_id, group_id: group.id } },
      body: { allowed_methods: ["eth_call"] },
    }),
  );
  equal(access.allowed_methods.join(), "eth_call");
  const groups = body(await admin.GET("/api/v1/admin/orgs/{org_id}/groups", { params: { path } }));
  if (!groups.data.some((row) => row.group.id === group.id)) throw new Error("the new group is not listed");
});
await check("contracts, grants and their rules", async () => {
  const path = { org_id, address: need("GW_CONTRACT") };
  const contract = body(await admin.GET("/api/v1/admin/orgs/{org_id}/contracts/{address}", { params: { path } }));
  equal(contract.address.toLowerCase(), need("GW_CONTRACT").toLowerCase());
  const { data: groups } = body(
    await admin.GET("/api/v1/admin/orgs/{org_id}/groups", { params: { path: { org_id } } }),
  );
  const group = groups.find((row) => row.group.slug === "typed-group")?.group;
  if (!group) throw new Error("no group");
  const functions = [{ selector: "0xa9059cbb", param_rules: [{ index: 0, must_be: "self" }] }];
  const grant = body(
    await admin.POST("/api/v1/admin/orgs/{org_id}/contracts/{address}/grants", {
      params: { path },
      body: { group_id: group.id, functions, event_rules: "*" },
    }),
  );
  equal(grant.functions?.[0]?.selector, "0xa9059cbb");
});
await check("users and their memberships", async () => {
  const users = body(await admin.GET("/api/v1/admin/users"));
  const user = users.data[0];
  if (!user) throw new Error("no user");
  const params = { path: { user_id: user.id } };
  equal(body(await admin.GET("/api/v1/admin/users/{user_id}", { params })).id, user.id);
  if (!Array.isArray(body(await admin.GET("/api/v1/admin/users/{user_id}/memberships", { params })))) {
    throw new Error("no list");
  }
});
await check("the access log", async () => {
  const { data } = body(await admin.GET("/api/v1/admin/logs", { params: { query: { limit: 5 } } }));
  for (const row of data) equal(typeof row.id, "number");
});
await check("the audit log", async () => {
  const rows = body(await admin.GET("/api/v1/admin/audit-logs", { params: { query: { limit: 5 } } }));
  if (rows.length === 0) throw new Error("no entry");
});
await check("legal holds", async () => {
  equal(body(await admin.GET("/api/v1/admin/legal-holds")).data.length, 0);
});
await check("shared infrastructure", async () => {
  equal(body(await admin.GET("/api/v1/admin/shared-infrastructure")).data.length, 0);
});
await check("what a caller may do", async () => {
  const answer = body(
    await admin.POST("/api/v1/admin/access/check", { body: { method: "eth_getLogs", params: [{}] } }),
  );
  equal(answer.allowed, false);
});
await check("the state of the instance", async () => {
  equal(body(await admin.GET("/api/v1/admin/status")).node.status, "ok");
});

console.log(`${passed} passed, ${failed} failed`);
process.exit(failed === 0 && passed > 0 ? 0 : 1);
