-- case: bounds go where keys are too many
-- rules: ranges
-- at: tromso
SELECT v_note, k_note FROM visits JOIN clicks ON v_key = k_key
/*
plan, result at tromso
fragment 1 at tromso: reads table clicks
    scan, aggregate
    SELECT min(clicks.`k_key`) AS `low`, max(clicks.`k_key`) AS `high` FROM clicks AS clicks
    because clicks is there; its least and greatest k_key go ahead, so fewer rows travel
    → edge 2 to bergen, through the driver (~1 row, 16 B)
fragment 2 at bergen: reads table visits; edge 2 from tromso
    scan, join, aggregate
    SELECT /*+ BROADCAST(key_1) */ visits.`v_key`, visits.`v_note` FROM visits AS visits LEFT SEMI JOIN (SELECT min(`low`) AS `low`, max(`high`) AS `high` FROM (SELECT `low`, `high` FROM edge_2) AS bounds) AS key_1 ON visits.`v_key` BETWEEN key_1.`low` AND key_1.`high`
    because visits is there; rows whose v_key is outside of clicks.k_key are not sent
    → edge 1 to tromso (~500,004 rows, 15.3 MiB)
fragment 3 at tromso: reads edge 1 from bergen; table clicks
    scan, join
    SELECT v_note, k_note FROM edge_1 AS visits JOIN clicks AS clicks ON v_key = k_key
    because the links take ~1.3 s, ~142 s at bergen
    → edge 3 to tromso (~36,363,603 rows, 1.6 GiB)
finish at tromso: gather edge 3 from tromso
*/

-- case: keys and bounds
-- rules: filters,semijoin,ranges
-- at: tromso
SELECT v_note, k_note, c_name FROM visits JOIN clicks ON v_key = k_key JOIN customer ON c_id = v_key WHERE c_name = 'x'
/*
plan, result at tromso
fragment 1 at bergen: reads table visits; table customer
    scan, filter, join
    SELECT /*+ BROADCAST(key_1) */ visits.`v_key`, visits.`v_note` FROM visits AS visits LEFT SEMI JOIN (SELECT customer.`c_id` FROM customer AS customer WHERE c_name = 'x') AS key_1 ON visits.`v_key` = key_1.`c_id`
    because visits is there; rows without a match in customer are not sent
    → edge 1 to tromso (~7,171 rows, 224.1 KiB)
fragment 2 at bergen: reads table customer
    scan, filter
    SELECT customer.`c_id`, customer.`c_name` FROM customer AS customer WHERE c_name = 'x'
    because customer is there
    → edge 2 to tromso (~1,500 rows, 46.9 KiB)
fragment 3 at tromso: reads edge 1 from bergen; table clicks; edge 2 from bergen
    scan, join
    SELECT /*+ BROADCAST(`visits`, `customer`) */ v_note, k_note, c_name FROM edge_1 AS visits JOIN clicks AS clicks ON v_key = k_key JOIN edge_2 AS customer ON c_id = v_key
    because the links take ~0.025 s, ~0.34 s at bergen
    → edge 3 to tromso (~54,545 rows, 3.7 MiB)
finish at tromso: gather edge 3 from tromso
*/

-- case: few keys are better than bounds
-- rules: filters,semijoin,ranges
-- at: oslo
SELECT v_note, k_note FROM visits JOIN clicks ON v_key = k_key WHERE k_day < DATE '4435-01-01'
/*
plan, result at oslo
fragment 1 at tromso: reads table clicks
    scan, filter
    SELECT clicks.`k_key`, clicks.`k_note` FROM clicks AS clicks WHERE k_day < DATE '4435-01-01'
    because clicks is there
    → edge 1 to bergen (~2,349 rows, 73.4 KiB)
fragment 2 at bergen: reads table visits; edge 1 from tromso
    scan, join
    SELECT /*+ BROADCAST(`clicks`) */ v_note, k_note FROM visits AS visits JOIN edge_1 AS clicks ON v_key = k_key
    because the links take ~0.049 s, ~0.059 s at oslo
    → edge 2 to oslo (~10,677 rows, 500.5 KiB)
finish at oslo: gather edge 2 from bergen
*/

