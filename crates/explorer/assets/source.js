/** Shows source with exact counts and values, and the executions of a line. */
import { ask, once, Superseded } from "./api.js";
import { answered, color, column, counted, empty, failed, fill, grouped, h, loading, sharp, virtual } from "./dom.js";
import { focus, frame, go, known, lineOf, onhint, onmoment, executionsAt, executionsOf, range } from "./focus.js";
import { execution, here, say } from "./moves.js";
import { step as stepInstructions, told as toldWat, wat } from "./wat.js";

/** The files of the program. @type {() => Promise<any[]>} */
export const files = once(() => ask("files").then((answer) => {
  for (const one of answer.doc.files) short.set(one.file, one.name);
  return answer.doc.files;
}));
/** @type {Map<string, string>} */
const short = new Map();
/** Returns a line in the form that commands take, with the shortest unique name of its file. @param {{ file: string, line: number }} at */
export const lineName = ({ file, line }) => `${short.get(file) ?? file}:${line}`;

/** @type {Map<string, Promise<import("./api.js").Answer>>} */
const texts = new Map();
/** The maximum number of files with counts to keep. The server keeps more. */
const TEXTS = 64;
/** Returns a file with its counts, for the range if there is one. @param {string} file @returns {Promise<import("./api.js").Answer>} */
export function text(file) {
  const key = `${file} ${focus.from ?? ""} ${focus.to ?? ""}`;
  let found = texts.get(key);
  if (!found) {
    found = ask("source", { file, ...range() });
    if (texts.size >= TEXTS) texts.delete(texts.keys().next().value ?? "");
    texts.set(key, found);
    found.catch(() => texts.delete(key));
  }
  return found;
}

const HEIGHT = 21;
/** @type {{ root: HTMLElement, tree: HTMLElement, head: HTMLElement, scroller: HTMLElement, foot: HTMLElement, below: HTMLElement } | null} */
let made = null;
/** @type {{ key: string, doc: any, answer: any, tokens: [string, string][][], list: ReturnType<typeof virtual>, most: number, values: number } | null} */
let open = null;

/** @param {HTMLElement} into */
export function source(into) {
  if (!made) {
    const [tree, head, foot, below] = ["tree", "title", "lines-foot", "executions"].map((name) => h(`div.${name}`, null));
    const scroller = h("div.code", { tabindex: 0, role: "region", "aria-label": "Source, line by line. The arrow keys choose a line; Enter goes to its first execution", "data-own-keys": "", onkeydown: move });
    made = { root: h("div.source", null, h("h1.sr", null, "Source"), tree, h("div.text", null, head, scroller, below, foot)), tree, head, scroller, foot, below };
  }
  // Another view was shown in between. This view keeps its contents, but not its scroll position.
  if (made.root.parentElement !== into) {
    fill(into, made.root);
    shownLine = "";
  }
  void showTree();
  void show();
}
onmoment(() => { if (made?.root.isConnected) void show(); });
// Request the text, and the executions of the line, while the state is being found.
onhint((moment) => {
  const line = moment.around ?? moment.source;
  if (!made?.root.isConnected || !line || focus.file) return;
  void text(line.file).catch(() => { /* the code that shows the text reports the error */ });
  const question = executionsAt(moment, focus.at);
  if (!question) return;
  const asked = { key: JSON.stringify(question), answer: ask(...question, "strip") };
  early = asked;
  // If it fails, the strip asks again, and reports the error.
  asked.answer.catch(() => { if (early === asked) early = null; });
});

/** The question about executions that was asked before the state was known, and its answer. @type {{ key: string, answer: Promise<import("./api.js").Answer> } | null} */
let early = null;

/** Returns the selected file and line: those that the user chose, or those of the moment. */
async function wanted() {
  const own = known.state ? frame() : null;
  const chosen = focus.file ? { file: focus.file, line: Number(focus.line) || 0 } : null;
  const at = lineOf(own);
  const stands = at ? { file: at.file, line: at.line } : null;
  if (chosen) return chosen;
  if (stands) return stands;
  const all = await files();
  const first = all.find((one) => !one.library && one.executed) ?? all[0];
  return first ? { file: first.file, line: 0 } : null;
}

