/**
 * Clicks through all views at random moments of a run, and prints the times from an input until the page is painted, as rows of a Markdown table. No click
 * is repeated, because the server and the page keep their answers.
 *
 *     node measure.mjs URL CHROMIUM ROUNDS
 */
import { Times, open, quantile, settled, start, wrong } from "./driver.mjs";

const [url, executablePath, rounds] = process.argv.slice(2);
const browser = await start(executablePath);
const page = await open(browser, url);
const complete = await settled(page);
const usable = await page.evaluate(() => window.usable);
const times = new Times();

/** The seed of the pseudorandom numbers, which are the same in each run of this script. */
let seed = 20_260_101;
const random = (below) => {
  seed = (Math.imul(seed, 1_103_515_245) + 12_345) >>> 0;
  return Math.floor(((seed >>> 8) / 2 ** 24) * below);
};
const timed = (kind, act) => times.of(page, kind, act);
const hash = (change) => page.evaluate((change) => { location.hash = new URLSearchParams({ ...Object.fromEntries(new URLSearchParams(location.hash.slice(1))), ...change }).toString(); }, change);
const nav = (view) => page.locator(`#nav a[href*="view=${view}"]`).click();
const press = (key) => () => page.keyboard.press(key);
const has = (what) => page.locator(what).count();

/** The executed lines of the user's own code, and the executed functions. */
const [lines, functions] = await page.evaluate(async () => {
  const ask = async (question) => (await fetch(`api/${question}`)).json();
  const own = (await ask("files")).files.filter((file) => !file.library && file.executed).slice(0, 12);
  const sources = await Promise.all(own.map((file) => ask(`source?file=${encodeURIComponent(file.file)}`)));
  const lines = sources.flatMap((source) => source.lines.filter((line) => line.count).map((line) => ({ place: `${source.name}:${line.line}`, count: line.count })));
  const rows = (await ask("profile?sort=instructions&code=mine")).rows.filter((row) => row.entries);
  return [lines, rows.slice(0, 60).map((row) => `func[${row.function.index}]`)];
});

for (let round = 0; round < Number(rounds); round += 1) {
  await timed("Overview: open", () => nav("overview"));
  if (await has(".printed [data-unit]")) {
    const bytes = page.locator(".printed [data-unit]");
    await bytes.nth(random(Math.min(200, await bytes.count()))).click();
    await settled(page);
    if (await has(".chosen button")) await timed("Why: a printed byte", () => page.locator(".chosen button", { hasText: "Why?" }).click());
  }
  const line = lines[random(lines.length)];
  await timed("Search: as you type", async () => {
    await page.keyboard.press("/");
    await page.keyboard.type(`${line.place}#${1 + random(line.count)}`);
  });
  await page.waitForSelector(".search li");
  await page.keyboard.press("Escape");
  await hash({ view: "source" });
  await settled(page);
  await timed("Source: go to a moment", () => hash({ view: "source", at: `${line.place}#${1 + random(line.count)}`, file: "", line: "" }));
  for (const key of ["n", "s", "N", "S", "f", "n", "F"]) await timed("Step: by line, into, over and out", press(key));
  // A user looks at the page before the next step. Meanwhile, the page asks in advance about the next moments.
  for (const key of ["n", "n", "n", "N", "N", "s"]) {
    await page.waitForTimeout(400);
    await timed("Step: by line, 0.4 s after the last", press(key));
  }
  for (const key of ["c", "C"]) await timed("Step: next and previous execution", press(key));
  const value = page.locator(".variables tr:has(button.link)");
  const variables = await value.count();
  const first = random(Math.max(1, variables));
  const here = await page.evaluate(() => location.hash);
  for (let other = 0; other < Math.min(6, variables); other += 1) {
    const last = value.nth((first + other) % variables).locator(".acts button").first();
    // A person points at the button before the click, and the page asks ahead meanwhile.
    const points = (round + other) % 2 === 1;
    if (points) {
      await last.hover();
      await page.waitForTimeout(100);
    }
    await timed(`Step: last write of a variable${points ? ", pointed at for 0.1 s" : ""}`, () => last.click());
    await page.evaluate((here) => { location.hash = here; }, here);
    await settled(page);
  }
  // The steps often lead to the same callers, so ask at another moment.
  const other = lines[random(lines.length)];
  await hash({ view: "source", at: `${other.place}#${1 + random(other.count)}`, file: "", line: "", about: "", frame: "" });
  await settled(page);
  if (await has(".variables button.link")) {
    await timed("Why: a variable", () => page.locator(".variables button.link").first().click());
    if (await has(".choice button:text-is('History')")) await timed("Why: history of a variable", () => page.locator(".choice button", { hasText: "History" }).click());
    await timed("Why: next uses of a value", () => page.locator(".choice button", { hasText: "Uses" }).click());
    await page.locator(".choice button", { hasText: "Origin" }).click();
    await settled(page);
    const steps = page.locator(".chain .place");
    const many = await steps.count();
    if (many) await timed("Source: from a step of why", () => steps.nth(random(many)).click());
  }
  await hash({ view: "source" });
  await settled(page);
  if (await has(".row.never .whynot")) await timed("Why: not", () => page.locator(".row.never .whynot").first().click());
  await timed("State: memory", () => page.locator("#dock .choice button", { hasText: "Memory" }).click());
  await page.locator("#dock .choice button", { hasText: "Variables" }).click();
  await timed("Timeline: open", () => nav("timeline"));
  const box = await page.locator(".tracks canvas").boundingBox();
  const [from, wide] = [random(80) / 100, (1 + random(19)) / 100];
  await page.mouse.move(box.x + box.width * from, box.y + 60);
  await page.mouse.down();
  await page.mouse.move(box.x + box.width * (from + wide), box.y + 60, { steps: 3 });
  await timed("Timeline: counts of a range", () => page.mouse.up());
  await timed("Timeline: zoom to a range", () => page.locator(".timeline button", { hasText: "Zoom to range" }).click());
  await page.locator(".timeline button", { hasText: "Whole run" }).click();
  await settled(page);
  await timed("Source: counts of a range", () => nav("source"));
  await page.locator(".under > button").click();
  await settled(page);
  await timed("Function: control flow", () => hash({ view: "function", fn: functions[random(functions.length)], call: "" }));
  for (const part of ["Paths", "Calls", "Control flow"]) {
    const button = page.locator(".title .choice button", { hasText: part });
    if (await button.count()) await timed(`Function: ${part.toLowerCase()}`, () => button.click());
  }
}

console.log("| click | median | p95 | of |\n|---|--:|--:|--:|");
const row = (kind, values) => console.log(`| ${kind} | ${quantile(values, 0.5).toFixed(0)} ms | ${quantile(values, 0.95).toFixed(0)} ms | ${values.length} |`);
for (const [kind, values] of [...times.kinds].sort(([a], [b]) => (a < b ? -1 : 1))) row(kind, values);
row("**all**", times.all());
console.log(`\nafter the address was opened, the page was usable in ${usable.toFixed(0)} ms, and complete in ${complete.toFixed(0)} ms`);
await browser.close();
if (wrong.length) {
  console.log(`\n${wrong.length} wrong:\n  ${[...new Set(wrong)].join("\n  ")}`);
  process.exit(1);
}
