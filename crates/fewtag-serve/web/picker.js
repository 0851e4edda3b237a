// The small menu that gives selected words a label.

import { button, byId, element } from "./dom.js";
import { hue, tidy } from "./labels.js";

let current = null; // What the open menu is for.

/**
 * Opens the menu beside `box`. `pick(label)` is called with a label, or null for none; `widen(-1 | 1)`, if given, takes one
 * more word before or after and returns the new quote; `close()` follows in every case.
 */
export function openPicker(options) {
  const menu = byId("picker");
  menu.hidePopover(); // Tells the one that was open before.
  current = options;
  draw(options.quote);
  menu.showPopover();
  place(menu, options.box);
  const input = byId("picker-new");
  // On a phone the field would raise the keyboard over the sentence; there the labels come first.
  const first = options.byTouch ? menu.querySelector(".choice") : null;
  (first ?? input).focus();
}

function draw(quote) {
  const { labels, widen } = current;
  byId("picker-quote").textContent = `“${quote}”`;
  byId("picker-new").value = "";
  for (const [id, step] of [["picker-before", -1], ["picker-after", 1]]) {
    byId(id).hidden = !widen;
    byId(id).onclick = () => (byId("picker-quote").textContent = `“${current.widen(step)}”`);
  }
  byId("picker-labels").replaceChildren(
    ...labels.map((label, i) => {
      const key = i < 9 ? element("kbd", { "aria-hidden": "true" }, String(i + 1)) : null;
      const isCurrent = label === current.label;
      const attributes = { class: `choice ${hue(label, labels)}`, "aria-pressed": String(isCurrent), type: "button" };
      return element("button", { ...attributes, onclick: () => done(label) }, label, key);
    }),
    ...(current.label ? [button("No label", () => done(null), { class: "choice none" })] : []),
  );
}

function done(label) {
  const { pick } = current;
  byId("picker").hidePopover();
  pick(label);
}

function place(menu, box) {
  const margin = 8;
  const { width, height } = menu.getBoundingClientRect();
  const left = Math.max(margin, Math.min(box.left, innerWidth - width - margin));
  const isBelow = box.bottom + height + margin < innerHeight || box.top < height + margin;
  menu.style.left = `${left}px`;
  menu.style.top = `${isBelow ? Math.min(box.bottom + 6, innerHeight - height - margin) : box.top - height - 6}px`;
}

/** Connects the menu of index.html; call once. */
export function connectPicker() {
  const menu = byId("picker");
  byId("picker-form").addEventListener("submit", (event) => {
    event.preventDefault();
    const label = tidy(byId("picker-new").value);
    if (label) done(label);
  });
  menu.addEventListener("keydown", (event) => {
    const label = current.labels[Number(event.key) - 1];
    if (label && byId("picker-new").value === "") {
      event.preventDefault();
      done(label);
    }
  });
  menu.addEventListener("toggle", (event) => {
    if (event.newState === "closed" && !menu.matches(":popover-open")) current.close();
  });
}
