// A translation that follows the text: an engine, its answers line by line, and the words one points at.
import { ApiError, call, pause } from "./api.js";
import { can, engineOf, engineOptions, languageOptions } from "./engines.js";
import { partners, wordRanges } from "./alignment.js";
import { shade, unshade } from "./source.js";

const CHUNK = 16; // lines of a request
const KEPT = 3000; // lines whose translations are kept
const NOTHING = { ranges: [], unknown: [] };

export class Target {
  // `on`: language(code), engine(target), changed(), drawn(target), hover(target, line, word), leave(), line(line);
  // `glossary`: what requests say of it
  constructor(id, glossary, on) {
    Object.assign(this, { id, glossary, on });
    this.root = byId("target-template").content.firstElementChild.cloneNode(true);
    this.part = (name) => this.root.querySelector(name);
    this.output = this.part(".output");
    this.lines = [];
    this.entries = new Map(); // line -> what the engine made of it
    this.wanted = 0; // alternatives; 0: nothing that only the details show
    this.cursor = null; // [line, word] of the keyboard
    this.other = null; // the translation to compare with
    this.root.setAttribute("aria-labelledby", (this.part("h2").id = `${id}-title`));
    for (const name of ["language", "engine"]) this.part(`.${name}`).id = `${id}-${name}`;
    this.part(".language").addEventListener("change", (event) => on.language(event.target.value));
    this.part(".engine").addEventListener("change", (event) => { this.choose(event.target.value); on.engine(this); });
    this.plain = this.part(".plain input");
    this.plain.checked = recall("plain text") !== "no";
    this.plain.addEventListener("change", () => { remember("plain text", this.plain.checked ? "yes" : "no"); this.forget(); on.changed(); });
    this.part(".copy").addEventListener("click", () => this.copy());
    this.listen();
  }

  // Offer the languages to translate into; none to the second translation, which follows the first.
  offerLanguages(codes, chosen) {
    this.part(".to").hidden = !codes.length;
    this.part(".language").replaceChildren(...languageOptions(codes));
    if (codes.length) this.part(".language").value = chosen;
  }

  // Offer these engines, and use `engine`, one of them.
  offer(list, engine) {
    this.part(".engine").replaceChildren(...engineOptions(list));
    this.part(".engine").value = engine.name;
    if (engine !== this.engine) this.choose(engine.name);
  }

  choose(name) {
    this.engine = engineOf(name);
    this.part("h2").textContent = `Translation by ${name}`;
    this.part(".engine").title = this.engine.description;
    this.part(".plain").hidden = !(this.engine.tokenized_only && this.engine.plain);
    this.output.setAttribute("aria-label", `Translation by ${name}; arrow keys go from word to word`);
    if (this.engine.target) this.output.lang = this.engine.target;
    else this.output.removeAttribute("lang");
    this.forget();
  }

  forget() {
    this.stop();
    this.entries.clear();
    this.cursor = null;
  }

  stop() {
    this.controller?.abort();
    this.root.classList.remove("pending");
  }

  // ---- translating ----

  // Translate lines; an earlier request that is not answered yet is given up.
  async follow(lines) {
    this.stop();
    this.lines = lines;
    const controller = (this.controller = new AbortController()); // one for each text
    const missing = [...new Set(lines)].filter((line) => line.trim() && !(this.entries.get(line)?.wanted >= this.wanted));
    if (this.entries.size > KEPT) for (const line of this.entries.keys()) if (!lines.includes(line)) this.entries.delete(line);
    this.trouble("");
    this.root.classList.toggle("pending", missing.length > 0);
    this.draw();
    const begin = performance.now();
    try {
      for (let at = 0; at < missing.length; at += CHUNK) {
        await this.ask(missing.slice(at, at + CHUNK), controller.signal);
        this.draw();
      }
      if (missing.length) this.seconds = (performance.now() - begin) / 1000;
    } catch (error) {
      if (controller.signal.aborted) return;
      this.trouble(error.message, true);
    }
    if (this.controller !== controller) return;
    this.root.classList.remove("pending");
    this.draw();
  }

