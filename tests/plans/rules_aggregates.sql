-- case: a global aggregate is merged by the member
-- rules: aggregates
SELECT count(*), sum(amount), min(ts), max(kind), avg(amount), avg(id) AS mean FROM events WHERE kind != 'x'
/*
plan, result at oslo
fragment 1 at oslo: reads table events
    scan, filter, aggregate
    SELECT count(*), sum(amount), min(ts), max(kind), avg(amount), avg(id) AS mean, count(amount) AS part_0, sum(CAST(id AS DOUBLE) + 0) AS part_1, count(id) AS part_2 FROM events AS events WHERE kind != 'x'
    → edge 1 to oslo, through the driver (~1 row, 88 B)
fragment 2 at bergen: reads table events
    scan, filter, aggregate
    SELECT count(*), sum(amount), min(ts), max(kind), avg(amount), avg(id) AS mean, count(amount) AS part_0, sum(CAST(id AS DOUBLE) + 0) AS part_1, count(id) AS part_2 FROM events AS events WHERE kind != 'x'
    → edge 1 to oslo, through the driver (~1 row, 88 B)
fragment 3 at tromso: reads table events
    scan, filter, aggregate
    SELECT count(*), sum(amount), min(ts), max(kind), avg(amount), avg(id) AS mean, count(amount) AS part_0, sum(CAST(id AS DOUBLE) + 0) AS part_1, count(id) AS part_2 FROM events AS events WHERE kind != 'x'
    → edge 1 to oslo, through the driver (~1 row, 88 B)
finish at oslo: gather, aggregate edge 1 from oslo, bergen, tromso
*/

-- case: groups arrive sorted and are merged by the member
-- rules: aggregates
SELECT kind, count(*) AS n, sum(amount) AS total, stddev(amount) FROM events GROUP BY kind
/*
plan, result at oslo
fragment 1 at oslo: reads table events
    scan, aggregate, sort
    SELECT kind, count(*) AS n, sum(amount) AS total, stddev(amount), count(amount) AS part_0, avg(amount) AS part_1, var_pop(amount) AS part_2 FROM events AS events GROUP BY kind SORT BY 1
    → edge 1 to oslo, lanes merged in order (~100 rows, 7.0 KiB)
fragment 2 at bergen: reads table events
    scan, aggregate, sort
    SELECT kind, count(*) AS n, sum(amount) AS total, stddev(amount), count(amount) AS part_0, avg(amount) AS part_1, var_pop(amount) AS part_2 FROM events AS events GROUP BY kind SORT BY 1
    → edge 1 to oslo, lanes merged in order (~500 rows, 35.2 KiB)
fragment 3 at tromso: reads table events
    scan, aggregate, sort
    SELECT kind, count(*) AS n, sum(amount) AS total, stddev(amount), count(amount) AS part_0, avg(amount) AS part_1, var_pop(amount) AS part_2 FROM events AS events GROUP BY kind SORT BY 1
    → edge 1 to oslo, lanes merged in order (~300 rows, 21.1 KiB)
finish at oslo: merge, aggregate edge 1 from oslo, bergen, tromso
*/

-- case: a key that is not listed is hidden, and so are the parts of an average
-- rules: aggregates
SELECT avg(amount) AS mean FROM events GROUP BY kind, id > 5
/*
plan, result at oslo
fragment 1 at oslo: reads table events
    scan, aggregate, sort
    SELECT avg(amount) AS mean, sum(amount) AS part_0, count(amount) AS part_1, kind AS part_2, id > 5 AS part_3 FROM events AS events GROUP BY kind, id > 5 SORT BY 4, 5
    → edge 1 to oslo, lanes merged in order (~200 rows, 9.6 KiB)
fragment 2 at bergen: reads table events
    scan, aggregate, sort
    SELECT avg(amount) AS mean, sum(amount) AS part_0, count(amount) AS part_1, kind AS part_2, id > 5 AS part_3 FROM events AS events GROUP BY kind, id > 5 SORT BY 4, 5
    → edge 1 to oslo, lanes merged in order (~1,000 rows, 47.9 KiB)
fragment 3 at tromso: reads table events
    scan, aggregate, sort
    SELECT avg(amount) AS mean, sum(amount) AS part_0, count(amount) AS part_1, kind AS part_2, id > 5 AS part_3 FROM events AS events GROUP BY kind, id > 5 SORT BY 4, 5
    → edge 1 to oslo, lanes merged in order (~600 rows, 28.7 KiB)
finish at oslo: merge, aggregate edge 1 from oslo, bergen, tromso
*/

-- case: an order by the groups is the order of the merge, and a limit goes to the parts
-- rules: aggregates
-- at: front
SELECT upper(kind) AS k, year(ts), bool_or(id > 5) AS b FROM events GROUP BY kind, year(ts) ORDER BY 2 DESC, k NULLS LAST LIMIT 3 OFFSET 1
/*
plan, result at front
fragment 1 at oslo: reads table events
    scan, aggregate, sort, limit
    SELECT upper(kind) AS k, year(ts), bool_or(id > 5) AS b, kind AS part_0 FROM events AS events GROUP BY kind, year(ts) ORDER BY 2 DESC, 1 NULLS LAST, 4 LIMIT 4
    → edge 1 to front, in order, through the driver (~4 rows, 212 B)
fragment 2 at bergen: reads table events
    scan, aggregate, sort, limit
    SELECT upper(kind) AS k, year(ts), bool_or(id > 5) AS b, kind AS part_0 FROM events AS events GROUP BY kind, year(ts) ORDER BY 2 DESC, 1 NULLS LAST, 4 LIMIT 4
    → edge 1 to front, in order, through the driver (~4 rows, 212 B)
fragment 3 at tromso: reads table events
    scan, aggregate, sort, limit
    SELECT upper(kind) AS k, year(ts), bool_or(id > 5) AS b, kind AS part_0 FROM events AS events GROUP BY kind, year(ts) ORDER BY 2 DESC, 1 NULLS LAST, 4 LIMIT 4
    → edge 1 to front, in order, through the driver (~4 rows, 212 B)
finish at front: merge, aggregate, offset 1, limit 3 edge 1 from oslo, bergen, tromso
*/

