SELECT x FROM (SELECT city AS x, age FROM Person UNION ALL SELECT name, founded FROM City) WHERE x = 'Oslo' ORDER BY x LIMIT 2

-- project x
--   limit 2
--     sort x first 2
--       union all
--         project city AS x
--           filter (city = 'Oslo'); kernel
--             scan Person (by all versions; about 100 rows in 3 segments; columns city; zone city = 'Oslo')
--         project name AS x
--           project name
--             filter (name = 'Oslo')
--               scan City (by primary key; about 1 rows in 1 segments; columns name; keys 1; zone _pk = 'Oslo')
