"""Imports point one way: seams ← pure rules ← the rim that does I/O ← app and cli. This test keeps it so."""

import ast
import re
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
SEAMS = (
    *("errors", "clock", "text", "model", "model.*", "telemetry.events", "telemetry.events.*", "*.base"),
    "fetching.browser.browser_policy_and_stats",
)
#: Decisions: they take values and the time, and give values.
PURE = (
    "sources.*",
    # Their `read` waits, but only for the client that it is handed.
    "sports.*",
    "matches.map_ids_and_keys_between_feeds",
    "matches.event_versions_and_confirmation",
    "matches.limits",
    "resilience.*",
    "fetching.browser.proxy_sessions",
    "fetching.browser.recycle_and_hang_policy",
    "fetching.browser.profile_and_stealth_script",
    "watching.poll_intervals_and_frozen_pages",
    "watching.polling_state_and_decisions",
    "supervision.health_grade_and_recovery",
    "supervision.health_verdict",
    "supervision.exit_codes",
    "supervision.restart_backoff",
    "telemetry.alerts",
    "telemetry.episodes",
)
#: Decisions that share a module with code that acts on them: they obey the same rules.
PURE_PARTS = {
    "fetching.browser.learn_mode_and_proxy_from_responses": (
        *("ModeState", "initial_state", "after_success", "after_refusal", "after_failure", "_in_mode", "_cheaper"),
        *("ResponseSizes", "without_ids", "_is_far_from"),
    ),
    "fetching.browser.proxy_budget": ("Spending", "spent", "may_spend", "step_reached"),
    "exhaustion": ("MachineResource", "exhausted_resource"),
    "matches.source_client_and_poll_attempt": ("PollAttempt",),
    "supervision.heartbeat_watch": ("HeartbeatWatch",),
    "supervision.memory_watch": ("MemoryLimits", "within_container", "MemoryLevel", "MemoryWatch"),
    "supervision.memory_for_new_matches": ("idle_watches",),
    "supervision.resource_use_and_match_costs": ("match_costs", "_pss", "_browser_cpu"),
    "watching.poll_dispatcher": ("ResourceType", "ScrapeRequest", "ScrapeQueue"),
    "watching.listing_requests_and_timing": ("finished_after",),
    "watching.watch_telemetry": ("ErrorWindow",),
}
#: Beside the pure rules, but allowed to wait or to read files.
NOT_PURE = ("sources.load_sources", "sports.registry")
#: Concrete things behind a seam: only those who put the program together may know them.
IMPLEMENTATIONS = (
    "storage.sqlite.hot_view_and_heartbeats",
    "storage.sqlite.matches",
    "storage.sqlite.operations_tables",
    "storage.sqlite.writer",
    "fetching.http",
    "fetching.browser.browser_pool_and_orphan_sweep",
    "api.server",
)
#: The simulator and those who run whole programs against it. They are no part of the product.
LAB = ("longstop_lab", "longstop_lab.*")
SIMULATOR = ("longstop_lab.simulator", "longstop_lab.simulator.*")
#: The command line loads the lab's verbs, when it is started.
MAY_LOAD_THE_LAB = ("cli.main",)
#: Those who put the program together; the simulator is none of them.
ASSEMBLERS = ("app", "app.*", "cli", "cli.*", *LAB, "__main__")
#: What the simulator may know of the product; it must be able to contradict everything else.
SIMULATOR_MAY_KNOW = ("", "model", "model.*", "sports.cricket.model", "clock", "errors", *SIMULATOR)
#: Plug-ins, and what is no part of the product.
MAY_NAME_A_SPORT = ("sports.*", "sources.*", *LAB)
A_SPORT = re.compile("cricket|football", re.IGNORECASE)
#: Modules that wait, ask for the time, or touch the machine.
# fmt: off
IMPURE_MODULES = frozenset({
    "aiohttp", "apsw", "asyncio", "curl_cffi", "fastapi", "http", "httpx", "io", "multiprocessing", "os",
    "pathlib", "psutil", "queue", "select", "selectors", "shutil", "signal", "socket", "sqlite3", "ssl",
    "starlette", "subprocess", "tempfile", "threading", "time", "uvicorn", "yaml",
})
# fmt: on
IMPURE_CALLS = ("open(", "datetime.now(", "datetime.utcnow(", "datetime.today(", "date.today(", "print(", "input(")
#: Where the program is put together, and what it is put together from: constructors here take few arguments.
ASSEMBLED = ("app", "app.*", "matches", "matches.*", "watching", "watching.*")
MOST_ARGUMENTS = 8
EIGHT = "a, b, c, d, e, f, g, h"
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


