/** Searches functions, host calls, files, lines, values and output, or goes to a moment. */
import { ask, once, Superseded } from "./api.js";
import { base, counted, fill, grouped, h, visible } from "./dom.js";
import { focus, go } from "./focus.js";
import { nowhere } from "./moves.js";
import { plain } from "./names.js";
import { files, text as textOf } from "./source.js";

/** @typedef {{ kind: string, title: string, detail: string, act: () => void }} Hit */

/** Opens the search. @param {string} words */
export function search(words) {
  if (document.querySelector("dialog.search")) return;
  let hits = /** @type {Hit[]} */ ([]);
  let on = 0;
  const input = h("input", { type: "text", value: words, placeholder: "A function, a line’s text, bank.c:52#3, t=1234, bank.c:52 where fee < 0 …", "aria-label": "Search", role: "combobox", "aria-expanded": "true", "aria-controls": "hits", autocomplete: "off", spellcheck: "false" });
  const list = h("ul", { id: "hits", role: "listbox", "aria-label": "Found" });
  const foot = h("div.foot", { role: "status" }, "Enter opens, the arrow keys choose, Esc closes");
  const made = h("dialog.search", { "aria-label": "Search" }, input, list, foot);
  const close = () => made.close();
  made.addEventListener("close", () => made.remove());
  made.addEventListener("click", (/** @type {MouseEvent} */ event) => { if (event.target === made) close(); });
  const draw = () => {
    on = Math.min(on, Math.max(0, hits.length - 1));
    fill(list, hits.map((hit, index) => h("li", { role: "option", id: `hit-${index}`, "aria-selected": String(index === on), onclick: () => { close(); hit.act(); } }, h("span.kind", null, hit.kind), h("span.title", null, hit.title), h("span.detail", null, hit.detail))));
    input.setAttribute("aria-activedescendant", hits.length ? `hit-${on}` : "");
    list.children[on]?.scrollIntoView({ block: "nearest" });
  };
  let asked = 0;
  const look = async () => {
    const number = (asked += 1);
    const query = input.value.trim();
    const take = (/** @type {Hit[]} */ more) => { if (number === asked) { hits = [...hits, ...more].slice(0, 60); draw(); } };
    hits = [];
    if (!query) { fill(list); foot.textContent = "Enter opens, the arrow keys choose, Esc closes"; return; }
    foot.textContent = "Looking …";
    const looks = [moments, functions, hostCalls, lines, output].map((look_) => look_(query).then(take, (error) => { if (number === asked && !(error instanceof Superseded) && look_ === moments) foot.textContent = error.message; }));
    await Promise.all(looks);
    if (number === asked && foot.textContent === "Looking …") foot.textContent = hits.length ? counted(hits.length, "result") : "No name and no text matches.";
    draw();
  };
  let timer = 0;
  input.addEventListener("input", () => { clearTimeout(timer); timer = window.setTimeout(look, 40); });
  input.addEventListener("keydown", (/** @type {KeyboardEvent} */ pressed) => {
    if (pressed.key === "ArrowDown") on = Math.min(hits.length - 1, on + 1);
    else if (pressed.key === "ArrowUp") on = Math.max(0, on - 1);
    else if (pressed.key === "Enter") { const hit = hits[on]; if (hit) { close(); hit.act(); } else void look(); return pressed.preventDefault(); }
    else return;
    pressed.preventDefault();
    draw();
  });
  document.getElementById("layer")?.append(made);
  made.showModal();
  input.select();
  if (words) void look();
}

