BEGIN TRANSACTION;
CREATE TABLE alembic_version (
	version_num VARCHAR(32) NOT NULL, 
	CONSTRAINT alembic_version_pkc PRIMARY KEY (version_num)
);
INSERT INTO "alembic_version" VALUES('v3.2.0.a');
CREATE TABLE studies (
	study_id INTEGER NOT NULL, 
	study_name VARCHAR(512) NOT NULL, 
	PRIMARY KEY (study_id)
);
INSERT INTO "studies" VALUES(1,'ppo');
INSERT INTO "studies" VALUES(2,'two');
CREATE TABLE study_directions (
	study_direction_id INTEGER NOT NULL, 
	direction VARCHAR(8) NOT NULL, 
	study_id INTEGER NOT NULL, 
	objective INTEGER NOT NULL, 
	PRIMARY KEY (study_direction_id), 
	UNIQUE (study_id, objective), 
	FOREIGN KEY(study_id) REFERENCES studies (study_id)
);
INSERT INTO "study_directions" VALUES(1,'MAXIMIZE',1,0);
INSERT INTO "study_directions" VALUES(2,'MAXIMIZE',2,0);
INSERT INTO "study_directions" VALUES(3,'MINIMIZE',2,1);
CREATE TABLE study_system_attributes (
	study_system_attribute_id INTEGER NOT NULL, 
	study_id INTEGER, 
	"key" VARCHAR(512), 
	value_json TEXT, 
	PRIMARY KEY (study_system_attribute_id), 
	UNIQUE (study_id, "key"), 
	FOREIGN KEY(study_id) REFERENCES studies (study_id)
);
INSERT INTO "study_system_attributes" VALUES(1,2,'study:metric_names','["return", "cost"]');
CREATE TABLE study_user_attributes (
	study_user_attribute_id INTEGER NOT NULL, 
	study_id INTEGER, 
	"key" VARCHAR(512), 
	value_json TEXT, 
	PRIMARY KEY (study_user_attribute_id), 
	UNIQUE (study_id, "key"), 
	FOREIGN KEY(study_id) REFERENCES studies (study_id)
);
INSERT INTO "study_user_attributes" VALUES(1,1,'env','"CartPole-v1"');
CREATE TABLE trial_heartbeats (
	trial_heartbeat_id INTEGER NOT NULL, 
	trial_id INTEGER NOT NULL, 
	heartbeat DATETIME NOT NULL, 
	PRIMARY KEY (trial_heartbeat_id), 
	UNIQUE (trial_id), 
	FOREIGN KEY(trial_id) REFERENCES trials (trial_id)
);
CREATE TABLE trial_intermediate_values (
	trial_intermediate_value_id INTEGER NOT NULL, 
	trial_id INTEGER NOT NULL, 
	step INTEGER NOT NULL, 
	intermediate_value FLOAT, 
	intermediate_value_type VARCHAR(7) NOT NULL, 
	PRIMARY KEY (trial_intermediate_value_id), 
	UNIQUE (trial_id, step), 
	FOREIGN KEY(trial_id) REFERENCES trials (trial_id)
);
INSERT INTO "trial_intermediate_values" VALUES(1,1,0,0.0,'FINITE');
INSERT INTO "trial_intermediate_values" VALUES(2,1,100,0.5,'FINITE');
INSERT INTO "trial_intermediate_values" VALUES(3,1,200,1.0,'FINITE');
INSERT INTO "trial_intermediate_values" VALUES(4,1,300,1.5,'FINITE');
INSERT INTO "trial_intermediate_values" VALUES(5,2,0,0.0,'FINITE');
INSERT INTO "trial_intermediate_values" VALUES(6,2,100,0.5,'FINITE');
INSERT INTO "trial_intermediate_values" VALUES(7,2,200,NULL,'NAN');
INSERT INTO "trial_intermediate_values" VALUES(8,2,300,NULL,'INF_POS');
INSERT INTO "trial_intermediate_values" VALUES(9,3,0,0.0,'FINITE');
INSERT INTO "trial_intermediate_values" VALUES(10,3,100,0.5,'FINITE');
INSERT INTO "trial_intermediate_values" VALUES(11,3,200,1.0,'FINITE');
INSERT INTO "trial_intermediate_values" VALUES(12,3,300,1.5,'FINITE');
INSERT INTO "trial_intermediate_values" VALUES(13,4,0,0.0,'FINITE');
INSERT INTO "trial_intermediate_values" VALUES(14,4,100,0.5,'FINITE');
INSERT INTO "trial_intermediate_values" VALUES(15,4,200,1.0,'FINITE');
INSERT INTO "trial_intermediate_values" VALUES(16,4,300,1.5,'FINITE');
INSERT INTO "trial_intermediate_values" VALUES(17,7,7,0.25,'FINITE');
CREATE TABLE trial_params (
	param_id INTEGER NOT NULL, 
	trial_id INTEGER, 
	param_name VARCHAR(512), 
	param_value FLOAT, 
	distribution_json TEXT, 
	PRIMARY KEY (param_id), 
	UNIQUE (trial_id, param_name), 
	FOREIGN KEY(trial_id) REFERENCES trials (trial_id)
);
INSERT INTO "trial_params" VALUES(1,1,'lr',0.001,'{"name": "FloatDistribution", "attributes": {"step": null, "low": 1e-05, "high": 0.01, "log": true}}');
INSERT INTO "trial_params" VALUES(2,1,'net.size',4.0,'{"name": "IntDistribution", "attributes": {"log": false, "step": 1, "low": 1, "high": 8}}');
INSERT INTO "trial_params" VALUES(3,1,'act',0.0,'{"name": "CategoricalDistribution", "attributes": {"choices": ["relu", "tanh", null]}}');
INSERT INTO "trial_params" VALUES(4,2,'lr',2.75592676402737382472e-05,'{"name": "FloatDistribution", "attributes": {"step": null, "low": 1e-05, "high": 0.01, "log": true}}');
INSERT INTO "trial_params" VALUES(5,2,'net.size',1.0,'{"name": "IntDistribution", "attributes": {"log": false, "step": 1, "low": 1, "high": 8}}');
INSERT INTO "trial_params" VALUES(6,2,'act',2.0,'{"name": "CategoricalDistribution", "attributes": {"choices": ["relu", "tanh", null]}}');
INSERT INTO "trial_params" VALUES(7,3,'lr',4.13475900783471909689e-04,'{"name": "FloatDistribution", "attributes": {"step": null, "low": 1e-05, "high": 0.01, "log": true}}');
INSERT INTO "trial_params" VALUES(8,3,'net.size',4.0,'{"name": "IntDistribution", "attributes": {"log": false, "step": 1, "low": 1, "high": 8}}');
INSERT INTO "trial_params" VALUES(9,3,'act',2.0,'{"name": "CategoricalDistribution", "attributes": {"choices": ["relu", "tanh", null]}}');
INSERT INTO "trial_params" VALUES(10,4,'lr',1.20826662533054526122e-05,'{"name": "FloatDistribution", "attributes": {"step": null, "low": 1e-05, "high": 0.01, "log": true}}');
INSERT INTO "trial_params" VALUES(11,4,'net.size',6.0,'{"name": "IntDistribution", "attributes": {"log": false, "step": 1, "low": 1, "high": 8}}');
INSERT INTO "trial_params" VALUES(12,4,'act',1.0,'{"name": "CategoricalDistribution", "attributes": {"choices": ["relu", "tanh", null]}}');
INSERT INTO "trial_params" VALUES(13,7,'lr',0.5,'{"name": "FloatDistribution", "attributes": {"step": null, "low": 1e-05, "high": 1.0, "log": true}}');
INSERT INTO "trial_params" VALUES(14,8,'x',7.37644035531672681571e-01,'{"name": "FloatDistribution", "attributes": {"step": null, "low": 0.0, "high": 1.0, "log": false}}');
CREATE TABLE trial_system_attributes (
	trial_system_attribute_id INTEGER NOT NULL, 
	trial_id INTEGER, 
	"key" VARCHAR(512), 
	value_json TEXT, 
	PRIMARY KEY (trial_system_attribute_id), 
	UNIQUE (trial_id, "key"), 
	FOREIGN KEY(trial_id) REFERENCES trials (trial_id)
);
INSERT INTO "trial_system_attributes" VALUES(1,1,'fixed_params','{"lr": 0.001}');
INSERT INTO "trial_system_attributes" VALUES(2,6,'fixed_params','{"lr": 0.0001}');
CREATE TABLE trial_user_attributes (
	trial_user_attribute_id INTEGER NOT NULL, 
	trial_id INTEGER, 
	"key" VARCHAR(512), 
	value_json TEXT, 
	PRIMARY KEY (trial_user_attribute_id), 
	UNIQUE (trial_id, "key"), 
	FOREIGN KEY(trial_id) REFERENCES trials (trial_id)
);
INSERT INTO "trial_user_attributes" VALUES(1,1,'seed','0');
INSERT INTO "trial_user_attributes" VALUES(2,2,'seed','1');
INSERT INTO "trial_user_attributes" VALUES(3,3,'seed','2');
INSERT INTO "trial_user_attributes" VALUES(4,4,'seed','3');
CREATE TABLE trial_values (
	trial_value_id INTEGER NOT NULL, 
	trial_id INTEGER NOT NULL, 
	objective INTEGER NOT NULL, 
	value FLOAT, 
	value_type VARCHAR(7) NOT NULL, 
	PRIMARY KEY (trial_value_id), 
	UNIQUE (trial_id, objective), 
	FOREIGN KEY(trial_id) REFERENCES trials (trial_id)
);
INSERT INTO "trial_values" VALUES(1,1,0,6.0,'FINITE');
INSERT INTO "trial_values" VALUES(2,2,0,1.5,'FINITE');
INSERT INTO "trial_values" VALUES(3,3,0,1.5,'FINITE');
INSERT INTO "trial_values" VALUES(4,7,0,NULL,'INF_NEG');
INSERT INTO "trial_values" VALUES(5,8,0,7.37644035531672681571e-01,'FINITE');
INSERT INTO "trial_values" VALUES(6,8,1,2.0,'FINITE');
CREATE TABLE trials (
	trial_id INTEGER NOT NULL, 
	number INTEGER, 
	study_id INTEGER, 
	state VARCHAR(8) NOT NULL, 
	datetime_start DATETIME, 
	datetime_complete DATETIME, 
	PRIMARY KEY (trial_id), 
	FOREIGN KEY(study_id) REFERENCES studies (study_id)
);
INSERT INTO "trials" VALUES(1,0,1,'COMPLETE','2026-11-30 06:33:52.716458','2026-11-30 06:33:52.738494');
INSERT INTO "trials" VALUES(2,1,1,'COMPLETE','2026-11-30 06:33:52.746594','2026-11-30 06:33:52.763882');
INSERT INTO "trials" VALUES(3,2,1,'PRUNED','2026-11-30 06:33:52.769602','2026-11-30 06:33:52.785296');
INSERT INTO "trials" VALUES(4,3,1,'FAIL','2026-11-30 06:33:52.789213','2026-11-30 06:33:52.804277');
INSERT INTO "trials" VALUES(5,4,1,'RUNNING','2026-11-30 06:33:52.808674',NULL);
INSERT INTO "trials" VALUES(6,5,1,'WAITING',NULL,NULL);
INSERT INTO "trials" VALUES(7,6,1,'COMPLETE','2026-11-30 06:33:52.814177','2026-11-30 06:33:52.814177');
INSERT INTO "trials" VALUES(8,0,2,'COMPLETE','2026-11-30 06:33:52.896386','2026-11-30 06:33:52.911039');
CREATE TABLE version_info (
	version_info_id INTEGER NOT NULL, 
	schema_version INTEGER, 
	library_version VARCHAR(256), 
	PRIMARY KEY (version_info_id), 
	CHECK (version_info_id=1)
);
INSERT INTO "version_info" VALUES(1,12,'5.0.0');
CREATE UNIQUE INDEX ix_studies_study_name ON studies (study_name);
CREATE INDEX ix_trials_study_id ON trials (study_id);
COMMIT;
