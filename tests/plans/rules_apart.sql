-- case: groups of a join are made where it is, not at the root
-- at: tromso
-- rules: all
SELECT d.s, l_qty FROM (SELECT c_nation AS k, sum(o_total) AS s FROM orders JOIN customer ON o_cust = c_id JOIN nation ON n_id = c_nation GROUP BY c_nation) AS d JOIN lineitem ON l_qty = d.k
/*
plan, result at tromso
fragment 1 at bergen: reads table customer
    scan
    SELECT customer.`c_id`, customer.`c_nation` FROM customer AS customer
    because customer is there
    → edge 2 to oslo (~150,000 rows, 1.7 MiB)
fragment 2 at bergen: reads table nation
    scan
    SELECT nation.`n_id` FROM nation AS nation
    because nation is there
    → edge 3 to oslo, through the driver (~25 rows, 100 B)
fragment 3 at oslo: reads table orders; edge 2 from bergen; edge 3 from bergen
    scan, join, aggregate
    SELECT d.`k`, CAST(d.`s` AS DECIMAL(25, 2)) AS `s` FROM (SELECT /*+ BROADCAST(`customer`, `nation`) */ c_nation AS k, sum(o_total) AS s FROM orders AS orders JOIN edge_2 AS customer ON o_cust = c_id JOIN edge_3 AS nation ON n_id = c_nation GROUP BY c_nation) AS d
    because a query over bergen and oslo is answered there: ~2 rows travel instead of ~1,500,025
    → edge 1 to tromso (~2 rows, 40 B)
fragment 4 at tromso: reads table lineitem; edge 1 from oslo
    scan, join
    SELECT /*+ BROADCAST(`d`) */ d.s, l_qty FROM edge_1 AS d JOIN lineitem AS lineitem ON l_qty = d.k
    because the links take ~0.15 s, ~12 s at oslo
    → edge 4 to tromso (~6,000,000 rows, 114.4 MiB)
finish at tromso: gather edge 4 from tromso
*/

-- case: conditions on the groups and keys of the rest reduce what travels
-- at: tromso
-- rules: all
SELECT d.s, l_qty FROM (SELECT o_cust AS k, sum(o_total) AS s FROM orders JOIN customer ON o_cust = c_id WHERE c_nation < 5 GROUP BY o_cust) AS d JOIN lineitem ON l_order = d.k WHERE d.s > 100 AND d.k < 500 AND l_qty = 3
/*
plan, result at tromso
fragment 1 at bergen: reads table customer
    scan, filter
    SELECT customer.`c_id` FROM customer AS customer WHERE c_nation < 5
    because customer is there
    → edge 2 to oslo (~50,000 rows, 390.6 KiB)
fragment 2 at oslo: reads table orders; edge 2 from bergen
    scan, filter, join, aggregate
    SELECT d.`k`, CAST(d.`s` AS DECIMAL(25, 2)) AS `s` FROM (SELECT /*+ BROADCAST(`customer`) */ o_cust AS k, sum(o_total) AS s FROM orders AS orders JOIN edge_2 AS customer ON o_cust = c_id GROUP BY o_cust) AS d WHERE d.s > 100 AND d.k < 500
    because a query over bergen and oslo is answered there: ~1,638 rows travel instead of ~197,399
    → edge 1 to tromso (~1,637 rows, 38.4 KiB)
fragment 3 at tromso: reads table lineitem; edge 1 from oslo
    scan, filter, join
    SELECT /*+ BROADCAST(`d`) */ d.s, l_qty FROM edge_1 AS d JOIN lineitem AS lineitem ON l_order = d.k WHERE l_qty = 3
    because the links take ~0.042 s, ~0.087 s at oslo
    → edge 3 to tromso (~20,000 rows, 390.6 KiB)
finish at tromso: gather edge 3 from tromso
*/

