-- case: an aggregate for each key
-- rules: filters,lookups
SELECT o_id FROM orders WHERE o_total < (SELECT 2 * avg(c_nation) FROM customer WHERE c_id = o_cust AND c_name <> 'x')
/*
plan, result at oslo
fragment 1 at bergen: reads table customer
    scan, filter, aggregate
    SELECT answer_1.`answer_1_1`, answer_1.`answer_1_2` FROM (SELECT c_id AS answer_1_1, avg(c_nation) AS answer_1_2 FROM customer AS customer WHERE c_name != 'x' GROUP BY c_id) AS answer_1
    because its tables are there; the subquery is answered for all its keys at once
    → edge 1 to oslo (~15,000 rows, 234.4 KiB)
fragment 2 at oslo: reads table orders; edge 1 from bergen
    scan, filter, aggregate
    SELECT o_id FROM orders AS orders WHERE o_total < (SELECT 2 * max(answer_1.answer_1_2) FROM edge_1 AS answer_1 WHERE answer_1.answer_1_1 = o_cust)
    because the links take ~0.02 s, ~4.3 s at bergen
    → edge 2 to oslo (~750,000 rows, 5.7 MiB)
finish at oslo: gather edge 2 from oslo
*/

-- case: one of several sites stays
-- rules: filters,lookups
SELECT l_order FROM lineitem WHERE l_qty > (SELECT max(o_total) - min(c.c_id) FROM oslo.sales AS s JOIN oslo.orders AS o ON s.s_cust = o.o_cust JOIN bergen.customer AS c ON c.c_id = o.o_id WHERE o.o_id = l_order)
/*
plan, result at oslo
fragment 1 at tromso: reads table lineitem
    scan
    SELECT lineitem.`l_order`, lineitem.`l_qty` FROM lineitem AS lineitem
    because lineitem is there
    → edge 1 to oslo (~6,000,000 rows, 68.7 MiB)
fragment 2 at bergen: reads table customer
    scan
    SELECT c.`c_id` FROM customer AS c
    because customer is there
    → edge 2 to oslo (~150,000 rows, 1.1 MiB)
fragment 3 at oslo: reads edge 1 from tromso; table sales; table orders; edge 2 from bergen
    scan, filter, join, aggregate
    SELECT l_order FROM edge_1 AS lineitem WHERE l_qty > (SELECT /*+ BROADCAST(`c`) */ max(o_total) - min(c.c_id) FROM sales AS s, orders AS o, edge_2 AS c WHERE s.s_cust = o.o_cust AND c.c_id = o.o_id AND o.o_id = l_order)
    because the links take ~5.9 s, ~38 s at tromso
    → edge 3 to oslo (~3,000,000 rows, 22.9 MiB)
finish at oslo: gather edge 3 from oslo
*/

-- case: of one site's two tables, by two keys
-- rules: filters,lookups
SELECT l_order FROM lineitem WHERE l_qty > (SELECT max(c_id) - sum(n_id) FROM customer JOIN nation ON c_nation = n_id WHERE c_id = l_order AND n_id = l_qty AND n_name <> 'x')
/*
plan, result at oslo
fragment 1 at bergen: reads table customer; table nation
    scan, filter, join, aggregate
    SELECT answer_1.`answer_1_1`, answer_1.`answer_1_2`, answer_1.`answer_1_3`, answer_1.`answer_1_4` FROM (SELECT c_id AS answer_1_1, n_id AS answer_1_2, max(c_id) AS answer_1_3, sum(n_id) AS answer_1_4 FROM customer AS customer JOIN nation AS nation ON c_nation = n_id WHERE n_name != 'x' GROUP BY c_id, n_id) AS answer_1
    because its tables are there; the subquery is answered for all its keys at once
    → edge 1 to tromso (~150 rows, 4.1 KiB)
fragment 2 at tromso: reads table lineitem; edge 1 from bergen
    scan, filter, aggregate
    SELECT l_order FROM lineitem AS lineitem WHERE l_qty > (SELECT max(answer_1.answer_1_3) - max(answer_1.answer_1_4) FROM edge_1 AS answer_1 WHERE answer_1.answer_1_1 = l_order AND answer_1.answer_1_2 = l_qty)
    because the links take ~1.9 s, ~5.8 s at oslo
    → edge 2 to oslo (~3,000,000 rows, 22.9 MiB)
finish at oslo: gather edge 2 from tromso
*/

