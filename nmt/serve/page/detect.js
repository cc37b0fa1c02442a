// Which language a text is in, as far as the engines of the server tell: the share of it that they know.
import { call } from "./api.js";
import { engines, languageName, sources } from "./engines.js";

const LOOKED_AT = 1000; // characters
const LEAST = 40; // percent that an engine knows of a text in its language
const AHEAD = 20; // percent by which another language has to be likelier
const WORDS = 2; // a word alone may be of any language

const last = { text: null, candidates: [] };

export const canDetect = () => engines.all.some((engine) => engine.source && engine.target);

// [{language, confidence in percent}, ...], the likeliest first; none where the server does not say.
export async function detect(text, signal) {
  const part = [...text.trim().slice(0, 2 * LOOKED_AT)].slice(0, LOOKED_AT).join("");
  if (!part || !canDetect()) return [];
  if (part !== last.text) {
    try {
      Object.assign(last, { candidates: await call("detect", { q: part }, signal), text: part });
    } catch { // translating goes on without
      return [];
    }
  }
  return last.candidates;
}

// The language to translate from: another one than `current` only where that is clearly likelier.
export function likeliest(candidates, current) {
  const [best] = candidates, now = candidates.find((one) => one.language === current);
  return best && !(now && best.confidence - now.confidence < AHEAD / 2) ? best.language : current;
}

// What is wrong with the chosen language: {says, instead}; `instead` is a language that fits better.
export function doubt(text, candidates, chosen) {
  const [best] = candidates, share = candidates.find((one) => one.language === chosen)?.confidence ?? 0;
  const short = text.trim().split(/\s+/u).length < WORDS && !/[\u3040-\u9fff\u0e00-\u0e7f]/u.test(text);
  if (!best || !chosen || short) return null;
  if (best.language !== chosen && best.confidence >= LEAST && best.confidence - share >= AHEAD)
    return { says: `This looks like ${languageName(best.language)}.`, instead: best.language };
  if (share >= LEAST) return null;
  const served = sources().filter(Boolean).map(languageName);
  return { says: served.length > 1 && best.confidence < LEAST ? `This looks like none of the languages here (${served.join(", ")}).` : `This does not look like ${languageName(chosen)}.` };
}
