// A server of one test: the binary of FEWTAG_BIN with a database of its own, which survives a restart.

import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtemp, rm } from "node:fs/promises";
import { createServer } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test as base } from "@playwright/test";

async function freePort() {
  const probe = createServer().listen(0, "127.0.0.1");
  await once(probe, "listening");
  const { port } = probe.address();
  probe.close();
  await once(probe, "close");
  return port;
}

class Server {
  static async in(directory) {
    const server = new Server();
    server.database = join(directory, "fewtag.sqlite");
    server.port = await freePort();
    server.url = `http://127.0.0.1:${server.port}/`;
    return server;
  }

  async start(...flags) {
    const args = ["serve", "--port", String(this.port), "--log", "warn", "--database", this.database, ...flags];
    this.process = spawn(process.env.FEWTAG_BIN, args, { stdio: ["ignore", "ignore", "inherit"] });
    while (!(await fetch(this.url).then((answer) => answer.ok, () => false))) {
      if (this.process.exitCode !== null) throw new Error(`the server ended with status ${this.process.exitCode}`);
      await new Promise((done) => setTimeout(done, 50));
    }
  }

  async stop() {
    if (this.process?.exitCode !== null) return;
    this.process.kill("SIGTERM");
    await once(this.process, "exit");
  }

  /** Calls the API as somebody else would. */
  async call(method, path, body) {
    const headers = { "content-type": "application/json" };
    const answer = await fetch(`${this.url}v1/${path}`, { method, headers, body: body && JSON.stringify(body) });
    if (!answer.ok) throw new Error(`${method} ${path}: ${answer.status} ${await answer.text()}`);
    return answer.status === 204 ? null : answer.json();
  }
}

/** Tests get `server`, running, and a `page` that is open on it; an error in the page's console fails the test. */
export const test = base.extend({
  server: async ({}, use) => {
    const directory = await mkdtemp(join(tmpdir(), "fewtag-playground-"));
    const server = await Server.in(directory);
    await server.start();
    await use(server);
    await server.stop();
    await rm(directory, { recursive: true });
  },
  page: async ({ page, server }, use) => {
    const errors = [];
    page.on("pageerror", (error) => errors.push(error.message));
    page.on("console", (message) => {
      const isRefusal = message.text().startsWith("Failed to load resource"); // A refused request is the page's business.
      if (message.type() === "error" && !isRefusal) errors.push(message.text());
    });
    await page.goto(server.url);
    await use(page);
    if (errors.length > 0) throw new Error(`the page reported: ${errors.join("; ")}`);
  },
});

export { expect } from "@playwright/test";

/** The examples of examples/music.txt. */
export const MUSIC = [
  { text: "play nina simone", spans: [{ start: 5, end: 16, label: "artist" }] },
  {
    text: "put take five by dave brubeck on repeat",
    spans: [{ start: 4, end: 13, label: "track" }, { start: 17, end: 29, label: "artist" }],
  },
  {
    text: "i want to hear blue in green tonight",
    spans: [{ start: 15, end: 28, label: "track" }, { start: 29, end: 36, label: "time" }],
  },
];
