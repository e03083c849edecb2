"""Which files a change concerns, as the server itself tells it: exactly those in which something differs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from talk import Talk, copy_shop

if TYPE_CHECKING:
    from collections.abc import Iterator

SKU = "Shop.Core/Catalogue/Sku.cs"
MONEY = "Shop.Core/Money.cs"
ORDER = "Shop.App/Commands/OrderCommand.cs"
CORE = "Shop.Core/Shop.Core.csproj"
APP = "Shop.App/Shop.App.csproj"


@pytest.fixture(scope="module")
def shop(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Talk]:
    talk = Talk(copy_shop(tmp_path_factory.mktemp("csharp") / "shop"))
    yield talk
    talk.kill()


def concerned(talk: Talk, **changes: tuple[str | None, str | None]) -> list[str]:
    """The files that changes concern; each a name, with its text before and after."""
    asked = [
        {"uri": talk.uri(name), "before": before, "after": after}
        for name, (before, after) in changes.items()
    ]
    params: Any = {"command": "filepact.dependents", "arguments": [{"changes": asked}]}
    start = len(talk.uri("x")) - 1
    return [one[start:] for one in talk.ask("workspace/executeCommand", params)["files"]]


def proposed(talk: Talk, name: str, old: str, new: str) -> list[str]:
    text = talk.text(name)
    assert old in text
    return concerned(talk, **{name: (text, text.replace(old, new))})


def test_files_of_other_projects_that_never_name_the_file_are_told(shop: Talk) -> None:
    assert proposed(shop, SKU, "IsValid", "IsRight") == [ORDER]
    assert shop.codes(ORDER) == []  # nothing of what was supposed stays


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("left.Currency);", "right.Currency);"),
        ("left.Currency);", "right.Nothing);"),
        ("/// <summary>", "// other words\n/// <summary>"),
    ],
)
def test_a_change_within_a_body_concerns_no_other_file(shop: Talk, old: str, new: str) -> None:
    assert proposed(shop, MONEY, old, new) == []


def test_what_was_done_and_is_shown_is_compared_with_what_was_there(shop: Talk) -> None:
    before, after = shop.text(SKU), shop.text(SKU).replace("IsValid", "IsRight")
    shop.write(SKU, after)
    try:
        assert concerned(shop, **{SKU: (before, after)}) == [ORDER]
        assert shop.codes(ORDER) == ["CS0117"]
    finally:
        shop.write(SKU, before)
    assert concerned(shop, **{SKU: (after, before)}) == [ORDER]


@pytest.mark.slow
def test_a_file_that_comes_goes_or_repairs_something_concerns_those_that_need_it(
    shop: Talk,
) -> None:
    text = shop.text(SKU)
    gone = concerned(shop, **{SKU: (text, None)})
    assert ORDER in gone
    assert SKU not in gone
    new = "namespace Shop; static class Fresh { }\n"
    assert concerned(shop, **{"Shop.Core/Fresh.cs": (None, new)}) == []
    twice = "namespace Shop; public class Order { }\n"
    assert "Shop.Core/Pricing/PriceList.cs" in concerned(shop, **{"Shop.Core/X.cs": (None, twice)})


@pytest.mark.slow
def test_a_project_file_concerns_the_files_of_its_projects(shop: Talk) -> None:
    without = shop.text(APP).replace("<ProjectReference", "<Other")
    found = concerned(shop, **{APP: (shop.text(APP), without)})
    assert ORDER in found
    assert not any(one.startswith("Shop.Core/") for one in found)
    assert concerned(shop, **{APP: (shop.text(APP), shop.text(APP) + "<!-- -->\n")}) == []
    gone = concerned(shop, **{CORE: (shop.text(CORE), None)})
    assert {APP, ORDER} <= set(gone)
    assert shop.survey() == {}
