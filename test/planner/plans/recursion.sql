WITH RECURSIVE older(code, age) AS (SELECT code, age FROM Person WHERE age = 20 UNION SELECT p.code, p.age FROM older o JOIN Person p ON p.age = o.age + 1) SELECT code FROM older

-- project code
--   recursive older#1 union
--     project code, age
--       filter (age = 20); kernel
--         scan Person (by all versions; about 100 rows in 3 segments; columns code, age; zone age = 20)
--     project code, age
--       project code, age
--         join inner on (age + 1) = age; holding right
--           project (age + 1)
--             working older#1
--           scan Person (by all versions; about 100 rows in 3 segments; columns code, age)
