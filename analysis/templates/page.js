
// Sort a table by the column whose heading is clicked: numbers by value, words by letter, empty cells last.
function sortBy(heading) {
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
  // Each part is sorted by itself, so that a folded row stays folded.
  for (const body of heading.closest("table").querySelectorAll("tbody:not(.fold)")) {
    const rows = [...body.rows].map((row) => [key(row), row]);
    rows.sort(([a], [b]) => isEmpty(a) - isEmpty(b) || (isEmpty(a) ? 0 : sign * compare(a, b)));
    body.append(...rows.map(([, row]) => row));
  }
  for (const other of heading.parentNode.cells) other.removeAttribute("aria-sort");
  heading.ariaSort = order;
}
for (const heading of document.querySelectorAll("thead th")) {
  heading.firstElementChild.addEventListener("click", () => sortBy(heading));
}

// Fold the parts of a table that have a name behind a button: without a script, all rows are shown.
for (const body of document.querySelectorAll("tbody[data-fold]")) {
  const button = document.createElement("button");
  button.type = "button";
  button.textContent = `${body.dataset.fold} (${body.rows.length})`;
  const fold = (isOpen) => {
    body.hidden = !isOpen;
    button.ariaExpanded = String(isOpen);
  };
  button.addEventListener("click", () => fold(body.hidden));
  fold("open" in body.dataset);
  const head = document.createElement("tbody");
  head.className = "fold";
  const cell = head.insertRow().insertCell();
  cell.colSpan = body.rows[0].cells.length;
  cell.append(button);
  body.before(head);
}

// On paper nothing can be unfolded.
addEventListener("beforeprint", () => {
  for (const each of document.querySelectorAll("details")) each.open = true;
});
