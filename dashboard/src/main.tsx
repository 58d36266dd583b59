import { render } from "preact";
import "./styles/tokens.css";
import "./styles/page.css";
import "./styles/grid.css";
import { Shell } from "./parts/Shell.tsx";
import { listen } from "./state/hands.ts";
import { choose } from "./state/here.ts";
import { start } from "./state/live.ts";
import { startTheme } from "./state/theme.ts";

void choose().then(() => {
  startTheme();
  listen();
  start();
  const root = document.getElementById("page");
  root?.replaceChildren(); // what a copy says where its scripts do not run
  if (root) render(<Shell />, root);
});
