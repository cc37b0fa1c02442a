// What is told of one line: the alternatives, the alignment, the phrases, the parse. It is closed until one asks
// for it; the browser remembers that.
import { can, engines } from "./engines.js";
import { parseView } from "./parse.js";
import { shade, unshade } from "./source.js";

const COUNTS = [3, 5, 10, 20]; // alternatives
const MANY = 60; // words of a side; an alignment of more is not drawn
const COLORS = 8; // of phrases

const signed = (value) => number(value, 2).replace("-", "−");

// What there is to show: a name, whether a line has it, and how it is drawn.
const VIEWS = [
  ["Alternatives", (entry) => entry.hypotheses.length > 1, alternatives],
  ["Alignment", (entry, best) => best.attention?.length || best.alignment.length, alignment],
  ["Phrases", (entry, best) => best.segments?.length, phrases],
  ["Features", (entry, best) => best.features, features],
  ["Parse", (entry) => entry.parse?.nodes.length, (entry) => parseView(entry.parse, scrolled)],
];

export class Details {
  // `on`: pick(line, rank), go(line), count(), hover(target, line, word), leave(), wanted(): more is asked for,
  // toggled(open)
  constructor(target, on) {
    Object.assign(this, { target, on });
    this.root = byId("details-template").content.firstElementChild.cloneNode(true);
    this.part = (name) => this.root.querySelector(name);
    this.root.setAttribute("aria-labelledby", (this.part("h2").id = `${target.id}-details`));
    this.tab = "Alternatives";
    this.part(".before").addEventListener("click", () => on.go(this.line - 1));
    this.part(".after").addEventListener("click", () => on.go(this.line + 1));
    this.part(".tabs").addEventListener("keydown", (event) => this.key(event));
    this.fold = this.part("details");
    this.fold.open = recall("details") === "yes";
    this.fold.addEventListener("toggle", () => { remember("details", this.fold.open ? "yes" : ""); this.want(); on.toggled(this.fold.open); });
    this.menu = this.part(".count");
    this.menu.id = `${target.id}-count`;
    this.menu.addEventListener("change", () => { remember("alternatives", this.menu.value); this.want(); });
  }

  // How many alternatives one may ask for: a beam has no more hypotheses than its size.
  offerCounts() {
    const { engine } = this.target, most = Math.min(engines.limits.max_n_best, engine.beam_size || Infinity);
    const counts = COUNTS.filter((count) => count <= most), last = Number(recall("alternatives") ?? 5);
    this.menu.replaceChildren(...counts.map((count) => element("option", { value: count }, `${count} alternatives`)));
    this.menu.value = counts.filter((count) => count <= last).at(-1) ?? counts[0];
    this.menu.closest("label").hidden = !counts.length || !can(engine, "n_best");
    this.target.wanted = this.wanted;
  }

  // Alternatives to ask for; 0 where nothing of a line is shown.
  get wanted() { return this.fold.open ? Number(this.menu.value) || 1 : 0; }

  // Have the target ask for what is to be shown.
  want() {
    const more = this.wanted > this.target.wanted;
    this.target.wanted = this.wanted;
    if (more) this.on.wanted();
    else this.show(this.line);
  }

  show(line) {
    const { target } = this, entry = target.entryOf(line), best = target.hypothesisOf(line), count = this.on.count();
    const waiting = !entry && target.lines[line]?.trim(); // what was there stays until the answer is here
    this.line = line;
    this.root.classList.toggle("old", Boolean(waiting));
    if (!waiting) this.root.hidden = !target.lines.some((text) => text.trim());
    this.part(".steps").hidden = count < 2;
    this.part(".where").textContent = `line ${line + 1} of ${count}`;
    this.part(".before").disabled = line === 0;
    this.part(".after").disabled = line >= count - 1;
    this.part("h2").textContent = target.other ? `Details: ${target.engine.name}` : "Details";
    if (waiting || !this.fold.open || (this.entry === entry && this.best === best && this.found)) return;
    Object.assign(this, { entry, best });
    this.tabs(best ? VIEWS.filter(([, has]) => has(entry, best)) : []);
  }

