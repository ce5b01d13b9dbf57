SELECT code FROM Person WHERE age = 3 OR age = 4 OR city = 'Oslo' OR age IN (7, 8)

-- project code
--   filter ((age in (3, 4, 7, 8)) or (city = 'Oslo'))
--     scan Person (by all versions; about 100 rows in 3 segments; columns code, city, age)
