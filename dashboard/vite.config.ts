import type { Plugin } from "vite";
import { defineConfig } from "vitest/config";

/** The code of the page that opens first is fetched beside the shell's, not after it. */
const firstPage: Plugin = {
  name: "first-page",
  transformIndexHtml: {
    order: "post",
    handler(html, { bundle }) {
      const runs = Object.values(bundle ?? {}).find((file) => file.type === "chunk" && file.facadeModuleId?.endsWith("/pages/runs/Runs.tsx"));
      const files = runs?.type === "chunk" ? [runs.fileName, ...runs.imports] : [];
      return files.filter((file) => !html.includes(file)).map((file) => ({ tag: "link", attrs: { rel: "modulepreload", crossorigin: true, href: `./${file}` }, injectTo: "head" }));
    },
  },
};

// The page is served from any folder (rollbook ui, a static export, a notebook's frame): every address in it is relative.
export default defineConfig({
  base: "./",
  plugins: [firstPage],
  build: {
    outDir: "../src/rollbook/server/page",
    emptyOutDir: true,
    target: "es2022",
    assetsInlineLimit: 0, // the content security policy allows no data: address for code
    modulePreload: { polyfill: false },
    sourcemap: false,
    cssCodeSplit: true,
  },
  server: {
    proxy: { "/api": { target: process.env["ROLLBOOK_UI"] ?? "http://127.0.0.1:8265", ws: true } },
  },
  test: { include: ["src/**/*.test.ts"], environment: "node" },
});
