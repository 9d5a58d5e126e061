-- case: PIVOT over a logical table
SELECT * FROM (SELECT kind, amount FROM events) AS e PIVOT (sum(amount) FOR kind IN ('click', 'view'))
/*
plan, result at oslo
fragment 1 at oslo: reads table events
    scan
    SELECT `kind`, `amount` FROM events
    → edge 1 to bergen, through the driver (~1,000 rows, 31.2 KiB)
fragment 2 at tromso: reads table events
    scan
    SELECT `kind`, `amount` FROM events
    → edge 1 to bergen, through the driver (~3,000 rows, 93.8 KiB)
fragment 3 at bergen: reads table events; edge 1 from oslo, tromso
    scan, union, aggregate
    SELECT * FROM (SELECT kind, amount FROM (SELECT `kind`, `amount` FROM events UNION ALL SELECT `kind`, `amount` FROM edge_1) AS events) AS e PIVOT (sum(amount) FOR kind IN ('click', 'view'))
    → edge 2 to oslo (~1,000 rows, 62.5 KiB)
finish at oslo: gather edge 2 from bergen
*/

-- case: PIVOT right behind the table
SELECT * FROM events PIVOT (sum(amount) FOR kind IN ('click', 'view'))
/*
plan, result at oslo
fragment 1 at oslo: reads table events
    scan
    SELECT `id`, `ts`, `kind`, `amount`, `tags`, `place` FROM events
    → edge 1 to bergen, through the driver (~1,000 rows, 140.6 KiB)
fragment 2 at tromso: reads table events
    scan
    SELECT `id`, `ts`, `kind`, `amount`, `tags`, `place` FROM events
    → edge 1 to bergen, through the driver (~3,000 rows, 421.9 KiB)
fragment 3 at bergen: reads table events; edge 1 from oslo, tromso
    scan, union, aggregate
    SELECT * FROM (SELECT `id`, `ts`, `kind`, `amount`, `tags`, `place` FROM events UNION ALL SELECT `id`, `ts`, `kind`, `amount`, `tags`, `place` FROM edge_1) AS events PIVOT (sum(amount) FOR kind IN ('click', 'view'))
    → edge 2 to oslo (~1,000 rows, 62.5 KiB)
finish at oslo: gather edge 2 from bergen
*/

-- case: LATERAL VIEW
SELECT id, tag FROM events LATERAL VIEW explode(tags) t AS tag
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
    scan, union
    SELECT id, tag FROM (SELECT `id`, `tags` FROM events UNION ALL SELECT `id`, `tags` FROM edge_1) AS events LATERAL VIEW explode(tags) t AS tag
    → edge 2 to oslo (~1,000 rows, 62.5 KiB)
finish at oslo: gather edge 2 from bergen
*/

-- case: a lateral subquery
SELECT o_id, c_name FROM orders, LATERAL (SELECT c_name FROM customer WHERE c_id = o_cust)
/*
plan, result at oslo
fragment 1 at bergen: reads table customer
    scan
    SELECT `c_id`, `c_name` FROM customer
    → edge 1 to oslo (~150,000 rows, 4.6 MiB)
fragment 2 at oslo: reads table orders; edge 1 from bergen
    scan, filter, join
    SELECT o_id, c_name FROM orders AS orders, LATERAL (SELECT c_name FROM edge_1 AS customer WHERE c_id = o_cust)
    → edge 2 to oslo (~1,500,000 rows, 34.3 MiB)
finish at oslo: gather edge 2 from oslo
*/

-- case: a join in brackets
SELECT o_id FROM (orders JOIN customer ON o_cust = c_id) JOIN nation ON c_nation = n_id
/*
plan, result at oslo
fragment 1 at bergen: reads table customer
    scan
    SELECT `c_id`, `c_nation` FROM customer
    → edge 1 to oslo (~150,000 rows, 1.7 MiB)
fragment 2 at bergen: reads table nation
    scan
    SELECT `n_id` FROM nation
    → edge 2 to oslo, through the driver (~25 rows, 100 B)
fragment 3 at oslo: reads table orders; edge 1 from bergen; edge 2 from bergen
    scan, join
    SELECT /*+ BROADCAST(`nation`) */ o_id FROM (orders AS orders JOIN edge_1 AS customer ON o_cust = c_id) JOIN edge_2 AS nation ON c_nation = n_id
    → edge 3 to oslo (~1,000 rows, 15.6 KiB)
finish at oslo: gather edge 3 from oslo
*/

-- case: a set operation inside, tables of two sites
SELECT x FROM (SELECT o_id AS x FROM orders EXCEPT SELECT c_id FROM customer) AS t
/*
plan, result at oslo
fragment 1 at bergen: reads table customer
    scan
    SELECT `c_id` FROM customer
    → edge 1 to oslo (~150,000 rows, 1.1 MiB)
fragment 2 at oslo: reads table orders; edge 1 from bergen
    scan, union
    SELECT x FROM (SELECT o_id AS x FROM orders AS orders EXCEPT SELECT c_id FROM edge_1 AS customer) AS t
    → edge 2 to oslo (~150,000 rows, 1.1 MiB)
finish at oslo: gather edge 2 from oslo
*/

