"""Where a test makes its control groups: where the controller is, in version 1 as in version 2."""

from pathlib import Path

import pytest

from longstop.process.cgroups import UNIFIED
from tests.chaos.groups import Hierarchy, hierarchy_of, limited_group


def machine(root: Path, *, groups: str, mounts: str, folders: dict[str, str]) -> Path:
    """Lay out what a kernel shows; a folder is given with what `cgroup.controllers` says there."""
    (root / "proc/self").mkdir(parents=True)
    (root / "proc/self/cgroup").write_text(groups)
    (root / "proc/self/mountinfo").write_text(mounts)
    for folder, controllers in folders.items():
        (root / folder).mkdir()
        (root / folder / "cgroup.procs").touch()
        (root / folder / "cgroup.controllers").write_text(controllers)
        (root / folder / "cgroup.subtree_control").touch()
    return root


def test_version_two_has_all_controllers_at_its_top_and_has_to_switch_them_on(tmp_path: Path) -> None:
    root = machine(
        tmp_path,
        groups="0::/user.slice\n",
        mounts="41 31 0:38 / /groups rw - cgroup2 cgroup2 rw\n",
        folders={"groups": "cpu memory pids", "groups/user.slice": "memory"},
    )

    found = hierarchy_of("pids", root)

    assert found == Hierarchy(folder=root / "groups", name=UNIFIED)
    found.switch_on("pids")
    assert (root / "groups/cgroup.subtree_control").read_text() == "+pids"


def test_beside_version_one_version_two_counts_only_for_what_it_has(tmp_path: Path) -> None:
    root = machine(
        tmp_path,
        groups="4:memory:/job/1\n0::/\n",
        mounts="40 31 0:37 / /memory rw - cgroup cgroup rw,memory\n41 31 0:38 / /groups rw - cgroup2 cgroup2 rw\n",
        folders={"memory": "", "memory/job": "", "memory/job/1": "", "groups": "hugetlb"},
    )

    assert hierarchy_of("pids", root) is None
    assert hierarchy_of("memory", root) == Hierarchy(folder=root / "memory", name="memory")


def test_a_machine_without_groups_has_none(tmp_path: Path) -> None:
    root = machine(tmp_path, groups="", mounts="", folders={})

    assert hierarchy_of("memory", root) is None


@pytest.mark.parametrize(("ci", "outcome"), [("", pytest.skip.Exception), ("true", pytest.fail.Exception)])
@pytest.mark.parametrize("groups", ["", "0::/\n"], ids=["no controller", "no right"])
def test_who_can_make_no_group_skips_the_test_but_fails_it_where_nothing_may_be_missing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, groups: str, ci: str, outcome: type[BaseException]
) -> None:
    monkeypatch.setenv("CI", ci)
    mounts = "41 31 0:38 / /groups ro - cgroup2 cgroup2 ro\n"
    root = machine(tmp_path, groups=groups, mounts=mounts, folders={"groups": "pids"})
    (root / "groups/cgroup.subtree_control").unlink()
    (root / "groups/cgroup.subtree_control").mkdir()  # root may write everywhere, but not into a folder

    with pytest.raises(outcome), limited_group("pids", root):
        pass
