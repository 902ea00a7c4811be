// Turns log.txt and summary.md of a directory into log.html and summary.html, the way GitHub shows them:
// a log with groups, colours and masked tokens; Markdown with its Mermaid drawing.
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { marked } from "marked";

const work = process.argv[2];
const read = (name) => readFileSync(join(work, name), "utf8");
const escape = (text) => text.replace(/[&<>]/g, (c) => ({ "&": "&amp;", "<": "&lt;", ">": "&gt;" })[c]);

writeFileSync(join(work, "log.html"), page(log(read("log.txt")), LOG_STYLE()));
writeFileSync(join(work, "summary.html"), page(summary(read("summary.md")), SUMMARY_STYLE(), MERMAID()));

// The first group is open, as after a click on it; the others are closed, as GitHub shows them at first.
function log(text) {
  const rows = [];
  let groups = 0;
  let hidden = false;
  let number = 0;
  for (const line of text.trimEnd().split("\n")) {
    number += 1;
    if (line.startsWith("::group::")) {
      groups += 1;
      hidden = groups > 1;
      rows.push(row(number, `<b>${hidden ? "▸" : "▾"}</b> ${escape(unescape(line.slice(9)))}`, "group"));
    } else if (line === "::endgroup::") {
      hidden = false;
      number -= 1;
    } else if (!hidden) {
      rows.push(row(number, ansi(escape(masked(line))), groups === 1 && isInside(line) ? "inside" : ""));
    }
  }
  return `<main>${rows.join("\n")}</main>`;
}

function row(number, html, kind) {
  return `<div class="row ${kind}"><i>${number}</i><span>${html || " "}</span></div>`;
}

function isInside(line) {
  return line.startsWith("│") || line.startsWith("::");
}

function unescape(text) {
  return text.replace(/%0A/g, "\n").replace(/%0D/g, "\r").replace(/%25/g, "%");
}

// The runner hides the token by which commands are turned off and on.
function masked(line) {
  return line.replace(/^(::stop-commands::)\w+$/, "$1***").replace(/^::[0-9a-f]{32}::$/, "::***::");
}

function ansi(text) {
  const colours = { 31: "red", 32: "green", 33: "yellow", 36: "cyan" };
  return text.replace(/\x1b\[([0-9;]*)m/g, (_, codes) =>
    codes === "0" || codes === "" ? "</em>" : `<em class="${colours[codes.split(";").at(-1)] ?? ""}">`,
  );
}

function summary(text) {
  const renderer = new marked.Renderer();
  const code = renderer.code.bind(renderer);
  renderer.code = (token) =>
    token.lang === "mermaid" ? `<pre class="mermaid">${escape(token.text)}</pre>` : code(token);
  const html = marked.parse(text, { renderer, gfm: true });
  return `<main class="summary">${html.replace("✅", mark("#2da44e", "M7 16l6 6 12-13")).replace("❌", mark("#cf222e", "M9 9l14 14M23 9L9 23"))}</main>`;
}

// GitHub shows these two signs as pictures; a machine without a font for them shows an empty box.
function mark(colour, path) {
  return `<svg width="22" height="22" viewBox="0 0 32 32" style="vertical-align: -3px"><rect x="1" y="1" width="30" height="30" rx="6" fill="${colour}"/><path d="${path}" stroke="#fff" stroke-width="4" fill="none"/></svg>`;
}

function page(body, style, script = "") {
  const measure = `<script>addEventListener("load", async () => {
    if (window.drawn) await window.drawn;
    document.documentElement.dataset.height = Math.ceil(document.querySelector("main").getBoundingClientRect().height);
  });</script>`;
  return `<!doctype html><html><head><meta charset="utf-8"><style>${style}</style></head><body>${body}${script}${measure}</body></html>`;
}

function MERMAID() {
  return `<script src="node_modules/mermaid/dist/mermaid.min.js"></script>
<script>mermaid.initialize({ startOnLoad: false, securityLevel: "strict" }); window.drawn = mermaid.run();</script>`;
}

function LOG_STYLE() {
  return `body { margin: 0; background: #0d1117; color: #d1d7e0; font: 13px/20px ui-monospace, "DejaVu Sans Mono", monospace; }
main { padding: 12px 0; }
.row { display: flex; padding: 0 16px; white-space: pre; }
.row i { width: 30px; margin-right: 16px; text-align: right; font-style: normal; color: #656c76; flex: none; }
.row.inside span { padding-left: 16px; }
.group { background: #151b23; }
.group b { font-weight: normal; color: #9198a1; }
em { font-style: normal; }
.red { color: #ff7b72; } .green { color: #3fb950; } .yellow { color: #d29922; } .cyan { color: #39c5cf; }`;
}

function SUMMARY_STYLE() {
  return `body { margin: 0; background: #fff; color: #1f2328; font: 15px/1.5 -apple-system, "Segoe UI", "Noto Sans", "DejaVu Sans", sans-serif; }
main { padding: 20px 28px; }
h2 { margin: 0 0 12px; padding-bottom: 6px; border-bottom: 1px solid #d1d9e0; font-size: 22px; }
h3 { margin: 20px 0 8px; font-size: 17px; }
p { margin: 0 0 10px; }
code { padding: 2px 5px; background: #eff1f3; border-radius: 6px; font: 85% ui-monospace, "DejaVu Sans Mono", monospace; }
pre { margin: 0; padding: 12px; background: #f6f8fa; border-radius: 6px; }
pre code { padding: 0; background: none; }
pre.mermaid { background: none; padding: 4px 0; text-align: center; }
blockquote { margin: 0; padding: 0 14px; color: #59636e; border-left: 4px solid #d1d9e0; }
table { border-collapse: collapse; }
th, td { padding: 5px 12px; border: 1px solid #d1d9e0; }
tr:nth-child(2n) td { background: #f6f8fa; }`;
}
