-- case: what FROM begins with is joined where its tables are, whatever joins it
-- rules: filters,subtrees
SELECT sum(o_total) AS s FROM customer LEFT JOIN nation ON n_id = c_nation JOIN orders ON o_cust = c_id WHERE n_name IS NULL OR n_name = 'x'
/*
plan, result at oslo
fragment 1 at bergen: reads table nation; table customer
    scan, filter, join
    SELECT subtree_1.`c_id` FROM (SELECT customer.`c_id` AS `c_id`, nation.`n_name` AS `n_name` FROM customer AS customer LEFT JOIN nation AS nation ON n_id = c_nation) AS subtree_1 WHERE n_name IS NULL OR n_name = 'x'
    because its tables are there; joined there as the query joins them
    → edge 1 to oslo (~149,975 rows, 1.1 MiB)
fragment 2 at oslo: reads table orders; edge 1 from bergen
    scan, join, aggregate
    SELECT /*+ BROADCAST(`subtree_1`) */ sum(o_total) AS s FROM edge_1 AS subtree_1 JOIN orders AS orders ON o_cust = c_id
    because the links take ~0.097 s, ~2.9 s at bergen
    → edge 2 to oslo, through the driver (~1 row, 16 B)
finish at oslo: gather edge 2 from oslo
*/

-- case: a left join that is not at the beginning is made first
-- rules: filters,subtrees
SELECT c.c_name, o_id FROM orders JOIN customer AS c ON o_cust = c.c_id LEFT JOIN nation AS n ON n.n_id = c.c_nation AND n.n_name > 'b' WHERE c.c_name = 'x' AND n.n_id IS NULL
/*
plan, result at oslo
fragment 1 at bergen: reads table nation; table customer
    scan, filter, join
    SELECT subtree_1.`c_id`, subtree_1.`c_name` FROM (SELECT c.`c_id` AS `c_id`, c.`c_name` AS `c_name`, n.`n_id` AS `n_id` FROM customer AS c LEFT JOIN nation AS n ON n.n_id = c.c_nation AND n.n_name > 'b' WHERE c.c_name = 'x') AS subtree_1 WHERE subtree_1.n_id IS NULL
    because its tables are there; joined there as the query joins them
    → edge 1 to oslo (~1,499 rows, 46.8 KiB)
fragment 2 at oslo: reads table orders; edge 1 from bergen
    scan, join
    SELECT /*+ BROADCAST(`subtree_1`) */ subtree_1.c_name, o_id FROM orders AS orders JOIN edge_1 AS subtree_1 ON o_cust = subtree_1.c_id
    because the links take ~0.005 s, ~2 s at bergen
    → edge 2 to oslo (~15,000 rows, 468.8 KiB)
finish at oslo: gather edge 2 from oslo
*/

-- case: an anti join asks of the rows of one site
-- rules: filters,subtrees
SELECT o_id, c_id FROM orders JOIN customer ON o_cust = c_id LEFT ANTI JOIN visits ON v_key = c_id AND v_note = 'x'
/*
plan, result at oslo
fragment 1 at bergen: reads table visits; table customer
    scan, join
    SELECT subtree_1.`c_id` FROM (SELECT customer.`c_id` AS `c_id` FROM customer AS customer LEFT ANTI JOIN visits AS visits ON v_key = c_id AND v_note = 'x') AS subtree_1
    because its tables are there; joined there as the query joins them
    → edge 1 to oslo (~75,000 rows, 585.9 KiB)
fragment 2 at oslo: reads table orders; edge 1 from bergen
    scan, join
    SELECT /*+ BROADCAST(`subtree_1`) */ o_id, c_id FROM orders AS orders JOIN edge_1 AS subtree_1 ON o_cust = c_id
    because the links take ~0.049 s, ~2.9 s at bergen
    → edge 2 to oslo (~750,000 rows, 11.4 MiB)
finish at oslo: gather edge 2 from oslo
*/

-- case: so does a semi join, between others
-- rules: filters,subtrees
SELECT o_id, c_id, l_qty FROM orders JOIN customer ON o_cust = c_id LEFT JOIN lineitem ON l_order = o_id LEFT SEMI JOIN visits ON v_key = c_id AND v_cost > 5 JOIN nation ON n_id = c_nation
/*
plan, result at oslo
fragment 1 at oslo: reads table orders
    scan
    SELECT orders.`o_id`, orders.`o_cust` FROM orders AS orders
    because orders is there
    → edge 1 to tromso (~1,500,000 rows, 22.9 MiB)
fragment 2 at bergen: reads table visits; table nation; table customer
    scan, join
    SELECT subtree_1.`c_id` FROM (SELECT customer.`c_id` AS `c_id` FROM customer AS customer LEFT SEMI JOIN visits AS visits ON v_key = c_id AND v_cost > 5 JOIN nation AS nation ON n_id = c_nation) AS subtree_1
    because its tables are there; joined there as the query joins them
    → edge 2 to tromso (~125 rows, 1000 B)
fragment 3 at tromso: reads edge 1 from oslo; table lineitem; edge 2 from bergen
    scan, join
    SELECT /*+ BROADCAST(`subtree_1`) */ o_id, c_id, l_qty FROM edge_1 AS orders JOIN edge_2 AS subtree_1 ON o_cust = c_id LEFT JOIN lineitem AS lineitem ON l_order = o_id
    because the links take ~1.9 s, ~5.8 s at oslo
    → edge 3 to oslo (~12,500 rows, 244.1 KiB)
