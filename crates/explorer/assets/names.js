/** Shortens names of functions to the form that people write, without the types of parameters, versions of libraries and default arguments. */
import { ask } from "./api.js";
import { h } from "./dom.js";

/** The short forms of names that have one. @type {Map<string, string>} */
const short = new Map();

/** Returns the name as people write it, if known. @param {string} name */
export const plain = (name) => short.get(name) ?? name;

/** Returns the last part of a long name, as in `…::parse_line`. @param {string} name */
export function brief(name) {
  const text = plain(name);
  let [depth, last] = [0, 0];
  for (let at = 0; at < text.length; at += 1) {
    if (text[at] === "<") depth += 1;
    else if (text[at] === ">") depth = Math.max(0, depth - 1);
    // The arguments of a generic function belong to its name.
    else if (!depth && text.startsWith("::", at) && text[at + 2] !== "<") last = at + 2;
  }
  return last && text.length > 24 ? `…::${text.slice(last)}` : text;
}

/** Returns the parts of a name, with allowed line breaks between them, as in `bank::main`. @param {string} name */
const parts = (name) => plain(name).split(/(?<=::)/).flatMap((part, index) => (index ? [h("wbr", null), part] : [part]));

/** Creates an element for a name, which changes to the short form once it is known. @param {string} name */
export const named = (name) => h("span", { "data-name": name, title: name }, parts(name));

/** Asks for the short forms. */
export async function learn() {
  const { doc } = await ask("names");
  for (const [name, written] of Object.entries(doc.names)) short.set(name, written);
  if (!short.size) return;
  for (const shown of document.querySelectorAll("[data-name]")) {
    const name = /** @type {HTMLElement} */ (shown).dataset.name ?? "";
    if (short.has(name)) shown.replaceWith(named(name));
  }
  // Redraw the canvases.
  window.dispatchEvent(new Event("themechange"));
}
