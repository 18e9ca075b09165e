// What scrolls sideways can be reached, and scrolled, by keys alone.
function reachable() {
  for (const part of document.querySelectorAll("pre, pre code, .wy-table-responsive, table")) {
    if (part.scrollWidth > part.clientWidth) part.setAttribute("tabindex", "0");
    else part.removeAttribute("tabindex");
  }
}
addEventListener("load", reachable);
addEventListener("resize", reachable);