-- case: dates
-- rules: ranges
-- at: oslo
SELECT v_note, k_key FROM visits JOIN clicks ON v_day = k_day
/*
plan, result at oslo
fragment 1 at tromso: reads table clicks
    scan, aggregate
    SELECT min(clicks.`k_day`) AS `low`, max(clicks.`k_day`) AS `high` FROM clicks AS clicks
    because clicks is there; its least and greatest k_day go ahead, so fewer rows travel
    → edge 2 to bergen, through the driver (~1 row, 8 B)
fragment 2 at bergen: reads table visits; edge 2 from tromso
    scan, join, aggregate
    SELECT /*+ BROADCAST(key_1) */ visits.`v_day`, visits.`v_note` FROM visits AS visits LEFT SEMI JOIN (SELECT min(`low`) AS `low`, max(`high`) AS `high` FROM (SELECT `low`, `high` FROM edge_2) AS bounds) AS key_1 ON visits.`v_day` BETWEEN key_1.`low` AND key_1.`high`
    because visits is there; rows whose v_day is outside of clicks.k_day are not sent
    → edge 1 to oslo (~500,004 rows, 13.4 MiB)
fragment 3 at bergen: reads table visits
    scan, aggregate
    SELECT min(visits.`v_day`) AS `low`, max(visits.`v_day`) AS `high` FROM visits AS visits
    because visits is there; its least and greatest v_day go ahead, so fewer rows travel
    → edge 4 to tromso, through the driver (~1 row, 8 B)
fragment 4 at tromso: reads table clicks; edge 4 from bergen
    scan, join, aggregate
    SELECT /*+ BROADCAST(key_2) */ clicks.`k_key`, clicks.`k_day` FROM clicks AS clicks LEFT SEMI JOIN (SELECT min(`low`) AS `low`, max(`high`) AS `high` FROM (SELECT `low`, `high` FROM edge_4) AS bounds) AS key_2 ON clicks.`k_day` BETWEEN key_2.`low` AND key_2.`high`
    because clicks is there; rows whose k_day is outside of visits.v_day are not sent
    → edge 3 to oslo (~727,279 rows, 8.3 MiB)
fragment 5 at oslo: reads edge 1 from bergen; edge 3 from tromso
    scan, join
    SELECT /*+ BROADCAST(`clicks`) */ v_note, k_key FROM edge_1 AS visits JOIN edge_3 AS clicks ON v_day = k_day
    because the links take ~1.9 s, ~94 s at bergen
    → edge 5 to oslo (~36,363,603 rows, 1.1 GiB)
finish at oslo: gather edge 5 from oslo
*/

-- case: decimals
-- rules: ranges
-- at: tromso
SELECT v_note, k_key FROM visits JOIN clicks ON v_cost = k_cost
/*
plan, result at tromso
fragment 1 at tromso: reads table clicks
    scan, aggregate
    SELECT min(clicks.`k_cost`) AS `low`, max(clicks.`k_cost`) AS `high` FROM clicks AS clicks
    because clicks is there; its least and greatest k_cost go ahead, so fewer rows travel
    → edge 2 to bergen, through the driver (~1 row, 32 B)
fragment 2 at bergen: reads table visits; edge 2 from tromso
    scan, join, aggregate
    SELECT /*+ BROADCAST(key_1) */ visits.`v_cost`, visits.`v_note` FROM visits AS visits LEFT SEMI JOIN (SELECT min(`low`) AS `low`, max(`high`) AS `high` FROM (SELECT `low`, `high` FROM edge_2) AS bounds) AS key_1 ON visits.`v_cost` BETWEEN key_1.`low` AND key_1.`high`
    because visits is there; rows whose v_cost is outside of clicks.k_cost are not sent
    → edge 1 to tromso (~500,000 rows, 19.1 MiB)
fragment 3 at tromso: reads edge 1 from bergen; table clicks
    scan, join
    SELECT v_note, k_key FROM edge_1 AS visits JOIN clicks AS clicks ON v_cost = k_cost
    because the links take ~1.6 s, ~129 s at bergen
    → edge 3 to tromso (~50,000,000 rows, 1.5 GiB)
finish at tromso: gather edge 3 from tromso
*/

-- case: other types are compared in another order
-- rules: ranges
-- at: tromso
SELECT v_note FROM visits JOIN clicks ON v_key = k_small
/*
plan, result at tromso
fragment 1 at bergen: reads table visits
    scan
    SELECT visits.`v_key`, visits.`v_note` FROM visits AS visits
    because visits is there
    → edge 1 to tromso (~5,000,000 rows, 152.6 MiB)
fragment 2 at tromso: reads edge 1 from bergen; table clicks
    scan, join
    SELECT v_note FROM edge_1 AS visits JOIN clicks AS clicks ON v_key = k_small
    because the links take ~13 s, ~79 s at bergen
    → edge 2 to tromso (~39,999,960 rows, 915.5 MiB)
finish at tromso: gather edge 2 from tromso
*/

