SELECT code FROM Person RANK BY CUSTOM(score, 2) LIMIT 3

-- project code, (known((score * 2)) + 0) AS _score
--   limit 3
--     sort (known((score * 2)) + 0) desc, _pk first 3
--       project _pk, code, score, (known((score * 2)) + 0)
--         scan Person (by all versions; about 100 rows in 3 segments; columns _pk, code, score)