  async ask(lines, signal) {
    for (;;) {
      try {
        const found = await call("api/translate", this.request(lines), signal);
        signal.throwIfAborted();
        lines.forEach((line, index) => this.entries.set(line, entry(line, this.wanted, found.translations[index])));
        return this.trouble("");
      } catch (error) {
        if (!(error instanceof ApiError)) throw error;
        if (error.busy) {
          const wait = error.wait || 2;
          this.trouble(`The server is busy; trying again in ${wait} s.`);
          await pause(wait, signal);
        } else if (error.status === 400 && lines.length > 1) { // some line cannot be translated: which?
          for (const line of lines) await this.ask([line], signal);
          return;
        } else if (error.status === 400) {
          this.entries.set(lines[0], { ...entry(lines[0], Infinity), error: error.message });
          return;
        } else throw error;
      }
    }
  }

  request(lines) {
    const request = { ...this.settings(), lines };
    if (this.wanted > 1 && can(this.engine, "n_best")) Object.assign(request, { n_best: this.wanted, distinct: true });
    if (can(this.engine, "attention")) request.attention = true;
    if (this.wanted && can(this.engine, "parse")) request.parse = true;
    return request;
  }

  // Whether the engine reads words, and gets them made of text.
  get isPlain() { return this.engine.tokenized_only && this.engine.plain && this.plain.checked; }

  // What every request of this engine says, that of a file too.
  settings() {
    const words = this.engine.tokenized_only, plain = this.isPlain;
    return { engine: this.engine.name, ...this.glossary.request(this.engine), ...(plain ? { plain } : {}), ...(!words || plain ? { split_sentences: true } : {}) };
  }

  trouble(message, again = false) {
    const notice = this.part(".trouble");
    notice.hidden = !message;
    notice.replaceChildren(message);
    if (!again) return;
    const button = element("button", { type: "button", class: "quiet" }, "Try again");
    button.addEventListener("click", () => this.on.changed());
    notice.append(" ", button);
  }

  // ---- what is known of a line ----

  entryOf(line) { return this.entries.get(this.lines[line]); }
  hypothesisOf(line) { const entry = this.entryOf(line); return entry?.hypotheses[entry.chosen]; }
  textOf(line) { return this.hypothesisOf(line)?.text ?? ""; }
  get text() { return this.lines.map((_, line) => this.textOf(line)).join("\n"); }

  // Where the source words of a line stand.
  sourceOf(line) {
    const entry = this.entryOf(line);
    if (!entry) return NOTHING;
    return { ranges: entry.ranges.filter(Boolean), unknown: entry.unknown.map((word) => entry.ranges[word]).filter(Boolean) };
  }

  // Show another of the hypotheses of a line.
  pick(line, rank) {
    this.entryOf(line).chosen = rank;
    this.draw();
  }

  // ---- drawing ----

  draw() {
    const rows = this.output.children;
    while (rows.length > this.lines.length) this.output.lastChild.remove();
    this.lines.forEach((text, line) => this.drawLine(rows[line] ?? this.output.appendChild(element("p", { class: "line", dir: "auto" })), text, line));
    const failed = this.lines.findIndex((_, line) => this.entryOf(line)?.error);
    if (failed >= 0) this.trouble(`Line ${failed + 1}: ${this.entryOf(failed).error}`);
    this.part(".copy").hidden = !this.lines.some((_, line) => this.textOf(line));
    this.on.drawn(this);
  }

  // Point out the line that the details are about.
  showCurrent(line) {
    for (const row of this.output.children) row.classList.toggle("current", row.line === line);
  }

  drawLine(row, text, line) {
    const entry = this.entryOf(line);
    row.line = line;
    if (!entry && text.trim()) return row.classList.add("old"); // what was there stays until the answer is here
    row.classList.remove("old");
    const hypothesis = this.hypothesisOf(line), rival = this.other?.hypothesisOf(line);
    if (row.shown === hypothesis && row.rival === rival && hypothesis) return;
    Object.assign(row, { shown: hypothesis, rival });
    row.replaceChildren(...(hypothesis ? this.wordsOf(hypothesis, rival) : []));
  }

  // The text with its words as spans; words that the other translation does not have are marked.
  wordsOf(hypothesis, rival) {
    const { text, words } = hypothesis, kept = rival ? new Set(common(words, rival.words).map((pair) => pair[0])) : null;
    const nodes = [];
    let at = 0;
    wordRanges(text, words).forEach((range, word) => {
      if (!range || range[0] < at) return;
      nodes.push(text.slice(at, range[0]));
      const kind = kept && !kept.has(word) ? "word differs" : "word";
      nodes.push(Object.assign(element("span", { class: kind }, text.slice(...range)), { word }));
      at = range[1];
    });
    return [...nodes, text.slice(at)].filter((node) => node !== "");
  }

