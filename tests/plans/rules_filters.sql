-- case: a condition is applied where its table is, and its columns stay there
-- rules: filters
SELECT o_id, o_total FROM orders JOIN customer ON o_cust = c_id WHERE c_nation = 3 AND o_total > 10
/*
plan, result at oslo
fragment 1 at bergen: reads table customer
    scan, filter
    SELECT customer.`c_id` FROM customer AS customer WHERE c_nation = 3
    because customer is there
    → edge 1 to oslo (~1,500 rows, 11.7 KiB)
fragment 2 at oslo: reads table orders; edge 1 from bergen
    scan, filter, join
    SELECT /*+ BROADCAST(`customer`) */ o_id, o_total FROM orders AS orders JOIN edge_1 AS customer ON o_cust = c_id WHERE o_total > 10
    because the links take ~0.0021 s, ~1.3 s at bergen
    → edge 2 to oslo (~5,000 rows, 117.2 KiB)
finish at oslo: gather edge 2 from oslo
*/

-- case: a condition of ON that was all of it
-- rules: filters
SELECT o_id FROM orders JOIN nation ON n_name = 'NORWAY'
/*
plan, result at oslo
fragment 1 at bergen: reads table nation
    scan, filter
    SELECT nation.`n_id` FROM nation AS nation WHERE n_name = 'NORWAY'
    because nation is there
    → edge 1 to oslo, through the driver (~10 rows, 240 B)
fragment 2 at oslo: reads table orders; edge 1 from bergen
    scan, join
    SELECT /*+ BROADCAST(`nation`) */ o_id FROM orders AS orders JOIN edge_1 AS nation ON TRUE
    because the links take ~0.0011 s, ~11 s at bergen
    → edge 2 to oslo (~15,000,000 rows, 114.4 MiB)
finish at oslo: gather edge 2 from oslo
*/

-- case: an outer join's condition on its own side moves, one on the side it keeps stays
-- rules: filters
SELECT o_id, c_name FROM orders LEFT JOIN customer ON o_cust = c_id AND c_nation = 3 AND o_total > 5
/*
plan, result at oslo
fragment 1 at bergen: reads table customer
    scan, filter
    SELECT customer.`c_id`, customer.`c_name` FROM customer AS customer WHERE c_nation = 3
    because customer is there
    → edge 1 to oslo (~1,500 rows, 46.9 KiB)
fragment 2 at oslo: reads table orders; edge 1 from bergen
    scan, join
    SELECT /*+ BROADCAST(`customer`) */ o_id, c_name FROM orders AS orders LEFT JOIN edge_1 AS customer ON o_cust = c_id AND o_total > 5
    because the links take ~0.005 s, ~7.7 s at bergen
    → edge 2 to oslo (~1,500,000 rows, 45.8 MiB)
finish at oslo: gather edge 2 from oslo
*/

-- case: a condition on what an outer join supplied stays
-- rules: filters
SELECT o_id FROM orders LEFT JOIN customer ON o_cust = c_id WHERE c_nation = 3
/*
plan, result at oslo
fragment 1 at bergen: reads table customer
    scan
    SELECT customer.`c_id`, customer.`c_nation` FROM customer AS customer
    because customer is there
    → edge 1 to oslo (~150,000 rows, 1.7 MiB)
fragment 2 at oslo: reads table orders; edge 1 from bergen
    scan, filter, join
    SELECT /*+ BROADCAST(`customer`) */ o_id FROM orders AS orders LEFT JOIN edge_1 AS customer ON o_cust = c_id WHERE c_nation = 3
    because the links take ~0.15 s, ~2.9 s at bergen
    → edge 2 to oslo (~1,500,000 rows, 11.4 MiB)
finish at oslo: gather edge 2 from oslo
*/

