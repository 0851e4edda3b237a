// Builds elements without HTML strings, so that no text of a user can become markup.

/**
 * An element. Attributes named `on…` are listeners, `--…` are CSS variables; `false`, `null` and `undefined` are left out.
 * Children are nodes or text; `null` and `false` are left out.
 */
export function element(tag, attributes = {}, ...children) {
  const node = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (value === false || value === null || value === undefined) continue;
    if (name.startsWith("on")) node.addEventListener(name.slice(2), value);
    else if (name.startsWith("--")) node.style.setProperty(name, value); // The policy forbids style attributes, not this.
    else node.setAttribute(name, value === true ? "" : value);
  }
  node.append(...children.flat().filter((child) => child !== null && child !== false));
  return node;
}

/** A push button. */
export function button(text, onclick, attributes = {}) {
  return element("button", { type: "button", onclick, ...attributes }, text);
}

export const byId = (id) => document.getElementById(id);

/** `1 example`, `2 examples`. */
export const count = (n, noun) => `${n} ${noun}${n === 1 ? "" : "s"}`;

/** A probability as people read it; 99.96 % is not certainty. */
export function percent(probability) {
  if (probability > 0.995 && probability < 1) return ">99 %";
  if (probability > 0 && probability < 0.005) return "<1 %";
  return `${Math.round(probability * 100)} %`;
}

/** A message of the server as a sentence of the page: a capital first, quotes for back ticks. */
export const prose = (text) => text.replace(/`([^`]*)`/g, "“$1”").replace(/^\p{Ll}/u, (first) => first.toUpperCase());