-- case: a scalar subquery over two sites is answered once
-- at: tromso
-- rules: all
SELECT l_order FROM lineitem WHERE l_price > (SELECT avg(o_total) FROM orders JOIN customer ON o_cust = c_id WHERE c_nation = 3)
/*
plan, result at tromso
fragment 1 at bergen: reads table customer
    scan, filter
    SELECT customer.`c_id` FROM customer AS customer WHERE c_nation = 3
    because customer is there
    → edge 2 to oslo (~1,500 rows, 11.7 KiB)
fragment 2 at oslo: reads table orders; edge 2 from bergen
    scan, join, aggregate
    SELECT CAST(answer_1.`answer_1_1` AS DECIMAL(19, 6)) AS `answer_1_1` FROM (SELECT /*+ BROADCAST(`customer`) */ avg(o_total) FROM orders AS orders JOIN edge_2 AS customer ON o_cust = c_id) AS answer_1(answer_1_1)
    because a query over bergen and oslo is answered there: ~1 row travels instead of ~15,843; the subquery is answered once
    → edge 1 to tromso (~1 row, 16 B)
fragment 3 at tromso: reads table lineitem; edge 1 from oslo
    scan, filter
    SELECT l_order FROM lineitem AS lineitem WHERE l_price > (SELECT answer_1.answer_1_1 FROM edge_1 AS answer_1)
    because the links take ~0.0082 s, ~13 s at oslo
    → edge 3 to tromso (~3,000,000 rows, 22.9 MiB)
finish at tromso: gather edge 3 from tromso
*/

-- case: a set over two sites
-- at: tromso
-- rules: all
SELECT l_price FROM lineitem WHERE l_qty IN (SELECT c_nation FROM orders JOIN customer ON o_cust = c_id WHERE o_total > 7)
/*
plan, result at tromso
fragment 1 at oslo: reads table orders
    scan, filter, distinct
    SELECT DISTINCT orders.`o_cust` FROM orders AS orders WHERE o_total > 7
    because orders is there
    → edge 2 to bergen (~147,398 rows, 1.1 MiB)
fragment 2 at bergen: reads edge 2 from oslo; table customer
    scan, join, distinct
    SELECT answer_1.`answer_1_1` FROM (SELECT /*+ BROADCAST(`orders`) */ DISTINCT c_nation FROM edge_2 AS orders JOIN customer AS customer ON o_cust = c_id) AS answer_1(answer_1_1)
    because a query over bergen and oslo is answered there: ~15,000 rows travel instead of ~297,399; the subquery is answered once
    → edge 1 to tromso (~15,000 rows, 58.6 KiB)
fragment 3 at tromso: reads table lineitem; edge 1 from bergen
    scan, filter
    SELECT l_price FROM lineitem AS lineitem WHERE l_qty IN (SELECT answer_1.answer_1_1 FROM edge_1 AS answer_1)
    because the links take ~0.11 s, ~14 s at bergen
    → edge 3 to tromso (~3,000,000 rows, 45.8 MiB)
finish at tromso: gather edge 3 from tromso
*/

-- case: a WITH query that is named twice is answered once
-- at: tromso
-- rules: all
WITH t AS (SELECT c_nation AS k, max(o_total) AS m FROM orders JOIN customer ON o_cust = c_id GROUP BY c_nation) SELECT l_order, a.m FROM lineitem JOIN t AS a ON a.k = l_qty JOIN t AS b ON b.k = l_order AND b.m < a.m
/*
plan, result at tromso
fragment 1 at bergen: reads table customer
    scan
    SELECT customer.`c_id`, customer.`c_nation` FROM customer AS customer
    because customer is there
    → edge 2 to oslo (~150,000 rows, 1.7 MiB)
fragment 2 at oslo: reads table orders; edge 2 from bergen
    scan, join, aggregate
    SELECT a.`k`, CAST(a.`m` AS DECIMAL(15, 2)) AS `m` FROM (SELECT /*+ BROADCAST(`customer`) */ c_nation AS k, max(o_total) AS m FROM orders AS orders JOIN edge_2 AS customer ON o_cust = c_id GROUP BY c_nation) AS a
    because a query over bergen and oslo is answered there: ~15,000 rows travel instead of ~1,650,000
    → edge 1 to tromso (~15,000 rows, 293.0 KiB)
