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
    for (const hand of [...hands.peek()].reverse()) {
      if (!hand.keys.includes(name) || hand.when?.() === false) continue;
      event.preventDefault();
      if (!presses) leftBehind = event.target;
      hand.act(event);
      return;
    }
  });
}
