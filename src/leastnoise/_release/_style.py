"""The report's style sheet: sober, for screen and paper, light and dark."""

STYLE = """
:root { color-scheme: light dark; --paper: #ffffff; --wash: #f4f6f8; --ink: #17212b; --muted: #55626f; --rule: #d5dbe1; --accent: #1d5b8c;
  --on-accent: #ffffff; --below: #a8471c; --warn: #9b1c1c; --warn-wash: #fdecec;
  --s0: #1d5b8c; --s1: #b3541e; --s2: #2e7d53; --s3: #7b4a9e; --s4: #a3374f; --s5: #6c6a1f; }
@media (prefers-color-scheme: dark) {
  :root { --paper: #11161c; --wash: #1a222b; --ink: #e6ebf0; --muted: #9fadba; --rule: #33404d; --accent: #6cb0e4; --on-accent: #0a1016;
    --below: #e58a5c; --warn: #ffb4ab; --warn-wash: #43191a;
    --s0: #6cb0e4; --s1: #f0955f; --s2: #6cc796; --s3: #c39be3; --s4: #ef8ba0; --s5: #cfcb6a; } }
* { box-sizing: border-box; }
body { margin: 0; background: var(--paper); color: var(--ink); font: 16px/1.55 system-ui, "Segoe UI", Roboto, "Noto Sans", sans-serif; }
main { max-width: 54rem; margin: 0 auto; padding: 2.5rem 1.25rem 3rem; }
h1, h2 { font-family: Charter, "Bitstream Charter", Cambria, Georgia, serif; line-height: 1.2; font-weight: 600; text-wrap: balance; }
h1 { font-size: 2.1rem; margin: .2rem 0 .6rem; }
h2 { font-size: 1.35rem; margin: 2.8rem 0 .8rem; padding-top: .9rem; border-top: 1px solid var(--rule); }
h3 { font-size: 1rem; margin: 0 0 .15rem; }
p { margin: .5rem 0; max-width: 46rem; }
.kicker { margin: 0; color: var(--accent); font-weight: 600; font-size: .82rem; letter-spacing: .08em; text-transform: uppercase; }
.lead { font-size: 1.08rem; }
.small, figcaption, .note { color: var(--muted); font-size: .88rem; }
.warning { border: 2px solid var(--warn); background: var(--warn-wash); color: var(--warn);
  padding: .8rem 1rem; font-weight: 600; margin: 0 0 1.5rem; max-width: none; }
.facts { display: grid; grid-template-columns: repeat(auto-fit, minmax(11rem, 1fr)); gap: 1px; background: var(--rule);
  border: 1px solid var(--rule); margin: 1.6rem 0 0; }
.facts div { background: var(--paper); padding: .8rem 1rem; }
.facts dt { color: var(--muted); font-size: .82rem; }
.facts dd { margin: .1rem 0 0; font-size: 1.18rem; font-weight: 600; font-variant-numeric: tabular-nums; }
.facts dd small { display: block; font-size: .8rem; font-weight: 400; color: var(--muted); }
.promise { background: var(--wash); border-left: 4px solid var(--accent); padding: .9rem 1.1rem; max-width: none; margin: .8rem 0; }
.spent { display: grid; grid-template-columns: max-content 1fr; gap: .3rem 1.4rem; margin: .8rem 0; }
.spent dt { color: var(--muted); }
.spent dd { margin: 0; overflow-wrap: anywhere; }
.scroll { overflow-x: auto; }
table { border-collapse: collapse; width: 100%; font-size: .92rem; font-variant-numeric: tabular-nums; margin: .8rem 0; }
caption { text-align: left; color: var(--muted); font-size: .88rem; padding-bottom: .4rem; }
th { text-align: left; font-weight: 600; border-bottom: 2px solid var(--ink); padding: .35rem .6rem; vertical-align: bottom; }
td { border-bottom: 1px solid var(--rule); padding: .35rem .6rem; }
th:first-child, td:first-child { padding-left: 0; }
.n { text-align: right; }
td.n { white-space: nowrap; }
figure { margin: 1.6rem 0 2rem; overflow-x: auto; }
figcaption { margin: 0 0 .5rem; }
figcaption h3 { color: var(--ink); }
.total { font-size: 1.7rem; font-weight: 600; font-variant-numeric: tabular-nums; margin: 0; }
.total span { color: var(--muted); font-size: 1.05rem; font-weight: 400; }
svg { display: block; width: 100%; min-width: 34rem; height: auto; overflow: visible;
  font: 11.5px system-ui, "Segoe UI", Roboto, "Noto Sans", sans-serif; }
svg text { fill: var(--ink); font-variant-numeric: tabular-nums; }
svg text.muted { fill: var(--muted); }
svg text.value { fill: var(--ink); }
svg text.on-dark { fill: var(--on-accent); }
svg .grid { stroke: var(--rule); stroke-width: .75; }
svg .axis { stroke: var(--muted); stroke-width: 1; }
svg .bar { fill: var(--accent); fill-opacity: .72; }
svg .whisker { stroke: var(--ink); stroke-width: 1.2; fill: none; }
svg .heat { fill: var(--accent); stroke: var(--paper); stroke-width: .75; }
svg .below { fill: var(--below); }
svg .hatch { fill: url(#hatch); }
svg .band { fill-opacity: .22; stroke: none; }
svg .line { fill: none; stroke-width: 1.8; stroke-linejoin: round; }
svg text.name { font-weight: 600; }
.s0 { stroke: var(--s0); fill: var(--s0); } .s1 { stroke: var(--s1); fill: var(--s1); } .s2 { stroke: var(--s2); fill: var(--s2); }
.s3 { stroke: var(--s3); fill: var(--s3); } .s4 { stroke: var(--s4); fill: var(--s4); } .s5 { stroke: var(--s5); fill: var(--s5); }
svg text.name { stroke: none; }
svg text.s0 { fill: var(--s0); } svg text.s1 { fill: var(--s1); } svg text.s2 { fill: var(--s2); }
svg text.s3 { fill: var(--s3); } svg text.s4 { fill: var(--s4); } svg text.s5 { fill: var(--s5); }
ul { padding-left: 1.2rem; max-width: 46rem; } li { margin: .3rem 0; }
footer { margin-top: 3rem; padding-top: 1rem; border-top: 1px solid var(--rule); color: var(--muted);
  font-size: .84rem; overflow-wrap: anywhere; }
code { font-family: ui-monospace, "DejaVu Sans Mono", Menlo, monospace; font-size: .9em; }
@media print {
  :root { color-scheme: light; --paper: #ffffff; --wash: #f4f6f8; --ink: #000000; --muted: #444444; --rule: #bbbbbb; --accent: #1d5b8c;
    --on-accent: #ffffff; --below: #a8471c; --warn: #9b1c1c; --warn-wash: #ffffff;
    --s0: #1d5b8c; --s1: #b3541e; --s2: #2e7d53; --s3: #7b4a9e; --s4: #a3374f; --s5: #6c6a1f; }
  body { font-size: 10.5pt; print-color-adjust: exact; -webkit-print-color-adjust: exact; }
  main { max-width: none; padding: 0; }
  figure, .scroll { overflow: visible; }
  svg { min-width: 0; }
  figure, tr, .promise, .facts, li { break-inside: avoid; }
  h2, h3, figcaption { break-after: avoid; }
}
@media (max-width: 34rem) { .spent { grid-template-columns: 1fr; gap: 0; } .spent dd { margin-bottom: .5rem; } h1 { font-size: 1.6rem; } }
"""
