SELECT city FROM Person WHERE code >= 'p70' AND code < 'p80'

-- project city
--   filter ((code >= 'p70') and (code < 'p80')); kernel
--     scan Person (by all versions; about 100 rows in 3 segments; columns code, city; zone _pk >= 'p70'; zone _pk < 'p80')
