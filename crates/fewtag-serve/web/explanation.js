// Why a span has its tag: what each word of the examples said for each of its words, what the transitions added, and what
// came second. The parts sum to the score.

import { button, element, percent } from "./dom.js";
import { hue } from "./labels.js";
import { splitWords, textOf, toUnit } from "./text.js";

const number = (value) => value.toFixed(2).replace("-", "−");

/** The panel for an answer {text, span, domain, labels}. `on` holds `correct(label | null)`, `other()` and `close()`. */
export function explanation(answer, on) {
  const { text, span, labels } = answer;
  const tag = element("span", { class: `chip ${hue(span.label, labels)}` }, span.label);
  const quote = textOf(text, span);
  const title = element("h3", {}, `Why is “${quote}” `, tag, "?");
  const head = element("div", { class: "why-head" }, title, button("Close", on.close, { class: "quiet" }));
  const panel = element("section", { "aria-label": `Why “${quote}” is ${span.label}` }, head, summary(span));
  panel.append(heatMap(answer), correction(span, labels, on));
  return panel;
}

function summary({ probability, explanation: why }) {
  const second = why.runner_up?.label ?? "no label";
  const rows = [
    ["Confidence", percent(probability)],
    ["Examples", number(why.examples)],
    ["Transitions", number(why.transitions)],
    ["Score", number(why.score)],
    why.runner_up ? [`Next best: ${second}`, `${number(why.runner_up.margin)} behind`] : ["Next best", "nothing else was possible"],
  ];
  const title = "The score is what the examples say plus what the order of tags (the transitions) adds.";
  const entry = ([name, value]) => element("div", {}, element("dt", {}, name), element("dd", {}, value));
  return element("dl", { title, class: "sum" }, rows.map(entry));
}

/**
 * Rows are the words of the examples that spoke, under their sentence; columns are the words of the span. A cell is what one
 * gave to the other; it is empty where a word could not speak, as the first word of an example's span for a later one here.
 */
function heatMap({ text, span, domain, labels }) {
  const { voices } = span.explanation;
  const columns = wordsOf(text, span);
  const strongest = Math.max(...voices.flatMap((voice) => voice.words).map(Math.abs), Number.MIN_VALUE);
  const hasSums = voices.some((voice) => voice.words.filter((value) => value !== 0).length > 1);
  const row = (voice) =>
    element(
      "tr",
      {},
      element("th", { scope: "row" }, voice.label_name ? "the label’s name" : voice.text),
      voice.words.map((value) => cell(value, strongest)),
      hasSums && element("td", { class: "together" }, number(voice.score)),
    );
  const title = (sentence) => {
    const quote = quoted(domain.examples[sentence], span.label, labels);
    return element("tr", { class: "source" }, element("th", { scope: "rowgroup", colspan: columns.length + 2 }, quote));
  };
  const names = ["", ...columns, ...(hasSums ? ["together"] : [])];
  const head = element("tr", {}, names.map((name) => element(name ? "th" : "td", name ? { scope: "col" } : {}, name)));
  const group = ([sentence, voices]) => element("tbody", {}, sentence === undefined ? null : title(sentence), voices.map(row));
  const caption = element("caption", {}, `Who spoke for ${span.label}`);
  const table = element("table", { class: "heat" }, caption, element("thead", {}, head), bySentence(voices).map(group));
  return element("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": "Heat map" }, table);
}

/** The words of the span, as the server counts them. */
function wordsOf(text, span) {
  const [start, end] = [toUnit(text, span.start), toUnit(text, span.end)];
  const words = splitWords(text, [span]).filter((word) => word.start >= start && word.end <= end);
  return words.map((word) => text.slice(word.start, word.end));
}

/** Loudest sentence first; voices of no sentence, such as a label's name, last. */
function bySentence(voices) {
  const groups = new Map();
  for (const voice of voices) groups.set(voice.sentence, [...(groups.get(voice.sentence) ?? []), voice]);
  const loudness = ([, voices]) => voices.reduce((sum, voice) => sum + voice.score, 0);
  return [...groups].sort((a, b) => (a[0] === undefined) - (b[0] === undefined) || loudness(b) - loudness(a));
}

function cell(value, strongest) {
  if (value === 0) return element("td", {});
  const heat = `${Math.round((Math.abs(value) / strongest) * 100)}%`;
  return element("td", { class: value < 0 ? "against" : "for", "--heat": heat }, number(value));
}

/** The example's text with its spans of `label` marked. */
function quoted({ text, spans }, label, labels) {
  const chars = [...text];
  const parts = [];
  let done = 0;
  for (const span of spans.filter((span) => span.label === label)) {
    const marked = chars.slice(span.start, span.end).join("");
    parts.push(chars.slice(done, span.start).join(""), element("mark", { class: hue(label, labels) }, marked));
    done = span.end;
  }
  return [...parts, chars.slice(done).join("")];
}

function correction(span, labels, on) {
  const choices = labels
    .filter((label) => label !== span.label)
    .map((label) => button(label, () => on.correct(label), { class: `choice ${hue(label, labels)}` }));
  const none = button("no label", () => on.correct(null), { class: "choice none" });
  const other = button("another…", on.other, { class: "choice none" });
  const attributes = { class: "should", role: "group", "aria-label": "Correct this tag" };
  return element("div", attributes, element("span", {}, "It should be"), choices, none, other);
}
