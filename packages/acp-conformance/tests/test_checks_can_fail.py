"""Every check passes with a right client, and finds at least one wrong one; none hangs."""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path

import pytest

from acp_conformance import CHECKS, Plan, check_client, check_program
from right_client import RightClient
from wrong_clients import DEADLY, LOOSE, WIRES, WRONG

WIRE = Path(__file__).with_name("wrong_wire.py")
PLAIN = Path(__file__).with_name("plain_client.py")

# Seconds for a check of a client that answers at once, or never.
SHORT = 0.8


def check(client, *only, **options):
    return asyncio.run(check_client(client, only=only, **options))


def failed(report):
    return {one.id for one in report.failed()}


def test_a_right_client_passes_everything():
    report = check(RightClient(), patience=10)
    assert [(one.id, one.why) for one in report.failed()] == []
    skipped = {one.id for one in report.verdicts if one.outcome == "skipped"}
    assert skipped == {"capabilities.not-announced-is-refused", "sessions.unwanted-directories"}
    assert len(report.verdicts) == len(CHECKS)


@pytest.mark.slow(after=12)
@pytest.mark.parametrize("name", WRONG)
def test_a_wrong_client_is_found(name):
    client, checks = WRONG[name]
    found = check(client(), *checks, patience=SHORT)
    assert failed(found) == set(checks), found


@pytest.mark.slow(after=2)
@pytest.mark.parametrize("name", LOOSE)
def test_a_client_is_blamed_once_for_what_it_does(name):
    """Whatever builds on what it does otherwise tells nothing more of it."""
    client, checks, untried = LOOSE[name]
    found = check(client(), *{one.partition(".")[0] for one in (*checks, *untried)}, patience=SHORT)
    assert failed(found) == set(checks), found
    skipped = {one.id for one in found.verdicts if one.outcome == "skipped"}
    assert skipped >= set(untried)
    assert not skipped - set(untried) - {"sessions.unwanted-directories"}


@pytest.mark.slow(after=6)
@pytest.mark.parametrize("fault", WIRES)
def test_a_wrong_wire_is_found(fault):
    through = [sys.executable, str(WIRE), fault]
    found = check(RightClient(), *WIRES[fault], patience=SHORT, through=through)
    assert failed(found) == set(WIRES[fault]), found


@pytest.mark.parametrize(
    ("fault", "name"), [(fault, name) for fault, names in DEADLY.items() for name in names]
)
def test_a_client_that_ends_or_stands_still_is_found_and_the_rest_not_tried(fault, name):
    through = [sys.executable, str(WIRE), fault]
    found = check(RightClient(), name, patience=SHORT, through=through)
    assert failed(found) == {name}, found


def test_after_the_end_of_a_connection_nothing_is_tried():
    through = [sys.executable, str(WIRE), "believes in JSON"]
    only = ("hostile.no-json", "hostile.batch", "hostile.null")
    found = check(RightClient(), *only, patience=SHORT, through=through)
    assert [one.outcome for one in found.verdicts] == ["failed", "skipped", "skipped"]


def test_directories_that_the_agent_did_not_announce_are_found():
    fault = "directories are unwanted"
    command = [sys.executable, str(PLAIN), "prompt", sys.executable, str(WIRE), f"'{fault}'"]
    only = ("sessions.unwanted-directories",)
    found = check_program([*command, "{agent}"], Plan(only=only, patience=SHORT))
    assert failed(found) == set(only), found


def test_every_check_finds_a_wrong_client():
    proven = {name for _, names in WRONG.values() for name in names}
    proven |= {name for names in (*WIRES.values(), *DEADLY.values()) for name in names}
    proven.add("sessions.unwanted-directories")
    assert {check.id for check in CHECKS} == proven
