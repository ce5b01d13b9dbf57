/**
 * What clients of Postgres ask its catalogue, in the words that they use: of psql as `psql -E` shows it, of drivers and tools in the
 * shapes of their published sources. `Item` is the type that they look at.
 */
export interface Recorded {
  readonly client: string;
  readonly what: string;
  readonly sql: string;
  readonly parameters?: readonly unknown[];
}

const recorded = (client: string, queries: Readonly<Record<string, string | readonly [string, ...unknown[]]>>): Recorded[] =>
  Object.entries(queries).map(([what, query]) => {
    const [sql, ...parameters] = typeof query === 'string' ? [query] : query;
    return { client, what, sql, ...(parameters.length > 0 && { parameters }) };
  });

const drizzle = recorded('drizzle-kit', {
  tables: `SELECT n.nspname AS table_schema, c.relname AS table_name,
      CASE WHEN c.relkind = 'r' THEN 'table' WHEN c.relkind = 'v' THEN 'view' WHEN c.relkind = 'm' THEN 'materialized_view' END AS type,
      c.relrowsecurity AS rls_enabled
    FROM pg_catalog.pg_class c JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace
    WHERE c.relkind IN ('r', 'v', 'm') AND n.nspname = 'public';`,
  schemas: `select s.nspname as table_schema from pg_catalog.pg_namespace s
    join pg_catalog.pg_user u on u.usesysid = s.nspowner
    where nspname not in ('information_schema', 'pg_catalog', 'public') and nspname not like 'pg_toast%' and nspname not like 'pg_temp_%'
    order by table_schema;`,
  sequences: `select schemaname, sequencename, start_value, min_value, max_value, increment_by, cycle, cache_size from pg_sequences as seq
    WHERE schemaname = 'public';`,
  enums: `select n.nspname as enum_schema, t.typname as enum_name, e.enumlabel as enum_value, e.enumsortorder as sort_order
    from pg_type t join pg_enum e on t.oid = e.enumtypid join pg_catalog.pg_namespace n ON n.oid = t.typnamespace
    WHERE n.nspname = 'public' order by enum_schema, enum_name, sort_order;`,
  roles: 'SELECT rolname, rolinherit, rolcreatedb, rolcreaterole FROM pg_roles;',
  policies: `SELECT schemaname, tablename, policyname as name, permissive as "as", roles as to, cmd as for, qual as using,
      with_check as "withCheck" FROM pg_policies WHERE schemaname = 'public';`,
  columns: `SELECT a.attrelid::regclass::text AS table_name,  -- the table
      a.attname AS column_name,
      CASE WHEN NOT a.attisdropped THEN CASE WHEN a.attnotnull THEN 'NO' ELSE 'YES' END ELSE NULL END AS is_nullable,
      a.attndims AS array_dimensions,
      CASE WHEN a.atttypid = ANY ('{int,int8,int2}'::regtype[])
          AND EXISTS (SELECT FROM pg_attrdef ad WHERE ad.adrelid = a.attrelid AND ad.adnum = a.attnum
            AND pg_get_expr(ad.adbin, ad.adrelid) = 'nextval(''' || pg_get_serial_sequence(a.attrelid::regclass::text, a.attname)::regclass
              || '''::regclass)')
        THEN CASE a.atttypid WHEN 'int'::regtype THEN 'serial' WHEN 'int8'::regtype THEN 'bigserial' WHEN 'int2'::regtype THEN 'smallserial' END
        ELSE format_type(a.atttypid, a.atttypmod) END AS data_type,
      pg_get_serial_sequence('"public"."Item"', a.attname)::regclass AS seq_name,
      c.column_default, c.data_type AS additional_dt, c.udt_name AS enum_name, c.is_generated, c.generation_expression, c.is_identity,
      c.identity_generation, c.identity_start, c.identity_increment, c.identity_maximum, c.identity_minimum, c.identity_cycle,
      enum_ns.nspname AS type_schema
    FROM pg_attribute a JOIN pg_class cls ON cls.oid = a.attrelid JOIN pg_namespace ns ON ns.oid = cls.relnamespace
    LEFT JOIN information_schema.columns c ON c.column_name = a.attname AND c.table_schema = ns.nspname AND c.table_name = cls.relname
    LEFT JOIN pg_type enum_t ON enum_t.oid = a.atttypid
    LEFT JOIN pg_namespace enum_ns ON enum_ns.oid = enum_t.typnamespace
    WHERE a.attnum > 0 AND NOT a.attisdropped AND cls.relkind IN ('r', 'v', 'm') AND ns.nspname = 'public' AND cls.relname = 'Item'
    ORDER BY a.attnum;`,
  constraints: `SELECT c.column_name, c.data_type, constraint_type, constraint_name, constraint_schema
    FROM information_schema.table_constraints tc
    JOIN information_schema.constraint_column_usage AS ccu USING (constraint_schema, constraint_name)
    JOIN information_schema.columns AS c ON c.table_schema = tc.constraint_schema
      AND tc.table_name = c.table_name AND ccu.column_name = c.column_name
    WHERE tc.table_name = 'Item' and constraint_schema = 'public';`,
  checks: `SELECT tc.constraint_name, tc.constraint_type, pg_get_constraintdef(con.oid) AS constraint_definition
    FROM information_schema.table_constraints AS tc
      JOIN pg_constraint AS con ON tc.constraint_name = con.conname AND con.conrelid = (SELECT oid FROM pg_class
        WHERE relname = tc.table_name AND relnamespace = (SELECT oid FROM pg_namespace WHERE nspname = tc.constraint_schema))
    WHERE tc.table_name = 'Item' AND tc.constraint_schema = 'public' AND tc.constraint_type = 'CHECK' AND con.contype = 'c';`,
  'foreign keys': `SELECT con.contype AS constraint_type, nsp.nspname AS constraint_schema, con.conname AS constraint_name,
      rel.relname AS table_name, att.attname AS column_name, fnsp.nspname AS foreign_table_schema, frel.relname AS foreign_table_name,
      fatt.attname AS foreign_column_name,
      CASE con.confupdtype WHEN 'a' THEN 'NO ACTION' WHEN 'r' THEN 'RESTRICT' WHEN 'n' THEN 'SET NULL' END AS update_rule
    FROM pg_catalog.pg_constraint con
      JOIN pg_catalog.pg_class rel ON rel.oid = con.conrelid
      JOIN pg_catalog.pg_namespace nsp ON nsp.oid = con.connamespace
      LEFT JOIN pg_catalog.pg_attribute att ON att.attnum = ANY (con.conkey) AND att.attrelid = con.conrelid
      LEFT JOIN pg_catalog.pg_class frel ON frel.oid = con.confrelid
      LEFT JOIN pg_catalog.pg_namespace fnsp ON fnsp.oid = frel.relnamespace
      LEFT JOIN pg_catalog.pg_attribute fatt ON fatt.attnum = ANY (con.confkey) AND fatt.attrelid = con.confrelid
    WHERE nsp.nspname = 'public' AND rel.relname = 'Item' AND con.contype IN ('f');`,
  'primary key': [
    `SELECT conname AS primary_key FROM pg_constraint join pg_class on (pg_class.oid = conrelid)
    WHERE contype = 'p' AND connamespace = $1::regnamespace AND pg_class.relname = $2;`,
    'public',
    'Item',
  ],
  indexes: `SELECT DISTINCT ON (t.relname, ic.relname, k.i) t.relname as table_name, ic.relname AS indexname, k.i AS index_order,
      i.indisunique as is_unique, am.amname as method, ic.reloptions as with,
      coalesce(a.attname, pg_get_indexdef(i.indexrelid, k.i, false)) AS column_name,
      CASE WHEN pg_get_expr(i.indexprs, i.indrelid) IS NOT NULL THEN 1 ELSE 0 END AS is_expression,
      i.indoption[k.i-1] & 1 = 1 AS descending, i.indoption[k.i-1] & 2 = 2 AS nulls_first,
      pg_get_expr(i.indpred, i.indrelid) as where, opc.opcname
    FROM pg_class t
      LEFT JOIN pg_index i ON t.oid = i.indrelid
      LEFT JOIN pg_class ic ON ic.oid = i.indexrelid
      CROSS JOIN LATERAL (SELECT unnest(i.indkey), generate_subscripts(i.indkey, 1) + 1) AS k(attnum, i)
      LEFT JOIN pg_attribute AS a ON i.indrelid = a.attrelid AND k.attnum = a.attnum
      JOIN pg_namespace c on c.oid = t.relnamespace
      LEFT JOIN pg_am AS am ON ic.relam = am.oid
      JOIN pg_opclass opc ON opc.oid = ANY(i.indclass)
    WHERE c.nspname = 'public' AND t.relname = 'Item';`,
  'indexes of constraints': `SELECT idx.indexrelname AS index_name, idx.relname AS table_name, schemaname,
      CASE WHEN con.conname IS NOT NULL THEN 1 ELSE 0 END AS generated_by_constraint
    FROM pg_stat_user_indexes idx LEFT JOIN pg_constraint con ON con.conindid = idx.indexrelid
    WHERE idx.relname = 'Item' and schemaname = 'public'
    group by index_name, table_name, schemaname, generated_by_constraint;`,
  views: `SELECT c.relname AS view_name, n.nspname AS schema_name, pg_get_viewdef(c.oid, true) AS definition, ts.spcname AS tablespace_name,
      c.reloptions AS options, pg_tablespace_location(ts.oid) AS location
    FROM pg_class c JOIN pg_namespace n ON c.relnamespace = n.oid LEFT JOIN pg_tablespace ts ON c.reltablespace = ts.oid
    WHERE (c.relkind = 'm' OR c.relkind = 'v') AND n.nspname = 'public' AND c.relname = 'cheap';`,
});