-- case: conditions with OR are kept together where they are pushed
SELECT o_id FROM orders JOIN customer ON o_cust = c_id WHERE (c_nation = 1 OR c_nation = 2) AND (o_total > 5 OR o_id = 1)
/*
plan, result at oslo
fragment 1 at bergen: reads table customer
    scan, filter
    SELECT `c_id`, `c_nation` FROM customer WHERE c_nation = 1 OR c_nation = 2
    → edge 1 to oslo (~2,985 rows, 35.0 KiB)
fragment 2 at oslo: reads table orders; edge 1 from bergen
    scan, filter, join
    SELECT /*+ BROADCAST(`customer`) */ o_id FROM orders AS orders JOIN edge_1 AS customer ON o_cust = c_id WHERE (c_nation = 1 OR c_nation = 2) AND (o_total > 5 OR o_id = 1)
    → edge 2 to oslo (~10,148 rows, 79.3 KiB)
finish at oslo: gather edge 2 from oslo
*/

-- case: strings and names that look like others
SELECT 'leaf_1' AS `leaf_1`, c_name FROM orders JOIN customer AS `scan_9` ON o_cust = c_id WHERE c_name <> 'it''s'
/*
plan, result at oslo
fragment 1 at bergen: reads table customer
    scan, filter
    SELECT `c_id`, `c_name` FROM customer WHERE c_name != 'it\'s'
    → edge 1 to oslo (~149,990 rows, 4.6 MiB)
fragment 2 at oslo: reads table orders; edge 1 from bergen
    scan, filter, join
    SELECT /*+ BROADCAST(`scan_9`) */ 'leaf_1' AS `leaf_1`, c_name FROM orders AS orders JOIN edge_1 AS `scan_9` ON o_cust = c_id WHERE c_name != 'it\'s'
    → edge 2 to oslo (~1,499,900 rows, 57.2 MiB)
finish at oslo: gather edge 2 from oslo
*/

-- case: two relations with one alias are not hinted
SELECT 1 AS one FROM orders AS x JOIN customer AS x JOIN nation AS y ON true
/*
plan, result at oslo
fragment 1 at bergen: reads table customer
    scan
    SELECT `c_nation` FROM customer
    → edge 1 to oslo (~150,000 rows, 585.9 KiB)
fragment 2 at bergen: reads table nation
    scan
    SELECT `n_id` FROM nation
    → edge 2 to oslo, through the driver (~25 rows, 100 B)
fragment 3 at oslo: reads table orders; edge 1 from bergen; edge 2 from bergen
    scan, join
    SELECT /*+ BROADCAST(`y`) */ 1 AS one FROM orders AS x JOIN edge_1 AS x JOIN edge_2 AS y ON TRUE
    → edge 3 to oslo (~5,625,000,000,000 rows, 81.9 TiB)
finish at oslo: gather edge 3 from oslo
*/

-- case: now is one moment for all sites
SELECT o_id, c_name FROM orders JOIN customer ON o_cust = c_id WHERE o_date < current_date()
/*
plan, result at oslo
fragment 1 at bergen: reads table customer
    scan
    SELECT `c_id`, `c_name` FROM customer
    → edge 1 to oslo (~150,000 rows, 4.6 MiB)
fragment 2 at oslo: reads table orders; edge 1 from bergen
    scan, filter, join
    SELECT /*+ BROADCAST(`customer`) */ o_id, c_name FROM orders AS orders JOIN edge_1 AS customer ON o_cust = c_id WHERE o_date < :skerry_today
    → edge 2 to oslo (~500,000 rows, 15.3 MiB)
finish at oslo: gather edge 2 from oslo
*/

-- case: an order that names a table of the first arm leaves arms alone
-- rules: filters,blocks
-- at: bergen
SELECT orders.o_id FROM orders WHERE o_total = 3 UNION ALL SELECT count(*) FROM lineitem ORDER BY orders.o_id
/*
plan, result at bergen
fragment 1 at oslo: reads table orders
    scan, filter
    SELECT orders.`o_id` FROM orders AS orders WHERE o_total = 3
    because orders is there
    → edge 1 to tromso (~15,000 rows, 117.2 KiB)
fragment 2 at tromso: reads edge 1 from oslo; table lineitem
    scan, union, aggregate, sort
    SELECT orders.o_id FROM edge_1 AS orders UNION ALL SELECT count(*) FROM lineitem AS lineitem ORDER BY orders.o_id
    because the links take ~0.021 s, ~1.9 s at bergen
    → edge 2 to bergen, in order (~15,001 rows, 117.2 KiB)
finish at bergen: gather edge 2 from tromso
*/
