/** Shows the values of a variable over time, on a canvas and as a table. */
import { choice, color, empty, grouped, h, sharp } from "./dom.js";

/** Parses a value's text as a number, if it is one. @param {string} text */
function numeric(text) {
  const found = /^(-?\d+(?:\.\d+)?(?:e[-+]?\d+)?|0x[0-9a-f]+)\b/i.exec(text);
  return found ? Number(found[1]) : null;
}

/**
 * @param {string} name @param {{ number: number, t: number, text: string }[]} values @param {number | null} now @param {(number: number) => void} open
 */
export function plot(name, values, now, open) {
  const points = values.map((value) => ({ ...value, y: numeric(value.text) }));
  const known = points.filter((point) => point.y !== null);
  const table = h("div.twin", { tabindex: 0, role: "region", "aria-label": `Values of ${name}` }, h("table.list", null, h("thead", null, h("tr", null, h("th.n", null, "#"), h("th.n", null, "t"), h("th", null, name))),
    h("tbody", null, points.map((point) => h(`tr${point.t === now ? ".on" : ""}`, null, h("td.n", null, h("button.link", { type: "button", onclick: () => open(point.number) }, grouped(point.number))), h("td.n", null, grouped(point.t)), h("td", null, h("code", null, point.text)))))));
  if (known.length < 2) return values.length ? table : empty("No value is known.");
  const canvas = /** @type {HTMLCanvasElement} */ (h("canvas", { role: "img", "aria-label": `${name} over time; the table has the same values` }));
  const tip = h("div.tip", { "aria-live": "polite" }, "Each point is one arrival. Click to go there.");
  const graph = h("div.values-plot", null, canvas, tip);
  const [low, high] = known.reduce(([low, high], point) => [Math.min(low, Number(point.y)), Math.max(high, Number(point.y))], [Infinity, -Infinity]);
  const [first, last] = [known[0].t, known[known.length - 1].t];
  const HEIGHT = 180;
  // Addresses are labelled as they are written elsewhere.
  const label = known.every((point) => point.text.startsWith("0x")) ? (/** @type {number} */ at) => `0x${Math.round(at).toString(16)}`
    : (/** @type {number} */ at) => Math.abs(at) >= 1000 ? grouped(Math.round(at)) : Number.isInteger(at) ? grouped(at) : at.toPrecision(4);
  let left = 56;
  const x = (/** @type {number} */ t, /** @type {number} */ width) => left + ((t - first) / Math.max(1, last - first)) * (width - left - 16);
  const y = (/** @type {number} */ value) => HEIGHT - 22 - ((value - low) / (high - low || 1)) * (HEIGHT - 40);
  const draw = () => {
    const width = graph.clientWidth || 600;
    const to = sharp(canvas, width, HEIGHT);
    to.font = "11px ui-monospace, monospace";
    to.strokeStyle = color("line");
    to.fillStyle = color("soft");
    to.textAlign = "right";
    const labels = /** @type {[number, string][]} */ ([low, (low + high) / 2, high].map((at) => [at, label(at)]));
    left = Math.max(56, ...labels.map(([, text]) => Math.ceil(to.measureText(text).width) + 10));
    for (const [at, text] of labels) {
      to.beginPath(); to.moveTo(left, y(at)); to.lineTo(width - 12, y(at)); to.stroke();
      to.fillText(text, left - 6, y(at) + 4);
    }
    if (low < 0 && high > 0) { to.strokeStyle = color("soft"); to.beginPath(); to.moveTo(56, y(0)); to.lineTo(width - 12, y(0)); to.stroke(); }
    if (now !== null && now >= first && now <= last) { to.fillStyle = color("moment"); to.fillRect(x(now, width) - 1, 8, 2, HEIGHT - 24); }
    to.fillStyle = color("accent");
    for (const point of known) { to.beginPath(); to.arc(x(point.t, width), y(Number(point.y)), known.length > 400 ? 1.5 : 2.4, 0, 7); to.fill(); }
    to.fillStyle = color("soft");
    to.textAlign = "left"; to.fillText(`t=${grouped(first)}`, left, HEIGHT - 5);
    to.textAlign = "right"; to.fillText(`t=${grouped(last)}`, width - 12, HEIGHT - 5);
  };
  /** @param {MouseEvent} event */
  const near = (event) => {
    const box = canvas.getBoundingClientRect();
    const at = event.clientX - box.left;
    const up = event.clientY - box.top;
    const far = (/** @type {any} */ point) => Math.hypot(x(point.t, box.width) - at, (y(point.y) - up) / 2);
    return known.reduce((best, point) => (far(point) < far(best) ? point : best), known[0]);
  };
  canvas.addEventListener("mousemove", (event) => { const point = near(event); tip.textContent = `#${grouped(point.number)} at t=${grouped(point.t)}: ${point.text}`; });
  canvas.addEventListener("click", (event) => open(near(event).number));
  new ResizeObserver(draw).observe(graph);
  window.addEventListener("themechange", draw);
  const holder = h("div", null, graph);
  return h("div", null, h("div.over", null, choice("Form", [["plot", "Plot"], ["table", "Table"]], "plot", (form) => holder.replaceChildren(form === "plot" ? graph : table))), holder);
}
