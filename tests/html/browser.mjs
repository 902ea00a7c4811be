// Opens a page or a picture in Chromium as each of several readers, and prints what was found as JSON.
// node browser.mjs FILE '[{"name": …, "dark": …, "width": …, "scripts": …, "print": …}]' DIRECTORY
import { createRequire } from "node:module";
import { pathToFileURL } from "node:url";
import { readFileSync } from "node:fs";

const [file, readers, screenshots] = process.argv.slice(2);
const require = createRequire(`${process.env.LL_BROWSER_TOOLS}/package.json`);
const puppeteer = require("puppeteer-core");
const axe = readFileSync(require.resolve("axe-core/axe.min.js"), "utf8");

const browser = await puppeteer.launch({
  executablePath: process.env.LL_CHROMIUM,
  // The tests may run as root, which Chromium's sandbox refuses.
  args: ["--no-sandbox", "--disable-gpu", "--hide-scrollbars", "--disable-background-networking"],
});
const found = [];
try {
  for (const reader of JSON.parse(readers)) found.push(await read(reader));
} finally {
  await browser.close();
}
console.log(JSON.stringify(found));

async function read({ name, dark = false, width = 1000, scripts = true, print = false }) {
  const page = await browser.newPage();
  const url = pathToFileURL(file).href;
  const told = [];
  const requests = [];
  page.on("console", (message) => told.push(message.text()));
  page.on("pageerror", (error) => told.push(String(error)));
  page.on("dialog", (dialog) => { told.push("a dialog: " + dialog.message()); dialog.dismiss(); });
  page.on("request", (request) => request.url() === url || requests.push(request.url()));
  await page.setJavaScriptEnabled(scripts);
  await page.setViewport({ width, height: 900 });
  await page.emulateMediaFeatures([{ name: "prefers-color-scheme", value: dark ? "dark" : "light" }]);
  if (print) await page.emulateMediaType("print");
  await page.goto(url, { waitUntil: "load" });
  const seen = { name, told, requests };
  Object.assign(seen, await page.evaluate(() => ({
    elements: [...new Set([...document.querySelectorAll("*")].map((element) => element.localName))].sort(),
    attributes: [...new Set([...document.querySelectorAll("*")].flatMap((element) => element.getAttributeNames()))].sort(),
    overflows: document.documentElement.scrollWidth > document.documentElement.clientWidth,
    cut: [...document.querySelectorAll(".state")].filter((state) => {
      const box = state.querySelector("rect").getBoundingClientRect();
      return [...state.querySelectorAll("text")].some((text) => {
        const words = text.getBoundingClientRect();
        return words.left < box.left || words.right > box.right || words.top < box.top || words.bottom > box.bottom;
      });
    }).map((state) => state.textContent),
    ink: [...document.querySelectorAll(".state .name")].slice(0, 1).map((text) => getComputedStyle(text).fill),
  })));
  await page.screenshot({ path: `${screenshots}/${name}.png`, fullPage: true });
  if (scripts && file.endsWith(".html")) {
    // The page forbids scripts from outside, and the debugger may run them all the same.
    await page.evaluate(axe);
    const { violations } = await page.evaluate(() => globalThis.axe.run());
    seen.violations = violations.map(({ id, nodes }) => `${id}: ${nodes.map((node) => node.html).join(" ").slice(0, 300)}`);
  }
  await page.close();
  return seen;
}
