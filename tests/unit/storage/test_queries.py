from longstop.storage.sqlite.load_sql_and_migrate import Database, queries, sql_folder


def test_every_statement_is_found_under_its_name() -> None:
    found = queries("migrations.sql")

    assert set(found) == {"create_migrations", "has_migrations", "applied_migrations", "record_migration"}
    assert found["applied_migrations"].endswith("SELECT number, name, checksum FROM migrations ORDER BY number;")


def test_every_statement_says_in_a_sentence_what_it_is_for() -> None:
    files = ["migrations.sql", *(f"{database.value}/queries.sql" for database in Database)]

    unsaid = [f"{path}: {name}" for path in files for name, text in queries(path).items() if not text.startswith("-- ")]

    assert unsaid == []


def test_no_name_is_given_twice() -> None:
    for database in Database:
        path = f"{database.value}/queries.sql"
        assert (sql_folder() / path).read_text(encoding="utf-8").count("-- name: ") == len(queries(path))
