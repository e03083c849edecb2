"""Trust in language servers, folder by folder."""

import os
import stat

import pytest

from filepact.config.settings import parse_settings
from filepact.errors import StateFailedError
from filepact_diagnostics.lsp.pool import ServerPool
from filepact_diagnostics.opening import write_trust
from filepact_diagnostics.settings import ServerTrust, options_of, read_trust

TRUSTING = ServerTrust().with_folder("clangd", "/home/me/c").with_folder("typescript", "/home/me")


def test_what_is_trusted_is_kept_for_the_person_alone(tmp_path):
    assert read_trust(str(tmp_path)) == ServerTrust()
    write_trust(str(tmp_path), TRUSTING)
    assert read_trust(str(tmp_path)) == TRUSTING
    (kept,) = tmp_path.iterdir()
    assert stat.S_IMODE(kept.stat().st_mode) == 0o600
    write_trust(str(tmp_path), TRUSTING.without_folder("clangd", "/home/me/c"))
    assert read_trust(str(tmp_path)).folders == {"typescript": ("/home/me",)}


def test_trust_is_given_once_and_withdrawn_whole():
    twice = TRUSTING.with_folder("clangd", "/home/me/c")
    assert twice == TRUSTING
    assert twice.without_folder("clangd", "/home/me/c").of("clangd") == ()
    assert twice.without_folder("clangd", "/elsewhere") == TRUSTING


@pytest.mark.parametrize(
    "text",
    [
        "",
        "{",
        "[]",
        '{"servers": []}',
        '{"servers": {"clangd": "/"}}',
        '{"servers": {"clangd": ["relative"]}}',
        '{"servers": {"clangd": [1]}}',
        '{"servers": {"clangd": ["/home/me"]}, ',
        "[" * 100_000,
    ],
)
def test_a_file_that_is_not_understood_trusts_nothing(tmp_path, text):
    (tmp_path / "trust.json").write_text(text)
    assert read_trust(str(tmp_path)) == ServerTrust()


def test_what_cannot_be_written_changes_nothing(tmp_path):
    write_trust(str(tmp_path), TRUSTING)
    (tmp_path / "folder").mkdir()
    with pytest.raises(StateFailedError):
        write_trust(str(tmp_path / "missing"), ServerTrust())
    (tmp_path / "folder" / "trust.json").mkdir()
    with pytest.raises(StateFailedError):
        write_trust(str(tmp_path / "folder"), ServerTrust())
    assert os.listdir(tmp_path / "folder") == ["trust.json"]
    assert read_trust(str(tmp_path)) == TRUSTING


def test_a_server_that_is_confined_elsewhere_is_not_where_it_is_trusted():
    servers = options_of(parse_settings("", name="filepact.toml")).agents_servers(
        TRUSTING, confines=True
    )
    (clangd,) = (one for one in servers if one.name == "clangd")
    assert all(map(clangd.allowed_in, ("/home/me/c", "/other")))
    assert [clangd.is_confined(one) for one in ("/home/me/c", "/home/me/c/deep", "/other")] == [
        *(False, False, True)
    ]


def test_a_trusted_server_works_in_that_folder_and_beneath_it_only():
    servers = options_of(parse_settings("", name="filepact.toml")).agents_servers(TRUSTING)
    found = {one.name: one for one in servers}
    assert {"clangd", "typescript", "ruff"} <= found.keys()
    assert "gopls" not in found
    pool = ServerPool(servers, {}, lambda name: f"/bin/{name}")
    try:

        def serving(root: str, file: str) -> list[str]:
            return [one.name for one in pool.servers_for(root, f"{root}/{file}")]

        assert "clangd" in serving("/home/me/c", "a.c")
        assert "clangd" in serving("/home/me/c/deep", "a.c")
        assert "clangd" not in serving("/home/me", "a.c")
        assert "clangd" not in serving("/home/me/cc", "a.c")
        assert "typescript" in serving("/home/me/c", "a.ts")
        assert "typescript" not in serving("/other", "a.ts")
        assert "ruff" in serving("/other", "a.py")
    finally:
        pool.close()
