-- case: the quick direction brings orders to lineitem
-- rules: filters
-- links:
--   - {from: oslo, to: tromso, mbit: 1000}
--   - {from: tromso, to: oslo, mbit: 0.1}
SELECT count(*) AS n FROM orders JOIN lineitem ON o_cust = l_qty
/*
plan, result at oslo
fragment 1 at oslo: reads table orders
    scan
    SELECT orders.`o_cust` FROM orders AS orders
    because orders is there
    → edge 1 to tromso (~1,500,000 rows, 11.4 MiB)
fragment 2 at tromso: reads edge 1 from oslo; table lineitem
    scan, join, aggregate
    SELECT count(*) AS n FROM edge_1 AS orders JOIN lineitem AS lineitem ON o_cust = l_qty
    because the links take ~0.22 s, ~1920 s at oslo
    → edge 2 to oslo, through the driver, zstd (~1 row, 16 B)
finish at oslo: gather edge 2 from tromso
*/

-- case: and the other one lineitem to orders
-- rules: filters
-- links:
--   - {from: oslo, to: tromso, mbit: 0.1}
--   - {from: tromso, to: oslo, mbit: 1000}
SELECT count(*) AS n FROM orders JOIN lineitem ON o_cust = l_qty
/*
plan, result at oslo
fragment 1 at tromso: reads table lineitem
    scan
    SELECT lineitem.`l_qty` FROM lineitem AS lineitem
    because lineitem is there
    → edge 1 to oslo (~6,000,000 rows, 22.9 MiB)
fragment 2 at oslo: reads table orders; edge 1 from tromso
    scan, join, aggregate
    SELECT count(*) AS n FROM orders AS orders JOIN edge_1 AS lineitem ON o_cust = l_qty
    because the links take ~0.19 s, ~960 s at tromso
    → edge 2 to oslo, through the driver (~1 row, 16 B)
finish at oslo: gather edge 2 from oslo
*/

-- case: of links that cost nothing the one with the fewest bytes is used
-- rules: filters
-- at: bergen
-- links:
--   - {between: [oslo, bergen], mbit: 100}
--   - {between: [bergen, tromso], mbit: 100}
--   - {between: [oslo, tromso], mbit: 100}
SELECT max(o_note) AS m FROM orders JOIN lineitem ON o_id = l_order AND l_price > o_total
/*
plan, result at bergen
fragment 1 at oslo: reads table orders
    scan
    SELECT orders.`o_id`, orders.`o_total`, orders.`o_note` FROM orders AS orders
    because orders is there
    → edge 1 to tromso, zstd (~1,500,000 rows, 68.7 MiB)
fragment 2 at tromso: reads edge 1 from oslo; table lineitem
    scan, join, aggregate
    SELECT max(o_note) AS m FROM edge_1 AS orders JOIN lineitem AS lineitem ON o_id = l_order AND l_price > o_total
    because the links take ~5.8 s, ~12 s at oslo
    → edge 2 to bergen, through the driver, zstd (~1 row, 16 B)
finish at bergen: gather edge 2 from tromso
*/

-- case: rows go round a dear link
-- rules: filters
-- at: bergen
-- links:
--   - {between: [oslo, bergen], mbit: 100}
--   - {between: [bergen, tromso], mbit: 100}
--   - {from: oslo, to: tromso, mbit: 120, usd_per_gb: 50}
--   - {from: tromso, to: oslo, mbit: 10}
SELECT max(o_note) AS m FROM orders JOIN lineitem ON o_id = l_order AND l_price > o_total
/*
plan, result at bergen
fragment 1 at oslo: reads table orders
    scan
    SELECT orders.`o_id`, orders.`o_total`, orders.`o_note` FROM orders AS orders
    because orders is there
    → edge 1 to tromso, by way of bergen, zstd (~1,500,000 rows, 68.7 MiB)
fragment 2 at tromso: reads edge 1 from oslo; table lineitem
    scan, join, aggregate
    SELECT max(o_note) AS m FROM edge_1 AS orders JOIN lineitem AS lineitem ON o_id = l_order AND l_price > o_total
    because the links take ~12 s, ~17 s at bergen
    → edge 2 to bergen, through the driver, zstd (~1 row, 16 B)
finish at bergen: gather edge 2 from tromso
*/

-- case: where there is no way round it more rows travel the other way
-- rules: filters
-- links:
--   - {from: oslo, to: tromso, mbit: 100, usd_per_gb: 50}
--   - {from: tromso, to: oslo, mbit: 100}
SELECT max(o_note) AS m FROM orders JOIN lineitem ON o_id = l_order AND l_price > o_total
/*
plan, result at oslo
fragment 1 at tromso: reads table lineitem
    scan
    SELECT lineitem.`l_order`, lineitem.`l_price` FROM lineitem AS lineitem
    because lineitem is there
    → edge 1 to oslo, zstd (~6,000,000 rows, 137.3 MiB)
fragment 2 at oslo: reads table orders; edge 1 from tromso
    scan, join, aggregate
    SELECT max(o_note) AS m FROM orders AS orders JOIN edge_1 AS lineitem ON o_id = l_order AND l_price > o_total
    because the links take ~12 s, ~5.8 s and $3.60 at tromso
    → edge 2 to oslo, through the driver (~1 row, 16 B)
finish at oslo: gather edge 2 from oslo
*/

