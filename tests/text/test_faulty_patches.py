"""A bounded form of bench/faulty_patches.py: nothing wrong is written, and most is applied."""

from __future__ import annotations

import shutil
from collections import Counter

import pytest

from bench.faulty_patches import filepact, measure
from bench.patch_cases import FITTING, KINDS

LEAST = {"edge of the context differs": 3}


def test_faulty_patches_of_real_files_are_applied_rightly_or_refused():
    if shutil.which("diff") is None:
        pytest.skip("diff is not installed")
    count = 8
    (kinds,) = measure(count, 5, {"filepact": filepact}).values()
    assert sum((kinds[kind] for kind in KINDS), Counter())["WRONG"] == 0
    few = {
        kind: kinds[kind]["right"]
        for kind in FITTING
        if kinds[kind]["right"] < LEAST.get(kind, count - 1)
    }
    assert few == {}
