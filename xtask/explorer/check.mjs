/**
 * Opens each view of the explorer's page in a browser, clicks through it, and reports faults: errors in the console, serious findings of axe-core, and text that became
 * markup. Prints the time from each click until the page is painted again.
 *
 *     node check.mjs URL URL_OF_HOSTILE_NAMES CHROMIUM FOLDER_FOR_PICTURES
 */
import { Times, end, look as look_, open as open_, quantile, settled, start, wrong } from "./driver.mjs";

const [url, hostileUrl, executablePath, pictures] = process.argv.slice(2);
const browser = await start(executablePath);
const times = new Times();
const timed = (page, what, act) => times.of(page, what, act);
const look = (page, name) => look_(page, pictures, name);
const open = (theme, width, height) => open_(browser, url, { theme, width, height });

/** Clicks through all views, as a user would. */
async function walk(theme, width, height) {
  const page = await open(theme, width, height);
  const name = (what) => `${what}-${theme}-${width}`;
  const nav = (what) => page.locator(`#nav a[href*="view=${what}"]`).click();
  await look(page, name("overview"));
  if (await page.evaluate(() => document.querySelectorAll(".printed img, .printed script, table img").length)) wrong.push("text of the program became markup");

  // Go from a byte of the output to its origin, and from there to the source.
  await page.locator(".printed .line", { hasText: "total" }).first().locator("[data-unit]").nth(8).click();
  await timed(page, "why of a printed byte", () => page.locator(".chosen button", { hasText: "Why?" }).click());
  await look(page, name("why-output"));
  // Follow an operand that the chain did not follow.
  await timed(page, "an operand", () => page.locator("button.operand").first().click());
  await look(page, name("operand"));
  await page.goBack();
  await settled(page);
  await timed(page, "a step of why", () => page.locator(".chain .place").first().click());
  await look(page, name("source"));

  // Find a line, and step through its executions.
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

  // Show the origin, the history and the uses of a value beside the source.
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

  // Show why a line did not run.
  await nav("source");
  await settled(page);
  await page.evaluate(() => { location.hash = `${location.hash}&file=${encodeURIComponent([...document.querySelectorAll("[data-file]")].find((one) => one.dataset.file.endsWith("bank.rs")).dataset.file)}&line=29`; });
  await page.locator(".row.never .whynot").first().waitFor();
  await timed(page, "why not", () => page.locator(".row.never .whynot").first().click());
  await look(page, name("why-not"));

  // Show instructions instead of source.
  await nav("source");
  await settled(page);
  await timed(page, "instructions", () => page.locator("button", { hasText: "Instructions" }).click());
  await page.waitForSelector(".wat-row.here");
  await look(page, name("instructions"));
  await page.locator(".title button", { hasText: "Source" }).click();

  // Show memory, with its writers.
  await nav("source");
  await settled(page);
  await timed(page, "memory", () => page.locator("#dock .choice button", { hasText: "Memory" }).click());
  await page.locator(".byte").nth(3).click();
  await look(page, name("memory"));
  await page.locator("#dock .choice button", { hasText: "Variables" }).click();

  // Select a range in the timeline, and show the source with the counts of this range.
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
  // Show the control flow, the paths and the calls of the range. Then go back to the source.
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

  // Show a function.
  await page.evaluate(() => { location.hash = `${location.hash.replace(/&(fn|file|line)=[^&]*/g, "")}&view=function&fn=transfer`.replace("view=source&", ""); });
  await page.waitForSelector(".cfg");
  await look(page, name("function"));
  // The table has the same blocks, with their counts.
  await page.locator(".over .choice button", { hasText: "Table" }).click();
  await look(page, name("blocks"));
  const listed = await page.locator(".blocks [data-index]").evaluateAll((rows) => rows.map((row) => `${row.querySelector(".number").textContent} ${row.querySelector(".count").textContent.replaceAll(",", "")}`));
  const counted = await page.evaluate(async () => (await (await fetch("api/profile?by=block&function=transfer")).json()).rows.map((row) => `${row.block} ${row.count}`));
  if (!listed.length || listed.some((row, index) => row !== counted[index])) wrong.push(`${name("blocks")}: ${listed} are not ${counted}`);
  for (const part of ["Paths", "Calls"]) {
    await timed(page, part.toLowerCase(), () => page.locator(".title .choice button", { hasText: part }).click());
    await look(page, name(part.toLowerCase()));
  }

  // Search with a condition.
  await page.keyboard.press("/");
  await page.keyboard.type("bank.rs:25 where fee > 5");
  await page.locator(".search li", { hasText: "bank.rs:25#" }).first().waitFor();
  await look(page, name("search"));
  await page.keyboard.press("Escape");

  // Write a note, open the help, and copy the link.
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
  await page.waitForSelector("#said");
  const link = await page.evaluate(() => navigator.clipboard.readText());
  if (!link.startsWith("afterimage explore ") || /[0-9a-f]{32}/.test(link)) wrong.push(`Copy link gives ${link}`);
  const before = await page.evaluate(() => location.hash);
  await nav("overview");
  await page.goBack();
  if ((await page.evaluate(() => location.hash)) !== before) wrong.push("Back does not go back");
  await page.context().close();
}