-- case: a limit without an order takes the first groups of any order
-- rules: aggregates
SELECT kind, max(amount) AS m FROM events GROUP BY kind LIMIT 2
/*
plan, result at oslo
fragment 1 at oslo: reads table events
    scan, aggregate, sort, limit
    SELECT kind, max(amount) AS m, coalesce(max(CASE WHEN isnan(amount) THEN amount END), max(CASE WHEN NOT (isnan(amount) OR amount = CAST('-Infinity' AS DOUBLE)) THEN amount END), min(CASE WHEN amount = CAST('-Infinity' AS DOUBLE) THEN amount END)) AS part_0 FROM events AS events GROUP BY kind ORDER BY 1 LIMIT 2
    → edge 1 to oslo, in order, through the driver (~2 rows, 80 B)
fragment 2 at bergen: reads table events
    scan, aggregate, sort, limit
    SELECT kind, max(amount) AS m, coalesce(max(CASE WHEN isnan(amount) THEN amount END), max(CASE WHEN NOT (isnan(amount) OR amount = CAST('-Infinity' AS DOUBLE)) THEN amount END), min(CASE WHEN amount = CAST('-Infinity' AS DOUBLE) THEN amount END)) AS part_0 FROM events AS events GROUP BY kind ORDER BY 1 LIMIT 2
    → edge 1 to oslo, in order, through the driver (~2 rows, 80 B)
fragment 3 at tromso: reads table events
    scan, aggregate, sort, limit
    SELECT kind, max(amount) AS m, coalesce(max(CASE WHEN isnan(amount) THEN amount END), max(CASE WHEN NOT (isnan(amount) OR amount = CAST('-Infinity' AS DOUBLE)) THEN amount END), min(CASE WHEN amount = CAST('-Infinity' AS DOUBLE) THEN amount END)) AS part_0 FROM events AS events GROUP BY kind ORDER BY 1 LIMIT 2
    → edge 1 to oslo, in order, through the driver (~2 rows, 80 B)
finish at oslo: merge, aggregate, limit 2 edge 1 from oslo, bergen, tromso
*/

-- case: an order by an aggregate is Spark's
-- rules: aggregates
SELECT kind, count(*) AS n FROM events GROUP BY kind ORDER BY n DESC LIMIT 3
/*
plan, result at oslo
fragment 1 at oslo: reads table events
    scan, aggregate
    SELECT kind AS part_0, count(*) AS part_1 FROM events AS events GROUP BY kind
    → edge 1 to bergen, through the driver (~100 rows, 3.1 KiB)
fragment 2 at tromso: reads table events
    scan, aggregate
    SELECT kind AS part_0, count(*) AS part_1 FROM events AS events GROUP BY kind
    → edge 1 to bergen, through the driver (~300 rows, 9.4 KiB)
fragment 3 at bergen: reads table events; edge 1 from oslo, tromso
    scan, union, aggregate, sort, limit
    SELECT part_0 AS `kind`, coalesce(sum(part_1), 0) AS n FROM (SELECT kind AS part_0, count(*) AS part_1 FROM events AS events GROUP BY kind UNION ALL SELECT `part_0`, `part_1` FROM edge_1) AS part_rows GROUP BY part_0 ORDER BY n DESC LIMIT 3
    because the links take ~0.0044 s, ~0.0043 s at oslo, which sends more bytes
    → edge 2 to oslo, in order, through the driver (~3 rows, 120 B)
finish at oslo: gather edge 2 from bergen
*/

