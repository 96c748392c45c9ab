/** Builds the frame of the page around the views, and selects the view to show. */
import { ask, busy, cancel, onanswer, once, told } from "./api.js";
import { base, fill, grouped, h, time } from "./dom.js";
import { address, called, focus, follow, go, known, onmoment, stand } from "./focus.js";
import { help, keys } from "./keys.js";
import { moves, say } from "./moves.js";
import { learn } from "./names.js";
import { notes } from "./notes.js";
import { overview } from "./overview.js";
import { search } from "./search.js";
import { source } from "./source.js";
import { dock } from "./state.js";
import { timeline } from "./timeline.js";
import { functions } from "./function.js";
import { why } from "./why.js";

/** @type {Record<string, { name: string, key: string, sign: string, show: (into: HTMLElement) => void }>} */
const VIEWS = {
  overview: { name: "Overview", key: "1", sign: "◎", show: overview },
  source: { name: "Source", key: "2", sign: "≡", show: source },
  why: { name: "Why", key: "3", sign: "↶", show: why },
  timeline: { name: "Timeline", key: "4", sign: "▤", show: timeline },
  function: { name: "Function", key: "5", sign: "ƒ", show: functions },
  notes: { name: "Notes", key: "6", sign: "✎", show: notes },
};

/** @param {string} id */
const the = (id) => /** @type {HTMLElement} */ (document.getElementById(id));

/** The server's description of the page. */
export const page = { file: "", command: "", read_only: false, notes: "", version: "" };

function theme(/** @type {string} */ chosen) {
  document.documentElement.dataset.theme = chosen;
  try { localStorage.setItem("afterimage-theme", chosen); } catch { /* the browser may not allow storage */ }
  window.dispatchEvent(new Event("themechange"));
}

function bar() {
  const at = h("button.moment", { type: "button", id: "moment", title: "The moment. Click to go to another", onclick: () => search("") });
  const dark = () => document.documentElement.dataset.theme === "dark";
  fill(the("bar"),
    h("a.brand", { href: address({ view: "overview" }), title: page.file },
      h("img", { src: "icon.svg", alt: "", width: 22, height: 22 }), h("span", null, page.file.split("/").pop())),
    h("button.find", { type: "button", onclick: () => search(""), "aria-keyshortcuts": "/" }, h("span", null, "Search or go to …"), h("kbd", null, "/")),
    h("div.grow", null), moves(), at,
    h("button.quiet", { type: "button", id: "copy-link", title: "Copy the command that opens this place (.)", "aria-label": "Copy link", onclick: copy }, h("span.wide", null, "Copy link"), h("span.narrow", null, "Link")),
    h("button.quiet.icon", { type: "button", title: "Light or dark", "aria-label": "Light or dark theme", onclick: () => theme(dark() ? "light" : "dark") }, "◐"),
    h("button.quiet.icon", { type: "button", title: "Keys (?)", "aria-label": "Keys", onclick: help }, "?"));
}

/** Copies the command that opens this place. The command does not contain the token. */
export async function copy() {
  const at = focus.at ? ` --at '${focus.at.replaceAll("'", "'\\''")}'` : "";
  await navigator.clipboard.writeText(page.command + at);
  say("Copied the command that opens this place.");
}

function nav() {
  fill(the("nav"), Object.entries(VIEWS).map(([id, view]) =>
    h("a", { href: address({ view: id }), "aria-current": focus.view === id ? "page" : null, "aria-keyshortcuts": view.key, title: `${view.name} (${view.key})` },
      h("span.sign", { "aria-hidden": "true" }, view.sign), h("span", null, view.name), h("kbd", { "aria-hidden": "true" }, view.key))));
}

function moment() {
  const button = document.getElementById("moment");
  if (!button) return;
  const now = known.moment;
  if (!focus.at) fill(button, h("span.soft", null, "no moment"));
  else if (known.error) fill(button, h("span.bad", null, focus.at));
  else if (!now) fill(button, focus.at);
  else fill(button, h("strong", null, called(now).startsWith("t=") ? `t=${grouped(now.t)}` : called(now)), now.around && h("span", { title: "The line that called this library code" }, `in ${base(now.around.file)}:${now.around.line}`), h("span.soft", null, `${called(now).startsWith("t=") ? "" : `t=${grouped(now.t)} `}of ${grouped(now.length)}`));
  button.classList.toggle("waits", known.waits);
  strip();
}

/** The number of blocks in the run, once it is needed without a moment. */
let whole = 0;
const measure = once(() => ask("moment", { at: "end" }).then(({ doc }) => { whole = doc.length; strip(); }));

