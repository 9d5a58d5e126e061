-- case: what is summed is grouped by the key that joins it
-- at: bergen
-- rules: all
SELECT v_word, sum(o_total) AS s, count(*) AS n, avg(o_total) AS a FROM visits JOIN orders ON o_cust = v_key GROUP BY v_word
/*
plan, result at bergen
fragment 1 at oslo: reads table orders
    scan, aggregate
    SELECT grouped_1.`o_cust`, CAST(grouped_1.`grouped_1_1` AS DECIMAL(25, 2)) AS `grouped_1_1`, grouped_1.`grouped_1_2`, grouped_1.`grouped_1_3` FROM (SELECT orders.`o_cust` AS `o_cust`, sum(o_total) AS `grouped_1_1`, count(*) AS `grouped_1_2`, count(o_total) AS `grouped_1_3` FROM orders AS orders GROUP BY orders.`o_cust`) AS grouped_1
    because its tables are there; their rows are grouped there before they are joined with others
    → edge 1 to bergen (~150,000 rows, 5.7 MiB)
fragment 2 at bergen: reads table visits; edge 1 from oslo
    scan, filter, join, aggregate
    SELECT /*+ BROADCAST(`grouped_1`) */ v_word, CAST(sum(grouped_1.`grouped_1_1`) AS DECIMAL(25, 2)) AS s, coalesce(sum(grouped_1.`grouped_1_2`), 0) AS n, CAST(CAST((CAST(sum(grouped_1.`grouped_1_1`) AS DECIMAL(25, 2)) - CAST(sum(grouped_1.`grouped_1_1`) AS DECIMAL(25, 2)) % CAST(nullif(sum(grouped_1.`grouped_1_3`), 0) AS DECIMAL(15, 0))) / CAST(nullif(sum(grouped_1.`grouped_1_3`), 0) AS DECIMAL(15, 0)) AS DECIMAL(19, 6)) + CAST(CAST(CAST(sum(grouped_1.`grouped_1_1`) AS DECIMAL(25, 2)) % CAST(nullif(sum(grouped_1.`grouped_1_3`), 0) AS DECIMAL(15, 0)) AS DECIMAL(23, 8)) / CAST(nullif(sum(grouped_1.`grouped_1_3`), 0) AS DECIMAL(15, 0)) AS DECIMAL(7, 6)) AS DECIMAL(19, 6)) AS a FROM visits AS visits, edge_1 AS grouped_1 WHERE o_cust = v_key GROUP BY v_word
    because the links take ~0.48 s, ~4.9 s at oslo
    → edge 2 to bergen (~500,000 rows, 34.3 MiB)
finish at bergen: gather edge 2 from bergen
*/

-- case: tables of one site are joined first, and what is said of them alone is said there
-- at: tromso
-- rules: all
SELECT k_word, sum(v_cost * 2) AS s, min(c_name) AS m FROM visits, customer, clicks WHERE v_key = c_id AND v_note > 'a' AND c_id > 3 AND (c_name = 'x' OR v_word = 'y') AND c_nation = k_small AND c_nation < k_key GROUP BY k_word
/*
plan, result at tromso
fragment 1 at bergen: reads table visits; table customer
    scan, filter, join, aggregate
    SELECT grouped_1.`c_nation`, CAST(grouped_1.`grouped_1_1` AS DECIMAL(27, 2)) AS `grouped_1_1`, grouped_1.`grouped_1_2` FROM (SELECT customer.`c_nation` AS `c_nation`, sum(v_cost * 2) AS `grouped_1_1`, min(c_name) AS `grouped_1_2` FROM visits AS visits, customer AS customer WHERE v_key = c_id AND v_note > 'a' AND c_id > 3 AND (c_name = 'x' OR v_word = 'y') GROUP BY customer.`c_nation`) AS grouped_1
    because its tables are there; their rows are grouped there before they are joined with others
    → edge 1 to tromso (~14,739 rows, 633.3 KiB)
fragment 2 at tromso: reads table clicks; edge 1 from bergen
    scan, filter, join, aggregate
    SELECT /*+ BROADCAST(`grouped_1`) */ k_word, CAST(sum(grouped_1.`grouped_1_1`) AS DECIMAL(27, 2)) AS s, min(grouped_1.`grouped_1_2`) AS m FROM edge_1 AS grouped_1, clicks AS clicks WHERE c_nation = k_small AND c_nation < k_key GROUP BY k_word
    because the links take ~0.053 s, ~2.1 s at bergen
    → edge 2 to tromso (~396,692 rows, 21.2 MiB)
