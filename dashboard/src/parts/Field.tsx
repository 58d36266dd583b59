import { useEffect, useRef, useState } from "preact/hooks";
import { Icon } from "./Icon.tsx";

/** A line to type in. `onSay` hears it a moment after the last letter, and at once on Enter. */
export function Field({
  value,
  onSay,
  label,
  placeholder,
  mono,
  kbd,
  id,
  bad,
  grow,
  wait = 200,
}: {
  value: string;
  onSay: (text: string) => void;
  label: string;
  placeholder?: string;
  mono?: boolean;
  kbd?: string;
  id?: string;
  bad?: boolean;
  grow?: boolean;
  wait?: number;
}) {
  const [text, setText] = useState(value);
  const timer = useRef<ReturnType<typeof setTimeout>>(undefined);
  const input = useRef<HTMLInputElement>(null);
  useEffect(() => setText(value), [value]);
  const say = (next: string, now: boolean): void => {
    setText(next);
    clearTimeout(timer.current);
    if (now) onSay(next);
    else timer.current = setTimeout(() => onSay(next), wait);
  };
  return (
    <label class={`field${grow ? " grow" : ""}${bad ? " wrong" : ""}`}>
      <Icon name="search" />
      <input
        ref={input}
        id={id}
        type="search"
        class={mono ? "mono" : undefined}
        value={text}
        placeholder={placeholder}
        aria-label={label}
        aria-invalid={bad ?? false}
        spellcheck={false}
        autocomplete="off"
        onInput={(event) => say(event.currentTarget.value, false)}
        onKeyDown={(event) => {
          if (event.key === "Enter") say(text, true);
          if (event.key !== "Escape") return;
          event.stopPropagation();
          if (text !== "") say("", true);
          else input.current?.blur();
        }}
      />
      {kbd !== undefined && text === "" && <kbd>{kbd}</kbd>}
    </label>
  );
}