/** Draws the run from its beginning to its end, with the moment and the range. */
function strip() {
  const now = known.moment;
  const length = now?.length ?? whole;
  if (!length && focus.from) void measure().catch(() => { /* the view of the range reports the error */ });
  const rail = h("div.rail", { role: "slider", tabindex: 0, "aria-label": "Moment in the run", "aria-valuemin": 1, "aria-valuemax": length || 1,
    "aria-valuenow": now?.t ?? 1, "aria-valuetext": now ? `t=${grouped(now.t)} of ${grouped(length)}` : "no moment",
    onclick: (/** @type {MouseEvent} */ clicked) => {
      const box = rail.getBoundingClientRect();
      if (length) go({ at: `t=${Math.max(1, Math.round(((clicked.clientX - box.left) / box.width) * length))}` });
    },
    onkeydown: (/** @type {KeyboardEvent} */ pressed) => {
      const step = { ArrowRight: 0.01, ArrowLeft: -0.01, PageUp: 0.1, PageDown: -0.1 }[pressed.key];
      if (!step || !now) return;
      pressed.preventDefault();
      pressed.stopPropagation();
      go({ at: `t=${Math.min(length, Math.max(1, Math.round(now.t + step * length)))}` });
    } });
  const place = (/** @type {number} */ t) => `${length ? (100 * (t - 1)) / Math.max(1, length - 1) : 0}%`;
  if (focus.from && focus.to && length) {
    const range = h("div.range", { title: `range t=${grouped(Number(focus.from))} to t=${grouped(Number(focus.to))}` });
    range.style.left = place(Number(focus.from));
    range.style.right = `calc(100% - ${place(Number(focus.to))})`;
    rail.append(range);
  }
  if (now) {
    const mark = h("div.mark", null);
    mark.style.left = place(now.t);
    rail.append(mark);
  }
  const range = focus.from && focus.to && h("button.quiet", { type: "button", title: "Count the whole run again", onclick: () => go({ from: "", to: "" }) },
    `range ${grouped(Number(focus.from))} … ${grouped(Number(focus.to))} ✕`);
  fill(the("strip"), rail, h("div.under", null, status, range));
}

const status = h("div.status", { role: "status", "aria-live": "polite" });

/** Shows the current questions and builds, with their speed and remaining time. */
async function progress() {
  try {
    const { works, answering } = await told("progress");
    const late = (/** @type {any} */ one) => one.milliseconds > 400;
    const [work, question] = [works.find(late), answering.find(late)];
    if (work ?? question) {
      const part = work?.total ? work.done / work.total : 0;
      const left = part > 0.02 ? `, about ${time((work.milliseconds / part) * (1 - part))} left` : "";
      const seconds = (work?.milliseconds ?? 0) / 1000;
      const rate = !seconds ? "" : work.units ? `, ${grouped(Math.round(work.done / seconds))} ${work.units}/s` : part ? `, ${((100 * part) / seconds).toFixed(1)} %/s` : "";
      const bar = h("progress", { max: 1, "aria-label": work?.what ?? "Answering" });
      if (work?.total) bar.value = part;
      fill(status, h("span.spin", { "aria-hidden": "true" }), work ? `${work.what}${work.total ? `, ${Math.round(100 * part)} %` : ""}${rate}${left}` : `Answering for ${time(question.milliseconds)}`, bar,
        question && h("code.asked", { title: question.what }, question.what),
        h("button.quiet", { type: "button", title: "Cancel this question. Values that were built are kept", onclick: () => cancel(question?.view ?? null) }, "Cancel"));
    } else if (status.hasChildNodes()) fill(status);
  } catch { /* the next question reports that the server does not answer */ }
  setTimeout(progress, document.hidden ? 5000 : 700);
}

let shown = "";
function view() {
  nav();
  const id = VIEWS[focus.view] ? focus.view : "overview";
  const into = the("main-view");
  if (shown !== id) {
    shown = id;
    document.title = `${VIEWS[id].name} · ${page.file.split("/").pop()} · afterimage`;
    into.className = `view-${id}`;
    into.replaceChildren();
  }
  document.body.dataset.dock = focus.at && id !== "notes" ? "open" : "closed";
  VIEWS[id].show(into);
}

/** Data for measurements: the times from question to answer in milliseconds, and whether a question waits. */
const latencies = /** @type {number[]} */ ([]);
Object.assign(window, { afterimage: { latencies, busy } });
onanswer((_, ms) => {
  latencies.push(ms);
  // The answer is shown: no question of this page is being answered any more.
  if (busy() <= 1) fill(status);
});

async function begin() {
  try {
    const kept = localStorage.getItem("afterimage-theme");
    if (kept) document.documentElement.dataset.theme = kept;
  } catch { /* the browser may not allow storage */ }
  if (!document.documentElement.dataset.theme)
    document.documentElement.dataset.theme = matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light";
  Object.assign(page, await told("page"));
  if (focus.at && !location.hash.includes("view=")) go({ view: "source" }, true);
  bar();
  dock(the("dock"));
  keys(Object.fromEntries(Object.entries(VIEWS).map(([id, { key }]) => [key, id])), copy);
  onmoment(moment);
  follow(() => { view(); moment(); });
  view();
  moment();
  if (focus.at) void stand();
  void learn().catch(() => { /* names are then shown in full */ });
  void progress();
}

void begin();
