/** Numbers of the catalogue's relations. */
import { relationColumns } from './relation-columns.ts';

/** Numbers that clients write out; the others follow on 12,000. */
const wellKnownOids: Readonly<Record<string, number>> = {
  pg_type: 1247,
  pg_attribute: 1249,
  pg_proc: 1255,
  pg_class: 1259,
  pg_database: 1262,
  pg_tablespace: 1213,
  pg_am: 2601,
  pg_attrdef: 2604,
  pg_cast: 2605,
  pg_constraint: 2606,
  pg_conversion: 2607,
  pg_description: 2609,
  pg_index: 2610,
  pg_inherits: 2611,
  pg_language: 2612,
  pg_namespace: 2615,
  pg_opclass: 2616,
  pg_rewrite: 2618,
  pg_trigger: 2620,
  pg_extension: 3079,
  pg_policy: 3256,
  pg_collation: 3456,
  pg_enum: 3501,
  pg_publication: 6104,
};

export const relationOids: ReadonlyMap<string, number> = new Map(
  relationColumns.map(({ schema, name }, i) => [
    `${schema}.${name}`,
    (schema === 'pg_catalog' ? wellKnownOids[name] : undefined) ?? 12_000 + i,
  ]),
);
