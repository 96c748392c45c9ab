/** Shortens names of functions to the form that people write, without the types of parameters, versions of libraries and default arguments. */
import { ask } from "./api.js";
import { h } from "./dom.js";

/** The short forms of names that have one. @type {Map<string, string>} */
const short = new Map();

/** Returns the name as people write it, if known. @param {string} name */
export const plain = (name) => short.get(name) ?? name;

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
