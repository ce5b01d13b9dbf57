SELECT code FROM (SELECT code, age FROM Person ORDER BY age LIMIT 5) WHERE age > 21

-- project code
--   project code
--     filter (age > 21)
--       limit 5
--         sort age, _pk first 5
--           scan Person (by all versions; about 100 rows in 3 segments; columns _pk, code, age)
