// Where the words of a tokenized line stand in its text, and which words belong together.

// For each word its [begin, end] in the text, or null where it is not found: tokenizers rewrite quotes, models
// change case. Words are sought from left to right; a single one that is missing gets what its neighbors leave.
export function wordRanges(text, words) {
  const lower = sameLength(text), ranges = [];
  let at = 0, missing = false;
  for (const word of words) {
    while (at < text.length && /\s/.test(text[at])) at++;
    const sought = sameLength(word), begin = missing ? lower.indexOf(sought, at) : lower.startsWith(sought, at) ? at : -1;
    missing = begin < 0 || !sought;
    ranges.push(missing ? null : [begin, begin + word.length]);
    if (!missing) at = begin + word.length;
  }
  ranges.forEach((range, index) => { if (!range) ranges[index] = gap(text, ranges, index); });
  return ranges;
}

const sameLength = (text) => {
  const lower = text.toLowerCase();
  return lower.length === text.length ? lower : text;
};

function gap(text, ranges, index) {
  const previous = index ? ranges[index - 1] : [0, 0], next = index + 1 < ranges.length ? ranges[index + 1] : [text.length, text.length];
  if (!previous || !next) return null;
  const between = text.slice(previous[1], next[0]), inner = between.trim();
  if (!inner || /\s/.test(inner)) return null;
  const begin = previous[1] + between.indexOf(inner);
  return [begin, begin + inner.length];
}

// How much each source word belongs to target word `at` (or each target word to source word `at`): attention
// where there is some, else 1 for aligned words. A list of [word, weight]; what hardly weighs
// is left out.
export function partners(hypothesis, side, at) {
  const { attention, alignment } = hypothesis;
  if (attention?.length) {
    const weights = side === "target" ? attention[at] ?? [] : attention.map((row) => row[at] ?? 0);
    const least = Math.max(0.02, Math.max(...weights) / 10);
    return [...weights.entries()].filter(([, weight]) => weight >= least);
  }
  const [own, other] = side === "target" ? [1, 0] : [0, 1];
  return alignment.filter((point) => point[own] === at).map((point) => [point[other], 1]);
}
