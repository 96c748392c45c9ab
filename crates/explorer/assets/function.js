/** Shows a function: its control flow with counts, its different paths, and its calls. */
import { ask, Superseded } from "./api.js";
import { answered, choice, counted, empty, failed, fill, grouped, h, loading, panel, share, whose } from "./dom.js";
import { focus, frame, go, known, onmoment } from "./focus.js";
import { graph } from "./graph.js";
import { named } from "./names.js";
import { hot, hottest } from "./overview.js";
import { files } from "./source.js";

/** The maximum number of callers and callees to show. */
const OTHERS = 200;

let key = "";
let part = "flow";

/** Returns the selected function: the one that the user chose, or the function of the moment. */
const chosen = () => focus.fn ?? (known.state && frame() ? `func[${frame().function.index}]` : null);

/** @param {HTMLElement} into */
export function functions(into) {
  const name = chosen();
  const now = `${name} ${focus.call ?? ""} ${focus.from ?? ""} ${focus.to ?? ""}`;
  if (into.hasChildNodes() && key === now) return;
  key = now;
  void show(into, name);
}
onmoment(() => { const into = document.querySelector(".view-function"); if (into instanceof HTMLElement && !focus.fn) functions(into); });

/** @param {HTMLElement} into @param {string | null} name */
async function show(into, name) {
  if (!name) return void list(into);
  fill(into, loading());
  // Show the answer to the latest question, in whatever order answers arrive.
  const asked = key;
  const isOld = () => key !== asked || !isHere(into);
  // If the function is given by its number, its control flow need not wait for the name.
  const early = part === "flow" && /^func\[\d+\]$/.test(name) ? drawn(name) : null;
  early?.catch(() => { /* the code that awaits it reports the error */ });
  try {
    const all = await ask("calls", { function: name }, "function");
    if (isOld()) return;
    const own = all.doc.functions[0];
    const edges = all.doc.edges;
    if (!own) return fill(into, h("div.function", null, h("h1", null, name), empty("This function was never called.", h("a.button", { href: "#view=function" }, "All functions"))));
    const id = `func[${own.function.index}]`;
    const callers = edges.filter((/** @type {any} */ edge) => edge.callee.index === own.function.index);
    const callees = edges.filter((/** @type {any} */ edge) => edge.caller?.index === own.function.index);
    const body = h("div.body", null, loading());
    const stretched = await (early ? early.then((all) => all[3]) : ranged(id));
    if (isOld()) return;
    const several = (/** @type {any[]} */ rows, /** @type {string} */ side) => rows.sort((a, b) => b.calls - a.calls).slice(0, OTHERS).map((edge) => { const other = edge[side]; return h("li", null, other ? h("button.link", { type: "button", onclick: () => go({ fn: `func[${other.index}]`, call: "" }) }, named(other.name)) : "the host", stretched ? null : h("span.soft", null, ` ${grouped(edge.calls)}×`)); }).concat(rows.length > OTHERS ? [h("li.soft", null, `and ${grouped(rows.length - OTHERS)} more`)] : []);
    const who = (/** @type {string} */ title, /** @type {any[]} */ rows, /** @type {string} */ side) => h("div.who", null, h("h3", null, `${title}${often}`, rows.length > 1 && ` (${grouped(rows.length)})`), h("ul", { tabindex: rows.length > 5 ? 0 : null, "aria-label": title }, rows.length ? several(rows, side) : h("li.soft", null, "nobody")));
    // With a range, the counts are for the range. The callers and callees are for the whole run, so they have no counts in this case.
    const numbers = stretched ? [figure("calls begun in the range", stretched.doc.calls), figure("own blocks in the range", stretched.doc.blocks.reduce((/** @type {number} */ sum, /** @type {any} */ one) => sum + one.count, 0))]
      : [figure("calls", own.calls), figure("own blocks", own.own), figure("with callees", own.inclusive)];
    const often = stretched ? " in the whole run" : "";
    const figures = h("div.figures", null, numbers, who("Called by", callers, "caller"), who("Calls", callees, "callee"));
    fill(into, h("div.function", null, h("div.title", null, h("h1", null, named(own.function.name)), choice("What to show", [["flow", "Control flow"], ["paths", "Paths"], ["calls", "Calls"]], part, (value) => { part = value; void look(); })),
      figures,
      body, stretched ? null : answered(all)));
    let first = early;
    const look = async () => {
      const answers = first;
      first = null;
      try { await (part === "flow" ? flow(body, answers ?? drawn(id)) : part === "paths" ? paths(body, id) : calls(body, id, own)); } catch (error) { if (!(error instanceof Superseded)) fill(body, failed(error)); }
    };
    await look();
  } catch (error) { if (!(error instanceof Superseded) && !isOld()) fill(into, failed(error), await inlined(error)); }
}

