/** Shows and edits notes: places with a title and text, in a file beside the recording. */
import { keep, told } from "./api.js";
import { empty, failed, fill, h, loading } from "./dom.js";
import { called, focus, go, known } from "./focus.js";
import { say } from "./moves.js";

/** @type {{ notes: { title: string, at: string | null, text: string }[], before: string } | null} */
let all = null;
/** @type {any} */
let page = null;

/** @param {HTMLElement} into */
export function notes(into) {
  if (into.hasChildNodes() && into.querySelector("form:focus-within")) return;
  void show(into);
}

async function load() {
  page ??= await told("page");
  all ??= await told("notes");
}

/** @param {HTMLElement} into */
async function show(into) {
  if (!into.hasChildNodes()) fill(into, loading());
  try {
    await load();
    const { notes } = /** @type {NonNullable<typeof all>} */ (all);
    fill(into, h("div.notes", null, h("div.title", null, h("h1", null, "Notes"), page.read_only ? h("span.tag", null, "read only") : h("button", { type: "button", onclick: () => note() }, "Add a note (b)")), h("p.soft", null, "Kept in ", h("code", null, page.notes), ", as plain text."),
      notes.length ? h("ul.list", null, notes.map((one, index) => h("li.note", null, h("div.head", null, h("h2", null, one.title || "Untitled"), one.at && h("button.place", { type: "button", onclick: () => go({ view: "source", at: one.at ?? "", file: "", line: "" }) }, h("span.where", null, one.at)),
        !page.read_only && h("span", null, h("button.quiet", { type: "button", onclick: () => note(index) }, "Edit"), h("button.quiet", { type: "button", onclick: () => change((list) => list.filter((_, at) => at !== index)) }, "Remove"))), one.text && h("p", null, one.text))))
        : empty(h("strong", null, "No notes yet."), h("p", null, "Press b at a moment to keep it with a title and a few words."))));
  } catch (error) { fill(into, failed(error)); }
}

/** @param {(list: NonNullable<typeof all>["notes"]) => NonNullable<typeof all>["notes"]} how */
async function change(how) {
  try {
    await load();
    const { notes, before } = /** @type {NonNullable<typeof all>} */ (all);
    all = await keep({ notes: how([...notes]), before });
    const into = document.querySelector(".view-notes");
    if (into instanceof HTMLElement) await show(into);
    return true;
  } catch (error) {
    all = null;
    say(String(/** @type {any} */ (error).message));
    return false;
  }
}

/** Opens a dialog for a new note about the moment, or for changing a note. @param {number} [index] */
export async function note(index) {
  await load().catch((error) => say(error.message));
  if (!all) return;
  if (page.read_only) return say("Notes are not kept: afterimage explore was started with --read-only.");
  const old = index === undefined ? { title: "", at: known.moment ? called(known.moment) : focus.at ?? null, text: "" } : all.notes[index];
  const [title, at] = [h("input", { type: "text", value: old.title, required: true, maxlength: 200 }), h("input", { type: "text", value: old.at ?? "", spellcheck: "false" })];
  const text = h("textarea", { rows: 5 });
  text.value = old.text;
  const made = h("dialog.write", { "aria-label": "Note" }, h("form", { onsubmit: async (/** @type {Event} */ event) => {
    event.preventDefault();
    const now = { title: title.value, at: at.value || null, text: text.value };
    if (await change((list) => (index === undefined ? [...list, now] : list.map((one, place) => (place === index ? now : one))))) { made.close(); say("Kept."); }
  } }, h("h2", null, index === undefined ? "New note" : "Note"), h("label", null, "Title", title), h("label", null, "Moment", at), h("label", null, "Text", text), h("div.acts", null, h("button.quiet", { type: "button", onclick: () => made.close() }, "Cancel"), h("button.primary", { type: "submit" }, "Keep"))));
  made.addEventListener("close", () => made.remove());
  document.getElementById("layer")?.append(made);
  made.showModal();
  title.focus();
}
