// The engines of the server, their languages, and the menus to choose from.
import { call } from "./api.js";

export const engines = { all: [], limits: {}, version: "" };

export async function loadEngines() {
  const found = await call("api/engines");
  Object.assign(engines, { all: found.engines, limits: found.limits, version: found.version });
}

export const engineOf = (name) => engines.all.find((engine) => engine.name === name);
export const can = (engine, what) => engine.capabilities.includes(what);

const names = typeof Intl.DisplayNames === "function" ? new Intl.DisplayNames(["en"], { type: "language", fallback: "code" }) : null;

export function languageName(code) {
  if (!code) return "language not stated";
  try { return names?.of(code) ?? code; } catch { return code; } // a code that is none
}

// The source languages, each once, in the order of the server.
export const sources = () => [...new Set(engines.all.map((engine) => engine.source))];

// Engines that read a language; those that do not state theirs read any.
export const reading = (source) => engines.all.filter((engine) => engine.source === source || !engine.source);

// The languages into which these engines translate, each once.
export const targetsOf = (list) => [...new Set(list.map((engine) => engine.target))];

// Those of them that translate into a language.
export const between = (source, target) => reading(source).filter((engine) => engine.target === target);

// An engine of the other direction.
export const reverse = (engine) => (engine.source && engine.target ? engines.all.find((other) => other.source === engine.target && other.target === engine.source) : undefined);

export const engineOptions = (list) => list.map((engine) => element("option", { value: engine.name, title: engine.description }, engine.name));

export const languageOptions = (codes) => codes.map((code) => element("option", { value: code }, languageName(code)));
