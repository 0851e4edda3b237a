// Labels by name: guesses before the first example, corrections that become examples, names switched off.

import { violations } from "./axe.js";
import { expect, test } from "./server.js";

const LINE = "Angela Merkel met the boss of Siemens in Munich";
const answer = (page) => page.locator("#answers li").filter({ hasText: "Angela" });
const run = (page, label, words) => answer(page).locator(".run").filter({ hasText: label }).filter({ hasText: words });
const chip = (page, label) => page.locator("#legend li").filter({ hasText: label });
const field = (page) => page.getByLabel("Labels to look for");

async function start(page) {
  await page.getByLabel("Name your domain").fill("news");
  await page.getByRole("button", { name: "Create", exact: true }).click();
  await page.getByLabel("Text to tag").fill(LINE);
}

test("a label is looked for as soon as it is named, and a correction changes the answer", async ({ page, server }) => {
  await start(page);
  await expect(page.locator("#not-ready")).toBeVisible();
  await field(page).fill("city");
  await field(page).press("Enter");
  await expect(run(page, "city", "Munich")).toBeVisible();
  await expect(run(page, "city", "Munich").locator(".sure")).toHaveText(/%$/);
  await field(page).fill("person, company name");
  await page.getByRole("button", { name: "Look" }).click();
  await expect(run(page, "person", "Angela Merkel")).toBeVisible();
  await expect(answer(page)).toContainText("Changed by the last label");
  await expect(chip(page, "company_name")).toContainText("0");

  // Why, without any example: the name spoke.
  await run(page, "city", "Munich").getByText("Munich", { exact: true }).click();
  const why = page.getByRole("region", { name: "Why “Munich” is city" });
  await expect(why.getByRole("rowheader", { name: "the label’s name" })).toBeVisible();
  await why.getByRole("group", { name: "Correct this tag" }).getByRole("button", { name: "another…" }).click();
  await page.getByLabel("New label").fill("place of meeting");
  await page.keyboard.press("Enter");
  await expect(answer(page)).toContainText("Corrected by you");
  await answer(page).getByRole("button", { name: "Add to examples" }).click();
  await expect(page.locator("#examples li")).toHaveCount(1);
  await expect(run(page, "place_of_meeting", "Munich")).toBeVisible();
  await expect(chip(page, "place_of_meeting")).toContainText("1");
  await expect(answer(page)).not.toContainText("Corrected by you");

  const { declared, labels, examples } = await server.call("GET", "domains/news");
  expect(declared).toEqual(["city", "person", "company_name"]);
  expect(labels).toContain("place_of_meeting");
  expect(examples[0].spans).toContainEqual({ start: 41, end: 47, label: "place_of_meeting" });
});

test("a name is switched off and a label given up with keys alone, undone, and kept", async ({ page, server }) => {
  await start(page);
  await field(page).focus();
  await page.keyboard.type("city");
  await page.keyboard.press("Enter");
  await expect(run(page, "city", "Munich")).toBeVisible();
  await expect(field(page)).toBeFocused();
  await expect(field(page)).toHaveValue("");

  await page.keyboard.press("Tab"); // Look
  await page.keyboard.press("Tab");
  const name = page.getByRole("button", { name: "Guess by the name of city" });
  await expect(name).toBeFocused();
  await expect(name).toHaveAttribute("aria-pressed", "true");
  await page.keyboard.press("Space");
  await expect(name).toHaveAttribute("aria-pressed", "false");
  await expect(page.locator("#not-ready")).toBeVisible(); // Nothing speaks for the only label.
  await expect(name).toBeFocused();
  expect((await server.call("GET", "domains/news")).meanings).toEqual({ city: null });
  await page.keyboard.press("Space");
  await expect(run(page, "city", "Munich")).toBeVisible();

  await page.keyboard.press("Tab");
  await expect(page.getByRole("button", { name: "Give up city" })).toBeFocused();
  await page.keyboard.press("Enter");
  await expect(page.locator("#legend li")).toHaveCount(0);
  await expect(field(page)).toBeFocused();
  await page.keyboard.press("Shift+Tab"); // Ctrl+Z in the field is the browser's.
  await page.keyboard.press("Control+z");
  await expect(chip(page, "city")).toBeVisible();

  await server.stop();
  await server.start();
  await page.reload();
  await expect(chip(page, "city")).toBeVisible();
  await expect(run(page, "city", "Munich")).toBeVisible();

  await page.getByRole("button", { name: "Delete" }).click();
  await page.locator("#delete-dialog").getByRole("button", { name: "Delete" }).click();
  await expect(page.getByLabel("Name your domain")).toBeVisible();
  await page.locator("#notice").getByRole("button", { name: "Undo" }).click();
  await expect(chip(page, "city")).toBeVisible();
});

test("a label that is there is not added twice, and no colour changes", async ({ page }) => {
  await page.getByRole("button", { name: "start from five sentences about music" }).click();
  const colour = () => chip(page, "artist").getAttribute("class");
  const before = await colour();
  await field(page).fill("artist");
  await field(page).press("Enter");
  await expect(page.getByText("“artist” is there already.")).toBeVisible();
  await field(page).fill("mood");
  await field(page).press("Enter");
  await expect(chip(page, "mood")).toContainText("0");
  expect(await colour()).toBe(before);
});

for (const colorScheme of ["light", "dark"]) {
  test(`axe finds nothing to object to in labels by name, ${colorScheme}`, async ({ page }) => {
    await page.emulateMedia({ colorScheme });
    await start(page);
    await field(page).fill("person, company, city");
    await field(page).press("Enter");
    await expect(run(page, "city", "Munich")).toBeVisible();
    await page.getByRole("button", { name: "Guess by the name of company" }).click();
    await expect(page.getByRole("button", { name: "Guess by the name of company" })).toHaveAttribute("aria-pressed", "false");
    await expect(page.locator("#notice")).toBeHidden();
    expect(await violations(page)).toEqual([]);
    if (process.env.SCREENSHOTS && colorScheme === "light") {
      await page.getByRole("button", { name: "Guess by the name of company" }).click();
      await expect(run(page, "company", "Siemens")).toBeVisible();
      await page.mouse.move(0, 0);
      await page.screenshot({ path: `${process.env.SCREENSHOTS}/playground-names.png` });
    }
  });
}
