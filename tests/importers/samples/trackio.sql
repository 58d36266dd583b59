BEGIN TRANSACTION;
CREATE TABLE alerts (
                        id INTEGER PRIMARY KEY AUTOINCREMENT,
                        run_id TEXT NOT NULL,
                        timestamp TEXT NOT NULL,
                        run_name TEXT NOT NULL,
                        title TEXT NOT NULL,
                        text TEXT,
                        level TEXT NOT NULL DEFAULT 'warn',
                        step INTEGER,
                        alert_id TEXT
                    );
CREATE TABLE artifact_aliases (
                        artifact_id INTEGER NOT NULL REFERENCES artifacts(id),
                        alias TEXT NOT NULL,
                        artifact_version_id INTEGER NOT NULL REFERENCES artifact_versions(id),
                        PRIMARY KEY (artifact_id, alias)
                    );
CREATE TABLE artifact_versions (
                        id INTEGER PRIMARY KEY AUTOINCREMENT,
                        artifact_id INTEGER NOT NULL REFERENCES artifacts(id),
                        version INTEGER NOT NULL,
                        manifest_digest TEXT NOT NULL,
                        manifest TEXT NOT NULL,
                        metadata TEXT,
                        size_bytes INTEGER NOT NULL,
                        producer_run_id TEXT,
                        producer_run_name TEXT,
                        created_at TEXT NOT NULL,
                        UNIQUE(artifact_id, version),
                        UNIQUE(artifact_id, manifest_digest)
                    );
CREATE TABLE artifacts (
                        id INTEGER PRIMARY KEY AUTOINCREMENT,
                        name TEXT NOT NULL UNIQUE,
                        type TEXT NOT NULL,
                        description TEXT,
                        created_at TEXT NOT NULL
                    );
CREATE TABLE configs (
                        id INTEGER PRIMARY KEY AUTOINCREMENT,
                        run_id TEXT NOT NULL,
                        run_name TEXT NOT NULL,
                        config TEXT NOT NULL,
                        created_at TEXT NOT NULL,
                        UNIQUE(run_id)
                    );
INSERT INTO "configs" VALUES(1,'ffb6f92e7e9e4cc39982eeba4bed7754','ppo-1',X'7B226C72223A302E303030332C2273656564223A312C225F557365726E616D65223A6E756C6C2C225F43726561746564223A22323032362D31312D32335430363A33363A33322E3737353837382B30303A3030222C225F47726F7570223A2270706F227D','2026-11-23T06:36:32.968355+00:00');
INSERT INTO "configs" VALUES(2,'cc5bb75e72614418b829946ec29709f9','ppo-2',X'7B226C72223A302E303030332C2273656564223A322C225F557365726E616D65223A6E756C6C2C225F43726561746564223A22323032362D31312D32335430363A33363A33332E3134353938312B30303A3030222C225F47726F7570223A2270706F227D','2026-11-23T06:36:33.246543+00:00');
CREATE TABLE external_run_artifact_links (
                        id INTEGER PRIMARY KEY AUTOINCREMENT,
                        run_id TEXT,
                        run_name TEXT,
                        source_project TEXT NOT NULL,
                        source_version_id INTEGER NOT NULL,
                        source_artifact TEXT NOT NULL,
                        source_type TEXT NOT NULL,
                        source_version INTEGER NOT NULL,
                        source_size_bytes INTEGER NOT NULL,
                        direction TEXT NOT NULL CHECK(direction IN ('input', 'output')),
                        created_at TEXT NOT NULL
                    );
CREATE TABLE metrics (
                        id INTEGER PRIMARY KEY AUTOINCREMENT,
                        run_id TEXT NOT NULL,
                        timestamp TEXT NOT NULL,
                        run_name TEXT NOT NULL,
                        step INTEGER NOT NULL,
                        metrics TEXT NOT NULL
                    , log_id TEXT, space_id TEXT);
