const data = JSON.parse(document.getElementById("data").textContent);

// The heads of a table become buttons that sort its rows by data-value; cells without one come last.
function sortable(table) {
  const heads = [...table.tHead.rows[0].cells], body = table.tBodies[0];
  const value = (row, column) => row.cells[column].dataset.value;
  const compare = (a, b) => (isNaN(a) || isNaN(b) ? a.localeCompare(b) : a - b);
  heads.forEach((head, column) => {
    const button = element("button", { type: "button" }, head.textContent);
    head.replaceChildren(button);
    button.addEventListener("click", () => {
      const descending = head.getAttribute("aria-sort") !== "descending";
      heads.forEach((cell) => cell.removeAttribute("aria-sort"));
      head.setAttribute("aria-sort", descending ? "descending" : "ascending");
      const rows = [...body.rows], filled = rows.filter((row) => value(row, column) !== undefined);
      filled.sort((a, b) => compare(value(a, column), value(b, column)) * (descending ? -1 : 1));
      body.append(...filled, ...rows.filter((row) => value(row, column) === undefined));
    });
  });
}

document.querySelectorAll("table.sortable").forEach(sortable);
