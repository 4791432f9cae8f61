// A link below each table of numbers that saves it as CSV.
function asCsv(table) {
  const quoted = (cell) => `"${cell.innerText.trim().replaceAll('"', '""')}"`;
  return [...table.rows].map((row) => [...row.cells].map(quoted).join(",")).join("\r\n") + "\r\n";
}

function isOfNumbers(table) {
  const others = [...table.querySelectorAll("tbody td:not(:first-child)")];
  const texts = others.map((cell) => cell.innerText.trim()).filter((text) => text);
  const numbers = texts.filter((text) => /^[-+<]?\d.{0,20}$/.test(text));
  return table.tBodies[0]?.rows.length > 3 && numbers.length > 0.3 * texts.length;
}

document.addEventListener("DOMContentLoaded", () => {
  const page = location.pathname.split("/").pop().replace(/\.html$/, "") || "table";
  [...document.querySelectorAll(".bd-article table")].filter(isOfNumbers).forEach((table, number) => {
    const link = document.createElement("a");
    link.href = URL.createObjectURL(new Blob(["\ufeff", asCsv(table)], { type: "text/csv" }));
    link.download = `${page}-${number + 1}.csv`;
    link.textContent = "CSV";
    const line = document.createElement("p");
    line.className = "as-csv";
    line.append(link);
    (table.closest(".pst-scrollable-table-container") || table).after(line);
  });
});
