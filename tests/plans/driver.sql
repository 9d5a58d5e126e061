-- case: a global aggregate returns through the driver
SELECT count(*) AS n, max(amount) AS most FROM events
/*
plan, result at oslo
fragment 1 at oslo: reads table events
    SELECT `amount` FROM events
    → edge 1 to bergen (~1000 rows, 7.8 KiB)
fragment 2 at tromso: reads table events
    SELECT `amount` FROM events
    → edge 1 to bergen (~3000 rows, 23.4 KiB)
fragment 3 at bergen: reads table events; edge 1 from oslo, tromso
    SELECT count(*) AS n, max(amount) AS most FROM (SELECT `amount` FROM events UNION ALL SELECT `amount` FROM edge_1) AS events
    → edge 2 to oslo, through the driver
finish at oslo: gather edge 2 from bergen
*/

-- case: also with HAVING, at one site
SELECT sum(o_total) AS total FROM orders HAVING sum(o_total) > 10
/*
plan, result at oslo
fragment 1 at oslo: reads table orders
    SELECT sum(o_total) AS total FROM orders AS orders HAVING sum(o_total) > 10
    → edge 1 to oslo, through the driver
finish at oslo: gather edge 1 from oslo
*/

-- case: a small limit returns through the driver
SELECT c_name, o_id FROM orders JOIN customer ON o_cust = c_id LIMIT 20
/*
plan, result at oslo
fragment 1 at bergen: reads table customer
    SELECT `c_id`, `c_name` FROM customer
    → edge 1 to oslo (~150000 rows, 4.6 MiB)
fragment 2 at oslo: reads table orders; edge 1 from bergen
    SELECT /*+ BROADCAST(`customer`) */ c_name, o_id FROM orders AS orders JOIN edge_1 AS customer ON o_cust = c_id LIMIT 20
    → edge 2 to oslo, through the driver
finish at oslo: gather edge 2 from oslo
*/

-- case: a limit over a star whose columns are not counted
SELECT * FROM orders JOIN customer ON o_cust = c_id LIMIT 20
/*
plan, result at oslo
fragment 1 at bergen: reads table customer
    SELECT `c_id`, `c_name`, `c_nation` FROM customer
    → edge 1 to oslo (~150000 rows, 5.1 MiB)
fragment 2 at oslo: reads table orders; edge 1 from bergen
    SELECT /*+ BROADCAST(`customer`) */ * FROM orders AS orders JOIN edge_1 AS customer ON o_cust = c_id LIMIT 20
    → edge 2 to oslo, through the driver
finish at oslo: gather edge 2 from oslo
*/

-- case: a limit of many rows does not
SELECT c_name, o_id FROM orders JOIN customer ON o_cust = c_id LIMIT 5000
/*
plan, result at oslo
fragment 1 at bergen: reads table customer
    SELECT `c_id`, `c_name` FROM customer
    → edge 1 to oslo (~150000 rows, 4.6 MiB)
fragment 2 at oslo: reads table orders; edge 1 from bergen
    SELECT /*+ BROADCAST(`customer`) */ c_name, o_id FROM orders AS orders JOIN edge_1 AS customer ON o_cust = c_id LIMIT 5000
    → edge 2 to oslo
finish at oslo: gather edge 2 from oslo
*/

-- case: a window is one value a row
SELECT sum(o_total) OVER (PARTITION BY o_cust) AS running FROM orders
/*
plan, result at oslo
fragment 1 at oslo: reads table orders
    SELECT sum(o_total) OVER (PARTITION BY o_cust) AS running FROM orders AS orders
    → edge 1 to oslo
finish at oslo: gather edge 1 from oslo
*/
