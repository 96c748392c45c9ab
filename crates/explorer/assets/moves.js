/** Moves through the run by line, execution or write, forward and backward. */
import { ask, askAhead, busy, Superseded } from "./api.js";
import { counted, grouped, h } from "./dom.js";
import { arrive, called, executionsAt, frame, frames, focus, go, goto, known, lineOf, namedAt, onmoment, stateAt } from "./focus.js";
import { files, lineName } from "./source.js";

/** Shows where a move led, or that there is no target. @param {string} text */
export function say(text) {
  const old = document.getElementById("said");
  old?.remove();
  const made = h("div", { id: "said", role: "status" }, text);
  document.body.append(made);
  setTimeout(() => made.remove(), 3500);
}

const NO_MOMENT = "Choose a moment first: click a line of output, an execution, or press Home or End.";

/** The number of moves that may wait for others. */
const WAITING = 12;
let waiting = 0;
/** The end of the last move. */
let last = Promise.resolve();
/** Makes a move after the moves before it, or shows why it is impossible. @param {() => Promise<any>} move */
function moved(move) {
  if (waiting >= WAITING) return;
  waiting += 1;
  last = last.then(async () => {
    try {
      while (known.waits) await new Promise((done) => setTimeout(done, 4));
      if (!known.moment) say(known.error ? String(known.error.message ?? known.error) : NO_MOMENT);
      else await move();
    } catch (error) {
      if (!(error instanceof Superseded)) say(String(/** @type {any} */ (error).message ?? error));
    } finally { waiting -= 1; }
  });
}

/**
 * Makes a step.
 * @param {"in" | "over" | "out"} by @param {boolean} back
 */
export const step = (by, back) => moved(async () => {
  latest = STEPS.find((one) => one.by === by && one.back === back) ?? latest;
  if (!(await hasLines())) return by === "out" ? outByStatement(back) : byStatement(back, by === "over");
  const answer = await moving(...stepFrom(by, back));
  const { moment } = answer.doc;
  if (moment) return arrive({ ...answer, doc: moment });
  if (by !== "out") return say(back ? "Before this, no line of your own code ran." : "After this, no line of your own code runs.");
  say(back ? "No function of your own code called this one." : "This call did not return to your own code.");
});

/** Returns the question for the moment to which a step leads. @param {"in" | "over" | "out"} step @param {boolean} reverse @returns {[string, Record<string, any>]} */
function stepFrom(step, reverse) {
  const own = frame();
  // A step out leaves the frame that the user chose.
  const out = step === "out" && own && own.key === focus.frame;
  return ["step", { ...(out && own.number > 0 ? { at: `t=${own.t}`, offset: own.offset } : { at: focus.at }), ahead: (out && own.inside) || undefined, step, reverse }];
}

/** @param {string} command @param {Record<string, any>} options */
const moving = (command, options) => ask(command, options, "move");

/** Whether the program has line tables. Without them, the moves are by statement. */
const hasLines = async () => (await files()).length > 0;

/** Moves to the next statement, or to the previous one. @param {boolean} back @param {boolean} over */
async function byStatement(back, over) {
  const next = await statement(back, over);
  if (!next) return say(back ? "The run began here." : "The run ended here.");
  await goto(next.t, next.offset);
}

/** Returns the next statement, or the previous one. @param {boolean} back @param {boolean} over */
async function statement(back, over) {
  const { t, offset } = known.moment;
  // Nothing follows the place where the run ended.
  if (!back && focus.at === "end") return null;
  const { rows } = await moving("trace", { level: "statement", from: focus.at, reverse: back, limit: 4 });
  // A moment without an operator is the beginning of its block.
  const at = offset ?? -1;
  const next = rows.find((row) => row.offset !== null && (back ? row.t < t || (row.t === t && row.offset < at) : row.t > t || (row.t === t && row.offset > at)));
  if (!next || !over) return next;
  const named = await moving(...namedAt(next.t, next.offset));
  const { frames, open } = (await moving(...stateAt(called(named.doc), 1))).doc;
  const inside = open - known.state.open;
  if (inside <= 0 || !frames.length) return next;
  // The statement is in a call that this function makes: go to the call, or to its return.
  const deep = (await moving(...stateAt(called(named.doc), inside + 1))).doc.frames;
  if (back) return deep[inside];
  const end = await ended(deep[inside - 1]);
  return end === null ? null : (await moving("trace", { level: "statement", from: `t=${end + 1}`, limit: 1 })).rows[0];
}

