-- case: a query in FROM is answered where its tables are
-- rules: filters,blocks
SELECT c_nation, n FROM orders JOIN (SELECT c_nation, count(*) AS n FROM customer GROUP BY c_nation) AS d ON o_id = n
/*
plan, result at oslo
fragment 1 at bergen: reads table customer
    SELECT d.`c_nation`, d.`n` FROM (SELECT c_nation, count(*) AS n FROM customer AS customer GROUP BY c_nation) AS d
    because its tables are there
    → edge 1 to oslo (~15000 rows, 175.8 KiB)
fragment 2 at oslo: reads table orders; edge 1 from bergen
    SELECT /*+ BROADCAST(`d`) */ c_nation, n FROM orders AS orders JOIN edge_1 AS d ON o_id = n
    because the links take ~0.016 s, ~1.1 s at bergen
    → edge 2 to oslo (~150000 rows, 1.7 MiB)
finish at oslo: gather edge 2 from oslo
*/

-- case: a block of two tables, its columns renamed
-- rules: filters,blocks
SELECT a, b FROM orders JOIN (SELECT n_name, sum(c_id) FROM customer JOIN nation ON c_nation = n_id GROUP BY n_name) AS d(a, b) ON o_id = b
/*
plan, result at oslo
fragment 1 at bergen: reads table customer; table nation
    SELECT d.`a`, d.`b` FROM (SELECT n_name, sum(c_id) FROM customer AS customer JOIN nation AS nation ON c_nation = n_id GROUP BY n_name) AS d(a, b)
    because its tables are there
    → edge 1 to oslo (~2 rows, 64 B)
fragment 2 at oslo: reads table orders; edge 1 from bergen
    SELECT /*+ BROADCAST(`d`) */ a, b FROM orders AS orders JOIN edge_1 AS d ON o_id = b
    because the links take ~0.0011 s, ~0.96 s at bergen
    → edge 2 to oslo (~20 rows, 640 B)
finish at oslo: gather edge 2 from oslo
*/

-- case: a WITH query named twice is answered once
-- rules: filters,blocks
WITH d AS (SELECT c_nation AS k, max(c_id) AS m FROM customer GROUP BY c_nation) SELECT a.k, b.m FROM orders, d AS a, d AS b WHERE o_id = a.m AND o_cust = b.k
/*
plan, result at oslo
fragment 1 at bergen: reads table customer
    SELECT a.`k`, a.`m` FROM (SELECT c_nation AS k, max(c_id) AS m FROM customer AS customer GROUP BY c_nation) AS a
    because its tables are there
    → edge 1 to oslo (~15000 rows, 175.8 KiB)
fragment 2 at oslo: reads table orders; edge 1 from bergen
    SELECT /*+ BROADCAST(`a`, `b`) */ a.k, b.m FROM orders AS orders, edge_1 AS a, edge_1 AS b WHERE o_id = a.m AND o_cust = b.k
    because the links take ~0.016 s, ~2 s at bergen
    → edge 2 to oslo (~15000 rows, 468.8 KiB)
finish at oslo: gather edge 2 from oslo
*/

-- case: a condition on the block moves into it, with its subquery
-- rules: filters,blocks,subqueries
WITH d AS (SELECT c_nation AS k, max(c_id) AS m FROM customer GROUP BY c_nation) SELECT o_total, m FROM orders, d WHERE o_cust = k AND m = (SELECT max(m) FROM d) AND k > 3
/*
plan, result at oslo
fragment 1 at bergen: reads table customer; table customer
    SELECT d.`k`, d.`m` FROM (SELECT c_nation AS k, max(c_id) AS m FROM customer AS customer GROUP BY c_nation) AS d WHERE m = (SELECT max(m) FROM (SELECT c_nation AS k, max(c_id) AS m FROM customer AS customer GROUP BY c_nation) AS d) AND k > 3
    because its tables are there
    → edge 1 to oslo (~0 rows, 4 B)
fragment 2 at oslo: reads table orders; edge 1 from bergen
    SELECT /*+ BROADCAST(`d`) */ o_total, m FROM orders AS orders, edge_1 AS d WHERE o_cust = k
    because the links take ~0.0011 s, ~2.9 s at bergen
    → edge 2 to oslo (~1 rows, 40 B)
