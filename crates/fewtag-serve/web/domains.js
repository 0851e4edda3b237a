// The head of the page: choose, create and delete a domain; import and export its examples; undo.

import * as api from "./api.js";
import { byId, count, element } from "./dom.js";
import { attempt, notify } from "./notice.js";
import { MUSIC } from "./sample.js";
import { contentOf } from "./store.js";

/** The data formats that hold a domain, and the endings of their files. */
const FORMATS = {
  inline: "txt",
  conll: "conll",
  spacy: "jsonl",
  doccano: "jsonl",
  labelstudio: "json",
  hf: "jsonl",
  gliner: "json",
  rasa: "yml",
  snips: "json",
  "snips-yaml": "yaml",
};

export class Domains {
  #store;
  #names = [];

  constructor(store) {
    this.#store = store;
    for (const select of ["import-format", "export-format"]) {
      byId(select).append(...Object.keys(FORMATS).map((format) => element("option", {}, format)));
    }
    byId("domain").addEventListener("change", (event) => attempt(() => this.#goTo(event.target.value)));
    byId("new-domain").addEventListener("click", () => byId("create-dialog").showModal());
    byId("undo").addEventListener("click", () => this.#undo());
    byId("import").addEventListener("click", () => byId("import-dialog").showModal());
    byId("export").addEventListener("click", () => byId("export-dialog").showModal());
    byId("delete").addEventListener("click", () => this.#confirmDelete());
    byId("sample").addEventListener("click", () => attempt(() => this.#create("music", { examples: MUSIC })));
    onSubmit("welcome-form", () => this.#create(byId("welcome-name").value.trim()));
    onSubmit("create-form", () => this.#create(byId("create-name").value.trim()), "create-dialog");
    onSubmit("import-form", () => this.#import(), "import-dialog");
    onSubmit("export-form", () => this.#export(), "export-dialog");
    onSubmit("delete-form", () => this.#delete(), "delete-dialog");
    for (const close of document.querySelectorAll("dialog .cancel")) {
      close.addEventListener("click", () => close.closest("dialog").close());
    }
    document.addEventListener("keydown", (event) => {
      const isUndo = (event.ctrlKey || event.metaKey) && !event.shiftKey && event.key.toLowerCase() === "z";
      if (isUndo && !event.target.matches("input, textarea")) this.#undo();
    });
    addEventListener("popstate", () => attempt(() => this.#openFromAddress()));
    store.addEventListener("change", () => this.#draw());
  }

  /** Lists the domains and opens the one in the address, or the first. */
  async start() {
    await this.#list();
    await this.#openFromAddress();
  }

  async #list() {
    this.#names = (await api.listDomains()).map((domain) => domain.name);
  }

  async #openFromAddress() {
    const wanted = new URLSearchParams(location.search).get("domain");
    if (!this.#names.includes(wanted)) await this.#list(); // It may have been made elsewhere.
    const name = this.#names.includes(wanted) ? wanted : this.#names[0];
    if (name === undefined) this.#store.close();
    else if (name !== this.#store.domain?.name) await this.#store.open(name);
    else this.#draw();
  }

  async #goTo(name) {
    history.pushState(null, "", `?${new URLSearchParams({ domain: name })}`);
    await this.#openFromAddress();
  }

  async #create(name, content = {}) {
    if (name === "") return;
    await api.createDomain(name, content);
    await this.#goTo(name);
    notify(`Domain “${name}” created.`);
    byId("draft-text").focus();
  }

  async #import() {
    const [file] = byId("import-file").files;
    const before = this.#store.domain.examples.length;
    const form = new FormData(byId("import-form"));
    const [mode, repair] = [form.get("mode"), form.has("repair")];
    const { notes = [] } = await this.#store.import(file, { format: byId("import-format").value, mode, repair });
    const n = this.#store.domain.examples.length - (mode === "append" ? before : 0);
    notify([`${count(n, "example")} read from ${file.name}.`, ...notes].join(" "), { name: "Undo", run: () => this.#undo() });
  }

  async #export() {
    const format = byId("export-format").value;
    const { name } = this.#store.domain;
    const url = URL.createObjectURL(await api.exportFile(name, format));
    element("a", { href: url, download: `${name}.${FORMATS[format]}` }).click();
    URL.revokeObjectURL(url);
  }

  #confirmDelete() {
    const { name, examples } = this.#store.domain;
    byId("delete-question").textContent = `Delete “${name}” and its ${count(examples.length, "example")}?`;
    byId("delete-dialog").showModal();
  }

  async #delete() {
    const { name, etag } = this.#store.domain;
    const content = contentOf(this.#store.domain);
    await api.deleteDomain(name, etag);
    history.replaceState(null, "", location.pathname);
    await this.start();
    const examples = content.examples.map(({ text, spans }) => ({ text, spans }));
    notify(`Domain “${name}” deleted.`, { name: "Undo", run: () => attempt(() => this.#create(name, { ...content, examples })) });
  }

  #undo() {
    const what = this.#store.undoable;
    if (what) attempt(() => this.#store.undo(), () => notify(`Took back ${what}.`));
  }

  #draw() {
    const { domain, undoable } = this.#store;
    const options = this.#names.map((name) => element("option", { value: name, selected: name === domain?.name }, name));
    byId("domain").replaceChildren(...options);
    document.body.classList.toggle("has-domain", domain !== null);
    byId("welcome").hidden = domain !== null;
    byId("work").hidden = domain === null;
    byId("undo").disabled = undoable === null;
    byId("undo").title = undoable ? `Take back ${undoable} (Ctrl+Z)` : "Nothing to take back";
    byId("title").textContent = `Domain ${domain?.name}`;
    document.title = domain ? `${domain.name} · fewtag` : "fewtag";
  }
}

/** Closes the dialog when its form is sent, and runs `work`; the form keeps what was typed until that went well. */
function onSubmit(form, work, dialog = null) {
  byId(form).addEventListener("submit", (event) => {
    event.preventDefault();
    if (dialog) byId(dialog).close();
    attempt(work, () => byId(form).reset());
  });
}
