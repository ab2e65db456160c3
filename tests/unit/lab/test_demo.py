"""Parts of the demo that need no processes."""

import os
import termios

from longstop_lab.demo import without_echoed_control_keys


def test_the_terminal_does_not_echo_control_keys_into_the_table_and_is_restored() -> None:
    controller, terminal = os.openpty()
    try:
        before = termios.tcgetattr(terminal)
        with without_echoed_control_keys(terminal):
            during = termios.tcgetattr(terminal)

        assert before[3] & termios.ECHOCTL
        assert not during[3] & termios.ECHOCTL
        assert termios.tcgetattr(terminal) == before
    finally:
        os.close(controller)
        os.close(terminal)


def test_a_pipe_is_left_unchanged() -> None:
    reader, writer = os.pipe()
    try:
        with without_echoed_control_keys(reader):
            pass
    finally:
        os.close(reader)
        os.close(writer)
