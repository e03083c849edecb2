PRAGMA application_id = 1718640995;
PRAGMA user_version = 1;
BEGIN TRANSACTION;
CREATE TABLE checkpoint (
    root INTEGER NOT NULL REFERENCES root (number),
    name ANY NOT NULL,
    seq INTEGER NOT NULL,
    created REAL NOT NULL,
    PRIMARY KEY (root, name)
) STRICT, WITHOUT ROWID;
INSERT INTO "checkpoint" VALUES(1,'start',1,1001.0);
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
INSERT INTO "content" VALUES(1,X'51A958F07BB9F183061ED3BC80306A21ABE56C3325EDD49B8F3783C41ABA0DC5',230,'row',NULL,0,109,2);
INSERT INTO "content" VALUES(2,X'540A6B70DDBA0A5B6590515648F0A753072DEE3A9BD82EDDA99CC4C73FFA78D6',234,'row',1,1,30,2);
INSERT INTO "content" VALUES(3,X'9CCBD3F1B19A1CDFD8D7C6AE48E9E822E2345F5BE1A6187B19E41486C6941004',5,'row',NULL,0,14,3);
INSERT INTO "content" VALUES(4,X'389ED6887E49A315F706F6C2B931B1DCF0D797C91437124F32EB98555C669758',5,'row',NULL,0,14,0);
CREATE TABLE image (
    number INTEGER PRIMARY KEY REFERENCES content (number),
    data BLOB NOT NULL
) STRICT;
INSERT INTO "image" VALUES(1,X'28B52FFD20E625030054026C696E6520300A31323334353637383931313133313131313132323232323232323232390A1D00200BC807320359403E9019C802F24166536491225F14994191E5897C4EE420464626322F914D09848121601C180C0C01E3C0606008180786E92A5B');
INSERT INTO "image" VALUES(2,X'3600000000000000AF0000000000000028B52FFD2005290000736576656E');
INSERT INTO "image" VALUES(3,X'28B52FFD20052900006D6164650A');
INSERT INTO "image" VALUES(4,X'28B52FFD20052900006E6F74650A');
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
INSERT INTO "operation" VALUES(1,'c00000000a1','change',1,'edit_file','edit a file',1000.5,'','c00000000a2','applied','','');
INSERT INTO "operation" VALUES(2,'c00000000a2','undo',1,'edit_file','edit a file',1000.5,'c00000000a1',NULL,'applied','','');
INSERT INTO "operation" VALUES(3,'c00000000a3','change',1,'edit_file',X'777269746520636166EDB3A9',1000.5,'',NULL,'intended','','');
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
INSERT INTO "operation_change" VALUES(1,0,1,X'7372632F612E747874',1,420,2,420);
INSERT INTO "operation_change" VALUES(1,1,1,X'7372632F622E747874',NULL,NULL,3,420);
INSERT INTO "operation_change" VALUES(2,0,1,X'7372632F612E747874',2,420,1,420);
INSERT INTO "operation_change" VALUES(2,1,1,X'7372632F622E747874',3,420,NULL,NULL);
INSERT INTO "operation_change" VALUES(3,0,1,X'636166EDB3A9',NULL,NULL,3,420);
CREATE TABLE operation_directory (
    owner INTEGER NOT NULL REFERENCES operation (seq),
    position INTEGER NOT NULL,
    root INTEGER NOT NULL REFERENCES root (number),
    path BLOB NOT NULL,
    PRIMARY KEY (owner, position)
) STRICT, WITHOUT ROWID;
INSERT INTO "operation_directory" VALUES(1,0,1,X'737263');
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
INSERT INTO "proposal" VALUES(1,'c00000000b1','change',1,'edit_file','edit a file',1000.5,'','proposed','preview mode','','');
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
INSERT INTO "proposal_change" VALUES(1,0,2,X'6E2E6D64',NULL,NULL,4,420);
CREATE TABLE root (
    number INTEGER PRIMARY KEY,
    path BLOB NOT NULL UNIQUE
) STRICT;
INSERT INTO "root" VALUES(1,X'2F686F6D652F6164612F70726F6A656374');
INSERT INTO "root" VALUES(2,X'2F686F6D652F6164612F6E6F746573');
CREATE TABLE session (
    number INTEGER PRIMARY KEY,
    id ANY NOT NULL,
    actor_kind TEXT NOT NULL,
    actor_name ANY NOT NULL,
    actor_version ANY NOT NULL,
    UNIQUE (id, actor_kind, actor_name, actor_version)
) STRICT;
INSERT INTO "session" VALUES(1,'s1','agent','tester','1.0');
CREATE INDEX content_base ON content (base) WHERE base IS NOT NULL;
CREATE INDEX proposal_state ON proposal (state, number);
CREATE INDEX operation_intended ON operation (seq) WHERE state = 'intended';
CREATE INDEX operation_change_root ON operation_change (root, owner);
CREATE INDEX operation_change_path ON operation_change (root, path, owner);
COMMIT;
