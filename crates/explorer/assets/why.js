/** Shows where a value came from, step by step, its values over time, its next uses, and why a line did not run. */
import { ask, Superseded } from "./api.js";
import { answered, base, choice, counted, empty, failed, fill, grouped, h, loading, panel, whose } from "./dom.js";
import { called, focus, go, goto, known } from "./focus.js";
import { place } from "./moves.js";
import { plain } from "./names.js";
import { plot } from "./plot.js";
import { files } from "./source.js";

let key = "";
let form = "origin";

/** @param {HTMLElement} into */
export function why(into) {
  const now = `${focus.about ?? ""} ${/^(trap|std|not|input|values)/.test(focus.about ?? "") ? "" : focus.at ?? ""} ${/^not/.test(focus.about ?? "") ? `${focus.from ?? ""} ${focus.to ?? ""}` : ""}`;
  if (into.hasChildNodes() && key === now) return;
  key = now;
  void show(into);
}

/** Returns the question that the address asks. @returns {{ command: string, options: Record<string, any>, title: string } | null} */
function question() {
  const about = focus.about ?? "";
  const [kind, rest] = [about.split(":")[0], about.slice(about.indexOf(":") + 1)];
  if (kind === "trap") return { command: "why", options: { trap: true }, title: "Why did the run end like this?" };
  if (kind === "stdout" || kind === "stderr") return { command: "why", options: { [kind]: rest }, title: `Why was byte ${rest} of ${kind} printed?` };
  if (kind === "input" || kind === "values") return { command: "influence", options: { ...input(rest), thin: kind === "values" }, title: `What did byte ${input(rest).byte} of ${input(rest).file || "standard input"} influence?` };
  if (kind === "not") return { command: "why-not", options: { at: rest }, title: `Why did ${rest} not run?` };
  if (!focus.at) return null;
  // A moment such as `50%` does not name a statement, so use the name of the statement that begins at the moment.
  const at = known.moment && !known.waits ? called(known.moment) : focus.at;
  if (kind === "operand") return { command: "why", options: { at, operand: rest }, title: `Where did the ${rest === "operand" ? rest : `${rest} operand`} of ${at} come from?` };
  if (kind === "var") return { command: "why", options: { at, var: rest }, title: `Where did ${rest} come from?` };
  return { command: "why", options: { at }, title: `Where did the value at ${at} come from?` };
}

/** @param {HTMLElement} into */
async function show(into) {
  const asked = question();
  if (!asked) return fill(into, h("h1.sr", null, "Why"), empty(h("strong", null, "No question has been asked yet."), h("p", null, "Click a value beside the source, a byte of the output, or a line that never ran.")));
  const body = h("div.body", null, loading("Following the run back …"));
  const isVariable = asked.options.var;
  const heading = h("h1", null, asked.title);
  fill(into, h("div.why", null, h("div.title", null, heading, asked.command === "why" && asked.options.at && choice("What to show", /** @type {[string, string][]} */ ([["origin", "Origin"], ...(isVariable ? [["history", "History"]] : []), ["uses", "Uses"]]), form, (value) => { form = value; void answer(); })), body));
  const answer = async () => {
    fill(body, loading("Following the run …"));
    fill(heading, !asked.options.at || asked.command !== "why" ? asked.title : form === "uses" ? (isVariable ? `Who used ${isVariable} next?` : `Who used what ${focus.at} computed?`) : isVariable && form === "history" ? `What did ${isVariable} hold?` : asked.title);
    try {
      if (asked.command === "influence") return await influence(body, asked.options);
      if (asked.command === "why-not") return await whyNot(body, asked.options.at);
      if (asked.options.at && form === "uses") return await (isVariable ? reads(body, isVariable) : uses(body));
      if (isVariable && form === "history") return await history(body, isVariable);
      const found = await ask("why", asked.options, "why");
      fill(body, head(found.doc), chain(found), answered(found));
    } catch (error) {
      if (error instanceof Superseded) return;
      fill(body, failed(error));
    }
  };
  await answer();
}

/** @param {any} doc */
const head = (doc) => h("div.about", null, h("p.said", null, doc.about), doc.death?.message && h("p.soft", null, doc.death.message));