-- case: brackets and OR
-- rules: filters
SELECT o_id FROM orders JOIN customer ON o_cust = c_id WHERE (c_nation = 3 OR c_name = 'x') AND (c_id > 2 AND o_id > 1)
/*
plan, result at oslo
fragment 1 at bergen: reads table customer
    scan, filter
    SELECT customer.`c_id` FROM customer AS customer WHERE (c_nation = 3 OR c_name = 'x') AND c_id > 2
    because customer is there
    → edge 1 to oslo (~995 rows, 7.8 KiB)
fragment 2 at oslo: reads table orders; edge 1 from bergen
    scan, filter, join
    SELECT /*+ BROADCAST(`customer`) */ o_id FROM orders AS orders JOIN edge_1 AS customer ON o_cust = c_id WHERE o_id > 1
    because the links take ~0.0018 s, ~0.64 s at bergen
    → edge 2 to oslo (~3,316 rows, 25.9 KiB)
finish at oslo: gather edge 2 from oslo
*/

-- case: a parameter travels in its condition
-- rules: filters
-- parameters: [3]
SELECT o_id FROM orders JOIN customer ON o_cust = c_id WHERE c_nation = ?
/*
plan, result at oslo
fragment 1 at bergen: reads table customer
    scan, filter
    SELECT customer.`c_id` FROM customer AS customer WHERE c_nation = :p0
    because customer is there
    → edge 1 to oslo (~1,500 rows, 11.7 KiB)
fragment 2 at oslo: reads table orders; edge 1 from bergen
    scan, join
    SELECT /*+ BROADCAST(`customer`) */ o_id FROM orders AS orders JOIN edge_1 AS customer ON o_cust = c_id
    because the links take ~0.0021 s, ~1.9 s at bergen
    → edge 2 to oslo (~15,000 rows, 117.2 KiB)
finish at oslo: gather edge 2 from oslo
*/

-- case: a star keeps all columns
-- rules: filters
SELECT * FROM orders JOIN customer ON o_cust = c_id WHERE c_nation = 3
/*
plan, result at oslo
fragment 1 at bergen: reads table customer
    scan, filter
    SELECT customer.`c_id`, customer.`c_name`, customer.`c_nation` FROM customer AS customer WHERE c_nation = 3
    because customer is there
    → edge 1 to oslo (~1,500 rows, 52.7 KiB)
fragment 2 at oslo: reads table orders; edge 1 from bergen
    scan, join
    SELECT /*+ BROADCAST(`customer`) */ * FROM orders AS orders JOIN edge_1 AS customer ON o_cust = c_id
    because the links take ~0.005 s, ~7.3 s at bergen
    → edge 2 to oslo (~15,000 rows, 1.4 MiB)
finish at oslo: gather edge 2 from oslo
*/

-- case: parts of which one is at the root keep the condition
-- rules: filters
SELECT s_id, c_name FROM sales JOIN customer ON s_cust = c_id WHERE s_price > 1
/*
plan, result at oslo
fragment 1 at bergen: reads table sales
    scan, filter
    SELECT sales.`s_id`, sales.`s_cust`, sales.`s_price` FROM sales AS sales WHERE s_price > 1
    because sales is there
    → edge 1 to oslo, through the driver (~333 rows, 7.8 KiB)
fragment 2 at bergen: reads table customer
    scan
    SELECT customer.`c_id`, customer.`c_name` FROM customer AS customer
    because customer is there
    → edge 2 to oslo (~150,000 rows, 4.6 MiB)
fragment 3 at oslo: reads table sales; edge 1 from bergen; edge 2 from bergen
    scan, filter, join, union
    SELECT /*+ BROADCAST(`customer`) */ s_id, c_name FROM (SELECT `s_id`, `s_cust`, `s_price` FROM sales UNION ALL SELECT `s_id`, `s_cust`, `s_price` FROM edge_1) AS sales JOIN edge_2 AS customer ON s_cust = c_id WHERE s_price > 1
    because the links take ~0.39 s, ~23 s at bergen
    → edge 3 to oslo (~500,010 rows, 15.3 MiB)
finish at oslo: gather edge 3 from oslo
*/
