/** The frame of every page: where am I, search, live, dark or light, help. */

import { computed, signal, type Signal } from "@preact/signals";
import type { ComponentType } from "preact";
import { useEffect } from "preact/hooks";
import { isPage, PAGES, type PageId } from "../pages/registry.ts";
import { Runs } from "../pages/runs/Runs.tsx";
import { address, addressOf } from "../state/address.ts";
import { takeColors } from "../state/colors.ts";
import { calm, shown } from "../state/first.ts";
import { hello, source } from "../state/here.ts";
import { hear, reborn, watch } from "../state/live.ts";
import { refusal, type Refusal } from "../state/source.ts";
import { toggleTheme } from "../state/theme.ts";
import { useHands, waiting } from "../state/hands.ts";
import { OpenPage } from "./Context.tsx";
import { HelpSheet, showHelp } from "./HelpSheet.tsx";
import { Icon } from "./Icon.tsx";
import { Palette, showPalette } from "./Palette.tsx";
import { Disconnected, Live, Passing } from "./Live.tsx";
import { Failure, isInBanner, Later } from "./Say.tsx";

const page = computed<PageId>(() => (isPage(address.value.page) ? address.value.page : "runs"));
const loaded: Signal<{ id: PageId; view: ComponentType } | null> = signal(
  page.peek() === "runs" ? { id: "runs", view: Runs } : null,
);
const failed: Signal<Refusal | null> = signal(null);
const alerts = signal(0);
/** Pages without a word of their own in the head, by the page that they belong to. */
const UNDER: { [page in PageId]?: PageId } = { run: "runs", sweep: "compare" };
/** How long one may be away from a page before its alerts are counted again. */
const ALERTS_EVERY = 30_000;

function open(id: PageId): void {
  const code = PAGES[id].load();
  void code.catch(() => undefined).then(waiting());
  code.then(
    (view) => {
      if (page.peek() !== id) return;
      loaded.value = { id, view };
      failed.value = null;
      if (id !== "runs") shown();
      document.title = `${PAGES[id].name} · rollbook`;
    },
    (error: unknown) => {
      failed.value = refusal(error);
    },
  );
}

function startSlowly(): () => void {
  let last = 0;
  const count = (): void => {
    if (Date.now() - last < ALERTS_EVERY) return;
    last = Date.now();
    source.findings().then(
      (answer) => {
        alerts.value = answer.findings?.filter(({ level }) => level !== "note").length ?? 0;
      },
      () => undefined,
    );
  };
  const stops = [watch("runs")];
  let gone = false;
  void calm.then(() => {
    for (const one of Object.values(PAGES)) void one.load().catch(() => undefined);
    if (gone) return;
    count(); // to count alerts, every run is opened
    stops.push(hear("runs", count));
  });
  return () => {
    gone = true;
    stops.forEach((stop) => stop());
  };
}

void PAGES[page.peek()].load().catch(() => undefined); // its code comes while the frame is drawn

/** A link that is seen while it has the focus, and takes it past what one knows. */
const Skip = ({ to, children }: { to: string; children: string }) => (
  <a
    class="skip"
    href="#main"
    onClick={(event) => {
      event.preventDefault();
      document.querySelector<HTMLElement>(to)?.focus();
    }}
  >
    {children}
  </a>
);

export function Shell() {
  const id = page.value;
  useEffect(() => open(id), [id, reborn.value]);
  useEffect(() => startSlowly(), []);
  useEffect(() => {
    source.hello().then(
      (said) => {
        takeColors(said);
        hello.value = said;
      },
      (error: unknown) => {
        takeColors(null);
        if (!hello.peek()) failed.value = refusal(error);
      },
    );
  }, [reborn.value]);
  useHands(() => [
    { keys: ["/", "ctrl k"], shown: "/ ctrl K", what: "find anything", act: showPalette },
    { keys: ["?"], what: "this sheet", act: showHelp },
    { keys: ["T"], what: "dark or light", act: toggleTheme },
  ]);
  const away = isInBanner(failed.value);
  const View = loaded.value?.id === id ? loaded.value.view : null;
  return (
    <>
      <Skip to="#main :is([tabindex], a, button, input)">To the content</Skip>
      {id === "runs" && <Skip to="#charts .plotarea">To the charts</Skip>}
      <div class="app" data-page={id}>
        <header class="top">
          <a class="brand" href={addressOf("runs")}>
            <svg viewBox="0 0 20 20" aria-hidden="true">
              <rect x="1" y="2" width="18" height="16" rx="3.5" fill="currentColor" />
              <path
                d="M5 13.2l3-4.4 2.6 2.2L15 6"
                fill="none"
                stroke="var(--panel)"
                stroke-width="1.9"
                stroke-linecap="round"
                stroke-linejoin="round"
              />
            </svg>
            <span>rollbook</span>
          </a>
          <span class="place mono soft" title={hello.value?.roots.join("\n")}>
            {hello.value?.title ?? ""}
          </span>
          <nav class="tabs" aria-label="Pages">
            {Object.entries(PAGES)
              .filter(([, one]) => one.icon !== null)
              .map(([name, one]) => (
                <a
                  key={name}
                  href={addressOf(name)}
                  title={one.question}
                  aria-current={name === (UNDER[id] ?? id) ? "page" : undefined}
                >
                  {one.icon && <Icon name={one.icon} />}
                  <span>{one.name}</span>
                  {name === "health" && alerts.value > 0 && (
                    <span class="count" aria-label={`${alerts.value} findings`}>
                      {alerts.value > 99 ? "99+" : alerts.value}
                    </span>
                  )}
                </a>
              ))}
          </nav>
          <span class="grow" />
          <button class="btn find" type="button" onClick={showPalette} aria-label="Find anything (/ or ctrl K)">
            <Icon name="search" />
            <span class="soft hide-s">Find anything</span>
            <kbd>/</kbd>
          </button>
          <Live />
          <button class="btn bare icon" type="button" onClick={toggleTheme} aria-label="Dark or light (T)">
            <Icon name="sun" />
          </button>
          <button class="btn bare icon hide-s" type="button" onClick={showHelp} aria-label="Keyboard and mouse (?)">
            <kbd>?</kbd>
          </button>
        </header>
        <div class="notices">
          <Disconnected />
          <Passing />
        </div>
        {failed.value && !away && (
          <div class="pad">
            <Failure
              error={failed.value}
              again={() => {
                failed.value = null;
                open(id);
              }}
            />
          </div>
        )}
        {View ? (
          <OpenPage.Provider value={{ id, name: PAGES[id].name, question: PAGES[id].question }}>
            <View />
          </OpenPage.Provider>
        ) : (
          <main id="main" aria-busy="true">
            {away && <Later what="the page" />}
          </main>
        )}
      </div>
      <HelpSheet />
      <Palette
        onRuns={id === "runs"}
        pages={Object.entries(PAGES)
          .filter(([name]) => name !== "run")
          .map(([name, one]) => ({ name: one.name, question: one.question, address: addressOf(name) }))}
      />
    </>
  );
}
