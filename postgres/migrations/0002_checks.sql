-- The database checks itself what a caller says of bytes, and a seal has a function, and so a grant, of its own.

-- In the order of a commit, or one that is under way and this would wait for each other.
LOCK TABLE log, claims, blobs, lanes, policies, departures IN ACCESS EXCLUSIVE MODE;

-- Of what is written from now on; what was there is checked when it is read, as everything is.
ALTER TABLE blobs
    ADD CHECK (octet_length(digest) = 32) NOT VALID,
    ADD CHECK (bytes IS NULL OR digest = sha256(bytes)) NOT VALID;
ALTER TABLE claims ADD CHECK (octet_length(signature) = 32) NOT VALID;
ALTER TABLE departures ADD CHECK (policy >= 0) NOT VALID;

-- The default takes most of the time of a commit; with this, where the server has it, it takes little.
DO $$
BEGIN
    IF EXISTS (SELECT FROM pg_settings WHERE name = 'default_toast_compression' AND 'lz4' = ANY (enumvals)) THEN
        ALTER TABLE blobs ALTER COLUMN bytes SET COMPRESSION lz4;
        ALTER TABLE log ALTER COLUMN record SET COMPRESSION lz4;
    END IF;
END
$$;

-- For one that only applies what another server did, too.
ALTER TABLE log ENABLE ALWAYS TRIGGER append_only;
ALTER TABLE claims ENABLE ALWAYS TRIGGER append_only;
ALTER TABLE departures ENABLE ALWAYS TRIGGER append_only;
ALTER TABLE lanes ENABLE ALWAYS TRIGGER append_only;
ALTER TABLE policies ENABLE ALWAYS TRIGGER append_only;
ALTER TABLE migrations ENABLE ALWAYS TRIGGER append_only;
ALTER TABLE blobs ENABLE ALWAYS TRIGGER append_only;

-- But for a seal, after which there are no bytes (rule R23), and for the bytes of one that was named without.
DROP TRIGGER seals_only ON blobs;
CREATE TRIGGER seals_only BEFORE UPDATE ON blobs FOR EACH ROW
WHEN (NEW.digest IS DISTINCT FROM OLD.digest
      OR NOT (NEW.sealed OR NEW.bytes IS NOT NULL AND OLD.bytes IS NULL AND NOT OLD.sealed)) EXECUTE FUNCTION refuse();
ALTER TABLE blobs ENABLE ALWAYS TRIGGER seals_only;

-- A name as text; with escapes where it is none.
CREATE OR REPLACE FUNCTION name(episode bytea) RETURNS text LANGUAGE plpgsql IMMUTABLE STRICT AS $$
BEGIN
    RETURN convert_from(episode, 'UTF8');
EXCEPTION WHEN character_not_in_repertoire THEN
    RETURN encode(episode, 'escape');
END
$$;

-- A commit, all or nothing: one call, one transaction, one round trip. Gives those of the blobs without bytes that are
-- sealed, whose objects must go. `attempt` is the client's own: asked again with the same, it says what became of the
-- first and writes nothing twice, even where the first is still running. The arrays of blobs, seals and claims are
-- ascending, so that no two commits wait for each other. With a NULL in place of an argument it does nothing.
--
-- For whoever redacts: bytes go by it (rule R23).
--
-- KS001: the log has another length, which is the detail. KS002: the signature in the detail is claimed. KS005: what records
-- are said to say is of other records.
--
-- Functions that take any array are called by their full names, or one that takes these would come first, if there were one.
-- `unnest` of several is no function: it means the one of the system.
CREATE FUNCTION commit_sealing(
    of bytea, expected bigint, attempt bytea, records bytea[],
    digests bytea[], contents bytea[], seals bytea[], signatures bytea[], holders bytea[],
    lane_numbers bigint[], lanes integer[], lane_names text[], lane_kinds text[],
    policy_numbers bigint[], places integer[], policies text[],
    numbers bigint[], spans bigint[], left_lanes integer[], left_policies bigint[], starts bigint[], ends bigint[],
    scores double precision[], sha256s bytea[], replacements bigint[], times double precision[]
) RETURNS bytea[] LANGUAGE plpgsql STRICT SECURITY DEFINER SET search_path FROM CURRENT AS $$
#variable_conflict use_column
DECLARE
    found_length bigint;
    written bigint := 0;
    put bigint := 0;
    refused bytea;
