"use strict";
(() => {
  const tools = document.getElementById("tools");
  const filter = document.getElementById("filter");
  const shown = document.getElementById("shown");
  const body = document.querySelector("tbody");
  const rows = [...body.rows];
  let here = null;

  const visible = () => [...body.rows].filter((row) => !row.hidden);
  const value = (row, column) => {
    const cell = row.cells[column];
    return cell.dataset.sort === undefined ? cell.textContent.toLowerCase() : Number(cell.dataset.sort);
  };

  document.querySelectorAll("thead th").forEach((head, column) => {
    const button = document.createElement("button");
    button.type = "button";
    button.textContent = head.textContent;
    head.replaceChildren(button);
    button.addEventListener("click", () => {
      const falls = head.getAttribute("aria-sort") === "ascending";
      document.querySelectorAll("thead th").forEach((other) => other.removeAttribute("aria-sort"));
      head.setAttribute("aria-sort", falls ? "descending" : "ascending");
      const order = (one, other) => {
        const [first, second] = [value(one, column), value(other, column)];
        return first < second ? -1 : first > second ? 1 : 0;
      };
      rows.sort((one, other) => (falls ? -order(one, other) : order(one, other)));
      body.append(...rows);
    });
  });

  function narrow() {
    const words = filter.value.toLowerCase().split(/\s+/).filter(Boolean);
    for (const row of rows) {
      const text = row.textContent.toLowerCase();
      row.hidden = !words.every((word) => text.includes(word));
    }
    shown.textContent = words.length ? `${visible().length} of ${rows.length}` : "";
  }

  function go(step) {
    const all = visible();
    if (!all.length) return;
    const at = all.indexOf(here);
    const next = all[Math.min(Math.max(at + step, 0), all.length - 1)];
    if (here) here.classList.remove("here");
    here = next;
    here.classList.add("here");
    here.tabIndex = -1;
    here.focus();
    here.scrollIntoView({ block: "nearest" });
  }

  filter.addEventListener("input", narrow);
  document.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    if (event.target === filter) {
      if (event.key === "Escape") {
        filter.value = "";
        narrow();
        filter.blur();
      }
      return;
    }
    if (event.key === "/") {
      event.preventDefault();
      filter.focus();
    } else if (event.key === "j") {
      go(1);
    } else if (event.key === "k") {
      go(-1);
    }
  });
  tools.hidden = false;
})();
