"""Two texts as a unified diff that patch programs take byte for byte."""

from __future__ import annotations

from filepact.text.compare import Region, compare_lines

__all__ = ["Region", "compare_lines"]