-- case: HAVING and computed aggregates are Spark's
-- rules: aggregates
SELECT kind AS k, 100.0 * sum(s_price) / sum(s_id) AS share FROM (SELECT s_cust % 10 AS kind, s_price, s_id FROM sales WHERE s_price > 0) AS s GROUP BY kind HAVING count(*) > 5 AND max(s_price) < 100 ORDER BY share
/*
plan, result at oslo
fragment 1 at bergen: reads table sales
    scan, filter, aggregate
    SELECT kind AS part_0, sum(s_price) AS part_1, sum(s_id) AS part_2, count(*) AS part_3, coalesce(max(CASE WHEN isnan(s_price) THEN s_price END), max(CASE WHEN NOT (isnan(s_price) OR s_price = CAST('-Infinity' AS DOUBLE)) THEN s_price END), min(CASE WHEN s_price = CAST('-Infinity' AS DOUBLE) THEN s_price END)) AS part_4 FROM (SELECT s_cust % 10 AS kind, s_price, s_id FROM sales AS sales WHERE s_price > 0) AS s GROUP BY kind
    → edge 1 to oslo (~10 rows, 400 B)
fragment 2 at oslo: reads table sales; edge 1 from bergen
    scan, filter, union, aggregate, sort
    SELECT part_0 AS k, 100.0 * sum(part_1) / sum(part_2) AS share FROM (SELECT kind AS part_0, sum(s_price) AS part_1, sum(s_id) AS part_2, count(*) AS part_3, coalesce(max(CASE WHEN isnan(s_price) THEN s_price END), max(CASE WHEN NOT (isnan(s_price) OR s_price = CAST('-Infinity' AS DOUBLE)) THEN s_price END), min(CASE WHEN s_price = CAST('-Infinity' AS DOUBLE) THEN s_price END)) AS part_4 FROM (SELECT s_cust % 10 AS kind, s_price, s_id FROM sales AS sales WHERE s_price > 0) AS s GROUP BY kind UNION ALL SELECT `part_0`, `part_1`, `part_2`, `part_3`, `part_4` FROM edge_1) AS part_rows GROUP BY part_0 HAVING coalesce(sum(part_3), 0) > 5 AND coalesce(max(CASE WHEN isnan(part_4) THEN part_4 END), max(CASE WHEN NOT (isnan(part_4) OR part_4 = CAST('-Infinity' AS DOUBLE)) THEN part_4 END), min(CASE WHEN part_4 = CAST('-Infinity' AS DOUBLE) THEN part_4 END)) < 100 ORDER BY share
    because the links take ~0.0012 s, ~0.0023 s at bergen
    → edge 2 to oslo, in order (~1 row, 32 B)
finish at oslo: gather edge 2 from oslo
*/

-- case: names that Spark makes are made by Spark
-- rules: aggregates
SELECT kind, sum(amount) / count(*), avg(id) + 1 FROM events GROUP BY kind ORDER BY 2 DESC LIMIT 5
/*
plan, result at oslo
fragment 1 at oslo: reads table events
    scan, aggregate
    SELECT kind AS part_0, sum(amount) AS part_1, count(*) AS part_2, sum(CAST(id AS DOUBLE) + 0) AS part_3, count(id) AS part_4 FROM events AS events GROUP BY kind
    → edge 1 to bergen, through the driver (~100 rows, 5.5 KiB)
fragment 2 at tromso: reads table events
    scan, aggregate
    SELECT kind AS part_0, sum(amount) AS part_1, count(*) AS part_2, sum(CAST(id AS DOUBLE) + 0) AS part_3, count(id) AS part_4 FROM events AS events GROUP BY kind
    → edge 1 to bergen, through the driver (~300 rows, 16.4 KiB)
fragment 3 at bergen: reads table events; edge 1 from oslo, tromso
    scan, union, aggregate, sort, limit
    (SELECT kind, sum(amount) / count(*), avg(id) + 1 FROM (SELECT CAST(NULL AS BIGINT) AS `id`, CAST(NULL AS STRING) AS `kind`, CAST(NULL AS DOUBLE) AS `amount` WHERE FALSE) AS events GROUP BY kind LIMIT 0) UNION ALL (SELECT part_0 AS `kind`, sum(part_1) / coalesce(sum(part_2), 0), (sum(part_3) / nullif(sum(part_4), 0)) + 1 FROM (SELECT kind AS part_0, sum(amount) AS part_1, count(*) AS part_2, sum(CAST(id AS DOUBLE) + 0) AS part_3, count(id) AS part_4 FROM events AS events GROUP BY kind UNION ALL SELECT `part_0`, `part_1`, `part_2`, `part_3`, `part_4` FROM edge_1) AS part_rows GROUP BY part_0) ORDER BY 2 DESC LIMIT 5
    because the links take ~0.0052 s, ~0.0058 s at oslo
    → edge 2 to oslo, in order, through the driver (~5 rows, 280 B)
finish at oslo: gather edge 2 from bergen
*/

-- case: of arms all rows are ordered, SORT BY of a union is no form that members admit
-- rules: aggregates
SELECT kind, sum(amount) / count(*), avg(id) + 1 FROM events GROUP BY kind ORDER BY 2 DESC
/*
plan, result at oslo
fragment 1 at bergen: reads table events
    scan, aggregate
    SELECT kind AS part_0, sum(amount) AS part_1, count(*) AS part_2, sum(CAST(id AS DOUBLE) + 0) AS part_3, count(id) AS part_4 FROM events AS events GROUP BY kind
    → edge 1 to oslo (~500 rows, 27.3 KiB)
fragment 2 at tromso: reads table events
    scan, aggregate
    SELECT kind AS part_0, sum(amount) AS part_1, count(*) AS part_2, sum(CAST(id AS DOUBLE) + 0) AS part_3, count(id) AS part_4 FROM events AS events GROUP BY kind
    → edge 1 to oslo, through the driver (~300 rows, 16.4 KiB)
fragment 3 at oslo: reads table events; edge 1 from bergen, tromso
    scan, union, aggregate, sort
    (SELECT kind, sum(amount) / count(*), avg(id) + 1 FROM (SELECT CAST(NULL AS BIGINT) AS `id`, CAST(NULL AS STRING) AS `kind`, CAST(NULL AS DOUBLE) AS `amount` WHERE FALSE) AS events GROUP BY kind LIMIT 0) UNION ALL (SELECT part_0 AS `kind`, sum(part_1) / coalesce(sum(part_2), 0), (sum(part_3) / nullif(sum(part_4), 0)) + 1 FROM (SELECT kind AS part_0, sum(amount) AS part_1, count(*) AS part_2, sum(CAST(id AS DOUBLE) + 0) AS part_3, count(id) AS part_4 FROM events AS events GROUP BY kind UNION ALL SELECT `part_0`, `part_1`, `part_2`, `part_3`, `part_4` FROM edge_1) AS part_rows GROUP BY part_0) ORDER BY 2 DESC
    because the links take ~0.0058 s, ~0.0074 s at bergen
    → edge 2 to oslo, in order (~500 rows, 27.3 KiB)
finish at oslo: gather edge 2 from oslo
*/

