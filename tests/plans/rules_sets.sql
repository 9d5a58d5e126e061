-- case: EXISTS asks whether, not how often
-- rules: filters,sets
-- at: bergen
SELECT c_name FROM customer WHERE NOT EXISTS (SELECT * FROM lineitem WHERE l_order = c_id AND l_qty > 4) AND EXISTS (SELECT 1 FROM orders WHERE o_cust = c_id)
/*
plan, result at bergen
fragment 1 at tromso: reads table lineitem
    SELECT DISTINCT lineitem.`l_order` FROM lineitem AS lineitem WHERE l_qty > 4
    because lineitem is there
    → edge 1 to bergen (~589595 rows, 4.5 MiB)
fragment 2 at oslo: reads table orders
    SELECT DISTINCT orders.`o_cust` FROM orders AS orders
    because orders is there
    → edge 2 to bergen (~150000 rows, 1.1 MiB)
fragment 3 at bergen: reads table customer; edge 1 from tromso; edge 2 from oslo
    SELECT c_name FROM customer AS customer WHERE NOT EXISTS (SELECT * FROM edge_1 AS lineitem WHERE l_order = c_id) AND EXISTS (SELECT 1 FROM edge_2 AS orders WHERE o_cust = c_id)
    because the links take ~0.48 s, ~0.56 s at tromso
    → edge 3 to bergen (~37500 rows, 878.9 KiB)
finish at bergen: gather edge 3 from bergen
*/

-- case: and so does IN, but not where rows are counted or chosen
-- rules: filters,sets
-- at: bergen
SELECT c_name FROM customer WHERE c_id IN (SELECT o_cust FROM orders) AND c_id NOT IN (SELECT l_order FROM lineitem GROUP BY l_order HAVING count(*) > 3) AND EXISTS (SELECT count(*) FROM sales WHERE s_cust = c_id)
/*
plan, result at bergen
fragment 1 at bergen: reads table customer
    SELECT customer.`c_id`, customer.`c_name` FROM customer AS customer
    because customer is there
    → edge 1 to oslo (~150000 rows, 4.6 MiB)
fragment 2 at tromso: reads table lineitem
    SELECT lineitem.`l_order` FROM lineitem AS lineitem
    because lineitem is there
    → edge 2 to oslo (~6000000 rows, 45.8 MiB)
fragment 3 at bergen: reads table sales
    SELECT sales.`s_cust` FROM sales AS sales
    because sales is there
    → edge 3 to oslo (~1000 rows, 7.8 KiB)
fragment 4 at oslo: reads edge 1 from bergen; table orders; edge 2 from tromso; table sales; edge 3 from bergen
    SELECT c_name FROM edge_1 AS customer WHERE c_id IN (SELECT o_cust FROM orders AS orders) AND c_id NOT IN (SELECT l_order FROM edge_2 AS lineitem GROUP BY l_order HAVING count(*) > 3) AND EXISTS (SELECT count(*) FROM (SELECT `s_cust` FROM sales UNION ALL SELECT `s_cust` FROM edge_3) AS sales WHERE s_cust = c_id)
    because the links take ~4.3 s, ~33 s at tromso
    → edge 4 to bergen (~18750 rows, 439.5 KiB)
finish at bergen: gather edge 4 from oslo
*/

-- case: keys go ahead of a set too
-- rules: filters,sets,semijoin
-- at: bergen
SELECT c_name FROM customer WHERE c_nation = 3 AND c_name = 'x' AND NOT EXISTS (SELECT * FROM orders WHERE o_cust = c_id AND o_total > c_nation)
/*
plan, result at bergen
fragment 1 at bergen: reads table customer
    SELECT customer.`c_id`, customer.`c_name`, customer.`c_nation` FROM customer AS customer WHERE c_nation = 3 AND c_name = 'x'
    because customer is there
    → edge 1 to oslo (~15 rows, 540 B)
fragment 2 at oslo: reads edge 1 from bergen; table orders
    SELECT c_name FROM edge_1 AS customer WHERE NOT EXISTS (SELECT * FROM orders AS orders WHERE o_cust = c_id AND o_total > c_nation)
    because the links take ~0.0023 s, ~0.008 s at bergen
    → edge 2 to bergen (~7 rows, 180 B)
finish at bergen: gather edge 2 from oslo
*/
