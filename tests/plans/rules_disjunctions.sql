-- case: each branch says something of both tables
-- rules: filters,disjunctions
SELECT o_id FROM orders JOIN customer ON o_cust = c_id WHERE (c_nation = 1 AND o_total > 1) OR (c_nation = 2 AND c_name = 'x' AND o_total > 2)
/*
plan, result at oslo
fragment 1 at bergen: reads table customer
    scan, filter
    SELECT customer.`c_id`, customer.`c_name`, customer.`c_nation` FROM customer AS customer WHERE ((c_nation = 1) OR (c_nation = 2 AND c_name = 'x'))
    because customer is there
    → edge 1 to oslo (~1,514 rows, 53.3 KiB)
fragment 2 at oslo: reads table orders; edge 1 from bergen
    scan, filter, join
    SELECT /*+ BROADCAST(`customer`) */ o_id FROM orders AS orders JOIN edge_1 AS customer ON o_cust = c_id WHERE (c_nation = 1 AND o_total > 1) OR (c_nation = 2 AND c_name = 'x' AND o_total > 2)
    because the links take ~0.0055 s, ~2.1 s at bergen
    → edge 2 to oslo (~8,415 rows, 65.7 KiB)
finish at oslo: gather edge 2 from oslo
*/

-- case: one branch says nothing of the customer
-- rules: filters,disjunctions
SELECT o_id FROM orders JOIN customer ON o_cust = c_id WHERE (c_nation = 1 AND o_total > 1) OR o_total > 2
/*
plan, result at oslo
fragment 1 at bergen: reads table customer
    scan
    SELECT customer.`c_id`, customer.`c_nation` FROM customer AS customer
    because customer is there
    → edge 1 to oslo (~150,000 rows, 1.7 MiB)
fragment 2 at oslo: reads table orders; edge 1 from bergen
    scan, filter, join
    SELECT /*+ BROADCAST(`customer`) */ o_id FROM orders AS orders JOIN edge_1 AS customer ON o_cust = c_id WHERE (c_nation = 1 AND o_total > 1) OR o_total > 2
    because the links take ~0.15 s, ~2.7 s at bergen
    → edge 2 to oslo (~833,333 rows, 6.4 MiB)
finish at oslo: gather edge 2 from oslo
*/

-- case: not of rows that an outer join keeps
-- rules: filters,disjunctions
SELECT o_id FROM orders LEFT JOIN customer ON o_cust = c_id WHERE (c_nation = 1 AND o_total > 1) OR (c_nation = 2 AND o_total > 2)
/*
plan, result at oslo
fragment 1 at bergen: reads table customer
    scan
    SELECT customer.`c_id`, customer.`c_nation` FROM customer AS customer
    because customer is there
    → edge 1 to oslo (~150,000 rows, 1.7 MiB)
fragment 2 at oslo: reads table orders; edge 1 from bergen
    scan, filter, join
    SELECT /*+ BROADCAST(`customer`) */ o_id FROM orders AS orders LEFT JOIN edge_1 AS customer ON o_cust = c_id WHERE (c_nation = 1 AND o_total > 1) OR (c_nation = 2 AND o_total > 2)
    because the links take ~0.15 s, ~2.7 s at bergen
    → edge 2 to oslo (~833,333 rows, 6.4 MiB)
finish at oslo: gather edge 2 from oslo
*/
