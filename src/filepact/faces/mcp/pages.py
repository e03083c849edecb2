"""How much of one answer the programs that call us pass on to their model.

What is over their limit they cut, most of them out of the middle, or put into a file of which the
model sees the beginning.  So an answer of ours stays below it, and leads on to the rest itself.
"""

from __future__ import annotations

from typing import Final

from filepact.text.page import PAGE

__all__ = ["PAGES", "page_for"]

PAGES: Final[dict[str, int]] = {
    # Cline's issue 13263: tools' results are cut after 8,000 characters; and its model is given
    # the whole result as JSON, in which every line end takes two.
    "cline": 7_000,
    # VS Code's pull request 329276: what is over 8 KiB is put into a file
    # (`chat.agent.largeToolResultsToDisk.thresholdBytes`), of which the model sees the beginning.
    "visual studio code": 7_500,
    # Codex's issues 5913, 6544 and 7906: 10 KiB, or 10,000 bytes by the model
    # (`TruncationPolicy::Bytes(10_000)`), and the middle is cut out; 0.169 let 12,000 bytes pass.
    "codex": 9_000,
    # The same pull request of VS Code: Copilot CLI puts what is over 20 KB into a file; in its own
    # issue 1732 the limit was 30 KB, and the middle of what is over 10 KB was lost for a while.
    "copilot": 19_000,
    "github-copilot": 19_000,
    # Qwen Code's `packages/core/src/config/config.ts`, DEFAULT_TRUNCATE_TOOL_OUTPUT_THRESHOLD and
    # _LINES: 25,000 characters, and 1,000 lines.
    "qwen": 19_000,
    # Gemini CLI 0.61 as seen: of more than 40,000 characters, in which it counts a frame of its
    # own, the first 8,000 and the last 32,000.
    "gemini": 32_000,
    # No entry, since the usual page is below their limits: Claude Code (50,000 characters, and
    # MAX_MCP_OUTPUT_TOKENS is 25,000), OpenCode and pi (50 KiB and 2,000 lines).
}
"""What an answer may take, by how a client's name begins; in bytes as UTF-8."""


def page_for(client: str, wish: int | None = None) -> int:
    """What an answer to a client may take.

    Args:
        client: What it calls itself.
        wish: What the person has set, which goes before what is known of clients.
    """
    if wish is not None:
        return wish
    name = client.lower()
    return next((page for begin, page in PAGES.items() if name.startswith(begin)), PAGE)
