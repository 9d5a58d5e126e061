-- case: a query inside of another brings its own names, and the one around it its own
-- at: tromso
SELECT o_id, a.c_name FROM orders JOIN customer AS a ON o_cust = a.c_id WHERE o_id NOT IN (SELECT b.c_nation FROM customer AS b WHERE b.c_nation IS NOT NULL)
/*
plan, result at tromso
fragment 1 at bergen: reads table customer
    scan
    SELECT `c_id`, `c_name` FROM customer
    → edge 1 to oslo (~150,000 rows, 4.6 MiB)
fragment 2 at bergen: reads table customer
    scan, filter
    SELECT `c_nation` FROM customer WHERE c_nation IS NOT NULL
    → edge 2 to oslo (~150,000 rows, 585.9 KiB)
fragment 3 at oslo: reads table orders; edge 1 from bergen; edge 2 from bergen
    scan, filter, join
    SELECT /*+ BROADCAST(`a`) */ o_id, a.c_name FROM orders AS orders JOIN edge_1 AS a ON o_cust = a.c_id WHERE o_id NOT IN (SELECT b.c_nation FROM edge_2 AS b WHERE b.c_nation IS NOT NULL)
    → edge 3 to tromso (~750,000 rows, 22.9 MiB)
finish at tromso: gather edge 3 from oslo
*/

-- case: the same with all rules
-- rules: all
-- at: tromso
SELECT o_id, a.c_name FROM orders JOIN customer AS a ON o_cust = a.c_id WHERE o_id NOT IN (SELECT b.c_nation FROM customer AS b WHERE b.c_nation IS NOT NULL)
/*
plan, result at tromso
fragment 1 at bergen: reads table customer
    scan
    SELECT a.`c_id`, a.`c_name` FROM customer AS a
    because customer is there
    → edge 1 to oslo (~150,000 rows, 4.6 MiB)
fragment 2 at bergen: reads table customer
    scan, filter, distinct
    SELECT DISTINCT b.`c_nation` FROM customer AS b WHERE b.c_nation IS NOT NULL
    because customer is there
    → edge 2 to oslo (~15,000 rows, 58.6 KiB)
fragment 3 at oslo: reads table orders; edge 1 from bergen; edge 2 from bergen
    scan, filter, join
    SELECT /*+ BROADCAST(`a`) */ o_id, a.c_name FROM orders AS orders JOIN edge_1 AS a ON o_cust = a.c_id WHERE o_id NOT IN (SELECT b.c_nation FROM edge_2 AS b)
    because the links take ~2.3 s, ~2.3 s at tromso
    → edge 3 to tromso (~750,000 rows, 22.9 MiB)
finish at tromso: gather edge 3 from oslo
*/

-- case: a bare name that the inner tables have does not mean one of the outer
-- at: tromso
SELECT note FROM bergen.mixed WHERE note IN (SELECT level FROM logs WHERE id > 3)
/*
plan, result at tromso
fragment 1 at bergen: reads table Mixed
    scan
    SELECT `note` FROM Mixed
    → edge 1 to tromso, through the driver (~10 rows, 240 B)
fragment 2 at oslo: reads table logs
    scan, filter
    SELECT `id`, `level` FROM logs WHERE id > 3
    → edge 2 to tromso (~0 rows, 0 B)
fragment 3 at bergen: reads table logs
    scan, filter
    SELECT `id`, `level` FROM logs WHERE id > 3
    → edge 2 to tromso (~2,000,000 rows, 61.0 MiB)
fragment 4 at tromso: reads edge 1 from bergen; table logs; edge 2 from oslo, bergen
    scan, filter, union
    SELECT note FROM edge_1 AS mixed WHERE note IN (SELECT level FROM (SELECT `id`, `level` FROM logs UNION ALL SELECT `id`, `level` FROM edge_2) AS logs WHERE id > 3)
    → edge 3 to tromso (~5 rows, 120 B)
finish at tromso: gather edge 3 from tromso
*/

-- case: one that they lack does
-- at: tromso
SELECT count(*) AS n FROM orders WHERE EXISTS (SELECT * FROM customer WHERE c_id = o_cust AND c_nation > 1)
/*
plan, result at tromso
fragment 1 at bergen: reads table customer
    scan, filter
    SELECT `c_id`, `c_nation` FROM customer WHERE c_nation > 1
    → edge 1 to oslo (~50,000 rows, 585.9 KiB)
fragment 2 at oslo: reads table orders; edge 1 from bergen
    scan, filter, aggregate
    SELECT count(*) AS n FROM orders AS orders WHERE EXISTS (SELECT * FROM edge_1 AS customer WHERE c_id = o_cust AND c_nation > 1)
    → edge 2 to tromso, through the driver (~1 row, 16 B)
finish at tromso: gather edge 2 from oslo
*/

