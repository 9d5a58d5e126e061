-- case: a scalar subquery is answered at its site
-- rules: filters,answers
SELECT o_id FROM orders WHERE o_id > (SELECT avg(l_qty) FROM lineitem WHERE l_price > 3)
/*
plan, result at oslo
fragment 1 at tromso: reads table lineitem
    scan, filter, aggregate
    SELECT answer_1.`answer_1_1` FROM (SELECT avg(l_qty) FROM lineitem AS lineitem WHERE l_price > 3) AS answer_1(answer_1_1)
    because its tables are there; the subquery is answered once
    → edge 1 to oslo (~1 row, 8 B)
fragment 2 at oslo: reads table orders; edge 1 from tromso
    scan, filter
    SELECT o_id FROM orders AS orders WHERE o_id > (SELECT answer_1.answer_1_1 FROM edge_1 AS answer_1)
    because the links take ~0.0011 s, ~1.4 s at tromso
    → edge 2 to oslo (~750,000 rows, 5.7 MiB)
finish at oslo: gather edge 2 from oslo
*/

-- case: in HAVING, beside a table of a third site
-- rules: filters,answers,semijoin
SELECT c_nation, sum(o_total) AS s FROM orders JOIN customer ON o_cust = c_id GROUP BY c_nation HAVING sum(o_total) > (SELECT 2 * max(l_price) FROM lineitem)
/*
plan, result at oslo
fragment 1 at bergen: reads table customer
    scan
    SELECT customer.`c_id`, customer.`c_nation` FROM customer AS customer
    because customer is there
    → edge 1 to oslo (~150,000 rows, 1.7 MiB)
fragment 2 at tromso: reads table lineitem
    scan, aggregate
    SELECT CAST(answer_1.`answer_1_1` AS DECIMAL(17, 2)) AS `answer_1_1` FROM (SELECT 2 * max(`lineitem`.l_price) FROM lineitem AS lineitem) AS answer_1(answer_1_1)
    because its tables are there; the subquery is answered once
    → edge 2 to oslo (~1 row, 16 B)
fragment 3 at oslo: reads table orders; edge 1 from bergen; edge 2 from tromso
    scan, filter, join, aggregate
    SELECT /*+ BROADCAST(`customer`) */ c_nation, sum(o_total) AS s FROM orders AS orders JOIN edge_1 AS customer ON o_cust = c_id GROUP BY c_nation HAVING sum(o_total) > (SELECT answer_1.answer_1_1 FROM edge_2 AS answer_1)
    because the links take ~0.15 s, ~2.9 s at bergen
    → edge 3 to oslo (~15,000 rows, 293.0 KiB)
finish at oslo: gather edge 3 from oslo
*/

-- case: in a column with an alias
-- rules: filters,answers
SELECT o_id, o_total / (SELECT sum(l_price) FROM lineitem) AS share FROM orders
/*
plan, result at oslo
fragment 1 at tromso: reads table lineitem
    scan, aggregate
    SELECT CAST(answer_1.`answer_1_1` AS DECIMAL(25, 2)) AS `answer_1_1` FROM (SELECT sum(l_price) FROM lineitem AS lineitem) AS answer_1(answer_1_1)
    because its tables are there; the subquery is answered once
    → edge 1 to oslo (~1 row, 16 B)
fragment 2 at oslo: reads table orders; edge 1 from tromso
    scan
    SELECT o_id, o_total / (SELECT answer_1.answer_1_1 FROM edge_1 AS answer_1) AS share FROM orders AS orders
    because the links take ~0.0011 s, ~5.8 s at tromso
    → edge 2 to oslo (~1,500,000 rows, 34.3 MiB)
finish at oslo: gather edge 2 from oslo
*/

-- case: in a column that Spark names it stays
-- rules: filters,answers
SELECT o_id, (SELECT max(c_id) FROM customer) FROM orders
/*
plan, result at oslo
fragment 1 at bergen: reads table customer
    scan
    SELECT customer.`c_id` FROM customer AS customer
    because customer is there
    → edge 1 to oslo (~150,000 rows, 1.1 MiB)
fragment 2 at oslo: reads table orders; edge 1 from bergen
    scan, aggregate
    SELECT o_id, (SELECT max(c_id) FROM edge_1 AS customer) FROM orders AS orders
    because the links take ~0.097 s, ~3.8 s at bergen
    → edge 2 to oslo (~1,500,000 rows, 34.3 MiB)
finish at oslo: gather edge 2 from oslo
*/

