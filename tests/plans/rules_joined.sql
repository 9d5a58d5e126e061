-- case: tables of one other site travel joined
-- rules: filters,joined
SELECT o_id, c_name FROM orders JOIN customer ON o_cust = c_id JOIN nation ON c_nation = n_id WHERE n_name = 'NORWAY' AND o_total > 3
/*
plan, result at oslo
fragment 1 at bergen: reads table customer; table nation
    scan, filter, join
    SELECT joined_0.`c_id`, joined_0.`c_name` FROM (SELECT customer.`c_id` AS `c_id`, customer.`c_name` AS `c_name` FROM customer AS customer, nation AS nation WHERE customer.`c_nation` = nation.`n_id` AND nation.`n_name` = 'NORWAY') AS joined_0
    because customer, nation are joined there before they travel
    → edge 1 to oslo (~60,000 rows, 1.8 MiB)
fragment 2 at oslo: reads table orders; edge 1 from bergen
    scan, filter, join
    SELECT /*+ BROADCAST(`joined_0`) */ o_id, c_name FROM orders AS orders, edge_1 AS joined_0 WHERE o_cust = c_id AND o_total > 3
    because the links take ~0.15 s, ~0.64 s at bergen
    → edge 2 to oslo (~333 rows, 10.4 KiB)
finish at oslo: gather edge 2 from oslo
*/

-- case: a join that is larger than its tables is made where the rest is
-- rules: filters,semijoin,joined
SELECT o_id, a.c_name, b.c_name FROM orders, customer AS a, customer AS b WHERE o_cust = a.c_id AND a.c_nation = b.c_nation
/*
plan, result at oslo
fragment 1 at bergen: reads table customer
    scan
    SELECT a.`c_id`, a.`c_name`, a.`c_nation` FROM customer AS a
    because customer is there
    → edge 1 to oslo (~150,000 rows, 5.1 MiB)
fragment 2 at oslo: reads table orders; edge 1 from bergen
    scan, filter, join
    SELECT /*+ BROADCAST(`a`, `b`) */ o_id, a.c_name, b.c_name FROM orders AS orders, edge_1 AS a, edge_1 AS b WHERE o_cust = a.c_id AND a.c_nation = b.c_nation
    because the links take ~0.43 s, ~50 s at bergen
    → edge 2 to oslo (~15,000,000 rows, 572.2 MiB)
finish at oslo: gather edge 2 from oslo
*/

-- case: equal columns travel once, under the name that is asked for
-- rules: filters,joined
SELECT o_id, n_id, c_name FROM orders, customer, nation WHERE o_cust = c_id AND c_nation = n_id AND n_name = 'x'
/*
plan, result at oslo
fragment 1 at bergen: reads table customer; table nation
    scan, filter, join
    SELECT joined_0.`c_id`, joined_0.`c_name`, joined_0.`n_id` FROM (SELECT customer.`c_id` AS `c_id`, customer.`c_name` AS `c_name`, nation.`n_id` AS `n_id` FROM customer AS customer, nation AS nation WHERE customer.`c_nation` = nation.`n_id` AND nation.`n_name` = 'x') AS joined_0
    because customer, nation are joined there before they travel
    → edge 1 to oslo (~60,000 rows, 2.1 MiB)
fragment 2 at oslo: reads table orders; edge 1 from bergen
    scan, filter, join
    SELECT /*+ BROADCAST(`joined_0`) */ o_id, n_id, c_name FROM orders AS orders, edge_1 AS joined_0 WHERE o_cust = c_id
    because the links take ~0.17 s, ~1.9 s at bergen
    → edge 2 to oslo (~1,000 rows, 35.2 KiB)
finish at oslo: gather edge 2 from oslo
*/

