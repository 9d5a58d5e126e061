-- case: keys are looked up in place where both tables are at one site
-- rules: filters,semijoin
SELECT o_id FROM orders JOIN customer ON o_cust = c_id JOIN nation ON c_nation = n_id WHERE n_name = 'NORWAY'
/*
plan, result at oslo
fragment 1 at bergen: reads table customer; table nation
    scan, filter, join
    SELECT /*+ BROADCAST(key_1) */ customer.`c_id`, customer.`c_nation` FROM customer AS customer LEFT SEMI JOIN (SELECT nation.`n_id` FROM nation AS nation WHERE n_name = 'NORWAY') AS key_1 ON customer.`c_nation` = key_1.`n_id`
    because customer is there; rows without a match in nation are not sent
    → edge 1 to oslo (~24 rows, 298 B)
fragment 2 at bergen: reads table nation
    scan, filter
    SELECT nation.`n_id` FROM nation AS nation WHERE n_name = 'NORWAY'
    because nation is there
    → edge 2 to oslo, through the driver (~10 rows, 40 B)
fragment 3 at oslo: reads table orders; edge 1 from bergen; edge 2 from bergen
    scan, join
    SELECT /*+ BROADCAST(`customer`, `nation`) */ o_id FROM orders AS orders JOIN edge_1 AS customer ON o_cust = c_id JOIN edge_2 AS nation ON c_nation = n_id
    because the links take ~0.0025 s, ~0.01 s at bergen
    → edge 3 to oslo (~1,000 rows, 7.8 KiB)
finish at oslo: gather edge 3 from oslo
*/

-- case: keys go to the table that they reduce
-- rules: filters,semijoin
-- at: bergen
SELECT c_name, l_price FROM lineitem JOIN orders ON l_order = o_id JOIN customer ON o_cust = c_id WHERE c_name = 'x' AND o_total = 3
/*
plan, result at bergen
fragment 1 at bergen: reads table customer
    scan, filter, distinct
    SELECT DISTINCT customer.`c_id` FROM customer AS customer WHERE c_name = 'x'
    because customer is there; its keys go ahead, so fewer rows travel
    → edge 2 to oslo (~1,434 rows, 11.2 KiB)
fragment 2 at oslo: reads table orders; edge 2 from bergen
    scan, filter, join
    SELECT /*+ BROADCAST(key_1) */ orders.`o_id`, orders.`o_cust` FROM orders AS orders LEFT SEMI JOIN (SELECT `c_id` FROM edge_2) AS key_1 ON orders.`o_cust` = key_1.`c_id` WHERE o_total = 3
    because orders is there; rows without a match in customer are not sent
    → edge 1 to tromso (~143 rows, 2.2 KiB)
fragment 3 at bergen: reads table customer
    scan, filter
    SELECT customer.`c_id`, customer.`c_name` FROM customer AS customer WHERE c_name = 'x'
    because customer is there
    → edge 3 to tromso (~1,500 rows, 46.9 KiB)
fragment 4 at tromso: reads table lineitem; edge 1 from oslo; edge 3 from bergen
    scan, join
    SELECT /*+ BROADCAST(`orders`, `customer`) */ c_name, l_price FROM lineitem AS lineitem JOIN edge_1 AS orders ON l_order = o_id JOIN edge_3 AS customer ON o_cust = c_id
    because the links take ~0.02 s, ~0.024 s at oslo
    → edge 4 to bergen (~1,500 rows, 58.6 KiB)
finish at bergen: gather edge 4 from tromso
*/

-- case: a table that nothing reduces travels as it is
-- rules: filters,semijoin
SELECT o_id, c_name FROM orders JOIN customer ON o_cust = c_id
/*
plan, result at oslo
fragment 1 at bergen: reads table customer
    scan
    SELECT customer.`c_id`, customer.`c_name` FROM customer AS customer
    because customer is there
    → edge 1 to oslo (~150,000 rows, 4.6 MiB)
fragment 2 at oslo: reads table orders; edge 1 from bergen
    scan, join
    SELECT /*+ BROADCAST(`customer`) */ o_id, c_name FROM orders AS orders JOIN edge_1 AS customer ON o_cust = c_id
    because the links take ~0.39 s, ~5.8 s at bergen
    → edge 2 to oslo (~1,500,000 rows, 45.8 MiB)
finish at oslo: gather edge 2 from oslo
*/

