// What is translated into what, and by whom: the languages, the engines of both, and whether two are compared.
import { canDetect, doubt, likeliest } from "./detect.js";
import { between, engineOf, engines, languageName, languageOptions, reading, reverse, sources, targetsOf } from "./engines.js";

const AUTO = "auto";

export class Choice {
  // `on`: second(wanted) adds or removes the second translation and returns it; arranged(); changed(): translate anew
  constructor(first, on) {
    Object.assign(this, { first, on, menu: byId("from"), comparing: recall("compare") === "yes" });
    const last = engineOf(recall("engine")) ?? engines.all[0], detects = canDetect() && sources().length > 1;
    this.auto = detects && recall("from") !== "chosen";
    this.menu.replaceChildren(...(detects ? [element("option", { value: AUTO }, "Detect language")] : []), ...languageOptions(sources()));
    this.menu.addEventListener("change", () => this.choose(this.menu.value));
    byId("compare").addEventListener("click", () => this.compare());
    Object.assign(this, { source: last.source, target: last.target });
    this.arrange(last);
  }

  choose(language) {
    this.auto = language === AUTO;
    remember("from", this.auto ? AUTO : "chosen");
    if (!this.auto) this.source = language;
    this.arrange();
    this.on.changed();
  }

  // Take the language of a text, where it is to be detected.
  detected(candidates) {
    if (!this.auto || !candidates.length) return;
    const language = likeliest(candidates, this.source);
    this.menu.options[0].textContent = `${languageName(language)} (detected)`;
    if (language === this.source) return;
    this.source = language;
    this.arrange();
  }

  forgetDetected() { if (this.auto) this.menu.options[0].textContent = "Detect language"; }

  doubt(text, candidates) { return doubt(text, candidates, this.source); }

  into(language) {
    this.target = language;
    remember(`to ${this.source}`, language);
    this.arrange();
    this.on.changed();
  }

  // The engine of one of the translations is another one: nothing is compared with itself.
  engineChosen() {
    this.arrange(this.first.engine);
    this.on.changed();
  }

  // Exchange the languages; `text` becomes the translation.
  swap() {
    const back = reverse(this.first.engine);
    if (!back) return false;
    Object.assign(this, { source: back.source, target: back.target });
    this.arrange(back);
    return true;
  }

  compare() {
    this.comparing = !this.comparing;
    remember("compare", this.comparing ? "yes" : "");
    this.arrange();
    this.on.changed();
  }

  // Offer what there is for the languages; `wished`: the engine, if it is among them.
  arrange(wished) {
    const codes = targetsOf(reading(this.source)), { first } = this, before = first.engine;
    this.target = [this.target, recall(`to ${this.source}`), codes[0]].find((code) => codes.includes(code));
    const list = between(this.source, this.target), last = engineOf(recall(`engine ${this.source}-${this.target}`));
    const engine = [wished, before, last, list[0]].find((one) => list.includes(one));
    first.offerLanguages(codes, this.target);
    first.offer(list, engine);
    const second = this.on.second(this.comparing && list.length > 1);
    if (second) {
      const others = list.filter((one) => one !== engine), other = engineOf(recall("second engine"));
      second.offerLanguages([]);
      second.offer(others, [second.engine, before, other, others[0]].find((one) => others.includes(one)));
      remember("second engine", second.engine.name);
    }
    remember("engine", engine.name);
    remember(`engine ${this.source}-${this.target}`, engine.name);
    this.menu.value = this.auto ? AUTO : this.source;
    byId("compare").hidden = list.length < 2;
    byId("compare").setAttribute("aria-pressed", String(Boolean(second)));
    byId("desk").classList.toggle("compared", Boolean(second));
    byId("swap").hidden = !reverse(engine);
    this.on.arranged();
  }
}
