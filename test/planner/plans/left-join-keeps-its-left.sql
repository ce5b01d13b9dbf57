SELECT p.code, c.country FROM Person p LEFT JOIN City c ON p.city = c.name AND c.country = 'N' AND p.age > 20 WHERE p.score > 1 AND c.country IS NULL

-- project code, country
--   filter (country is null)
--     join left on city = name; where (age > 20); holding right
--       filter (score > 1); kernel
--         scan Person (by all versions; about 100 rows in 3 segments; columns code, city, age, score; zone score > 1)
--       filter (country = 'N'); kernel
--         scan City (by all versions; about 3 rows in 1 segments; columns name, country; zone country = 'N')