-- case: a relay passes rows on
-- rules: all
-- links:
--   - {between: [oslo, front], mbit: 200}
--   - {between: [front, tromso], mbit: 200, ms: 5}
SELECT o_note, l_qty FROM orders JOIN lineitem ON o_id = l_order WHERE o_total = 3
/*
plan, result at oslo
fragment 1 at oslo: reads table orders
    scan, filter, distinct
    SELECT DISTINCT orders.`o_id` FROM orders AS orders WHERE o_total = 3
    because orders is there; its keys go ahead, so fewer rows travel
    → edge 2 to tromso, by way of front, zstd (~14,342 rows, 112.1 KiB)
fragment 2 at tromso: reads table lineitem; edge 2 from oslo
    scan, join
    SELECT /*+ BROADCAST(key_1) */ lineitem.`l_order`, lineitem.`l_qty` FROM lineitem AS lineitem LEFT SEMI JOIN (SELECT `o_id` FROM edge_2) AS key_1 ON lineitem.`l_order` = key_1.`o_id`
    because lineitem is there; rows without a match in orders are not sent
    → edge 1 to oslo, by way of front, zstd (~143,426 rows, 1.6 MiB)
fragment 3 at oslo: reads table orders; edge 1 from tromso
    scan, filter, join
    SELECT /*+ BROADCAST(`lineitem`) */ o_note, l_qty FROM orders AS orders JOIN edge_1 AS lineitem ON o_id = l_order WHERE o_total = 3
    because the links take ~0.17 s, ~0.38 s at tromso
    → edge 3 to oslo (~150,000 rows, 4.0 MiB)
finish at oslo: gather edge 3 from oslo
*/

-- case: two quick links are a better way than a slow one
-- rules: filters
-- at: tromso
-- links:
--   - {between: [oslo, tromso], mbit: 1}
--   - {between: [oslo, bergen], mbit: 100}
--   - {between: [bergen, tromso], mbit: 100}
SELECT l_qty FROM orders JOIN lineitem ON o_id = l_order WHERE o_total = 3
/*
plan, result at tromso
fragment 1 at oslo: reads table orders
    scan, filter
    SELECT orders.`o_id` FROM orders AS orders WHERE o_total = 3
    because orders is there
    → edge 1 to tromso, by way of bergen, zstd (~15,000 rows, 117.2 KiB)
fragment 2 at tromso: reads edge 1 from oslo; table lineitem
    scan, join
    SELECT /*+ BROADCAST(`orders`) */ l_qty FROM edge_1 AS orders JOIN lineitem AS lineitem ON o_id = l_order
    because the links take ~0.019 s, ~5.8 s at bergen
    → edge 2 to tromso (~150,000 rows, 585.9 KiB)
finish at tromso: gather edge 2 from tromso
*/

-- case: a lite initiator runs nothing, the result comes to it
-- rules: all
-- at: front
-- links:
--   - {between: [oslo, bergen], mbit: 100}
--   - {between: [bergen, front], mbit: 10}
SELECT c_name, o_total FROM customer JOIN orders ON o_cust = c_id WHERE c_nation = 3
/*
plan, result at front
fragment 1 at bergen: reads table customer
    scan, filter, distinct
    SELECT DISTINCT customer.`c_id` FROM customer AS customer WHERE c_nation = 3
    because customer is there; its keys go ahead, so fewer rows travel
    → edge 2 to oslo, zstd (~1,434 rows, 11.2 KiB)
fragment 2 at oslo: reads table orders; edge 2 from bergen
    scan, join
    SELECT /*+ BROADCAST(key_1) */ orders.`o_cust`, orders.`o_total` FROM orders AS orders LEFT SEMI JOIN (SELECT `c_id` FROM edge_2) AS key_1 ON orders.`o_cust` = key_1.`c_id`
    because orders is there; rows without a match in customer are not sent
    → edge 1 to bergen, zstd (~14,342 rows, 336.2 KiB)
fragment 3 at bergen: reads table customer; edge 1 from oslo
    scan, filter, join
    SELECT /*+ BROADCAST(`orders`) */ c_name, o_total FROM customer AS customer JOIN edge_1 AS orders ON o_cust = c_id WHERE c_nation = 3
    because the links take ~0.52 s, ~0.53 s at oslo
    → edge 3 to front, zstd (~15,000 rows, 585.9 KiB)
finish at front: gather edge 3 from bergen
*/

