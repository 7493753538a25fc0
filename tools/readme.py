"""The README, and how tools write their parts of it."""

from lessons import ROOT

README = ROOT / "README.md"


def with_part(readme, begin, end, part):
    """The README's text with the part between two marks, each a line of its own, written anew.

    Raises ValueError unless it holds each mark once.
    """
    if readme.count(begin) != 1 or readme.count(end) != 1:
        raise ValueError(
            f"README.md must hold the marks {begin.strip()!r} and {end.strip()!r} once"
        )
    before, _, rest = readme.partition(begin)
    return f"{before}{begin}\n{part}\n{end}{rest.partition(end)[2]}"
