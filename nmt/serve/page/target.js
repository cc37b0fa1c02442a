// A translation that follows the text: an engine, its answers line by line, and the words one points at.
import { ApiError, call, pause } from "./api.js";
import { can, engineOf, engineOptions, engines, languageName } from "./engines.js";
import { partners, placesOf } from "./places.js";
import { shade, unshade } from "./source.js";

const COUNTS = [1, 3, 5, 10, 20]; // alternatives
const CHUNK = 16; // lines of a request
const KEPT = 3000; // lines whose translations are kept
const NOTHING = { places: [], unknown: [] };

export class Target {
  // `on`: changed(target), drawn(target), hover(target, line, word, rect), leave(), line(line)
  constructor(id, on) {
    this.on = on;
    this.id = id;
    this.root = byId("target-template").content.firstElementChild.cloneNode(true);
    this.part = (name) => this.root.querySelector(name);
    this.output = this.part(".output");
    this.lines = [];
    this.entries = new Map(); // line -> what the engine made of it
    this.cursor = null; // [line, word] of the keyboard
    this.other = null; // the translation to compare with
    this.root.setAttribute("aria-labelledby", (this.part("h2").id = `${id}-title`));
    this.part(".engine").id = `${id}-engine`;
    this.part(".count").id = `${id}-count`;
    this.part(".engine").addEventListener("change", (event) => this.choose(event.target.value));
    this.part(".count").addEventListener("change", () => { remember("alternatives", this.count); this.forget(); on.changed(this); });
    this.part(".copy").addEventListener("click", () => this.copy());
    this.listen();
  }

  get count() { return Number(this.part(".count").value); }

  // Offer these engines, and use the one of this name, if it is among them.
  offer(list, name) {
    this.part(".engine").replaceChildren(...engineOptions(list));
    const chosen = list.find((engine) => engine.name === name) ?? list.find((engine) => engine === this.engine) ?? list[0];
    this.part(".engine").value = chosen.name;
    if (chosen !== this.engine) this.choose(chosen.name, false);
  }

  choose(name, tell = true) {
    this.engine = engineOf(name);
    this.part("h2").textContent = `Translation by ${name}`;
    this.part(".engine").title = this.engine.description;
    this.part(".to").textContent = this.engine.target ? `To ${languageName(this.engine.target)} by` : "Engine";
    this.offerCounts();
    this.output.setAttribute("aria-label", `Translation by ${name}; arrow keys go from word to word`);
    if (this.engine.target) this.output.lang = this.engine.target;
    else this.output.removeAttribute("lang");
    this.forget();
    if (tell) this.on.changed(this);
  }

  // How many alternatives one may ask for: a beam has no more hypotheses than its size.
  offerCounts() {
    const menu = this.part(".count"), most = Math.min(engines.limits.max_n_best, this.engine.beam_size || Infinity);
    const counts = COUNTS.filter((count) => count <= most), wanted = Number(recall("alternatives") ?? 5);
    menu.replaceChildren(...counts.map((count) => element("option", { value: count }, count)));
    menu.value = counts.filter((count) => count <= wanted).at(-1) ?? 1;
    menu.closest("label").hidden = !can(this.engine, "n_best");
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
    const missing = [...new Set(lines)].filter((line) => line.trim() && !this.entries.has(line));
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
        lines.forEach((line, index) => this.entries.set(line, entry(line, found.translations[index])));
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
          this.entries.set(lines[0], { ...entry(lines[0]), error: error.message });
          return;
        } else throw error;
      }
    }
  }

  request(lines) {
    const request = { engine: this.engine.name, lines };
    if (this.count > 1 && can(this.engine, "n_best")) Object.assign(request, { n_best: this.count, distinct: true });
    for (const wish of ["attention", "parse"]) if (can(this.engine, wish)) request[wish] = true;
    return request;
  }

  trouble(message, again = false) {
    const place = this.part(".trouble");
    place.hidden = !message;
    place.replaceChildren(message);
    if (!again) return;
    const button = element("button", { type: "button", class: "quiet" }, "Try again");
    button.addEventListener("click", () => this.on.changed(this));
    place.append(" ", button);
  }

  // ---- what is known of a line ----

  entryOf(line) { return this.entries.get(this.lines[line]); }
  hypothesisOf(line) { const known = this.entryOf(line); return known?.hypotheses[known.chosen]; }
  textOf(line) { return this.hypothesisOf(line)?.text ?? ""; }
  get text() { return this.lines.map((_, line) => this.textOf(line)).join("\n"); }

  // Where the source words of a line stand.
  sourceOf(line) {
    const known = this.entryOf(line);
    if (!known) return NOTHING;
    return { places: known.places.filter(Boolean), unknown: known.unknown.map((word) => known.places[word]).filter(Boolean) };
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
    const known = this.entryOf(line);
    row.line = line;
    if (!known && text.trim()) return row.classList.add("old"); // what was there stays until the answer is here
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
    placesOf(text, words).forEach((place, word) => {
      if (!place || place[0] < at) return;
      nodes.push(text.slice(at, place[0]));
      const kind = kept && !kept.has(word) ? "word differs" : "word";
      nodes.push(Object.assign(element("span", { class: kind }, text.slice(...place)), { word }));
      at = place[1];
    });
    return [...nodes, text.slice(at)].filter((node) => node !== "");
  }

  // ---- words one points at ----

  listen() {
    const { output, on } = this;
    output.addEventListener("mouseover", (event) => {
      if (event.target.word === undefined) return on.leave();
      on.hover(this, event.target.parentNode.line, event.target.word, event.target.getBoundingClientRect());
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
    this.on.hover(this, of(span), span.word, span.getBoundingClientRect(), true);
  }

  // Shade target words of a line: [[word, weight], ...]
  mark(line, weights) {
    const of = new Map(weights);
    for (const span of this.output.children[line]?.querySelectorAll(".word") ?? []) if (of.has(span.word)) shade(span, of.get(span.word));
  }

  hold(line, word) {
    for (const span of this.output.children[line]?.querySelectorAll(".word") ?? []) if (span.word === word) span.classList.add("held");
  }

  clear() { unshade(this.output); }

  // The source words of target word `word`: [[begin, end, weight], ...] of those whose place is known
  origins(line, word) {
    const { places } = this.entryOf(line);
    return partners(this.hypothesisOf(line), "target", word).flatMap(([source, weight]) => (places[source] ? [[...places[source], weight]] : []));
  }

  // The source word at an offset, undefined where there is none
  wordAt(line, offset) {
    const word = this.entryOf(line)?.places.findIndex((place) => place && place[0] <= offset && offset < place[1]) ?? -1;
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

function entry(line, found = { words: [], unknown: [], parts: 1, hypotheses: [] }) {
  return { ...found, chosen: 0, places: placesOf(line, found.words) };
}
