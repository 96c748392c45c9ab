/**
 * Checks the state and the moves on the page. The cases are variables that hide others, writes in callers, conditions, and a program without lines.
 *
 *     node moments.mjs URL_OF_SCOPES URL_OF_FIB CHROMIUM FOLDER_FOR_PICTURES
 */
import { end, look, open, settled, start, wrong } from "./driver.mjs";

const [url, plainUrl, executablePath, pictures] = process.argv.slice(2);
const browser = await start(executablePath);

/** Removes the last message, and goes to an address of the page. */
async function visit(page, hash) {
  await page.evaluate((hash) => { document.getElementById("said")?.remove(); location.hash = hash; }, hash);
  await settled(page);
}
const moment = (page) => page.evaluate(() => new URLSearchParams(location.hash.slice(1)).get("at"));
const said = (page) => page.evaluate(() => document.getElementById("said")?.textContent ?? "");
function same(what, shown, expected) { if (shown !== expected) wrong.push(`${what}: the page shows ${shown} instead of ${expected}`); }
function has(what, shown, expected) { if (!shown.includes(expected)) wrong.push(`${what}: the page shows "${shown}" without "${expected}"`); }
/** Presses keys, one after another, and compares the moments to which they lead. */
async function steps(page, keys, moments) {
  for (const [index, key] of keys.entries()) {
    await page.keyboard.press(key);
    await settled(page);
    same(`${keys.slice(0, index + 1).join(" ")}`, await moment(page), moments[index]);
  }
}
const at = (moment, more = "") => `#view=source&at=${encodeURIComponent(moment)}${more}`;

/** Checks that hidden variables have no buttons, because a question can name only the variable that hides them. */
async function hidden(page) {
  await visit(page, at("scopes.rs:14#1"));
  const rows = await page.locator("table.variables tr").evaluateAll((all) => all.map((row) => ({ name: row.querySelector("th").firstChild.textContent, value: row.querySelector(".value").textContent, buttons: row.querySelectorAll("button").length })));
  const x = rows.filter((row) => row.name === "x");
  same("the variables x", x.map((row) => row.value).join("; "), "779; 20 (hidden by an inner variable); 3 (hidden by an inner variable)");
  same("buttons of the variables x", x.map((row) => row.buttons > 0).join(), "true,false,false");
  has("the arguments of a call", await page.locator(".stack .frame").first().innerText(), "work(x=3, n=0x");
  await look(page, pictures, "hidden");
}

/** Checks that the buttons for writes refer to the variable of the chosen activation. */
async function writes(page) {
  // `work` writes the variable n of `main`, and has its own variable n.
  await visit(page, at("scopes.rs:17#2", "&frame=1"));
  const { address } = await page.evaluate(async () => {
    const { frames } = await (await fetch("api/state?at=scopes.rs:17%232&depth=1")).json();
    return { address: /0x[0-9a-f]+/.exec(frames[0].variables.find((one) => one.name === "n").value)[0] };
  });
  const written = await page.evaluate(async (address) => (await (await fetch(`api/memory?at=scopes.rs:17%232&address=${address}..${address}`)).json()).parts[0], address);
  for (const [title, expected] of [["Last", written.written], ["Next", written.next_written]]) {
    await visit(page, at("scopes.rs:17#2", "&frame=1"));
    await page.locator(`button[aria-label="${title} write of n"]`).click();
    await settled(page);
    const { t, offset } = await page.evaluate(async (at) => (await fetch(`api/moment?at=${encodeURIComponent(at)}`)).json(), await moment(page));
    same(`${title} write of n in the caller`, `${t} ${offset}`, `${expected.t} ${expected.offset}`);
  }
  // If the moment is right before a write, `w` must go to the write after it.
  await visit(page, at("scopes.rs:32#5", "&about=var:sum"));
  const seen = [];
  for (let press = 0; press < 3; press += 1) {
    await page.keyboard.press("w");
    await settled(page);
    seen.push(await moment(page));
  }
  if (new Set(seen).size < 3 || await said(page)) wrong.push(`w stays at one write: ${seen} ${await said(page)}`);
}

/** Checks that the page distinguishes an unknown condition from a condition that never holds. */
async function conditions(page) {
  const where = async (text, key) => {
    await page.locator("input.where").fill(text);
    await page.locator("input.where").press(key);
    await settled(page);
  };
  await visit(page, at("scopes.rs:32#110000"));
  await where("i > 10", "Enter");
  same("the next execution where i > 10", await moment(page), "scopes.rs:32#110001");
  await where("i < 10", "Enter");
  has("i < 10", await said(page), "i < 10 never holds after this moment.");
  await where("i < 10", "Shift+Enter");
  same("the previous execution where i < 10", await moment(page), "scopes.rs:32#10");
  await where("100 / (i - i) > 1", "Enter");
  has("an unknown condition", await said(page), "is unknown at 119,991 executions after this moment: it divides by 0.");
  await page.locator("h2").first().click();
  await page.keyboard.press("/");
  await page.keyboard.type("scopes.rs:32 where 100 / (i - i) > 1");
  await page.locator(".search .foot", { hasText: "is unknown at 120,001 executions: it divides by 0." }).waitFor({ timeout: 20_000 }).catch(() => wrong.push("search says that an unknown condition never holds"));
  await page.keyboard.press("Escape");
}