-- case: a count of nothing is 0
-- rules: filters,lookups
SELECT o_id FROM orders WHERE o_total > (SELECT count(*) + count(DISTINCT c_name) FROM customer WHERE o_cust = c_nation)
/*
plan, result at oslo
fragment 1 at bergen: reads table customer
    scan, aggregate
    SELECT answer_1.`answer_1_1`, answer_1.`answer_1_2`, answer_1.`answer_1_3` FROM (SELECT c_nation AS answer_1_1, count(*) AS answer_1_2, count(DISTINCT c_name) AS answer_1_3 FROM customer AS customer GROUP BY c_nation) AS answer_1
    because its tables are there; the subquery is answered for all its keys at once
    → edge 1 to oslo (~15,000 rows, 293.0 KiB)
fragment 2 at oslo: reads table orders; edge 1 from bergen
    scan, filter, aggregate
    SELECT o_id FROM orders AS orders WHERE o_total > (SELECT coalesce(max(answer_1.answer_1_2), 0) + coalesce(max(answer_1.answer_1_3), 0) FROM edge_1 AS answer_1 WHERE o_cust = answer_1.answer_1_1)
    because the links take ~0.025 s, ~4.3 s at bergen
    → edge 2 to oslo (~750,000 rows, 5.7 MiB)
finish at oslo: gather edge 2 from oslo
*/

-- case: in a column with an alias
-- rules: filters,lookups
SELECT o_id, coalesce((SELECT sum(c_nation) FROM customer WHERE c_id = o_cust), 0) AS s FROM orders
/*
plan, result at oslo
fragment 1 at bergen: reads table customer
    scan, aggregate
    SELECT answer_1.`answer_1_1`, answer_1.`answer_1_2` FROM (SELECT c_id AS answer_1_1, sum(c_nation) AS answer_1_2 FROM customer AS customer GROUP BY c_id) AS answer_1
    because its tables are there; the subquery is answered for all its keys at once
    → edge 1 to oslo (~15,000 rows, 234.4 KiB)
fragment 2 at oslo: reads table orders; edge 1 from bergen
    scan, filter, aggregate
    SELECT o_id, coalesce((SELECT max(answer_1.answer_1_2) FROM edge_1 AS answer_1 WHERE answer_1.answer_1_1 = o_cust), 0) AS s FROM orders AS orders
    because the links take ~0.02 s, ~4.8 s at bergen
    → edge 2 to oslo (~1,500,000 rows, 34.3 MiB)
finish at oslo: gather edge 2 from oslo
*/

-- case: keys of the query around it go first
-- rules: filters,lookups,semijoin
SELECT c_name, l_qty FROM lineitem JOIN customer ON c_id = l_order WHERE c_name = 'x' AND l_price < (SELECT avg(o_total) FROM orders WHERE o_cust = c_id)
/*
plan, result at oslo
fragment 1 at bergen: reads table customer
    scan, filter
    SELECT customer.`c_id`, customer.`c_name` FROM customer AS customer WHERE c_name = 'x'
    because customer is there
    → edge 1 to tromso (~1,500 rows, 46.9 KiB)
fragment 2 at bergen: reads table customer
    scan, filter, distinct
    SELECT DISTINCT customer.`c_id` FROM customer AS customer WHERE c_name = 'x'
    because customer is there; its keys go ahead, so fewer rows travel
    → edge 3 to oslo (~1,434 rows, 11.2 KiB)
fragment 3 at oslo: reads table orders; edge 3 from bergen
    scan, join, aggregate
    SELECT /*+ BROADCAST(key_1) */ answer_1.`answer_1_1`, CAST(answer_1.`answer_1_2` AS DECIMAL(19, 6)) AS `answer_1_2` FROM (SELECT o_cust AS answer_1_1, avg(o_total) AS answer_1_2 FROM orders AS orders GROUP BY o_cust) AS answer_1 LEFT SEMI JOIN (SELECT `c_id` FROM edge_3) AS key_1 ON answer_1.`answer_1_1` = key_1.`c_id`
    because its tables are there; the subquery is answered for all its keys at once; rows without a match in customer are not sent
    → edge 2 to tromso (~1,434 rows, 33.6 KiB)
