/** Shows the state at the moment beside every view: the call stack, the variables, and memory. */
import { ask, Superseded } from "./api.js";
import { answered, base, choice, counted, empty, failed, fill, grouped, h, loading } from "./dom.js";
import { deeper, focus, follow, frame, frames, go, goto, known, lineOf, namedAt, onmoment } from "./focus.js";
import { foreseeWrite, say, write } from "./moves.js";
import { brief, plain } from "./names.js";

let tab = "variables";
let library = false;
/** @type {HTMLElement} */
let body;

/** @param {HTMLElement} into */
export function dock(into) {
  body = h("div.body", null);
  fill(into, h("div.head", null, h("h2", null, "State"), choice("What to show", [["variables", "Variables"], ["memory", "Memory"]], tab, (value) => { tab = value; show(); })), body);
  onmoment(show);
  follow((now, before) => {
    if (now.at !== before.at) return;
    if (now.frame !== before.frame) show();
    for (const row of body.querySelectorAll("[data-variable]")) row.classList.toggle("on", now.about === `var:${/** @type {HTMLElement} */ (row).dataset.variable}`);
  });
  show();
}

/** The state that the panel shows. @type {any} */
let shown = null;

function show() {
  body.classList.toggle("waits", known.waits && Boolean(known.state));
  const before = shown;
  shown = null;
  if (!focus.at) return fill(body, empty("No moment has been chosen yet."));
  if (known.error) return fill(body, failed(known.error));
  if (!known.state) return fill(body, loading("Following the run to the moment …"));
  // The state of the previous moment stays until the next one is known.
  shown = known.state;
  if (known.waits && before === shown) return;
  if (tab === "memory") return void memory();
  fill(body, stack(), variables(), globals(), answered(known.answer));
}

function stack() {
  const { frames: { length: activations }, open } = known.state;
  const [all, own] = [frames(), frame()];
  const isHidden = (/** @type {any} */ one) => one.library && one.key !== own?.key;
  const hidden = all.filter(isHidden).length;
  const list = h("ol.stack", { "aria-label": "Call stack, innermost first" });
  for (const one of all) {
    if (isHidden(one) && !library) continue;
    const at = lineOf(one);
    const where = at ? `${base(at.file)}:${at.line}` : `@0x${one.offset.toString(16)}`;
    const given = parameters(one).map(([name, value]) => `${name}=${short(value) || "?"}`).join(", ");
    const inlined = one.key.includes(".");
    list.append(h("li", null, h("button.frame", { type: "button", "data-frame": one.key, "aria-current": one.key === own?.key ? "true" : null, title: `${one.name}(${given})${inlined ? `, inlined in ${one.function.name}` : ""}`, onclick: () => go({ frame: one.key }) },
      h("span.number", null, inlined ? "" : one.number), h("span.name", null, short(brief(one.name), 60), given && h("span.soft", null, `(${short(given, 60)})`), inlined && h("span.soft.inlined", null, " inlined")), h("span.where", null, where))));
  }
  if (hidden || library) list.append(h("li", null, h("button.quiet", { type: "button", onclick: () => { library = !library; show(); } }, library ? "Fold library code" : `${grouped(hidden)} in library code`)));
  if (open > activations) list.append(h("li", null, h("button.quiet.deeper", { type: "button", onclick: () => deeper().catch((error) => { if (!(error instanceof Superseded)) say(error.message); }) }, `${grouped(activations)} of ${grouped(open)} activations: show more`)));
  return list;
}

/** Returns the names and values of a frame's parameters. @param {any} one @returns {[string, string | null | undefined][]} */
const parameters = (one) => (one.variables ?? []).filter((/** @type {any} */ variable) => variable.parameter).map((/** @type {any} */ variable) => [variable.name || "_", variable.value])
  .concat(one.variables?.length ? [] : (one.locals ?? []).filter((/** @type {any} */ local) => local.parameter).map((/** @type {any} */ local) => [local.name ?? `local ${local.index}`, local.text]));

