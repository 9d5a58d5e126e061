-- case: a table with parts joined with a small one, the first rows of each part
-- rules: topn
SELECT id, n_name FROM events JOIN nation ON id = n_id ORDER BY id DESC LIMIT 10 OFFSET 5
/*
plan, result at oslo
fragment 1 at bergen: reads table nation
    scan
    SELECT `n_id`, `n_name` FROM nation
    → edge 2 to oslo and tromso, through the driver (~25 rows, 700 B to each)
fragment 2 at oslo: reads table events; edge 2 from bergen
    scan, join, sort, limit
    SELECT /*+ BROADCAST(`nation`) */ id, n_name FROM events AS events JOIN edge_2 AS nation ON id = n_id ORDER BY id DESC LIMIT 15
    → edge 1 to oslo, in order, through the driver (~15 rows, 480 B)
fragment 3 at bergen: reads table events; table nation
    scan, join, sort, limit
    SELECT id, n_name FROM events AS events JOIN nation AS nation ON id = n_id ORDER BY id DESC LIMIT 15
    → edge 1 to oslo, in order, through the driver (~15 rows, 480 B)
fragment 4 at tromso: reads table events; edge 2 from bergen
    scan, join, sort, limit
    SELECT /*+ BROADCAST(`nation`) */ id, n_name FROM events AS events JOIN edge_2 AS nation ON id = n_id ORDER BY id DESC LIMIT 15
    → edge 1 to oslo, in order, through the driver (~15 rows, 480 B)
finish at oslo: merge, offset 5, limit 10 edge 1 from oslo, bergen, tromso
*/

-- case: without an order any rows will do
-- rules: topn
-- at: front
SELECT * FROM events AS e LEFT JOIN nation ON e.id = n_id LIMIT 10
/*
plan, result at front
fragment 1 at bergen: reads table nation
    scan
    SELECT `n_id`, `n_name` FROM nation
    → edge 2 to oslo and tromso, through the driver (~25 rows, 700 B to each)
fragment 2 at oslo: reads table events; edge 2 from bergen
    scan, join, limit
    SELECT /*+ BROADCAST(`nation`) */ * FROM events AS e LEFT JOIN edge_2 AS nation ON e.id = n_id LIMIT 10
    → edge 1 to front, through the driver (~10 rows, 1.7 KiB)
fragment 3 at bergen: reads table events; table nation
    scan, join, limit
    SELECT * FROM events AS e LEFT JOIN nation AS nation ON e.id = n_id LIMIT 10
    → edge 1 to front, through the driver (~10 rows, 1.7 KiB)
fragment 4 at tromso: reads table events; edge 2 from bergen
    scan, join, limit
    SELECT /*+ BROADCAST(`nation`) */ * FROM events AS e LEFT JOIN edge_2 AS nation ON e.id = n_id LIMIT 10
    → edge 1 to front, through the driver (~10 rows, 1.7 KiB)
finish at front: gather, limit 10 edge 1 from oslo, bergen, tromso
*/

-- case: no bound, and the result goes to its reader from every part
-- rules: topn
-- at: front
SELECT s_id, n_name FROM nation JOIN sales ON n_id = s_cust WHERE n_name = 'NORWAY' ORDER BY s_id
/*
plan, result at front
fragment 1 at bergen: reads table nation
    scan, filter
    SELECT `n_id`, `n_name` FROM nation WHERE n_name = 'NORWAY'
    → edge 2 to oslo, through the driver (~10 rows, 280 B)
fragment 2 at oslo: reads table sales; edge 2 from bergen
    scan, filter, join, sort
    SELECT /*+ BROADCAST(`nation`) */ s_id, n_name FROM edge_2 AS nation JOIN sales AS sales ON n_id = s_cust WHERE n_name = 'NORWAY' SORT BY s_id
    → edge 1 to front, lanes merged in order (~100 rows, 3.1 KiB)
