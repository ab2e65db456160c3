"""How the site spells one ball. Where nothing is recorded, this is the agreement with the source's parser."""

from longstop.sports.cricket.model import Dismissal, Runs
from longstop_lab.simulator.cricket.game import Ball

DISMISSAL_NUMBERS = {kind: number for number, kind in enumerate(Dismissal, start=1)}


def ball_value(runs: Runs) -> str:
    """Return what a ball gave, as in `4`, `wd`, `5wd`, `4nb`, `nb+2lb`, `lb+5p`."""
    parts = []
    if runs.noballs:
        parts.append(f"{runs.batter or ''}nb{runs.noballs if runs.noballs != 1 else ''}")
    elif runs.batter:
        parts.append(str(runs.batter))
    extras = ((runs.wides, "wd"), (runs.byes, "b"), (runs.legbyes, "lb"), (runs.penalty, "p"))
    parts += [f"{count if count != 1 else ''}{suffix}" for count, suffix in extras if count]
    return "+".join(parts) or "0"


def ball_code(ball: Ball) -> str:
    """Return the last event's code: digits, `wd`, `nb`, or `w` for a wicket."""
    if ball.outs:
        return "w"
    if ball.runs.wides:
        return "wd"
    if ball.runs.noballs:
        return "nb"
    return str(ball.runs.total)


def short_value(ball: Ball, wicket: str) -> str:
    """Return a ball as it stands in a row of balls; which letter a wicket has differs from field to field."""
    return wicket if ball.outs else ball_value(ball.runs)


def flag_value(ball: Ball) -> int:
    """Return the feed's `fv` of a ball: 4 six, 8 four, 2 anything else."""
    return {4: 8, 6: 4}.get(ball.boundary or 0, 2)
