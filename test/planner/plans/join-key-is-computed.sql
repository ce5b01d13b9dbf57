SELECT p.code FROM Person p JOIN City c ON p.age - 20 = c.founded AND p.score = c.founded

-- project code
--   project code
--     join inner on score = founded and (age - 20) = founded; where (score = founded); holding right
--       project code, score, (age - 20)
--         scan Person (by all versions; about 100 rows in 3 segments; columns code, age, score)
--       scan City (by all versions; about 3 rows in 1 segments; columns founded)
