-- case: a logical table is gathered from its parts
SELECT id, amount FROM events WHERE kind = 'click'
/*
plan, result at oslo
fragment 1 at oslo: reads table events
    scan, filter
    SELECT id, amount FROM events AS events WHERE kind = 'click'
    → edge 1 to oslo (~10 rows, 160 B)
fragment 2 at bergen: reads table events
    scan, filter
    SELECT id, amount FROM events AS events WHERE kind = 'click'
    → edge 1 to oslo (~50 rows, 800 B)
fragment 3 at tromso: reads table events
    scan, filter
    SELECT id, amount FROM events AS events WHERE kind = 'click'
    → edge 1 to oslo (~30 rows, 480 B)
finish at oslo: gather edge 1 from oslo, bergen, tromso
*/

-- case: gathered at a lite member
-- at: front
SELECT * FROM events
/*
plan, result at front
fragment 1 at oslo: reads table events
    scan
    SELECT * FROM events AS events
    → edge 1 to front (~1,000 rows, 140.6 KiB)
fragment 2 at bergen: reads table events
    scan
    SELECT * FROM events AS events
    → edge 1 to front (~5,000 rows, 703.1 KiB)
fragment 3 at tromso: reads table events
    scan
    SELECT * FROM events AS events
    → edge 1 to front (~3,000 rows, 421.9 KiB)
finish at front: gather edge 1 from oslo, bergen, tromso
*/

-- case: merged in order
SELECT id, ts FROM events ORDER BY ts DESC, id
/*
plan, result at oslo
fragment 1 at oslo: reads table events
    scan, sort
    SELECT id, ts FROM events AS events SORT BY ts DESC, id
    → edge 1 to oslo, lanes merged in order (~1,000 rows, 15.6 KiB)
fragment 2 at bergen: reads table events
    scan, sort
    SELECT id, ts FROM events AS events SORT BY ts DESC, id
    → edge 1 to oslo, lanes merged in order (~5,000 rows, 78.1 KiB)
fragment 3 at tromso: reads table events
    scan, sort
    SELECT id, ts FROM events AS events SORT BY ts DESC, id
    → edge 1 to oslo, lanes merged in order (~3,000 rows, 46.9 KiB)
finish at oslo: merge edge 1 from oslo, bergen, tromso
*/

-- case: a star in order
SELECT * FROM events ORDER BY ts
/*
plan, result at oslo
fragment 1 at oslo: reads table events
    scan, sort
    SELECT * FROM events AS events SORT BY ts
    → edge 1 to oslo, lanes merged in order (~1,000 rows, 140.6 KiB)
fragment 2 at bergen: reads table events
    scan, sort
    SELECT * FROM events AS events SORT BY ts
    → edge 1 to oslo, lanes merged in order (~5,000 rows, 703.1 KiB)
fragment 3 at tromso: reads table events
    scan, sort
    SELECT * FROM events AS events SORT BY ts
    → edge 1 to oslo, lanes merged in order (~3,000 rows, 421.9 KiB)
finish at oslo: merge edge 1 from oslo, bergen, tromso
*/

-- case: a limit is pushed to every part
SELECT id FROM events LIMIT 10
/*
plan, result at oslo
fragment 1 at oslo: reads table events
    scan, limit
    SELECT id FROM events AS events LIMIT 10
    → edge 1 to oslo, through the driver (~10 rows, 80 B)
fragment 2 at bergen: reads table events
    scan, limit
    SELECT id FROM events AS events LIMIT 10
    → edge 1 to oslo, through the driver (~10 rows, 80 B)
fragment 3 at tromso: reads table events
    scan, limit
    SELECT id FROM events AS events LIMIT 10
    → edge 1 to oslo, through the driver (~10 rows, 80 B)
finish at oslo: gather, limit 10 edge 1 from oslo, bergen, tromso
*/

-- case: a limit in order
SELECT id, amount FROM events ORDER BY amount DESC LIMIT 10
/*
plan, result at oslo
fragment 1 at oslo: reads table events
    scan, sort, limit
    SELECT id, amount FROM events AS events ORDER BY amount DESC LIMIT 10
    → edge 1 to oslo, in order, through the driver (~10 rows, 160 B)
fragment 2 at bergen: reads table events
    scan, sort, limit
    SELECT id, amount FROM events AS events ORDER BY amount DESC LIMIT 10
    → edge 1 to oslo, in order, through the driver (~10 rows, 160 B)
fragment 3 at tromso: reads table events
    scan, sort, limit
    SELECT id, amount FROM events AS events ORDER BY amount DESC LIMIT 10
    → edge 1 to oslo, in order, through the driver (~10 rows, 160 B)
finish at oslo: merge, limit 10 edge 1 from oslo, bergen, tromso
*/

