/** Moves through the run by line, execution or write, forward and backward. */
import { ask, askAhead, Superseded } from "./api.js";
import { h } from "./dom.js";
import { called, executionsOf, frame, focus, go, goto, known, lineOf, namedAt, onmoment, stateAt } from "./focus.js";

/** Shows where a move led, or that there is no target. @param {string} text */
export function say(text) {
  const old = document.getElementById("said");
  old?.remove();
  const made = h("div", { id: "said", role: "status" }, text);
  document.body.append(made);
  setTimeout(() => made.remove(), 3500);
}

/** Makes a move, or shows why it is impossible. @param {() => Promise<any>} move */
async function moved(move) {
  if (!known.moment) return say("Choose a moment first: click a line of output, an execution, or press Home or End.");
  try { await move(); } catch (error) {
    if (!(error instanceof Superseded)) say(String(/** @type {any} */ (error).message ?? error));
  }
}

/**
 * Moves to the next line, or to the previous one.
 * @param {boolean} back @param {boolean} over over calls
 */
export const line = (back, over) => moved(async () => {
  latest = BY_LINE.find((one) => one.back === back && one.over === over) ?? latest;
  const next = await neighbour(back, over, (command, options) => ask(command, options, "move"));
  if (!next) return say(back ? "The run began here." : "The run ended here.");
  await goto(next.t, next.offset);
});

/** @typedef {(command: string, options: Record<string, any>) => Promise<import("./api.js").Answer>} Asks */

/** Returns the next line of the trace, or the previous one. @param {boolean} back @param {boolean} over @param {Asks} asks */
async function neighbour(back, over, asks) {
  const now = known.moment;
  const options = { from: focus.at, reverse: back };
  const { rows } = await asks("trace", { level: "line", "no-variables": true, ...options, over, limit: 4 });
  const is = (/** @type {any} */ row) => back
    ? row.t < now.t || (row.t === now.t && now.offset !== null && row.offset !== null && row.offset < now.offset)
    : row.t > now.t || (row.t === now.t && now.offset !== null && row.offset !== null && row.offset > now.offset);
  return rows.find(is);
}

/** The moves by line, the most probable first. */
const BY_LINE = [{ back: false, over: true }, { back: false, over: false }, { back: true, over: true }, { back: true, over: false }];
/** The latest of these moves. */
let [latest] = BY_LINE;

/** Below this time in the server, in milliseconds, the page asks ahead. */
const QUICK = 500;

/** Asks ahead for the moments that the next move by line may lead to. The user often repeats a move. */
async function foresee() {
  const { at } = focus;
  // Without line tables, there are no lines to step to.
  if (known.waits || !known.moment || !lineOf(frame())) return;
  if (!known.answer || known.answer.took > QUICK) return;
  try {
    for (const { back, over } of new Set([latest, ...BY_LINE])) {
      const next = await neighbour(back, over, askAhead);
      if (focus.at !== at) return;
      if (!next) continue;
      const { doc } = await askAhead(...namedAt(next.t, next.offset));
      if (focus.at !== at) return;
      await askAhead(...stateAt(called(doc)));
      if (focus.at !== at) return;
      if (doc.arrives && !focus.from) await askAhead(...executionsOf(doc.source));
      if (focus.at !== at) return;
    }
  } catch { /* the move itself shows why it is impossible */ }
}
// Painting comes first.
onmoment(() => requestAnimationFrame(() => setTimeout(() => void foresee())));

/** Moves out of the call. @param {boolean} back to the place of the call */
export const out = (back) => moved(async () => {
  const frames = known.state.frames;
  const own = frame();
  const outer = frames.find((/** @type {any} */ one) => one.number > own.number && !one.library && one.source);
  if (!outer) return say("No function of your own code called this one.");
  if (back) return goto(outer.t, outer.offset);
  const inner = frames.find((/** @type {any} */ one) => one.number === outer.number - 1);
  const by = await ask("executions", { at: `func[${inner.function.index}]`, by: `t=${inner.entered_t}`, limit: 1 }, "move");
  const call = await ask("calls", { function: `func[${inner.function.index}]`, call: by.doc.by }, "move");
  const end = call.doc.stack[0].end_t;
  if (end === null || end >= known.moment.length) return say("The call did not return: the run ended in it.");
  const { rows } = await ask("trace", { level: "line", "no-variables": true, from: `t=${end + 1}`, limit: 1 }, "move");
  if (!rows.length) return say("The run ended before another line was executed.");
  await goto(rows[0].t, rows[0].offset);
});