/** Returns a button that leads to the source of a function whose calls were all inlined. The error names the function's line. @param {any} error */
async function inlined(error) {
  const [, name, line] = /declared at (.+):(\d+), has no code of its own/.exec(String(error?.message)) ?? [];
  const file = name && (await files()).find((one) => one.name === name)?.file;
  return file ? h("p.note", null, h("button", { type: "button", onclick: () => go({ view: "source", file, line }) }, "Its source")) : null;
}

/** @param {string} what @param {number} n */
const figure = (what, n) => h("div.figure", null, h("strong", null, grouped(n)), h("span", null, what));

/** Whether this view is still shown. @param {HTMLElement} into */
const isHere = (into) => into.classList.contains("view-function");

let code = "mine";
/** Lists all functions. @param {HTMLElement} into */
async function list(into) {
  fill(into, loading());
  const head = h("div.title", null, h("h1", null, "Functions"), whose(code, (value) => { code = value; void list(into); }));
  try {
    const answer = await hottest(code, "functions");
    if (isHere(into)) fill(into, h("div.function", null, head, focus.from && focus.to && stretch(), hot(answer.doc, 500), answered(answer)));
  } catch (error) { if (!(error instanceof Superseded)) fill(into, failed(error)); }
}

/** Asks for the counts in the range, if one is chosen. @param {string} id */
const ranged = (id) => (focus.from && focus.to ? ask("flow", { function: id, from: `t=${focus.from}`, to: `t=${focus.to}` }, "flow") : null);
/** Shows the range, and a button that leaves it. */
const stretch = () => h("p.note", null, `Counts from t=${grouped(Number(focus.from))} to t=${grouped(Number(focus.to))} `, h("button", { type: "button", onclick: () => go({ from: "", to: "" }) }, "Count the whole run"));

/** Asks for the data from which the control-flow graph is drawn. @param {string} id */
const drawn = (id) => Promise.all([ask("cfg", { function: id }, "cfg"), ask("profile", { by: "block", function: id }, "blocks"), ask("profile", { by: "edge", function: id }, "edges"), ranged(id)]);

/** Goes to the first execution of a block, or asks why there is none. @param {number} offset @param {boolean} ran */
function open(offset, ran) {
  const at = `@0x${offset.toString(16)}`;
  go(ran ? { view: "source", at, file: "", line: "" } : { view: "why", about: `not:${at}` });
}

/** @param {HTMLElement} body @param {ReturnType<typeof drawn>} answers */
async function flow(body, answers) {
  fill(body, loading());
  const [shape, blocks, edges, part] = await answers;
  let [rows, taken] = [blocks.doc.rows, edges.doc.rows];
  if (part) {
    const counts = new Map(part.doc.blocks.map((/** @type {any} */ one) => [one.block, one.count]));
    rows = rows.map((/** @type {any} */ row) => ({ ...row, ran: row.count > 0, count: counts.get(row.block) ?? 0 }));
    taken = part.doc.edges.flatMap((/** @type {any} */ one) => one.edges.map((/** @type {number} */ edge) => ({ edge, count: one.count })));
  }
  fill(body, part && stretch(), panel("Control flow", `${counted(shape.doc.blocks.length - 1, "block")}, how often each was executed`, graph(shape.doc, rows, taken, open), answered(part ?? blocks)));
}

