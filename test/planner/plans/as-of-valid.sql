SELECT COUNT(*) FROM Person AS OF '2024-01-01'

-- project count
--   aggregate count(*)
--     project nothing
--       scan Person (by as of; about 100 rows in 3 segments; columns none; valid at 2024-01-01T00:00:00Z)
