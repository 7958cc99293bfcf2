"""Programs that are wrong, and all that their users are told: it names their line, and is kept.

A file of tests has `wrong = WrongPrograms(__file__)` and functions under `@wrong`, which may ask for a
folder. What is said about those of `test_wrong_nn.py` stands in `tests/golden/wrong_nn.txt`.
"""

import inspect
import re
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from golden_texts import Golden

Program = Callable[..., Any]


class WrongPrograms:
    """The wrong programs of one file."""

    def __init__(self, file: str) -> None:
        self.file = Path(file).name
        golden = Path(file).parents[1] / "golden" / f"{Path(file).stem.removeprefix('test_')}.txt"
        self.golden = Golden(golden)
        self.programs: list[Program] = []

    def __call__(self, program: Program) -> Program:
        self.programs.append(program)
        return program

    def add(self, **programs: Program) -> None:
        """Short ones, by name."""
        for name, program in programs.items():
            program.__name__ = name
            self(program)

    @property
    def each(self) -> Any:
        """Of a test, to run it for each of them."""
        names = [program.__name__ for program in self.programs]
        return pytest.mark.parametrize("program", self.programs, ids=names)

    def check(self, program: Program, folder: Path) -> None:
        """The program fails, its user reads which line is wrong, and the text is the kept one."""
        with pytest.raises(Exception) as caught:
            program(folder) if inspect.signature(program).parameters else program()
        text = "".join(traceback.format_exception_only(caught.value)).strip()
        assert f"{self.file}:" in text, f"the user's line is missing:\n{text}"
        text = re.sub(rf"(/\S*/)?{self.file}:\d+", f"{self.file}:N", text)
        text = text.replace(str(folder), "FOLDER").replace(str(Path.cwd()), "HERE")
        self.golden.check(program.__name__, re.sub(r"0x[0-9a-f]+|(?<=process )\d+", "0xN", text))
