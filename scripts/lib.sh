# Shared by the scripts: sets up `.venv` from the lock files. Sourced, never run.

set -euo pipefail
# Ctrl-C ends the script as well, not only the current command.
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

# Debian ships Python without the modules for `python -m venv`.
need_venv_module() { # python
    "$1" -c 'import ensurepip, venv' >/dev/null 2>&1 && return
    local package
    package="$("$1" -c 'import sys; print("python%d.%d-venv" % sys.version_info[:2])')"
    can_install_debian || fail "$1 cannot create virtual environments: run \`sudo apt-get install $package\`, then this again"
    say "Installing $package"
    install_debian "$package"
}

make_venv() {
    is_new_enough "$VENV/bin/python" && "$VENV/bin/python" -m pip --version >/dev/null 2>&1 && return
    local python
    python="$(find_python)"
    need_venv_module "$python"
    say "Creating ${VENV##*/} with $("$python" --version)"
    "$python" -m venv --clear "$VENV"
}

# The inputs of an environment; a changed lock, project file, path or Python recreates it.
fingerprint() { # run|dev
    {
        cat "requirements/$1.txt" pyproject.toml
        echo "$ROOT"
        "$VENV/bin/python" --version
    } | sha256sum
}

is_set_up() { [ "$(cat "$VENV/.longstop-$1" 2>/dev/null)" = "$(fingerprint "$1")" ]; }

pip_install() { "$VENV/bin/python" -m pip install --quiet --disable-pip-version-check "$@"; }

# Python packages for the product (run), or for development with a browser (dev).
set_up() { # run|dev
    exec 9<pyproject.toml
    flock 9 # a second script on a fresh clone waits for the first
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

# The frameworks that a benchmark compares against, in a separate environment because their pins may differ.
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

# A browser may also come from `playwright install`; the product knows where to find it.
missing_browsers() { # kind=package …
    "$VENV/bin/python" - "$@" <<'END'
import sys

from longstop.fetching.browser.browser_policy_and_stats import BrowserKind
from longstop.fetching.browser.chromium_path_and_arguments import find_chromium

for kind, package in (pair.split("=") for pair in sys.argv[1:]):
    if find_chromium(BrowserKind(kind)) is None:
        print(package)
END
}

# Debian packages for tests and suites. Without them tests are skipped with a message; with CI=true that is an error.
need_packages() { # package …
    [ $# -eq 0 ] && return
    if can_install_debian && install_debian "$@"; then
        return
    fi
    [ "${CI:-}" != true ] || fail "These Debian packages are missing and cannot be installed: $*"
    say "Some tests will be skipped. To run all of them: sudo apt-get install $*"
}

# The browser of the suites and its driver packages; BROWSER_EXECUTABLE overrides it.
need_browser() {
    set_up dev
    [ -n "${BROWSER_EXECUTABLE:-}" ] && return
    # shellcheck disable=SC2046 # one word per package
    need_packages $(missing_browsers shell=chromium-headless-shell)
}