-- case: the rows that OFFSET skips are sent, and skipped at the end
SELECT id, amount FROM events ORDER BY amount LIMIT 10 OFFSET 5
/*
plan, result at oslo
fragment 1 at oslo: reads table events
    scan, sort, limit
    SELECT id, amount FROM events AS events ORDER BY amount LIMIT 15
    → edge 1 to oslo, in order, through the driver (~15 rows, 240 B)
fragment 2 at bergen: reads table events
    scan, sort, limit
    SELECT id, amount FROM events AS events ORDER BY amount LIMIT 15
    → edge 1 to oslo, in order, through the driver (~15 rows, 240 B)
fragment 3 at tromso: reads table events
    scan, sort, limit
    SELECT id, amount FROM events AS events ORDER BY amount LIMIT 15
    → edge 1 to oslo, in order, through the driver (~15 rows, 240 B)
finish at oslo: merge, offset 5, limit 10 edge 1 from oslo, bergen, tromso
*/

-- case: OFFSET alone
SELECT id FROM events ORDER BY id OFFSET 5
/*
plan, result at oslo
fragment 1 at oslo: reads table events
    scan, sort
    SELECT id FROM events AS events SORT BY id
    → edge 1 to oslo, lanes merged in order (~1,000 rows, 7.8 KiB)
fragment 2 at bergen: reads table events
    scan, sort
    SELECT id FROM events AS events SORT BY id
    → edge 1 to oslo, lanes merged in order (~5,000 rows, 39.1 KiB)
fragment 3 at tromso: reads table events
    scan, sort
    SELECT id FROM events AS events SORT BY id
    → edge 1 to oslo, lanes merged in order (~3,000 rows, 23.4 KiB)
finish at oslo: merge, offset 5 edge 1 from oslo, bergen, tromso
*/

-- case: OFFSET without an order
SELECT id FROM events OFFSET 5
/*
plan, result at oslo
fragment 1 at oslo: reads table events
    scan
    SELECT id FROM events AS events
    → edge 1 to oslo (~1,000 rows, 7.8 KiB)
fragment 2 at bergen: reads table events
    scan
    SELECT id FROM events AS events
    → edge 1 to oslo (~5,000 rows, 39.1 KiB)
fragment 3 at tromso: reads table events
    scan
    SELECT id FROM events AS events
    → edge 1 to oslo (~3,000 rows, 23.4 KiB)
finish at oslo: gather, offset 5 edge 1 from oslo, bergen, tromso
*/

-- case: a limit that is a parameter cannot be pushed
-- parameters: [10]
SELECT id FROM events ORDER BY id LIMIT ?
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
    scan, union, sort, limit
    SELECT id FROM (SELECT `id` FROM events UNION ALL SELECT `id` FROM edge_1) AS events ORDER BY id LIMIT :p0
    → edge 2 to oslo, in order (~9,000 rows, 70.3 KiB)
finish at oslo: gather edge 2 from bergen
*/

-- case: a limit too large for Spark is for Spark to refuse
SELECT id FROM events LIMIT 2147483647 OFFSET 10
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
    scan, union, limit
    SELECT id FROM (SELECT `id` FROM events UNION ALL SELECT `id` FROM edge_1) AS events LIMIT 2147483647 OFFSET 10
    → edge 2 to oslo (~9,000 rows, 70.3 KiB)
finish at oslo: gather edge 2 from bergen
*/

-- case: LIMIT ALL is none
SELECT id FROM events ORDER BY id LIMIT ALL
/*
plan, result at oslo
fragment 1 at oslo: reads table events
    scan, sort
    SELECT id FROM events AS events SORT BY id
    → edge 1 to oslo, lanes merged in order (~1,000 rows, 7.8 KiB)
fragment 2 at bergen: reads table events
    scan, sort
    SELECT id FROM events AS events SORT BY id
    → edge 1 to oslo, lanes merged in order (~5,000 rows, 39.1 KiB)
fragment 3 at tromso: reads table events
    scan, sort
    SELECT id FROM events AS events SORT BY id
    → edge 1 to oslo, lanes merged in order (~3,000 rows, 23.4 KiB)
finish at oslo: merge edge 1 from oslo, bergen, tromso
*/

