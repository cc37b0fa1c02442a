// The page: the text, one or two translations of it, and what is told of a line.
import { Details } from "./details.js";
import { engines, engineOf, languageName, loadEngines, reading, reverse, sources } from "./engines.js";
import { FileJob } from "./files.js";
import { listenToKeys } from "./keys.js";
import { partners } from "./places.js";
import { Source } from "./source.js";
import { Target } from "./target.js";
import { hideTip, showTip } from "./tip.js";

const DELAY = 250; // milliseconds without a key after which the text is translated
const SPOKEN = 1200; // and after which the translation is read out

let timer = 0, speaker = 0, line = 0, job = null;
const targets = [], details = new Map();

const source = new Source(byId("source"), byId("mirror"), {
  change: () => { leave(); draw(); later(); },
  hover: hoverSource,
  leave,
  line: goTo,
});

const events = {
  changed: () => { leave(); draw(); now(); },
  drawn: () => { draw(); speakLater(); },
  hover: hoverTarget,
  leave,
  line: goTo,
};

// ---- translating ----

function later() {
  clearTimeout(timer);
  timer = setTimeout(now, DELAY);
}

function now() {
  clearTimeout(timer);
  const lines = source.lines, problem = tooMuch(lines);
  byId("source-note").replaceChildren(problem);
  if (lines.length > engines.limits.max_lines) {
    const button = element("button", { type: "button", class: "quiet" }, "Translate as a file");
    button.addEventListener("click", () => job.take(new File([source.text], "text.txt")));
    byId("source-note").append(" ", button);
  }
  for (const target of targets) {
    if (problem) target.stop();
    else target.follow(lines);
  }
}

function tooMuch(lines) {
  const { max_lines, max_line } = engines.limits;
  if (lines.length > max_lines) return `More than ${max_lines} lines.`;
  const long = lines.findIndex((one) => [...one].length > max_line);
  return long < 0 ? "" : `Line ${long + 1} has more than ${max_line} characters; split it.`;
}

// ---- drawing ----

let drawing = false; // a translation that is drawn draws the others

function draw() {
  if (drawing) return;
  drawing = true;
  const lines = source.lines;
  byId("clear").hidden = !source.text;
  line = Math.max(0, Math.min(line, lines.length - 1));
  source.draw((at) => {
    const known = targets.filter((target) => target.lines[at] === lines[at]).map((target) => target.sourceOf(at));
    return { places: known.flatMap((one) => one.places), unknown: known.flatMap((one) => one.unknown) };
  });
  for (const target of targets) {
    if (target.other) target.draw();
    target.showCurrent(lines.length > 1 ? line : -1);
    facts(target);
    details.get(target).show(line);
  }
  drawing = false;
}

function facts(target) {
  const known = target.entryOf(line), missing = known ? known.unknown.map((word) => known.words[word]) : [];
  const parts = [];
  if (target.seconds !== undefined && target.lines.length) parts.push(`${target.seconds.toFixed(2)} s`);
  if (missing.length) parts.push(`not known: ${missing.join(", ")}`);
  if (targets.length > 1 && known) parts.push("underlined words are not in the other translation");
  if (known && target.engine.tokenized_only) parts.push("this engine reads words between blanks");
  if (known?.parts > 1) parts.push(`translated in ${known.parts} parts`);
  target.part(".facts").textContent = parts.join(" · ");
}

// The translation is read out once it stands still.
function speakLater() {
  clearTimeout(speaker);
  speaker = setTimeout(() => {
    if (document.activeElement !== byId("source")) return;
    say(targets.map((target) => (targets.length > 1 ? `${target.engine.name}: ` : "") + target.textOf(line)).join(". "));
  }, SPOKEN);
}

function say(text) { byId("said").textContent = text; }

function goTo(at) {
  if (at === line) return;
  line = at;
  draw();
}

// ---- words that belong together ----

function leave() {
  source.clear();
  for (const target of targets) target.clear();
  for (const one of details.values()) one.clear();
  hideTip();
}

function hoverTarget(target, at, word, rect, spoken = false) {
  leave();
  const known = target.entryOf(at), hypothesis = target.hypothesisOf(at);
  if (!known || target.lines[at] !== source.lines[at]) return;
  const found = partners(hypothesis, "target", word);
  target.hold(at, word);
  source.mark(at, target.origins(at, word));
  if (at === line) details.get(target).point(word, found);
  const says = told(found, known.words, hypothesis);
  showTip(rect, hypothesis.words[word], says);
  if (spoken) say(`${hypothesis.words[word]}: ${says.join(", ") || "not aligned"}`);
}

