-- case: a query in FROM is answered where its tables are
-- rules: filters,blocks
SELECT c_nation, n FROM orders JOIN (SELECT c_nation, count(*) AS n FROM customer GROUP BY c_nation) AS d ON o_id = n
/*
plan, result at oslo
fragment 1 at bergen: reads table customer
    scan, aggregate
    SELECT d.`c_nation`, d.`n` FROM (SELECT c_nation, count(*) AS n FROM customer AS customer GROUP BY c_nation) AS d
    because its tables are there
    → edge 1 to oslo (~15,000 rows, 175.8 KiB)
fragment 2 at oslo: reads table orders; edge 1 from bergen
    scan, join
    SELECT /*+ BROADCAST(`d`) */ c_nation, n FROM orders AS orders JOIN edge_1 AS d ON o_id = n
    because the links take ~0.016 s, ~1.1 s at bergen
    → edge 2 to oslo (~150,000 rows, 1.7 MiB)
finish at oslo: gather edge 2 from oslo
*/

-- case: a block of two tables, its columns renamed
-- rules: filters,blocks
SELECT a, b FROM orders JOIN (SELECT n_name, sum(c_id) FROM customer JOIN nation ON c_nation = n_id GROUP BY n_name) AS d(a, b) ON o_id = b
/*
plan, result at oslo
fragment 1 at bergen: reads table customer; table nation
    scan, join, aggregate
    SELECT d.`a`, d.`b` FROM (SELECT n_name, sum(c_id) FROM customer AS customer JOIN nation AS nation ON c_nation = n_id GROUP BY n_name) AS d(a, b)
    because its tables are there
    → edge 1 to oslo (~2 rows, 64 B)
fragment 2 at oslo: reads table orders; edge 1 from bergen
    scan, join
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
    scan, aggregate
    SELECT a.`k`, a.`m` FROM (SELECT c_nation AS k, max(c_id) AS m FROM customer AS customer GROUP BY c_nation) AS a
    because its tables are there
    → edge 1 to oslo (~15,000 rows, 175.8 KiB)
fragment 2 at oslo: reads table orders; edge 1 from bergen
    scan, filter, join
    SELECT /*+ BROADCAST(`a`, `b`) */ a.k, b.m FROM orders AS orders, edge_1 AS a, edge_1 AS b WHERE o_id = a.m AND o_cust = b.k
    because the links take ~0.016 s, ~2 s at bergen
    → edge 2 to oslo (~15,000 rows, 468.8 KiB)
finish at oslo: gather edge 2 from oslo
*/

-- case: a condition on the block moves into it, with its subquery
-- rules: filters,blocks,subqueries
WITH d AS (SELECT c_nation AS k, max(c_id) AS m FROM customer GROUP BY c_nation) SELECT o_total, m FROM orders, d WHERE o_cust = k AND m = (SELECT max(m) FROM d) AND k > 3
/*
plan, result at oslo
fragment 1 at bergen: reads table customer; table customer
    scan, filter, aggregate
    SELECT d.`k`, d.`m` FROM (SELECT c_nation AS k, max(c_id) AS m FROM customer AS customer GROUP BY c_nation) AS d WHERE m = (SELECT max(m) FROM (SELECT c_nation AS k, max(c_id) AS m FROM customer AS customer GROUP BY c_nation) AS d) AND k > 3
    because its tables are there
    → edge 1 to oslo (~0 rows, 4 B)
fragment 2 at oslo: reads table orders; edge 1 from bergen
    scan, filter, join
    SELECT /*+ BROADCAST(`d`) */ o_total, m FROM orders AS orders, edge_1 AS d WHERE o_cust = k
    because the links take ~0.0011 s, ~2.9 s at bergen
    → edge 2 to oslo (~1 row, 40 B)
finish at oslo: gather edge 2 from oslo
*/