-- case: columns with one name keep it in the result
-- rules: filters,joined
SELECT l_qty, a.c_name, b.C_Name FROM lineitem, customer AS a, customer AS b WHERE a.c_id = b.c_id AND l_order = b.c_id AND a.c_nation = 3 AND b.c_nation > 1
/*
plan, result at oslo
fragment 1 at bergen: reads table customer; table customer
    scan, filter, join
    SELECT joined_2.`c_name`, joined_2.`c_id`, joined_2.`joined_2_2` FROM (SELECT a.`c_name` AS `c_name`, b.`c_id` AS `c_id`, b.`c_name` AS `joined_2_2` FROM customer AS a, customer AS b WHERE a.`c_id` = b.`c_id` AND a.`c_nation` = 3 AND b.`c_nation` > 1) AS joined_2
    because a, b are joined there before they travel
    → edge 1 to tromso (~5,000 rows, 273.4 KiB)
fragment 2 at tromso: reads table lineitem; edge 1 from bergen
    scan, filter, join
    SELECT /*+ BROADCAST(`joined_2`) */ l_qty, joined_2.c_name, joined_2.`joined_2_2` AS `C_Name` FROM lineitem AS lineitem, edge_1 AS joined_2 WHERE l_order = joined_2.c_id
    because the links take ~0.17 s, ~0.32 s at bergen
    → edge 2 to oslo (~50,000 rows, 1.7 MiB)
finish at oslo: gather edge 2 from tromso
*/

-- case: a sum that is named after such a column keeps its tables apart
-- rules: filters,joined
SELECT l_qty, max(a.c_name), max(b.c_name) FROM lineitem, customer AS a, customer AS b WHERE a.c_id = b.c_id AND l_order = b.c_id AND a.c_nation = 3 AND b.c_nation > 1 GROUP BY l_qty
/*
plan, result at oslo
fragment 1 at bergen: reads table customer
    scan, filter
    SELECT a.`c_id`, a.`c_name` FROM customer AS a WHERE a.c_nation = 3
    because customer is there
    → edge 1 to tromso (~1,500 rows, 46.9 KiB)
fragment 2 at bergen: reads table customer
    scan, filter
    SELECT b.`c_id`, b.`c_name` FROM customer AS b WHERE b.c_nation > 1
    because customer is there
    → edge 2 to tromso (~50,000 rows, 1.5 MiB)
fragment 3 at tromso: reads table lineitem; edge 1 from bergen; edge 2 from bergen
    scan, filter, join, aggregate
    SELECT /*+ BROADCAST(`a`, `b`) */ l_qty, max(a.c_name), max(b.c_name) FROM lineitem AS lineitem, edge_2 AS b, edge_1 AS a WHERE a.c_id = b.c_id AND l_order = b.c_id GROUP BY l_qty
    because the links take ~0.19 s, ~5.8 s at bergen
    → edge 3 to oslo (~15,000 rows, 527.3 KiB)
finish at oslo: gather edge 3 from tromso
*/

-- case: conditions on several tables are applied when these are joined, if they cannot fail
-- rules: filters,joined
SELECT o_id FROM orders, customer, nation WHERE o_cust = c_id AND c_nation = n_id AND c_name <> n_name AND (c_id < 5 OR n_name = 'x')
/*
plan, result at oslo
fragment 1 at bergen: reads table customer; table nation
    scan, filter, join
    SELECT joined_0.`c_id` FROM (SELECT customer.`c_id` AS `c_id` FROM customer AS customer, nation AS nation WHERE customer.`c_nation` = nation.`n_id` AND customer.`c_name` != nation.`n_name` AND (customer.`c_id` < 5 OR nation.`n_name` = 'x')) AS joined_0
    because customer, nation are joined there before they travel
    → edge 1 to oslo (~150,000 rows, 1.1 MiB)
fragment 2 at oslo: reads table orders; edge 1 from bergen
    scan, filter, join
    SELECT /*+ BROADCAST(`joined_0`) */ o_id FROM orders AS orders, edge_1 AS joined_0 WHERE o_cust = c_id
    because the links take ~0.097 s, ~1.9 s at bergen
    → edge 2 to oslo (~2,500 rows, 19.5 KiB)
finish at oslo: gather edge 2 from oslo
*/

