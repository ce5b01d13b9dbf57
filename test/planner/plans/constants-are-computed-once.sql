SELECT age FROM Person WHERE age > 2 * 15 + 1 AND 1 = 1

-- project age
--   filter ((age > 31) and true); kernel
--     scan Person (by all versions; about 100 rows in 3 segments; columns age; zone age > 31)