-- case: keys of a block reduce a table, and keys reduce a block
-- rules: filters,blocks,semijoin
SELECT o_id, d.n FROM orders JOIN (SELECT l_order, count(*) AS n FROM lineitem WHERE l_qty = 1 GROUP BY l_order) AS d ON o_id = d.l_order WHERE o_total = 3
/*
plan, result at oslo
fragment 1 at oslo: reads table orders
    scan, filter
    SELECT orders.`o_id` FROM orders AS orders WHERE o_total = 3
    because orders is there
    → edge 1 to tromso (~15,000 rows, 117.2 KiB)
fragment 2 at tromso: reads edge 1 from oslo; table lineitem
    scan, filter, join, aggregate
    SELECT /*+ BROADCAST(`orders`) */ o_id, d.n FROM edge_1 AS orders JOIN (SELECT l_order, count(*) AS n FROM lineitem AS lineitem WHERE l_qty = 1 GROUP BY l_order) AS d ON o_id = d.l_order
    because the links take ~0.019 s, ~0.027 s at oslo
    → edge 2 to oslo (~5,737 rows, 89.6 KiB)
finish at oslo: gather edge 2 from tromso
*/

-- case: what Spark would have to name is no block
-- rules: filters,blocks
SELECT * FROM orders JOIN (SELECT c_nation, count(*) FROM customer GROUP BY c_nation) AS d ON o_id = c_nation
/*
plan, result at oslo
fragment 1 at bergen: reads table customer
    scan
    SELECT customer.`c_nation` FROM customer AS customer
    because customer is there
    → edge 1 to oslo (~150,000 rows, 585.9 KiB)
fragment 2 at oslo: reads table orders; edge 1 from bergen
    scan, join, aggregate
    SELECT * FROM orders AS orders JOIN (SELECT c_nation, count(*) FROM edge_1 AS customer GROUP BY c_nation) AS d ON o_id = c_nation
    because the links take ~0.049 s, ~17 s at bergen
    → edge 2 to oslo (~1,500,000 rows, 114.4 MiB)
finish at oslo: gather edge 2 from oslo
*/

-- case: a limit chooses its rows once, at its site
-- rules: filters,blocks
SELECT o_id FROM orders JOIN (SELECT c_id FROM customer LIMIT 3) AS d ON o_id = c_id
/*
plan, result at oslo
fragment 1 at bergen: reads table customer
    scan, limit
    SELECT d.`c_id` FROM (SELECT c_id FROM customer AS customer LIMIT 3) AS d
    because its tables are there
    → edge 1 to oslo (~3 rows, 24 B)
fragment 2 at oslo: reads table orders; edge 1 from bergen
    scan, join
    SELECT /*+ BROADCAST(`d`) */ o_id FROM orders AS orders JOIN edge_1 AS d ON o_id = c_id
    because the links take ~0.0011 s, ~0.96 s at bergen
    → edge 2 to oslo (~30 rows, 240 B)
finish at oslo: gather edge 2 from oslo
*/

-- case: a query over several sites is no block
-- rules: filters,blocks
SELECT n FROM lineitem JOIN (SELECT o_id, count(*) AS n FROM customer JOIN orders ON o_cust = c_id GROUP BY o_id) AS d ON l_order = o_id
/*
plan, result at oslo
fragment 1 at tromso: reads table lineitem
    scan
    SELECT lineitem.`l_order` FROM lineitem AS lineitem
    because lineitem is there
    → edge 1 to oslo (~6,000,000 rows, 45.8 MiB)
fragment 2 at bergen: reads table customer
    scan
    SELECT customer.`c_id` FROM customer AS customer
    because customer is there
    → edge 2 to oslo (~150,000 rows, 1.1 MiB)
fragment 3 at oslo: reads edge 1 from tromso; edge 2 from bergen; table orders
    scan, join, aggregate
    SELECT n FROM edge_1 AS lineitem JOIN (SELECT /*+ BROADCAST(`customer`) */ o_id, count(*) AS n FROM edge_2 AS customer JOIN orders AS orders ON o_cust = c_id GROUP BY o_id) AS d ON l_order = o_id
    because the links take ~3.9 s, ~9.7 s at tromso
    → edge 3 to oslo (~6,000,000 rows, 91.6 MiB)
finish at oslo: gather edge 3 from oslo
*/