fragment 3 at bergen: reads table sales; table nation
    scan, filter, join, sort
    SELECT s_id, n_name FROM nation AS nation JOIN sales AS sales ON n_id = s_cust WHERE n_name = 'NORWAY' SORT BY s_id
    → edge 1 to front, lanes merged in order (~0 rows, 0 B)
finish at front: merge edge 1 from oslo, bergen
*/

-- case: the order is by what is not listed, so Spark makes it above
-- rules: topn
-- at: front
SELECT s_id FROM sales JOIN nation ON n_id = s_cust ORDER BY n_name, s_price DESC NULLS LAST LIMIT 3
/*
plan, result at front
fragment 1 at bergen: reads table nation
    scan
    SELECT `n_id`, `n_name` FROM nation
    → edge 1 to oslo, through the driver (~25 rows, 700 B)
fragment 2 at bergen: reads table sales; table nation
    scan, join, sort, limit
    SELECT `sales`.s_id AS part_0, `nation`.n_name AS part_1, `sales`.s_price AS part_2 FROM sales AS sales JOIN nation AS nation ON n_id = s_cust ORDER BY part_1, part_2 DESC NULLS LAST LIMIT 3
    → edge 2 to oslo (~3 rows, 120 B)
fragment 3 at oslo: reads table sales; edge 1 from bergen; edge 2 from bergen
    scan, join, union, sort, limit
    SELECT part_0 AS `s_id` FROM ((SELECT /*+ BROADCAST(`nation`) */ `sales`.s_id AS part_0, `nation`.n_name AS part_1, `sales`.s_price AS part_2 FROM sales AS sales JOIN edge_1 AS nation ON n_id = s_cust ORDER BY part_1, part_2 DESC NULLS LAST LIMIT 3) UNION ALL SELECT `part_0`, `part_1`, `part_2` FROM edge_2) AS part_rows ORDER BY part_1, part_2 DESC NULLS LAST LIMIT 3
    because the links take ~0.0023 s, ~0.0023 s at bergen
    → edge 3 to front, in order, through the driver (~3 rows, 24 B)
finish at front: gather edge 3 from oslo
*/

-- case: the order is by what is not listed, of one table
-- rules: topn
-- at: front
SELECT id FROM events ORDER BY amount DESC LIMIT 10
/*
plan, result at front
fragment 1 at bergen: reads table events
    scan, sort, limit
    SELECT `id`, `amount` FROM events AS events ORDER BY amount DESC LIMIT 10
    → edge 1 to oslo (~10 rows, 160 B)
fragment 2 at tromso: reads table events
    scan, sort, limit
    SELECT `id`, `amount` FROM events AS events ORDER BY amount DESC LIMIT 10
    → edge 1 to oslo, through the driver (~10 rows, 160 B)
fragment 3 at oslo: reads table events; edge 1 from bergen, tromso
    scan, union, sort, limit
    SELECT id FROM ((SELECT `id`, `amount` FROM events AS events ORDER BY amount DESC LIMIT 10) UNION ALL SELECT `id`, `amount` FROM edge_1) AS events ORDER BY amount DESC LIMIT 10
    because the links take ~0.0034 s, ~0.0034 s at bergen
    → edge 2 to front, in order, through the driver (~10 rows, 80 B)
finish at front: gather edge 2 from oslo
*/

