SELECT DISTINCT city, age % 10 AS digit FROM Person ORDER BY digit, city COLLATE UNICODE LIMIT 5

-- limit 5
--   sort digit, city collate unicode first 5
--     distinct
--       project city, (age % 10) AS digit
--         scan Person (by all versions; about 100 rows in 3 segments; columns city, age)
