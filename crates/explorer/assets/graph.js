/** Shows a control-flow graph as a picture, with blocks in layers and edges with their counts, and as a table. */
import { base, choice, column, grouped, h, svg, virtual } from "./dom.js";

const [WIDE, HIGH, GAP, LEVEL] = [132, 38, 26, 46];
/** The distance between edges that pass other blocks on the same side. */
const LANE = 24;
/** The maximum length of the place of a block, in characters. */
const LABEL = 13;

/** The maximum number of blocks in a picture, and the height of a row of the table. */
const [MOST, ROW] = [400, 21];

/**
 * @param {any} shape @param {any[]} blocks @param {any[]} edges @param {(offset: number, ran: boolean) => void} open
 */
export function graph(shape, blocks, edges, open) {
  const counts = new Map(blocks.map((row) => [row.block, row]));
  const taken = new Map(edges.map((row) => [row.edge, row.count]));
  const inside = shape.blocks.filter((/** @type {any} */ one) => one.kind !== "exit");
  const shown = { ...shape, inside, counts, taken, most: Math.max(1, ...blocks.map((row) => row.count)), file: counts.get(shape.root)?.source?.file, open };
  if (inside.length > MOST) return h("div", null, h("p.note", null, `A picture shows at most ${MOST} blocks, so this is a table.`), table(shown));
  const drawn = picture(shown);
  const holder = h("div", null, drawn);
  return h("div", null, h("div.over", null, choice("Form", [["graph", "Graph"], ["table", "Table"]], "graph", (form) => holder.replaceChildren(form === "graph" ? drawn : table(shown)))), holder);
}

/** Returns the line of a block, if known. Lines of inlined code are in other files. @param {any} row @param {string} own */
const lineOf = (row, own) => row?.source && (row.source.file === own ? `line ${row.source.line}` : `${base(row.source.file)}:${row.source.line}`);

/** Whether a block was executed, in the range or elsewhere. @param {any} row */
const ran = (row) => Boolean(row && (row.ran ?? row.count > 0));

/** Creates the table: for each block its count, its line, and the counts of its edges. @param {any} shown */
function table({ inside, edges, counts, taken, most, file, open }) {
  const next = /** @type {Map<number, any[]>} */ (new Map(inside.map((/** @type {any} */ one) => [one.block, []])));
  for (const edge of edges) next.get(edge.from)?.push(edge);
  const scroller = h("div.blocks", { tabindex: 0, role: "region", "aria-label": "Control flow as a table" });
  column(scroller, most);
  virtual(scroller, ROW, inside.length, (index) => {
    const { block, offset, end } = inside[index];
    const row = counts.get(block);
    const count = row?.count ?? 0;
    const heat = h("span.heat", { "aria-hidden": "true" });
    heat.style.opacity = count ? String(0.08 + 0.92 * Math.sqrt(count / most)) : "0";
    return h(`div.row${count ? "" : ".never"}`, { role: "listitem", "data-index": index }, heat, h("span.count", { title: "Executions" }, grouped(count)), h("span.number", { title: "Block" }, block),
      h("button.link", { type: "button", title: ran(row) ? "Go to its first execution" : "Why did it not run?", onclick: () => open(offset, ran(row)) }, lineOf(row, file) ?? `@0x${offset.toString(16)}`), h("span.end", null, end),
      (next.get(block) ?? []).map((edge) => h(`span.next${taken.get(edge.edge) ? "" : ".cold"}`, { title: edge.kind }, `→ ${next.has(edge.to) ? edge.to : "exit"} `, h("span.soft", null, `${grouped(taken.get(edge.edge) ?? 0)}×`))));
  });
  scroller.prepend(h("div.row.heads", null, h("span.count", null, "Count"), h("span.number", null, "Block"), h("span.link", null, "Line"), h("span.end", null, "Ends with"), h("span.next", null, "Next blocks")));
  return scroller;
}

