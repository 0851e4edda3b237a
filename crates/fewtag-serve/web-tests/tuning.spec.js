// Tuning from the page: a real job of a tiny model, which takes seconds and gains something.

import { execFileSync } from "node:child_process";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { violations } from "./axe.js";
import { MUSIC, expect, test } from "./server.js";

const TESTDATA = fileURLToPath(new URL("../../../testdata", import.meta.url));
const CONFIG = `
seed = 2
encoder = '${TESTDATA}/tiny-encoder'
data = { train = ['${TESTDATA}/tiny-episodes.json'], dev = ['${TESTDATA}/tiny-episodes.json'] }
model = { context = 'separate', scorer = 'prototype', similarity = 'dot', constrained = true, legal_loss = true, borrow = true }
evaluation = { every = 5, episodes = 1, queries = 2, patience = 0 }
optimizer.encoder_rate = 1e-3
optimizer.batch = 1
optimizer.updates = 2
`;

/** A labelled sentence of parts, of which pairs are [words, label]. */
function sentence(...parts) {
  let text = "";
  const spans = [];
  for (const part of parts) {
    const [words, label] = Array.isArray(part) ? part : [part, null];
    if (label !== null) spans.push({ start: text.length, end: text.length + words.length, label });
    text += words;
  }
  return { text, spans };
}

/** Thirty sentences whose labels follow from the word before. */
const EXAMPLES = Array.from({ length: 30 }, (_, i) => {
  const words = ["paris", "jazz", "noon", "rome", "blues", "nine"];
  const [a, b] = [words[i % 6], words[(Math.floor(i / 2) + 1) % 6]];
  if (i % 3 === 0) return sentence("go to ", [a, "city"], ` now${i} and hear `, [b, "genre"]);
  if (i % 3 === 1) return sentence("hear some ", [`${b} ${a}`, "genre"], ` to day${i}`);
  return sentence("at ", [a, "time"], " go to ", [b, "city"], ` please${i}`);
});

let model;
test.beforeAll(async () => {
  const directory = await mkdtemp(join(tmpdir(), "fewtag-tuning-"));
  const config = join(directory, "train.toml");
  model = join(directory, "model");
  await writeFile(config, CONFIG);
  execFileSync(process.env.FEWTAG_BIN, ["train", "--config", config, "--out", model], { stdio: "ignore" });
});
test.afterAll(() => rm(join(model, ".."), { recursive: true }));

test.beforeEach(async ({ page, server }) => {
  await server.stop();
  await server.start("--model", model);
  await server.call("POST", "domains", { name: "music", examples: EXAMPLES });
  await page.reload();
});

const card = (page) => page.getByRole("region", { name: "Tuning" });
const press = (page, name) => card(page).getByRole("button", { name, exact: true }).click();

test("a domain is tuned, before and after stand side by side, and undo goes back", async ({ page, server }) => {
  await page.getByLabel("Text to tag").fill("go to lima now and hear soul");
  await expect(page.locator("#answers li")).toHaveCount(1);
  const untuned = await server.call("POST", "domains/music/tag", { texts: ["at nine go to rome please"] });
  await press(page, "Tune");
  await expect(card(page).getByRole("progressbar")).toBeVisible();
  await expect(card(page)).toContainText(/% done|Waiting/);
  await expect(page.getByText("The domain is tuned.")).toBeVisible({ timeout: 150_000 });

  const { report, tuned } = await server.call("GET", "domains/music/tune");
  const row = (name) => card(page).getByRole("row").filter({ has: page.getByRole("rowheader", { name, exact: true }) });
  for (const label of report.labels) {
    await expect(row(label.label)).toContainText(label.untuned.toFixed(1));
    await expect(row(label.label)).toContainText(label.tuned.toFixed(1));
  }
  const f1 = ({ f1, spread }) => `${f1.toFixed(1)} ± ${spread.toFixed(1)}`;
  await expect(row("All labels")).toContainText(f1(tuned.figures.untuned));
  await expect(row("All labels")).toContainText(f1(tuned.figures.tuned));
  expect(tuned.figures.tuned.f1).toBeGreaterThan(tuned.figures.untuned.f1);
  expect(await violations(page)).toEqual([]);
  if (process.env.SCREENSHOTS) await page.screenshot({ path: join(process.env.SCREENSHOTS, "playground-tuned.png") });

  await press(page, "Undo tuning");
  await expect(page.getByText("The tuning is undone.")).toBeVisible();
  await expect(card(page).getByRole("button", { name: "Undo tuning" })).toBeHidden();
  await expect(card(page)).toContainText("Undone.");
  expect((await server.call("GET", "domains/music")).tuned).toBe(null);
  const back = await server.call("POST", "domains/music/tag", { texts: ["at nine go to rome please"] });
  expect(back.results).toEqual(untuned.results);
});

test("a tuning goes on while one works, is there after a reload, and can be cancelled", async ({ page, server }) => {
  await server.call("POST", "domains/music/tune", { minutes: 60 });
  await page.reload();
  await expect(card(page).getByRole("button", { name: "Cancel" })).toBeVisible();
  await page.getByLabel("New example", { exact: true }).fill("hum something");
  await page.getByRole("button", { name: "Add example" }).click();
  await expect(page.getByText("Example added.")).toBeVisible();
  await press(page, "Cancel");
  await expect(page.getByText("Tuning cancelled. The domain is as it was.")).toBeVisible();
  await expect(card(page)).toContainText("Cancelled.");
  const { tuned, examples } = await server.call("GET", "domains/music");
  expect([tuned, examples.length]).toEqual([null, 31]);
});

test("a few examples are too few, and the page says how many it takes", async ({ page, server }) => {
  await server.call("POST", "domains", { name: "few", examples: MUSIC });
  await page.goto(`${server.url}?domain=few`);
  await expect(card(page)).toContainText("It takes 10 examples or more.");
  await expect(card(page).getByRole("button", { name: "Tune", exact: true })).toBeDisabled();
});
