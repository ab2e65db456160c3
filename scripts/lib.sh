# Shared by the scripts: a `.venv` that holds what the lock says. Sourced, never run.

set -euo pipefail
# Ctrl-C ends the script, too, and not only the one thing that it waits for.
trap 'exit 130' INT

ROOT="$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)"
VENV="$ROOT/.venv"
COMPARED="$ROOT/.venv-bench"
CALLED_FROM="$PWD"
cd "$ROOT"

say() { printf '%s\n' "$*" >&2; }

fail() {
    say "$*"
    exit 1
}

is_new_enough() { "$1" -c 'import sys; sys.exit(sys.version_info < (3, 11))' >/dev/null 2>&1; }

find_python() {
    local candidate
    for candidate in ${PYTHON:-python3.13 python3.12 python3.11 python3}; do
        if is_new_enough "$candidate"; then
            echo "$candidate"
            return
        fi
    done
    fail "Longstop needs Python 3.11 or newer: install one, or name it, as in PYTHON=/path/to/python3.12 $0"
}

install_debian() { # package …
    DEBIAN_FRONTEND=noninteractive apt-get update -q >&2
    DEBIAN_FRONTEND=noninteractive apt-get install -q -y --no-install-recommends "$@" >&2
}

can_install_debian() { [ "$(id -u)" -eq 0 ] && command -v apt-get >/dev/null; }

# Debian ships Python without what `python -m venv` needs.
need_venv_module() { # python
    "$1" -c 'import ensurepip, venv' >/dev/null 2>&1 && return
    local package
    package="$("$1" -c 'import sys; print("python%d.%d-venv" % sys.version_info[:2])')"
    can_install_debian || fail "$1 cannot make virtual environments yet: run \`sudo apt-get install $package\`, then this again"
    say "Installing $package"
    install_debian "$package"
}

make_venv() {
    is_new_enough "$VENV/bin/python" && "$VENV/bin/python" -m pip --version >/dev/null 2>&1 && return
    local python
    python="$(find_python)"
    need_venv_module "$python"
    say "Making ${VENV##*/} with $("$python" --version)"
    "$python" -m venv --clear "$VENV"
}

# What an environment was made from; a changed lock, project file, place or Python makes it anew.
fingerprint() { # run|dev
    {
        cat "requirements/$1.txt" pyproject.toml
        echo "$ROOT"
        "$VENV/bin/python" --version
    } | sha256sum
}

is_set_up() { [ "$(cat "$VENV/.longstop-$1" 2>/dev/null)" = "$(fingerprint "$1")" ]; }

pip_install() { "$VENV/bin/python" -m pip install --quiet --disable-pip-version-check "$@"; }

# Everything that the product (run) or its developers (dev: also what drives a browser) need from Python.
set_up() { # run|dev
    exec 9<pyproject.toml
    flock 9 # two scripts at once on a fresh clone: the second waits for the first
    make_venv
    if ! is_set_up "$1"; then
        say "Installing what requirements/$1.txt locks"
        rm -f "$VENV"/.longstop-*
        pip_install --require-hashes -r "requirements/$1.txt"
        pip_install --no-deps --no-build-isolation -e .
        fingerprint run >"$VENV/.longstop-run"
        fingerprint "$1" >"$VENV/.longstop-$1"
    fi
    exec 9<&-
}

# What a benchmark compares us with: an environment of its own, since its pins need not agree with ours.
set_up_compared() (
    VENV="$COMPARED"
    exec 9<requirements/bench.txt
    flock 9
    make_venv
    is_set_up bench && return
    say "Installing what requirements/bench.txt locks"
    rm -f "$VENV"/.longstop-*
    pip_install --require-hashes -r requirements/bench.txt
    fingerprint bench >"$VENV/.longstop-bench"
)

missing_programs() { # program=package …
    local pair
    for pair in "$@"; do
        command -v "${pair%%=*}" >/dev/null || echo "${pair#*=}"
    done
}

# A browser may also be one that `playwright install` has brought; the product knows where to look.
missing_browsers() { # kind=package …
    "$VENV/bin/python" - "$@" <<'END'
import sys

from longstop.fetching.browser.base import BrowserKind
from longstop.fetching.browser.chromium import find_chromium

for kind, package in (pair.split("=") for pair in sys.argv[1:]):
    if find_chromium(BrowserKind(kind)) is None:
        print(package)
END
}

# Debian packages that tests and suites use. What goes without them says so itself, except where CI=true: there nothing
# may be missing.
need_packages() { # package …
    [ $# -eq 0 ] && return
    if can_install_debian && install_debian "$@"; then
        return
    fi
    [ "${CI:-}" != true ] || fail "These Debian packages are missing and cannot be installed: $*"
    say "Something here will have to go without; to have all of it: sudo apt-get install $*"
}

# The browser of the suites, and the packages that drive it; with BROWSER_EXECUTABLE set, that one is used.
need_browser() {
    set_up dev
    [ -n "${BROWSER_EXECUTABLE:-}" ] && return
    # shellcheck disable=SC2046 # one word for each package
    need_packages $(missing_browsers shell=chromium-headless-shell)
}
