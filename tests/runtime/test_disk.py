"""The cache on disk: whole entries or none, nobody else's, and never more than asked for."""

from __future__ import annotations

import errno
import os
import socket
import stat
import subprocess
import sys
import time
import warnings
from pathlib import Path

import pytest
import warm

from jitney.runtime.cache import disk
from jitney.runtime.cache.disk import DiskCache, UnsafeCacheWarning, disk_cache
from jitney.runtime.cache.installation import digest, installation
from jitney.runtime.config import config, default_cache_dir


@pytest.fixture
def cache(tmp_path: Path) -> DiskCache:
    return DiskCache(str(tmp_path / "c"))


def files(cache: DiskCache) -> list[Path]:
    assert cache.directory is not None
    return sorted(Path(cache.directory).iterdir())


def test_round_trip(cache: DiskCache) -> None:
    assert cache.enabled and cache.writable and cache.get("k") is None and "k" not in cache
    cache.put("k", b"content")
    assert cache.get("k") == b"content" and "k" in cache
    assert DiskCache(cache.directory).get("k") == b"content"
    assert cache.size()[0] == 1
    assert stat.S_IMODE(os.stat(cache.directory).st_mode) == 0o700
    assert stat.S_IMODE(files(cache)[0].stat().st_mode) == 0o600
    cache.clear()
    assert cache.size() == (0, 0) and cache.get("k") is None


@pytest.mark.parametrize(
    "damage", ["flip", "cut", "grow", "empty", "magic", "version", "header", "renamed"]
)
def test_damaged_and_foreign_entries_are_dropped(cache: DiskCache, damage: str) -> None:
    cache.put("k", bytes(range(256)) * 10)
    (path,) = files(cache)
    data = path.read_bytes()
    flipped = bytearray(data)
    flipped[{"flip": -5, "magic": 0, "version": 7}.get(damage, -1)] ^= 1
    wrong = {"cut": data[:-1], "grow": data + b"x", "empty": b"", "header": data[:20]}
    if damage == "renamed":  # the content of another key
        cache.put("other", b"something else")
        path.write_bytes((path.parent / "other.jo").read_bytes())
        cache.discard("other")
    else:
        path.write_bytes(wrong.get(damage, bytes(flipped)))
    assert cache.get("k") is None
    assert files(cache) == []
    cache.put("k", b"again")
    assert cache.get("k") == b"again"


def test_every_flipped_bit_is_noticed(cache: DiskCache) -> None:
    cache.put("k", b"0123456789")
    (path,) = files(cache)
    data = path.read_bytes()
    for position in range(len(data)):
        path.write_bytes(data[:position] + bytes([data[position] ^ 0x10]) + data[position + 1 :])
        assert cache.get("k") is None


def test_entries_that_others_could_write_are_dropped(cache: DiskCache) -> None:
    cache.put("k", b"content")
    (path,) = files(cache)
    path.chmod(0o666)
    assert cache.get("k") is None and files(cache) == []


def a_socket(path: Path) -> None:
    with socket.socket(socket.AF_UNIX) as made:
        made.bind(os.path.relpath(path))  # an absolute path may be too long


OTHER_THINGS = {
    "pipe": lambda path: os.mkfifo(path),
    "directory": lambda path: path.mkdir(),
    "full directory": lambda path: path.joinpath("mine").mkdir(parents=True),
    "socket": a_socket,
    "endless": lambda path: path.symlink_to("/dev/zero"),
    "terminal": lambda path: path.symlink_to("/dev/tty"),
    "link to itself": lambda path: path.symlink_to(path),
    "link to nothing": lambda path: path.symlink_to(path.with_suffix(".gone")),
    "unreadable": lambda path: (path.write_bytes(b"x"), path.chmod(0)),
}


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="there are files and directories only")
@pytest.mark.parametrize("kind", OTHER_THINGS)
def test_what_is_no_file_is_no_entry(cache: DiskCache, kind: str) -> None:
    path = Path(cache.directory) / "k.jo"
    OTHER_THINGS[kind](path)
    assert cache.get("k") is None and (kind == "unreadable" or "k" not in cache)
    cache.put("k", b"content")
    assert cache.get("k") == (None if kind == "full directory" else b"content")
    cache.put("other", b"more")
    assert cache.get("other") == b"more" and cache.writable and not cache.reason
    cache.clear()
    assert [file.name for file in files(cache)] == ["k.jo"] * (kind == "full directory")


