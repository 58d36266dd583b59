import { defineConfig } from "vitest/config";

// The page is served from any folder (rollbook ui, a static export, a notebook's frame): every address in it is relative.
export default defineConfig({
  base: "./",
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