finish at tromso: gather edge 2 from tromso
*/

-- case: a sum that could be too large in a group that no row asks for
-- at: bergen
-- rules: all
SELECT v_word, sum(o_id) AS s, sum(o_total * o_total) AS q FROM orders JOIN visits ON o_cust = v_key GROUP BY v_word
/*
plan, result at bergen
fragment 1 at oslo: reads table orders
    scan, aggregate
    SELECT grouped_1.`o_cust`, grouped_1.`grouped_1_1`, grouped_1.`grouped_1_2`, CAST(grouped_1.`grouped_1_3` AS DECIMAL(38, 4)) AS `grouped_1_3`, grouped_1.`grouped_1_4` FROM (SELECT orders.`o_cust` AS `o_cust`, CAST(try_sum(o_id) AS BIGINT) AS `grouped_1_1`, count(o_id) > 0 AND try_sum(o_id) IS NULL AS `grouped_1_2`, CAST(try_sum(o_total * o_total) AS DECIMAL(38, 4)) AS `grouped_1_3`, count(o_total * o_total) > 0 AND try_sum(o_total * o_total) IS NULL AS `grouped_1_4` FROM orders AS orders GROUP BY orders.`o_cust`) AS grouped_1
    because its tables are there; their rows are grouped there before they are joined with others
    → edge 1 to bergen (~150,000 rows, 4.9 MiB)
fragment 2 at bergen: reads table visits; edge 1 from oslo
    scan, filter, join, aggregate
    SELECT /*+ BROADCAST(`grouped_1`) */ v_word, sum(CASE WHEN grouped_1.`grouped_1_2` THEN 9223372036854775807 + CAST(grouped_1.`grouped_1_2` AS BIGINT) ELSE grouped_1.`grouped_1_1` END) AS s, CAST(sum(CASE WHEN grouped_1.`grouped_1_4` THEN CAST(CAST('99999999999999999999999999999999999999' AS DECIMAL(38, 0)) + CAST(grouped_1.`grouped_1_4` AS INT) AS DECIMAL(38, 4)) ELSE grouped_1.`grouped_1_3` END) AS DECIMAL(38, 4)) AS q FROM edge_1 AS grouped_1, visits AS visits WHERE o_cust = v_key GROUP BY v_word
    because the links take ~0.41 s, ~4.3 s at oslo
    → edge 2 to bergen (~500,000 rows, 26.7 MiB)
finish at bergen: gather edge 2 from bergen
*/

-- case: without GROUP BY no rows are still one
-- at: bergen
-- rules: all
SELECT count(*) AS n, min(o_date) AS d, sum(o_total) AS s, sum(o_total) / count(o_date) + 1 AS r FROM orders JOIN visits ON o_cust = v_key WHERE v_cost > 3
/*
plan, result at bergen
fragment 1 at oslo: reads table orders
    scan, aggregate
    SELECT grouped_1.`o_cust`, grouped_1.`grouped_1_1`, grouped_1.`grouped_1_2`, CAST(grouped_1.`grouped_1_3` AS DECIMAL(25, 2)) AS `grouped_1_3`, grouped_1.`grouped_1_4` FROM (SELECT orders.`o_cust` AS `o_cust`, count(*) AS `grouped_1_1`, min(o_date) AS `grouped_1_2`, sum(o_total) AS `grouped_1_3`, count(o_date) AS `grouped_1_4` FROM orders AS orders GROUP BY orders.`o_cust`) AS grouped_1
    because its tables are there; their rows are grouped there before they are joined with others
    → edge 1 to bergen (~150,000 rows, 6.3 MiB)
fragment 2 at bergen: reads table visits; edge 1 from oslo
    scan, filter, join, aggregate
    SELECT /*+ BROADCAST(`grouped_1`) */ coalesce(sum(grouped_1.`grouped_1_1`), 0) AS n, min(grouped_1.`grouped_1_2`) AS d, CAST(sum(grouped_1.`grouped_1_3`) AS DECIMAL(25, 2)) AS s, CAST(sum(grouped_1.`grouped_1_3`) AS DECIMAL(25, 2)) / coalesce(sum(grouped_1.`grouped_1_4`), 0) + 1 AS r FROM edge_1 AS grouped_1, visits AS visits WHERE v_cost > 3 AND o_cust = v_key
    because the links take ~0.53 s, ~0.59 s at oslo
    → edge 2 to bergen, through the driver (~1 row, 64 B)