-- case: a bounded query in FROM
-- rules: topn
-- at: tromso
SELECT c_name, t.id FROM (SELECT id, amount FROM events WHERE kind = 'click' ORDER BY amount + 1, 1 LIMIT 10) AS t JOIN customer ON c_id = t.id
/*
plan, result at tromso
fragment 1 at oslo: reads table events
    scan, filter, sort, limit
    SELECT `id`, `kind`, `amount` FROM events AS events WHERE kind = 'click' ORDER BY amount + 1, id LIMIT 10
    → edge 1 to bergen, through the driver (~10 rows, 400 B)
fragment 2 at tromso: reads table events
    scan, filter, sort, limit
    SELECT `id`, `kind`, `amount` FROM events AS events WHERE kind = 'click' ORDER BY amount + 1, id LIMIT 10
    → edge 1 to bergen, through the driver (~10 rows, 400 B)
fragment 3 at bergen: reads table customer; table events; edge 1 from oslo, tromso
    scan, filter, join, union, sort, limit
    SELECT c_name, t.id FROM (SELECT id, amount FROM ((SELECT `id`, `kind`, `amount` FROM events AS events WHERE kind = 'click' ORDER BY amount + 1, id LIMIT 10) UNION ALL SELECT `id`, `kind`, `amount` FROM edge_1) AS events WHERE kind = 'click' ORDER BY amount + 1, 1 LIMIT 10) AS t JOIN customer AS customer ON c_id = t.id
    because the links take ~0.0039 s, ~0.39 s at tromso
    → edge 2 to tromso (~166 rows, 5.2 KiB)
finish at tromso: gather edge 2 from bergen
*/

-- case: a bounded query in WITH, of all columns
-- rules: topn
WITH t AS (SELECT * FROM sales ORDER BY s_price LIMIT 7 OFFSET 2) SELECT a.s_id, b.s_cust FROM t AS a JOIN t AS b ON a.s_id = b.s_cust
/*
plan, result at oslo
fragment 1 at bergen: reads table sales
    scan, sort, limit
    SELECT `s_id`, `s_cust`, `s_price` FROM sales AS sales ORDER BY `sales`.`s_price` LIMIT 9
    → edge 1 to oslo, through the driver (~9 rows, 216 B)
fragment 2 at oslo: reads table sales; edge 1 from bergen
    scan, join, union, sort, limit
    WITH t AS (SELECT * FROM ((SELECT `s_id`, `s_cust`, `s_price` FROM sales AS sales ORDER BY `sales`.`s_price` LIMIT 9) UNION ALL SELECT `s_id`, `s_cust`, `s_price` FROM edge_1) AS sales ORDER BY s_price LIMIT 7 OFFSET 2) SELECT a.s_id, b.s_cust FROM t AS a JOIN t AS b ON a.s_id = b.s_cust
    because the links take ~0.0011 s, ~0.0023 s at bergen
    → edge 2 to oslo (~0 rows, 0 B)
finish at oslo: gather edge 2 from oslo
*/

-- case: a bounded query in IN
-- rules: topn
SELECT o_id FROM orders WHERE o_cust IN (SELECT s_cust FROM sales JOIN nation ON s_id = n_id ORDER BY n_name LIMIT 3)
/*
plan, result at oslo
fragment 1 at bergen: reads table nation
    scan
    SELECT `n_id`, `n_name` FROM nation
    → edge 1 to oslo, through the driver (~25 rows, 700 B)
fragment 2 at bergen: reads table sales; table nation
    scan, join, sort, limit
    SELECT `sales`.s_cust AS part_0, `nation`.n_name AS part_1 FROM sales AS sales JOIN nation AS nation ON s_id = n_id ORDER BY part_1 LIMIT 3
    → edge 2 to oslo (~3 rows, 96 B)
fragment 3 at oslo: reads table orders; table sales; edge 1 from bergen; edge 2 from bergen
    scan, filter, join, union, sort, limit
    SELECT o_id FROM orders AS orders WHERE o_cust IN (SELECT part_0 AS `s_cust` FROM ((SELECT /*+ BROADCAST(`nation`) */ `sales`.s_cust AS part_0, `nation`.n_name AS part_1 FROM sales AS sales JOIN edge_1 AS nation ON s_id = n_id ORDER BY part_1 LIMIT 3) UNION ALL SELECT `part_0`, `part_1` FROM edge_2) AS part_rows ORDER BY part_1 LIMIT 3)
    because the links take ~0.0011 s, ~2.4 s at bergen
    → edge 3 to oslo (~750,000 rows, 5.7 MiB)
finish at oslo: gather edge 3 from oslo
*/