finish at oslo: gather edge 3 from tromso
*/

-- case: the two tables of a chain of left joins are one
-- rules: filters,subtrees
SELECT o_id, v_day FROM orders LEFT JOIN customer ON o_cust = c_id LEFT JOIN visits ON v_key = c_nation AND c_name = 'x' AND v_note = 'x' WHERE o_date < DATE '2020-01-01'
/*
plan, result at oslo
fragment 1 at bergen: reads table visits; table customer
    scan, join
    SELECT subtree_1.`c_id`, subtree_1.`v_day` FROM (SELECT customer.`c_id` AS `c_id`, visits.`v_day` AS `v_day` FROM customer AS customer LEFT JOIN visits AS visits ON v_key = c_nation AND c_name = 'x' AND v_note = 'x') AS subtree_1
    because its tables are there; joined there as the query joins them
    → edge 1 to oslo (~150,000 rows, 1.7 MiB)
fragment 2 at oslo: reads table orders; edge 1 from bergen
    scan, filter, join
    SELECT /*+ BROADCAST(`subtree_1`) */ o_id, v_day FROM orders AS orders LEFT JOIN edge_1 AS subtree_1 ON o_cust = c_id WHERE o_date < DATE '2020-01-01'
    because the links take ~0.15 s, ~1.1 s at bergen
    → edge 2 to oslo (~500,000 rows, 5.7 MiB)
finish at oslo: gather edge 2 from oslo
*/

-- case: not where rows of NULLs could have a match
-- rules: filters,subtrees
SELECT o_id, v_day FROM orders LEFT JOIN customer ON o_cust = c_id LEFT JOIN visits ON v_key <=> c_nation AND c_name = 'x' AND v_note = 'x' WHERE o_date < DATE '2020-01-01'
/*
plan, result at oslo
fragment 1 at bergen: reads table customer
    scan
    SELECT customer.`c_id`, customer.`c_name`, customer.`c_nation` FROM customer AS customer
    because customer is there
    → edge 1 to oslo (~150,000 rows, 5.1 MiB)
fragment 2 at bergen: reads table visits
    scan, filter
    SELECT visits.`v_key`, visits.`v_day` FROM visits AS visits WHERE v_note = 'x'
    because visits is there
    → edge 2 to oslo (~10 rows, 120 B)
fragment 3 at oslo: reads table orders; edge 1 from bergen; edge 2 from bergen
    scan, filter, join
    SELECT /*+ BROADCAST(`customer`, `visits`) */ o_id, v_day FROM orders AS orders LEFT JOIN edge_1 AS customer ON o_cust = c_id LEFT JOIN edge_2 AS visits ON v_key <=> c_nation AND c_name = 'x' WHERE o_date < DATE '2020-01-01'
    because the links take ~0.43 s, ~1.1 s at bergen
    → edge 3 to oslo (~500,000 rows, 5.7 MiB)
finish at oslo: gather edge 3 from oslo
*/

-- case: a full join is joined whole, and conditions are asked of what it gives
-- rules: filters,subtrees
SELECT o_id, c_id FROM customer FULL JOIN visits ON v_key = c_id AND v_note = 'x' JOIN orders ON o_cust = coalesce(c_id, v_key) WHERE v_cost IS NULL AND c_name > 'a'
/*
plan, result at oslo
fragment 1 at bergen: reads table visits; table customer
    scan, filter, join
    SELECT subtree_1.`c_id`, subtree_1.`v_key` FROM (SELECT customer.`c_id` AS `c_id`, customer.`c_name` AS `c_name`, visits.`v_cost` AS `v_cost`, visits.`v_key` AS `v_key` FROM customer AS customer FULL JOIN visits AS visits ON v_key = c_id AND v_note = 'x') AS subtree_1 WHERE v_cost IS NULL AND c_name > 'a'
    because its tables are there; joined there as the query joins them
    → edge 1 to oslo (~81,541 rows, 1.2 MiB)
fragment 2 at oslo: reads table orders; edge 1 from bergen
    scan, join
    SELECT /*+ BROADCAST(`subtree_1`) */ o_id, c_id FROM edge_1 AS subtree_1 JOIN orders AS orders ON o_cust = coalesce(c_id, v_key)
    because the links take ~0.11 s, ~8.5 s at bergen
    → edge 2 to oslo (~5,150,000 rows, 78.6 MiB)
