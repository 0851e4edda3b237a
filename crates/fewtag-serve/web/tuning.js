// Tuning: a button, how far it has come, the model before and after side by side, and the way back.
//
// The server tunes in the background; the page asks how it stands while something is under way. Whatever becomes of it, the domain
// can be worked on meanwhile.

import * as api from "./api.js";
import { byId, count, element, prose } from "./dom.js";
import { attempt, notify, single } from "./notice.js";

const PAUSE = 1000; // Milliseconds between two questions.
const FEWEST = 10; // Examples that it takes; the server has the last word.
const UNDER_WAY = new Set(["queued", "running"]);

export class Tuning {
  #store;
  #of = null; // The name of the domain that is shown.
  #status = null; // As the server has it, or null while it is not known.
  #timer;

  constructor(store) {
    this.#store = store;
    onClick("tune-start", () => this.#start());
    onClick("tune-cancel", () => this.#cancel());
    onClick("tune-undo", () => this.#undo());
    store.addEventListener("change", () => this.#domainChanged());
  }

  #domainChanged() {
    const name = this.#store.domain?.name ?? null;
    if (name !== this.#of) {
      this.#of = name;
      this.#status = null;
      if (name !== null) this.#ask();
    }
    this.#draw();
  }

  /** Asks how it stands, and again while something is under way. */
  async #ask() {
    clearTimeout(this.#timer);
    const name = this.#of;
    const wasUnderWay = UNDER_WAY.has(this.#status?.state);
    try {
      const status = await api.readTuning(name);
      if (name !== this.#of) return;
      this.#status = status;
      if (wasUnderWay && !UNDER_WAY.has(status.state)) await this.#ended();
    } catch {
      // A server that does not answer is told of by whatever else the user does; it may be back later.
    }
    if (name !== this.#of) return;
    if (UNDER_WAY.has(this.#status?.state)) this.#timer = setTimeout(() => this.#ask(), PAUSE);
    this.#draw();
  }

  async #ended() {
    if (this.#status.state !== "tuned") return;
    await this.#store.refresh();
    notify("The domain is tuned. All answers follow.", { name: "Undo", run: () => this.#undo() });
  }

  async #start() {
    const { name, etag } = this.#store.domain;
    await attempt(async () => (this.#status = await api.startTuning(name, etag)));
    if (name === this.#of) await this.#ask();
  }

  async #cancel() {
    const name = this.#of;
    await attempt(async () => (this.#status = await api.cancelTuning(name)), () => notify("Tuning cancelled. The domain is as it was."));
    if (name === this.#of) await this.#ask();
  }

  async #undo() {
    await attempt(() => this.#store.untune(), () => notify("The tuning is undone. The examples stay."));
    await this.#ask();
  }

  #draw() {
    const { domain } = this.#store;
    if (domain === null) return;
    const { state = null, progress = null, report = null, message = null } = this.#status ?? {};
    const isUnderWay = UNDER_WAY.has(state);
    const isEnough = domain.examples.length >= FEWEST;
    byId("tune-start").hidden = isUnderWay;
    byId("tune-start").disabled = !isEnough;
    byId("tune-start").textContent = domain.tuned ? "Tune again" : "Tune";
    byId("tune-cancel").hidden = !isUnderWay;
    byId("tune-undo").hidden = !domain.tuned;
    byId("tune-progress").hidden = !isUnderWay;
    byId("tune-progress").value = progress?.done ?? 0;
    say("tune-status", standing(state, domain.tuned, progress));
    say("tune-hint", isUnderWay ? seen(progress) : isEnough ? prose(message ?? "") : `It takes ${FEWEST} examples or more.`);
    const isShown = !isUnderWay && report !== null && state !== "cancelled";
    byId("tune-report").replaceChildren(...(isShown ? [table(report)] : []));
  }
}

const onClick = (id, work) => byId(id).addEventListener("click", single(work));

/** Puts text where it is read aloud when it changes, and only then. */
function say(id, text) {
  if (byId(id).textContent !== text) byId(id).textContent = text;
  byId(id).hidden = text === "";
}

const STANDING = {
  not_worth_it: "Not worth it: the model stays as it is.",
  failed: "It failed.",
  cancelled: "Cancelled.",
  lost: "Lost: the server ended several times.",
};

function standing(state, tuned, progress) {
  if (state === "queued") return "Waiting for its turn.";
  if (state === "running") return `${Math.round(100 * (progress?.done ?? 0))} % done.`;
  if (state === "tuned" && !tuned) return "Undone.";
  if (tuned) return `Tuned: F1 ${f1(tuned.figures.tuned)} instead of ${f1(tuned.figures.untuned)}.`;
  return STANDING[state] ?? "";
}

/** What was seen last, while it runs. */
function seen(progress) {
  const last = progress?.curve.at(-1);
  if (progress?.stage === "final") return "Now with all examples.";
  if (!last) return "Judging the model as it is.";
  const tuned = last.tuned.length > 0 ? `, now ${last.tuned.at(-1).toFixed(1)}` : "";
  return `Way ${last.run} of ${progress.runs}, part ${last.fold} of ${progress.folds}: F1 was ${last.untuned.toFixed(1)}${tuned}.`;
}

const f1 = ({ f1, spread }) => `${f1.toFixed(1)} ± ${spread.toFixed(1)}`;

/** Before and after, label by label, on sentences that were left out. */
function table({ judged, untuned, labels, candidates, best }) {
  const cell = (text) => element("td", {}, text);
  const head = ["Label", "Times", "Before", "After"].map((text) => element("th", { scope: "col" }, text));
  const row = (name, n, before, after) => {
    const change = after === null || after === before ? "" : after > before ? "better" : "worse";
    const cells = [cell(String(n)), cell(before.toFixed(1)), element("td", { class: change }, after === null ? "–" : after.toFixed(1))];
    return element("tr", {}, element("th", { scope: "row" }, name), ...cells);
  };
  const rows = labels.map(({ label, n_spans, untuned, tuned }) => row(label, n_spans, untuned, tuned ?? null));
  const all = labels.reduce((sum, { n_spans }) => sum + n_spans, 0);
  const score = best === null ? null : candidates[best].score;
  const total = [cell(String(all)), cell(f1(untuned)), cell(score === null ? "–" : f1(score))];
  rows.push(element("tr", { class: "all" }, element("th", { scope: "row" }, "All labels"), ...total));
  const caption = element("caption", {}, `F1 on ${count(judged, "sentence")} that were left out in turn`);
  return element("table", {}, caption, element("thead", {}, element("tr", {}, ...head)), element("tbody", {}, ...rows));
}
