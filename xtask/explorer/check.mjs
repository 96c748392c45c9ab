/**
 * Opens each view of the explorer's page in a browser, clicks through it, and says what is wrong: errors in the console, what axe-core finds serious, text that became
 * markup. Prints how long clicks take until the page is painted again.
 *
 *     node check.mjs URL CHROMIUM FOLDER_FOR_PICTURES
 */
import { Times, end, look as look_, open as open_, quantile, settled, start, wrong } from "./driver.mjs";

const [url, executablePath, pictures] = process.argv.slice(2);
const browser = await start(executablePath);
const times = new Times();
const timed = (page, what, act) => times.of(page, what, act);
const look = (page, name) => look_(page, pictures, name);
const open = (theme, width, height) => open_(browser, url, { theme, width, height });

/** All views, as somebody clicks through them. */
async function walk(theme, width, height) {
  const page = await open(theme, width, height);
  const name = (what) => `${what}-${theme}-${width}`;
  const nav = (what) => page.locator(`#nav a[href*="view=${what}"]`).click();
  await look(page, name("overview"));
  if (await page.evaluate(() => document.querySelectorAll(".printed img, .printed script, table img").length)) wrong.push("text of the program became markup");

  // From a byte of the output to where it came from, and on to the source.
  await page.locator(".printed .line", { hasText: "total" }).first().locator("[data-unit]").nth(8).click();
  await timed(page, "why of a printed byte", () => page.locator(".chosen button", { hasText: "Why?" }).click());
  await look(page, name("why-output"));
  // What the chain does not follow can be followed.
  await timed(page, "an operand", () => page.locator("button.operand").first().click());
  await look(page, name("operand"));
  await page.goBack();
  await settled(page);
  await timed(page, "a step of why", () => page.locator(".chain .place").first().click());
  await look(page, name("source"));

  // A line, its executions, steps from one to the next.
  await timed(page, "search", async () => {
    await page.keyboard.press("/");
    await page.keyboard.type("bank.rs:25#9");
    await page.waitForSelector(".search li");
    await page.keyboard.press("Enter");
  });
  await settled(page);
  for (const key of ["n", "n", "s", "N", "S", "f", "c", "c", "C", "F"]) await timed(page, `key ${key}`, () => page.keyboard.press(key));
  await look(page, name("moves"));
  await page.locator("#moment strong").waitFor();

  // A value beside the source: where it came from, what it held, who used it.
  await timed(page, "go to a moment", () => page.evaluate(() => { location.hash = "#view=source&at=bank.rs%3A25%2311"; }));
  await page.waitForSelector(".row.here");
  await timed(page, "why of a variable", () => page.locator(".variables .value button").last().click());
  await look(page, name("why-variable"));
  await timed(page, "history", () => page.locator(".choice button", { hasText: "History" }).click());
  await look(page, name("history"));
  await page.locator(".choice button", { hasText: "Table" }).click();
  await timed(page, "uses", () => page.locator(".choice button", { hasText: "Uses" }).click());
  await look(page, name("uses"));
  await page.locator(".choice button", { hasText: "Origin" }).click();
  await settled(page);

  // Why a line did not run.
  await nav("source");
  await settled(page);
  await page.evaluate(() => { location.hash = `${location.hash}&file=${encodeURIComponent([...document.querySelectorAll("[data-file]")].find((one) => one.dataset.file.endsWith("bank.rs")).dataset.file)}&line=29`; });
  await page.locator(".row.never .whynot").first().waitFor();
  await timed(page, "why not", () => page.locator(".row.never .whynot").first().click());
  await look(page, name("why-not"));

  // Instructions instead of source.
  await nav("source");
  await settled(page);
  await timed(page, "instructions", () => page.locator("button", { hasText: "Instructions" }).click());
  await page.waitForSelector(".wat-row.here");
  await look(page, name("instructions"));
  await page.locator(".title button", { hasText: "Source" }).click();

  // Memory, and who wrote it.
  await nav("source");
  await settled(page);
  await timed(page, "memory", () => page.locator("#dock .choice button", { hasText: "Memory" }).click());
  await page.locator(".byte").nth(3).click();
  await look(page, name("memory"));
  await page.locator("#dock .choice button", { hasText: "Variables" }).click();

  // Calls over time: a range, which the source counts.
  await timed(page, "timeline", () => nav("timeline"));
  await page.waitForSelector(".tracks canvas");
  const box = await page.locator(".tracks canvas").boundingBox();
  await page.mouse.move(box.x + box.width * 0.3, box.y + 60);
  await page.mouse.down();
  await page.mouse.move(box.x + box.width * 0.6, box.y + 60, { steps: 4 });
  await timed(page, "counts of a range", () => page.mouse.up());
  await page.waitForSelector(".timeline .list");
  await look(page, name("timeline"));
  await timed(page, "source of a range", () => nav("source"));
  await page.waitForSelector(".tag.range");
  await look(page, name("range"));
  await page.locator(".row.elsewhere .whynot").first().click();
  await look(page, name("why-not-range"));
  await page.goBack();
  await settled(page);
  // The graph and the paths of that range, and Back to the source.
  await nav("function");
  await page.waitForSelector(".cfg");
  if (!await page.locator(".note", { hasText: "Counts from t=" }).count()) wrong.push(`${name("function-range")}: the graph does not say which range it counts`);
  await look(page, name("function-range"));
  await page.locator(".title .choice button", { hasText: "Paths" }).click();
  await page.waitForSelector("code.way, .empty");
  await look(page, name("paths-range"));
  await page.locator(".title .choice button", { hasText: "Calls" }).click();
  await page.waitForSelector(".note + .panel .list, .empty");
  await look(page, name("calls-range"));
  await page.locator(".title .choice button", { hasText: "Control flow" }).click();
  await settled(page);
  await nav("source");
  await page.locator("button", { hasText: "Instructions" }).click();
  await page.waitForSelector(".tag.range + button, .tag.range ~ button");
  await look(page, name("instructions-range"));
  await page.locator(".title button, .head button", { hasText: "Source" }).first().click();
  await settled(page);
  await page.waitForSelector(".under > button");
  await page.locator(".under > button").click();

  // A function.
  await page.evaluate(() => { location.hash = `${location.hash.replace(/&(fn|file|line)=[^&]*/g, "")}&view=function&fn=transfer`.replace("view=source&", ""); });
  await page.waitForSelector(".cfg");
  await look(page, name("function"));
  for (const part of ["Paths", "Calls"]) {
    await timed(page, part.toLowerCase(), () => page.locator(".title .choice button", { hasText: part }).click());
    await look(page, name(part.toLowerCase()));
  }

  // Search by a condition.
  await page.keyboard.press("/");
  await page.keyboard.type("bank.rs:25 where fee > 5");
  await page.locator(".search li", { hasText: "bank.rs:25#" }).first().waitFor();
  await look(page, name("search"));
  await page.keyboard.press("Escape");

  // A note, help, the address.
  await page.keyboard.press("b");
  await page.waitForSelector(".write input");
  await look(page, name("note"));
  await page.locator(".write input").first().fill(`Seen <b>here</b> ${theme} ${width}`);
  await page.locator(".write button.primary").click();
  await nav("notes");
  await page.waitForSelector(".note h2");
  await look(page, name("notes"));
  await page.keyboard.press("?");
  await page.waitForSelector("dialog.help");
  await look(page, name("help"));
  await page.keyboard.press("Escape");
  await page.keyboard.press(".");
  const link = await page.evaluate(() => navigator.clipboard.readText());
  if (!link.startsWith("afterimage explore ") || /[0-9a-f]{32}/.test(link)) wrong.push(`Copy link gives ${link}`);
  const before = await page.evaluate(() => location.hash);
  await nav("overview");
  await page.goBack();
  if ((await page.evaluate(() => location.hash)) !== before) wrong.push("Back does not go back");
  await page.context().close();
}

