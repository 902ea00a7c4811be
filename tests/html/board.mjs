// Uses a board in Chromium as somebody at a keyboard does, and prints what came of it as JSON.
// node board.mjs FILE '{"filter": "…", "keys": […], "sort": "Cost"}'
import { createRequire } from "node:module";
import { pathToFileURL } from "node:url";

const [file, visit] = process.argv.slice(2);
const { filter, keys = [], sort } = JSON.parse(visit);
const require = createRequire(`${process.env.LL_BROWSER_TOOLS}/package.json`);
const puppeteer = require("puppeteer-core");

const browser = await puppeteer.launch({
  executablePath: process.env.LL_CHROMIUM,
  // The tests may run as root, which Chromium's sandbox refuses.
  args: ["--no-sandbox", "--disable-gpu", "--disable-background-networking"],
});
try {
  const page = await browser.newPage();
  const told = [];
  page.on("console", (message) => told.push(message.text()));
  page.on("pageerror", (error) => told.push(String(error)));
  page.on("dialog", (dialog) => { told.push("a dialog: " + dialog.message()); dialog.dismiss(); });
  await page.goto(pathToFileURL(file).href, { waitUntil: "load" });
  if (filter !== undefined) {
    await page.keyboard.press("/");
    await page.keyboard.type(filter);
  }
  if (sort !== undefined) {
    await page.evaluate((name) => {
      [...document.querySelectorAll("thead button")].find((button) => button.textContent === name).focus();
    }, sort);
  }
  for (const key of keys) await page.keyboard.press(key);
  console.log(JSON.stringify({
    told,
    ...await page.evaluate(() => ({
      rows: [...document.querySelectorAll("tbody tr")].filter((row) => !row.hidden).map((row) => row.cells[0].textContent),
      here: document.activeElement && document.activeElement.cells ? document.activeElement.cells[0].textContent : null,
      said: document.getElementById("shown").textContent,
      sorted: [...document.querySelectorAll("[aria-sort]")].map((head) => [head.textContent, head.getAttribute("aria-sort")]),
    })),
  }));
} finally {
  await browser.close();
}
