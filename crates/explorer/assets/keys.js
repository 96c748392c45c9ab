/** Handles keys, as in gdb and rr, and shows a list of them. */
import { h } from "./dom.js";
import { focus, go } from "./focus.js";
import { callee, caller, step, write } from "./moves.js";
import { note } from "./notes.js";
import { search } from "./search.js";
import { executionWhere, move } from "./source.js";
import { zoomBy } from "./timeline.js";

/** @type {[string, [string, string][]][]} */
const KEYS = [
  ["Move by line", [["n", "next line, over calls"], ["s", "next line, into calls"], ["f", "out: where the call returns"], ["N  S  F", "the same, backwards"]]],
  ["Move by execution", [["c", "next execution of the line"], ["C", "previous execution"], ["w", "next write or value of the variable"], ["W", "previous write or value"]]],
  ["Look", [["u  d", "up to the caller, down to the callee"], ["y", "why: where the variable's value came from"], ["v", "the variables, then ↑ ↓ and Enter"], ["↑  ↓", "lines of source, steps of why"], ["Home  End", "where the run began and ended"], ["Alt ←", "back"]]],
  ["Go", [["/", "search, or go to a moment"], ["1 … 6", "the views"], ["o", "the output, then the arrow keys and Enter"], ["b", "a note about this moment"], [".", "copy the command that opens this place"], ["?", "this list"]]],
  ["Timeline", [["+  -", "zoom"], ["←  →", "move"], ["0", "the whole run"], ["r", "make the visible part the range"]]],
];

/** Shows the list of keys. */
export function help() {
  const made = h("dialog.help", { "aria-label": "Keys" }, h("div.head", null, h("h2", null, "Keys"),
    h("button.quiet.icon", { type: "button", "aria-label": "Close", onclick: () => made.close() }, "✕")),
    h("div.groups", null, KEYS.map(([title, rows]) => h("section", null, h("h3", null, title), h("dl", null, rows.map(([key, what]) =>
      h("div", null, h("dt", null, key.split("  ").map((one) => h("kbd", null, one))), h("dd", null, what))))))));
  made.addEventListener("close", () => made.remove());
  document.getElementById("layer")?.append(made);
  made.showModal();
}

/** Focuses the output as soon as it is shown, so that the arrow keys choose a byte in it. */
function output() {
  go({ view: "overview" });
  let frames = 0;
  const look = () => {
    const found = /** @type {HTMLElement | null} */ (document.querySelector(".printed"));
    if (found) found.focus();
    else if ((frames += 1) < 600 && focus.view === "overview") requestAnimationFrame(look);
  };
  look();
}

/** The lists through which the arrow keys move, and the items to choose in them. */
const LISTS = [[".chain", ".place, .unfold"], ["table.variables", ".value .link"], ["table.list", "button.link"], [".blocks", "button.link"]];

/**
 * Moves up or down in a list, or into the view's list if nothing has the focus. Returns whether there is a list.
 * @param {HTMLElement} on @param {1 | -1} step
 */
function through(on, step) {
  const [list, item] = LISTS.find(([list]) => on.closest(list)) ?? (on === document.body && focus.view === "why" ? LISTS[0] : []);
  if (!list) return false;
  const within = on.closest(list) ?? document.querySelector(`#main-view ${list}`);
  const items = /** @type {HTMLElement[]} */ ([...within?.querySelectorAll(item) ?? []]);
  items[Math.min(items.length - 1, Math.max(0, items.indexOf(on) + step))]?.focus();
  return items.length > 0;
}

/** Asks about the variable that has the focus. Returns undefined if no variable has it. */
const asks = () => { const on = document.activeElement?.closest("[data-variable]"); return on && (/** @type {HTMLElement | null} */ (on.querySelector(".link"))?.click(), true); };

/** @param {Record<string, string>} views @param {() => void} copy */
export function keys(views, copy) {
  /** @type {Record<string, () => any>} */
  const does = {
    n: () => step("over", false), N: () => step("over", true), s: () => step("in", false), S: () => step("in", true),
    f: () => step("out", false), F: () => step("out", true), c: () => executionWhere(1), C: () => executionWhere(-1), w: () => write(1), W: () => write(-1),
    u: caller, d: callee, "/": () => search(""), "?": help, b: () => note(), ".": copy,
    y: () => asks() ?? (focus.at && go({ view: "why", about: focus.about?.startsWith("var:") ? focus.about : "value" })),
    o: output, v: () => /** @type {HTMLElement | null} */ (document.querySelector(".variables .value .link"))?.focus(),
    Home: () => go({ at: "start" }), End: () => go({ at: "end" }),
  };
  for (const [key, view] of Object.entries(views)) does[key] = () => go({ view });
  document.addEventListener("keydown", (pressed) => {
    const on = /** @type {HTMLElement} */ (pressed.target);
    const types = on.matches("input, textarea, select") || on.closest("dialog");
    if (types || pressed.ctrlKey || pressed.metaKey || pressed.altKey) return;
    if ((pressed.key === "Home" || pressed.key === "End") && on.closest("[data-own-keys]:not(canvas)")) return;
    if (pressed.key === "Escape") return on.blur();
    const step = { ArrowDown: /** @type {const} */ (1), ArrowUp: /** @type {const} */ (-1) }[pressed.key];
    if (step && through(on, step)) return pressed.preventDefault();
    if (on === document.body && focus.view === "source" && /^(Arrow|Page|Enter)/.test(pressed.key)) return move(pressed);
    if (focus.view === "timeline" && (/^[-+=0r]$/.test(pressed.key) || (on === document.body || on.closest(".tracks")) && /^Arrow(Left|Right)$/.test(pressed.key))) return zoomBy(pressed);
    const act = does[pressed.key];
    if (!act) return;
    pressed.preventDefault();
    void act();
  });
}
