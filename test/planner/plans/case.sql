SELECT CASE city WHEN 'Oslo' THEN 'north' ELSE 'south' END AS side, -age AS minus FROM Person WHERE NOT (age IN (21, 22) OR city IS NULL)

-- project case city when 'Oslo' then 'north' else 'south' end AS side, -age AS minus
--   filter not ((age in (21, 22)) or (city is null))
--     scan Person (by all versions; about 100 rows in 3 segments; columns city, age)
