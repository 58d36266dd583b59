/** What the menus over the charts offer: the x-axis, groups, smoothing, y. */

import { useRef } from "preact/hooks";
import { CHARTS, kindNamed } from "../../charts/registry.ts";
import { SMOOTHERS } from "../../data/smooth.ts";
import { Choice } from "../../parts/Menu.tsx";
import { say } from "../../state/address.ts";
import { source } from "../../state/here.ts";
import { axis, hub, keys } from "./charts.ts";
import * as view from "./view.ts";

interface Panel {
  close: () => void;
}

export const StatisticPanel = ({ close }: Panel) => (
  <>
    {Object.entries(view.STATISTICS)
      .filter(([id]) => source.live || RECORDED.includes(id))
      .map(([id, label]) => (
        <Choice
          key={id}
          chosen={view.statistic.value === id}
          onChoose={() => {
            say({ as: id === "iqm" ? "" : id });
            close();
          }}
        >
          {label}
        </Choice>
      ))}
    <hr />
    <Choice chosen={view.ghosts.value} onChoose={() => say({ ghosts: view.ghosts.value ? "0" : "" })}>
      abandoned attempts
    </Choice>
    <Choice chosen={view.marksShown.value} onChoose={() => say({ marks: view.marksShown.value ? "0" : "" })}>
      checkpoints, alerts, notes
    </Choice>
  </>
);

export const YPanel = () => (
  <>
    {Object.entries(CHARTS).map(([id, kind]) => (
      <Choice
        key={id}
        chosen={kindNamed(view.draw.value) === kind}
        soft={kind.soft}
        onChoose={() => say({ draw: id === "curves" ? "" : id })}
      >
        {kind.name}
      </Choice>
    ))}
    <hr />
    <Choice
      chosen={!view.withOutliers.value}
      soft="what is cut is marked"
      onChoose={() => say({ all: view.withOutliers.value ? "" : "1" })}
    >
      without outliers
    </Choice>
    <Choice chosen={view.yLog.value} onChoose={() => say({ ylog: view.yLog.value ? "" : "1" })}>
      log scale
    </Choice>
  </>
);

/** How a copy has groups. */
const RECORDED = ["iqm", "each"];

export function XPanel({ close }: Panel) {
  const isRecorded = (x: string): boolean => source.live || x === keys.value?.default_x || x === "time";
  const all = (keys.value?.axes ?? []).filter(({ x }) => isRecorded(x));
  const choose = (x: string): void => {
    hub.view.value = null;
    say({ x: x === keys.value?.default_x ? "" : x, z: "" });
  };
  return (
    <div class="choices" tabIndex={0} aria-label="x-axis">
      {all.map((one) => (
        <Choice
          key={one.x}
          chosen={one.x === axis.value}
          soft={one.kind === "clock" ? "clock" : ""}
          onChoose={() => {
            choose(one.x);
            close();
          }}
        >
          {one.label}
        </Choice>
      ))}
      <hr />
      <Choice chosen={view.xLog.value} onChoose={() => say({ xlog: view.xLog.value ? "" : "1" })}>
        log scale
      </Choice>
      <hr />
      {(source.live ? (keys.value?.keys ?? []) : []).slice(0, 300).map(({ key }) => (
        <Choice
          key={key}
          chosen={key === axis.value}
          onChoose={() => {
            choose(key);
            close();
          }}
        >
          <span class="mono">{key}</span>
        </Choice>
      ))}
    </div>
  );
}

/** A number to type, or to hold and drag. */
export function SmoothingPanel() {
  const drag = useRef<{ x: number; from: number } | null>(null);
  const put = (v: number): void => {
    const next = Math.round(Math.max(0, Math.min(0.999, v)) * 100) / 100;
    say({ s: next <= 0 ? "" : String(Math.min(0.99, next)) });
  };
  return (
    <div
      class="pad smooth"
      onPointerDown={(event) => {
        drag.current = { x: event.clientX, from: view.smoothing.peek() };
      }}
      onPointerMove={(event) => {
        if (drag.current && event.buttons === 1 && !(event.target as HTMLElement).matches("input"))
          put(drag.current.from + (event.clientX - drag.current.x) / 200);
      }}
    >
      <input
        type="range"
        min="0"
        max="0.99"
        step="0.01"
        value={view.smoothing.value}
        aria-label="Smoothing"
        onInput={(event) => put(Number(event.currentTarget.value))}
      />
      <input
        class="mono"
        type="number"
        min="0"
        max="0.99"
        step="0.05"
        value={view.smoothing.value}
        aria-label="Smoothing, from 0 to 0.99"
        onChange={(event) => put(Number(event.currentTarget.value))}
      />
      {Object.entries(SMOOTHERS).map(([id, label]) => (
        <Choice
          key={id}
          chosen={view.smoother.value === id}
          onChoose={() => say({ sb: id === "ema" ? "" : id, ...(view.smoothing.value === 0 ? { s: "0.6" } : {}) })}
        >
          {label}
        </Choice>
      ))}
      <p class="soft">The raw line stays underneath.</p>
    </div>
  );
}
