SELECT code FROM Person WHERE city IN (SELECT name FROM City WHERE country = 'N')

-- project code
--   filter (city in set 1); kernel
--     scan Person (by all versions; about 100 rows in 3 segments; columns code, city)
-- set 1
--   project name
--     filter (country = 'N'); kernel
--       scan City (by all versions; about 3 rows in 1 segments; columns name, country; zone country = 'N')