-- case: by cost a join runs where the most rows are, away from the initiator
-- rules: filters
-- at: tromso
-- links:
--   - {between: [oslo, bergen], mbit: 10, ms: 5}
--   - {between: [bergen, tromso], mbit: 20}
SELECT count(*) AS n FROM orders JOIN customer ON o_cust = c_id
/*
plan, result at tromso
fragment 1 at bergen: reads table customer
    scan
    SELECT customer.`c_id` FROM customer AS customer
    because customer is there
    → edge 1 to oslo, zstd (~150,000 rows, 1.1 MiB)
fragment 2 at oslo: reads table orders; edge 1 from bergen
    scan, join, aggregate
    SELECT /*+ BROADCAST(`customer`) */ count(*) AS n FROM orders AS orders JOIN edge_1 AS customer ON o_cust = c_id
    because the links take ~0.97 s, ~9.6 s at bergen
    → edge 2 to tromso, through the driver, by way of bergen, zstd (~1 row, 16 B)
finish at tromso: gather edge 2 from oslo
*/

-- case: bottom-up the same runs where the rows of both meet first
-- rules: filters
-- strategy: bottom-up
-- at: tromso
-- links:
--   - {between: [oslo, bergen], mbit: 10, ms: 5}
--   - {between: [bergen, tromso], mbit: 20}
SELECT count(*) AS n FROM orders JOIN customer ON o_cust = c_id
/*
plan, result at tromso
fragment 1 at oslo: reads table orders
    scan
    SELECT orders.`o_cust` FROM orders AS orders
    because orders is there
    → edge 1 to bergen, zstd (~1,500,000 rows, 11.4 MiB)
fragment 2 at bergen: reads edge 1 from oslo; table customer
    scan, join, aggregate
    SELECT count(*) AS n FROM edge_1 AS orders JOIN customer AS customer ON o_cust = c_id
    because all its rows pass bergen on their way to tromso
    → edge 2 to tromso, through the driver, zstd (~1 row, 16 B)
finish at tromso: gather edge 2 from bergen
*/

-- case: bottom-up without a member between them it is the initiator
-- rules: filters
-- strategy: bottom-up
-- links:
--   - {between: [oslo, tromso], mbit: 1000}
--   - {between: [oslo, bergen], mbit: 10}
SELECT c_name, l_qty FROM customer JOIN lineitem ON l_order = c_id
/*
plan, result at oslo
fragment 1 at bergen: reads table customer
    scan
    SELECT customer.`c_id`, customer.`c_name` FROM customer AS customer
    because customer is there
    → edge 1 to oslo, zstd (~150,000 rows, 4.6 MiB)
fragment 2 at tromso: reads table lineitem
    scan
    SELECT lineitem.`l_order`, lineitem.`l_qty` FROM lineitem AS lineitem
    because lineitem is there
    → edge 2 to oslo (~6,000,000 rows, 68.7 MiB)
fragment 3 at oslo: reads edge 1 from bergen; edge 2 from tromso
    scan, join
    SELECT /*+ BROADCAST(`customer`) */ c_name, l_qty FROM edge_1 AS customer JOIN edge_2 AS lineitem ON l_order = c_id
    because all its rows come to oslo, where the result goes
    → edge 3 to oslo (~1,500,000 rows, 40.1 MiB)
finish at oslo: gather edge 3 from oslo
*/

-- case: a member with room runs what it has keys for, and the rest
-- rules: all
-- strategy: bottom-up
-- links:
--   - {between: [oslo, bergen], mbit: 10, ms: 5}
--   - {between: [bergen, tromso], mbit: 20}
SELECT c_id, l_qty FROM customer, lineitem WHERE l_order = c_id AND c_name = 'x'
/*
plan, result at oslo
fragment 1 at bergen: reads table customer
    scan, filter, distinct
    SELECT DISTINCT customer.`c_id` FROM customer AS customer WHERE c_name = 'x'
    because customer is there; its keys go ahead, so fewer rows travel
    → edge 2 to tromso, zstd (~1,434 rows, 11.2 KiB)
fragment 2 at tromso: reads table lineitem; edge 2 from bergen
    scan, join
    SELECT /*+ BROADCAST(key_1) */ lineitem.`l_order`, lineitem.`l_qty` FROM lineitem AS lineitem LEFT SEMI JOIN (SELECT `c_id` FROM edge_2) AS key_1 ON lineitem.`l_order` = key_1.`c_id`
    because lineitem is there; rows without a match in customer are not sent
    → edge 1 to bergen, zstd (~14,342 rows, 168.1 KiB)
fragment 3 at bergen: reads table customer; edge 1 from tromso
    scan, filter, join
    SELECT /*+ BROADCAST(`lineitem`) */ c_id, l_qty FROM customer AS customer, edge_1 AS lineitem WHERE l_order = c_id AND c_name = 'x'
    because all its rows pass bergen on their way to oslo
    → edge 3 to oslo, zstd (~15,000 rows, 175.8 KiB)
finish at oslo: gather edge 3 from bergen
*/

