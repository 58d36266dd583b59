/** An expression over keys as a chart, run by run: its curves are made of those of its keys. */

import { computed } from "@preact/signals";
import { useMemo } from "preact/hooks";
import type { Line } from "../charts/model.ts";
import { calculated, keysOf, read } from "../data/calc.ts";
import { BETWEEN } from "../data/names.ts";
import type { Desk } from "../state/desk.ts";
import type { KeyState } from "../state/feed.ts";
import { OnDesk, type Drawn, type KeyChartProps } from "./OnDesk.tsx";

const DASHES: (number[] | undefined)[] = [undefined, [6, 3], [2, 3], [8, 3, 2, 3]];

export function Calculated({ desk, ...props }: KeyChartProps & { desk: Desk }) {
  const of = useMemo(() => drawnOf(desk, props.name), [desk.id, props.name]);
  if (typeof of === "string")
    return (
      <div class="slot" data-key={props.name}>
        <figure class="chart">
          <figcaption>
            <span class="title">{props.name.slice(1)}</span>
            <span class="tools">{props.tools}</span>
          </figcaption>
          <p class="chartnote soft">{of}</p>
        </figure>
      </div>
    );
  return <OnDesk desk={desk} {...props} of={of} />;
}

/** The curves of an expression, or why there are none. */
function drawnOf({ feed }: Desk, name: string): Drawn | string {
  const found = read(name);
  if ("error" in found) return found.error;
  const { nodes, texts } = found;
  const keys = [...new Set(nodes.flatMap(keysOf))];
  const state = computed((): KeyState => {
    const states = new Map(keys.map((key) => [key, feed.of(key).value]));
    const each = [...states.values()];
    const ids = [
      ...new Set(each.flatMap(({ lines }) => lines.filter((one) => one.ghost !== true).map(({ id }) => id))),
    ];
    const lines = ids.flatMap((id) => {
      const own = new Map<string, Line>();
      for (const [key, one] of states) {
        const line = one.lines.find((line) => line.id === id);
        if (line) own.set(key, line);
      }
      return nodes.flatMap((node, i) => {
        const line = calculated(node, own);
        if (line === null) return [];
        if (nodes.length === 1) return [line];
        const dash = DASHES[i % DASHES.length] ?? line.dash;
        return [{ ...line, id: i === 0 ? id : `${id}~${i}`, name: line.name + BETWEEN + texts[i], dash }];
      });
    });
    const spans = each.flatMap(({ span }) => span ?? []);
    return {
      lines,
      rows: Math.max(...each.map(({ rows }) => rows)),
      span:
        spans.length === 0
          ? null
          : { x0: Math.min(...spans.map((s) => s.x0)), x1: Math.max(...spans.map((s) => s.x1)) },
      errors: each.flatMap(({ errors }) => errors),
      waiting: each.some(({ waiting }) => waiting),
      sentences: [],
      preliminary: each.some(({ preliminary }) => preliminary),
    };
  });
  const want = (): (() => void) => {
    const stops = keys.map((key) => feed.want(key));
    return () => stops.forEach((stop) => stop());
  };
  return { state, want, title: texts.join(", ") };
}