-- case: a union in FROM
-- rules: filters,blocks
SELECT o_id, k FROM orders JOIN (SELECT c_nation AS k FROM customer UNION SELECT n_id FROM nation) AS d ON o_id = k
/*
plan, result at oslo
fragment 1 at bergen: reads table customer; table nation
    scan, union
    SELECT d.`k` FROM (SELECT c_nation AS k FROM customer AS customer UNION SELECT n_id FROM nation AS nation) AS d
    because its tables are there
    → edge 1 to oslo (~15,002 rows, 58.6 KiB)
fragment 2 at oslo: reads table orders; edge 1 from bergen
    scan, join
    SELECT /*+ BROADCAST(`d`) */ o_id, k FROM orders AS orders JOIN edge_1 AS d ON o_id = k
    because the links take ~0.0059 s, ~1.1 s at bergen
    → edge 2 to oslo (~150,020 rows, 1.7 MiB)
finish at oslo: gather edge 2 from oslo
*/

-- case: an inner block stays with the outer one
-- rules: filters,blocks
SELECT o_id, m FROM orders JOIN (SELECT max(n) AS m FROM (SELECT c_nation, count(*) AS n FROM customer GROUP BY c_nation) AS e) AS d ON o_id = m
/*
plan, result at oslo
fragment 1 at bergen: reads table customer
    scan, aggregate
    SELECT d.`m` FROM (SELECT max(n) AS m FROM (SELECT c_nation, count(*) AS n FROM customer AS customer GROUP BY c_nation) AS e) AS d
    because its tables are there
    → edge 1 to oslo (~1 row, 8 B)
fragment 2 at oslo: reads table orders; edge 1 from bergen
    scan, join
    SELECT /*+ BROADCAST(`d`) */ o_id, m FROM orders AS orders JOIN edge_1 AS d ON o_id = m
    because the links take ~0.0011 s, ~0.96 s at bergen
    → edge 2 to oslo (~10 rows, 160 B)
finish at oslo: gather edge 2 from oslo
*/

-- case: a WITH query with a limit is moved if it is named once
-- rules: filters,blocks
WITH d AS (SELECT c_id AS k FROM customer LIMIT 3) SELECT o_id, n FROM orders JOIN (SELECT count(*) AS n FROM customer JOIN d ON c_id = k) AS e ON o_id = n
/*
plan, result at oslo
fragment 1 at bergen: reads table customer; table customer
    scan, join, aggregate, limit
    SELECT e.`n` FROM (SELECT count(*) AS n FROM customer AS customer JOIN (SELECT c_id AS k FROM customer AS customer LIMIT 3) AS d ON c_id = k) AS e
    because its tables are there
    → edge 1 to oslo (~1 row, 8 B)
fragment 2 at oslo: reads table orders; edge 1 from bergen
    scan, join
    SELECT /*+ BROADCAST(`e`) */ o_id, n FROM orders AS orders JOIN edge_1 AS e ON o_id = n
    because the links take ~0.0011 s, ~0.96 s at bergen
    → edge 2 to oslo (~10 rows, 160 B)
finish at oslo: gather edge 2 from oslo
*/

-- case: a WITH query that differs from call to call is not copied
-- rules: filters,blocks,answers
WITH d AS (SELECT c_id AS k, rand() AS r FROM customer) SELECT o_id FROM orders JOIN d AS a ON o_id = a.k JOIN d AS b ON a.k = b.k WHERE a.r <= (SELECT max(r) FROM d)
/*
plan, result at oslo
fragment 1 at bergen: reads table customer
    scan
    SELECT customer.`c_id` FROM customer AS customer
    because customer is there
    → edge 1 to oslo (~150,000 rows, 1.1 MiB)
fragment 2 at oslo: reads edge 1 from bergen; table orders
    scan, filter, join, aggregate
    WITH d AS (SELECT c_id AS k, rand() AS r FROM edge_1 AS customer) SELECT o_id FROM orders AS orders JOIN d AS a ON o_id = a.k JOIN d AS b ON a.k = b.k WHERE a.r <= (SELECT max(r) FROM d)
    because the links take ~0.097 s, ~1.4 s at bergen
    → edge 2 to oslo (~750,000 rows, 5.7 MiB)
finish at oslo: gather edge 2 from oslo
*/