-- case: LIMIT 0 asks for the columns only
SELECT id FROM events LIMIT 0
/*
plan, result at oslo
fragment 1 at oslo: reads table events
    scan, limit
    SELECT id FROM events AS events LIMIT 0
    → edge 1 to oslo, through the driver (~0 rows, 0 B)
fragment 2 at bergen: reads table events
    scan, limit
    SELECT id FROM events AS events LIMIT 0
    → edge 1 to oslo, through the driver (~0 rows, 0 B)
fragment 3 at tromso: reads table events
    scan, limit
    SELECT id FROM events AS events LIMIT 0
    → edge 1 to oslo, through the driver (~0 rows, 0 B)
finish at oslo: gather, limit 0 edge 1 from oslo, bergen, tromso
*/

-- case: a large limit leaves from the tasks
SELECT id FROM events LIMIT 100000
/*
plan, result at oslo
fragment 1 at oslo: reads table events
    scan, limit
    SELECT id FROM events AS events LIMIT 100000
    → edge 1 to oslo (~1,000 rows, 7.8 KiB)
fragment 2 at bergen: reads table events
    scan, limit
    SELECT id FROM events AS events LIMIT 100000
    → edge 1 to oslo (~5,000 rows, 39.1 KiB)
fragment 3 at tromso: reads table events
    scan, limit
    SELECT id FROM events AS events LIMIT 100000
    → edge 1 to oslo (~3,000 rows, 23.4 KiB)
finish at oslo: gather, limit 100000 edge 1 from oslo, bergen, tromso
*/

-- case: aliases that rename the columns
SELECT b, a FROM events AS e(a, b, c, d, e, f) WHERE a > 3
/*
plan, result at oslo
fragment 1 at oslo: reads table events
    scan, filter
    SELECT b, a FROM events AS e(a, b, c, d, e, f) WHERE a > 3
    → edge 1 to oslo (~1,000 rows, 31.2 KiB)
fragment 2 at bergen: reads table events
    scan, filter
    SELECT b, a FROM events AS e(a, b, c, d, e, f) WHERE a > 3
    → edge 1 to oslo (~5,000 rows, 156.2 KiB)
fragment 3 at tromso: reads table events
    scan, filter
    SELECT b, a FROM events AS e(a, b, c, d, e, f) WHERE a > 3
    → edge 1 to oslo (~3,000 rows, 93.8 KiB)
finish at oslo: gather edge 1 from oslo, bergen, tromso
*/

-- case: an aggregate needs all parts in one place
SELECT kind, count(*) AS n FROM events GROUP BY kind
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
    scan, union, aggregate
    SELECT kind, count(*) AS n FROM (SELECT `kind` FROM events UNION ALL SELECT `kind` FROM edge_1) AS events GROUP BY kind
    → edge 2 to oslo (~500 rows, 19.5 KiB)
finish at oslo: gather edge 2 from bergen
*/

-- case: DISTINCT too
SELECT DISTINCT kind FROM events
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
    scan, union, distinct
    SELECT DISTINCT kind FROM (SELECT `kind` FROM events UNION ALL SELECT `kind` FROM edge_1) AS events
    → edge 2 to oslo (~500 rows, 11.7 KiB)
finish at oslo: gather edge 2 from bergen
*/

-- case: local part and parts that arrive, joined to a table of the site
-- at: bergen
SELECT c_name, sum(amount) AS total FROM events JOIN customer ON id = c_id GROUP BY c_name
/*
plan, result at bergen
fragment 1 at oslo: reads table events
    scan
    SELECT `id`, `amount` FROM events
    → edge 1 to bergen, through the driver (~1,000 rows, 15.6 KiB)
fragment 2 at tromso: reads table events
    scan
    SELECT `id`, `amount` FROM events
    → edge 1 to bergen, through the driver (~3,000 rows, 46.9 KiB)
fragment 3 at bergen: reads table events; edge 1 from oslo, tromso; table customer
    scan, join, union, aggregate
    SELECT /*+ BROADCAST(`events`) */ c_name, sum(amount) AS total FROM (SELECT `id`, `amount` FROM events UNION ALL SELECT `id`, `amount` FROM edge_1) AS events JOIN customer AS customer ON id = c_id GROUP BY c_name
    → edge 2 to bergen (~15,000 rows, 585.9 KiB)
