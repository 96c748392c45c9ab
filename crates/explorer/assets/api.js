/** Sends questions to the server. Each question is a command with its options. The answer is the JSON that the command writes. */

/**
 * An answer.
 * @typedef {object} Answer
 * @property {any} doc the document, or its first line
 * @property {any[]} rows the lines after the first
 * @property {string} text the answer, if it is not JSON
 * @property {number} took the time in the server, in milliseconds
 * @property {boolean} kept whether the answer was cached
 * @property {string} command the command that gives the same answer
 */

/** The error of a question that a newer question has replaced. */
export class Superseded extends Error {}

/** @type {Map<string, AbortController>} */
const open = new Map();
/** @type {((answer: Answer, ms: number) => void)[]} */
const heard = [];

let asking = 0;
/** Returns the number of questions without an answer. */
export const busy = () => asking;

/** Registers a listener for each answer. @param {(answer: Answer, ms: number) => void} hear */
export const onanswer = (hear) => heard.push(hear);

/**
 * Asks a question. A newer question of the same view cancels an older question.
 * @param {string} command
 * @param {Record<string, string | number | boolean | null | undefined>} [options]
 * @param {string} [view]
 * @returns {Promise<Answer>}
 */
export async function ask(command, options = {}, view) {
  const query = parameters(options);
  const stop = view ? replacing(view) : new AbortController();
  asking += 1;
  try {
    const known = foreseen.get(`${command}?${query}`);
    if (known) {
      if (view) open.delete(view);
      for (const hear of heard) hear(known, 0);
      return known;
    }
    const awaited = ahead;
    if (awaited && view) {
      // If this question was asked ahead, wait for its answer. Otherwise, cancel the question that was asked ahead.
      if (awaited.key === `${command}?${query}`) {
        const given = await Promise.race([awaited.answer.catch(() => null), replaced(stop)]);
        if (given) return given;
      } else awaited.stop.abort();
    }
    return await answer(command, query, stop, view, (given, ms) => { for (const hear of heard) hear(given, ms); });
  } finally { asking -= 1; }
}

/** Fails when a question is replaced. @param {AbortController} stop @returns {Promise<never>} */
const replaced = (stop) => new Promise((_, fail) => stop.signal.addEventListener("abort", () => fail(gone(stop))));

/** Returns the parameters of a question. @param {Record<string, string | number | boolean | null | undefined>} options */
function parameters(options) {
  const query = new URLSearchParams();
  for (const [name, value] of Object.entries(options)) {
    if (value === null || value === undefined || value === false || value === "") continue;
    query.set(name, value === true ? "" : String(value));
  }
  return query;
}

/** Cancels the older question of a view, and returns the controller that can cancel the new question. @param {string} view */
function replacing(view) {
  const stop = new AbortController();
  open.get(view)?.abort();
  open.set(view, stop);
  return stop;
}

/**
 * Asks a question ahead, because its answer will probably be needed soon, and keeps the answer. The page does not wait for this answer, and the next question that is asked ahead replaces this question.
 * @param {string} command
 * @param {Record<string, string | number | boolean | null | undefined>} options
 * @returns {Promise<Answer>}
 */
export async function askAhead(command, options) {
  const query = parameters(options);
  const key = `${command}?${query}`;
  const known = foreseen.get(key);
  if (known) return known;
  const stop = replacing("ahead");
  const asked = { key, stop, answer: answer(command, query, stop, "ahead", () => {}) };
  ahead = asked;
  try {
    const given = await asked.answer;
    foreseen.set(key, given);
    for (const oldest of foreseen.keys()) if (foreseen.size > FORESEEN) foreseen.delete(oldest);
    return given;
  } finally { if (ahead === asked) ahead = null; }
}
/** The maximum number of answers to keep from questions that were asked ahead. */
const FORESEEN = 40;
/** The answers to questions that were asked ahead, the oldest first. @type {Map<string, Answer>} */
const foreseen = new Map();
/** The question that was asked ahead, until it is answered. @type {{ key: string, stop: AbortController, answer: Promise<Answer> } | null} */
let ahead = null;

/** @param {string} command @param {URLSearchParams} query @param {AbortController} stop @param {string | undefined} view @param {(answer: Answer, ms: number) => void} hear @returns {Promise<Answer>} */
async function answer(command, query, stop, view, hear) {
  const begun = performance.now();
  let response;
  try {
    response = await fetch(`api/${command}?${query}`, { signal: stop.signal, headers: view ? { "X-View": called(view) } : {} });
  } catch (error) {
    if (stop.signal.aborted) throw gone(stop);
    throw new Error("afterimage explore does not answer. It was ended, or the computer was asleep. Start it again, and open the address that it prints.");
  }
  const body = await response.text().catch(() => { throw gone(stop); });
  if (view && open.get(view) === stop) open.delete(view);
  const command_ = decodeURIComponent(response.headers.get("X-Afterimage-Command") ?? "");
  const [took, kept] = (response.headers.get("X-Afterimage-Took") ?? "0").split(";");
  const isJson = (response.headers.get("Content-Type") ?? "").startsWith("application/json");
  const lines = isJson ? body.split("\n").filter((line) => line).map((line) => JSON.parse(line)) : [];
  const why = lines[0]?.error;
  if (why?.startsWith("a newer question")) throw new Superseded();
  // The recording may have changed.
  if (response.status === 409) foreseen.clear();
  if (why) throw new Error(why);
  const given = { doc: lines[0], rows: lines.slice(1), text: body, took: Number.parseFloat(took), kept: Boolean(kept), command: command_ };
  hear(given, performance.now() - begun);
  return given;
}

/**
 * Returns a function that asks only once, unless the question fails.
 * @template T
 * @param {() => Promise<T>} find @returns {() => Promise<T>}
 */
export function once(find) {
  /** @type {Promise<T> | null} */
  let kept = null;
  return () => (kept ??= find().catch((error) => { kept = null; throw error; }));
}

/** Returns the error of a question that was cancelled. @param {AbortController} stop */
const gone = (stop) => stop.signal.reason === GIVEN_UP ? new Error("This question was cancelled. Choose it again to repeat it.") : new Superseded();
const GIVEN_UP = "given up";

/** A name for this page, so that two pages of one recording do not replace each other's questions. */
const tab = Math.random().toString(36).slice(2, 8);
/** @param {string} view */
const called = (view) => `${tab} ${view}`;

/** Cancels a question of this page, identified by the server's name for its view. @param {string | null} view */
export async function cancel(view) {
  for (const [name, stop] of open) if (!view || called(name) === view) stop.abort(GIVEN_UP);
  await told(`cancel${view ? `?view=${encodeURIComponent(view)}` : ""}`);
}

/** Returns data that only the server knows. @param {string} what @returns {Promise<any>} */
export async function told(what) {
  const response = await fetch(`api/${what}`);
  const body = await response.json();
  if (body.error) throw new Error(body.error);
  return body;
}

/** Saves notes. @param {any} notes @returns {Promise<any>} */
export async function keep(notes) {
  const response = await fetch("api/notes", { method: "POST", body: JSON.stringify(notes) });
  const body = await response.json();
  if (body.error) throw new Error(body.error);
  return body;
}
