"""The journal's tables, made by numbered migrations, and the check that a file is a journal.

The file says whose it is (``application_id``) and which step it has reached (``user_version``).
Released steps are never edited; a change of the tables is a new step at the end.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from filepact.errors import StateFailedError

if TYPE_CHECKING:
    from collections.abc import Sequence

    import apsw

__all__ = ["APPLICATION_ID", "MIGRATIONS", "check", "migrate"]

APPLICATION_ID = 0x66706163

# Names of files may hold bytes that are no text anywhere, so paths are kept as bytes; free text
# is TEXT unless such a name stands in it, hence ANY.  Change ids, states and kinds are ours.
_VERSION_1 = """
CREATE TABLE root (
    number INTEGER PRIMARY KEY,
    path BLOB NOT NULL UNIQUE
) STRICT;

CREATE TABLE session (
    number INTEGER PRIMARY KEY,
    id ANY NOT NULL,
    actor_kind TEXT NOT NULL,
    actor_name ANY NOT NULL,
    actor_version ANY NOT NULL,
    UNIQUE (id, actor_kind, actor_name, actor_version)
) STRICT;

CREATE TABLE content (
    number INTEGER PRIMARY KEY,
    id BLOB NOT NULL UNIQUE CHECK (length(id) = 32),
    size INTEGER NOT NULL,
    kept TEXT NOT NULL CHECK (kept IN ('row', 'file', 'gone')),
    base INTEGER REFERENCES content (number),
    depth INTEGER NOT NULL,
    stored INTEGER NOT NULL,
    last_seq INTEGER NOT NULL DEFAULT 0
) STRICT;
CREATE INDEX content_base ON content (base) WHERE base IS NOT NULL;

CREATE TABLE image (
    number INTEGER PRIMARY KEY REFERENCES content (number),
    data BLOB NOT NULL
) STRICT;

CREATE TABLE proposal (
    number INTEGER PRIMARY KEY,
    id TEXT NOT NULL UNIQUE,
    kind TEXT NOT NULL,
    session INTEGER NOT NULL REFERENCES session (number),
    tool ANY NOT NULL,
    summary ANY NOT NULL,
    created REAL NOT NULL,
    target ANY NOT NULL,
    state TEXT NOT NULL CHECK (state IN ('proposed', 'committed', 'rejected')),
    rule ANY NOT NULL,
    reason ANY NOT NULL,
    decided_by ANY NOT NULL DEFAULT ''
) STRICT;
CREATE INDEX proposal_state ON proposal (state, number);

CREATE TABLE proposal_change (
    owner INTEGER NOT NULL REFERENCES proposal (number),
    position INTEGER NOT NULL,
    root INTEGER NOT NULL REFERENCES root (number),
    path BLOB NOT NULL,
    before INTEGER REFERENCES content (number),
    before_mode INTEGER,
    after INTEGER REFERENCES content (number),
    after_mode INTEGER,
    PRIMARY KEY (owner, position)
) STRICT, WITHOUT ROWID;

CREATE TABLE operation (
    seq INTEGER PRIMARY KEY,
    id TEXT NOT NULL UNIQUE,
    kind TEXT NOT NULL,
    session INTEGER NOT NULL REFERENCES session (number),
    tool ANY NOT NULL,
    summary ANY NOT NULL,
    created REAL NOT NULL,
    target ANY NOT NULL,
    undone_by TEXT,
    state TEXT NOT NULL CHECK (state IN ('intended', 'applied', 'rolled_back', 'interrupted')),
    approved_by ANY NOT NULL,
    note ANY NOT NULL
) STRICT;
CREATE INDEX operation_intended ON operation (seq) WHERE state = 'intended';

CREATE TABLE operation_change (
    owner INTEGER NOT NULL REFERENCES operation (seq),
    position INTEGER NOT NULL,
    root INTEGER NOT NULL REFERENCES root (number),
    path BLOB NOT NULL,
    before INTEGER REFERENCES content (number),
    before_mode INTEGER,
    after INTEGER REFERENCES content (number),
    after_mode INTEGER,
    PRIMARY KEY (owner, position)
) STRICT, WITHOUT ROWID;
CREATE INDEX operation_change_root ON operation_change (root, owner);
CREATE INDEX operation_change_path ON operation_change (root, path, owner);

CREATE TABLE operation_directory (
    owner INTEGER NOT NULL REFERENCES operation (seq),
    position INTEGER NOT NULL,
    root INTEGER NOT NULL REFERENCES root (number),
    path BLOB NOT NULL,
    PRIMARY KEY (owner, position)
) STRICT, WITHOUT ROWID;

CREATE TABLE checkpoint (
    root INTEGER NOT NULL REFERENCES root (number),
    name ANY NOT NULL,
    seq INTEGER NOT NULL,
    created REAL NOT NULL,
    PRIMARY KEY (root, name)
) STRICT, WITHOUT ROWID;
"""

# What an agent asked for and told of.  Apart from all else: these rows come and go.
_VERSION_2 = """
CREATE TABLE question (
    number INTEGER PRIMARY KEY,
    asked REAL NOT NULL,
    session INTEGER NOT NULL REFERENCES session (number),
    root INTEGER NOT NULL REFERENCES root (number),
    title ANY NOT NULL,
    action TEXT NOT NULL,
    verdict TEXT NOT NULL CHECK (verdict IN ('allowed', 'refused', 'cancelled', 'told')),
    decided_by ANY NOT NULL,
    how ANY NOT NULL,
    more INTEGER NOT NULL
) STRICT;

