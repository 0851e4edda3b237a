// Words and offsets. The API counts Unicode scalar values; JavaScript counts UTF-16 units, where 🎵 is two.
//
// A span of the API is {start, end, label} in scalar values. A word is {start, end} in UTF-16 units. A run is a span in
// words: {first, last, label, …}, both ends included.

const segmenter = new Intl.Segmenter("en", { granularity: "word" });
const graphemes = new Intl.Segmenter("en", { granularity: "grapheme" });
// The browser finds words of these scripts in a dictionary; the server takes every character for one.
const WITHOUT_BLANKS = /[\p{sc=Han}\p{sc=Hira}\p{sc=Thai}\p{sc=Laoo}\p{sc=Khmr}\p{sc=Mymr}]/u;
const INVISIBLE = /^[\s\p{Cc}\u200B\u2060\uFEFF]*$/u;
const ENDING = /['’](?:s|m|d|ll|ve|re)$/i;

/** The scalar values before UTF-16 unit `unit`. */
export function toScalar(text, unit) {
  let n = 0;
  for (const _ of text.slice(0, unit)) n += 1;
  return n;
}

/** The UTF-16 unit at which scalar value `scalar` begins. */
export function toUnit(text, scalar) {
  let unit = 0;
  for (const char of text) {
    if (scalar-- <= 0) break;
    unit += char.length;
  }
  return unit;
}

/**
 * The words of a text as the server splits it (Unicode word boundaries, English endings apart), cut also where a span begins
 * or ends: a file may bring words of its own.
 */
export function splitWords(text, spans = []) {
  const cuts = new Set(spans.flatMap((span) => [toUnit(text, span.start), toUnit(text, span.end)]));
  const words = [];
  for (const { segment, index } of segmenter.segment(text)) {
    if (INVISIBLE.test(segment)) continue;
    const end = index + segment.length;
    const ending = segment.match(ENDING);
    const inner = [...cuts].filter((cut) => cut > index && cut < end);
    if (ending && ending.index > 0) inner.push(index + ending.index);
    if (WITHOUT_BLANKS.test(segment)) inner.push(...Array.from(graphemes.segment(segment), (char) => index + char.index));
    const bounds = [...new Set([index, ...inner, end])].sort((a, b) => a - b);
    for (let i = 1; i < bounds.length; i++) words.push({ start: bounds[i - 1], end: bounds[i] });
  }
  return words;
}

/** The runs of the words that `spans` cover, from left to right. Other fields of a span are kept. */
export function runsOf(text, words, spans) {
  const runs = [];
  for (const span of spans) {
    const [start, end] = [toUnit(text, span.start), toUnit(text, span.end)];
    const first = words.findIndex((word) => word.start >= start && word.end <= end);
    const last = words.findLastIndex((word) => word.start >= start && word.end <= end);
    if (first >= 0) runs.push({ ...span, first, last });
  }
  return runs.sort((a, b) => a.first - b.first);
}

/** The span of the words `first` to `last`. */
export function spanOf(text, words, first, last, label) {
  return { start: toScalar(text, words[first].start), end: toScalar(text, words[last].end), label };
}

/** `spans` with `span` in place of those it touches; without a label it only makes room. */
export function withSpan(spans, span) {
  const others = spans.filter((other) => other.end <= span.start || other.start >= span.end);
  const all = span.label ? [...others, span] : others;
  return all.sort((a, b) => a.start - b.start);
}

/** The text of a span. */
export const textOf = (text, span) => text.slice(toUnit(text, span.start), toUnit(text, span.end));

/** What the API takes: nothing but start, end and label. */
export const bare = (spans) => spans.map(({ start, end, label }) => ({ start, end, label }));

export const sameSpans = (a, b) => JSON.stringify(bare(a)) === JSON.stringify(bare(b));

/** `spans` of `before` carried over to `after`: those before and behind the edit stay, those it touches go. */
export function carrySpans(before, after, spans) {
  const [a, b] = [[...before], [...after]];
  const shorter = Math.min(a.length, b.length);
  let head = 0;
  while (head < shorter && a[head] === b[head]) head++;
  let tail = 0;
  while (tail < shorter - head && a.at(-1 - tail) === b.at(-1 - tail)) tail++;
  const shift = b.length - a.length;
  return spans.flatMap((span) => {
    if (span.end <= head) return [span];
    if (span.start >= a.length - tail) return [{ ...span, start: span.start + shift, end: span.end + shift }];
    return [];
  });
}
