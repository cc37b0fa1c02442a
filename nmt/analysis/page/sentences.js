// The browser of sentences: filters, order, pages.
const PAGE = 20;
let page = 0;

function selectRows() {
  const limit = (id, fallback) => (byId(id).value === "" ? fallback : Number(byId(id).value));
  const first = Number(byId("first").value), second = Number(byId("second").value), text = byId("text").value.toLowerCase();
  const kind = Number(byId("kind").value), metric = byId("metric").value;
  const rows = data.rows.map((row) => {
    const difference = row[metric][first] - row[metric][second];
    return { ...row, hard: row.hard[kind] ?? 0, difference, size: Math.abs(difference), worst: row[metric][first] };
  });
  const selected = rows.filter((row) =>
    row.words >= limit("min-words", 0) && row.words <= limit("max-words", Infinity) &&
    row.hard >= limit("min-unknown", 0) && row.hard <= limit("max-unknown", Infinity) &&
    row.difference >= limit("min-difference", -Infinity) &&
    (!text || [row.source, ...row.references, ...row.hypotheses].some((line) => line.toLowerCase().includes(text))));
  const key = byId("sort").value, descending = key === "difference" || key === "size";
  return selected.sort((a, b) => (descending ? b[key] - a[key] : a[key] - b[key]) || a.line - b.line);
}

function article(row) {
  const list = element("dl");
  const add = (name, score, ...text) => list.append(element("dt", {}, element("bdi", {}, name)), element("dd", { class: "score" }, score), element("dd", { dir: "auto" }, ...text));
  const shown = byId("marks").checked ? comparison(row) : null, scores = row[byId("metric").value];
  add("source", "", row.source);
  row.references.forEach((text, index) => add(index ? `reference ${index + 1}` : "reference", "", ...(shown && !index ? shown.reference : [text])));
  row.hypotheses.forEach((text, index) => add(data.systems[index], number(scores[index], 1), ...(shown ? shown.hypotheses[index] : [text])));
  const kind = data.kinds.length ? `, ${row.hard} ${data.kinds[Number(byId("kind").value)]}` : "";
  const head = `line ${row.line}, ${row.words} words${kind}` + (data.systems.length > 1 ? `, difference ${number(row.difference, 1)}` : "");
  return element("article", { "data-line": row.line }, element("div", { class: "head" }, head), list);
}

function show() {
  const rows = selectRows();
  page = Math.min(page, Math.max(0, Math.ceil(rows.length / PAGE) - 1));
  const from = page * PAGE, part = rows.slice(from, from + PAGE);
  byId("found").textContent = rows.length
    ? `${rows.length} of ${data.rows.length} sentences, showing ${from + 1} to ${from + part.length}`
    : `0 of ${data.rows.length} sentences`;
  byId("back").disabled = page === 0;
  byId("more").disabled = from + PAGE >= rows.length;
  byId("key").hidden = !byId("marks").checked;
  byId("sentences").replaceChildren(...part.map(article));
}

for (const id of ["first", "second"]) byId(id).replaceChildren(...data.systems.map((name, index) => element("option", { value: index }, name)));
byId("second").value = String(Math.min(1, data.systems.length - 1));
byId("kind").replaceChildren(...data.kinds.map((name, index) => element("option", { value: index }, name)));
byId("hard").hidden = !data.kinds.length;
byId("kind").hidden = data.kinds.length < 2;
byId("kind-name").textContent = data.kinds.length === 1 ? data.kinds[0] : "";
byId("filters").hidden = byId("pages").hidden = false;
byId("filters").addEventListener("input", () => { page = 0; show(); });
byId("filters").addEventListener("submit", (event) => event.preventDefault());
byId("back").addEventListener("click", () => { page -= 1; show(); });
byId("more").addEventListener("click", () => { page += 1; show(); });
show();
