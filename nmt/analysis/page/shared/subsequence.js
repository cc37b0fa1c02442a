const LARGE = 1000000; // cells of a table of common words; larger ones would take too long

// The places of a longest common subsequence of two lists of words: pairs of a place in each.
function common(first, second) {
  const width = second.length + 1;
  if (first.length * width > LARGE) return [];
  const longest = new Uint16Array((first.length + 1) * width);
  for (let i = first.length - 1; i >= 0; i--)
    for (let j = second.length - 1; j >= 0; j--)
      longest[i * width + j] = first[i] === second[j] ? longest[(i + 1) * width + j + 1] + 1 : Math.max(longest[(i + 1) * width + j], longest[i * width + j + 1]);
  const pairs = [];
  for (let i = 0, j = 0; i < first.length && j < second.length; ) {
    if (first[i] === second[j]) pairs.push([i++, j++]);
    else if (longest[(i + 1) * width + j] >= longest[i * width + j + 1]) i++;
    else j++;
  }
  return pairs;
}