/** @param {string | null | undefined} text @param {number} [most] */
const short = (text, most = 28) => (!text ? "" : text.length > most ? `${text.slice(0, most - 1)}…` : text);

/** Returns the name of a local in questions: its own name, if no other local has it, or its index. @param {any} local @param {any[]} all */
const localName = (local, all) => (/^[A-Za-z_]\w*$/.test(local.name ?? "") && all.filter((other) => other.name === local.name).length === 1 ? local.name : `$${local.index}`);

function variables() {
  const own = frame();
  if (!own) return empty("Nothing is executed here.");
  const all = own.variables ?? [];
  if (!all.length) {
    const locals = own.locals ?? [];
    return h("div", null, own.why && h("p.note", null, own.why), locals.length ? h("table.variables", { "aria-label": `Locals of ${plain(own.function.name)}` }, h("tbody", null, locals.map((/** @type {any} */ local) =>
      local.text ? row({ name: localName(local, locals), type: local.type, parameter: local.parameter, value: local.text }, own)
        : h("tr", null, h("th", { scope: "row" }, localName(local, locals)), h("td.value", null, "not known")))))
      : empty("This function has no variables here."));
  }
  const table = (/** @type {any[]} */ rows) => h("table.variables", { "aria-label": `Variables of ${plain(own.name)}` }, h("tbody", null, rows.map((one) => row(one, own))));
  const [gone, there] = [all.filter(isGone), all.filter((/** @type {any} */ one) => !isGone(one))];
  if (gone.length < 2) return table([...there, ...gone]);
  return h("div", null, there.length ? table(there) : null, h("details.gone", { open: optimised, ontoggle: (/** @type {Event} */ event) => { optimised = /** @type {HTMLDetailsElement} */ (event.target).open; } }, h("summary", null, `${counted(gone.length, "variable")} optimised out here`), table(gone)));
}
let optimised = false;
/** Whether a variable has no value because the compiler removed it. @param {any} one */
const isGone = (one) => (one.value === null || one.value === undefined) && String(one.unavailable ?? "").startsWith("optimised out");

/**
 * Creates the row of a variable. Questions refer to a variable by its name, so a variable that another variable of this name hides has no questions.
 * @param {any} one @param {any} own its activation
 * @param {boolean} [several] whether several variables have its name and none hides the others
 */
function row(one, own, several = false) {
  // The moment of an outer activation is the moment of its call.
  const asked = async (/** @type {string} */ name) => { rest(); const about = `var:${name}`; return own.number === 0 ? go({ view: "why", about }) : goto(own.t, own.offset, { view: "why", about }); };
  const moves = (/** @type {1 | -1} */ step, /** @type {string} */ sign) => {
    const title = `${step > 0 ? "Next" : "Last"} write of ${one.name}`;
    const ahead = () => void foreseeWrite(step, one.name);
    return h("button.quiet.icon", { type: "button", title, "aria-label": title, onpointerenter: ahead, onfocus: ahead, onclick: () => void write(step, one.name) }, sign);
  };
  const named = one.name && !one.shadowed && !several;
  return h("tr", { class: named && focus.about === `var:${one.name}` ? "on" : null, "data-variable": named ? one.name : null }, h("th", { scope: "row", title: one.type }, one.name || "_", one.parameter ? h("span.soft", { title: "parameter" }, "\u00a0ᵖ") : null, one.type && h("span.type", null, one.type)),
    h("td.value", null, named ? value(one, own, asked) : one.value ? h("span.shown", null, short(one.value, 90)) : h("span.soft", null, one.unavailable ?? "not known here"), one.written ? h("span.soft", { title: "Its place may hold something else" }, " ?") : null,
      one.shadowed && h("span.soft.shadowed", null, " (hidden by an inner variable)"), several && !one.shadowed && h("span.soft", null, " (one of several with this name)")),
    h("td.acts", null, named && one.value ? [moves(-1, "↤"), moves(1, "↦")] : null));
}

