SELECT city FROM Person WHERE code IN ('a', 'b', 'c') AND _pk = 'a'

-- project city
--   filter ((code in ('a', 'b', 'c')) and (_pk = 'a'))
--     scan Person (by primary key; about 1 rows in 3 segments; columns _pk, code, city; keys 1; zone _pk = 'a')
