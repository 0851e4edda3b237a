// How it looks: small screens, dark screens, and axe-core's rules of accessibility.
// With SCREENSHOTS=DIR the pictures of the documentation are written there.

import { join } from "node:path";
import { violations } from "./axe.js";
import { expect, test } from "./server.js";

const TEXT = "could you play some billie holiday this evening\nput on so what by miles davis\nqueue the gym list for tomorrow morning";

/** Opens the sample domain with answers and an explanation. */
async function fill(page) {
  await page.getByRole("button", { name: "start from five sentences about music" }).click();
  await page.getByLabel("Text to tag").fill(TEXT);
  await page.locator("#answers .run").getByText("billie", { exact: true }).click();
  await expect(page.locator(".heat")).toBeVisible();
  await expect(page.locator("#notice")).toBeHidden(); // It goes by itself.
}

async function shoot(page, name, fullPage) {
  if (process.env.SCREENSHOTS) await page.screenshot({ path: join(process.env.SCREENSHOTS, `${name}.png`), fullPage });
}

for (const colorScheme of ["light", "dark"]) {
  test(`axe finds nothing to object to, ${colorScheme}`, async ({ page }) => {
    await page.emulateMedia({ colorScheme });
    await expect(page.getByLabel("Name your domain")).toBeVisible();
    expect(await violations(page)).toEqual([]);
    await fill(page);
    await shoot(page, `playground-${colorScheme}`, true);
    expect(await violations(page)).toEqual([]);
    await page.locator("#examples .word").getByText("nina", { exact: true }).click();
    await expect(page.locator("#picker")).toBeVisible();
    expect(await violations(page)).toEqual([]);
  });
}

test("the API's pages load nothing from elsewhere", async ({ page, server }) => {
  const asked = [];
  page.on("request", (request) => asked.push(request.url()));
  await page.goto(`${server.url}docs/`);
  await page.getByText("/v1/domains/{name}/tag").click();
  await expect(page.getByRole("button", { name: "Try it out" })).toBeVisible();
  expect(asked.filter((url) => !url.startsWith(server.url) && !url.startsWith("data:"))).toEqual([]);
  expect(asked).toContain(`${server.url}openapi.json`);
});

test.describe("on a phone", () => {
  test.use({ viewport: { width: 375, height: 812 }, hasTouch: true, isMobile: true, deviceScaleFactor: 2 });

  test("nothing scrolls sideways, and a finger can label", async ({ page }) => {
    const width = () => page.evaluate(() => document.documentElement.scrollWidth);
    expect(await width()).toBe(375);
    await fill(page);
    expect(await width()).toBe(375);
    await page.evaluate(() => document.querySelector("#answers").scrollIntoView({ behavior: "instant" }));
    await shoot(page, "playground-phone", false);
    await page.getByLabel("New example", { exact: true }).fill("sing la vie en rose");
    await page.locator("#draft-words").getByText("la", { exact: true }).tap();
    for (let i = 0; i < 3; i++) await page.getByRole("button", { name: "Take in the word after" }).tap();
    await page.locator("#picker").getByRole("button", { name: "track" }).tap();
    await expect(page.locator("#draft-words .run")).toHaveText(/la vie en rose/);
    expect(await width()).toBe(375);
    expect(await violations(page)).toEqual([]);
  });
});
