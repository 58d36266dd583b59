/** The one source of this page, chosen once: the live server, or the files of a static copy. */

import { signal } from "@preact/signals";
import type { Hello } from "../api/names.ts";
import { Server } from "./server.ts";
import type { Source } from "./source.ts";

const copied = document.querySelector<HTMLMetaElement>('meta[name="rollbook"]')?.content === "static";

export const source: Source = copied ? new (await import("./copy.ts")).Copy() : new Server();

/** What the server said about itself; null until it did. */
export const hello = signal<Hello | null>(null);