CREATE TABLE question_file (
    owner INTEGER NOT NULL REFERENCES question (number) ON DELETE CASCADE,
    position INTEGER NOT NULL,
    path BLOB NOT NULL,
    added INTEGER,
    removed INTEGER,
    PRIMARY KEY (owner, position)
) STRICT, WITHOUT ROWID;
"""

# A proposal whose author went on with its files.  It keeps the state ``rejected``, which nobody
# can commit; with this column it reads as ``superseded``.
_VERSION_3 = """
ALTER TABLE proposal ADD COLUMN superseded_by TEXT;
"""

# Which conversations of their hosts sessions take part in: a later session of one goes on with it.
_VERSION_4 = """
CREATE TABLE conversation (
    session INTEGER NOT NULL REFERENCES session (number),
    name ANY NOT NULL,
    PRIMARY KEY (session, name)
) STRICT, WITHOUT ROWID;
CREATE INDEX conversation_name ON conversation (name);
"""

# A proposal that nobody has decided about in time keeps the state ``rejected`` as well.
_VERSION_5 = """
ALTER TABLE proposal ADD COLUMN expired INTEGER NOT NULL DEFAULT 0;
"""

# How many lines operations added and removed, so that a list need not compare their texts again.
_VERSION_6 = """
ALTER TABLE operation ADD COLUMN added INTEGER;
ALTER TABLE operation ADD COLUMN removed INTEGER;
"""

# What the person had asked for, and the agent's call of a tool; older rows know neither.
_VERSION_7 = """
ALTER TABLE operation ADD COLUMN turn ANY NOT NULL DEFAULT '';
ALTER TABLE operation ADD COLUMN call ANY NOT NULL DEFAULT '';
ALTER TABLE proposal ADD COLUMN turn ANY NOT NULL DEFAULT '';
ALTER TABLE proposal ADD COLUMN call ANY NOT NULL DEFAULT '';
CREATE INDEX operation_turn ON operation (turn) WHERE turn <> '';
"""

# What a person has allowed a session in advance.
_VERSION_8 = """
CREATE TABLE session_approval (
    number INTEGER PRIMARY KEY,
    id TEXT NOT NULL UNIQUE,
    session INTEGER NOT NULL REFERENCES session (number),
    root INTEGER NOT NULL REFERENCES root (number),
    pattern ANY NOT NULL,
    rules ANY NOT NULL,
    change TEXT NOT NULL,
    given REAL NOT NULL,
    given_by ANY NOT NULL,
    expires REAL NOT NULL,
    revoked REAL
) STRICT;
CREATE INDEX session_approval_session ON session_approval (session);
"""

# For whom an agent works that came through a gateway.
_VERSION_9 = """
ALTER TABLE session ADD COLUMN actor_user ANY NOT NULL DEFAULT '';
"""

# The number of the audit log's record of it; none where nothing was recorded, nor of older rows.
_VERSION_10 = """
ALTER TABLE operation ADD COLUMN logged INTEGER;
"""

# What files have besides bytes and mode; none where nobody knows, and of older rows.  Empty: as before the change.
_VERSION_11 = """
ALTER TABLE proposal_change ADD COLUMN before_attributes BLOB;
ALTER TABLE proposal_change ADD COLUMN after_attributes BLOB;
ALTER TABLE operation_change ADD COLUMN before_attributes BLOB;
ALTER TABLE operation_change ADD COLUMN after_attributes BLOB;
"""

MIGRATIONS: tuple[str, ...] = (
    _VERSION_1, _VERSION_2, _VERSION_3, _VERSION_4, _VERSION_5, _VERSION_6, _VERSION_7,
    _VERSION_8, _VERSION_9, _VERSION_10, _VERSION_11,
)  # fmt: skip
"""Step ``n`` (from 1) takes a journal from version ``n - 1`` to ``n``."""


def check(database: apsw.Connection, *, newest: int = len(MIGRATIONS)) -> int:
    """The version of an opened file, 0 for an empty one; changes nothing.

    Raises:
        StateFailedError: It is another program's, or of a newer filepact.
    """
    owner = int(database.pragma("application_id"))
    version, tables = int(database.pragma("user_version")), 0
    if owner != APPLICATION_ID:
        with database:  # One view of all: another process may make the tables at this moment.
            tables = database.execute("SELECT count(*) FROM sqlite_schema").get
            owner = int(database.pragma("application_id"))
            version = int(database.pragma("user_version"))
    if owner != APPLICATION_ID:
        if owner or version or tables:
            raise StateFailedError(
                "the journal's file is a database of another program",
                hint="Name another state folder, or move that file away.",
            )
        return 0
    if version > newest:
        raise StateFailedError(
            f"the journal is of a newer filepact (its tables have version {version}, "
            f"this program knows {newest})",
            hint="Use the newer filepact, or name another state folder.",
            version=version,
            known=newest,
        )
    return version


def migrate(database: apsw.Connection, steps: Sequence[str] = MIGRATIONS) -> None:
    """Bring a journal to the newest version: all missing steps or none of them.

    Raises:
        StateFailedError: As `check`.
    """
    if check(database, newest=len(steps)) == len(steps):
        return
    database.execute("BEGIN IMMEDIATE")
    try:
        # Another process may have done it while this one waited for its turn.
        version = check(database, newest=len(steps))
        for step in steps[version:]:
            database.execute(step)
        database.pragma("application_id", APPLICATION_ID)
        database.pragma("user_version", len(steps))
        database.execute("COMMIT")
    finally:
        # Some failures, such as a full disk, have rolled back already.
        if database.in_transaction:
            database.execute("ROLLBACK")
