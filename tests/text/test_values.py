"""Values are dataclasses to everybody who uses them, though nothing is generated for them at import."""

from __future__ import annotations

import copy
import dataclasses
import pickle
from typing import Any, ClassVar

import pytest

from filepact import values


@values.dataclass(frozen=True, slots=True)
class Point:
    """Frozen."""

    KIND: ClassVar[str] = "point"

    x: int
    y: int = 2
    seen: list[int] = values.field(default_factory=list, compare=False)
    _norm: int = values.field(init=False, compare=False, repr=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "_norm", abs(self.x) + abs(self.y))

    @property
    def norm(self) -> int:
        return self._norm


@values.dataclass(frozen=True, slots=True)
class Named(Point):
    """With a field more."""

    name: str = "n"


@values.dataclass(slots=True)
class Counter:
    """Not frozen."""

    count: int = 0


@values.dataclass(slots=True, eq=False)
class Handle:
    """The same only as itself."""

    number: int


@values.dataclass(frozen=True, slots=True, order=True)
class Version:
    """Ordered."""

    major: int
    minor: int = values.field(default=0)


@values.dataclass(frozen=True)
class Open:
    """Without slots."""

    name: str = "n"


@values.dataclass(frozen=True, slots=True)
class Nothing:
    """No field at all."""


EVERY: list[Any] = [Point(1), Named(1, name="m"), Counter(3), Version(1), Open(), Nothing()]


def test_fields_are_set_as_they_are_given() -> None:
    point = Point(1, seen=[4])
    assert (point.x, point.y, point.seen, point.norm, Point.KIND) == (1, 2, [4], 3, "point")
    assert Point(1).seen is not Point(1).seen
    assert Named(1, 5, [], "m").name == "m"
    assert Open("x").name == "x"


@pytest.mark.parametrize("arguments", [(), (1, 2, [], 4), ("x", 1, 2, 3, 4)])
def test_what_does_not_fit_is_a_type_error(arguments: tuple[Any, ...]) -> None:
    with pytest.raises(TypeError, match=r"Point\.__init__"):
        Point(*arguments)


def test_equality_hash_order_and_looks_are_those_of_the_standard_library() -> None:
    assert Point(1, seen=[1]) == Point(1, seen=[2]) != Point(2)
    assert hash(Point(1)) == hash(Point(1, seen=[2])) == hash((1, 2))
    assert Point(1) != Named(1)
    assert Handle(1) != Handle(1)
    assert Version(1) < Version(1, 1) <= Version(2) < Version(3, 1)
    assert Nothing() == Nothing()
    assert repr(Named(1)) == "Named(x=1, y=2, seen=[], name='n')"
    with pytest.raises(TypeError):
        hash(Counter(1))
    with pytest.raises(TypeError):
        assert Version(1) < Point(1)  # type: ignore[operator]  # that is the point


def test_a_frozen_value_stays_as_it_is() -> None:
    for one, name in ((Point(1), "x"), (Open(), "name")):
        with pytest.raises(dataclasses.FrozenInstanceError):
            setattr(one, name, 9)
        with pytest.raises(dataclasses.FrozenInstanceError):
            delattr(one, name)
    counter = Counter()
    counter.count += 1
    assert counter == Counter(1)
    with pytest.raises(AttributeError):
        counter.other = 1


@pytest.mark.parametrize("one", EVERY, ids=lambda one: type(one).__name__)
def test_the_standard_library_takes_it_for_its_own(one: Any) -> None:
    assert dataclasses.is_dataclass(one)
    assert values.is_dataclass(one)
    assert [it.name for it in dataclasses.fields(one)] == [it.name for it in values.fields(one)]
    assert dataclasses.asdict(one) == values.asdict(one)
    assert dataclasses.replace(one) == values.replace(one) == one
    assert copy.deepcopy(one) == pickle.loads(pickle.dumps(one)) == one  # noqa: S301 - our own


def test_changes_make_another_value() -> None:
    assert values.replace(Named(1), x=3).norm == 5
    nested = Point(1, seen=[Counter(1)])  # type: ignore[list-item]  # any value
    assert values.asdict(nested)["seen"] == [{"count": 1}]
    match Point(1, 7):
        case Point(x, y):
            assert (x, y) == (1, 7)