-- case: tables stay apart where a condition that may fail could be asked of more rows
-- rules: filters,joined
SELECT o_id FROM orders, customer, nation WHERE o_cust = c_id AND c_nation = n_id AND c_nation / n_id > 1 AND n_name = 'x'
/*
plan, result at oslo
fragment 1 at bergen: reads table customer
    scan
    SELECT customer.`c_id`, customer.`c_nation` FROM customer AS customer
    because customer is there
    → edge 1 to oslo (~150,000 rows, 1.7 MiB)
fragment 2 at bergen: reads table nation
    scan, filter
    SELECT nation.`n_id` FROM nation AS nation WHERE n_name = 'x'
    because nation is there
    → edge 2 to oslo, through the driver (~10 rows, 40 B)
fragment 3 at oslo: reads table orders; edge 1 from bergen; edge 2 from bergen
    scan, filter, join
    SELECT /*+ BROADCAST(`customer`, `nation`) */ o_id FROM orders AS orders, edge_1 AS customer, edge_2 AS nation WHERE o_cust = c_id AND c_nation = n_id AND c_nation / n_id > 1
    because the links take ~0.15 s, ~1.6 s at bergen
    → edge 3 to oslo (~1,000 rows, 7.8 KiB)
finish at oslo: gather edge 3 from oslo
*/

-- case: joined at one site, joined on at another; ON and WHERE, commas
-- rules: filters,joined
SELECT o_id FROM orders, lineitem JOIN customer ON c_id = l_order JOIN nation ON n_id = c_nation AND n_name = 'x' WHERE o_cust = c_id OR l_qty > 3
/*
plan, result at oslo
fragment 1 at bergen: reads table customer; table nation
    scan, filter, join
    SELECT joined_0.`c_id` FROM (SELECT customer.`c_id` AS `c_id` FROM customer AS customer, nation AS nation WHERE customer.`c_nation` = nation.`n_id` AND nation.`n_name` = 'x') AS joined_0
    because customer, nation are joined there before they travel
    → edge 2 to tromso (~60,000 rows, 468.8 KiB)
fragment 2 at tromso: reads table lineitem; edge 2 from bergen
    scan, filter, join
    SELECT joined_1.`l_qty`, joined_1.`c_id` FROM (SELECT /*+ BROADCAST(`joined_0`) */ lineitem.`l_qty` AS `l_qty`, joined_0.`c_id` AS `c_id` FROM lineitem AS lineitem, edge_2 AS joined_0 WHERE lineitem.`l_order` = joined_0.`c_id`) AS joined_1
    because lineitem, customer, nation are joined there before they travel
    → edge 1 to oslo (~2,400,000 rows, 27.5 MiB)
fragment 3 at oslo: reads table orders; edge 1 from tromso
    scan, filter, join
    SELECT o_id FROM orders AS orders, edge_1 AS joined_1 WHERE o_cust = c_id OR l_qty > 3
    because the links take ~2.3 s, ~962 s at tromso
    → edge 3 to oslo (~1,500,000,000 rows, 11.2 GiB)
finish at oslo: gather edge 3 from oslo
*/

-- case: the table that an outer join supplies stays apart
-- rules: filters,joined
SELECT o_id, n_name FROM orders JOIN customer ON o_cust = c_id LEFT JOIN nation ON c_nation = n_id WHERE c_name = 'x'
/*
plan, result at oslo
fragment 1 at bergen: reads table customer
    scan, filter
    SELECT customer.`c_id`, customer.`c_nation` FROM customer AS customer WHERE c_name = 'x'
    because customer is there
    → edge 1 to oslo (~1,500 rows, 17.6 KiB)
fragment 2 at bergen: reads table nation
    scan
    SELECT nation.`n_id`, nation.`n_name` FROM nation AS nation
    because nation is there
    → edge 2 to oslo, through the driver (~25 rows, 700 B)
fragment 3 at oslo: reads table orders; edge 1 from bergen; edge 2 from bergen
    scan, join
    SELECT /*+ BROADCAST(`customer`, `nation`) */ o_id, n_name FROM orders AS orders JOIN edge_1 AS customer ON o_cust = c_id LEFT JOIN edge_2 AS nation ON c_nation = n_id
    because the links take ~0.0037 s, ~0.058 s at bergen
    → edge 3 to oslo (~15,000 rows, 468.8 KiB)
finish at oslo: gather edge 3 from oslo
*/