-- case: a full one is passed over on the way to the initiator
-- rules: all
-- strategy: bottom-up
-- capacity: {bergen: 1}
-- links:
--   - {between: [oslo, bergen], mbit: 10, ms: 5}
--   - {between: [bergen, tromso], mbit: 20}
SELECT c_id, l_qty FROM customer, lineitem WHERE l_order = c_id AND c_name = 'x'
/*
plan, result at oslo
fragment 1 at bergen: reads table customer
    scan, filter
    SELECT customer.`c_id` FROM customer AS customer WHERE c_name = 'x'
    because customer is there
    → edge 1 to oslo, zstd (~1,500 rows, 11.7 KiB)
fragment 2 at bergen: reads table customer
    scan, filter, distinct
    SELECT DISTINCT customer.`c_id` FROM customer AS customer WHERE c_name = 'x'
    because customer is there; its keys go ahead, so fewer rows travel
    → edge 3 to tromso, zstd (~1,434 rows, 11.2 KiB)
fragment 3 at tromso: reads table lineitem; edge 3 from bergen
    scan, join
    SELECT /*+ BROADCAST(key_1) */ lineitem.`l_order`, lineitem.`l_qty` FROM lineitem AS lineitem LEFT SEMI JOIN (SELECT `c_id` FROM edge_3) AS key_1 ON lineitem.`l_order` = key_1.`c_id`
    because lineitem is there; rows without a match in customer are not sent
    → edge 2 to oslo, by way of bergen, zstd (~14,342 rows, 168.1 KiB)
fragment 4 at oslo: reads edge 1 from bergen; edge 2 from tromso
    scan, filter, join
    SELECT /*+ BROADCAST(`customer`, `lineitem`) */ c_id, l_qty FROM edge_1 AS customer, edge_2 AS lineitem WHERE l_order = c_id
    because all its rows come to oslo, where the result goes; bergen would be chosen, but there is no room at bergen
    → edge 4 to oslo (~15,000 rows, 175.8 KiB)
finish at oslo: gather edge 4 from oslo
*/

-- case: of two queries that a member has no room for one is answered on the way
-- at: tromso
-- rules: all
-- capacity: {oslo: 1}
-- links:
--   - {between: [oslo, bergen], mbit: 10, ms: 5}
--   - {between: [bergen, tromso], mbit: 20}
SELECT l_qty, a.n, b.m FROM lineitem JOIN (SELECT o_cust, count(*) AS n FROM orders GROUP BY o_cust) AS a ON a.o_cust = l_order JOIN (SELECT o_date, max(o_id) AS m FROM orders GROUP BY o_date) AS b ON b.m = l_order
/*
plan, result at tromso
fragment 1 at oslo: reads table orders
    scan, aggregate
    SELECT b.`m` FROM (SELECT o_date, max(o_id) AS m FROM orders AS orders GROUP BY o_date) AS b
    because its tables are there
    → edge 1 to tromso, by way of bergen, zstd (~150,000 rows, 1.1 MiB)
fragment 2 at oslo: reads table orders
    scan
    SELECT orders.`o_cust` FROM orders AS orders
    because orders is there
    → edge 3 to bergen, zstd (~1,500,000 rows, 11.4 MiB)
fragment 3 at bergen: reads edge 3 from oslo
    scan, aggregate
    SELECT a.`o_cust`, a.`n` FROM (SELECT o_cust, count(*) AS n FROM edge_3 AS orders GROUP BY o_cust) AS a
    because no room at oslo for a: answered at bergen, on the way to tromso; ~150,000 rows travel instead of ~1,500,000
    → edge 2 to tromso, zstd (~150,000 rows, 2.3 MiB)
fragment 4 at tromso: reads table lineitem; edge 1 from oslo; edge 2 from bergen
    scan, join
    SELECT /*+ BROADCAST(`a`, `b`) */ l_qty, a.n, b.m FROM lineitem AS lineitem JOIN edge_2 AS a ON a.o_cust = l_order JOIN edge_1 AS b ON b.m = l_order
    because the links take ~13 s, ~71 s at bergen; no room at oslo for a
    → edge 4 to tromso (~1,500,000 rows, 40.1 MiB)
finish at tromso: gather edge 4 from tromso
*/

-- case: bottom-up too, and a lite member on the way answers nothing
-- at: tromso
-- rules: all
-- strategy: bottom-up
-- capacity: {oslo: 1}
-- links:
--   - {between: [oslo, front], mbit: 10, ms: 5}
--   - {between: [front, bergen], mbit: 10, ms: 5}
--   - {between: [bergen, tromso], mbit: 20}
SELECT l_qty, a.n, b.m FROM lineitem JOIN (SELECT o_cust, count(*) AS n FROM orders GROUP BY o_cust) AS a ON a.o_cust = l_order JOIN (SELECT o_date, max(o_id) AS m FROM orders GROUP BY o_date) AS b ON b.m = l_order
/*
plan, result at tromso
fragment 1 at oslo: reads table orders
    scan, aggregate
    SELECT b.`m` FROM (SELECT o_date, max(o_id) AS m FROM orders AS orders GROUP BY o_date) AS b
    because its tables are there
    → edge 1 to tromso, by way of front, bergen, zstd (~150,000 rows, 1.1 MiB)
fragment 2 at oslo: reads table orders
    scan
    SELECT orders.`o_cust` FROM orders AS orders
    because orders is there
    → edge 3 to bergen, by way of front, zstd (~1,500,000 rows, 11.4 MiB)
fragment 3 at bergen: reads edge 3 from oslo
    scan, aggregate
    SELECT a.`o_cust`, a.`n` FROM (SELECT o_cust, count(*) AS n FROM edge_3 AS orders GROUP BY o_cust) AS a
    because no room at oslo for a: answered at bergen, on the way to tromso; ~150,000 rows travel instead of ~1,500,000
    → edge 2 to tromso, zstd (~150,000 rows, 2.3 MiB)
fragment 4 at tromso: reads table lineitem; edge 1 from oslo; edge 2 from bergen
    scan, join
    SELECT /*+ BROADCAST(`a`, `b`) */ l_qty, a.n, b.m FROM lineitem AS lineitem JOIN edge_2 AS a ON a.o_cust = l_order JOIN edge_1 AS b ON b.m = l_order
    because all its rows come to tromso, where the result goes; no room at oslo for a
    → edge 4 to tromso (~1,500,000 rows, 40.1 MiB)