-- case: an outer join reduces the side that it supplies only
-- rules: filters,semijoin
SELECT n_name, l_price FROM orders LEFT JOIN lineitem ON l_order = o_id LEFT JOIN customer ON c_id = o_cust JOIN nation ON n_id = o_id WHERE o_id = 5
/*
plan, result at oslo
fragment 1 at oslo: reads table orders
    scan, filter, distinct
    SELECT DISTINCT orders.`o_id` FROM orders AS orders WHERE o_id = 5
    because orders is there; its keys go ahead, so fewer rows travel
    → edge 2 to tromso (~1 row, 8 B)
fragment 2 at tromso: reads table lineitem; edge 2 from oslo
    scan, join
    SELECT /*+ BROADCAST(key_1) */ lineitem.`l_order`, lineitem.`l_price` FROM lineitem AS lineitem LEFT SEMI JOIN (SELECT `o_id` FROM edge_2) AS key_1 ON lineitem.`l_order` = key_1.`o_id`
    because lineitem is there; rows without a match in orders are not sent
    → edge 1 to oslo (~10 rows, 240 B)
fragment 3 at oslo: reads table orders
    scan, filter, distinct
    SELECT DISTINCT orders.`o_cust` FROM orders AS orders WHERE o_id = 5
    because orders is there; its keys go ahead, so fewer rows travel
    → edge 4 to bergen (~14,342 rows, 112.1 KiB)
fragment 4 at bergen: reads table customer; edge 4 from oslo
    scan, join
    SELECT /*+ BROADCAST(key_2) */ customer.`c_id` FROM customer AS customer LEFT SEMI JOIN (SELECT `o_cust` FROM edge_4) AS key_2 ON customer.`c_id` = key_2.`o_cust`
    because customer is there; rows without a match in orders are not sent
    → edge 3 to oslo (~14,342 rows, 112.1 KiB)
fragment 5 at bergen: reads table nation
    scan
    SELECT nation.`n_id`, nation.`n_name` FROM nation AS nation
    because nation is there
    → edge 5 to oslo, through the driver (~25 rows, 700 B)
fragment 6 at oslo: reads table orders; edge 1 from tromso; edge 3 from bergen; edge 5 from bergen
    scan, filter, join
    SELECT /*+ BROADCAST(`lineitem`, `customer`, `nation`) */ n_name, l_price FROM orders AS orders LEFT JOIN edge_1 AS lineitem ON l_order = o_id LEFT JOIN edge_3 AS customer ON c_id = o_cust JOIN edge_5 AS nation ON n_id = o_id WHERE o_id = 5
    because the links take ~0.04 s, ~0.04 s at bergen, which sends more bytes
    → edge 6 to oslo (~2,500 rows, 97.7 KiB)
finish at oslo: gather edge 6 from oslo
*/

-- case: nothing reduces a full join
-- rules: filters,semijoin
SELECT o_id, l_price FROM orders FULL JOIN lineitem ON l_order = o_id WHERE o_id = 5
/*
plan, result at oslo
fragment 1 at tromso: reads table lineitem
    scan
    SELECT lineitem.`l_order`, lineitem.`l_price` FROM lineitem AS lineitem
    because lineitem is there
    → edge 1 to oslo (~6,000,000 rows, 137.3 MiB)
fragment 2 at oslo: reads table orders; edge 1 from tromso
    scan, filter, join
    SELECT o_id, l_price FROM orders AS orders FULL JOIN edge_1 AS lineitem ON l_order = o_id WHERE o_id = 5
    because the links take ~12 s, ~15 s at tromso
    → edge 2 to oslo (~7,500,000 rows, 171.7 MiB)
finish at oslo: gather edge 2 from oslo
*/

-- case: an anti join's right side
-- rules: filters,semijoin
SELECT c_name FROM customer LEFT ANTI JOIN lineitem ON l_order = c_id WHERE c_id = 7
/*
plan, result at oslo
fragment 1 at bergen: reads table customer
    scan, filter
    SELECT customer.`c_id`, customer.`c_name` FROM customer AS customer WHERE c_id = 7
    because customer is there
    → edge 1 to tromso (~1,500 rows, 46.9 KiB)
fragment 2 at tromso: reads edge 1 from bergen; table lineitem
    scan, join
    SELECT /*+ BROADCAST(`customer`) */ c_name FROM edge_1 AS customer LEFT ANTI JOIN lineitem AS lineitem ON l_order = c_id
    because the links take ~0.0075 s, ~0.01 s at bergen
    → edge 2 to oslo (~750 rows, 17.6 KiB)
finish at oslo: gather edge 2 from tromso
*/

