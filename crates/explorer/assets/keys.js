/** Keys, as in gdb and rr, and the list of them. */
import { h } from "./dom.js";
import { focus, go } from "./focus.js";
import { callee, caller, execution, line, out, write } from "./moves.js";
import { note } from "./notes.js";
import { search } from "./search.js";

/** @type {[string, [string, string][]][]} */
const KEYS = [
  ["Move by line", [["n", "next line, over calls"], ["s", "next line, into calls"], ["f", "out: where the call returns"], ["N  S  F", "the same, backwards"]]],
  ["Move by execution", [["c", "next execution of the line"], ["C", "the execution before"], ["w", "next write of the variable"], ["W", "the write before"]]],
  ["Look", [["u  d", "up to the caller, down to the callee"], ["y", "why: where the variable's value came from"], ["Home  End", "where the run began and ended"], ["Alt ←", "back"]]],
  ["Go", [["/", "search, or go to a moment"], ["1 … 6", "the views"], ["b", "a note about this moment"], [".", "copy the command that opens this place"], ["?", "this list"]]],
];

/** Shows the list. */
export function help() {
  const made = h("dialog.help", { "aria-label": "Keys" }, h("div.head", null, h("h2", null, "Keys"),
    h("button.quiet.icon", { type: "button", "aria-label": "Close", onclick: () => made.close() }, "✕")),
    h("div.groups", null, KEYS.map(([title, rows]) => h("section", null, h("h3", null, title), h("dl", null, rows.map(([key, what]) =>
      h("div", null, h("dt", null, key.split("  ").map((one) => h("kbd", null, one))), h("dd", null, what))))))));
  made.addEventListener("close", () => made.remove());
  document.getElementById("layer")?.append(made);
  made.showModal();
}

/** @param {Record<string, string>} views @param {() => void} copy */
export function keys(views, copy) {
  /** @type {Record<string, () => any>} */
  const does = {
    n: () => line(false, true), N: () => line(true, true), s: () => line(false, false), S: () => line(true, false),
    f: () => out(false), F: () => out(true), c: () => execution(1), C: () => execution(-1), w: () => write(1), W: () => write(-1),
    u: caller, d: callee, "/": () => search(""), "?": help, b: () => note(), ".": copy,
    y: () => focus.at && go({ view: "why", about: focus.about?.startsWith("var:") ? focus.about : "value" }),
    Home: () => go({ at: "start" }), End: () => go({ at: "end" }),
  };
  for (const [key, view] of Object.entries(views)) does[key] = () => go({ view });
  document.addEventListener("keydown", (pressed) => {
    const on = /** @type {HTMLElement} */ (pressed.target);
    const types = on.matches("input, textarea, select") || on.closest("dialog");
    if (types || pressed.ctrlKey || pressed.metaKey || pressed.altKey) return;
    if ((pressed.key === "Home" || pressed.key === "End") && on.closest("[data-own-keys]")) return;
    const act = does[pressed.key];
    if (!act) return;
    pressed.preventDefault();
    void act();
  });
}