let shows = 0;
async function show() {
  if (!made) return;
  const parts = made;
  const number = (shows += 1);
  // Show the answer to the latest question, in whatever order answers arrive.
  const isOld = () => number !== shows || !parts.root.isConnected;
  // Lines or instructions stay until others are known.
  const waits = (/** @type {string} */ why) => { if (!parts.scroller.querySelector(".row")) fill(parts.scroller, loading(why)); };
  if (focus.at && !focus.file && known.waits) {
    // Keep what is shown until the moment is known. Do not ask for the source of the previous moment again.
    waits("Following the run to the moment …");
    return;
  }
  try {
    const want = await wanted();
    if (isOld()) return;
    if (!want) return await instructions(parts, "The program has no line tables, so no source is known; compile it with -g. These are its instructions.", null);
    if (focus.code === "wat") return await instructions(parts, null, h("button", { type: "button", onclick: () => go({ code: "" }) }, "Source"));
    const key = `${want.file} ${focus.from ?? ""} ${focus.to ?? ""}`;
    if (open?.key !== key) {
      waits("Counting …");
      const answer = await text(want.file);
      if (isOld()) return;
      const { missing } = answer.doc;
      // A file that the user chose shows its own lines, even without their text.
      if (missing && focus.code !== "lines" && !focus.file) return await instructions(parts, missing, h("button", { type: "button", title: "Lines with their counts, without text", onclick: () => go({ code: "lines" }) }, "Lines"));
      begin(key, answer);
    }
    if (!open) return;
    const stands = lineOf(frame());
    const line = want.line || (stands?.file === want.file ? stands.line : 0);
    const index = open.doc.lines.findIndex((/** @type {any} */ row) => row.line === line);
    open.values = below(stands);
    if (!line && shownLine !== key) {
      // The first lines are often remarks.
      shownLine = key;
      open.list.show(Math.max(0, open.doc.lines.findIndex((/** @type {any} */ row) => row.count)));
    } else if (index >= 0 && shownLine !== `${key} ${line} ${focus.at}`) {
      shownLine = `${key} ${line} ${focus.at}`;
      open.list.show(rowOf(index));
    } else open.list.draw();
    mark();
    void strip(want.file, line);
  } catch (error) {
    if (error instanceof Superseded || isOld()) return;
    // The old counts belong to another question.
    [open, stripped, shownLine] = [null, "", ""];
    parts.below.hidden = true;
    fill(parts.head);
    fill(parts.foot);
    fill(parts.scroller, failed(error));
  }
}
let shownLine = "";

/** @param {NonNullable<typeof made>} parts @param {string | null} why @param {Node | null} back */
async function instructions(parts, why, back) {
  [open, stripped, shownLine] = [null, "", ""];
  await wat(parts, why, back).catch((error) => toldWat(error, parts.scroller));
}

/** @param {string} key @param {import("./api.js").Answer} answer */
function begin(key, answer) {
  if (!made) return;
  const { doc } = answer;
  const most = doc.lines.reduce((/** @type {number} */ most, /** @type {any} */ row) => Math.max(most, row.instructions), 1);
  fill(made.head, h("h2", { title: doc.file }, doc.name), doc.library && h("span.tag", null, "library"), doc.range && h("span.tag.range", null, `counts of t=${grouped(doc.range.first_t)} … ${grouped(doc.range.last_t)}`),
    h("button.quiet", { type: "button", title: "Show instructions of the function at the moment", onclick: () => go({ code: "wat" }) }, "Instructions"),
    h("span.grow", null), h("span.soft", null, `${grouped(doc.lines.filter((/** @type {any} */ row) => row.count > 0).length)} of ${counted(doc.lines.filter((/** @type {any} */ row) => row.count !== null).length, "line")} executed`));
  if (doc.missing) made.head.append(h("p.note", null, doc.missing));
  const tokens = highlighted(doc);
  column(made.scroller, doc.lines.reduce((/** @type {number} */ most, /** @type {any} */ row) => Math.max(most, row.count ?? 0), 0));
  // The list draws its rows immediately, and they read `open`.
  open = { key, doc, answer, most, tokens, values: -1, list: /** @type {any} */ (null) };
  open.list = virtual(made.scroller, HEIGHT, doc.lines.length + 1, row);
  fill(made.foot, answered(answer));
  if (!doc.lines.length) fill(made.scroller, empty("This file has no lines."));
}