finish at bergen: gather edge 2 from bergen
*/

-- case: columns of the rest are grouped by
-- at: bergen
-- rules: all
SELECT s.o_cust AS v_day, s.o_cust, s.o_cust + 1, sum(s.o_total) FILTER (WHERE s.o_total > 1) AS t FROM orders AS s, visits AS v WHERE s.o_cust = v.v_key AND s.o_id > 7 GROUP BY s.o_cust, v.v_word HAVING count(*) > 1 ORDER BY sum(s.o_total), s.o_cust
/*
plan, result at bergen
fragment 1 at oslo: reads table orders
    scan, filter, aggregate
    SELECT grouped_1.`o_cust`, CAST(grouped_1.`grouped_1_1` AS DECIMAL(25, 2)) AS `grouped_1_1`, grouped_1.`grouped_1_2`, CAST(grouped_1.`grouped_1_3` AS DECIMAL(25, 2)) AS `grouped_1_3` FROM (SELECT s.`o_cust` AS `o_cust`, sum(s.o_total) FILTER (WHERE s.o_total > 1) AS `grouped_1_1`, count(*) AS `grouped_1_2`, sum(s.o_total) AS `grouped_1_3` FROM orders AS s WHERE s.o_id > 7 GROUP BY s.`o_cust`) AS grouped_1
    because its tables are there; their rows are grouped there before they are joined with others
    → edge 1 to bergen (~147,398 rows, 6.7 MiB)
fragment 2 at bergen: reads table visits; edge 1 from oslo
    scan, filter, join, aggregate, sort
    SELECT /*+ BROADCAST(`grouped_1`) */ grouped_1.o_cust AS v_day, grouped_1.o_cust, grouped_1.o_cust + 1, CAST(sum(grouped_1.`grouped_1_1`) AS DECIMAL(25, 2)) AS t FROM edge_1 AS grouped_1, visits AS v WHERE grouped_1.o_cust = v.v_key GROUP BY grouped_1.o_cust, v.v_word HAVING coalesce(sum(grouped_1.`grouped_1_2`), 0) > 1 ORDER BY CAST(sum(grouped_1.`grouped_1_3`) AS DECIMAL(25, 2)), grouped_1.o_cust
    because the links take ~0.57 s, ~6.8 s at oslo
    → edge 2 to bergen, in order (~1,249,998 rows, 57.2 MiB)
finish at bergen: gather edge 2 from bergen
*/

-- case: of two columns of one name one has another
-- at: bergen
-- rules: all
SELECT v_word, x.o_date, y.o_date AS d, max(x.o_total) AS m FROM orders AS x JOIN orders AS y ON x.o_id = y.o_id JOIN visits ON x.o_cust = v_key GROUP BY v_word, x.o_date, y.o_date
/*
plan, result at bergen
fragment 1 at oslo: reads table orders; table orders
    scan, filter, join, aggregate
    SELECT grouped_1.`o_cust`, grouped_1.`o_date`, grouped_1.`grouped_1_2`, CAST(grouped_1.`grouped_1_3` AS DECIMAL(15, 2)) AS `grouped_1_3` FROM (SELECT x.`o_cust` AS `o_cust`, x.`o_date` AS `o_date`, y.`o_date` AS `grouped_1_2`, max(x.o_total) AS `grouped_1_3` FROM orders AS x, orders AS y WHERE x.o_id = y.o_id GROUP BY x.`o_cust`, x.`o_date`, y.`o_date`) AS grouped_1
    because its tables are there; their rows are grouped there before they are joined with others
    → edge 1 to bergen (~150,000 rows, 4.6 MiB)
fragment 2 at bergen: reads table visits; edge 1 from oslo
    scan, filter, join, aggregate
    SELECT /*+ BROADCAST(`grouped_1`) */ v_word, grouped_1.o_date, grouped_1.`grouped_1_2` AS d, max(grouped_1.`grouped_1_3`) AS m FROM edge_1 AS grouped_1, visits AS visits WHERE grouped_1.o_cust = v_key GROUP BY v_word, grouped_1.o_date, grouped_1.`grouped_1_2`
    because the links take ~0.39 s, ~4.9 s at oslo
    → edge 2 to bergen (~500,000 rows, 34.3 MiB)
finish at bergen: gather edge 2 from bergen
*/

