-- case: a pattern is one bit
-- rules: filters,computed
SELECT sum(CASE WHEN c_name LIKE 'x%' THEN o_total ELSE 0 END) AS s, count(*) AS n FROM orders JOIN customer ON o_cust = c_id
/*
plan, result at oslo
fragment 1 at bergen: reads table customer
    scan
    SELECT customer.`c_id`, c_name LIKE 'x%' AS value_0 FROM customer AS customer
    because customer is there
    → edge 1 to oslo (~150,000 rows, 1.3 MiB)
fragment 2 at oslo: reads table orders; edge 1 from bergen
    scan, join, aggregate
    SELECT /*+ BROADCAST(`customer`) */ sum(CASE WHEN customer.value_0 THEN o_total ELSE 0 END) AS s, count(*) AS n FROM orders AS orders JOIN edge_1 AS customer ON o_cust = c_id
    because the links take ~0.39 s, ~2.9 s at bergen
    → edge 2 to oslo, through the driver (~1 row, 32 B)
finish at oslo: gather edge 2 from oslo
*/

-- case: the first letters, in a query in FROM
-- rules: filters,computed
SELECT code, count(*) AS n FROM (SELECT substring(c_name, 1, 2) AS code, o_id FROM orders JOIN customer ON o_cust = c_id) AS d GROUP BY code
/*
plan, result at oslo
fragment 1 at bergen: reads table customer
    scan
    SELECT customer.`c_id`, substring(c_name, 1, 2) AS value_0 FROM customer AS customer
    because customer is there
    → edge 1 to oslo (~150,000 rows, 4.6 MiB)
fragment 2 at oslo: reads table orders; edge 1 from bergen
    scan, join, aggregate
    SELECT code, count(*) AS n FROM (SELECT /*+ BROADCAST(`customer`) */ customer.value_0 AS code, o_id FROM orders AS orders JOIN edge_1 AS customer ON o_cust = c_id) AS d GROUP BY code
    because the links take ~0.39 s, ~1.9 s at bergen
    → edge 2 to oslo (~1 row, 32 B)
finish at oslo: gather edge 2 from oslo
*/

-- case: a product of decimals that has room
-- rules: filters,computed
-- at: bergen
SELECT n_name, sum(l_price * (1 - l_price)) AS s FROM lineitem, nation, sales WHERE l_qty = n_id AND s_id = n_id GROUP BY n_name
/*
plan, result at bergen
fragment 1 at tromso: reads table lineitem
    scan
    SELECT lineitem.`l_qty`, lineitem.`l_price` FROM lineitem AS lineitem
    because lineitem is there
    → edge 1 to oslo (~6,000,000 rows, 114.4 MiB)
fragment 2 at bergen: reads table nation
    scan
    SELECT nation.`n_id`, nation.`n_name` FROM nation AS nation
    because nation is there
    → edge 2 to oslo, through the driver (~25 rows, 700 B)
fragment 3 at bergen: reads table sales
    scan
    SELECT sales.`s_id` FROM sales AS sales
    because sales is there
    → edge 3 to oslo, through the driver (~1,000 rows, 7.8 KiB)
fragment 4 at oslo: reads edge 1 from tromso; edge 2 from bergen; table sales; edge 3 from bergen
    scan, filter, join, union, aggregate
    SELECT /*+ BROADCAST(`nation`) */ n_name, sum(l_price * (1 - l_price)) AS s FROM edge_1 AS lineitem, edge_2 AS nation, (SELECT `s_id` FROM sales UNION ALL SELECT `s_id` FROM edge_3) AS sales WHERE l_qty = n_id AND s_id = n_id GROUP BY n_name
    because the links take ~9.6 s, ~32 s at tromso
    → edge 4 to bergen (~2 rows, 100 B)
finish at bergen: gather edge 4 from oslo
*/

