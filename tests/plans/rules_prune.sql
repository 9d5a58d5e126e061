-- case: one part is left, and the query runs there whole
-- rules: prune
-- at: tromso
SELECT level, count(*) AS n FROM logs WHERE id < 4 GROUP BY level
/*
plan, result at tromso
fragment 1 at oslo: reads table logs
    scan, filter, aggregate
    SELECT level, count(*) AS n FROM logs AS logs WHERE id < 4 GROUP BY level
    → edge 1 to tromso (~100,000 rows, 3.8 MiB)
left out: table logs at bergen, because no row there passes id < 4: id is 4 to 7
left out: table logs at tromso, because no row there passes id < 4: id is 8 to 11
finish at tromso: gather edge 1 from oslo
*/

-- case: without the rule all parts are asked
-- rules: filters
SELECT id, cost FROM logs WHERE at >= DATE '1970-01-05'
/*
plan, result at oslo
fragment 1 at oslo: reads table logs
    scan, filter
    SELECT id, cost FROM logs AS logs WHERE at >= DATE '1970-01-05'
    → edge 1 to oslo (~0 rows, 0 B)
fragment 2 at bergen: reads table logs
    scan, filter
    SELECT id, cost FROM logs AS logs WHERE at >= DATE '1970-01-05'
    → edge 1 to oslo (~2,000,000 rows, 45.8 MiB)
fragment 3 at tromso: reads table logs
    scan, filter
    SELECT id, cost FROM logs AS logs WHERE at >= DATE '1970-01-05'
    → edge 1 to oslo (~3,000,000 rows, 68.7 MiB)
finish at oslo: gather edge 1 from oslo, bergen, tromso
*/

-- case: a date, and two parts
-- rules: prune
SELECT id, cost FROM logs WHERE at >= DATE '1970-01-05' ORDER BY id
/*
plan, result at oslo
fragment 1 at bergen: reads table logs
    scan, filter, sort
    SELECT id, cost FROM logs AS logs WHERE at >= DATE '1970-01-05' SORT BY id
    → edge 1 to oslo, lanes merged in order (~2,000,000 rows, 45.8 MiB)
fragment 2 at tromso: reads table logs
    scan, filter, sort
    SELECT id, cost FROM logs AS logs WHERE at >= DATE '1970-01-05' SORT BY id
    → edge 1 to oslo, lanes merged in order (~3,000,000 rows, 68.7 MiB)
left out: table logs at oslo, because no row there passes at >= DATE '1970-01-05': at is 1970-01-01 to 1970-01-04
finish at oslo: merge edge 1 from bergen, tromso
*/

-- case: a date as a string, and years later
-- rules: prune
SELECT id FROM logs WHERE at BETWEEN '1970-01-01' AND DATE '1969-12-06' + INTERVAL '1' MONTH
/*
plan, result at oslo
fragment 1 at oslo: reads table logs
    scan, filter
    SELECT id FROM logs AS logs WHERE at BETWEEN '1970-01-01' AND DATE '1969-12-06' + INTERVAL '1' MONTH
    → edge 1 to oslo (~1,000,000 rows, 7.6 MiB)
fragment 2 at bergen: reads table logs
    scan, filter
    SELECT id FROM logs AS logs WHERE at BETWEEN '1970-01-01' AND DATE '1969-12-06' + INTERVAL '1' MONTH
    → edge 1 to oslo (~1,000,000 rows, 7.6 MiB)
left out: table logs at tromso, because no row there passes at BETWEEN '1970-01-01' AND DATE '1969-12-06' + INTERVAL '1' MONTH: at is 1970-01-07 to 1970-01-12
finish at oslo: gather edge 1 from oslo, bergen
*/

