"""Imports point one way: seams ← pure rules ← the rim that does I/O ← app and cli. This test keeps it so."""

import ast
import subprocess
import sys
from collections.abc import Callable, Iterator
from fnmatch import fnmatch
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import pytest
from msgspec import Struct

SOURCE = Path(__file__).parents[1] / "src"

#: What everybody may import, and what imports nothing but each other.
SEAMS = ("errors", "clock", "model", "model.*", "telemetry.events.*", "*.base")
#: Decisions: they take values and the time, and give values.
PURE = (
    "sources.*",
    "pipeline.*",
    "resilience.*",
    "fetching.browser.byte_budget",
    "fetching.browser.events",
    "fetching.browser.hanging",
    "fetching.browser.modes",
    "fetching.browser.profile",
    "fetching.browser.proxies",
    "fetching.browser.recycling",
    "fetching.browser.sizes",
    "watching.cadence",
    "watching.restarts",
    "watching.watch_state",
    "watching.ownership",
    "supervision.actions",
    "supervision.admission",
    "supervision.backoff",
    "supervision.freshness",
    "supervision.grades",
    "supervision.remedy",
    "supervision.shares",
    "supervision.standstill",
    "supervision.telling",
    "supervision.verdict",
    "supervision.exits",
    "supervision.memory",
    "telemetry.alerts",
    "telemetry.conditions",
    "telemetry.episodes",
)
#: Decisions that share a module with code that acts on them: they obey the same rules.
PURE_PARTS = {
    "watching.dispatcher": ("ResourceType", "ScrapeRequest", "ScrapeQueue"),
    "watching.listings": ("Plan", "sort_out", "Finished"),
}
#: Beside the pure rules, but allowed to wait or to read files.
NOT_PURE = ("sources.registry", "pipeline.run", "pipeline.walk", "pipeline.football.run", "pipeline.football.walk")
#: Concrete things behind a seam: only those who put the program together may know them.
IMPLEMENTATIONS = (
    "storage.sqlite.matches",
    "storage.sqlite.hot",
    "fetching.http",
    "fetching.browser.pool",
    "api.server",
)
#: The simulator and those who run whole programs against it. They are no part of the product.
LAB = ("longstop_lab", "longstop_lab.*")
SIMULATOR = ("longstop_lab.simulator", "longstop_lab.simulator.*")
#: Verbs of the command line may load the lab, when they run.
MAY_LOAD_THE_LAB = ("cli.*",)
#: Those who put the program together; the simulator is none of them.
ASSEMBLERS = ("app", "app.*", "cli", "cli.*", *LAB, "__main__")
#: What the simulator may know of the product; it must be able to contradict everything else.
SIMULATOR_MAY_KNOW = ("", "model", "model.*", "clock", "errors", *SIMULATOR)
#: Modules that wait, ask for the time, or touch the machine.
# fmt: off
IMPURE_MODULES = frozenset({
    "aiohttp", "apsw", "asyncio", "curl_cffi", "fastapi", "http", "httpx", "io", "multiprocessing", "os",
    "pathlib", "psutil", "queue", "select", "selectors", "shutil", "signal", "socket", "sqlite3", "ssl",
    "starlette", "subprocess", "tempfile", "threading", "time", "uvicorn", "yaml",
})
# fmt: on
IMPURE_CALLS = ("open(", "datetime.now(", "datetime.utcnow(", "datetime.today(", "date.today(", "print(", "input(")
OURS = ("longstop", "longstop_lab")
DEFINITIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)
PURE_PART = ":pure"
EMPTY_NAMES = frozenset({"util", "utils", "helper", "helpers", "misc"})


class Module(Struct, frozen=True):
    """A source file: its name below `longstop` (empty for the package itself) or in the lab, and its syntax."""

    name: str
    tree: ast.Module

    def is_one_of(self, patterns: tuple[str, ...]) -> bool:
        return matches(self.name, patterns)


Rule = Callable[[Module], Iterator[str]]