finish at oslo: gather edge 2 from oslo
*/

-- case: conditions on what a later join may drop stay where they are
-- rules: filters,subtrees
SELECT o_id, c_id FROM customer LEFT ANTI JOIN visits ON v_key = c_id RIGHT JOIN orders ON o_cust = c_id WHERE c_name IS NULL OR c_name = 'x'
/*
plan, result at oslo
fragment 1 at bergen: reads table visits; table customer
    scan, join
    SELECT subtree_1.`c_id`, subtree_1.`c_name` FROM (SELECT customer.`c_id` AS `c_id`, customer.`c_name` AS `c_name` FROM customer AS customer LEFT ANTI JOIN visits AS visits ON v_key = c_id) AS subtree_1
    because its tables are there; joined there as the query joins them
    → edge 1 to oslo (~75,000 rows, 2.3 MiB)
fragment 2 at oslo: reads table orders; edge 1 from bergen
    scan, filter, join
    SELECT /*+ BROADCAST(`subtree_1`) */ o_id, c_id FROM edge_1 AS subtree_1 RIGHT JOIN orders AS orders ON o_cust = c_id WHERE c_name IS NULL OR c_name = 'x'
    because the links take ~0.19 s, ~3.8 s at bergen
    → edge 2 to oslo (~1,500,000 rows, 22.9 MiB)
finish at oslo: gather edge 2 from oslo
*/

-- case: what a right join keeps may be joined on
-- rules: filters,subtrees
SELECT o_id, c_id FROM orders RIGHT JOIN customer ON o_cust = c_id LEFT SEMI JOIN visits ON v_key = c_id AND v_note = 'x'
/*
plan, result at oslo
fragment 1 at bergen: reads table visits; table customer
    scan, join
    SELECT subtree_1.`c_id` FROM (SELECT customer.`c_id` AS `c_id` FROM customer AS customer LEFT SEMI JOIN visits AS visits ON v_key = c_id AND v_note = 'x') AS subtree_1
    because its tables are there; joined there as the query joins them
    → edge 1 to oslo (~75,000 rows, 585.9 KiB)
fragment 2 at oslo: reads table orders; edge 1 from bergen
    scan, join
    SELECT /*+ BROADCAST(`subtree_1`) */ o_id, c_id FROM orders AS orders RIGHT JOIN edge_1 AS subtree_1 ON o_cust = c_id
    because the links take ~0.049 s, ~2.9 s at bergen
    → edge 2 to oslo (~750,000 rows, 11.4 MiB)
finish at oslo: gather edge 2 from oslo
*/

-- case: after a full join nothing is moved
-- rules: filters,subtrees
SELECT o_id, c_id FROM orders JOIN customer ON o_cust = c_id FULL JOIN lineitem ON l_order = o_id LEFT ANTI JOIN visits ON v_key = c_id
/*
plan, result at oslo
fragment 1 at bergen: reads table customer
    scan
    SELECT customer.`c_id` FROM customer AS customer
    because customer is there
    → edge 1 to oslo (~150,000 rows, 1.1 MiB)
fragment 2 at tromso: reads table lineitem
    scan
    SELECT lineitem.`l_order` FROM lineitem AS lineitem
    because lineitem is there
    → edge 2 to oslo (~6,000,000 rows, 45.8 MiB)
fragment 3 at bergen: reads table visits
    scan
    SELECT visits.`v_key` FROM visits AS visits
    because visits is there
    → edge 3 to oslo (~5,000,000 rows, 38.1 MiB)
fragment 4 at oslo: reads table orders; edge 1 from bergen; edge 2 from tromso; edge 3 from bergen
    scan, join
    SELECT /*+ BROADCAST(`customer`) */ o_id, c_id FROM orders AS orders JOIN edge_1 AS customer ON o_cust = c_id FULL JOIN edge_2 AS lineitem ON l_order = o_id LEFT ANTI JOIN edge_3 AS visits ON v_key = c_id
    because the links take ~7.1 s, ~10 s at tromso
    → edge 4 to oslo (~3,750,000 rows, 57.2 MiB)
finish at oslo: gather edge 4 from oslo
*/

-- case: tables behind a comma are a beginning too
-- rules: filters,subtrees
SELECT o_id FROM orders, customer AS c LEFT JOIN nation AS n ON n.n_id = c.c_nation WHERE o_cust = c.c_id AND n.n_name IS NULL
/*
plan, result at oslo
fragment 1 at bergen: reads table nation; table customer
    scan, filter, join
    SELECT subtree_1.`c_id` FROM (SELECT c.`c_id` AS `c_id`, n.`n_name` AS `n_name` FROM customer AS c LEFT JOIN nation AS n ON n.n_id = c.c_nation) AS subtree_1 WHERE subtree_1.n_name IS NULL
    because its tables are there; joined there as the query joins them
    → edge 1 to oslo (~149,975 rows, 1.1 MiB)
fragment 2 at oslo: reads table orders; edge 1 from bergen
    scan, filter, join
    SELECT /*+ BROADCAST(`subtree_1`) */ o_id FROM orders AS orders, edge_1 AS subtree_1 WHERE o_cust = subtree_1.c_id
    because the links take ~0.097 s, ~2.9 s at bergen
    → edge 2 to oslo (~1,500,000 rows, 11.4 MiB)
