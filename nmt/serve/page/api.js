// Requests to the server.
const KEY = "nmt-smt token"; // of the session storage

export class ApiError extends Error {
  constructor(status, message, wait = 0) {
    super(message);
    this.status = status; // 0: the server was not reached
    this.wait = wait; // seconds after which to try again
  }
  get busy() { return this.status === 429 || this.status === 503; }
}

// The JSON that the server answers. `path` is relative to the page, which may lie behind a proxy. Asks for the token where one is needed. Throws ApiError, and AbortError
// when `signal` says so.
export async function call(path, body, signal) {
  for (let again = false; ; again = true) {
    const answer = await send(path, body, signal);
    if (answer.status === 401) {
      if (!(await askToken(again))) throw new ApiError(401, "The server asks for a token.");
      continue;
    }
    const found = await answer.json().catch((error) => {
      if (error.name === "AbortError") throw error;
      return null;
    });
    if (answer.ok && found) return found;
    const wait = Math.min(60, Number(answer.headers.get("Retry-After")) || 0);
    throw new ApiError(answer.status, found?.error ? sentence(found.error) : `The server answered with status ${answer.status}.`, wait);
  }
}

// The content of a file of the server, as a Blob. Throws as `call` does.
export async function download(path, signal) {
  const answer = await send(path, null, signal);
  if (!answer.ok) throw new ApiError(answer.status, `The server answered with status ${answer.status}.`);
  return answer.blob();
}

async function send(path, body, signal) {
  const form = body instanceof FormData;
  const headers = body && !form ? { "Content-Type": "application/json" } : {};
  const token = sessionToken();
  if (token) headers.Authorization = `Bearer ${token}`;
  try {
    return await fetch(path, { method: body ? "POST" : "GET", headers, body: form ? body : body && JSON.stringify(body), signal, cache: "no-store", credentials: "omit" });
  } catch (error) {
    if (error.name === "AbortError") throw error;
    throw new ApiError(0, "The server cannot be reached.");
  }
}

const sentence = (text) => text.charAt(0).toUpperCase() + text.slice(1) + (/[.!?]$/.test(text) ? "" : ".");

export const pause = (seconds, signal) => new Promise((done, fail) => {
  const stop = () => { clearTimeout(timer); fail(new DOMException("", "AbortError")); };
  const timer = setTimeout(() => { signal?.removeEventListener("abort", stop); done(); }, seconds * 1000);
  if (signal?.aborted) stop();
  signal?.addEventListener("abort", stop, { once: true });
});

// ---- the token ----

let asking = null; // a promise, while the dialog is open
const stored = { token: "" }; // where the browser has no session storage

function sessionToken() {
  try { return sessionStorage.getItem(KEY) ?? ""; } catch { return stored.token; }
}

function keepToken(token) {
  stored.token = token;
  try { sessionStorage.setItem(KEY, token); } catch { /* kept until the page is left */ }
}

// Was a token given? Requests that wait for it share one dialog.
function askToken(again) {
  asking ??= new Promise((done) => {
    const dialog = byId("token-dialog"), form = dialog.querySelector("form"), field = byId("token");
    byId("token-trouble").hidden = !(again || sessionToken());
    byId("token-trouble").textContent = "The server does not accept this token.";
    field.value = "";
    const end = (given) => {
      asking = null;
      form.onsubmit = dialog.onclose = byId("token-cancel").onclick = null;
      if (dialog.open) dialog.close();
      done(given);
    };
    form.onsubmit = (event) => { event.preventDefault(); keepToken(field.value.trim()); end(true); };
    byId("token-cancel").onclick = () => end(false);
    dialog.onclose = () => end(false);
    dialog.showModal();
  });
  return asking;
}
