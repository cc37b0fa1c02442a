// Which words of a translation are in the reference, and which of the reference it misses.
const segmenter = typeof Intl.Segmenter === "function" && !data.tokenized ? new Intl.Segmenter(undefined, { granularity: "word" }) : null;

// A text as pieces; words and marks are compared, blanks are not.
function pieces(text) {
  const parts = segmenter ? [...segmenter.segment(text)].map((item) => item.segment) : text.match(data.tokenized ? /\s+|\S+/g : /\s+|[\p{L}\p{M}\p{N}]+|./gsu) ?? [];
  return parts.map((part) => ({ text: part, word: part.trim() && (data.lowercase ? part.toLowerCase() : part) }));
}

// For each word of a translation "" (right), moved or wrong, and the positions of the reference that it covers.
function matchWords(hypothesis, reference) {
  const kinds = hypothesis.map(() => "wrong"), covered = new Set();
  for (const [i, j] of common(hypothesis, reference)) { kinds[i] = ""; covered.add(j); }
  const remaining = new Map();
  reference.forEach((word, j) => { if (!covered.has(j)) remaining.set(word, [...(remaining.get(word) ?? []), j]); });
  hypothesis.forEach((word, i) => {
    if (kinds[i] && remaining.get(word)?.length) { kinds[i] = "moved"; covered.add(remaining.get(word).shift()); }
  });
  return { kinds, covered };
}

// The nodes of a text whose words are marked by their kinds.
function markWords(parts, kinds, titles = []) {
  let index = 0;
  const nodes = [];
  for (const part of parts) {
    const kind = part.word ? kinds[index] : "", title = part.word ? titles[index] : "";
    if (part.word) index++;
    const last = nodes.at(-1);
    if (kind) nodes.push(element("mark", { class: kind, ...(title ? { title } : {}) }, part.text));
    else if (typeof last === "string") nodes[nodes.length - 1] += part.text;
    else nodes.push(part.text);
  }
  return nodes;
}

// The texts of a sentence as nodes: the first reference, and each hypothesis compared with it.
function comparison(row) {
  const reference = pieces(row.references[0]), words = reference.map((part) => part.word).filter(Boolean);
  const texts = row.hypotheses.map(pieces);
  const matches = texts.map((parts) => matchWords(parts.map((part) => part.word).filter(Boolean), words));
  const missing = words.map((_, index) => data.systems.filter((_, system) => !matches[system].covered.has(index)));
  const kinds = missing.map((systems) => (!systems.length ? "" : systems.length === data.systems.length ? "missed" : "partly"));
  return {
    reference: markWords(reference, kinds, missing.map((systems) => (systems.length ? `missed by ${systems.join(", ")}` : ""))),
    hypotheses: texts.map((parts, system) => markWords(parts, matches[system].kinds)),
  };
}