-- case: equalities reach further than they are written
-- rules: filters,semijoin
SELECT l_qty FROM lineitem JOIN orders ON l_order = o_id JOIN customer ON l_order = c_id WHERE c_name = 'x' AND o_id > 5
/*
plan, result at oslo
fragment 1 at bergen: reads table customer
    scan, filter, distinct
    SELECT DISTINCT customer.`c_id` FROM customer AS customer WHERE c_name = 'x'
    because customer is there; its keys go ahead, so fewer rows travel
    → edge 2 to tromso (~1,434 rows, 11.2 KiB)
fragment 2 at tromso: reads table lineitem; edge 2 from bergen
    scan, join
    SELECT /*+ BROADCAST(key_1) */ lineitem.`l_order`, lineitem.`l_qty` FROM lineitem AS lineitem LEFT SEMI JOIN (SELECT `c_id` FROM edge_2) AS key_1 ON lineitem.`l_order` = key_1.`c_id`
    because lineitem is there; rows without a match in customer are not sent
    → edge 1 to oslo (~14,342 rows, 168.1 KiB)
fragment 3 at bergen: reads table customer
    scan, filter
    SELECT customer.`c_id` FROM customer AS customer WHERE c_name = 'x'
    because customer is there
    → edge 3 to oslo (~1,500 rows, 11.7 KiB)
fragment 4 at oslo: reads edge 1 from tromso; table orders; edge 3 from bergen
    scan, filter, join
    SELECT /*+ BROADCAST(`lineitem`, `customer`) */ l_qty FROM edge_1 AS lineitem JOIN orders AS orders ON l_order = o_id JOIN edge_3 AS customer ON l_order = c_id WHERE o_id > 5
    because the links take ~0.025 s, ~0.025 s at tromso
    → edge 4 to oslo (~12,500 rows, 48.8 KiB)
finish at oslo: gather edge 4 from oslo
*/

-- case: a correlated subquery's table is reduced by the one around it
-- rules: filters,semijoin
-- at: bergen
SELECT c_name FROM customer WHERE c_nation = 3 AND c_id < 9 AND NOT EXISTS (SELECT * FROM lineitem WHERE l_order = c_id)
/*
plan, result at bergen
fragment 1 at bergen: reads table customer
    scan, filter
    SELECT customer.`c_id`, customer.`c_name` FROM customer AS customer WHERE c_nation = 3 AND c_id < 9
    because customer is there
    → edge 1 to tromso (~499 rows, 15.6 KiB)
fragment 2 at tromso: reads edge 1 from bergen; table lineitem
    scan, filter
    SELECT c_name FROM edge_1 AS customer WHERE NOT EXISTS (SELECT * FROM lineitem AS lineitem WHERE l_order = c_id)
    because the links take ~0.004 s, ~0.011 s at bergen
    → edge 2 to bergen (~249 rows, 5.9 KiB)
finish at bergen: gather edge 2 from tromso
*/

-- case: the same table twice, reduced alike, is brought once
-- rules: filters,semijoin
SELECT a.n_name FROM orders, lineitem, nation AS a WHERE a.n_id = o_id AND l_order = o_id AND o_cust IN (SELECT b.n_id FROM nation AS b)
/*
plan, result at oslo
fragment 1 at oslo: reads table orders
    scan
    SELECT orders.`o_id`, orders.`o_cust` FROM orders AS orders
    because orders is there
    → edge 1 to tromso (~1,500,000 rows, 22.9 MiB)
fragment 2 at bergen: reads table nation
    scan
    SELECT a.`n_id`, a.`n_name` FROM nation AS a
    because nation is there
    → edge 2 to tromso, through the driver (~25 rows, 700 B)
fragment 3 at tromso: reads edge 1 from oslo; table lineitem; edge 2 from bergen
    scan, filter, join
    SELECT /*+ BROADCAST(`a`) */ a.n_name FROM edge_1 AS orders, lineitem AS lineitem, edge_2 AS a WHERE a.n_id = o_id AND l_order = o_id AND o_cust IN (SELECT b.n_id FROM edge_2 AS b)
    because the links take ~1.9 s, ~3.8 s at oslo
    → edge 3 to oslo (~1,250 rows, 29.3 KiB)
finish at oslo: gather edge 3 from tromso
*/

-- case: parts at several sites
-- rules: filters,semijoin
-- at: tromso
SELECT s_price, c_name FROM sales JOIN customer ON s_cust = c_id WHERE c_name = 'x'
/*
plan, result at tromso
fragment 1 at bergen: reads table customer
    scan, filter, distinct
    SELECT DISTINCT customer.`c_id` FROM customer AS customer WHERE c_name = 'x'
    because customer is there; its keys go ahead, so fewer rows travel
    → edge 2 to oslo (~1,434 rows, 11.2 KiB)
fragment 2 at oslo: reads table sales; edge 2 from bergen
    scan, join
    SELECT /*+ BROADCAST(key_1) */ sales.`s_cust`, sales.`s_price` FROM sales AS sales LEFT SEMI JOIN (SELECT `c_id` FROM edge_2) AS key_1 ON sales.`s_cust` = key_1.`c_id`
    because sales is there; rows without a match in customer are not sent
    → edge 1 to tromso (~14,342 rows, 224.1 KiB)