/** Draws the picture. @param {any} shown */
function picture({ edges, root, blocks, counts, taken, most, file, open }) {
  const nodes = blocks.filter((/** @type {any} */ one) => one.kind !== "exit" || edges.some((/** @type {any} */ edge) => edge.to === one.block));
  // The layer of a block is the length of the longest path to it without back edges. Back edges would make paths endless.
  const ahead = edges.filter((/** @type {any} */ edge) => !edge.back);
  const layer = new Map([[root, 0]]);
  for (let round = 0, changed = true; changed && round <= nodes.length; round += 1) {
    changed = false;
    for (const edge of ahead) {
      const from = layer.get(edge.from);
      if (from === undefined || (layer.get(edge.to) ?? -1) >= from + 1 || from + 1 > nodes.length) continue;
      layer.set(edge.to, from + 1);
      changed = true;
    }
  }
  const layers = /** @type {number[][]} */ ([]);
  for (const one of nodes) (layers[layer.get(one.block) ?? 0] ??= []).push(one.block);
  // Place each block below the blocks that lead to it.
  const order = new Map();
  for (const row of layers) {
    if (!row) continue;
    const wish = (/** @type {number} */ block) => {
      const from = ahead.filter((/** @type {any} */ edge) => edge.to === block && order.has(edge.from)).map((/** @type {any} */ edge) => order.get(edge.from));
      return from.length ? from.reduce((/** @type {number} */ sum, /** @type {number} */ one) => sum + one, 0) / from.length : 0;
    };
    row.sort((a, b) => wish(a) - wish(b) || a - b);
    row.forEach((block, index) => order.set(block, index - (row.length - 1) / 2));
  }
  const span = Math.max(...layers.map((row) => row?.length ?? 0));
  const lanes = lanesOf(edges, layer);
  const width = span * (WIDE + GAP) + 2 * (60 + LANE * Math.max(0, ...[...lanes.values()].map(Math.abs)));
  const height = layers.length * (HIGH + LEVEL) + 20;
  const place = (/** @type {number} */ block) => ({ x: width / 2 + order.get(block) * (WIDE + GAP), y: 14 + (layer.get(block) ?? 0) * (HIGH + LEVEL) });
  const drawn = svg("svg", { viewBox: `0 0 ${width} ${height}`, width, height, role: "group", "aria-label": "Control-flow graph", class: "cfg" },
    svg("defs", {}, svg("marker", { id: "tip", viewBox: "0 0 8 8", refX: 7, refY: 4, markerWidth: 7, markerHeight: 7, markerUnits: "userSpaceOnUse", orient: "auto" }, svg("path", { d: "M0 0 8 4 0 8z" }))));
  for (const edge of edges) {
    if (!order.has(edge.from) || !order.has(edge.to)) continue;
    const [from, to] = [place(edge.from), place(edge.to)];
    const count = taken.get(edge.edge) ?? 0;
    const lane = lanes.get(edge.edge) ?? 0;
    const side = lane && Math.sign(lane) * (WIDE / 2 + 22 + LANE * (Math.abs(lane) - 1));
    const out = Math.sign(side);
    // The two ends of an edge from a block to itself are drawn apart.
    const [begin, end] = [from.y + HIGH / 2 + (edge.from === edge.to ? 9 : 0), to.y + HIGH / 2 - (edge.from === edge.to ? 9 : 0)];
    const path = side
      ? `M${from.x + out * (WIDE / 2)} ${begin} C${from.x + side + out * 14} ${begin}, ${to.x + side + out * 14} ${end}, ${to.x + out * (WIDE / 2)} ${end}`
      : `M${from.x} ${from.y + HIGH} C${from.x} ${from.y + HIGH + LEVEL / 2}, ${to.x} ${to.y - LEVEL / 2}, ${to.x} ${to.y - 1}`;
    drawn.append(svg("path", { d: path, class: `edge${count ? "" : " cold"}`, "stroke-width": count ? 1 + 2.2 * Math.sqrt(count / most) : 1, "marker-end": "url(#tip)" }, svg("title", {}, `${edge.from} → ${edge.to}, ${edge.kind}: ${grouped(count)} times`)));
    if (edge.kind !== "fall" && edge.kind !== "call return" && edge.kind !== "jump" && edge.kind !== "return")
      drawn.append(svg("text", { x: side ? (from.x + to.x) / 2 + side : (from.x * 0.62 + to.x * 0.38), y: side ? (from.y + to.y) / 2 + HIGH / 2 : from.y + HIGH + LEVEL * 0.42, class: "edge-count" }, grouped(count)));
  }
  for (const one of nodes) {
    const { x, y } = place(one.block);
    const row = counts.get(one.block);
    const isExit = one.kind === "exit";
    const stands = lineOf(row, file);
    const line = !stands ? one.kind : stands.length > LABEL ? `…${stands.slice(1 - LABEL)}` : stands;
    const act = () => { if (!isExit) open(one.offset, ran(row)); };
    const group = svg("g", { class: `block${row && !row.count ? " cold" : ""}${isExit ? " exit" : ""}`, transform: `translate(${x - WIDE / 2} ${y})`, tabindex: isExit ? null : 0, role: isExit ? null : "button", onclick: act, onkeydown: (/** @type {KeyboardEvent} */ pressed) => { if (pressed.key === "Enter") act(); } },
      svg("title", {}, `block ${one.block}, ends with ${one.end}${row ? `, executed ${grouped(row.count)} times` : ""}${row?.source ? `, ${row.source.file}:${row.source.line}` : ""}`), svg("rect", { width: WIDE, height: HIGH, rx: 6 }));
    if (row?.count) group.append(svg("rect", { width: 4, height: HIGH, rx: 2, class: "hot", opacity: 0.15 + 0.85 * Math.sqrt(row.count / most) }));
    group.append(svg("text", { x: 12, y: 15, class: "what" }, isExit ? "exit" : `${one.block} · ${line}`), svg("text", { x: 12, y: 30, class: "many" }, isExit ? "" : row ? `${grouped(row.count)}×` : ""));
    drawn.append(group);
  }
  const shown = h("div.graph", { tabindex: 0, role: "region", "aria-label": "Control flow" }, drawn);
  // The picture may be wider than the view: begin at the first block.
  requestAnimationFrame(() => { shown.scrollLeft = place(root).x - shown.clientWidth / 2; });
  return shown;
}

/**
 * Returns the lanes of the edges that pass other blocks, from 1 on the right, and from -1 on the left for back edges. Edges that pass the same layer have different lanes,
 * and the shortest edges are nearest to the blocks.
 * @param {any[]} edges @param {Map<number, number>} layer @returns {Map<number, number>}
 */
function lanesOf(edges, layer) {
  const lanes = new Map();
  const spans = edges.map((edge) => {
    const [from, to] = [layer.get(edge.from) ?? 0, layer.get(edge.to) ?? 0];
    return { edge, top: Math.min(from, to), bottom: Math.max(from, to), passes: to - from !== 1 };
  });
  const full = /** @type {{ top: number, bottom: number }[][][]} */ ([[], []]);
  for (const one of spans.filter((one) => one.passes).sort((a, b) => a.bottom - a.top - (b.bottom - b.top))) {
    const side = full[one.edge.back ? 0 : 1];
    let lane = side.findIndex((others) => others.every((other) => other.bottom <= one.top || one.bottom <= other.top));
    if (lane < 0) lane = side.push([]) - 1;
    side[lane].push(one);
    lanes.set(one.edge.edge, one.edge.back ? -1 - lane : 1 + lane);
  }
  return lanes;
}
