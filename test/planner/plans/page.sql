SELECT code FROM Person WHERE city = 'Oslo' LIMIT 10 AFTER '1004'

-- project code
--   limit 10
--     filter (city = 'Oslo'); kernel
--       scan Person (by all versions; about 100 rows in 3 segments; columns system_from, code, city; after 1004; zone city = 'Oslo')