-- case: all parts are left out but the initiator's own, which has no row
-- rules: prune
-- at: bergen
SELECT count(*) AS n, max(cost) AS c FROM logs WHERE cost > 11
/*
plan, result at bergen
fragment 1 at bergen: reads table logs
    scan, filter, aggregate
    SELECT count(*) AS n, max(cost) AS c FROM logs AS logs WHERE cost > 11
    → edge 1 to bergen, through the driver (~1 row, 32 B)
left out: table logs at oslo, because no row there passes cost > 11: cost is 0.00 to 3.00
left out: table logs at tromso, because no row there passes cost > 11: cost is 8.00 to 11.00
finish at bergen: gather edge 1 from bergen
*/

-- case: NULLs are equal to nothing
-- rules: prune
SELECT id FROM logs WHERE level = 'x'
/*
plan, result at oslo
fragment 1 at oslo: reads table logs
    scan, filter
    SELECT id FROM logs AS logs WHERE level = 'x'
    → edge 1 to oslo (~10 rows, 80 B)
fragment 2 at tromso: reads table logs
    scan, filter
    SELECT id FROM logs AS logs WHERE level = 'x'
    → edge 1 to oslo (~10 rows, 80 B)
left out: table logs at bergen, because no row there passes level = 'x': level is always NULL
finish at oslo: gather edge 1 from oslo, tromso
*/

-- case: NULLs are asked for
-- rules: prune
SELECT id FROM logs WHERE level IS NULL
/*
plan, result at oslo
fragment 1 at bergen: reads table logs
    scan, filter
    SELECT id FROM logs AS logs WHERE level IS NULL
    → edge 1 to oslo (~2,000,000 rows, 15.3 MiB)
left out: table logs at oslo, because no row there passes level IS NULL: level is never NULL
left out: table logs at tromso, because no row there passes level IS NULL: level is never NULL
finish at oslo: gather edge 1 from bergen
*/

-- case: every branch of an OR, every value of a list
-- rules: prune
SELECT id FROM logs WHERE (id = 3 OR 2 > id) AND cost IN (1, 2.5)
/*
plan, result at oslo
fragment 1 at oslo: reads table logs
    scan, filter
    SELECT id FROM logs AS logs WHERE (id = 3 OR 2 > id) AND cost IN (1, 2.5)
    → edge 1 to oslo (~12 rows, 100 B)
left out: table logs at bergen, because no row there passes id = 3 OR 2 > id: id is 4 to 7
left out: table logs at tromso, because no row there passes id = 3 OR 2 > id: id is 8 to 11
finish at oslo: gather edge 1 from oslo
*/

-- case: floating point numbers, parameters and what is computed refute nothing
-- rules: prune
-- parameters: [5]
SELECT id FROM logs WHERE load > 3 AND id < ? AND id + 1 < 2 AND id < 1e0
/*
plan, result at oslo
fragment 1 at oslo: reads table logs
    scan, filter
    SELECT id FROM logs AS logs WHERE load > 3 AND id < :p0 AND id + 1 < 2 AND id < 1e0
    → edge 1 to oslo (~0 rows, 0 B)
fragment 2 at bergen: reads table logs
    scan, filter
    SELECT id FROM logs AS logs WHERE load > 3 AND id < :p0 AND id + 1 < 2 AND id < 1e0
    → edge 1 to oslo (~0 rows, 0 B)
fragment 3 at tromso: reads table logs
    scan, filter
    SELECT id FROM logs AS logs WHERE load > 3 AND id < :p0 AND id + 1 < 2 AND id < 1e0
    → edge 1 to oslo (~0 rows, 0 B)
finish at oslo: gather edge 1 from oslo, bergen, tromso
*/

-- case: a table with parts that are joined
-- rules: prune,filters,semijoin
SELECT o_total, cost FROM orders JOIN logs ON o_cust = id WHERE id > 7
/*
plan, result at oslo
fragment 1 at tromso: reads table logs
    scan, filter
    SELECT logs.`id`, logs.`cost` FROM logs AS logs WHERE id > 7
    because logs is there
    → edge 1 to oslo (~3,000,000 rows, 68.7 MiB)
fragment 2 at oslo: reads table orders; edge 1 from tromso
    scan, join
    SELECT o_total, cost FROM orders AS orders JOIN edge_1 AS logs ON o_cust = id
    because the links take ~5.8 s, ~77 s at tromso
    → edge 2 to oslo (~30,000,000 rows, 915.5 MiB)
left out: table logs at oslo, because no row there passes id > 7: id is 0 to 3
left out: table logs at bergen, because no row there passes id > 7: id is 4 to 7
finish at oslo: gather edge 2 from oslo
*/

