/**
 * Keeps the focus: the user's position in the run, which is in the address. All views follow it, and Back returns to the previous one.
 */
import { ask, Superseded } from "./api.js";

/**
 * @typedef {object} Focus
 * @property {string} view the view
 * @property {string} [at] the moment, as commands take it
 * @property {string} [frame] the frame: its activation, counted from 0 for the innermost, and the number of inlined calls that lead to it: `0.2`
 * @property {string} [file] a source file
 * @property {string} [line] a line of the file
 * @property {string} [fn] a function
 * @property {string} [about] the subject of the question: `trap`, `stdout:12`, `var:fee`, `value`, `not:bank.c:31`
 * @property {string} [from] the beginning of the range
 * @property {string} [to] the end of the range
 * @property {string} [call] the number of the call to the function
 * @property {string} [code] `wat` for instructions instead of source
 */

/** @type {Focus} */
export let focus = read();
/** @type {((now: Focus, before: Focus) => void)[]} */
const followers = [];

/** The known data about the moment. */
export const known = {
  /** @type {any} the moment's names */ moment: null,
  /** @type {any} the stack and its variables */ state: null,
  /** @type {import("./api.js").Answer | null} */ answer: null,
  /** @type {any} why the data are unknown */ error: null,
  /** @type {boolean} */ waits: false,
};

/** @returns {Focus} */
function read() {
  const all = Object.fromEntries(new URLSearchParams(location.hash.slice(1)));
  return /** @type {Focus} */ ({ view: "overview", ...all });
}

/** Returns the address of a focus. @param {Partial<Focus>} change */
export function address(change) {
  const next = { ...focus, ...change };
  const query = new URLSearchParams();
  for (const [name, value] of Object.entries(next)) if (value) query.set(name, value);
  return `#${query}`;
}

/**
 * Changes the focus. Properties that are not named stay.
 * @param {Partial<Focus>} change @param {boolean} [replace] without a step for Back
 */
export function go(change, replace = false) {
  const moved = change.at !== undefined && change.at !== focus.at;
  const next = address(moved && change.frame === undefined ? { ...change, frame: "" } : change);
  if (next === (location.hash || "#")) return;
  if (replace) history.replaceState(null, "", next);
  else history.pushState(null, "", next);
  changed();
}

/** @param {(now: Focus, before: Focus) => void} follow */
export const follow = (follow) => followers.push(follow);

function changed() {
  const before = focus;
  focus = read();
  // Without a moment, there is no data about it.
  if (!focus.at) Object.assign(known, { moment: null, state: null, answer: null, error: null, waits: false });
  // The views then keep what they show until the new moment is known.
  else if (focus.at !== before.at) Object.assign(known, { error: null, waits: true });
  for (const follow of followers) follow(focus, before);
  if (focus.at !== before.at) void stand();
}

window.addEventListener("popstate", changed);
window.addEventListener("hashchange", () => { if (address({}) !== address(read())) changed(); });

/** @type {(() => void)[]} */
const listeners = [];
/** Registers a listener that is called whenever more is known about the moment. @param {() => void} listen */
export const onmoment = (listen) => listeners.push(listen);
/** Tells the listeners that more is known. */
export const tell = () => { for (const listen of listeners) listen(); };

/** @type {((moment: any) => void)[]} */
const hints = [];
/** Registers a listener that is called when the name of the moment is known, before its other data. @param {(moment: any) => void} hear */
export const onhint = (hear) => hints.push(hear);

/** The answer with the name of a moment, if a move to it already asked for the name. @type {import("./api.js").Answer | null} */
let given = null;

/** Finds the data about the moment. */
export async function stand() {
  const at = focus.at;
  if (!at) return tell();
  const told = given && called(given.doc) === at ? given : null;
  given = null;
  known.waits = true;
  known.error = null;
  tell();
  try {
    const named = told ? Promise.resolve(told) : ask("moment", { at }, "moment");
    void named.then(({ doc }) => { if (focus.at === at) for (const hear of hints) hear(doc); }, () => { /* the `await` below reports the error */ });
    const [moment, state] = await Promise.all([named, ask(...stateAt(at), "state")]);
    if (focus.at !== at) return;
    known.moment = moment.doc;
    known.state = state.doc;
    known.answer = state;
  } catch (error) {
    if (error instanceof Superseded || focus.at !== at) return;
    known.error = error;
    known.moment = known.state = known.answer = null;
  }
  known.waits = false;
  tell();
}

