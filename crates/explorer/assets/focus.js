/**
 * One position, one focus: where somebody stands in the run, in the address. All views follow it, and Back goes back.
 */
import { ask, Superseded } from "./api.js";

/**
 * @typedef {object} Focus
 * @property {string} view which view
 * @property {string} [at] the moment, as commands take it
 * @property {string} [frame] which activation, from the innermost, 0
 * @property {string} [file] a source file
 * @property {string} [line] a line of it
 * @property {string} [fn] a function
 * @property {string} [about] what is asked: `trap`, `stdout:12`, `var:fee`, `value`, `not:bank.c:31`
 * @property {string} [from] where the range begins
 * @property {string} [to] where it ends
 * @property {string} [call] which call of the function
 * @property {string} [code] `wat` for instructions instead of source
 */

/** @type {Focus} */
export let focus = read();
/** @type {((now: Focus, before: Focus) => void)[]} */
const followers = [];

/** What is known of the moment. */
export const known = {
  /** @type {any} the moment's names */ moment: null,
  /** @type {any} the stack and its variables */ state: null,
  /** @type {import("./api.js").Answer | null} */ answer: null,
  /** @type {any} why it is not known */ error: null,
  /** @type {boolean} */ waits: false,
};

/** @returns {Focus} */
function read() {
  const all = Object.fromEntries(new URLSearchParams(location.hash.slice(1)));
  return /** @type {Focus} */ ({ view: "overview", ...all });
}

/** The address of a focus. @param {Partial<Focus>} change */
export function address(change) {
  const next = { ...focus, ...change };
  const query = new URLSearchParams();
  for (const [name, value] of Object.entries(next)) if (value) query.set(name, value);
  return `#${query}`;
}

/**
 * Goes elsewhere. What is not named stays.
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
  // Nothing is known of no moment.
  if (!focus.at) Object.assign(known, { moment: null, state: null, answer: null, error: null, waits: false });
  for (const follow of followers) follow(focus, before);
  if (focus.at !== before.at) void stand();
}

window.addEventListener("popstate", changed);
window.addEventListener("hashchange", () => { if (address({}) !== address(read())) changed(); });

/** @type {(() => void)[]} */
const listeners = [];
/** Calls what shows the moment, whenever more is known of it. @param {() => void} listen */
export const onmoment = (listen) => listeners.push(listen);
/** Says that more is known. */
export const tell = () => { for (const listen of listeners) listen(); };

/** @type {((moment: any) => void)[]} */
const hints = [];
/** Calls what can prepare itself when the moment has its name, before all is known of it. @param {(moment: any) => void} hear */
export const onhint = (hear) => hints.push(hear);

/** A moment whose name was asked for a move there. @type {import("./api.js").Answer | null} */
let given = null;

/** Finds what there is at the moment. */
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
    void named.then(({ doc }) => { if (focus.at === at) for (const hear of hints) hear(doc); }, () => { /* what asks for both hears of it */ });
    const [moment, state] = await Promise.all([named, ask("state", { at, depth: 24 }, "state")]);
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

/** The line of an activation: the user's own, where library code was inlined. @param {any} one */
export const lineOf = (one) => one?.around ?? one?.source ?? null;

/** The activation that is looked at: the one that was chosen, or the innermost of the user's own code. */
export function frame() {
  const frames = known.state?.frames ?? [];
  const chosen = frames.find((/** @type {any} */ one) => String(one.number) === focus.frame);
  return chosen ?? frames.find((/** @type {any} */ one) => !one.library && one.source) ?? frames.find((/** @type {any} */ one) => one.source) ?? frames[0] ?? null;
}

/** What a moment is best called: the arrival at a line, if it is one. @param {any} moment */
export const called = (moment) => (moment.arrives ? `${moment.line}#${moment.arrival}` : moment.at);

/** Goes to an operator in a block. @param {number} t @param {number | null} offset @param {Partial<Focus>} [more] */
export async function goto(t, offset, more = {}) {
  given = await ask("moment", { at: `t=${t}`, offset: offset ?? undefined }, "goto");
  go({ ...more, at: called(given.doc) });
}
