import { useState } from "preact/hooks";
import { Icon } from "./Icon.tsx";

/** Copies the address: the address is the view. */
export function CopyLink() {
  const [said, setSaid] = useState("");
  const copy = (): void => {
    const done = navigator.clipboard?.writeText(location.href) ?? Promise.reject(new Error("no clipboard"));
    done.then(
      () => setSaid("copied"),
      () => setSaid("copy it from the address bar"),
    );
    setTimeout(() => setSaid(""), 2500);
  };
  return (
    <button class="btn link-here" type="button" onClick={copy} aria-label="Copy a link to this view">
      <Icon name="link" />
      <span role="status" class={said === "" ? "sr" : ""}>
        {said}
      </span>
    </button>
  );
}

/** Copies a text that stands on the page. */
export function Copy({ text, what }: { text: string; what: string }) {
  const [said, setSaid] = useState("Copy");
  const copy = (): void => {
    const done = navigator.clipboard?.writeText(text) ?? Promise.reject(new Error("no clipboard"));
    done.then(
      () => setSaid("copied"),
      () => setSaid("mark it to copy"),
    );
    setTimeout(() => setSaid("Copy"), 2500);
  };
  return (
    <button class="link" type="button" aria-label={`Copy ${what}`} onClick={copy}>
      <span role="status">{said}</span>
    </button>
  );
}