finish at oslo: gather edge 2 from oslo
*/

-- case: keys of a block reduce a table, and keys reduce a block
-- rules: filters,blocks,semijoin
SELECT o_id, d.n FROM orders JOIN (SELECT l_order, count(*) AS n FROM lineitem WHERE l_qty = 1 GROUP BY l_order) AS d ON o_id = d.l_order WHERE o_total = 3
/*
plan, result at oslo
fragment 1 at oslo: reads table orders
    SELECT orders.`o_id` FROM orders AS orders WHERE o_total = 3
    because orders is there
    → edge 1 to tromso (~15000 rows, 117.2 KiB)
fragment 2 at tromso: reads edge 1 from oslo; table lineitem
    SELECT /*+ BROADCAST(`orders`) */ o_id, d.n FROM edge_1 AS orders JOIN (SELECT l_order, count(*) AS n FROM lineitem AS lineitem WHERE l_qty = 1 GROUP BY l_order) AS d ON o_id = d.l_order
    because the links take ~0.019 s, ~0.027 s at oslo
    → edge 2 to oslo (~5737 rows, 89.6 KiB)
finish at oslo: gather edge 2 from tromso
*/

-- case: what Spark would have to name is no block
-- rules: filters,blocks
SELECT * FROM orders JOIN (SELECT c_nation, count(*) FROM customer GROUP BY c_nation) AS d ON o_id = c_nation
/*
plan, result at oslo
fragment 1 at bergen: reads table customer
    SELECT customer.`c_nation` FROM customer AS customer
    because customer is there
    → edge 1 to oslo (~150000 rows, 585.9 KiB)
fragment 2 at oslo: reads table orders; edge 1 from bergen
    SELECT * FROM orders AS orders JOIN (SELECT c_nation, count(*) FROM edge_1 AS customer GROUP BY c_nation) AS d ON o_id = c_nation
    because the links take ~0.049 s, ~17 s at bergen
    → edge 2 to oslo (~1500000 rows, 114.4 MiB)
finish at oslo: gather edge 2 from oslo
*/

-- case: nor is a limit, which may choose its rows
-- rules: filters,blocks
SELECT o_id FROM orders JOIN (SELECT c_id FROM customer LIMIT 3) AS d ON o_id = c_id
/*
plan, result at oslo
fragment 1 at bergen: reads table customer
    SELECT customer.`c_id` FROM customer AS customer
    because customer is there
    → edge 1 to oslo (~150000 rows, 1.1 MiB)
fragment 2 at oslo: reads table orders; edge 1 from bergen
    SELECT o_id FROM orders AS orders JOIN (SELECT c_id FROM edge_1 AS customer LIMIT 3) AS d ON o_id = c_id
    because the links take ~0.097 s, ~0.96 s at bergen
    → edge 2 to oslo (~30 rows, 240 B)
finish at oslo: gather edge 2 from oslo
*/

-- case: nor one of several sites
-- rules: filters,blocks
SELECT n FROM lineitem JOIN (SELECT o_id, count(*) AS n FROM customer JOIN orders ON o_cust = c_id GROUP BY o_id) AS d ON l_order = o_id
/*
plan, result at oslo
fragment 1 at tromso: reads table lineitem
    SELECT lineitem.`l_order` FROM lineitem AS lineitem
    because lineitem is there
    → edge 1 to oslo (~6000000 rows, 45.8 MiB)
fragment 2 at bergen: reads table customer
    SELECT customer.`c_id` FROM customer AS customer
    because customer is there
    → edge 2 to oslo (~150000 rows, 1.1 MiB)
fragment 3 at oslo: reads edge 1 from tromso; edge 2 from bergen; table orders
    SELECT n FROM edge_1 AS lineitem JOIN (SELECT /*+ BROADCAST(`customer`) */ o_id, count(*) AS n FROM edge_2 AS customer JOIN orders AS orders ON o_cust = c_id GROUP BY o_id) AS d ON l_order = o_id
    because the links take ~3.9 s, ~9.7 s at tromso
    → edge 3 to oslo (~6000000 rows, 91.6 MiB)
