const data = JSON.parse(document.getElementById("data").textContent);

// The heads of a table become buttons that sort its rows by data-value; cells without one come last.
function sortable(table) {
  const heads = [...table.tHead.rows[0].cells], body = table.tBodies[0];
  const value = (row, place) => row.cells[place].dataset.value;
  const compare = (a, b) => (isNaN(a) || isNaN(b) ? a.localeCompare(b) : a - b);
  heads.forEach((head, place) => {
    const button = element("button", { type: "button" }, head.textContent);
    head.replaceChildren(button);
    button.addEventListener("click", () => {
      const falling = head.getAttribute("aria-sort") !== "descending";
      heads.forEach((other) => other.removeAttribute("aria-sort"));
      head.setAttribute("aria-sort", falling ? "descending" : "ascending");
      const rows = [...body.rows], there = rows.filter((row) => value(row, place) !== undefined);
      there.sort((a, b) => compare(value(a, place), value(b, place)) * (falling ? -1 : 1));
      body.append(...there, ...rows.filter((row) => value(row, place) === undefined));
    });
  });
}

document.querySelectorAll("table.sortable").forEach(sortable);