fragment 4 at tromso: reads table lineitem; edge 1 from bergen; edge 2 from oslo
    scan, filter, join, aggregate
    SELECT /*+ BROADCAST(`customer`) */ c_name, l_qty FROM lineitem AS lineitem JOIN edge_1 AS customer ON c_id = l_order WHERE l_price < (SELECT max(answer_1.answer_1_2) FROM edge_2 AS answer_1 WHERE answer_1.answer_1_1 = c_id)
    because the links take ~0.034 s, ~0.046 s at oslo
    → edge 4 to oslo (~7,500 rows, 205.1 KiB)
finish at oslo: gather edge 4 from tromso
*/

-- case: keys of two types may be equal to several others
-- rules: filters,lookups
SELECT o_id FROM orders WHERE o_id < (SELECT max(c_nation) FROM customer WHERE c_id = o_total)
/*
plan, result at oslo
fragment 1 at bergen: reads table customer
    scan
    SELECT customer.`c_id`, customer.`c_nation` FROM customer AS customer
    because customer is there
    → edge 1 to oslo (~150,000 rows, 1.7 MiB)
fragment 2 at oslo: reads table orders; edge 1 from bergen
    scan, filter, aggregate
    SELECT o_id FROM orders AS orders WHERE o_id < (SELECT max(c_nation) FROM edge_1 AS customer WHERE c_id = o_total)
    because the links take ~0.15 s, ~3.4 s at bergen
    → edge 2 to oslo (~750,000 rows, 5.7 MiB)
finish at oslo: gather edge 2 from oslo
*/

-- case: an inequality has no groups
-- rules: filters,lookups
SELECT o_id FROM orders WHERE o_id < (SELECT sum(c_nation) FROM customer WHERE c_id = o_cust AND c_nation > o_total)
/*
plan, result at oslo
fragment 1 at bergen: reads table customer
    scan
    SELECT customer.`c_id`, customer.`c_nation` FROM customer AS customer
    because customer is there
    → edge 1 to oslo (~150,000 rows, 1.7 MiB)
fragment 2 at oslo: reads table orders; edge 1 from bergen
    scan, filter, aggregate
    SELECT o_id FROM orders AS orders WHERE o_id < (SELECT sum(c_nation) FROM edge_1 AS customer WHERE c_id = o_cust AND c_nation > o_total)
    because the links take ~0.15 s, ~4.3 s at bergen
    → edge 2 to oslo (~750,000 rows, 5.7 MiB)
finish at oslo: gather edge 2 from oslo
*/

-- case: what is no aggregate may have two rows
-- rules: filters,lookups
SELECT o_id FROM orders WHERE o_id < (SELECT c_nation FROM customer WHERE c_id = o_cust)
/*
plan, result at oslo
fragment 1 at bergen: reads table customer
    scan
    SELECT customer.`c_id`, customer.`c_nation` FROM customer AS customer
    because customer is there
    → edge 1 to oslo (~150,000 rows, 1.7 MiB)
fragment 2 at oslo: reads table orders; edge 1 from bergen
    scan, filter
    SELECT o_id FROM orders AS orders WHERE o_id < (SELECT c_nation FROM edge_1 AS customer WHERE c_id = o_cust)
    because the links take ~0.15 s, ~2.4 s at bergen
    → edge 2 to oslo (~750,000 rows, 5.7 MiB)
finish at oslo: gather edge 2 from oslo
*/

-- case: nor is a first value one value
-- rules: filters,lookups
SELECT o_id FROM orders WHERE o_id < (SELECT first(c_nation) FROM customer WHERE c_id = o_cust)
/*
plan, result at oslo
fragment 1 at bergen: reads table customer
    scan
    SELECT customer.`c_id`, customer.`c_nation` FROM customer AS customer
    because customer is there
    → edge 1 to oslo (~150,000 rows, 1.7 MiB)
fragment 2 at oslo: reads table orders; edge 1 from bergen
    scan, filter, aggregate
    SELECT o_id FROM orders AS orders WHERE o_id < (SELECT first(c_nation) FROM edge_1 AS customer WHERE c_id = o_cust)
    because the links take ~0.15 s, ~2.4 s at bergen
    → edge 2 to oslo (~750,000 rows, 5.7 MiB)
finish at oslo: gather edge 2 from oslo
*/