-- case: ranges that nobody knows
-- rules: ranges
-- at: bergen
SELECT o_note FROM orders JOIN clicks ON o_cust = k_key
/*
plan, result at bergen
fragment 1 at oslo: reads table orders
    scan
    SELECT orders.`o_cust`, orders.`o_note` FROM orders AS orders
    because orders is there
    → edge 1 to bergen (~1,500,000 rows, 45.8 MiB)
fragment 2 at tromso: reads table clicks
    scan
    SELECT clicks.`k_key` FROM clicks AS clicks
    because clicks is there
    → edge 2 to bergen (~8,000,000 rows, 61.0 MiB)
fragment 3 at bergen: reads edge 1 from oslo; edge 2 from tromso
    scan, join
    SELECT o_note FROM edge_1 AS orders JOIN edge_2 AS clicks ON o_cust = k_key
    because the links take ~9 s, ~25 s at tromso
    → edge 3 to bergen (~10,909,080 rows, 249.7 MiB)
finish at bergen: gather edge 3 from bergen
*/

-- case: ranges that are nearly the same
-- rules: ranges
-- at: oslo
SELECT a.k_note, b.v_note FROM tromso.clicks AS a JOIN bergen.visits AS b ON b.v_note = a.k_note
/*
plan, result at oslo
fragment 1 at tromso: reads table clicks
    scan
    SELECT a.`k_note` FROM clicks AS a
    because clicks is there
    → edge 1 to oslo (~8,000,000 rows, 183.1 MiB)
fragment 2 at bergen: reads table visits
    scan
    SELECT b.`v_note` FROM visits AS b
    because visits is there
    → edge 2 to oslo (~5,000,000 rows, 114.4 MiB)
fragment 3 at oslo: reads edge 1 from tromso; edge 2 from bergen
    scan, join
    SELECT a.k_note, b.v_note FROM edge_1 AS a JOIN edge_2 AS b ON b.v_note = a.k_note
    because the links take ~25 s, ~202 s at tromso
    → edge 3 to oslo (~50,000,000 rows, 2.2 GiB)
finish at oslo: gather edge 3 from oslo
*/

-- case: rows that an outer join keeps are not between bounds
-- rules: ranges
-- at: tromso
SELECT v_note, k_note FROM visits LEFT JOIN clicks ON v_key = k_key
/*
plan, result at tromso
fragment 1 at bergen: reads table visits
    scan
    SELECT visits.`v_key`, visits.`v_note` FROM visits AS visits
    because visits is there
    → edge 1 to tromso (~5,000,000 rows, 152.6 MiB)
fragment 2 at tromso: reads edge 1 from bergen; table clicks
    scan, join
    SELECT v_note, k_note FROM edge_1 AS visits LEFT JOIN clicks AS clicks ON v_key = k_key
    because the links take ~13 s, ~142 s at bergen
    → edge 2 to tromso (~36,363,603 rows, 1.6 GiB)
finish at tromso: gather edge 2 from tromso
*/

-- case: rows that an anti join keeps are not, either
-- rules: ranges
-- at: tromso
SELECT v_note FROM visits LEFT ANTI JOIN clicks ON v_key = k_key
/*
plan, result at tromso
fragment 1 at bergen: reads table visits
    scan, aggregate
    SELECT min(visits.`v_key`) AS `low`, max(visits.`v_key`) AS `high` FROM visits AS visits
    because visits is there; its least and greatest v_key go ahead, so fewer rows travel
    → edge 2 to tromso, through the driver (~1 row, 16 B)
fragment 2 at tromso: reads table clicks; edge 2 from bergen
    scan, join, aggregate
    SELECT /*+ BROADCAST(key_1) */ clicks.`k_key` FROM clicks AS clicks LEFT SEMI JOIN (SELECT min(`low`) AS `low`, max(`high`) AS `high` FROM (SELECT `low`, `high` FROM edge_2) AS bounds) AS key_1 ON clicks.`k_key` BETWEEN key_1.`low` AND key_1.`high`
    because clicks is there; rows whose k_key is outside of visits.v_key are not sent
    → edge 1 to bergen (~727,279 rows, 5.5 MiB)