BEGIN
    -- What is acknowledged is on disk, whatever the operator's default.
    IF current_setting('synchronous_commit') = 'off' THEN
        PERFORM set_config('synchronous_commit', 'on', true);
    END IF;
    IF pg_catalog.cardinality(lane_numbers) + pg_catalog.cardinality(policy_numbers) + pg_catalog.cardinality(numbers) > 0 THEN
        IF EXISTS (SELECT FROM (SELECT pg_catalog.unnest(lane_numbers) UNION ALL SELECT pg_catalog.unnest(policy_numbers)
                                UNION ALL SELECT pg_catalog.unnest(numbers)) AS said (number)
                   WHERE said.number NOT BETWEEN expected AND expected + pg_catalog.cardinality(records) - 1) THEN
            RAISE EXCEPTION 'rows of other records' USING ERRCODE = 'KS005';
        END IF;
    END IF;
    SELECT coalesce(max(number) + 1, 0) INTO found_length FROM log WHERE episode = of;
    IF found_length = expected THEN
        INSERT INTO log (episode, number, record, attempt)
        SELECT of, expected + place - 1, record, commit_sealing.attempt
        FROM pg_catalog.unnest(records) WITH ORDINALITY AS new (record, place)
        ON CONFLICT DO NOTHING;
        GET DIAGNOSTICS written = ROW_COUNT;
    END IF;
    IF found_length <> expected OR written < pg_catalog.cardinality(records) THEN
        IF EXISTS (SELECT FROM log WHERE episode = of AND number = expected AND log.attempt = commit_sealing.attempt)
           OR EXISTS (SELECT FROM claims WHERE signature = ANY (signatures) AND claims.attempt = commit_sealing.attempt) THEN
            RETURN sealed_objects(digests, contents);
        END IF;
        SELECT coalesce(max(number) + 1, 0) INTO found_length FROM log WHERE episode = of;
        RAISE EXCEPTION 'the log has another length' USING ERRCODE = 'KS001', DETAIL = found_length;
    END IF;
    IF pg_catalog.cardinality(signatures) > 0 THEN
        INSERT INTO claims (signature, holder, attempt)
        SELECT signature, holder, commit_sealing.attempt
        FROM unnest(signatures, holders) AS new (signature, holder)
        ON CONFLICT DO NOTHING;
        GET DIAGNOSTICS written = ROW_COUNT;
        IF written < pg_catalog.cardinality(signatures) THEN
            SELECT signature INTO refused FROM claims
            WHERE signature = ANY (signatures) AND claims.attempt <> commit_sealing.attempt LIMIT 1;
            IF FOUND THEN
                RAISE EXCEPTION 'the signature is claimed' USING ERRCODE = 'KS002', DETAIL = encode(refused, 'hex');
            END IF;
        END IF;
    END IF;
    IF pg_catalog.cardinality(seals) > 0 THEN
        -- One order for both, so that of two such commits neither waits for the other.
        INSERT INTO blobs (digest, bytes, sealed)
        SELECT digest, bytes, sealed FROM (
            SELECT digest, NULL AS bytes, true AS sealed FROM pg_catalog.unnest(seals) AS new (digest)
            UNION ALL
            SELECT digest, bytes, false FROM unnest(digests, contents) AS new (digest, bytes)
            WHERE digest <> ALL (seals)
        ) AS new ORDER BY digest
        ON CONFLICT (digest) DO UPDATE SET bytes = NULL, sealed = true WHERE EXCLUDED.sealed AND NOT blobs.sealed;
    ELSIF pg_catalog.cardinality(digests) > 0 THEN
        INSERT INTO blobs (digest, bytes)
        SELECT digest, bytes FROM unnest(digests, contents) AS new (digest, bytes)
        ON CONFLICT DO NOTHING;
        GET DIAGNOSTICS put = ROW_COUNT;
    END IF;
    IF pg_catalog.cardinality(seals) > 0 OR put < pg_catalog.cardinality(digests) THEN
        -- One that was named without its bytes has them now.
        UPDATE blobs SET bytes = new.bytes FROM unnest(digests, contents) AS new (digest, bytes)
        WHERE blobs.digest = new.digest AND new.bytes IS NOT NULL AND blobs.bytes IS NULL AND NOT sealed;
    END IF;
    IF pg_catalog.cardinality(lane_numbers) > 0 THEN
        INSERT INTO lanes (episode, number, lane, name, kind)
        SELECT of, new.* FROM unnest(lane_numbers, commit_sealing.lanes, lane_names, lane_kinds) AS new
        ON CONFLICT DO NOTHING;
    END IF;
    IF pg_catalog.cardinality(policy_numbers) > 0 THEN
        INSERT INTO policies (episode, number, place, policy)
        SELECT of, number, place, policy::jsonb
        FROM unnest(policy_numbers, places, commit_sealing.policies) AS new (number, place, policy)
        ON CONFLICT DO NOTHING;
    END IF;
    IF pg_catalog.cardinality(numbers) > 0 THEN
        INSERT INTO departures (episode, number, span, lane, policy, starts, ends, score, sha256, replaced_by, time)
        SELECT of, number, span, lane, policy, start, stop, score, sha256, replacement, to_timestamp(time)
        FROM unnest(numbers, spans, left_lanes, left_policies, starts, ends, scores, sha256s, replacements, times)
             AS new (number, span, lane, policy, start, stop, score, sha256, replacement, time)
        ON CONFLICT DO NOTHING;
    END IF;
    IF pg_catalog.cardinality(seals) = 0 AND put = pg_catalog.cardinality(digests) THEN
        RETURN '{}';
    END IF;
    RETURN sealed_objects(digests, contents);
