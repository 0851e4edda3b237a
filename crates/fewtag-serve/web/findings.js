// The support check: what is wrong or weak in the examples, shown at the example or above them all.

import * as api from "./api.js";
import { byId, element, prose } from "./dom.js";

const PAUSE = 600; // Milliseconds; the check tags every example from all others, so it waits for a calm moment.
const OF_SENTENCES = new Set(["contradiction", "duplicate", "too_long", "unlabelled_elsewhere"]);
const MARK = { error: "●", warning: "▲", note: "○" };

export class Findings {
  #store;
  #timer;
  #etag = null;
  #report = [];

  constructor(store) {
    this.#store = store;
  }

  /** Draws into the list of each example, in their order, and asks again if the examples are others. */
  draw(lists) {
    const { domain } = this.#store;
    if (domain?.etag !== this.#etag) {
      this.#report = [];
      this.#etag = domain?.etag ?? null;
      clearTimeout(this.#timer);
      if (domain?.examples.length) this.#timer = setTimeout(() => this.#ask(domain, lists), PAUSE);
    }
    this.#show(lists);
  }

  async #ask(domain, lists) {
    try {
      const { findings } = await api.check(domain.name);
      if (this.#etag !== domain.etag) return;
      this.#report = findings;
      this.#show(lists);
    } catch {
      // Without the check everything else still works, so nobody needs to hear of it.
    }
  }

  #show(lists) {
    const isOfSentence = (finding) => OF_SENTENCES.has(finding.kind) && finding.sentences.length > 0;
    lists.forEach((list, i) => {
      const own = this.#report.filter((finding) => isOfSentence(finding) && finding.sentences.includes(i + 1));
      list.replaceChildren(...own.map(entry));
    });
    const general = this.#report.filter((finding) => !isOfSentence(finding));
    byId("findings").replaceChildren(...general.map(entry));
    byId("check").hidden = general.length === 0;
    byId("n-findings").textContent = String(general.length);
  }
}

function entry({ severity, message, remedy }) {
  const mark = element("span", { class: "mark", "aria-hidden": "true" }, MARK[severity] ?? "○");
  const spoken = element("span", { class: "spoken" }, `${severity}: `);
  return element("li", { class: severity }, mark, element("span", {}, spoken, `${prose(message)}. `, element("em", {}, `${prose(remedy)}.`)));
}
