// The user's glossary: terms with the translations that they must have, and phrases that no translation may
// contain. It is kept in this browser, for each pair of languages.
const TERM = /^(.+?)\s*(?:\t|=|→)\s*(.+)$/;
const NAMES = ["terms", "avoid"];

export class Glossary {
  // `change()`: it has become another one
  constructor(change) {
    this.root = byId("glossary");
    this.details = this.root.querySelector("details");
    this.details.open = recall("glossary open") === "yes";
    this.details.addEventListener("toggle", () => remember("glossary open", this.details.open ? "yes" : ""));
    this.read();
    for (const name of NAMES) byId(name).addEventListener("input", () => {
      remember(this.key(name), byId(name).value);
      if (this.read()) change();
    });
  }

  key(name) { return `${name} ${this.pair}`; }

  // Show that of an engine's languages; an engine that takes none has none.
  show(engine) {
    const pair = `${engine.source}-${engine.target}`;
    const [terms, avoid] = NAMES.map((name) => engine.capabilities.includes(name));
    this.root.hidden = !terms && !avoid;
    byId("terms").parentNode.hidden = !terms;
    byId("avoid").parentNode.hidden = !avoid;
    if (pair === this.pair) return;
    this.pair = pair;
    for (const name of NAMES) byId(name).value = recall(this.key(name)) ?? "";
    for (const [name, language] of [["terms", engine.source], ["avoid", engine.target]]) byId(name).lang = language;
    this.read();
  }

  open() {
    if (this.root.hidden) return;
    this.details.open = true;
    byId("terms").focus();
  }

  // Read the fields; whether they ask for something else than before.
  read() {
    const before = JSON.stringify(this.asked ?? {}), terms = {}, problems = [];
    lines("terms").forEach((line, index) => {
      const parts = line.match(TERM);
      if (parts) terms[parts[1].trim()] = parts[2].trim();
      else if (line) problems.push(`Line ${index + 1} of the terms: expected a term, = and its translation.`);
    });
    this.asked = { terms, avoid: lines("avoid").filter(Boolean) };
    byId("glossary-trouble").hidden = !problems.length;
    byId("glossary-trouble").textContent = problems[0] ?? "";
    byId("glossary-count").textContent = counted([[Object.keys(terms).length, "term"], [this.asked.avoid.length, "phrase to avoid", "phrases to avoid"]]);
    return JSON.stringify(this.asked) !== before;
  }

  // What of it a request to an engine says.
  request(engine) {
    const sizes = { terms: Object.keys(this.asked.terms).length, avoid: this.asked.avoid.length };
    return Object.fromEntries(NAMES.filter((name) => sizes[name] && engine.capabilities.includes(name)).map((name) => [name, this.asked[name]]));
  }
}

const lines = (name) => byId(name).value.split("\n").map((line) => line.trim());

const counted = (counts) => counts.filter(([count]) => count).map(([count, one, many = `${one}s`]) => `${count} ${count === 1 ? one : many}`).join(", ");
