// Ordinary calls of every area through a client that is generated from the API document, compiled with --strict.
//
// GW_URL: the gateway, with mock logins and personal RPC URLs; GW_TOKEN, GW_REFRESH: the tokens of a member; GW_ADMIN:
// ADMIN_API_TOKEN; GW_ORG_ADMIN: the token of an administrator of the member's organization; GW_PRIVATE_KEY: a key that
// no user has linked; GW_ORG: the member's organization; GW_CONTRACT: a contract of it; GW_DID: the member's DID.
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
const orgAdmin = createClient<paths>({ baseUrl, headers: { Authorization: `Bearer ${need("GW_ORG_ADMIN")}` } });
const org_id = need("GW_ORG");
const did = need("GW_DID");
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
await check("a completed login, introspected and revoked", async () => {
  const { session_id } = body(await anonymous.POST("/api/v1/auth/request"));
  const tokens = body(
    await anonymous.POST("/api/v1/auth/verify", { body: { jwz_token: `mock.${did}`, session_id } }),
  );
  const mine = createClient<paths>({ baseUrl, headers: { Authorization: `Bearer ${tokens.access_token}` } });
  if (!body(await mine.GET("/api/v1/me/orgs")).organizations.some((org) => org.id === org_id)) throw new Error("no organization");
  const introspect = async () =>
    body(
      await anonymous.POST("/api/v1/introspect", {
        body: `token=${tokens.access_token}`,
        headers: { "Content-Type": "application/x-www-form-urlencoded" },
        bodySerializer: (text: string) => text,
      }),
    );
  equal((await introspect()).sub, did);
  body(
    await anonymous.POST("/api/v1/revoke", {
      body: { refresh_token: tokens.refresh_token, access_token: tokens.access_token },
    }),
  );
  equal((await introspect()).active, false);
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
  const urls = body(await member.GET("/api/v1/me/rpc-urls")).data;
  if (!urls.some((url) => url.id === made.id)) throw new Error(JSON.stringify(urls));
});
await check("my invitations", async () => {
  equal(body(await member.GET("/api/v1/me/invitations")).total, 0);
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
await check("an error as problem details", async () => {
  const { error, response } = await anonymous.GET("/api/v1/me/orgs", { headers: { Accept: "application/problem+json" } });
  equal(response.headers.get("content-type"), "application/problem+json");
  equal((error as components["schemas"]["ProblemDetails"] | undefined)?.status, 401);
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
/** The member, as administrators know them. */
async function memberId(): Promise<string> {
  const { data } = body(await admin.GET("/api/v1/admin/users", { params: { query: { search: did } } }));
  const user = data.find((row) => row.external_id === did);
  if (!user) throw new Error(`no user ${did}`);
  return user.id;
}

await check("memberships by id and by DID", async () => {
  const { data: groups } = body(
    await admin.GET("/api/v1/admin/orgs/{org_id}/groups", { params: { path: { org_id } } }),
  );
  const group_id = groups.find((row) => row.group.slug === "typed-group")?.group.id;
  if (group_id === undefined) throw new Error("no group");
  const user_id = await memberId();
  const added = await admin.POST("/api/v1/admin/users/{user_id}/memberships", {
    params: { path: { user_id } },
    body: { group_id },
  });
  const membership = body(added);
  const location = `/api/v1/admin/users/${user_id}/memberships/${membership.id}`;
  equal(added.response.headers.get("location"), location);
  body(
    await admin.DELETE("/api/v1/admin/users/{user_id}/memberships/{membership_id}", {
      params: { path: { user_id, membership_id: membership.id } },
    }),
  );
  const path = { org_id };
  const byDid = { did: "did:test:typed", group_id };
  body(await orgAdmin.POST("/api/v1/admin/orgs/{org_id}/memberships/by-did", { params: { path }, body: byDid }));
  body(await orgAdmin.DELETE("/api/v1/admin/orgs/{org_id}/memberships/by-did", { params: { path }, body: byDid }));
});
await check("sessions and RPC URLs of a user", async () => {
  const params = { path: { user_id: await memberId() } };
  const sessions = body(await admin.GET("/api/v1/admin/users/{user_id}/sessions", { params }));
  equal(sessions.total, sessions.data.length);
  equal(typeof sessions.data[0]?.provider, "string");
  const urls = body(await admin.GET("/api/v1/admin/users/{user_id}/rpc-urls", { params }));
  equal(urls.data[0]?.scope, "wallet");
  body(
    await admin.DELETE("/api/v1/admin/users/{user_id}/rpc-urls/{id}", {
      params: { path: { ...params.path, id: urls.data[0]?.id ?? "" } },
    }),
  );
});
await check("linked addresses of a user", async () => {
  const user_id = await memberId();
  const { addresses } = body(
    await admin.GET("/api/v1/admin/users/{user_id}/linked-addresses", { params: { path: { user_id } } }),
  );
  if (!addresses.some((link) => link.address.toLowerCase() === account.address.toLowerCase())) {
    throw new Error(JSON.stringify(addresses));
  }
  body(
    await admin.DELETE("/api/v1/admin/users/{user_id}/linked-addresses/{address}", {
      params: { path: { user_id, address: account.address } },
      body: { reason: "the key was published" },
    }),
  );
  equal(body(await admin.GET("/api/v1/admin/eth-addresses/collisions")).count, 0);
});
await check("logins under way", async () => {
  body(await anonymous.POST("/api/v1/auth/request"));
  const { sessions, total } = body(await admin.GET("/api/v1/admin/sessions", { params: { query: { state: "pending" } } }));
  if (total === 0) throw new Error("no session");
  for (const session of sessions) {
    body(
      await admin.DELETE("/api/v1/admin/sessions/{session_id}", { params: { path: { session_id: session.id } } }),
    );
  }
});
await check("the access log, page by page", async () => {
  const page = async (cursor?: string) =>
    body(await admin.GET("/api/v1/admin/logs", { params: { query: cursor ? { limit: 5, cursor } : { limit: 5 } } }));
  const first = await page();
  for (const row of first.data) equal(typeof row.id, "number");
  if (!first.next_cursor) throw new Error("one page only");
  const second = await page(first.next_cursor);
  const ids = [...first.data, ...second.data].map((row) => row.id);
  equal(new Set(ids).size, 10);
});
await check("the audit log, as rows and as a page", async () => {
  const rows = await admin.GET("/api/v1/admin/audit-logs", { params: { query: { limit: 5 } } });
  const list = body(rows);
  if (!Array.isArray(list)) throw new Error("a page");
  equal(list.length, 5);
  const cursor = rows.response.headers.get("x-next-cursor");
  if (!cursor) throw new Error("one page only");
  const page = body(
    await admin.GET("/api/v1/admin/audit-logs", { params: { query: { limit: 5, envelope: "true", cursor } } }),
  );
  if (Array.isArray(page)) throw new Error("rows");
  equal(String(page.total), rows.response.headers.get("x-total-count") ?? "");
});
await check("legal holds", async () => {
  const placed = await admin.POST("/api/v1/admin/legal-holds", { body: { org_id, reason: "court order" } });
  const { id } = body(placed);
  equal(placed.response.headers.get("location"), `/api/v1/admin/legal-holds/${id}`);
  const params = { path: { id } };
  equal(body(await admin.GET("/api/v1/admin/legal-holds/{id}", { params })).reason, "court order");
  body(await admin.POST("/api/v1/admin/legal-holds/{id}/lift", { params, body: { reason: "closed" } }));
  equal(body(await admin.GET("/api/v1/admin/legal-holds")).data.length, 0);
});
await check("directory tenants", async () => {
  const body_ = { tenant_id: "72f988bf-86f1-41af-91ab-2d7cd011db47", label: "Typed" };
  const { id } = body(await admin.POST("/api/v1/admin/directory-tenants", { body: body_ }));
  const params = { path: { id } };
  body(await admin.PUT("/api/v1/admin/directory-tenants/{id}", { params, body: { disabled: true } }));
  equal(body(await admin.GET("/api/v1/admin/directory-tenants/{id}", { params })).disabled, true);
  body(await admin.DELETE("/api/v1/admin/directory-tenants/{id}", { params }));
});
await check("approved code", async () => {
  const { hash } = body(
    await admin.POST("/api/v1/admin/approved-code", { body: { name: "Typed", creation_code: "0x6080604052" } }),
  );
  equal(body(await admin.GET("/api/v1/admin/approved-code")).data[0]?.hash, hash);
  body(await admin.DELETE("/api/v1/admin/approved-code/{hash}", { params: { path: { hash } } }));
});
await check("mined transactions", async () => {
  equal(body(await admin.GET("/api/v1/admin/mined/convictions")).total, 0);
  equal(body(await admin.GET("/api/v1/admin/mined/suspensions")).total, 0);
  equal(body(await admin.GET("/api/v1/admin/mined/quarantines")).total, 0);
  const id = "99999999-9999-4999-8999-999999999999";
  const { error } = await admin.POST("/api/v1/admin/mined/convictions/{id}/clear", {
    params: { path: { id } },
    body: { reason: "checked" },
  });
  equal((error as components["schemas"]["APIError"] | undefined)?.code, "not_found");
});
await check("a dry-run, a test request and a call as a member", async () => {
  const rpc = { method: "eth_getBalance", params: [need("GW_CONTRACT"), "latest"] };
  const dryRun = await orgAdmin.POST("/api/v1/admin/orgs/{org_id}/dry-run", {
    params: { path: { org_id } },
    body: { user_did: did, rpc },
  });
  equal(body(dryRun).decision, "allowed");
  const seen = await orgAdmin.POST("/api/v1/admin/impersonate/{did}/in/{org_id}/rpc", {
    params: { path: { did, org_id } },
    body: rpc,
  });
  equal(body(seen).jsonrpc, "2.0");
  const tested = await admin.POST("/api/v1/admin/test-request", { body: { method: "eth_chainId", params: [] } });
  equal(typeof body(tested).latency_ms, "number");
  const rights = await admin.GET("/api/v1/admin/users/{user_id}/effective-permissions", {
    params: { path: { user_id: await memberId() }, query: { org: "meridian" } },
  });
  if (body(rights).allowed_methods.length === 0) throw new Error("no method");
});
await check("events, grants and the owner of a contract", async () => {
  const path = { org_id, address: need("GW_CONTRACT") };
  const events = await admin.GET("/api/v1/admin/orgs/{org_id}/contracts/{address}/events", { params: { path } });
  if (!body(events).events.some((event) => event.name === "Transfer")) throw new Error("no event");
  const grants = await admin.GET("/api/v1/admin/orgs/{org_id}/contracts/{address}/grants", { params: { path } });
  if (body(grants).length === 0) throw new Error("no grant");
  const found = await admin.GET("/api/v1/admin/contracts/by-address/{address}", { params: { path } });
  equal(body(found).organization.id, org_id);
});
await check("switches of the instance", async () => {
  equal(typeof body(await admin.GET("/api/v1/admin/system/eth-call-tracing")).enabled, "boolean");
  equal(typeof body(await admin.GET("/api/v1/admin/system/intra-org-grant-tracing")).enabled, "boolean");
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
