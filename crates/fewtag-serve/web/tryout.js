// Text to be tagged: a line is a sentence, its answer appears as one types, and every answer follows the examples.

import * as api from "./api.js";
import { Answer } from "./answer.js";
import { byId, count, prose } from "./dom.js";
import { isReady } from "./labels.js";
import { notify } from "./notice.js";
import { sameSpans } from "./text.js";

const PAUSE = 250; // Milliseconds without a key before asking.
const N_LINES = 100; // More lines than this belong into `fewtag tag`.

export class Tryout {
  #store;
  #timer;
  #request = new AbortController();
  #of = { name: null, etag: null, examples: [], tuned: null }; // The domain and version whose answers are
  #known = new Map(); // here: text → spans.
  #before = new Map(); // The same for the examples before, to see what changed.
  #by = "example"; // What was changed last: an example, a label or the tuning.
  #answers = [];

  constructor(store) {
    this.#store = store;
    byId("query").addEventListener("input", () => {
      this.#remember();
      clearTimeout(this.#timer);
      this.#timer = setTimeout(() => this.#tag(), PAUSE);
    });
    byId("threshold").addEventListener("input", () => this.#draw());
    store.addEventListener("change", () => this.#examplesChanged());
  }

  /** Takes up the lines that were typed for this domain. */
  #recall() {
    byId("query").value = localStorage.getItem(`fewtag.query.${this.#of.name}`) ?? "";
  }

  #remember() {
    localStorage.setItem(`fewtag.query.${this.#of.name}`, byId("query").value);
  }

  #examplesChanged() {
    const { name, etag, examples, tuned } = this.#store.domain ?? { name: null, etag: null, examples: [], tuned: null };
    const isSame = name === this.#of.name;
    if (isSame && etag === this.#of.etag) return;
    const isOther = (a, b) => JSON.stringify(a) !== JSON.stringify(b);
    this.#by = isOther(tuned, this.#of.tuned) ? "tuning" : isOther(examples, this.#of.examples) ? "example" : "label";
    this.#of = { name, etag, examples, tuned };
    this.#before = isSame ? this.#known : new Map();
    this.#known = new Map();
    if (!isSame) {
      this.#answers = [];
      this.#recall();
    }
    this.#tag();
  }

  get #lines() {
    const lines = byId("query").value.split("\n").map((line) => line.trim());
    return [...new Set(lines.filter((line) => line !== ""))].slice(0, N_LINES);
  }

  /** Nothing can be tagged before there is a label. */
  get #isReady() {
    return isReady(this.#store.domain);
  }

  /** Asks for the lines that are not known yet; the request before is given up. */
  async #tag() {
    this.#request.abort();
    const { domain } = this.#store;
    const texts = this.#isReady ? this.#lines.filter((line) => !this.#known.has(line)) : [];
    this.#draw();
    if (texts.length === 0) return;
    this.#request = new AbortController();
    byId("answers").setAttribute("aria-busy", "true");
    try {
      const { results, version } = await api.tag(domain.name, { texts }, this.#request.signal);
      if (version !== undefined && version !== domain.version) return await this.#store.refresh();
      for (const { text, spans } of results) this.#known.set(text, spans);
      this.#draw();
      this.#tell();
    } catch (error) {
      if (error.name !== "AbortError") notify(prose(error.message), { name: "Try again", run: () => this.#tag() }, { isError: true });
    } finally {
      byId("answers").setAttribute("aria-busy", "false");
    }
  }

  #hasChanged(line) {
    const before = this.#before.get(line);
    return before !== undefined && this.#known.has(line) && !sameSpans(before, this.#known.get(line));
  }

  #tell() {
    const nChanged = this.#lines.filter((line) => this.#hasChanged(line)).length;
    const changed = nChanged > 0 ? `, ${count(nChanged, "answer")} changed` : "";
    byId("tagged").textContent = `${count(this.#lines.length, "sentence")} tagged${changed}.`;
  }

  /** One card per line; a card stays as long as its line does. */
  #draw() {
    const threshold = Number(byId("threshold").value) / 100;
    byId("threshold-value").textContent = `${byId("threshold").value} %`;
    byId("not-ready").hidden = this.#isReady;
    const lines = this.#isReady ? this.#lines : [];
    const answers = lines.map((line) => this.#answers.find((answer) => answer.text === line) ?? new Answer(line, this.#store));
    for (const answer of answers) {
      const spans = this.#known.get(answer.text) ?? this.#before.get(answer.text);
      const isShown = (span) => span.probability >= threshold;
      answer.show(spans?.filter(isShown) ?? null, { changedBy: this.#hasChanged(answer.text) ? this.#by : null, version: this.#of.etag });
    }
    const focused = document.activeElement;
    byId("answers").replaceChildren(...answers.map((answer) => answer.node));
    if (focused?.isConnected) focused.focus();
    this.#answers = answers;
  }
}