finish at tromso: gather edge 4 from tromso
*/

-- case: what the next member has no room for either goes on to the rest
-- at: tromso
-- rules: all
-- strategy: bottom-up
-- capacity: {oslo: 1, bergen: 1}
-- links:
--   - {between: [oslo, bergen], mbit: 10, ms: 5}
--   - {between: [bergen, tromso], mbit: 20}
SELECT l_qty, a.n, b.m FROM lineitem JOIN (SELECT o_cust, count(*) AS n FROM orders GROUP BY o_cust) AS a ON a.o_cust = l_order JOIN (SELECT kind, max(id) AS m FROM oslo.events GROUP BY kind) AS b ON b.m = l_order JOIN (SELECT s_cust, max(s_id) AS x FROM oslo.sales GROUP BY s_cust) AS c ON c.s_cust = l_qty
/*
plan, result at tromso
fragment 1 at oslo: reads table events
    scan
    SELECT events.`id`, events.`kind` FROM events AS events
    because events is there
    → edge 1 to tromso, through the driver, by way of bergen, zstd (~1,000 rows, 31.2 KiB)
fragment 2 at oslo: reads table sales
    scan, aggregate
    SELECT c.`s_cust` FROM (SELECT s_cust, max(s_id) AS x FROM sales AS sales GROUP BY s_cust) AS c
    because its tables are there
    → edge 2 to tromso, by way of bergen, zstd (~5,000,000 rows, 38.1 MiB)
fragment 3 at oslo: reads table orders
    scan
    SELECT orders.`o_cust` FROM orders AS orders
    because orders is there
    → edge 4 to bergen, zstd (~1,500,000 rows, 11.4 MiB)
fragment 4 at bergen: reads edge 4 from oslo
    scan, aggregate
    SELECT a.`o_cust`, a.`n` FROM (SELECT o_cust, count(*) AS n FROM edge_4 AS orders GROUP BY o_cust) AS a
    because no room at oslo for a: answered at bergen, on the way to tromso; ~150,000 rows travel instead of ~1,500,000
    → edge 3 to tromso, zstd (~150,000 rows, 2.3 MiB)
fragment 5 at tromso: reads table lineitem; edge 1 from oslo; edge 2 from oslo; edge 3 from bergen
    scan, filter, join, aggregate
    SELECT /*+ BROADCAST(`a`) */ l_qty, a.n, b.m FROM lineitem AS lineitem, edge_3 AS a, (SELECT kind, max(id) AS m FROM edge_1 AS events GROUP BY kind) AS b, edge_2 AS c WHERE a.o_cust = l_order AND b.m = l_order AND c.s_cust = l_qty
    because all its rows come to tromso, where the result goes; no room at oslo for b; no room at oslo for a
    → edge 5 to tromso (~6,000,000 rows, 206.0 MiB)
finish at tromso: gather edge 5 from tromso
*/

-- case: a join and its groups are made at the next member
-- at: tromso
-- rules: all
-- strategy: bottom-up
-- capacity: {bergen: 1}
-- links:
--   - {between: [bergen, oslo], mbit: 10, ms: 5}
--   - {between: [oslo, tromso], mbit: 20}
SELECT l_qty, a.s, b.m FROM lineitem JOIN (SELECT n_name, sum(c_id) AS s FROM customer JOIN nation ON c_nation = n_id WHERE n_id > 3 GROUP BY n_name) AS a ON a.s = l_order JOIN (SELECT c_name, min(c_id) AS m FROM customer GROUP BY c_name) AS b ON b.m = l_qty
/*
plan, result at tromso
fragment 1 at bergen: reads table customer
    scan, aggregate
    SELECT b.`m` FROM (SELECT c_name, min(c_id) AS m FROM customer AS customer GROUP BY c_name) AS b
    because its tables are there
    → edge 1 to tromso, by way of oslo, zstd (~15,000 rows, 117.2 KiB)
fragment 2 at bergen: reads table customer; table nation
    scan, filter, join
    SELECT /*+ BROADCAST(key_1) */ customer.`c_id`, customer.`c_nation` FROM customer AS customer LEFT SEMI JOIN (SELECT nation.`n_id` FROM nation AS nation WHERE n_id > 3) AS key_1 ON customer.`c_nation` = key_1.`n_id` WHERE (customer.`c_nation` > 3)
    because customer is there; rows without a match in nation are not sent
    → edge 3 to oslo, zstd (~10 rows, 120 B)
