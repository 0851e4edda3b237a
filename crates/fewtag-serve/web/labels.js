// The labels of a domain. A label's colour is its place among them, so that a new label changes no other's colour.

const N_HUES = 8; // As many as style.css has `.hue-…`.

/** The labels of a domain, which may be null: those declared by name, then those of its examples and of `more` in order of appearance. */
export function labelsOf(domain, more = []) {
  const examples = [...(domain?.examples ?? []), ...more];
  return [...new Set([...(domain?.declared ?? []), ...examples.flatMap((example) => example.spans.map((span) => span.label))])];
}

/** How often the examples give `label`. */
export function countOf(label, examples) {
  return examples.reduce((sum, example) => sum + example.spans.filter((span) => span.label === label).length, 0);
}

/** Whether the name of `label` speaks for it. */
export const isNamed = (label, domain) => domain.meanings[label] !== null;

/** Whether there is a label that an example or its name speaks for. */
export const isReady = (domain) =>
  domain !== null && labelsOf(domain).some((label) => isNamed(label, domain) || countOf(label, domain.examples) > 0);

/** A label without blanks, which the data formats cannot hold. */
export const tidy = (name) => name.trim().replace(/\s+/g, "_");

/** The class that colours `label`. */
export function hue(label, labels) {
  const place = labels.indexOf(label);
  return `hue-${(place < 0 ? labels.length : place) % N_HUES}`;
}
