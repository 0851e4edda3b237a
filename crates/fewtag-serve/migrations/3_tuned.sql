-- What tuning made of domains: a saved domain whose weights count, for the model with this checksum. `version` is the version of the
-- domain with which it began to count; the latest one counts now, the one before is the way back.
CREATE TABLE tuned (
    domain TEXT NOT NULL,
    version BIGINT NOT NULL,
    model TEXT NOT NULL,
    figures TEXT NOT NULL,
    file BYTEA NOT NULL,
    PRIMARY KEY (domain, version)
);
-- The latest tuning of each domain. `claim` names the run that works on it, `beat` when that was last heard of, in milliseconds
-- since 1970; `model` is that of the servers that may work on it; `attempts` counts the runs that began. Texts are JSON, empty if there is nothing to say.
CREATE TABLE tunings (
    domain TEXT NOT NULL PRIMARY KEY,
    state TEXT NOT NULL,
    model TEXT NOT NULL,
    options TEXT NOT NULL,
    version BIGINT NOT NULL,
    claim TEXT NOT NULL,
    beat BIGINT NOT NULL,
    attempts BIGINT NOT NULL,
    asked BIGINT NOT NULL,
    ended BIGINT NOT NULL,
    progress TEXT NOT NULL,
    report TEXT NOT NULL,
    message TEXT NOT NULL,
    result BIGINT NOT NULL
);