/** Checks that only the user's own code is shown at first, and that a click shows folded library code. */
async function own() {
  const page = await open("light", 1280, 800);
  const is = (/** @type {string} */ name) => /^(<?(std|core|alloc)::|_start|__)/.test(name);
  const mine = async (what, names, all) => {
    const [few, more] = [await names(), await all()];
    if (!few.length || few.some(is)) wrong.push(`${what}: library code comes with the user's own: ${few.filter(is)}`);
    if (!more.some(is)) wrong.push(`${what}: library code does not unfold`);
  };
  const whose = (text) => async () => { await page.locator(`.choice button:text-is("${text}")`).first().click(); await settled(page); };
  const listed = async () => (await page.locator(".function .list [data-name]").evaluateAll((all) => all.map((one) => one.dataset.name)));
  await page.locator('#nav a[href*="view=function"]').click();
  await page.waitForSelector(".function .list");
  await mine("functions", listed, async () => { await whose("All")(); return listed(); });
  await look(page, "own-functions");
  // The bars are drawn on a canvas, so read their names from the server's answer.
  const drawn = page.waitForResponse((answer) => answer.url().includes("format=perfetto"));
  await page.locator('#nav a[href*="view=timeline"]').click();
  const bars = async (answer) => JSON.parse(await (await answer).text()).traceEvents.filter((event) => event.ph === "B").map((event) => event.name);
  const few = await bars(drawn);
  await look(page, "own-timeline");
  const more = page.waitForResponse((answer) => answer.url().includes("format=perfetto"));
  await mine("timeline", async () => few, async () => { await whose("All")(); return bars(more); });
  // The value of a printed digit passes through library code. The chain folds these steps into one line, which a click unfolds.
  await page.evaluate(() => { location.hash = "#view=why&about=stdout:60"; });
  await page.waitForSelector(".chain .unfold");
  await settled(page);
  const places = () => page.locator(".chain .place").count();
  const folded = await places();
  await look(page, "own-why");
  await page.locator(".chain .unfold").first().click();
  if ((await places()) <= folded) wrong.push("the steps in library code do not unfold");
  if (!await page.evaluate(() => document.activeElement?.matches(".chain .place"))) wrong.push("what was unfolded has no focus");
  await page.context().close();
}

/** Checks that names and output with markup stay text in every view. */
async function hostile() {
  const page = await open_(browser, hostileUrl, {});
  const views = ["#view=overview", "#view=function", "#view=source&at=50%25", "#view=source&code=wat&at=50%25", "#view=timeline&at=50%25", "#view=why&about=stdout:5", "#view=notes"];
  for (const [index, view] of views.entries()) {
    await page.evaluate((next) => { location.hash = next; }, view);
    await look(page, `hostile-${index}`);
    const made = await page.evaluate(() => document.querySelectorAll("main img, main script, main b, aside img, aside script, aside b").length);
    if (made) wrong.push(`${view}: a name became markup`);
    const hidden = await page.evaluate(() => /[\u202e\u0000\u001b]/.test(document.body.textContent));
    if (hidden) wrong.push(`${view}: a hidden character is not shown as an escape`);
  }
  await page.evaluate(() => { location.hash = "#view=function"; });
  await page.locator(".function .list a", { hasText: "<img src=x onerror=alert(1)>" }).click();
  for (const part of ["Paths", "Calls", "Control flow"]) {
    await page.locator(".title .choice button", { hasText: part }).click();
    await look(page, `hostile-function-${part}`);
    if (part === "Calls" && !(await page.locator(".function tbody tr").nth(1).innerText()).includes("<b>n</b> = 2")) wrong.push("the argument of a call is not shown");
  }
  await page.keyboard.press("/");
  await page.keyboard.type("<img");
  await page.locator(".search li", { hasText: "<img src=x onerror=alert(1)>" }).first().waitFor();
  await look(page, "hostile-search");
  await page.context().close();
}