-- case: distinct values are grouped by first
-- rules: aggregates
SELECT kind, count(DISTINCT id > 5) AS n, sum(amount) AS total FROM events GROUP BY kind
/*
plan, result at oslo
fragment 1 at bergen: reads table events
    scan, aggregate
    SELECT kind AS part_0, id > 5 AS part_1, sum(amount) AS part_2 FROM events AS events GROUP BY kind, id > 5
    → edge 1 to oslo (~1,000 rows, 32.2 KiB)
fragment 2 at tromso: reads table events
    scan, aggregate
    SELECT kind AS part_0, id > 5 AS part_1, sum(amount) AS part_2 FROM events AS events GROUP BY kind, id > 5
    → edge 1 to oslo, through the driver (~600 rows, 19.3 KiB)
fragment 3 at oslo: reads table events; edge 1 from bergen, tromso
    scan, union, aggregate
    SELECT part_0 AS `kind`, count(DISTINCT part_1) AS n, sum(part_2) AS total FROM (SELECT kind AS part_0, id > 5 AS part_1, sum(amount) AS part_2 FROM events AS events GROUP BY kind, id > 5 UNION ALL SELECT `part_0`, `part_1`, `part_2` FROM edge_1) AS part_rows GROUP BY part_0
    because the links take ~0.0065 s, ~0.0077 s at bergen
    → edge 2 to oslo (~500 rows, 27.3 KiB)
finish at oslo: gather edge 2 from oslo
*/

-- case: values that are counted about travel once, as they are hashed alike each time
-- rules: aggregates
SELECT kind, approx_count_distinct(id > 5) AS n, approx_count_distinct(id > 5, 0.1) + sum(id) AS m FROM events GROUP BY kind
/*
plan, result at oslo
fragment 1 at bergen: reads table events
    scan, aggregate
    SELECT kind AS part_0, id > 5 AS part_1, sum(id) AS part_2 FROM events AS events GROUP BY kind, id > 5
    → edge 1 to oslo (~1,000 rows, 32.2 KiB)
fragment 2 at tromso: reads table events
    scan, aggregate
    SELECT kind AS part_0, id > 5 AS part_1, sum(id) AS part_2 FROM events AS events GROUP BY kind, id > 5
    → edge 1 to oslo, through the driver (~600 rows, 19.3 KiB)
fragment 3 at oslo: reads table events; edge 1 from bergen, tromso
    scan, union, aggregate
    SELECT part_0 AS `kind`, approx_count_distinct(part_1) AS n, approx_count_distinct(part_1, 0.1) + sum(part_2) AS m FROM (SELECT kind AS part_0, id > 5 AS part_1, sum(id) AS part_2 FROM events AS events GROUP BY kind, id > 5 UNION ALL SELECT `part_0`, `part_1`, `part_2` FROM edge_1) AS part_rows GROUP BY part_0
    because the links take ~0.0065 s, ~0.0077 s at bergen
    → edge 2 to oslo (~500 rows, 27.3 KiB)
finish at oslo: gather edge 2 from oslo
*/

-- case: about how many values, in groups of several kinds, with Spark's names
-- rules: aggregates
SELECT level, approx_count_distinct(id > 7), count(DISTINCT level), approx_count_distinct(DISTINCT level) FROM logs WHERE id > 2 GROUP BY ROLLUP (level) HAVING approx_count_distinct(level) > 0
/*
plan, result at oslo
fragment 1 at bergen: reads table logs
    scan, filter, aggregate
    SELECT level AS part_0, id > 7 AS part_1 FROM logs AS logs WHERE id > 2 GROUP BY level, id > 7
    → edge 1 to oslo (~400,000 rows, 9.5 MiB)
fragment 2 at tromso: reads table logs
    scan, filter, aggregate
    SELECT level AS part_0, id > 7 AS part_1 FROM logs AS logs WHERE id > 2 GROUP BY level, id > 7
    → edge 1 to oslo (~600,000 rows, 14.3 MiB)
fragment 3 at oslo: reads table logs; edge 1 from bergen, tromso
    scan, filter, union, aggregate
    (SELECT level, approx_count_distinct(id > 7), count(DISTINCT level), approx_count_distinct(DISTINCT level) FROM (SELECT CAST(NULL AS BIGINT) AS `id`, CAST(NULL AS STRING) AS `level` WHERE FALSE) AS logs GROUP BY ROLLUP (level) LIMIT 0) UNION ALL (SELECT part_0 AS `level`, approx_count_distinct(part_1), count(DISTINCT part_0), approx_count_distinct(DISTINCT part_0) FROM (SELECT level AS part_0, id > 7 AS part_1 FROM logs AS logs WHERE id > 2 GROUP BY level, id > 7 UNION ALL SELECT `part_0`, `part_1` FROM edge_1) AS part_rows GROUP BY ROLLUP (part_0) HAVING approx_count_distinct(part_0) > 0)
    because the links take ~2 s, ~2.9 s at tromso
    → edge 2 to oslo (~299,999 rows, 20.6 MiB)
finish at oslo: gather edge 2 from oslo
*/

