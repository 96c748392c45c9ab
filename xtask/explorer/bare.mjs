/**
 * Opens the page of a recording that contains only its log, and prints when each part had its first answer, as rows of a Markdown table. Nothing is built
 * beforehand. Each question builds the data that it needs, without delaying other questions.
 *
 *     node bare.mjs URL CHROMIUM STARTED
 *
 * STARTED is the time in milliseconds that the server took to print its address.
 */
import { end, open, settled, start, wrong } from "./driver.mjs";

const [url, executablePath, started] = process.argv.slice(2);
const browser = await start(executablePath);
const rows = [];
const row = (what, ms) => rows.push(`| ${what} | ${(ms / 1000).toFixed(1)} s |`);

/** Waits for an element in a part of the page, and returns the time at which it appeared, by the page's clock. A failure to answer counts as a fault. */
async function seen(page, part, what) {
  const failures = `${part} .failed`;
  await page.waitForSelector(`${part} ${what}, ${failures}`, { timeout: 600_000 });
  const failed = await page.locator(failures).allInnerTexts();
  if (failed.length) wrong.push(`${part} ${what}: ${failed.join("; ").replaceAll("\n", " ")}`);
  return page.evaluate(() => performance.now());
}

const page = await open(browser, url, { until: ".part-ended .card" });
row("the address is printed", Number(started));
row("page usable: how the run ended", await page.evaluate(() => window.usable));

/** Goes to an address of the page, and measures the time until an element appears. */
async function first(kind, where, part, what) {
  const begun = await page.evaluate((where) => { location.hash = where; return performance.now(); }, where);
  row(kind, (await seen(page, part, what)) - begun);
}
// The timeline needs the whole path. The state needs only a part of the run.
await page.evaluate(() => { location.hash = "#view=timeline"; });
await first("state at the middle, while the path is made", "#view=timeline&at=50%25", "body", "#moment:not(.waits) strong");
await first("state at another moment", "#view=timeline&at=60%25", "body", "#moment:not(.waits) strong");
if (await page.locator("#dock .variables .value .link").count()) {
  const begun = await page.evaluate(() => performance.now());
  await page.locator("#dock .variables .value .link").first().click();
  row("why a variable has its value", (await seen(page, "#main-view", ".chain .step, #main-view .why .empty")) - begun);
}
await first("source with counts", "#view=source&at=60%25", "#main-view", ".row .count");
await first("timeline of the whole run", "#view=timeline&at=60%25", "#main-view", ".timeline .answered");
await first("flame graph", "#view=overview&at=60%25", ".part-graph", "canvas");
await first("output", "#view=overview&at=60%25", ".part-output", ".printed");
await settled(page);
await browser.close();
console.log("| from | first answer |\n|---|--:|");
for (const one of rows) console.log(one);
end();
