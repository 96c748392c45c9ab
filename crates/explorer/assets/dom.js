/** Creates elements, formats numbers, and shows the states of a view: loading, empty, failed. */

/** @typedef {Node | string | number | null | undefined | false} Child */

/**
 * Creates an element: `h("td.n", { title: "…" }, "text")`. Text stays text, even if the names or output of a program contain markup.
 * @param {string} what a tag with classes
 * @param {Record<string, any> | null} [with_] attributes; a name that begins with `on` is a listener
 * @param {...(Child | Child[])} children
 * @returns {any}
 */
export function h(what, with_, ...children) {
  const [tag, ...classes] = what.split(".");
  const made = document.createElement(tag);
  if (classes.length) made.className = classes.join(" ");
  for (const [name, value] of Object.entries(with_ ?? {})) {
    if (value === null || value === undefined || value === false) continue;
    if (name.startsWith("on")) made.addEventListener(name.slice(2), value);
    else if (name === "value") /** @type {HTMLInputElement} */ (made).value = value;
    else made.setAttribute(name, value === true ? "" : String(value));
  }
  made.append(...nodes(children));
  return made;
}

/** @param {(Child | Child[])[]} children @returns {(Node | string)[]} */
function nodes(children) {
  return /** @type {Child[]} */ (children.flat(Infinity)).filter((child) => child !== null && child !== undefined && child !== false)
    .map((child) => (child instanceof Node ? child : visible(String(child))));
}

/**
 * Creates an element of SVG in the same way.
 * @param {string} tag @param {Record<string, any>} with_ @param {...Child} children
 */
export function svg(tag, with_, ...children) {
  const made = document.createElementNS("http://www.w3.org/2000/svg", tag);
  for (const [name, value] of Object.entries(with_)) {
    if (value === null || value === undefined || value === false) continue;
    if (name.startsWith("on")) made.addEventListener(name.slice(2), value);
    else made.setAttribute(name, String(value));
  }
  made.append(...nodes(children));
  return made;
}

/** Replaces the contents of an element. @param {Element} into @param {...(Child | Child[])} children */
export function fill(into, ...children) {
  into.replaceChildren(...nodes(children));
}

/** Writes invisible characters, and characters that change the direction of text, as escapes. @param {string} text */
export function visible(text) {
  return text.replace(/[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u061c\u200b-\u200f\u2028-\u202e\u2060-\u2069\ufeff]/g,
    (hidden) => `\\u{${hidden.codePointAt(0)?.toString(16)}}`);
}

const GROUPED = new Intl.NumberFormat("en-US");
/** Formats a count with all its digits. @param {number} count */
export const grouped = (count) => GROUPED.format(count);

/** Makes the column of counts as wide as the longest count. @param {HTMLElement} lines @param {number} most */
export const column = (lines, most) => lines.style.setProperty("--digits", String(Math.max(6, grouped(most).length)));

/** @param {number} part @param {number} all */
export function share(part, all) {
  if (!all || !part) return "";
  const percent = (100 * part) / all;
  return percent < 0.1 ? "<0.1%" : `${percent.toFixed(1)}%`;
}

/** @param {number} n @param {string} what */
export const counted = (n, what) => `${grouped(n)} ${what}${n === 1 ? "" : "s"}`;

/** @param {number} ms */
export const time = (ms) => (ms < 10 ? `${ms.toFixed(1)} ms` : ms < 1000 ? `${Math.round(ms)} ms` : `${(ms / 1000).toFixed(1)} s`);

/** Returns the last part of a path. @param {string} path */
export const base = (path) => path.slice(path.lastIndexOf("/") + 1);

/** @param {string} [what] */
export const loading = (what = "Asking …") => h("p.loading", { role: "status" }, h("span.spin", { "aria-hidden": "true" }), what);

/** @param {...Child} children */
export const empty = (...children) => h("div.empty", null, ...children);

/**
 * Shows why there is no answer. @param {any} error
 */
export function failed(error) {
  return h("div.failed", { role: "alert" }, h("strong", null, "No answer"), h("p", null, String(error?.message ?? error)));
}

/**
 * Creates the line below each answer: whether it is exact, how long it took, and the command that repeats it.
 * @param {import("./api.js").Answer | null} answer
 */
export function answered(answer) {
  if (!answer) return null;
  const partial = answer.doc?.left_out ?? answer.doc?.note;
  return h("div.answered", null,
    h("span.exact", { title: partial ? String(partial) : "Nothing is sampled or estimated" }, partial ? "partial" : "exact"),
    h("span", { title: "The time that the server took to answer" }, answer.kept ? "known" : time(answer.took)),
    h("code", { title: "The command that gives the same answer" }, answer.command),
    copier(answer.command, "Copy command"));
}

/** Creates a button that copies a text. @param {string} text @param {string} label */
export function copier(text, label) {
  const button = h("button.quiet", { type: "button", title: label, "aria-label": label, onclick: async () => {
    await navigator.clipboard.writeText(text);
    button.textContent = "Copied";
    setTimeout(() => (button.textContent = "Copy"), 1200);
  } }, "Copy");
  return button;
}

/**
 * Creates a panel with a heading.
 * @param {string} title @param {Child | Child[]} aside @param {...Child} children
 */