-- case: beside the same subquery in GROUP BY it stays
-- rules: filters,answers
SELECT o_id + (SELECT max(c_id) FROM customer) AS k, count(*) AS n FROM orders GROUP BY o_id + (SELECT max(c_id) FROM customer)
/*
plan, result at oslo
fragment 1 at bergen: reads table customer
    scan
    SELECT customer.`c_id` FROM customer AS customer
    because customer is there
    → edge 1 to oslo (~150,000 rows, 1.1 MiB)
fragment 2 at oslo: reads table orders; edge 1 from bergen
    scan, aggregate
    SELECT o_id + (SELECT max(c_id) FROM edge_1 AS customer) AS k, count(*) AS n FROM orders AS orders GROUP BY o_id + (SELECT max(c_id) FROM edge_1 AS customer)
    because the links take ~0.097 s, ~1.3 s at bergen
    → edge 2 to oslo (~150,000 rows, 4.6 MiB)
finish at oslo: gather edge 2 from oslo
*/

-- case: a subquery that may have two rows has them still
-- rules: filters,answers
SELECT o_id FROM orders WHERE o_cust = (SELECT c_id FROM customer WHERE c_name = 'x' AND c_nation = 3)
/*
plan, result at oslo
fragment 1 at bergen: reads table customer
    scan, filter
    SELECT customer.`c_id` FROM customer AS customer WHERE c_name = 'x' AND c_nation = 3
    because customer is there
    → edge 1 to oslo (~15 rows, 120 B)
fragment 2 at oslo: reads table orders; edge 1 from bergen
    scan, filter
    SELECT o_id FROM orders AS orders WHERE o_cust = (SELECT c_id FROM edge_1 AS customer)
    because the links take ~0.0011 s, ~2.4 s at bergen
    → edge 2 to oslo (~750,000 rows, 5.7 MiB)
finish at oslo: gather edge 2 from oslo
*/

-- case: IN asks for a set
-- rules: filters,answers
SELECT o_id FROM orders WHERE o_id IN (SELECT c_nation + 1 FROM customer WHERE c_name = 'x')
/*
plan, result at oslo
fragment 1 at bergen: reads table customer
    scan, filter
    SELECT customer.`c_nation` FROM customer AS customer WHERE c_name = 'x'
    because customer is there
    → edge 1 to oslo (~1,500 rows, 5.9 KiB)
fragment 2 at oslo: reads table orders; edge 1 from bergen
    scan, filter
    SELECT o_id FROM orders AS orders WHERE o_id IN (SELECT c_nation + 1 FROM edge_1 AS customer)
    because the links take ~0.0016 s, ~1.4 s at bergen
    → edge 2 to oslo (~750,000 rows, 5.7 MiB)
finish at oslo: gather edge 2 from oslo
*/

-- case: of groups too
-- rules: filters,answers
SELECT o_id FROM orders WHERE o_cust NOT IN (SELECT c_nation FROM customer GROUP BY c_nation HAVING sum(c_id) > 30)
/*
plan, result at oslo
fragment 1 at bergen: reads table customer
    scan, filter, aggregate, distinct
    SELECT answer_1.`answer_1_1` FROM (SELECT DISTINCT c_nation FROM customer AS customer GROUP BY c_nation HAVING sum(c_id) > 30) AS answer_1(answer_1_1)
    because its tables are there; the subquery is answered once
    → edge 1 to oslo (~15,000 rows, 58.6 KiB)
fragment 2 at oslo: reads table orders; edge 1 from bergen
    scan, filter
    SELECT o_id FROM orders AS orders WHERE o_cust NOT IN (SELECT answer_1.answer_1_1 FROM edge_1 AS answer_1)
    because the links take ~0.0059 s, ~2.4 s at bergen
    → edge 2 to oslo (~750,000 rows, 5.7 MiB)
finish at oslo: gather edge 2 from oslo
*/

-- case: of two columns and two tables
-- rules: filters,answers
SELECT o_id FROM orders WHERE (o_id, o_cust) IN (SELECT c_id, n_id FROM customer JOIN nation ON c_nation = n_id WHERE n_name = 'NORWAY')
/*
plan, result at oslo
fragment 1 at bergen: reads table customer; table nation
    scan, filter, join, distinct
    SELECT answer_1.`answer_1_1`, answer_1.`answer_1_2` FROM (SELECT DISTINCT c_id, n_id FROM customer AS customer JOIN nation AS nation ON c_nation = n_id WHERE n_name = 'NORWAY') AS answer_1(answer_1_1, answer_1_2)
    because its tables are there; the subquery is answered once
    → edge 1 to oslo (~100 rows, 1.2 KiB)
fragment 2 at oslo: reads table orders; edge 1 from bergen
    scan, filter
    SELECT o_id FROM orders AS orders WHERE (o_id, o_cust) IN (SELECT answer_1.answer_1_1, answer_1.answer_1_2 FROM edge_1 AS answer_1)
    because the links take ~0.0012 s, ~2.4 s at bergen
    → edge 2 to oslo (~750,000 rows, 5.7 MiB)
finish at oslo: gather edge 2 from oslo
*/