fragment 3 at bergen: reads table sales; table customer
    scan, filter, join
    SELECT /*+ BROADCAST(key_2) */ sales.`s_cust`, sales.`s_price` FROM sales AS sales LEFT SEMI JOIN (SELECT customer.`c_id` FROM customer AS customer WHERE c_name = 'x') AS key_2 ON sales.`s_cust` = key_2.`c_id`
    because sales is there; rows without a match in customer are not sent
    → edge 1 to tromso (~0 rows, 4 B)
fragment 4 at bergen: reads table customer
    scan, filter
    SELECT customer.`c_id`, customer.`c_name` FROM customer AS customer WHERE c_name = 'x'
    because customer is there
    → edge 3 to tromso (~1,500 rows, 46.9 KiB)
fragment 5 at tromso: reads edge 1 from oslo, bergen; edge 3 from bergen
    scan, join
    SELECT /*+ BROADCAST(`sales`, `customer`) */ s_price, c_name FROM edge_1 AS sales JOIN edge_3 AS customer ON s_cust = c_id
    because the links take ~0.034 s, ~0.046 s at oslo
    → edge 4 to tromso (~15,000 rows, 468.8 KiB)
finish at tromso: gather edge 4 from tromso
*/

-- case: keys of two reductions at one member come there once
-- rules: filters,semijoin
-- at: tromso
SELECT a.l_price, o_id FROM lineitem AS a JOIN orders ON a.l_order = o_id JOIN customer ON o_cust = c_id JOIN sales ON s_cust = c_id WHERE c_name = 'x' AND o_total = 3
/*
plan, result at tromso
fragment 1 at bergen: reads table customer
    scan, filter, distinct
    SELECT DISTINCT customer.`c_id` FROM customer AS customer WHERE c_name = 'x'
    because customer is there; its keys go ahead, so fewer rows travel
    → edge 2 to oslo (~1,434 rows, 11.2 KiB)
fragment 2 at oslo: reads table orders; edge 2 from bergen
    scan, filter, join
    SELECT /*+ BROADCAST(key_1) */ orders.`o_id`, orders.`o_cust` FROM orders AS orders LEFT SEMI JOIN (SELECT `c_id` FROM edge_2) AS key_1 ON orders.`o_cust` = key_1.`c_id` WHERE o_total = 3
    because orders is there; rows without a match in customer are not sent
    → edge 1 to tromso (~143 rows, 2.2 KiB)
fragment 3 at bergen: reads table customer
    scan, filter
    SELECT customer.`c_id` FROM customer AS customer WHERE c_name = 'x'
    because customer is there
    → edge 3 to tromso (~1,500 rows, 11.7 KiB)
fragment 4 at oslo: reads table sales; edge 2 from bergen
    scan, join
    SELECT /*+ BROADCAST(key_2) */ sales.`s_cust` FROM sales AS sales LEFT SEMI JOIN (SELECT `c_id` FROM edge_2) AS key_2 ON sales.`s_cust` = key_2.`c_id`
    because sales is there; rows without a match in customer are not sent
    → edge 4 to tromso (~14,342 rows, 112.1 KiB)
fragment 5 at bergen: reads table sales; table customer
    scan, filter, join
    SELECT /*+ BROADCAST(key_3) */ sales.`s_cust` FROM sales AS sales LEFT SEMI JOIN (SELECT customer.`c_id` FROM customer AS customer WHERE c_name = 'x') AS key_3 ON sales.`s_cust` = key_3.`c_id`
    because sales is there; rows without a match in customer are not sent
    → edge 4 to tromso (~0 rows, 2 B)
fragment 6 at tromso: reads table lineitem; edge 1 from oslo; edge 3 from bergen; edge 4 from oslo, bergen
    scan, join
    SELECT /*+ BROADCAST(`orders`, `customer`, `sales`) */ a.l_price, o_id FROM lineitem AS a JOIN edge_1 AS orders ON a.l_order = o_id JOIN edge_3 AS customer ON o_cust = c_id JOIN edge_4 AS sales ON s_cust = c_id
    because the links take ~0.03 s, ~0.047 s at oslo
    → edge 5 to tromso (~15,000 rows, 351.6 KiB)
finish at tromso: gather edge 5 from tromso
*/