/** Creates a link to a place. @param {any} place @param {string} [label] */
function goes(place, label) {
  const at = place.around ?? place.source;
  return h("button.place", { type: "button", title: `${place.operator} at ${place.at} in ${place.function.name}, t=${grouped(place.t)}`, onclick: () => go({ view: "source", at: place.at, file: "", line: "" }) },
    h("span.where", null, at ? `${base(at.file)}:${at.line}` : place.at), h("code", null, place.text?.trim() ?? label ?? `${place.operator} in ${plain(place.function.name)}`));
}

/** Shows a value beside a place. @param {string} value @param {boolean} [made] */
const held = (value, made = false) => h(made ? "span.val.made" : "span.val", { title: value }, value.length > 48 ? `${value.slice(0, 47)}…` : value);

/** @typedef {{ kind: string, library: boolean, from?: any, made: any }} Step */

/** The number of entries of a long chain to show at first, and at each request for more. The last entries, with the origin, are always shown. */
const [FIRST, MORE, LAST] = [120, 400, 12];

/** Shows the chain back to the origin, with library steps folded. With `most`, shows only the first `most` steps in the user's own code, and the number of the other steps. If no step is in the user's own code, shows the user's own line where the program died. @param {import("./api.js").Answer} found @param {number} [most] */
export function chain(found, most) {
  const stepsOf = (/** @type {any[]} */ rows) => /** @type {Step[]} */ (rows.flatMap(entry).filter(Boolean));
  const list = h("ol.chain", { "aria-label": "The way back, the value first" });
  const item = (/** @type {Step} */ step) => h(`li.step.${step.kind}`, null, h("span.dot", { "aria-hidden": "true" }), step.made);
  if (most) {
    const steps = stepsOf(found.rows);
    const own = steps.filter((step) => !step.library);
    const place = found.doc.death?.place;
    const mine = own.length || !place ? own.slice(0, most) : [{ kind: "led", library: false, made: h("div", null, goes(place)) }];
    const rest = steps.length - Math.min(own.length, most);
    if (mine.length) {
      list.append(...mine.map(item));
      return h("div", null, list, rest ? h("p.soft", null, own.length > most ? `and ${counted(rest, "more step")}` : `and ${counted(rest, "step")} in library code`) : null);
    }
  }
  const items = (/** @type {any[]} */ rows) => {
    const made = /** @type {HTMLElement[]} */ ([]);
    let hidden = /** @type {Step[]} */ ([]);
    const unfold = () => {
      if (hidden.length) made.push(folded(hidden, item));
      hidden = [];
    };
    for (const step of stepsOf(rows)) {
      if (step.library && step.kind !== "end") { hidden.push(step); continue; }
      unfold();
      made.push(item(step));
    }
    unfold();
    return made;
  };
  const { rows } = found;
  if (rows.length <= FIRST + LAST + MORE / 2) list.append(...items(rows));
  else {
    let shown = FIRST;
    const end = rows.length - LAST;
    const text = () => `▸ ${counted(end - shown, "more step")}`;
    const button = h("button.quiet.unfold", { type: "button", onclick: () => {
      const next = items(rows.slice(shown, Math.min(end, shown + MORE)));
      shown = Math.min(end, shown + MORE);
      more.before(...next);
      next[0]?.querySelector("button")?.focus();
      if (shown === end) more.remove();
      else button.textContent = text();
    } }, text());
    const more = h("li.step.folded", null, h("span.dot", { "aria-hidden": "true" }), button);
    list.append(...items(rows.slice(0, FIRST)), more, ...items(rows.slice(end)));
  }
  return h("div", null, list);
}

/** Shows steps in library code as a single step, which can be unfolded. @param {Step[]} hidden @param {(step: Step) => HTMLElement} item */
function folded(hidden, item) {
  const calls = [...new Set(hidden.map(({ from }) => from && (from.around ?? from.source)).filter(Boolean).map((at) => `${base(at.file)}:${at.line}`))];
  const called = calls.length ? `, called at ${calls.slice(0, 2).join(" and ")}${calls.length > 2 ? ` and ${counted(calls.length - 2, "other line")}` : ""}` : "";
  const made = h("li.step.folded", null, h("span.dot", { "aria-hidden": "true" }), h("button.quiet.unfold", { type: "button", "aria-expanded": "false", onclick: () => {
    const items = hidden.map(item);
    made.replaceWith(...items);
    items[0].querySelector("button")?.focus();
  } }, `▸ ${counted(hidden.length, "step")} in library code${called}`));
  return made;
}