def matches(name: str, patterns: tuple[str, ...]) -> bool:
    return any(fnmatch(name, pattern) for pattern in patterns)


def read_modules() -> list[Module]:
    modules = []
    for path in sorted(SOURCE.rglob("*.py")):
        parts = path.relative_to(SOURCE).with_suffix("").parts
        name = below_longstop(".".join(part for part in parts if part != "__init__"))
        modules.append(Module(name, ast.parse(path.read_text(encoding="utf-8"))))
    return modules


def below_longstop(name: str) -> str:
    """Return a module's name without `longstop.`; one of the lab keeps all of its name."""
    return "" if name == "longstop" else name.removeprefix("longstop.")


def is_assembler(name: str) -> bool:
    return matches(name, ASSEMBLERS) and not matches(name, SIMULATOR)


def pure_part(module: Module) -> Module:
    """Return the pure part of a module as one of its own: its definitions, and an import of every name they use."""
    definitions = {node.name: node for node in module.tree.body if isinstance(node, DEFINITIONS)}
    part = [definitions.pop(name) for name in PURE_PARTS[module.name]]
    used = {node.id for each in part for node in ast.walk(each) if isinstance(node, ast.Name)}
    imports: list[ast.stmt] = []
    for node in module.tree.body:
        if isinstance(node, ast.Import | ast.ImportFrom):
            names = [alias for alias in node.names if (alias.asname or alias.name.partition(".")[0]) in used]
            imports += [
                ast.ImportFrom(node.module, names, 0) if isinstance(node, ast.ImportFrom) else ast.Import(names)
            ]
    # What the other part defines counts as imported from a module that acts.
    rest = [ast.alias(name) for name in definitions if name in used]
    imports += [ast.ImportFrom(f"longstop.{module.name}", rest, 0)]
    return Module(f"{module.name}{PURE_PART}", ast.Module([*imports, *part], []))


MODULES = read_modules()
NAMES = frozenset(module.name for module in MODULES)
PARTS = [pure_part(module) for module in MODULES if module.name in PURE_PARTS]


