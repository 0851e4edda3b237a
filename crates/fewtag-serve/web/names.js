// Labels that are looked for by their names: a form for new ones, and a chip for each label of the domain.
//
// A name makes the first guesses and fades as examples come. It can be switched off where it says nothing, and a label without examples
// can be given up.

import { button, byId, element } from "./dom.js";
import { countOf, hue, isNamed, labelsOf, tidy } from "./labels.js";
import { attempt, notify, single } from "./notice.js";

export class Names {
  #store;
  #chips = new Map(); // By label, so that a redraw keeps the focus.

  constructor(store) {
    this.#store = store;
    const send = single(() => this.#add());
    byId("label-form").addEventListener("submit", (event) => {
      event.preventDefault();
      send();
    });
    store.addEventListener("change", () => this.#draw());
  }

  async #add() {
    const field = byId("label-name");
    const { domain } = this.#store;
    const known = labelsOf(domain);
    const named = [...new Set(field.value.split(",").map(tidy))].filter((label) => label !== "");
    const labels = named.filter((label) => !known.includes(label));
    if (labels.length === 0) {
      if (named.length > 0) notify(`${quoted(named)} is there already.`);
      return;
    }
    // All labels, not only the new ones: so they keep their order and their colours.
    const done = () => {
      field.value = "";
      this.#told(`Looking for ${quoted(labels)}.`);
    };
    await attempt(() => this.#store.declare([...known, ...labels], domain.meanings, `the label ${quoted(labels)}`), done);
  }

  #switch(label) {
    const { domain } = this.#store;
    const { [label]: before, ...meanings } = domain.meanings;
    if (before !== null) meanings[label] = null;
    attempt(() => this.#store.declare(domain.declared, meanings, `the switch of “${label}”`));
  }

  #remove(label) {
    const { domain } = this.#store;
    const { [label]: _, ...meanings } = domain.meanings;
    const declared = domain.declared.filter((other) => other !== label);
    attempt(() => this.#store.declare(declared, meanings, `giving up “${label}”`), () => {
      byId("label-name").focus(); // The button that had it is gone.
      this.#told(`“${label}” is not looked for any more.`);
    });
  }

  #told(what) {
    notify(what, { name: "Undo", run: () => attempt(() => this.#store.undo()) });
  }

  #draw() {
    const { domain } = this.#store;
    const labels = labelsOf(domain);
    const before = this.#chips;
    this.#chips = new Map(labels.map((label) => [label, before.get(label) ?? this.#chip(label)]));
    for (const [label, chip] of this.#chips) chip.show(domain, hue(label, labels));
    const focused = document.activeElement;
    byId("legend").replaceChildren(...[...this.#chips.values()].map((chip) => chip.node));
    if (focused?.isConnected) focused.focus(); // Moving a node takes its focus away.
  }

  #chip(label) {
    const n = element("span", { class: "sure" });
    const title = "Its name makes the first guesses and fades as examples come. Switch it off if it says nothing.";
    const name = button("name", () => this.#switch(label), { class: "small", title, "aria-label": `Guess by the name of ${label}` });
    const remove = button("×", () => this.#remove(label), { class: "small", "aria-label": `Give up ${label}` });
    const node = element("li", {}, label, n, name, remove);
    const show = (domain, colour) => {
      const count = countOf(label, domain.examples);
      node.className = `chip ${colour}`;
      n.textContent = String(count);
      n.title = `${count} labelled`;
      name.setAttribute("aria-pressed", String(isNamed(label, domain)));
      remove.hidden = count > 0;
    };
    return { node, show };
  }
}

const quoted = (labels) => labels.map((label) => `“${label}”`).join(", ");
