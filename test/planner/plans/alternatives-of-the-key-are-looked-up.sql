SELECT city FROM Person WHERE code = 'p7' OR code = 'p9'

-- project city
--   filter (code in ('p7', 'p9'))
--     scan Person (by primary key; about 2 rows in 3 segments; columns code, city; keys 2)