/** Returns the time at which an activation ended, or null if the run ended in it. @param {any} one */
async function ended(one) {
  const id = `func[${one.function.index}]`;
  const by = await moving("executions", { at: id, by: `t=${one.entered_t}`, limit: 1 });
  const call = await moving("calls", { function: id, call: by.doc.by });
  const end = call.doc.stack[0].end_t;
  return end === null || end >= known.moment.length ? null : end;
}

/** The steps, the most probable first. @type {{ by: "in" | "over" | "out", back: boolean }[]} */
const STEPS = [{ by: "over", back: false }, { by: "in", back: false }, { by: "over", back: true }, { by: "in", back: true }, { by: "out", back: false }, { by: "out", back: true }];
/** The latest step. */
let [latest] = STEPS;

/** The page asks ahead only if the server took at most this time for the last answer, in milliseconds. */
const QUICK = 500;

/** Asks ahead for the moments to which the next step may lead. The user often repeats a step. */
async function foresee() {
  const { at } = focus;
  // Without line tables, there are no lines to step to.
  if (known.waits || !known.moment || !lineOf(frame())) return;
  if (!known.answer || known.answer.took > QUICK) return;
  try {
    for (const { by, back } of new Set([latest, ...STEPS])) {
      const { moment } = (await askAhead(...stepFrom(by, back))).doc;
      if (focus.at !== at) return;
      if (moment) await arrivalAhead(moment);
      if (focus.at !== at) return;
    }
    const own = here();
    if (!own) return;
    const { count, by } = (await askAhead(...executionAt(own))).doc;
    for (const number of [1, -1].map((step) => numbered(own, by, /** @type {1 | -1} */ (step))).filter((number) => number >= 1 && number <= count)) {
      for (const question of [["moment", { at: `${own}#${number}` }], stateAt(`${own}#${number}`)]) {
        if (focus.at !== at) return;
        await askAhead(.../** @type {[string, Record<string, any>]} */ (question));
      }
    }
  } catch { /* the step itself shows why it is impossible */ }
}
// Ask ahead after the views have their answers and are painted.
const calm = () => (busy() ? void setTimeout(calm, 10) : void requestAnimationFrame(() => setTimeout(() => void foresee())));
onmoment(() => { if (!known.waits) calm(); });

/** Moves out of the call in a program without line tables. @param {boolean} back to the place of the call */
async function outByStatement(back) {
  const { frames, open } = known.state;
  const own = frame();
  const outer = frames.find((/** @type {any} */ one) => one.number > own.number && !one.library);
  if (!outer) return say(open > frames.length ? `None of the ${grouped(frames.length)} innermost activations is a caller in your own code: show more of the call stack.` : "No function of your own code called this one.");
  if (back) return goto(outer.t, outer.offset);
  const end = await ended(frames.find((/** @type {any} */ one) => one.number === outer.number - 1));
  if (end === null) return say("The call did not return: the run ended in it.");
  const { rows } = await moving("trace", { level: "statement", from: `t=${end + 1}`, limit: 1 });
  if (!rows.length) return say("The run ended before another statement was executed.");
  await goto(rows[0].t, rows[0].offset);
}

/** Returns the place of the moment in the form that commands take: its line or, without one, its operator. */
export function place() {
  const at = lineOf(frame());
  return at ? lineName(at) : known.state?.frames.length ? `@0x${known.state.frames[0].offset.toString(16)}` : null;
}
/** Returns the selected line, or the place of the moment, in the form that commands take. */
export const here = () => (focus.line && focus.file ? lineName({ file: focus.file, line: Number(focus.line) }) : place());

/** Returns the question for the number of executions of a place up to the moment. @param {string} at @returns {[string, Record<string, any>]} */
const executionAt = (at) => ["executions", { at, by: `t=${known.moment.t}`, limit: 1 }];

/** Returns the number of the next execution of a place, or of the previous one. @param {string} at @param {number} by the number of executions up to the moment @param {1 | -1} step */
function numbered(at, by, step) {
  // The number of the execution at the moment, if the moment is one.
  const onIt = at.startsWith("@") ? by : known.moment.arrives && at === known.moment.line ? known.moment.arrival : null;
  return onIt !== null ? onIt + step : step > 0 ? by + 1 : by;
}

