SELECT Person.code, c.country FROM City c JOIN Person ON Person.city = c.name AND Person.age > 30

-- project code, country
--   join inner on name = city; holding left
--     scan City (by all versions; about 3 rows in 1 segments; columns name, country)
--     filter (age > 30); kernel
--       scan Person (by all versions; about 100 rows in 3 segments; columns code, city, age; zone age > 30)