fragment 3 at bergen: reads table visits; edge 1 from tromso
    scan, join
    SELECT /*+ BROADCAST(`clicks`) */ v_note FROM visits AS visits LEFT ANTI JOIN edge_1 AS clicks ON v_key = k_key
    because the links take ~5.3 s, ~13 s at tromso
    → edge 3 to tromso (~2,500,000 rows, 57.2 MiB)
finish at tromso: gather edge 3 from bergen
*/

-- case: the other side of an outer join
-- rules: ranges
-- at: tromso
SELECT v_note, k_note FROM clicks LEFT JOIN visits ON v_key = k_key
/*
plan, result at tromso
fragment 1 at tromso: reads table clicks
    scan, aggregate
    SELECT min(clicks.`k_key`) AS `low`, max(clicks.`k_key`) AS `high` FROM clicks AS clicks
    because clicks is there; its least and greatest k_key go ahead, so fewer rows travel
    → edge 2 to bergen, through the driver (~1 row, 16 B)
fragment 2 at bergen: reads table visits; edge 2 from tromso
    scan, join, aggregate
    SELECT /*+ BROADCAST(key_1) */ visits.`v_key`, visits.`v_note` FROM visits AS visits LEFT SEMI JOIN (SELECT min(`low`) AS `low`, max(`high`) AS `high` FROM (SELECT `low`, `high` FROM edge_2) AS bounds) AS key_1 ON visits.`v_key` BETWEEN key_1.`low` AND key_1.`high`
    because visits is there; rows whose v_key is outside of clicks.k_key are not sent
    → edge 1 to tromso (~500,004 rows, 15.3 MiB)
fragment 3 at tromso: reads table clicks; edge 1 from bergen
    scan, join
    SELECT v_note, k_note FROM clicks AS clicks LEFT JOIN edge_1 AS visits ON v_key = k_key
    because the links take ~1.3 s, ~160 s at bergen
    → edge 3 to tromso (~36,363,603 rows, 1.6 GiB)
finish at tromso: gather edge 3 from tromso
*/

-- case: a subquery's rows
-- rules: ranges
-- at: tromso
SELECT k_note FROM clicks WHERE EXISTS (SELECT * FROM visits WHERE v_key = k_key AND v_note > k_note)
/*
plan, result at tromso
fragment 1 at tromso: reads table clicks
    scan, aggregate
    SELECT min(clicks.`k_key`) AS `low`, max(clicks.`k_key`) AS `high` FROM clicks AS clicks
    because clicks is there; its least and greatest k_key go ahead, so fewer rows travel
    → edge 2 to bergen, through the driver (~1 row, 16 B)
fragment 2 at bergen: reads table visits; edge 2 from tromso
    scan, join, aggregate
    SELECT /*+ BROADCAST(key_1) */ visits.`v_key`, visits.`v_note` FROM visits AS visits LEFT SEMI JOIN (SELECT min(`low`) AS `low`, max(`high`) AS `high` FROM (SELECT `low`, `high` FROM edge_2) AS bounds) AS key_1 ON visits.`v_key` BETWEEN key_1.`low` AND key_1.`high`
    because visits is there; rows whose v_key is outside of clicks.k_key are not sent
    → edge 1 to tromso (~500,004 rows, 15.3 MiB)
fragment 3 at tromso: reads table clicks; edge 1 from bergen
    scan, filter
    SELECT k_note FROM clicks AS clicks WHERE EXISTS (SELECT * FROM edge_1 AS visits WHERE v_key = k_key AND v_note > k_note)
    because the links take ~1.3 s, ~28 s at bergen
    → edge 3 to tromso (~4,000,000 rows, 91.6 MiB)
finish at tromso: gather edge 3 from tromso
*/