-- case: an average of whole numbers is that of doubles
-- at: bergen
-- rules: all
SELECT v_word, avg(o_id) AS a, avg(o_total) FILTER (WHERE o_id > 3) AS b FROM orders JOIN visits ON o_cust = v_key GROUP BY v_word
/*
plan, result at bergen
fragment 1 at oslo: reads table orders
    scan, filter, aggregate
    SELECT grouped_1.`o_cust`, grouped_1.`grouped_1_1`, grouped_1.`grouped_1_2`, CAST(grouped_1.`grouped_1_3` AS DECIMAL(25, 2)) AS `grouped_1_3`, grouped_1.`grouped_1_4` FROM (SELECT orders.`o_cust` AS `o_cust`, sum(CAST(o_id AS DOUBLE) + 0) AS `grouped_1_1`, count(o_id) AS `grouped_1_2`, sum(o_total) FILTER (WHERE o_id > 3) AS `grouped_1_3`, count(o_total) FILTER (WHERE o_id > 3) AS `grouped_1_4` FROM orders AS orders GROUP BY orders.`o_cust`) AS grouped_1
    because its tables are there; their rows are grouped there before they are joined with others
    → edge 1 to bergen (~150,000 rows, 6.9 MiB)
fragment 2 at bergen: reads table visits; edge 1 from oslo
    scan, filter, join, aggregate
    SELECT /*+ BROADCAST(`grouped_1`) */ v_word, (sum(grouped_1.`grouped_1_1`) / nullif(sum(grouped_1.`grouped_1_2`), 0)) AS a, CAST(CAST((CAST(sum(grouped_1.`grouped_1_3`) AS DECIMAL(25, 2)) - CAST(sum(grouped_1.`grouped_1_3`) AS DECIMAL(25, 2)) % CAST(nullif(sum(grouped_1.`grouped_1_4`), 0) AS DECIMAL(15, 0))) / CAST(nullif(sum(grouped_1.`grouped_1_4`), 0) AS DECIMAL(15, 0)) AS DECIMAL(19, 6)) + CAST(CAST(CAST(sum(grouped_1.`grouped_1_3`) AS DECIMAL(25, 2)) % CAST(nullif(sum(grouped_1.`grouped_1_4`), 0) AS DECIMAL(15, 0)) AS DECIMAL(23, 8)) / CAST(nullif(sum(grouped_1.`grouped_1_4`), 0) AS DECIMAL(15, 0)) AS DECIMAL(7, 6)) AS DECIMAL(19, 6)) AS b FROM edge_1 AS grouped_1, visits AS visits WHERE o_cust = v_key GROUP BY v_word
    because the links take ~0.58 s, ~4.3 s at oslo
    → edge 2 to bergen (~500,000 rows, 26.7 MiB)
finish at bergen: gather edge 2 from bergen
*/

-- case: values of the other side count as often as there are rows beside them
-- at: bergen
-- rules: all
SELECT v_word, count(v_note) AS n, max(v_note) AS m, count(DISTINCT v_note) AS d, sum(CASE WHEN o_note LIKE 'x%' THEN o_total ELSE 0 END) AS s FROM orders JOIN visits ON o_cust = v_key GROUP BY v_word
/*
plan, result at bergen
fragment 1 at oslo: reads table orders
    scan, aggregate
    SELECT grouped_1.`o_cust`, grouped_1.`grouped_1_1`, CAST(grouped_1.`grouped_1_2` AS DECIMAL(25, 2)) AS `grouped_1_2` FROM (SELECT orders.`o_cust` AS `o_cust`, count(*) AS `grouped_1_1`, sum(CASE WHEN o_note LIKE 'x%' THEN o_total ELSE 0 END) AS `grouped_1_2` FROM orders AS orders GROUP BY orders.`o_cust`) AS grouped_1
    because its tables are there; their rows are grouped there before they are joined with others
    → edge 1 to bergen (~150,000 rows, 4.6 MiB)
fragment 2 at bergen: reads table visits; edge 1 from oslo
    scan, filter, join, aggregate
    SELECT /*+ BROADCAST(`grouped_1`) */ v_word, coalesce(sum(CASE WHEN NOT (v_note) IS NULL THEN grouped_1.`grouped_1_1` END), 0) AS n, max(v_note) AS m, count(DISTINCT v_note) AS d, CAST(sum(grouped_1.`grouped_1_2`) AS DECIMAL(25, 2)) AS s FROM edge_1 AS grouped_1, visits AS visits WHERE o_cust = v_key GROUP BY v_word
    because the links take ~0.39 s, ~7 s at oslo
    → edge 2 to bergen (~500,000 rows, 42.0 MiB)
finish at bergen: gather edge 2 from bergen
*/

