import { readFile } from "node:fs/promises";
import { MUSIC, expect, test } from "./server.js";

/** Drags over the words `first` to `last` of a sentence. */
async function select(page, sentence, first, last = first) {
  const middle = async (word) => {
    const box = await sentence.getByText(word, { exact: true }).first().boundingBox();
    return [box.x + box.width / 2, box.y + box.height / 2];
  };
  await page.mouse.move(...(await middle(first)));
  await page.mouse.down();
  await page.mouse.move(...(await middle(last)), { steps: 4 });
  await page.mouse.up();
}

async function giveNew(page, label) {
  await page.getByLabel("New label").fill(label);
  await page.keyboard.press("Enter");
}

const draft = (page) => page.locator("#draft-words .sentence");
const example = (page, text) => page.locator("#examples li").filter({ hasText: text });
const answer = (page, text) => page.locator("#answers li").filter({ hasText: text });
const run = (card, label) => card.locator(".run").filter({ hasText: label });

async function addExample(page, text, ...labels) {
  await page.getByLabel("New example", { exact: true }).fill(text);
  for (const [first, last, label] of labels) {
    await select(page, draft(page), first, last);
    await giveNew(page, label);
  }
  await page.getByRole("button", { name: "Add example" }).click();
  await expect(page.getByLabel("New example", { exact: true })).toHaveValue(""); // It was added.
}

test("the whole loop: create, label, tag, explain, correct, export, restart", async ({ page, server }) => {
  await page.getByLabel("Name your domain").fill("jazz");
  await page.getByRole("button", { name: "Create", exact: true }).click();

  await addExample(page, "play nina simone", ["nina", "simone", "artist"]);
  await addExample(page, "put take five by dave brubeck on repeat", ["take", "five", "track"], ["dave", "brubeck", "artist"]);
  await addExample(page, "i want to hear blue in green tonight", ["blue", "green", "track"], ["tonight", "tonight", "time"]);
  await expect(page.locator("#examples li")).toHaveCount(3);

  const lines = ["could you play some billie holiday please", "wake me up with sade this evening", "wake him up with sade tonight"];
  await page.getByLabel("Text to tag").fill(lines.join("\n"));
  const first = answer(page, "billie");
  const second = answer(page, "evening");
  const third = answer(page, "tonight");
  await expect(run(first, "artist")).toContainText("billie holiday");
  await expect(run(first, "artist").locator(".sure")).toHaveText(/%$/);

  await run(first, "artist").getByText("billie", { exact: true }).click();
  const why = page.getByRole("region", { name: "Why “billie holiday” is artist" });
  await expect(why).toContainText("Next best");
  await expect(why).toContainText("Transitions");
  await expect(why.locator(".heat .source")).not.toHaveCount(0);
  await expect(why.getByRole("rowheader", { name: "nina", exact: true })).toBeVisible();

  await run(second, "time").getByText("evening", { exact: true }).click();
  await second.getByRole("group", { name: "Correct this tag" }).getByRole("button", { name: "artist" }).click();
  await select(page, second.locator(".sentence"), "this", "evening");
  await page.locator("#picker").getByRole("button", { name: "time" }).click();
  await expect(second).not.toContainText("Corrected by you"); // The answer was right before.
  await run(second, "artist").getByText("sade", { exact: true }).click();
  await second.getByRole("group", { name: "Correct this tag" }).getByRole("button", { name: "track" }).click();
  await expect(second).toContainText("Corrected by you");
  await expect(run(third, "artist")).toContainText("sade");
  await second.getByRole("button", { name: "Add to examples" }).click();
  await expect(run(example(page, "sade"), "track")).toContainText("sade");
  await expect(run(third, "track")).toContainText("sade");
  await expect(third).toContainText("Changed by the last example");

  await page.getByRole("button", { name: "Export" }).click();
  const download = page.waitForEvent("download");
  await page.getByRole("button", { name: "Download" }).click();
  const file = await download;
  expect(file.suggestedFilename()).toBe("jazz.txt");
  const exported = await readFile(await file.path(), "utf8");
  expect(exported).toContain("put [take five](track) by [dave brubeck](artist) on repeat");
  expect(exported).toContain("wake me up with [sade](track) [this evening](time)");

  await server.stop();
  await server.start();
  await page.reload();
  await expect(page.locator("#examples li")).toHaveCount(4);
  await expect(page.getByLabel("Domain", { exact: true })).toHaveValue("jazz");
  await expect(run(example(page, "dave brubeck"), "track")).toContainText("take five");
  await expect(run(answer(page, "tonight"), "track")).toContainText("sade");
});

