
// Sort a table by the column whose heading is clicked: numbers by value, words by letter, empty cells last.
function sortBy(heading) {
  const body = heading.closest("table").tBodies[0];
  const column = heading.cellIndex;
  const isNumber = heading.classList.contains("number");
  const first = isNumber ? "descending" : "ascending";
  const order = heading.ariaSort === first ? (isNumber ? "ascending" : "descending") : first;
  const sign = order === "ascending" ? 1 : -1;
  const key = (row) => {
    const text = row.cells[column].textContent.trim();
    return isNumber ? parseFloat(text.replace(/,(?=\d{3})/g, "").replace(/^[[<\s]+/, "")) : text;
  };
  const isEmpty = (value) => value === "" || Number.isNaN(value);
  const compare = (a, b) => (isNumber ? a - b : a.localeCompare(b));
  const rows = [...body.rows].map((row) => [key(row), row]);
  rows.sort(([a], [b]) => isEmpty(a) - isEmpty(b) || (isEmpty(a) ? 0 : sign * compare(a, b)));
  for (const other of heading.parentNode.cells) other.removeAttribute("aria-sort");
  heading.ariaSort = order;
  body.append(...rows.map(([, row]) => row));
}
for (const heading of document.querySelectorAll("thead th")) {
  heading.firstElementChild.addEventListener("click", () => sortBy(heading));
}