-- case: not what may fail, nor beside the column itself, nor under a name that Spark makes
-- rules: filters,computed
SELECT c_id / 2 AS a, upper(c_name) AS u, c_name AS n, substring(c_name, 1, 1) FROM orders JOIN customer ON o_cust = c_id
/*
plan, result at oslo
fragment 1 at bergen: reads table customer
    scan
    SELECT customer.`c_id`, customer.`c_name` FROM customer AS customer
    because customer is there
    → edge 1 to oslo (~150,000 rows, 4.6 MiB)
fragment 2 at oslo: reads table orders; edge 1 from bergen
    scan, join
    SELECT /*+ BROADCAST(`customer`) */ c_id / 2 AS a, upper(c_name) AS u, c_name AS n, substring(c_name, 1, 1) FROM orders AS orders JOIN edge_1 AS customer ON o_cust = c_id
    because the links take ~0.39 s, ~9.6 s at bergen
    → edge 2 to oslo (~1,500,000 rows, 103.0 MiB)
finish at oslo: gather edge 2 from oslo
*/

-- case: not of what an outer join supplies
-- rules: filters,computed
SELECT o_id, c_name LIKE 'x%' AS x FROM orders LEFT JOIN customer ON o_cust = c_id
/*
plan, result at oslo
fragment 1 at bergen: reads table customer
    scan
    SELECT customer.`c_id`, customer.`c_name` FROM customer AS customer
    because customer is there
    → edge 1 to oslo (~150,000 rows, 4.6 MiB)
fragment 2 at oslo: reads table orders; edge 1 from bergen
    scan, join
    SELECT /*+ BROADCAST(`customer`) */ o_id, c_name LIKE 'x%' AS x FROM orders AS orders LEFT JOIN edge_1 AS customer ON o_cust = c_id
    because the links take ~0.39 s, ~4.8 s at bergen
    → edge 2 to oslo (~1,500,000 rows, 34.3 MiB)
finish at oslo: gather edge 2 from oslo
*/

-- case: not beside GROUP BY
-- rules: filters,computed
SELECT substring(c_name, 1, 2) AS code, count(*) AS n FROM orders JOIN customer ON o_cust = c_id GROUP BY substring(c_name, 1, 2)
/*
plan, result at oslo
fragment 1 at bergen: reads table customer
    scan
    SELECT customer.`c_id`, customer.`c_name` FROM customer AS customer
    because customer is there
    → edge 1 to oslo (~150,000 rows, 4.6 MiB)
fragment 2 at oslo: reads table orders; edge 1 from bergen
    scan, join, aggregate
    SELECT /*+ BROADCAST(`customer`) */ substring(c_name, 1, 2) AS code, count(*) AS n FROM orders AS orders JOIN edge_1 AS customer ON o_cust = c_id GROUP BY substring(c_name, 1, 2)
    because the links take ~0.39 s, ~1 s at bergen
    → edge 2 to oslo (~15,000 rows, 468.8 KiB)
finish at oslo: gather edge 2 from oslo
*/

-- case: NOT IN is one form, and so is ESCAPE
-- rules: filters,computed
SELECT o_id, o_total > 3 OR c_name NOT IN ('a', 'b') AS x, c_name LIKE '1$%' ESCAPE '$' AS y FROM orders JOIN customer ON o_cust = c_id
/*
plan, result at oslo
fragment 1 at bergen: reads table customer
    scan
    SELECT customer.`c_id`, customer.`c_name` FROM customer AS customer
    because customer is there
    → edge 1 to oslo (~150,000 rows, 4.6 MiB)
fragment 2 at oslo: reads table orders; edge 1 from bergen
    scan, join
    SELECT /*+ BROADCAST(`customer`) */ o_id, o_total > 3 OR c_name NOT IN ('a', 'b') AS x, c_name LIKE '1$%' ESCAPE '$' AS y FROM orders AS orders JOIN edge_1 AS customer ON o_cust = c_id
    because the links take ~0.39 s, ~8.6 s at bergen
    → edge 2 to oslo (~1,500,000 rows, 57.2 MiB)
finish at oslo: gather edge 2 from oslo
*/
