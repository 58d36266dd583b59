/** What can be taken out of a chart: a picture, its numbers. */

import type { RefObject } from "preact";
import { savePng, saveSvg } from "../charts/save.ts";
import type { Plot } from "../charts/plot.ts";
import { Icon } from "./Icon.tsx";
import { Choice, Menu } from "./Menu.tsx";
import type { Desk } from "../state/desk.ts";
import { source } from "../state/here.ts";

export function ChartMenu({ name, plot, desk }: { name: string; plot: RefObject<Plot | null>; desk: Desk }) {
  const runs = (): string[] => desk.entities.peek().flatMap((entity) => entity.runs.map((member) => member.run));
  return (
    <Menu plain class="btn bare icon" name={`Save ${name}`} label={<Icon name="save" />}>
      {(close) => {
        const csv = source.csvAddress(runs(), [name], desk.axis.peek());
        return (
          <>
            {plot.current && (
              <Choice
                onChoose={() => {
                  if (plot.current) savePng(plot.current, name);
                  close();
                }}
              >
                Picture (PNG)
              </Choice>
            )}
            {plot.current && (
              <Choice
                onChoose={() => {
                  if (plot.current) saveSvg(plot.current, name);
                  close();
                }}
              >
                Drawing for a paper (SVG)
              </Choice>
            )}
            {csv !== "" && (
              <a class="choice" href={csv} download onClick={close}>
                Raw rows (CSV)
              </a>
            )}
          </>
        );
      }}
    </Menu>
  );
}
