SELECT city FROM Person GROUP BY city HAVING city LIKE 'O%' AND COUNT(*) > 3 AND MAX(age) < 90

-- project city
--   filter ((count > 3) and (max < 90))
--     aggregate count(*) max(age) by city; kernel
--       project city, age
--         filter (city like 'O%'); kernel
--           scan Person (by all versions; about 100 rows in 3 segments; columns city, age)