-- case: EXISTS over a join
-- rules: filters,lookups
SELECT o_id FROM orders WHERE EXISTS (SELECT * FROM customer JOIN nation ON c_nation = n_id WHERE c_id = o_cust AND n_name = 'NORWAY')
/*
plan, result at oslo
fragment 1 at bergen: reads table customer; table nation
    scan, filter, join, distinct
    SELECT answer_1.`answer_1_1` FROM (SELECT DISTINCT c_id AS answer_1_1 FROM customer AS customer JOIN nation AS nation ON c_nation = n_id WHERE n_name = 'NORWAY') AS answer_1
    because its tables are there; the subquery is answered for all its keys at once
    → edge 1 to oslo (~100 rows, 800 B)
fragment 2 at oslo: reads table orders; edge 1 from bergen
    scan, filter
    SELECT o_id FROM orders AS orders WHERE EXISTS (SELECT 1 FROM edge_1 AS answer_1 WHERE answer_1.answer_1_1 = o_cust)
    because the links take ~0.0012 s, ~2.4 s at bergen
    → edge 2 to oslo (~750,000 rows, 5.7 MiB)
finish at oslo: gather edge 2 from oslo
*/

-- case: NOT EXISTS with more than an equality
-- rules: filters,lookups
SELECT o_id FROM orders WHERE NOT EXISTS (SELECT 1 FROM customer, nation WHERE c_nation = n_id AND c_id = o_cust AND (n_id < o_id OR n_name = 'x'))
/*
plan, result at oslo
fragment 1 at bergen: reads table customer; table nation
    scan, filter, join, distinct
    SELECT answer_1.`answer_1_1`, answer_1.`answer_1_2`, answer_1.`answer_1_3` FROM (SELECT DISTINCT c_id AS answer_1_1, n_id AS answer_1_2, n_name AS answer_1_3 FROM customer AS customer, nation AS nation WHERE c_nation = n_id) AS answer_1
    because its tables are there; the subquery is answered for all its keys at once
    → edge 1 to oslo (~250 rows, 8.8 KiB)
fragment 2 at oslo: reads table orders; edge 1 from bergen
    scan, filter
    SELECT o_id FROM orders AS orders WHERE NOT EXISTS (SELECT 1 FROM edge_1 AS answer_1 WHERE answer_1.answer_1_1 = o_cust AND (answer_1.answer_1_2 < o_id OR answer_1.answer_1_3 = 'x'))
    because the links take ~0.0018 s, ~2.4 s at bergen
    → edge 2 to oslo (~750,000 rows, 5.7 MiB)
finish at oslo: gather edge 2 from oslo
*/

-- case: IN over a join
-- rules: filters,lookups
SELECT o_id FROM orders WHERE o_id NOT IN (SELECT n_id + 1 FROM customer JOIN nation ON c_nation = n_id WHERE c_id = o_cust)
/*
plan, result at oslo
fragment 1 at bergen: reads table customer; table nation
    scan, join, distinct
    SELECT answer_1.`answer_1_1`, answer_1.`answer_1_2` FROM (SELECT DISTINCT c_id AS answer_1_1, n_id + 1 AS answer_1_2 FROM customer AS customer JOIN nation AS nation ON c_nation = n_id) AS answer_1
    because its tables are there; the subquery is answered for all its keys at once
    → edge 1 to oslo (~250 rows, 2.9 KiB)
fragment 2 at oslo: reads table orders; edge 1 from bergen
    scan, filter
    SELECT o_id FROM orders AS orders WHERE o_id NOT IN (SELECT answer_1.answer_1_2 FROM edge_1 AS answer_1 WHERE answer_1.answer_1_1 = o_cust)
    because the links take ~0.0014 s, ~2.4 s at bergen
    → edge 2 to oslo (~750,000 rows, 5.7 MiB)
finish at oslo: gather edge 2 from oslo
*/

