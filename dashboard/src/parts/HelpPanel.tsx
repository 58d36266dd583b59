/** All keys that work now, and the mouse. It is written from the keys themselves, so it cannot be out of date. */

import { hands } from "../state/hands.ts";

const MOUSE: [string, string][] = [
  ["hover", "values, in all charts of the page"],
  ["click", "what happened there"],
  ["drag", "zoom in on x"],
  ["⇧ drag", "pan"],
  ["double click", "whole range again"],
  ["ctrl wheel", "zoom at the pointer"],
  ["Enter", "on a chart: what happened there"],
  ["← →", "on a chart: move the cursor"],
  ["↑ ↓", "on a chart: another chart"],
];

const AXES: [string, string][] = [
  ["↑ ↓", "on the name of a setting: keep a range of it, and move the range"],
  ["⇧ ↑ ↓", "there: move the end of the range"],
  ["Delete", "there: keep all again"],
];

/** What works on things that are on the page now, besides the keys of the page. */
function beside(): [string, string][] {
  const has = (what: string): boolean => document.querySelector(what) !== null;
  return [...(has(".plotarea") ? MOUSE : []), ...(has(".axisnames") ? AXES : [])];
}

export function HelpPanel({ close }: { close: () => void }) {
  const seen = new Set<string>();
  const keys = [...hands.value]
    .reverse()
    .filter((hand) => {
      const name = hand.shown ?? hand.keys.join(" ");
      return !seen.has(name) && seen.add(name);
    })
    .reverse();
  return (
    <>
      <h2 id="help-head">Keyboard and mouse</h2>
      <ul class="keys">
        {keys.map((hand) => (
          <li key={hand.shown ?? hand.keys.join()} data-keys={hand.keys.join(" ")}>
            <span>
              <kbd>{hand.shown ?? hand.keys[0]}</kbd>
            </span>
            {hand.what}
          </li>
        ))}
        {beside().map(([key, what]) => (
          <li key={key}>
            <span>
              <kbd>{key}</kbd>
            </span>
            {what}
          </li>
        ))}
      </ul>
      <p class="end">
        <button class="btn" type="button" onClick={close}>
          Close <kbd>Esc</kbd>
        </button>
      </p>
    </>
  );
}
