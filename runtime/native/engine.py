"""LLVM behind one small door: LLVM text in, machine code in this process out.

    engine = host_engine()
    obj = engine.emit_object(text)              # verified, compiled; plain bytes, good for a cache
    library = engine.link(obj, ["entry"], {"jitney_parallel_for": address})
    library.address("entry")                    # valid while `library` is alive

Everything here may be called from several threads. llvmlite is imported on first use. Text is
compiled as it stands: code generation emits IR that is already optimised, so no LLVM pass runs, but
over functions that ask for it (`loop_passes`).

LLVM takes the process down on IR that breaks its rules, so every module is verified first.
"""

from __future__ import annotations

import itertools
import platform
import re
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from functools import lru_cache
from typing import Any

from ...codegen.target import Target
from .host import host_target as host_target
from .image import Image, LoadedImage, LoadError, load_image
from .llvm import llvm, lock
from .loop_passes import MARK, Split, optimise

_linkers: list[Any] = []  # never disposed of: libraries, and code on other threads, outlive engines

# CPUs that keep no decoded instructions where a jump meets a boundary of 32 bytes (the "JCC erratum"):
# loops of a few instructions take a quarter more, or twice as long, as luck puts them.
SLOW_JUMPS = frozenset(("skylake", "skylake-avx512", "cascadelake"))

NEWEST_WORDS = 22  # the LLVM whose spelling code generation has

_VECTOR = r"<\d+ x (?:float|double|i\d+)>"


class NativeError(RuntimeError):
    """LLVM refused a module, or linking failed: a bug in jitney, or an unsupported machine."""


class Engine:
    """Compiles for one `Target`, and links into this process if that is the host's."""

    _names = itertools.count()

    def __init__(self, target: Target) -> None:
        self._llvm = llvm()
        self.target = target
        with lock:
            try:
                self._machine = self._create_machine()
            except RuntimeError as error:
                raise NativeError(
                    f"LLVM does not know the target {target.triple}: {error}"
                ) from None
            layout = str(self._machine.target_data)
        self._header = f'target datalayout = "{layout}"\ntarget triple = "{target.triple}"\n'
        self._jit: Any = None

    def _create_machine(self, quick: bool = False) -> Any:
        return self._llvm.Target.from_triple(self.target.triple).create_target_machine(
            cpu=self.target.cpu,
            features=self.target.features,
            opt=0 if quick or self.target.quick else 2,
            reloc="pic",
            codemodel="small",  # what belongs to one object lies within 2 GiB: see `linker`
            jit=True,
        )

    def _optimised(self, text: str) -> Any:
        """A module whose functions that ask for LLVM's passes have been through them."""
        if MARK not in text or self.target.quick:
            return self._parse(text)
        parts = Split(text)
        loops = self._parse(parts.loops)
        optimise(self._llvm, self._machine, loops)
        module = self._parse(parts.rest)
        module.link_in(loops)
        for name in parts.crossing:
            module.get_function(name).linkage = "internal"
        return module

    def vectorised(self, text: str) -> set[str]:
        """The functions that went through LLVM's passes and have vectors afterwards."""
        if MARK not in text:
            return set()
        parts = Split(text)
        with lock:
            loops = self._parse(parts.loops)
            optimise(self._llvm, self._machine, loops)
            bodies = {f.name: str(f) for f in loops.functions if not f.is_declaration}
        return {name for name, body in bodies.items() if re.search(_VECTOR, body)}

    @contextmanager
    def _switched(self, text: str) -> Iterator[None]:
        """LLVM's options while it makes machine code of a module: they are the process's, where other
        compilers may be.

        Where functions went through LLVM's passes, selections stay selections: by default LLVM makes
        jumps of those that it thinks are waited for. Where they follow the data, as in tables that are
        filled from their own entries, many jumps are guessed wrongly.
        """
        options = []
        if self.target.triple.startswith("x86_64"):
            if MARK in text:
                options.append(("x86-cmov-converter", "false", "true"))
            if self.target.cpu in SLOW_JUMPS:
                options.append(("x86-branches-within-32B-boundaries", "true", "false"))
        for name, now, _ in options:
            self._llvm.set_option("jitney", f"-{name}={now}")
        try:
            yield
        finally:
            for name, _, before in options:
                self._llvm.set_option("jitney", f"-{name}={before}")

    def _parse(self, text: str) -> Any:
        if self._llvm.llvm_version_info[0] < NEWEST_WORDS:
            from .older_llvm import in_older_words  # not where LLVM is as new as what is written

            text = in_older_words(text)
        try:
            module = self._llvm.parse_assembly(self._header + text)
            module.verify()
        except RuntimeError as error:
            raise NativeError(f"LLVM refuses the module: {str(error).strip()}") from None
        return module

    def verify(self, text: str) -> None:
        """Raise NativeError if `text` is not a valid module."""
        with lock:
            self._parse(text).close()

    def printed(self, text: str) -> str:
        """A module as LLVM itself prints it: one spelling of everything."""
        with lock:
            module = self._parse(text)
            try:
                lines = str(module).splitlines()
            finally:
                module.close()
        return "\n".join(line for line in lines if not line.startswith("target "))

    def emit_object(self, text: str, quick: bool = False, coroutines: bool = False) -> bytes:
        """The object file of a module. `quick`: in a tenth of the time, and slower code.

        `coroutines`: it has some, which LLVM's passes must split first.
        """
        with lock:
            machine = self._create_machine(quick=True) if quick else self._machine
            module = self._parse(text) if quick else self._optimised(text)
            try:
                if coroutines:
                    self._split_coroutines(module)
                with self._switched(text):
                    return bytes(machine.emit_object(module))
            finally:
                module.close()

    def asm(self, text: str) -> str:
        """The assembly of a module."""
        with lock:
            module = self._optimised(text)
            try:
                with self._switched(text):
                    return str(self._machine.emit_assembly(module))
            finally:
                module.close()

    def _split_coroutines(self, module: Any) -> None:
        # The least that LLVM does splits them. To improve what it gives would take four times as long as
        # to compile it, and the text has no variables in memory that a pass could take out of there.
        options = self._llvm.create_pipeline_tuning_options(speed_level=0)
        with self._llvm.create_pass_builder(self._machine, options) as builder:
            builder.getModulePassManager().run(module, builder)

    def assemble(self, text: str, quick: bool = False, coroutines: bool = False) -> Image | bytes:
        """Machine code for a module: an image, or an object file that only LLVM can link."""
        return _linked(self.emit_object(text, quick, coroutines))

    def load(
        self, text: str, exports: Iterable[str], imports: Mapping[str, int] | None = None
    ) -> LoadedImage:
        """Compile a module and load it. See `link`."""
        return load_code(self.assemble(text), exports, imports)

    def link(
        self, obj: bytes, exports: Iterable[str], imports: Mapping[str, int] | None = None
    ) -> LoadedImage:
        """Load an object file into this process.

        `imports` gives addresses of symbols that the object refers to; others (libc, libm) are
        found in the process by name. A symbol that is nowhere is a NativeError.
        """
        return load_code(_linked(obj), exports, imports)

    def link_with_llvm(
        self, obj: bytes, exports: Iterable[str], imports: Mapping[str, int] | None = None
    ) -> LoadedImage:
        """As `link`, by LLVM's linker: it knows all machines and systems."""
        exports = list(exports)
        with lock:
            if self._jit is None:
                # It consumes its machine. LLVM names missing symbols on stderr only.
                self._jit = self._llvm.create_lljit_compiler(self._create_machine())
                _linkers.append(self._jit)
            builder = self._llvm.JITLibraryBuilder().add_object_img(obj).add_current_process()
            for symbol, address in (imports or {}).items():
                builder.import_symbol(symbol, address)
            for symbol in exports:
                builder.export_symbol(symbol)
            name = f"jitney{next(self._names)}"
            try:
                tracker = builder.link(self._jit, name)
            except RuntimeError as error:
                raise NativeError(f"cannot link native code: {str(error).strip()}") from None
        return LoadedImage(tracker, {symbol: tracker[symbol] for symbol in exports}, len(obj))