-- case: distinct values are grouped by
-- at: bergen
-- rules: all
SELECT v_word, count(DISTINCT o_cust) AS d, count(*) AS n FROM orders JOIN visits ON v_key = o_cust GROUP BY v_word
/*
plan, result at bergen
fragment 1 at oslo: reads table orders
    scan, aggregate
    SELECT grouped_1.`o_cust`, grouped_1.`grouped_1_1` FROM (SELECT orders.`o_cust` AS `o_cust`, count(*) AS `grouped_1_1` FROM orders AS orders GROUP BY orders.`o_cust`) AS grouped_1
    because its tables are there; their rows are grouped there before they are joined with others
    → edge 1 to bergen (~150,000 rows, 2.3 MiB)
fragment 2 at bergen: reads table visits; edge 1 from oslo
    scan, filter, join, aggregate
    SELECT /*+ BROADCAST(`grouped_1`) */ v_word, count(DISTINCT o_cust) AS d, coalesce(sum(grouped_1.`grouped_1_1`), 0) AS n FROM edge_1 AS grouped_1, visits AS visits WHERE v_key = o_cust GROUP BY v_word
    because the links take ~0.19 s, ~4.3 s at oslo
    → edge 2 to bergen (~500,000 rows, 26.7 MiB)
finish at bergen: gather edge 2 from bergen
*/

-- case: groups without aggregates
-- at: bergen
-- rules: all
SELECT v_word, o_date FROM orders JOIN visits ON v_day = o_date GROUP BY v_word, o_date
/*
plan, result at bergen
fragment 1 at oslo: reads table orders
    scan, aggregate
    SELECT grouped_1.`o_date` FROM (SELECT orders.`o_date` AS `o_date` FROM orders AS orders GROUP BY orders.`o_date`) AS grouped_1
    because its tables are there; their rows are grouped there before they are joined with others
    → edge 1 to bergen (~150,000 rows, 585.9 KiB)
fragment 2 at bergen: reads table visits; edge 1 from oslo
    scan, filter, join, aggregate
    SELECT /*+ BROADCAST(`grouped_1`) */ v_word, o_date FROM edge_1 AS grouped_1, visits AS visits WHERE v_day = o_date GROUP BY v_word, o_date
    because the links take ~0.049 s, ~19 s at oslo
    → edge 2 to bergen (~7,499,992 rows, 200.3 MiB)
finish at bergen: gather edge 2 from bergen
*/

-- case: ROLLUP, and an order by what is merged
-- at: bergen
-- rules: all
SELECT v_word, o_cust, sum(o_total) AS s FROM orders JOIN visits ON v_key = o_cust GROUP BY ROLLUP (v_word, o_cust) ORDER BY s
/*
plan, result at bergen
fragment 1 at oslo: reads table orders
    scan, aggregate
    SELECT grouped_1.`o_cust`, CAST(grouped_1.`grouped_1_1` AS DECIMAL(25, 2)) AS `grouped_1_1` FROM (SELECT orders.`o_cust` AS `o_cust`, sum(o_total) AS `grouped_1_1` FROM orders AS orders GROUP BY orders.`o_cust`) AS grouped_1
    because its tables are there; their rows are grouped there before they are joined with others
    → edge 1 to bergen (~150,000 rows, 3.4 MiB)
fragment 2 at bergen: reads table visits; edge 1 from oslo
    scan, filter, join, aggregate, sort
    SELECT /*+ BROADCAST(`grouped_1`) */ v_word, o_cust, CAST(sum(grouped_1.`grouped_1_1`) AS DECIMAL(25, 2)) AS s FROM edge_1 AS grouped_1, visits AS visits WHERE v_key = o_cust GROUP BY ROLLUP (v_word, o_cust) SORT BY s
    because the links take ~0.29 s, ~31 s at oslo
    → edge 2 to bergen, lanes merged in order (~7,499,992 rows, 343.3 MiB)
finish at bergen: gather edge 2 from bergen
*/

