-- case: EXISTS asks whether, not how often
-- rules: filters,sets
-- at: bergen
SELECT c_name FROM customer WHERE NOT EXISTS (SELECT * FROM lineitem WHERE l_order = c_id AND l_qty > 4) AND EXISTS (SELECT 1 FROM orders WHERE o_cust = c_id)
/*
plan, result at bergen
fragment 1 at tromso: reads table lineitem
    scan, filter, distinct
    SELECT DISTINCT lineitem.`l_order` FROM lineitem AS lineitem WHERE l_qty > 4
    because lineitem is there
    → edge 1 to bergen (~589,595 rows, 4.5 MiB)
fragment 2 at oslo: reads table orders
    scan, distinct
    SELECT DISTINCT orders.`o_cust` FROM orders AS orders
    because orders is there
    → edge 2 to bergen (~150,000 rows, 1.1 MiB)
fragment 3 at bergen: reads table customer; edge 1 from tromso; edge 2 from oslo
    scan, filter
    SELECT c_name FROM customer AS customer WHERE NOT EXISTS (SELECT * FROM edge_1 AS lineitem WHERE l_order = c_id) AND EXISTS (SELECT 1 FROM edge_2 AS orders WHERE o_cust = c_id)
    because the links take ~0.48 s, ~0.56 s at tromso
    → edge 3 to bergen (~37,500 rows, 878.9 KiB)
finish at bergen: gather edge 3 from bergen
*/

-- case: SEMI and ANTI joins ask about sets as well
-- rules: filters,sets
-- at: oslo
SELECT o_id FROM orders LEFT SEMI JOIN lineitem ON l_order = o_id AND l_qty > 4 LEFT ANTI JOIN customer ON c_id = o_cust
/*
plan, result at oslo
fragment 1 at tromso: reads table lineitem
    scan, filter, distinct
    SELECT DISTINCT lineitem.`l_order` FROM lineitem AS lineitem WHERE l_qty > 4
    because lineitem is there
    → edge 1 to oslo (~589,595 rows, 4.5 MiB)
fragment 2 at bergen: reads table customer
    scan, distinct
    SELECT DISTINCT customer.`c_id` FROM customer AS customer
    because customer is there
    → edge 2 to oslo (~15,000 rows, 117.2 KiB)
fragment 3 at oslo: reads table orders; edge 1 from tromso; edge 2 from bergen
    scan, join
    SELECT /*+ BROADCAST(`lineitem`, `customer`) */ o_id FROM orders AS orders LEFT SEMI JOIN edge_1 AS lineitem ON l_order = o_id LEFT ANTI JOIN edge_2 AS customer ON c_id = o_cust
    because the links take ~0.39 s, ~2.2 s at tromso
    → edge 3 to oslo (~375,000 rows, 2.9 MiB)
finish at oslo: gather edge 3 from oslo
*/

-- case: but not by a condition that differs from row to row of those that are alike
-- rules: filters,sets
-- at: oslo
SELECT o_id FROM orders LEFT SEMI JOIN lineitem ON l_order = o_id AND rand() < 2
/*
plan, result at oslo
fragment 1 at oslo: reads table orders
    scan
    SELECT orders.`o_id` FROM orders AS orders
    because orders is there
    → edge 1 to tromso (~1,500,000 rows, 11.4 MiB)
fragment 2 at tromso: reads edge 1 from oslo; table lineitem
    scan, join
    SELECT o_id FROM edge_1 AS orders LEFT SEMI JOIN lineitem AS lineitem ON l_order = o_id AND rand() < 2
    because the links take ~1.4 s, ~3.8 s at oslo
    → edge 2 to oslo (~750,000 rows, 5.7 MiB)
finish at oslo: gather edge 2 from tromso
*/

