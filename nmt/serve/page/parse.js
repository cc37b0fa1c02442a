// The soft parse of a gated recursive convolution, drawn as nmt-analyze grconv-parse draws it: the root on top,
// edges darker where a weight is larger.
const LEAST = 0.1; // weight of an edge that is drawn
const ROW = 44, MARGIN = 40;
const READABLE = 760; // pixels to which a wide picture may shrink

const svg = (name, attributes, ...children) => {
  const made = document.createElementNS("http://www.w3.org/2000/svg", name);
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
  made.append(...children);
  return made;
};

// `scrolled(node, label)`: a frame for what may be wider than the page
export function parseView(parse, scrolled) {
  const { units, nodes } = parse, count = units.length, step = Math.max(62, 9 * Math.max(...units.map((unit) => unit.length)) + 14);
  const place = (level, position) => [MARGIN + step * (position + level / 2 + 0.25), MARGIN / 2 + ROW * (count - 1 - level)];
  const lines = nodes.flatMap((node) => edges(node).map(([child, kind, weight]) => {
    const level = node.last - node.first, [x1, y1] = place(level, node.first), [x2, y2] = place(level - 1, child);
    return svg("line", { x1, y1, x2, y2, class: kind, "stroke-width": (4 * weight).toFixed(2), "stroke-opacity": weight.toFixed(3) });
  }));
  const dots = nodes.map((node) => {
    const [cx, cy] = place(node.last - node.first, node.first);
    return svg("circle", { cx, cy, r: 4 }, svg("title", {}, `${covered(units, node)}: ${weights(node)}`));
  });
  const leaves = units.map((unit, at) => {
    const [x, y] = place(0, at);
    return svg("text", { x, y: y + 20, "text-anchor": "middle" }, unit);
  });
  const width = 2 * MARGIN + step * (count - 0.5), height = MARGIN + ROW * (count - 1) + 16;
  const picture = svg("svg", { width, height, viewBox: `0 0 ${width} ${height}`, role: "img", class: "parse", "aria-label": `Soft parse of ${count} units; the table below has its weights` }, ...lines, ...dots, ...leaves);
  picture.style.minWidth = `${Math.min(width, READABLE)}px`;
  return [
    element("p", { class: "note" }, "Blue edges make a new combination of both children, gray ones copy one of them."),
    scrolled(picture, "Parse"),
    element("details", {}, element("summary", {}, "Weights"), scrolled(table(units, nodes), "Weights of the parse")),
  ];
}

// From a node down to its children: [child, kind, weight]
function edges({ first, new: fresh, left, right }) {
  const all = [[first, "fresh", fresh], [first + 1, "fresh", fresh], [first, "copy", left], [first + 1, "copy", right]];
  return all.filter((edge) => edge[2] > LEAST);
}

const covered = (units, node) => units.slice(node.first, node.last + 1).join(" ");
const weights = (node) => `new ${node.new.toFixed(2)}, left ${node.left.toFixed(2)}, right ${node.right.toFixed(2)}`;

function table(units, nodes) {
  const head = ["Words", "New", "Left", "Right"].map((name) => element("th", { scope: "col" }, name));
  const rows = nodes.map((node) => element("tr", {}, element("th", { scope: "row", dir: "auto" }, covered(units, node)), ...[node.new, node.left, node.right].map((weight) => element("td", {}, weight.toFixed(2)))));
  return element("table", {}, element("thead", {}, element("tr", {}, ...head)), element("tbody", {}, ...rows));
}
