SELECT city FROM Person ORDER BY score * -1, joined DESC LIMIT 3

-- project city
--   limit 3
--     sort (score * -1), joined desc, _pk first 3
--       project _pk, city, joined, (score * -1)
--         scan Person (by all versions; about 100 rows in 3 segments; columns _pk, city, score, joined)