finish at oslo: gather edge 2 from oslo
*/

-- case: a full join behind a comma is one relation
-- rules: filters,subtrees
SELECT o_id, c.c_id FROM orders, customer AS c FULL JOIN nation AS n ON n.n_id = c.c_nation WHERE o_cust = c.c_id AND n.n_name IS NULL
/*
plan, result at oslo
fragment 1 at bergen: reads table nation; table customer
    scan, filter, join
    SELECT subtree_1.`c_id` FROM (SELECT c.`c_id` AS `c_id`, n.`n_name` AS `n_name` FROM customer AS c FULL JOIN nation AS n ON n.n_id = c.c_nation) AS subtree_1 WHERE subtree_1.n_name IS NULL
    because its tables are there; joined there as the query joins them
    → edge 1 to oslo (~7,501 rows, 58.6 KiB)
fragment 2 at oslo: reads table orders; edge 1 from bergen
    scan, filter, join
    SELECT /*+ BROADCAST(`subtree_1`) */ o_id, subtree_1.c_id FROM orders AS orders, edge_1 AS subtree_1 WHERE o_cust = subtree_1.c_id
    because the links take ~0.0059 s, ~3.8 s at bergen
    → edge 2 to oslo (~1,500,025 rows, 22.9 MiB)
finish at oslo: gather edge 2 from oslo
*/

-- case: columns with one name keep it in the result
-- rules: filters,subtrees
SELECT a.c_name, b.c_name, o_id FROM customer AS a FULL JOIN customer AS b ON b.c_id = a.c_nation AND a.c_id > b.c_nation JOIN orders ON o_cust = a.c_id WHERE a.c_name = 'x' AND b.c_name = 'y'
/*
plan, result at oslo
fragment 1 at bergen: reads table customer; table customer
    scan, filter, join
    SELECT subtree_1.`c_id`, subtree_1.`c_name`, subtree_1.`subtree_1_2` FROM (SELECT a.`c_id` AS `c_id`, a.`c_name` AS `c_name`, b.`c_name` AS `subtree_1_2` FROM customer AS a FULL JOIN customer AS b ON b.c_id = a.c_nation AND a.c_id > b.c_nation) AS subtree_1 WHERE subtree_1.c_name = 'x' AND subtree_1.`subtree_1_2` = 'y'
    because its tables are there; joined there as the query joins them
    → edge 1 to oslo (~0 rows, 0 B)
fragment 2 at oslo: reads table orders; edge 1 from bergen
    scan, join
    SELECT /*+ BROADCAST(`subtree_1`) */ subtree_1.c_name, subtree_1.`subtree_1_2` AS `c_name`, o_id FROM edge_1 AS subtree_1 JOIN orders AS orders ON o_cust = subtree_1.c_id
    because the links take ~0.0011 s, ~11 s at bergen
    → edge 2 to oslo (~2,850,000 rows, 108.7 MiB)
finish at oslo: gather edge 2 from oslo
*/

-- case: two sums that are named after such columns keep their tables apart
-- rules: filters,subtrees
SELECT o_id, a.c_nation + 1, b.c_nation + 1 FROM customer AS a LEFT JOIN customer AS b ON b.c_id = a.c_nation JOIN orders ON o_cust = a.c_id WHERE b.c_name IS NULL
/*
plan, result at oslo
fragment 1 at bergen: reads table customer
    scan
    SELECT a.`c_id`, a.`c_name`, a.`c_nation` FROM customer AS a
    because customer is there
    → edge 1 to oslo (~150,000 rows, 5.1 MiB)
fragment 2 at oslo: reads edge 1 from bergen; table orders
    scan, filter, join
    SELECT /*+ BROADCAST(`a`, `b`) */ o_id, a.c_nation + 1, b.c_nation + 1 FROM edge_1 AS a LEFT JOIN edge_1 AS b ON b.c_id = a.c_nation JOIN orders AS orders ON o_cust = a.c_id WHERE b.c_name IS NULL
    because the links take ~0.43 s, ~50 s at bergen
    → edge 2 to oslo (~15,000,000 rows, 572.2 MiB)
finish at oslo: gather edge 2 from oslo
*/