-- case: a WITH query with a limit that is named twice is answered once, at its site
-- rules: all
WITH d(k) AS (SELECT c_id FROM customer ORDER BY c_name LIMIT 3) SELECT o_id FROM orders JOIN d AS a ON o_cust = a.k JOIN d AS b ON o_id = b.k
/*
plan, result at oslo
fragment 1 at bergen: reads table customer
    scan, sort, limit
    SELECT arm_0.`k` FROM (SELECT c_id FROM customer AS customer ORDER BY c_name LIMIT 3) AS arm_0(k)
    because its tables are there
    → edge 1 to oslo (~3 rows, 24 B)
fragment 2 at oslo: reads table orders; edge 1 from bergen
    scan, join
    WITH d(k) AS (SELECT * FROM edge_1 AS arm_0) SELECT o_id FROM orders AS orders JOIN d AS a ON o_cust = a.k JOIN d AS b ON o_id = b.k
    because the links take ~0.0011 s, ~1.9 s at bergen
    → edge 2 to oslo (~0 rows, 0 B)
finish at oslo: gather edge 2 from oslo
*/

-- case: queries with a limit are not one because they are alike, and give no keys ahead
-- rules: all
SELECT o_id FROM orders, lineitem, (SELECT c_id AS k FROM customer LIMIT 3) AS a, (SELECT c_id AS k FROM customer LIMIT 3) AS b WHERE o_cust = a.k AND o_id = b.k AND l_order = a.k
/*
plan, result at oslo
fragment 1 at oslo: reads table orders
    scan
    SELECT orders.`o_id`, orders.`o_cust` FROM orders AS orders
    because orders is there
    → edge 1 to tromso (~1,500,000 rows, 22.9 MiB)
fragment 2 at bergen: reads table customer
    scan, limit
    SELECT a.`k` FROM (SELECT c_id AS k FROM customer AS customer LIMIT 3) AS a
    because its tables are there
    → edge 2 to tromso (~3 rows, 24 B)
fragment 3 at bergen: reads table customer
    scan, limit
    SELECT b.`k` FROM (SELECT c_id AS k FROM customer AS customer LIMIT 3) AS b
    because its tables are there
    → edge 3 to tromso (~3 rows, 24 B)
fragment 4 at tromso: reads edge 1 from oslo; table lineitem; edge 2 from bergen; edge 3 from bergen
    scan, filter, join
    SELECT /*+ BROADCAST(`a`, `b`) */ o_id FROM edge_1 AS orders, edge_2 AS a, lineitem AS lineitem, edge_3 AS b WHERE o_cust = a.k AND o_id = b.k AND l_order = a.k
    because the links take ~1.9 s, ~3.8 s at oslo
    → edge 4 to oslo (~0 rows, 0 B)
finish at oslo: gather edge 4 from tromso
*/

-- case: keys and conditions are asked of the answer of a window, not of its rows
-- rules: all
SELECT o_id, m FROM orders JOIN (SELECT c_id, row_number() OVER (PARTITION BY c_nation ORDER BY c_name) AS r, max(c_name) OVER (PARTITION BY c_nation) AS m FROM customer) AS d ON o_cust = d.c_id WHERE r < 3 AND o_total = 7
/*
plan, result at oslo
fragment 1 at oslo: reads table orders
    scan, filter, distinct
    SELECT DISTINCT orders.`o_cust` FROM orders AS orders WHERE o_total = 7
    because orders is there; its keys go ahead, so fewer rows travel
    → edge 2 to bergen (~14,342 rows, 112.1 KiB)
fragment 2 at bergen: reads table customer; edge 2 from oslo
    scan, filter, join, aggregate, window, sort
    SELECT /*+ BROADCAST(key_1) */ d.`c_id`, d.`m` FROM (SELECT c_id, row_number() OVER (PARTITION BY c_nation ORDER BY c_name) AS r, max(c_name) OVER (PARTITION BY c_nation) AS m FROM customer AS customer) AS d LEFT SEMI JOIN (SELECT `o_cust` FROM edge_2) AS key_1 ON d.`c_id` = key_1.`o_cust` WHERE r < 3
    because its tables are there; rows without a match in orders are not sent
    → edge 1 to oslo (~4,780 rows, 149.4 KiB)
