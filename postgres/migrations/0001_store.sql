-- The store. Applied with `search_path` set to the store's schema.
--
-- An episode's name and all digests are bytes: a name may hold what `text` cannot.

CREATE TABLE log (
    episode bytea  NOT NULL,
    number  bigint NOT NULL,
    record  bytea  NOT NULL,
    -- Of the commit that wrote it, so that a client whose answer was lost can ask.
    attempt bytea  NOT NULL,
    PRIMARY KEY (episode, number)
);

-- Neither bytes nor sealed: the bytes are in the object store.
CREATE TABLE blobs (
    digest bytea   PRIMARY KEY,
    bytes  bytea,
    sealed boolean NOT NULL DEFAULT false,
    CHECK (bytes IS NULL OR NOT sealed)
);

CREATE TABLE claims (
    signature bytea PRIMARY KEY,
    holder    bytea NOT NULL,
    attempt   bytea NOT NULL
);

-- What records say of evictions, written with them; lanes and policies by their number in the log.
CREATE TABLE departures (
    episode     bytea    NOT NULL,
    number      bigint   NOT NULL,
    span        bigint   NOT NULL,
    lane        integer  NOT NULL,
    policy      bigint   NOT NULL,
    starts      bigint   NOT NULL,
    ends        bigint   NOT NULL,
    score       double precision,
    sha256      bytea    NOT NULL,
    replaced_by bigint,
    time        timestamptz,
    PRIMARY KEY (episode, span, number)
);

-- The lanes from a record on.
CREATE TABLE lanes (
    episode bytea   NOT NULL,
    number  bigint  NOT NULL,
    lane    integer NOT NULL,
    name    text    NOT NULL,
    kind    text    NOT NULL,
    PRIMARY KEY (episode, number, lane)
);

-- The policies of an episode in the order in which they came into force.
CREATE TABLE policies (
    episode bytea   NOT NULL,
    number  bigint  NOT NULL,
    place   integer NOT NULL,
    policy  jsonb   NOT NULL,
    PRIMARY KEY (episode, number, place)
);

-- A name as text; with escapes where it is none.
CREATE FUNCTION name(episode bytea) RETURNS text LANGUAGE sql IMMUTABLE STRICT AS $$
    SELECT CASE WHEN position('\x00'::bytea IN episode) = 0
                THEN convert_from(episode, 'UTF8') ELSE encode(episode, 'escape') END
$$;

-- Every eviction (rule R7). By episode: `WHERE key = 'run-7'`.
CREATE VIEW tombstones AS
SELECT name(d.episode) AS episode, d.episode AS key, d.number AS record, 's' || d.span AS span, l.name AS lane, l.kind,
       d.starts, d.ends, d.score, encode(d.sha256, 'hex') AS sha256, 's' || d.replaced_by AS replaced_by,
       p.policy ->> 'policy' AS policy, p.policy ->> 'model' AS model, p.policy ->> 'prompt' AS prompt, d.time
FROM departures d
LEFT JOIN LATERAL (
    SELECT name, kind FROM lanes
    WHERE lanes.episode = d.episode AND lanes.number <= d.number AND lanes.lane = d.lane
    ORDER BY lanes.number DESC LIMIT 1
) l ON true
LEFT JOIN LATERAL (
    SELECT policy FROM policies
    WHERE policies.episode = d.episode
    ORDER BY policies.number, policies.place OFFSET d.policy LIMIT 1
) p ON true;

-- Nothing updates and nothing deletes, whoever asks: the owner too.
CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    RAISE EXCEPTION '% of %: the store is append-only', lower(TG_OP), TG_TABLE_NAME USING ERRCODE = 'KS003';
END
$$;

CREATE TRIGGER append_only BEFORE UPDATE OR DELETE OR TRUNCATE ON log EXECUTE FUNCTION refuse();
CREATE TRIGGER append_only BEFORE UPDATE OR DELETE OR TRUNCATE ON claims EXECUTE FUNCTION refuse();
CREATE TRIGGER append_only BEFORE UPDATE OR DELETE OR TRUNCATE ON departures EXECUTE FUNCTION refuse();
CREATE TRIGGER append_only BEFORE UPDATE OR DELETE OR TRUNCATE ON lanes EXECUTE FUNCTION refuse();
CREATE TRIGGER append_only BEFORE UPDATE OR DELETE OR TRUNCATE ON policies EXECUTE FUNCTION refuse();
CREATE TRIGGER append_only BEFORE UPDATE OR DELETE OR TRUNCATE ON migrations EXECUTE FUNCTION refuse();
CREATE TRIGGER append_only BEFORE DELETE OR TRUNCATE ON blobs EXECUTE FUNCTION refuse();
-- But for a seal, after which there are no bytes (rule R23).
CREATE TRIGGER seals_only BEFORE UPDATE ON blobs FOR EACH ROW
WHEN (NEW.digest IS DISTINCT FROM OLD.digest OR NOT NEW.sealed) EXECUTE FUNCTION refuse();

