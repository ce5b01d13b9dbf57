SELECT p.code, c.country FROM Person p FULL JOIN City c ON p.city = c.name AND p.age > 20 WHERE p.score > 1

-- project code, country
--   filter (score > 1)
--     join full on city = name; where (age > 20); holding right
--       scan Person (by all versions; about 100 rows in 3 segments; columns code, city, age, score)
--       scan City (by all versions; about 3 rows in 1 segments; columns name, country)
