SELECT city FROM Person AS OF CURRENT WHERE _pk IN ('p7', 'p9') AND age > 30

-- project city
--   filter ((_pk in ('p7', 'p9')) and (age > 30))
--     scan Person (by primary key; about 2 rows in 3 segments; columns _pk, city, age; valid at 2024-01-01T00:00:00Z; known at 2024-01-01T00:00:00Z; keys 2; zone age > 30)
