/** The menu of one chart: its scale, range and smoothing where they are its own; a picture of it, its numbers. */

import type { RefObject } from "preact";
import { saveCsv, savePng, saveSvg } from "../charts/save.ts";
import type { Plot } from "../charts/plot.ts";
import { SMOOTHERS, type Smoother } from "../data/smooth.ts";
import type { Desk, OwnLook } from "../state/desk.ts";
import { source } from "../state/here.ts";
import { Choice } from "./Menu.tsx";

interface Props {
  name: string;
  plot: RefObject<Plot | null>;
  desk: Desk;
  close: () => void;
}

export function ChartPanel({ name, plot, desk, close }: Props) {
  const runs = desk.entities.peek().flatMap((entity) => entity.runs.map((member) => member.run));
  const csv = name.startsWith("=") ? "" : source.csvAddress(runs, [name], desk.axis.peek());
  const save = (how: (plot: Plot, name: string) => void): void => {
    if (plot.current) how(plot.current, name);
    close();
  };
  return (
    <div class="picker ofchart">
      {desk.looks && desk.own && plot.current && <Own name={name} plot={plot.current} desk={desk} />}
      {plot.current && <Choice onChoose={() => save(savePng)}>Picture (PNG)</Choice>}
      {plot.current && <Choice onChoose={() => save(saveSvg)}>Drawing for a paper (SVG)</Choice>}
      {csv !== "" && (
        <a class="choice" href={csv} download onClick={close}>
          Raw rows (CSV)
        </a>
      )}
      {plot.current && (
        <Choice onChoose={() => save((one, title) => saveCsv(one, title, desk.axisName.peek()))}>
          Numbers as drawn (CSV)
        </Choice>
      )}
    </div>
  );
}

function Own({ name, plot, desk }: { name: string; plot: Plot; desk: Desk }) {
  const own = desk.looks?.value.get(name) ?? {};
  const look = { ...desk.look.value, ...own };
  const put = (more: OwnLook): void => desk.own?.(name, { ...own, ...more });
  const shown = own.range ?? plot.range;
  const bound = (end: "low" | "high", text: string): void => {
    const v = Number(text);
    const range = { ...shown, [end]: v };
    if (text !== "" && Number.isFinite(v) && range.low < range.high) put({ range });
  };
  const places = Math.max(0, 2 - Math.floor(Math.log10(shown.high - shown.low)));
  const written = (v: number): string => String(Number(v.toFixed(Math.min(12, places))));
  return (
    <>
      <Choice chosen={look.yLog} onChoose={() => put({ yLog: !look.yLog })}>
        log scale
      </Choice>
      <div class="words row2">
        {(["low", "high"] as const).map((end) => (
          <label key={end}>
            {end === "low" ? "y from" : "to"}{" "}
            <input
              class="mono"
              type="number"
              step="any"
              value={own.range ? written(shown[end]) : ""}
              placeholder={written(shown[end])}
              aria-label={`${name}, y ${end === "low" ? "from" : "to"}`}
              onChange={(event) => bound(end, event.currentTarget.value)}
            />
          </label>
        ))}
      </div>
      <div class="words row2">
        <label>
          smooth{" "}
          <select
            value={look.smoother}
            aria-label={`${name}, kind of smoothing`}
            onChange={(event) =>
              put({ smoother: event.currentTarget.value as Smoother, smoothing: look.smoothing || 0.6 })
            }
          >
            {Object.entries(SMOOTHERS).map(([id, label]) => (
              <option key={id} value={id}>
                {label}
              </option>
            ))}
          </select>
        </label>
        <label>
          weight{" "}
          <input
            class="mono"
            type="number"
            min="0"
            max="0.99"
            step="0.05"
            value={look.smoothing}
            aria-label={`${name}, smoothing from 0 to 0.99`}
            onChange={(event) =>
              put({ smoothing: Math.max(0, Math.min(0.99, Number(event.currentTarget.value) || 0)) })
            }
          />
        </label>
      </div>
      <Choice onChoose={() => desk.own?.(name, {})}>As all charts</Choice>
      <hr />
    </>
  );
}