-- case: a star needs every column where it was
-- rules: filters,joined
SELECT * FROM orders JOIN customer ON o_cust = c_id JOIN nation ON c_nation = n_id WHERE n_name = 'NORWAY'
/*
plan, result at oslo
fragment 1 at bergen: reads table customer
    scan
    SELECT customer.`c_id`, customer.`c_name`, customer.`c_nation` FROM customer AS customer
    because customer is there
    → edge 1 to oslo (~150,000 rows, 5.1 MiB)
fragment 2 at bergen: reads table nation
    scan, filter
    SELECT nation.`n_id`, nation.`n_name` FROM nation AS nation WHERE n_name = 'NORWAY'
    because nation is there
    → edge 2 to oslo, through the driver (~10 rows, 280 B)
fragment 3 at oslo: reads table orders; edge 1 from bergen; edge 2 from bergen
    scan, join
    SELECT /*+ BROADCAST(`customer`, `nation`) */ * FROM orders AS orders JOIN edge_1 AS customer ON o_cust = c_id JOIN edge_2 AS nation ON c_nation = n_id
    because the links take ~0.43 s, ~7.2 s at bergen
    → edge 3 to oslo (~1,000 rows, 121.1 KiB)
finish at oslo: gather edge 3 from oslo
*/

-- case: nothing is joined before where the rest can go to the tables
-- rules: filters,semijoin,joined
-- at: bergen
SELECT o_id, c_name, n_name FROM orders, customer, nation WHERE o_cust = c_id AND c_nation = n_id AND o_total = 3 AND o_note = 'x'
/*
plan, result at bergen
fragment 1 at oslo: reads table orders
    scan, filter
    SELECT orders.`o_id`, orders.`o_cust` FROM orders AS orders WHERE o_total = 3 AND o_note = 'x'
    because orders is there
    → edge 1 to bergen (~150 rows, 2.3 KiB)
fragment 2 at bergen: reads edge 1 from oslo; table customer; table nation
    scan, filter, join
    SELECT /*+ BROADCAST(`orders`) */ o_id, c_name, n_name FROM edge_1 AS orders, customer AS customer, nation AS nation WHERE o_cust = c_id AND c_nation = n_id
    because the links take ~0.0013 s, ~0.0052 s at oslo
    → edge 2 to bergen (~0 rows, 14 B)
finish at bergen: gather edge 2 from bergen
*/

-- case: a subquery asks for columns of joined tables by their old names
-- rules: filters,joined
SELECT o_id FROM orders, customer AS c, nation WHERE o_cust = c.c_id AND c.c_nation = n_id AND n_name = 'x' AND EXISTS (SELECT 1 FROM lineitem WHERE l_order = c.c_id AND l_qty = n_id)
/*
plan, result at oslo
fragment 1 at bergen: reads table customer; table nation
    scan, filter, join
    SELECT joined_3.`c_id`, joined_3.`n_id` FROM (SELECT c.`c_id` AS `c_id`, nation.`n_id` AS `n_id` FROM customer AS c, nation AS nation WHERE c.`c_nation` = nation.`n_id` AND nation.`n_name` = 'x') AS joined_3
    because c, nation are joined there before they travel
    → edge 2 to oslo (~60,000 rows, 703.1 KiB)
fragment 2 at oslo: reads table orders; edge 2 from bergen
    scan, filter, join
    SELECT joined_4.`c_id`, joined_4.`n_id`, joined_4.`o_id` FROM (SELECT /*+ BROADCAST(`joined_3`) */ joined_3.`c_id` AS `c_id`, joined_3.`n_id` AS `n_id`, orders.`o_id` AS `o_id` FROM orders AS orders, edge_2 AS joined_3 WHERE orders.`o_cust` = joined_3.`c_id`) AS joined_4
    because orders, c, nation are joined there before they travel
    → edge 1 to tromso (~600,000 rows, 11.4 MiB)
fragment 3 at tromso: reads table lineitem; edge 1 from oslo
    scan, filter
    SELECT o_id FROM edge_1 AS joined_4 WHERE EXISTS (SELECT 1 FROM lineitem AS lineitem WHERE l_order = joined_4.c_id AND l_qty = n_id)
    because the links take ~1 s, ~5.8 s at oslo
    → edge 3 to oslo (~500 rows, 3.9 KiB)
finish at oslo: gather edge 3 from tromso
*/

