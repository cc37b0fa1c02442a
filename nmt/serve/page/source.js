// The text to translate: a text field, and behind it a mirror of its lines that shows what is marked.
export class Source {
  // `on`: change(), hover(line, offset), leave(), line(line)
  constructor(field, mirror, on) {
    Object.assign(this, { field, mirror, on });
    field.addEventListener("input", () => { this.clear(); on.change(); });
    field.addEventListener("mousemove", (event) => this.point(event));
    field.addEventListener("mouseleave", () => on.leave());
    field.addEventListener("blur", () => on.leave());
    field.addEventListener("click", () => this.atCaret());
    field.addEventListener("keyup", (event) => {
      if (/^(Arrow|Home|End|Page)/.test(event.key)) this.atCaret();
      else this.tellLine();
    });
  }

  get lines() { return this.field.value ? this.field.value.split("\n") : []; }

  get text() { return this.field.value; }
  set text(text) {
    this.field.value = text;
    this.clear();
    this.on.change();
  }

  // Draw the lines. `wordsAt` says for a line where its words stand, and which of these words are unknown:
  // {ranges: [[begin, end], ...], unknown: [...]}; all that changes is drawn anew.
  draw(wordsAt) {
    const lines = this.lines, rows = this.mirror.children;
    while (rows.length > lines.length) this.mirror.lastChild.remove();
    lines.forEach((text, index) => {
      const row = rows[index] ?? this.mirror.appendChild(element("div", { class: "line" }));
      const { ranges, unknown } = wordsAt(index), key = JSON.stringify([text, ranges, unknown]);
      if (row.key === key) return;
      row.key = key;
      row.replaceChildren(...pieces(text, ranges, unknown));
    });
  }

  // Shade parts of a line: [[begin, end, weight], ...]
  mark(line, ranges) {
    for (const span of this.mirror.children[line]?.querySelectorAll("span") ?? []) {
      const over = ranges.filter(([begin, end]) => begin <= span.begin && span.begin < end);
      if (over.length) shade(span, Math.max(...over.map((range) => range[2])));
    }
  }

  clear() { unshade(this.mirror); }

  point(event) {
    const span = document.elementsFromPoint(event.clientX, event.clientY).find((one) => one.begin !== undefined && this.mirror.contains(one));
    if (!span) return this.on.leave();
    this.on.hover([...this.mirror.children].indexOf(span.parentNode), span.begin);
  }

  // Line and offset of the caret.
  get caret() {
    const before = this.field.value.slice(0, this.field.selectionStart).split("\n");
    return [before.length - 1, before.at(-1).length];
  }

  tellLine() { this.on.line(this.caret[0]); }

  atCaret() {
    const [line, offset] = this.caret;
    this.on.line(line);
    if (this.field.selectionStart !== this.field.selectionEnd) return this.on.leave();
    const span = [...(this.mirror.children[line]?.querySelectorAll("span") ?? [])].find((one) => one.begin <= offset && offset <= one.end);
    if (span) this.on.hover(line, span.begin);
    else this.on.leave();
  }
}

// A line as nodes: words are spans, which know where they begin and end. Engines may cut it differently.
function pieces(text, ranges, unknown) {
  const cuts = [...new Set([0, text.length, ...ranges.flat()])].sort((a, b) => a - b);
  const inside = (list, at) => list.some(([begin, end]) => begin <= at && at < end);
  return cuts.slice(0, -1).map((begin, index) => {
    const end = cuts[index + 1], part = text.slice(begin, end);
    if (!inside(ranges, begin)) return part;
    return Object.assign(element("span", { class: inside(unknown, begin) ? "word unknown" : "word" }, part), { begin, end });
  });
}

// ---- shades ----

export function shade(node, weight) {
  node.classList.add("lit");
  node.style.setProperty("--weight", Math.min(1, weight).toFixed(3));
}

export function unshade(container) {
  for (const node of container.querySelectorAll(".lit, .held")) node.classList.remove("lit", "held");
}