test("two clicks add one example", async ({ page, server }) => {
  await server.call("POST", "domains", { name: "music", examples: MUSIC });
  await page.reload();
  await page.getByLabel("New example", { exact: true }).fill("hum something");
  await page.getByRole("button", { name: "Add example" }).dblclick();
  await expect(page.getByText("Example added.")).toBeVisible();
  await page.getByLabel("Text to tag").fill("play anita");
  await answer(page, "anita").getByRole("button", { name: "Add to examples" }).dblclick();
  await expect(page.getByText("Added to the examples.")).toBeVisible();
  const { examples } = await server.call("GET", "domains/music");
  expect(examples.map(({ text }) => text)).toEqual([...MUSIC.map(({ text }) => text), "hum something", "play anita"]);
});

test("the text of an example can be edited; its labels follow, and what was being written waits", async ({ page, server }) => {
  await server.call("POST", "domains", { name: "music", examples: MUSIC });
  await page.reload();
  await page.getByLabel("New example", { exact: true }).fill("half a sen");
  await page.getByRole("button", { name: "Edit the text of example 1" }).click();
  const field = page.getByLabel("Example 1", { exact: true });
  await expect(field).toHaveValue("play nina simone");
  await field.press("Home");
  await page.keyboard.type("please ");
  await field.press("End");
  await page.keyboard.type(" now");
  await expect(run(draft(page), "artist")).toContainText("nina simone");
  await select(page, draft(page), "now");
  await giveNew(page, "time");
  await page.getByRole("button", { name: "Save" }).click();
  await expect(page.getByText("Example saved.")).toBeVisible();
  await expect(page.getByLabel("New example", { exact: true })).toHaveValue("half a sen");
  const saved = (await server.call("GET", "domains/music")).examples[0];
  expect(saved).toEqual({
    id: "1",
    text: "please play nina simone now",
    spans: [{ start: 12, end: 23, label: "artist" }, { start: 24, end: 27, label: "time" }],
  });

  await page.getByRole("button", { name: "Edit the text of example 2" }).click();
  await page.getByLabel("Example 2", { exact: true }).fill("nothing of it");
  await page.keyboard.press("Escape");
  await expect(page.getByLabel("New example", { exact: true })).toHaveValue("half a sen");
  await page.locator("#undo").click();
  await expect(example(page, "please")).toHaveCount(0);
  expect((await server.call("GET", "domains/music")).examples.map(({ text }) => text)).toEqual(MUSIC.map(({ text }) => text));

  await server.call("POST", "domains", { name: "weather", examples: [{ text: "rain in paris", spans: [] }] });
  await page.reload();
  await page.getByRole("button", { name: "Edit the text of example 1" }).click();
  await page.getByLabel("Domain", { exact: true }).selectOption("weather");
  await expect(example(page, "paris")).toBeVisible();
  await expect(page.getByLabel("New example", { exact: true })).toHaveValue(""); // Not over the other domain's example 1.
});

test("offsets count characters, not UTF-16 units", async ({ page, server }) => {
  await server.call("POST", "domains", { name: "music", examples: MUSIC });
  await page.reload();
  await addExample(page, "🎷🎷 spiel 𝒏ina 👩‍👩‍👧 simone 🎵 bitte", ["simone", "simone", "artist"]);
  const { examples } = await server.call("GET", "domains/music");
  const { text, spans } = examples.find(({ text }) => text.startsWith("🎷"));
  const [{ start, end }] = spans;
  expect([...text].slice(start, end).join("")).toBe("simone");
  await page.reload();
  await expect(run(example(page, "🎷"), "artist")).toHaveText(/^simone/);
});

