BEGIN TRANSACTION;
CREATE TABLE entry (
        number INTEGER PRIMARY KEY, time TEXT NOT NULL, kind TEXT NOT NULL,
        events TEXT NOT NULL, cap TEXT NOT NULL,
        dataset TEXT NOT NULL, study TEXT NOT NULL, call TEXT NOT NULL, door TEXT NOT NULL, reply TEXT NOT NULL, why TEXT NOT NULL, previous TEXT NOT NULL, hash TEXT NOT NULL,
        pure INTEGER NOT NULL, rho_of_pure INTEGER NOT NULL, rho INTEGER NOT NULL, epsilon_approximate INTEGER NOT NULL, delta_approximate INTEGER NOT NULL) STRICT;
INSERT INTO "entry" VALUES(1,'2026-11-15T13:28:06.311200+00:00','declare','[]','{"delta":"1/1000000","epsilon":"3"}','visits','','','','','agreed','37faabeab9425fd496fb676e32cdcf40736f15818332614c0ad028a53eecc6bf','6a4bc57762c140627c03e54b266a78e3e9d7476bbad9ecbde9c26596259ce7fe',0,0,0,0,0);
INSERT INTO "entry" VALUES(2,'2026-11-15T13:28:06.315944+00:00','reserve','[{"epsilon":"1/3","kind":"pure","what":"discrete Laplace"}]','null','visits','digest','a','1','','counts','6a4bc57762c140627c03e54b266a78e3e9d7476bbad9ecbde9c26596259ce7fe','2ad412c35c47be6f1479c009ef86f42260f95acd952a7d8dd152a29f8b8266e7',333333333334,55555555556,0,0,0);
INSERT INTO "entry" VALUES(3,'2026-11-15T13:28:06.319039+00:00','commit','[]','null','visits','digest','a','','reply of a','','2ad412c35c47be6f1479c009ef86f42260f95acd952a7d8dd152a29f8b8266e7','5618a3ac82fd33aff354757b59eda628c583e5bad15c437c3cd5765eef44ebb5',0,0,0,0,0);
INSERT INTO "entry" VALUES(4,'2026-11-15T13:28:06.323723+00:00','reserve','[{"kind":"concentrated","rho":"1/50","what":""},{"delta":"1/100000000","epsilon":"1/4","kind":"approximate","what":""}]','null','visits','digest','b','1','','counts','5618a3ac82fd33aff354757b59eda628c583e5bad15c437c3cd5765eef44ebb5','eb2306c7c53201b15e8820ce6b6e291d7e7613b27f5cfa1586288460a9e7c2f7',0,0,20000000000,250000000000,10000000000);
CREATE TABLE head (one INTEGER PRIMARY KEY CHECK (one = 1), number INTEGER, hash TEXT) STRICT;
INSERT INTO "head" VALUES(1,4,'eb2306c7c53201b15e8820ce6b6e291d7e7613b27f5cfa1586288460a9e7c2f7');
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
PRAGMA user_version = 1;