-- case: a subquery asks for a column by its old name
-- rules: filters,subtrees
SELECT o_id FROM orders JOIN customer ON o_cust = c_id LEFT ANTI JOIN nation ON n_id = c_nation WHERE EXISTS (SELECT * FROM lineitem WHERE l_order = customer.c_id AND l_qty > c_nation)
/*
plan, result at oslo
fragment 1 at oslo: reads table orders
    scan
    SELECT orders.`o_id`, orders.`o_cust` FROM orders AS orders
    because orders is there
    → edge 1 to tromso (~1,500,000 rows, 22.9 MiB)
fragment 2 at bergen: reads table nation; table customer
    scan, join
    SELECT subtree_1.`c_id`, subtree_1.`c_nation` FROM (SELECT customer.`c_id` AS `c_id`, customer.`c_nation` AS `c_nation` FROM customer AS customer LEFT ANTI JOIN nation AS nation ON n_id = c_nation) AS subtree_1
    because its tables are there; joined there as the query joins them
    → edge 2 to tromso (~75,000 rows, 878.9 KiB)
fragment 3 at tromso: reads edge 1 from oslo; table lineitem; edge 2 from bergen
    scan, filter, join
    SELECT /*+ BROADCAST(`subtree_1`) */ o_id FROM edge_1 AS orders JOIN edge_2 AS subtree_1 ON o_cust = c_id WHERE EXISTS (SELECT * FROM lineitem AS lineitem WHERE l_order = subtree_1.c_id AND l_qty > c_nation)
    because the links take ~2.2 s, ~5.8 s at oslo
    → edge 3 to oslo (~375,000 rows, 2.9 MiB)
finish at oslo: gather edge 3 from tromso
*/

-- case: a star needs every column where it was
-- rules: filters,subtrees
SELECT * FROM orders JOIN customer ON o_cust = c_id LEFT ANTI JOIN nation ON n_id = c_nation
/*
plan, result at oslo
fragment 1 at bergen: reads table customer
    scan
    SELECT customer.`c_id`, customer.`c_name`, customer.`c_nation` FROM customer AS customer
    because customer is there
    → edge 1 to oslo (~150,000 rows, 5.1 MiB)
fragment 2 at bergen: reads table nation
    scan
    SELECT nation.`n_id`, nation.`n_name` FROM nation AS nation
    because nation is there
    → edge 2 to oslo, through the driver (~25 rows, 700 B)
fragment 3 at oslo: reads table orders; edge 1 from bergen; edge 2 from bergen
    scan, join
    SELECT /*+ BROADCAST(`customer`, `nation`) */ * FROM orders AS orders JOIN edge_1 AS customer ON o_cust = c_id LEFT ANTI JOIN edge_2 AS nation ON n_id = c_nation
    because the links take ~0.43 s, ~13 s at bergen
    → edge 3 to oslo (~750,000 rows, 68.7 MiB)
finish at oslo: gather edge 3 from oslo
*/

-- case: USING is an equality where nobody asks for its column
-- rules: filters,subtrees
SELECT a.c_id, o_id FROM orders JOIN customer AS a ON o_cust = a.c_id LEFT ANTI JOIN (SELECT c_nation, max(c_id) AS most FROM customer GROUP BY c_nation) AS b USING (c_nation) LEFT JOIN lineitem ON l_order = o_id
/*
plan, result at oslo
fragment 1 at tromso: reads table lineitem
    scan
    SELECT lineitem.`l_order` FROM lineitem AS lineitem
    because lineitem is there
    → edge 1 to oslo (~6,000,000 rows, 45.8 MiB)
fragment 2 at bergen: reads table customer; table customer
    scan, join, aggregate
    SELECT subtree_1.`c_id` FROM (SELECT a.`c_id` AS `c_id` FROM customer AS a LEFT ANTI JOIN (SELECT c_nation, max(c_id) AS most FROM customer AS customer GROUP BY c_nation) AS b ON a.`c_nation` = b.`c_nation`) AS subtree_1
    because its tables are there; joined there as the query joins them
    → edge 2 to oslo (~75,000 rows, 585.9 KiB)
fragment 3 at oslo: reads table orders; edge 1 from tromso; edge 2 from bergen
    scan, join
    SELECT /*+ BROADCAST(`subtree_1`) */ subtree_1.c_id, o_id FROM orders AS orders JOIN edge_2 AS subtree_1 ON o_cust = subtree_1.c_id LEFT JOIN edge_1 AS lineitem ON l_order = o_id
    because the links take ~3.9 s, ~12 s at tromso
    → edge 3 to oslo (~7,500,000 rows, 114.4 MiB)
finish at oslo: gather edge 3 from oslo
*/

