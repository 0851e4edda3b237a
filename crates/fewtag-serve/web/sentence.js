// A sentence whose words can be selected: by mouse or finger (press, drag, release), or by keys.
//
// It is a toolbar of word buttons: Tab enters it once, arrows move, Shift+arrow extends, Enter asks for a label, Delete takes one
// away, 1…9 give the first labels at once.

import { element, percent } from "./dom.js";
import { hue } from "./labels.js";
import { runsOf, splitWords } from "./text.js";

export class Sentence {
  #text = "";
  #words = [];
  #runs = [];
  #anchor = 0; // Where the selection began, and
  #cursor = 0; // where it is now, both as words.
  #isDragging = false;
  #on;

  /**
   * `on` holds the listeners: `select(first, last, {byTouch})` for words to be labelled, `open(run)` for a click on a labelled
   * one, `remove(run)` and `digit(n, first, last)` for keys.
   */
  constructor(name, on) {
    this.#on = on;
    this.node = element("div", { class: "sentence", role: "toolbar", "aria-label": name, dir: "auto" });
    const { node } = this;
    node.addEventListener("pointerdown", (event) => this.#press(event));
    node.addEventListener("pointermove", (event) => this.#drag(event));
    node.addEventListener("pointerup", (event) => this.#release(event));
    node.addEventListener("pointercancel", () => this.clear());
    node.addEventListener("click", (event) => event.detail === 0 && this.#activate(false));
    node.addEventListener("keydown", (event) => this.#key(event));
  }

  /** Shows a text, its spans and, where they have one, their probability. */
  show(text, spans, labels) {
    const hadFocus = this.node.contains(document.activeElement);
    this.#text = text;
    this.#words = splitWords(text, spans);
    this.#runs = runsOf(text, this.#words, spans);
    this.#cursor = Math.max(0, Math.min(this.#cursor, this.#words.length - 1));
    this.#anchor = this.#cursor;
    this.#draw(labels);
    if (hadFocus) this.focus();
  }

  get words() {
    return this.#words;
  }

  focus() {
    this.#button(this.#cursor)?.focus();
  }

  /** Selects words, for instance one more than before. */
  select(first, last) {
    this.#anchor = first;
    this.#cursor = last;
    this.#mark(true);
  }

  clear() {
    this.#isDragging = false;
    this.#anchor = this.#cursor;
    this.#mark(false);
  }

  /** The box of the selected words, to put a menu beside it. */
  get anchorBox() {
    return this.#button(this.#cursor).getBoundingClientRect();
  }

  #draw(labels) {
    const nodes = [];
    let parent = nodes;
    let done = 0;
    this.#words.forEach((word, i) => {
      const gap = this.#text.slice(done, word.start);
      const run = this.#runs.find((run) => i >= run.first && i <= run.last);
      if (gap) parent.push(gap);
      if (run?.first === i) parent = [];
      const name = run ? `${this.#text.slice(word.start, word.end)}, ${run.label}` : null;
      const text = this.#text.slice(word.start, word.end);
      const attributes = { type: "button", class: "word", "data-i": i, tabindex: "-1", "aria-label": name };
      parent.push(element("button", attributes, text));
      if (run?.last === i) {
        nodes.push(drawRun(run, parent, labels));
        parent = nodes;
      }
      done = word.end;
    });
    this.node.replaceChildren(...nodes, this.#text.slice(done));
    this.#mark(false);
  }

  #button(i) {
    return this.node.querySelector(`[data-i="${i}"]`);
  }

  get #range() {
    return [Math.min(this.#anchor, this.#cursor), Math.max(this.#anchor, this.#cursor)];
  }

  /** Brings the buttons in line with the selection; a lone cursor is no selection unless `always`. */
  #mark(always) {
    const [first, last] = this.#range;
    for (const button of this.node.querySelectorAll(".word")) {
      const i = Number(button.dataset.i);
      button.setAttribute("aria-pressed", String((always || first < last) && i >= first && i <= last));
      button.tabIndex = i === this.#cursor ? 0 : -1;
    }
  }

  #wordAt(event) {
    const button = document.elementFromPoint(event.clientX, event.clientY)?.closest(".word");
    return button && this.node.contains(button) ? Number(button.dataset.i) : null;
  }

  #press(event) {
    const i = this.#wordAt(event);
    if (i === null || event.button !== 0) return;
    event.preventDefault(); // The browser's own text selection would fight with ours.
    this.node.setPointerCapture(event.pointerId); // The release may happen anywhere.
    this.#isDragging = true;
    if (!event.shiftKey) this.#anchor = i;
    this.#cursor = i;
    this.#mark(true);
    this.focus();
  }

  #drag(event) {
    const i = this.#isDragging ? this.#wordAt(event) : null;
    if (i === null || i === this.#cursor) return;
    this.#cursor = i;
    this.#mark(true);
  }

  #release(event) {
    if (!this.#isDragging) return;
    this.#isDragging = false;
    const byTouch = event.pointerType === "touch";
    setTimeout(() => this.#activate(byTouch)); // Newer browsers close menus after this event, one that it opened among them.
  }

  #activate(byTouch) {
    const [first, last] = this.#range;
    const run = this.#runs.find((run) => first >= run.first && last <= run.last);
    if (run && first === last) {
      this.clear();
      this.#on.open(run);
    } else {
      this.#mark(true);
      this.#on.select(first, last, { byTouch });
    }
  }

  #key(event) {
    const isRightToLeft = getComputedStyle(this.node).direction === "rtl";
    const step = { ArrowRight: isRightToLeft ? -1 : 1, ArrowLeft: isRightToLeft ? 1 : -1, Home: -Infinity, End: Infinity }[event.key];
    const [first, last] = this.#range;
    const run = this.#runs.find((run) => this.#cursor >= run.first && this.#cursor <= run.last);
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    if (step) {
      this.#cursor = Math.max(0, Math.min(this.#cursor + step, this.#words.length - 1));
      if (!event.shiftKey) this.#anchor = this.#cursor;
      this.#mark(false);
      this.focus();
    } else if ((event.key === "Delete" || event.key === "Backspace") && run) {
      this.#on.remove(run);
    } else if (/^[1-9]$/.test(event.key)) {
      this.#on.digit(Number(event.key), first, last);
    } else if (event.key === "Escape") {
      this.clear();
    } else {
      return;
    }
    event.preventDefault();
  }
}

function drawRun(run, words, labels) {
  const isUnsure = run.probability < 0.5;
  const sure = run.probability === undefined ? null : element("span", { class: "sure" }, percent(run.probability));
  const name = element("span", { class: "name", "aria-hidden": "true" }, run.label, sure);
  const tail = element("span", { class: "tail" }, words.pop(), name); // The name stays on the line of the last word.
  return element("span", { class: `run ${hue(run.label, labels)}${isUnsure ? " unsure" : ""}` }, words, tail);
}
