/** Shows the instructions of a function with exact counts, if its source is missing or on request. */
import { ask, Superseded } from "./api.js";
import { answered, base, column, counted, empty, failed, fill, grouped, h, loading, virtual } from "./dom.js";
import { focus, frame, go, known } from "./focus.js";
import { named } from "./names.js";

/** Returns the function to show: the one that the user chose, the function of the moment, or the hottest one. */
async function wanted() {
  if (focus.fn) return focus.fn;
  const own = known.state ? frame() : null;
  if (own) return `func[${own.function.index}]`;
  const { doc } = await ask("profile", { sort: "instructions", code: "all", limit: 1 }, "hottest");
  return doc.rows.length ? `func[${doc.rows[0].function.index}]` : null;
}

/** @type {{ id: string, range: string, rows: any[], list: ReturnType<typeof virtual>, scroller: HTMLElement } | null} */
let open = null;
const HEIGHT = 21;

/**
 * Shows instructions.
 * @param {{ head: HTMLElement, scroller: HTMLElement, foot: HTMLElement, below: HTMLElement }} parts
 * @param {string | null} why the reason why there is no source
 * @param {Node | null} back a link back to the source
 */
export async function wat(parts, why, back) {
  parts.below.hidden = true;
  const id = await wanted();
  if (!id) return fill(parts.scroller, empty("The program has no functions."));
  const range = `${focus.from ?? ""} ${focus.to ?? ""}`;
  if (open?.id !== id || open.range !== range || open.scroller !== parts.scroller || !parts.scroller.querySelector(".wat-row")) {
    fill(parts.scroller, loading("Counting …"));
    const answer = await ask("profile", { by: "instruction", function: id, sort: "program" }, "wat");
    const part = await stretch(id, answer.doc.rows);
    const rows = part?.rows ?? answer.doc.rows;
    const name = rows[0]?.function.name ?? id;
    const most = rows.reduce((/** @type {number} */ most, /** @type {any} */ one) => Math.max(most, one.count), 1);
    const ran = rows.filter((/** @type {any} */ one) => one.count > 0).length;
    fill(parts.head, h("h2", null, named(name)), h("span.tag", null, "instructions"), part && h("span.tag.range", null, `counts of t=${grouped(Number(focus.from))} … ${grouped(Number(focus.to))}`), back, h("span.grow", null), h("span.soft", null, `${grouped(ran)} of ${counted(rows.length, "instruction")} executed`), why && h("p.note", null, why));
    if (!rows.length) return fill(parts.scroller, empty("This function is the host's: it has no instructions here."));
    column(parts.scroller, most);
    // The list draws its rows immediately, and they read `open`.
    open = { id, range, rows, scroller: parts.scroller, list: /** @type {any} */ (null) };
    open.list = virtual(parts.scroller, HEIGHT, rows.length, (index) => row(rows, index, most));
    fill(parts.foot, answered(part?.answer ?? answer));
  }
  const at = known.state ? frame() : null;
  const index = open.rows.findIndex((/** @type {any} */ one) => at && one.function.index === at.function.index && one.offset === at.offset);
  if (index >= 0) open.list.show(index);
  else open.list.draw();
}

/**
 * Sets the counts of instructions to their counts in the range, if one is chosen. All instructions of a block have the count of the block, unless the run ended in it.
 * @param {string} id @param {any[]} rows
 */
async function stretch(id, rows) {
  if (!focus.from || !focus.to || !rows.length) return null;
  const [answer, end] = await Promise.all([ask("flow", { function: id, from: `t=${focus.from}`, to: `t=${focus.to}` }, "wat-range"), ask("moment", { at: "end" }, "length")]);
  const counts = new Map(answer.doc.blocks.map((/** @type {any} */ one) => [one.block, one.count]));
  const whole = new Map();
  for (const one of rows) whole.set(one.block, Math.max(whole.get(one.block) ?? 0, one.count));
  const ends = answer.doc.range.last_t >= end.doc.length;
  return { answer, rows: rows.map((one) => ({ ...one, ran: one.count > 0, count: (counts.get(one.block) ?? 0) - (ends ? whole.get(one.block) - one.count : 0) })) };
}

/** @param {any[]} rows @param {number} index @param {number} most */
function row(rows, index, most) {
  const one = rows[index];
  const place = `@0x${one.offset.toString(16)}`;
  const at = known.state ? frame() : null;
  const here = at && one.function.index === at.function.index && one.offset === at.offset;
  const never = one.count === 0 && !one.ran;
  const heat = h("span.heat", { "aria-hidden": "true" });
  heat.style.opacity = one.count ? String(0.08 + 0.92 * Math.sqrt(one.count / most)) : "0";
  const begins = index === 0 || rows[index - 1].block !== one.block;
  const lines = index && rows[index - 1].source?.line === one.source?.line ? null : one.source;
  return h(`div.row.wat-row${never ? ".never" : ""}${one.ran && !one.count ? ".never.elsewhere" : ""}${here ? ".here" : ""}${begins ? ".begins" : ""}`, { role: "listitem", "data-index": index, "aria-current": here ? "true" : null,
    ondblclick: () => { if (one.ran ?? one.count) go({ at: `${place}#1` }); } }, heat, h("span.count", { title: counted(one.count, "execution") }, one.count ? grouped(one.count) : ""),
  h("span.offset", null, place), h("span.mark", { "aria-hidden": "true" }, here ? "▸" : ""), h("code.line", null, one.text),
  lines && h("span.from", null, `${base(lines.file)}:${lines.line}`),
  one.ran ?? one.count ? h("button.goes", { type: "button", tabindex: -1, title: "Go to its first execution", onclick: () => go({ at: `${place}#1` }) }, "go")
    : h("button.whynot", { type: "button", tabindex: -1, title: "Why did it never run?", onclick: () => go({ view: "why", about: `not:${place}` }) }, "why not?"));
}

/** Moves through instructions with the keys. @param {KeyboardEvent} pressed */
export function step(pressed) {
  if (!open) return;
  const down = { ArrowDown: HEIGHT, ArrowUp: -HEIGHT, PageDown: 25 * HEIGHT, PageUp: -25 * HEIGHT }[pressed.key];
  if (!down) return;
  open.scroller.scrollTop += down;
  pressed.preventDefault();
}

/** Shows an error, unless the question was replaced. @param {any} error @param {HTMLElement} into */
export const told = (error, into) => { if (!(error instanceof Superseded)) fill(into, failed(error)); };
