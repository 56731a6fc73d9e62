WITH truecal_given AS (
  SELECT
    "MODEL" AS truecal_1,
    CAST("P" AS DOUBLE) AS p,
    CASE WHEN "Y" IS NULL THEN -1 WHEN "Y" = 1 THEN 1 WHEN "Y" = 0 THEN 0 ELSE -2 END AS y
  FROM {{ ref('predictions') }}
),
truecal_inside AS (
  SELECT
    truecal_given.*,
    CASE WHEN p >= 8.54e-17 AND p < 1 THEN p ELSE 0.5 END AS x
  FROM truecal_given
),
truecal_cells AS (
  SELECT
    truecal_inside.*,
    CASE
      WHEN p IS NULL THEN -1
      WHEN NOT (p >= 0 AND p <= 1) THEN -2
      WHEN y = -1 THEN -3
      WHEN y = -2 THEN -4
      WHEN p = 0 THEN 0
      WHEN p = 1 THEN 65535
      WHEN p < 8.54e-17 THEN 1
      ELSE CAST(1 + FLOOR(x * CAST(25200.003004074097 AS DOUBLE)) + FLOOR(LN(x / (1 - x)) * CAST(545.0540540540541 AS DOUBLE) + CAST(20167.0 AS DOUBLE)) AS INTEGER)
    END AS cell
  FROM truecal_inside
)
SELECT
    truecal_1 AS "model",
    cell AS "cell",
    COUNT(*) AS "rows",
    COUNT(*) AS "count",
    SUM(p) AS "score_sum",
    SUM(y) AS "positives",
    MIN(p) AS "lower"
FROM truecal_cells
GROUP BY truecal_1, cell
