// axe-core's rules of accessibility, asked about a page.

import { readFile } from "node:fs/promises";
import { createRequire } from "node:module";

const AXE = createRequire(import.meta.url).resolve("axe-core/axe.min.js");

/** What axe objects to, a line for each rule. */
export async function violations(page) {
  // The policy of the page forbids injected script tags; the debugger may evaluate.
  await page.evaluate(await readFile(AXE, "utf8"));
  const { violations } = await page.evaluate(() => globalThis.axe.run());
  return violations.map(({ id, impact, nodes }) => `${impact}: ${id}: ${nodes.map((node) => node.html).join(" | ")}`);
}
