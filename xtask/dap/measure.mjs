// node measure.mjs AFTERIMAGE RECORDING SOURCE LINE CONDITION VARIABLE LINE-OF-VARIABLE: measures how long a client waits for each kind of request.
import { createRequire } from "node:module";

const require = createRequire(import.meta.url);
const { DebugClient } = require("@vscode/debugadapter-testsupport");
const [afterimage, recording, source, line, condition, variable, variableLine] = process.argv.slice(2);
const client = new DebugClient(afterimage, "dap", "afterimage");
client.defaultTimeout = 600_000;
const now = () => Number(process.hrtime.bigint()) / 1e6;
const row = (what, all) => {
  all.sort((a, b) => a - b);
  const at = (share) => all[Math.min(all.length - 1, Math.floor(share * all.length))].toFixed(1);
  console.log(`| ${what} | ${all.length} | ${at(0.5)} | ${at(0.95)} | ${at(1)} |`);
};
const go = async (request, args = {}) => {
  const begun = now();
  const [, event] = await Promise.all([client.send(request, { threadId: 1, ...args }), client.waitForEvent("stopped")]);
  return { ms: now() - begun, body: event.body };
};
const goto = async (moment) => {
  await Promise.all([client.evaluateRequest({ expression: `goto ${moment}`, context: "repl" }), client.waitForEvent("stopped")]);
};
const shown = async () => {
  const begun = now();
  const { body } = await client.stackTraceRequest({ threadId: 1 });
  const { body: scopes } = await client.scopesRequest({ frameId: body.stackFrames[0].id });
  await client.variablesRequest({ variablesReference: scopes.scopes[0].variablesReference });
  return now() - begun;
};
const set = (breakpoints) => client.setBreakpointsRequest({ source: { path: source }, breakpoints });

await client.start();
await client.initializeRequest();
const begun = now();
await Promise.all([client.waitForEvent("initialized"), client.attachRequest({ recording, stopOnEntry: true })]);
const opened = now() - begun;
await Promise.all([client.configurationDoneRequest(), client.waitForEvent("stopped")]);
console.log(`Opened in ${opened.toFixed(0)} ms. Milliseconds that a client waits:\n`);
console.log("| request | times | median | 95th percentile | worst |");
console.log("|---|--:|--:|--:|--:|");
let seed = 7;
const random = () => (seed = (seed * 1103515245 + 12345) % 2147483648) / 2147483648;
const places = Array.from({ length: 20 }, () => `${(random() * 100).toFixed(6)}%`);
for (const request of ["next", "stepIn", "stepOut", "stepBack", "afterimage/reverseStepIn", "afterimage/reverseStepOut"]) {
  const [times, views] = [[], []];
  for (const place of places) {
    await goto(place);
    await shown();
    for (let step = 0; step < 10; step++) {
      times.push((await go(request)).ms);
      views.push(await shown());
    }
  }
  row(request, times);
  row(`… and then stack and variables`, views);
}
const far = [];
for (const place of places) {
  await goto(place);
  far.push(await shown());
}
row("stack and variables at a place far away", far);
await set([{ line: Number(line) }]);
for (const request of ["continue", "reverseContinue"]) {
  const times = [];
  for (const place of places) {
    await goto(place);
    times.push((await go(request)).ms);
  }
  row(`${request} to a breakpoint`, times);
}
await set([{ line: Number(line), condition }]);
await goto("end");
const back = await go("reverseContinue");
row(`reverseContinue to \`${condition}\` (${back.body.description})`, [back.ms]);
await set([{ line: Number(variableLine) }]);
await goto("start");
await go("continue");
const { body: info } = await client.send("dataBreakpointInfo", { name: variable });
await set([]);
await client.send("setDataBreakpoints", { breakpoints: [{ dataId: info.dataId }] });
await goto("end");
const first = await go("reverseContinue");
row(`reverseContinue to a write of \`${variable}\``, [first.ms]);
const writes = [];
for (let again = 0; again < 5; again++) {
  writes.push((await go("reverseContinue")).ms);
}
row("… and to the writes before", writes);
await client.stop();
