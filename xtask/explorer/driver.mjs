/** A browser with the explorer's page: opens it, waits for it, and measures from an input to paint. */
import { mkdirSync } from "node:fs";
import { createRequire } from "node:module";

// The packages are where the command that starts this is run.
const require = createRequire(`${process.cwd()}/`);
const { chromium } = require("playwright-core");
const axe = require.resolve("axe-core/axe.min.js");

/** What is wrong, in words. */
export const wrong = [];

/** Starts Chromium. @param {string} executablePath */
export const start = (executablePath) => chromium.launch({ executablePath, args: ["--no-sandbox"] });

/**
 * Runs in the page before its own scripts. Remembers when the page first said how the run ended, when the last input came, and when its answers were painted: right
 * after the first of six frames in which nothing waits, because an answer may lead to the next question.
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
 * Opens the page. Errors in its console, dialogs and requests to elsewhere are wrong.
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
  // For whoever changes the page: its files come from this folder, so that nothing has to be built.
  const folder = process.env.EXPLORER_ASSETS;
  if (folder) await page.route(/\.(js|css)$/, (route) => route.fulfill({ path: `${folder}/${route.request().url().split("/").pop()}` }));
  await page.goto(url + hash);
  await page.waitForSelector(until || hash ? until || "#main-view h1" : ".printed, .part-output .empty", { state: "attached", timeout: 600_000 });
  return page;
}

/** Waits until nothing has waited for six frames. Gives when the first of them was painted, by the page's clock. */
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

/** Times of each kind of click, in milliseconds. */
export class Times {
  /** @type {Map<string, number[]>} */
  kinds = new Map();

  /** Does something, and takes the time from its last input until the page is painted. */
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

/** A part of values from the least on: 0.5 is the median. @param {number[]} values @param {number} share */
export function quantile(values, share) {
  const sorted = [...values].sort((a, b) => a - b);
  return sorted[Math.min(sorted.length - 1, Math.ceil(sorted.length * share) - 1)];
}

const known = new Set();

/** Takes a picture, and looks for errors, for what is too wide, and for what axe-core finds serious. */
export async function look(page, folder, name) {
  mkdirSync(folder, { recursive: true });
  await settled(page);
  const failed = await page.locator(".failed").allInnerTexts();
  if (failed.length) wrong.push(`${name}: ${failed.join("; ")}`);
  const wide = await page.evaluate(() => document.documentElement.scrollWidth > innerWidth + 1);
  if (wide) wrong.push(`${name}: the page is wider than the window`);
  // What is wider than its box must wrap: a table that can only be scrolled hides its last column.
  const cut = await page.evaluate(() => [...document.querySelectorAll("main table.list")].filter((one) => one.offsetParent && one.getBoundingClientRect().right > one.parentElement.getBoundingClientRect().right + 1).map((one) => one.tHead?.textContent ?? one.textContent.slice(0, 60)));
  if (cut.length) wrong.push(`${name}: tables are wider than their boxes: ${cut.join("; ")}`);
  await page.screenshot({ path: `${folder}/${name}.png` });
  // The policy of the page allows no foreign script: axe-core is put in beside it.
  const found = await page.evaluate(() => window.axe.run(document, { resultTypes: ["violations"] }));
  for (const one of found.violations.filter((one) => ["serious", "critical"].includes(one.impact))) {
    const text = `${one.id}: ${one.help}: ${one.nodes.slice(0, 3).map((node) => node.target.join(" ")).join(", ")}`;
    if (!known.has(text)) wrong.push(`${name}: ${text}`);
    known.add(text);
  }
}

/** Says what is wrong, and ends. */
export function end() {
  if (wrong.length) {
    console.log(`\n${wrong.length} wrong:`);
    for (const one of new Set(wrong)) console.log(`  ${one}`);
    process.exit(1);
  }
  console.log("\nnothing is wrong");
}