/** Returns the steps of an entry. @param {any} entry @returns {Step[]} */
function entry(entry) {
  if (entry.step === "led") {
    return entry.frames.map((/** @type {any} */ one) => ({ kind: "led", library: Boolean(one.place.library), from: one.place.called_from, made: h("div", null, goes(one.place), one.branch && h("p.detail", null, "led there by ", goes(one.branch.place), one.branch.value && ` decided by ${one.branch.value}`)) }));
  }
  if (entry.step === "moved") {
    // Join moves on the same line into one step.
    const groups = /** @type {any[]} */ ([]);
    for (const move of entry.moves) {
      const at = move.place.around ?? move.place.source;
      const line = at ? `${at.file}:${at.line}` : move.place.at;
      const last = groups[groups.length - 1];
      if (last?.line === line && last.value === move.value) last.moves.push(move);
      else groups.push({ line, value: move.value, moves: [move] });
    }
    return groups.map((group) => ({ kind: "moved", library: group.moves.every((/** @type {any} */ move) => move.place.library), from: group.moves[0].place.called_from, made: h("div.moved", { title: [...new Set(group.moves.map((/** @type {any} */ move) => move.what))].join(" · ") },
      h("span.verb", null, [...new Set(group.moves.map((/** @type {any} */ move) => move.how))].join(", ")), goes(group.moves[0].place), group.value && held(group.value), chosen(group.moves)) }));
  }
  if (entry.step === "end") {
    return [{ kind: "end", library: Boolean(entry.place?.library), made: h("div", null, h("p.what", null, entry.kind !== "stopped" && !entry.what.startsWith("…") && h("span.verb", null, "it comes from"), h("span.val", null, entry.what)), entry.place && goes(entry.place), entry.led && h("p.detail", null, "led there by ", goes(entry.led.place), entry.led.value && ` decided by ${entry.led.value}`), entry.remark && h("p.detail", null, entry.remark),
      entry.kind === "input" && entry.offset !== null && h("button", { type: "button", onclick: () => go({ view: "why", about: `input:${entry.offset}:${entry.file === "standard input" ? "" : entry.file}` }) }, "What did this byte influence?")) }];
  }
  if (entry.step === "again")
    return [{ kind: "again", library: Boolean(entry.back.place?.library), from: entry.back.place?.called_from, made: h("div", null, h("p.what", null, h("span.verb", null, `the last ${entry.steps === 1 ? "step repeats" : `${counted(entry.steps, "step")} repeat`} ${grouped(entry.times)} times, back to`), h("span.val", null, entry.back.value)), goes(entry.back.place)) }];
  return [{ kind: "computed", library: Boolean(entry.place.library), from: entry.place.called_from, made: h("div.moved", null, h("span.verb", null, entry.step), goes(entry.place), held(entry.value, true),
    h("p.detail", null, "from ", entry.operands.map((/** @type {any} */ operand, /** @type {number} */ index) => [index ? ", " : "", operand_(entry.place, operand)]))) }];
}

/** Shows an operand. If the chain does not follow it, the user can follow it instead. @param {any} place @param {any} operand */
function operand_(place, operand) {
  const text = `${operand.role} ${operand.value}`;
  if (operand.constant || operand.followed || !place.at) return h(`span.operand${operand.followed ? ".followed" : ""}`, { title: operand.followed ? "The next step explains this operand" : operand.constant ? "A constant" : "" }, text);
  return h("button.link.operand", { type: "button", title: `Where did the ${operand.role} come from?`, onclick: () => go({ view: "why", at: place.at, about: `operand:${operand.role}` }) }, text);
}

/** Shows the condition that selected one of two values. @param {any[]} moves */
function chosen(moves) {
  const select = moves.find((/** @type {any} */ move) => move.how === "selected");
  return select && h("p.detail", null, h("button.link", { type: "button", title: "What decided which of two values it is?", onclick: () => go({ view: "why", at: select.place.at, about: "operand:condition" }) }, "why this one?"));
}

