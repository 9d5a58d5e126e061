-- case: a subquery over tables of the same site goes with its table
-- rules: filters,subqueries
SELECT o_id FROM orders JOIN customer ON o_cust = c_id WHERE c_nation IN (SELECT n_id FROM nation WHERE n_name = 'NORWAY')
/*
plan, result at oslo
fragment 1 at bergen: reads table customer; table nation
    scan, filter
    SELECT customer.`c_id` FROM customer AS customer WHERE c_nation IN (SELECT n_id FROM nation AS nation WHERE n_name = 'NORWAY')
    because customer is there
    → edge 1 to oslo (~15,000 rows, 117.2 KiB)
fragment 2 at oslo: reads table orders; edge 1 from bergen
    scan, join
    SELECT /*+ BROADCAST(`customer`) */ o_id FROM orders AS orders JOIN edge_1 AS customer ON o_cust = c_id
    because the links take ~0.011 s, ~2 s at bergen
    → edge 2 to oslo (~75,000 rows, 585.9 KiB)
finish at oslo: gather edge 2 from oslo
*/

-- case: a correlated one too
-- rules: filters,subqueries
SELECT o_id FROM orders JOIN customer AS c ON o_cust = c.c_id WHERE EXISTS (SELECT * FROM nation WHERE n_id = c.c_nation AND n_name <> c.c_name)
/*
plan, result at oslo
fragment 1 at bergen: reads table customer; table nation
    scan, filter
    SELECT c.`c_id` FROM customer AS c WHERE EXISTS (SELECT * FROM nation AS nation WHERE n_id = c.c_nation AND n_name != c.c_name)
    because customer is there
    → edge 1 to oslo (~75,000 rows, 585.9 KiB)
fragment 2 at oslo: reads table orders; edge 1 from bergen
    scan, join
    SELECT /*+ BROADCAST(`c`) */ o_id FROM orders AS orders JOIN edge_1 AS c ON o_cust = c.c_id
    because the links take ~0.049 s, ~2.2 s at bergen
    → edge 2 to oslo (~375,000 rows, 2.9 MiB)
finish at oslo: gather edge 2 from oslo
*/

-- case: one over another site stays
-- rules: filters,subqueries
SELECT o_id FROM orders JOIN customer ON o_cust = c_id WHERE c_id IN (SELECT l_order FROM lineitem)
/*
plan, result at oslo
fragment 1 at oslo: reads table orders
    scan
    SELECT orders.`o_id`, orders.`o_cust` FROM orders AS orders
    because orders is there
    → edge 1 to tromso (~1,500,000 rows, 22.9 MiB)
fragment 2 at bergen: reads table customer
    scan
    SELECT customer.`c_id` FROM customer AS customer
    because customer is there
    → edge 2 to tromso (~150,000 rows, 1.1 MiB)
fragment 3 at tromso: reads edge 1 from oslo; edge 2 from bergen; table lineitem
    scan, filter, join
    SELECT /*+ BROADCAST(`customer`) */ o_id FROM edge_1 AS orders JOIN edge_2 AS customer ON o_cust = c_id WHERE c_id IN (SELECT l_order FROM lineitem AS lineitem)
    because the links take ~2.5 s, ~3.9 s at oslo
    → edge 3 to oslo (~750,000 rows, 5.7 MiB)
finish at oslo: gather edge 3 from tromso
*/

-- case: one that reads two tables stays
-- rules: filters,subqueries
SELECT o_id FROM orders JOIN customer ON o_cust = c_id WHERE EXISTS (SELECT * FROM nation WHERE n_id = c_nation AND n_id = o_id)
/*
plan, result at oslo
fragment 1 at bergen: reads table customer
    scan
    SELECT customer.`c_id`, customer.`c_nation` FROM customer AS customer
    because customer is there
    → edge 1 to oslo (~150,000 rows, 1.7 MiB)
fragment 2 at bergen: reads table nation
    scan
    SELECT nation.`n_id` FROM nation AS nation
    because nation is there
    → edge 2 to oslo, through the driver (~25 rows, 100 B)
fragment 3 at oslo: reads table orders; edge 1 from bergen; edge 2 from bergen
    scan, filter, join
    SELECT /*+ BROADCAST(`customer`) */ o_id FROM orders AS orders JOIN edge_1 AS customer ON o_cust = c_id WHERE EXISTS (SELECT * FROM edge_2 AS nation WHERE n_id = c_nation AND n_id = o_id)
    because the links take ~0.15 s, ~2.4 s at bergen
    → edge 3 to oslo (~750,000 rows, 5.7 MiB)
finish at oslo: gather edge 3 from oslo
*/

-- case: NOT IN keeps its nulls
-- rules: filters,subqueries
SELECT o_id FROM orders JOIN customer ON o_cust = c_id WHERE c_nation NOT IN (SELECT n_id FROM nation)
/*
plan, result at oslo
fragment 1 at bergen: reads table customer; table nation
    scan, filter
    SELECT customer.`c_id` FROM customer AS customer WHERE c_nation NOT IN (SELECT n_id FROM nation AS nation)
    because customer is there
    → edge 1 to oslo (~75,000 rows, 585.9 KiB)
fragment 2 at oslo: reads table orders; edge 1 from bergen
    scan, join
    SELECT /*+ BROADCAST(`customer`) */ o_id FROM orders AS orders JOIN edge_1 AS customer ON o_cust = c_id
    because the links take ~0.049 s, ~2.2 s at bergen
    → edge 2 to oslo (~375,000 rows, 2.9 MiB)
finish at oslo: gather edge 2 from oslo
*/

-- case: a scalar one beside the table itself
-- rules: filters,subqueries
SELECT o_id FROM orders JOIN customer ON o_cust = c_id WHERE c_nation > (SELECT avg(c_nation) FROM customer WHERE c_id > 3)
/*
plan, result at oslo
fragment 1 at bergen: reads table customer; table customer
    scan, filter, aggregate
    SELECT customer.`c_id` FROM customer AS customer WHERE c_nation > (SELECT avg(c_nation) FROM customer AS customer WHERE c_id > 3)
    because customer is there
    → edge 1 to oslo (~50,000 rows, 390.6 KiB)
fragment 2 at oslo: reads table orders; edge 1 from bergen
    scan, join
    SELECT /*+ BROADCAST(`customer`) */ o_id FROM orders AS orders JOIN edge_1 AS customer ON o_cust = c_id
    because the links take ~0.033 s, ~2.1 s at bergen
    → edge 2 to oslo (~250,000 rows, 1.9 MiB)
finish at oslo: gather edge 2 from oslo
*/
