// The protocol's types, from its TypeScript declarations, as JSON schemas: what checks a message.
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
  // Null if a message is as its type says, or what is wrong.
  return (message) => {
    const kind = { response: "Response", event: "Event", request: "Request" }[message.type];
    const own = (message.command ?? message.event) + kind;
    const known = names.get(`debugprotocol.${own}`.toLowerCase());
    // Requests of our own have no type; a failure has the one of all errors.
    const name = message.success === false ? "DebugProtocol.ErrorResponse" : known ?? `DebugProtocol.${kind}`;
    const validate = ajv.getSchema(`dap#/definitions/${name}`);
    return validate(message) ? null : `${name}: ${ajv.errorsText(validate.errors)}`;
  };
}
