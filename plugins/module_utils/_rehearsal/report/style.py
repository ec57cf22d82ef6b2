# Copyright: nometal.ipi contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

STYLE = """\
:root{color-scheme:light dark;--bg:#fff;--panel:#f6f7f9;--box:#fff;--text:#1b1f24;--quiet:#57606a;--line:#d4d9df;
--wire:#4a5561;--bad:#b3261e;--bad-bg:#fdeeec;--good:#1a7335;--good-bg:#eaf6ed;--bar:#e3ecf7;--second:#6b4fa0}
@media(prefers-color-scheme:dark){:root{--bg:#14171a;--panel:#1b1f23;--box:#22272c;--text:#e6e8ea;--quiet:#a5aeb8;
--line:#3a4149;--wire:#98a3ae;--bad:#ff8f85;--bad-bg:#3a1f1d;--good:#77cf93;--good-bg:#1b3022;--bar:#263445;
--second:#b9a3ec}}
*{box-sizing:border-box}
body{margin:0;background:var(--bg);color:var(--text);font:15px/1.5 system-ui,-apple-system,"Segoe UI",Roboto,
"Liberation Sans",Arial,sans-serif;overflow-wrap:anywhere}
main{max-width:1168px;margin:0 auto;padding:28px 24px 64px}
h1{font-size:15px;font-weight:600;color:var(--quiet);margin:0 0 10px}
h2{font-size:19px;margin:40px 0 12px}
h3{font-size:16px;margin:0;line-height:1.4}
p{margin:6px 0}
a{color:inherit}
code,pre,.mono,td.value,dd{font-family:ui-monospace,SFMono-Regular,Menlo,Consolas,"DejaVu Sans Mono","Liberation Mono",
monospace;font-size:13px}
.quiet{color:var(--quiet)}
.verdict{border-left:5px solid var(--good);background:var(--good-bg);padding:14px 18px;border-radius:0 8px 8px 0}
.verdict.bad{border-color:var(--bad);background:var(--bad-bg)}
.verdict p{margin:0}
.verdict .main{font-size:21px;font-weight:650;line-height:1.35}
.verdict .seen-here-title{margin-top:10px}
.seen-here{margin:2px 0 0;padding-left:22px}
.card{border:1px solid var(--line);border-left:5px solid var(--bad);border-radius:0 8px 8px 0;padding:12px 18px;
margin:14px 0}
.card h3 span:last-child{font-weight:400;color:var(--quiet)}
.cause+.cause{border-top:1px solid var(--line);margin-top:12px;padding-top:8px}
.advice{font-size:16px;max-width:52em}
.advice code{background:var(--panel);padding:1px 4px;border-radius:4px}
dl{display:grid;grid-template-columns:max-content 1fr;gap:2px 14px;margin:8px 0 2px}
dt{color:var(--quiet)}
dd{margin:0;padding-top:1px}
.mark-failed{color:var(--bad);font-weight:700}
.mark-ok{color:var(--good)}
.mark-skipped{color:var(--quiet)}
.scroll{overflow-x:auto}
svg{display:block;width:100%;height:auto}
svg.wide{min-width:940px}
.phone{display:none}
svg.narrow{display:none;max-width:520px;margin:0 auto}
svg text{fill:var(--text);font-size:11.5px}
svg .title{font-size:13px;font-weight:650}
svg .plain{fill:var(--quiet)}
svg .mono{font-family:ui-monospace,SFMono-Regular,Menlo,Consolas,"DejaVu Sans Mono","Liberation Mono",monospace;
font-size:11px}
svg text.second{fill:var(--second)}
svg .label{fill:var(--bad);font-weight:650}
svg .frame{fill:var(--panel);stroke:var(--line)}
svg .box{fill:var(--box);stroke:var(--line);stroke-width:1.2}
svg .bar{fill:var(--bar)}
svg .off{stroke-dasharray:4 3}
svg rect.off{fill:var(--panel)}
svg rect.bad{fill:var(--bad-bg);stroke:var(--bad);stroke-width:2}
svg .wire{fill:none;stroke:var(--wire);stroke-width:1.8}
svg .wire.thin{stroke-width:1;stroke-dasharray:1 3}
svg .wire.second{stroke:var(--second)}
svg .wire.off{stroke-width:1.2;stroke-dasharray:4 3}
svg .wire.bad{stroke:var(--bad);stroke-width:2.6;stroke-dasharray:6 4}
svg .wire.none{stroke:none}
svg .break circle{fill:var(--bg);stroke:var(--bad);stroke-width:2}
svg .break path{stroke:var(--bad);stroke-width:2}
table{border-collapse:collapse;font-size:14px}
th,td{text-align:left;padding:4px 12px 4px 0;vertical-align:top;border-bottom:1px solid var(--line)}
th{font-weight:600}
thead th{color:var(--quiet);font-weight:500}
.list{width:100%;overflow-wrap:break-word}
.list td.value{overflow-wrap:anywhere;min-width:9em}
.list td.k,.list td.f,.list td.s{width:26px;padding:4px 0;text-align:center}
.list td.k+td,.list td.f+td,.list td.s+td{padding-left:10px}
.list td:last-child{padding-right:0}
.matrix{border-collapse:separate;border-spacing:0}
.matrix td{text-align:center;padding:3px 0;min-width:34px}
.matrix tbody th{position:sticky;left:0;background:var(--bg);padding-right:16px;white-space:nowrap;font-weight:500;
max-width:180px;overflow:hidden;text-overflow:ellipsis}
.matrix thead th{vertical-align:bottom;padding:12px 0 6px;color:var(--text)}
.matrix thead th:first-child{z-index:1;position:sticky;left:0;background:var(--bg)}
.matrix thead span{writing-mode:vertical-rl;transform:rotate(180deg);white-space:nowrap;display:block;margin:0 auto;
line-height:1.2;max-height:170px;overflow:hidden}
.f{background:var(--bad-bg);color:var(--bad);font-weight:700}
.f a{display:block;text-decoration:none}
.k{color:var(--good)}
.s{color:var(--quiet)}
.chips{list-style:none;margin:4px 0 10px;padding:0;display:flex;flex-wrap:wrap;gap:4px 18px}
.chips a{text-decoration:none}
details{margin:6px 0}
summary{cursor:pointer;padding:3px 0}
details details{margin-left:18px}
.inside{padding-left:18px}
.stages{display:grid;grid-template-columns:max-content max-content 1fr;gap:5px 16px;align-items:center;max-width:860px}
.bar-box{height:12px;border-radius:3px;background:var(--panel)}
.bar-box i{display:block;height:100%;border-radius:3px;background:var(--wire);min-width:2px}
.number{text-align:right;font-variant-numeric:tabular-nums;white-space:nowrap}
.console{display:flex;flex-direction:column-reverse;max-height:420px;overflow:auto;background:var(--panel);
border:1px solid var(--line);border-radius:6px;margin:6px 0}
pre{padding:10px 12px;margin:0;line-height:1.4;overflow-wrap:normal}
@media(max-width:840px){
main{padding:18px 14px 48px}
svg.wide{display:none}
svg.narrow,.phone{display:block}
.verdict .main{font-size:18px}
.card{padding:10px 12px}
.stages{grid-template-columns:1fr max-content;gap:1px 12px}
.stages .bar-box{grid-column:1/3;margin-bottom:7px}
.matrix tbody th{max-width:124px;padding-right:8px;font-size:13px}
.matrix td{min-width:28px}
.inside{padding-left:0}
details details{margin-left:8px}
}
@media print{svg.narrow{display:none}.console{max-height:none}}
"""