test("a sentence can be labelled and added without a mouse", async ({ page, server }) => {
  await server.call("POST", "domains", { name: "music" });
  await page.reload();
  const field = page.getByLabel("New example", { exact: true });
  await expect(field).toBeVisible();
  await field.focus();
  await page.keyboard.type("play nina simone now");
  for (const key of ["Enter", "ArrowRight", "Shift+ArrowRight", "Enter"]) await page.keyboard.press(key);
  await page.keyboard.type("artist");
  await page.keyboard.press("Enter");
  await expect(run(draft(page), "artist")).toContainText("nina simone");
  await page.keyboard.press("End");
  await page.keyboard.press("1"); // The first label, at once.
  await expect(draft(page).locator(".run")).toHaveCount(2);
  await page.keyboard.press("Delete");
  await expect(draft(page).locator(".run")).toHaveCount(1);
  await page.keyboard.press("Tab");
  await page.keyboard.press("Enter");
  await expect(page.locator("#examples .run")).toHaveText(/nina simone/);
  await expect(field).toBeFocused();
});

test("a change on a stale version is kept and can be applied again", async ({ page, server }) => {
  await server.call("POST", "domains", { name: "music", examples: MUSIC.slice(0, 1) });
  await page.reload();
  await expect(page.locator("#examples li")).toHaveCount(1);
  await server.call("POST", "domains/music/examples", { examples: MUSIC.slice(1, 2) });
  await page.getByLabel("New example", { exact: true }).fill("hum something");
  await page.getByRole("button", { name: "Add example" }).click();
  await expect(page.getByText("Somebody else changed “music”")).toBeVisible();
  await expect(page.locator("#examples li")).toHaveCount(2);
  await expect(page.getByLabel("New example", { exact: true })).toHaveValue("hum something");
  await page.getByRole("button", { name: "Apply my change" }).click();
  await expect(page.locator("#examples li")).toHaveCount(3);
  const { examples } = await server.call("GET", "domains/music");
  expect(examples.map(({ text }) => text)).toEqual([MUSIC[0].text, MUSIC[1].text, "hum something"]);
  await expect(page.getByLabel("New example", { exact: true })).toHaveValue("");
});

test("undo takes back step by step: a label, a removal, an import", async ({ page, server }) => {
  await server.call("POST", "domains", { name: "music", examples: MUSIC });
  await page.reload();
  await select(page, example(page, "nina").locator(".sentence"), "play");
  await giveNew(page, "action");
  await expect(run(example(page, "nina"), "action")).toBeVisible();
  await page.getByRole("button", { name: "Remove example 2" }).click();
  await expect(page.locator("#examples li")).toHaveCount(2);

  await page.getByRole("button", { name: "Import" }).click();
  const buffer = Buffer.from("sing [la vie en rose](track)\nsing [sade](track)\n");
  await page.getByLabel("File").setInputFiles({ name: "more.txt", mimeType: "text/plain", buffer });
  await page.getByRole("dialog").getByRole("button", { name: "Import" }).click();
  await expect(page.locator("#examples li")).toHaveCount(4);

  const undo = page.locator("#undo");
  await undo.click();
  await expect(page.locator("#examples li")).toHaveCount(2);
  await undo.click();
  await expect(page.locator("#examples li")).toHaveCount(3);
  await undo.click();
  await expect(run(example(page, "nina"), "action")).toHaveCount(0);
  await expect(undo).toBeDisabled();
});

test("what the support check finds stands at the example it is about", async ({ page, server }) => {
  await server.call("POST", "domains", { name: "music", examples: [...MUSIC, { text: MUSIC[0].text, spans: [] }] });
  await page.reload();
  await expect(page.locator("#examples li").first()).toContainText("Sentences 1 and 4 have the same words but are labelled differently.");
  await expect(example(page, "take").locator(".findings li")).toHaveCount(0);
  await page.getByText("Worth a look").click();
  await expect(page.locator("#findings")).toContainText("“time”");
});

test("a server with keys is asked once for one", async ({ page, server }) => {
  await server.stop();
  await server.start("--api-key", "open sesame, open");
  await page.reload();
  await page.getByLabel("API key").fill("wrong");
  await page.keyboard.press("Enter");
  await expect(page.getByText("The last key was not accepted.")).toBeVisible();
  await page.getByLabel("API key").fill("open sesame, open");
  await page.keyboard.press("Enter");
  await expect(page.getByLabel("Name your domain")).toBeVisible();
  await page.reload();
  await expect(page.getByLabel("Name your domain")).toBeVisible();
});
