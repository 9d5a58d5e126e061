-- case: a key that is no output column is ordered by Spark
SELECT id FROM events ORDER BY amount
/*
plan, result at oslo
fragment 1 at oslo: reads table events
    scan
    SELECT `id`, `amount` FROM events
    → edge 1 to bergen, through the driver (~1,000 rows, 15.6 KiB)
fragment 2 at tromso: reads table events
    scan
    SELECT `id`, `amount` FROM events
    → edge 1 to bergen, through the driver (~3,000 rows, 46.9 KiB)
fragment 3 at bergen: reads table events; edge 1 from oslo, tromso
    scan, union, sort
    SELECT id FROM (SELECT `id`, `amount` FROM events UNION ALL SELECT `id`, `amount` FROM edge_1) AS events ORDER BY amount
    → edge 2 to oslo, in order (~9,000 rows, 70.3 KiB)
finish at oslo: gather edge 2 from bergen
*/

-- case: a nested key is ordered by Spark
SELECT id, tags FROM events ORDER BY tags
/*
plan, result at oslo
fragment 1 at oslo: reads table events
    scan
    SELECT `id`, `tags` FROM events
    → edge 1 to bergen, through the driver (~1,000 rows, 54.7 KiB)
fragment 2 at tromso: reads table events
    scan
    SELECT `id`, `tags` FROM events
    → edge 1 to bergen, through the driver (~3,000 rows, 164.1 KiB)
fragment 3 at bergen: reads table events; edge 1 from oslo, tromso
    scan, union, sort
    SELECT id, tags FROM (SELECT `id`, `tags` FROM events UNION ALL SELECT `id`, `tags` FROM edge_1) AS events ORDER BY tags
    → edge 2 to oslo, in order (~9,000 rows, 492.2 KiB)
finish at oslo: gather edge 2 from bergen
*/

-- case: a field of a struct that has the name of a column
SELECT place.id AS x FROM events ORDER BY x
/*
plan, result at oslo
fragment 1 at oslo: reads table events
    scan
    SELECT `place` FROM events
    → edge 1 to bergen, through the driver (~1,000 rows, 46.9 KiB)
fragment 2 at tromso: reads table events
    scan
    SELECT `place` FROM events
    → edge 1 to bergen, through the driver (~3,000 rows, 140.6 KiB)
fragment 3 at bergen: reads table events; edge 1 from oslo, tromso
    scan, union, sort
    SELECT place.id AS x FROM (SELECT `place` FROM events UNION ALL SELECT `place` FROM edge_1) AS events ORDER BY x
    → edge 2 to oslo, in order (~9,000 rows, 140.6 KiB)
finish at oslo: gather edge 2 from bergen
*/

-- case: a collation is Spark's business
SELECT kind COLLATE UTF8_LCASE AS k FROM events ORDER BY k
/*
plan, result at oslo
fragment 1 at oslo: reads table events
    scan
    SELECT `kind` FROM events
    → edge 1 to bergen, through the driver (~1,000 rows, 23.4 KiB)
fragment 2 at tromso: reads table events
    scan
    SELECT `kind` FROM events
    → edge 1 to bergen, through the driver (~3,000 rows, 70.3 KiB)
fragment 3 at bergen: reads table events; edge 1 from oslo, tromso
    scan, union, sort
    SELECT kind COLLATE UTF8_LCASE AS k FROM (SELECT `kind` FROM events UNION ALL SELECT `kind` FROM edge_1) AS events ORDER BY k
    → edge 2 to oslo, in order (~9,000 rows, 140.6 KiB)
finish at oslo: gather edge 2 from bergen
*/

-- case: an alias inside a key's expression hides the column
SELECT -id AS id, id + 1 AS y FROM events ORDER BY id + 1
/*
plan, result at oslo
fragment 1 at oslo: reads table events
    scan
    SELECT `id` FROM events
    → edge 1 to bergen, through the driver (~1,000 rows, 7.8 KiB)
fragment 2 at tromso: reads table events
    scan
    SELECT `id` FROM events
    → edge 1 to bergen, through the driver (~3,000 rows, 23.4 KiB)
fragment 3 at bergen: reads table events; edge 1 from oslo, tromso
    scan, union, sort
    SELECT - id AS id, id + 1 AS y FROM (SELECT `id` FROM events UNION ALL SELECT `id` FROM edge_1) AS events ORDER BY id + 1
    → edge 2 to oslo, in order (~9,000 rows, 281.2 KiB)
finish at oslo: gather edge 2 from bergen
*/

