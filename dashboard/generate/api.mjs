// Writes src/api/schema.ts from the server's OpenAPI description, given on standard input:
//     python -m rollbook.server.openapi | npm run api
// `npm run api -- --check` only says whether the file is as the description wants it.
import { readFileSync, writeFileSync } from "node:fs";

const target = new URL("../src/api/schema.ts", import.meta.url);
const { components } = JSON.parse(readFileSync(0, "utf8"));

const quoted = (name) => (/^[A-Za-z_$][\w$]*$/.test(name) ? name : JSON.stringify(name));

function type(schema) {
  if (schema === true || schema === undefined) return "Cell";
  if (schema.$ref) return schema.$ref.split("/").at(-1);
  if (schema.const !== undefined) return JSON.stringify(schema.const);
  if (schema.enum) return schema.enum.map((value) => JSON.stringify(value)).join(" | ");
  if (schema.anyOf || schema.oneOf) return [...new Set((schema.anyOf ?? schema.oneOf).map(type))].join(" | ");
  switch (schema.type) {
    case "integer":
    case "number":
      return "number";
    case "string":
      return "string";
    case "boolean":
      return "boolean";
    case "null":
      return "null";
    case "array": {
      if (schema.prefixItems) return `[${schema.prefixItems.map(type).join(", ")}]`;
      const item = type(schema.items);
      return item.includes("|") ? `(${item})[]` : `${item}[]`;
    }
    case "object":
      if (schema.properties)
        return `{ ${Object.entries(schema.properties)
          .map(([name, one]) => `${quoted(name)}${schema.required?.includes(name) ? "" : "?"}: ${type(one)}`)
          .join("; ")} }`;
      return `{ [name: string]: ${type(schema.additionalProperties)} }`;
    default:
      return "Cell";
  }
}

const comment = (text, indent = "") =>
  text ? `${indent}/** ${text.replaceAll("*/", "* /").split("\n\n")[0].replaceAll("\n", " ")} */\n` : "";

const out = [
  "/** The shapes of the server's questions and answers. Written from its OpenAPI description by `npm run api`; do not edit. */\n",
  "/** Any JSON value. */\nexport type Cell = number | string | boolean | null | Cell[] | { [name: string]: Cell };\n",
];
for (const [name, schema] of Object.entries(components.schemas).sort(([a], [b]) => a.localeCompare(b))) {
  if (!schema.properties) {
    out.push(`${comment(schema.description)}export type ${name} = ${type(schema)};\n`);
    continue;
  }
  // What has a default may be left out, by questions and by rows; every answer says how long it took.
  const lines = Object.entries(schema.properties).map(
    ([field, one]) =>
      `  ${quoted(field)}${field === "took_ms" || schema.required?.includes(field) ? "" : "?"}: ${type(one)};`,
  );
  out.push(`${comment(schema.description)}export interface ${name} {\n${lines.join("\n")}\n}\n`);
}
const text = out.join("\n");
if (process.argv.includes("--check")) {
  if (readFileSync(target, "utf8") !== text) {
    console.error(
      "dashboard/src/api/schema.ts is not what the server's OpenAPI description says. Run: python -m rollbook.server.openapi | npm run api",
    );
    process.exit(1);
  }
} else writeFileSync(target, text);
