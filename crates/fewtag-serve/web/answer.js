// One answer: the sentence with its tags, why they are there, and the way from a wrong tag to a new example.

import * as api from "./api.js";
import { button, element } from "./dom.js";
import { Editor } from "./editor.js";
import { explanation } from "./explanation.js";
import { labelsOf } from "./labels.js";
import { attempt, notify, single } from "./notice.js";
import { openPicker } from "./picker.js";
import { bare, sameSpans, textOf, withSpan } from "./text.js";

export class Answer {
  #store;
  #spans = null; // What the server said, or null while it is thinking.
  #corrected = null; // What the user made of it, or null.
  #version = null;
  #editor;
  #status = element("span", { class: "status" });
  #actions = element("span", { class: "actions" });
  #why = element("div", { class: "why" });
  #add = single(() => this.#send());

  constructor(text, store) {
    this.text = text;
    this.#store = store;
    this.#editor = new Editor("Answer: select a tag to see why, or words to correct it", {
      changed: (spans) => this.#correct(spans),
      open: (run) => this.#explain(run),
    });
    const foot = element("div", { class: "foot" }, this.#status, this.#actions);
    this.node = element("li", { class: "card answer" }, this.#editor.node, foot, this.#why);
  }

  /** Shows what the server says now; a correction in the making stays. */
  show(spans, { changedBy, version }) {
    if (version !== this.#version) this.#why.replaceChildren();
    this.#version = version;
    this.#spans = spans;
    this.#draw(changedBy);
  }

  get #labels() {
    return labelsOf(this.#store.domain, [{ spans: this.#corrected ?? [] }]);
  }

  #draw(changedBy = null) {
    const spans = this.#corrected ?? this.#spans ?? [];
    const isCorrected = this.#corrected !== null;
    this.#editor.show(this.text, spans, this.#labels);
    this.node.classList.toggle("thinking", this.#spans === null);
    this.node.classList.toggle("changed", changedBy !== null && !isCorrected);
    this.node.classList.toggle("corrected", isCorrected);
    this.#status.textContent = isCorrected ? "Corrected by you" : changedBy ? `Changed by the last ${changedBy}` : "";
    const isKnown = this.#store.domain?.examples.some((example) => example.text === this.text && sameSpans(example.spans, spans));
    const add = button("Add to examples", () => this.#add(), { class: isCorrected ? "primary" : "quiet" });
    const reset = isCorrected && button("Discard", () => this.#correct(null), { class: "quiet" });
    if (isKnown && !isCorrected) this.#status.textContent ||= "Among the examples";
    this.#actions.replaceChildren(...(this.#spans === null || (isKnown && !isCorrected) ? [] : [reset, add].filter(Boolean)));
  }

  #correct(spans) {
    this.#corrected = spans && !sameSpans(spans, this.#spans) ? bare(spans) : null;
    this.#why.replaceChildren();
    this.#draw();
  }

  async #send() {
    const example = { text: this.text, spans: bare(this.#corrected ?? this.#spans) };
    const send = async () => {
      // A sentence is an example once: a correction of one that is there replaces it.
      const same = this.#store.domain.examples.find((other) => other.text === this.text);
      await (same ? this.#store.replace(same.id, example) : this.#store.add(example));
    };
    await attempt(send, () => {
      this.#correct(null);
      notify("Added to the examples.", { name: "Undo", run: () => attempt(() => this.#store.undo()) });
    });
  }

  /** Opens why a tag is there; a second click closes it. A tag of the user has no explanation, only the menu. */
  #explain(run) {
    if (this.#corrected) return this.#pick(run);
    const isOpen = this.#why.dataset.start === String(run.start) && this.#why.hasChildNodes();
    this.#why.replaceChildren();
    if (isOpen) return;
    this.#why.append(element("p", { class: "status" }, "Looking…"));
    attempt(async () => {
      const panel = await this.#panel(run).finally(() => this.#why.replaceChildren());
      if (panel) this.#why.append(panel);
      this.#why.dataset.start = run.start;
    });
  }

  async #panel(run) {
    const { domain } = this.#store;
    const { results: [{ spans }] } = await api.tag(domain.name, { texts: [this.text], explain: true });
    const span = spans.find((span) => span.start === run.start && span.end === run.end);
    if (!span) return null; // The examples changed under our feet; the new answer is on its way.
    const correct = (label) => this.#correct(withSpan(this.#spans, { ...run, label }));
    const close = () => (this.#why.replaceChildren(), this.#editor.focus());
    return explanation({ text: this.text, span, domain, labels: this.#labels }, { correct, close, other: () => this.#pick(run) });
  }

  #pick(run) {
    const pick = (label) => this.#correct(withSpan(this.#corrected ?? this.#spans, { ...run, label }));
    const box = this.#editor.node.getBoundingClientRect();
    openPicker({ box, quote: textOf(this.text, run), labels: this.#labels, label: run.label, pick, close: () => this.#editor.focus() });
  }
}
