"""Control groups of any machine, laid out in a folder."""

from pathlib import Path

import pytest

from longstop.process.cgroup_limits_and_kill import UNIFIED, available_bytes, memory_limit, own_folder

NO_LIMIT_V1 = str(2**63 - 4096)


class Machine:
    """A folder laid out like the root of a machine."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.put("proc/meminfo", "MemTotal: 9000 kB\nMemAvailable: 8000 kB\n")

    def put(self, name: str, text: str) -> None:
        path = self.root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)

    def groups(self, own: str) -> None:
        self.put("proc/self/cgroup", own)


@pytest.fixture
def machine(tmp_path: Path) -> Machine:
    return Machine(tmp_path)


def test_a_machine_without_control_groups_has_no_limit(machine: Machine) -> None:
    assert memory_limit(machine.root) is None
    assert own_folder(UNIFIED, machine.root) is None
    assert available_bytes(machine.root) == 8000 * 1024


def test_version_2_says_its_limit_at_our_own_group(machine: Machine) -> None:
    machine.groups("0::/app\n")
    machine.put("sys/fs/cgroup/app/memory.max", "600000\n")
    machine.put("sys/fs/cgroup/app/memory.current", "500000\n")
    machine.put("sys/fs/cgroup/app/memory.stat", "anon 100\ninactive_file 50000\n")

    assert memory_limit(machine.root) == 600_000
    assert available_bytes(machine.root) == 600_000 - (500_000 - 50_000)
    assert own_folder(UNIFIED, machine.root) == machine.root / "sys/fs/cgroup/app"


def test_max_is_no_limit(machine: Machine) -> None:
    machine.groups("0::/app\n")
    machine.put("sys/fs/cgroup/app/memory.max", "max\n")

    assert memory_limit(machine.root) is None


def test_the_tightest_group_above_us_counts(machine: Machine) -> None:
    machine.groups("0::/pod/app\n")
    machine.put("sys/fs/cgroup/pod/memory.max", "700000\n")
    machine.put("sys/fs/cgroup/pod/memory.current", "690000\n")
    machine.put("sys/fs/cgroup/pod/app/memory.max", "900000\n")
    machine.put("sys/fs/cgroup/pod/app/memory.current", "100000\n")

    assert memory_limit(machine.root) == 700_000
    assert available_bytes(machine.root) == 10_000


def test_version_1_beside_version_2_is_understood(machine: Machine) -> None:
    machine.groups("6:freezer:/\n4:memory:/box/a:b\n0::/\n")
    machine.put("sys/fs/cgroup/memory/box/a:b/memory.limit_in_bytes", "400000\n")
    machine.put("sys/fs/cgroup/memory/box/a:b/memory.usage_in_bytes", "390000\n")
    machine.put("sys/fs/cgroup/memory/box/a:b/memory.stat", "inactive_file 1\ntotal_inactive_file 90000\n")
    machine.put("sys/fs/cgroup/memory/memory.limit_in_bytes", NO_LIMIT_V1)
    machine.put("sys/fs/cgroup/unified/cgroup.procs", "1\n")

    assert memory_limit(machine.root) == 400_000
    assert available_bytes(machine.root) == 100_000
    assert own_folder(UNIFIED, machine.root) == machine.root / "sys/fs/cgroup/unified"


def test_the_largest_number_of_version_1_is_no_limit(machine: Machine) -> None:
    machine.groups("4:memory:/\n")
    machine.put("sys/fs/cgroup/memory/memory.limit_in_bytes", NO_LIMIT_V1)

    assert memory_limit(machine.root) is None


def test_a_container_that_sees_its_group_at_the_top_of_the_mount_finds_its_limit(machine: Machine) -> None:
    machine.groups("4:memory:/docker/abc\n")
    machine.put("sys/fs/cgroup/memory/memory.limit_in_bytes", "300000\n")

    assert memory_limit(machine.root) == 300_000


def test_a_path_outside_of_the_mount_means_the_top_of_the_mount(machine: Machine) -> None:
    machine.groups("0::/../other\n")
    machine.put("sys/fs/cgroup/memory.max", "200000\n")

    assert memory_limit(machine.root) == 200_000


def test_a_container_that_is_over_its_limit_has_nothing_left(machine: Machine) -> None:
    machine.groups("0::/\n")
    machine.put("sys/fs/cgroup/memory.max", "200000\n")
    machine.put("sys/fs/cgroup/memory.current", "300000\n")

    assert available_bytes(machine.root) == 0


def test_a_kernel_that_does_not_say_is_no_reason_to_refuse(tmp_path: Path) -> None:
    assert available_bytes(tmp_path) > 1 << 40