let global = false;
/** Shows the variables that exist for the whole run, when they are unfolded. */
function globals() {
  const list = h("div", null);
  const made = h("details.globals", { open: global, ontoggle: () => { if (global !== made.open) { global = made.open; void look(); } } }, h("summary", null, "Global variables"), list);
  const look = async () => {
    if (!global) return;
    fill(list, loading());
    try {
      const answer = await ask("state", { at: focus.at, depth: 1, globals: true }, "globals");
      const { variables, globals, more, frames } = answer.doc;
      const all = variables ?? [];
      const known = all.filter((/** @type {any} */ one) => one.value !== undefined && one.value !== null);
      const inner = new Set((frames[0]?.variables ?? []).map((/** @type {any} */ one) => one.name));
      const several = (/** @type {any} */ one) => all.filter((/** @type {any} */ other) => other.name === one.name).length > 1;
      const rows = known.map((/** @type {any} */ one) => row({ ...one, shadowed: one.shadowed || inner.has(one.name) }, { number: 0 }, several(one)));
      fill(list, rows.length ? h("table.variables", { "aria-label": "Global variables" }, h("tbody", null, rows)) : null,
        (globals ?? []).length ? h("table.variables", { "aria-label": "Globals of WebAssembly" }, h("tbody", null, globals.map((/** @type {any} */ one) => h("tr", null, h("th", { scope: "row" }, one.name ?? `global ${one.index}`), h("td.value", null, one.text ?? "not known"))))) : null,
        more ? h("p.soft", null, `and ${counted(more, "variable")} more`) : null, all.length > known.length ? h("p.soft", null, `${counted(all.length - known.length, "variable")} without a value`) : null, answered(answer));
    } catch (error) { if (!(error instanceof Superseded)) fill(list, failed(error)); }
  };
  void look();
  return made;
}

/** Leaves the list, so that the keys act on the data shown next. */
const rest = () => /** @type {HTMLElement | null} */ (document.activeElement)?.blur();

/**
 * Shows a value. Its members can be opened, and their members, and the target of a pointer.
 * @param {any} variable @param {any} own its activation @param {(name: string) => void} asked
 */
function value(variable, own, asked) {
  if (variable.value === null || variable.value === undefined) return h("span.soft", null, variable.unavailable ?? "not known here");
  const parts = openable(variable.name, variable.value, `${variable.type}: where did it come from?`, asked, variable.type ? { asked, own } : null);
  return parts.length > 1 ? h("div.openable", null, parts) : parts[0];
}

/** The names of the values that are open, so that they stay open when the moment changes. @type {Set<string>} */
const opened = new Set();

/**
 * Returns a value, or a button that opens it, the value and its members. A member has questions if its name can be written in one.
 * @param {string} name the expression @param {string} text its value @param {string} title
 * @param {((name: string) => void) | null} asked asks about it @param {{ asked: (name: string) => void, own: any } | null} inside how to ask about its members, and its activation
 * @returns {HTMLElement[]}
 */