fragment 3 at bergen: reads table nation
    scan, filter
    SELECT nation.`n_id`, nation.`n_name` FROM nation AS nation WHERE n_id > 3
    because nation is there
    → edge 4 to oslo, through the driver, zstd (~8 rows, 233 B)
fragment 4 at oslo: reads edge 3 from bergen; edge 4 from bergen
    scan, join, aggregate
    SELECT a.`s` FROM (SELECT /*+ BROADCAST(`customer`, `nation`) */ n_name, sum(c_id) AS s FROM edge_3 AS customer JOIN edge_4 AS nation ON c_nation = n_id GROUP BY n_name) AS a
    because no room at bergen for a: answered at oslo, on the way to tromso; ~2 rows travel instead of ~18
    → edge 2 to tromso, zstd (~2 rows, 16 B)
fragment 5 at tromso: reads table lineitem; edge 1 from bergen; edge 2 from oslo
    scan, join
    SELECT /*+ BROADCAST(`a`, `b`) */ l_qty, a.s, b.m FROM lineitem AS lineitem JOIN edge_2 AS a ON a.s = l_order JOIN edge_1 AS b ON b.m = l_qty
    because all its rows come to tromso, where the result goes; no room at bergen for a
    → edge 5 to tromso (~150,000 rows, 4.0 MiB)
finish at tromso: gather edge 5 from tromso
*/

-- case: a member beside the way is not asked
-- at: tromso
-- rules: all
-- strategy: bottom-up
-- capacity: {oslo: 1}
-- links:
--   - {between: [oslo, bergen], mbit: 1000}
--   - {between: [oslo, tromso], mbit: 20}
--   - {between: [bergen, tromso], mbit: 1}
SELECT l_qty, a.n, b.m FROM lineitem JOIN (SELECT o_cust, count(*) AS n FROM orders GROUP BY o_cust) AS a ON a.o_cust = l_order JOIN (SELECT o_date, max(o_id) AS m FROM orders GROUP BY o_date) AS b ON b.m = l_order
/*
plan, result at tromso
fragment 1 at oslo: reads table orders
    scan
    SELECT orders.`o_cust` FROM orders AS orders
    because orders is there
    → edge 1 to tromso, zstd (~1,500,000 rows, 11.4 MiB)
fragment 2 at oslo: reads table orders
    scan, aggregate
    SELECT b.`m` FROM (SELECT o_date, max(o_id) AS m FROM orders AS orders GROUP BY o_date) AS b
    because its tables are there
    → edge 2 to tromso, zstd (~150,000 rows, 1.1 MiB)
fragment 3 at tromso: reads table lineitem; edge 1 from oslo; edge 2 from oslo
    scan, filter, join, aggregate
    SELECT /*+ BROADCAST(`b`) */ l_qty, a.n, b.m FROM lineitem AS lineitem, (SELECT o_cust, count(*) AS n FROM edge_1 AS orders GROUP BY o_cust) AS a, edge_2 AS b WHERE a.o_cust = l_order AND b.m = l_order
    because all its rows come to tromso, where the result goes; no room at oslo for a
    → edge 3 to tromso (~1,500,000 rows, 40.1 MiB)
finish at tromso: gather edge 3 from tromso
*/

-- case: answers of subqueries move on likewise
-- at: tromso
-- rules: all
-- strategy: bottom-up
-- capacity: {oslo: 1}
-- links:
--   - {between: [oslo, bergen], mbit: 10, ms: 5}
--   - {between: [bergen, tromso], mbit: 20}
SELECT l_order FROM lineitem WHERE l_price > (SELECT avg(o_total) FROM orders) AND l_qty < (SELECT count(DISTINCT s_cust) FROM oslo.sales)
/*
plan, result at tromso
fragment 1 at oslo: reads table sales
    scan, aggregate
    SELECT answer_2.`answer_2_1` FROM (SELECT count(DISTINCT s_cust) FROM sales AS sales) AS answer_2(answer_2_1)
    because its tables are there; the subquery is answered once
    → edge 1 to tromso, by way of bergen, zstd (~1 row, 8 B)
fragment 2 at oslo: reads table orders
    scan
    SELECT orders.`o_total` FROM orders AS orders
    because orders is there
    → edge 3 to bergen, zstd (~1,500,000 rows, 22.9 MiB)
fragment 3 at bergen: reads edge 3 from oslo
    scan, aggregate
    SELECT CAST(answer_1.`answer_1_1` AS DECIMAL(19, 6)) AS `answer_1_1` FROM (SELECT avg(o_total) FROM edge_3 AS orders) AS answer_1(answer_1_1)
    because no room at oslo for answer_1: answered at bergen, on the way to tromso; ~1 row travels instead of ~1,500,000; the subquery is answered once
    → edge 2 to tromso, zstd (~1 row, 16 B)
fragment 4 at tromso: reads table lineitem; edge 1 from oslo; edge 2 from bergen
    scan, filter
    SELECT l_order FROM lineitem AS lineitem WHERE l_price > (SELECT answer_1.answer_1_1 FROM edge_2 AS answer_1) AND l_qty < (SELECT answer_2.answer_2_1 FROM edge_1 AS answer_2)
    because all its rows come to tromso, where the result goes; no room at oslo for answer_1
    → edge 4 to tromso (~1,500,000 rows, 11.4 MiB)
finish at tromso: gather edge 4 from tromso
*/

