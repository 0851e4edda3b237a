// A label's colour: its place among the labels in order of appearance, so that a new label changes no other's colour.

const N_HUES = 8; // As many as style.css has `.hue-…`.

/** The labels of the examples, in order of appearance. */
export function labelsOf(examples) {
  return [...new Set(examples.flatMap((example) => example.spans.map((span) => span.label)))];
}

/** The class that colours `label`. */
export function hue(label, labels) {
  const place = labels.indexOf(label);
  return `hue-${(place < 0 ? labels.length : place) % N_HUES}`;
}