fragment 3 at tromso: reads table lineitem; edge 1 from oslo
    scan, join
    SELECT /*+ BROADCAST(`a`, `b`) */ l_order, a.m FROM lineitem AS lineitem JOIN edge_1 AS a ON a.k = l_qty JOIN edge_1 AS b ON b.k = l_order AND b.m < a.m
    because the links take ~0.18 s, ~17 s at oslo
    → edge 3 to tromso (~6,000,000 rows, 137.3 MiB)
finish at tromso: gather edge 3 from tromso
*/

-- case: named twice with a condition of its own each time
-- at: tromso
-- rules: all
WITH t AS (SELECT c_nation AS k, max(o_total) AS m FROM orders JOIN customer ON o_cust = c_id GROUP BY c_nation) SELECT l_order, a.m FROM lineitem JOIN t AS a ON a.k = l_qty JOIN t AS b ON b.k = l_order WHERE a.m < 9 AND b.m > 3
/*
plan, result at tromso
fragment 1 at bergen: reads table customer
    scan
    SELECT customer.`c_id`, customer.`c_nation` FROM customer AS customer
    because customer is there
    → edge 2 to oslo (~150,000 rows, 1.7 MiB)
fragment 2 at oslo: reads table orders; edge 2 from bergen
    scan, join, aggregate
    SELECT a.`k`, CAST(a.`m` AS DECIMAL(15, 2)) AS `m` FROM (SELECT /*+ BROADCAST(`customer`) */ c_nation AS k, max(o_total) AS m FROM orders AS orders JOIN edge_2 AS customer ON o_cust = c_id GROUP BY c_nation) AS a
    because a query over bergen and oslo is answered there: ~15,000 rows travel instead of ~1,650,000
    → edge 1 to tromso (~15,000 rows, 293.0 KiB)
fragment 3 at tromso: reads table lineitem; edge 1 from oslo
    scan, filter, join
    SELECT /*+ BROADCAST(`a`, `b`) */ l_order, a.m FROM lineitem AS lineitem JOIN edge_1 AS a ON a.k = l_qty JOIN edge_1 AS b ON b.k = l_order WHERE a.m < 9 AND b.m > 3
    because the links take ~0.18 s, ~17 s at oslo
    → edge 3 to tromso (~6,000,000 rows, 137.3 MiB)
finish at tromso: gather edge 3 from tromso
*/

-- case: where all rows may differ only the join is made before
-- at: tromso
-- rules: all
SELECT d.c_nation, count(*) AS n FROM (SELECT DISTINCT c_nation, o_date FROM orders JOIN customer ON o_cust = c_id) AS d JOIN lineitem ON l_qty = d.c_nation GROUP BY d.c_nation
/*
plan, result at tromso
fragment 1 at bergen: reads table customer
    scan, distinct
    SELECT DISTINCT customer.`c_id`, customer.`c_nation` FROM customer AS customer
    because customer is there
    → edge 2 to oslo (~150,000 rows, 1.7 MiB)
fragment 2 at oslo: reads table orders; edge 2 from bergen
    scan, filter, join, distinct
    SELECT DISTINCT joined_3.`o_date`, joined_3.`c_nation` FROM (SELECT /*+ BROADCAST(`customer`) */ orders.`o_date` AS `o_date`, customer.`c_nation` AS `c_nation` FROM orders AS orders, edge_2 AS customer WHERE orders.`o_cust` = customer.`c_id`) AS joined_3
    because orders, customer are joined there before they travel
    → edge 1 to tromso (~1,500,000 rows, 11.4 MiB)
fragment 3 at tromso: reads table lineitem; edge 1 from oslo
    scan, join, aggregate, distinct
    SELECT d.c_nation, count(*) AS n FROM (SELECT DISTINCT c_nation, o_date FROM edge_1 AS joined_3) AS d JOIN lineitem AS lineitem ON l_qty = d.c_nation GROUP BY d.c_nation
    because the links take ~1.1 s, ~2.1 s at oslo
    → edge 3 to tromso (~15,000 rows, 293.0 KiB)