/** The number of arrivals to show before the moment, and after it. */
const AROUND = 500;
/** The number of arrivals to show instead if they are far apart, because each then takes about 3 ms. */
const FEW = 20;
const FAR = 20_000;
/** Shows the values of a variable each time the run was at this line. @param {HTMLElement} body @param {string} name @param {boolean} [more] */
async function history(body, name, more = false) {
  const at = place();
  if (!at) return fill(body, empty("Choose a moment at a line first. The history shows the variable each time that the run reached this line."));
  // Of many arrivals, show those around the moment.
  const { count, by } = (await ask("executions", { at, by: focus.at, limit: 1 }, "history")).doc;
  const isFew = !more && known.moment?.length / count > FAR;
  const around = isFew ? FEW : AROUND;
  const first = Math.max(1, Math.min(by - around, count - 2 * around + 1));
  const last = Math.min(count, first + 2 * around - 1);
  const found = await ask("values", { at, var: name, instances: count ? `${first}..${last}` : "all", limit: 2 * around }, "history");
  const { instances } = found.doc;
  fill(body, h("p.about", null, `What ${name} held before ${last - first + 1 < count ? `arrivals ${grouped(first)} to ${grouped(last)} of ${grouped(count)}` : `each of ${counted(count, "arrival")}`} at ${at}${focus.from && focus.to ? ", in the whole run" : ""}`),
    plot(name, instances.map((/** @type {any} */ one) => ({ number: one.number, t: one.t, text: one.value ?? one.why ?? one.unavailable ?? "not known" })), known.moment?.t ?? null, (number) => go({ at: `${at}#${number}` })),
    isFew && last - first + 1 < count && h("button.quiet", { type: "button", onclick: () => void history(body, name, true).catch((error) => { if (!(error instanceof Superseded)) fill(body, failed(error)); }) }, `Show up to ${grouped(2 * AROUND)}`),
    answered(found));
}

/** Shows what reads a variable next. @param {HTMLElement} body @param {string} name */
async function reads(body, name) {
  const at = focus.at;
  /** @type {import("./api.js").Answer} */
  let found;
  try {
    found = await ask("memory", { var: name, at }, "uses");
  } catch (error) {
    if (error instanceof Superseded) throw error;
    // It is not in memory, so follow the value from where it was computed.
    const [first] = (await ask("why", { at, var: name, steps: 1 }, "uses")).rows;
    const from = first?.moves?.[0]?.place.at ?? first?.place?.at;
    if (!from) throw error;
    return uses(body, from);
  }
  const all = new Map();
  for (const { next_read: read, next_written: written } of found.doc.parts)
    for (const [verb, one] of [["read by", read], ["overwritten by", written]])
      if (one) all.set(`${verb} ${one.t} ${one.offset}`, { verb, ...one });
  const next = [...all.values()].sort((a, b) => a.t - b.t || (a.offset ?? 0) - (b.offset ?? 0));
  fill(body, h("p.about", null, `What reads and overwrites the bytes of ${name} next`), next.length ? h("ol.chain", null, next.map((one) => h("li.step.computed", null, h("span.dot", null), h("div", null,
    h("p.what", null, h("span.verb", null, one.verb), h("span.val", null, one.operator ?? one.kind), one.value && h("span.val", null, one.value.text)),
    h("button.place", { type: "button", onclick: () => goto(one.t, one.offset ?? null, { view: "why", about: "value" }).catch((error) => fill(body, failed(error))) }, h("span.where", null, one.source ? `${base(one.source.file)}:${one.source.line}` : one.function?.name ?? ""), h("code", null, `t=${grouped(one.t)}`))))))
    : empty("Nothing reads or overwrites it after this moment."), answered(found));
}

/** Shows the next uses of the value that an execution computed. @param {HTMLElement} body @param {string | undefined} at */
async function uses(body, at = focus.at) {
  const found = await ask("deps", { at, forward: true, limit: 100 }, "uses");
  const list = found.doc.statements.map((/** @type {any} */ statement) => panel(`${statement.operator}`, statement.values?.[0]?.text ?? null,
    statement.uses?.length ? h("ol.chain", null, statement.uses.map((/** @type {any} */ use) => h("li.step.computed", null, h("span.dot", null), h("div", null,
      h("p.what", null, h("span.verb", null, use.to === "block" ? "let it run" : `as ${use.role} of`), h("span.val", null, use.operator ?? counted(use.statements ?? 0, "statement")), use.values?.[0] && h("span.val", null, `→ ${use.values[0].text}`)),
      h("button.place", { type: "button", onclick: () => goto(use.t, use.offset ?? null, { view: "why", about: "value" }) }, h("span.where", null, use.source ? `${base(use.source.file)}:${use.source.line}` : use.function?.name ?? ""), h("code", null, `t=${grouped(use.t)}`))))))
      : empty("Nothing used it."), statement.more ? h("p.soft", null, `and ${grouped(statement.more)} more`) : null));
  fill(body, h("p.about", null, `The direct uses of what ${at} computed`), list.length ? list : empty("Nothing was computed here."), answered(found));
}