-- case: and so does IN, but not where rows are counted or chosen
-- rules: filters,sets
-- at: bergen
SELECT c_name FROM customer WHERE c_id IN (SELECT o_cust FROM orders) AND c_id NOT IN (SELECT l_order FROM lineitem GROUP BY l_order HAVING count(*) > 3) AND EXISTS (SELECT count(*) FROM sales WHERE s_cust = c_id)
/*
plan, result at bergen
fragment 1 at bergen: reads table customer
    scan
    SELECT customer.`c_id`, customer.`c_name` FROM customer AS customer
    because customer is there
    → edge 1 to oslo (~150,000 rows, 4.6 MiB)
fragment 2 at tromso: reads table lineitem
    scan
    SELECT lineitem.`l_order` FROM lineitem AS lineitem
    because lineitem is there
    → edge 2 to oslo (~6,000,000 rows, 45.8 MiB)
fragment 3 at bergen: reads table sales
    scan
    SELECT sales.`s_cust` FROM sales AS sales
    because sales is there
    → edge 3 to oslo, through the driver (~1,000 rows, 7.8 KiB)
fragment 4 at oslo: reads edge 1 from bergen; table orders; edge 2 from tromso; table sales; edge 3 from bergen
    scan, filter, union, aggregate
    SELECT c_name FROM edge_1 AS customer WHERE c_id IN (SELECT o_cust FROM orders AS orders) AND c_id NOT IN (SELECT l_order FROM edge_2 AS lineitem GROUP BY l_order HAVING count(*) > 3) AND EXISTS (SELECT count(*) FROM (SELECT `s_cust` FROM sales UNION ALL SELECT `s_cust` FROM edge_3) AS sales WHERE s_cust = c_id)
    because the links take ~4.3 s, ~33 s at tromso
    → edge 4 to bergen (~18,750 rows, 439.5 KiB)
finish at bergen: gather edge 4 from oslo
*/

-- case: keys go ahead of a set too
-- rules: filters,sets,semijoin
-- at: bergen
SELECT c_name FROM customer WHERE c_nation = 3 AND c_name = 'x' AND NOT EXISTS (SELECT * FROM orders WHERE o_cust = c_id AND o_total > c_nation)
/*
plan, result at bergen
fragment 1 at bergen: reads table customer
    scan, filter
    SELECT customer.`c_id`, customer.`c_name`, customer.`c_nation` FROM customer AS customer WHERE c_nation = 3 AND c_name = 'x'
    because customer is there
    → edge 1 to oslo (~15 rows, 540 B)
fragment 2 at oslo: reads edge 1 from bergen; table orders
    scan, filter
    SELECT c_name FROM edge_1 AS customer WHERE NOT EXISTS (SELECT * FROM orders AS orders WHERE o_cust = c_id AND o_total > c_nation)
    because the links take ~0.0023 s, ~0.008 s at bergen
    → edge 2 to bergen (~7 rows, 180 B)
finish at bergen: gather edge 2 from oslo
*/

-- case: UNION, INTERSECT and EXCEPT make sets
-- rules: filters,sets
-- at: bergen
SELECT c_id FROM customer EXCEPT SELECT o_cust FROM orders UNION SELECT s_cust FROM sales
/*
plan, result at bergen
fragment 1 at bergen: reads table customer
    scan, distinct
    SELECT DISTINCT customer.`c_id` FROM customer AS customer
    because customer is there
    → edge 1 to oslo (~15,000 rows, 117.2 KiB)
fragment 2 at bergen: reads table sales
    scan, distinct
    SELECT DISTINCT sales.`s_cust` FROM sales AS sales
    because sales is there
    → edge 2 to oslo, through the driver (~99 rows, 799 B)
fragment 3 at oslo: reads edge 1 from bergen; table orders; table sales; edge 2 from bergen
    scan, union
    SELECT c_id FROM edge_1 AS customer EXCEPT SELECT o_cust FROM orders AS orders UNION SELECT s_cust FROM (SELECT `s_cust` FROM sales UNION ALL SELECT `s_cust` FROM edge_2) AS sales
    because the links take ~3.2 s, ~3.3 s at bergen
    → edge 3 to bergen (~5,015,000 rows, 38.3 MiB)
finish at bergen: gather edge 3 from oslo
*/

-- case: and SELECT DISTINCT makes one, whatever order and limit come after it
-- rules: filters,sets
-- at: oslo
SELECT DISTINCT o_date, l_qty FROM orders JOIN lineitem ON o_cust = l_order ORDER BY o_date, l_qty LIMIT 9
/*
plan, result at oslo
fragment 1 at oslo: reads table orders
    scan, distinct
    SELECT DISTINCT orders.`o_cust`, orders.`o_date` FROM orders AS orders
    because orders is there
    → edge 1 to tromso (~1,500,000 rows, 17.2 MiB)
fragment 2 at tromso: reads edge 1 from oslo; table lineitem
    scan, join, distinct, sort, limit
    SELECT DISTINCT o_date, l_qty FROM edge_1 AS orders JOIN lineitem AS lineitem ON o_cust = l_order ORDER BY o_date, l_qty LIMIT 9
    because the links take ~1.4 s, ~5.8 s at oslo
    → edge 2 to oslo, in order, through the driver (~9 rows, 72 B)
finish at oslo: gather edge 2 from tromso
*/