finish at tromso: gather edge 3 from tromso
*/

-- case: a query in FROM with another in it
-- at: tromso
-- rules: all
SELECT l_order, d.n FROM (SELECT c.c_nation AS k, count(*) AS n FROM customer AS c JOIN (SELECT o_cust, max(o_total) AS m FROM orders JOIN nation ON n_id = o_id GROUP BY o_cust) AS o ON o.o_cust = c.c_id WHERE o.m > 2 GROUP BY c.c_nation) AS d JOIN lineitem ON l_qty = d.k
/*
plan, result at tromso
fragment 1 at bergen: reads table customer
    scan
    SELECT c.`c_id`, c.`c_nation` FROM customer AS c
    because customer is there
    → edge 1 to tromso (~150,000 rows, 1.7 MiB)
fragment 2 at bergen: reads table nation
    scan
    SELECT nation.`n_id` FROM nation AS nation
    because nation is there
    → edge 3 to oslo, through the driver (~25 rows, 100 B)
fragment 3 at oslo: reads table orders; edge 3 from bergen
    scan, filter, join, aggregate
    SELECT o.`o_cust` FROM (SELECT /*+ BROADCAST(`nation`) */ o_cust, max(o_total) AS m FROM orders AS orders JOIN edge_3 AS nation ON n_id = o_id GROUP BY o_cust) AS o WHERE o.m > 2
    because a query over bergen and oslo is answered there: ~83 rows travel instead of ~1,500,025
    → edge 2 to tromso (~83 rows, 666 B)
fragment 4 at tromso: reads table lineitem; edge 1 from bergen; edge 2 from oslo
    scan, join, aggregate
    SELECT l_order, d.n FROM (SELECT /*+ BROADCAST(`c`, `o`) */ c.c_nation AS k, count(*) AS n FROM edge_1 AS c JOIN edge_2 AS o ON o.o_cust = c.c_id GROUP BY c.c_nation) AS d JOIN lineitem AS lineitem ON l_qty = d.k
    because the links take ~0.15 s, ~17 s at bergen
    → edge 4 to tromso (~6,000,000 rows, 137.3 MiB)
finish at tromso: gather edge 4 from tromso
*/

-- case: what reads every table of the query is not cut off
-- at: tromso
-- rules: all
SELECT max(d.s) AS m FROM (SELECT c_nation, sum(o_total) AS s FROM orders JOIN customer ON o_cust = c_id GROUP BY c_nation) AS d
/*
plan, result at tromso
fragment 1 at bergen: reads table customer
    scan
    SELECT customer.`c_id`, customer.`c_nation` FROM customer AS customer
    because customer is there
    → edge 1 to oslo (~150,000 rows, 1.7 MiB)
fragment 2 at oslo: reads table orders; edge 1 from bergen
    scan, join, aggregate
    SELECT max(d.s) AS m FROM (SELECT /*+ BROADCAST(`customer`) */ c_nation, sum(o_total) AS s FROM orders AS orders JOIN edge_1 AS customer ON o_cust = c_id GROUP BY c_nation) AS d
    because the links take ~0.15 s, ~2.9 s at bergen
    → edge 2 to tromso, through the driver (~1 row, 16 B)
finish at tromso: gather edge 2 from oslo
*/

-- case: without groups nothing is said to be fewer
-- at: tromso
-- rules: all
SELECT d.o_id, l_qty FROM (SELECT o_id, c_name FROM orders JOIN customer ON o_cust = c_id WHERE c_nation = 3) AS d JOIN lineitem ON l_order = d.o_id
/*
plan, result at tromso
fragment 1 at bergen: reads table customer
    scan, filter, distinct
    SELECT DISTINCT customer.`c_id` FROM customer AS customer WHERE c_nation = 3
    because customer is there; its keys go ahead, so fewer rows travel
    → edge 2 to oslo (~1,434 rows, 11.2 KiB)
fragment 2 at oslo: reads table orders; edge 2 from bergen
    scan, join
    SELECT /*+ BROADCAST(key_1) */ orders.`o_id`, orders.`o_cust` FROM orders AS orders LEFT SEMI JOIN (SELECT `c_id` FROM edge_2) AS key_1 ON orders.`o_cust` = key_1.`c_id`
    because orders is there; rows without a match in customer are not sent
    → edge 1 to tromso (~14,342 rows, 224.1 KiB)