function openable(name, text, title, asked, inside) {
  const more = text.length > 90 ? `\n${text}` : "";
  const button = asked ? h("button.link", { type: "button", title: title + more, onclick: () => asked(name) }, short(text, 90)) : h("span.shown", { title: more.trim() || null }, short(text, 90));
  const members = parts(text);
  const points = !members && inside && /^0x[0-9a-f]+\b(?!.*(->|\())/.test(text) && !/^0x0+$/.test(text);
  if (!members && !points && text.length <= 90) return [button];
  const whole = members || points ? h("dl.members", null) : h("p.whole", null, text);
  whole.hidden = true;
  /** @param {[string, string][]} all @param {(member: string) => string | null} path */
  const list = (all, path) => fill(whole, all.map(([member, what]) => {
    const called = path(member);
    const ask = called ? inside : null;
    const shown = openable(called ?? member, what, "Where did it come from?", ask && ask.asked, ask);
    return h("div", null, h("dt", null, member), h("dd", null, shown.slice(0, 2)), shown[2]);
  }));
  const open = h("button.quiet.opens", { type: "button", "aria-expanded": "false", "aria-label": `${points ? "Target" : "Members"} of ${name}`, onclick: () => {
    if (members && !whole.hasChildNodes()) list(members, (member) => (/^\d+$/.test(member) ? `${name}[${member}]` : isName(member) ? `${name}.${member}` : null));
    if (points && !whole.hasChildNodes()) {
      fill(whole, loading());
      target(name, inside?.own).then((text) => {
        const all = parts(text);
        if (all) list(all, (member) => (isName(member) ? `${name}->${member}` : null));
        else list([[`*${name}`, text]], (member) => member);
      }, (error) => { if (error instanceof Superseded) fill(whole); else fill(whole, h("span.soft", null, String(error.message ?? error))); });
    }
    whole.hidden = !whole.hidden;
    if (whole.hidden) opened.delete(name);
    else opened.add(name);
    open.setAttribute("aria-expanded", String(!whole.hidden));
    open.textContent = whole.hidden ? "▸" : "▾";
  } }, "▸");
  if (opened.has(name)) open.click();
  return [open, button, whole];
}

/** @param {string} text */
const isName = (text) => /^[A-Za-z_]\w*$/.test(text);

/** Returns the text of the target of a pointer. @param {string} name the pointer @param {any} own its activation @returns {Promise<string>} */
async function target(name, own) {
  const moment = own.number === 0 ? known.moment : (await ask(...namedAt(own.t, own.offset))).doc;
  const [, at, number] = /^(.*)#(\d+)$/.exec(moment.at) ?? [];
  if (!at) throw new Error("The target is known only at an operator. Make a step first.");
  const [one] = (await ask("values", { at, instances: `${number}..${number}`, var: `*${name}`, limit: 1 })).doc.instances;
  if (one?.value === undefined || one.value === null) throw new Error(one?.why ?? one?.unavailable ?? "The target is not known here.");
  return one.value;
}

/** Parses the members in the text of a value: `{a = 1, b = {2, 3}}`. @param {string} text @returns {[string, string][] | null} */
function parts(text) {
  const open = text.search(/[[{]/);
  if (open < 0 || !/[\]}]$/.test(text)) return null;
  const found = /** @type {[string, string][]} */ ([]);
  let [depth, from, quoted] = [0, open + 1, ""];
  for (let at = open; at < text.length; at += 1) {
    const char = text[at];
    if (quoted) { if (char === "\\") at += 1; else if (char === quoted) quoted = ""; continue; }
    if (char === '"') quoted = char;
    else if ("{[(".includes(char)) depth += 1;
    else if ("}])".includes(char)) depth -= 1;
    if ((char === "," && depth === 1) || (depth === 0 && at > open)) {
      const part = text.slice(from, at).trim();
      const match = /^(\w+)\s*[=:]\s*(.*)$/s.exec(part);
      if (part) found.push(match ? [match[1], match[2]] : [String(found.length), part]);
      from = at + 1;
      if (depth === 0) break;
    }
  }
  return found.length > 1 ? found : null;
}

let address = "";
/** Shows memory around an address, with the writer of each byte. */
async function memory() {
  if (!address) address = place();
  const table = h("div", null, loading());
  const input = h("input", { type: "text", value: address, "aria-label": "Address or variable", title: "An address, such as 0x1040, or a variable in memory", size: 10, spellcheck: "false" });
  const form = h("form.address", { onsubmit: (/** @type {Event} */ event) => { event.preventDefault(); address = input.value.trim(); void look(); } }, h("label", null, "From ", input), h("button", { type: "submit" }, "Show"),
    h("button.quiet", { type: "button", "aria-label": "Previous 64 bytes", onclick: () => step(-64) }, "−64"), h("button.quiet", { type: "button", "aria-label": "Next 64 bytes", onclick: () => step(64) }, "+64"));
  const step = (/** @type {number} */ by) => { address = `0x${Math.max(0, Number(address) + by).toString(16)}`; input.value = address; void look(); };
  fill(body, form, table);
  const look = async () => {
    let from = Number(address);
    try {
      if (!Number.isSafeInteger(from) || from < 0) {
        // The address of a variable, or of what an expression names.
        from = (await ask("memory", { var: address, at: focus.at }, "memory")).doc.address;
        address = `0x${from.toString(16)}`;
        input.value = address;
      }
      const answer = await ask("memory", { address: `0x${from.toString(16)}..0x${(from + 63).toString(16)}`, at: focus.at }, "memory");
      fill(table, hex(answer.doc), answered(answer));
    } catch (error) { if (!(error instanceof Superseded)) fill(table, failed(error)); }
  };
  await look();
}

/** Returns the address at which to begin: the target of a pointer. */
function place() {
  const values = (frame()?.variables ?? []).map((/** @type {any} */ one) => /0x[0-9a-f]{3,}/.exec(one.value ?? "")?.[0]);
  return values.find(Boolean) ?? "0x400";
}

/** @param {any} doc */
function hex(doc) {
  const bytes = doc.contents.match(/../g) ?? [];
  const writers = new Array(bytes.length).fill(null);
  doc.parts.forEach((/** @type {any} */ part) => { for (let at = 0; at < part.bytes; at += 1) writers[part.address - doc.address + at] = part; });
  const kinds = [...new Set(doc.parts.map((/** @type {any} */ part) => part.written && `${part.written.function?.name}${part.written.t}`))];
  const told = h("div.writer", { "aria-live": "polite" }, "Choose a byte to see what wrote it.");
  /** @param {number} at */
  const tell = (at) => {
    const { written, next_read: read, next_written: next } = writers[at] ?? {};
    const place = (/** @type {any} */ one) => one.source ? `${base(one.source.file)}:${one.source.line}` : (one.function ? plain(one.function.name) : one.kind);
    const link = (/** @type {string} */ what, /** @type {any} */ one) => one && h("p", null, `${what} `, h("button.link", { type: "button", onclick: () => goto(one.t, one.offset ?? null).catch((error) => say(error.message)) }, `${place(one)} at t=${grouped(one.t)}`), one.value ? ` ${one.value.text}` : "");
    const soon = (/** @type {string} */ what, /** @type {any} */ one, /** @type {string} */ never) => (one ? link(what, one) : one === null ? h("p.soft", null, never) : null);
    fill(told, h("p", null, h("code", null, `0x${(doc.address + at).toString(16)}`)), written ? link("written by", written) : h("p.soft", null, "not written before this moment"), soon("next read by", read, "not read again"), soon("next written by", next, "not written again"));
  };
  const rows = [];
  for (let from = 0; from < bytes.length; from += 8)
    rows.push(h("tr", null, h("th", { scope: "row" }, `0x${(doc.address + from).toString(16)}`), bytes.slice(from, from + 8).map((/** @type {string} */ byte, /** @type {number} */ index) => {
      const at = from + index;
      const part = writers[at]?.written;
      const shade = part ? kinds.indexOf(`${part.function?.name}${part.t}`) % 5 : "none";
      return h("td", null, h(`button.byte.by-${shade}`, { type: "button", onclick: () => tell(at), onfocus: () => tell(at) }, byte));
    }), h("td.text", { "aria-hidden": "true" }, bytes.slice(from, from + 8).map((/** @type {string} */ byte) => { const code = Number.parseInt(byte, 16); return code >= 32 && code < 127 ? String.fromCharCode(code) : "·"; }).join(""))));
  return h("div", null, h("table.hex", { "aria-label": "Memory" }, h("tbody", null, rows)), told);
}