-- case: but not where rows are numbered before
-- rules: filters,sets
-- at: oslo
SELECT DISTINCT o_date, row_number() OVER (PARTITION BY o_date ORDER BY o_id) AS r FROM orders JOIN lineitem ON o_cust = l_order
/*
plan, result at oslo
fragment 1 at tromso: reads table lineitem
    scan
    SELECT lineitem.`l_order` FROM lineitem AS lineitem
    because lineitem is there
    → edge 1 to oslo (~6,000,000 rows, 45.8 MiB)
fragment 2 at oslo: reads table orders; edge 1 from tromso
    scan, join, window, distinct, sort
    SELECT DISTINCT o_date, row_number() OVER (PARTITION BY o_date ORDER BY o_id) AS r FROM orders AS orders JOIN edge_1 AS lineitem ON o_cust = l_order
    because the links take ~3.8 s, ~12 s at tromso
    → edge 2 to oslo (~15,000,000 rows, 114.4 MiB)
finish at oslo: gather edge 2 from oslo
*/

-- case: with ALL they do not, but for a UNION ALL below one
-- rules: filters,sets
-- at: bergen
SELECT l_order FROM lineitem INTERSECT ALL SELECT c_nation FROM customer UNION (SELECT c_id FROM customer UNION ALL SELECT o_cust FROM orders)
/*
plan, result at bergen
fragment 1 at bergen: reads table customer
    scan
    SELECT customer.`c_id`, customer.`c_nation` FROM customer AS customer
    because customer is there
    → edge 1 to tromso (~150,000 rows, 1.7 MiB)
fragment 2 at oslo: reads table orders
    scan, distinct
    SELECT DISTINCT orders.`o_cust` FROM orders AS orders
    because orders is there
    → edge 2 to tromso (~150,000 rows, 1.1 MiB)
fragment 3 at tromso: reads table lineitem; edge 1 from bergen; edge 2 from oslo
    scan, union
    SELECT l_order FROM lineitem AS lineitem INTERSECT ALL SELECT c_nation FROM edge_1 AS customer UNION (SELECT c_id FROM edge_1 AS customer UNION ALL SELECT o_cust FROM edge_2 AS orders)
    because the links take ~0.35 s, ~3.9 s at bergen
    → edge 3 to bergen (~165,000 rows, 1.3 MiB)
finish at bergen: gather edge 3 from tromso
*/

-- case: rows of an arm that are alike travel once
-- rules: filters,sets,blocks
-- at: bergen
SELECT c_id FROM customer UNION SELECT o_cust + 1 FROM orders JOIN events ON o_id = id INTERSECT SELECT count(*) FROM lineitem GROUP BY l_order
/*
plan, result at bergen
fragment 1 at bergen: reads table customer
    scan, distinct
    SELECT DISTINCT customer.`c_id` FROM customer AS customer
    because customer is there
    → edge 1 to oslo (~15,000 rows, 117.2 KiB)
fragment 2 at bergen: reads table events
    scan, distinct
    SELECT DISTINCT events.`id` FROM events AS events
    because events is there
    → edge 2 to oslo (~277 rows, 2.2 KiB)
fragment 3 at tromso: reads table events
    scan, distinct
    SELECT DISTINCT events.`id` FROM events AS events
    because events is there
    → edge 2 to oslo, through the driver (~166 rows, 1.3 KiB)
fragment 4 at tromso: reads table lineitem
    scan, aggregate, distinct
    SELECT DISTINCT arm_0.`arm_c0` FROM (SELECT count(*) FROM lineitem AS lineitem GROUP BY l_order) AS arm_0(arm_c0)
    because its tables are there
    → edge 3 to oslo (~600,000 rows, 4.6 MiB)
fragment 5 at oslo: reads edge 1 from bergen; table orders; table events; edge 2 from bergen, tromso; edge 3 from tromso
    scan, join, union
    SELECT c_id FROM edge_1 AS customer UNION SELECT /*+ BROADCAST(`events`) */ o_cust + 1 FROM orders AS orders JOIN (SELECT `id` FROM events UNION ALL SELECT `id` FROM edge_2) AS events ON o_id = id INTERSECT SELECT * FROM edge_3 AS arm_0
    because the links take ~0.47 s, ~2 s at tromso
    → edge 4 to bergen (~105,000 rows, 820.3 KiB)
finish at bergen: gather edge 4 from oslo
*/