-- case: the query around it may be a subquery itself
-- rules: filters,lookups,sets
SELECT c_id FROM customer WHERE c_id IN (SELECT o_cust FROM orders WHERE o_total > (SELECT 0.5 * sum(l_qty) FROM lineitem WHERE l_order = o_id))
/*
plan, result at oslo
fragment 1 at bergen: reads table customer
    scan
    SELECT customer.`c_id` FROM customer AS customer
    because customer is there
    → edge 1 to oslo (~150,000 rows, 1.1 MiB)
fragment 2 at tromso: reads table lineitem
    scan, aggregate
    SELECT answer_1.`answer_1_1`, answer_1.`answer_1_2` FROM (SELECT l_order AS answer_1_1, sum(l_qty) AS answer_1_2 FROM lineitem AS lineitem GROUP BY l_order) AS answer_1
    because its tables are there; the subquery is answered for all its keys at once
    → edge 2 to oslo (~600,000 rows, 9.2 MiB)
fragment 3 at oslo: reads edge 1 from bergen; table orders; edge 2 from tromso
    scan, filter, aggregate
    SELECT c_id FROM edge_1 AS customer WHERE c_id IN (SELECT o_cust FROM orders AS orders WHERE o_total > (SELECT 0.5 * max(answer_1.answer_1_2) FROM edge_2 AS answer_1 WHERE answer_1.answer_1_1 = o_id))
    because the links take ~0.87 s, ~4 s at tromso
    → edge 3 to oslo (~75,000 rows, 585.9 KiB)
finish at oslo: gather edge 3 from oslo
*/

-- case: in HAVING a name may be another thing
-- rules: filters,lookups
SELECT c_nation, count(*) AS n FROM customer GROUP BY c_nation HAVING count(*) > (SELECT max(l_qty) FROM lineitem WHERE l_qty = c_nation)
/*
plan, result at oslo
fragment 1 at bergen: reads table customer
    scan
    SELECT customer.`c_nation` FROM customer AS customer
    because customer is there
    → edge 1 to tromso (~150,000 rows, 585.9 KiB)
fragment 2 at tromso: reads edge 1 from bergen; table lineitem
    scan, filter, aggregate
    SELECT c_nation, count(*) AS n FROM edge_1 AS customer GROUP BY c_nation HAVING count(*) > (SELECT max(`lineitem`.l_qty) FROM lineitem AS lineitem WHERE `lineitem`.l_qty = c_nation)
    because the links take ~0.074 s, ~1.9 s at bergen
    → edge 2 to oslo (~15,000 rows, 293.0 KiB)
finish at oslo: gather edge 2 from tromso
*/

-- case: EXISTS over an aggregate of a join has its row whatever the key
-- rules: filters,lookups
SELECT o_id FROM orders WHERE EXISTS (SELECT max(n_id) FROM customer JOIN nation ON c_nation = n_id WHERE c_id = o_cust)
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
    scan, filter, join, aggregate
    SELECT o_id FROM orders AS orders WHERE EXISTS (SELECT /*+ BROADCAST(`customer`, `nation`) */ max(n_id) FROM edge_1 AS customer JOIN edge_2 AS nation ON c_nation = n_id WHERE c_id = o_cust)
    because the links take ~0.15 s, ~2.4 s at bergen
    → edge 3 to oslo (~750,000 rows, 5.7 MiB)
finish at oslo: gather edge 3 from oslo
*/

-- case: IN an aggregate of a join is no set of rows
-- rules: filters,lookups
SELECT o_id FROM orders WHERE o_id IN (SELECT max(n_id) FROM customer JOIN nation ON c_nation = n_id WHERE c_id = o_cust)
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
    scan, filter, join, aggregate
    SELECT o_id FROM orders AS orders WHERE o_id IN (SELECT /*+ BROADCAST(`customer`, `nation`) */ max(n_id) FROM edge_1 AS customer JOIN edge_2 AS nation ON c_nation = n_id WHERE c_id = o_cust)
    because the links take ~0.15 s, ~2.4 s at bergen
    → edge 3 to oslo (~750,000 rows, 5.7 MiB)
finish at oslo: gather edge 3 from oslo
*/
