// Fills in the page that `leastnoise studio FILE` opens, as the page "A first release in five minutes" says, and takes its pictures.
// node first.mjs EXECUTABLE ADDRESS FOLDER: writes first-columns.png, first-errors.png, and saves the spec from the page
import { createRequire } from "node:module";
const puppeteer = createRequire(new URL("../../tests/browser/", import.meta.url))("puppeteer-core");

const [executablePath, address, folder] = process.argv.slice(2);
const browser = await puppeteer.launch({ executablePath, args: ["--no-sandbox"] });
try {
  const page = await browser.newPage();
  await page.setViewport({ width: 1000, height: 900 });
  page.setDefaultTimeout(0); // however busy the machine is
  await page.goto(address, { waitUntil: "networkidle0", timeout: 0 });
  const column = (name) => page.$eval(`[data-name="${name}"]`, (part) => `c${part.dataset.column}`);
  const fill = (field, text) => page.type(`[name="${field}"]`, text);
  const open = (name) => page.$eval(`[data-name="${name}"]`, (part) => { part.open = true; });
  const choose = (field, value) => page.select(`[name="${field}"]`, value);
  const [sex, age, region] = [await column("sex"), await column("age"), await column("region")];
  await open("sex");
  await choose(`${sex}.kind`, "list");
  await fill(`${sex}.list`, "F\nM");
  await open("age");
  await choose(`${age}.kind`, "whole");
  await fill(`${age}.low`, "18");
  await fill(`${age}.high`, "97");
  await fill(`${age}.edges`, "18, 30, 45, 65");
  await open("region");
  await choose(`${region}.kind`, "list");
  await fill(`${region}.list`, "North, North East, East, South East, South, South West, West, North West, Centre, Capital, Coast, Islands".split(", ").join("\n"));
  await fill("max_rows", "1");
  const tick = (name) => page.click(`[name="${name}"]`);
  await tick(`a0.by.${age.slice(1)}.group`);
  await tick(`a0.by.${region.slice(1)}.cells`);
  await page.click("#more");
  await choose("a1.what", "median");
  await choose("a1.of", age.slice(1));
  await tick(`a1.by.${sex.slice(1)}.cells`);
  await (await page.$("#form")).screenshot({ path: `${folder}/first-columns.png` });
  await page.click("#plan");
  await page.waitForSelector("#charts svg, #charts canvas");
  const planned = await page.$("#planned");
  // A status line at the lower end of the window would cover a part of the picture.
  await page.addStyleTag({ content: ".said { position: static !important; }" });
  await planned.screenshot({ path: `${folder}/first-errors.png` });
  await page.click("#save");
  await page.waitForSelector("#after:not([hidden])");
  console.log(await page.$eval("#commands", (part) => part.textContent));
} finally {
  await browser.close();
}