const sqlalchemy = recorded('SQLAlchemy', {
  version: 'select pg_catalog.version()',
  schema: 'select current_schema()',
  strings: 'show standard_conforming_strings',
  'has table': [
    `SELECT pg_catalog.pg_class.relname FROM pg_catalog.pg_class
      JOIN pg_catalog.pg_namespace ON pg_catalog.pg_namespace.oid = pg_catalog.pg_class.relnamespace
    WHERE pg_catalog.pg_class.relname = $1::VARCHAR
      AND pg_catalog.pg_class.relkind = ANY (ARRAY[$2::VARCHAR, $3::VARCHAR, $4::VARCHAR, $5::VARCHAR, $6::VARCHAR])
      AND pg_catalog.pg_table_is_visible(pg_catalog.pg_class.oid) AND pg_catalog.pg_namespace.nspname != $7::VARCHAR`,
    'Item',
    'r',
    'p',
    'f',
    'v',
    'm',
    'pg_catalog',
  ],
  columns: [
    `SELECT pg_catalog.pg_attribute.attname AS name,
      pg_catalog.format_type(pg_catalog.pg_attribute.atttypid, pg_catalog.pg_attribute.atttypmod) AS format_type,
      (SELECT pg_catalog.pg_get_expr(pg_catalog.pg_attrdef.adbin, pg_catalog.pg_attrdef.adrelid) AS pg_get_expr_1
       FROM pg_catalog.pg_attrdef
       WHERE pg_catalog.pg_attrdef.adrelid = pg_catalog.pg_attribute.attrelid
         AND pg_catalog.pg_attrdef.adnum = pg_catalog.pg_attribute.attnum AND pg_catalog.pg_attribute.atthasdef) AS "default",
      pg_catalog.pg_attribute.attnotnull AS not_null, pg_catalog.pg_class.relname AS table_name,
      pg_catalog.pg_description.description AS comment, pg_catalog.pg_attribute.attgenerated AS generated, NULL AS identity_options
    FROM pg_catalog.pg_class
      LEFT OUTER JOIN pg_catalog.pg_attribute ON pg_catalog.pg_class.oid = pg_catalog.pg_attribute.attrelid
        AND pg_catalog.pg_attribute.attnum > $1::INTEGER AND NOT pg_catalog.pg_attribute.attisdropped
      LEFT OUTER JOIN pg_catalog.pg_description ON pg_catalog.pg_description.objoid = pg_catalog.pg_attribute.attrelid
        AND pg_catalog.pg_description.objsubid = pg_catalog.pg_attribute.attnum
      JOIN pg_catalog.pg_namespace ON pg_catalog.pg_namespace.oid = pg_catalog.pg_class.relnamespace
    WHERE pg_catalog.pg_class.relkind = ANY (ARRAY['r', 'p', 'f', 'v', 'm'])
      AND pg_catalog.pg_table_is_visible(pg_catalog.pg_class.oid) AND pg_catalog.pg_namespace.nspname != 'pg_catalog'
      AND pg_catalog.pg_class.relname IN ($2::VARCHAR)
    ORDER BY pg_catalog.pg_class.relname, pg_catalog.pg_attribute.attnum`,
    0,
    'Item',
  ],
  'primary key': `SELECT attr.conrelid, array_agg(CAST(attr.attname AS TEXT) ORDER BY attr.ord) AS cols, attr.conname,
      min(attr.description) AS description, NULL AS extra
    FROM (SELECT con.conrelid AS conrelid, con.conname AS conname, con.conindid AS conindid, con.description AS description,
        con.ord AS ord, pg_catalog.pg_attribute.attname AS attname
      FROM pg_catalog.pg_attribute JOIN (
        SELECT pg_catalog.pg_constraint.conrelid AS conrelid, pg_catalog.pg_constraint.conname AS conname,
          pg_catalog.pg_constraint.conindid AS conindid, unnest(pg_catalog.pg_constraint.conkey) AS attnum,
          generate_subscripts(pg_catalog.pg_constraint.conkey, 1) AS ord, pg_catalog.pg_description.description AS description
        FROM pg_catalog.pg_constraint LEFT OUTER JOIN pg_catalog.pg_description
          ON pg_catalog.pg_description.objoid = pg_catalog.pg_constraint.oid
        WHERE pg_catalog.pg_constraint.contype = 'p') AS con
        ON pg_catalog.pg_attribute.attnum = con.attnum AND pg_catalog.pg_attribute.attrelid = con.conrelid
      WHERE con.conrelid IN ('"Item"'::regclass)) AS attr
    GROUP BY attr.conrelid, attr.conname ORDER BY attr.conrelid, attr.conname`,
  indexes: `SELECT pg_catalog.pg_index.indrelid, pg_class_1.relname AS relname_index, pg_catalog.pg_index.indisunique,
      pg_catalog.pg_constraint.conrelid IS NOT NULL AS has_constraint, pg_catalog.pg_index.indoption, pg_class_1.reloptions, pg_catalog.pg_am.amname,
      CASE WHEN (pg_catalog.pg_index.indpred IS NOT NULL)
        THEN pg_catalog.pg_get_expr(pg_catalog.pg_index.indpred, pg_catalog.pg_index.indrelid) END AS filter_definition,
      pg_catalog.pg_index.indnkeyatts, idx_cols.elements, idx_cols.elements_is_expr
    FROM pg_catalog.pg_index
      JOIN pg_catalog.pg_class AS pg_class_1 ON pg_catalog.pg_index.indexrelid = pg_class_1.oid
      JOIN pg_catalog.pg_am ON pg_class_1.relam = pg_catalog.pg_am.oid
      LEFT OUTER JOIN (
        SELECT idx.indexrelid, idx.indrelid,
          array_agg(CASE WHEN (attr.attname IS NOT NULL) THEN CAST(attr.attname AS TEXT) ELSE pg_get_indexdef(idx.indexrelid, idx.ord + 1, true) END
            ORDER BY idx.ord) AS elements,
          array_agg(attr.attname IS NULL ORDER BY idx.ord) AS elements_is_expr
        FROM (SELECT indexrelid, indrelid, unnest(indkey) AS attnum, generate_subscripts(indkey, 1) AS ord FROM pg_catalog.pg_index) AS idx
          LEFT OUTER JOIN pg_catalog.pg_attribute AS attr ON attr.attnum = idx.attnum AND attr.attrelid = idx.indrelid
        GROUP BY idx.indexrelid, idx.indrelid) AS idx_cols
        ON pg_catalog.pg_index.indexrelid = idx_cols.indexrelid AND pg_catalog.pg_index.indrelid = idx_cols.indrelid
      LEFT OUTER JOIN pg_catalog.pg_constraint ON pg_catalog.pg_index.indrelid = pg_catalog.pg_constraint.conrelid
        AND pg_catalog.pg_index.indexrelid = pg_catalog.pg_constraint.conindid
        AND pg_catalog.pg_constraint.contype = ANY (ARRAY['p', 'u', 'x'])
    WHERE pg_catalog.pg_index.indrelid IN ('"Item"'::regclass) AND pg_catalog.pg_index.indisprimary
    ORDER BY pg_catalog.pg_index.indrelid, pg_class_1.relname`,
  'table names': `SELECT pg_catalog.pg_class.relname FROM pg_catalog.pg_class
      JOIN pg_catalog.pg_namespace ON pg_catalog.pg_namespace.oid = pg_catalog.pg_class.relnamespace
    WHERE pg_catalog.pg_class.relkind = ANY (ARRAY['r', 'p']) AND pg_catalog.pg_class.relpersistence != 't'
      AND pg_catalog.pg_table_is_visible(pg_catalog.pg_class.oid) AND pg_catalog.pg_namespace.nspname != 'pg_catalog'`,
  hstore: `SELECT t.oid, typarray FROM pg_type t JOIN pg_namespace ns ON typnamespace = ns.oid WHERE typname = 'hstore'`,
});

