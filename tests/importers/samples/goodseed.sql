BEGIN TRANSACTION;
CREATE TABLE configs (
            path TEXT PRIMARY KEY,
            type_tag TEXT NOT NULL,
            value TEXT,
            updated_at TEXT NOT NULL,
            uploaded INTEGER NOT NULL DEFAULT 0
        );
INSERT INTO "configs" VALUES('sys/id','str','rapid-heron','2026-11-23T06:36:36.965340+00:00',0);
INSERT INTO "configs" VALUES('sys/creation_time','str','2026-11-23T06:36:36.965274+00:00','2026-11-23T06:36:36.965340+00:00',0);
INSERT INTO "configs" VALUES('sys/name','str','ppo-1','2026-11-23T06:36:36.965340+00:00',0);
INSERT INTO "configs" VALUES('sys/tags','string_set','["a"]','2026-11-23T06:36:36.965340+00:00',0);
INSERT INTO "configs" VALUES('monitoring/54b1b049/hostname','str','vm','2026-11-23T06:36:36.979690+00:00',0);
INSERT INTO "configs" VALUES('monitoring/54b1b049/pid','int','25070','2026-11-23T06:36:36.979690+00:00',0);
INSERT INTO "configs" VALUES('monitoring/54b1b049/tid','int','139760236813184','2026-11-23T06:36:36.979690+00:00',0);
INSERT INTO "configs" VALUES('lr','float','0.0003','2026-11-23T06:36:37.000189+00:00',0);
INSERT INTO "configs" VALUES('seed','int','1','2026-11-23T06:36:37.000351+00:00',0);
INSERT INTO "configs" VALUES('sys/state','str','finished','2026-11-23T06:36:37.001102+00:00',0);
INSERT INTO "configs" VALUES('sys/closed_time','str','2026-11-23T06:36:37.001095+00:00','2026-11-23T06:36:37.001102+00:00',0);
CREATE TABLE metric_points (
            series_id INTEGER NOT NULL REFERENCES metric_series(id),
            step REAL NOT NULL,
            y REAL NOT NULL,
            ts INTEGER NOT NULL,
            uploaded INTEGER NOT NULL DEFAULT 0,
            PRIMARY KEY (series_id, step)
        );
INSERT INTO "metric_points" VALUES(1,0.0,1.0,1795415797,0);
INSERT INTO "metric_points" VALUES(1,1.0,0.5,1795415797,0);
INSERT INTO "metric_points" VALUES(1,2.0,3.33333333333333314829e-01,1795415797,0);
INSERT INTO "metric_points" VALUES(1,3.0,0.25,1795415797,0);
INSERT INTO "metric_points" VALUES(1,4.0,0.2,1795415797,0);
INSERT INTO "metric_points" VALUES(1,5.0,1.66666666666666657414e-01,1795415797,0);
INSERT INTO "metric_points" VALUES(1,6.0,1.42857142857142849212e-01,1795415797,0);
INSERT INTO "metric_points" VALUES(1,7.0,0.125,1795415797,0);
INSERT INTO "metric_points" VALUES(1,8.0,1.11111111111111104943e-01,1795415797,0);
INSERT INTO "metric_points" VALUES(1,9.0,0.1,1795415797,0);
INSERT INTO "metric_points" VALUES(1,10.0,9.09090909090909116141e-02,1795415797,0);
INSERT INTO "metric_points" VALUES(1,11.0,8.33333333333333287074e-02,1795415797,0);
CREATE TABLE metric_series (
            id INTEGER PRIMARY KEY AUTOINCREMENT,
            path TEXT NOT NULL UNIQUE
        );
INSERT INTO "metric_series" VALUES(1,'train/loss');
CREATE TABLE run_meta (
            key TEXT PRIMARY KEY,
            value TEXT
        );
INSERT INTO "run_meta" VALUES('schema_version','1');
INSERT INTO "run_meta" VALUES('run_id','rapid-heron');
INSERT INTO "run_meta" VALUES('project','study');
INSERT INTO "run_meta" VALUES('created_at','2026-11-23T06:36:36.965177+00:00');
INSERT INTO "run_meta" VALUES('name','ppo-1');
INSERT INTO "run_meta" VALUES('status','finished');
INSERT INTO "run_meta" VALUES('closed_at','2026-11-23T06:36:37.001065+00:00');
CREATE TABLE string_points (
            series_id INTEGER NOT NULL REFERENCES string_series(id),
            step REAL NOT NULL,
            value TEXT NOT NULL,
            ts INTEGER NOT NULL,
            uploaded INTEGER NOT NULL DEFAULT 0,
            PRIMARY KEY (series_id, step)
        );
CREATE TABLE string_series (
            id INTEGER PRIMARY KEY AUTOINCREMENT,
            path TEXT NOT NULL UNIQUE
        );
DELETE FROM "sqlite_sequence";
INSERT INTO "sqlite_sequence" VALUES('metric_series',1);
COMMIT;