-- case: in a query in FROM
-- at: tromso
-- rules: all
SELECT d.k, d.s, l_qty FROM (SELECT v_word AS w, v_cost AS k, sum(o_total) AS s FROM orders JOIN visits ON o_cust = v_key GROUP BY v_word, v_cost) AS d JOIN lineitem ON l_price = d.k AND l_qty > 3
/*
plan, result at tromso
fragment 1 at oslo: reads table orders
    scan, aggregate, distinct
    SELECT DISTINCT grouped_1.`o_cust` FROM (SELECT orders.`o_cust` AS `o_cust`, sum(o_total) AS `grouped_1_1` FROM orders AS orders GROUP BY orders.`o_cust`) AS grouped_1
    because its tables are there; their rows are grouped there before they are joined with others; its keys go ahead, so fewer rows travel
    → edge 2 to bergen (~150,000 rows, 1.1 MiB)
fragment 2 at bergen: reads table visits; edge 2 from oslo
    scan, join
    SELECT /*+ BROADCAST(key_1) */ visits.`v_key`, visits.`v_word`, visits.`v_cost` FROM visits AS visits LEFT SEMI JOIN (SELECT `o_cust` FROM edge_2) AS key_1 ON visits.`v_key` = key_1.`o_cust`
    because visits is there; rows without a match in grouped_1 are not sent
    → edge 1 to tromso (~749,999 rows, 34.3 MiB)
fragment 3 at oslo: reads table orders
    scan, aggregate
    SELECT grouped_1.`o_cust`, CAST(grouped_1.`grouped_1_1` AS DECIMAL(25, 2)) AS `grouped_1_1` FROM (SELECT orders.`o_cust` AS `o_cust`, sum(o_total) AS `grouped_1_1` FROM orders AS orders GROUP BY orders.`o_cust`) AS grouped_1
    because its tables are there; their rows are grouped there before they are joined with others
    → edge 3 to tromso (~150,000 rows, 3.4 MiB)
fragment 4 at tromso: reads table lineitem; edge 1 from bergen; edge 3 from oslo
    scan, filter, join, aggregate
    SELECT d.k, d.s, l_qty FROM (SELECT /*+ BROADCAST(`grouped_1`) */ v_word AS w, v_cost AS k, CAST(sum(grouped_1.`grouped_1_1`) AS DECIMAL(25, 2)) AS s FROM edge_3 AS grouped_1, edge_1 AS visits WHERE o_cust = v_key GROUP BY v_word, v_cost) AS d JOIN lineitem AS lineitem ON l_price = d.k AND l_qty > 3
    because the links take ~3.3 s, ~11 s at bergen
    → edge 4 to tromso (~2,499,997 rows, 85.8 MiB)
finish at tromso: gather edge 4 from tromso
*/

-- case: keys of the others go ahead of the groups as of any rows
-- at: bergen
-- rules: all
SELECT v_word, sum(o_total) AS s FROM orders JOIN visits ON o_cust = v_key WHERE v_cost > 990000 GROUP BY v_word
/*
plan, result at bergen
fragment 1 at bergen: reads table visits
    scan, filter, distinct
    SELECT DISTINCT visits.`v_key` FROM visits AS visits WHERE v_cost > 990000
    because visits is there; its keys go ahead, so fewer rows travel
    → edge 2 to oslo (~49,009 rows, 382.9 KiB)
fragment 2 at oslo: reads table orders; edge 2 from bergen
    scan, join, aggregate
    SELECT /*+ BROADCAST(key_1) */ grouped_1.`o_cust`, CAST(grouped_1.`grouped_1_1` AS DECIMAL(25, 2)) AS `grouped_1_1` FROM (SELECT orders.`o_cust` AS `o_cust`, sum(o_total) AS `grouped_1_1` FROM orders AS orders GROUP BY orders.`o_cust`) AS grouped_1 LEFT SEMI JOIN (SELECT `v_key` FROM edge_2) AS key_1 ON grouped_1.`o_cust` = key_1.`v_key`
    because its tables are there; their rows are grouped there before they are joined with others; rows without a match in visits are not sent
    → edge 1 to bergen (~7,351 rows, 172.3 KiB)
fragment 3 at bergen: reads table visits; edge 1 from oslo
    scan, filter, join, aggregate
    SELECT /*+ BROADCAST(`grouped_1`) */ v_word, CAST(sum(grouped_1.`grouped_1_1`) AS DECIMAL(25, 2)) AS s FROM edge_1 AS grouped_1, visits AS visits WHERE v_cost > 990000 AND o_cust = v_key GROUP BY v_word
    because the links take ~0.063 s, ~0.28 s at oslo
    → edge 3 to bergen (~47,808 rows, 1.8 MiB)
finish at bergen: gather edge 3 from bergen
*/

