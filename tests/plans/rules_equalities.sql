-- case: a condition on one side of an equality is one on the other
-- rules: filters,equalities
SELECT o_id, l_qty FROM orders JOIN lineitem ON l_order = o_id WHERE o_id < 100 AND o_total > 3
/*
plan, result at oslo
fragment 1 at oslo: reads table orders
    scan, filter
    SELECT orders.`o_id` FROM orders AS orders WHERE o_id < 100 AND o_total > 3
    because orders is there
    → edge 1 to tromso (~166,666 rows, 1.3 MiB)
fragment 2 at tromso: reads edge 1 from oslo; table lineitem
    scan, join
    SELECT /*+ BROADCAST(`orders`) */ o_id, l_qty FROM edge_1 AS orders JOIN lineitem AS lineitem ON l_order = o_id
    because the links take ~1.7 s, ~1.9 s at oslo
    → edge 2 to oslo (~1,666,666 rows, 19.1 MiB)
finish at oslo: gather edge 2 from tromso
*/

-- case: it reaches through a chain, and columns of other types are left alone
-- rules: filters,equalities
SELECT o_id FROM orders, customer, lineitem, nation WHERE o_id = c_id AND c_id = l_order AND n_id = o_id AND l_order BETWEEN 5 AND 7
/*
plan, result at oslo
fragment 1 at oslo: reads table orders
    scan, filter
    SELECT orders.`o_id` FROM orders AS orders WHERE (orders.`o_id` BETWEEN 5 AND 7)
    because orders is there
    → edge 1 to tromso (~500,000 rows, 3.8 MiB)
fragment 2 at bergen: reads table customer
    scan, filter
    SELECT customer.`c_id` FROM customer AS customer WHERE (customer.`c_id` BETWEEN 5 AND 7)
    because customer is there
    → edge 2 to tromso (~50,000 rows, 390.6 KiB)
fragment 3 at bergen: reads table nation
    scan
    SELECT nation.`n_id` FROM nation AS nation
    because nation is there
    → edge 3 to tromso, through the driver (~25 rows, 100 B)
fragment 4 at tromso: reads edge 1 from oslo; edge 2 from bergen; table lineitem; edge 3 from bergen
    scan, filter, join
    SELECT /*+ BROADCAST(`orders`, `customer`, `nation`) */ o_id FROM edge_1 AS orders, edge_2 AS customer, lineitem AS lineitem, edge_3 AS nation WHERE o_id = c_id AND c_id = l_order AND n_id = o_id AND l_order BETWEEN 5 AND 7
    because the links take ~0.36 s, ~1.3 s at oslo
    → edge 4 to oslo (~2,500 rows, 19.5 KiB)
finish at oslo: gather edge 4 from tromso
*/

-- case: not to what an outer join keeps
-- rules: filters,equalities
SELECT o_id, c_name FROM customer LEFT JOIN orders ON o_id = c_id AND o_id < 100
/*
plan, result at oslo
fragment 1 at bergen: reads table customer
    scan
    SELECT customer.`c_id`, customer.`c_name` FROM customer AS customer
    because customer is there
    → edge 1 to oslo (~150,000 rows, 4.6 MiB)
fragment 2 at oslo: reads edge 1 from bergen; table orders
    scan, join
    SELECT /*+ BROADCAST(`customer`) */ o_id, c_name FROM edge_1 AS customer LEFT JOIN orders AS orders ON o_id = c_id AND o_id < 100
    because the links take ~0.39 s, ~4.2 s at bergen
    → edge 2 to oslo (~1,500,000 rows, 45.8 MiB)
finish at oslo: gather edge 2 from oslo
*/

-- case: from what an outer join keeps to what it supplies
-- rules: filters,equalities
SELECT o_id, c_name FROM customer LEFT JOIN orders ON o_id = c_id WHERE c_id < 100
/*
plan, result at oslo
fragment 1 at bergen: reads table customer
    scan, filter
    SELECT customer.`c_id`, customer.`c_name` FROM customer AS customer WHERE c_id < 100
    because customer is there
    → edge 1 to oslo (~50,000 rows, 1.5 MiB)
fragment 2 at oslo: reads edge 1 from bergen; table orders
    scan, join
    SELECT /*+ BROADCAST(`customer`) */ o_id, c_name FROM edge_1 AS customer LEFT JOIN orders AS orders ON o_id = c_id
    because the links take ~0.13 s, ~2.2 s at bergen
    → edge 2 to oslo (~500,000 rows, 15.3 MiB)
finish at oslo: gather edge 2 from oslo
*/
