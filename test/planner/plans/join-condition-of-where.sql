SELECT p.code FROM Person p JOIN City c ON 1 = 1 WHERE p.city = c.name AND c.country = 'N' AND p.age + c.founded > 20

-- project code
--   filter ((age + founded) > 20)
--     join inner on city = name; where true; holding right
--       scan Person (by all versions; about 100 rows in 3 segments; columns code, city, age)
--       filter (country = 'N'); kernel
--         scan City (by all versions; about 3 rows in 1 segments; columns name, country, founded; zone country = 'N')
