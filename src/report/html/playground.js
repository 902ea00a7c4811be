"use strict";
(() => {
  const packed = atob(document.getElementById("walk-data").textContent);
  const walk = JSON.parse(new TextDecoder().decode(Uint8Array.from(packed, (byte) => byte.charCodeAt(0))));
  const section = document.getElementById("walk");
  const byId = (id) => document.getElementById(id);
  const [name, facts, action, ways, trail, back, again] =
    ["walk-name", "walk-facts", "walk-action", "walk-ways", "walk-trail", "walk-back", "walk-again"].map(byId);
  const drawn = [...document.querySelectorAll("svg .state")];
  let way = [];
  let ended = null;

  const here = () => (way.length ? way[way.length - 1].to : walk.start);
  const plural = (count, word) => `${count} ${word}${count === 1 ? "" : "s"}`;
  const item = (parent, text) => {
    const element = document.createElement("li");
    element.append(text);
    parent.append(element);
    return element;
  };

  function choice(text, isBad, act) {
    const button = document.createElement("button");
    button.type = "button";
    button.textContent = text;
    if (isBad) button.className = "bad";
    button.addEventListener("click", act);
    item(ways, button);
  }

  function take(one) {
    way.push(one);
    ended = null;
    show();
  }

  function show() {
    const node = walk.nodes[here()];
    const state = walk.states[node.state];
    const visits = (way.map((one) => one.to)).concat(walk.start).filter((at) => walk.nodes[at].state === node.state).length;
    name.textContent = ended ? `The run ends: ${ended}` : state.end ? `${state.name}: ${state.end}` : state.name;
    const told = [plural(way.length, "step"), `${plural(visits, "visit")} of this state`];
    told.push(node.verified ? "the work is verified" : "nothing is verified");
    if (node.capped) told.push("a cap was met: this runs once, and then the run ends");
    facts.textContent = told.join(" · ");
    action.textContent = state.action || "";
    action.hidden = !state.action;
    ways.replaceChildren();
    if (!ended) {
      for (const one of node.ways) choice(`${one.words} → ${walk.states[walk.nodes[one.to].state].name}`, one.bad, () => take(one));
      for (const words of node.dead) choice(`${words} → the run ends with an error`, true, () => { ended = `no way for \`${words}\``; show(); });
    }
    trail.replaceChildren();
    let at = walk.start;
    for (const one of way) {
      item(trail, `${walk.states[walk.nodes[at].state].name} (${one.words})`);
      at = one.to;
    }
    item(trail, walk.states[walk.nodes[at].state].name).setAttribute("aria-current", "step");
    back.disabled = !way.length && !ended;
    again.disabled = !way.length && !ended;
    drawn.forEach((element, index) => element.classList.toggle("current", index === node.state));
    if (!ways.children.length) name.focus({ preventScroll: true });
    else if (section.contains(document.activeElement) || document.activeElement === document.body) ways.querySelector("button")?.focus({ preventScroll: true });
  }

  function undo() {
    if (ended) ended = null;
    else way.pop();
    show();
  }

  back.addEventListener("click", undo);
  again.addEventListener("click", () => { way = []; ended = null; show(); });
  document.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.altKey || event.metaKey) return;
    const number = Number(event.key);
    if (number >= 1 && number <= 9) ways.querySelectorAll("button")[number - 1]?.click();
    else if (event.key === "Backspace") { event.preventDefault(); undo(); }
    else if (event.key === "0") again.click();
  });
  section.hidden = false;
  show();
})();
