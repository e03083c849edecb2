"""How the tour shows its steps, and keeps them for those who want them as data."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from filepact.faces.cli.render import paint_diff
from filepact.faces.cli.screen import TerminalText

if TYPE_CHECKING:
    from collections.abc import Iterable

    from filepact.faces.cli.screen import Terminal

__all__ = ["TourReport", "TourStep"]

_MOST_LINES = 16
_WIDTH = 100


@dataclass(frozen=True, slots=True)
class TourStep:
    """One thing that was done, and whether it came out as it has to.

    Attributes:
        sent: The call or the command.
        verdict: What it shows, in one sentence.
    """

    title: str
    sent: str
    answer: str
    verdict: str
    ok: bool


class TourReport:
    """The steps taken so far; people see each as soon as it is taken."""

    def __init__(self, screen: Terminal) -> None:
        self._screen = screen
        self.steps: list[TourStep] = []

    @property
    def ok(self) -> bool:
        """Whether every step so far came out as it has to."""
        return all(step.ok for step in self.steps)

    def note(
        self, title: str, sent: str, answer: str | Iterable[TerminalText], verdict: str, *, ok: bool
    ) -> None:
        """Keep a step and show it."""
        spans = _paint(answer) if isinstance(answer, str) else tuple(answer)
        text = "".join(span.text for span in spans)
        self.steps.append(TourStep(title, sent, text, verdict, ok))
        shown = [TerminalText(f"{len(self.steps):>2}  {title}\n", "strong")]
        if sent:
            prefix = "" if sent.startswith("$") else "> "
            shown.append(TerminalText(f"    {prefix}{_cut(sent)}\n", "place"))
        shown += _indented(spans)
        mark = (
            TerminalText("    ok  ", "good") if ok else TerminalText("    NOT AS EXPECTED  ", "bad")
        )
        self.say([*shown, mark, TerminalText(f"{verdict}\n\n")])

    def say(self, spans: Iterable[TerminalText]) -> None:
        """Show something between the steps."""
        if not self._screen.json:
            self._screen.write(spans)


def _paint(answer: str) -> tuple[TerminalText, ...]:
    """An answer as an agent gets it; a diff at its end gets colours."""
    starts = [at for mark in ("\ndiff --git ", "\n--- ") if (at := answer.find(mark)) != -1]
    if not starts:
        return (TerminalText(answer),)
    at = min(starts) + 1
    return (TerminalText(answer[:at]), *paint_diff(answer[at:]))


def _indented(spans: Iterable[TerminalText]) -> list[TerminalText]:
    """The first lines of an answer, cut to the width and set in."""
    lines: list[list[TerminalText]] = [[]]
    for span in spans:
        first, *rest = span.text.split("\n")
        lines[-1].append(TerminalText(first, span.style))
        lines += [[TerminalText(text, span.style)] for text in rest]
    while lines and not any(span.text for span in lines[-1]):
        lines.pop()
    shown: list[TerminalText] = []
    for line in lines[:_MOST_LINES]:
        room = _WIDTH
        shown.append(TerminalText("    \u2502 ", "dim"))
        for span in line:
            text = span.text if len(span.text) <= room else f"{span.text[: max(room - 3, 0)]}..."
            shown.append(TerminalText(text if room else "", span.style))
            room = max(0, room - len(span.text))
        shown.append(TerminalText("\n"))
    if len(lines) > _MOST_LINES:
        shown.append(TerminalText(f"    \u2502 ... {len(lines) - _MOST_LINES} more lines\n", "dim"))
    return shown


def _cut(text: str) -> str:
    return text if len(text) <= _WIDTH else f"{text[: _WIDTH - 3]}..."
