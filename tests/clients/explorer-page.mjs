// The pages of the explorer's backend in a real browser: sign-in at the gateway, what is shown, view-as, sign-out.
// GW_URL: the gateway, in development; EXPLORER_URL: the backend, with sign-in; ADMIN and MEMBER: the DIDs of an
// administrator and a member of the organization ORG; SHOTS: a directory for pictures.
import { fitsWidth, launch, openPage, shoot } from "./browser.mjs";
import { check, equal, finish, need } from "./shared.mjs";

const gateway = need("GW_URL");
const explorer = need("EXPLORER_URL");
const [admin, member, org] = ["ADMIN", "MEMBER", "ORG"].map(need);
const PHONE = { viewport: { width: 390, height: 844 }, isMobile: true, hasTouch: true };

const browser = await launch();

/** A page on which every complaint and every foreign request is a failure. */
async function open(transactions, options = {}, path = "/") {
  const opened = await openPage(browser, [gateway, explorer], options);
  if (transactions !== undefined) {
    await opened.page.route("**/api/transactions*", (route) => route.fulfill({ json: transactions }));
  }
  await opened.page.goto(`${explorer}${path}`);
  return opened;
}

const session = (page, text) => page.getByTestId("session").filter({ hasText: text }).waitFor({ timeout: 30000 });
const says = (page, text) => page.getByTestId("message").filter({ hasText: text }).waitFor({ timeout: 30000 });
const rows = (page) => page.getByTestId("transactions").locator("tbody tr");
const banner = (page) => page.getByTestId("impersonation-banner");

/** Pictures at the width of a desktop and of a phone, on which nothing may be cut off. */
async function look(page, name) {
  const size = page.viewportSize();
  for (const [width, height] of [[1280, 900], [390, 844]]) {
    await page.setViewportSize({ width, height });
    await shoot(page, `${name}-${width}`);
    equal(await fitsWidth(page), true, `${name} fits ${width} pixels`);
  }
  await page.setViewportSize(size);
}

/** Proves the login of the gateway's sign-in page, as a wallet does. */
async function prove(page, did) {
  await page.getByTestId("qr-code").waitFor({ state: "visible", timeout: 30000 });
  const link = await page.getByTestId("open-wallet").getAttribute("href");
  const request = JSON.parse(Buffer.from(link.slice("iden3comm://?i_m=".length), "base64").toString());
  equal((await fetch(request.body.callbackUrl, { method: "POST", body: `mock.${did}` })).status, 200, "the proof");
}

async function signIn(page, did) {
  await session(page, "Not signed in");
  await page.getByTestId("sign-in").click();
  await prove(page, did);
  await page.getByTestId("continue").click();
  await session(page, `Signed in as ${did}`);
}

const cookieNames = async (context) => (await context.cookies(explorer)).map(({ name }) => name).sort().join();

await check("a user signs in, is named, and signs out", async () => {
  const { context, page, wrong } = await open();
  await session(page, "Not signed in");
  await look(page, "explorer-visitor");
  equal(await page.getByTestId("log-out").isVisible(), false, "log out");
  equal(await page.getByTestId("view-as-link").isVisible(), false, "view as");
  equal(await banner(page).isVisible(), false, "the banner");
  await signIn(page, "did:test:browser");
  equal(page.url(), `${explorer}/`, "the address after the sign-in");
  equal(await page.getByTestId("sign-in").isVisible(), false, "sign in");
  const cookies = await context.cookies(explorer);
  equal(await cookieNames(context), "explorer_auth,explorer_refresh", "cookies");
  for (const { name, httpOnly, secure, sameSite, path } of cookies) {
    equal(JSON.stringify({ httpOnly, secure, sameSite, path }),
      JSON.stringify({ httpOnly: true, secure: true, sameSite: "Lax", path: "/" }), name);
  }
  equal(await page.evaluate(() => document.cookie), "", "cookies that scripts see");
  equal(await page.evaluate(() => localStorage.length + sessionStorage.length), 0, "stored values");
  await page.getByTestId("log-out").click();
  await session(page, "Not signed in");
  equal((await context.cookies(explorer)).length, 0, "cookies after the sign-out");
  await page.reload();
  await session(page, "Not signed in");
  equal(wrong.join(), "", "complaints");
  await context.close();
});

