SELECT window_start, COUNT(*) FROM Person GROUP BY city, SESSION(joined, INTERVAL '2 days')

-- project window_start, count
--   aggregate count(*) by city, window_start, window_end
--     project city, window_start, window_end
--       window session joined '2 days' by city
--         scan Person (by all versions; about 100 rows in 3 segments; columns city, joined)
