/** A button that opens a list to choose from, or any small panel. Esc and a click elsewhere close it. */

import type { ComponentChildren } from "preact";
import { useId, useLayoutEffect, useRef, useState } from "preact/hooks";
import { Icon } from "./Icon.tsx";

export interface MenuProps {
  what?: string;
  label: ComponentChildren;
  /** The name for screen readers where `what` and `label` do not say it. */
  name?: string;
  kbd?: string;
  class?: string;
  id?: string;
  plain?: boolean;
  children: (close: () => void) => ComponentChildren;
}

export function Menu({ what, label, name, kbd, class: kind = "btn", id, plain = false, children }: MenuProps) {
  const panel = useRef<HTMLDivElement>(null);
  const button = useRef<HTMLButtonElement>(null);
  const [open, setOpen] = useState(false);
  const own = useId();
  useLayoutEffect(() => {
    const [at, shown] = [button.current, panel.current];
    if (!open || !at || !shown) return undefined;
    put(shown, at.getBoundingClientRect());
    shown.style.visibility = "visible";
    const focus = (): void =>
      (
        shown.querySelector<HTMLElement>("input[type=search]") ??
        shown.querySelector<HTMLElement>(".choice[aria-pressed=true]") ??
        shown.querySelector<HTMLElement>("input, button, a")
      )?.focus();
    focus();
    const sizes = new ResizeObserver(() => {
      put(shown, at.getBoundingClientRect()); // what it lists may come later, and its code, too
      if (!shown.contains(document.activeElement)) focus();
    });
    sizes.observe(shown);
    return () => sizes.disconnect();
  }, [open]);
  const move = (event: KeyboardEvent): void => {
    if (event.key === "Escape") {
      // At once, also where a find field would only be emptied; the focus goes back to where it was.
      event.preventDefault();
      event.stopPropagation();
      panel.current?.hidePopover();
      return;
    }
    if (event.key === "Enter" && (event.target as HTMLElement).matches("input[type=search]:not(form *)")) {
      panel.current?.querySelector<HTMLElement>(".choice")?.click(); // the first that was found
      return;
    }
    if (event.key !== "ArrowDown" && event.key !== "ArrowUp") return;
    const items = [...(panel.current?.querySelectorAll<HTMLElement>("button, a, input") ?? [])];
    const next =
      items[
        (items.indexOf(document.activeElement as HTMLElement) + (event.key === "ArrowDown" ? 1 : -1) + items.length) %
          items.length
      ];
    event.preventDefault();
    next?.focus();
  };
  const close = (): void => {
    panel.current?.hidePopover();
    button.current?.focus();
  };
  return (
    <>
      <button
        ref={button}
        id={id}
        class={kind}
        type="button"
        popovertarget={own}
        aria-haspopup="true"
        aria-expanded={open}
        aria-label={name}
      >
        {what !== undefined && <span class="what">{what}</span>}
        {label}
        {!plain && <Icon name="down" />}
        {kbd !== undefined && <kbd>{kbd}</kbd>}
      </button>
      <div
        ref={panel}
        id={own}
        popover="auto"
        class="menu"
        onToggle={((event: ToggleEvent) => setOpen(event.newState === "open")) as (event: Event) => void}
        onKeyDown={move}
        onBeforeToggle={
          ((event: ToggleEvent) => {
            if (event.newState === "open" && panel.current) panel.current.style.visibility = "hidden";
          }) as (event: Event) => void
        }
      >
        {open && children(close)}
      </div>
    </>
  );
}

/** Puts a panel under its button, or above it, so that all of it is on the screen. */
function put(panel: HTMLElement, at: DOMRect): void {
  const { width, height } = panel.getBoundingClientRect();
  const below = at.bottom + 4 + height <= innerHeight;
  panel.style.left = `${Math.max(8, Math.min(at.left, innerWidth - width - 8))}px`;
  panel.style.top = `${below ? at.bottom + 4 : Math.max(8, at.top - height - 4)}px`;
}

/** One thing to choose inside a menu. */
export function Choice({
  chosen,
  onChoose,
  children,
  soft,
}: {
  chosen?: boolean;
  onChoose: () => void;
  children: ComponentChildren;
  soft?: ComponentChildren;
}) {
  return (
    <button type="button" class="choice" aria-pressed={chosen} onClick={onChoose}>
      <span>{children}</span>
      {soft !== undefined && <span class="soft">{soft}</span>}
      {chosen === true && <Icon name="check" />}
    </button>
  );
}
