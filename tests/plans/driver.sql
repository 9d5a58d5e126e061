-- case: a global aggregate returns through the driver
SELECT count(*) AS n, max(amount) AS most FROM events
/*
plan, result at oslo
fragment 1 at oslo: reads table events
    scan
    SELECT `amount` FROM events
    → edge 1 to bergen, through the driver (~1,000 rows, 7.8 KiB)
fragment 2 at tromso: reads table events
    scan
    SELECT `amount` FROM events
    → edge 1 to bergen, through the driver (~3,000 rows, 23.4 KiB)
fragment 3 at bergen: reads table events; edge 1 from oslo, tromso
    scan, union, aggregate
    SELECT count(*) AS n, max(amount) AS most FROM (SELECT `amount` FROM events UNION ALL SELECT `amount` FROM edge_1) AS events
    → edge 2 to oslo, through the driver (~1 row, 32 B)
finish at oslo: gather edge 2 from bergen
*/

-- case: also with HAVING, at one site
SELECT sum(o_total) AS total FROM orders HAVING sum(o_total) > 10
/*
plan, result at oslo
fragment 1 at oslo: reads table orders
    scan, filter, aggregate
    SELECT sum(o_total) AS total FROM orders AS orders HAVING sum(o_total) > 10
    → edge 1 to oslo, through the driver (~1 row, 16 B)
finish at oslo: gather edge 1 from oslo
*/

-- case: a small limit returns through the driver
SELECT c_name, o_id FROM orders JOIN customer ON o_cust = c_id LIMIT 20
/*
plan, result at oslo
fragment 1 at bergen: reads table customer
    scan
    SELECT `c_id`, `c_name` FROM customer
    → edge 1 to oslo (~150,000 rows, 4.6 MiB)
fragment 2 at oslo: reads table orders; edge 1 from bergen
    scan, join, limit
    SELECT /*+ BROADCAST(`customer`) */ c_name, o_id FROM orders AS orders JOIN edge_1 AS customer ON o_cust = c_id LIMIT 20
    → edge 2 to oslo, through the driver (~20 rows, 640 B)
finish at oslo: gather edge 2 from oslo
*/

-- case: a limit over a star whose columns are not counted
SELECT * FROM orders JOIN customer ON o_cust = c_id LIMIT 20
/*
plan, result at oslo
fragment 1 at bergen: reads table customer
    scan
    SELECT `c_id`, `c_name`, `c_nation` FROM customer
    → edge 1 to oslo (~150,000 rows, 5.1 MiB)
fragment 2 at oslo: reads table orders; edge 1 from bergen
    scan, join, limit
    SELECT /*+ BROADCAST(`customer`) */ * FROM orders AS orders JOIN edge_1 AS customer ON o_cust = c_id LIMIT 20
    → edge 2 to oslo, through the driver (~20 rows, 1.9 KiB)
finish at oslo: gather edge 2 from oslo
*/

-- case: a limit of many rows does not
SELECT c_name, o_id FROM orders JOIN customer ON o_cust = c_id LIMIT 5000
/*
plan, result at oslo
fragment 1 at bergen: reads table customer
    scan
    SELECT `c_id`, `c_name` FROM customer
    → edge 1 to oslo (~150,000 rows, 4.6 MiB)
fragment 2 at oslo: reads table orders; edge 1 from bergen
    scan, join, limit
    SELECT /*+ BROADCAST(`customer`) */ c_name, o_id FROM orders AS orders JOIN edge_1 AS customer ON o_cust = c_id LIMIT 5000
    → edge 2 to oslo (~5,000 rows, 156.2 KiB)
finish at oslo: gather edge 2 from oslo
*/

-- case: a window is one value a row
SELECT sum(o_total) OVER (PARTITION BY o_cust) AS running FROM orders
/*
plan, result at oslo
fragment 1 at oslo: reads table orders
    scan, aggregate, window
    SELECT sum(o_total) OVER (PARTITION BY o_cust) AS running FROM orders AS orders
    → edge 1 to oslo (~1,500,000 rows, 22.9 MiB)
finish at oslo: gather edge 1 from oslo
*/

-- case: small tables bound the result, its order included
-- at: bergen
SELECT n_name, count(*) AS n FROM nation GROUP BY n_name ORDER BY n_name
/*
plan, result at bergen
fragment 1 at bergen: reads table nation
    scan, aggregate, sort
    SELECT n_name, count(*) AS n FROM nation AS nation GROUP BY n_name ORDER BY n_name
    → edge 1 to bergen, in order, through the driver (~2 rows, 100 B)
finish at bergen: gather edge 1 from bergen
*/