fragment 3 at bergen: reads table customer
    scan, filter
    SELECT customer.`c_id`, customer.`c_name` FROM customer AS customer WHERE c_nation = 3
    because customer is there
    → edge 3 to tromso (~1,500 rows, 46.9 KiB)
fragment 4 at tromso: reads table lineitem; edge 1 from oslo; edge 3 from bergen
    scan, join
    SELECT d.o_id, l_qty FROM (SELECT /*+ BROADCAST(`orders`, `customer`) */ o_id, c_name FROM edge_1 AS orders JOIN edge_3 AS customer ON o_cust = c_id) AS d JOIN lineitem AS lineitem ON l_order = d.o_id
    because the links take ~0.032 s, ~5.8 s at oslo
    → edge 4 to tromso (~60,000 rows, 703.1 KiB)
finish at tromso: gather edge 4 from tromso
*/

-- case: joined on with a table of the site that answers
-- at: bergen
-- rules: all
SELECT c_name, d.n FROM customer JOIN (SELECT o_cust, count(*) AS n FROM orders JOIN lineitem ON l_order = o_id WHERE l_qty > 5 GROUP BY o_cust) AS d ON d.o_cust = c_id
/*
plan, result at bergen
fragment 1 at tromso: reads table lineitem
    scan, filter
    SELECT lineitem.`l_order` FROM lineitem AS lineitem WHERE l_qty > 5
    because lineitem is there
    → edge 2 to oslo (~2,000,000 rows, 15.3 MiB)
fragment 2 at oslo: reads table orders; edge 2 from tromso
    scan, join, aggregate
    SELECT d.`o_cust`, d.`n` FROM (SELECT o_cust, count(*) AS n FROM orders AS orders JOIN edge_2 AS lineitem ON l_order = o_id GROUP BY o_cust) AS d
    because a query over oslo and tromso is answered there: ~150,000 rows travel instead of ~3,500,000
    → edge 1 to bergen (~150,000 rows, 2.3 MiB)
fragment 3 at bergen: reads table customer; edge 1 from oslo
    scan, join
    SELECT /*+ BROADCAST(`d`) */ c_name, d.n FROM customer AS customer JOIN edge_1 AS d ON d.o_cust = c_id
    because the links take ~1.5 s, ~2.1 s at oslo
    → edge 3 to bergen (~150,000 rows, 5.7 MiB)
finish at bergen: gather edge 3 from bergen
*/

-- case: an outer join keeps the rows that the groups lack
-- at: tromso
-- rules: all
SELECT l_order, d.m FROM lineitem LEFT JOIN (SELECT c_nation AS k, min(o_date) AS m FROM orders LEFT JOIN customer ON o_cust = c_id GROUP BY c_nation) AS d ON d.k = l_qty AND d.m IS NOT NULL
/*
plan, result at tromso
fragment 1 at bergen: reads table customer
    scan
    SELECT customer.`c_id`, customer.`c_nation` FROM customer AS customer
    because customer is there
    → edge 2 to oslo (~150,000 rows, 1.7 MiB)
fragment 2 at oslo: reads table orders; edge 2 from bergen
    scan, filter, join, aggregate
    SELECT d.`k`, d.`m` FROM (SELECT /*+ BROADCAST(`customer`) */ c_nation AS k, min(o_date) AS m FROM orders AS orders LEFT JOIN edge_2 AS customer ON o_cust = c_id GROUP BY c_nation) AS d WHERE d.m IS NOT NULL
    because a query over bergen and oslo is answered there: ~15,000 rows travel instead of ~1,650,000
    → edge 1 to tromso (~15,000 rows, 117.2 KiB)