/** Returns a line of the open file in the form that commands take. @param {number} line */
const place = (line) => `${open?.doc.name}:${line}`;

/** Returns the index of the line at the moment, if values are shown in a row below it; otherwise -1. @param {any} stands */
const below = (stands) => (open && stands?.file === open.doc.file ? open.doc.lines.findIndex((/** @type {any} */ row) => row.line === stands.line && beside(row, true)) : -1);
/** Returns the row of a line. @param {number} index */
const rowOf = (index) => (open && open.values >= 0 && index > open.values ? index + 1 : index);

/** Creates the row of a line, or of the values at the moment. The last row is empty if there are no values. @param {number} at */
function row(at) {
  // Until the instructions are known, the list still shows the source.
  if (!open) return h("div.row", null);
  const { doc, tokens, most, values } = open;
  const index = values >= 0 && at > values ? at - 1 : at;
  const one = doc.lines[index];
  if (values >= 0 && at === values + 1) return h("div.row.below", { role: "listitem", "aria-label": "Values at the moment" }, beside(doc.lines[values], true));
  if (!one) return h("div.row", null);
  const stands = lineOf(frame());
  const here = stands?.file === doc.file && stands.line === one.line;
  const selected = focus.file === doc.file && Number(focus.line) === one.line;
  const heat = h("span.heat", { "aria-hidden": "true" });
  heat.style.opacity = one.count ? String(0.08 + 0.92 * Math.sqrt(one.instructions / most)) : "0";
  const branches = one.branches ?? [];
  const ways = branches.length === 1 && branches[0].ways.length === 2 ? branches[0].ways : null;
  const told = branches.map((/** @type {any} */ branch) => branch.ways.map((/** @type {any} */ way) => `${way.kind} ${grouped(way.count)}`).join(", ")).join("; ");
  const ratio = ways && branches[0].count ? h("span.ratio", { title: told }) : branches.length > 1 || branches[0]?.ways.length > 2 ? h("span.several", { title: told }, "⋔") : null;
  if (ratio && ways) {
    const part = h("i", null);
    part.style.width = `${(100 * ways[0].count) / branches[0].count}%`;
    if (!ways[0].count || !ways[1].count) ratio.classList.add("one");
    ratio.append(part);
  }
  const never = one.count === 0;
  const words = one.elsewhere ? "not executed in the range, but at another time" : never ? "never ran" : one.count === null ? "" : counted(one.count, "execution");
  const values_ = here && values === index ? null : beside(one, here);
  const made = h(`div.row${values_ ? ".valued" : ""}${never ? ".never" : ""}${one.elsewhere ? ".elsewhere" : ""}${one.count === null ? ".none" : ""}${here ? ".here" : ""}${selected ? ".on" : ""}`, {
    role: "listitem", id: `line-${one.line}`, "data-index": at, "aria-current": selected || here ? "true" : null,
    onclick: (/** @type {MouseEvent} */ clicked) => { if (!/** @type {HTMLElement} */ (clicked.target).closest("button") && !String(getSelection())) go({ file: doc.file, line: String(one.line) }, Boolean(focus.file === doc.file)); },
    ondblclick: () => { if (one.count) go({ at: `${place(one.line)}#1`, file: "", line: "" }); },
  }, heat, h("span.count", { title: words }, one.count ? grouped(one.count) : ""), h("span.ways", null, ratio), h("span.number", null, one.line),
    h("span.mark", { "aria-hidden": "true" }, here ? "▸" : ""), h("code.line", null, tokens[index].map(([kind, part]) => h(kind ? `span.${kind}` : "span", null, part))), values_,
    never && h("button.whynot", { type: "button", tabindex: -1, title: one.elsewhere ? "Why is it not executed in the range?" : "Why did it never run?", onclick: () => go({ view: "why", about: `not:${place(one.line)}` }) }, "why not?"));
  return made;
}