-- case: by one rule alone
-- at: bergen
-- rules: grouped
SELECT v_word, n_name, sum(o_total) AS s FROM nation, orders, visits WHERE o_cust = v_key AND v_key = n_id AND o_id > 3 GROUP BY v_word, n_name
/*
plan, result at bergen
fragment 1 at oslo: reads table orders
    scan, filter, aggregate
    SELECT grouped_1.`o_cust`, CAST(grouped_1.`grouped_1_1` AS DECIMAL(25, 2)) AS `grouped_1_1` FROM (SELECT orders.`o_cust` AS `o_cust`, sum(o_total) AS `grouped_1_1` FROM orders AS orders WHERE o_id > 3 GROUP BY orders.`o_cust`) AS grouped_1
    because its tables are there; their rows are grouped there before they are joined with others
    → edge 1 to bergen (~147,398 rows, 3.4 MiB)
fragment 2 at bergen: reads table nation; table visits; edge 1 from oslo
    scan, filter, join, aggregate
    SELECT /*+ BROADCAST(`grouped_1`) */ v_word, n_name, CAST(sum(grouped_1.`grouped_1_1`) AS DECIMAL(25, 2)) AS s FROM nation AS nation, visits AS visits, edge_1 AS grouped_1 WHERE o_cust = v_key AND v_key = n_id GROUP BY v_word, n_name
    because the links take ~0.28 s, ~19 s at oslo
    → edge 2 to bergen (~1,250,000 rows, 76.3 MiB)
finish at bergen: gather edge 2 from bergen
*/

-- case: sums of the other side are declined
-- at: bergen
-- rules: all
SELECT v_word, sum(v_cost) AS k, sum(o_total) AS s FROM orders JOIN visits ON o_cust = v_key GROUP BY v_word
/*
plan, result at bergen
fragment 1 at oslo: reads table orders
    scan
    SELECT orders.`o_cust`, orders.`o_total` FROM orders AS orders
    because orders is there
    → edge 1 to bergen (~1,500,000 rows, 34.3 MiB)
fragment 2 at bergen: reads edge 1 from oslo; table visits
    scan, join, aggregate
    SELECT v_word, sum(v_cost) AS k, sum(o_total) AS s FROM edge_1 AS orders JOIN visits AS visits ON o_cust = v_key GROUP BY v_word
    because the links take ~2.9 s, ~21 s at oslo
    → edge 2 to bergen (~500,000 rows, 26.7 MiB)
finish at bergen: gather edge 2 from bergen
*/

-- case: what may fail on rows that are dropped is declined
-- at: bergen
-- rules: all
SELECT v_word, sum(o_id + o_cust) AS s FROM orders JOIN visits ON o_cust = v_key GROUP BY v_word
/*
plan, result at bergen
fragment 1 at oslo: reads table orders
    scan
    SELECT orders.`o_id`, orders.`o_cust` FROM orders AS orders
    because orders is there
    → edge 1 to bergen (~1,500,000 rows, 22.9 MiB)
fragment 2 at bergen: reads edge 1 from oslo; table visits
    scan, join, aggregate
    SELECT v_word, sum(o_id + o_cust) AS s FROM edge_1 AS orders JOIN visits AS visits ON o_cust = v_key GROUP BY v_word
    because the links take ~1.9 s, ~14 s at oslo
    → edge 2 to bergen (~500,000 rows, 19.1 MiB)
finish at bergen: gather edge 2 from bergen
*/

-- case: a condition that may fail is declined, if it would be asked of more rows
-- at: bergen
-- rules: all
SELECT v_word, sum(o_total) AS s FROM orders, oslo.sales, visits WHERE o_cust = v_key AND s_id = o_id AND o_id + s_cust > 3 GROUP BY v_word
/*
plan, result at bergen
fragment 1 at bergen: reads table visits
    scan
    SELECT visits.`v_key`, visits.`v_word` FROM visits AS visits
    because visits is there
    → edge 1 to oslo (~5,000,000 rows, 152.6 MiB)
fragment 2 at oslo: reads table orders; table sales; edge 1 from bergen
    scan, filter, join, aggregate
    SELECT v_word, sum(o_total) AS s FROM orders AS orders, sales AS sales, edge_1 AS visits WHERE o_cust = v_key AND s_id = o_id AND o_id + s_cust > 3 GROUP BY v_word
    because the links take ~14 s, ~68 s at bergen
    → edge 2 to bergen (~500,000 rows, 19.1 MiB)
finish at bergen: gather edge 2 from oslo
*/

