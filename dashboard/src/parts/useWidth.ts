import { signal } from "@preact/signals";
import type { RefObject } from "preact";
import { useEffect, useState } from "preact/hooks";

/** How wide an element is, as it changes. */
export function useWidth(of: RefObject<HTMLElement | null>): number {
  const [width, setWidth] = useState(600);
  useEffect(() => {
    if (!of.current) return;
    const sizes = new ResizeObserver(([one]) => one && setWidth(one.contentRect.width));
    sizes.observe(of.current);
    return () => sizes.disconnect();
  }, []);
  return width;
}

const small = matchMedia("(max-width: 1400px)");
/** A small window: a table beside charts leaves out columns that nobody chose and that would be cut. */
export const tight = signal(small.matches);
small.addEventListener("change", () => (tight.value = small.matches));