-- case: a union in IN
-- rules: filters,answers
SELECT o_id FROM orders WHERE o_id IN (SELECT c_id FROM customer WHERE c_name = 'x' UNION SELECT n_id FROM nation)
/*
plan, result at oslo
fragment 1 at bergen: reads table customer; table nation
    scan, filter, union
    SELECT answer_1.`answer_1_1` FROM (SELECT c_id FROM customer AS customer WHERE c_name = 'x' UNION SELECT n_id FROM nation AS nation) AS answer_1(answer_1_1)
    because its tables are there; the subquery is answered once
    → edge 1 to oslo (~1,436 rows, 11.2 KiB)
fragment 2 at oslo: reads table orders; edge 1 from bergen
    scan, filter
    SELECT o_id FROM orders AS orders WHERE o_id IN (SELECT answer_1.answer_1_1 FROM edge_1 AS answer_1)
    because the links take ~0.002 s, ~1.4 s at bergen
    → edge 2 to oslo (~750,000 rows, 5.7 MiB)
finish at oslo: gather edge 2 from oslo
*/

-- case: EXISTS asks for one row
-- rules: filters,answers
SELECT o_id FROM orders WHERE EXISTS (SELECT * FROM customer JOIN nation ON c_nation = n_id WHERE n_name = 'NORWAY')
/*
plan, result at oslo
fragment 1 at bergen: reads table customer; table nation
    scan, filter, join, distinct
    SELECT answer_1.`answer_1_1` FROM (SELECT DISTINCT 1 FROM customer AS customer JOIN nation AS nation ON c_nation = n_id WHERE n_name = 'NORWAY') AS answer_1(answer_1_1)
    because its tables are there; the subquery is answered once
    → edge 1 to oslo (~1 row, 4 B)
fragment 2 at oslo: reads table orders; edge 1 from bergen
    scan, filter
    SELECT o_id FROM orders AS orders WHERE EXISTS (SELECT answer_1.answer_1_1 FROM edge_1 AS answer_1)
    because the links take ~0.0011 s, ~1.4 s at bergen
    → edge 2 to oslo (~750,000 rows, 5.7 MiB)
finish at oslo: gather edge 2 from oslo
*/

-- case: EXISTS over an aggregate has its row whatever is read
-- rules: filters,answers
SELECT o_id FROM orders WHERE NOT EXISTS (SELECT max(c_id) FROM customer WHERE c_id < 0)
/*
plan, result at oslo
fragment 1 at bergen: reads table customer
    scan, filter
    SELECT customer.`c_id` FROM customer AS customer WHERE c_id < 0
    because customer is there
    → edge 1 to oslo (~50,000 rows, 390.6 KiB)
fragment 2 at oslo: reads table orders; edge 1 from bergen
    scan, filter, aggregate
    SELECT o_id FROM orders AS orders WHERE NOT EXISTS (SELECT max(c_id) FROM edge_1 AS customer)
    because the links take ~0.033 s, ~1.4 s at bergen
    → edge 2 to oslo (~750,000 rows, 5.7 MiB)
finish at oslo: gather edge 2 from oslo
*/

-- case: a subquery inside a subquery
-- rules: filters,answers
SELECT o_id FROM orders WHERE o_cust IN (SELECT c_id FROM customer WHERE c_nation > (SELECT max(l_qty) FROM lineitem))
/*
plan, result at oslo
fragment 1 at bergen: reads table customer
    scan
    SELECT customer.`c_id`, customer.`c_nation` FROM customer AS customer
    because customer is there
    → edge 1 to oslo (~150,000 rows, 1.7 MiB)
fragment 2 at tromso: reads table lineitem
    scan, aggregate
    SELECT answer_1.`answer_1_1` FROM (SELECT max(l_qty) FROM lineitem AS lineitem) AS answer_1(answer_1_1)
    because its tables are there; the subquery is answered once
    → edge 2 to oslo (~1 row, 4 B)
fragment 3 at oslo: reads table orders; edge 1 from bergen; edge 2 from tromso
    scan, filter
    SELECT o_id FROM orders AS orders WHERE o_cust IN (SELECT c_id FROM edge_1 AS customer WHERE c_nation > (SELECT answer_1.answer_1_1 FROM edge_2 AS answer_1))
    because the links take ~0.15 s, ~2.4 s at bergen
    → edge 3 to oslo (~750,000 rows, 5.7 MiB)
finish at oslo: gather edge 3 from oslo
*/

