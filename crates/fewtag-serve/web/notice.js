// What the page has to say: one line at the foot, read aloud by screen readers, with an action where there is one.

import { button, byId, prose } from "./dom.js";
import { Conflict } from "./store.js";

const SECONDS = 8;
let timer;

/** Shows `text`; `action` is {name, run}. Errors stay until they are closed. */
export function notify(text, action = null, { isError = false } = {}) {
  clearTimeout(timer);
  const bar = byId("notice");
  const act = action && button(action.name, () => (hide(), action.run()), { class: "link" });
  byId("notice-text").textContent = text;
  byId("notice-actions").replaceChildren(...(act ? [act] : []), button("Close", hide, { class: "link quiet" }));
  bar.classList.toggle("error", isError);
  bar.classList.add("shown");
  if (!isError) timer = setTimeout(hide, SECONDS * 1000);
}

function hide() {
  byId("notice").classList.remove("shown");
  byId("notice-actions").replaceChildren();
}

/** `work` that runs once at a time: a second click while the first is under way does nothing. */
export function single(work) {
  let isBusy = false;
  return async () => {
    if (isBusy) return;
    isBusy = true;
    await work().finally(() => (isBusy = false));
  };
}

/** Runs `work`, then `done`; what goes wrong is told. After a conflict the user may have it run again, on the new version. */
export async function attempt(work, done = () => {}) {
  try {
    await work();
  } catch (error) {
    if (error.name === "AbortError") return;
    const again = error instanceof Conflict ? { name: "Apply my change", run: () => attempt(work, done) } : null;
    notify(prose(error.message), again, { isError: true });
    return;
  }
  done();
}