@pytest.mark.skipif(
    not hasattr(os, "geteuid") or os.geteuid() != 0, reason="only root can give away"
)
def test_entries_and_directories_of_other_users_are_refused(cache: DiskCache) -> None:
    cache.put("k", b"content")
    os.chown(files(cache)[0], 12345, -1)
    assert cache.get("k") is None and files(cache) == []
    os.chown(cache.directory, 12345, -1)
    with pytest.warns(UnsafeCacheWarning, match="belongs to another user"):
        assert not DiskCache(cache.directory).enabled


def test_the_oldest_entries_leave(tmp_path: Path) -> None:
    cache = DiskCache(str(tmp_path / "c"), limit=10_000)
    for k in range(30):
        cache.put(f"k{k}", bytes(1000))
        os.utime(tmp_path / "c" / f"k{k}.jo", (1000 + k, 1000 + k))
    assert cache.size()[1] <= 11_000
    assert cache.get("k29") is not None and cache.get("k0") is None
    cache.put("huge", bytes(20_000))
    assert cache.get("huge") is None


def test_reading_is_using(tmp_path: Path) -> None:
    cache = DiskCache(str(tmp_path / "c"), limit=4000)
    for k in range(3):
        cache.put(f"k{k}", bytes(1000))
        os.utime(tmp_path / "c" / f"k{k}.jo", (1000 + k, 1000 + k))
    assert cache.get("k0") is not None
    cache.put("new", bytes(1000))
    cache.trim()
    assert "k0" in cache and "new" in cache and "k1" not in cache


def test_what_dead_writers_left_is_removed(cache: DiskCache) -> None:
    old, young = (Path(cache.directory) / f"{name}.tmp" for name in ("old", "young"))
    for path in (old, young):
        path.write_bytes(b"half")
    os.utime(old, (time.time() - 10_000,) * 2)
    cache.put("k", b"x")
    assert young.exists() and not old.exists()


@pytest.mark.parametrize("mode", [0o777, 0o770, 0o702])
def test_a_directory_that_others_can_write_is_refused(tmp_path: Path, mode: int) -> None:
    folder = tmp_path / "open"
    folder.mkdir()
    folder.chmod(mode)
    with pytest.warns(UnsafeCacheWarning, match="other users.*chmod 700"):
        cache = DiskCache(str(folder))
    assert not cache.enabled and "other users" in cache.reason
    cache.put("k", b"x")
    assert cache.get("k") is None and not list(folder.iterdir())


def test_a_directory_that_others_can_exchange_is_refused(tmp_path: Path) -> None:
    above = tmp_path / "above"
    above.mkdir()
    above.chmod(0o777)
    with pytest.warns(UnsafeCacheWarning, match="above it, can be written"):
        assert not DiskCache(str(above / "c")).enabled
    above.chmod(0o1777)  # sticky, as /tmp is: only the owner renames
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert DiskCache(str(above / "c")).enabled


def test_the_warning_is_given_once(tmp_path: Path) -> None:
    (tmp_path / "open").mkdir()
    (tmp_path / "open").chmod(0o777)
    with config(cache_dir=tmp_path / "open"):
        with pytest.warns(UnsafeCacheWarning):
            disk_cache()
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            assert not disk_cache().enabled


