SELECT city, SUM(age * 2), AVG(score) AS mean, COUNT(*) FROM Person WHERE age > 25 GROUP BY city

-- project city, sum, avg AS mean, count
--   aggregate sum((age * 2)) avg(score) count(*) by city; kernel
--     project city, (age * 2), score
--       filter (age > 25); kernel
--         scan Person (by all versions; about 100 rows in 3 segments; columns city, age, score; zone age > 25)
