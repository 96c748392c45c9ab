// node check.mjs AFTERIMAGE PROGRAM.wasm SOURCE LINE: debugs a program with the protocol authors' test client, and checks every message against the protocol's types.
import assert from "node:assert/strict";
import { createRequire } from "node:module";
import { schemas } from "./schemas.mjs";

const require = createRequire(import.meta.url);
const { DebugClient } = require("@vscode/debugadapter-testsupport");
const [afterimage, program, source, text] = process.argv.slice(2);
const line = Number(text);
const check = schemas();
let messages = 0;

class Checked extends DebugClient {
  dispatch(body) {
    const message = JSON.parse(body);
    messages += 1;
    const wrong = check(message, this.commands?.get(message.request_seq));
    assert.equal(wrong, null, `${body.slice(0, 400)}\n${wrong}`);
    super.dispatch(body);
  }
}

const client = new Checked(afterimage, "dap", "afterimage");
client.defaultTimeout = 60_000;
await client.start();
const run = { program, args: ["12"], code: "mine" };
const stopped = (reason, at) => client.assertStoppedLocation(reason, at ?? {});
const there = { path: source, line };
// Launch the program, set a breakpoint, and stop at it.
await client.hitBreakpoint(run, there);
const { body: trace } = await client.stackTraceRequest({ threadId: 1 });
assert.equal(trace.stackFrames[0].line, line);
const frameId = trace.stackFrames[0].id;
const { body: scopes } = await client.scopesRequest({ frameId });
let opened = 0;
for (const scope of scopes.scopes) {
  const { body } = await client.variablesRequest({ variablesReference: scope.variablesReference });
  for (const one of body.variables.filter((one) => one.variablesReference > 0)) {
    const { body } = await client.variablesRequest({ variablesReference: one.variablesReference });
    opened += body.variables.length;
  }
}
assert.ok(opened > 0, "nothing was opened");
const go = async (request, reason = "step") => {
  const [, event] = await Promise.all([client.send(request, { threadId: 1 }), client.waitForEvent("stopped")]);
  assert.equal(event.body.reason, reason, request);
  const { body } = await client.stackTraceRequest({ threadId: 1 });
  return body.stackFrames[0];
};
const before = await go("stepBack");
const here = await go("next");
assert.equal(here.line, line);
assert.notEqual(before.line, line);
await go("stepIn");
await go("afterimage/reverseStepIn");
await go("reverseContinue", "entry");
await go("continue", "breakpoint");
await client.setBreakpointsRequest({ source: { path: source }, breakpoints: [{ line, condition: "1 == 2" }, { line, logMessage: "here" }] });
await go("continue", "pause");
await go("reverseContinue", "entry");
await client.setBreakpointsRequest({ source: { path: source }, breakpoints: [{ line, hitCondition: "2" }] });
const second = await go("continue", "breakpoint");
await client.send("disassemble", { memoryReference: second.instructionPointerReference, instructionOffset: -4, instructionCount: 12 });
await client.send("readMemory", { memoryReference: "0x400", count: 64 });
await client.send("loadedSources", {});
await client.send("breakpointLocations", { source: { path: source }, line: 1, endLine: 200 });
const { body: goto } = await client.send("gotoTargets", { source: { path: source }, line });
assert.ok(goto.targets.length >= 2);
await Promise.all([client.send("goto", { threadId: 1, targetId: goto.targets[0].id }), client.waitForEvent("stopped")]);
const { body: info } = await client.send("dataBreakpointInfo", { name: "0x400", asAddress: true, bytes: 4 });
await client.send("setDataBreakpoints", { breakpoints: [{ dataId: info.dataId }] });
await client.setFunctionBreakpointsRequest({ breakpoints: [{ name: "main" }] });
await client.send("setInstructionBreakpoints", { breakpoints: [{ instructionReference: second.instructionPointerReference }] });
const { body: help } = await client.evaluateRequest({ expression: "help", context: "repl" });
assert.match(help.result, /goto MOMENT/);
await assert.rejects(client.evaluateRequest({ expression: "nobody" }), /nobody/);
await client.stop();
console.log(`${messages} messages are as the protocol says`);
