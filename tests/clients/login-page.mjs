// The sign-in page in a real browser: what is shown, what happens on refusal and success, at both widths.
// GW_URL: the gateway, in development, with client `explorer`; SHOTS: a directory for pictures, if they are wanted.
import { createServer } from "node:http";
import { chromium } from "playwright-core";

const url = process.env.GW_URL;
const shots = process.env.SHOTS;

let passed = 0;
let failed = 0;
async function check(name, run) {
  try {
    await run();
    passed += 1;
    console.log(`ok   ${name}`);
  } catch (error) {
    failed += 1;
    console.log(`FAIL ${name}: ${error.stack ?? error}`);
  }
}
function is(found, expected, what) {
  if (found !== expected) throw new Error(`${what}: ${JSON.stringify(found)}, expected ${JSON.stringify(expected)}`);
}

// The application: notes what the browser brings.
const application = createServer((request, answer) => answer.end(`<title>Application</title>${request.url.length}`));
await new Promise((ready) => application.listen(0, "127.0.0.1", ready));
const callback = `http://127.0.0.1:${application.address().port}/callback`;

const browser = await chromium.launch({
  executablePath: process.env.CHROMIUM ?? "/usr/bin/chromium",
  args: ["--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking",
    "--disable-component-update", "--disable-sync"],
});

/** A page on which every complaint and every foreign request is a failure. */
async function open(path, options = {}) {
  const context = await browser.newContext({ viewport: { width: 1280, height: 900 }, ...options });
  const page = await context.newPage();
  const wrong = [];
  page.on("pageerror", (error) => wrong.push(String(error)));
  page.on("console", (line) => { if (line.type() === "error" && !/status of 40[0134]/.test(line.text())) wrong.push(line.text()); });
  page.on("request", (request) => {
    if (![url, new URL(callback).origin].some((own) => request.url().startsWith(own))) wrong.push(`foreign request ${request.url()}`);
  });
  await page.goto(`${url}${path}`);
  return { context, page, wrong };
}

const waiting = (page) => page.getByTestId("qr-code").waitFor({ state: "visible" });
const shoot = async (page, name) => { if (shots) await page.screenshot({ path: `${shots}/${name}.png`, fullPage: true }); };
const says = (page, text) => page.getByTestId("auth-status").filter({ hasText: text }).waitFor({ timeout: 15000 });

/** The request, as the QR code and the link carry it. */
async function request(page) {
  const link = await page.getByTestId("open-wallet").getAttribute("href");
  is(link.startsWith("iden3comm://?i_m="), true, "the link");
  return JSON.parse(Buffer.from(link.slice("iden3comm://?i_m=".length), "base64").toString());
}
const prove = async (page, proof) => fetch((await request(page)).body.callbackUrl, { method: "POST", body: proof });
const authorize = `/oauth/authorize?${new URLSearchParams({
  client_id: "explorer", redirect_uri: callback, response_type: "code", state: "browser state" })}`;

for (const [name, options] of [
  ["desktop", {}],
  ["phone", { viewport: { width: 360, height: 740 }, deviceScaleFactor: 2, isMobile: true, hasTouch: true }],
  ["desktop-dark", { colorScheme: "dark" }],
]) {
  await check(`${name}: shows code, check code and countdown, and fits`, async () => {
    const { context, page, wrong } = await open("/login", options);
    await waiting(page);
    const drawn = await page.getByTestId("qr-code").evaluate((image) => image.decode().then(() => image.naturalWidth));
    is(drawn > 0, true, "the QR code is drawn");
    const code = await page.getByTestId("check-code").textContent();
    is((await request(page)).body.reason.endsWith(`code ${code}`), true, "the check code");
    is(/^(10:00|9:5\d)$/.test(await page.getByTestId("countdown").textContent()), true, "the countdown");
    const wide = await page.evaluate(() => document.documentElement.scrollWidth > document.documentElement.clientWidth);
    is(wide, false, "scrolls sideways");
    await shoot(page, `${name}-waiting`);
    is(wrong.join(), "", "complaints");
    await context.close();
  });
}