-- A commit, all or nothing: one call, one transaction, one round trip. Gives those of the blobs without bytes that are
-- sealed, whose objects must go. `attempt` is the client's own: asked again with the same, it says what became of the
-- first and writes nothing twice, even where the first is still running. The arrays of blobs and claims are ascending,
-- so that no two commits wait for each other.
--
-- KS001: the log has another length, which is the detail. KS002: the signature in the detail is claimed.
CREATE FUNCTION commit(
    of bytea, expected bigint, attempt bytea, records bytea[],
    digests bytea[], contents bytea[], seals bytea[], signatures bytea[], holders bytea[],
    lane_numbers bigint[], lanes integer[], lane_names text[], lane_kinds text[],
    policy_numbers bigint[], places integer[], policies text[],
    numbers bigint[], spans bigint[], left_lanes integer[], left_policies bigint[], starts bigint[], ends bigint[],
    scores double precision[], sha256s bytea[], replacements bigint[], times double precision[]
) RETURNS bytea[] LANGUAGE plpgsql SECURITY DEFINER SET search_path FROM CURRENT AS $$
#variable_conflict use_column
DECLARE
    found_length bigint;
    written bigint := 0;
    refused bytea;
BEGIN
    -- What is acknowledged is on disk, whatever the operator's default.
    IF current_setting('synchronous_commit') = 'off' THEN
        PERFORM set_config('synchronous_commit', 'on', true);
    END IF;
    SELECT coalesce(max(number) + 1, 0) INTO found_length FROM log WHERE episode = of;
    IF found_length = expected THEN
        INSERT INTO log (episode, number, record, attempt)
        SELECT of, expected + place - 1, record, commit.attempt
        FROM unnest(records) WITH ORDINALITY AS new (record, place)
        ON CONFLICT DO NOTHING;
        GET DIAGNOSTICS written = ROW_COUNT;
    END IF;
    IF found_length <> expected OR written < cardinality(records) THEN
        IF EXISTS (SELECT FROM log WHERE episode = of AND number = expected AND log.attempt = commit.attempt)
           OR EXISTS (SELECT FROM claims WHERE signature = ANY (signatures) AND claims.attempt = commit.attempt) THEN
            RETURN sealed_objects(digests, contents);
        END IF;
        SELECT coalesce(max(number) + 1, 0) INTO found_length FROM log WHERE episode = of;
        RAISE EXCEPTION 'the log has another length' USING ERRCODE = 'KS001', DETAIL = found_length;
    END IF;
    IF cardinality(signatures) > 0 THEN
        INSERT INTO claims (signature, holder, attempt)
        SELECT signature, holder, commit.attempt FROM unnest(signatures, holders) AS new (signature, holder)
        ON CONFLICT DO NOTHING;
        GET DIAGNOSTICS written = ROW_COUNT;
        IF written < cardinality(signatures) THEN
            SELECT signature INTO refused FROM claims
            WHERE signature = ANY (signatures) AND claims.attempt <> commit.attempt LIMIT 1;
            IF FOUND THEN
                RAISE EXCEPTION 'the signature is claimed' USING ERRCODE = 'KS002', DETAIL = encode(refused, 'hex');
            END IF;
        END IF;
    END IF;
    IF cardinality(seals) > 0 THEN
        INSERT INTO blobs (digest, sealed) SELECT digest, true FROM unnest(seals) AS new (digest)
        ON CONFLICT (digest) DO UPDATE SET bytes = NULL, sealed = true WHERE NOT blobs.sealed;
    END IF;
    IF cardinality(digests) > 0 THEN
        INSERT INTO blobs (digest, bytes) SELECT digest, bytes FROM unnest(digests, contents) AS new (digest, bytes)
        ON CONFLICT DO NOTHING;
    END IF;
    IF cardinality(lane_numbers) > 0 THEN
        INSERT INTO lanes (episode, number, lane, name, kind)
        SELECT of, new.* FROM unnest(lane_numbers, commit.lanes, lane_names, lane_kinds) AS new
        ON CONFLICT DO NOTHING;
    END IF;
    IF cardinality(policy_numbers) > 0 THEN
        INSERT INTO policies (episode, number, place, policy)
        SELECT of, number, place, policy::jsonb FROM unnest(policy_numbers, places, commit.policies) AS new (number, place, policy)
        ON CONFLICT DO NOTHING;
    END IF;
    IF cardinality(numbers) > 0 THEN
        INSERT INTO departures (episode, number, span, lane, policy, starts, ends, score, sha256, replaced_by, time)
        SELECT of, number, span, lane, policy, start, stop, score, sha256, replacement, to_timestamp(time)
        FROM unnest(numbers, spans, left_lanes, left_policies, starts, ends, scores, sha256s, replacements, times)
             AS new (number, span, lane, policy, start, stop, score, sha256, replacement, time)
        ON CONFLICT DO NOTHING;
    END IF;
    RETURN sealed_objects(digests, contents);
END
$$;

-- Those of `digests` that came without bytes and are sealed.
CREATE FUNCTION sealed_objects(digests bytea[], contents bytea[]) RETURNS bytea[] LANGUAGE plpgsql STABLE AS $$
BEGIN
    IF array_position(contents, NULL) IS NULL THEN
        RETURN '{}';
    END IF;
    RETURN ARRAY(SELECT digest FROM blobs JOIN unnest(digests, contents) AS new (digest, bytes) USING (digest)
                 WHERE new.bytes IS NULL AND sealed);
END
$$;

-- A role that may use the store needs `USAGE` of the schema, `SELECT` of its tables and `EXECUTE` of this, and no more.
REVOKE EXECUTE ON FUNCTION commit FROM PUBLIC;
