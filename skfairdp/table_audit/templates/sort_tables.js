"use strict";
// Tables can be read without this script; with it, the header of a column is a button that sorts.
for (const table of document.querySelectorAll("table.sortable")) {
  const headers = [...table.tHead.rows[0].cells];
  headers.forEach((header, column) => {
    const button = document.createElement("button");
    button.type = "button";
    button.append(...header.childNodes);
    header.append(button);
    header.setAttribute("aria-sort", "none");
    button.addEventListener("click", () => {
      const up = header.getAttribute("aria-sort") !== "ascending";
      headers.forEach((other) => other.setAttribute("aria-sort", "none"));
      header.setAttribute("aria-sort", up ? "ascending" : "descending");
      const key = (row) => row.cells[column].dataset.sort ?? row.cells[column].textContent.trim();
      const rows = [...table.tBodies[0].rows].sort((one, other) => {
        const [a, b] = [key(one), key(other)];
        if (a === "" || b === "") return (a === "") - (b === ""); // what is undefined stays last
        const order = isNaN(a) || isNaN(b) ? a.localeCompare(b) : a - b;
        return up ? order : -order;
      });
      table.tBodies[0].append(...rows);
    });
  });
}
function markWhatScrolls() {
  for (const box of document.querySelectorAll(".scroll")) {
    box.classList.toggle("overflows", box.scrollWidth > box.clientWidth + 1);
  }
}
addEventListener("resize", markWhatScrolls);
document.addEventListener("toggle", markWhatScrolls, true);
markWhatScrolls();