/** Shows values beside a line: of the variables that it declares and, at the moment's line, of all variables that it names. @param {any} one @param {boolean} here */
function beside(one, here) {
  const own = frame();
  if (!own?.variables || lineOf(own)?.file !== open?.doc.file) return null;
  const shown = own.variables.filter((/** @type {any} */ variable) => variable.name && variable.value && !variable.shadowed && (here
    ? new RegExp(`(^|[^\\w.])${variable.name.replace(/[^\w]/g, "\\$&")}(?![\\w])`).test(one.text) : variable.declared === one.line));
  if (!shown.length) return null;
  return h("span.values", null, shown.slice(0, 4).map((/** @type {any} */ variable) => h(`button.value${variable.value.length + variable.name.length > 14 ? "" : ".small"}`, { type: "button", tabindex: -1, title: `${variable.name}: ${variable.type}. Where did it come from?`,
    onclick: () => go({ view: "why", about: `var:${variable.name}` }) }, h("span.soft", null, `${variable.name} `), variable.value.length > 34 ? `${variable.value.slice(0, 33)}…` : variable.value)));
}

/** Handles keys: the arrow keys choose a line, and Enter goes to its first execution or asks why there is none. @param {KeyboardEvent} pressed */
export function move(pressed) {
  if (!open) return stepInstructions(pressed);
  const { lines, file } = open.doc;
  const stands = lineOf(frame());
  const line = focus.file === file ? Number(focus.line) : stands?.file === file ? stands.line : 1;
  const index = lines.findIndex((/** @type {any} */ row) => row.line === line);
  const next = { ArrowDown: index + 1, ArrowUp: index - 1, PageDown: index + 25, PageUp: index - 25, Home: 0, End: lines.length - 1 }[pressed.key];
  const one = lines[index];
  if (pressed.key === "Enter" && one) {
    if (one.count === 0) go({ view: "why", about: `not:${place(one.line)}` });
    else if (one.count) go({ at: `${place(one.line)}#1`, file: "", line: "" });
    else say("This line has no code.");
  } else if (next === undefined) return;
  else {
    const to = Math.min(lines.length - 1, Math.max(0, next));
    go({ file, line: String(lines[to].line) }, true);
    open.list.show(rowOf(to));
  }
  pressed.preventDefault();
  pressed.stopPropagation();
}

/** The range in which the list of files is counted. */
let counted_ = "";
/** Lists the files, with counts of the range if one is chosen. */
async function showTree() {
  const key = JSON.stringify(range());
  if (!made || counted_ === key) return;
  counted_ = key;
  try {
    const all = focus.from && focus.to ? (await ask("files", range(), "files")).doc.files : await files();
    if (counted_ !== key) return;
    const own = all.filter((/** @type {any} */ one) => !one.library);
    const others = all.filter((/** @type {any} */ one) => one.library && one.executed);
    const link = (/** @type {any} */ one) => h("button.file", { type: "button", title: one.file, "data-file": one.file, onclick: () => go({ file: one.file, line: "" }) }, h("span.name", null, one.name),
      h("span.part", { title: `${grouped(one.executed)} of ${grouped(one.lines)} lines executed` }, `${Math.round((100 * one.executed) / one.lines)}%`));
    fill(made.tree, h("h2", null, "Files"), own.length ? own.map(link) : h("p.soft", null, "No code of your own has lines."),
      others.length ? h("details", null, h("summary", null, `${counted(others.length, "library file")}`), others.map(link)) : null);
    mark();
  } catch (error) {
    counted_ = "";
    if (!(error instanceof Superseded)) fill(made.tree, failed(error));
  }
}