fragment 3 at tromso: reads table lineitem; edge 1 from oslo
    scan, join
    SELECT /*+ BROADCAST(`d`) */ l_order, d.m FROM lineitem AS lineitem LEFT JOIN edge_1 AS d ON d.k = l_qty
    because the links take ~0.16 s, ~17 s at oslo
    → edge 3 to tromso (~6,000,000 rows, 137.3 MiB)
finish at tromso: gather edge 3 from tromso
*/

-- case: groups of two other sites
-- at: oslo
-- rules: all
SELECT o_id, d.n FROM orders JOIN (SELECT c_nation AS k, count(*) AS n FROM customer JOIN lineitem ON l_order = c_id GROUP BY c_nation) AS d ON d.k = o_id
/*
plan, result at oslo
fragment 1 at bergen: reads table customer
    scan
    SELECT customer.`c_id`, customer.`c_nation` FROM customer AS customer
    because customer is there
    → edge 2 to tromso (~150,000 rows, 1.7 MiB)
fragment 2 at tromso: reads edge 2 from bergen; table lineitem
    scan, join, aggregate
    SELECT d.`k`, d.`n` FROM (SELECT /*+ BROADCAST(`customer`) */ c_nation AS k, count(*) AS n FROM edge_2 AS customer JOIN lineitem AS lineitem ON l_order = c_id GROUP BY c_nation) AS d
    because a query over bergen and tromso is answered there: ~15,000 rows travel instead of ~6,150,000
    → edge 1 to oslo (~15,000 rows, 175.8 KiB)
fragment 3 at oslo: reads table orders; edge 1 from tromso
    scan, join
    SELECT /*+ BROADCAST(`d`) */ o_id, d.n FROM orders AS orders JOIN edge_1 AS d ON d.k = o_id
    because the links take ~0.17 s, ~4 s at tromso
    → edge 3 to oslo (~1,500,000 rows, 34.3 MiB)
finish at oslo: gather edge 3 from oslo
*/

-- case: switched off
-- at: tromso
-- rules: -apart
SELECT d.s, l_qty FROM (SELECT c_nation AS k, sum(o_total) AS s FROM orders JOIN customer ON o_cust = c_id JOIN nation ON n_id = c_nation GROUP BY c_nation) AS d JOIN lineitem ON l_qty = d.k
/*
plan, result at tromso
fragment 1 at bergen: reads table customer
    scan
    SELECT customer.`c_id`, customer.`c_nation` FROM customer AS customer
    because customer is there
    → edge 1 to tromso (~150,000 rows, 1.7 MiB)
fragment 2 at bergen: reads table nation
    scan
    SELECT nation.`n_id` FROM nation AS nation
    because nation is there
    → edge 2 to tromso, through the driver (~25 rows, 100 B)
fragment 3 at oslo: reads table orders
    scan, aggregate
    SELECT grouped_1.`o_cust`, CAST(grouped_1.`grouped_1_1` AS DECIMAL(25, 2)) AS `grouped_1_1` FROM (SELECT orders.`o_cust` AS `o_cust`, sum(o_total) AS `grouped_1_1` FROM orders AS orders GROUP BY orders.`o_cust`) AS grouped_1
    because its tables are there; their rows are grouped there before they are joined with others
    → edge 3 to tromso (~150,000 rows, 3.4 MiB)
fragment 4 at tromso: reads table lineitem; edge 1 from bergen; edge 2 from bergen; edge 3 from oslo
    scan, filter, join, aggregate
    SELECT d.s, l_qty FROM (SELECT /*+ BROADCAST(`grouped_1`, `customer`, `nation`) */ c_nation AS k, CAST(sum(grouped_1.`grouped_1_1`) AS DECIMAL(25, 2)) AS s FROM edge_3 AS grouped_1, edge_1 AS customer, edge_2 AS nation WHERE o_cust = c_id AND n_id = c_nation GROUP BY c_nation) AS d JOIN lineitem AS lineitem ON l_qty = d.k
    because the links take ~0.44 s, ~12 s at oslo
    → edge 4 to tromso (~6,000,000 rows, 114.4 MiB)
