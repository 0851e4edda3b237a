// Tests of the playground in a real browser against a real server. scripts/check_playground.sh runs them.

import { defineConfig } from "@playwright/test";

export default defineConfig({
  testDir: ".",
  workers: 1, // The server uses all cores already.
  timeout: 180_000,
  expect: { timeout: 30_000 }, // Enough for a busy machine and a debug build.
  forbidOnly: true,
  reporter: "list",
  use: {
    // Debian's Chromium; Playwright's own would be downloaded from elsewhere. Its sandbox cannot be used as root.
    launchOptions: { executablePath: process.env.CHROMIUM ?? "/usr/bin/chromium", args: ["--no-sandbox"] },
    viewport: { width: 1280, height: 860 },
    acceptDownloads: true,
  },
});