/** The maximum number of blocks to show of a path. */
const WAY = 60;

/** @param {HTMLElement} body @param {string} id */
async function paths(body, id) {
  fill(body, loading());
  const part = await ranged(id);
  if (part && !part.doc.traces) return fill(body, stretch(), empty(`${counted(part.doc.calls, "call")} begin in this range. The paths of at most ${grouped(part.doc.most)} calls are listed: choose a shorter range.`), answered(part));
  const answer = part ?? await ask("paths", { function: id, limit: 200, blocks: WAY }, "paths");
  const { rows, totals, available } = part ? { rows: part.doc.traces.slice(0, 200), totals: { traces: part.doc.traces.length, calls: part.doc.calls }, available: part.doc.traces.length } : answer.doc;
  const most = rows.reduce((/** @type {number} */ most, /** @type {any} */ row) => Math.max(most, row.calls), 1);
  fill(body, part && stretch(), panel("Unique paths", `${counted(totals.traces, "different path")} in ${counted(totals.calls, "call")}${part ? " that begin in the range" : ""}`, h("div.twin", { tabindex: 0, role: "region", "aria-label": "Unique paths" }, h("table.list", null, h("thead", null, h("tr", null, h("th.n", null, "#"), h("th.n", null, "Calls"), h("th.n", null, "Share"), h("th.n", null, "Blocks"), h("th", null, "Path"))),
    h("tbody", null, rows.map((/** @type {any} */ row) => { const bar = h("span.bar", null); bar.style.width = `${(100 * row.calls) / most}%`; return h("tr", null, h("td.n", null, row.trace), h("td.n", null, grouped(row.calls)), h("td.n.share", null, bar, share(row.calls, totals.calls)), h("td.n", null, grouped(row.length)), h("td", null, h("code.way", null, (row.blocks ?? row.beginning ?? []).slice(0, WAY).join(" → "), row.length > WAY ? " …" : ""))); })))),
  available > rows.length && h("p.more", null, `${grouped(available)} in all`), answered(answer)));
}

const PAGE = 20;
/** Shows calls with their arguments and results. @param {HTMLElement} body @param {string} id @param {any} own */
async function calls(body, id, own) {
  // With a range, show only the calls that begin in it.
  const within = focus.from && focus.to ? (await ask("executions", { at: id, from: `t=${focus.from}`, to: `t=${focus.to}`, limit: 1 }, "calls-range")).doc : { first: 1, within: own.calls };
  if (!within.within) return fill(body, stretch(), empty("No call begins in this range."));
  const [begin, end] = [within.first, within.first + within.within - 1];
  const first = Math.max(begin, Math.min(end, Number(focus.call) || begin));
  const last = Math.min(end, first + PAGE - 1);
  const which = h("input", { type: "text", size: 8, value: String(first), "aria-label": "From call number", onchange: () => go({ call: which.value.replaceAll(",", "") }) });
  const rows = h("tbody", null, h("tr", null, h("td", { colspan: 4 }, loading())));
  const foot = h("div", null);
  fill(body, within.count !== undefined && stretch(), panel("Calls", [h("button", { type: "button", disabled: first <= begin, "aria-label": "Previous calls", onclick: () => go({ call: String(Math.max(begin, first - PAGE)) }) }, "◂"), h("label", null, "from # ", which), h("button", { type: "button", disabled: last >= end, "aria-label": "Next calls", onclick: () => go({ call: String(first + PAGE) }) }, "▸"), h("span.soft", null, within.count === undefined ? `of ${grouped(own.calls)}` : `of ${grouped(begin)} to ${grouped(end)}, which begin in the range`)],
    h("table.list", null, h("thead", null, h("tr", null, h("th.n", null, "Call"), h("th.n", null, "t"), h("th", null, "Arguments"), h("th", null, "Result"))), rows), foot));
  const [called, given] = await Promise.all([ask("trace", { level: "call", function: id, from: `${id}#${first}`, limit: last - first + 1 }, "calls"), parameters(id, first, last)]);
  const times = new Map(called.rows.map((row) => [row.call, row.t]));
  const results = await returned(id, called.rows);
  fill(rows, called.rows.map((row) => h("tr", null, h("td.n", null, h("button.link", { type: "button", onclick: () => go({ view: "source", at: `${id}#${row.call}`, file: "", line: "" }) }, `#${grouped(row.call)}`)),
    h("td.n", null, grouped(times.get(row.call))), h("td.given", null, given(row.call)), h("td.given", null, results.get(row.t) ?? ""))));
  fill(foot, answered(called));
}

