"""The look of a page: light or dark as the reader's system has it, English or Chinese, nothing fetched."""

STYLE = """
:root { color-scheme: light dark;
  --page: #f6f7f9; --card: #fff; --ink: #1b2430; --soft: #566173; --rule: #e3e7ed; --grid: #e9ecf1; --on: #fff;
  --c0: #1d6fd1; --c1: #c8501e; --c2: #0b8462; --c3: #8a4fc4; --c4: #9a6a00; --c5: #bf3a7c; --c6: #0e7c98;
  --c7: #64748b; }
@media (prefers-color-scheme: dark) { :root {
  --page: #12161c; --card: #1a2029; --ink: #e7ebf1; --soft: #a0acbc; --rule: #2c3542; --grid: #28303c; --on: #10151c;
  --c0: #6caaff; --c1: #ff9162; --c2: #45cf9f; --c3: #c6a0ff; --c4: #e2b347; --c5: #ff8cc0; --c6: #5cc8e6;
  --c7: #94a3b8; } }
* { box-sizing: border-box; }
body { margin: 0; padding: 2rem clamp(1rem, 4vw, 3rem) 3rem; background: var(--page); color: var(--ink);
  font: 15px/1.5 system-ui, "Segoe UI", "Noto Sans", "Noto Sans CJK SC", "PingFang SC", "Microsoft YaHei", sans-serif; }
main, header { max-width: 1240px; margin: 0 auto; }
h1 { font-size: 1.7rem; line-height: 1.2; margin: 0 0 1rem; overflow-wrap: anywhere; }
h1 small { display: block; font-size: .82rem; font-weight: 500; letter-spacing: .05em; color: var(--soft); }
h2 { font-size: 1.12rem; margin: 2.2rem 0 .7rem; }
h3 { font-size: .95rem; font-weight: 600; margin: 0 0 .3rem; }
.tiles, .charts { display: grid; gap: 1rem; }
.tiles { grid-template-columns: repeat(auto-fit, minmax(9.5rem, 1fr)); }
.charts { grid-template-columns: repeat(auto-fill, minmax(min(26rem, 100%), 1fr)); }
.card, .tiles > div { background: var(--card); border: 1px solid var(--rule); border-radius: 10px;
  padding: .9rem 1.1rem; }
.card { margin: 0; overflow-x: auto; }
.card + .card { margin-top: 1rem; } .charts > .card { margin-top: 0; }
.tiles dt { color: var(--soft); font-size: .82rem; } .tiles dd { margin: 0; font-size: 1.4rem; font-weight: 600; }
svg { display: block; width: 100%; min-width: 23rem; max-width: 44rem; height: auto; overflow: visible; }
svg.bar { max-width: none; }
svg svg { overflow: hidden; min-width: 0; }
svg text { font-size: 13px; fill: var(--ink); }
text.tick { fill: var(--soft); font-variant-numeric: tabular-nums; }
line.grid { stroke: var(--grid); }
.c0 { --c: var(--c0); } .c1 { --c: var(--c1); } .c2 { --c: var(--c2); } .c3 { --c: var(--c3); }
.c4 { --c: var(--c4); } .c5 { --c: var(--c5); } .c6 { --c: var(--c6); } .c7 { --c: var(--c7); }
.level { --c: var(--soft); }
path { fill: none; stroke: var(--c); stroke-linecap: round; stroke-linejoin: round; }
path.curve { stroke-width: 2; } path.raw { stroke-width: 1; opacity: .3; }
path.spread { stroke-width: 1.5; opacity: .5; } path.bar-spread { stroke: var(--ink); stroke-width: 1.5; }
path.level { stroke-width: 1.5; stroke-linecap: butt; }
.d0 { stroke-dasharray: 7 4; } .d1 { stroke-dasharray: 2 3; } .d2 { stroke-dasharray: 9 3 2 3; }
circle { fill: var(--c); stroke: var(--card); stroke-width: 1; }
.stop rect { fill: transparent; } .stop line { stroke: var(--soft); } .stop line, .stop circle { visibility: hidden; }
.stop:hover line, .stop:hover circle { visibility: visible; }
.part rect { fill: var(--c); } svg .part text { fill: var(--on); text-anchor: middle;
  font-weight: 600; font-size: 13px; }
table { border-collapse: collapse; width: 100%; font-variant-numeric: tabular-nums; }
th, td { text-align: left; padding: .3rem .9rem .3rem 0; border-bottom: 1px solid var(--rule); vertical-align: top; }
thead th { color: var(--soft); font-size: .82rem; font-weight: 500; } tbody th { font-weight: 500; }
tr:last-child > * { border-bottom: 0; }
td.number, th.number { text-align: right; white-space: nowrap; width: 15%; }
tr.group th { padding-top: .9rem; color: var(--soft); font-weight: 600; }
.key { display: inline-block; width: .75rem; height: .75rem; border-radius: 3px; background: var(--c);
  margin-right: .5rem; }
ul.legend { list-style: none; display: flex; flex-wrap: wrap; gap: .3rem 1.6rem; margin: .8rem 0 0; padding: 0; }
ul.legend span { color: var(--soft); }
details + details { margin-top: .6rem; } summary { cursor: pointer; font-weight: 600; }
pre { margin: 0; font: 13px/1.55 ui-monospace, "SF Mono", Menlo, "Noto Sans Mono", "Noto Sans Mono CJK SC", monospace;
  white-space: pre-wrap; overflow-wrap: anywhere; }
td.text { overflow-wrap: anywhere; } table.wide tbody > tr > * { white-space: nowrap; }
.names td:first-child { white-space: nowrap; }
.none, .aside { color: var(--soft); margin: .6rem 0 0; }
@media print { body { background: #fff; padding: 0; } .card { break-inside: avoid; } }
"""