END
$$;

-- The same without seals, for every agent.
CREATE OR REPLACE FUNCTION commit(
    of bytea, expected bigint, attempt bytea, records bytea[],
    digests bytea[], contents bytea[], seals bytea[], signatures bytea[], holders bytea[],
    lane_numbers bigint[], lanes integer[], lane_names text[], lane_kinds text[],
    policy_numbers bigint[], places integer[], policies text[],
    numbers bigint[], spans bigint[], left_lanes integer[], left_policies bigint[], starts bigint[], ends bigint[],
    scores double precision[], sha256s bytea[], replacements bigint[], times double precision[]
) RETURNS bytea[] LANGUAGE plpgsql STRICT SECURITY DEFINER SET search_path FROM CURRENT AS $$
BEGIN
    IF pg_catalog.cardinality(seals) > 0 THEN
        RAISE EXCEPTION 'a commit with seals is for commit_sealing' USING ERRCODE = 'KS004';
    END IF;
    RETURN commit_sealing(
        of, expected, attempt, records, digests, contents, seals, signatures, holders,
        lane_numbers, lanes, lane_names, lane_kinds, policy_numbers, places, policies, numbers, spans,
        left_lanes, left_policies, starts, ends, scores, sha256s, replacements, times
    );
END
$$;

-- Those of `digests` that came without bytes and are sealed.
CREATE OR REPLACE FUNCTION sealed_objects(digests bytea[], contents bytea[]) RETURNS bytea[] LANGUAGE plpgsql STABLE AS $$
BEGIN
    IF pg_catalog.array_position(contents, NULL) IS NULL THEN
        RETURN '{}';
    END IF;
    RETURN ARRAY(SELECT digest FROM blobs JOIN unnest(digests, contents) AS new (digest, bytes) USING (digest)
                 WHERE new.bytes IS NULL AND sealed);
END
$$;

REVOKE EXECUTE ON FUNCTION commit_sealing FROM PUBLIC;
