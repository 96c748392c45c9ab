/**
 * Clicks at random. After each click, compares the numbers and values on the page with the JSON of the command that the page names.
 *
 *     node oracle.mjs URL CHROMIUM CLICKS TOOL FOLDER
 *
 * The commands run in FOLDER, which contains the recording.
 */
import { spawnSync } from "node:child_process";
import { end, open, settled, start, wrong } from "./driver.mjs";

const [url, executablePath, clicks, tool, folder] = process.argv.slice(2);
const browser = await start(executablePath);

let seed = 11;
/** Returns pseudorandom numbers, which are the same in each run of this script. */
const random = (below) => { seed = (seed * 1103515245 + 12345) % 2147483648; return Math.floor((seed / 2147483648) * below); };
const one = (all) => all[random(all.length)];

/** @type {Map<string, any[]>} */
const known = new Map();
/** Returns the JSON that a command named on the page writes, as one value per line. */
function json(command) {
  let rows = known.get(command);
  if (!rows) {
    const words = command.replace(/^afterimage /, `"$TOOL" `);
    const ran = spawnSync("sh", ["-c", `${words} --format json`], { cwd: folder, env: { ...process.env, TOOL: tool }, encoding: "utf8", maxBuffer: 1 << 28 });
    if (ran.status !== 0) throw new Error(`${command}: ${ran.stderr}`);
    rows = ran.stdout.split("\n").filter((line) => line).map((line) => JSON.parse(line));
    known.set(command, rows);
  }
  return rows;
}

const number = (text) => Number(text.replaceAll(",", ""));
let compared = 0;
/** Compares a value on the page with the expected value. */
function same(what, shown, expected) {
  compared += 1;
  if (shown !== expected) wrong.push(`${what}: the page shows ${shown}, the command says ${expected}`);
}

/** Whether the command line refuses the question in the same words, because the instruction at the moment has no value. */
function isRefused(hash, shown, file) {
  const asked = new URLSearchParams(hash.slice(1));
  if (asked.get("view") !== "why" || !asked.get("at")) return false;
  const ran = spawnSync(tool, ["why", file, "--at", asked.get("at")], { cwd: folder, encoding: "utf8" });
  const said = ran.stderr.replace(/^afterimage: /, "").replaceAll(/\s+/g, " ").trim();
  if (ran.status === 0 || !said || !shown.includes(said)) return false;
  compared += 1;
  return true;
}

/** Returns all strings in a JSON document. */
function texts(value, into = new Set()) {
  if (typeof value === "string") into.add(value);
  else if (value && typeof value === "object") for (const inner of Object.values(value)) texts(inner, into);
  return into;
}

