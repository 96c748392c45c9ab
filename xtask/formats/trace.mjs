// Reads a trace with the trace engine of Chrome's DevTools: `node trace.mjs FILE`. Prints the number of slices and their own time by name.
import { readFileSync } from "node:fs";
import * as Trace from "@paulirish/trace_engine/models/trace/trace.js";

globalThis.DOMRect ??= class {};
const { traceEvents } = JSON.parse(readFileSync(process.argv[2], "utf8"));
const model = Trace.TraceModel.Model.createWithAllHandlers();
await model.parse(traceEvents);
const { Renderer } = model.parsedTrace().data;
const calls = {};
const own = {};
let total = 0;
for (const { threads } of Renderer.processes.values()) {
  for (const { entries } of threads.values()) {
    for (const entry of entries) {
      const node = Renderer.entryToNode.get(entry);
      calls[entry.name] = (calls[entry.name] ?? 0) + 1;
      own[entry.name] = (own[entry.name] ?? 0) + node.selfTime;
      if (node.depth === 0) total += entry.dur;
    }
  }
}
console.log(JSON.stringify({ calls, own, total }));