-- case: values that hardly repeat, arrays, and those of some rows come as they are
-- rules: aggregates
SELECT (SELECT approx_count_distinct(id) + approx_count_distinct(amount) FROM events) AS a, (SELECT approx_count_distinct(tags) FROM events) AS b, (SELECT approx_count_distinct(kind) FILTER (WHERE id > 5) FROM events) AS c
/*
plan, result at oslo
fragment 1 at oslo: reads table events
    scan
    SELECT events.`id`, events.`kind`, events.`amount`, events.`tags` FROM events AS events
    because events is there
    → edge 1 to bergen, through the driver (~1,000 rows, 85.9 KiB)
fragment 2 at tromso: reads table events
    scan
    SELECT events.`id`, events.`kind`, events.`amount`, events.`tags` FROM events AS events
    because events is there
    → edge 1 to bergen, through the driver (~3,000 rows, 257.8 KiB)
fragment 3 at bergen: reads table events; edge 1 from oslo, tromso
    scan, filter, union, aggregate
    SELECT (SELECT approx_count_distinct(id) + approx_count_distinct(amount) FROM (SELECT `id`, `kind`, `amount`, `tags` FROM events UNION ALL SELECT `id`, `kind`, `amount`, `tags` FROM edge_1) AS events) AS a, (SELECT approx_count_distinct(tags) FROM (SELECT `id`, `kind`, `amount`, `tags` FROM events UNION ALL SELECT `id`, `kind`, `amount`, `tags` FROM edge_1) AS events) AS b, (SELECT approx_count_distinct(kind) FILTER (WHERE id > 5) FROM (SELECT `id`, `kind`, `amount`, `tags` FROM events UNION ALL SELECT `id`, `kind`, `amount`, `tags` FROM edge_1) AS events) AS c
    because the links take ~0.032 s, ~0.046 s at tromso
    → edge 2 to oslo, through the driver (~1 row, 48 B)
finish at oslo: gather edge 2 from bergen
*/

-- case: grouping sets over partial rows of the finest grouping
-- rules: aggregates
SELECT kind, id > 5 AS y, grouping_id() AS g, count(*) AS n FROM events GROUP BY ROLLUP (kind, id > 5)
/*
plan, result at oslo
fragment 1 at bergen: reads table events
    scan, aggregate
    SELECT kind AS part_0, id > 5 AS part_1, count(*) AS part_2 FROM events AS events GROUP BY kind, id > 5
    → edge 1 to oslo (~1,000 rows, 32.2 KiB)
fragment 2 at tromso: reads table events
    scan, aggregate
    SELECT kind AS part_0, id > 5 AS part_1, count(*) AS part_2 FROM events AS events GROUP BY kind, id > 5
    → edge 1 to oslo, through the driver (~600 rows, 19.3 KiB)
fragment 3 at oslo: reads table events; edge 1 from bergen, tromso
    scan, union, aggregate
    SELECT part_0 AS `kind`, part_1 AS y, grouping_id() AS g, coalesce(sum(part_2), 0) AS n FROM (SELECT kind AS part_0, id > 5 AS part_1, count(*) AS part_2 FROM events AS events GROUP BY kind, id > 5 UNION ALL SELECT `part_0`, `part_1`, `part_2` FROM edge_1) AS part_rows GROUP BY ROLLUP (part_0, part_1)
    because the links take ~0.0065 s, ~0.057 s at bergen
    → edge 2 to oslo (~9,000 rows, 632.8 KiB)
finish at oslo: gather edge 2 from oslo
*/

-- case: many groups are Spark's
-- rules: aggregates
SELECT s_cust, sum(s_price) AS total FROM sales GROUP BY s_cust
/*
plan, result at oslo
fragment 1 at bergen: reads table sales
    scan, aggregate
    SELECT s_cust AS part_0, sum(s_price) AS part_1 FROM sales AS sales GROUP BY s_cust
    → edge 1 to oslo, through the driver (~100 rows, 1.6 KiB)
fragment 2 at oslo: reads table sales; edge 1 from bergen
    scan, union, aggregate
    SELECT part_0 AS `s_cust`, sum(part_1) AS total FROM (SELECT s_cust AS part_0, sum(s_price) AS part_1 FROM sales AS sales GROUP BY s_cust UNION ALL SELECT `part_0`, `part_1` FROM edge_1) AS part_rows GROUP BY part_0
    because the links take ~0.0012 s, ~16 s at bergen
    → edge 2 to oslo (~5,000,000 rows, 114.4 MiB)
finish at oslo: gather edge 2 from oslo
*/

-- case: a block inside a query
-- rules: aggregates
SELECT c_name, n FROM customer JOIN (SELECT s_cust % 100 AS c, count(*) AS n FROM sales GROUP BY s_cust % 100) AS s ON c = c_id
/*
plan, result at oslo
fragment 1 at bergen: reads table customer
    scan
    SELECT customer.`c_id`, customer.`c_name` FROM customer AS customer
    because customer is there
    → edge 1 to oslo (~150,000 rows, 4.6 MiB)
fragment 2 at bergen: reads table sales
    scan, aggregate
    SELECT s_cust % 100 AS part_0, count(*) AS part_1 FROM sales AS sales GROUP BY s_cust % 100
    → edge 2 to oslo, through the driver (~100 rows, 1.6 KiB)
fragment 3 at oslo: reads edge 1 from bergen; table sales; edge 2 from bergen
    scan, join, union, aggregate
    SELECT /*+ BROADCAST(`customer`) */ c_name, n FROM edge_1 AS customer JOIN (SELECT part_0 AS c, coalesce(sum(part_1), 0) AS n FROM (SELECT s_cust % 100 AS part_0, count(*) AS part_1 FROM sales AS sales GROUP BY s_cust % 100 UNION ALL SELECT `part_0`, `part_1` FROM edge_2) AS part_rows GROUP BY part_0) AS s ON c = c_id
    because the links take ~0.39 s, ~0.48 s at bergen
    → edge 3 to oslo (~150,000 rows, 5.7 MiB)