-- case: the rows of the small table that have no partner would come from every part
-- rules: topn
SELECT s_id, n_name FROM sales RIGHT JOIN nation ON s_cust = n_id ORDER BY n_name, s_id LIMIT 5
/*
plan, result at oslo
fragment 1 at bergen: reads table sales
    scan
    SELECT sales.`s_id`, sales.`s_cust` FROM sales AS sales
    because sales is there
    → edge 1 to oslo, through the driver (~1,000 rows, 15.6 KiB)
fragment 2 at bergen: reads table nation
    scan
    SELECT nation.`n_id`, nation.`n_name` FROM nation AS nation
    because nation is there
    → edge 2 to oslo, through the driver (~25 rows, 700 B)
fragment 3 at oslo: reads table sales; edge 1 from bergen; edge 2 from bergen
    scan, join, union, sort, limit
    SELECT /*+ BROADCAST(`nation`) */ s_id, n_name FROM (SELECT `s_id`, `s_cust` FROM sales UNION ALL SELECT `s_id`, `s_cust` FROM edge_1) AS sales RIGHT JOIN edge_2 AS nation ON s_cust = n_id ORDER BY n_name, s_id LIMIT 5
    because the links take ~0.0036 s, ~64 s at bergen
    → edge 3 to oslo, in order, through the driver (~5 rows, 160 B)
finish at oslo: gather edge 3 from oslo
*/

-- case: a table that is not small costs more than the rows of the parts
-- rules: topn
SELECT id, l_qty FROM events JOIN lineitem ON l_order = id ORDER BY id LIMIT 5
/*
plan, result at oslo
fragment 1 at oslo: reads table events
    scan
    SELECT `id` FROM events
    → edge 1 to tromso, through the driver (~1,000 rows, 7.8 KiB)
fragment 2 at bergen: reads table events
    scan
    SELECT `id` FROM events
    → edge 1 to tromso (~5,000 rows, 39.1 KiB)
fragment 3 at tromso: reads table events; edge 1 from oslo, bergen; table lineitem
    scan, join, union, sort, limit
    SELECT /*+ BROADCAST(`events`) */ id, l_qty FROM (SELECT `id` FROM events UNION ALL SELECT `id` FROM edge_1) AS events JOIN lineitem AS lineitem ON l_order = id ORDER BY id LIMIT 5
    → edge 2 to oslo, in order, through the driver (~5 rows, 60 B)
finish at oslo: gather edge 2 from tromso
*/

-- case: a window sees all rows
-- rules: topn
SELECT id, rank() OVER (ORDER BY amount) AS r FROM events ORDER BY r LIMIT 5
/*
plan, result at oslo
fragment 1 at oslo: reads table events
    scan
    SELECT events.`id`, events.`amount` FROM events AS events
    because events is there
    → edge 1 to bergen, through the driver (~1,000 rows, 15.6 KiB)
fragment 2 at tromso: reads table events
    scan
    SELECT events.`id`, events.`amount` FROM events AS events
    because events is there
    → edge 1 to bergen, through the driver (~3,000 rows, 46.9 KiB)
fragment 3 at bergen: reads table events; edge 1 from oslo, tromso
    scan, union, window, sort, limit
    SELECT id, rank() OVER (ORDER BY amount) AS r FROM (SELECT `id`, `amount` FROM events UNION ALL SELECT `id`, `amount` FROM edge_1) AS events ORDER BY r LIMIT 5
    because the links take ~0.0085 s, ~0.011 s at tromso
    → edge 2 to oslo, in order, through the driver (~5 rows, 60 B)
finish at oslo: gather edge 2 from bergen
*/

