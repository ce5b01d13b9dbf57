SELECT age FROM Person GROUP BY age HAVING age * 2 > 60

-- project age
--   filter ((age * 2) > 60)
--     aggregate by age; kernel
--       project age
--         scan Person (by all versions; about 100 rows in 3 segments; columns age)