/** Checks that the history of a line with many arrivals shows the arrivals around the moment, and the number of all arrivals. */
async function history(page) {
  await visit(page, "#view=why&about=var:sum&at=scopes.rs%3A32%23110000");
  await page.locator(".choice button", { hasText: "History" }).click();
  await settled(page);
  has("the history", await page.locator(".why .about").innerText(), "arrivals 109,500 to 110,499 of 120,001 at scopes.rs:32");
  await page.locator(".choice button", { hasText: "Table" }).click();
  same("rows of the history", await page.locator(".twin tbody tr").count(), 1000);
  same("the moment in the history", await page.locator(".twin tr.on td").first().innerText(), "110,000");
  await page.locator(".choice button", { hasText: "Origin" }).click();
}

/** Checks that all activations of a deep stack, and all global variables, can be reached. */
async function whole(page) {
  await visit(page, at("scopes.rs:24#300"));
  while (await page.locator(".deeper").count()) {
    await page.locator(".deeper").click();
    await settled(page);
  }
  if (!(await page.locator(".stack .frame").allInnerTexts()).some((text) => text.includes("main"))) wrong.push("main cannot be reached in a deep stack");
  await page.locator(".globals summary").click();
  await page.locator(".globals tr", { hasText: "TOTAL" }).locator(".value .link").first().click();
  await settled(page);
  has("a global variable", await page.locator(".why h1").innerText(), "TOTAL come from?");
  has("its origin", await page.locator(".why .chain").innerText(), "scopes.rs:16");
}

/** Checks that moves wait for each other, so that keys pressed quickly lead to the same moment as keys pressed slowly. */
async function fast(page) {
  const keys = ["n", "n", "s", "n", "n", "N"];
  await visit(page, at("scopes.rs:33#5"));
  for (const key of keys) {
    await page.keyboard.press(key);
    await settled(page);
  }
  const slowly = await moment(page);
  await visit(page, at("scopes.rs:33#5"));
  for (const key of keys) await page.keyboard.press(key);
  await settled(page);
  same("six keys at once", await moment(page), slowly);
}

/** Checks that a range lists the user's own functions, and that no counts of an earlier range remain after a range is refused. */
async function ranges(page) {
  for (const [view, list] of [["overview", ".part-hot"], ["timeline", ".timeline"], ["function", ".function"]]) {
    await visit(page, `#view=${view}&from=20&to=2000`);
    const names = await page.locator(`${list} table.list tbody td:first-child [data-name]`).allInnerTexts();
    same(`functions of a range in ${view}`, names.slice().sort().join(), "scopes::deep,scopes::main,scopes::work");
  }
  await visit(page, "#view=source&from=20&to=2000");
  const shown = await page.locator(".tree .file .part").evaluateAll((all) => all.map((one) => one.title).sort());
  const counted = await page.evaluate(async () => (await (await fetch("api/files?from=t%3D20&to=t%3D2000")).json()).files.filter((one) => !one.library || one.executed).map((one) => `${one.executed} of ${one.lines} lines executed`).sort());
  same("the lines of each file that a range executes", shown.join(), counted.join());
  await visit(page, "#view=source&from=2000&to=20");
  has("a range that ends before it begins", await page.locator(".source").innerText(), "No answer");
  if (await page.locator(".tag.range").count()) wrong.push("a refused range leaves the counts of another one");
  // A file without text must show its lines, not the instructions of a function.
  const file = await page.evaluate(async () => (await (await fetch("api/files")).json()).files.find((one) => one.library && one.executed).file);
  await visit(page, `#view=source&file=${encodeURIComponent(file)}`);
  if (await page.locator(".tag", { hasText: "instructions" }).count()) wrong.push("a file without text shows the instructions of a function");
}

/** Checks that the button of a long line that never ran does not cover the line's text. */
async function never(page) {
  await visit(page, at("scopes.rs:33#1"));
  const row = page.locator(".row.never", { hasText: "a line that never runs" });
  const [line, button] = [await row.locator(".line").boundingBox(), await row.locator(".whynot").boundingBox()];
  if (line.x + line.width > button.x) wrong.push("why not? covers the text of its line");
  await row.locator(".whynot").click();
  await settled(page);
  has("why a line did not run", await page.locator(".why").innerText(), "This branch was executed 1 time and never went there");
}

/** Checks a program without line tables: moves go by statement, and questions about each local are possible. */
async function withoutLines() {
  const page = await open(browser, plainUrl, { hash: at("@0x37#1") });
  await settled(page);
  has("an argument without debug information", await page.locator(".stack .frame").first().innerText(), "n=7");
  await steps(page, ["n", "s", "s", "S", "S", "n", "N", "f"], ["@0x38#1", "@0x2d#2", "@0x2e#2", "@0x2d#2", "@0x38#1", "@0x3e#13", "@0x38#1", "t=124"]);
  await visit(page, at("@0x2d#3"));
  await steps(page, ["c", "C"], ["@0x2d#4", "@0x2d#3"]);
  await page.locator(".variables .value .link").first().click();
  await settled(page);
  has("a local", await page.locator(".why").innerText(), "n is 5 before");
  await page.context().close();
}

const page = await open(browser, url, { hash: at("start") });
await settled(page);
for (const check of [hidden, writes, conditions, history, whole, fast, ranges, never]) await check(page).catch((error) => wrong.push(`${check.name}: ${error.stack}`));
await page.context().close();
await withoutLines().catch((error) => wrong.push(error.stack));
await browser.close();
end();