-- case: a bound of groups is not one of rows
-- rules: topn
SELECT kind FROM events GROUP BY kind HAVING count(*) > 1 ORDER BY kind LIMIT 5
/*
plan, result at oslo
fragment 1 at oslo: reads table events
    scan
    SELECT events.`kind` FROM events AS events
    because events is there
    → edge 1 to bergen, through the driver (~1,000 rows, 23.4 KiB)
fragment 2 at tromso: reads table events
    scan
    SELECT events.`kind` FROM events AS events
    because events is there
    → edge 1 to bergen, through the driver (~3,000 rows, 70.3 KiB)
fragment 3 at bergen: reads table events; edge 1 from oslo, tromso
    scan, filter, union, aggregate, sort, limit
    SELECT kind FROM (SELECT `kind` FROM events UNION ALL SELECT `kind` FROM edge_1) AS events GROUP BY kind HAVING count(*) > 1 ORDER BY kind LIMIT 5
    because the links take ~0.011 s, ~0.015 s at tromso
    → edge 2 to oslo, in order, through the driver (~5 rows, 120 B)
finish at oslo: gather edge 2 from bergen
*/

-- case: a query that asks of the one around it
-- rules: topn
SELECT o_id, (SELECT max(amount) FROM (SELECT amount FROM events WHERE id = o_cust ORDER BY amount LIMIT 2) AS t) AS m FROM orders
/*
plan, result at oslo
fragment 1 at bergen: reads table events
    scan
    SELECT events.`id`, events.`amount` FROM events AS events
    because events is there
    → edge 1 to oslo (~5,000 rows, 78.1 KiB)
fragment 2 at tromso: reads table events
    scan
    SELECT events.`id`, events.`amount` FROM events AS events
    because events is there
    → edge 1 to oslo, through the driver (~3,000 rows, 46.9 KiB)
fragment 3 at oslo: reads table orders; table events; edge 1 from bergen, tromso
    scan, filter, union, aggregate, sort, limit
    SELECT o_id, (SELECT max(amount) FROM (SELECT amount FROM (SELECT `id`, `amount` FROM events UNION ALL SELECT `id`, `amount` FROM edge_1) AS events WHERE id = o_cust ORDER BY amount LIMIT 2) AS t) AS m FROM orders AS orders
    because the links take ~0.012 s, ~4.8 s at bergen
    → edge 2 to oslo (~1,500,000 rows, 34.3 MiB)
finish at oslo: gather edge 2 from oslo
*/

-- case: of a bounded union each operand sends its first rows, also one of a single site
-- rules: topn
-- at: front
SELECT id, kind FROM events UNION ALL SELECT o_id, o_note FROM orders UNION ALL SELECT c_id, n_name FROM customer JOIN nation ON c_nation = n_id ORDER BY kind DESC, id LIMIT 5 OFFSET 2
/*
plan, result at front
fragment 1 at bergen: reads table events
    scan, sort, limit
    SELECT `id`, `kind` FROM events AS events ORDER BY kind DESC, id LIMIT 7
    → edge 1 to oslo (~7 rows, 224 B)
fragment 2 at tromso: reads table events
    scan, sort, limit
    SELECT `id`, `kind` FROM events AS events ORDER BY kind DESC, id LIMIT 7
    → edge 1 to oslo, through the driver (~7 rows, 224 B)
fragment 3 at bergen: reads table customer; table nation
    scan, join, sort, limit
    SELECT `customer`.c_id AS part_0, `nation`.n_name AS part_1 FROM customer AS customer JOIN nation AS nation ON c_nation = n_id ORDER BY part_1 DESC, part_0 LIMIT 7
    → edge 2 to oslo (~7 rows, 224 B)
fragment 4 at oslo: reads table events; edge 1 from bergen, tromso; table orders; edge 2 from bergen
    scan, union, sort, limit
    SELECT id, kind FROM ((SELECT `id`, `kind` FROM events AS events ORDER BY kind DESC, id LIMIT 7) UNION ALL SELECT `id`, `kind` FROM edge_1) AS events UNION ALL SELECT o_id, o_note FROM (SELECT `o_id`, `o_note` FROM orders AS orders ORDER BY o_note DESC, o_id LIMIT 7) AS orders UNION ALL SELECT part_0 AS `c_id`, part_1 AS `n_name` FROM edge_2 AS part_rows ORDER BY kind DESC, id LIMIT 5 OFFSET 2
    because the links take ~0.0045 s, ~0.0045 s at bergen
    → edge 3 to front, in order, through the driver (~5 rows, 160 B)
finish at front: gather edge 3 from oslo
*/