-- case: a condition that another table's equality brings
-- rules: prune,filters,equalities
SELECT c_name, cost FROM customer JOIN logs ON c_id = id WHERE c_id BETWEEN 9 AND 10
/*
plan, result at oslo
fragment 1 at bergen: reads table customer
    scan, filter
    SELECT customer.`c_id`, customer.`c_name` FROM customer AS customer WHERE c_id BETWEEN 9 AND 10
    because customer is there
    → edge 1 to oslo (~50,000 rows, 1.5 MiB)
fragment 2 at tromso: reads table logs
    scan, filter
    SELECT logs.`id`, logs.`cost` FROM logs AS logs WHERE (logs.`id` BETWEEN 9 AND 10)
    because logs is there
    → edge 2 to oslo (~1,500,000 rows, 34.3 MiB)
fragment 3 at oslo: reads edge 1 from bergen; edge 2 from tromso
    scan, join
    SELECT /*+ BROADCAST(`customer`) */ c_name, cost FROM edge_1 AS customer JOIN edge_2 AS logs ON c_id = id
    because the links take ~3 s, ~48 s at tromso
    → edge 3 to oslo (~15,000,000 rows, 572.2 MiB)
left out: table logs at oslo, because no row there passes `id` BETWEEN 9 AND 10: id is 0 to 3
left out: table logs at bergen, because no row there passes `id` BETWEEN 9 AND 10: id is 4 to 7
finish at oslo: gather edge 3 from oslo
*/

-- case: a row that an outer join keeps is never left out
-- rules: prune
SELECT logs.id, c_name FROM logs LEFT JOIN customer ON c_id = logs.id AND logs.id < 4
/*
plan, result at oslo
fragment 1 at bergen: reads table logs
    scan
    SELECT logs.`id` FROM logs AS logs
    because logs is there
    → edge 1 to oslo (~2,000,000 rows, 15.3 MiB)
fragment 2 at tromso: reads table logs
    scan
    SELECT logs.`id` FROM logs AS logs
    because logs is there
    → edge 1 to oslo (~3,000,000 rows, 22.9 MiB)
fragment 3 at bergen: reads table customer
    scan
    SELECT customer.`c_id`, customer.`c_name` FROM customer AS customer
    because customer is there
    → edge 2 to oslo (~150,000 rows, 4.6 MiB)
fragment 4 at oslo: reads table logs; edge 1 from bergen, tromso; edge 2 from bergen
    scan, join, union
    SELECT /*+ BROADCAST(`customer`) */ logs.id, c_name FROM (SELECT `id` FROM logs UNION ALL SELECT `id` FROM edge_1) AS logs LEFT JOIN edge_2 AS customer ON c_id = logs.id AND logs.id < 4
    because the links take ~3.6 s, ~156 s at tromso
    → edge 3 to oslo (~60,000,000 rows, 1.8 GiB)
finish at oslo: gather edge 3 from oslo
*/

