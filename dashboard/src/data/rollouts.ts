/** The rollouts and prompts that a question is about, where no server answers it. */

import type { Cell, PromptRow, PromptsQuery, RolloutRow, RolloutsQuery } from "../api/names.ts";

const ALIKE = { group: ["group", "task_id", "batch"], task: ["task_id"] } as const;

/** Those that have all words of a search and share group or task with one of them, in the order asked for. */
export function chosenRollouts(rows: readonly RolloutRow[], query: RolloutsQuery): RolloutRow[] {
  const words = (query.search ?? "").toLowerCase().split(/\s+/).filter(Boolean);
  let found = rows.filter(({ cells }) => {
    const text = `${cells["item"] ?? ""} ${cells["prompt"] ?? ""}`.toLowerCase();
    return words.every((word) => text.includes(word));
  });
  for (const kind of ["group", "task"] as const) {
    const like = rows.find(({ id }) => id === query[kind]);
    if (query[kind] && !like) return [];
    if (like) found = found.filter(({ cells }) => ALIKE[kind].every((name) => cells[name] === like.cells[name]));
  }
  for (const { column, descending } of [...(query.sort ?? [])].reverse()) {
    found.sort((a, b) => byValue(a.cells[column], b.cells[column], descending ? -1 : 1));
  }
  return found;
}

/** The prompts that are never, sometimes or always solved, in the order asked for. */
export function chosenPrompts(rows: readonly PromptRow[], query: PromptsQuery): PromptRow[] {
  const found = rows.filter((row) => !query.only || query.only === solvedOf(row));
  for (const { column, descending } of [...(query.sort ?? [])].reverse()) {
    const name = column as keyof PromptRow;
    found.sort((a, b) => byValue(a[name], b[name], descending ? -1 : 1));
  }
  return found;
}

/** The condition that rollouts of a fate fulfil. */
export function conditionOf(fate: string): string {
  if (fate === "used") return "used and reason is null";
  if (fate === "no fate yet") return "used is null";
  return fate === "dropped" ? "not used and reason is null" : `reason = '${fate.replaceAll("'", "''")}'`;
}

/** What a prompt asks last: of messages in a row, "system: …", "user: …", the last one. */
export function askedLast(prompt: string): string {
  const last = prompt.lastIndexOf("\nuser: ");
  return last < 0 ? prompt.replace(/^user: /, "") : prompt.slice(last + "\nuser: ".length);
}

interface Call {
  name?: unknown;
  arguments?: unknown;
  function?: { name?: unknown; arguments?: unknown };
}

/** Tool calls in a line, `read(lines="0-9")`; what is no list of calls stays as it is. */
export function callsOf(json: string): string {
  try {
    const read: unknown = JSON.parse(json);
    const all = (Array.isArray(read) ? read : [read]) as Call[];
    return all
      .map((call) => {
        const { name, arguments: given } = call.function ?? call;
        if (typeof name !== "string") throw new TypeError("no call");
        let words: unknown = given ?? {};
        if (typeof words === "string") words = JSON.parse(words); // as some servers send them
        const listed = Object.entries(words as object).map(([word, v]) => `${word}=${JSON.stringify(v)}`);
        return `${name}(${listed.join(", ")})`;
      })
      .join("; ");
  } catch {
    return json;
  }
}

export function solvedOf({ solved, rollouts }: PromptRow): "never" | "sometimes" | "always" {
  return solved === 0 ? "never" : solved === rollouts ? "always" : "sometimes";
}

/** Order of two cells; those without a value come last. */
export function byValue(a: Cell | undefined, b: Cell | undefined, sign: number): number {
  if (a == null || b == null) return Number(a == null) - Number(b == null);
  return sign * (typeof a === "number" && typeof b === "number" ? a - b : String(a).localeCompare(String(b)));
}
