"""A run as Markdown: what failed first, then times and ratios.

python -m benchmarks.gpu.report benchmarks/gpu/results/NAME.json
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

from ..report import seconds, table

Run = dict[str, Any]
PEERS = ("torch", "torch_compile", "jax", "triton")
ENDS = {"error": "failed", "timeout": "out of time"}  # what records have, and what it is called
VARIANTS = {"jitney_cublas": "by cuBLASLt", "jitney_tuned": "autotuned"}


def markdown(run: Run) -> str:
    parts = [
        f"# {run['title']}",
        f"commit {run['commit']}, {run['date']}, driver {run.get('driver', '?')}; "
        + ", ".join(f"{k} {v}" for k, v in run.get("versions", {}).items()),
        _summary(run),
    ]
    stages = run["stages"]
    for heading, part in (
        ("Speed", _speed(stages.get("speed", {}))),
        ("What the device can do", _ceilings(stages.get("speed", {}))),
        ("Kernels", _kernels(stages.get("first_light", {}))),
        ("Tests", _tests(stages)),
        ("Accuracy", _sweeps(stages.get("sweeps", {}))),
        ("What failed", failures(run)),
        ("Where time was over", overdue(run)),
    ):
        if part:
            parts += [f"## {heading}", part]
    return "\n\n".join(parts) + "\n"


def _summary(run: Run) -> str:
    lines = [
        [name, str(len(found)), *(_count(found, how) for how in ENDS), f"{took:.0f} s"]
        for name, found in run["stages"].items()
        for took in [run["seconds"].get(name, 0.0)]
    ]
    return table(["stage", "items", *ENDS.values(), "took"], lines)


def _count(found: dict[str, Any], how: str) -> str:
    return str(sum(how in record for record in found.values()))


def _speed(records: dict[str, Any]) -> str:
    """Times with a full queue; what the device alone takes against its copy and cuBLAS."""
    ceilings = records.get("ceilings", {})
    copy, cublas = ceilings.get("copy_bytes_per_second"), ceilings.get("cublas_flops", {})
    lines = []
    for name, record in records.items():
        cells = record.get("cells")
        if cells is None:
            continue
        own = cells.get("jitney", {})
        others = {p: cells[p]["median"] for p in PEERS if "median" in cells.get(p, {})}
        best = min(others, key=others.__getitem__, default=None)
        ours, alone = own.get("median"), own.get("device")
        arithmetic = record.get("arithmetic", record["dtype"])
        peak = cublas.get(f"{arithmetic} {record.get('size')}", cublas.get(f"{arithmetic} 8192"))
        lines.append(
            [
                name,
                "-" if ours is None else seconds(ours),
                *(_median(cells.get(variant, {})) for variant in VARIANTS),
                *("-" if p not in others else seconds(others[p]) for p in PEERS),
                "-" if best is None or ours is None else f"{others[best] / ours:.2f}x",
                "-" if alone is None else seconds(alone),
                _share(record.get("traffic"), alone, copy),
                _share(record.get("flops"), alone, peak),
            ]
        )
    heads = ["row", "jitney", *VARIANTS.values(), *PEERS]
    heads += ["best peer / jitney", "device", "of copy", "of cuBLAS"]
    return table(heads, lines) if lines else ""


def _median(cell: dict[str, Any]) -> str:
    return seconds(cell["median"]) if "median" in cell else "-"


def _share(work: float | None, taken: float | None, rate: float | None) -> str:
    return f"{100 * work / taken / rate:.0f}%" if work and taken and rate else "-"


def _ceilings(records: dict[str, Any]) -> str:
    found = records.get("ceilings", {})
    lines = []
    if "copy_bytes_per_second" in found:
        lines.append(
            ["cuMemcpyDtoD, read + written", f"{found['copy_bytes_per_second'] / 1e9:.0f} GB/s"]
        )
    for name, flops in found.get("cublas_flops", {}).items():
        lines.append([f"cuBLAS {name} cubed", f"{flops / 1e12:.1f} TFLOP/s"])
    missing = [f"{name}: {why}" for name, why in found.get("missing", {}).items()]
    return "\n".join([table(["", ""], lines) if lines else "", *(f"- {m}" for m in missing)])


def _kernels(records: dict[str, Any]) -> str:
    lines = []
    for row, record in records.items():
        for module in record.get("modules", ()):
            found = module.get("kernels", {}).values()
            lines.append(
                [
                    row,
                    str(len(found)),
                    *(_ms(module.get(k)) for k in ("llvm_ms", "ptx_jit_ms")),
                    str(max((k.get("registers", 0) for k in found), default=0)),
                    str(sum(k.get("local", 0) for k in found)),
                    str(max((k.get("shared", 0) for k in found), default=0)),
                ]
            )
    heads = "row;kernels;LLVM;the driver;registers;local bytes;shared bytes"
    advised = [
        f"- {row}: {line}"
        for row, record in records.items()
        for module in record.get("modules", ())
        for line in module.get("advisories", ())
    ]
    return "\n".join([table(heads.split(";"), lines), "", *advised]).strip() if lines else ""


def _ms(value: float | None) -> str:
    return "-" if value is None else f"{value:.1f} ms"


def _tests(stages: dict[str, Any]) -> str:
    lines = []
    for stage, found in stages.items():
        if not stage.startswith("tests: "):
            continue
        found = {item: record for item, record in found.items() if item != "the log"}
        ends = [_count(found, how) for how in (*ENDS, "skipped")]
        passed = str(len(found) - sum(map(int, ends)))
        lost = str(sum(bool(r.get("lost")) for r in found.values()))
        lines.append([stage.partition(": ")[2], passed, *ends, lost])
    heads = ["file", "passed", *ENDS.values(), "skipped", "lost the context"]
    said = [
        f"- {stage.partition(': ')[2]}: {line.strip('= ')}"
        for stage, found in stages.items()
        for line in found.get("the log", {}).get("log", "").splitlines()
        if " SUMMARY: " in line
    ]
    return "\n".join([table(heads, lines), "", *said]).strip() if lines else ""


def _sweeps(records: dict[str, Any]) -> str:
    same = [name for name, r in records.items() if r.get("different") == 0]
    lines = [
        [
            name,
            str(r.get("different", "")),
            f"{r['ulp']:.2f}",
            _small(r.get("relative")),
            _at(r),
        ]
        for name, r in records.items()
        if "ulp" in r
    ]
    heads = ["function", "other bits than the CPU", "ULP at most", "relative", "at"]
    parts = [f"The CPU's bits: {', '.join(same)}."] if same else []
    return "\n\n".join([*parts, *([table(heads, lines)] if lines else [])])


def _small(value: float | None) -> str:
    return "" if value is None else f"{value:.2e}"


def _at(record: dict[str, Any]) -> str:
    at = record.get("at", "")
    return ", ".join(f"{x:.9g}" for x in (at if isinstance(at, list) else [at]))


def overdue(run: Run) -> str:
    """Where time was over, which says nothing of what would have come."""
    return "\n".join(
        f"- `{stage} {item}`: {record['timeout']}"
        for stage, found in run["stages"].items()
        for item, record in found.items()
        if "timeout" in record
    )


def failures(run: Run) -> str:
    """Each error once, with the items that it met."""
    met: dict[str, list[str]] = {}
    for stage, found in run["stages"].items():
        for item, record in found.items():
            if "error" in record:
                met.setdefault(record["error"][:200], []).append(f"{stage} {item}")
            for peer, cell in record.get("cells", {}).items():
                if "error" in cell and not peer.startswith("jitney") and "traceback" in cell:
                    met.setdefault(f"{peer}: {cell['error'][:200]}", []).append(item)
    return "\n".join(
        f"- {error}: {len(items)} items, first `{items[0].strip()}`"
        for error, items in sorted(met.items(), key=lambda pair: -len(pair[1]))
    )


if __name__ == "__main__":
    print(markdown(json.loads(Path(sys.argv[1]).read_text())))