function mark() {
  for (const one of made?.tree.querySelectorAll("[data-file]") ?? []) one.setAttribute("aria-current", String(/** @type {HTMLElement} */ (one).dataset.file === open?.doc.file));
}

let stripped = "";
/** Shows the executions of a line over time. @param {string} file @param {number} line */
async function strip(file, line) {
  if (!made || !open) return;
  const row = open.doc.lines.find((/** @type {any} */ one) => one.line === line);
  if (!row?.count) { stripped = ""; made.below.hidden = true; return; }
  made.below.hidden = false;
  const key = `${file}:${line} ${focus.at ?? ""} ${focus.from ?? ""} ${focus.to ?? ""}`;
  if (stripped === key) return;
  stripped = key;
  const into = made.below;
  try {
    const now = known.moment;
    const onIt = now?.arrives && now.source?.file === file && now.source?.line === line;
    // The name of the moment has its number, so that all executions of a line ask the same question.
    const question = executionsOf({ file, line }, onIt ? undefined : focus.at);
    const answer = await (early?.key === JSON.stringify(question) ? early.answer : ask(...question, "strip"));
    if (stripped !== key) return;
    const { executions, count, by, within } = answer.doc;
    const canvas = h("canvas", { tabindex: 0, role: "img", "data-own-keys": "", "aria-label": `${counted(within, "execution")} of line ${line} over time; the buttons beside it go through them`, onclick: (/** @type {MouseEvent} */ clicked) => {
      const box = canvas.getBoundingClientRect();
      const t = first + ((clicked.clientX - box.left) / box.width) * (last - first);
      const nearest = executions.reduce((/** @type {any} */ best, /** @type {any} */ one) => (Math.abs(one.t - t) < Math.abs(best.t - t) ? one : best), executions[0]);
      if (nearest) go({ at: `${place(line)}#${nearest.number}`, file: "", line: "" });
    } });
    const length = now?.length ?? executions[executions.length - 1]?.t ?? 1;
    const [first, last] = [Number(focus.from) || 1, Number(focus.to) || length];
    const draw = () => {
      if (!canvas.isConnected) return;
      const width = canvas.parentElement?.clientWidth ?? 400;
      const to = sharp(canvas, width, 26);
      to.fillStyle = color("panel-2");
      to.fillRect(0, 12, width, 2);
      to.fillStyle = color("accent");
      const x = (/** @type {number} */ t) => ((t - first) / Math.max(1, last - first)) * (width - 2);
      to.globalAlpha = executions.length > width ? 0.35 : 0.75;
      for (const one of executions) to.fillRect(x(one.t), 6, 1.5, 14);
      to.globalAlpha = 1;
      if (now) { to.fillStyle = color("moment"); to.fillRect(x(now.t), 1, 2, 24); }
    };
    const which = h("input", { type: "text", size: 7, value: onIt ? now.arrival : by ? by : "", inputmode: "numeric", "aria-label": "Number of the execution", onchange: () => {
      const number = Number(which.value.replaceAll(",", ""));
      if (Number.isSafeInteger(number) && number >= 1 && number <= count) go({ at: `${place(line)}#${number}`, file: "", line: "" });
      else say(`The line has executions 1 to ${grouped(count)}.`);
    } });
    const where = h("input.where", { type: "text", placeholder: "where n < 0", value: conditionAt(place(line)), "aria-label": "Only executions where a condition holds", spellcheck: "false", oninput: () => { condition = { at: place(line), text: where.value }; },
      onkeydown: (/** @type {KeyboardEvent} */ pressed) => { if (pressed.key === "Enter") void step(pressed.shiftKey ? -1 : 1); } });
    const step = (/** @type {1 | -1} */ by_) => known.moment ? execution(by_, conditionAt(place(line)), place(line)) : go({ at: `${place(line)}#${by_ > 0 ? 1 : "last"}`, file: "", line: "" });
    const button = (/** @type {string} */ sign, /** @type {string} */ title, /** @type {() => any} */ act) => h("button", { type: "button", title, "aria-label": title, onclick: act }, sign);
    fill(into, h("div.controls", null, h("strong", null, place(line)), button("⇤", "First execution", () => go({ at: `${place(line)}#1`, file: "", line: "" })), button("◂", "Previous execution (C)", () => step(-1)),
      h("label", null, "# ", which), h("span.soft", null, `of ${grouped(count)}${within < count ? `, ${grouped(within)} in the range` : ""}`), button("▸", "Next execution (c)", () => step(1)), button("⇥", "Last execution", () => go({ at: `${place(line)}#last`, file: "", line: "" })),
      where, executions.length < within && h("span.soft", null, `${grouped(executions.length)} shown, evenly`)), h("div.plot", null, canvas));
    draw();
    new ResizeObserver(draw).observe(/** @type {Element} */ (canvas.parentElement));
  } catch (error) {
    if (!(error instanceof Superseded)) fill(into, failed(error));
  }
}
/** The condition on the executions of a line. */
let condition = { at: "", text: "" };
/** Returns the condition on the executions of a line, if the user wrote one. @param {string | null} at */
const conditionAt = (at) => (at !== null && condition.at === at ? condition.text.trim().replace(/^where\s+/, "") : "");
/** Moves to the next execution of the line at which its condition holds, or to the previous one. @param {1 | -1} step */
export const executionWhere = (step) => execution(step, conditionAt(here()));