def without_pure_parts(module: Module) -> Module:
    """Return a module without its imports of what is pure in a module that acts."""
    parts = {f"longstop.{name}": part for name, part in PURE_PARTS.items()}
    kept = [
        node
        for node in ast.walk(module.tree)
        if isinstance(node, ast.Import)
        or (
            isinstance(node, ast.ImportFrom) and any(a.name not in parts.get(node.module or "", ()) for a in node.names)
        )
    ]
    return Module(module.name, ast.Module([*kept], []))


def is_pure(name: str) -> bool:
    return name.endswith(PURE_PART) or (matches(name, PURE) and not matches(name, NOT_PURE))


def seams_import_only_seams(module: Module) -> Iterator[str]:
    if module.is_one_of(SEAMS):
        for name in ours(module):
            if name and not matches(name, SEAMS):
                yield f"{module.name} is a seam and imports {name}: move what it needs into a seam, or the code out"


def pure_rules_import_no_rim(module: Module) -> Iterator[str]:
    if is_pure(module.name):
        for name in ours(without_pure_parts(module)):
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
                yield f"{module.name} imports {name}: shared code shares its mistakes; write it independently"


def only_the_command_line_loads_the_lab(module: Module) -> Iterator[str]:
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
                    yield f"{module.name} imports {name} at its start: import it inside a function"


def only_plug_ins_name_a_sport(module: Module) -> Iterator[str]:
    if module.is_one_of(MAY_NAME_A_SPORT):
        return
    for line, word in words_of(module.tree):
        if A_SPORT.search(word):
            yield f"{module.name}, line {line}, says {word!r}: ask the sport, by its seam in sports/base.py"


def words_of(tree: ast.Module) -> Iterator[tuple[int, str]]:
    """Yield every name and string of a module with its line, but no docstring."""
    docstrings = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in docstrings:
            yield node.lineno, node.value
        for name in ("id", "attr", "name", "asname", "arg", "module"):
            if isinstance(word := getattr(node, name, None), str):
                yield getattr(node, "lineno", 0), word


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


def constructors_take_few_arguments(module: Module) -> Iterator[str]:
    if not module.is_one_of(ASSEMBLED):
        return
    for node in ast.walk(module.tree):
        if isinstance(node, ast.FunctionDef) and node.name == "__init__":
            given = node.args
            several = [each for each in (given.vararg, given.kwarg) if each]
            count = len([*given.posonlyargs, *given.args, *given.kwonlyargs, *several]) - 1
            if count > MOST_ARGUMENTS:
                yield f"{module.name}, line {node.lineno}, takes {count} arguments: group those that belong together"