finish at oslo: gather edge 3 from oslo
*/

-- case: what has no partial form stays whole
-- rules: aggregates
SELECT kind, percentile(amount, 0.5) AS p FROM events GROUP BY kind
/*
plan, result at oslo
fragment 1 at oslo: reads table events
    scan
    SELECT events.`kind`, events.`amount` FROM events AS events
    because events is there
    → edge 1 to bergen, through the driver (~1,000 rows, 31.2 KiB)
fragment 2 at tromso: reads table events
    scan
    SELECT events.`kind`, events.`amount` FROM events AS events
    because events is there
    → edge 1 to bergen, through the driver (~3,000 rows, 93.8 KiB)
fragment 3 at bergen: reads table events; edge 1 from oslo, tromso
    scan, union, aggregate
    SELECT kind, percentile(amount, 0.5) AS p FROM (SELECT `kind`, `amount` FROM events UNION ALL SELECT `kind`, `amount` FROM edge_1) AS events GROUP BY kind
    because the links take ~0.015 s, ~0.02 s at tromso
    → edge 2 to oslo (~500 rows, 19.5 KiB)
finish at oslo: gather edge 2 from bergen
*/

-- case: a key of a type that members do not order is Spark's
-- rules: aggregates
SELECT tags, count(*) AS n FROM events GROUP BY tags
/*
plan, result at oslo
fragment 1 at bergen: reads table events
    scan, aggregate
    SELECT tags AS part_0, count(*) AS part_1 FROM events AS events GROUP BY tags
    → edge 1 to oslo (~500 rows, 27.3 KiB)
fragment 2 at tromso: reads table events
    scan, aggregate
    SELECT tags AS part_0, count(*) AS part_1 FROM events AS events GROUP BY tags
    → edge 1 to oslo, through the driver (~300 rows, 16.4 KiB)
fragment 3 at oslo: reads table events; edge 1 from bergen, tromso
    scan, union, aggregate
    SELECT part_0 AS `tags`, coalesce(sum(part_1), 0) AS n FROM (SELECT tags AS part_0, count(*) AS part_1 FROM events AS events GROUP BY tags UNION ALL SELECT `part_0`, `part_1` FROM edge_1) AS part_rows GROUP BY part_0
    because the links take ~0.0058 s, ~0.0077 s at bergen
    → edge 2 to oslo (~500 rows, 31.2 KiB)
finish at oslo: gather edge 2 from oslo
*/

-- case: an alias that is a column too is not certain
-- rules: aggregates
SELECT upper(kind) AS kind, count(*) AS n FROM events GROUP BY kind ORDER BY kind
/*
plan, result at oslo
fragment 1 at oslo: reads table events
    scan
    SELECT events.`kind` FROM events AS events
    because events is there
    → edge 1 to bergen, through the driver (~1,000 rows, 23.4 KiB)
fragment 2 at tromso: reads table events
    scan
    SELECT events.`kind` FROM events AS events
    because events is there
    → edge 1 to bergen, through the driver (~3,000 rows, 70.3 KiB)
fragment 3 at bergen: reads table events; edge 1 from oslo, tromso
    scan, union, aggregate, sort
    SELECT upper(kind) AS kind, count(*) AS n FROM (SELECT `kind` FROM events UNION ALL SELECT `kind` FROM edge_1) AS events GROUP BY kind SORT BY kind
    because the links take ~0.012 s, ~0.016 s at tromso
    → edge 2 to oslo, lanes merged in order (~500 rows, 15.6 KiB)
finish at oslo: gather edge 2 from bergen
*/

-- case: small tables go to every part
-- rules: aggregates
SELECT n_name, count(*) AS n, avg(amount) AS mean FROM events JOIN nation ON id = n_id WHERE kind != 'x' GROUP BY n_name
/*
plan, result at oslo
fragment 1 at bergen: reads table nation
    scan
    SELECT `n_id`, `n_name` FROM nation
    → edge 2 to oslo and tromso, through the driver (~25 rows, 700 B to each)
fragment 2 at oslo: reads table events; edge 2 from bergen
    scan, filter, join, aggregate, sort
    SELECT /*+ BROADCAST(`nation`) */ n_name, count(*) AS n, avg(amount) AS mean, sum(amount) AS part_0, count(amount) AS part_1 FROM events AS events JOIN edge_2 AS nation ON id = n_id WHERE kind != 'x' GROUP BY n_name SORT BY 1
    → edge 1 to oslo, lanes merged in order (~2 rows, 112 B)
fragment 3 at bergen: reads table events; table nation
    scan, filter, join, aggregate, sort
    SELECT n_name, count(*) AS n, avg(amount) AS mean, sum(amount) AS part_0, count(amount) AS part_1 FROM events AS events JOIN nation AS nation ON id = n_id WHERE kind != 'x' GROUP BY n_name SORT BY 1
    → edge 1 to oslo, lanes merged in order (~2 rows, 112 B)