await check("an administrator views as a member, returns, and signs out", async () => {
  const { context, page, wrong } = await open();
  await signIn(page, admin);
  await rows(page).first().waitFor({ timeout: 60000 });
  const own = await rows(page).allTextContents();
  await look(page, "explorer-list");

  // A link fills in the form, and sends nothing.
  await page.goto(`${explorer}/view-as?did=${encodeURIComponent(member)}&org_id=${org}`);
  await page.getByTestId("view-as-form").waitFor();
  equal(await page.getByTestId("view-as-did").inputValue(), member, "the member");
  equal(await page.getByTestId("view-as-org").inputValue(), org, "the organization");
  equal(await banner(page).isVisible(), false, "the banner before the click");
  await look(page, "explorer-view-as");
  await page.getByTestId("view-as-did").fill("did:test:nobody");
  await page.getByTestId("view-as-begin").click();
  await says(page, "user not found");
  await look(page, "explorer-view-as-refused");
  equal(await cookieNames(context), "explorer_auth,explorer_refresh", "cookies of a refused choice");

  await page.getByTestId("view-as-did").fill(member);
  const answered = page.waitForResponse((answer) => answer.url().includes("/api/transactions"));
  await page.getByTestId("view-as-begin").click();
  equal((await answered).headers()["x-view-as"], member, "whose view the list is");
  await banner(page).waitFor();
  equal((await banner(page).textContent()).includes(member), true, "the banner names the member");
  await session(page, `Signed in as ${admin}`);
  await rows(page).first().waitFor();
  const shown = await rows(page).allTextContents();
  equal(shown.length > 0 && shown.length <= own.length, true, "the list is contained in the administrator's own");
  await look(page, "explorer-viewing");
  // The choice outlives the page, and nothing of it is readable for scripts.
  await page.reload();
  await banner(page).waitFor();
  equal(await page.evaluate(() => document.cookie), "", "cookies that scripts see");
  const changed = await page.evaluate(() => fetch("api/eth/link/challenge", { method: "POST" }).then(({ status }) => status));
  equal(changed, 403, "a change while viewing");
  await page.goto(`${explorer}/view-as`);
  await says(page, "Return to your own view");
  await look(page, "explorer-view-as-active");
  await page.getByTestId("banner-exit").click();
  await page.getByTestId("view-as-form").waitFor();
  equal(await banner(page).isVisible(), false, "the banner after the exit");
  await page.goto(explorer);
  await rows(page).first().waitFor();
  equal((await rows(page).allTextContents()).join(), own.join(), "the own list");

  // The sign-out ends the choice, too.
  await page.goto(`${explorer}/view-as?did=${member}&org_id=${org}`);
  await page.getByTestId("view-as-begin").click();
  await banner(page).waitFor();
  await page.getByTestId("log-out").click();
  await session(page, "Not signed in");
  equal(await banner(page).isVisible(), false, "the banner after the sign-out");
  equal((await context.cookies(explorer)).length, 0, "cookies after the sign-out");
  equal(wrong.join(), "", "complaints");
  await context.close();
});

await check("a tab whose view another tab changed tells it", async () => {
  const { context, page } = await open();
  await signIn(page, admin);
  const other = await context.newPage();
  await other.goto(`${explorer}/view-as?did=${member}&org_id=${org}`);
  // The choice is made after this tab has read the session, and before it reads the list.
  await page.route("**/api/transactions*", async (route) => {
    await other.getByTestId("view-as-begin").click();
    await banner(other).waitFor();
    await route.continue();
  }, { times: 1 });
  await page.reload();
  await banner(page).waitFor({ timeout: 30000 });
  await context.close();
});

await check("a link to a sign-in that is over says so", async () => {
  const { context, page } = await open(undefined, {}, "/api/auth/callback?code=x&state=x");
  await page.getByTestId("error").waitFor();
  await look(page, "explorer-error");
  await context.close();
});

await check("hidden values read Private, and text from the chain is no markup", async () => {
  const hash = `0x${"ab".repeat(32)}`;
  const { context, page, wrong } = await open({
    data: [
      { hash, blockNumber: 7, from: "[PRIVATE]", to: "0x00000000000000000000000000000000000000aa", value: "" },
      { hash: "<img src=x onerror=alert(1)>", blockNumber: 6, from: "x", to: null, value: "1000000000000000000" },
    ],
    total: 2,
  });
  await rows(page).first().waitFor();
  equal(await rows(page).count(), 2, "rows");
  const cells = rows(page).nth(0).locator("td");
  equal((await cells.allTextContents()).join("|"), "0xabababab…ababab|7|Private|0x00000000…0000aa|Private", "a row");
  equal((await rows(page).nth(1).locator("td").allTextContents()).at(3), "–", "a creation has no recipient");
  equal(await cells.first().getAttribute("title"), hash, "the whole hash");
  equal(await page.locator("img").count(), 0, "images");
  equal((await page.content()).includes("[PRIVATE]"), false, "the placeholder in the page");
  await look(page, "explorer-transactions");
  equal(wrong.join(), "", "complaints");
  await context.close();
});

for (const colorScheme of ["light", "dark"]) {
  await check(`a phone shows the page without scrolling sideways, ${colorScheme}`, async () => {
    const { context, page } = await open({ data: [], total: 0 }, { ...PHONE, colorScheme });
    await says(page, "no transactions");
    equal(await fitsWidth(page), true, "fits the width");
    await shoot(page, `explorer-phone-${colorScheme}`);
    await context.close();
  });
}

await check("works by keyboard, and keeps out of frames", async () => {
  const { context, page } = await open({ data: [], total: 0 });
  await session(page, "Not signed in");
  const order = [];
  for (let n = 0; n < 2; n += 1) {
    await page.keyboard.press("Tab");
    order.push(await page.evaluate(() => document.activeElement.dataset.testid ?? document.activeElement.textContent));
  }
  equal(order.join(), "Explorer,sign-in", "the order of tabs");
  const outline = await page.evaluate(() => getComputedStyle(document.activeElement).outlineStyle);
  equal(outline, "solid", "focus is seen");
  for (const path of ["/", "/view-as"]) {
    const policy = (await fetch(`${explorer}${path}`)).headers.get("content-security-policy");
    for (const part of ["frame-ancestors 'none'", "script-src 'self'", "default-src 'none'"]) {
      equal(policy.includes(part), true, `${path}: ${part}`);
    }
  }
  await context.close();
});

await browser.close();
finish();
