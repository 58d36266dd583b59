import { signal } from "@preact/signals";

/** The configuration under the pointer, in all pictures and in the table. */
export const hot = signal<number | null>(null);