INSERT INTO "metrics" VALUES(1,'ffb6f92e7e9e4cc39982eeba4bed7754','2026-11-23T06:36:32.800813+00:00','ppo-1',0,X'7B22676C6F62616C5F73746570223A302C226C6F7373223A312E302C226E6573746564223A7B2278223A307D7D','f4ebf3beb2e24174b13276e7e9860d76',NULL);
INSERT INTO "metrics" VALUES(2,'ffb6f92e7e9e4cc39982eeba4bed7754','2026-11-23T06:36:32.800813+00:00','ppo-1',1,X'7B22676C6F62616C5F73746570223A3132382C226C6F7373223A302E352C226E6573746564223A7B2278223A317D7D','0756f358bf174b65a1aa9c4701d2be0a',NULL);
INSERT INTO "metrics" VALUES(3,'ffb6f92e7e9e4cc39982eeba4bed7754','2026-11-23T06:36:32.800813+00:00','ppo-1',2,X'7B22676C6F62616C5F73746570223A3235362C226C6F7373223A302E333333333333333333333333333333332C226E6573746564223A7B2278223A327D7D','175603ea596a4502a1a2c87bcb7f0e80',NULL);
INSERT INTO "metrics" VALUES(4,'ffb6f92e7e9e4cc39982eeba4bed7754','2026-11-23T06:36:32.800813+00:00','ppo-1',3,X'7B22676C6F62616C5F73746570223A3338342C226C6F7373223A224E614E222C226E6573746564223A7B2278223A337D7D','0d498349f82542e0a39a45dfc28da784',NULL);
INSERT INTO "metrics" VALUES(5,'ffb6f92e7e9e4cc39982eeba4bed7754','2026-11-23T06:36:32.800813+00:00','ppo-1',4,X'7B22676C6F62616C5F73746570223A3531322C226C6F7373223A22496E66696E697479222C226E6573746564223A7B2278223A347D7D','dc390cd455234eb0ba56104cec8cdbfd',NULL);
INSERT INTO "metrics" VALUES(6,'ffb6f92e7e9e4cc39982eeba4bed7754','2026-11-23T06:36:32.800813+00:00','ppo-1',5,X'7B22676C6F62616C5F73746570223A3634302C226C6F7373223A302E31363636363636363636363636363636362C226E6573746564223A7B2278223A357D7D','aaac0513e4f8477b967449fc1e6a2bb8',NULL);
INSERT INTO "metrics" VALUES(7,'ffb6f92e7e9e4cc39982eeba4bed7754','2026-11-23T06:36:32.800813+00:00','ppo-1',6,X'7B22676C6F62616C5F73746570223A3736382C226C6F7373223A302E31343238353731343238353731343238352C226E6573746564223A7B2278223A367D7D','092041c3041b47a086bbeced3adf30bf',NULL);
INSERT INTO "metrics" VALUES(8,'ffb6f92e7e9e4cc39982eeba4bed7754','2026-11-23T06:36:32.800813+00:00','ppo-1',7,X'7B22676C6F62616C5F73746570223A3839362C226C6F7373223A302E3132352C226E6573746564223A7B2278223A377D7D','ffd0f7fe12c04cfab57845d3913b2567',NULL);
INSERT INTO "metrics" VALUES(9,'ffb6f92e7e9e4cc39982eeba4bed7754','2026-11-23T06:36:32.800813+00:00','ppo-1',8,X'7B22676C6F62616C5F73746570223A313032342C226C6F7373223A302E313131313131313131313131313131312C226E6573746564223A7B2278223A387D7D','fc9babbdebf948e49838b745a6792f98',NULL);
INSERT INTO "metrics" VALUES(10,'ffb6f92e7e9e4cc39982eeba4bed7754','2026-11-23T06:36:32.800813+00:00','ppo-1',9,X'7B22676C6F62616C5F73746570223A313135322C226C6F7373223A302E312C226E6573746564223A7B2278223A397D7D','e53b6f5f32bf4599a6a495e7762d5b22',NULL);
INSERT INTO "metrics" VALUES(11,'ffb6f92e7e9e4cc39982eeba4bed7754','2026-11-23T06:36:32.800813+00:00','ppo-1',10,X'7B22676C6F62616C5F73746570223A313238302C226C6F7373223A302E30393039303930393039303930393039312C226E6573746564223A7B2278223A31307D7D','a6c6f8e1515041f1b1b386107cd34f8b',NULL);
INSERT INTO "metrics" VALUES(12,'ffb6f92e7e9e4cc39982eeba4bed7754','2026-11-23T06:36:32.800813+00:00','ppo-1',11,X'7B22676C6F62616C5F73746570223A313430382C226C6F7373223A302E30383333333333333333333333333333332C226E6573746564223A7B2278223A31317D7D','169909ee7b454397a0fa4a6d3fcdcd3d',NULL);
INSERT INTO "metrics" VALUES(13,'cc5bb75e72614418b829946ec29709f9','2026-11-23T06:36:33.173931+00:00','ppo-2',0,X'7B22676C6F62616C5F73746570223A302C226C6F7373223A312E302C226E6573746564223A7B2278223A307D7D','89a2995b227e4afd81b684d9ffb57f59',NULL);
INSERT INTO "metrics" VALUES(14,'cc5bb75e72614418b829946ec29709f9','2026-11-23T06:36:33.173931+00:00','ppo-2',1,X'7B22676C6F62616C5F73746570223A3132382C226C6F7373223A302E352C226E6573746564223A7B2278223A317D7D','eba5c69037c14bf6aa7ec061f55eac06',NULL);
INSERT INTO "metrics" VALUES(15,'cc5bb75e72614418b829946ec29709f9','2026-11-23T06:36:33.173931+00:00','ppo-2',2,X'7B22676C6F62616C5F73746570223A3235362C226C6F7373223A302E333333333333333333333333333333332C226E6573746564223A7B2278223A327D7D','a67efd3dfffc47e3a211167b06ca10e2',NULL);
INSERT INTO "metrics" VALUES(16,'cc5bb75e72614418b829946ec29709f9','2026-11-23T06:36:33.173931+00:00','ppo-2',3,X'7B22676C6F62616C5F73746570223A3338342C226C6F7373223A224E614E222C226E6573746564223A7B2278223A337D7D','1c83eb50e15e48cf88bf8a8d3d33ac5b',NULL);
INSERT INTO "metrics" VALUES(17,'cc5bb75e72614418b829946ec29709f9','2026-11-23T06:36:33.173931+00:00','ppo-2',4,X'7B22676C6F62616C5F73746570223A3531322C226C6F7373223A22496E66696E697479222C226E6573746564223A7B2278223A347D7D','a6faf8e88493499ba269140149793d7a',NULL);
INSERT INTO "metrics" VALUES(18,'cc5bb75e72614418b829946ec29709f9','2026-11-23T06:36:33.173931+00:00','ppo-2',5,X'7B22676C6F62616C5F73746570223A3634302C226C6F7373223A302E31363636363636363636363636363636362C226E6573746564223A7B2278223A357D7D','7edd4f1477f4422c83c235e1452ef8d4',NULL);
INSERT INTO "metrics" VALUES(19,'cc5bb75e72614418b829946ec29709f9','2026-11-23T06:36:33.173931+00:00','ppo-2',6,X'7B22676C6F62616C5F73746570223A3736382C226C6F7373223A302E31343238353731343238353731343238352C226E6573746564223A7B2278223A367D7D','3cd80b49eb5643e289b2eea9dfd6fcde',NULL);
INSERT INTO "metrics" VALUES(20,'cc5bb75e72614418b829946ec29709f9','2026-11-23T06:36:33.173931+00:00','ppo-2',7,X'7B22676C6F62616C5F73746570223A3839362C226C6F7373223A302E3132352C226E6573746564223A7B2278223A377D7D','494010245dd24ea8a8ca9039efa4d5b0',NULL);
INSERT INTO "metrics" VALUES(21,'cc5bb75e72614418b829946ec29709f9','2026-11-23T06:36:33.173931+00:00','ppo-2',8,X'7B22676C6F62616C5F73746570223A313032342C226C6F7373223A302E313131313131313131313131313131312C226E6573746564223A7B2278223A387D7D','7524827a0671497f84c6381c8e8c6bae',NULL);
INSERT INTO "metrics" VALUES(22,'cc5bb75e72614418b829946ec29709f9','2026-11-23T06:36:33.173931+00:00','ppo-2',9,X'7B22676C6F62616C5F73746570223A313135322C226C6F7373223A302E312C226E6573746564223A7B2278223A397D7D','99c6c2d370384e3193781ad8837d32f6',NULL);
INSERT INTO "metrics" VALUES(23,'cc5bb75e72614418b829946ec29709f9','2026-11-23T06:36:33.173931+00:00','ppo-2',10,X'7B22676C6F62616C5F73746570223A313238302C226C6F7373223A302E30393039303930393039303930393039312C226E6573746564223A7B2278223A31307D7D','e4fab1811eab4fefb2ce60e60950ddb3',NULL);
INSERT INTO "metrics" VALUES(24,'cc5bb75e72614418b829946ec29709f9','2026-11-23T06:36:33.173931+00:00','ppo-2',11,X'7B22676C6F62616C5F73746570223A313430382C226C6F7373223A302E30383333333333333333333333333333332C226E6573746564223A7B2278223A31317D7D','645fd9d9254f47998f57ba30c7b29b9e',NULL);
CREATE TABLE pending_uploads (
                        id INTEGER PRIMARY KEY AUTOINCREMENT,
                        space_id TEXT NOT NULL,
                        run_id TEXT,
                        run_name TEXT,
                        step INTEGER,
                        file_path TEXT NOT NULL,
                        relative_path TEXT,
                        created_at TEXT NOT NULL
                    , kind TEXT NOT NULL DEFAULT 'media', digest TEXT);