/** Returns the selected line in the form that commands take. */
export const here = () => (known.moment?.line && !focus.line ? known.moment.line : focus.line && focus.file ? `${focus.file}:${focus.line}` : known.moment?.line);

/** Moves to the next execution of the line, or to the previous one. @param {1 | -1} step @param {string} [where] a condition @param {string} [place] */
export const execution = (step, where, place) => moved(async () => {
  const at = place ?? here();
  if (!at) return say("No line is known here.");
  if (where) {
    const all = await ask("values", { at, where, limit: 100000 }, "move");
    const other = step > 0
      ? all.doc.instances.find((/** @type {any} */ one) => one.t > known.moment.t)
      : all.doc.instances.findLast((/** @type {any} */ one) => one.t < known.moment.t);
    if (!other) return say(`${where} never holds ${step > 0 ? "after" : "before"} this moment.`);
    return go({ at: `${at}#${other.number}` });
  }
  const { doc } = await ask("executions", { at, by: `t=${known.moment.t}`, limit: 1 }, "move");
  const onIt = known.moment.arrives && known.moment.line && at.endsWith(known.moment.line);
  const number = onIt ? known.moment.arrival + step : step > 0 ? doc.by + 1 : doc.by;
  if (number < 1) return say("This line was not executed before.");
  if (number > doc.count) return say("This line is not executed again.");
  go({ at: `${at.replace(/^.*\//, "")}#${number}`, about: focus.about });
});

/** Returns the current variable: the variable that has the focus, or the subject of the question. */
export const variable = () => /** @type {HTMLElement | null | undefined} */ (document.activeElement?.closest("[data-variable]"))?.dataset.variable ?? (focus.about?.startsWith("var:") ? focus.about.slice(4) : null);

/** Moves to the next write to the variable, or to the previous one. @param {1 | -1} step @param {string | null} [name] */
export const write = (step, name = variable()) => moved(async () => {
  if (!name) return say("Choose a variable first: click one beside the source.");
  const { doc } = await ask("memory", { var: name, at: focus.at }, "move");
  const all = doc.parts.map((/** @type {any} */ part) => (step > 0 ? part.next_write ?? part.next_written : part.written)).filter(Boolean);
  const best = all.filter((/** @type {any} */ one) => one.t !== undefined && one.t !== null)
    .sort((/** @type {any} */ a, /** @type {any} */ b) => step * (a.t - b.t))[0];
  if (!best) return say(step > 0 ? `${name} is not written again.` : `${name} was not written before.`);
  await goto(best.t, best.offset ?? null);
});

/** Selects the caller's activation. */
export function caller() {
  const own = frame();
  const outer = known.state?.frames.find((/** @type {any} */ one) => own && one.number > own.number && !one.library);
  if (outer) go({ frame: String(outer.number) });
}

/** Selects the callee's activation. */
export function callee() {
  const own = frame();
  const inner = known.state?.frames.findLast((/** @type {any} */ one) => own && one.number < own.number && !one.library);
  if (inner) go({ frame: String(inner.number) });
}

/** Creates the buttons for moves. */
export function moves() {
  /** @param {string} sign @param {string} title @param {() => any} act */
  const button = (sign, title, act) => h("button", { type: "button", title, "aria-label": title, onclick: act }, sign);
  return h("div.moves", { role: "toolbar", "aria-label": "Moves" },
    button("⇤", "Previous execution of the line (C)", () => execution(-1)),
    button("↖", "Back to the call (F)", () => out(true)),
    button("←", "Previous line, over calls (N)", () => line(true, true)),
    button("→", "Next line, over calls (n)", () => line(false, true)),
    button("↘", "Next line, into calls (s)", () => line(false, false)),
    button("↗", "Out of the call (f)", () => out(false)),
    button("⇥", "Next execution of the line (c)", () => execution(1)));
}
