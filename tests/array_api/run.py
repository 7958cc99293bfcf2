"""Run the array API conformance suite on NumPy, on jitney and on jitney compiled, and compare.

    git clone --recurse-submodules https://github.com/data-apis/array-api-tests
    pip install -r array-api-tests/requirements.txt
    python tests/array_api/run.py array-api-tests -o tests/array_api/RESULTS.md

The last table lists what fails compiled, or on jitney, and not on NumPy.
"""

from __future__ import annotations

import argparse
import os
import re
import subprocess
import sys
from importlib.metadata import version
from pathlib import Path

HERE = Path(__file__).resolve().parent
VERSION = "2024.12"
MODULES = {
    "numpy": "numpy",
    "jitney": "jitney",
    "jitney, compiled": "exec('import jitted; xp = jitted.xp; xp_name = \"jitney_jitted\"')",
}


def run(suite: Path, module: str, examples: int) -> tuple[str, set[str]]:
    """The suite's summary line, and the names of the tests that failed."""
    paths = [str(HERE), os.environ.get("PYTHONPATH", "")]
    environment = {
        **os.environ,
        "ARRAY_API_TESTS_MODULE": module,
        "ARRAY_API_TESTS_VERSION": VERSION,
        "PYTHONPATH": os.pathsep.join(p for p in paths if p),
    }
    options = ["-q", "-p", "no:cacheprovider", f"--max-examples={examples}", "--disable-deadline"]
    command = [sys.executable, "-m", "pytest", *options, "array_api_tests"]
    done = subprocess.run(
        command, cwd=suite, env=environment, capture_output=True, text=True, check=False
    )
    failed = re.findall(r"^(?:FAILED|ERROR) (\S.*?)(?: - .*)?$", done.stdout, re.MULTILINE)
    lines = done.stdout.strip().splitlines()
    if not lines:
        raise SystemExit(done.stderr)
    return re.sub(r" in .*|, \d+ warnings?", "", lines[-1]).strip("= "), set(failed)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("suite", type=Path, help="a clone of data-apis/array-api-tests")
    parser.add_argument("--examples", type=int, default=20, help="of each test")
    parser.add_argument("-o", "--output", type=Path, help="a Markdown file to write")
    options = parser.parse_args()
    found = {name: run(options.suite, m, options.examples) for name, m in MODULES.items()}
    of_numpy = found["numpy"][1]
    lines = [
        "# Array API conformance",
        "",
        f"data-apis/array-api-tests, standard {VERSION}, {options.examples} examples of each test; "
        f"NumPy {version('numpy')}. Made by `tests/array_api/run.py`.",
        "",
        "| namespace | result | fails, and not in NumPy | fails in NumPy only |",
        "|---|---|---:|---:|",
    ]
    for name, (summary, failed) in found.items():
        more, fewer = len(failed - of_numpy), len(of_numpy - failed)
        lines.append(f"| {name} | {summary} | {more} | {fewer} |")
    for name, (_, failed) in found.items():
        if failed - of_numpy:
            lines += ["", f"{name}, and not NumPy:", ""]
            lines += [f"- `{test}`" for test in sorted(failed - of_numpy)]
    text = "\n".join(lines) + "\n"
    print(text)
    if options.output:
        options.output.write_text(text)


if __name__ == "__main__":
    main()