finish at bergen: gather edge 2 from bergen
*/

-- case: a union of a large local part and a small one is not broadcast
SELECT o_id, s_price FROM orders JOIN sales ON s_cust = o_cust
/*
plan, result at oslo
fragment 1 at bergen: reads table sales
    scan
    SELECT `s_cust`, `s_price` FROM sales
    → edge 1 to oslo, through the driver (~1,000 rows, 15.6 KiB)
fragment 2 at oslo: reads table orders; table sales; edge 1 from bergen
    scan, join, union
    SELECT o_id, s_price FROM orders AS orders JOIN (SELECT `s_cust`, `s_price` FROM sales UNION ALL SELECT `s_cust`, `s_price` FROM edge_1) AS sales ON s_cust = o_cust
    → edge 2 to oslo (~15,000,300 rows, 228.9 MiB)
finish at oslo: gather edge 2 from oslo
*/

-- case: a part by its site's name, and the whole, are different tables
SELECT count(*) AS n FROM oslo.events AS a JOIN events AS b ON a.id = b.id
/*
plan, result at oslo
fragment 1 at oslo: reads table events
    scan
    SELECT `id` FROM events
    → edge 1 to bergen, through the driver (~1,000 rows, 7.8 KiB)
fragment 2 at oslo: reads table events
    scan
    SELECT `id` FROM events
    → edge 2 to bergen, through the driver (~1,000 rows, 7.8 KiB)
fragment 3 at tromso: reads table events
    scan
    SELECT `id` FROM events
    → edge 2 to bergen, through the driver (~3,000 rows, 23.4 KiB)
fragment 4 at bergen: reads edge 1 from oslo; table events; edge 2 from oslo, tromso
    scan, join, union, aggregate
    SELECT /*+ BROADCAST(`a`, `b`) */ count(*) AS n FROM edge_1 AS a JOIN (SELECT `id` FROM events UNION ALL SELECT `id` FROM edge_2) AS b ON a.id = b.id
    → edge 3 to oslo, through the driver (~1 row, 16 B)
finish at oslo: gather edge 3 from bergen
*/

-- case: parts that spell their columns differently get one spelling
-- at: bergen
SELECT * FROM mixed
/*
plan, result at bergen
fragment 1 at tromso: reads table mixed
    scan
    SELECT `Id`, `note` FROM mixed
    → edge 1 to bergen, through the driver (~10 rows, 320 B)
fragment 2 at bergen: reads table Mixed; edge 1 from tromso
    scan, union
    SELECT * FROM (SELECT `Id`, `note` FROM Mixed UNION ALL SELECT `Id`, `note` FROM edge_1) AS mixed
    → edge 2 to bergen (~20 rows, 640 B)
finish at bergen: gather edge 2 from bergen
*/

-- case: a union with a renaming alias, inside a correlated subquery
SELECT o_id FROM orders WHERE o_total > (SELECT avg(d) FROM events AS e(a, b, c, d, t, p) WHERE a = o_cust)
/*
plan, result at oslo
fragment 1 at bergen: reads table events
    scan
    SELECT `id`, `ts`, `kind`, `amount`, `tags`, `place` FROM events
    → edge 1 to oslo (~5,000 rows, 703.1 KiB)
fragment 2 at tromso: reads table events
    scan
    SELECT `id`, `ts`, `kind`, `amount`, `tags`, `place` FROM events
    → edge 1 to oslo, through the driver (~3,000 rows, 421.9 KiB)
fragment 3 at oslo: reads table orders; table events; edge 1 from bergen, tromso
    scan, filter, union, aggregate
    SELECT o_id FROM orders AS orders WHERE o_total > (SELECT avg(d) FROM (SELECT `id`, `ts`, `kind`, `amount`, `tags`, `place` FROM events UNION ALL SELECT `id`, `ts`, `kind`, `amount`, `tags`, `place` FROM edge_1) AS e(a, b, c, d, t, p) WHERE a = o_cust)
    → edge 2 to oslo (~750,000 rows, 5.7 MiB)
finish at oslo: gather edge 2 from oslo
*/