-- case: ORDER BY ALL
SELECT kind, id FROM events ORDER BY ALL DESC
/*
plan, result at oslo
fragment 1 at oslo: reads table events
    scan, sort
    SELECT kind, id FROM events AS events SORT BY 1 DESC, 2 DESC
    → edge 1 to oslo, lanes merged in order (~1,000 rows, 31.2 KiB)
fragment 2 at bergen: reads table events
    scan, sort
    SELECT kind, id FROM events AS events SORT BY 1 DESC, 2 DESC
    → edge 1 to oslo, lanes merged in order (~5,000 rows, 156.2 KiB)
fragment 3 at tromso: reads table events
    scan, sort
    SELECT kind, id FROM events AS events SORT BY 1 DESC, 2 DESC
    → edge 1 to oslo, lanes merged in order (~3,000 rows, 93.8 KiB)
finish at oslo: merge edge 1 from oslo, bergen, tromso
*/

-- case: by position
SELECT kind, id FROM events ORDER BY 2 DESC, 1
/*
plan, result at oslo
fragment 1 at oslo: reads table events
    scan, sort
    SELECT kind, id FROM events AS events SORT BY 2 DESC, 1
    → edge 1 to oslo, lanes merged in order (~1,000 rows, 31.2 KiB)
fragment 2 at bergen: reads table events
    scan, sort
    SELECT kind, id FROM events AS events SORT BY 2 DESC, 1
    → edge 1 to oslo, lanes merged in order (~5,000 rows, 156.2 KiB)
fragment 3 at tromso: reads table events
    scan, sort
    SELECT kind, id FROM events AS events SORT BY 2 DESC, 1
    → edge 1 to oslo, lanes merged in order (~3,000 rows, 93.8 KiB)
finish at oslo: merge edge 1 from oslo, bergen, tromso
*/

-- case: by aggregate
SELECT o_cust, count(*) AS n FROM orders GROUP BY o_cust ORDER BY n DESC, o_cust
/*
plan, result at oslo
fragment 1 at oslo: reads table orders
    scan, aggregate, sort
    SELECT o_cust, count(*) AS n FROM orders AS orders GROUP BY o_cust SORT BY n DESC, o_cust
    → edge 1 to oslo, lanes merged in order (~150,000 rows, 3.4 MiB)
finish at oslo: gather edge 1 from oslo
*/

-- case: ORDER BY with LIMIT keeps the order of the tasks
SELECT o_id, o_total FROM orders ORDER BY o_total LIMIT 100000
/*
plan, result at oslo
fragment 1 at oslo: reads table orders
    scan, sort, limit
    SELECT o_id, o_total FROM orders AS orders ORDER BY o_total LIMIT 100000
    → edge 1 to oslo, in order (~100,000 rows, 2.3 MiB)
finish at oslo: gather edge 1 from oslo
*/

-- case: ORDER BY with OFFSET keeps the order of the tasks
SELECT o_id, o_total FROM orders ORDER BY o_total OFFSET 3
/*
plan, result at oslo
fragment 1 at oslo: reads table orders
    scan, sort
    SELECT o_id, o_total FROM orders AS orders ORDER BY o_total OFFSET 3
    → edge 1 to oslo, in order (~1,500,000 rows, 34.3 MiB)
finish at oslo: gather edge 1 from oslo
*/

-- case: ORDER BY inside a subquery is left alone
SELECT id FROM (SELECT id, ts FROM events ORDER BY ts LIMIT 3) AS newest ORDER BY id
/*
plan, result at oslo
fragment 1 at oslo: reads table events
    scan
    SELECT `id`, `ts` FROM events
    → edge 1 to bergen, through the driver (~1,000 rows, 15.6 KiB)
fragment 2 at tromso: reads table events
    scan
    SELECT `id`, `ts` FROM events
    → edge 1 to bergen, through the driver (~3,000 rows, 46.9 KiB)
fragment 3 at bergen: reads table events; edge 1 from oslo, tromso
    scan, union, sort, limit
    SELECT id FROM (SELECT id, ts FROM (SELECT `id`, `ts` FROM events UNION ALL SELECT `id`, `ts` FROM edge_1) AS events ORDER BY ts LIMIT 3) AS newest ORDER BY id
    → edge 2 to oslo, in order (~3 rows, 24 B)
finish at oslo: gather edge 2 from bergen
*/