await check("a refused proof is told in words, and the same code still works", async () => {
  const { context, page, wrong } = await open("/login");
  await waiting(page);
  is((await prove(page, "mock.")).status, 400, "the proof");
  await says(page, "could not read");
  is(await page.getByTestId("qr-section").isVisible(), true, "the code stays");
  await shoot(page, "desktop-refused");
  is((await prove(page, "mock.did:test:page")).status, 200, "the proof");
  await says(page, "You are signed in.");
  await page.getByTestId("copy-token").waitFor({ state: "visible" });
  is(await page.getByTestId("qr-section").isVisible(), false, "the code is gone");
  await shoot(page, "desktop-signed-in");
  const kept = await page.evaluate(() => JSON.stringify([localStorage, sessionStorage, document.cookie]));
  is(kept, '[{},{},""]', "what scripts could read");
  is(wrong.join(), "", "complaints");
  await context.close();
});

await check("an application's user goes on to it, and the next time without a scan", async () => {
  const { context, page, wrong } = await open(authorize, { viewport: { width: 360, height: 740 } });
  await waiting(page);
  is((await page.locator("#lead").textContent()).includes("explorer"), true, "names the application");
  await shoot(page, "phone-oauth");
  is((await prove(page, "mock.did:test:browser")).status, 200, "the proof");
  await page.getByTestId("continue").waitFor({ state: "visible", timeout: 15000 });
  is(await page.getByTestId("confirm-client").textContent(), "explorer", "the application, before going on");
  is(await page.getByTestId("confirm-did").textContent(), "did:test:browser", "who goes on");
  await shoot(page, "phone-oauth-confirm");
  await page.getByTestId("continue").click();
  await page.waitForURL(`${callback}**`, { timeout: 15000 });
  const brought = new URL(page.url()).searchParams;
  is(brought.get("state"), "browser state", "state");
  is(brought.get("code").length, 43, "code");
  await page.goto(`${url}${authorize}`);
  await page.getByTestId("continue").waitFor({ state: "visible", timeout: 15000 });
  is(await page.getByTestId("confirm-did").textContent(), "did:test:browser", "who goes on without a scan");
  await page.getByTestId("continue").click();
  await page.waitForURL(`${callback}**`, { timeout: 15000 });
  is(new URL(page.url()).searchParams.get("code") === brought.get("code"), false, "another code");
  is(wrong.join(), "", "complaints");
  await context.close();
});

await check("a link to a sign-in that somebody else began shows nothing to sign", async () => {
  const begun = await (await fetch(`${url}${authorize}`)).json();
  const { context, page } = await open(`/login?oauth_session=${begun.oauth_session_id}`);
  await says(page, "another browser");
  is(await page.getByTestId("qr-section").isVisible(), false, "no code");
  await context.close();
});

await check("an ended session says so", async () => {
  const { context, page } = await open(`/login?oauth_session=${"A".repeat(43)}`);
  await says(page, "has ended");
  is(await page.getByTestId("qr-section").isVisible(), false, "no code");
  await shoot(page, "desktop-ended");
  await context.close();
});

await check("works by keyboard, names its parts, and keeps out of frames", async () => {
  const { context, page } = await open("/login");
  await waiting(page);
  const order = [];
  for (let n = 0; n < 2; n += 1) {
    await page.keyboard.press("Tab");
    order.push(await page.evaluate(() => document.activeElement.dataset.testid));
  }
  is(order.join(), "open-wallet,copy-link", "the order of tabs");
  const outline = await page.evaluate(() => getComputedStyle(document.activeElement).outlineStyle);
  is(outline, "solid", "focus is seen");
  is(await page.getByRole("status").count(), 1, "one live region");
  is(await page.getByRole("heading", { name: "Sign in" }).count(), 1, "a heading");
  is((await page.getByRole("img").getAttribute("alt")).length > 20, true, "the picture's words");
  const answer = await fetch(`${url}/login`);
  const policy = answer.headers.get("content-security-policy");
  for (const part of ["frame-ancestors 'none'", "script-src 'self'", "default-src 'none'"]) is(policy.includes(part), true, part);
  await context.close();
});

await browser.close();
application.close();
console.log(`${passed} passed, ${failed} failed`);
process.exit(failed ? 1 : 0);