-- case: a qualified name is of that table, and a column named like an alias is not asked for
-- rules: all
SELECT a.id, b.note AS kind FROM events AS a JOIN bergen.mixed AS b ON a.id = b.id WHERE a.amount > 3
/*
plan, result at oslo
fragment 1 at bergen: reads table Mixed
    scan
    SELECT `Id`, `note` FROM Mixed
    → edge 2 to oslo and tromso, through the driver (~10 rows, 320 B to each)
fragment 2 at oslo: reads table events; edge 2 from bergen
    scan, filter, join
    SELECT /*+ BROADCAST(`b`) */ a.id, b.note AS kind FROM events AS a JOIN edge_2 AS b ON a.id = b.id WHERE a.amount > 3
    → edge 1 to oslo (~6 rows, 240 B)
fragment 3 at bergen: reads table events; table Mixed
    scan, filter, join
    SELECT a.id, b.note AS kind FROM events AS a JOIN Mixed AS b ON a.id = b.id WHERE a.amount > 3
    → edge 1 to oslo (~33 rows, 1.3 KiB)
fragment 4 at tromso: reads table events; edge 2 from bergen
    scan, filter, join
    SELECT /*+ BROADCAST(`b`) */ a.id, b.note AS kind FROM events AS a JOIN edge_2 AS b ON a.id = b.id WHERE a.amount > 3
    → edge 1 to oslo (~20 rows, 800 B)
finish at oslo: gather edge 1 from oslo, bergen, tromso
*/

-- case: mentions of the same rows travel as one, with what any of them needs
-- rules: all
-- at: oslo
SELECT o_note, a.c_name, b.c_nation FROM orders, customer AS a, customer AS b WHERE a.c_id = o_cust AND b.c_id = o_id
/*
plan, result at oslo
fragment 1 at bergen: reads table customer
    scan
    SELECT a.`c_id`, a.`c_name`, a.`c_nation` FROM customer AS a
    because customer is there
    → edge 1 to oslo (~150,000 rows, 5.1 MiB)
fragment 2 at oslo: reads table orders; edge 1 from bergen
    scan, filter, join
    SELECT /*+ BROADCAST(`a`, `b`) */ o_note, a.c_name, b.c_nation FROM orders AS orders, edge_1 AS a, edge_1 AS b WHERE a.c_id = o_cust AND b.c_id = o_id
    because the links take ~0.43 s, ~11 s at bergen
    → edge 2 to oslo (~1,500,000 rows, 74.4 MiB)
finish at oslo: gather edge 2 from oslo
*/

-- case: one that needs no column takes one that another mention needs
-- at: bergen
SELECT o_id, c_name FROM orders JOIN customer ON o_cust = c_id WHERE EXISTS (SELECT * FROM customer AS b JOIN orders AS c ON c.o_total > 5)
/*
plan, result at bergen
fragment 1 at bergen: reads table customer
    scan
    SELECT `c_id`, `c_name` FROM customer
    → edge 1 to oslo (~150,000 rows, 4.6 MiB)
fragment 2 at oslo: reads table orders; edge 1 from bergen; table orders
    scan, filter, join
    SELECT /*+ BROADCAST(`customer`) */ o_id, c_name FROM orders AS orders JOIN edge_1 AS customer ON o_cust = c_id WHERE EXISTS (SELECT /*+ BROADCAST(`b`) */ * FROM edge_1 AS b JOIN orders AS c ON c.o_total > 5)
    → edge 2 to bergen (~750,000 rows, 22.9 MiB)
finish at bergen: gather edge 2 from oslo
*/

-- case: WITH, USING and a query in FROM
-- at: tromso
WITH t AS (SELECT id, kind FROM events WHERE amount > 1) SELECT t.id, m.note FROM t JOIN (SELECT id, note FROM bergen.mixed) AS m USING (id) WHERE t.kind <> 'x'
/*
plan, result at tromso
fragment 1 at oslo: reads table events
    scan, filter
    SELECT `id`, `kind`, `amount` FROM events WHERE amount > 1
    → edge 1 to bergen, through the driver (~333 rows, 13.0 KiB)
fragment 2 at tromso: reads table events
    scan, filter
    SELECT `id`, `kind`, `amount` FROM events WHERE amount > 1
    → edge 1 to bergen, through the driver (~1,000 rows, 39.1 KiB)
fragment 3 at bergen: reads table events; edge 1 from oslo, tromso; table Mixed
    scan, filter, join, union
    WITH t AS (SELECT id, kind FROM (SELECT `id`, `kind`, `amount` FROM events UNION ALL SELECT `id`, `kind`, `amount` FROM edge_1) AS events WHERE amount > 1) SELECT t.id, m.note FROM t JOIN (SELECT id, note FROM Mixed AS mixed) AS m USING (id) WHERE t.kind != 'x'
    → edge 2 to tromso (~3,000 rows, 93.8 KiB)
finish at tromso: gather edge 2 from bergen
*/