-- case: a bounded union in FROM, the order above it
-- rules: topn
-- at: tromso
SELECT u.k, l_qty FROM (SELECT * FROM (SELECT s_id AS k, s_price AS p FROM sales UNION ALL SELECT c_id, c_nation FROM customer) AS t ORDER BY p LIMIT 3) AS u JOIN lineitem ON l_order = u.k
/*
plan, result at tromso
fragment 1 at oslo: reads table sales
    scan, sort, limit
    SELECT `s_id`, `s_price` FROM sales AS sales ORDER BY s_price LIMIT 3
    → edge 1 to tromso (~3 rows, 48 B)
fragment 2 at bergen: reads table sales
    scan, sort, limit
    SELECT `s_id`, `s_price` FROM sales AS sales ORDER BY s_price LIMIT 3
    → edge 1 to tromso, through the driver (~3 rows, 48 B)
fragment 3 at bergen: reads table customer
    scan, sort, limit
    SELECT `c_id`, `c_nation` FROM customer AS customer ORDER BY c_nation LIMIT 3
    → edge 2 to tromso (~3 rows, 36 B)
fragment 4 at tromso: reads table lineitem; edge 1 from oslo, bergen; edge 2 from bergen
    scan, join, union, sort, limit
    SELECT u.k, l_qty FROM (SELECT * FROM (SELECT s_id AS k, s_price AS p FROM edge_1 AS sales UNION ALL SELECT c_id, c_nation FROM edge_2 AS customer) AS t ORDER BY p LIMIT 3) AS u JOIN lineitem AS lineitem ON l_order = u.k
    because the links take ~0.0034 s, ~5.8 s at bergen
    → edge 3 to tromso (~3 rows, 36 B)
finish at tromso: gather edge 3 from tromso
*/

-- case: numbers and strings have another order together
-- rules: topn
SELECT id FROM events UNION ALL SELECT o_note FROM orders ORDER BY 1 LIMIT 5
/*
plan, result at oslo
fragment 1 at bergen: reads table events
    scan
    SELECT events.`id` FROM events AS events
    because events is there
    → edge 1 to oslo (~5,000 rows, 39.1 KiB)
fragment 2 at tromso: reads table events
    scan
    SELECT events.`id` FROM events AS events
    because events is there
    → edge 1 to oslo, through the driver (~3,000 rows, 23.4 KiB)
fragment 3 at oslo: reads table events; edge 1 from bergen, tromso; table orders
    scan, union, sort, limit
    SELECT id FROM (SELECT `id` FROM events UNION ALL SELECT `id` FROM edge_1) AS events UNION ALL SELECT o_note FROM orders AS orders ORDER BY 1 LIMIT 5
    because the links take ~0.0074 s, ~2.9 s at bergen
    → edge 2 to oslo, in order, through the driver (~5 rows, 40 B)
finish at oslo: gather edge 2 from oslo
*/

-- case: a union of what differs is no union of first rows
-- rules: topn
SELECT id FROM events UNION SELECT o_id FROM orders ORDER BY 1 LIMIT 5
/*
plan, result at oslo
fragment 1 at bergen: reads table events
    scan
    SELECT events.`id` FROM events AS events
    because events is there
    → edge 1 to oslo (~5,000 rows, 39.1 KiB)
fragment 2 at tromso: reads table events
    scan
    SELECT events.`id` FROM events AS events
    because events is there
    → edge 1 to oslo, through the driver (~3,000 rows, 23.4 KiB)
fragment 3 at oslo: reads table events; edge 1 from bergen, tromso; table orders
    scan, union, sort, limit
    SELECT id FROM (SELECT `id` FROM events UNION ALL SELECT `id` FROM edge_1) AS events UNION SELECT o_id FROM orders AS orders ORDER BY 1 LIMIT 5
    because the links take ~0.0074 s, ~0.97 s at bergen
    → edge 2 to oslo, in order, through the driver (~5 rows, 40 B)
finish at oslo: gather edge 2 from oslo
*/

