// The playground: connects the parts of the page to one store.

import { onKeyNeeded } from "./api.js";
import { byId } from "./dom.js";
import { Domains } from "./domains.js";
import { Examples } from "./examples.js";
import { Names } from "./names.js";
import { attempt } from "./notice.js";
import { connectPicker } from "./picker.js";
import { Store } from "./store.js";
import { Tryout } from "./tryout.js";
import { Tuning } from "./tuning.js";

/** Asks for the API key; null if the user closes the dialog. Two requests that need it share one question. */
let asking = null;
function askForKey(hadOne) {
  asking ??= new Promise((answer) => {
    const dialog = byId("key-dialog");
    byId("key-wrong").hidden = !hadOne;
    dialog.returnValue = "";
    dialog.addEventListener("close", () => answer(dialog.returnValue === "key" ? byId("key").value : null), { once: true });
    dialog.showModal();
  }).finally(() => (asking = null));
  return asking;
}

onKeyNeeded(askForKey);
connectPicker();
const store = new Store();
new Names(store);
new Examples(store);
new Tryout(store);
new Tuning(store);
const domains = new Domains(store);
attempt(() => domains.start(), () => byId("key-form").reset());
