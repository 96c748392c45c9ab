/** Shows the run at a glance: how it ended, what it printed, and where it spent its time. */
import { ask, askAhead, Superseded } from "./api.js";
import { answered, base, counted, empty, failed, fill, grouped, h, loading, panel, share, visible, whose } from "./dom.js";
import { flame } from "./flame.js";
import { address, focus, go, range } from "./focus.js";
import { named } from "./names.js";
import { chain } from "./why.js";

/** @type {HTMLElement | null} */
let made = null;
let shownRange = "";

/** @param {HTMLElement} into */
export function overview(into) {
  const ranged = `${focus.from ?? ""}-${focus.to ?? ""}`;
  if (made && made.parentElement === into && shownRange === ranged) return;
  shownRange = ranged;
  const [ended, output, hot, graph, facts] = ["ended", "output", "hot", "graph", "recording"].map((name) => h(`div.part-${name}`, null, loading()));
  made = h("div.overview", null, h("h1.sr", null, "Overview"), ended, h("div.columns", null, output, h("div", null, hot, facts)), graph);
  fill(into, made);
  const info = ask("info", {}, "info");
  void part(ended, (into) => showEnded(into, info));
  void part(output, (into) => showOutput(into, info));
  void part(hot, showHot);
  void part(graph, showGraph);
  void part(facts, (into) => showFacts(into, info));
}

/** @param {HTMLElement} into @param {(into: HTMLElement) => Promise<void>} show */
async function part(into, show) {
  try { await show(into); } catch (error) { if (!(error instanceof Superseded)) fill(into, failed(error)); }
}

/** @param {HTMLElement} into @param {Promise<import("./api.js").Answer>} info */
async function showEnded(into, info) {
  const { ending, program, args } = (await info).doc;
  const line = h("p.command", null, h("code", null, [program, ...args].join(" ")));
  const well = ending === "returned" || ending === null;
  const title = ending === null ? "The recording was cut off" : well ? "The run returned" : `The run ${ending}`;
  const card = h(`section.card.${well ? "well" : "ill"}`, { "aria-label": "How the run ended" },
    h("div.head", null, h("h2", null, title), h("div.aside", null,
      h("button", { type: "button", onclick: () => go({ view: "source", at: "start" }) }, "Go to the start"),
      h("button", { type: "button", onclick: () => go({ view: "source", at: "end" }) }, "Go to the end"))), line);
  fill(into, card);
  if (well || !/trapped|exited|exception|overflow/.test(ending)) return;
  const wait = loading("Looking for what led there …");
  card.append(wait);
  try {
    const trap = await ask("why", { trap: true }, "trap");
    const { death, about } = trap.doc;
    wait.replaceWith(h("div.death", null,
      h("p.said", null, death ? [death.what, death.message].filter(Boolean).join(": ") : about), chain(trap, 3),
      h("a.button", { href: "#view=why&about=trap" }, "Follow it to its origin"), answered(trap)));
  } catch (error) {
    wait.replaceWith(failed(error));
  }
}

/** @param {string} hex */
const bytesOf = (hex) => Uint8Array.from(hex.match(/../g) ?? [], (pair) => Number.parseInt(pair, 16));

/** @param {HTMLElement} into @param {Promise<import("./api.js").Answer>} info */
async function showOutput(into, info) {
  const answer = await ask("output", {}, "output");
  const { writes, totals, complete } = answer.doc;
  const all = totals.stdout + totals.stderr;
  const shown = panel("Output", all ? counted(all, "byte") : null);
  if (!all) shown.append(empty("The program printed nothing."));
  else shown.append(bytes(writes, info), complete ? "" : h("p.more", null, "The rest is not shown, because it is too long for the page, or the recording was cut off before it."));
  shown.append(answered(answer) ?? "");
  fill(into, shown);
}

/** Returns the beginning of the next line. @param {{ text: string }[]} units @param {number} chosen */
function below(units, chosen) {
  const end = units.findIndex((unit, at) => at >= chosen && unit.text === "\n");
  return end < 0 ? units.length - 1 : end + 1;
}

/** Returns the beginning of the previous line. @param {{ text: string }[]} units @param {number} chosen */
function above(units, chosen) {
  const begin = units.findLastIndex((unit, at) => at < chosen && unit.text === "\n");
  return units.findLastIndex((unit, at) => at < begin && unit.text === "\n") + 1;
}

/**
 * Asks ahead why a byte was printed, if all values exist. Otherwise, the question would build them.
 * @param {Promise<import("./api.js").Answer>} info @param {{ stream: string, number: number }} unit
 */
async function foresee(info, { stream, number }) {
  try {
    if ((await info).doc.lenses.includes("full")) await askAhead("why", { [stream]: number });
  } catch { /* the question itself shows why it has no answer */ }
}

/**
 * Shows output. Its bytes can be chosen with the mouse or the arrow keys.
 * @param {any[]} writes @param {Promise<import("./api.js").Answer>} info
 */