fragment 3 at oslo: reads table orders; edge 1 from bergen
    scan, filter, join
    SELECT /*+ BROADCAST(`d`) */ o_id, m FROM orders AS orders JOIN edge_1 AS d ON o_cust = d.c_id WHERE o_total = 7
    because the links take ~0.033 s, ~0.034 s at bergen
    → edge 3 to oslo (~5,000 rows, 156.2 KiB)
finish at oslo: gather edge 3 from oslo
*/

-- case: one WITH query stays, others move, and those that stand in them
-- rules: filters,blocks
WITH a AS (SELECT c_nation AS k, rand() AS r FROM customer), b AS (WITH c AS (SELECT c_nation AS k, max(c_id) AS m FROM customer GROUP BY c_nation) SELECT m FROM c WHERE k > 3) SELECT o_id, x.r FROM orders JOIN a AS x ON o_id = x.k JOIN a AS y ON x.r = y.r JOIN b ON m = o_cust
/*
plan, result at oslo
fragment 1 at bergen: reads table customer
    scan
    SELECT customer.`c_nation` FROM customer AS customer
    because customer is there
    → edge 1 to oslo (~150,000 rows, 585.9 KiB)
fragment 2 at bergen: reads table customer
    scan, filter, aggregate
    SELECT b.`m` FROM (SELECT m FROM (SELECT c_nation AS k, max(c_id) AS m FROM customer AS customer GROUP BY c_nation) AS c WHERE k > 3) AS b
    because its tables are there
    → edge 2 to oslo (~15,000 rows, 117.2 KiB)
fragment 3 at oslo: reads edge 1 from bergen; table orders; edge 2 from bergen
    scan, filter, join
    WITH a AS (SELECT c_nation AS k, rand() AS r FROM edge_1 AS customer) SELECT /*+ BROADCAST(`b`) */ o_id, x.r FROM orders AS orders, a AS x, a AS y, edge_2 AS b WHERE o_id = x.k AND x.r = y.r AND m = o_cust
    because the links take ~0.16 s, ~4.8 s at bergen
    → edge 3 to oslo (~1,500,000 rows, 34.3 MiB)
finish at oslo: gather edge 3 from oslo
*/

-- case: a name that two WITHs give stays where it is given
-- rules: filters,blocks
WITH a AS (SELECT c_nation AS k FROM customer GROUP BY c_nation) SELECT o_id FROM orders JOIN (WITH a AS (SELECT n_id AS k FROM nation) SELECT count(*) AS n FROM a) AS b ON o_id = n JOIN a ON o_cust = a.k
/*
plan, result at oslo
fragment 1 at bergen: reads table customer
    scan, aggregate
    SELECT arm_0.`k` FROM (SELECT c_nation AS k FROM customer AS customer GROUP BY c_nation) AS arm_0
    because its tables are there
    → edge 1 to oslo (~15,000 rows, 58.6 KiB)
fragment 2 at bergen: reads table nation
    scan
    SELECT arm_1.`k` FROM (SELECT n_id AS k FROM nation AS nation) AS arm_1
    because its tables are there
    → edge 2 to oslo (~25 rows, 100 B)
fragment 3 at oslo: reads table orders; edge 1 from bergen; edge 2 from bergen
    scan, join, aggregate
    WITH a AS (SELECT * FROM edge_1 AS arm_0) SELECT o_id FROM orders AS orders JOIN (WITH a AS (SELECT * FROM edge_2 AS arm_1) SELECT count(*) AS n FROM a) AS b ON o_id = n JOIN a ON o_cust = a.k
    because the links take ~0.007 s, ~2.9 s at bergen
    → edge 3 to oslo (~1,500,000 rows, 11.4 MiB)
finish at oslo: gather edge 3 from oslo
*/

-- case: arms of a union are answered where their tables are
-- rules: filters,blocks
-- at: bergen
SELECT count(*) AS n FROM orders UNION ALL SELECT count(*) FROM lineitem UNION ALL SELECT max(o_id) FROM orders ORDER BY n
/*
plan, result at bergen
fragment 1 at tromso: reads table lineitem
    scan, aggregate
    SELECT arm_1.`arm_c0` FROM (SELECT count(*) FROM lineitem AS lineitem) AS arm_1(arm_c0)
    because its tables are there
    → edge 1 to oslo (~1 row, 8 B)
fragment 2 at oslo: reads table orders; edge 1 from tromso
    scan, union, aggregate, sort
    SELECT count(*) AS n FROM orders AS orders UNION ALL SELECT * FROM edge_1 AS arm_1 UNION ALL SELECT max(o_id) FROM orders AS orders ORDER BY n
    because the links take ~0.0022 s, ~0.0034 s at bergen
    → edge 2 to bergen, in order (~3 rows, 48 B)
finish at bergen: gather edge 2 from oslo
*/

