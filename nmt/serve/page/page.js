// The page: the text, one or two translations of it, and what is told of a line.
import { Choice } from "./choice.js";
import { Details } from "./details.js";
import { detect } from "./detect.js";
import { engines, languageName, loadEngines } from "./engines.js";
import { FileJob } from "./files.js";
import { Glossary } from "./glossary.js";
import { listenToKeys } from "./keys.js";
import { partners } from "./alignment.js";
import { Source } from "./source.js";
import { Target } from "./target.js";

const DELAY = 250; // milliseconds without a key after which the text is translated
const SPOKEN = 1200; // and after which the translation is read out

let timer = 0, speaker = 0, line = 0, job = null, choice = null, glossary = null, latest = null;
const targets = [], details = new Map();

const source = new Source(byId("source"), byId("mirror"), {
  change: () => { leave(); draw(); later(); },
  hover: hoverSource,
  leave,
  line: goTo,
});

const events = {
  language: (code) => { leave(); choice.into(code); },
  engine: () => { leave(); choice.engineChosen(); draw(); },
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

async function now() {
  clearTimeout(timer);
  latest?.abort();
  const { signal } = (latest = new AbortController());
  const { text, lines } = source, problem = tooMuch(lines);
  if (problem) return refuse(problem, lines);
  const detected = detect(text, signal);
  if (choice.auto) choice.detected(await detected);
  if (signal.aborted) return;
  if (!text.trim()) choice.forgetDetected();
  for (const target of targets) target.follow(lines);
  const candidates = await detected;
  if (!signal.aborted) advise(choice.doubt(text, candidates));
}

const note = (...content) => byId("source-note").replaceChildren(...content);

function refuse(problem, lines) {
  for (const target of targets) target.stop();
  note(problem);
  if (lines.length > engines.limits.max_lines) note(problem, " ", quiet("Translate as a file", () => job.take(new File([source.text], "text.txt"))));
}

// Say that the text is in another language, if it is.
function advise(found) {
  if (!found) return note();
  const { says, instead } = found;
  if (!instead || choice.auto) return note(says);
  note(says, " ", quiet(`Translate from ${languageName(instead)}`, () => { choice.choose(instead); source.field.focus(); }));
}

function quiet(text, act) {
  const button = element("button", { type: "button", class: "quiet" }, text);
  button.addEventListener("click", act);
  return button;
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
    const entries = targets.filter((target) => target.lines[at] === lines[at]).map((target) => target.sourceOf(at));
    return { ranges: entries.flatMap((one) => one.ranges), unknown: entries.flatMap((one) => one.unknown) };
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
  const entry = target.entryOf(line), missing = entry ? entry.unknown.map((word) => entry.words[word]) : [];
  const parts = [];
  if (target.seconds !== undefined && target.lines.length) parts.push(`${target.seconds.toFixed(2)} s`);
  if (missing.length) parts.push(`not known: ${missing.join(", ")}`);
  if (targets.length > 1 && entry) parts.push("underlined words are not in the other translation");
  if (entry && target.engine.tokenized_only && !target.isPlain) parts.push("reads and writes words between blanks");
  if (entry?.parts > 1) parts.push(`translated in ${entry.parts} parts`);
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
}

function hoverTarget(target, at, word, spoken = false) {
  leave();
  const entry = target.entryOf(at), hypothesis = target.hypothesisOf(at);
  if (!entry || target.lines[at] !== source.lines[at]) return;
  const found = partners(hypothesis, "target", word);
  target.hold(at, word);
  source.mark(at, target.origins(at, word));
  if (at === line) details.get(target).point(word, found);
  const says = told(found, entry.words, hypothesis);
  target.tell(hypothesis.words[word], says);
  if (spoken) say(`${hypothesis.words[word]}: ${says.join(", ") || "not aligned"}`);
}

function hoverSource(at, offset) {
  leave();
  for (const target of targets) {
    const word = target.lines[at] === source.lines[at] ? target.wordAt(at, offset) : undefined;
    if (word === undefined) continue;
    const entry = target.entryOf(at), hypothesis = target.hypothesisOf(at);
    if (!hypothesis) continue;
    const found = partners(hypothesis, "source", word), says = told(found, hypothesis.words, hypothesis);
    target.mark(at, found);
    source.mark(at, [[...entry.ranges[word], 0.25]]);
    if (entry.unknown.includes(word)) says.unshift("not known to the engine");
    target.tell(entry.words[word], says);
  }
}

// The words that weigh most, with their weights where there are some.
function told(found, words, hypothesis) {
  const most = [...found].sort((a, b) => b[1] - a[1]).slice(0, 4);
  return most.map(([word, weight]) => (hypothesis.attention?.length ? `${words[word]} ${weight.toFixed(2)}` : words[word]));
}

// ---- translations and their details ----

function addTarget() {
  const target = new Target(targets.length ? "second" : "first", glossary, events);
  targets.push(target);
  details.set(target, new Details(target, {
    pick: (at, rank) => { target.pick(at, rank); draw(); }, go: goTo, count: () => source.lines.length, hover: hoverTarget, leave, wanted: now,
    toggled: (open) => { for (const one of details.values()) one.fold.open = open; },
  }));
  byId("source-pane").after(...targets.map((one) => one.root));
  byId("job").after(...targets.map((one) => details.get(one).root));
  return target;
}

// The second translation: there, or not.
function second(wanted) {
  if (wanted === targets.length > 1) return targets[1];
  leave();
  if (wanted) {
    addTarget();
    [targets[0].other, targets[1].other] = [targets[1], targets[0]];
    return targets[1];
  }
  const target = targets.pop();
  target.stop();
  target.root.remove();
  details.get(target).root.remove();
  details.delete(target);
  targets[0].other = null;
  targets[0].draw();
  return undefined;
}

function arranged() {
  for (const one of details.values()) one.offerCounts();
  glossary.show(targets[0].engine);
  const language = targets[0].engine.source;
  if (language) source.field.lang = language;
  else source.field.removeAttribute("lang");
}

function swap() {
  const { text } = targets[0];
  if (!choice.swap()) return;
  source.text = text;
  now();
}

// How to translate a file, and what is wrong with that. Its language is detected where no other text is there.
async function fileSettings(text) {
  const candidates = await detect(text);
  if (!source.text.trim()) choice.detected(candidates);
  const [target] = targets, found = choice.doubt(text, candidates);
  return { engine: target.engine, settings: target.settings(), doubt: found ? ` · ${found.says}` : "" };
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
    byId("desk").prepend(element("p", { class: "trouble", role: "alert" }, error.message, " ", quiet("Try again", () => location.reload())));
    return;
  }
  byId("about").replaceChildren(`nmt-smt ${engines.version}. For programs, `, element("code", {}, "/api/openapi.json"), " describes the interface.");
  byId("swap").addEventListener("click", swap);
  byId("clear").addEventListener("click", () => { source.text = ""; now(); source.field.focus(); });
  glossary = new Glossary(() => { targets.forEach((target) => target.forget()); later(); });
  choice = new Choice(addTarget(), { second, arranged, changed: now });
  job = new FileJob(fileSettings, say);
  listenToKeys({
    source, targets, now, leave, theme: nextTheme, open: () => job.ask(), compare: () => { if (!byId("compare").hidden) choice.compare(); },
    glossary: () => glossary.open(), details: () => { const { fold } = details.get(targets[0]); fold.open = !fold.open; },
  });
  document.documentElement.dataset.ready = "yes";
  now();
  source.field.focus();
}

start();
