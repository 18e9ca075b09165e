// Opens a report in a real browser and says what it found: its file, and a folder if there are to be pictures.
import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { pathToFileURL } from "node:url";

const axe = readFileSync(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf-8");

export default async function check(kind, browser, file, folder) {
  const address = pathToFileURL(file).href;
  const found = { said: [], requests: [], overflow: {}, cut: {} };
  const page = await browser.newPage();
  page.setDefaultTimeout(0); // whoever waits for it knows how long
  page.on("console", (message) => found.said.push(`${message.type()}: ${message.text()}`));
  page.on("pageerror", (error) => found.said.push(String(error)));
  page.on("request", (request) => found.requests.push(request.url()));
  const start = Date.now();
  await page.goto(address, { waitUntil: "load" });
  found.milliseconds = Date.now() - start;
  for (const width of [380, 800, 1400]) {
    await page.setViewport({ width, height: 900 });
    found.overflow[width] = await page.evaluate(() => document.documentElement.scrollWidth - innerWidth);
    found.cut[width] = await page.$$eval(".scroll:has(table)", (parts) => parts.filter((part) => part.scrollWidth > part.clientWidth).map((part) => part.getAttribute("aria-label")));
    if (folder) await page.screenshot({ path: `${folder}/${kind}-${width}.png`, fullPage: false });
  }
  found.loaded = [...found.requests];
  const counted = () => document.querySelectorAll("article tbody tr").length;
  found.rows = await page.evaluate(counted);
  Object.assign(found, await page.evaluate(async () => {
    const shown = (rows) => [...rows].filter((row) => !row.hidden).length;
    const type = (field, text) => { field.value = text; field.dispatchEvent(new Event("input")); };
    const index = document.getElementById("index");
    const search = document.querySelector("input[type=search]");
    type(search, "zone");
    const tables = [shown(index.tBodies[0].rows), shown(document.querySelectorAll("article"))];
    type(search, "");
    const article = document.getElementById("q2");
    const details = article.querySelector("details");
    details.open = true;
    await new Promise((done) => setTimeout(done, 50));
    const body = details.querySelector("tbody");
    const column = (place) => [...body.rows].filter((row) => !row.hidden).map((row) => row.cells[place].textContent.trim());
    const before = column(1);
    const head = details.querySelectorAll("th button")[1];
    head.click();
    const rising = column(1);
    head.click();
    const falling = column(1);
    head.click();
    const back = column(1);
    type(details.querySelector("input"), body.rows[0].cells[0].textContent);
    const filtered = column(0);
    type(details.querySelector("input"), "");
    const make = URL.createObjectURL;
    let blob;
    URL.createObjectURL = (made) => { blob = made; return "#"; };
    details.querySelector(".tools button").click();
    URL.createObjectURL = make;
    return { tables, before, rising, falling, back, filtered, csv: await blob.text() };
  }));
  // by keys alone: from the first closed table, Enter opens it
  await page.evaluate(() => {
    const summary = document.querySelector("#q3 summary");
    summary.parentElement.open = false;
    summary.focus();
  });
  await page.keyboard.press("Enter");
  found.opened = await page.evaluate(() => document.querySelector("#q3 details").open);
  found.reached = 0;
  await page.evaluate(() => document.activeElement.blur());
  const places = new Set();
  for (let step = 0; step < 40; step += 1) {
    await page.keyboard.press("Tab");
    places.add(await page.evaluate(() => document.activeElement.outerHTML.slice(0, 80)));
  }
  found.reached = places.size;
  // on paper every table is open, and afterwards all is as before
  await page.reload();
  await page.evaluate(() => {
    const state = () => document.querySelectorAll("details[open]").length;
    window.prints = [state()];
    for (const name of ["beforeprint", "afterprint"]) addEventListener(name, () => window.prints.push(state()));
  });
  if (kind === "chrome") found.pdf = (await page.pdf({ timeout: 0 })).length;
  else await page.evaluate(() => ["beforeprint", "afterprint"].forEach((name) => dispatchEvent(new Event(name))));
  found.prints = await page.evaluate(() => window.prints);
  // axe reads what is equal in both browsers, and one of them is enough where there are to be no pictures
  if (kind === "chrome") await page.setBypassCSP(true); // Firefox is told what to do from outside of what the page's policy rules
  found.axe = [];
  found.read = 0;
  if (kind === "chrome" || folder) {
    await page.reload();
    await page.evaluate(axe);
    const result = await page.evaluate(() => window.axe.run(document));
    found.axe = result.violations.map((one) => `${one.id}: ${one.nodes.length} x ${one.nodes[0].html.slice(0, 120)}`);
    found.read = result.passes.length;
  }
  if (kind === "chrome") {
    const plain = await browser.newPage();
    await plain.setJavaScriptEnabled(false);
    await plain.goto(address, { timeout: 0 });
    found.plain = await plain.evaluate(counted).catch(() => null);
  }
  return found;
}
