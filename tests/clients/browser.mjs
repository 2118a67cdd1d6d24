// What the scripts with a real browser share. CHROMIUM: the browser; SHOTS: a directory for pictures, if they are wanted.
import { chromium } from "playwright-core";

const shots = process.env.SHOTS;

export const launch = () =>
  chromium.launch({
    executablePath: process.env.CHROMIUM ?? "/usr/bin/chromium",
    args: ["--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking",
      "--disable-component-update", "--disable-sync"],
  });

/** A page whose complaints, and requests to other origins than `own`, are collected in `wrong`. */
export async function openPage(browser, own, options = {}) {
  const context = await browser.newContext({ viewport: { width: 1280, height: 900 }, ...options });
  const page = await context.newPage();
  const wrong = [];
  page.on("pageerror", (error) => wrong.push(String(error)));
  page.on("console", (line) => {
    if (line.type() === "error" && !/status of (40[0134]|503)/.test(line.text())) wrong.push(line.text());
  });
  page.on("request", (request) => {
    if (!own.some((origin) => request.url().startsWith(origin))) wrong.push(`foreign request ${request.url()}`);
  });
  return { context, page, wrong };
}

export const shoot = async (page, name) => {
  if (shots) await page.screenshot({ path: `${shots}/${name}.png`, fullPage: true });
};

/** Whether the page fits the width of its window. */
export const fitsWidth = (page) =>
  page.evaluate(() => document.documentElement.scrollWidth <= document.documentElement.clientWidth);
