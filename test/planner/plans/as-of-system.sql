SELECT age FROM Person AS OF SYSTEM TIME '2024-01-01T00:00:00.000000005Z' WHERE city = 'Oslo'

-- project age
--   filter (city = 'Oslo'); kernel
--     scan Person (by as of; about 100 rows in 3 segments; columns city, age; known at 2024-01-01T00:00:00.000000005Z; zone city = 'Oslo')