-- case: USING has a column of its own
-- rules: filters,subtrees
SELECT a.c_id, o_id, c_nation FROM orders JOIN customer AS a ON o_cust = a.c_id LEFT ANTI JOIN customer AS b USING (c_nation)
/*
plan, result at oslo
fragment 1 at bergen: reads table customer
    scan
    SELECT a.`c_id`, a.`c_nation` FROM customer AS a
    because customer is there
    → edge 1 to oslo (~150,000 rows, 1.7 MiB)
fragment 2 at oslo: reads table orders; edge 1 from bergen
    scan, join
    SELECT /*+ BROADCAST(`a`, `b`) */ a.c_id, o_id, c_nation FROM orders AS orders JOIN edge_1 AS a ON o_cust = a.c_id LEFT ANTI JOIN edge_1 AS b USING (c_nation)
    because the links take ~0.15 s, ~3.1 s at bergen
    → edge 2 to oslo (~750,000 rows, 14.3 MiB)
finish at oslo: gather edge 2 from oslo
*/

-- case: a condition that may fail is not asked of more rows
-- rules: filters,subtrees
SELECT o_id, c_name FROM orders JOIN customer ON o_cust = c_id LEFT ANTI JOIN nation ON n_id = 100 / c_nation
/*
plan, result at oslo
fragment 1 at bergen: reads table customer
    scan
    SELECT customer.`c_id`, customer.`c_name`, customer.`c_nation` FROM customer AS customer
    because customer is there
    → edge 1 to oslo (~150,000 rows, 5.1 MiB)
fragment 2 at bergen: reads table nation
    scan
    SELECT nation.`n_id` FROM nation AS nation
    because nation is there
    → edge 2 to oslo, through the driver (~25 rows, 100 B)
fragment 3 at oslo: reads table orders; edge 1 from bergen; edge 2 from bergen
    scan, join
    SELECT /*+ BROADCAST(`customer`, `nation`) */ o_id, c_name FROM orders AS orders JOIN edge_1 AS customer ON o_cust = c_id LEFT ANTI JOIN edge_2 AS nation ON n_id = 100 / c_nation
    because the links take ~0.43 s, ~3.8 s at bergen
    → edge 3 to oslo (~750,000 rows, 22.9 MiB)
finish at oslo: gather edge 3 from oslo
*/

-- case: nor is one of WHERE
-- rules: filters,subtrees
SELECT o_id FROM orders JOIN customer ON o_cust = c_id LEFT JOIN nation ON n_id = c_nation WHERE coalesce(100 / n_id, 1) < 2
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
    SELECT /*+ BROADCAST(`customer`, `nation`) */ o_id FROM orders AS orders JOIN edge_1 AS customer ON o_cust = c_id LEFT JOIN edge_2 AS nation ON n_id = c_nation WHERE coalesce(100 / n_id, 1) < 2
    because the links take ~0.15 s, ~2.9 s at bergen
    → edge 3 to oslo (~1,500,000 rows, 11.4 MiB)
finish at oslo: gather edge 3 from oslo
*/

-- case: a join that is larger than its tables is made where the rest is
-- rules: filters,subtrees
SELECT o_id, c_name, n_name FROM customer LEFT JOIN nation ON n_id = c_nation JOIN orders ON o_cust = c_id
/*
plan, result at oslo
fragment 1 at bergen: reads table customer
    scan
    SELECT customer.`c_id`, customer.`c_name`, customer.`c_nation` FROM customer AS customer
    because customer is there
    → edge 1 to oslo (~150,000 rows, 5.1 MiB)
fragment 2 at bergen: reads table nation
    scan
    SELECT nation.`n_id`, nation.`n_name` FROM nation AS nation
    because nation is there
    → edge 2 to oslo, through the driver (~25 rows, 700 B)
fragment 3 at oslo: reads edge 1 from bergen; edge 2 from bergen; table orders
    scan, join
    SELECT /*+ BROADCAST(`customer`, `nation`) */ o_id, c_name, n_name FROM edge_1 AS customer LEFT JOIN edge_2 AS nation ON n_id = c_nation JOIN orders AS orders ON o_cust = c_id
    because the links take ~0.43 s, ~8.6 s at bergen
    → edge 3 to oslo (~1,500,000 rows, 80.1 MiB)
finish at oslo: gather edge 3 from oslo
*/

-- case: only how many rows there are is asked
-- rules: filters,subtrees
SELECT count(*) AS n FROM nation LEFT ANTI JOIN customer ON c_nation = n_id CROSS JOIN orders
/*
plan, result at oslo
fragment 1 at bergen: reads table customer; table nation
    scan, join
    SELECT subtree_1.`subtree_1_0` FROM (SELECT 1 AS `subtree_1_0` FROM nation AS nation LEFT ANTI JOIN customer AS customer ON c_nation = n_id) AS subtree_1
    because its tables are there; joined there as the query joins them
    → edge 1 to oslo (~12 rows, 48 B)
fragment 2 at oslo: reads table orders; edge 1 from bergen
    scan, join, aggregate
    SELECT /*+ BROADCAST(`subtree_1`) */ count(*) AS n FROM edge_1 AS subtree_1 CROSS JOIN orders AS orders
    because the links take ~0.0011 s, ~0.48 s at bergen
    → edge 2 to oslo, through the driver (~1 row, 16 B)