-- case: columns of types whose equal values may differ are declined
-- at: bergen
-- rules: all
SELECT v_word, s_price, count(*) AS n FROM oslo.sales JOIN visits ON s_cust = v_key GROUP BY v_word, s_price
/*
plan, result at bergen
fragment 1 at oslo: reads table sales
    scan
    SELECT sales.`s_cust`, sales.`s_price` FROM sales AS sales
    because sales is there
    → edge 1 to bergen (~50,000,000 rows, 762.9 MiB)
fragment 2 at bergen: reads edge 1 from oslo; table visits
    scan, join, aggregate
    SELECT v_word, s_price, count(*) AS n FROM edge_1 AS sales JOIN visits AS visits ON s_cust = v_key GROUP BY v_word, s_price
    because the links take ~64 s, ~205 s at oslo
    → edge 2 to bergen (~50,000,000 rows, 2.2 GiB)
finish at bergen: gather edge 2 from bergen
*/

-- case: an outer join is declined
-- at: bergen
-- rules: all
SELECT v_word, sum(o_total) AS s FROM visits LEFT JOIN orders ON o_cust = v_key GROUP BY v_word
/*
plan, result at bergen
fragment 1 at oslo: reads table orders
    scan
    SELECT orders.`o_cust`, orders.`o_total` FROM orders AS orders
    because orders is there
    → edge 1 to bergen (~1,500,000 rows, 34.3 MiB)
fragment 2 at bergen: reads table visits; edge 1 from oslo
    scan, join, aggregate
    SELECT v_word, sum(o_total) AS s FROM visits AS visits LEFT JOIN edge_1 AS orders ON o_cust = v_key GROUP BY v_word
    because the links take ~2.9 s, ~14 s at oslo
    → edge 2 to bergen (~500,000 rows, 19.1 MiB)
finish at bergen: gather edge 2 from bergen
*/

-- case: a name that Spark would make is declined
-- at: bergen
-- rules: all
SELECT v_word, sum(o_total) FROM orders JOIN visits ON o_cust = v_key GROUP BY v_word
/*
plan, result at bergen
fragment 1 at oslo: reads table orders
    scan
    SELECT orders.`o_cust`, orders.`o_total` FROM orders AS orders
    because orders is there
    → edge 1 to bergen (~1,500,000 rows, 34.3 MiB)
fragment 2 at bergen: reads edge 1 from oslo; table visits
    scan, join, aggregate
    SELECT v_word, sum(o_total) FROM edge_1 AS orders JOIN visits AS visits ON o_cust = v_key GROUP BY v_word
    because the links take ~2.9 s, ~14 s at oslo
    → edge 2 to bergen (~500,000 rows, 19.1 MiB)
finish at bergen: gather edge 2 from bergen
*/

-- case: groups that are hardly fewer than rows are not tried
-- at: bergen
-- rules: all
SELECT o_id, v_word, sum(o_total) AS s FROM orders JOIN visits ON o_cust = v_key GROUP BY o_id, v_word
/*
plan, result at bergen
fragment 1 at oslo: reads table orders
    scan
    SELECT orders.`o_id`, orders.`o_cust`, orders.`o_total` FROM orders AS orders
    because orders is there
    → edge 1 to bergen (~1,500,000 rows, 45.8 MiB)
fragment 2 at bergen: reads edge 1 from oslo; table visits
    scan, join, aggregate
    SELECT o_id, v_word, sum(o_total) AS s FROM edge_1 AS orders JOIN visits AS visits ON o_cust = v_key GROUP BY o_id, v_word
    because the links take ~3.8 s, ~42 s at oslo
    → edge 2 to bergen (~7,499,992 rows, 343.3 MiB)
finish at bergen: gather edge 2 from bergen
*/

-- case: switched off
-- at: bergen
-- rules: -grouped
SELECT v_word, sum(o_total) AS s, count(*) AS n, avg(o_total) AS a FROM visits JOIN orders ON o_cust = v_key GROUP BY v_word
/*
plan, result at bergen
fragment 1 at oslo: reads table orders
    scan
    SELECT orders.`o_cust`, orders.`o_total` FROM orders AS orders
    because orders is there
    → edge 1 to bergen (~1,500,000 rows, 34.3 MiB)
fragment 2 at bergen: reads table visits; edge 1 from oslo
    scan, join, aggregate
    SELECT v_word, sum(o_total) AS s, count(*) AS n, avg(o_total) AS a FROM visits AS visits JOIN edge_1 AS orders ON o_cust = v_key GROUP BY v_word
    because the links take ~2.9 s, ~16 s at oslo
    → edge 2 to bergen (~500,000 rows, 34.3 MiB)
finish at bergen: gather edge 2 from bergen
*/