def imported(tree: ast.AST) -> Iterator[str]:
    """Yield full names; `from package import submodule` counts as the submodule."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            base = node.module or ""
            for alias in node.names:
                full = f"{base}.{alias.name}"
                yield full if below_longstop(full) in NAMES else base


def ours(module: Module) -> Iterator[str]:
    """Yield what a module imports of Longstop and its lab, named as modules are."""
    for name in imported(module.tree):
        if name.partition(".")[0] in OURS:
            yield below_longstop(name)


def foreign(module: Module) -> Iterator[str]:
    return (name.partition(".")[0] for name in imported(module.tree) if name.partition(".")[0] not in OURS)


def at_start(tree: ast.AST) -> Iterator[ast.AST]:
    """Yield what is executed when a module is imported: everything outside its functions."""
    for node in ast.iter_child_nodes(tree):
        if not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda):
            yield node
            yield from at_start(node)


def is_pure(name: str) -> bool:
    return name.endswith(PURE_PART) or (matches(name, PURE) and not matches(name, NOT_PURE))


def seams_import_only_seams(module: Module) -> Iterator[str]:
    if module.is_one_of(SEAMS):
        for name in ours(module):
            if name and not matches(name, SEAMS):
                yield f"{module.name} is a seam and imports {name}: move what it needs into a seam, or the code out"


def pure_rules_import_no_rim(module: Module) -> Iterator[str]:
    if is_pure(module.name):
        for name in ours(module):
            if name and not (matches(name, SEAMS) or is_pure(name)):
                yield f"{module.name} decides and imports {name}, which acts: take its result as an argument"


def decisions_touch_nothing(module: Module) -> Iterator[str]:
    if not is_pure(module.name):
        return
    for name in foreign(module):
        if name in IMPURE_MODULES:
            yield f"{module.name} decides and imports {name}: take what it gives as an argument, or move it to the rim"
    for node in ast.walk(module.tree):
        if isinstance(node, ast.Call) and ast.unparse(node.func) + "(" in IMPURE_CALLS:
            yield f"{module.name}, line {node.lineno}, calls {ast.unparse(node.func)}: take its result as an argument"


def only_assemblers_know_implementations(module: Module) -> Iterator[str]:
    if is_assembler(module.name):
        return
    for name in ours(module):
        own_package = name.partition(".")[0] == module.name.partition(".")[0]
        if matches(name, IMPLEMENTATIONS) and not own_package:
            yield f"{module.name} imports {name}: ask for the seam in the constructor and let app hand it in"


def nobody_imports_the_assemblers(module: Module) -> Iterator[str]:
    if not is_assembler(module.name):
        for name in ours(module):
            if is_assembler(name):
                yield f"{module.name} imports {name}: only the command line stands above app; take it as an argument"


def the_simulator_knows_only_the_words(module: Module) -> Iterator[str]:
    if module.is_one_of(SIMULATOR):
        for name in ours(module):
            if not matches(name, SIMULATOR_MAY_KNOW):
                yield f"{module.name} imports {name}: who shares our code shares our mistakes; write it anew"


def only_verbs_load_the_lab(module: Module) -> Iterator[str]:
    if module.is_one_of(LAB):
        return
    if not module.is_one_of(MAY_LOAD_THE_LAB):
        for name in ours(module):
            if matches(name, LAB):
                yield f"{module.name} imports {name}: the product works without its lab"
        return
    for node in at_start(module.tree):
        if isinstance(node, ast.Import | ast.ImportFrom):
            for name in imported(node):
                if matches(name, LAB):
                    yield f"{module.name} imports {name} at its start: import it inside the verb's function"


def the_environment_is_read_at_the_edge(module: Module) -> Iterator[str]:
    if module.name == "settings" or is_assembler(module.name):
        return
    for node in ast.walk(module.tree):
        reads = isinstance(node, ast.Attribute) and ast.unparse(node) in ("os.environ", "os.environb", "os.getenv")
        takes = isinstance(node, ast.ImportFrom) and node.module == "os"
        if reads or (takes and {"environ", "getenv"} & {alias.name for alias in getattr(node, "names", [])}):
            yield f"{module.name} reads the environment: make it a setting, and take the setting as an argument"


def names_say_something(module: Module) -> Iterator[str]:
    words = {*module.name.split(".")}
    for node in ast.walk(module.tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            words.add(node.name.strip("_").lower())
    for word in sorted(words & EMPTY_NAMES):
        yield f"{module.name} has something named {word}: name it after what it does"


RULES: list[Rule] = [
    seams_import_only_seams,
    pure_rules_import_no_rim,
    decisions_touch_nothing,
    only_assemblers_know_implementations,
    nobody_imports_the_assemblers,
    the_simulator_knows_only_the_words,
    only_verbs_load_the_lab,
    the_environment_is_read_at_the_edge,
    names_say_something,
]


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.__name__)
def test_the_source_tree_keeps_the_rule(rule: Rule) -> None:
    complaints = [complaint for module in (*MODULES, *PARTS) for complaint in rule(module)]

    assert not complaints, "\n" + "\n".join(complaints)


def test_no_module_imports_itself_in_a_circle() -> None:
    graph = {module.name: {name for name in ours(module) if name not in ("", module.name)} for module in MODULES}

    try:
        circle: list[str] = []
        TopologicalSorter(graph).prepare()
    except CycleError as error:
        circle = error.args[1]

    assert not circle, f"{' → '.join(circle)}: move what both need into a module of its own"


@pytest.mark.parametrize(
    ("rule", "name", "code"),
    [
        (seams_import_only_seams, "storage.base", "from longstop.telemetry.bus import Bus"),
        (seams_import_only_seams, "model.match", "from longstop import settings"),
        (pure_rules_import_no_rim, "pipeline.diff", "from longstop.telemetry.bus import Bus"),
        (pure_rules_import_no_rim, "sources.crex", "def read():\n    import longstop.sources.registry"),
        (decisions_touch_nothing, "pipeline.diff", "import asyncio"),
        (decisions_touch_nothing, "watching.cadence", "from datetime import datetime\nx = datetime.now()"),
        (decisions_touch_nothing, "sources.crex", "text = open('x').read()"),
        (only_assemblers_know_implementations, "pipeline.run", "from longstop.storage.sqlite.matches import Anything"),
        (only_assemblers_know_implementations, "longstop_lab.simulator.world", "import longstop.storage.sqlite.hot"),
        (nobody_imports_the_assemblers, "api.matches", "from longstop.app import open_app"),
        (nobody_imports_the_assemblers, "longstop_lab.simulator.world", "import longstop_lab.stage"),
        (the_simulator_knows_only_the_words, "longstop_lab.simulator.world", "import longstop.sources.crex.source"),
        (the_simulator_knows_only_the_words, "longstop_lab.simulator.world", "from longstop_lab import stage"),
        (only_verbs_load_the_lab, "watching.watcher", "def watch():\n    import longstop_lab.simulator.world"),
        (only_verbs_load_the_lab, "app.up", "def run():\n    from longstop_lab import stage"),
        (only_verbs_load_the_lab, "cli.trials", "from longstop_lab.demo import run_demo"),
        (only_verbs_load_the_lab, "cli.trials", "class Demo:\n    if True:\n        import longstop_lab"),
        (the_environment_is_read_at_the_edge, "fetching.http", "import os\nx = os.environ['HTTPS_PROXY']"),
        (the_environment_is_read_at_the_edge, "fetching.http", "from os import getenv"),
        (the_environment_is_read_at_the_edge, "longstop_lab.simulator.http", "from os import getenv"),
        (names_say_something, "storage.utils", ""),
        (names_say_something, "storage.rows", "def _utils(): ..."),
    ],
)
def test_the_rule_sees_a_breach(rule: Rule, name: str, code: str) -> None:
    assert list(rule(Module(name, ast.parse(code))))


@pytest.mark.parametrize(
    ("rule", "code"),
    [
        (decisions_touch_nothing, "import asyncio\nclass Plan: news = asyncio.Event()"),
        (decisions_touch_nothing, "from datetime import datetime\nclass Plan: at = datetime.now()"),
        (pure_rules_import_no_rim, "from longstop.telemetry.bus import Bus\nclass Plan: bus: Bus"),
        (pure_rules_import_no_rim, "class Listings: ...\nclass Plan: listings: Listings"),
    ],
)
def test_the_pure_part_of_a_module_obeys_the_rules_of_a_pure_one(rule: Rule, code: str) -> None:
    rest = "\ndef sort_out(): ...\nclass Finished: ..."

    assert list(rule(pure_part(Module("watching.listings", ast.parse(code + rest)))))


def test_the_other_part_of_a_module_may_act() -> None:
    rest = "\nclass Plan: ...\ndef sort_out(): ...\nclass Finished: ..."
    code = "import asyncio\nclass Listings: news = asyncio.Event()"
    part = pure_part(Module("watching.listings", ast.parse(code + rest)))

    assert not [*decisions_touch_nothing(part), *pure_rules_import_no_rim(part)]


def test_a_verb_may_load_the_lab_inside_its_function() -> None:
    code = "def demo():\n    from longstop_lab.demo import run_demo"

    assert not list(only_verbs_load_the_lab(Module("cli.trials", ast.parse(code))))


def test_no_module_of_the_product_loads_the_lab_when_it_is_imported() -> None:
    code = f"""\
import importlib, sys
for name in {sorted(NAMES)}:
    if not name.startswith("longstop_lab") and name != "__main__":
        importlib.import_module(f"longstop.{{name}}".rstrip("."))
assert "longstop.cli.main" in sys.modules
print([name for name in sys.modules if name.startswith("longstop_lab")])
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)

    assert (done.stdout, done.stderr) == ("[]\n", "")
