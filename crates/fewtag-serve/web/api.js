// Talks to the server. Every failure is an ApiError with the server's code and message.

/** A request that failed; `status` is 0 if the server was not reached. */
export class ApiError extends Error {
  constructor(status, code, message) {
    super(message);
    this.status = status;
    this.code = code;
  }
}

const KEY = "fewtag.key";
const LONGEST_WAIT = 10; // Seconds; past it a busy server is reported rather than waited for.
let askForKey = async () => null;

/** `ask` returns a key, or null to give up; it is called when the server wants one. */
export function onKeyNeeded(ask) {
  askForKey = ask;
}

/** Sends a request; answers {data, etag}. Options: body (JSON), raw (a Blob), etag (for If-Match), signal. */
export async function request(method, path, options = {}) {
  const response = await send(method, path, options);
  const isJson = response.headers.get("content-type")?.includes("json");
  const data = options.as === "blob" ? await response.blob() : isJson ? await response.json() : null;
  return { data, etag: response.headers.get("etag") };
}

async function send(method, path, options, waited = 0) {
  const response = await reach(method, path, options);
  if (response.ok) return response;
  if (response.status === 401) {
    const key = await askForKey(sessionStorage.getItem(KEY) !== null);
    if (key !== null) {
      sessionStorage.setItem(KEY, key);
      return send(method, path, options, waited);
    }
  }
  const pause = Number(response.headers.get("retry-after") ?? 1);
  if (response.status === 429 && waited + pause <= LONGEST_WAIT) {
    await new Promise((done) => setTimeout(done, pause * 1000));
    options.signal?.throwIfAborted();
    return send(method, path, options, waited + pause);
  }
  const { error } = await response.json().catch(() => ({}));
  throw new ApiError(response.status, error?.code ?? "unknown", error?.message ?? `the server answered ${response.status}`);
}

async function reach(method, path, { body, raw, etag, signal }) {
  const headers = {};
  const key = sessionStorage.getItem(KEY);
  if (key) headers.authorization = `Bearer ${key}`;
  if (etag) headers["if-match"] = etag;
  if (body) headers["content-type"] = "application/json";
  if (raw) headers["content-type"] = "application/octet-stream";
  try {
    return await fetch(path, { method, headers, signal, body: raw ?? (body && JSON.stringify(body)) });
  } catch (error) {
    if (error.name === "AbortError") throw error;
    throw new ApiError(0, "unreachable", "The server does not answer. Is it still running?");
  }
}

const domain = (name, ...rest) => ["v1/domains", name, ...rest].map((part, i) => (i === 1 ? encodeURIComponent(part) : part)).join("/");

export const listDomains = async () => (await request("GET", "v1/domains")).data.domains;
export const createDomain = (name, content = {}) => request("POST", "v1/domains", { body: { name, ...content } });
export const readDomain = (name) => request("GET", domain(name));
export const replaceDomain = (name, content, etag) => request("PUT", domain(name), { body: content, etag });
export const declareLabels = (name, labels, etag) => request("PUT", domain(name, "labels"), { body: labels, etag });
export const deleteDomain = (name, etag) => request("DELETE", domain(name), { etag });
export const addExample = (name, example, etag) => request("POST", domain(name, "examples"), { body: { examples: [example] }, etag });
export const replaceExample = (name, id, example, etag) => request("PUT", domain(name, "examples", id), { body: example, etag });
export const deleteExample = (name, id, etag) => request("DELETE", domain(name, "examples", id), { etag });
export const importFile = (name, file, how, etag) =>
  request("POST", `${domain(name, "import")}?${new URLSearchParams(how)}`, { raw: file, etag });
export const exportFile = async (name, format) => (await request("GET", `${domain(name, "export")}?format=${format}`, { as: "blob" })).data;
export const tag = async (name, body, signal) => (await request("POST", domain(name, "tag"), { body, signal })).data;
export const startTuning = async (name, etag) => (await request("POST", domain(name, "tune"), { body: {}, etag })).data;
export const readTuning = async (name) => (await request("GET", domain(name, "tune"))).data;
export const cancelTuning = async (name) => (await request("DELETE", domain(name, "tune"))).data;
export const undoTuning = (name, etag) => request("POST", domain(name, "tune", "undo"), { etag });
export const check = async (name) => (await request("GET", domain(name, "check"))).data;