fragment 4 at tromso: reads table events; edge 2 from bergen
    scan, filter, join, aggregate, sort
    SELECT /*+ BROADCAST(`nation`) */ n_name, count(*) AS n, avg(amount) AS mean, sum(amount) AS part_0, count(amount) AS part_1 FROM events AS events JOIN edge_2 AS nation ON id = n_id WHERE kind != 'x' GROUP BY n_name SORT BY 1
    → edge 1 to oslo, lanes merged in order (~2 rows, 112 B)
finish at oslo: merge, aggregate edge 1 from oslo, bergen, tromso
*/

-- case: small tables go to every part, and Spark merges
-- rules: aggregates
SELECT n_name, sum(s_price) AS total FROM sales, nation WHERE s_cust = n_id GROUP BY n_name ORDER BY total DESC LIMIT 3
/*
plan, result at oslo
fragment 1 at bergen: reads table nation
    scan
    SELECT `n_id`, `n_name` FROM nation
    → edge 1 to oslo, through the driver (~25 rows, 700 B)
fragment 2 at bergen: reads table sales; table nation
    scan, filter, join, aggregate
    SELECT `nation`.n_name AS part_0, sum(s_price) AS part_1 FROM sales AS sales, nation AS nation WHERE s_cust = n_id GROUP BY `nation`.n_name
    → edge 2 to oslo (~2 rows, 64 B)
fragment 3 at oslo: reads table sales; edge 1 from bergen; edge 2 from bergen
    scan, filter, join, union, aggregate, sort, limit
    SELECT part_0 AS `n_name`, sum(part_1) AS total FROM (SELECT /*+ BROADCAST(`nation`) */ `nation`.n_name AS part_0, sum(s_price) AS part_1 FROM sales AS sales, edge_1 AS nation WHERE s_cust = n_id GROUP BY `nation`.n_name UNION ALL SELECT `part_0`, `part_1` FROM edge_2) AS part_rows GROUP BY part_0 ORDER BY total DESC LIMIT 3
    because the links take ~0.0011 s, ~0.0023 s at bergen
    → edge 3 to oslo, in order, through the driver (~2 rows, 100 B)
finish at oslo: gather edge 3 from oslo
*/

-- case: an outer join that keeps the small table's rows needs all parts at once
-- rules: aggregates
SELECT n_name, count(id) AS n FROM nation LEFT JOIN events ON id = n_id GROUP BY n_name
/*
plan, result at oslo
fragment 1 at oslo: reads table events
    scan
    SELECT events.`id` FROM events AS events
    because events is there
    → edge 1 to bergen, through the driver (~1,000 rows, 7.8 KiB)
fragment 2 at tromso: reads table events
    scan
    SELECT events.`id` FROM events AS events
    because events is there
    → edge 1 to bergen, through the driver (~3,000 rows, 23.4 KiB)
fragment 3 at bergen: reads table nation; table events; edge 1 from oslo, tromso
    scan, join, union, aggregate
    SELECT /*+ BROADCAST(`events`) */ n_name, count(id) AS n FROM nation AS nation LEFT JOIN (SELECT `id` FROM events UNION ALL SELECT `id` FROM edge_1) AS events ON id = n_id GROUP BY n_name
    because the links take ~0.0059 s, ~0.0084 s at tromso
    → edge 2 to oslo (~2 rows, 100 B)
finish at oslo: gather edge 2 from bergen
*/

-- case: bits, booleans and spreads are merged by the member
-- rules: aggregates
SELECT kind, bit_and(id) AS a, bit_xor(id) AS x, every(id > 0) AS e, any(id > 9) AS y, stddev(amount) AS s FROM events GROUP BY kind
/*
plan, result at oslo
fragment 1 at oslo: reads table events
    scan, aggregate, sort
    SELECT kind, bit_and(id) AS a, bit_xor(id) AS x, every(id > 0) AS e, any(id > 9) AS y, stddev(amount) AS s, count(amount) AS part_0, avg(amount) AS part_1, var_pop(amount) AS part_2 FROM events AS events GROUP BY kind SORT BY 1
    → edge 1 to oslo, lanes merged in order (~100 rows, 10.4 KiB)
fragment 2 at bergen: reads table events
    scan, aggregate, sort
    SELECT kind, bit_and(id) AS a, bit_xor(id) AS x, every(id > 0) AS e, any(id > 9) AS y, stddev(amount) AS s, count(amount) AS part_0, avg(amount) AS part_1, var_pop(amount) AS part_2 FROM events AS events GROUP BY kind SORT BY 1
    → edge 1 to oslo, lanes merged in order (~500 rows, 51.8 KiB)
fragment 3 at tromso: reads table events
    scan, aggregate, sort
    SELECT kind, bit_and(id) AS a, bit_xor(id) AS x, every(id > 0) AS e, any(id > 9) AS y, stddev(amount) AS s, count(amount) AS part_0, avg(amount) AS part_1, var_pop(amount) AS part_2 FROM events AS events GROUP BY kind SORT BY 1
    → edge 1 to oslo, lanes merged in order (~300 rows, 31.1 KiB)
finish at oslo: merge, aggregate edge 1 from oslo, bergen, tromso
*/