-- case: an arm with a limit is answered once
-- rules: filters,blocks
-- at: bergen
(SELECT o_id FROM orders ORDER BY o_id LIMIT 5) UNION ALL (SELECT l_order FROM lineitem ORDER BY l_order LIMIT 5)
/*
plan, result at bergen
fragment 1 at oslo: reads table orders
    scan, sort, limit
    SELECT arm_0.`o_id` FROM (SELECT o_id FROM orders AS orders ORDER BY o_id LIMIT 5) AS arm_0
    because its tables are there
    → edge 1 to bergen (~5 rows, 40 B)
fragment 2 at tromso: reads table lineitem
    scan, sort, limit
    SELECT arm_1.`arm_c0` FROM (SELECT l_order FROM lineitem AS lineitem ORDER BY l_order LIMIT 5) AS arm_1(arm_c0)
    because its tables are there
    → edge 2 to bergen (~5 rows, 40 B)
fragment 3 at bergen: reads edge 1 from oslo; edge 2 from tromso
    scan, union
    SELECT * FROM edge_1 AS arm_0 UNION ALL SELECT * FROM edge_2 AS arm_1
    because the links take ~0.0022 s, ~0.0022 s at oslo
    → edge 3 to bergen (~10 rows, 80 B)
finish at bergen: gather edge 3 from bergen
*/

-- case: the first arm keeps its names, and stays if Spark would have to make them
-- rules: filters,blocks
-- at: bergen
SELECT count(*), o_cust FROM orders GROUP BY o_cust UNION ALL SELECT count(*), l_order FROM lineitem GROUP BY l_order
/*
plan, result at bergen
fragment 1 at oslo: reads table orders
    scan
    SELECT orders.`o_cust` FROM orders AS orders
    because orders is there
    → edge 1 to bergen (~1,500,000 rows, 11.4 MiB)
fragment 2 at tromso: reads table lineitem
    scan, aggregate
    SELECT arm_1.`arm_c0`, arm_1.`arm_c1` FROM (SELECT count(*), l_order FROM lineitem AS lineitem GROUP BY l_order) AS arm_1(arm_c0, arm_c1)
    because its tables are there
    → edge 2 to bergen (~600,000 rows, 9.2 MiB)
fragment 3 at bergen: reads edge 1 from oslo; edge 2 from tromso
    scan, union, aggregate
    SELECT count(*), o_cust FROM edge_1 AS orders GROUP BY o_cust UNION ALL SELECT * FROM edge_2 AS arm_1
    because the links take ~1.7 s, ~2.2 s at oslo
    → edge 3 to bergen (~750,000 rows, 17.2 MiB)
finish at bergen: gather edge 3 from bergen
*/

-- case: arms of one site are one arm
-- rules: filters,blocks
SELECT o_cust FROM orders WHERE o_total = 1 EXCEPT (SELECT c_id FROM customer WHERE c_nation = 3 INTERSECT SELECT max(n_id) FROM nation)
/*
plan, result at oslo
fragment 1 at bergen: reads table customer; table nation
    scan, filter, union, aggregate
    SELECT arm_0.`arm_c0` FROM (SELECT c_id FROM customer AS customer WHERE c_nation = 3 INTERSECT SELECT max(n_id) FROM nation AS nation) AS arm_0(arm_c0)
    because its tables are there
    → edge 1 to oslo (~1 row, 8 B)
fragment 2 at oslo: reads table orders; edge 1 from bergen
    scan, filter, union
    SELECT o_cust FROM orders AS orders WHERE o_total = 1 EXCEPT SELECT * FROM edge_1 AS arm_0
    because the links take ~0.0011 s, ~0.021 s at bergen
    → edge 2 to oslo (~14,342 rows, 112.1 KiB)
finish at oslo: gather edge 2 from oslo
*/
