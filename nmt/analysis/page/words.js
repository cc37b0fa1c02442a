// Which words of a translation are in the reference, and which of the reference it misses.
const segmenter = typeof Intl.Segmenter === "function" && !data.tokenized ? new Intl.Segmenter(undefined, { granularity: "word" }) : null;

// A text as pieces; words and marks are compared, blanks are not.
function pieces(text) {
  const found = segmenter ? [...segmenter.segment(text)].map((one) => one.segment) : text.match(data.tokenized ? /\s+|\S+/g : /\s+|[\p{L}\p{M}\p{N}]+|./gsu) ?? [];
  return found.map((part) => ({ text: part, word: part.trim() && (data.lowercase ? part.toLowerCase() : part) }));
}

// For each word of a translation "" (right), moved or wrong, and the places of the reference that it has.
function compared(hypothesis, reference) {
  const kinds = hypothesis.map(() => "wrong"), has = new Set();
  for (const [i, j] of common(hypothesis, reference)) { kinds[i] = ""; has.add(j); }
  const left = new Map();
  reference.forEach((word, j) => { if (!has.has(j)) left.set(word, [...(left.get(word) ?? []), j]); });
  hypothesis.forEach((word, i) => {
    if (kinds[i] && left.get(word)?.length) { kinds[i] = "moved"; has.add(left.get(word).shift()); }
  });
  return { kinds, has };
}

// A text with its words marked by their kinds.
function marked(parts, kinds, titles = []) {
  let place = 0;
  const nodes = [];
  for (const part of parts) {
    const kind = part.word ? kinds[place] : "", title = part.word ? titles[place] : "";
    if (part.word) place++;
    const before = nodes.at(-1);
    if (kind) nodes.push(element("mark", { class: kind, ...(title ? { title } : {}) }, part.text));
    else if (typeof before === "string") nodes[nodes.length - 1] += part.text;
    else nodes.push(part.text);
  }
  return nodes;
}

// The texts of a sentence as nodes: the first reference, and each hypothesis compared with it.
function comparison(row) {
  const reference = pieces(row.references[0]), words = reference.map((part) => part.word).filter(Boolean);
  const texts = row.hypotheses.map(pieces);
  const found = texts.map((parts) => compared(parts.map((part) => part.word).filter(Boolean), words));
  const missing = words.map((_, place) => data.systems.filter((_, system) => !found[system].has.has(place)));
  const kinds = missing.map((systems) => (!systems.length ? "" : systems.length === data.systems.length ? "missed" : "partly"));
  return {
    reference: marked(reference, kinds, missing.map((systems) => (systems.length ? `missed by ${systems.join(", ")}` : ""))),
    hypotheses: texts.map((parts, system) => marked(parts, found[system].kinds)),
  };
}
