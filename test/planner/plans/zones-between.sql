SELECT age FROM Person WHERE age BETWEEN 30 AND 40 AND joined > now() - INTERVAL '30 days'

-- project age
--   filter ((age between 30 and 40) and (joined > 1701475200000000000)); kernel
--     scan Person (by all versions; about 100 rows in 3 segments; columns age, joined; zone age >= 30; zone age <= 40; zone joined > 1701475200000000000)