-- case: groups of the parts that are left
-- rules: prune,aggregates
SELECT level, sum(cost) AS s, count(*) AS n FROM logs WHERE id >= 4 GROUP BY level
/*
plan, result at oslo
fragment 1 at bergen: reads table logs
    scan, filter, aggregate
    SELECT level AS part_0, sum(cost) AS part_1, count(*) AS part_2 FROM logs AS logs WHERE id >= 4 GROUP BY level
    → edge 1 to oslo (~200,000 rows, 9.2 MiB)
fragment 2 at tromso: reads table logs
    scan, filter, aggregate
    SELECT level AS part_0, sum(cost) AS part_1, count(*) AS part_2 FROM logs AS logs WHERE id >= 4 GROUP BY level
    → edge 1 to oslo (~300,000 rows, 13.7 MiB)
fragment 3 at oslo: reads edge 1 from bergen, tromso
    scan, aggregate
    SELECT part_0 AS `level`, CAST(sum(part_1) AS DECIMAL(25, 2)) AS s, coalesce(sum(part_2), 0) AS n FROM edge_1 AS part_rows GROUP BY part_0
    because the links take ~1.9 s, ~2.1 s at tromso
    → edge 2 to oslo (~300,000 rows, 16.0 MiB)
left out: table logs at oslo, because no row there passes id >= 4: id is 0 to 3
finish at oslo: gather edge 2 from oslo
*/

-- case: two mentions, each with its own parts
-- rules: prune,filters
SELECT a.id FROM logs AS a JOIN logs AS b ON a.id = b.id + 5 WHERE a.id < 8 AND b.id < 4
/*
plan, result at oslo
fragment 1 at bergen: reads table logs
    scan, filter
    SELECT a.`id` FROM logs AS a WHERE a.id < 8
    because logs is there
    → edge 1 to oslo (~2,000,000 rows, 15.3 MiB)
fragment 2 at oslo: reads table logs; edge 1 from bergen; table logs
    scan, filter, join, union
    SELECT a.id FROM (SELECT `id` FROM logs UNION ALL SELECT `id` FROM edge_1) AS a JOIN logs AS b ON a.id = b.id + 5 WHERE a.id < 8 AND b.id < 4
    because the links take ~1.3 s, ~5.1 s at bergen
    → edge 2 to oslo (~3,000,000 rows, 45.8 MiB)
left out: table logs at tromso, because no row there passes id < 8: id is 8 to 11
left out: table logs at bergen, because no row there passes id < 4: id is 4 to 7
finish at oslo: gather edge 2 from oslo
*/

-- case: an anti join's other side
-- rules: prune,filters
SELECT c_id FROM customer LEFT ANTI JOIN logs ON c_id = id AND id > 20
/*
plan, result at oslo
fragment 1 at oslo: reads table logs
    scan, filter
    SELECT logs.`id` FROM logs AS logs WHERE id > 20
    because logs is there
    → edge 1 to bergen (~0 rows, 0 B)
fragment 2 at bergen: reads table customer; edge 1 from oslo
    scan, join
    SELECT /*+ BROADCAST(`logs`) */ c_id FROM customer AS customer LEFT ANTI JOIN edge_1 AS logs ON c_id = id
    because the links take ~0.05 s, ~0.097 s at oslo
    → edge 2 to oslo (~75,000 rows, 585.9 KiB)
left out: table logs at bergen, because no row there passes id > 20: id is 4 to 7
left out: table logs at tromso, because no row there passes id > 20: id is 8 to 11
finish at oslo: gather edge 2 from bergen
*/

-- case: columns that sites spell differently
-- rules: prune
SELECT * FROM mixed WHERE id > 100
/*
plan, result at oslo
fragment 1 at bergen: reads table Mixed
    scan, filter
    SELECT mixed.`Id`, mixed.`note` FROM Mixed AS mixed WHERE id > 100
    because Mixed is there
    → edge 1 to oslo, through the driver (~3 rows, 106 B)
fragment 2 at tromso: reads table mixed
    scan, filter
    SELECT mixed.`Id`, mixed.`note` FROM mixed AS mixed WHERE id > 100
    because Mixed is there
    → edge 1 to oslo, through the driver (~3 rows, 106 B)
fragment 3 at oslo: reads edge 1 from bergen, tromso
    scan, filter
    SELECT * FROM edge_1 AS mixed WHERE id > 100
    because the links take ~0.0023 s, ~0.0023 s at bergen
    → edge 2 to oslo (~6 rows, 213 B)
finish at oslo: gather edge 2 from oslo
*/
