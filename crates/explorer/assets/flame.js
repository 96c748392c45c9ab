/** Shows a flame graph on a canvas, exact to the block, and the same data as a table. */
import { choice, color, grouped, h, share, sharp } from "./dom.js";
import { named, plain } from "./names.js";

/**
 * @typedef {object} Node
 * @property {string} name
 * @property {number} total
 * @property {number} own
 * @property {number} depth
 * @property {number} from where it begins, in blocks
 * @property {Map<string, Node>} children
 * @property {Node | null} parent
 */

/** @param {string} name @param {Node | null} parent @returns {Node} */
const node = (name, parent) => ({ name, parent, total: 0, own: 0, depth: parent ? parent.depth + 1 : 0, from: 0, children: new Map() });

/** Parses stacks with their blocks into a tree. @param {string} text */
export function tree(text) {
  const root = node("all", null);
  for (const line of text.split("\n")) {
    const end = line.lastIndexOf(" ");
    if (end < 0) continue;
    const blocks = Number(line.slice(end + 1));
    let at = root;
    at.total += blocks;
    for (const name of line.slice(0, end).split(";")) {
      let next = at.children.get(name);
      if (!next) at.children.set(name, (next = node(name, at)));
      next.total += blocks;
      at = next;
    }
    at.own += blocks;
  }
  /** @param {Node} of */
  const all = [root];
  for (const of of all) {
    let from = of.from;
    for (const child of [...of.children.values()].sort((a, b) => b.total - a.total)) {
      child.from = from;
      from += child.total;
      all.push(child);
    }
  }
  return { root, all };
}

const HEIGHT = 21;

/** Returns a hue for a name, always the same hue. @param {string} name */
function hue(name) {
  let hash = 0;
  for (const char of name) hash = (hash * 31 + (char.codePointAt(0) ?? 0)) | 0;
  return Math.abs(hash) % 6;
}

/** @param {string} text stacks @param {(name: string) => void} open */
export function flame(text, open) {
  const { root, all } = tree(text);
  const depth = all.reduce((most, one) => Math.max(most, one.depth), 0);
  const canvas = /** @type {HTMLCanvasElement} */ (h("canvas", { tabindex: 0, role: "img", "aria-label": `Flame graph of ${grouped(root.total)} blocks; the table beside it has the same numbers`, "data-own-keys": "" }));
  const tip = h("div.tip", { "aria-live": "polite" });
  const frame = h("div", null, canvas);
  const graph = h("div.flame", null, frame, tip);
  let zoom = root;
  let hovered = /** @type {Node | null} */ (null);
  const draw = () => {
    const width = frame.clientWidth || 800;
    const height = (depth + 1) * HEIGHT;
    const to = sharp(canvas, width, height);
    to.clearRect(0, 0, width, height);
    to.font = "11.5px ui-monospace, SFMono-Regular, Menlo, Consolas, monospace";
    to.textBaseline = "middle";
    const ink = color("flame-ink");
    for (const one of all) {
      const box = place(one, width);
      if (!box || box.w < 0.6) continue;
      to.fillStyle = one === hovered ? color("accent-soft") : one.depth < zoom.depth ? color("panel-2") : color(`flame-${one.name.startsWith("[") ? "x" : hue(one.name)}`);
      to.fillRect(box.x, one.depth * HEIGHT, Math.max(0.6, box.w - 1), HEIGHT - 1);
      if (box.w > 34) {
        to.fillStyle = ink;
        const room = Math.floor((box.w - 10) / 6.95);
        const name = one === root ? `all: ${grouped(root.total)} blocks` : plain(one.name);
        to.fillText(name.length > room ? `${name.slice(0, Math.max(1, room - 1))}…` : name, box.x + 5, one.depth * HEIGHT + HEIGHT / 2);
      }
    }
  };
  /** @param {Node} one @param {number} width */
  const place = (one, width) => {
    const scale = width / zoom.total;
    const x = (one.from - zoom.from) * scale;
    const w = one.total * scale;
    if (x + w <= 0 || x >= width) return null;
    return { x: Math.max(0, x), w: Math.min(width, x + w) - Math.max(0, x) };
  };
  /** @param {MouseEvent} at */
  const under = (at) => {
    const box = canvas.getBoundingClientRect();
    const level = Math.floor((at.clientY - box.top) / HEIGHT);
    const x = at.clientX - box.left;
    return all.find((one) => {
      if (one.depth !== level) return false;
      const here = place(one, box.width);
      return here && x >= here.x && x < here.x + here.w;
    }) ?? null;
  };
  /** @param {Node | null} one */
  const tell = (one) => {
    hovered = one;
    tip.textContent = one ? `${plain(one.name)} · ${grouped(one.total)} blocks with callees (${share(one.total, root.total)}) · ${grouped(one.own)} own` : "Click to zoom, double-click to open the function. Each width is a number of executed blocks.";
    draw();
  };
  canvas.addEventListener("mousemove", (event) => { const one = under(event); if (one !== hovered) tell(one); });
  canvas.addEventListener("mouseleave", () => tell(null));
  canvas.addEventListener("click", (event) => { const one = under(event); if (one) { zoom = one === zoom && one.parent ? one.parent : one; tell(one); } });
  canvas.addEventListener("dblclick", (event) => { const one = under(event); if (one && one !== root && !one.name.startsWith("[")) open(one.name); });
  canvas.addEventListener("keydown", (event) => {
    const at = hovered ?? zoom;
    const siblings = at.parent ? [...at.parent.children.values()].sort((a, b) => a.from - b.from) : [at];
    const index = siblings.indexOf(at);
    const children = [...at.children.values()].sort((a, b) => a.from - b.from);
    const next = /** @type {Record<string, Node | null | undefined>} */ ({ ArrowDown: children[0], ArrowUp: at.parent, ArrowRight: siblings[index + 1], ArrowLeft: siblings[index - 1] })[event.key];
    if (event.key === "Enter" && at !== root) { event.preventDefault(); open(at.name); return; }
    if (event.key === " ") { event.preventDefault(); zoom = at === zoom ? root : at; tell(at); return; }
    if (!next) return;
    event.preventDefault();
    tell(next);
  });
  new ResizeObserver(draw).observe(frame);
  window.addEventListener("themechange", draw);
  tell(null);
  const table = h("div.twin", { tabindex: 0, role: "region", "aria-label": "Flame graph as a table" }, h("table.list", null, h("thead", null, h("tr", null, h("th", null, "Context"), h("th.n", null, "With callees"), h("th.n", null, "Own"), h("th.n", null, "Share"))),
    h("tbody", null, ordered(root).slice(0, 400).map((one) => {
      const name = h("td", null, one === root ? one.name : h("button.link", { type: "button", onclick: () => open(one.name) }, named(one.name)));
      name.style.paddingLeft = `${8 + 12 * one.depth}px`;
      return h("tr", null, name, h("td.n", null, grouped(one.total)), h("td.n", null, grouped(one.own)), h("td.n", null, share(one.total, root.total)));
    }))));
  const holder = h("div", null, graph);
  return h("div", null, h("div.over", null, choice("Form", [["graph", "Graph"], ["table", "Table"]], "graph", (form) => { holder.replaceChildren(form === "graph" ? graph : table); })), holder);
}

/** Returns the nodes, parents before children and the largest siblings first. @param {Node} root */
function ordered(root) {
  const found = [];
  const open = [root];
  while (open.length) {
    const one = /** @type {Node} */ (open.pop());
    found.push(one);
    open.push(...[...one.children.values()].sort((a, b) => a.total - b.total));
  }
  return found;
}