def test_unusable_places_are_memory_only(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    assert not DiskCache(str(tmp_path / "file" / "below")).enabled
    assert not DiskCache(str(tmp_path / "file")).enabled
    assert "switched off" in DiskCache(None).reason
    if Path("/proc/version").exists():
        assert not DiskCache("/proc/jitney").enabled  # nobody can make folders there


def test_a_read_only_directory_is_read(cache: DiskCache, monkeypatch: pytest.MonkeyPatch) -> None:
    cache.put("k", b"x")
    monkeypatch.setattr(disk.os, "access", lambda path, mode: not mode & os.W_OK)
    reader = DiskCache(cache.directory)
    assert reader.get("k") == b"x" and "read-only" in reader.reason
    reader.put("other", b"y")
    assert reader.get("other") is None and len(files(cache)) == 1


def test_a_directory_that_vanishes_is_no_error(cache: DiskCache) -> None:
    Path(cache.directory).rmdir()
    cache.put("k", b"x")
    assert cache.get("k") is None and not cache.writable and "cannot write" in cache.reason


def test_a_full_disk_leaves_nothing_behind(
    cache: DiskCache, monkeypatch: pytest.MonkeyPatch
) -> None:
    cache.put("before", b"x")

    def full(key: str, content: bytes) -> bytes:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(disk, "_pack", full)
    cache.put("k", b"y")
    assert "No space left" in cache.reason and not cache.writable
    assert cache.get("before") == b"x" and len(files(cache)) == 1


def test_processes_that_race_find_whole_entries(tmp_path: Path) -> None:
    code = (
        "import sys\n"
        "from jitney.runtime.cache.disk import DiskCache\n"
        f"cache = DiskCache({str(tmp_path / 'c')!r}, limit=400_000)\n"
        "for k in range(300):\n"
        "    key = f'k{k % 25}'\n"
        "    want = key.encode() * 8000\n"
        "    got = cache.get(key)\n"
        "    assert got is None or got == want, key\n"
        "    cache.put(key, want)\n"
        "print(cache.reason)"
    )
    running = [
        subprocess.Popen(
            [sys.executable, "-c", code], stdout=subprocess.PIPE, stderr=subprocess.PIPE
        )
        for _ in range(3)
    ]
    for process in running:
        out, err = process.communicate(timeout=60)
        assert process.returncode == 0 and not out.strip(), err.decode()
    assert not list((tmp_path / "c").glob("*.tmp"))


def test_a_digest_tells_its_parts_apart() -> None:
    assert digest("a", "bc") != digest("ab", "c") != digest("abc")
    assert digest("a") == digest(b"a") and len(digest()) == 40


def test_the_installation_is_the_same_in_another_process() -> None:
    code = "from jitney.runtime.cache.installation import installation; print(installation())"
    assert warm.run(code).strip() == installation()


def test_an_edited_source_is_another_installation(monkeypatch: pytest.MonkeyPatch) -> None:
    from jitney.runtime.cache import installation as module

    before = installation()
    sources = module._sources()
    assert {"ir", "tracer", "nn", "solve"} <= {line.split(os.sep)[1] for line in sources}
    assert len(sources) > 100 and any("/runtime/cache/disk.py " in line for line in sources)
    assert not any("tests" in line for line in sources)
    monkeypatch.setattr(module, "_sources", lambda: [*sources[1:], sources[0] + "1"])
    assert module.installation.__wrapped__() != before


def test_what_pip_put_in_place_is_known_by_its_record(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    from jitney.runtime.cache import installation as module

    monkeypatch.setattr(module, "ROOT", str(tmp_path / "jitney"))
    for path in ("jitney", "jitney_extras-1.0.dist-info", "jitney-1.0.dist-info"):
        (tmp_path / path).mkdir()
    (tmp_path / "jitney_extras-1.0.dist-info" / "RECORD").write_text("another's")
    assert module._recorded() == ""  # a folder without a list: the sources count
    (tmp_path / "jitney-1.0.dist-info" / "RECORD").write_text("jitney/ir/graph.py,sha256=1,10")
    before = module._recorded()
    assert before
    (tmp_path / "jitney-1.0.dist-info" / "RECORD").write_text("jitney/ir/graph.py,sha256=2,10")
    assert module._recorded() not in ("", before)
    monkeypatch.setattr(module, "ROOT", str(tmp_path / "no folder" / "jitney"))
    assert module._recorded() == ""


def test_settings(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("JITNEY_CACHE_DIR", str(tmp_path / "here"))
    assert default_cache_dir() == config.cache_dir == str(tmp_path / "here")
    monkeypatch.setenv("JITNEY_CACHE_MB", "3")
    assert config.cache_size == 3 << 20
    with config(cache_size=1000, cache_dir=tmp_path / "there"):
        assert config.cache_size == disk_cache().limit == 1000
        assert disk_cache().directory == str(tmp_path / "there")
    assert config.cache_size == 3 << 20 and config.cache_dir == str(tmp_path / "here")
    with config(cache=False):
        assert not disk_cache().enabled and "switches it off" in disk_cache().reason
    monkeypatch.setenv("JITNEY_CACHE", "0")
    assert not config.cache and not disk_cache().enabled
    listed = [line.partition(" = ")[0].split(".")[-1] for line in repr(config).splitlines()]
    assert "cache_dir" in listed and all(name in str(type(config).__doc__) for name in listed)
    monkeypatch.setenv("JITNEY_CACHE_MB", "many")
    with pytest.raises(ValueError, match="JITNEY_CACHE_MB is a number of MiB, not 'many'"):
        _ = config.cache_size


@pytest.mark.parametrize(
    ("name", "value", "error"),
    [
        ("cache_sise", 1, AttributeError),
        ("cache_size", -1, ValueError),
        ("cache_size", "big", TypeError),
        ("cache", 1, TypeError),
        ("threads", 0, ValueError),
    ],
)
def test_unfit_settings_are_refused(name: str, value: object, error: type[Exception]) -> None:
    before = (config.cache, config.cache_size, config.threads)
    with pytest.raises(error):
        setattr(config, name, value)
    with pytest.raises(error), config(**{name: value}):
        pass
    assert (config.cache, config.cache_size, config.threads) == before


def test_the_environment_names_the_directory(tmp_path: Path) -> None:
    code = (
        "from jitney.runtime.native.host import host_target\n"
        "from jitney.runtime.cache.disk import disk_cache\n"
        "import sys\n"
        "host_target()\n"
        "c = disk_cache(); print(c.hits, c.misses, 'llvmlite' in sys.modules, c.reason)"
    )
    here = {"JITNEY_CACHE_DIR": str(tmp_path / "d")}
    assert warm.run(code, **here).split() == ["0", "1", "True"]
    assert warm.run(code, **here).split() == ["1", "0", "False"]
    assert "JITNEY_CACHE" in warm.run(code, JITNEY_CACHE="0")


def jitney(*arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "jitney", *arguments]
    environment = {**os.environ, **environment}
    return subprocess.run(command, capture_output=True, text=True, timeout=60, env=environment)


def test_the_command_line_shows_and_clears(tmp_path: Path) -> None:
    here = {"JITNEY_CACHE_DIR": str(tmp_path / "d"), "JITNEY_CACHE_MB": "7"}
    cache = DiskCache(str(tmp_path / "d"))
    for key in ("a", "b"):
        cache.put(key, bytes(1000))
    (tmp_path / "d" / "precious.txt").write_text("not ours")
    shown = jitney("cache", "info", **here)
    assert shown.returncode == 0
    for words in (str(tmp_path / "d"), "in use", "2, 2 KiB of at most 7 MiB"):
        assert words in shown.stdout
    cleared = jitney("cache", "clear", **here)
    assert cleared.returncode == 0 and "removed 2 of 2 entries" in cleared.stdout
    assert [path.name for path in files(cache)] == ["precious.txt"]
    shown = jitney("cache", "info", JITNEY_CACHE="0")
    assert "not in use" in shown.stdout and "switches it off" in shown.stdout
    assert jitney("cache", "burn").returncode == 2