function hoverSource(at, offset, rect) {
  leave();
  const tips = [];
  let name = "";
  for (const target of targets) {
    const word = target.lines[at] === source.lines[at] ? target.wordAt(at, offset) : undefined;
    if (word === undefined) continue;
    const known = target.entryOf(at), hypothesis = target.hypothesisOf(at);
    if (!hypothesis) continue;
    const found = partners(hypothesis, "source", word), says = told(found, hypothesis.words, hypothesis);
    target.mark(at, found);
    source.mark(at, [[...known.places[word], 0.25]]);
    name ||= known.words[word];
    if (known.unknown.includes(word)) says.unshift("not known to the engine");
    if (says.length) tips.push(targets.length > 1 ? `${target.engine.name}: ${says.join(", ")}` : says);
  }
  if (name) showTip(rect, name, tips.flat());
}

// The words that weigh most, with their weights where there are some.
function told(found, words, hypothesis) {
  const most = [...found].sort((a, b) => b[1] - a[1]).slice(0, 4);
  return most.map(([word, weight]) => (hypothesis.attention?.length ? `${words[word]} ${weight.toFixed(2)}` : words[word]));
}

// ---- engines ----

function addTarget() {
  const target = new Target(targets.length ? "second" : "first", events);
  targets.push(target);
  details.set(target, new Details(target, { pick: (at, rank) => { target.pick(at, rank); draw(); }, go: goTo, count: () => source.lines.length, hover: hoverTarget, leave }));
  byId("source-pane").after(...targets.map((one) => one.root));
  byId("job").after(...targets.map((one) => details.get(one).root));
  return target;
}

function setSource(language) {
  byId("from").value = language;
  if (language) source.field.lang = language;
  else source.field.removeAttribute("lang");
  targets.forEach((target, index) => {
    const list = reading(language), before = target.engine, last = recall(index ? "second engine" : "engine");
    const wanted = [(engine) => engine === before, (engine) => engine.name === last, (engine) => engine.target === before?.target];
    target.offer(list, wanted.map((is) => list.find(is)).find(Boolean)?.name);
  });
  engineChanged();
}

function engineChanged() {
  const [first, second] = targets;
  remember("engine", first.engine.name);
  if (second) remember("second engine", second.engine.name);
  byId("swap").hidden = !reverse(first.engine);
}

function swap() {
  const back = reverse(targets[0].engine), text = targets[0].text;
  if (!back) return;
  remember("engine", back.name);
  setSource(back.source);
  targets[0].offer(reading(back.source), back.name);
  engineChanged();
  source.text = text;
  now();
}

function compare(on) {
  byId("compare").setAttribute("aria-pressed", String(on));
  byId("desk").classList.toggle("compared", on);
  remember("compare", on ? "yes" : "");
  leave();
  if (on) {
    const first = targets[0], list = reading(byId("from").value);
    const rival = list.find((engine) => engine.name === recall("second engine") && engine !== first.engine);
    const other = rival ?? list.find((engine) => engine !== first.engine && engine.target === first.engine.target) ?? list.find((engine) => engine !== first.engine) ?? list[0];
    addTarget().offer(list, other.name);
    [targets[0].other, targets[1].other] = [targets[1], targets[0]];
    engineChanged();
  } else if (targets.length > 1) {
    const second = targets.pop();
    second.stop();
    second.root.remove();
    details.get(second).root.remove();
    details.delete(second);
    targets[0].other = null;
    targets[0].draw();
  }
  now();
}

// ---- start ----

function showTheme() {
  applyTheme(theme());
  byId("theme").textContent = `Theme: ${theme()}`;
}

function nextTheme() {
  remember("theme", THEMES[(THEMES.indexOf(theme()) + 1) % THEMES.length]);
  showTheme();
}

async function start() {
  showTheme();
  byId("theme").addEventListener("click", nextTheme);
  try {
    await loadEngines();
  } catch (error) {
    const again = element("button", { type: "button", class: "quiet" }, "Try again");
    again.addEventListener("click", () => location.reload());
    byId("desk").prepend(element("p", { class: "trouble", role: "alert" }, error.message, " ", again));
    return;
  }
  byId("about").replaceChildren(`nmt-smt ${engines.version}. For programs, `, element("code", {}, "/api/openapi.json"), " describes the interface.");
  byId("from").replaceChildren(...sources().map((code) => element("option", { value: code }, languageName(code))));
  byId("from").addEventListener("change", (event) => { setSource(event.target.value); now(); });
  byId("swap").addEventListener("click", swap);
  byId("clear").addEventListener("click", () => { source.text = ""; now(); source.field.focus(); });
  byId("compare").hidden = engines.all.length < 2;
  byId("compare").addEventListener("click", () => compare(targets.length < 2));
  addTarget();
  targets[0].root.parentNode.addEventListener("change", engineChanged);
  setSource((engineOf(recall("engine")) ?? engines.all[0]).source);
  if (recall("compare") && engines.all.length > 1) compare(true);
  job = new FileJob(() => targets[0].engine, say);
  listenToKeys({ source, targets, now, compare: () => compare(targets.length < 2), open: () => job.ask(), theme: nextTheme, leave });
  document.documentElement.dataset.ready = "yes";
  now();
  source.field.focus();
}

start();
