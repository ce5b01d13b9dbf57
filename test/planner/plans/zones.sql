SELECT city FROM Person WHERE 30 <= age AND 40 > age AND joined < '1970-02-01' AND city != 'Rome' AND score = 3

-- project city
--   filter ((30 <= age) and (40 > age) and (joined < 2678400000000000) and (city != 'Rome') and (score = 3)); kernel
--     scan Person (by all versions; about 100 rows in 3 segments; columns city, age, score, joined; zone age >= 30; zone age < 40; zone joined < 2678400000000000; zone score = 3)
