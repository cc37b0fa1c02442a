"use strict";
const data = JSON.parse(document.getElementById("data").textContent);
const COLORS = ["#1b6ca8", "#d1495b", "#3c3c3c", "#e9a03b", "#4f9d69", "#8d5a97", "#7fb7d9", "#9a9a9a"];
const PAGE = 20;
const byId = (id) => document.getElementById(id);
const number = (value, digits) => (value === null || value === undefined ? "" : value.toFixed(digits));

function element(name, attributes = {}, ...children) {
  const made = document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
  made.append(...children);
  return made;
}

function drawn(name, attributes, text = "") {
  const made = document.createElementNS("http://www.w3.org/2000/svg", name);
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
  made.textContent = text;
  return made;
}

// A table whose columns sort when their heads are pressed. columns: {title, value(row), text(row), best: higher is better}
function sortable(table, columns, rows) {
  const head = element("tr"), body = element("tbody");
  const fill = (order) => {
    body.replaceChildren(...order.map((row) => element("tr", {}, ...columns.map((column) => {
      const cell = element("td", typeof column.value(row) === "string" ? { class: "text" } : {}, column.text(row));
      const top = column.best ? Math.max(...rows.filter((other) => !column.within || column.within(other) === column.within(row)).map(column.value)) : null;
      if (column.best && rows.length > 1 && column.value(row) === top) cell.className = "best";
      return cell;
    }))));
  };
  columns.forEach((column) => {
    const button = element("button", { type: "button" }, column.title);
    const cell = element("th", { scope: "col" }, button);
    button.addEventListener("click", () => {
      const falling = cell.getAttribute("aria-sort") !== "descending";
      head.querySelectorAll("th").forEach((other) => other.removeAttribute("aria-sort"));
      cell.setAttribute("aria-sort", falling ? "descending" : "ascending");
      const compare = (a, b) => {
        const x = column.value(a), y = column.value(b);
        const way = typeof x === "string" ? x.localeCompare(y) : (x ?? -Infinity) - (y ?? -Infinity);
        return falling ? -way : way;
      };
      fill([...rows].sort(compare));
    });
    head.append(cell);
  });
  table.replaceChildren(element("thead", {}, head), body);
  fill(rows);
}

function column(title, key, digits, best = false, within = null) {
  const value = (row) => row[key];
  return { title, value, best, within, text: (row) => (digits === null ? String(row[key]) : number(row[key], digits)) };
}

// Round numbers from low to high, about four of them.
function ticks(low, high) {
  const rough = (high - low) / 4 || 1, power = 10 ** Math.floor(Math.log10(rough));
  const step = [1, 2, 5, 10].map((times) => times * power).find((size) => size >= rough);
  const found = [];
  for (let value = Math.ceil(low / step) * step; value <= high + 1e-9; value += step) found.push(Number(value.toPrecision(12)));
  return found;
}

function chart(given) {
  const W = 520, H = 270, left = 44, right = 10, top = 10, bottom = 34;
  const points = given.series.flatMap((series) => series.points);
  const figure = element("figure", {}, element("figcaption", {}, given.title));
  if (!points.length) {
    figure.append(element("p", { class: "note" }, "no point stands on enough sentences"));
    return figure;
  }
  const xs = points.map((point) => point[0]), ys = points.map((point) => point[1]);
  const low = Math.min(...xs), high = Math.max(...xs), most = Math.max(...ys, 1e-9) * 1.05;
  const x = (value) => left + ((value - low) / (high - low || 1)) * (W - left - right);
  const y = (value) => H - bottom - (value / most) * (H - top - bottom);
  const svg = drawn("svg", { viewBox: `0 0 ${W} ${H}`, role: "img", "aria-label": given.title });
  for (const level of ticks(0, most)) {
    svg.append(drawn("line", { class: "grid", x1: left, x2: W - right, y1: y(level), y2: y(level) }));
    svg.append(drawn("text", { x: left - 6, y: y(level) + 4, "text-anchor": "end" }, String(level)));
  }
  for (const at of ticks(low, high)) svg.append(drawn("text", { x: x(at), y: H - bottom + 15, "text-anchor": "middle" }, String(at)));
  svg.append(drawn("text", { x: (W + left) / 2, y: H - 4, "text-anchor": "middle" }, given.x));
  const tip = element("div", { class: "tip", hidden: "" });
  const legend = element("div", { class: "legend" });
  given.series.forEach((series, index) => {
    const color = COLORS[index % COLORS.length];
    const path = series.points.map((point, place) => `${place ? "L" : "M"}${x(point[0]).toFixed(1)} ${y(point[1]).toFixed(1)}`).join("");
    svg.append(drawn("path", { d: path, fill: "none", stroke: color, "stroke-width": 2 }));
    for (const point of series.points) {
      const says = `${series.name}: ${given.y} ${point[1].toFixed(2)} at ${point[0]}` + (point[2] === null ? "" : `, n = ${point[2]}`);
      const dot = drawn("circle", { cx: x(point[0]), cy: y(point[1]), r: 3, fill: color });
      dot.append(drawn("title", {}, says));
      dot.addEventListener("mouseenter", () => {
        tip.textContent = says;
        tip.hidden = false;
        const share = x(point[0]) / W;
        tip.style.left = share < 0.5 ? `${share * 100}%` : "auto";
        tip.style.right = share < 0.5 ? "auto" : `${(1 - share) * 100}%`;
        tip.style.top = `${(y(point[1]) / H) * 100}%`;
      });
      dot.addEventListener("mouseleave", () => { tip.hidden = true; });
      svg.append(dot);
    }
    const mark = element("i");
    mark.style.background = color;
    legend.append(element("span", {}, mark, series.name));
  });
  figure.append(svg, tip, legend);
  return figure;
}