-- case: so do joins of them, outer ones too
-- at: bergen
SELECT a.n_name, b.n_name AS other FROM nation a FULL JOIN nation b ON a.n_id = b.n_id WHERE a.n_id < 5
/*
plan, result at bergen
fragment 1 at bergen: reads table nation
    scan, filter, join
    SELECT a.n_name, b.n_name AS other FROM nation AS a FULL JOIN nation AS b ON a.n_id = b.n_id WHERE a.n_id < 5
    → edge 1 to bergen, through the driver (~50 rows, 1.6 KiB)
finish at bergen: gather edge 1 from bergen
*/

-- case: not when the join may be large
-- at: bergen
SELECT a.n_name FROM nation a CROSS JOIN nation b CROSS JOIN nation c
/*
plan, result at bergen
fragment 1 at bergen: reads table nation
    scan, join
    SELECT a.n_name FROM nation AS a CROSS JOIN nation AS b CROSS JOIN nation AS c
    → edge 1 to bergen (~15,625 rows, 244.1 KiB)
finish at bergen: gather edge 1 from bergen
*/

-- case: not what makes rows of its own
-- at: bergen
SELECT explode(sequence(1, 1000000)) AS i, n_name FROM nation
/*
plan, result at bergen
fragment 1 at bergen: reads table nation
    scan
    SELECT explode(sequence(1, 1000000)) AS i, n_name FROM nation AS nation
    → edge 1 to bergen (~25 rows, 1000 B)
finish at bergen: gather edge 1 from bergen
*/

-- case: nor GROUP BY that repeats them
-- at: bergen
SELECT n_name, count(*) AS n FROM nation GROUP BY CUBE (n_name)
/*
plan, result at bergen
fragment 1 at bergen: reads table nation
    scan, aggregate
    SELECT n_name, count(*) AS n FROM nation AS nation GROUP BY CUBE (n_name)
    → edge 1 to bergen (~2 rows, 100 B)
finish at bergen: gather edge 1 from bergen
*/

-- case: nor a subquery
-- at: bergen
SELECT n_name FROM (SELECT n_name FROM nation UNION ALL SELECT n_name FROM nation) AS twice
/*
plan, result at bergen
fragment 1 at bergen: reads table nation
    scan, union
    SELECT n_name FROM (SELECT n_name FROM nation AS nation UNION ALL SELECT n_name FROM nation AS nation) AS twice
    → edge 1 to bergen (~50 rows, 1.2 KiB)
finish at bergen: gather edge 1 from bergen
*/

-- case: nor tables elsewhere
-- at: oslo
SELECT n_name, s_id FROM nation JOIN bergen.sales ON n_id = s_id JOIN oslo.events ON id = n_id
/*
plan, result at oslo
fragment 1 at oslo: reads table events
    scan
    SELECT `id` FROM events
    → edge 1 to bergen, through the driver (~1,000 rows, 7.8 KiB)
fragment 2 at bergen: reads table nation; table sales; edge 1 from oslo
    scan, join
    SELECT /*+ BROADCAST(`events`) */ n_name, s_id FROM nation AS nation JOIN sales AS sales ON n_id = s_id JOIN edge_1 AS events ON id = n_id
    → edge 2 to oslo (~2,500 rows, 78.1 KiB)
finish at oslo: gather edge 2 from bergen
*/

-- case: nor in the older spelling
-- at: bergen
SELECT n_name, n_id, count(*) AS n FROM nation GROUP BY n_name, n_id WITH ROLLUP
/*
plan, result at bergen
fragment 1 at bergen: reads table nation
    scan, aggregate
    SELECT n_name, n_id, count(*) AS n FROM nation AS nation GROUP BY n_name, n_id WITH ROLLUP
    → edge 1 to bergen (~6 rows, 275 B)
finish at bergen: gather edge 1 from bergen
*/

-- case: nor rows that may be wide
-- at: bergen
SELECT repeat(n_name, 1000000) AS wide FROM nation
/*
plan, result at bergen
fragment 1 at bergen: reads table nation
    scan
    SELECT repeat(n_name, 1000000) AS wide FROM nation AS nation
    → edge 1 to bergen (~25 rows, 400 B)
finish at bergen: gather edge 1 from bergen
*/