/**
 * Returns the arguments of some calls as text. Asks one question for each parameter.
 * @param {string} id @param {number} first @param {number} last @returns {Promise<(call: number) => string>}
 */
async function parameters(id, first, last) {
  // The caller is needed to find the result.
  const { doc } = await ask("state", { at: `${id}#${first}`, depth: 2 }, "call");
  const { variables, locals } = doc.frames[0];
  const wanted = (variables ?? []).filter((/** @type {any} */ one) => one.parameter && one.name && !one.inlined && !one.shadowed).map((/** @type {any} */ one) => one.name);
  if (!wanted.length && locals?.some((/** @type {any} */ one) => one.parameter)) return unnamed(id, first, last);
  const found = await Promise.all(wanted.map(async (/** @type {string} */ name) => {
    const held = await ask("values", { at: id, var: name, instances: `${first}..${last}`, limit: PAGE }).catch(() => null);
    const of = new Map(/** @type {[number, string][]} */ ((held?.doc.instances ?? []).map((/** @type {any} */ one) => [one.number, one.value ?? one.unavailable ?? "?"])));
    return (/** @type {number} */ call) => `${name} = ${of.get(call) ?? "?"}`;
  }));
  return (call) => found.map((one) => one(call)).join(", ");
}

/**
 * Returns the arguments of calls to a function without debug information as text. Its locals may have no names, so this asks one question for each call.
 * @param {string} id @param {number} first @param {number} last @returns {Promise<(call: number) => string>}
 */
async function unnamed(id, first, last) {
  const calls = Array.from({ length: last - first + 1 }, (_, index) => ask("state", { at: `${id}#${first + index}`, depth: 1 }));
  const given = (await Promise.all(calls)).map(({ doc }) => (doc.frames[0].locals ?? []).filter((/** @type {any} */ one) => one.parameter));
  return (call) => (given[call - first] ?? []).map((/** @type {any} */ one) => `${one.name ?? `local ${one.index}`} = ${one.text ?? "not known"}`).join(", ");
}

/**
 * Returns the results of calls, by time. Asks one question for each calling place.
 * @param {string} id @param {any[]} rows @returns {Promise<Map<number, string>>}
 */
async function returned(id, rows) {
  const sites = new Map(rows.filter((row) => row.from).map((row) => /** @type {[string, any]} */ ([`${row.from.function.index} ${row.from.block}`, row])).reverse());
  const results = new Map();
  await Promise.all([...sites.values()].map(async (row) => {
    const outer = await ask("state", { at: `${id}#${row.call}`, depth: 2 }).then(({ doc }) => doc.frames[1], () => null);
    if (!outer) return;
    const site = await ask("values", { at: `@0x${outer.offset.toString(16)}`, instances: `t=${outer.t}`, limit: PAGE }).catch(() => null);
    for (const one of site?.doc.statements[0]?.instances ?? []) {
      const text = one.values.filter((/** @type {any} */ value) => value.role === "returned").map((/** @type {any} */ value) => value.text).join(", ");
      // A call ends its block, so the callee's first block is the next one.
      results.set(one.t + 1, text);
    }
  }));
  return results;
}