  tabs(found) {
    const names = found.map(([name]) => name), open = names.includes(this.tab) ? this.tab : names[0];
    const id = (name, what) => `${this.target.id}-${what}-${name.toLowerCase()}`;
    const had = this.part(".tabs").contains(document.activeElement);
    this.part(".tabs").replaceChildren(...names.map((name) => {
      const tab = element("button", { type: "button", role: "tab", id: id(name, "tab"), "aria-controls": id(name, "panel"), "aria-selected": name === open, tabindex: name === open ? 0 : -1 }, name);
      tab.addEventListener("click", () => this.open(name));
      return tab;
    }));
    this.part(".panels").replaceChildren(...found.filter(([name]) => name === open).map(([name, , draw]) => {
      const panel = element("div", { role: "tabpanel", class: "panel", id: id(name, "panel"), "aria-labelledby": id(name, "tab") }, ...draw(this.entry, this.best, this));
      if (!panel.querySelector("button, [tabindex]")) panel.tabIndex = 0;
      return panel;
    }));
    if (!found.length) this.part(".panels").append(element("p", { class: "panel note" }, this.best ? "The engine tells nothing more of this line." : "This line has no translation."));
    this.found = found;
    if (had) this.part('[aria-selected="true"]')?.focus();
  }

  open(name) {
    this.tab = name;
    this.tabs(this.found);
    this.part('[aria-selected="true"]').focus();
  }

  key(event) {
    const step = { ArrowRight: 1, ArrowLeft: -1 }[event.key], names = this.found.map(([name]) => name);
    if (!step) return;
    const at = names.findIndex((name) => this.part(`[aria-selected="true"]`).textContent === name);
    this.open(names[(at + step + names.length) % names.length]);
  }

  // Shade what belongs to target word `word`: [[source word, weight], ...]
  point(word, found) {
    for (const node of this.root.querySelectorAll(`[data-target="${word}"]`)) node.classList.add("held");
    for (const [source, weight] of found) for (const node of this.root.querySelectorAll(`[data-source="${source}"]`)) shade(node, weight);
  }

  clear() { unshade(this.root); }

  // Attributes of a text in the target language, or the source language.
  language(side) {
    const code = this.target.engine[side];
    return code ? { lang: code, dir: "auto" } : { dir: "auto" };
  }
}

function alternatives(entry, best, { on, line, language, target }) {
  const logs = entry.hypotheses.some((one) => one.log_prob !== undefined);
  const rows = entry.hypotheses.map((one, rank) => {
    const button = element("button", { type: "button", class: "pick", "aria-pressed": one === best, ...language.call({ target }, "target") }, one.text || "(no words)");
    button.addEventListener("click", () => {
      on.pick(line, rank);
      byId(`${target.id}-panel-alternatives`)?.querySelector('[aria-pressed="true"]').focus();
    });
    return element("tr", {}, element("td", {}, rank + 1), element("td", { class: "text" }, button), element("td", {}, signed(one.score)), ...(logs ? [element("td", {}, signed(one.log_prob))] : []));
  });
  const heads = ["", "Translation", "Score", ...(logs ? ["log p"] : [])].map((name) => element("th", name ? { scope: "col", class: name === "Translation" ? "text" : "" } : {}, name || element("span", { class: "heard" }, "Rank")));
  return [scrolled(element("table", { class: "wide" }, element("thead", {}, element("tr", {}, ...heads)), element("tbody", {}, ...rows)))];
}

// What may be wider than the page; without a control in it, it can be focused to scroll it by keys.
const scrolled = (node, label = "") => element("div", { class: "scroll", ...(label ? { role: "group", tabindex: 0, "aria-label": label } : {}) }, node);