/** Parses a byte of input: `27:./signed.lua`, or `27:` for standard input. @param {string} text */
const input = (text) => ({ byte: text.replace(/:.*/, ""), file: text.includes(":") ? text.slice(text.indexOf(":") + 1) : "" });

/** Shows everything that depends on a byte of input, up to the bytes of output. @param {HTMLElement} body @param {Record<string, any>} options */
async function influence(body, options) {
  const found = await ask("influence", options, "why");
  const follows = choice("What to follow", [["input", "All"], ["values", "Values only"]], options.thin ? "values" : "input", (kind) => go({ about: `${kind}:${options.byte}:${options.file}` }));
  const { value, t, outputs, statements, executions, lines } = found.doc;
  const shown = value >= 32 && value < 127 ? `‘${String.fromCharCode(value)}’` : `0x${value.toString(16)}`;
  const foreign = new Set((await files()).filter((/** @type {any} */ one) => one.library).map((/** @type {any} */ one) => one.file));
  const texts = outputs.length ? await ask("output", {}, "influence-output") : null;
  const bytes = outputs.reduce((/** @type {number} */ sum, /** @type {any} */ one) => sum + one.bytes, 0);
  const out = h("ol.chain", { "aria-label": "Output that depends on it" }, outputs.slice(0, 200).map((/** @type {any} */ one) => h("li.step.end", null, h("span.dot", { "aria-hidden": "true" }), h("div", null,
    h("button.place", { type: "button", onclick: () => go({ view: "why", about: `${one.stream}:${one.first}` }) }, h("span.where", null, `${one.stream} ${grouped(one.first)}${one.bytes > 1 ? ` … ${grouped(one.first + one.bytes - 1)}` : ""}`), h("code", null, JSON.stringify(printed(texts?.doc, one)))),
    h("span.soft", null, ` at t=${grouped(one.t)}`)))));
  const own = lines.filter((/** @type {any} */ line) => !foreign.has(line.source.file));
  const rows = h("tbody", null);
  const list = (/** @type {any[]} */ lines) => {
    const most = lines.reduce((most, line) => Math.max(most, line.sliced), 1);
    fill(rows, lines.slice(0, 400).map((line) => {
      const bar = h("span.bar", null);
      bar.style.width = `${(100 * line.sliced) / most}%`;
      return h("tr", null, h("td", null, h("button.link", { type: "button", onclick: () => go({ view: "source", file: line.source.file, line: String(line.source.line) }) }, `${base(line.source.file)}:${line.source.line}`)), h("td.n.share", null, bar, grouped(line.sliced)), h("td.n", null, grouped(line.executed)));
    }));
  };
  list(own);
  fill(body, h("div.about", null, h("p.follows", null, follows, h("span.soft", null, options.thin ? " Only values computed from the byte, without the decisions and addresses that depend on it." : " Values computed from the byte, and the decisions and addresses that depend on it.")), h("p.said", null, `The byte is ${shown}. ${bytes ? `${counted(bytes, "byte")} of output depend${bytes === 1 ? "s" : ""} on it.` : "No byte of output depends on it."} ${counted(statements, "statement")} do${statements === 1 ? "es" : ""}, in ${counted(executions, "execution")}.`),
    h("p", null, h("button.place", { type: "button", onclick: () => go({ view: "source", at: `t=${t}`, file: "", line: "" }) }, h("span.where", null, `t=${grouped(t)}`), "where it was read"))),
  panel("Output that depends on it", bytes ? counted(bytes, "byte") : null, outputs.length ? out : empty("Nothing that was printed depends on it."), outputs.length > 200 ? h("p.more", null, `and ${grouped(outputs.length - 200)} stretches more`) : null),
  panel("Lines that depend on it", own.length < lines.length ? [whose("mine", (code) => list(code === "mine" ? own : lines)), `${grouped(own.length)} of ${counted(lines.length, "line")}; the others are in library code`] : counted(own.length, "line"),
    h("table.list", null, h("thead", null, h("tr", null, h("th", null, "Line"), h("th.n", null, "Executions that depend"), h("th.n", null, "of"))), rows)), answered(found));
}

/** Returns the text of a stretch of output. @param {any} doc @param {any} one */
function printed(doc, one) {
  const bytes = [];
  for (const write of doc?.writes ?? []) {
    if (write.stream !== one.stream) continue;
    const from = Math.max(0, one.first - write.first);
    const to = Math.min(write.bytes.length / 2, one.first + Math.min(one.bytes, 80) - write.first);
    for (let at = from; at < to; at += 1) bytes.push(Number.parseInt(write.bytes.slice(2 * at, 2 * at + 2), 16));
  }
  return new TextDecoder().decode(Uint8Array.from(bytes));
}

