-- One layout for SQLite and PostgreSQL. A deleted domain keeps its row, so that its versions and the ids of its
-- examples are never given again.
CREATE TABLE domains (
    name TEXT NOT NULL PRIMARY KEY,
    version BIGINT NOT NULL,
    next_id BIGINT NOT NULL,
    n_examples BIGINT NOT NULL,
    labels TEXT NOT NULL,
    updated BIGINT NOT NULL,
    deleted BIGINT NOT NULL
);
CREATE TABLE examples (
    domain TEXT NOT NULL,
    id BIGINT NOT NULL,
    text TEXT NOT NULL,
    spans TEXT NOT NULL,
    source TEXT NOT NULL,
    PRIMARY KEY (domain, id)
);