-- case: lists, sets and bitmaps are put together by Spark
-- rules: aggregates
SELECT id % 7 AS k, array_agg(cost) AS l, collect_set(id) AS s, bitmap_construct_agg(bitmap_bit_position(id)) AS b FROM logs GROUP BY id % 7
/*
plan, result at oslo
fragment 1 at bergen: reads table logs
    scan, aggregate
    SELECT id % 7 AS part_0, array_agg(cost) AS part_1, collect_set(id) AS part_2, bitmap_construct_agg(bitmap_bit_position(id)) AS part_3 FROM logs AS logs GROUP BY id % 7
    → edge 1 to oslo (~4 rows, 16.5 KiB)
fragment 2 at tromso: reads table logs
    scan, aggregate
    SELECT id % 7 AS part_0, array_agg(cost) AS part_1, collect_set(id) AS part_2, bitmap_construct_agg(bitmap_bit_position(id)) AS part_3 FROM logs AS logs GROUP BY id % 7
    → edge 1 to oslo (~4 rows, 16.5 KiB)
fragment 3 at oslo: reads table logs; edge 1 from bergen, tromso
    scan, union, aggregate
    SELECT part_0 AS k, flatten(collect_list(part_1)) AS l, array_distinct(flatten(collect_list(part_2))) AS s, bitmap_or_agg(part_3) AS b FROM (SELECT id % 7 AS part_0, array_agg(cost) AS part_1, collect_set(id) AS part_2, bitmap_construct_agg(bitmap_bit_position(id)) AS part_3 FROM logs AS logs GROUP BY id % 7 UNION ALL SELECT `part_0`, `part_1`, `part_2`, `part_3` FROM edge_1) AS part_rows GROUP BY part_0
    because the links take ~0.0049 s, ~0.0061 s at bergen
    → edge 2 to oslo (~7 rows, 448 B)
finish at oslo: gather edge 2 from oslo
*/

-- case: sketches whose merge is not one pass over all rows stay whole, and so does any value
-- rules: aggregates
SELECT kind, hll_sketch_agg(id) AS a, any_value(amount) AS v, approx_percentile(amount, 0.5) AS p FROM events GROUP BY kind
/*
plan, result at oslo
fragment 1 at oslo: reads table events
    scan
    SELECT events.`id`, events.`kind`, events.`amount` FROM events AS events
    because events is there
    → edge 1 to bergen, through the driver (~1,000 rows, 39.1 KiB)
fragment 2 at tromso: reads table events
    scan
    SELECT events.`id`, events.`kind`, events.`amount` FROM events AS events
    because events is there
    → edge 1 to bergen, through the driver (~3,000 rows, 117.2 KiB)
fragment 3 at bergen: reads table events; edge 1 from oslo, tromso
    scan, union, aggregate
    SELECT kind, hll_sketch_agg(id) AS a, any_value(amount) AS v, approx_percentile(amount, 0.5) AS p FROM (SELECT `id`, `kind`, `amount` FROM events UNION ALL SELECT `id`, `kind`, `amount` FROM edge_1) AS events GROUP BY kind
    because the links take ~0.019 s, ~0.025 s at tromso
    → edge 2 to oslo (~500 rows, 35.2 KiB)
finish at oslo: gather edge 2 from bergen
*/

-- case: theta sketches are merged with their size
-- rules: aggregates
SELECT theta_sketch_agg(id, 6) AS few, theta_sketch_estimate(theta_sketch_agg(level)) AS n FROM logs
/*
plan, result at oslo
fragment 1 at bergen: reads table logs
    scan, aggregate
    SELECT theta_sketch_agg(id, 6) AS part_0, theta_sketch_agg(level) AS part_1 FROM logs AS logs
    → edge 1 to oslo (~1 row, 64.0 KiB)
fragment 2 at tromso: reads table logs
    scan, aggregate
    SELECT theta_sketch_agg(id, 6) AS part_0, theta_sketch_agg(level) AS part_1 FROM logs AS logs
    → edge 1 to oslo (~1 row, 64.0 KiB)
fragment 3 at oslo: reads table logs; edge 1 from bergen, tromso
    scan, union, aggregate
    SELECT theta_union_agg(part_0, 6) AS few, theta_sketch_estimate(theta_union_agg(part_1)) AS n FROM (SELECT theta_sketch_agg(id, 6) AS part_0, theta_sketch_agg(level) AS part_1 FROM logs AS logs UNION ALL SELECT `part_0`, `part_1` FROM edge_1) AS part_rows
    because the links take ~0.013 s, ~0.014 s at bergen
    → edge 2 to oslo, through the driver (~1 row, 32 B)
finish at oslo: gather edge 2 from oslo
*/

-- case: a bitmap is longer than the rows it is made of
-- rules: aggregates
SELECT id, bitmap_construct_agg(bitmap_bit_position(id)) AS b FROM events GROUP BY id
/*
plan, result at oslo
fragment 1 at oslo: reads table events
    scan
    SELECT events.`id` FROM events AS events
    because events is there
    → edge 1 to bergen, through the driver (~1,000 rows, 7.8 KiB)
fragment 2 at tromso: reads table events
    scan
    SELECT events.`id` FROM events AS events
    because events is there
    → edge 1 to bergen, through the driver (~3,000 rows, 23.4 KiB)
fragment 3 at bergen: reads table events; edge 1 from oslo, tromso
    scan, union, aggregate
    SELECT id, bitmap_construct_agg(bitmap_bit_position(id)) AS b FROM (SELECT `id` FROM events UNION ALL SELECT `id` FROM edge_1) AS events GROUP BY id
    because the links take ~0.0069 s, ~0.0074 s at oslo
    → edge 2 to oslo (~500 rows, 11.7 KiB)
finish at oslo: gather edge 2 from bergen
*/