RULES: list[Rule] = [
    seams_import_only_seams,
    pure_rules_import_no_rim,
    decisions_touch_nothing,
    only_assemblers_know_implementations,
    nobody_imports_the_assemblers,
    the_simulator_knows_only_the_words,
    only_the_command_line_loads_the_lab,
    only_plug_ins_name_a_sport,
    the_environment_is_read_at_the_edge,
    names_say_something,
    constructors_take_few_arguments,
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
        (pure_rules_import_no_rim, "matches.event_versions_and_confirmation", "from longstop.telemetry.bus import Bus"),
        (pure_rules_import_no_rim, "sports.cricket.sport", "import longstop.sports.registry"),
        (pure_rules_import_no_rim, "sources.crex", "def read():\n    import longstop.sources.load_sources"),
        (
            pure_rules_import_no_rim,
            "watching.polling_state_and_decisions",
            "from longstop.matches.source_client_and_poll_attempt import PollAttempt, SourceClient",
        ),
        (decisions_touch_nothing, "sports.cricket.poll_requests", "import asyncio"),
        (
            decisions_touch_nothing,
            "watching.poll_intervals_and_frozen_pages",
            "from datetime import datetime\nx = datetime.now()",
        ),
        (decisions_touch_nothing, "sources.crex", "text = open('x').read()"),
        (only_assemblers_know_implementations, "matches.pipeline", "from longstop.storage.sqlite.matches import Any"),
        (
            only_assemblers_know_implementations,
            "telemetry.log",
            "from longstop.storage.sqlite.writer import Writer",
        ),
        (
            only_assemblers_know_implementations,
            "longstop_lab.simulator.cricket.world",
            "import longstop.storage.sqlite.hot_view_and_heartbeats",
        ),
        (nobody_imports_the_assemblers, "api.match_routes", "from longstop.app import open_app"),
        (nobody_imports_the_assemblers, "longstop_lab.simulator.cricket.world", "import longstop_lab.deployment"),
        (
            the_simulator_knows_only_the_words,
            "longstop_lab.simulator.cricket.world",
            "import longstop.sources.crex.source",
        ),
        (
            the_simulator_knows_only_the_words,
            "longstop_lab.simulator.cricket.world",
            "from longstop_lab import deployment",
        ),
        (
            only_the_command_line_loads_the_lab,
            "watching.feed_polling",
            "def watch():\n    import longstop_lab.simulator.cricket.world",
        ),
        (only_the_command_line_loads_the_lab, "app.up", "def run():\n    from longstop_lab import deployment"),
        (only_the_command_line_loads_the_lab, "cli.main", "from longstop_lab.demo import run_demo"),
        (only_the_command_line_loads_the_lab, "cli.main", "class Demo:\n    if True:\n        import longstop_lab"),
        (only_plug_ins_name_a_sport, "matches.pipeline", "from longstop.sports.cricket.sport import Cricket"),
        (only_plug_ins_name_a_sport, "matches.pipeline", "if sport.name == 'football': ..."),
        (only_plug_ins_name_a_sport, "api.server", "path = f'/cricket-data/{name}'"),
        (only_plug_ins_name_a_sport, "watching.poll_intervals_and_frozen_pages", "class FootballCadence: ..."),
        (only_plug_ins_name_a_sport, "watching.poll_intervals_and_frozen_pages", "def due(*, is_football): ..."),
        (only_plug_ins_name_a_sport, "watching.poll_intervals_and_frozen_pages", "x = self.cricket"),
        (the_environment_is_read_at_the_edge, "fetching.http", "import os\nx = os.environ['HTTPS_PROXY']"),
        (the_environment_is_read_at_the_edge, "fetching.http", "from os import getenv"),
        (the_environment_is_read_at_the_edge, "longstop_lab.simulator.http", "from os import getenv"),
        (names_say_something, "storage.utils", ""),
        (names_say_something, "storage.rows", "def _utils(): ..."),
        (constructors_take_few_arguments, "app.up", f"class App:\n def __init__(self, {EIGHT}, i): ..."),
        (
            constructors_take_few_arguments,
            "matches.pipeline",
            f"class App:\n def __init__(self, /, i, *, {EIGHT}): ...",
        ),
        (
            constructors_take_few_arguments,
            "watching.source_and_layout_breakers",
            f"class App:\n def __init__(self, {EIGHT}, *more): ...",
        ),
        (constructors_take_few_arguments, "watching", f"class App:\n def __init__(self, {EIGHT}, **more): ..."),
    ],
)
def test_the_rule_sees_a_breach(rule: Rule, name: str, code: str) -> None:
    assert list(rule(Module(name, ast.parse(code))))


@pytest.mark.parametrize(
    ("rule", "code"),
    [
        (decisions_touch_nothing, "import asyncio\nclass ScrapeQueue: news = asyncio.Event()"),
        (decisions_touch_nothing, "from datetime import datetime\nclass ScrapeQueue: at = datetime.now()"),
        (pure_rules_import_no_rim, "from longstop.telemetry.bus import Bus\nclass ScrapeQueue: bus: Bus"),
        (pure_rules_import_no_rim, "class Dispatcher: ...\nclass ScrapeQueue: user: Dispatcher"),
    ],
)
def test_the_pure_part_of_a_module_obeys_the_rules_of_a_pure_one(rule: Rule, code: str) -> None:
    rest = "\nclass ResourceType: ...\nclass ScrapeRequest: ..."

    assert list(rule(pure_part(Module("watching.poll_dispatcher", ast.parse(code + rest)))))


def test_the_other_part_of_a_module_may_act() -> None:
    rest = "\nclass ResourceType: ...\nclass ScrapeRequest: ...\nclass ScrapeQueue: ..."
    code = "import asyncio\nclass Dispatcher: news = asyncio.Event()"
    part = pure_part(Module("watching.poll_dispatcher", ast.parse(code + rest)))

    assert not [*decisions_touch_nothing(part), *pure_rules_import_no_rim(part)]


def test_what_is_pure_in_a_module_that_acts_may_be_imported_by_a_pure_one() -> None:
    code = "from longstop.matches.source_client_and_poll_attempt import PollAttempt"

    assert not list(pure_rules_import_no_rim(Module("watching.polling_state_and_decisions", ast.parse(code))))


def test_a_constructor_may_take_eight_arguments_beside_itself() -> None:
    code = f"class App:\n def __init__(self, {EIGHT}): ..."

    assert not list(constructors_take_few_arguments(Module("app.up", ast.parse(code))))


def test_the_command_line_may_load_the_lab_inside_a_function() -> None:
    code = "def demo():\n    from longstop_lab.demo import run_demo"

    assert not list(only_the_command_line_loads_the_lab(Module("cli.main", ast.parse(code))))


def test_messages_may_name_a_sport() -> None:
    code = '"""In cricket."""\n# In football.\nclass Course:\n    """In football."""\n    def at(self): "In cricket."'

    assert not list(only_plug_ins_name_a_sport(Module("watching.poll_intervals_and_frozen_pages", ast.parse(code))))


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