finish at oslo: gather edge 2 from oslo
*/

-- case: keys go to joined tables first
-- rules: filters,semijoin,subtrees
SELECT o_id, c_name FROM orders JOIN customer ON o_cust = c_id LEFT ANTI JOIN nation ON n_id = c_nation WHERE o_note = 'x'
/*
plan, result at oslo
fragment 1 at oslo: reads table orders
    scan, filter, distinct
    SELECT DISTINCT orders.`o_cust` FROM orders AS orders WHERE o_note = 'x'
    because orders is there; its keys go ahead, so fewer rows travel
    → edge 2 to bergen (~14,342 rows, 112.1 KiB)
fragment 2 at bergen: reads table nation; table customer; edge 2 from oslo
    scan, join
    SELECT /*+ BROADCAST(key_1) */ subtree_1.`c_id`, subtree_1.`c_name` FROM (SELECT customer.`c_id` AS `c_id`, customer.`c_name` AS `c_name` FROM customer AS customer LEFT ANTI JOIN nation AS nation ON n_id = c_nation) AS subtree_1 LEFT SEMI JOIN (SELECT `o_cust` FROM edge_2) AS key_1 ON subtree_1.`c_id` = key_1.`o_cust`
    because its tables are there; joined there as the query joins them; rows without a match in orders are not sent
    → edge 1 to oslo (~7,171 rows, 224.1 KiB)
fragment 3 at oslo: reads table orders; edge 1 from bergen
    scan, filter, join
    SELECT /*+ BROADCAST(`subtree_1`) */ o_id, c_name FROM orders AS orders JOIN edge_1 AS subtree_1 ON o_cust = c_id WHERE o_note = 'x'
    because the links take ~0.038 s, ~0.041 s at bergen
    → edge 3 to oslo (~7,500 rows, 234.4 KiB)
finish at oslo: gather edge 3 from oslo
*/

-- case: a query in FROM is joined with a table of its site
-- rules: all
SELECT o_id, d.n FROM orders JOIN customer ON o_cust = c_id JOIN (SELECT v_key, count(*) AS n FROM visits WHERE v_cost > 5 GROUP BY v_key) AS d ON d.v_key = c_id LEFT ANTI JOIN nation ON n_id = c_nation
/*
plan, result at oslo
fragment 1 at bergen: reads table nation; table customer; table visits
    scan, filter, join, aggregate
    SELECT subtree_1.`n`, subtree_1.`c_id` FROM (SELECT d.`n` AS `n`, customer.`c_id` AS `c_id` FROM customer AS customer JOIN (SELECT v_key, count(*) AS n FROM visits AS visits WHERE v_cost > 5 GROUP BY v_key) AS d ON d.v_key = c_id LEFT ANTI JOIN nation AS nation ON n_id = c_nation) AS subtree_1
    because its tables are there; joined there as the query joins them
    → edge 1 to oslo (~500,000 rows, 7.6 MiB)
fragment 2 at oslo: reads table orders; edge 1 from bergen
    scan, join
    SELECT /*+ BROADCAST(`subtree_1`) */ o_id, subtree_1.n FROM orders AS orders JOIN edge_1 AS subtree_1 ON o_cust = c_id
    because the links take ~0.64 s, ~2.9 s at bergen
    → edge 2 to oslo (~750,000 rows, 11.4 MiB)
finish at oslo: gather edge 2 from oslo
*/

-- case: inside a query that is answered apart
-- rules: all
SELECT l_qty, d.n FROM lineitem JOIN (SELECT c_nation AS k, count(*) AS n FROM orders JOIN customer ON o_cust = c_id LEFT ANTI JOIN visits ON v_key = c_id AND v_note = 'x' GROUP BY c_nation) AS d ON d.k = l_qty
/*
plan, result at oslo
fragment 1 at tromso: reads table lineitem
    scan
    SELECT lineitem.`l_qty` FROM lineitem AS lineitem
    because lineitem is there
    → edge 1 to oslo (~6,000,000 rows, 22.9 MiB)
fragment 2 at bergen: reads table visits; table customer
    scan, join
    SELECT subtree_1.`c_id`, subtree_1.`c_nation` FROM (SELECT customer.`c_id` AS `c_id`, customer.`c_nation` AS `c_nation` FROM customer AS customer LEFT ANTI JOIN visits AS visits ON v_key = c_id AND v_note = 'x') AS subtree_1
    because its tables are there; joined there as the query joins them
    → edge 2 to oslo (~75,000 rows, 878.9 KiB)
fragment 3 at oslo: reads edge 1 from tromso; table orders; edge 2 from bergen
    scan, join, aggregate
    SELECT l_qty, d.n FROM edge_1 AS lineitem JOIN (SELECT /*+ BROADCAST(`subtree_1`) */ c_nation AS k, count(*) AS n FROM orders AS orders JOIN edge_2 AS subtree_1 ON o_cust = c_id GROUP BY c_nation) AS d ON d.k = l_qty
    because the links take ~2 s, ~9.7 s at tromso
    → edge 3 to oslo (~6,000,000 rows, 114.4 MiB)