CREATE TABLE project_metadata (
                        key TEXT PRIMARY KEY,
                        value TEXT NOT NULL
                    );
CREATE TABLE run_artifact_links (
                        id INTEGER PRIMARY KEY AUTOINCREMENT,
                        run_id TEXT,
                        run_name TEXT,
                        run_project TEXT,
                        artifact_version_id INTEGER NOT NULL REFERENCES artifact_versions(id),
                        direction TEXT NOT NULL CHECK(direction IN ('input', 'output')),
                        created_at TEXT NOT NULL
                    );
CREATE TABLE system_metrics (
                        id INTEGER PRIMARY KEY AUTOINCREMENT,
                        run_id TEXT NOT NULL,
                        timestamp TEXT NOT NULL,
                        run_name TEXT NOT NULL,
                        metrics TEXT NOT NULL
                    , log_id TEXT, space_id TEXT);
CREATE TABLE traces (
                        id TEXT PRIMARY KEY,
                        run_id TEXT NOT NULL,
                        timestamp TEXT NOT NULL,
                        run_name TEXT NOT NULL,
                        step INTEGER NOT NULL,
                        key TEXT NOT NULL,
                        trace_index INTEGER,
                        messages TEXT NOT NULL,
                        metadata TEXT NOT NULL,
                        search_text TEXT NOT NULL,
                        log_id TEXT,
                        space_id TEXT,
                        spans TEXT NOT NULL DEFAULT '[]'
                    );