-- case: one of several sites stays
-- rules: filters,answers
SELECT o_id FROM orders WHERE o_id > (SELECT avg(l_qty) FROM lineitem JOIN customer ON l_order = c_id)
/*
plan, result at oslo
fragment 1 at oslo: reads table orders
    scan
    SELECT orders.`o_id` FROM orders AS orders
    because orders is there
    → edge 1 to tromso (~1,500,000 rows, 11.4 MiB)
fragment 2 at bergen: reads table customer
    scan
    SELECT customer.`c_id` FROM customer AS customer
    because customer is there
    → edge 2 to tromso (~150,000 rows, 1.1 MiB)
fragment 3 at tromso: reads edge 1 from oslo; table lineitem; edge 2 from bergen
    scan, filter, join, aggregate
    SELECT o_id FROM edge_1 AS orders WHERE o_id > (SELECT /*+ BROADCAST(`customer`) */ avg(l_qty) FROM lineitem AS lineitem JOIN edge_2 AS customer ON l_order = c_id)
    because the links take ~1.5 s, ~5.9 s at oslo
    → edge 3 to oslo (~750,000 rows, 5.7 MiB)
finish at oslo: gather edge 3 from tromso
*/

-- case: a limit may choose its rows
-- rules: filters,answers
SELECT o_id FROM orders WHERE o_id IN (SELECT c_id FROM customer LIMIT 3)
/*
plan, result at oslo
fragment 1 at bergen: reads table customer
    scan
    SELECT customer.`c_id` FROM customer AS customer
    because customer is there
    → edge 1 to oslo (~150,000 rows, 1.1 MiB)
fragment 2 at oslo: reads table orders; edge 1 from bergen
    scan, filter, limit
    SELECT o_id FROM orders AS orders WHERE o_id IN (SELECT c_id FROM edge_1 AS customer LIMIT 3)
    because the links take ~0.097 s, ~1.4 s at bergen
    → edge 2 to oslo (~750,000 rows, 5.7 MiB)
finish at oslo: gather edge 2 from oslo
*/

-- case: a value that differs from call to call stays
-- rules: filters,answers
SELECT o_id FROM orders WHERE o_id > (SELECT max(c_id + rand()) FROM customer)
/*
plan, result at oslo
fragment 1 at bergen: reads table customer
    scan
    SELECT customer.`c_id` FROM customer AS customer
    because customer is there
    → edge 1 to oslo (~150,000 rows, 1.1 MiB)
fragment 2 at oslo: reads table orders; edge 1 from bergen
    scan, filter, aggregate
    SELECT o_id FROM orders AS orders WHERE o_id > (SELECT max(c_id + rand()) FROM edge_1 AS customer)
    because the links take ~0.097 s, ~1.4 s at bergen
    → edge 2 to oslo (~750,000 rows, 5.7 MiB)
finish at oslo: gather edge 2 from oslo
*/

-- case: one that looks outside is not answered once
-- rules: filters,answers
SELECT o_id FROM orders WHERE o_id > (SELECT avg(c_nation) FROM customer WHERE c_id = o_cust)
/*
plan, result at oslo
fragment 1 at bergen: reads table customer
    scan
    SELECT customer.`c_id`, customer.`c_nation` FROM customer AS customer
    because customer is there
    → edge 1 to oslo (~150,000 rows, 1.7 MiB)
fragment 2 at oslo: reads table orders; edge 1 from bergen
    scan, filter, aggregate
    SELECT o_id FROM orders AS orders WHERE o_id > (SELECT avg(c_nation) FROM edge_1 AS customer WHERE c_id = o_cust)
    because the links take ~0.15 s, ~2.4 s at bergen
    → edge 2 to oslo (~750,000 rows, 5.7 MiB)
finish at oslo: gather edge 2 from oslo
*/

