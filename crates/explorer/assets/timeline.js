/** Shows calls over time. The range that the user drags applies to the counts of all views. */
import { ask, Superseded } from "./api.js";
import { answered, color, counted, empty, failed, fill, grouped, h, loading, panel, sharp, whose } from "./dom.js";
import { focus, go, known, onmoment } from "./focus.js";
import { plain } from "./names.js";
import { hot, hottest } from "./overview.js";

/** @typedef {{ name: string, from: number, to: number, depth: number, merged: number }} Call */

/** The visible part of the run. @type {{ from: number, to: number } | null} */
let seen = null;
let length = 0;
/** @type {Call[]} */
let calls = [];
/** @type {any} */
let parts = null;
let asked = "";
let code = "mine";
let drag = /** @type {{ from: number, to: number } | null} */ (null);

/** @param {HTMLElement} into */
export function timeline(into) {
  if (!parts) {
    const canvas = h("canvas", { tabindex: 0, role: "img", "data-own-keys": "", "aria-label": "Calls over time. Plus and minus zoom, the arrow keys move, r makes the visible part the range" });
    const holder = h("div.tracks", null, canvas);
    const tip = h("div.tip", { "aria-live": "polite" });
    const [note, table] = [h("div", null), h("div", null)];
    const code_ = whose(code, (value) => { code = value; void find(); void counts(); });
    const button = (/** @type {string} */ text, /** @type {() => any} */ act) => h("button", { type: "button", onclick: act }, text);
    parts = { canvas, holder, tip, note, table, root: h("div.timeline", null, h("h1.sr", null, "Timeline"), panel("Calls over time", [
      code_, button("Whole run", () => zoom(1, length)), button("−", () => scale(2)), button("+", () => scale(0.5)), button("Zoom to range", () => focus.from && zoom(Number(focus.from), Number(focus.to))), button("Clear range", () => go({ from: "", to: "" }))],
    holder, tip, note), table) };
    listen(canvas);
    new ResizeObserver(() => draw()).observe(holder);
  }
  if (parts.root.parentElement !== into) {
    fill(into, parts.root);
    look();
  }
  draw();
  void counts();
}
window.addEventListener("themechange", () => parts?.root.isConnected && draw());
onmoment(() => parts?.root.isConnected && draw());

/** @param {number} factor */
function scale(factor) {
  if (!seen) return;
  const middle = known.moment && known.moment.t >= seen.from && known.moment.t <= seen.to ? known.moment.t : (seen.from + seen.to) / 2;
  const wide = Math.max(8, (seen.to - seen.from) * factor);
  zoom(Math.round(middle - (middle - seen.from) * (wide / (seen.to - seen.from || 1))), Math.round(middle + (seen.to - middle) * (wide / (seen.to - seen.from || 1))));
}

/** @param {number} from @param {number} to */
function zoom(from, to) {
  seen = { from: Math.max(1, Math.min(from, length)), to: Math.max(Math.max(1, from) + 1, Math.min(to, length)) };
  draw();
  look();
}

let timer = 0;
let looked = 0;
/** Asks for the calls, immediately or after a pause in zooming. */
function look() {
  clearTimeout(timer);
  const since = performance.now() - looked;
  looked = performance.now();
  if (since > 200) void find();
  else timer = window.setTimeout(find, 60);
}

async function find() {
  try {
    if (!length) {
      fill(parts.note, loading("Following the path …"));
      length = (await ask("moment", { at: "end" }, "length")).doc.length;
      seen ??= { from: 1, to: length };
    }
    const { from, to } = /** @type {{ from: number, to: number }} */ (seen);
    const key = `${from} ${to} ${code}`;
    if (asked === key) return;
    asked = key;
    // Calls that are narrower than a pixel are merged with their neighbours, and show their number.
    const least = Math.max(1, Math.floor((to - from) / 900));
    const answer = await ask("export", { format: "perfetto", from: `t=${from}`, to: `t=${to}`, min: least, depth: 48, code }, "timeline");
    calls = read(JSON.parse(answer.text), from, to);
    fill(parts.note, h("p.more", null, `${counted(calls.length, "bar")}; calls shorter than ${counted(least, "block")} are merged${code === "mine" ? "; library code counts for its callers" : ""}`), twin(), answered(answer));
    draw();
  } catch (error) {
    asked = "";
    if (!(error instanceof Superseded)) fill(parts.note, failed(error));
  }
}