/** Moves to the next execution of the line, or to the previous one. @param {1 | -1} step @param {string} [where] a condition @param {string} [place] */
export const execution = (step, where, place) => moved(async () => {
  const at = place ?? here();
  if (!at) return say("No line is known here.");
  const { doc } = await moving(...executionAt(at));
  const number = numbered(at, doc.by, step);
  const what = at.startsWith("@") ? "This instruction" : "This line";
  if (number < 1) return say(`${what} was not executed before.`);
  if (number > doc.count) return say(`${what} is not executed again.`);
  if (where) {
    const all = await moving("values", { at, where, ...(step > 0 ? { instances: `${number}..${doc.count}`, first: true } : { instances: `1..${number}`, last: true }) });
    const [other] = all.doc.instances;
    return other ? go({ at: `${at}#${other.number}` }) : say(nowhere(all.doc, step > 0 ? " after this moment" : " before this moment"));
  }
  go({ at: `${at}#${number}`, file: "", line: "", about: focus.about });
});

/** Returns a sentence that says that a condition holds nowhere, or where it is unknown. @param {any} doc @param {string} when */
export function nowhere(doc, when) {
  const unknown = doc.unknown.reduce((/** @type {number} */ sum, /** @type {any} */ one) => sum + one.times, 0);
  if (!unknown) return `${doc.condition} never holds${when}.`;
  return `${doc.condition} is unknown at ${unknown < doc.looked_at ? `${grouped(unknown)} of ` : ""}${counted(doc.looked_at, "execution")}${when}${unknown < doc.looked_at ? ", and holds at none of the others" : ""}: ${doc.unknown[0].unavailable ?? doc.unknown[0].why ?? "not known"}.`;
}

/** Returns the current variable: the variable that has the focus, or the subject of the question. */
export const variable = () => /** @type {HTMLElement | null | undefined} */ (document.activeElement?.closest("[data-variable]"))?.dataset.variable ?? (focus.about?.startsWith("var:") ? focus.about.slice(4) : null);

/** Returns the question for the next write to a variable, or for the previous one. @param {1 | -1} step @param {string} name @returns {[string, Record<string, any>]} */
function writeOf(step, name) {
  const own = frame();
  const inlined = own?.inlined?.length ? own.inlined.length - own.inside : undefined;
  return ["step", { at: focus.at, step: "write", var: name, activation: own?.number ?? 0, inlined, reverse: step < 0 }];
}

/** Moves to the next write to the variable, or to the previous one. @param {1 | -1} step @param {string | null} [name] */
export const write = (step, name = variable()) => moved(async () => {
  if (!name) return say("Choose a variable first: click one beside the source.");
  const answer = await moving(...writeOf(step, name));
  const { moment } = answer.doc;
  const about = `var:${name}`;
  if (moment) return arrive({ ...answer, doc: moment }, { about });
  go({ about }, true);
  say(step > 0 ? `${name} is not written again.` : `${name} was not written before.`);
});

/** Asks ahead for a write, because the user points at its button. @param {1 | -1} step @param {string} name */
export async function foreseeWrite(step, name) {
  if (known.waits || !known.moment) return;
  const { at } = focus;
  try {
    const { moment } = (await askAhead(...writeOf(step, name))).doc;
    if (moment && focus.at === at) await arrivalAhead(moment);
  } catch { /* the move itself shows why it is impossible */ }
}

/** Asks ahead for what the page shows at a moment. @param {any} moment */
async function arrivalAhead(moment) {
  const { at } = focus;
  await askAhead(...stateAt(called(moment)));
  const executions = executionsAt(moment);
  if (executions && focus.at === at) await askAhead(...executions);
}

/** Selects the next frame of the user's own code that is shown, or says that there is none. @param {1 | -1} by @param {string} none */
function select(by, none) {
  if (!known.moment) return say(NO_MOMENT);
  const own = frame();
  const shown = frames().filter((one) => !one.library || one.key === own?.key);
  const next = own && shown[shown.findIndex((one) => one.key === own.key) + by];
  if (next) go({ frame: next.key });
  else say(none);
}

/** Selects the caller's frame. */
export const caller = () => select(1, "This is the outermost frame of your own code that is shown.");

/** Selects the callee's frame. */
export const callee = () => select(-1, "This is the innermost frame of your own code.");

/** Creates the buttons for moves. */
export function moves() {
  /** @param {string} sign @param {string} title @param {() => any} act */
  const button = (sign, title, act) => h("button", { type: "button", title, "aria-label": title, onclick: act }, sign);
  return h("div.moves", { role: "toolbar", "aria-label": "Moves" },
    button("⇤", "Previous execution of the line (C)", () => execution(-1)),
    button("↖", "Back to the call (F)", () => step("out", true)),
    button("←", "Previous line, over calls (N)", () => step("over", true)),
    button("→", "Next line, over calls (n)", () => step("over", false)),
    button("↘", "Next line, into calls (s)", () => step("in", false)),
    button("↗", "Out of the call (f)", () => step("out", false)),
    button("⇥", "Next execution of the line (c)", () => execution(1)));
}