export function panel(title, aside, ...children) {
  return h("section.panel", { "aria-label": title }, h("div.head", null, h("h2", null, title), h("div.aside", null, aside)), ...children);
}

/**
 * Creates a choice between a few options.
 * @param {string} label @param {[string, string][]} options @param {string} chosen @param {(value: string) => void} choose
 */
export function choice(label, options, chosen, choose) {
  const group = h("div.choice", { role: "group", "aria-label": label });
  for (const [value, text] of options) {
    const button = h("button", { type: "button", "aria-pressed": String(value === chosen), onclick: () => {
      for (const other of group.children) other.setAttribute("aria-pressed", String(other === button));
      choose(value);
    } }, text);
    group.append(button);
  }
  return group;
}

/** Creates a choice of the code to show: the user's own code, or also library code. @param {string} chosen @param {(value: string) => void} choose */
export const whose = (chosen, choose) => choice("Whose code", [["mine", "Mine"], ["all", "All"]], chosen, choose);

/** For each scroller, the controller that ends the list that it shows. @type {WeakMap<HTMLElement, AbortController>} */
const lists = new WeakMap();

/**
 * Shows only the visible rows of a long list. All rows have the same height. Ends the list that the scroller showed before.
 * @template T
 * @param {HTMLElement} scroller @param {number} height @param {number} count @param {(index: number) => HTMLElement} row
 */
export function virtual(scroller, height, count, row) {
  const space = h("div.space", null);
  space.style.height = `${height * count}px`;
  const holder = h("div.rows", { role: "list" });
  space.append(holder);
  let [from, to] = [-1, -1];
  const draw = (again = false) => {
    const first = Math.max(0, Math.floor(scroller.scrollTop / height) - 12);
    const last = Math.min(count, Math.ceil((scroller.scrollTop + scroller.clientHeight) / height) + 12);
    if (!again && first === from && last === to) return;
    [from, to] = [first, last];
    const focused = /** @type {HTMLElement | null} */ (document.activeElement)?.dataset?.index;
    const had = holder.contains(document.activeElement);
    holder.style.transform = `translateY(${first * height}px)`;
    const rows = [];
    for (let index = first; index < last; index += 1) rows.push(row(index));
    update(holder, rows);
    if (had && focused) /** @type {HTMLElement | null} */ (holder.querySelector(`[data-index="${focused}"]`))?.focus({ preventScroll: true });
  };
  scroller.replaceChildren(space);
  lists.get(scroller)?.abort();
  const ends = new AbortController();
  lists.set(scroller, ends);
  scroller.addEventListener("scroll", () => draw(), { signal: ends.signal });
  // Keep the current row in sight when the list becomes shorter.
  let [shown, low] = [-1, scroller.clientHeight];
  const isSeen = (/** @type {number} */ tall) => shown * height >= scroller.scrollTop && (shown + 2) * height <= scroller.scrollTop + tall;
  const watch = new ResizeObserver(() => {
    if (isSeen(low) && !isSeen(scroller.clientHeight)) scroller.scrollTop = (shown + 2) * height - scroller.clientHeight;
    low = scroller.clientHeight;
    draw();
  });
  watch.observe(scroller);
  ends.signal.addEventListener("abort", () => watch.disconnect());
  draw();
  return {
    draw: () => draw(true),
    /** @param {number} index */
    show(index) {
      const top = index * height;
      shown = index;
      const seen = top >= scroller.scrollTop + height && top + 2 * height <= scroller.scrollTop + scroller.clientHeight;
      if (!seen) scroller.scrollTop = Math.max(0, top - scroller.clientHeight / 3);
      draw(true);
    },
    row: (/** @type {number} */ index) => /** @type {HTMLElement | null} */ (holder.querySelector(`[data-index="${index}"]`)),
  };
}

/** Shows these rows. Rows that are already shown stay, so that the browser does not lay them out and paint them again. @param {HTMLElement} holder @param {HTMLElement[]} rows */
function update(holder, rows) {
  const old = new Map(Array.from(/** @type {HTMLCollectionOf<HTMLElement>} */ (holder.children), (one) => [one.dataset.index, one]));
  old.delete(undefined);
  const shown = rows.map((one) => { const known = old.get(one.dataset.index); return known?.isEqualNode(one) ? known : one; });
  const stay = new Set(shown);
  for (const one of [...holder.children]) if (!stay.has(/** @type {HTMLElement} */ (one))) one.remove();
  let next = holder.firstChild;
  for (const one of shown) {
    if (one === next) next = next.nextSibling;
    else holder.insertBefore(one, next);
  }
}

/** Sets up a canvas with the resolution of the screen. @param {HTMLCanvasElement} canvas @param {number} width @param {number} height */
export function sharp(canvas, width, height) {
  const ratio = window.devicePixelRatio || 1;
  canvas.width = Math.max(1, Math.round(width * ratio));
  canvas.height = Math.max(1, Math.round(height * ratio));
  canvas.style.width = `${width}px`;
  canvas.style.height = `${height}px`;
  const to = /** @type {CanvasRenderingContext2D} */ (canvas.getContext("2d"));
  to.setTransform(ratio, 0, 0, ratio, 0, 0);
  return to;
}

/** Returns a colour of the theme. @param {string} name */
export const color = (name) => getComputedStyle(document.documentElement).getPropertyValue(`--${name}`).trim();