  // ---- words one points at ----

  listen() {
    const { output, on } = this;
    output.addEventListener("mouseover", (event) => {
      if (event.target.word === undefined) return on.leave();
      on.hover(this, event.target.parentNode.line, event.target.word);
    });
    output.addEventListener("mouseleave", () => on.leave());
    output.addEventListener("click", (event) => {
      const row = event.target.closest(".line");
      if (!row) return;
      on.line(row.line);
      if (event.target.word !== undefined) this.cursor = [row.line, event.target.word];
    });
    output.addEventListener("keydown", (event) => this.key(event));
    output.addEventListener("focus", () => { if (output.matches(":focus-visible")) this.move(0); });
    output.addEventListener("blur", () => on.leave());
  }

  key(event) {
    if (event.ctrlKey || event.altKey || event.metaKey || event.shiftKey) return;
    const row = this.output.children[this.cursor?.[0] ?? 0], rightToLeft = row && getComputedStyle(row).direction === "rtl";
    const along = { ArrowRight: rightToLeft ? -1 : 1, ArrowLeft: rightToLeft ? 1 : -1 }[event.key];
    const line = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    if (along) this.move(along);
    else if (line) this.move(0, line);
    else if (event.key === "Home" || event.key === "End") this.move(event.key === "Home" ? -Infinity : Infinity);
    else return;
    event.preventDefault();
  }

  // Go some words, or lines, on.
  move(words, lines = 0) {
    const spans = [...this.output.querySelectorAll(".word")];
    if (!spans.length) return;
    const of = (span) => span.parentNode.line;
    let at = this.cursor ? spans.findIndex((span) => of(span) === this.cursor[0] && span.word === this.cursor[1]) : 0;
    if (at < 0) at = 0;
    if (lines) {
      const wanted = spans.filter((span) => Math.sign(of(span) - of(spans[at])) === lines).map(of);
      const line = lines > 0 ? wanted[0] : wanted.at(-1);
      if (line !== undefined) at = spans.findIndex((span) => of(span) === line);
    }
    const span = spans[Math.max(0, Math.min(spans.length - 1, at + words))];
    this.cursor = [of(span), span.word];
    span.scrollIntoView({ block: "nearest" });
    this.on.line(of(span));
    this.on.hover(this, of(span), span.word, true);
  }

  // Shade target words of a line: [[word, weight], ...]
  mark(line, weights) {
    const of = new Map(weights);
    for (const span of this.output.children[line]?.querySelectorAll(".word") ?? []) if (of.has(span.word)) shade(span, of.get(span.word));
  }

  hold(line, word) {
    for (const span of this.output.children[line]?.querySelectorAll(".word") ?? []) if (span.word === word) span.classList.add("held");
  }

  clear() {
    unshade(this.output);
    this.tell();
  }

  // What belongs to a word, below the translation, where it covers nothing; nothing without a word.
  tell(head = "", says = []) {
    const told = this.part(".told");
    told.hidden = !head;
    told.replaceChildren(...(head ? [element("strong", { dir: "auto" }, head), ...says.map((one) => element("span", { dir: "auto" }, one))] : []));
  }

  // The source words of target word `word`: [[begin, end, weight], ...] of those whose range is known
  origins(line, word) {
    const { ranges } = this.entryOf(line);
    return partners(this.hypothesisOf(line), "target", word).flatMap(([source, weight]) => (ranges[source] ? [[...ranges[source], weight]] : []));
  }

  // The source word at an offset, undefined where there is none
  wordAt(line, offset) {
    const word = this.entryOf(line)?.ranges.findIndex((range) => range && range[0] <= offset && offset < range[1]) ?? -1;
    return word < 0 ? undefined : word;
  }

  async copy() {
    const button = this.part(".copy");
    try {
      await navigator.clipboard.writeText(this.text);
      button.textContent = "Copied";
    } catch { // not every address may use the clipboard: select the text instead
      getSelection().selectAllChildren(this.output);
      button.textContent = "Selected";
    }
    setTimeout(() => { button.textContent = "Copy"; }, 1500);
  }
}

function entry(line, wanted, found = { words: [], unknown: [], parts: 1, hypotheses: [] }) {
  return { ...found, wanted, chosen: 0, ranges: wordRanges(line, found.words) };
}