-- case: of rows that differ each part sends the first
-- rules: topn,aggregates
-- at: tromso
SELECT c_name, t.k FROM (SELECT DISTINCT kind AS k, id FROM events ORDER BY 2, k DESC LIMIT 3 OFFSET 1) AS t JOIN customer ON c_id = t.id
/*
plan, result at tromso
fragment 1 at oslo: reads table events
    scan, aggregate, sort, limit
    SELECT kind AS part_0, id AS part_1 FROM events AS events GROUP BY kind, id ORDER BY part_1, part_0 DESC LIMIT 4
    → edge 1 to bergen, through the driver (~4 rows, 128 B)
fragment 2 at tromso: reads table events
    scan, aggregate, sort, limit
    SELECT kind AS part_0, id AS part_1 FROM events AS events GROUP BY kind, id ORDER BY part_1, part_0 DESC LIMIT 4
    → edge 1 to bergen, through the driver (~4 rows, 128 B)
fragment 3 at bergen: reads table customer; table events; edge 1 from oslo, tromso
    scan, join, union, aggregate, distinct, sort, limit
    SELECT c_name, t.k FROM (SELECT DISTINCT part_0 AS k, part_1 AS `id` FROM ((SELECT kind AS part_0, id AS part_1 FROM events AS events GROUP BY kind, id ORDER BY part_1, part_0 DESC LIMIT 4) UNION ALL SELECT `part_0`, `part_1` FROM edge_1) AS part_rows ORDER BY 2, k DESC LIMIT 3 OFFSET 1) AS t JOIN customer AS customer ON c_id = t.id
    because the links take ~0.0036 s, ~0.39 s at tromso
    → edge 2 to tromso (~50 rows, 2.3 KiB)
finish at tromso: gather edge 2 from bergen
*/

-- case: groups are cut by no order that leaves some of them open
-- rules: topn,aggregates
-- at: tromso
SELECT c_name, t.kind FROM (SELECT kind, max(id) AS m FROM events GROUP BY kind ORDER BY kind LIMIT 3) AS t JOIN customer ON c_id = t.m
/*
plan, result at tromso
fragment 1 at bergen: reads table customer
    scan
    SELECT customer.`c_id`, customer.`c_name` FROM customer AS customer
    because customer is there
    → edge 1 to tromso (~150,000 rows, 4.6 MiB)
fragment 2 at oslo: reads table events
    scan, aggregate
    SELECT kind AS part_0, max(id) AS part_1 FROM events AS events GROUP BY kind
    → edge 2 to tromso, through the driver (~100 rows, 3.1 KiB)
fragment 3 at bergen: reads table events
    scan, aggregate
    SELECT kind AS part_0, max(id) AS part_1 FROM events AS events GROUP BY kind
    → edge 2 to tromso (~500 rows, 15.6 KiB)
fragment 4 at tromso: reads edge 1 from bergen; table events; edge 2 from oslo, bergen
    scan, join, union, aggregate, sort, limit
    SELECT /*+ BROADCAST(`customer`) */ c_name, t.kind FROM (SELECT part_0 AS `kind`, max(part_1) AS m FROM (SELECT kind AS part_0, max(id) AS part_1 FROM events AS events GROUP BY kind UNION ALL SELECT `part_0`, `part_1` FROM edge_2) AS part_rows GROUP BY part_0 ORDER BY part_0 LIMIT 3) AS t JOIN edge_1 AS customer ON c_id = t.m
    because the links take ~0.39 s, ~0.58 s at bergen
    → edge 3 to tromso (~150,000 rows, 6.9 MiB)
finish at tromso: gather edge 3 from tromso
*/
