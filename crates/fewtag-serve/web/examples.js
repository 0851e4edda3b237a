// The examples of the domain: a form for a new one, then a card for each, newest first.

import { button, byId, element } from "./dom.js";
import { Editor } from "./editor.js";
import { Findings } from "./findings.js";
import { hue, labelsOf } from "./labels.js";
import { attempt, notify } from "./notice.js";
import { bare, carrySpans } from "./text.js";

export class Examples {
  #store;
  #draft = { text: "", spans: [] };
  #editor;
  #cards = new Map(); // By example id, so that a redraw keeps the focus.
  #findings;

  constructor(store) {
    this.#store = store;
    this.#findings = new Findings(store);
    const changed = (spans) => this.#setDraft({ ...this.#draft, spans });
    this.#editor = new Editor("New example: select words to label them", { changed });
    byId("draft-words").append(this.#editor.node);
    byId("draft-text").addEventListener("input", () => this.#typed());
    byId("draft-text").addEventListener("keydown", (event) => this.#key(event));
    byId("draft").addEventListener("submit", (event) => {
      event.preventDefault();
      this.#add();
    });
    store.addEventListener("change", () => this.#draw());
  }

  #typed() {
    const text = byId("draft-text").value.replace(/\n/g, " ");
    this.#setDraft({ text, spans: carrySpans(this.#draft.text, text, this.#draft.spans) });
  }

  /** Enter goes on to the words: a sentence has one line. */
  #key(event) {
    if (event.key !== "Enter" || event.isComposing) return;
    event.preventDefault();
    this.#editor.focus();
  }

  #setDraft(draft) {
    this.#draft = draft;
    const isEmpty = draft.text.trim() === "";
    byId("draft-rest").hidden = isEmpty;
    byId("draft-hint").hidden = draft.spans.length > 0;
    this.#editor.show(draft.text, draft.spans, labelsOf([...this.#examples, draft]));
  }

  get #examples() {
    return this.#store.domain?.examples ?? [];
  }

  #add() {
    const { text, spans } = this.#draft;
    if (text.trim() === "") return;
    attempt(() => this.#store.add({ text, spans: bare(spans) }), () => {
      if (this.#draft.text === text) {
        byId("draft-text").value = ""; // Unless somebody types fast.
        this.#setDraft({ text: "", spans: [] });
      }
      this.#told("Example added.");
    });
  }

  #remove(example) {
    attempt(() => this.#store.remove(example.id), () => this.#told("Example removed."));
  }

  #told(what) {
    byId("draft-text").focus();
    notify(what, { name: "Undo", run: () => attempt(() => this.#store.undo()) });
  }

  #draw() {
    const labels = labelsOf(this.#examples);
    byId("n-examples").textContent = String(this.#examples.length);
    byId("legend").replaceChildren(...labels.map((label) => legendEntry(label, labels, this.#examples)));
    byId("no-examples").hidden = this.#examples.length > 0;
    const before = this.#cards;
    this.#cards = new Map();
    this.#examples.forEach((example, i) => {
      const card = before.get(example.id) ?? this.#card(example.id);
      card.show(example, i + 1, labels);
      this.#cards.set(example.id, card);
    });
    const nodes = [...this.#cards.values()].map((card) => card.node).reverse();
    const focused = document.activeElement;
    byId("examples").replaceChildren(...nodes);
    if (focused?.isConnected) focused.focus(); // Moving a node takes its focus away.
    this.#findings.draw([...this.#cards.values()].map((card) => card.notes));
    this.#setDraft(this.#draft);
  }

  #card(id) {
    let shown;
    const changed = (spans) => attempt(() => this.#store.replace(id, { text: shown.text, spans: bare(spans) }));
    const editor = new Editor("Example: select words to change their label", { changed });
    const number = element("span", { class: "number" });
    const remove = button("×", () => this.#remove(shown), { class: "quiet icon" });
    const notes = element("ul", { class: "findings" });
    const node = element("li", { class: "card" }, element("div", { class: "row" }, number, editor.node, remove), notes);
    const show = (example, n, labels) => {
      shown = example;
      number.textContent = String(n);
      remove.setAttribute("aria-label", `Remove example ${n}`);
      editor.show(example.text, example.spans, labels);
    };
    return { node, notes, show };
  }
}

function legendEntry(label, labels, examples) {
  const n = examples.reduce((sum, example) => sum + example.spans.filter((span) => span.label === label).length, 0);
  const spoken = `${n} labelled`;
  return element("li", { class: `chip ${hue(label, labels)}` }, label, " ", element("span", { class: "sure", title: spoken }, String(n)));
}
