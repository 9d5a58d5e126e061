-- case: everything at one site runs there whole
-- at: bergen
SELECT c_name, n_name FROM customer JOIN nation ON c_nation = n_id WHERE n_name = 'NORWAY'
/*
plan, result at bergen
fragment 1 at bergen: reads table customer; table nation
    scan, filter, join
    SELECT c_name, n_name FROM customer AS customer JOIN nation AS nation ON c_nation = n_id WHERE n_name = 'NORWAY'
    → edge 1 to bergen (~100 rows, 4.7 KiB)
finish at bergen: gather edge 1 from bergen
*/

-- case: no table runs at the initiator
-- at: tromso
SELECT 1 + 1 AS two
/*
plan, result at tromso
fragment 1 at tromso: reads nothing
    values
    SELECT 1 + 1 AS two
    → edge 1 to tromso, through the driver (~1 row, 16 B)
finish at tromso: gather edge 1 from tromso
*/

-- case: no table and a lite initiator runs at the first data member
-- at: front
SELECT 1 + 1 AS two
/*
plan, result at front
fragment 1 at oslo: reads nothing
    values
    SELECT 1 + 1 AS two
    → edge 1 to front, through the driver (~1 row, 16 B)
finish at front: gather edge 1 from oslo
*/

-- case: a lite initiator only receives
-- at: front
SELECT c_name FROM customer
/*
plan, result at front
fragment 1 at bergen: reads table customer
    scan
    SELECT c_name FROM customer AS customer
    → edge 1 to front (~150,000 rows, 3.4 MiB)
finish at front: gather edge 1 from bergen
*/

-- case: one part of a logical table
-- at: oslo
SELECT id FROM bergen.events
/*
plan, result at oslo
fragment 1 at bergen: reads table events
    scan
    SELECT id FROM events AS events
    → edge 1 to oslo (~5,000 rows, 39.1 KiB)
finish at oslo: gather edge 1 from bergen
*/

-- case: a table function needs no site
-- at: bergen
SELECT id FROM range(10)
/*
plan, result at bergen
fragment 1 at bergen: reads nothing
    scan
    SELECT id FROM range(10)
    → edge 1 to bergen (~1,000 rows, 15.6 KiB)
finish at bergen: gather edge 1 from bergen
*/

-- case: one site, sorted lanes
SELECT o_id, o_total FROM orders ORDER BY o_total DESC, o_id NULLS LAST
/*
plan, result at oslo
fragment 1 at oslo: reads table orders
    scan, sort
    SELECT o_id, o_total FROM orders AS orders SORT BY o_total DESC, o_id NULLS LAST
    → edge 1 to oslo, lanes merged in order (~1,500,000 rows, 34.3 MiB)
finish at oslo: gather edge 1 from oslo
*/

-- case: brackets around the whole are none
(SELECT o_id FROM orders ORDER BY o_id)
/*
plan, result at oslo
fragment 1 at oslo: reads table orders
    scan, sort
    SELECT o_id FROM orders AS orders SORT BY o_id
    → edge 1 to oslo, lanes merged in order (~1,500,000 rows, 11.4 MiB)
finish at oslo: gather edge 1 from oslo
*/