finish at oslo: gather edge 3 from oslo
*/

-- case: two sites, two subtrees
-- rules: all
SELECT c_id, l_order FROM customer LEFT ANTI JOIN visits ON v_key = c_id AND v_note = 'x' JOIN orders ON o_cust = c_id JOIN lineitem ON l_order = o_id LEFT ANTI JOIN clicks ON k_key = l_order AND k_note = 'x'
/*
plan, result at oslo
fragment 1 at bergen: reads table visits; table customer
    scan, join
    SELECT subtree_1.`c_id` FROM (SELECT customer.`c_id` AS `c_id` FROM customer AS customer LEFT ANTI JOIN visits AS visits ON v_key = c_id AND v_note = 'x') AS subtree_1
    because its tables are there; joined there as the query joins them
    → edge 1 to oslo (~75,000 rows, 585.9 KiB)
fragment 2 at tromso: reads table clicks; table lineitem
    scan, join
    SELECT subtree_2.`l_order` FROM (SELECT lineitem.`l_order` AS `l_order` FROM lineitem AS lineitem LEFT ANTI JOIN clicks AS clicks ON k_key = l_order AND k_note = 'x') AS subtree_2
    because its tables are there; joined there as the query joins them
    → edge 2 to oslo (~3,000,000 rows, 22.9 MiB)
fragment 3 at oslo: reads table orders; edge 1 from bergen; edge 2 from tromso
    scan, join
    SELECT /*+ BROADCAST(`subtree_1`) */ c_id, l_order FROM edge_1 AS subtree_1 JOIN orders AS orders ON o_cust = c_id JOIN edge_2 AS subtree_2 ON l_order = o_id
    because the links take ~2 s, ~6.8 s at tromso
    → edge 3 to oslo (~3,750,000 rows, 57.2 MiB)
finish at oslo: gather edge 3 from oslo
*/

-- case: names that need quotes, and a table that is named twice
-- rules: filters,subtrees
SELECT `a b`.C_ID, o_id FROM orders JOIN customer AS `a b` ON `a b`.`c_id` = o_cust LEFT ANTI JOIN customer AS `c d` ON `c d`.c_nation = `a b`.c_id AND `c d`.c_name > `a b`.c_name JOIN bergen.mixed ON mixed.id = `a b`.c_nation
/*
plan, result at oslo
fragment 1 at bergen: reads table customer; table Mixed; table customer
    scan, join
    SELECT subtree_1.`c_id` FROM (SELECT `a b`.`c_id` AS `c_id` FROM customer AS `a b` LEFT ANTI JOIN customer AS `c d` ON `c d`.c_nation = `a b`.c_id AND `c d`.c_name > `a b`.c_name JOIN Mixed AS mixed ON mixed.id = `a b`.c_nation) AS subtree_1
    because its tables are there; joined there as the query joins them
    → edge 1 to oslo (~50 rows, 400 B)
fragment 2 at oslo: reads table orders; edge 1 from bergen
    scan, join
    SELECT /*+ BROADCAST(`subtree_1`) */ subtree_1.C_ID, o_id FROM orders AS orders JOIN edge_1 AS subtree_1 ON subtree_1.`c_id` = o_cust
    because the links take ~0.0012 s, ~1.9 s at bergen
    → edge 2 to oslo (~500 rows, 7.8 KiB)
finish at oslo: gather edge 2 from oslo
*/

-- case: where rows meet first
-- strategy: bottom-up
-- rules: all
SELECT o_id, c_id FROM orders JOIN customer ON o_cust = c_id LEFT ANTI JOIN visits ON v_key = c_id AND v_note = 'x'
/*
plan, result at oslo
fragment 1 at bergen: reads table visits; table customer
    scan, join
    SELECT subtree_1.`c_id` FROM (SELECT customer.`c_id` AS `c_id` FROM customer AS customer LEFT ANTI JOIN visits AS visits ON v_key = c_id AND v_note = 'x') AS subtree_1
    because its tables are there; joined there as the query joins them
    → edge 1 to oslo (~75,000 rows, 585.9 KiB)
fragment 2 at oslo: reads table orders; edge 1 from bergen
    scan, join
    SELECT /*+ BROADCAST(`subtree_1`) */ o_id, c_id FROM orders AS orders JOIN edge_1 AS subtree_1 ON o_cust = c_id
    because all its rows come to oslo, where the result goes
    → edge 2 to oslo (~750,000 rows, 11.4 MiB)
finish at oslo: gather edge 2 from oslo
*/