/** Finds moments, and executions at which a condition holds. @param {string} query @returns {Promise<Hit[]>} */
async function moments(query) {
  const condition = /^(\S+)\s+where\s+(.+)$/.exec(query);
  if (condition) {
    const [, at, where] = condition;
    const { doc } = await ask("values", { at, where, limit: 50 }, "search-where");
    const unknown = doc.unknown.reduce((/** @type {number} */ sum, /** @type {any} */ one) => sum + one.times, 0);
    if (!doc.instances.length) throw new Error(nowhere(doc, ""));
    return doc.instances.map((/** @type {any} */ one) => ({ kind: "value", title: `${at}#${one.number}`, detail: `${one.values.map((/** @type {any} */ value) => `${value.name} = ${value.value}`).join(", ")} · t=${grouped(one.t)} · ${grouped(doc.holds)} of ${grouped(doc.count)}${whole()}${unknown ? `, ${grouped(unknown)} unknown` : ""}`, act: () => go({ view: "source", at: `${at}#${one.number}`, file: "", line: "" }) }));
  }
  if (!/[:#@=%]|^\d|^start$|^end$/.test(query)) return [];
  const { doc } = await ask("moment", { at: query }, "search-moment");
  return [{ kind: "moment", title: query, detail: `t=${grouped(doc.t)} in ${plain(doc.function.name)}${doc.line ? ` at ${doc.line}` : ""}`, act: () => go({ view: focus.view === "overview" ? "source" : focus.view, at: query, file: "", line: "" }) }];
}

/** Returns the words for counts that a chosen range does not limit. */
const whole = () => (focus.from && focus.to ? " in the whole run" : "");

/** All functions, the user's own first. */
const called = once(async () => {
  const [mine, all] = await Promise.all(["mine", "all"].map((code) => ask("profile", { sort: "instructions", code })));
  const own = new Set(mine.doc.rows.map((/** @type {any} */ row) => row.function.index));
  return [...mine.doc.rows, ...all.doc.rows.filter((/** @type {any} */ row) => !own.has(row.function.index))];
});

/** @param {string} query @returns {Promise<Hit[]>} */
async function functions(query) {
  const low = query.toLowerCase();
  const is = (/** @type {string} */ name) => name.toLowerCase().includes(low) || plain(name).toLowerCase().includes(low);
  return (await called()).filter((row) => is(row.function.name)).slice(0, 12).map((row) => ({ kind: "function", title: plain(row.function.name), detail: row.entries ? `${counted(row.entries, "call")}${whole()}` : "never called", act: () => go({ view: "function", fn: `func[${row.function.index}]`, call: "" }) }));
}

/** The imported functions, with the places that call them. @type {() => Promise<any[]>} */
const imports = once(async () => (await ask("names")).doc.imports);

/** Finds calls of the host. @param {string} query @returns {Promise<Hit[]>} */
async function hostCalls(query) {
  const low = query.toLowerCase();
  const found = (await imports()).filter((one) => one.name.toLowerCase().includes(low)).slice(0, 4);
  const places = found.flatMap(({ name, calls }) => calls.slice(0, 4).map((/** @type {number} */ offset) => ({ name, at: `@0x${offset.toString(16)}` })));
  const all = await Promise.all(places.map(async ({ name, at }) => {
    const { executions, count } = (await ask("executions", { at, limit: 8 })).doc;
    return executions.map((/** @type {any} */ one) => ({ kind: "host call", title: name, detail: `${grouped(one.number)} of ${counted(count, "call")} at ${at} · t=${grouped(one.t)}`, act: () => go({ view: "source", at: `${at}#${one.number}`, file: "", line: "" }) }));
  }));
  return all.flat();
}

/** Finds files, and lines of the user's own code. @param {string} query @returns {Promise<Hit[]>} */
async function lines(query) {
  const low = query.toLowerCase();
  const all = [...await files()].sort((a, b) => Number(a.library) - Number(b.library));
  const found = /** @type {Hit[]} */ (all.filter((one) => one.file.toLowerCase().includes(low)).slice(0, 6).map((one) => ({ kind: "file", title: one.name, detail: one.file, act: () => go({ view: "source", file: one.file, line: "" }) })));
  for (const one of all.filter((one) => !one.library).slice(0, 40)) {
    const answer = await textOf(one.file).catch(() => null);
    for (const row of answer?.doc.lines ?? []) {
      if (found.length > 30) return found;
      if (row.text.toLowerCase().includes(low)) found.push({ kind: "line", title: row.text.trim(), detail: `${base(one.file)}:${row.line}${row.count === null ? "" : ` · ${counted(row.count, "execution")}`}`, act: () => go({ view: "source", file: one.file, line: String(row.line) }) });
    }
  }
  return found;
}

/** The output to each stream, as hexadecimal digits. */
const printed = once(async () => {
  const { doc } = await ask("output");
  return ["stdout", "stderr"].map((stream) => ({ stream, hex: /** @type {string} */ (doc.writes.filter((/** @type {any} */ one) => one.stream === stream).map((/** @type {any} */ one) => one.bytes).join("")) }));
});

/** Finds text in the output. @param {string} query @returns {Promise<Hit[]>} */
async function output(query) {
  const found = /** @type {Hit[]} */ ([]);
  const wanted = [...new TextEncoder().encode(query)].map((byte) => byte.toString(16).padStart(2, "0")).join("");
  for (const { stream, hex } of await printed()) {
    for (let at = hex.indexOf(wanted); at >= 0 && found.length < 8; at = hex.indexOf(wanted, at + 1)) {
      if (at % 2) continue;
      const byte = at / 2;
      const near = hex.slice(2 * Math.max(0, byte - 16), 2 * (byte + 40)).match(/../g) ?? [];
      const around = new TextDecoder().decode(Uint8Array.from(near, (one) => Number.parseInt(one, 16)));
      found.push({ kind: "output", title: visible(around.replaceAll("\n", "⏎")), detail: `byte ${grouped(byte)} of ${stream}`, act: () => go({ view: "why", about: `${stream}:${byte}` }) });
    }
  }
  return found;
}
