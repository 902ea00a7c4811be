"use strict";
// Opens, filters and jumps; everything else is on the page without it.
(() => {
  const steps = [...document.querySelectorAll("tbody[id^='step-']")];
  const name = /^(step-[0-9.]+)(?:-([LE])([0-9]+))?$/;

  // Opens the output of a step. What is in a block is never markup: it becomes text, line by line.
  async function show(details) {
    if (details.dataset.shown) return;
    details.dataset.shown = "yes";
    const block = document.getElementById(details.dataset.block);
    const pre = document.createElement("pre");
    pre.tabIndex = 0;
    details.append(pre);
    if (!block) {
      pre.textContent = `There was no room for it in this file; ${document.body.dataset.log} has it.`;
      return;
    }
    const bytes = Uint8Array.from(atob(block.textContent), (letter) => letter.charCodeAt(0));
    const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("deflate"));
    const text = await new Response(stream).text();
    const letter = details.dataset.block.startsWith("err") ? "E" : "L";
    const step = details.closest("tbody").id;
    const lines = text.replace(/\n$/, "").split("\n");
    const written = document.createDocumentFragment();
    lines.forEach((line, index) => {
      const row = document.createElement("span");
      row.className = "line";
      if (step) row.id = `${step}-${letter}${index + 1}`;
      // Between two marks are names of classes.
      line.split("\u001b").forEach((part, at, parts) => {
        if (at % 2 || !part) return;
        const classes = at ? parts[at - 1] : "";
        if (!/^[a-z0-9 ]+$/.test(classes)) return row.append(part);
        const piece = document.createElement("span");
        piece.className = classes;
        piece.textContent = part;
        row.append(piece);
      });
      written.append(row, "\n");
    });
    pre.append(written);
  }

  document.addEventListener("toggle", ({ target }) => {
    if (target.open && target.dataset.block) show(target);
  }, true);

  let here;

  function go(step) {
    here = step;
    const details = step.querySelector("details");
    if (details) details.open = true;
    step.scrollIntoView({ block: "center" });
    step.querySelector("th a").focus({ preventScroll: true });
  }

  async function jump(hash) {
    let wanted;
    try { wanted = decodeURIComponent(hash.slice(1)); } catch { return; }
    const [, id, letter, line] = name.exec(wanted) || [];
    const step = id && document.getElementById(id);
    if (!step) return;
    step.hidden = false;
    go(step);
    if (!letter) return;
    const kind = letter === "E" ? "err" : "out";
    const output = [...step.querySelectorAll("details.output")].find((one) => one.dataset.block.startsWith(kind));
    if (!output) return;
    output.open = true;
    await show(output);
    const row = document.getElementById(`${id}-${letter}${line}`);
    if (!row) return;
    document.querySelectorAll(".line.wanted").forEach((one) => one.classList.remove("wanted"));
    row.classList.add("wanted");
    row.scrollIntoView({ block: "center" });
  }

  const filter = document.getElementById("filter");
  const only = document.getElementById("failed-only");
  const visible = () => steps.filter((step) => !step.hidden);

  function sift() {
    const words = filter.value.toLowerCase();
    for (const step of steps) {
      const fits = !words || step.textContent.toLowerCase().includes(words);
      step.hidden = !fits || (only.checked && !step.classList.contains("fail"));
    }
    const count = visible().length;
    document.getElementById("shown").textContent = count === steps.length ? "" : `${count} of ${steps.length} steps`;
  }

  function move(by, wanted) {
    const all = visible();
    // A browser that follows a link may take the focus away again.
    const focused = document.activeElement && document.activeElement.closest("tbody[id^='step-']");
    let at = all.indexOf(focused || here);
    if (at < 0 && by < 0) at = all.length;
    do { at += by; } while (all[at] && !wanted(all[at]));
    if (all[at] || here) go(all[at] || here);
  }

  if (filter) {
    document.querySelector(".tools").hidden = false;
    filter.addEventListener("input", sift);
    only.addEventListener("change", sift);
  }
  document.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey || /^(input|textarea|select)$/i.test(event.target.localName)) return;
    const keys = {
      j: () => move(1, () => true),
      k: () => move(-1, () => true),
      f: () => move(1, (step) => step.classList.contains("fail")),
      "/": () => filter && filter.focus(),
    };
    if (!Object.hasOwn(keys, event.key)) return;
    event.preventDefault();
    keys[event.key]();
  });

  window.addEventListener("hashchange", () => jump(location.hash));
  if (location.hash) jump(location.hash);
  else if (document.body.dataset.opens) {
    const step = document.getElementById(document.body.dataset.opens);
    // The page begins with the outcome of the run; the step that decided is open further below.
    if (step) {
      here = step;
      const details = step.querySelector("details");
      if (details) details.open = true;
    }
  }
})();
