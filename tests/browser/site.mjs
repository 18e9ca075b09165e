// Opens pages of the documentation's site in a real browser and says what it found: all pages are opened on a phone, those examined at three
// widths with a picture of each in the folder, if there is one; in Chromium axe reads all of them
import { readFileSync } from "node:fs";
import { createRequire } from "node:module";

const axe = readFileSync(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf-8");

export default async function site(kind, browser, address, pages, examined, folder) {
  const found = { visited: 0, read: 0, said: [], requests: [], failed: [], overflow: {}, axe: {}, dark: {} };
  const page = await browser.newPage();
  page.setDefaultTimeout(0);
  let path = "";
  page.on("console", (message) => found.said.push(`${path}: ${message.type()}: ${message.text()}`));
  page.on("pageerror", (error) => found.said.push(`${path}: ${error}`));
  page.on("request", (request) => found.requests.push(request.url()));
  page.on("response", (response) => { if (response.status() >= 400) found.failed.push(response.url()); });
  for (path of pages.split(",")) {
    const typical = examined.split(",").includes(path);
    // Firefox calls it an error of the page if what it still loads is left behind; in Chromium axe takes longer than that
    await page.goto(`${address}${path}.html`, { waitUntil: kind === "chrome" ? "load" : "networkidle0" });
    found.visited += 1;
    for (const width of typical ? [1400, 800, 390] : [390]) {
      await page.setViewport({ width, height: 900 });
      const over = await page.evaluate(() => document.documentElement.scrollWidth - innerWidth);
      if (over > 0) found.overflow[`${path} ${width}`] = over;
      if (folder && typical) await page.screenshot({ path: `${folder}/${kind}-${path.replaceAll("/", "-")}-${width}.png` });
    }
    // axe reads what is equal in both browsers in one of them: in the light, and the colours of a typical page in the dark as well
    for (const scheme of kind !== "chrome" ? [] : typical ? ["light", "dark"] : ["light"]) {
      if (scheme === "light") await page.evaluate(axe);
      await page.emulateMediaFeatures([{ name: "prefers-color-scheme", value: scheme }]);
      if (folder && scheme === "dark") await page.screenshot({ path: `${folder}/${kind}-${path.replaceAll("/", "-")}-dark.png` });
      if (scheme === "dark") found.dark[path] = await page.evaluate(() => getComputedStyle(document.querySelector(".wy-nav-content")).backgroundColor);
      const result = await page.evaluate((dark) => window.axe.run(document, dark ? { runOnly: ["color-contrast"] } : {}), scheme === "dark");
      for (const one of result.violations) {
        (found.axe[one.id] ??= []).push(`${path} ${scheme}: ${one.nodes.length} x ${one.nodes[0].html.slice(0, 160)}`);
      }
    }
    found.read += 1;
  }
  path = "search";
  await page.goto(`${address}index.html`, { waitUntil: "load" });
  // by keys alone: what is asked for in the field of the search leads to pages
  await page.focus("input[name=q]");
  await page.keyboard.type("quantiles");
  await Promise.all([page.waitForNavigation({ waitUntil: "load" }), page.keyboard.press("Enter")]);
  await page.waitForSelector("#mkdocs-search-results article a");
  found.results = await page.$$eval("#mkdocs-search-results article a", (links) => links.length);
  return found;
}
