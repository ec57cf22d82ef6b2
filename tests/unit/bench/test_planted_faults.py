"""Faults that are planted to see whether tests catch them: there, and told from what is sound."""

from __future__ import annotations

import ast
from collections import Counter

import pytest
from planted_faults import FAULTS, DoesNotApplyError, Fault, planted
from support.checkout import ROOT

FEWEST = 30


@pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: fault.name)
def test_it_applies_to_code_that_still_compiles_and_its_tests_are_there(fault: Fault) -> None:
    changed = planted(fault, (ROOT / fault.file).read_text(encoding="utf-8"))
    ast.parse(changed)
    for selected in fault.tests.split():
        file, _, test = selected.partition("::")
        text = (ROOT / file).read_text(encoding="utf-8")
        assert not test or f"def {test}(" in text


def test_there_are_enough_and_no_name_is_there_twice() -> None:
    assert len(FAULTS) >= FEWEST
    assert Counter(fault.name for fault in FAULTS).most_common(1)[0][1] == 1


@pytest.mark.parametrize("text", ["", "a = 1\na = 1\n"])
def test_where_it_is_not_known_which_line_is_meant_none_is_changed(text: str) -> None:
    with pytest.raises(DoesNotApplyError):
        planted(Fault("x", "x.py", "a = 1", "a = 2", "tests/unit"), text)
