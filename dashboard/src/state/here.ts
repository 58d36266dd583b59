/** The one source of this page, chosen once: the live server, or the files of a static copy. */

import { signal } from "@preact/signals";
import type { Hello } from "../api/names.ts";
import { Server } from "./server.ts";
import type { Source } from "./source.ts";

/** Nothing asks it before `choose` is through. */
export let source: Source = new Server();

/** Take the files where this is a copy. Their code imports this chunk, which must not wait for it while it loads. */
export async function choose(): Promise<void> {
  const page = document.querySelector<HTMLMetaElement>('meta[name="rollbook"]');
  if (page?.content === "static") source = new (await import("./copy.ts")).Copy();
}

/** What the server said about itself; null until it did. */
export const hello = signal<Hello | null>(null);