finish at tromso: gather edge 4 from tromso
*/

-- case: the first groups of a join
-- at: tromso
-- rules: all
SELECT l_order, d.s FROM (SELECT c_nation AS k, sum(o_total) AS s FROM orders JOIN customer ON o_cust = c_id GROUP BY c_nation ORDER BY s DESC, k LIMIT 3) AS d JOIN lineitem ON l_qty = d.k WHERE d.s > 1
/*
plan, result at tromso
fragment 1 at bergen: reads table customer
    scan
    SELECT customer.`c_id`, customer.`c_nation` FROM customer AS customer
    because customer is there
    → edge 2 to oslo (~150,000 rows, 1.7 MiB)
fragment 2 at oslo: reads table orders; edge 2 from bergen
    scan, filter, join, aggregate, sort, limit
    SELECT d.`k`, CAST(d.`s` AS DECIMAL(25, 2)) AS `s` FROM (SELECT /*+ BROADCAST(`customer`) */ c_nation AS k, sum(o_total) AS s FROM orders AS orders JOIN edge_2 AS customer ON o_cust = c_id GROUP BY c_nation ORDER BY s DESC, k LIMIT 3) AS d WHERE d.s > 1
    because a query over bergen and oslo is answered there: ~1 row travels instead of ~1,650,000
    → edge 1 to tromso (~1 row, 20 B)
fragment 3 at tromso: reads table lineitem; edge 1 from oslo
    scan, join
    SELECT /*+ BROADCAST(`d`) */ l_order, d.s FROM edge_1 AS d JOIN lineitem AS lineitem ON l_qty = d.k
    because the links take ~0.15 s, ~5.9 s at oslo
    → edge 3 to tromso (~1,200 rows, 28.1 KiB)
finish at tromso: gather edge 3 from tromso
*/

-- case: any rows, each time others: two of them are two answers
-- at: tromso
-- rules: all
SELECT l_order, a.k, b.k FROM (SELECT c_nation AS k FROM orders JOIN customer ON o_cust = c_id LIMIT 3) AS a JOIN lineitem ON l_qty = a.k JOIN (SELECT c_nation AS k FROM orders JOIN customer ON o_cust = c_id LIMIT 3) AS b ON l_qty = b.k
/*
plan, result at tromso
fragment 1 at bergen: reads table customer
    scan
    SELECT customer.`c_id`, customer.`c_nation` FROM customer AS customer
    because customer is there
    → edge 2 to oslo (~150,000 rows, 1.7 MiB)
fragment 2 at oslo: reads table orders; edge 2 from bergen
    scan, join, limit
    SELECT a.`k` FROM (SELECT /*+ BROADCAST(`customer`) */ c_nation AS k FROM orders AS orders JOIN edge_2 AS customer ON o_cust = c_id LIMIT 3) AS a
    because a query over bergen and oslo is answered there: ~3 rows travel instead of ~1,650,000
    → edge 1 to tromso (~3 rows, 12 B)
fragment 3 at oslo: reads table orders; edge 2 from bergen
    scan, join, limit
    SELECT b.`k` FROM (SELECT /*+ BROADCAST(`customer`) */ c_nation AS k FROM orders AS orders JOIN edge_2 AS customer ON o_cust = c_id LIMIT 3) AS b
    because a query over bergen and oslo is answered there: ~3 rows travel instead of ~1,650,000
    → edge 3 to tromso (~3 rows, 12 B)
fragment 4 at tromso: reads table lineitem; edge 1 from oslo; edge 3 from oslo
    scan, join
    SELECT /*+ BROADCAST(`a`, `b`) */ l_order, a.k, b.k FROM edge_1 AS a JOIN lineitem AS lineitem ON l_qty = a.k JOIN edge_3 AS b ON l_qty = b.k
    because the links take ~0.3 s, ~5.9 s at oslo
    → edge 4 to tromso (~0 rows, 0 B)
finish at tromso: gather edge 4 from tromso
*/
