import { createContext, type ComponentChildren } from "preact";
import { useContext } from "preact/hooks";

/** The page that is open, as the frame names it: pages know nothing of the others. */
export const OpenPage = createContext({ id: "", name: "", question: "" });

/** The second line of every page: which page, which question it answers, of which run. */
export function Context({ title, children }: { title?: string; children?: ComponentChildren }) {
  const { name, question } = useContext(OpenPage);
  return (
    <section class="context" aria-label={`${name}: view`}>
      <h1>{title ?? name}</h1>
      <span class="question">{question}</span>
      {children}
    </section>
  );
}
