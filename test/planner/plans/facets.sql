SELECT code FROM Person WHERE age > 30 LIMIT 1 FACETS city, age

-- project code
--   limit 1
--     filter (age > 30); kernel
--       scan Person (by all versions; about 100 rows in 3 segments; columns system_from, code, age; zone age > 30)
-- facets
--   project city, age
--     filter (age > 30); kernel
--       scan Person (by all versions; about 100 rows in 3 segments; columns city, age; zone age > 30)
