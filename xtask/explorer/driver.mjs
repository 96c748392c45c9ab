/** Opens the explorer's page in a browser, waits for it, and measures the time from an input until the page is painted. */
import { mkdirSync } from "node:fs";
import { createRequire } from "node:module";

// The packages are in the current folder.
const require = createRequire(`${process.cwd()}/`);
const { chromium } = require("playwright-core");
const axe = require.resolve("axe-core/axe.min.js");

/** Descriptions of the faults found so far. */
export const wrong = [];

/** Starts Chromium. @param {string} executablePath */
export const start = (executablePath) => chromium.launch({ executablePath, args: ["--no-sandbox"] });

/**
 * Runs in the page before the page's own scripts. Stores when the page first showed how the run ended, when the last input came, and when the answers to it were
 * painted. The answers count as painted after the first of six consecutive frames in which nothing waits, because an answer may lead to another question.
 */
function remember() {
  const look = () => {
    if (document.querySelector(".part-ended .card")) window.usable = performance.now();
    else requestAnimationFrame(look);
  };
  requestAnimationFrame(look);
  const hear = (event) => {
    const begun = window.lastInput = event.timeStamp;
    window.lastPainted = 0;
    let [calm, painted] = [0, 0];
    const frame = () => {
      if (begun !== window.lastInput) return;
      if (window.afterimage?.busy() || document.querySelector(".loading, .waits")) calm = 0;
      else calm += 1;
      if (calm === 1) setTimeout(() => { painted = performance.now(); });
      if (calm > 6) window.lastPainted = painted;
      else requestAnimationFrame(frame);
    };
    requestAnimationFrame(frame);
  };
  for (const kind of ["pointerdown", "pointerup", "keydown", "hashchange"]) window.addEventListener(kind, hear, true);
}

/**
 * Opens the page. Errors in its console, dialogs, and requests to other addresses count as faults.
 * @param {any} browser @param {string} url
 */
export async function open(browser, url, { theme = "light", width = 1280, height = 800, hash = "", until = "" } = {}) {
  const context = await browser.newContext({ viewport: { width, height }, colorScheme: theme, permissions: ["clipboard-read", "clipboard-write"] });
  await context.addInitScript({ path: axe });
  await context.addInitScript(remember);
  const page = await context.newPage();
  page.on("console", (message) => { if (["error", "warning"].includes(message.type())) wrong.push(`${theme} ${width}: console: ${message.text()} ${message.location().url.replace(/.*\/api\//, "")}`); });
  page.on("pageerror", (error) => wrong.push(`${theme} ${width}: ${error.stack}`));
  page.on("dialog", (dialog) => { wrong.push(`a dialog was opened: ${dialog.message()}`); void dialog.dismiss(); });
  page.on("request", (request) => { if (!request.url().startsWith(url)) wrong.push(`something else is loaded: ${request.url()}`); });
  // A developer of the page can serve its files from this folder, so that nothing has to be built.
  const folder = process.env.EXPLORER_ASSETS;
  if (folder) await page.route(/\.(js|css)$/, (route) => route.fulfill({ path: `${folder}/${route.request().url().split("/").pop()}` }));
  await page.goto(url + hash);
  await page.waitForSelector(until || hash ? until || "#main-view h1" : ".printed, .part-output .empty", { state: "attached", timeout: 600_000 });
  return page;
}

/** Waits for six consecutive frames in which nothing waits. Returns the time at which the first of them was painted, by the page's clock. */
export async function settled(page) {
  return page.evaluate(() => new Promise((done) => {
    let [calm, painted] = [0, 0];
    const frame = () => {
      calm = window.afterimage?.busy() || document.querySelector(".loading, .waits") ? 0 : calm + 1;
      if (calm === 1) setTimeout(() => { painted = performance.now(); });
      if (calm > 6) done(painted);
      else requestAnimationFrame(frame);
    };
    requestAnimationFrame(frame);
  }));
}

/** The times of each kind of click, in milliseconds. */
export class Times {
  /** @type {Map<string, number[]>} */
  kinds = new Map();

  /** Performs an action, and measures the time from its last input until the page is painted. */
  async of(page, kind, act) {
    await act();
    await settled(page);
    const took = await page.evaluate(async () => {
      while (!window.lastPainted) await new Promise(requestAnimationFrame);
      return window.lastPainted - window.lastInput;
    });
    const kept = this.kinds.get(kind);
    if (kept) kept.push(took);
    else this.kinds.set(kind, [took]);
  }

  all() { return [...this.kinds.values()].flat(); }
}

/** Returns a quantile of values, such as the median for 0.5. @param {number[]} values @param {number} share */
export function quantile(values, share) {
  const sorted = [...values].sort((a, b) => a - b);
  return sorted[Math.min(sorted.length - 1, Math.ceil(sorted.length * share) - 1)];
}

const known = new Set();

/** Takes a picture, and looks for errors, for tables and pages that are too wide, and for serious findings of axe-core. */
export async function look(page, folder, name) {
  mkdirSync(folder, { recursive: true });
  await settled(page);
  const failed = await page.locator(".failed").allInnerTexts();
  if (failed.length) wrong.push(`${name}: ${failed.join("; ")}`);
  const wide = await page.evaluate(() => document.documentElement.scrollWidth > innerWidth + 1);
  if (wide) wrong.push(`${name}: the page is wider than the window`);
  // A table that is wider than its box hides its last column until it is scrolled, so its text must wrap.
  const cut = await page.evaluate(() => [...document.querySelectorAll("main table.list")].filter((one) => one.offsetParent && one.getBoundingClientRect().right > one.parentElement.getBoundingClientRect().right + 1).map((one) => one.tHead?.textContent ?? one.textContent.slice(0, 60)));
  if (cut.length) wrong.push(`${name}: tables are wider than their boxes: ${cut.join("; ")}`);
  await page.screenshot({ path: `${folder}/${name}.png` });
  // The page's policy allows no foreign scripts, so `open` adds axe-core before the page's own scripts.
  const found = await page.evaluate(() => window.axe.run(document, { resultTypes: ["violations"] }));
  for (const one of found.violations.filter((one) => ["serious", "critical"].includes(one.impact))) {
    const text = `${one.id}: ${one.help}: ${one.nodes.slice(0, 3).map((node) => node.target.join(" ")).join(", ")}`;
    if (!known.has(text)) wrong.push(`${name}: ${text}`);
    known.add(text);
  }
}

/** Prints the faults, and ends the process with an error if there are any. */
export function end() {
  if (wrong.length) {
    console.log(`\n${wrong.length} wrong:`);
    for (const one of new Set(wrong)) console.log(`  ${one}`);
    process.exit(1);
  }
  console.log("\nnothing is wrong");
}
