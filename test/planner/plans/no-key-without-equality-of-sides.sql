SELECT p.code FROM Person p JOIN City c ON p.city < c.name OR p.age = c.founded

-- project code
--   join inner where ((city < name) or (age = founded)); holding right
--     scan Person (by all versions; about 100 rows in 3 segments; columns code, city, age)
--     scan City (by all versions; about 3 rows in 1 segments; columns name, founded)
