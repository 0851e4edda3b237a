// The examples of the domain: a form for a new one or one whose text is edited, then a card for each, newest first.

import { button, byId, element } from "./dom.js";
import { Editor } from "./editor.js";
import { Findings } from "./findings.js";
import { labelsOf } from "./labels.js";
import { attempt, notify, single } from "./notice.js";
import { bare, carrySpans } from "./text.js";

const EMPTY = { id: null, text: "", spans: [] };

export class Examples {
  #store;
  #draft = EMPTY; // What the form holds; its id is null for a new example.
  #aside = EMPTY; // The new example in the making while another is edited.
  #of = null; // The domain that is shown.
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
    byId("draft-cancel").addEventListener("click", () => this.#cancel());
    const send = single(() => this.#send());
    byId("draft").addEventListener("submit", (event) => {
      event.preventDefault();
      send();
    });
    store.addEventListener("change", () => this.#draw());
  }

  #typed() {
    const text = byId("draft-text").value.replace(/\n/g, " ");
    this.#setDraft({ ...this.#draft, text, spans: carrySpans(this.#draft.text, text, this.#draft.spans) });
  }

  /** Enter goes on to the words: a sentence has one line. Escape leaves an edit. */
  #key(event) {
    if (event.key === "Escape" && this.#draft.id !== null) this.#cancel();
    if (event.key !== "Enter" || event.isComposing) return;
    event.preventDefault();
    this.#editor.focus();
  }

  #setDraft(draft) {
    const n = this.#examples.findIndex((example) => example.id === draft.id) + 1;
    const isNew = n === 0; // Also if the example was removed meanwhile: what was typed stays.
    this.#draft = isNew ? { ...draft, id: null } : draft;
    byId("draft-label").textContent = isNew ? "New example" : `Example ${n}`;
    byId("draft-send").textContent = isNew ? "Add example" : "Save";
    byId("draft-cancel").hidden = isNew;
    for (const [id, card] of this.#cards) card.node.classList.toggle("editing", id === draft.id);
    byId("draft-rest").hidden = isNew && draft.text.trim() === "";
    byId("draft-hint").hidden = draft.spans.length > 0;
    this.#editor.show(draft.text, draft.spans, labelsOf(this.#store.domain, [draft]));
  }

  get #examples() {
    return this.#store.domain?.examples ?? [];
  }

  /** Takes an example into the form; what was there waits. */
  #edit(example) {
    if (this.#draft.id === null) this.#aside = this.#draft;
    byId("draft-text").value = example.text;
    this.#setDraft(example);
    byId("draft-text").focus();
  }

  /** Back from an edit, or from an example that was added, to a new one. */
  #leave() {
    const draft = this.#draft.id === null ? EMPTY : this.#aside;
    this.#aside = EMPTY;
    byId("draft-text").value = draft.text;
    this.#setDraft(draft);
  }

  #cancel() {
    this.#leave();
    byId("draft-text").focus();
  }

  async #send() {
    const { id, text, spans } = this.#draft;
    if (text.trim() === "") return;
    const example = { text, spans: bare(spans) };
    await attempt(() => (id === null ? this.#store.add(example) : this.#store.replace(id, example, "the edit")), () => {
      if (this.#draft.id === id && this.#draft.text === text) this.#leave(); // Unless somebody types fast.
      this.#told(id === null ? "Example added." : "Example saved.");
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
    const name = this.#store.domain?.name;
    if (name !== this.#of && this.#draft.id !== null) this.#leave(); // Another domain has other examples under the same ids.
    this.#of = name;
    const labels = labelsOf(this.#store.domain);
    byId("n-examples").textContent = String(this.#examples.length);
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
    const edit = button("✎", () => this.#edit(shown), { class: "quiet icon" });
    const remove = button("×", () => this.#remove(shown), { class: "quiet icon" });
    const notes = element("ul", { class: "findings" });
    const node = element("li", { class: "card" }, element("div", { class: "row" }, number, editor.node, edit, remove), notes);
    const show = (example, n, labels) => {
      shown = example;
      number.textContent = String(n);
      edit.setAttribute("aria-label", `Edit the text of example ${n}`);
      remove.setAttribute("aria-label", `Remove example ${n}`);
      editor.show(example.text, example.spans, labels);
    };
    return { node, notes, show };
  }
}
