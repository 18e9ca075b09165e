// Opens a page without scripts in a real browser, in the light and in the dark, and says what it found.
import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { pathToFileURL } from "node:url";

const axe = readFileSync(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf-8");

export default async function check(kind, browser, file) {
  const found = { said: [], loaded: [], overflow: {}, cut: [], axe: [], read: 0 };
  const page = await browser.newPage();
  page.setDefaultTimeout(0); // whoever waits for it knows how long
  page.on("console", (message) => found.said.push(`${message.type()}: ${message.text()}`));
  page.on("pageerror", (error) => found.said.push(String(error)));
  page.on("request", (request) => found.loaded.push(request.url()));
  await page.goto(pathToFileURL(file).href, { waitUntil: "load" });
  for (const width of [380, 800, 1280]) {
    await page.setViewport({ width, height: 900 });
    found.overflow[width] = await page.evaluate(() => document.documentElement.scrollWidth - innerWidth);
    found.cut.push(...await page.$$eval(".scroll", (parts) => parts.filter((part) => part.scrollWidth > part.clientWidth).map((part) => part.getAttribute("aria-label"))));
  }
  found.rows = await page.evaluate(() => document.querySelectorAll("tbody tr").length);
  if (kind !== "chrome") return found; // axe reads what is equal in both browsers, and one of them is enough
  await page.setBypassCSP(true);
  for (const value of ["light", "dark"]) {
    await page.emulateMediaFeatures([{ name: "prefers-color-scheme", value }]);
    await page.reload();
    await page.evaluate(axe);
    const result = await page.evaluate(() => window.axe.run(document));
    found.axe.push(...result.violations.map((one) => `${value} ${one.id}: ${one.nodes[0].html.slice(0, 120)}`));
    found.read += result.passes.length;
  }
  return found;
}
