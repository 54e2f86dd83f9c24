"""What a PostgreSQL database itself refuses to everybody: the same as in a file, and TRUNCATE as well."""

from collections.abc import Iterator

from orchestrator.ledger.chain import GENESIS

MARK = "a ledger of blastdoor"

# Every name is written out with its schema, so that nothing depends on who fires the trigger. The fence is read with a
# lock: an insert and a seizure are never under way at once, whatever client they come from.
_FUNCTIONS = (
    """CREATE FUNCTION {schema}.refuse() RETURNS trigger LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
    BEGIN
        RAISE EXCEPTION USING MESSAGE = TG_ARGV[0], ERRCODE = 'integrity_constraint_violation';
    END $$""",
    """CREATE FUNCTION {schema}.follow() RETURNS trigger LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
    DECLARE
        allowed bigint;
        last_seq bigint;
        last_hash text;
    BEGIN
        SELECT epoch INTO allowed FROM {schema}.fence FOR SHARE;
        IF NEW.epoch IS DISTINCT FROM allowed THEN
            RAISE EXCEPTION USING MESSAGE = 'another orchestrator has taken over',
                ERRCODE = 'integrity_constraint_violation';
        END IF;
        SELECT seq, hash INTO last_seq, last_hash FROM {schema}.events ORDER BY seq DESC LIMIT 1;
        IF NEW.seq IS DISTINCT FROM coalesce(last_seq, 0) + 1
            OR NEW.previous IS DISTINCT FROM coalesce(last_hash, '{genesis}') THEN
            RAISE EXCEPTION USING MESSAGE = 'an event follows the last one', ERRCODE = 'integrity_constraint_violation';
        END IF;
        RETURN NEW;
    END $$""",
    """CREATE FUNCTION {schema}.rise() RETURNS trigger LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
    BEGIN
        IF NEW.epoch <= OLD.epoch OR NEW.id <> OLD.id THEN
            RAISE EXCEPTION USING MESSAGE = 'an epoch never goes back', ERRCODE = 'integrity_constraint_violation';
        END IF;
        RETURN NEW;
    END $$""",
)

# For each statement, not each row: also one that would touch no row is refused.
_REFUSED = (
    ("events", "UPDATE", "events never change"),
    ("events", "DELETE OR TRUNCATE", "events never go"),
    ("fence", "DELETE OR TRUNCATE", "the fence stays"),
    ("requests", "UPDATE", "requests never change"),
    ("requests", "DELETE OR TRUNCATE", "requests never go"),
)


def statements(schema: str) -> Iterator[str]:
    """After the tables are made. The name is ours, so it needs no quoting."""
    for function in _FUNCTIONS:
        yield function.format(schema=schema, genesis=GENESIS)
    for number, (table, what, why) in enumerate(_REFUSED):
        yield (
            f"CREATE TRIGGER refuse_{number} BEFORE {what} ON {schema}.{table}"
            f" FOR EACH STATEMENT EXECUTE FUNCTION {schema}.refuse('{why}')"
        )
    yield (f"CREATE TRIGGER follow BEFORE INSERT ON {schema}.events FOR EACH ROW EXECUTE FUNCTION {schema}.follow()")
    yield f"CREATE TRIGGER rise BEFORE UPDATE ON {schema}.fence FOR EACH ROW EXECUTE FUNCTION {schema}.rise()"
    # Last: a schema without this mark is not ours, or was not finished.
    yield f"COMMENT ON SCHEMA {schema} IS '{MARK}'"