const dbeaver = recorded('DBeaver', {
  databases: `SELECT db.oid,db.*,pg_catalog.shobj_description(db.oid, 'pg_database') as description FROM pg_catalog.pg_database db
    WHERE datallowconn AND NOT datistemplate ORDER BY db.datname`,
  session: 'SELECT current_schema(), session_user',
  schemas: `SELECT n.oid,n.*,d.description FROM pg_catalog.pg_namespace n
    LEFT OUTER JOIN pg_catalog.pg_description d ON d.objoid=n.oid AND d.objsubid=0 AND d.classoid='pg_namespace'::regclass ORDER BY nspname`,
  types: `SELECT t.oid,t.*,c.relkind,format_type(nullif(t.typbasetype, 0), t.typtypmod) as base_type_name, d.description
    FROM pg_catalog.pg_type t
      LEFT OUTER JOIN pg_catalog.pg_type et ON et.oid=t.typelem
      LEFT OUTER JOIN pg_catalog.pg_class c ON c.oid=t.typrelid
      LEFT OUTER JOIN pg_catalog.pg_description d ON t.oid=d.objoid
    WHERE t.typname IS NOT NULL AND (c.relkind IS NULL OR c.relkind = 'c') AND (et.typcategory IS NULL OR et.typcategory <> 'C')
    ORDER BY t.oid`,
  tables: [
    `SELECT c.oid,c.*,d.description,pg_catalog.pg_get_expr(c.relpartbound, c.oid) as partition_expr, pg_catalog.pg_get_partkeydef(c.oid) as partition_key
    FROM pg_catalog.pg_class c
      LEFT OUTER JOIN pg_catalog.pg_description d ON d.objoid=c.oid AND d.objsubid=0 AND d.classoid='pg_class'::regclass
    WHERE c.relnamespace=$1 AND c.relkind not in ('i','I','c')`,
    2200,
  ],
  columns: [
    `SELECT c.relname,a.*,pg_catalog.pg_get_expr(ad.adbin, ad.adrelid, true) as def_value,dsc.description,dep.objid
    FROM pg_catalog.pg_attribute a
      INNER JOIN pg_catalog.pg_class c ON (a.attrelid=c.oid)
      LEFT OUTER JOIN pg_catalog.pg_attrdef ad ON (a.attrelid=ad.adrelid AND a.attnum = ad.adnum)
      LEFT OUTER JOIN pg_catalog.pg_description dsc ON (c.oid=dsc.objoid AND a.attnum = dsc.objsubid)
      LEFT OUTER JOIN pg_depend dep on dep.refobjid = a.attrelid AND dep.deptype = 'i' and dep.refobjsubid = a.attnum and dep.classid = dep.refclassid
    WHERE NOT a.attisdropped AND c.relkind not in ('i','I','c') AND c.relname=$1 ORDER BY a.attnum`,
    'Item',
  ],
  constraints: [
    `SELECT c.oid,c.*,t.relname as tabrelname,rt.relnamespace as refnamespace,d.description,
      case when c.contype='c' then "substring"(pg_get_constraintdef(c.oid), 7) else null end consrc_copy
    FROM pg_catalog.pg_constraint c
      INNER JOIN pg_catalog.pg_class t ON t.oid=c.conrelid
      LEFT OUTER JOIN pg_catalog.pg_class rt ON rt.oid=c.confrelid
      LEFT OUTER JOIN pg_catalog.pg_description d ON d.objoid=c.oid AND d.objsubid=0 AND d.classoid='pg_constraint'::regclass
    WHERE t.relname=$1 ORDER BY c.oid`,
    'Item',
  ],
  indexes: [
    `SELECT i.*,i.indkey as keys,c.relname,c.relnamespace,c.relam,c.reltablespace,tc.relname as tabrelname,dsc.description,
      pg_catalog.pg_get_expr(i.indpred, i.indrelid) as pred_expr,pg_catalog.pg_get_expr(i.indexprs, i.indrelid, true) as expr,
      pg_catalog.pg_relation_size(i.indexrelid) as index_rel_size,pg_catalog.pg_stat_get_numscans(i.indexrelid) as index_num_scans
    FROM pg_catalog.pg_index i
      INNER JOIN pg_catalog.pg_class c ON c.oid=i.indexrelid
      INNER JOIN pg_catalog.pg_class tc ON tc.oid=i.indrelid
      LEFT OUTER JOIN pg_catalog.pg_description dsc ON i.indexrelid=dsc.objoid
    WHERE i.indrelid=$1 ORDER BY tabrelname, c.relname`,
    1,
  ],
  settings: "SELECT setting FROM pg_catalog.pg_settings WHERE name='standard_conforming_strings'",
  roles: `SELECT a.oid,a.*,pd.description FROM pg_catalog.pg_roles a
    left join pg_catalog.pg_shdescription pd on a.oid = pd.objoid ORDER BY a.rolname`,
});

