/**
 * Opens the page of a recording that holds nothing but its log, and prints when each part had its first answer, as rows of a Markdown table. Nothing is built
 * beforehand: each question builds what it needs, and the others go on meanwhile.
 *
 *     node bare.mjs URL CHROMIUM STARTED
 *
 * STARTED is how long the server took to print its address, in milliseconds.
 */
import { end, open, settled, start } from "./driver.mjs";

const [url, executablePath, started] = process.argv.slice(2);
const browser = await start(executablePath);
const rows = [];
const row = (what, ms) => rows.push(`| ${what} | ${(ms / 1000).toFixed(1)} s |`);

/** Waits for an element, and gives when it came by the page's clock. A failure to answer is shown as it is. */
async function seen(page, what) {
  await page.waitForSelector(`${what}, .failed`, { timeout: 600_000 });
  const failed = await page.locator(".failed").allInnerTexts();
  if (failed.length) console.log(`${what}: ${failed.join("; ").replaceAll("\n", " ")}`);
  return page.evaluate(() => performance.now());
}

const page = await open(browser, url, { until: ".part-ended .card" });
row("the address is printed", Number(started));
row("page usable: how the run ended", await page.evaluate(() => window.usable));

/** Goes somewhere, and takes the time until an element is there. */
async function first(kind, hash, what) {
  const begun = await page.evaluate((hash) => { location.hash = hash; return performance.now(); }, hash);
  row(kind, (await seen(page, what)) - begun);
}
// While the path is made for the timeline, the state needs only a part of the run.
await page.evaluate(() => { location.hash = "#view=timeline"; });
await first("state at the middle, while the path is made", "#view=timeline&at=50%25", "#dock .frame");
await first("the same a little later", "#view=timeline&at=60%25", "#dock .frame");
await first("why the value there", "#view=why&at=60%25&about=value", ".chain .step, .why .empty");
await first("source with counts", "#view=source&at=60%25", ".row .count, .wat-row");
await first("timeline: calls of the whole run", "#view=timeline&at=60%25", ".timeline .answered");
await first("flame graph", "#view=overview&at=60%25", ".part-graph canvas");
await settled(page);
await browser.close();
console.log("| from | first answer |\n|---|--:|");
for (const one of rows) console.log(one);
end();
