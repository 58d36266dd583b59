/** Colours for canvases, read from the page's tokens: a canvas cannot resolve `light-dark()`, an element can. */

import { COLORS } from "../data/colors.ts";
import type { Palette } from "./model.ts";

let known: { ground: string; palette: Palette } | null = null;

/** The palette of the ground that is shown now. */
export function palette(ground: string): Palette {
  if (known?.ground === ground) return known.palette;
  const probe = document.createElement("i");
  probe.style.display = "none";
  document.body.append(probe);
  const read = (token: string): string => {
    probe.style.color = `var(--${token})`;
    return getComputedStyle(probe).color;
  };
  const series = [read("series-ghost")];
  for (let i = 1; i <= COLORS; i++) series.push(read(`series-${i}`));
  const made: Palette = {
    ink: read("ink"),
    ink2: read("ink-2"),
    ink3: read("ink-3"),
    grid: read("grid"),
    axis: read("line-strong"),
    panel: read("panel"),
    warn: read("warn"),
    bad: read("bad"),
    accent: read("accent"),
    series,
    font: getComputedStyle(document.body).fontFamily,
  };
  probe.remove();
  known = { ground, palette: made };
  return made;
}