let page = 0;

function wanted() {
  const limit = (id, otherwise) => (byId(id).value === "" ? otherwise : Number(byId(id).value));
  const first = Number(byId("first").value), second = Number(byId("second").value), text = byId("text").value.toLowerCase();
  const rows = data.rows.map((row) => ({ ...row, difference: row.chrf[first] - row.chrf[second], worst: row.chrf[first] }));
  const kept = rows.filter((row) =>
    row.words >= limit("min-words", 0) && row.words <= limit("max-words", Infinity) &&
    row.unknown >= limit("min-unknown", 0) && row.unknown <= limit("max-unknown", Infinity) &&
    row.difference >= limit("min-difference", -Infinity) &&
    (!text || [row.source, ...row.references, ...row.hypotheses].some((line) => line.toLowerCase().includes(text))));
  const key = byId("sort").value;
  return kept.sort((a, b) => (key === "difference" ? b[key] - a[key] : a[key] - b[key]) || a.line - b.line);
}

function show() {
  const rows = wanted();
  page = Math.min(page, Math.max(0, Math.ceil(rows.length / PAGE) - 1));
  const from = page * PAGE, part = rows.slice(from, from + PAGE);
  byId("found").textContent = rows.length
    ? `${rows.length} of ${data.rows.length} sentences, showing ${from + 1} to ${from + part.length}`
    : `0 of ${data.rows.length} sentences`;
  byId("back").disabled = page === 0;
  byId("more").disabled = from + PAGE >= rows.length;
  byId("sentences").replaceChildren(...part.map((row) => {
    const list = element("dl");
    const add = (name, score, text) => list.append(element("dt", {}, name), element("dd", { class: "score" }, score), element("dd", { dir: "auto" }, text));
    add("source", "", row.source);
    row.references.forEach((text, index) => add(index ? `reference ${index + 1}` : "reference", "", text));
    row.hypotheses.forEach((text, index) => add(data.systems[index].name, number(row.chrf[index], 1), text));
    const head = `line ${row.line}, ${row.words} words, ${row.unknown} unknown` + (data.systems.length > 1 ? `, difference ${number(row.difference, 1)}` : "");
    return element("article", { "data-line": row.line }, element("div", { class: "head" }, head), list);
  }));
}

byId("facts").textContent = `${data.sentences} sentences, ${data.systems.length} systems; made by nmt-analyze ${data.version}`;
byId("signatures").textContent = data.signatures.join("   ");
sortable(byId("systems"), [
  column("system", "name", null), column("BLEU", "bleu", 2, true), column("± (95%)", "interval", 2),
  column("p against the first", "p", 4), column("chrF", "chrf", 2, true), column("length ratio", "ratio", 3),
], data.systems);
if (data.subsets.length) {
  const within = (row) => row.subset;
  sortable(byId("subsets"), [
    column("subset", "subset", null), column("system", "system", null), column("sentences", "sentences", 0),
    column("BLEU", "bleu", 2, true, within), column("chrF", "chrf", 2, true, within), column("length ratio", "ratio", 3),
  ], data.subsets);
} else byId("subset-section").remove();
byId("charts").replaceChildren(...data.charts.map(chart));
for (const id of ["first", "second"]) byId(id).replaceChildren(...data.systems.map((system, index) => element("option", { value: index }, system.name)));
byId("second").value = String(Math.min(1, data.systems.length - 1));
byId("filters").addEventListener("input", () => { page = 0; show(); });
byId("filters").addEventListener("submit", (event) => event.preventDefault());
byId("back").addEventListener("click", () => { page -= 1; show(); });
byId("more").addEventListener("click", () => { page += 1; show(); });
show();