const metabase = recorded('Metabase', {
  tables: `SELECT n.nspname AS schema, c.relname AS name,
      CASE c.relkind WHEN 'r' THEN 'TABLE' WHEN 'p' THEN 'PARTITIONED TABLE' WHEN 'v' THEN 'VIEW' WHEN 'm' THEN 'MATERIALIZED VIEW' ELSE NULL END AS type,
      d.description AS description, NULLIF(stat.n_live_tup, 0) AS estimated_row_count
    FROM pg_catalog.pg_class c INNER JOIN pg_catalog.pg_namespace n ON c.relnamespace = n.oid
      LEFT JOIN pg_catalog.pg_description d ON (c.oid = d.objoid) AND (d.objsubid = 0) AND (d.classoid = 'pg_class'::REGCLASS)
      LEFT JOIN pg_stat_user_tables stat ON (n.nspname = stat.schemaname) AND (c.relname = stat.relname)
    WHERE (n.nspname !~ '^pg_') AND (n.nspname <> 'information_schema') AND c.relkind IN ('r', 'p', 'v', 'f', 'm') AND (n.nspname IN ('public'))
    ORDER BY type ASC, schema ASC, name ASC`,
  fields: `SELECT c.column_name AS name,
      CASE WHEN c.udt_schema IN ('public', 'pg_catalog') THEN FORMAT('%s', c.udt_name) ELSE FORMAT('"%s"."%s"', c.udt_schema, c.udt_name) END AS "database-type",
      c.ordinal_position - 1 AS "database-position", c.table_schema AS "table-schema", c.table_name AS "table-name",
      pk.column_name IS NOT NULL AS "pk?",
      COL_DESCRIPTION(CAST(CAST(FORMAT('%I.%I', CAST(c.table_schema AS TEXT), CAST(c.table_name AS TEXT)) AS REGCLASS) AS OID), c.ordinal_position) AS "field-comment",
      ((c.column_default IS NULL) OR (LOWER(c.column_default) = 'null')) AND (c.is_nullable = 'NO')
        AND NOT (((c.column_default IS NOT NULL) AND (c.column_default LIKE '%nextval(%')) OR (c.is_identity <> 'NO')) AS "database-required",
      ((c.column_default IS NOT NULL) AND (c.column_default LIKE '%nextval(%')) OR (c.is_identity <> 'NO') AS "database-is-auto-increment"
    FROM information_schema.columns AS c
      LEFT JOIN (SELECT tc.table_schema, tc.table_name, kc.column_name FROM information_schema.table_constraints AS tc
        INNER JOIN information_schema.key_column_usage AS kc ON (tc.constraint_name = kc.constraint_name)
          AND (tc.table_schema = kc.table_schema) AND (tc.table_name = kc.table_name)
        WHERE tc.constraint_type = 'PRIMARY KEY') AS pk
        ON (c.table_schema = pk.table_schema) AND (c.table_name = pk.table_name) AND (c.column_name = pk.column_name)
    WHERE c.table_schema !~ '^information_schema|catalog_history|pg_' AND (c.table_schema IN ('public')) AND (c.table_name IN ('Item'))
    UNION ALL
    SELECT pa.attname AS name,
      CASE WHEN ptn.nspname IN ('public', 'pg_catalog') THEN FORMAT('%s', pt.typname) ELSE FORMAT('"%s"."%s"', ptn.nspname, pt.typname) END AS "database-type",
      pa.attnum - 1 AS "database-position", pn.nspname AS "table-schema", pc.relname AS "table-name", FALSE AS "pk?", NULL AS "field-comment",
      FALSE AS "database-required", FALSE AS "database-is-auto-increment"
    FROM pg_catalog.pg_class AS pc INNER JOIN pg_catalog.pg_namespace AS pn ON pn.oid = pc.relnamespace
      INNER JOIN pg_catalog.pg_attribute AS pa ON pa.attrelid = pc.oid
      INNER JOIN pg_catalog.pg_type AS pt ON pt.oid = pa.atttypid
      INNER JOIN pg_catalog.pg_namespace AS ptn ON ptn.oid = pt.typnamespace
    WHERE (pc.relkind = 'm') AND (pa.attnum >= 1) AND (pn.nspname IN ('public')) AND (pc.relname IN ('cheap'))
    ORDER BY "table-schema" ASC, "table-name" ASC, "database-position" ASC`,
  privileges: `with table_privileges as (
      select NULL as role, t.schemaname as schema, t.objectname as table,
        pg_catalog.has_any_column_privilege(current_user, '"' || replace(t.schemaname, '"', '""') || '"' || '.' || '"' || replace(t.objectname, '"', '""') || '"', 'update') as update,
        pg_catalog.has_any_column_privilege(current_user, '"' || replace(t.schemaname, '"', '""') || '"' || '.' || '"' || replace(t.objectname, '"', '""') || '"', 'select') as select
      from (
        select schemaname, tablename as objectname from pg_catalog.pg_tables
        union select schemaname, viewname as objectname from pg_catalog.pg_views
        union select schemaname, matviewname as objectname from pg_catalog.pg_matviews) t
      where t.schemaname !~ '^pg_' and t.schemaname <> 'information_schema'
        and pg_catalog.has_schema_privilege(current_user, t.schemaname, 'USAGE'))
    select t.* from table_privileges t where t.select or t.update order by 3`,
  'foreign keys': `SELECT fk_ns.nspname AS "fk-table-schema", fk_table.relname AS "fk-table-name", fk_column.attname AS "fk-column-name",
      pk_ns.nspname AS "pk-table-schema", pk_table.relname AS "pk-table-name", pk_column.attname AS "pk-column-name"
    FROM pg_constraint AS c
      INNER JOIN pg_class AS fk_table ON c.conrelid = fk_table.oid
      INNER JOIN pg_namespace AS fk_ns ON c.connamespace = fk_ns.oid
      INNER JOIN pg_attribute AS fk_column ON c.conrelid = fk_column.attrelid
      INNER JOIN pg_class AS pk_table ON c.confrelid = pk_table.oid
      INNER JOIN pg_namespace AS pk_ns ON pk_table.relnamespace = pk_ns.oid
      INNER JOIN pg_attribute AS pk_column ON c.confrelid = pk_column.attrelid
    WHERE fk_ns.nspname !~ '^information_schema|catalog_history|pg_' AND (c.contype = 'f')
      AND (fk_column.attnum = ANY(c.conkey)) AND (pk_column.attnum = ANY(c.confkey))
    ORDER BY fk_ns.nspname ASC, fk_table.relname ASC`,
  enums: `SELECT nspname, typname FROM pg_catalog.pg_type t INNER JOIN pg_catalog.pg_namespace n ON n.oid = t.typnamespace
    WHERE t.oid IN (SELECT DISTINCT e.enumtypid FROM pg_catalog.pg_enum e)`,
});