CREATE INDEX idx_run_artifact_links_run
                    ON run_artifact_links(run_id, run_name)
                    ;
CREATE INDEX idx_run_artifact_links_name
                    ON run_artifact_links(run_name, run_id)
                    ;
CREATE INDEX idx_run_artifact_links_version
                    ON run_artifact_links(artifact_version_id)
                    ;
CREATE INDEX idx_run_artifact_links_project_run
                    ON run_artifact_links(run_project, run_id, run_name);
CREATE INDEX idx_external_artifact_links_run
                    ON external_run_artifact_links(run_id, run_name);
CREATE UNIQUE INDEX idx_external_artifact_links_unique
                    ON external_run_artifact_links(
                        COALESCE(run_id, ''), COALESCE(run_name, ''),
                        source_project, source_version_id, direction
                    );
CREATE INDEX idx_pending_uploads_kind
                    ON pending_uploads(kind)
                    ;
CREATE INDEX idx_metrics_run_step
                    ON metrics(run_id, step)
                    ;
CREATE INDEX idx_metrics_run_timestamp
                    ON metrics(run_id, timestamp)
                    ;
CREATE INDEX idx_configs_run_name
                    ON configs(run_name)
                    ;
CREATE INDEX idx_system_metrics_run_timestamp
                    ON system_metrics(run_id, timestamp)
                    ;
CREATE INDEX idx_traces_run_step
                    ON traces(run_id, step)
                    ;
CREATE INDEX idx_traces_run_timestamp
                    ON traces(run_id, timestamp)
                    ;
CREATE INDEX idx_traces_search
                    ON traces(search_text)
                    ;
CREATE INDEX idx_alerts_run
                    ON alerts(run_id)
                    ;
CREATE INDEX idx_alerts_timestamp
                    ON alerts(timestamp)
                    ;
CREATE UNIQUE INDEX idx_alerts_alert_id
                    ON alerts(alert_id) WHERE alert_id IS NOT NULL
                    ;
CREATE UNIQUE INDEX idx_metrics_log_id
                        ON metrics(log_id) WHERE log_id IS NOT NULL;
CREATE INDEX idx_metrics_pending
                        ON metrics(space_id) WHERE space_id IS NOT NULL;
CREATE UNIQUE INDEX idx_system_metrics_log_id
                        ON system_metrics(log_id) WHERE log_id IS NOT NULL;
CREATE INDEX idx_system_metrics_pending
                        ON system_metrics(space_id) WHERE space_id IS NOT NULL;
CREATE INDEX idx_metrics_run_record
                        ON metrics(run_id, run_name, timestamp);
CREATE UNIQUE INDEX idx_run_artifact_links_unique
                    ON run_artifact_links(
                        COALESCE(run_project, ''), COALESCE(run_id, ''),
                        COALESCE(run_name, ''), artifact_version_id, direction
                    );
DELETE FROM "sqlite_sequence";
INSERT INTO "sqlite_sequence" VALUES('metrics',24);
INSERT INTO "sqlite_sequence" VALUES('configs',2);
COMMIT;
