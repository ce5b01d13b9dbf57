SELECT town FROM (SELECT city AS town, COUNT(*) AS n FROM Person GROUP BY city) WHERE town > 'P' AND n > 2

-- project town
--   project city AS town
--     filter (count > 2)
--       aggregate count(*) by city; kernel
--         project city
--           filter (city > 'P'); kernel
--             scan Person (by all versions; about 100 rows in 3 segments; columns city; zone city > 'P')