// A table: a row for each target word, a column for each source word, shaded by attention; a dot marks an
// alignment point.
function alignment(entry, best, view) {
  if (Math.max(entry.words.length, best.words.length) > MANY)
    return [element("p", { class: "note" }, `The line has more than ${MANY} words; point at a word of the translation to see its partners.`)];
  const points = new Set(best.alignment.map(String)), weights = best.attention ?? [];
  const head = entry.words.map((word, source) => element("th", { scope: "col", "data-source": source, ...view.language("source") }, element("span", {}, word)));
  const rows = best.words.map((word, target) => {
    const row = element("tr", {}, element("th", { scope: "row", "data-target": target, ...view.language("target") }, word), ...entry.words.map((_, source) => {
      const weight = weights[target]?.[source], aligned = points.has(String([source, target]));
      const cell = element("td", aligned ? { class: "aligned" } : {}, weight === undefined ? (aligned ? "●" : "") : weight < 0.005 ? "" : weight.toFixed(2).replace(/^0/, ""));
      cell.style.setProperty("--weight", weight ?? 0);
      if (aligned) cell.append(element("span", { class: "heard" }, " aligned"));
      return cell;
    }));
    row.addEventListener("mouseenter", () => view.on.hover(view.target, view.line, target));
    row.addEventListener("mouseleave", () => view.on.leave());
    return row;
  });
  const table = element("table", { class: "matrix" }, element("thead", {}, element("tr", {}, element("td", {}, element("span", { class: "heard" }, "Target word")), ...head)), element("tbody", {}, ...rows));
  const note = weights.length ? "Rows are words of the translation; numbers and shades are attention, frames are alignment points." : "Rows are words of the translation; dots are alignment points.";
  return [element("p", { class: "note" }, note), scrolled(table, "Alignment")];
}

// Both sides cut into phrases; those that belong together have the same color and number.
function phrases(entry, best, view) {
  const words = (list, [first, last]) => list.slice(first, last + 1).join(" ") || "∅";
  const span = (segment, index, text) => {
    const made = element("span", { class: "phrase", "data-phrase": index }, element("sub", {}, index + 1), element("bdi", {}, text));
    made.style.setProperty("--color", `var(--series-${index % COLORS})`);
    return made;
  };
  const target = best.segments.map((segment, index) => span(segment, index, words(best.words, segment.target)));
  const order = [...best.segments.keys()].sort((a, b) => best.segments[a].source[0] - best.segments[b].source[0]);
  const source = order.map((index) => span(best.segments[index], index, words(entry.words, best.segments[index].source)));
  const found = [
    element("h3", {}, "Source"), element("p", { class: "phrases", ...view.language("source") }, ...source),
    element("h3", {}, "Translation"), element("p", { class: "phrases", ...view.language("target") }, ...target),
  ];
  for (const one of [...source, ...target]) {
    const twins = [...source, ...target].filter((other) => other.dataset.phrase === one.dataset.phrase);
    one.addEventListener("mouseenter", () => twins.forEach((twin) => twin.classList.add("held")));
    one.addEventListener("mouseleave", () => twins.forEach((twin) => twin.classList.remove("held")));
  }
  return found;
}

// A row for each score of a feature: what it is, its value, and how much it adds to the total.
function features(entry, best, { target }) {
  const about = new Map((target.engine.features ?? []).map((feature) => [feature.name, feature]));
  const weighed = Object.entries(best.features).every(([name, values]) => about.get(name)?.weights.length === values.length);
  const rows = Object.entries(best.features).flatMap(([name, values]) => {
    const { what = "", scores = [], weights = [] } = about.get(name) ?? {};
    return values.map((value, index) => element("tr", {},
      ...(index ? [] : [element("th", { scope: "rowgroup", rowspan: values.length }, name, ...(what ? [element("span", { class: "soft" }, what)] : []))]),
      element("td", { class: "text" }, scores[index] ?? (values.length > 1 ? index + 1 : "")),
      element("td", {}, signed(value)),
      ...(weighed ? [element("td", {}, number(weights[index], 4).replace("-", "−")), element("td", {}, signed(value * weights[index]))] : [])));
  });
  const heads = ["Feature", "Score", "Value", ...(weighed ? ["Weight", "Adds"] : [])];
  const head = heads.map((name, index) => element("th", { scope: "col", class: index < 2 ? "text" : "" }, name));
  const sum = Object.entries(best.features).reduce((all, [name, values]) => all + values.reduce((part, value, index) => part + value * (about.get(name)?.weights[index] ?? 0), 0), 0);
  if (weighed && Math.abs(best.score - sum) > 0.005)
    rows.push(element("tr", {}, element("th", { scope: "row", colspan: heads.length - 1 }, "Features that are not tuned, such as the penalty of unknown words"), element("td", {}, signed(best.score - sum))));
  const total = element("tr", {}, element("th", { scope: "row", colspan: heads.length - 1 }, weighed ? "Total" : "Total, with the weights of the model"), element("td", {}, signed(best.score)));
  return [scrolled(element("table", { class: "features" }, element("thead", {}, element("tr", {}, ...head)), element("tbody", {}, ...rows), element("tfoot", {}, total)), "Features")];
}
