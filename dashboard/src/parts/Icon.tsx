const PATHS = {
  runs: "M2 11l3-4 3 2 5-6M2 14h12",
  episodes: "M2 3h12v10H2zM6.5 6v4l3.5-2z",
  samples: "M2 4h12M2 8h8M2 12h10",
  rollouts: "M2 3h9v5H6l-2 2V8H2zM8 10.5h6v3h-1.5L11 15v-1.5H8z",
  timings: "M2 3h6v3H2zM5 8h7v3H5zM10 13h4",
  health: "M1.5 8h3l2-5 3 10 2-5h3",
  compare: "M3 3v10M3 5h6M3 11h9M9 3.5v3M12 9.5v3",
  search: "M7 12A5 5 0 107 2a5 5 0 000 10zM11 11l3 3",
  sun: "M8 11a3 3 0 100-6 3 3 0 000 6zM8 1v1.5M8 13.5V15M1 8h1.5M13.5 8H15M3 3l1 1M12 12l1 1M13 3l-1 1M4 12l-1 1",
  down: "M4 6l4 4 4-4",
  right: "M6 4l4 4-4 4",
  left: "M10 4L6 8l4 4",
  flag: "M4 14V2l8 3-8 3",
  link: "M7 9a3 3 0 004 0l2-2a3 3 0 00-4-4l-1 1M9 7a3 3 0 00-4 0L3 9a3 3 0 004 4l1-1",
  save: "M8 2v8M5 7l3 3 3-3M2 13h12",
  close: "M4 4l8 8M12 4l-8 8",
  play: "M5 3l8 5-8 5z",
  pause: "M5 3v10M11 3v10",
  info: "M8 14A6 6 0 108 2a6 6 0 000 12zM8 7v4M8 4.8v.2",
  pin: "M5 2h6l-1 5 2 2H4l2-2zM8 9v5",
  expand: "M9 2h5v5M7 14H2V9M14 2L9 7M2 14l5-5",
  check: "M3 8l4 4 6-8",
  more: "M3 8h.1M8 8h.1M13 8h.1",
} as const;

export type IconName = keyof typeof PATHS;

/** A line drawing beside a word; it is never the only name of anything. */
export function Icon({ name }: { name: IconName }) {
  return (
    <svg class="i" viewBox="0 0 16 16" aria-hidden="true">
      <path d={PATHS[name]} />
    </svg>
  );
}
