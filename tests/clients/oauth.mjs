// The authorization code flow by a real client library: discovery, PKCE, both ways to authenticate, a code used twice,
// parallel refreshes. GW_URL: the gateway, in development, with the clients below; the mock login drives the wallet.
import * as oauth from "oauth4webapi";
import { check, equal, finish } from "./shared.mjs";

const url = process.env.GW_URL;
const redirect = "http://localhost:3000/callback";
const insecure = { [oauth.allowInsecureRequests]: true };

async function post(path, body, headers = {}) {
  return fetch(`${url}${path}`, {
    method: "POST",
    headers: { "content-type": "application/json", ...headers },
    body: JSON.stringify(body),
  });
}

const issuer = new URL(url);
const server = await oauth
  .discoveryRequest(issuer, { algorithm: "oauth2", ...insecure })
  .then((answer) => oauth.processDiscoveryResponse(issuer, answer));

/** From the authorization request to the callback's parameters, as a browser and a wallet bring them. */
async function authorize(client, { did = "did:test:oauth", pkce = true } = {}) {
  const verifier = oauth.generateRandomCodeVerifier();
  const state = oauth.generateRandomState();
  const to = new URL(server.authorization_endpoint);
  to.searchParams.set("client_id", client.client_id);
  to.searchParams.set("redirect_uri", redirect);
  to.searchParams.set("response_type", "code");
  to.searchParams.set("state", state);
  if (pkce) {
    to.searchParams.set("code_challenge", await oauth.calculatePKCECodeChallenge(verifier));
    to.searchParams.set("code_challenge_method", "S256");
  }
  const page = await fetch(to, { headers: { accept: "text/html" }, redirect: "manual" });
  equal(page.status, 302, "authorize");
  const id = new URL(page.headers.get("location"), url).searchParams.get("oauth_session");
  const cookie = page.headers.get("set-cookie").split(";")[0];

  equal((await fetch(`${url}/oauth/session/${id}/info`)).status, 403, "info in another browser");
  const info = await (await fetch(`${url}/oauth/session/${id}/info`, { headers: { cookie } })).json();
  const wallet = await fetch(info.auth_request.body.callbackUrl, { method: "POST", body: `mock.${did}` });
  equal(wallet.status, 200, "wallet callback");

  const status = await fetch(`${url}/oauth/session/${id}/status`, { headers: { cookie } });
  const done = await status.json();
  equal(done.completed, true, "completed");
  const parameters = oauth.validateAuthResponse(server, client, new URL(done.redirect_url), state);
  return { parameters, verifier: pkce ? verifier : oauth.nopkce, id, cookie };
}

async function exchange(client, method, { parameters, verifier }) {
  const answer = await oauth.authorizationCodeGrantRequest(server, client, method, parameters, redirect, verifier, insecure);
  return oauth.processAuthorizationCodeResponse(server, client, answer);
}

async function refused(run, error) {
  try {
    await run();
  } catch (cause) {
    equal(cause.error ?? cause.cause?.[0]?.scheme, error, "error");
    return;
  }
  throw new Error(`not refused, expected ${error}`);
}

const explorer = { client_id: "explorer" };
// Every character that form-encoding touches.
const secret = "s3cret +%/=&:é";
const methods = [
  ["client_secret_basic", oauth.ClientSecretBasic(secret)],
  ["client_secret_post", oauth.ClientSecretPost(secret)],
];

for (const [name, method] of methods) {
  for (const pkce of [true, false]) {
    await check(`${name}, ${pkce ? "with" : "without"} PKCE`, async () => {
      const tokens = await exchange(explorer, method, await authorize(explorer, { pkce }));
      const me = await fetch(`${url}/api/v1/me/orgs`, { headers: { authorization: `Bearer ${tokens.access_token}` } });
      equal(me.status, 200, "the access token");
    });
  }
  await check(`${name}, wrong secret`, async () => {
    const wrong = name === "client_secret_basic" ? oauth.ClientSecretBasic("wrong") : oauth.ClientSecretPost("wrong");
    const flow = await authorize(explorer);
    await refused(() => exchange(explorer, wrong, flow), "basic");
    await exchange(explorer, method, flow);
  });
}

const [, basic] = methods[0];

await check("a code used twice ends its tokens", async () => {
  const flow = await authorize(explorer);
  const tokens = await exchange(explorer, basic, flow);
  await refused(() => exchange(explorer, basic, flow), "invalid_grant");
  equal((await post("/refresh", { refresh_token: tokens.refresh_token })).status, 401, "refresh");
  const me = await fetch(`${url}/api/v1/me/orgs`, { headers: { authorization: `Bearer ${tokens.access_token}` } });
  equal(me.status, 401, "the access token");
});

await check("of parallel redemptions at most one succeeds", async () => {
  const flow = await authorize(explorer);
  const all = await Promise.allSettled(Array.from({ length: 8 }, () => exchange(explorer, basic, flow)));
  const won = all.filter((one) => one.status === "fulfilled").length;
  if (won > 1) throw new Error(`${won} succeeded`);
});

await check("a wrong verifier burns the code", async () => {
  const flow = await authorize(explorer);
  await refused(() => exchange(explorer, basic, { ...flow, verifier: oauth.generateRandomCodeVerifier() }), "invalid_grant");
  await refused(() => exchange(explorer, basic, flow), "invalid_grant");
});

await check("of parallel refreshes one succeeds", async () => {
  const tokens = await exchange(explorer, basic, await authorize(explorer));
  const all = await Promise.all(Array.from({ length: 10 }, () => post("/refresh", { refresh_token: tokens.refresh_token })));
  const statuses = all.map((answer) => answer.status).sort();
  equal(statuses.join(), ["200", ...Array(9).fill("401")].join(), "statuses");
});

await check("a second application logs in silently", async () => {
  const { id, cookie } = await authorize(explorer, { did: "did:test:silent" });
  const answer = await fetch(`${url}/oauth/session/${id}/status`, { headers: { cookie } });
  const access = answer.headers.get("set-cookie").split(";")[0];
  const to = new URL(server.authorization_endpoint);
  to.search = new URLSearchParams({ client_id: "reports", redirect_uri: redirect, response_type: "code", state: "s" });
  const opened = await fetch(to, { headers: { cookie: access } });
  const secret = { "x-login-secret": opened.headers.get("x-login-secret") };
  const next = await opened.json();
  const path = `/oauth/session/${next.oauth_session_id}/silent-complete`;
  equal((await post(path, {}, secret)).status, 401, "nobody");
  equal((await post(path, {}, { ...secret, cookie: access, origin: "https://evil.example" })).status, 403, "a foreign page");
  equal((await post(path, {}, { cookie: access, origin: url })).status, 403, "another browser");
  const done = await post(path, {}, { ...secret, cookie: access, origin: url });
  equal(done.status, 200, "silent");
  const reports = { client_id: "reports" };
  const parameters = oauth.validateAuthResponse(server, reports, new URL((await done.json()).redirect_url), "s");
  await exchange(reports, oauth.ClientSecretPost("another secret"), { parameters, verifier: oauth.nopkce });
});

finish();