-- case: a subquery joins its own tables
-- rules: filters,sets,joined
SELECT o_id FROM orders WHERE EXISTS (SELECT 1 FROM customer, nation WHERE c_id = o_cust AND c_nation = n_id AND n_name = 'x')
/*
plan, result at oslo
fragment 1 at bergen: reads table customer; table nation
    scan, filter, join, distinct
    SELECT DISTINCT joined_0.`c_id` FROM (SELECT customer.`c_id` AS `c_id` FROM customer AS customer, nation AS nation WHERE customer.`c_nation` = nation.`n_id` AND nation.`n_name` = 'x') AS joined_0
    because customer, nation are joined there before they travel
    → edge 1 to oslo (~100 rows, 800 B)
fragment 2 at oslo: reads table orders; edge 1 from bergen
    scan, filter
    SELECT o_id FROM orders AS orders WHERE EXISTS (SELECT 1 FROM edge_1 AS joined_0 WHERE c_id = o_cust)
    because the links take ~0.0012 s, ~2.4 s at bergen
    → edge 2 to oslo (~750,000 rows, 5.7 MiB)
finish at oslo: gather edge 2 from oslo
*/

-- case: only how many rows there are is asked
-- rules: filters,joined
SELECT count(*) AS n FROM lineitem, customer, nation WHERE c_nation = n_id AND n_name = 'x' AND c_name = 'x'
/*
plan, result at oslo
fragment 1 at bergen: reads table customer; table nation
    scan, filter, join
    SELECT joined_1.`joined_1_0` FROM (SELECT 1 AS joined_1_0 FROM customer AS customer, nation AS nation WHERE customer.`c_nation` = nation.`n_id` AND customer.`c_name` = 'x' AND nation.`n_name` = 'x') AS joined_1
    because customer, nation are joined there before they travel
    → edge 1 to tromso (~600 rows, 2.3 KiB)
fragment 2 at tromso: reads table lineitem; edge 1 from bergen
    scan, join, aggregate
    SELECT /*+ BROADCAST(`joined_1`) */ count(*) AS n FROM lineitem AS lineitem, edge_1 AS joined_1
    because the links take ~0.0024 s, ~1.9 s at bergen
    → edge 2 to oslo, through the driver (~1 row, 16 B)
finish at oslo: gather edge 2 from tromso
*/

-- case: what an outer join keeps may be joined before it
-- rules: filters,joined
SELECT o_id, c_name, l_qty, s_price FROM orders JOIN customer ON o_cust = c_id JOIN nation ON c_nation = n_id AND n_name = 'x' LEFT JOIN lineitem ON l_order = o_id AND c_nation > 3 JOIN sales ON s_id = o_id
/*
plan, result at oslo
fragment 1 at tromso: reads table lineitem
    scan
    SELECT lineitem.`l_order`, lineitem.`l_qty` FROM lineitem AS lineitem
    because lineitem is there
    → edge 1 to oslo (~6,000,000 rows, 68.7 MiB)
fragment 2 at bergen: reads table sales
    scan
    SELECT sales.`s_id`, sales.`s_price` FROM sales AS sales
    because sales is there
    → edge 2 to oslo, through the driver (~1,000 rows, 15.6 KiB)
fragment 3 at bergen: reads table customer; table nation
    scan, filter, join
    SELECT joined_0.`c_id`, joined_0.`c_name`, joined_0.`c_nation` FROM (SELECT customer.`c_id` AS `c_id`, customer.`c_name` AS `c_name`, customer.`c_nation` AS `c_nation` FROM customer AS customer, nation AS nation WHERE customer.`c_nation` = nation.`n_id` AND nation.`n_name` = 'x') AS joined_0
    because customer, nation are joined there before they travel
    → edge 3 to oslo (~60,000 rows, 2.1 MiB)
fragment 4 at oslo: reads table orders; edge 1 from tromso; table sales; edge 2 from bergen; edge 3 from bergen
    scan, join, union
    SELECT /*+ BROADCAST(`joined_0`) */ o_id, c_name, l_qty, s_price FROM orders AS orders JOIN edge_3 AS joined_0 ON o_cust = c_id LEFT JOIN edge_1 AS lineitem ON l_order = o_id AND c_nation > 3 JOIN (SELECT `s_id`, `s_price` FROM sales UNION ALL SELECT `s_id`, `s_price` FROM edge_2) AS sales ON s_id = o_id
    because the links take ~5.9 s, ~66 s at tromso
    → edge 4 to oslo (~100,002 rows, 4.2 MiB)
