// Shortcuts, and the dialog that lists them.

// `page`: what shortcuts act on
export function listenToKeys(page) {
  const [first] = page.targets;
  const field = page.source.field;
  const shortcuts = [
    ["Ctrl+Enter", "translate at once"],
    ["Esc", "leave the text field; forget the word pointed at"],
    ["← → ↑ ↓", "in a translation: go from word to word and see what belongs to it"],
    ["/", "go to the text", () => field.focus()],
    ["t", "go to the translation", () => first.output.focus()],
    ["e", "choose an engine", () => first.part(".engine").focus()],
    ["g", "the glossary", page.glossary],
    ["o", "open or close the details of a line", page.details],
    ["v", "compare two engines", page.compare],
    ["c", "copy the translation", () => first.copy()],
    ["f", "translate a file", page.open],
    ["d", "light or dark", page.theme],
    ["?", "this list", openHelp],
  ];
  byId("keys").replaceChildren(...shortcuts.map(([key, does]) => element("tr", {}, element("th", { scope: "row" }, element("kbd", {}, key)), element("td", { class: "text" }, does))));
  const single = byId("single-keys");
  single.checked = recall("single keys") !== "no";
  single.addEventListener("change", () => remember("single keys", single.checked ? "yes" : "no"));
  byId("help").addEventListener("click", openHelp);
  byId("help-close").addEventListener("click", () => byId("help-dialog").close());
  addEventListener("keydown", (event) => {
    if (document.querySelector("dialog[open]")) return;
    if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) { event.preventDefault(); return page.now(); }
    if (event.key === "Escape") { page.leave(); if (document.activeElement === field) field.blur(); return; }
    if (event.ctrlKey || event.metaKey || event.altKey || !single.checked || event.target.closest?.("input, textarea, select")) return;
    const act = shortcuts.find(([key, , does]) => does && key === event.key)?.[2];
    if (act) { event.preventDefault(); act(); }
  });
}

function openHelp() { byId("help-dialog").showModal(); }
