// The open domain as the server has it, and the way back.
//
// Every change names the version it was made on (If-Match), so two people cannot overwrite each other. An undo step is what the
// domain held before the change; steps are forgotten when somebody else has changed the domain, because going
// back would undo their work too.

import * as api from "./api.js";

/** Somebody else changed the domain first. The store has their version now; the same change can be made on it. */
export class Conflict extends Error {
  constructor(name) {
    super(`Somebody else changed “${name}”. You now see their version; your change is not in it yet.`);
  }
}

/** All that a domain holds, as the API takes it. */
export const contentOf = ({ examples, declared, meanings }) => ({ examples, labels: declared, meanings });

/** Tells `change` when the domain is another or has changed. */
export class Store extends EventTarget {
  /** {name, version, etag, labels, declared, meanings, tuned, examples}, or null. */
  domain = null;
  #steps = [];

  /** What undo would take back, or null. */
  get undoable() {
    return this.#steps.at(-1)?.what ?? null;
  }

  async open(name) {
    this.#steps = [];
    await this.#read(name);
  }

  close() {
    this.domain = null;
    this.#steps = [];
    this.#tell();
  }

  /** Reads the domain again; somebody else's changes end the undo steps. */
  async refresh() {
    const { etag } = this.domain;
    await this.#read(this.domain.name);
    if (this.domain.etag !== etag) this.#steps = [];
    this.#tell();
  }

  add(example) {
    return this.#change("the new example", (name, etag) => api.addExample(name, example, etag));
  }

  replace(id, example, what = "the label") {
    return this.#change(what, (name, etag) => api.replaceExample(name, id, example, etag));
  }

  remove(id) {
    return this.#change("removing the example", (name, etag) => api.deleteExample(name, id, etag));
  }

  /** Says which labels are looked for by name, and what they mean. */
  declare(labels, meanings, what) {
    return this.#change(what, (name, etag) => api.declareLabels(name, { labels, meanings }, etag));
  }

  import(file, how) {
    return this.#change("the import", (name, etag) => api.importFile(name, file, how, etag));
  }

  /** Goes back to the weights before the latest tuning; the examples stay. */
  untune() {
    return this.#change(null, (name, etag) => api.undoTuning(name, etag));
  }

  async undo() {
    const step = this.#steps.at(-1);
    if (!step) return;
    await this.#change(null, (name, etag) => api.replaceDomain(name, step.before, etag));
    this.#steps.pop();
    this.#tell();
  }

  /** Sends a change; `what` names its undo step, null if it is one. */
  async #change(what, send) {
    const { name, etag } = this.domain;
    const before = contentOf(this.domain);
    let made;
    try {
      made = await send(name, etag);
    } catch (error) {
      if (error.status !== 412) throw error;
      await this.refresh();
      if (what === null) throw new Error(`Somebody else changed “${name}”, so there is no way back from here.`);
      throw new Conflict(name);
    }
    await this.#read(name, false);
    if (this.domain.etag !== made.etag) this.#steps = [];
    else if (what) this.#steps.push({ what, before });
    this.#tell();
    return made.data;
  }

  async #read(name, tell = true) {
    const { data, etag } = await api.readDomain(name);
    this.domain = { ...data, etag };
    if (tell) this.#tell();
  }

  #tell() {
    this.dispatchEvent(new Event("change"));
  }
}