/** Compares everything that the page shows with the commands' JSON. */
async function compare(page) {
  const shown = await page.evaluate(() => {
    const texts = (what, within = document) => [...within.querySelectorAll(what)].map((one) => one.textContent);
    const command = (part) => document.querySelector(`${part} .answered code`)?.textContent ?? null;
    const frame = document.querySelector(".frame[aria-current]");
    const cells = (what) => [...document.querySelectorAll(what)].map((row) => [row.querySelector("[data-name]")?.dataset.name ?? null, ...[...row.cells].map((cell) => cell.textContent)]);
    return {
      hash: location.hash,
      file: document.querySelector("[data-file][aria-current=true]")?.dataset.file ?? null,
      counts: [...document.querySelectorAll(".row[id]")].map((row) => [Number(row.id.slice(5)), row.querySelector(".count").textContent]),
      state: command("#dock"), frame: frame?.dataset.frame ?? null,
      variables: [...document.querySelectorAll('table.variables[aria-label^="Variables of"] tr')].map((row) => [row.querySelector("th").firstChild.textContent, row.querySelector(".type")?.textContent, row.querySelector(".value .link, .value .shown")?.textContent ?? null]),
      locals: [...document.querySelectorAll('#dock table.variables[aria-label^="Locals of"] tr')].map((row) => [row.cells[0].textContent, row.cells[1].textContent]),
      instructions: [...document.querySelectorAll(".wat-row")].map((row) => [row.querySelector(".offset").textContent, row.querySelector(".count").textContent]),
      why: document.querySelector(".view-why .chain") && command(".view-why"), values: [...document.querySelectorAll(".view-why .chain .val[title]")].map((one) => one.title), places: texts(".view-why .chain .place .where"),
      hot: command(".part-hot"), functions: cells(".part-hot tbody tr"),
      called: document.querySelector(".view-function .figures") && command(".view-function .function > .answered") , figures: texts(".view-function .figure strong"),
    };
  });
  const at = shown.hash;
  if (shown.file && shown.counts.length) {
    const lines = json("afterimage profile --by line --code all " + page.file)[0].rows;
    const counts = new Map(lines.filter((row) => row.source.file === shown.file).map((row) => [row.source.line, row.count]));
    for (const [line, text] of shown.counts) same(`${at}: line ${line}`, text === "" ? 0 : number(text), counts.get(line) ?? 0);
  }
  if (shown.state && shown.frame !== null) {
    const { frames } = json(shown.state)[0];
    // The page shows variables that the compiler removed last.
    const isGone = (one) => Number(!one.value && Boolean(one.unavailable?.startsWith("optimised out")));
    // The frame of an inlined function shows the variables in the scope of the inlined call.
    const [of, calls = "0"] = shown.frame.split(".");
    const activation = frames.find((one) => String(one.number) === of);
    const variables = (activation?.variables ?? []).filter((one) => (one.calls ?? 0) === Number(calls)).sort((one, other) => isGone(one) - isGone(other));
    const values = variables.map((one) => [one.name, one.type, one.value]);
    same(`${at}: variables`, shown.variables.length, values.length);
    shown.variables.forEach(([name, type, text], index) => {
      const value = values[index]?.[2] ?? null;
      same(`${at}: ${name}`, text, value && value.length > 90 ? `${value.slice(0, 89)}…` : value);
      same(`${at}: the type of ${name}`, type, values[index]?.[1]);
    });
    const { locals } = activation ?? {};
    shown.locals.forEach(([name, text], index) => same(`${at}: ${name}`, text, locals?.[index]?.text ?? "not known"));
  }
  if (shown.instructions.length) {
    const counts = new Map(json(`afterimage profile --by instruction ${page.file}`)[0].rows.map((row) => [`@0x${row.offset.toString(16)}`, row.count]));
    for (const [offset, text] of shown.instructions) same(`${at}: instruction ${offset}`, text === "" ? 0 : number(text), counts.get(offset));
  }
  if (shown.why) {
    const rows = json(shown.why);
    const all = texts(rows);
    for (const value of shown.values) same(`${at}: a value of why`, all.has(value) ? value : null, value);
    const lines = new Set();
    const find = (value) => { if (value && typeof value === "object") { if (value.file && value.line) lines.add(`${value.file.split("/").pop()}:${value.line}`); Object.values(value).forEach(find); } };
    find(rows);
    for (const place of shown.places) same(`${at}: a place of why`, lines.has(place) || all.has(place) ? place : null, place);
  }
  if (shown.hot) {
    const rows = new Map(json(shown.hot)[0].rows.map((row) => [row.function.name, row]));
    for (const [name, , calls, instructions] of shown.functions) {
      if ([...json(shown.hot)[0].rows].filter((row) => row.function.name === name).length > 1) continue;
      same(`${at}: calls of ${name}`, number(calls), rows.get(name)?.entries);
      same(`${at}: instructions of ${name}`, number(instructions), rows.get(name)?.instructions);
    }
  }
  if (shown.called) {
    const [own] = json(shown.called)[0].functions;
    [own.calls, own.own, own.inclusive].forEach((count, index) => same(`${at}: figure ${index}`, number(shown.figures[index]), count));
  }
}

const page = await open(browser, url);
await settled(page);
page.file = (await page.evaluate(async () => (await (await fetch("api/page")).json()).command)).split(" ").pop();
const lines = json(`afterimage profile --by line --code mine ${page.file}`)[0].rows.filter((row) => row.count > 0);
const instructions = lines.length ? [] : json(`afterimage profile --by instruction ${page.file}`)[0].rows.filter((row) => row.count > 0);
const functions = json(`afterimage profile --code mine ${page.file}`)[0].rows.filter((row) => row.entries > 0);
const hash = (query) => page.evaluate((next) => { location.hash = next; }, `#${new URLSearchParams(query)}`);
const moment = () => {
  const line = one(lines.length ? lines : instructions);
  const place = line.source ? `${line.source.file.split("/").pop()}:${line.source.line}` : `@0x${line.offset.toString(16)}`;
  return `${place}#${1 + random(line.count)}`;
};
const click = async (what) => { const all = page.locator(what).filter({ visible: true }); const many = await all.count(); if (many) await all.nth(random(many)).click({ timeout: 5000 }); };
/** Presses a key for a move, in the source view, because other views may not know the variable in question. */
const step = async (keys) => { await page.keyboard.press("2"); await settled(page); await page.keyboard.press(one(keys)); };
const acts = [
  () => hash({ view: "source", at: moment() }),
  // Without line tables, moves go by statement.
  () => step(["n", "s", "f", "N", "S", "F", "c", "C", "u", "d"]),
  () => step(["n", "s", "c", "N"]),
  () => click("table.variables .value button.link"),
  () => click(".chain .place, .chain .unfold"),
  () => click("button.operand"),
  () => hash({ view: "function", fn: `func[${one(functions).function.index}]` }),
  () => click("#nav a"),
];
for (let done = 0; done < Number(clicks); done += 1) {
  if (done % 8 === 0) await hash({ view: "source", at: moment() });
  else await one(acts)();
  await settled(page);
  await compare(page);
  const failed = await page.locator(".failed").allInnerTexts();
  const refusal = failed.join("; ").replaceAll(/\s+/g, " ");
  const shown = await page.evaluate(() => location.hash);
  if (failed.length && !isRefused(shown, refusal, page.file)) wrong.push(`${shown}: ${refusal}`);
}
await browser.close();
console.log(`${clicks} random clicks: ${compared} numbers and values compared`);
if (compared < clicks) wrong.push(`only ${compared} numbers and values were compared`);
end();