/** The maximum number of calls in the table. */
const ROWS = 300;
/** Creates the table of the same calls, the longest first. */
function twin() {
  const made = h("details", { ontoggle: () => {
    if (!made.open || made.children.length > 1) return;
    const longest = [...calls].sort((a, b) => (b.to - b.from) - (a.to - a.from)).slice(0, ROWS);
    made.append(h("div.twin", { tabindex: 0, role: "region", "aria-label": "Calls over time" }, h("table.list", null, h("thead", null, h("tr", null, h("th", null, "Call"), h("th.n", null, "Depth"), h("th.n", null, "From"), h("th.n", null, "Blocks"))), h("tbody", null, longest.map((call) =>
      h("tr", null, h("td", null, h("button.link", { type: "button", onclick: () => go({ at: `t=${Math.max(1, call.from)}` }) }, plain(call.name))), h("td.n", null, call.depth), h("td.n", null, `t=${grouped(call.from)}`), h("td.n", null, grouped(call.to - call.from)))))),
      calls.length > ROWS && h("p.soft", null, `and ${counted(calls.length - ROWS, "shorter bar")}`)));
  } }, h("summary", null, "As a table"));
  return made;
}

/** @param {any} doc @param {number} first @param {number} last @returns {Call[]} */
function read(doc, first, last) {
  const found = /** @type {Call[]} */ ([]);
  const open = /** @type {Call[]} */ ([]);
  for (const event of doc.traceEvents) {
    if (event.ph === "B") {
      const call = { name: event.name, from: event.ts, to: last + 1, depth: open.length, merged: 0 };
      open.push(call);
      found.push(call);
    } else if (event.ph === "E") {
      const call = open.pop();
      if (call) call.to = event.ts;
    } else if (event.ph === "X") found.push({ name: `${counted(event.args.calls, "short call")}`, from: event.ts, to: event.ts + event.dur, depth: open.length, merged: event.args.calls });
  }
  return found.filter((call) => call.to >= first);
}

const HEIGHT = 20;
/** @param {number} t @param {number} width */
const x = (t, width) => (seen ? ((t - seen.from) / (seen.to + 1 - seen.from)) * width : 0);
/** @param {MouseEvent} event */
const timeAt = (event) => {
  const box = parts.canvas.getBoundingClientRect();
  return seen ? Math.round(seen.from + ((event.clientX - box.left) / box.width) * (seen.to + 1 - seen.from)) : 1;
};

function draw() {
  if (!parts || !seen) return;
  const width = parts.holder.clientWidth || 800;
  const depth = calls.reduce((most, call) => Math.max(most, call.depth), 0);
  const height = Math.max(120, (depth + 1) * HEIGHT + 30);
  const to = sharp(parts.canvas, width, height);
  to.clearRect(0, 0, width, height);
  to.font = "11px ui-monospace, SFMono-Regular, Menlo, monospace";
  to.textBaseline = "middle";
  to.fillStyle = color("soft");
  const step = nice((seen.to - seen.from) / Math.max(2, width / 130));
  for (let t = Math.ceil(seen.from / step) * step; t <= seen.to; t += step) {
    to.fillStyle = color("line");
    to.fillRect(Math.round(x(t, width)), 18, 1, height);
    to.fillStyle = color("soft");
    to.fillText(grouped(t), Math.min(width - 60, x(t, width) + 4), 9);
  }
  let hue = 0;
  for (const call of calls) {
    const left = Math.max(0, x(call.from, width));
    const right = Math.min(width, x(call.to, width));
    if (right <= 0 || left >= width) continue;
    const wide = Math.max(0.8, right - left - 0.6);
    hue = 0;
    for (const char of call.name) hue = (hue * 31 + (char.codePointAt(0) ?? 0)) | 0;
    to.fillStyle = call.merged ? color("flame-x") : color(`flame-${Math.abs(hue) % 6}`);
    to.fillRect(left, 22 + call.depth * HEIGHT, wide, HEIGHT - 2);
    if (wide > 40) {
      to.fillStyle = color("flame-ink");
      const room = Math.floor((wide - 8) / 6.7);
      const name = plain(call.name);
      to.fillText(name.length > room ? `${name.slice(0, Math.max(1, room - 1))}…` : name, left + 4, 21 + call.depth * HEIGHT + HEIGHT / 2);
    }
  }
  const range = drag ?? (focus.from && focus.to ? { from: Number(focus.from), to: Number(focus.to) } : null);
  if (range) {
    to.fillStyle = color("range");
    to.globalAlpha = 0.2;
    to.fillRect(x(Math.min(range.from, range.to), width), 18, Math.max(1, x(Math.max(range.from, range.to) + 1, width) - x(Math.min(range.from, range.to), width)), height);
    to.globalAlpha = 1;
  }
  if (known.moment) { to.fillStyle = color("moment"); to.fillRect(x(known.moment.t, width) - 1, 0, 2, height); }
}