const typeInfo = `(
    SELECT
        t.oid                           AS oid,
        ns.nspname                      AS ns,
        t.typname                       AS name,
        t.typtype                       AS kind,
        (CASE WHEN t.typtype = 'd' THEN
            (WITH RECURSIVE typebases(oid, depth) AS (
                SELECT
                    t2.typbasetype      AS oid,
                    0                   AS depth
                FROM
                    pg_type t2
                WHERE
                    t2.oid = t.oid

                UNION ALL

                SELECT
                    t2.typbasetype      AS oid,
                    tb.depth + 1        AS depth
                FROM
                    pg_type t2,
                    typebases tb
                WHERE
                   tb.oid = t2.oid
                   AND t2.typbasetype != 0
           ) SELECT oid FROM typebases ORDER BY depth DESC LIMIT 1)

           ELSE NULL
        END)                            AS basetype,
        t.typelem                       AS elemtype,
        elem_t.typdelim                 AS elemdelim,
        COALESCE(
            range_t.rngsubtype,
            multirange_t.rngsubtype)    AS range_subtype,
        (CASE WHEN t.typtype = 'c' THEN
            (SELECT
                array_agg(ia.atttypid ORDER BY ia.attnum)
            FROM
                pg_attribute ia
                INNER JOIN pg_class c
                    ON (ia.attrelid = c.oid)
            WHERE
                ia.attnum > 0 AND NOT ia.attisdropped
                AND c.reltype = t.oid)

            ELSE NULL
        END)                            AS attrtypoids,
        (CASE WHEN t.typtype = 'c' THEN
            (SELECT
                array_agg(ia.attname::text ORDER BY ia.attnum)
            FROM
                pg_attribute ia
                INNER JOIN pg_class c
                    ON (ia.attrelid = c.oid)
            WHERE
                ia.attnum > 0 AND NOT ia.attisdropped
                AND c.reltype = t.oid)

            ELSE NULL
        END)                            AS attrnames
    FROM
        pg_catalog.pg_type AS t
        INNER JOIN pg_catalog.pg_namespace ns ON (
            ns.oid = t.typnamespace)
        LEFT JOIN pg_type elem_t ON (
            t.typlen = -1 AND
            t.typelem != 0 AND
            t.typelem = elem_t.oid
        )
        LEFT JOIN pg_range range_t ON (
            t.oid = range_t.rngtypid
        )
        LEFT JOIN pg_range multirange_t ON (
            t.oid = multirange_t.rngmultitypid
        )
    )`;

