/** Dark or light: the system's choice until a hand chooses, then that, on this browser. */

import { signal } from "@preact/signals";

const STORED = "rollbook.ground";
const system = matchMedia("(prefers-color-scheme: dark)");

function stored(): string | null {
  try {
    return localStorage.getItem(STORED);
  } catch {
    return null;
  }
}

/** "dark" or "light": what is seen now. Charts read their colours anew when it changes. */
export const ground = signal<"dark" | "light">("light");

function apply(choice: string | null): void {
  if (choice === "dark" || choice === "light") document.documentElement.dataset["theme"] = choice;
  const dark = choice === null ? system.matches : choice === "dark";
  ground.value = dark ? "dark" : "light";
}

export function startTheme(): void {
  apply(new URLSearchParams(location.search).get("theme") ?? stored());
  system.addEventListener("change", () => apply(stored()));
}

export function toggleTheme(): void {
  const next = ground.peek() === "dark" ? "light" : "dark";
  try {
    localStorage.setItem(STORED, next);
  } catch {
    // A browser without storage keeps the choice until the page is left.
  }
  apply(next);
}