/** From a wrong byte of output to the line that is to blame, with the keyboard alone. */
async function keyboard() {
  const page = await open("light", 1280, 800);
  await page.keyboard.press("o");
  await page.waitForFunction(() => document.activeElement?.matches(".printed"));
  await page.keyboard.press("Home");
  while (!(await page.locator(".line", { hasText: "total" }).first().locator(".on").count())) await page.keyboard.press("ArrowDown");
  for (let step = 0; step < 8; step += 1) await page.keyboard.press("ArrowRight");
  await page.keyboard.press("Enter");
  await page.waitForSelector(".chain .place");
  await settled(page);
  await page.keyboard.press("ArrowDown");
  await page.keyboard.press("Enter");
  await page.waitForSelector(".row.here");
  await settled(page);
  const here = await page.locator(".row.here").innerText();
  if (!here.trim()) wrong.push("the keyboard leads to no line");
  await page.keyboard.press("v");
  await page.keyboard.press("Enter");
  await page.waitForSelector(".why h1");
  await settled(page);
  await page.keyboard.press("ArrowDown");
  if (!(await page.evaluate(() => document.activeElement?.matches(".chain .place")))) wrong.push("the arrow keys do not go through the steps of why");
  await page.context().close();
}

for (const theme of ["light", "dark"]) for (const [width, height] of [[1280, 800], [800, 900]]) await walk(theme, width, height);
// 1280 by 800 pixels, twice as large: half as much room.
await walk("light", 640, 400);
await keyboard();
await browser.close();

console.log("\nfrom a click to paint, milliseconds (the check itself takes some of them)\n");
for (const [what, values] of [...times.kinds, ["all", times.all()]])
  console.log(`${what.padEnd(24)} median ${quantile(values, 0.5).toFixed(0).padStart(5)}   95th percentile ${quantile(values, 0.95).toFixed(0).padStart(5)}   of ${values.length}`);
end();