/** Returns the line of a frame. Where library code was inlined, this is the user's own line. @param {any} one */
export const lineOf = (one) => one?.around ?? one?.source ?? null;

/**
 * Returns the frames of an activation, the innermost first: the functions that were inlined at its place, and the function itself. Each has the data of the activation with its own name, line and variables. `inside` is the number of frames inside of it.
 * @param {any} one @returns {any[]}
 */
function framesOf(one) {
  const inlined = one.inlined ?? [];
  const whole = { name: one.function.name, source: inlined.length ? one.own_source : one.source, library: false };
  return [...inlined, whole].map(({ name, source, library }, inside) => {
    const calls = inlined.length - inside;
    const variables = one.variables?.filter((/** @type {any} */ variable) => (variable.calls ?? 0) === calls);
    return { ...one, key: calls ? `${one.number}.${calls}` : String(one.number), name, source, around: inlined.length ? null : one.around, library: one.library || Boolean(library), inside, variables };
  });
}

/** Returns the frames of the call stack that are known, the innermost first. @returns {any[]} */
export const frames = () => (known.state?.frames ?? []).flatMap(framesOf);

/** Returns the selected frame: the one that the user chose, or the innermost in the user's own code. */
export function frame() {
  const all = frames();
  return all.find((one) => one.key === focus.frame) ?? all.find((one) => !one.library && one.source) ?? all.find((one) => one.source) ?? all[0] ?? null;
}

/** Returns the best name of a moment: the arrival at a line, if the moment is one. @param {any} moment */
export const called = (moment) => (moment.arrives ? `${moment.line}#${moment.arrival}` : moment.at);

/** Returns the question for the name of a moment. @param {number} t @param {number | null} offset @returns {[string, Record<string, any>]} */
export const namedAt = (t, offset) => ["moment", { at: `t=${t}`, offset: offset ?? undefined }];

/** The number of activations to ask for, the innermost first. */
const DEPTH = 24;
/** Returns the question for the stack and its variables. @param {string} at @param {number} [depth] @returns {[string, Record<string, any>]} */
export const stateAt = (at, depth = DEPTH) => ["state", { at, depth }];

/** Shows more of the call stack, until the moment changes. */
export async function deeper() {
  const at = focus.at;
  if (!at || !known.state) return;
  const state = await ask(...stateAt(at, known.state.frames.length * 10), "state");
  if (focus.at !== at) return;
  known.state = state.doc;
  known.answer = state;
  tell();
}

/** Returns the chosen range of the run, for a question. @returns {{ from?: string, to?: string }} */
export const range = () => (focus.from && focus.to ? { from: `t=${focus.from}`, to: `t=${focus.to}` } : {});

/** Returns the question for the executions of a line. @param {{ file: string, line: number }} source @param {string} [by] the moment, unless its name has the number of the execution @returns {[string, Record<string, any>]} */
export const executionsOf = ({ file, line }, by) => ["executions", { at: `${file}:${line}`, limit: 1000, by, ...range() }];

/** Returns the question for the executions of the user's own line at a moment. @param {any} moment @param {string} [at] the name that the user gave to the moment @returns {[string, Record<string, any>] | null} */
export function executionsAt(moment, at = called(moment)) {
  const line = moment.around ?? moment.source;
  return line && executionsOf(line, moment.arrives && !moment.around ? undefined : at);
}

/** Goes to an operator in a block. @param {number} t @param {number | null} offset @param {Partial<Focus>} [more] */
export async function goto(t, offset, more = {}) {
  arrive(await ask(...namedAt(t, offset), "goto"), more);
}

/** Goes to a moment whose name is known. @param {import("./api.js").Answer} named @param {Partial<Focus>} [more] */
export function arrive(named, more = {}) {
  given = named;
  go({ ...more, at: called(named.doc) });
}
