SELECT * FROM Person WHERE code = 'p7'

-- project _pk, id, tenant_id, namespace_path, valid_from, valid_to, system_from, system_to, code, city, age, score, joined
--   filter (code = 'p7')
--     scan Person (by primary key; about 1 rows in 3 segments; columns _pk, id, tenant_id, namespace_path, valid_from, valid_to, system_from, system_to, code, city, age, score, joined; keys 1; zone _pk = 'p7')