/** Checks that counts have all their digits, and that all information about a line is visible. */
async function exact(width, height) {
  const page = await open("light", width, height);
  const at = `${width} pixels`;
  await page.evaluate(() => { location.hash = "#view=source&at=bank.rs%3A25%2311"; });
  await page.waitForSelector(".row.below .value");
  await settled(page);
  const outside = await page.evaluate(() => {
    const pane = document.querySelector(".code").getBoundingClientRect();
    return [...document.querySelectorAll(".row .values")].filter((one) => { const box = one.getBoundingClientRect(); return box.right > pane.right + 1 || box.left < pane.left || one.firstElementChild.getBoundingClientRect().right > pane.right + 1; }).map((one) => one.textContent);
  });
  if (outside.length) wrong.push(`${at}: values lie outside of the pane: ${outside}`);
  const here = page.locator(".row.below .value");
  if (!(await here.allInnerTexts()).some((text) => text.includes("fee"))) wrong.push(`${at}: the value of fee is not below its line`);
  // The type of each variable must be visible.
  const types = await page.locator(".variables .type").allInnerTexts();
  if (!types.includes("i64") || !types.includes("usize")) wrong.push(`${at}: the types of variables are not shown: ${types}`);
  const counts = await page.evaluate(async () => {
    const file = document.querySelector("[data-file][aria-current=true]").dataset.file;
    const { lines } = await (await fetch(`api/source?file=${encodeURIComponent(file)}`)).json();
    const shown = [...document.querySelectorAll(".row[id]")].map((row) => [row.id, row.querySelector(".count").textContent]);
    return shown.filter(([id, text]) => { const count = lines.find((line) => `line-${line.line}` === id).count; return text.replaceAll(",", "") !== (count ? String(count) : ""); });
  });
  if (counts.length) wrong.push(`${at}: counts are not exact: ${counts}`);
  // The keys must ask about the variable that has the focus.
  await page.keyboard.press("v");
  await page.keyboard.press("ArrowDown");
  const chosen = await page.evaluate(() => document.activeElement?.closest("[data-variable]")?.dataset.variable);
  await page.keyboard.press("y");
  await page.waitForSelector(".why h1");
  if (!chosen || !(await page.locator(".why h1").innerText()).includes(`Where did ${chosen} come from?`)) wrong.push(`${at}: y does not ask about ${chosen}`);
  if (!await page.locator("#copy-link").isVisible()) wrong.push(`${at}: Copy link is not seen`);
  await page.locator("#copy-link").click();
  await page.waitForSelector("#said");
  if (!(await page.evaluate(() => navigator.clipboard.readText())).includes("--at")) wrong.push(`${at}: Copy link copies no moment`);
  await page.locator('#nav a[href*="view=overview"]').click();
  await page.waitForSelector(".part-output .answered");
  if (!(await page.locator(".part-output .answered code").innerText()).startsWith("afterimage info --output")) wrong.push(`${at}: the output does not say which command repeats it`);
  // Names must be in the form in which people write them.
  const names = await page.evaluate(async () => (await (await fetch("api/names")).json()).names);
  const [whole, short] = Object.entries(names).find(([name]) => name.includes(" as core::")) ?? [];
  await page.evaluate(() => { location.hash = "#view=function"; });
  await page.locator('.function .choice button:text-is("All")').click();
  await page.waitForFunction((names) => [...document.querySelectorAll(".function .list [data-name]")].some((one) => names[one.dataset.name]), names);
  const long = await page.evaluate((names) => [...document.querySelectorAll("[data-name]")].filter((one) => one.textContent !== (names[one.dataset.name] ?? one.dataset.name)).map((one) => one.textContent), names);
  if (!whole || whole === short || long.length) wrong.push(`${at}: names are not short: ${long}`);
  await page.context().close();
}

/** Goes from a wrong byte of the output to the line at fault, with the keyboard alone. */
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
  // Go to the first step in the user's own code. The steps before it are in the library that prints.
  do await page.keyboard.press("ArrowDown"); while (await page.evaluate(() => document.activeElement?.matches(".unfold")));
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
// This is the size of a window of 1280 by 800 pixels at a zoom of 200 %.
await walk("light", 640, 400);
await own();
await hostile();
await exact(1280, 800);
await exact(800, 900);
await keyboard();
await browser.close();

console.log("\nfrom a click to paint, milliseconds (the check itself takes some of them)\n");
for (const [what, values] of [...times.kinds, ["all", times.all()]])
  console.log(`${what.padEnd(24)} median ${quantile(values, 0.5).toFixed(0).padStart(5)}   95th percentile ${quantile(values, 0.95).toFixed(0).padStart(5)}   of ${values.length}`);
end();