def _linked(obj: bytes) -> Image | bytes:
    """The image of an object file; the file itself where only LLVM can link it."""
    from .linker import Unlinkable, link_elf

    try:
        return link_elf(obj)
    except Unlinkable:
        return obj


def load_code(
    code: Image | bytes, exports: Iterable[str], imports: Mapping[str, int] | None = None
) -> LoadedImage:
    """Load what `Engine.assemble` made into this process. See `Engine.link`."""
    if isinstance(code, bytes):
        if platform.machine() == "aarch64":  # LLVM would end the process where memory is far apart
            raise NativeError("the object has something that our own linker does not know")
        return host_engine().link_with_llvm(code, exports, imports)
    if any(name not in code.exports for name in exports):
        raise NativeError(f"the code defines {list(code.exports)}, not {list(exports)}")
    try:
        return load_image(code, imports)
    except LoadError as error:
        raise NativeError(f"cannot link native code: {error}") from None


@lru_cache(maxsize=8)
def engine_for(target: Target) -> Engine:
    """The engine of a target. Code for another machine can be emitted and printed, not linked."""
    binding = llvm()
    if target.triple != binding.get_process_triple():
        with lock:
            binding.initialize_all_targets()
            binding.initialize_all_asmprinters()
    return Engine(target)


@lru_cache(maxsize=1)
def host_engine() -> Engine:
    """The engine for this machine's CPU."""
    return engine_for(host_target())


def llvm_versions() -> tuple[str, str]:
    """Versions of llvmlite and of the LLVM inside it."""
    import llvmlite

    return llvmlite.__version__, ".".join(map(str, llvm().llvm_version_info))


def cpu_description() -> str:
    """The CPU's own name where the system tells it, else the architecture."""
    try:
        with open("/proc/cpuinfo", encoding="utf-8", errors="replace") as lines:
            for line in lines:
                if line.startswith("model name"):
                    return line.partition(":")[2].strip()
    except OSError:
        pass
    return platform.processor() or platform.machine()
