// A file, translated line by line in order, some lines a request; a document, translated as a whole.
import { ApiError, call, pause } from "./api.js";
import { isDocument, translateDocument } from "./documents.js";
import { engines } from "./engines.js";

const FIRST = 8, MOST = 64; // lines of a request
const SECONDS = 2; // that a request should take
const DETECTED = 100; // lines whose language is looked at
const TRIES = 5; // when the server is not reached
const LARGEST = 64 << 20; // bytes

export class FileJob {
  // `settings(text)`: how to translate a text, {engine, settings, doubt}; `say`: what is read out
  constructor(settings, say) {
    Object.assign(this, { settings, say });
    byId("open").addEventListener("click", () => this.ask());
    byId("file").addEventListener("change", () => { this.take(byId("file").files[0]); byId("file").value = ""; });
    byId("job-cancel").addEventListener("click", () => this.cancel());
    byId("job-close").addEventListener("click", () => this.close());
    byId("job-retry").addEventListener("click", () => (this.file ? this.whole() : this.run()));
    byId("job-skip").addEventListener("click", () => { this.done.push(""); this.run(); });
    byId("job-save").addEventListener("click", () => this.save());
    addEventListener("dragover", (event) => { if (hasFile(event)) { event.preventDefault(); byId("drop").hidden = false; } });
    addEventListener("dragleave", (event) => { if (!event.relatedTarget) byId("drop").hidden = true; });
    addEventListener("drop", (event) => this.dropped(event));
    addEventListener("paste", (event) => { if (event.clipboardData?.files.length) { event.preventDefault(); this.take(event.clipboardData.files[0]); } });
    addEventListener("beforeunload", (event) => { if (this.controller) event.preventDefault(); });
  }

  ask() { byId("file").click(); }

  dropped(event) {
    byId("drop").hidden = true;
    if (!hasFile(event)) return;
    event.preventDefault();
    this.take(event.dataTransfer.files[0]);
  }

  // Begin with a file.
  async take(file) {
    if (!file) return;
    this.close();
    this.name = file.name || "pasted.txt";
    byId("job").hidden = false;
    byId("job-title").textContent = this.name;
    byId("job-progress").value = 0;
    byId("job-says").textContent = "";
    byId("job-cancel").hidden = true;
    byId("job").scrollIntoView({ block: "nearest" });
    this.file = (await isDocument(this.name)) ? file : null;
    if (this.file) return this.whole();
    try {
      if (file.size > LARGEST) throw new Error(`${this.name} has more than ${LARGEST >> 20} MiB; use nmt-translate for such files.`);
      this.lines = linesOf(this.name, await file.arrayBuffer());
      this.how = await this.settings(this.lines.slice(0, DETECTED).join("\n"));
    } catch (error) {
      return this.trouble(error.message);
    }
    Object.assign(this, { done: [], size: Math.min(FIRST, engines.limits.max_lines) });
    byId("job-progress").max = Math.max(1, this.lines.length);
    await this.run();
  }

  // Translate a document.
  async whole() {
    const controller = (this.controller = new AbortController());
    this.trouble("");
    show({ cancel: true });
    byId("job-progress").removeAttribute("value"); // the server does not say how far it is
    try {
      this.how = await this.settings("");
      const { engine } = this.how, most = engines.limits.max_file;
      if (this.file.size > most) throw new Error(`${this.name} has more than ${most.toLocaleString("en")} bytes; use nmt-translate for such documents.`);
      byId("job-says").textContent = `Being translated by ${engine.name}`;
      this.blob = await translateDocument(this.file, engine, controller.signal);
      controller.signal.throwIfAborted();
      byId("job-says").textContent = `Done: a document by ${engine.name}`;
      byId("job-progress").value = byId("job-progress").max = 1;
      show({ save: true });
      this.say(byId("job-says").textContent);
      byId("job-save").focus();
    } catch (error) {
      if (controller.signal.aborted) return;
      byId("job-progress").value = 0;
      this.trouble(error.message);
      byId("job-says").textContent = "";
      byId("job-retry").textContent = "Try again";
      show({ retry: true });
    } finally {
      if (this.controller === controller) this.controller = null;
    }
  }

  // Go on where it stopped.
  async run() {
    const controller = (this.controller = new AbortController());
    this.trouble("");
    show({ cancel: true });
    this.tell();
    try {
      while (this.done.length < this.lines.length) {
        const found = await this.some(controller.signal);
        controller.signal.throwIfAborted();
        this.done.push(...found);
        this.tell();
      }
      show({ save: true });
      this.say(byId("job-says").textContent);
      byId("job-save").focus();
    } catch (error) {
      if (controller.signal.aborted) return;
      const line = error.line ? `Line ${error.line}: ` : "";
      this.trouble(line + error.message);
      byId("job-retry").textContent = "Try again";
      show({ retry: true, skip: Boolean(error.line) });
    } finally {
      if (this.controller === controller) this.controller = null;
    }
  }

