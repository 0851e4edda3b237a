// A page of somebody else whose name leads to the reader's own machine once it is loaded (DNS rebinding), in a real browser.

import { expect, test } from "./server.js";
import config from "./playwright.config.js";

// New Chromium has a defence of its own, which other browsers lack: it is off, so that ours is tested.
const flags = ["--host-resolver-rules=MAP evil.example 127.0.0.1", "--disable-features=LocalNetworkAccessChecks,BlockInsecurePrivateNetworkRequests"];
const { launchOptions } = config.use;
test.use({ launchOptions: { ...launchOptions, args: [...launchOptions.args, ...flags] } });

test("a page behind a rebound name reads and changes nothing", async ({ page, server }) => {
  await server.call("POST", "domains", { name: "secret", examples: [] });
  const evil = `http://evil.example:${server.port}/`;
  // The page itself comes from its own server; what it asks for then, from ours.
  await page.route(evil, (route) => route.fulfill({ contentType: "text/html", body: "<title>Free jazz</title>" }));
  await page.goto(evil);
  const answers = await page.evaluate(async () => {
    const ask = async (path, options) => {
      const answer = await fetch(path, options);
      return [answer.status, await answer.text()];
    };
    const headers = { "content-type": "application/json" };
    return [
      await ask("/v1/domains"),
      await ask("/v1/domains", { method: "POST", headers, body: '{"name": "theirs"}' }),
      await ask("/v1/domains/secret", { method: "DELETE" }),
    ];
  });
  for (const [status, text] of answers) {
    expect(status).toBe(421);
    expect(text).not.toContain("secret");
  }
  const { domains } = await server.call("GET", "domains");
  expect(domains.map(({ name }) => name)).toEqual(["secret"]);
});
