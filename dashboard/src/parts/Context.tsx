import type { ComponentChildren } from "preact";
import { PAGES, type PageId } from "../pages/registry.ts";

/** The second line of every page: which page, which question it answers, of which run. */
export function Context({ page, title, children }: { page: PageId; title?: string; children?: ComponentChildren }) {
  const { name, question } = PAGES[page];
  return (
    <section class="context" aria-label={`${name}: view`}>
      <h1>{title ?? name}</h1>
      <span class="question">{question}</span>
      {children}
    </section>
  );
}
