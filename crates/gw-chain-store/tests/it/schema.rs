//! The schema: equal to the golden file of each engine.

use crate::world::{World, on_both_engines};

on_both_engines! {
    the_schema_is_the_golden_one,
}

const SQLITE: &str = "SELECT sql AS line FROM sqlite_master WHERE sql IS NOT NULL ORDER BY tbl_name, type DESC, name";

const POSTGRES: &str = "SELECT line FROM ( \
      SELECT 1 AS rank, table_name::TEXT AS of, ordinal_position::INT AS place, \
        'column ' || table_name || '.' || column_name || ' ' || data_type \
        || CASE is_nullable WHEN 'NO' THEN ' not null' ELSE '' END \
        || COALESCE(' default ' || column_default, '') AS line \
      FROM information_schema.columns WHERE table_schema = current_schema() \
    UNION ALL \
      SELECT 2, conrelid::REGCLASS::TEXT, 0, \
        'constraint ' || conrelid::REGCLASS::TEXT || '.' || conname || ' ' || pg_get_constraintdef(oid) \
      FROM pg_constraint WHERE connamespace = current_schema()::REGNAMESPACE AND conrelid <> 0 AND contype <> 'n' \
    UNION ALL \
      SELECT 3, tablename::TEXT, 0, 'index ' || regexp_replace(indexdef, ' ON [a-z_]+\\.', ' ON ') \
      FROM pg_indexes WHERE schemaname = current_schema() \
        AND indexname NOT IN (SELECT conname FROM pg_constraint WHERE connamespace = current_schema()::REGNAMESPACE) \
    ) AS objects ORDER BY of COLLATE \"C\", rank, place, line COLLATE \"C\"";

async fn the_schema_is_the_golden_one(world: &World) {
    let sql = if world.engine == "sqlite" { SQLITE } else { POSTGRES };
    let lines = world.query(sql).await;
    let lines = lines
        .iter()
        .map(|row| row.try_get::<String>("", "line").unwrap() + "\n");
    let schema: String = lines.collect();
    let path = format!("{}/tests/it/golden/{}.txt", env!("CARGO_MANIFEST_DIR"), world.engine);
    if std::fs::read_to_string(&path).unwrap_or_default() != schema {
        let new = format!(
            "{}/chain-store-{}-schema.txt",
            env!("CARGO_TARGET_TMPDIR"),
            world.engine
        );
        std::fs::write(&new, schema).unwrap();
        panic!("the schema is not {path}; compare with {new} and, if the change is wanted, copy it there");
    }
}