finish at oslo: gather edge 4 from oslo
*/

-- case: a full join has rows of neither side alone
-- rules: filters,joined
SELECT o_id, n_name, l_qty FROM orders JOIN customer ON o_cust = c_id JOIN nation ON c_nation = n_id AND n_name = 'x' FULL JOIN lineitem ON l_order = o_id
/*
plan, result at oslo
fragment 1 at bergen: reads table customer
    scan
    SELECT customer.`c_id`, customer.`c_nation` FROM customer AS customer
    because customer is there
    → edge 1 to oslo (~150,000 rows, 1.7 MiB)
fragment 2 at bergen: reads table nation
    scan, filter
    SELECT nation.`n_id`, nation.`n_name` FROM nation AS nation WHERE n_name = 'x'
    because nation is there
    → edge 2 to oslo, through the driver (~10 rows, 280 B)
fragment 3 at tromso: reads table lineitem
    scan
    SELECT lineitem.`l_order`, lineitem.`l_qty` FROM lineitem AS lineitem
    because lineitem is there
    → edge 3 to oslo (~6,000,000 rows, 68.7 MiB)
fragment 4 at oslo: reads table orders; edge 1 from bergen; edge 2 from bergen; edge 3 from tromso
    scan, join
    SELECT /*+ BROADCAST(`customer`, `nation`) */ o_id, n_name, l_qty FROM orders AS orders JOIN edge_1 AS customer ON o_cust = c_id JOIN edge_2 AS nation ON c_nation = n_id FULL JOIN edge_3 AS lineitem ON l_order = o_id
    because the links take ~5.9 s, ~19 s at tromso
    → edge 4 to oslo (~6,001,000 rows, 206.0 MiB)
finish at oslo: gather edge 4 from oslo
*/

-- case: joins in another order than the text has, each where it costs least
-- rules: filters,semijoin,joined
SELECT c_name, n_name, sum(l_qty) AS n FROM lineitem, orders, customer, nation WHERE l_order = o_cust AND o_cust = c_id AND c_nation = n_id AND o_note = 'x' AND o_total = 3 GROUP BY c_name, n_name
/*
plan, result at oslo
fragment 1 at bergen: reads table nation
    scan
    SELECT nation.`n_id`, nation.`n_name` FROM nation AS nation
    because nation is there
    → edge 1 to tromso, through the driver (~25 rows, 700 B)
fragment 2 at oslo: reads table orders
    scan, filter
    SELECT orders.`o_cust` FROM orders AS orders WHERE o_note = 'x' AND o_total = 3
    because orders is there
    → edge 3 to bergen (~150 rows, 1.2 KiB)
fragment 3 at bergen: reads edge 3 from oslo; table customer
    scan, filter, join
    SELECT joined_2.`o_cust`, joined_2.`c_name`, joined_2.`c_nation` FROM (SELECT /*+ BROADCAST(`orders`) */ orders.`o_cust` AS `o_cust`, customer.`c_name` AS `c_name`, customer.`c_nation` AS `c_nation` FROM edge_3 AS orders, customer AS customer WHERE orders.`o_cust` = customer.`c_id`) AS joined_2
    because orders, customer are joined there before they travel
    → edge 2 to tromso (~150 rows, 5.3 KiB)
fragment 4 at tromso: reads table lineitem; edge 1 from bergen; edge 2 from bergen
    scan, filter, join, aggregate
    SELECT /*+ BROADCAST(`joined_2`, `nation`) */ c_name, n_name, sum(l_qty) AS n FROM lineitem AS lineitem, edge_2 AS joined_2, edge_1 AS nation WHERE l_order = o_cust AND c_nation = n_id GROUP BY c_name, n_name
    because the links take ~0.0051 s, ~0.0049 s at bergen, which sends more bytes
    → edge 4 to oslo (~2 rows, 160 B)
finish at oslo: gather edge 4 from tromso
*/