-- case: DISTINCT in order
SELECT DISTINCT kind FROM events ORDER BY kind
/*
plan, result at oslo
fragment 1 at oslo: reads table events
    scan
    SELECT `kind` FROM events
    → edge 1 to bergen, through the driver (~1,000 rows, 23.4 KiB)
fragment 2 at tromso: reads table events
    scan
    SELECT `kind` FROM events
    → edge 1 to bergen, through the driver (~3,000 rows, 70.3 KiB)
fragment 3 at bergen: reads table events; edge 1 from oslo, tromso
    scan, union, distinct, sort
    SELECT DISTINCT kind FROM (SELECT `kind` FROM events UNION ALL SELECT `kind` FROM edge_1) AS events SORT BY kind
    → edge 2 to oslo, lanes merged in order (~500 rows, 11.7 KiB)
finish at oslo: gather edge 2 from bergen
*/

-- case: a set operation in order, with a limit
SELECT id FROM events UNION ALL SELECT c_id FROM customer ORDER BY id LIMIT 7 OFFSET 2
/*
plan, result at oslo
fragment 1 at oslo: reads table events
    scan
    SELECT `id` FROM events
    → edge 1 to bergen, through the driver (~1,000 rows, 7.8 KiB)
fragment 2 at tromso: reads table events
    scan
    SELECT `id` FROM events
    → edge 1 to bergen, through the driver (~3,000 rows, 23.4 KiB)
fragment 3 at bergen: reads table events; edge 1 from oslo, tromso; table customer
    scan, union, sort, limit
    SELECT id FROM (SELECT `id` FROM events UNION ALL SELECT `id` FROM edge_1) AS events UNION ALL SELECT c_id FROM customer AS customer ORDER BY id LIMIT 7 OFFSET 2
    → edge 2 to oslo, in order, through the driver (~7 rows, 56 B)
finish at oslo: gather edge 2 from bergen
*/

-- case: a difference of dates has no kernel that is sure
SELECT o_date - DATE '1995-01-01' AS days FROM orders ORDER BY days
/*
plan, result at oslo
fragment 1 at oslo: reads table orders
    scan, sort
    SELECT o_date - DATE '1995-01-01' AS days FROM orders AS orders ORDER BY days
    → edge 1 to oslo, in order (~1,500,000 rows, 22.9 MiB)
finish at oslo: gather edge 1 from oslo
*/

-- case: columns of a derived table could be anything
SELECT x FROM (SELECT tags AS x FROM events) AS t ORDER BY x
/*
plan, result at oslo
fragment 1 at oslo: reads table events
    scan
    SELECT `tags` FROM events
    → edge 1 to bergen, through the driver (~1,000 rows, 46.9 KiB)
fragment 2 at tromso: reads table events
    scan
    SELECT `tags` FROM events
    → edge 1 to bergen, through the driver (~3,000 rows, 140.6 KiB)
fragment 3 at bergen: reads table events; edge 1 from oslo, tromso
    scan, union, sort
    SELECT x FROM (SELECT tags AS x FROM (SELECT `tags` FROM events UNION ALL SELECT `tags` FROM edge_1) AS events) AS t ORDER BY x
    → edge 2 to oslo, in order (~9,000 rows, 421.9 KiB)
finish at oslo: gather edge 2 from bergen
*/

-- case: two tables with one name for columns of two types
SELECT a.id, b.place FROM events AS a JOIN events AS b ON a.id = b.id ORDER BY a.id
/*
plan, result at oslo
fragment 1 at oslo: reads table events
    scan
    SELECT `id`, `place` FROM events
    → edge 1 to bergen, through the driver (~1,000 rows, 54.7 KiB)
fragment 2 at tromso: reads table events
    scan
    SELECT `id`, `place` FROM events
    → edge 1 to bergen, through the driver (~3,000 rows, 164.1 KiB)
fragment 3 at bergen: reads table events; edge 1 from oslo, tromso
    scan, join, union, sort
    SELECT /*+ BROADCAST(`a`, `b`) */ a.id, b.place FROM (SELECT `id`, `place` FROM events UNION ALL SELECT `id`, `place` FROM edge_1) AS a JOIN (SELECT `id`, `place` FROM events UNION ALL SELECT `id`, `place` FROM edge_1) AS b ON a.id = b.id SORT BY a.id
    → edge 2 to oslo, lanes merged in order (~162,000 rows, 9.9 MiB)
finish at oslo: gather edge 2 from bergen
*/