-- case: a job that others wait for is no money, and a link that no row takes costs none
-- at: tromso
-- rules: all
-- capacity: {oslo: 1}
-- links:
--   - {between: [oslo, bergen], mbit: 10, ms: 5}
--   - {between: [bergen, tromso], mbit: 20}
--   - {between: [bergen, front], mbit: 20, usd_per_gb: 0.1}
SELECT l_qty, a.n, b.m FROM lineitem JOIN (SELECT o_cust, count(*) AS n FROM orders GROUP BY o_cust) AS a ON a.o_cust = l_order JOIN (SELECT o_date, max(o_id) AS m FROM orders GROUP BY o_date) AS b ON b.m = l_order
/*
plan, result at tromso
fragment 1 at oslo: reads table orders
    scan, aggregate
    SELECT b.`m` FROM (SELECT o_date, max(o_id) AS m FROM orders AS orders GROUP BY o_date) AS b
    because its tables are there
    → edge 1 to tromso, by way of bergen, zstd (~150,000 rows, 1.1 MiB)
fragment 2 at oslo: reads table orders
    scan
    SELECT orders.`o_cust` FROM orders AS orders
    because orders is there
    → edge 3 to bergen, zstd (~1,500,000 rows, 11.4 MiB)
fragment 3 at bergen: reads edge 3 from oslo
    scan, aggregate
    SELECT a.`o_cust`, a.`n` FROM (SELECT o_cust, count(*) AS n FROM edge_3 AS orders GROUP BY o_cust) AS a
    because no room at oslo for a: answered at bergen, on the way to tromso; ~150,000 rows travel instead of ~1,500,000
    → edge 2 to tromso, zstd (~150,000 rows, 2.3 MiB)
fragment 4 at tromso: reads table lineitem; edge 1 from oslo; edge 2 from bergen
    scan, join
    SELECT /*+ BROADCAST(`a`, `b`) */ l_qty, a.n, b.m FROM lineitem AS lineitem JOIN edge_2 AS a ON a.o_cust = l_order JOIN edge_1 AS b ON b.m = l_order
    because the links take ~13 s, ~71 s at bergen; no room at oslo for a
    → edge 4 to tromso (~1,500,000 rows, 40.1 MiB)
finish at tromso: gather edge 4 from tromso
*/

-- case: over the slow links of a star two tables are joined before the third
-- rules: all
-- links:
--   - {between: [oslo, front], mbit: 10, ms: 20}
--   - {between: [bergen, front], mbit: 10, ms: 20}
--   - {from: front, to: tromso, mbit: 5, ms: 40, usd_per_gb: 0.1}
--   - {from: tromso, to: front, mbit: 1, ms: 40, usd_per_gb: 0.1}
SELECT l_price FROM lineitem, orders, customer WHERE l_order = o_id AND o_cust = c_id AND c_nation = 3 AND o_total = 7
/*
plan, result at oslo
fragment 1 at bergen: reads table customer
    scan, filter
    SELECT customer.`c_id` FROM customer AS customer WHERE c_nation = 3
    because customer is there
    → edge 2 to oslo, by way of front, zstd (~1,500 rows, 11.7 KiB)
fragment 2 at oslo: reads table orders; edge 2 from bergen
    scan, filter, join
    SELECT joined_0.`o_id` FROM (SELECT /*+ BROADCAST(`customer`) */ orders.`o_id` AS `o_id` FROM orders AS orders, edge_2 AS customer WHERE orders.`o_cust` = customer.`c_id` AND orders.`o_total` = 7) AS joined_0
    because orders, customer are joined there before they travel
    → edge 1 to tromso, by way of front, zstd (~150 rows, 1.2 KiB)
fragment 3 at tromso: reads table lineitem; edge 1 from oslo
    scan, filter, join
    SELECT /*+ BROADCAST(`joined_0`) */ l_price FROM lineitem AS lineitem, edge_1 AS joined_0 WHERE l_order = o_id
    because the links take ~0.41 s and less than $0.01, ~0.51 s and less than $0.01 at oslo
    → edge 3 to oslo, by way of front, zstd (~1,500 rows, 23.4 KiB)
finish at oslo: gather edge 3 from tromso
*/