-- case: a condition that goes to its table takes the subquery along
-- rules: filters,subqueries,answers
SELECT o_id FROM orders JOIN customer ON o_cust = c_id WHERE c_nation > (SELECT avg(n_id) FROM nation) AND o_total > (SELECT max(n_id) FROM nation WHERE n_name = 'x')
/*
plan, result at oslo
fragment 1 at bergen: reads table customer; table nation
    scan, filter, aggregate
    SELECT customer.`c_id` FROM customer AS customer WHERE c_nation > (SELECT avg(n_id) FROM nation AS nation)
    because customer is there
    → edge 1 to oslo (~50,000 rows, 390.6 KiB)
fragment 2 at bergen: reads table nation
    scan, filter
    SELECT nation.`n_id` FROM nation AS nation WHERE n_name = 'x'
    because nation is there
    → edge 2 to oslo, through the driver (~10 rows, 40 B)
fragment 3 at oslo: reads table orders; edge 1 from bergen; edge 2 from bergen
    scan, filter, join, aggregate
    SELECT /*+ BROADCAST(`customer`) */ o_id FROM orders AS orders JOIN edge_1 AS customer ON o_cust = c_id WHERE o_total > (SELECT max(n_id) FROM edge_2 AS nation)
    because the links take ~0.034 s, ~3.9 s at bergen
    → edge 3 to oslo (~125,000 rows, 976.6 KiB)
finish at oslo: gather edge 3 from oslo
*/

-- case: it may name what it groups by as the query around it does
-- rules: filters,blocks,subqueries,answers
WITH d AS (SELECT c_nation AS k, max(c_id) AS m FROM customer GROUP BY k) SELECT o_total, m FROM orders, d WHERE o_cust = k AND m = (SELECT max(m) FROM d)
/*
plan, result at oslo
fragment 1 at bergen: reads table customer; table customer
    scan, filter, aggregate
    SELECT d.`k`, d.`m` FROM (SELECT c_nation AS k, max(c_id) AS m FROM customer AS customer GROUP BY k) AS d WHERE m = (SELECT max(m) FROM (SELECT c_nation AS k, max(c_id) AS m FROM customer AS customer GROUP BY k) AS d)
    because its tables are there
    → edge 1 to oslo (~1 row, 12 B)
fragment 2 at oslo: reads table orders; edge 1 from bergen
    scan, filter, join
    SELECT /*+ BROADCAST(`d`) */ o_total, m FROM orders AS orders, edge_1 AS d WHERE o_cust = k
    because the links take ~0.0011 s, ~2.9 s at bergen
    → edge 2 to oslo (~5 rows, 120 B)
finish at oslo: gather edge 2 from oslo
*/

-- case: EXISTS over a generator, which may make no rows
-- rules: filters,answers
SELECT o_id FROM orders WHERE EXISTS (SELECT explode(array(c_id)) FROM customer JOIN nation ON c_nation = n_id)
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
    SELECT o_id FROM orders AS orders WHERE EXISTS (SELECT /*+ BROADCAST(`customer`, `nation`) */ explode(array(c_id)) FROM edge_1 AS customer JOIN edge_2 AS nation ON c_nation = n_id)
    because the links take ~0.15 s, ~1.4 s at bergen
    → edge 3 to oslo (~750,000 rows, 5.7 MiB)
finish at oslo: gather edge 3 from oslo
*/

-- case: two subqueries over the same rows, of which one answer alone would spare nothing
-- rules: filters,answers
SELECT o_id FROM orders WHERE o_id > (SELECT avg(l_qty) FROM lineitem) AND o_total < (SELECT max(l_price) FROM lineitem)
/*
plan, result at oslo
fragment 1 at tromso: reads table lineitem
    scan, aggregate
    SELECT answer_1.`answer_1_1` FROM (SELECT avg(l_qty) FROM lineitem AS lineitem) AS answer_1(answer_1_1)
    because its tables are there; the subquery is answered once
    → edge 1 to oslo (~1 row, 8 B)
fragment 2 at tromso: reads table lineitem
    scan, aggregate
    SELECT CAST(answer_2.`answer_2_1` AS DECIMAL(15, 2)) AS `answer_2_1` FROM (SELECT max(l_price) FROM lineitem AS lineitem) AS answer_2(answer_2_1)
    because its tables are there; the subquery is answered once
    → edge 2 to oslo (~1 row, 16 B)
fragment 3 at oslo: reads table orders; edge 1 from tromso; edge 2 from tromso
    scan, filter
    SELECT o_id FROM orders AS orders WHERE o_id > (SELECT answer_1.answer_1_1 FROM edge_1 AS answer_1) AND o_total < (SELECT answer_2.answer_2_1 FROM edge_2 AS answer_2)
    because the links take ~0.0022 s, ~3.1 s at tromso
    → edge 3 to oslo (~375,000 rows, 2.9 MiB)
finish at oslo: gather edge 3 from oslo
*/
