"""The README's picture: jitney's speed over that of the fastest other, row by row, as SVG

python -m benchmarks.picture        writes docs/speed.svg from the newest results
"""

from __future__ import annotations

import json
import math
import sys
from typing import Any
from xml.sax.saxutils import escape

from .report import ROOT, best_peer, geometric_mean, ratio
from .rows import ROWS

PICTURE = ROOT / "docs" / "speed.svg"
SHOWN = (
    *(
        "x + 1 on 10 elements",
        "Black-Scholes, call and put",
        "softmax of rows",
        "cumsum over axis 1",
    ),
    *("a @ b, 1024 cubed", "all pairwise distances of 3000 points", "forces between 3000 bodies"),
    *("100 steps of a 5-point heat stencil, 1024 squared", "x = (x + 2 / x) / 2, 1e6 times"),
    "scan of 614 steps with 60 scalar carries, with gradient",
    "training step of a 4-layer perceptron with Adam, batch 256",
    *("LSTM of 100 steps", "causal attention, batch 8, 8 heads, 512 x 64", "sort 1e6 numbers"),
)
WIDTH, LEFT, LINE, TOP = 900, 480, 22, 58
PER_DOUBLING = 54  # points of a factor of two
TITLE = "Times faster than the fastest of NumPy, Numba, JAX and PyTorch"
STYLE = """text{font:13px system-ui,sans-serif;fill:#24292f}.n{font-weight:600}.s{fill:#57606a}
rect{fill:#2563eb}.b{fill:#fff}line{stroke:#8c959f}
@media(prefers-color-scheme:dark){text{fill:#e6edf3}.s{fill:#9da7b3}rect{fill:#60a5fa}.b{fill:#161b22}}"""


def drawn(run: dict[str, Any]) -> str:
    """Bars from 1, the fastest of the others, to the right where jitney is faster: logarithms."""
    rows = [(ROWS[name].title, cells) for name, cells in run["rows"].items()]
    rows = [(title, cells) for title, cells in rows if title in SHOWN]
    height = TOP + LINE * len(rows) + 14
    mean = geometric_mean(run)
    out = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" role="img">',
        f"<title>{TITLE}</title><style>{STYLE}</style>",
        f'<rect class="b" width="{WIDTH}" height="{height}" rx="6"/>',
        f'<text x="8" y="20" class="n">{TITLE}</text>',
        f'<text x="8" y="40" class="s">{len(rows)} of {len(run["rows"])} rows; geometric mean of all: '
        f"{mean:.2f}. {escape(run['machine'].split(',')[0])}, {run['threads']} threads</text>",
    ]
    for i, (title, cells) in enumerate(rows):
        found, best = ratio(cells), best_peer(cells)
        if found is None or best is None:
            continue
        y = TOP + LINE * i
        length = math.log2(found) * PER_DOUBLING
        x, who = LEFT + min(length, 0), best[0].replace("_", ".")
        out += [
            f'<text x="{LEFT - 60}" y="{y + 13}" text-anchor="end">{escape(title)}</text>',
            f'<rect x="{x:.1f}" y="{y + 1}" width="{max(abs(length), 1):.1f}" height="15" rx="2"/>',
            f'<text x="{LEFT + max(length, 0) + 6:.1f}" y="{y + 13}">'
            f'<tspan class="n">{found:.2f}</tspan>'
            f'<tspan class="s" dx="5">{who}</tspan></text>',
        ]
    out.append(f'<line x1="{LEFT}" x2="{LEFT}" y1="{TOP - 6}" y2="{height - 8}"/></svg>')
    return "\n".join(out) + "\n"


def newest() -> dict[str, Any]:
    run: dict[str, Any] = json.loads(
        max((ROOT / "benchmarks" / "results").glob("*.json")).read_text()
    )
    return run


if __name__ == "__main__":
    PICTURE.write_text(drawn(newest()))
    sys.exit(0)
