SELECT city FROM Person WHERE code = 'p7' OR age = 3

-- project city
--   filter ((code = 'p7') or (age = 3))
--     scan Person (by all versions; about 100 rows in 3 segments; columns code, city, age)
