// The sign-in page in a real browser: what is shown, what happens on refusal and success, at both widths.
// GW_URL: the gateway, in development, with client `explorer`; SHOTS: a directory for pictures, if they are wanted.
import { createServer } from "node:http";
import { fitsWidth, launch, openPage, shoot } from "./browser.mjs";
import { check, equal, finish } from "./shared.mjs";

const url = process.env.GW_URL;

// The application: notes what the browser brings.
const application = createServer((request, answer) => answer.end(`<title>Application</title>${request.url.length}`));
await new Promise((ready) => application.listen(0, "127.0.0.1", ready));
const callback = `http://127.0.0.1:${application.address().port}/callback`;

const browser = await launch();

/** A page on which every complaint and every foreign request is a failure. */
async function open(path, options = {}) {
  const opened = await openPage(browser, [url, new URL(callback).origin], options);
  await opened.page.goto(`${url}${path}`);
  return opened;
}

const waiting = (page) => page.getByTestId("qr-code").waitFor({ state: "visible" });
const says = (page, text) => page.getByTestId("auth-status").filter({ hasText: text }).waitFor({ timeout: 15000 });

/** The request, as the QR code and the link carry it. */
async function request(page) {
  const link = await page.getByTestId("open-wallet").getAttribute("href");
  equal(link.startsWith("iden3comm://?i_m="), true, "the link");
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
    equal(drawn > 0, true, "the QR code is drawn");
    const code = await page.getByTestId("check-code").textContent();
    equal((await request(page)).body.reason.endsWith(`code ${code}`), true, "the check code");
    equal(/^(10:00|9:5\d)$/.test(await page.getByTestId("countdown").textContent()), true, "the countdown");
    equal(await fitsWidth(page), true, "fits the width");
    await shoot(page, `${name}-waiting`);
    equal(wrong.join(), "", "complaints");
    await context.close();
  });
}

await check("a refused proof is told in words, and the same code still works", async () => {
  const { context, page, wrong } = await open("/login");
  await waiting(page);
  equal((await prove(page, "mock.")).status, 400, "the proof");
  await says(page, "could not read");
  equal(await page.getByTestId("qr-section").isVisible(), true, "the code stays");
  await shoot(page, "desktop-refused");
  equal((await prove(page, "mock.did:test:page")).status, 200, "the proof");
  await says(page, "You are signed in.");
  await page.getByTestId("copy-token").waitFor({ state: "visible" });
  equal(await page.getByTestId("qr-section").isVisible(), false, "the code is gone");
  await shoot(page, "desktop-signed-in");
  const kept = await page.evaluate(() => JSON.stringify([localStorage, sessionStorage, document.cookie]));
  equal(kept, '[{},{},""]', "what scripts could read");
  equal(wrong.join(), "", "complaints");
  await context.close();
});

await check("an application's user goes on to it, and the next time without a scan", async () => {
  const { context, page, wrong } = await open(authorize, { viewport: { width: 360, height: 740 } });
  await waiting(page);
  equal((await page.locator("#lead").textContent()).includes("explorer"), true, "names the application");
  await shoot(page, "phone-oauth");
  equal((await prove(page, "mock.did:test:browser")).status, 200, "the proof");
  await page.getByTestId("continue").waitFor({ state: "visible", timeout: 15000 });
  equal(await page.getByTestId("confirm-client").textContent(), "explorer", "the application, before going on");
  equal(await page.getByTestId("confirm-did").textContent(), "did:test:browser", "who goes on");
  await shoot(page, "phone-oauth-confirm");
  await page.getByTestId("continue").click();
  await page.waitForURL(`${callback}**`, { timeout: 15000 });
  const brought = new URL(page.url()).searchParams;
  equal(brought.get("state"), "browser state", "state");
  equal(brought.get("code").length, 43, "code");
  await page.goto(`${url}${authorize}`);
  await page.getByTestId("continue").waitFor({ state: "visible", timeout: 15000 });
  equal(await page.getByTestId("confirm-did").textContent(), "did:test:browser", "who goes on without a scan");
  await page.getByTestId("continue").click();
  await page.waitForURL(`${callback}**`, { timeout: 15000 });
  equal(new URL(page.url()).searchParams.get("code") === brought.get("code"), false, "another code");
  equal(wrong.join(), "", "complaints");
  await context.close();
});

await check("a link to a sign-in that somebody else began shows nothing to sign", async () => {
  const begun = await (await fetch(`${url}${authorize}`)).json();
  const { context, page } = await open(`/login?oauth_session=${begun.oauth_session_id}`);
  await says(page, "another browser");
  equal(await page.getByTestId("qr-section").isVisible(), false, "no code");
  await context.close();
});

await check("an ended session says so", async () => {
  const { context, page } = await open(`/login?oauth_session=${"A".repeat(43)}`);
  await says(page, "has ended");
  equal(await page.getByTestId("qr-section").isVisible(), false, "no code");
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
  equal(order.join(), "open-wallet,copy-link", "the order of tabs");
  const outline = await page.evaluate(() => getComputedStyle(document.activeElement).outlineStyle);
  equal(outline, "solid", "focus is seen");
  equal(await page.getByRole("status").count(), 1, "one live region");
  equal(await page.getByRole("heading", { name: "Sign in" }).count(), 1, "a heading");
  equal((await page.getByRole("img").getAttribute("alt")).length > 20, true, "the picture's words");
  const answer = await fetch(`${url}/login`);
  const policy = answer.headers.get("content-security-policy");
  for (const part of ["frame-ancestors 'none'", "script-src 'self'", "default-src 'none'"]) equal(policy.includes(part), true, part);
  await context.close();
});

await browser.close();
application.close();
finish();
