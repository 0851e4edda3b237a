-- Labels that are known by their names, and what labels mean: a JSON object.
ALTER TABLE domains ADD COLUMN declared TEXT NOT NULL DEFAULT '{}';
