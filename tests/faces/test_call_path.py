"""One call goes a short way: few functions, and each check, look and hash once.

``python bench/call_path.py --functions`` shows what a call does.  The bounds only go down.
"""

from bench.call_path import acp_write, mcp_edit, mcp_read
from tests.needs import ONE_STEP

pytestmark = (
    ONE_STEP  # Each way there has its own steps, and these are the bounds of the short one.
)


def over(found: dict[str, int], most: dict[str, int]) -> dict[str, str]:
    """The figures that are above their bounds."""
    return {
        name: f"{found[name]}, at most {bound}"
        for name, bound in most.items()
        if found[name] > bound
    }


def test_a_read_over_mcp_takes_few_calls(tmp_path):
    most = {
        "modules": 39,  # two of them for bytes that are no text, and for what a file has besides bytes
        # Up to three more on a busy machine, where a call takes so long that another thread reads on.
        "calls": 150,  # eight of them for the same, and four for what is malformed in a message and for the end of a turn
        "names resolved": 1,
        "openat2": 1,
        "whole reads": 1,
        # What is read is what the call before has read, byte by byte; and of the rules nothing has changed.
        "texts decoded": 0,
        "policy decisions": 0,
        "looks for .editorconfig": 1,
        # Of the two records in the audit log.
        "sha256": 2,
        "fsync": 0,
    }
    path = mcp_read(tmp_path)
    assert over(path.named(), most) == {}


def test_an_edit_over_mcp_takes_few_calls(tmp_path):
    most = {
        # Three, 40 and 3 of these are for three records of the audit log; 10 for a call that is carried out where it was read.
        # Eight came since: six for records that wait to be written together, and one each for what was approved in
        # advance and for the compression that is Python's own later.  Eight more: five for a journal that any database
        # keeps, so that a write can be tried again, and three for reads in order and for roots that others share.
        # Two for how a message comes: a pipe may have to be read once more.  One for places, apart from the guard.
        # Seven for what a file has besides bytes, for moves, and for bytes that are no text.  Three for what is malformed in
        # a message, for the errors of a turn, and for the folders of a client.
        "modules": 80,
        # Up to three more on a busy machine.
        # 52 of them for kinds of entries that may change, and for the turn that a hook has told of; 75 for what a file has
        # besides bytes, for moves, for files that are written in place, and for bytes that are no text; 10 for what the
        # modules above do; 11 for the proof that the text is what was asked;
        # 6 for files of several names that are renamed with other lines.
        "calls": 691,
        "names resolved": 1,
        "openat2": 3,
        "whole reads": 1,
        # What it writes; what it reads is what the call before has written, byte by byte.
        "texts decoded": 1,
        "policy decisions": 1,
        "looks for .editorconfig": 1,
        "sha256": 8,
        "fsync": 2,
    }
    path = mcp_edit(tmp_path)
    assert over(path.named(), most) == {}


def test_a_write_behind_the_proxy_takes_few_calls(tmp_path):
    most = {
        "modules": 80,
        # 60 of them find what was typed meanwhile, or are for kinds of entries that may change; 80 as above; 40 for the editor's
        # own name of a file, and for what comes before the end of a turn.
        "calls": 950,
        # One more, by which proxies of one editor agree on who writes next.
        "names resolved": 4,
        "openat2": 12,
        "whole reads": 4,
        "texts decoded": 4,
        "policy decisions": 4,
        "looks for .editorconfig": 3,
        # A file that changed less than two seconds ago is read and hashed once more.
        "sha256": 15,
        "fsync": 2,
    }
    path = acp_write(tmp_path)
    assert over(path.named(), most) == {}