  // The translations of the next lines.
  async some(signal) {
    const begin = this.done.length, texts = this.lines.slice(begin, begin + this.fitting(begin));
    for (let tried = 1; ; tried++) {
      const started = performance.now();
      try {
        const found = await call("api/translate", { ...this.how.settings, lines: texts }, signal);
        if (found.translations.length !== texts.length) throw new Error("The server answered with another number of lines.");
        this.adapt((performance.now() - started) / 1000);
        this.trouble("");
        return found.translations.map((one) => one.hypotheses[0].text.replaceAll("\n", " "));
      } catch (error) {
        if (!(error instanceof ApiError)) throw error;
        if (texts.length > 1 && [400, 413, 504].includes(error.status)) { // which line is it?
          texts.length = this.size = Math.ceil(texts.length / 2);
          continue;
        }
        if (error.status === 400) throw Object.assign(error, { line: begin + 1 });
        if (!error.busy && (error.status || tried >= TRIES)) throw error;
        const wait = error.wait || Math.min(30, 2 ** (tried - 1));
        this.trouble(`${error.busy ? "The server is busy" : "The server cannot be reached"}; trying again in ${wait} s.`);
        await pause(wait, signal);
      }
    }
  }

  // How many lines from `begin` on fit into a request: at most `size`, and half of its bytes.
  fitting(begin) {
    let bytes = 0, count = 0;
    for (const line of this.lines.slice(begin, begin + this.size)) {
      bytes += 6 * line.length + 4;
      if (count && bytes > engines.limits.max_request / 2) break;
      count++;
    }
    return count;
  }

  adapt(seconds) {
    const most = Math.min(MOST, engines.limits.max_lines);
    if (seconds < SECONDS / 2) this.size = Math.min(most, this.size * 2);
    else if (seconds > SECONDS * 2) this.size = Math.max(1, this.size >> 1);
  }

  tell() {
    const { done, lines } = this, all = lines.length;
    byId("job-progress").value = all ? done.length : 1;
    byId("job-says").textContent = done.length < all
      ? `${done.length.toLocaleString("en")} of ${all.toLocaleString("en")} lines by ${this.how.engine.name}${this.how.doubt}`
      : `Done: ${all.toLocaleString("en")} ${all === 1 ? "line" : "lines"} by ${this.how.engine.name}${this.how.doubt}`;
  }

  trouble(message) {
    byId("job-trouble").hidden = !message;
    byId("job-trouble").textContent = message;
  }

  cancel() {
    this.controller?.abort();
    this.controller = null;
    byId("job-progress").value ||= 0;
    byId("job-retry").textContent = this.file ? "Try again" : "Go on";
    show({ retry: true });
    byId("job-retry").focus();
    this.trouble("");
    byId("job-says").textContent = this.file ? "Canceled" : `Canceled after ${this.done.length.toLocaleString("en")} of ${this.lines.length.toLocaleString("en")} lines`;
    this.say(byId("job-says").textContent);
  }

  close() {
    this.controller?.abort();
    this.controller = this.file = this.blob = null;
    byId("job").hidden = true;
    this.trouble("");
    show({});
  }

  save() {
    const url = URL.createObjectURL(this.blob ?? new Blob([this.done.map((line) => `${line}\n`).join("")], { type: "text/plain;charset=utf-8" }));
    element("a", { href: url, download: translatedName(this.name, this.how.engine) }).click();
    setTimeout(() => URL.revokeObjectURL(url), 60_000);
  }
}

function show(which) {
  for (const name of ["cancel", "retry", "skip", "save"]) byId(`job-${name}`).hidden = !which[name];
}

const hasFile = (event) => [...(event.dataTransfer?.types ?? [])].includes("Files");

// test.en -> test.fr, notes.txt -> notes.fr.txt
function translatedName(name, { source, target, name: engine }) {
  const dot = name.lastIndexOf("."), stem = dot > 0 ? name.slice(0, dot) : name, ending = dot > 0 ? name.slice(dot) : "";
  const language = target || engine;
  return source && ending === `.${source}` ? `${stem}.${language}` : `${stem}.${language}${ending || ".txt"}`;
}

// The lines of a file: only \n ends one, a \r before it is dropped, the last one needs none. Throws an Error
// that names the line for one that is not UTF-8, or too long.
function linesOf(name, buffer) {
  const bytes = new Uint8Array(buffer);
  let text;
  try {
    text = new TextDecoder("utf-8", { fatal: true }).decode(bytes);
  } catch {
    throw new Error(`${name}:${firstWrong(bytes)}: is not UTF-8; save the file in this encoding.`);
  }
  if (text.includes("\0")) throw new Error(`${name} is not a text file.`);
  const lines = text.replace(/\n$/, "").split("\n").map((line) => line.replace(/\r$/, ""));
  if (lines.length === 1 && !text) return [];
  const most = engines.limits.max_line, long = lines.findIndex((line) => line.length > most && [...line].length > most);
  if (long >= 0) throw new Error(`${name}:${long + 1}: more than ${most} characters; split the line.`);
  return lines;
}

// The first line that is not UTF-8.
function firstWrong(bytes) {
  const decoder = new TextDecoder("utf-8", { fatal: true });
  for (let begin = 0, line = 1; ; line++) {
    const found = bytes.indexOf(10, begin), end = found < 0 ? bytes.length : found;
    try { decoder.decode(bytes.subarray(begin, end)); } catch { return line; }
    if (found < 0) return line;
    begin = end + 1;
  }
}
