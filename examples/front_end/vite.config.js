import { defineConfig } from "vite";

// What your web server does in production: it forwards the path, and adds who asks.
const toolchat = { target: "http://127.0.0.1:8083", headers: { "X-Tenant-ID": "acme" } };

export default defineConfig({
  esbuild: { jsx: "automatic" },
  server: { proxy: { "/ai-sdk": toolchat } },
});