const asyncpg = recorded('asyncpg', {
  'types of columns': [
    `WITH RECURSIVE typeinfo_tree(
    oid, ns, name, kind, basetype, elemtype, elemdelim,
    range_subtype, attrtypoids, attrnames, depth)
AS (
    SELECT
        ti.oid, ti.ns, ti.name, ti.kind, ti.basetype,
        ti.elemtype, ti.elemdelim, ti.range_subtype,
        ti.attrtypoids, ti.attrnames, 0
    FROM
            ${typeInfo}
 AS ti
    WHERE
        ti.oid = any($1::oid[])

    UNION ALL

    SELECT
        ti.oid, ti.ns, ti.name, ti.kind, ti.basetype,
        ti.elemtype, ti.elemdelim, ti.range_subtype,
        ti.attrtypoids, ti.attrnames, tt.depth + 1
    FROM
            ${typeInfo}
 ti,
        typeinfo_tree tt
    WHERE
        (tt.elemtype IS NOT NULL AND ti.oid = tt.elemtype)
        OR (tt.attrtypoids IS NOT NULL AND ti.oid = any(tt.attrtypoids))
        OR (tt.range_subtype IS NOT NULL AND ti.oid = tt.range_subtype)
        OR (tt.basetype IS NOT NULL AND ti.oid = tt.basetype)
)

SELECT DISTINCT
    *,
    basetype::regtype::text AS basetype_name,
    elemtype::regtype::text AS elemtype_name,
    range_subtype::regtype::text AS range_subtype_name
FROM
    typeinfo_tree
ORDER BY
    depth DESC`,
    '{16385,1007,25}',
  ],
});

export const recordedSessions: readonly Recorded[] = [...drizzle, ...sqlalchemy, ...dbeaver, ...metabase, ...asyncpg];
