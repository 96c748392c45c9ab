// Converts the protocol's TypeScript declarations to JSON schemas, and checks messages against them.
import { createRequire } from "node:module";
import { createGenerator } from "ts-json-schema-generator";

const require = createRequire(import.meta.url);
const Ajv = require("ajv").default;

export function schemas() {
  const path = require.resolve("@vscode/debugprotocol").replace(/\.js$/, ".d.ts");
  const schema = createGenerator({ path, type: "*", skipTypeCheck: true, additionalProperties: true }).createSchema("*");
  const ajv = new Ajv({ strict: false, allErrors: true });
  ajv.addSchema(schema, "dap");
  const names = new Map(Object.keys(schema.definitions).map((name) => [name.toLowerCase(), name]));
  // Returns null if a message matches its type, and otherwise a description of the fault.
  return (message) => {
    const kind = { response: "Response", event: "Event", request: "Request" }[message.type];
    const own = (message.command ?? message.event) + kind;
    const known = names.get(`debugprotocol.${own}`.toLowerCase());
    // The protocol has no types for our own requests. All failures have the same type.
    const name = message.success === false ? "DebugProtocol.ErrorResponse" : known ?? `DebugProtocol.${kind}`;
    const validate = ajv.getSchema(`dap#/definitions/${name}`);
    return validate(message) ? null : `${name}: ${ajv.errorsText(validate.errors)}`;
  };
}
