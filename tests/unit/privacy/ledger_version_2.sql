BEGIN TRANSACTION;
CREATE TABLE entry (
        number INTEGER PRIMARY KEY, time TEXT NOT NULL, kind TEXT NOT NULL,
        events TEXT NOT NULL, cap TEXT NOT NULL,
        dataset TEXT NOT NULL, study TEXT NOT NULL, call TEXT NOT NULL, door TEXT NOT NULL, reply TEXT NOT NULL, why TEXT NOT NULL, previous TEXT NOT NULL, hash TEXT NOT NULL,
        pure INTEGER NOT NULL, rho_of_pure INTEGER NOT NULL, rho INTEGER NOT NULL, epsilon_approximate INTEGER NOT NULL, delta_approximate INTEGER NOT NULL, gaussian INTEGER NOT NULL, slack INTEGER NOT NULL) STRICT;
INSERT INTO "entry" VALUES(1,'2026-11-15T16:46:08.188640+00:00','declare','[]','{"delta":"1/1000000","epsilon":"3"}','visits','','','','','agreed','37faabeab9425fd496fb676e32cdcf40736f15818332614c0ad028a53eecc6bf','1fa1d6c97b06963c7dcc56befb48ab556dccfe6cd984c76f6a4e9cde1edb50a0',0,0,0,0,0,0,0);
INSERT INTO "entry" VALUES(2,'2026-11-15T16:46:08.191704+00:00','reserve','[{"epsilon":"1/3","kind":"pure","what":"discrete Laplace"}]','null','visits','digest','a','1','','counts','1fa1d6c97b06963c7dcc56befb48ab556dccfe6cd984c76f6a4e9cde1edb50a0','7b45d8fc9b55f2108eea61e7b5848bd619d21ee0690f80ed40860106a2143684',333333333334,55555555556,0,0,0,0,0);
INSERT INTO "entry" VALUES(3,'2026-11-15T16:46:08.203523+00:00','commit','[]','null','visits','digest','a','','reply of a','','7b45d8fc9b55f2108eea61e7b5848bd619d21ee0690f80ed40860106a2143684','8e9a435f82bada58c0ea9cb6446b4593801b6ba53ce10de4daf08412224b1dcc',0,0,0,0,0,0,0);
INSERT INTO "entry" VALUES(4,'2026-11-15T16:46:08.223752+00:00','reserve','[{"kind":"gaussian","mu_squared":"1/50","slack":"1/1000000000000","what":""}]','null','visits','digest','b','1','','counts','8e9a435f82bada58c0ea9cb6446b4593801b6ba53ce10de4daf08412224b1dcc','2dffbdb387eb484e95c5fd2911319e34862e3e9a6454f2291a5b05e2d505439c',0,0,0,0,0,10000000000,1000000);
CREATE TABLE head (one INTEGER PRIMARY KEY CHECK (one = 1), number INTEGER, hash TEXT) STRICT;
INSERT INTO "head" VALUES(1,4,'2dffbdb387eb484e95c5fd2911319e34862e3e9a6454f2291a5b05e2d505439c');
CREATE UNIQUE INDEX one_charge ON entry (call, door) WHERE kind = 'reserve';
CREATE UNIQUE INDEX one_answer ON entry (call) WHERE kind = 'commit';
CREATE INDEX spending ON entry (dataset, kind, study);
CREATE TRIGGER entry_update BEFORE UPDATE ON entry
        BEGIN SELECT RAISE(ABORT, 'a ledger is append-only'); END;
CREATE TRIGGER entry_delete BEFORE DELETE ON entry
        BEGIN SELECT RAISE(ABORT, 'a ledger is append-only'); END;
CREATE TRIGGER head_delete BEFORE DELETE ON head
        BEGIN SELECT RAISE(ABORT, 'a ledger keeps its head'); END;
CREATE TRIGGER head_update BEFORE UPDATE ON head WHEN NEW.number != OLD.number + 1
        BEGIN SELECT RAISE(ABORT, 'a ledger grows by one entry at a time'); END;
COMMIT;
PRAGMA application_id = 1398361668;
PRAGMA user_version = 2;
