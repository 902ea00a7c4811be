// Uses the page of a run in Chromium as somebody at a keyboard does, and prints what came of it as JSON.
// node report.mjs FILE '[{"keys": […], "hash": "#step-1-L2", "filter": "…", "failed": true, "width": 390, "scheme": "dark", "picture": "x.png"}]'
import { createRequire } from "node:module";
import { pathToFileURL } from "node:url";

const [file, visits] = process.argv.slice(2);
const require = createRequire(`${process.env.LL_BROWSER_TOOLS}/package.json`);
const puppeteer = require("puppeteer-core");

const browser = await puppeteer.launch({
  executablePath: process.env.LL_CHROMIUM,
  // The tests may run as root, which Chromium's sandbox refuses.
  args: ["--no-sandbox", "--disable-gpu", "--disable-background-networking"],
});
const found = [];
try {
  for (const visit of JSON.parse(visits)) found.push(await made(visit));
} finally {
  await browser.close();
}
console.log(JSON.stringify(found));

async function made({ keys = [], hash = "", filter, failed = false, width = 1000, scheme = "light", picture }) {
  const page = await browser.newPage();
  const told = [];
  page.on("console", (message) => told.push(message.text()));
  page.on("pageerror", (error) => told.push(String(error)));
  page.on("dialog", (dialog) => { told.push("a dialog: " + dialog.message()); dialog.dismiss(); });
  await page.setViewport({ width, height: 900 });
  await page.emulateMediaFeatures([{ name: "prefers-color-scheme", value: scheme }]);
  await page.goto(pathToFileURL(file).href + hash, { waitUntil: "load" });
  for (const key of keys) await page.keyboard.press(key);
  if (filter !== undefined) {
    await page.keyboard.press("/");
    await page.keyboard.type(filter);
  }
  if (failed) await page.click("#failed-only");
  // What is opened is unpacked a moment later.
  const line = /-[LE]\d+$/.test(hash) && !hash.includes("absent");
  if (line) await page.waitForFunction(() => document.querySelector(".line.wanted"), { timeout: 30_000 });
  if (picture) await page.screenshot({ path: picture });
  const seen = await page.evaluate(() => {
    const step = document.activeElement && document.activeElement.closest("tbody");
    const wanted = document.querySelector(".line.wanted");
    const box = (element) => { const { top } = element.getBoundingClientRect(); return top >= 0 && top < innerHeight; };
    return {
      step: step && step.id,
      open: [...document.querySelectorAll("tbody[id] details[open]")].map((details) => details.closest("tbody").id),
      shown: [...document.querySelectorAll("tbody[id^='step-']")].filter((one) => !one.hidden).length,
      said: document.getElementById("shown") && document.getElementById("shown").textContent,
      line: wanted && { id: wanted.id, text: wanted.textContent, visible: box(wanted) },
      visible: step ? box(step) : null,
      // What stands as a whole on the first screen.
      first: Object.entries({ badge: ".outcome", reason: ".sentence", printed: ".evidence + pre" }).filter(([, selector]) => {
        const element = document.querySelector(`header ${selector}`);
        return element && box(element) && element.getBoundingClientRect().bottom <= innerHeight;
      }).map(([name]) => name),
      classes: [...new Set([...document.querySelectorAll(".line span")].flatMap((piece) => [...piece.classList]))].sort(),
      elements: [...new Set([...document.querySelectorAll("*")].map((element) => element.localName))].sort(),
    };
  });
  await page.close();
  return { told, ...seen };
}
