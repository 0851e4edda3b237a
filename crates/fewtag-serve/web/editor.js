// A sentence with its menu: what is selected gets a label, and the owner hears of the new spans.

import { openPicker } from "./picker.js";
import { Sentence } from "./sentence.js";
import { spanOf, textOf, withSpan } from "./text.js";

export class Editor {
  #text = "";
  #spans = [];
  #labels = [];
  #changed;
  #sentence;

  /** `changed(spans)` is called after an edit; `open(span)`, if given, replaces the menu for a labelled word. */
  constructor(name, { changed, open }) {
    this.#changed = changed;
    this.#sentence = new Sentence(name, {
      select: (first, last, how) => this.#ask(first, last, how),
      open: (run) => (open ? open(run) : this.#ask(run.first, run.last, { label: run.label })),
      remove: (run) => this.#give(run.first, run.last, null),
      digit: (n, first, last) => this.#labels[n - 1] && this.#give(first, last, this.#labels[n - 1]),
    });
    this.node = this.#sentence.node;
  }

  show(text, spans, labels) {
    this.#text = text;
    this.#spans = spans;
    this.#labels = labels;
    this.#sentence.show(text, spans, labels);
  }

  focus() {
    this.#sentence.focus();
  }

  #ask(first, last, { byTouch = false, label = null }) {
    const sentence = this.#sentence;
    const quote = () => textOf(this.#text, spanOf(this.#text, sentence.words, first, last));
    const widen = (step) => {
      if (step < 0) first = Math.max(0, first - 1);
      else last = Math.min(sentence.words.length - 1, last + 1);
      sentence.select(first, last);
      return quote();
    };
    sentence.select(first, last);
    openPicker({
      box: sentence.anchorBox,
      quote: quote(),
      labels: this.#labels,
      label,
      byTouch,
      widen,
      pick: (label) => this.#give(first, last, label),
      close: () => sentence.clear(),
    });
  }

  #give(first, last, label) {
    this.#changed(withSpan(this.#spans, spanOf(this.#text, this.#sentence.words, first, last, label)));
  }
}
