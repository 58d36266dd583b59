import type { AcceptedPlugin, Rule } from "postcss";
import type { Plugin } from "vite";
import { defineConfig } from "vitest/config";

const FIRST = ["/src/main.tsx", "/src/pages/runs/Runs.tsx"];
const ofFirstView = new Set<string>();

/** Finds what the frame and the page that opens first are made of: that comes as one file, the other pages as theirs. */
const firstView: Plugin = {
  name: "first-view",
  buildEnd() {
    const next = [...this.getModuleIds()].filter((id) => FIRST.some((end) => id.endsWith(end)));
    for (let id = next.pop(); id !== undefined; id = next.pop()) {
      if (ofFirstView.has(id)) continue;
      ofFirstView.add(id);
      next.push(...(this.getModuleInfo(id)?.importedIds ?? []));
    }
  },
};

/** The style sheet of a page holds on that page alone: all pages are loaded soon, and share names such as "small". */
const ofOnePage: AcceptedPlugin = {
  postcssPlugin: "of-one-page",
  Once(root) {
    const [, page] = /src\/pages\/(\w+)\//.exec(root.source?.input.file ?? "") ?? [];
    if (page === undefined) return;
    root.walkRules((rule: Rule) => {
      rule.selectors = rule.selectors.map((one) => `:where([data-page="${page}"]) ${one}`);
    });
  },
};

// The page is served from any folder (rollbook ui, a static export, a notebook's frame): every address in it is relative.
export default defineConfig({
  base: "./",
  plugins: [firstView],
  css: { postcss: { plugins: [ofOnePage] } },
  build: {
    outDir: "../src/rollbook/server/page",
    emptyOutDir: true,
    target: "es2022",
    assetsInlineLimit: 0, // the content security policy allows no data: address for code
    modulePreload: { polyfill: false },
    sourcemap: false,
    rolldownOptions: { output: { codeSplitting: { groups: [{ name: "first", test: (id) => ofFirstView.has(id) }] } } },
    cssCodeSplit: true,
  },
  server: {
    proxy: { "/api": { target: process.env["ROLLBOOK_UI"] ?? "http://127.0.0.1:8265", ws: true } },
  },
  test: { include: ["src/**/*.test.ts"], environment: "node" },
});
