// Walks a loop on its page in Chromium as somebody at a keyboard does, and prints what came of it as JSON.
// node playground.mjs FILE '[{"keys": ["1", "Backspace"], "click": "text of a button"}]'
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
  for (const visit of JSON.parse(visits)) found.push(await walked(visit));
} finally {
  await browser.close();
}
console.log(JSON.stringify(found));

async function walked({ keys = [], click, width = 1000 }) {
  const page = await browser.newPage();
  const told = [];
  page.on("console", (message) => told.push(message.text()));
  page.on("pageerror", (error) => told.push(String(error)));
  page.on("dialog", (dialog) => { told.push("a dialog: " + dialog.message()); dialog.dismiss(); });
  await page.setViewport({ width, height: 900 });
  await page.goto(pathToFileURL(file).href, { waitUntil: "load" });
  for (const key of keys) await page.keyboard.press(key);
  if (click) {
    for (const button of await page.$$("#walk-ways button")) {
      if ((await button.evaluate((element) => element.textContent)).startsWith(click)) { await button.click(); break; }
    }
  }
  const seen = await page.evaluate(() => ({
    state: document.getElementById("walk-name").textContent,
    facts: document.getElementById("walk-facts").textContent,
    ways: [...document.querySelectorAll("#walk-ways button")].map((button) => button.textContent),
    trail: [...document.querySelectorAll("#walk-trail li")].map((item) => item.textContent),
    current: [...document.querySelectorAll("svg .state.current .name")].map((name) => name.textContent),
    focused: document.activeElement.textContent,
    overflows: document.documentElement.scrollWidth > document.documentElement.clientWidth,
  }));
  await page.close();
  return { told, ...seen };
}