-- case: over the slow links of a star keys go first where joins may not
-- rules: filters,semijoin
-- links:
--   - {between: [oslo, front], mbit: 10, ms: 20}
--   - {between: [bergen, front], mbit: 10, ms: 20}
--   - {from: front, to: tromso, mbit: 5, ms: 40, usd_per_gb: 0.1}
--   - {from: tromso, to: front, mbit: 1, ms: 40, usd_per_gb: 0.1}
SELECT o_id, l_price FROM lineitem, orders, customer WHERE l_order = o_id AND o_cust = c_id AND c_nation = 3 AND o_total = 7
/*
plan, result at oslo
fragment 1 at bergen: reads table customer
    scan, filter
    SELECT customer.`c_id` FROM customer AS customer WHERE c_nation = 3
    because customer is there
    → edge 1 to oslo, by way of front, zstd (~1,500 rows, 11.7 KiB)
fragment 2 at oslo: reads table orders; edge 1 from bergen
    scan, filter, join, distinct
    SELECT /*+ BROADCAST(key_1) */ DISTINCT orders.`o_id` FROM orders AS orders LEFT SEMI JOIN (SELECT `c_id` FROM edge_1) AS key_1 ON orders.`o_cust` = key_1.`c_id` WHERE o_total = 7
    because orders is there; rows without a match in customer are not sent; its keys go ahead, so fewer rows travel
    → edge 3 to tromso, by way of front, zstd (~143 rows, 1.1 KiB)
fragment 3 at tromso: reads table lineitem; edge 3 from oslo
    scan, join
    SELECT /*+ BROADCAST(key_2) */ lineitem.`l_order`, lineitem.`l_price` FROM lineitem AS lineitem LEFT SEMI JOIN (SELECT `o_id` FROM edge_3) AS key_2 ON lineitem.`l_order` = key_2.`o_id`
    because lineitem is there; rows without a match in orders are not sent
    → edge 2 to oslo, by way of front, zstd (~1,433 rows, 33.6 KiB)
fragment 4 at oslo: reads edge 1 from bergen; edge 2 from tromso; table orders
    scan, filter, join
    SELECT /*+ BROADCAST(`lineitem`, `customer`) */ o_id, l_price FROM edge_2 AS lineitem, orders AS orders, edge_1 AS customer WHERE l_order = o_id AND o_cust = c_id AND o_total = 7
    because the links take ~0.51 s and less than $0.01, ~0.62 s and less than $0.01 at tromso
    → edge 4 to oslo (~1,500 rows, 35.2 KiB)
finish at oslo: gather edge 4 from oslo
*/

-- case: both sides go to a third member
-- rules: all
-- at: bergen
-- links:
--   - {between: [oslo, bergen], mbit: 1000}
--   - {between: [tromso, bergen], mbit: 1000}
SELECT o_note, l_price FROM orders JOIN lineitem ON o_cust = l_qty
/*
plan, result at bergen
fragment 1 at oslo: reads table orders
    scan
    SELECT orders.`o_cust`, orders.`o_note` FROM orders AS orders
    because orders is there
    → edge 1 to bergen (~1,500,000 rows, 45.8 MiB)
fragment 2 at tromso: reads table lineitem
    scan
    SELECT lineitem.`l_qty`, lineitem.`l_price` FROM lineitem AS lineitem
    because lineitem is there
    → edge 2 to bergen (~6,000,000 rows, 114.4 MiB)
fragment 3 at bergen: reads edge 1 from oslo; edge 2 from tromso
    scan, join
    SELECT o_note, l_price FROM edge_1 AS orders JOIN edge_2 AS lineitem ON o_cust = l_qty
    because the links take ~1.3 s, ~5.6 s at tromso
    → edge 3 to bergen (~15,000,000 rows, 572.2 MiB)
finish at bergen: gather edge 3 from bergen
*/

-- case: both sides go to a third member that nobody asked
-- rules: filters
-- at: front
-- links:
--   - {from: oslo, to: bergen, mbit: 1000}
--   - {from: tromso, to: bergen, mbit: 1000}
--   - {from: bergen, to: oslo, mbit: 1}
--   - {from: bergen, to: tromso, mbit: 1}
--   - {between: [bergen, front], mbit: 1}
SELECT count(*) AS n FROM orders JOIN lineitem ON o_cust = l_qty AND l_price > o_total
/*
plan, result at front
fragment 1 at oslo: reads table orders
    scan
    SELECT orders.`o_cust`, orders.`o_total` FROM orders AS orders
    because orders is there
    → edge 1 to bergen (~1,500,000 rows, 34.3 MiB)
fragment 2 at tromso: reads table lineitem
    scan
    SELECT lineitem.`l_qty`, lineitem.`l_price` FROM lineitem AS lineitem
    because lineitem is there
    → edge 2 to bergen (~6,000,000 rows, 114.4 MiB)
fragment 3 at bergen: reads edge 1 from oslo; edge 2 from tromso
    scan, join, aggregate
    SELECT count(*) AS n FROM edge_1 AS orders JOIN edge_2 AS lineitem ON o_cust = l_qty AND l_price > o_total
    because the links take ~1.3 s, ~288 s at tromso
    → edge 3 to front, through the driver, zstd (~1 row, 16 B)
finish at front: gather edge 3 from bergen
*/