/** Returns a round step for the axis. @param {number} least */
function nice(least) {
  const power = 10 ** Math.floor(Math.log10(Math.max(1, least)));
  return Math.max(1, [1, 2, 5, 10].map((one) => one * power).find((one) => one >= least) ?? power);
}

/** @param {HTMLCanvasElement} canvas */
function listen(canvas) {
  /** @param {MouseEvent} event */
  const under = (event) => {
    const box = canvas.getBoundingClientRect();
    const depth = Math.floor((event.clientY - box.top - 22) / HEIGHT);
    const t = timeAt(event);
    return calls.find((call) => call.depth === depth && t >= call.from && t < Math.max(call.to, call.from + 1)) ?? null;
  };
  canvas.addEventListener("mousedown", (event) => { if (event.button === 0) drag = { from: timeAt(event), to: timeAt(event) }; });
  canvas.addEventListener("mousemove", (event) => {
    if (drag) { drag.to = timeAt(event); draw(); }
    const call = under(event);
    parts.tip.textContent = drag && Math.abs(drag.to - drag.from) > 1 ? `t=${grouped(Math.min(drag.from, drag.to))} … ${grouped(Math.max(drag.from, drag.to))}: ${counted(Math.abs(drag.to - drag.from) + 1, "block")}`
      : call ? `${plain(call.name)} · t=${grouped(call.from)} … ${grouped(call.to - 1)} · ${counted(call.to - call.from, "block")}` : `t=${grouped(timeAt(event))}`;
  });
  window.addEventListener("mouseup", (event) => {
    if (!drag) return;
    const { from, to } = drag;
    drag = null;
    const box = canvas.getBoundingClientRect();
    const moved = Math.abs(x(to, box.width) - x(from, box.width)) > 3;
    if (moved) go({ from: String(Math.max(1, Math.min(from, to))), to: String(Math.min(length, Math.max(from, to))) });
    else if (event.target === canvas) go({ at: `t=${Math.max(1, Math.min(length, to))}` });
    draw();
  });
  canvas.addEventListener("dblclick", (event) => { const call = under(event); if (call) zoom(call.from, call.to - 1); });
  canvas.addEventListener("wheel", (event) => {
    if (!seen) return;
    event.preventDefault();
    const t = timeAt(event);
    const by = event.deltaY > 0 ? 1.25 : 0.8;
    if (event.shiftKey || Math.abs(event.deltaX) > Math.abs(event.deltaY)) {
      const move = Math.round(((event.deltaX || event.deltaY) / 600) * (seen.to - seen.from));
      return zoom(seen.from + move, seen.to + move);
    }
    zoom(Math.round(t - (t - seen.from) * by), Math.round(t + (seen.to - t) * by));
  }, { passive: false });
}

/** Zooms or moves the timeline. @param {KeyboardEvent} pressed */
export function zoomBy(pressed) {
  if (!seen) return;
  const wide = seen.to - seen.from;
  const acts = /** @type {Record<string, () => void>} */ ({ "+": () => scale(0.5), "=": () => scale(0.5), "-": () => scale(2), 0: () => zoom(1, length),
    ArrowRight: () => seen && zoom(seen.from + Math.ceil(wide / 5), seen.to + Math.ceil(wide / 5)), ArrowLeft: () => seen && zoom(seen.from - Math.ceil(wide / 5), seen.to - Math.ceil(wide / 5)),
    r: () => seen && go({ from: String(seen.from), to: String(seen.to) }) });
  const act = acts[pressed.key];
  if (!act) return;
  pressed.preventDefault();
  act();
}

let counted_ = "";
async function counts() {
  const key = `${focus.from ?? ""} ${focus.to ?? ""} ${code}`;
  if (counted_ === key && parts.table.hasChildNodes()) return;
  counted_ = key;
  const ranged = focus.from && focus.to;
  if (!ranged) return fill(parts.table, empty(h("p", null, "Drag over the calls to choose a range of time. All counts, here and in the source, then cover exactly that range.")));
  try {
    const answer = await hottest(code, "range");
    fill(parts.table, panel(`Functions from t=${grouped(Number(focus.from))} to t=${grouped(Number(focus.to))}`, null, hot(answer.doc, 200), answered(answer)));
  } catch (error) { if (!(error instanceof Superseded)) fill(parts.table, failed(error)); }
}
