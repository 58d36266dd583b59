/** Parts whose code comes behind the first view, or when they are opened before that. */

import { signal } from "@preact/signals";
import type { ComponentType } from "preact";
import { useLayoutEffect } from "preact/hooks";
import { calm } from "../state/first.ts";

/** The component that `load` brings; nothing stands in its place until it is there. */
export function lazy<P extends object>(load: () => Promise<ComponentType<P>>): ComponentType<P> {
  const made = signal<ComponentType<P> | null>(null);
  const fetch = (): void => {
    if (made.peek() === null)
      void load().then(
        (view) => {
          made.value = view;
        },
        () => undefined, // the server is away: the next opening asks again
      );
  };
  void calm.then(fetch);
  return function Later(props: P) {
    useLayoutEffect(fetch, []);
    const View = made.value;
    return View && <View {...props} />;
  };
}
