// Holds the house of the page, part of `npm run check`: a file of a component has at most 300 lines, a line at most 120
// characters, no type is `any`, sentences of the server are shown by `sentence`, `rounded` alone calls toPrecision, "1 runs" cannot
// be (amount writes a number and what it counts), and no file imports itself in a circle,
// by types or later imports neither.
import { readdirSync, readFileSync } from "node:fs";
import { dirname, join, normalize } from "node:path";
import { fileURLToPath } from "node:url";

const LONGEST = 300;
const WIDEST = 120;
/** A computed number before a plural: no constant, whose capitals say it. Not an attribute of an element, and not a word after a chosen one: {x} groups= */
const COUNTED =
  /(?<![A-Z])\} (more )?(alerts|attempts|charts|checkpoints|completions|configurations|curves|episodes|files|frames|groups|images|keys|lines|messages|pairs|problems|prompts|rollouts|rows|rules|runs|samples|seeds|steps|tokens|traces|turns|values|versions)\b(?!=)/;
const root = fileURLToPath(new URL("../src/", import.meta.url));
const files = readdirSync(root, { recursive: true, encoding: "utf8" }).filter(
  (name) => /\.tsx?$/.test(name) && !name.includes(".test."),
);
const wrong = [];

const imports = new Map();
for (const name of files) {
  const text = readFileSync(join(root, name), "utf8");
  const lines = text.split("\n");
  if (name.endsWith(".tsx") && lines.length > LONGEST)
    wrong.push(
      `${name}: ${lines.length} lines; a component has at most ${LONGEST}: give a part of it a file of its own`,
    );
  lines.forEach((line, i) => {
    if (line.length > WIDEST && name !== "api/schema.ts") wrong.push(`${name}:${i + 1}: ${line.length} characters`);
    const code = line.replace(/\/\/.*|\/?\*.*|"[^"]*"|`[^`]*`/g, "");
    if (/[:<|,(]\s*any\b\s*[>;,)=|[\]{]|\bas any\b/.test(code))
      wrong.push(`${name}:${i + 1}: any; say what it is, or unknown`);
    if (name !== "data/numbers.ts" && code.includes(".toPrecision("))
      wrong.push(
        `${name}:${i + 1}: toPrecision throws beside 1 to 100 figures; rounded(…) of data/numbers.ts does not`,
      );
    if (!line.includes("useAnswer(") && COUNTED.test(line))
      wrong.push(`${name}:${i + 1}: a number and a plural; amount(…) of data/numbers.ts knows "1 run"`);
    if (name.endsWith(".tsx") && /(?<!\$)\{(\w+[.?!]+)*sentence\}/.test(code))
      wrong.push(
        `${name}:${i + 1}: a sentence of the server's has thousands with commas; sentence(…) writes them as here`,
      );
  });
  const addresses = [...text.matchAll(/(?:\bfrom|\bimport)\s*\(?\s*"(\.[^"]+\.tsx?)"/g)].map((match) =>
    normalize(join(dirname(name), match[1])),
  );
  imports.set(name, [...new Set(addresses)]);
}

const done = new Set();
function walk(name, path) {
  const at = path.indexOf(name);
  if (at >= 0) {
    wrong.push(`a circle of imports: ${[...path.slice(at), name].join(" -> ")}`);
    return;
  }
  if (done.has(name)) return;
  for (const next of imports.get(name) ?? []) walk(next, [...path, name]);
  done.add(name);
}
for (const name of files) walk(name, []);

for (const line of wrong) console.error(line);
process.exit(wrong.length === 0 ? 0 : 1);
