import { defineConfig } from "vite";

export default defineConfig({
  esbuild: { jsx: "automatic" },
  server: { proxy: { "/ai-sdk": "http://127.0.0.1:8083" } },
});
