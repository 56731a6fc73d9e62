-- Fails if a prediction has a missing or impossible value: -1 score missing, -2 score outside [0, 1],
-- -3 label missing, -4 label neither 0 nor 1, -5 weight missing or negative. (-1000 are rows of weight 0.)
SELECT "model", "cell", "rows"
FROM {{ ref('calibration_cells') }}
WHERE "cell" BETWEEN -5 AND -1
