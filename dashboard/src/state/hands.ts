/** The keyboard: what each key does where one is, and the sheet that says so. */

import { signal } from "@preact/signals";
import { useEffect, useRef } from "preact/hooks";

export interface Hand {
  /** As `KeyboardEvent.key` says it; `shift ArrowLeft` with the modifier before it. */
  keys: string[];
  what: string;
  /** How the sheet writes the keys, where that differs. */
  shown?: string;
  act: (event: KeyboardEvent) => void;
  /** Later hands win; one that returns false here lets the earlier ones try. */
  when?: () => boolean;
}

export const hands = signal<readonly Hand[]>([]);

export function addHands(more: readonly Hand[]): () => void {
  hands.value = [...hands.peek(), ...more];
  setTimeout(replay);
  return () => {
    hands.value = hands.peek().filter((hand) => !more.includes(hand));
  };
}

/** Keys that work while a component is on the screen. */
export function useHands(make: () => readonly Hand[]): void {
  const now = useRef(make);
  now.current = make;
  useEffect(() => {
    const first = make();
    const stable = first.map((hand, i): Hand => ({
      ...hand,
      act: (event) => now.current()[i]?.act(event),
      when: () => now.current()[i]?.when?.() ?? true,
    }));
    return addHands(stable);
  }, []);
}

/** Answers on their way, and keys that nothing took meanwhile: they act when what takes them is there. */
let awaited = 0;
let late: { event: KeyboardEvent; name: string; place: string }[] = [];
const MOST_LATE = 20;
const MOUNTS = 150; // ms from an answer to what it puts on the screen
const WAITS = /^([^ ]|Arrow(Left|Right)|Enter)$/; // others move the page at once
const placeNow = (): string => location.hash.split("?")[0] as string;

/** An answer is on its way; returns what is called when it is there, or nobody waits for it any more. */
export function waiting(): () => void {
  awaited++;
  let is = true;
  return () => {
    if (!is) return;
    is = false;
    awaited--;
    setTimeout(replay);
    setTimeout(() => {
      replay();
      if (awaited === 0) late = [];
    }, MOUNTS);
  };
}

const taker = (name: string): Hand | undefined =>
  hands.peek().findLast((hand) => hand.keys.includes(name) && hand.when?.() !== false);

/** In the order in which they were pressed, one after what the one before put on the screen. */
function replay(): void {
  late = late.filter(({ place }) => place === placeNow());
  const first = late.find(({ name }) => taker(name) !== undefined);
  if (first === undefined) return;
  late = late.filter((other) => other !== first);
  taker(first.name)?.act(first.event);
  setTimeout(replay);
}

/** Whether letters are typed there. The field of a dialog that was closed keeps the focus until the next frame. */
const types = (target: EventTarget | null): boolean =>
  target instanceof HTMLElement &&
  target.checkVisibility() &&
  (target.isContentEditable || target.matches("input:not([type=checkbox],[type=range]), textarea, select"));

/** What had the focus when a key of the page acted: Enter is then for the row that j went to, not for it. */
let leftBehind: EventTarget | null = null;

export function listen(): void {
  addEventListener("focusin", () => {
    leftBehind = null;
  });
  addEventListener(
    "pointerdown",
    () => {
      leftBehind = null;
      late = [];
    },
    true,
  );
  addEventListener("keydown", (event) => {
    if (event.defaultPrevented || event.altKey) return;
    const ctrl = event.ctrlKey || event.metaKey;
    if (ctrl && event.key.toLowerCase() !== "k" && types(event.target)) return;
    if (types(event.target) && event.key !== "Escape" && !ctrl) return;
    // What lies on top has the keys: Esc closes the sheet or the menu, and no letter reaches what is behind it.
    if (document.querySelector("dialog[open], :popover-open") !== null) return;
    const target = event.target as HTMLElement | null;
    // A focused button or link keeps the keys it has by nature.
    const presses = event.key === "Enter" || event.key === " ";
    if (presses && target !== leftBehind && target?.closest("button, a, summary, [role=menuitem]")) return;
    const name = ctrl
      ? `ctrl ${event.key.toLowerCase()}`
      : event.shiftKey && event.key.startsWith("Arrow")
        ? `shift ${event.key}`
        : event.key;
    const hand = taker(name);
    if (hand !== undefined) {
      event.preventDefault();
      if (!presses) leftBehind = event.target;
      hand.act(event);
    }
    if (name === "Escape") late = [];
    else if (hand === undefined && awaited > 0 && late.length < MOST_LATE && WAITS.test(name))
      late.push({ event, name, place: placeNow() });
  });
}