finish at oslo: gather edge 3 from oslo
*/

-- case: a union in FROM
-- rules: filters,blocks
SELECT o_id, k FROM orders JOIN (SELECT c_nation AS k FROM customer UNION SELECT n_id FROM nation) AS d ON o_id = k
/*
plan, result at oslo
fragment 1 at bergen: reads table customer; table nation
    SELECT d.`k` FROM (SELECT c_nation AS k FROM customer AS customer UNION SELECT n_id FROM nation AS nation) AS d
    because its tables are there
    → edge 1 to oslo (~150025 rows, 586.0 KiB)
fragment 2 at oslo: reads table orders; edge 1 from bergen
    SELECT /*+ BROADCAST(`d`) */ o_id, k FROM orders AS orders JOIN edge_1 AS d ON o_id = k
    because the links take ~0.049 s, ~2.4 s at bergen
    → edge 2 to oslo (~1500250 rows, 17.2 MiB)
finish at oslo: gather edge 2 from oslo
*/

-- case: an inner block stays with the outer one
-- rules: filters,blocks
SELECT o_id, m FROM orders JOIN (SELECT max(n) AS m FROM (SELECT c_nation, count(*) AS n FROM customer GROUP BY c_nation) AS e) AS d ON o_id = m
/*
plan, result at oslo
fragment 1 at bergen: reads table customer
    SELECT d.`m` FROM (SELECT max(n) AS m FROM (SELECT c_nation, count(*) AS n FROM customer AS customer GROUP BY c_nation) AS e) AS d
    because its tables are there
    → edge 1 to oslo (~1 rows, 8 B)
fragment 2 at oslo: reads table orders; edge 1 from bergen
    SELECT /*+ BROADCAST(`d`) */ o_id, m FROM orders AS orders JOIN edge_1 AS d ON o_id = m
    because the links take ~0.0011 s, ~0.96 s at bergen
    → edge 2 to oslo (~10 rows, 160 B)
finish at oslo: gather edge 2 from oslo
*/

-- case: a query that names a WITH query which has to stay is no block
-- rules: filters,blocks
WITH d AS (SELECT c_id AS k FROM customer LIMIT 3) SELECT o_id, n FROM orders JOIN (SELECT count(*) AS n FROM customer JOIN d ON c_id = k) AS e ON o_id = n
/*
plan, result at oslo
fragment 1 at bergen: reads table customer
    SELECT customer.`c_id` FROM customer AS customer
    because customer is there
    → edge 1 to oslo (~150000 rows, 1.1 MiB)
fragment 2 at oslo: reads edge 1 from bergen; table orders
    WITH d AS (SELECT c_id AS k FROM edge_1 AS customer LIMIT 3) SELECT o_id, n FROM orders AS orders JOIN (SELECT /*+ BROADCAST(`customer`) */ count(*) AS n FROM edge_1 AS customer JOIN d ON c_id = k) AS e ON o_id = n
    because the links take ~0.097 s, ~3.8 s at bergen
    → edge 2 to oslo (~1500000 rows, 34.3 MiB)
finish at oslo: gather edge 2 from oslo
*/

-- case: a WITH query that differs from call to call is not copied
-- rules: filters,blocks,answers
WITH d AS (SELECT c_id AS k, rand() AS r FROM customer) SELECT o_id FROM orders JOIN d AS a ON o_id = a.k JOIN d AS b ON a.k = b.k WHERE a.r <= (SELECT max(r) FROM d)
/*
plan, result at oslo
fragment 1 at bergen: reads table customer
    SELECT customer.`c_id` FROM customer AS customer
    because customer is there
    → edge 1 to oslo (~150000 rows, 1.1 MiB)
fragment 2 at oslo: reads edge 1 from bergen; table orders
    WITH d AS (SELECT c_id AS k, rand() AS r FROM edge_1 AS customer) SELECT o_id FROM orders AS orders JOIN d AS a ON o_id = a.k JOIN d AS b ON a.k = b.k WHERE a.r <= (SELECT max(r) FROM d)
    because the links take ~0.097 s, ~1.4 s at bergen
    → edge 2 to oslo (~750000 rows, 5.7 MiB)
finish at oslo: gather edge 2 from oslo
*/