function bytes(writes, info) {
  /** @type {{ stream: string, number: number, t: number, text: string }[]} */
  const units = [];
  const lines = [h("div.line", null)];
  for (const write of writes) {
    const raw = bytesOf(write.bytes);
    // A character of several bytes is one unit. A question about it is about its first byte.
    for (let at = 0; at < raw.length;) {
      const length = raw[at] < 0x80 ? 1 : raw[at] >= 0xf0 ? 4 : raw[at] >= 0xe0 ? 3 : raw[at] >= 0xc0 ? 2 : 1;
      const text = new TextDecoder().decode(raw.subarray(at, at + length));
      const unit = h(`span.${write.stream}`, { "data-unit": units.length }, text === "\n" ? "⏎" : visible(text));
      if (text === "\n") unit.classList.add("end");
      units.push({ stream: write.stream, number: write.first + at, t: write.t, text });
      lines[lines.length - 1].append(unit);
      if (text === "\n") lines.push(h("div.line", null));
      at += length;
    }
  }
  if (!lines[lines.length - 1].hasChildNodes()) lines.pop();
  const about = h("div.chosen", { "aria-live": "polite" }, h("span.soft", null, "Click a byte, or choose one with the arrow keys, to see when it was printed, and why."));
  let chosen = -1;
  const box = h("div.printed", { tabindex: 0, role: "group", "aria-label": "The output of the program. The arrow keys choose a byte, and Enter explains it", "data-own-keys": "",
    onclick: (/** @type {MouseEvent} */ clicked) => {
      const unit = /** @type {HTMLElement} */ (clicked.target).closest("[data-unit]");
      if (unit) choose(Number(/** @type {HTMLElement} */ (unit).dataset.unit));
    },
    ondblclick: () => explain(),
    onkeydown: (/** @type {KeyboardEvent} */ pressed) => {
      const step = { ArrowRight: () => chosen + 1, ArrowLeft: () => chosen - 1, ArrowDown: () => below(units, chosen), ArrowUp: () => above(units, chosen), Home: () => 0, End: () => units.length - 1 }[pressed.key];
      const next = step?.();
      if (pressed.key === "Enter") explain();
      else if (next === undefined) return;
      else choose(Math.min(units.length - 1, Math.max(0, next)));
      pressed.preventDefault();
    } }, lines);
  const explain = () => { if (chosen >= 0) go({ view: "why", about: `${units[chosen].stream}:${units[chosen].number}` }); };
  /** @param {number} unit */
  function choose(unit) {
    box.querySelector(".on")?.classList.remove("on");
    chosen = unit;
    const element = box.querySelector(`[data-unit="${unit}"]`);
    element?.classList.add("on");
    element?.scrollIntoView({ block: "nearest" });
    const { stream, number, t, text } = units[unit];
    void foresee(info, units[unit]);
    fill(about, h("span", null, h("strong", null, JSON.stringify(text)), ` byte ${grouped(number)} of ${stream === "stdout" ? "standard output" : "standard error"}, printed at t=${grouped(t)}`),
      h("button", { type: "button", onclick: explain }, "Why?"),
      h("button", { type: "button", onclick: () => go({ view: "source", at: `t=${t}` }) }, "Go there"));
  }
  return h("div", null, box, about);
}

/** Returns the line of a function, which tells closures of one function apart. @param {any} row */
const declared = (row) => row.source && h("span.soft", { title: row.source.file }, ` ${base(row.source.file)}:${row.source.line}`);

let code = "mine";
/** Shows the functions with the most instructions, in the range if one is chosen. @param {HTMLElement} into */
async function showHot(into) {
  const answer = await hottest(code, "hot");
  const { instructions, blocks, executed_functions: executed, functions } = answer.doc.totals;
  fill(into, panel(focus.from && focus.to ? "Hottest functions of the range" : "Hottest functions", whose(code, (value) => { code = value; void part(into, showHot); }), hot(answer.doc, 14),
    h("p.more", null, `${counted(instructions, "instruction")} in ${counted(blocks, "block")}; ${grouped(executed)} of ${counted(functions, "function")} executed`), answered(answer)));
}

/** Asks how often functions were executed, in the range if one is chosen. @param {string} code @param {string} view */
export const hottest = (code, view) => ask("profile", { sort: "instructions", code, ...range() }, view);

/** Creates a table of the functions with the most instructions. @param {any} doc @param {number} limit */
export function hot({ totals, rows }, limit) {
  const most = rows.filter((/** @type {any} */ row) => row.instructions).slice(0, limit);
  if (!most.length) return empty("No function of your own code was executed.");
  return h("table.list", null, h("thead", null, h("tr", null, h("th", null, "Function"), h("th.n", null, focus.from && focus.to ? "Calls begun" : "Calls"), h("th.n", null, "Instructions"), h("th.n", null, "Share"))),
    h("tbody", null, most.map((/** @type {any} */ row) => {
      const bar = h("span.bar", { "aria-hidden": "true" });
      bar.style.width = `${(100 * row.instructions) / totals.instructions}%`;
      return h("tr", null, h("td", null, h("a", { href: address({ view: "function", fn: `func[${row.function.index}]`, call: "" }) }, named(row.function.name)), declared(row)),
        h("td.n", null, grouped(row.entries)), h("td.n", null, grouped(row.instructions)), h("td.n.share", null, bar, share(row.instructions, totals.instructions)));
    })));
}

let folded = "mine";
/** @param {HTMLElement} into */
async function showGraph(into) {
  const answer = await ask("export", { format: "collapsed", code: folded, ...range() }, "flame");
  fill(into, panel("Flame graph", whose(folded, (value) => { folded = value; void part(into, showGraph); }),
    flame(answer.text, (name) => go({ view: "function", fn: name })), answered(answer)));
}

/** @param {HTMLElement} into @param {Promise<import("./api.js").Answer>} info */
async function showFacts(into, info) {
  const { doc } = await info;
  /** @type {[string, string][]} */
  const rows = [["Recorded", new Date(doc.recorded_unix * 1000).toLocaleString("en-GB")], ["Host calls", grouped(doc.host_calls ?? 0)],
    ["File", counted(doc.length, "byte")], ["Contents", ["log", ...doc.lenses].join(", ")], ["Engine", doc.engine.split(" ").slice(0, 2).join(" ")]];
  fill(into, panel("Recording", null, h("dl.facts", null, rows.map(([name, what]) => h("div", null, h("dt", null, name), h("dd", null, what))))));
}
