import { expect, test } from "@playwright/test";
import { carrySpans, runsOf, spanOf, splitWords, textOf, toScalar, toUnit, withSpan } from "../web/text.js";

const words = (text, spans) => splitWords(text, spans).map(({ start, end }) => text.slice(start, end));

test("scalar values and UTF-16 units are each other's inverse at every character", () => {
  const text = "a🎵é👩‍👧𝒏 z";
  let unit = 0;
  [...text, ""].forEach((char, scalar) => {
    expect(toUnit(text, scalar)).toBe(unit);
    expect(toScalar(text, unit)).toBe(scalar);
    unit += char.length;
  });
});

test("words are those of the server", () => {
  // The example of crates/fewtag/src/words.rs.
  expect(words("Play Nina's «Sinnerman», 10.30 pm!")).toEqual(["Play", "Nina", "'s", "«", "Sinnerman", "»", ",", "10.30", "pm", "!"]);
  expect(words("東京で jazz")).toEqual(["東", "京", "で", "jazz"]);
  expect(words(" \u200B\t")).toEqual([]);
});

test("a span that cuts a word cuts it on the page too", () => {
  const spans = [{ start: 1, end: 3, label: "x" }];
  expect(words("abcd ef", spans)).toEqual(["a", "bc", "d", "ef"]);
  expect(runsOf("abcd ef", splitWords("abcd ef", spans), spans)).toEqual([{ ...spans[0], first: 1, last: 1 }]);
});

test("a selection of words is a span of their text", () => {
  const text = "🎷 play nina simone 🎵";
  const span = spanOf(text, splitWords(text), 2, 3, "artist");
  expect(span).toEqual({ start: 7, end: 18, label: "artist" });
  expect(textOf(text, span)).toBe("nina simone");
});

test("a new span takes the place of those it touches", () => {
  const spans = [{ start: 0, end: 2, label: "a" }, { start: 3, end: 5, label: "b" }];
  expect(withSpan(spans, { start: 4, end: 8, label: "c" })).toEqual([spans[0], { start: 4, end: 8, label: "c" }]);
  expect(withSpan(spans, { start: 3, end: 5, label: null })).toEqual([spans[0]]);
});

test("spans follow an edit beside them and end with an edit inside them", () => {
  const spans = [{ start: 0, end: 2, label: "a" }, { start: 5, end: 7, label: "b" }];
  expect(carrySpans("🎵x - yz", "🎵x 🎷- yz", spans)).toEqual([spans[0], { start: 6, end: 8, label: "b" }]);
  expect(carrySpans("🎵x - yz", "🎵x - y!z", spans)).toEqual([spans[0]]);
  expect(carrySpans("aa", "aaa", [{ start: 0, end: 2, label: "a" }])).toEqual([{ start: 0, end: 2, label: "a" }]);
});
