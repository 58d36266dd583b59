/** The address is the view: whatever is chosen stands in the hash, so that a link restores exactly this. */

import { batch, computed, signal, type ReadonlySignal } from "@preact/signals";

export interface Address {
  page: string;
  /** What follows the page's name: `#/run/<run>`. */
  rest: string[];
  words: ReadonlyMap<string, string>;
}

export function parse(hash: string): Address {
  const [path = "", query = ""] = hash.replace(/^#\/?/, "").split(/\?(.*)/s);
  const [page = "", ...rest] = path.split("/").map(decode);
  return { page: page === "" ? "runs" : page, rest, words: new Map(new URLSearchParams(query)) };
}

function decode(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}

/** Written so that a person can read it: only what must be escaped is. */
export function write({ page, rest, words }: Address): string {
  const soft = (text: string): string =>
    encodeURIComponent(text).replace(/%2F/g, "/").replace(/%2C/g, ",").replace(/%3A/g, ":").replace(/%20/g, "+");
  const query = [...words]
    .filter(([, v]) => v !== "")
    .map(([name, v]) => `${name}=${soft(v)}`)
    .join("&");
  return `#/${[page, ...rest.map(encodeURIComponent)].join("/")}${query === "" ? "" : `?${query}`}`;
}

/** Where the address says nothing: the board that somebody chose for it. */
function begun(): Address {
  const said = parse(location.hash);
  const board = document.querySelector<HTMLMetaElement>("meta[name=rollbook]")?.dataset["first"] ?? "";
  return said.page === "runs" && said.words.size === 0 ? parse(`#/runs?${board}`) : said;
}

export const address = signal<Address>(begun());

const last = new Map<string, Address>();
let pending = false;

/** The browser went elsewhere, by a link or its buttons. */
function arrive(): void {
  const [now, left] = [parse(location.hash), address.peek()];
  if (write(now) === write(left)) return;
  last.set(left.page, left);
  address.value = now;
}
addEventListener("hashchange", arrive);

function set(next: Address, push: boolean): void {
  if (push) flush(); // what was said a moment ago belongs to the place that is left
  address.value = next;
  last.set(next.page, next);
  if (push) {
    history.pushState(null, "", write(next));
    return;
  }
  if (pending) return;
  pending = true;
  setTimeout(flush, 120); // browsers refuse more than about 100 changes in 30 s
}

function flush(): void {
  if (!pending) return;
  pending = false;
  history.replaceState(null, "", write(address.peek()));
}
addEventListener("pagehide", flush);
addEventListener("popstate", arrive);

/** Words of the address that pages about one run share. */
const SHARED = ["run"];

/** The address of a page as it was left, with the run that is open now. */
export function addressOf(page: string, words: Record<string, string> = {}): string {
  const now = address.value;
  const before = last.get(page);
  const all = new Map(before?.words ?? []);
  for (const name of SHARED) {
    const v = now.words.get(name);
    if (v !== undefined && page !== "runs") all.set(name, v);
  }
  if (now.page === "run" && now.rest[0] !== undefined && page !== "runs") all.set("run", now.rest[0]);
  for (const [name, v] of Object.entries(words)) all.set(name, v);
  return write({ page, rest: page === "run" && words["run"] === undefined ? (before?.rest ?? []) : [], words: all });
}

/** Goes to another page; the browser's back button comes back. */
export function go(hash: string): void {
  batch(() => set(parse(hash), true));
}

/** Changes words of this page's address; an empty string removes one. */
export function say(words: Record<string, string>, push = false): void {
  const now = address.peek();
  const next = new Map(now.words);
  for (const [name, v] of Object.entries(words)) {
    if (v === "") next.delete(name);
    else next.set(name, v);
  }
  set({ ...now, words: next }, push);
}

/** One word of the address as a signal; `fallback` is not written. */
export function word(name: string, fallback = ""): ReadonlySignal<string> {
  return computed(() => address.value.words.get(name) ?? fallback);
}

/** A list in the address, its items separated by `~`. */
export function list(name: string): ReadonlySignal<string[]> {
  return computed(() =>
    (address.value.words.get(name) ?? "")
      .split("~")
      .filter((item) => item !== "")
      .map(open),
  );
}

export const joined = (items: readonly string[]): string =>
  items.map((item) => item.replace(/%/g, "%25").replace(/~/g, "%7E")).join("~");
const open = (item: string): string => item.replace(/%7E/g, "~").replace(/%25/g, "%");