-- case: bounds from every part of a table
-- rules: ranges
-- at: oslo
SELECT v_note, cost FROM visits JOIN logs ON v_key = id
/*
plan, result at oslo
fragment 1 at oslo: reads table logs
    scan, aggregate
    SELECT min(logs.`id`) AS `low`, max(logs.`id`) AS `high` FROM logs AS logs
    because logs is there; its least and greatest id go ahead, so fewer rows travel
    → edge 2 to bergen, through the driver (~1 row, 16 B)
fragment 2 at tromso: reads table logs
    scan, aggregate
    SELECT min(logs.`id`) AS `low`, max(logs.`id`) AS `high` FROM logs AS logs
    because logs is there; its least and greatest id go ahead, so fewer rows travel
    → edge 2 to bergen, through the driver (~1 row, 16 B)
fragment 3 at bergen: reads table visits; table logs; edge 2 from oslo, tromso
    scan, join, union, aggregate
    SELECT /*+ BROADCAST(key_1) */ visits.`v_key`, visits.`v_note` FROM visits AS visits LEFT SEMI JOIN (SELECT min(`low`) AS `low`, max(`high`) AS `high` FROM (SELECT min(logs.`id`) AS `low`, max(logs.`id`) AS `high` FROM logs AS logs UNION ALL SELECT `low`, `high` FROM edge_2) AS bounds) AS key_1 ON visits.`v_key` BETWEEN key_1.`low` AND key_1.`high`
    because visits is there; rows whose v_key is outside of logs.id are not sent
    → edge 1 to oslo (~59 rows, 1.9 KiB)
fragment 4 at bergen: reads table logs
    scan
    SELECT logs.`id`, logs.`cost` FROM logs AS logs
    because logs is there
    → edge 3 to oslo (~2,000,000 rows, 45.8 MiB)
fragment 5 at tromso: reads table logs
    scan
    SELECT logs.`id`, logs.`cost` FROM logs AS logs
    because logs is there
    → edge 3 to oslo (~3,000,000 rows, 68.7 MiB)
fragment 6 at oslo: reads edge 1 from bergen; table logs; edge 3 from bergen, tromso
    scan, join, union
    SELECT /*+ BROADCAST(`visits`) */ v_note, cost FROM edge_1 AS visits JOIN (SELECT `id`, `cost` FROM logs UNION ALL SELECT `id`, `cost` FROM edge_3) AS logs ON v_key = id
    because the links take ~9.6 s, ~102 s at tromso
    → edge 4 to oslo (~29,999,970 rows, 1.1 GiB)
finish at oslo: gather edge 4 from oslo
*/

-- case: bounds that two tables are held against come to their member once
-- at: bergen
-- rules: filters,ranges
SELECT a.k_note, b.k_note FROM visits JOIN clicks AS a ON v_key = a.k_key JOIN clicks AS b ON v_key = b.k_key WHERE a.k_small < 500000 AND b.k_small > 500000 AND a.k_note = b.k_note
/*
plan, result at bergen
fragment 1 at bergen: reads table visits
    scan, aggregate
    SELECT min(visits.`v_key`) AS `low`, max(visits.`v_key`) AS `high` FROM visits AS visits
    because visits is there; its least and greatest v_key go ahead, so fewer rows travel
    → edge 2 to tromso, through the driver (~1 row, 16 B)
fragment 2 at tromso: reads table clicks; edge 2 from bergen
    scan, filter, join, aggregate
    SELECT /*+ BROADCAST(key_1) */ a.`k_key`, a.`k_note` FROM clicks AS a LEFT SEMI JOIN (SELECT min(`low`) AS `low`, max(`high`) AS `high` FROM (SELECT `low`, `high` FROM edge_2) AS bounds) AS key_1 ON a.`k_key` BETWEEN key_1.`low` AND key_1.`high` WHERE a.k_small < 500000
    because clicks is there; rows whose k_key is outside of visits.v_key are not sent
    → edge 1 to bergen (~363,639 rows, 11.1 MiB)
fragment 3 at tromso: reads table clicks; edge 2 from bergen
    scan, filter, join, aggregate
    SELECT /*+ BROADCAST(key_2) */ b.`k_key`, b.`k_note` FROM clicks AS b LEFT SEMI JOIN (SELECT min(`low`) AS `low`, max(`high`) AS `high` FROM (SELECT `low`, `high` FROM edge_2) AS bounds) AS key_2 ON b.`k_key` BETWEEN key_2.`low` AND key_2.`high` WHERE b.k_small > 500000
    because clicks is there; rows whose k_key is outside of visits.v_key are not sent
    → edge 3 to bergen (~363,639 rows, 11.1 MiB)
fragment 4 at bergen: reads table visits; edge 1 from tromso; edge 3 from tromso
    scan, filter, join
    SELECT a.k_note, b.k_note FROM visits AS visits JOIN edge_1 AS a ON v_key = a.k_key JOIN edge_3 AS b ON v_key = b.k_key WHERE a.k_note = b.k_note
    because the links take ~2.1 s, ~24 s at tromso
    → edge 4 to bergen (~9,090,882 rows, 277.4 MiB)
finish at bergen: gather edge 4 from bergen
*/