/** @param {HTMLElement} body @param {string} at */
async function whyNot(body, at) {
  const after = focus.from ? `t=${focus.from}` : undefined;
  let found;
  try { found = await ask("why-not", { at, after }, "why"); } catch (error) {
    if (error instanceof Superseded || !after) throw error;
    return around(body, at, error);
  }
  const { cause, before } = found.doc;
  const told = [before && h("p.soft", null, `It was executed ${counted(before.times, "time")} before, the last at t=${grouped(before.t)}.`), told_(cause), found.doc.others.map((/** @type {any} */ other) => told_(other))];
  const note = after && h("p.note", null, `This is about everything from t=${grouped(Number(focus.from))} on, also after the range.`);
  fill(body, note, h("div.about", null, told), h("h2", null, "Where the deciding value came from"), found.doc.why.length ? chain({ ...found, rows: found.doc.why }) : empty("Only the end of the run decided it."), answered(found));
}

/**
 * Shows when a line ran before and after the range, if it did not run in the range.
 * @param {HTMLElement} body @param {string} at @param {any} error
 */
async function around(body, at, error) {
  const [before, within] = await Promise.all([
    ask("executions", { at, limit: 1, to: `t=${Math.max(1, Number(focus.from) - 1)}` }, "before"),
    ask("executions", { at, limit: 1, from: `t=${focus.from}`, to: `t=${focus.to}` }, "within")]);
  const count = within.doc.count;
  if (within.doc.within) throw error;
  const [earlier, next] = [Number(focus.from) > 1 ? before.doc.within : 0, within.doc.first];
  const link = (/** @type {number} */ number, /** @type {string} */ label) => h("p", null, h("button.place", { type: "button", onclick: () => go({ view: "source", at: `${at}#${number}`, file: "", line: "" }) }, h("span.where", null, `${at}#${grouped(number)}`), label));
  fill(body, h("div.about", null, h("p.said", null, `It is not executed from t=${grouped(Number(focus.from))} to t=${grouped(Number(focus.to))}, but ${counted(earlier, "time")} before and ${counted(count - earlier, "time")} after.`),
    earlier ? link(earlier, "the last execution before the range") : null, next <= count ? link(next, "the first execution after the range") : null,
    h("button", { type: "button", onclick: () => go({ from: "", to: "" }) }, "Count the whole run")), answered(within));
}

/** Describes another cause that kept a line from running. @param {any} cause */
function others(cause) {
  const name = plain(cause.function?.name);
  switch (cause.kind) {
    case "table": return `This call through a table was executed ${counted(cause.times, "time")} and never called ${name}; the last time it called ${plain(cause.called?.name ?? "the host")}.`;
    case "ended": return `Control went there ${counted(cause.times, "time")}, but ${cause.stood ? "the run ended before it came back." : "an exception left the function."}`;
    case "stopped": return "The run ended in this block, before control reached the place.";
    case "host": return `Only the host could have called ${name}, and it did not.`;
    default: return `Nothing in the program calls ${name}.`;
  }
}

/** @param {any} cause */
function told_(cause) {
  const place = cause.place ?? cause.call ?? null;
  const variables = (cause.variables ?? []).map((/** @type {any} */ one) => `${one.name} = ${one.value}`).join(", ");
  const text = cause.kind === "branch" ? `This branch was executed ${counted(cause.times, "time")} and never went there${cause.value ? `: it was decided by ${cause.value}${variables && `, with ${variables}`}, and needed ${({ nonzero: "a value other than 0", zero: "0" })[/** @type {string} */ (cause.needs)] ?? "something else"}` : ""}.`
    : others(cause);
  return h("div.cause", null, h("p.said", null, text), place && goes(place), went(cause, place));
}

/** Shows where control went instead. @param {any} cause @param {any} from */
function went({ went }, from) {
  if (!went) return null;
  if (went.kind === "left") return h("p.detail", null, "it left the function");
  if (went.kind === "ended") return h("p.detail", null, "the run ended there");
  const [here, there] = [from?.source, went.place.source];
  const stays = here && there && here.line === there.line && here.file === there.file;
  return h("p.detail", null, stays ? "it went to other code of the same line" : ["it went to ", goes(went.place)]);
}
