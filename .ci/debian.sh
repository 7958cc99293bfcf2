# Sourced by scripts that want a Python from Debian's packages, which need not be for this machine:
#
#   work=...            a folder for all of it; what is there already is used again
#   suite=, arch=       Debian's names; an empty suite is this machine's own
#   package=            of Python: python3, python3.14
#   platform=           wheels' name for the architecture: x86_64, aarch64
#   debian_python       makes $work/python; $work/packages has `jitney`, for PYTHONPATH
#   run_by              sets `by`, what runs programs below $work/system; the caller defines it
#
# Nothing is installed on this machine. Processes that tests start run $work/python, too.

say() { printf '\n== %s (%ss)\n' "$1" "$SECONDS"; }

debian_python() {
    [ -d "$work/system" ] || unpack_system
    interpreter=$(find "$work/system/usr/bin" -name 'python3.*' | grep -E 'python3\.[0-9]+$' | tail -1)
    run_by
    [ -d "$work/site-packages" ] || unpack_wheels
    write_launcher
}

# By apt with a state of its own: this machine's packages stay what they are.
unpack_system() {
    say "Debian's $package for $arch"
    mkdir -p "$work"/apt/{lists/partial,cache/archives/partial,dpkg,parts} "$work/system"
    : >"$work/apt/dpkg/status"
    local apt=(apt-get -qq -o "Dir::State::lists=$work/apt/lists" -o "Dir::Cache=$work/apt/cache"
        -o "Dir::State::status=$work/apt/dpkg/status" -o "APT::Architecture=$arch"
        -o "APT::Architectures=$arch" -o APT::Install-Recommends=false)
    if [ -n "$suite" ]; then
        local mirror
        mirror=$(apt-get indextargets --format '$(REPO_URI)' | grep -v security | head -1)
        echo "deb $mirror $suite main" >"$work/apt/sources.list"
        apt+=(-o "Dir::Etc::sourcelist=$work/apt/sources.list" -o "Dir::Etc::sourceparts=$work/apt/parts")
    fi
    "${apt[@]}" update
    "${apt[@]}" install -y --download-only "$package" libstdc++6 libatomic1 libgomp1 >/dev/null
    for deb in "$work"/apt/cache/archives/*.deb; do dpkg-deb -x "$deb" "$work/system"; done
}

# What jitney and its tests import, as wheels for that Python.
unpack_wheels() {
    say "wheels for $platform"
    local version=${interpreter##*python} wanted
    wanted=$("$python" -c '
import sys, tomllib
project = tomllib.load(open(sys.argv[1], "rb"))["project"]
tests = ("hypothesis", "jaxtyping", "mpmath", "pytest", "pytest-xdist", "scipy")
extra = [line for line in project["optional-dependencies"]["test"] if line.partition(">")[0] in tests]
print("\n".join(project["dependencies"] + extra))' "$root/pyproject.toml")
    local platforms=()
    for glibc in 17 26 27 28 31 34; do platforms+=(--platform "manylinux_2_${glibc}_$platform"); done
    mapfile -t wanted <<<"$wanted"
    "$python" -m pip download --only-binary=:all: --implementation cp --python-version "$version" \
        --platform "manylinux2014_$platform" "${platforms[@]}" --dest "$work/wheels" "${wanted[@]}"
    for wheel in "$work"/wheels/*.whl; do "$python" -m zipfile -e "$wheel" "$work/site-packages"; done
}

write_launcher() {
    cat >"$work/python" <<END
#!/usr/bin/env bash
export LAUNCHED_AS=$work/python PYTHONHOME=$work/system/usr ${environment:-}
export PYTHONPATH="\${PYTHONPATH:+\$PYTHONPATH:}$work/site-packages" PYTHONPYCACHEPREFIX=$work/bytecode
exec ${by[*]} $interpreter "\$@"
END
    chmod +x "$work/python"
    cat >"$work/site-packages/sitecustomize.py" <<'END'
import os, sys

sys.executable = sys._base_executable = os.environ["LAUNCHED_AS"]
END
    mkdir -p "$work/packages"
    ln -sfn "$root" "$work/packages/jitney"
}