const WORDS = new Set(("alignas auto bool break case catch char class const constexpr continue crate default delete do double else enum explicit export extern false float fn for friend goto if impl in inline int let long loop match mod move mut namespace new nullptr NULL operator private protected pub public ref register return self Self short signed sizeof static struct super switch template this throw trait true try type typedef typename union unsafe unsigned use using virtual void volatile where while i8 i16 i32 i64 u8 u16 u32 u64 usize isize f32 f64 str size_t").split(" "));

/** The parts of each file that was shown. @type {WeakMap<any, [string, string][][]>} */
const parted = new WeakMap();
/** Returns the parts of the lines of a file. @param {any} doc */
function highlighted(doc) {
  const parts = parted.get(doc) ?? highlight(doc.lines.map((/** @type {any} */ row) => row.text));
  parted.set(doc, parts);
  return parts;
}

/**
 * Finds keywords, strings and comments of C, C++ and Rust. Returns the parts of each line, each with its kind and its text.
 * @param {string[]} lines @returns {[string, string][][]}
 */
function highlight(lines) {
  let inside = false;
  return lines.map((line) => {
    const parts = /** @type {[string, string][]} */ ([]);
    const token = /\/\/.*|\/\*|"(?:\\.|[^"\\])*"?|'(?:\\.|[^'\\])'|^\s*#\s*\w+|[A-Za-z_]\w*|\d[\w.]*/g;
    let at = 0;
    const put = (/** @type {string} */ kind, /** @type {number} */ from, /** @type {number} */ to) => {
      if (from > at) parts.push(["", line.slice(at, from)]);
      parts.push([kind, line.slice(from, to)]);
      at = to;
    };
    if (inside) {
      const end = line.indexOf("*/");
      if (end < 0) { put("remark", 0, line.length); return parts; }
      put("remark", 0, end + 2);
      inside = false;
      token.lastIndex = end + 2;
    }
    for (let found = token.exec(line); found; found = token.exec(line)) {
      const [text] = found;
      if (text === "/*") {
        const end = line.indexOf("*/", found.index + 2);
        inside = end < 0;
        put("remark", found.index, inside ? line.length : end + 2);
        token.lastIndex = at;
        if (inside) break;
      } else if (text.startsWith("//")) put("remark", found.index, line.length);
      else if (/^["']/.test(text)) put("string", found.index, found.index + text.length);
      else if (/^\s*#/.test(text)) put("word", found.index, found.index + text.length);
      else if (/^\d/.test(text)) put("digit", found.index, found.index + text.length);
      else if (WORDS.has(text)) put("word", found.index, found.index + text.length);
    }
    if (at < line.length) parts.push(["", line.slice(at)]);
    return parts;
  });
}
