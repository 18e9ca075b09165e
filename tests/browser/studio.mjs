// Uses a page of the studio in a real browser, by keys alone, and says what it found, as one JSON object on the standard output stream.
// node studio.mjs chrome|firefox EXECUTABLE ADDRESS FOLDER plan|explore
import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import puppeteer from "puppeteer-core";

const [kind, executablePath, address, folder, mode] = process.argv.slice(2);
const axe = readFileSync(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf-8");
const browser = await puppeteer.launch({
  browser: kind, executablePath, headless: true, args: kind === "chrome" ? ["--no-sandbox"] : [], timeout: 0, protocolTimeout: 0,
});
const found = { said: [], loaded: [], overflow: {} };
const patience = { timeout: 0 };
let page;

const text = (selector) => page.$eval(selector, (element) => element.textContent);
const column = (place) => page.$$eval("#rows tr", (rows, at) => rows.map((row) => row.cells[at].textContent), place);

// Tab from the start of the page until the element that is wanted has the focus; false where no number of steps leads there.
async function reach(selector) {
  await page.evaluate(() => {
    const top = document.querySelector("h1");
    top.tabIndex = -1;
    top.focus();
  });
  for (let step = 0; step < 200; step += 1) {
    await page.keyboard.press("Tab");
    if (await page.evaluate((wanted) => document.activeElement.matches(wanted), selector)) return true;
  }
  return false;
}

async function plans() {
  const ready = () => page.waitForFunction(() => document.getElementById("status").textContent.startsWith("Made for exactly"), patience);
  await ready();
  found.first = await column(3);
  found.reached = [await reach("#keep")];
  await page.keyboard.press("Enter");
  await page.waitForFunction(() => document.body.classList.contains("compared"), patience);
  found.reached.push(await reach("#slider"));
  for (let step = 0; step < 10; step += 1) await page.keyboard.press("ArrowRight");
  await page.waitForFunction((before) => document.querySelector("#rows tr").cells[3].textContent !== before, patience, found.first[0]);
  await ready();
  found.size = await page.$eval("#size", (field) => field.value);
  found.second = await column(3);
  found.before = await column(5);
  found.reached.push(await reach("#rows tr:nth-child(2) input[type=checkbox]"));
  await page.keyboard.press(" ");
  await page.waitForFunction(() => document.querySelectorAll("#rows tr")[1].classList.contains("off"), patience);
  found.reached.push(await reach("#rows tr:nth-child(3) .number"));
  await page.keyboard.type("4");
  await page.keyboard.press("Enter");
  await page.keyboard.press("Tab");
  await ready();
  found.reached.push(await reach("#find"));
  await page.keyboard.type("kids");
  found.shown = await page.$$eval("#rows tr", (rows) => rows.filter((row) => !row.hidden).length);
  found.reached.push(await reach("#save"));
  await page.keyboard.press("Enter");
  await page.waitForFunction(() => document.getElementById("saved").textContent, patience);
  found.saved = await text("#saved");
}

async function explores() {
  await page.waitForSelector("#chart svg", patience);
  found.drawn = await page.$$eval("#chart svg path, #chart svg text", (parts) => parts.length);
  found.cells = await column(1);
  found.reached = [await reach("#rows tr:nth-child(2) input")];
  await page.keyboard.press(" ");
  await page.waitForFunction(() => document.getElementById("sum").textContent.startsWith("one cell"), patience);
  found.sum = await text("#sum");
  found.reached.push(await reach("select[data-name=kids]"));
  await page.keyboard.type("every");
  found.reached.push(await reach("#ask button"));
  await page.keyboard.press("Enter");
  await page.waitForFunction((before) => document.querySelectorAll("#rows tr").length !== before, patience, found.cells.length);
  found.wider = (await column(1)).length;
}

try {
  page = await browser.newPage();
  page.setDefaultTimeout(0);
  page.on("console", (message) => found.said.push(`${message.type()}: ${message.text()}`));
  page.on("pageerror", (error) => found.said.push(String(error)));
  page.on("request", (request) => found.loaded.push(request.url()));
  await page.goto(address, { waitUntil: "load" });
  found.address = await page.evaluate(() => location.href);
  await page.setViewport({ width: 1400, height: 900 });
  await (mode === "plan" ? plans() : explores());
  for (const width of [390, 800, 1400]) {
    await page.setViewport({ width, height: 900 });
    found.overflow[width] = await page.evaluate(() => document.documentElement.scrollWidth - innerWidth);
    await page.screenshot({ path: `${folder}/${kind}-${mode}-${width}.png`, fullPage: false });
  }
  await page.reload({ waitUntil: "load" }); // the address without the token, by the session
  found.again = await text("h1");
  if (mode === "explore") await page.waitForSelector("#chart svg", patience);
  await page.evaluate(axe);
  const result = await page.evaluate(() => window.axe.run(document));
  found.axe = result.violations.map((one) => `${one.id}: ${one.nodes.length} x ${one.nodes[0].html.slice(0, 120)}`);
} finally {
  await browser.close();
}
console.log(JSON.stringify(found));
