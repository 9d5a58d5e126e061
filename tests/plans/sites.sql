-- case: two sites, the rest where most bytes are, the small side named to the join
SELECT c_name, sum(o_total) AS total FROM orders JOIN customer ON o_cust = c_id GROUP BY c_name
/*
plan, result at oslo
fragment 1 at bergen: reads table customer
    scan
    SELECT `c_id`, `c_name` FROM customer
    → edge 1 to oslo (~150,000 rows, 4.6 MiB)
fragment 2 at oslo: reads table orders; edge 1 from bergen
    scan, join, aggregate
    SELECT /*+ BROADCAST(`customer`) */ c_name, sum(o_total) AS total FROM orders AS orders JOIN edge_1 AS customer ON o_cust = c_id GROUP BY c_name
    → edge 2 to oslo (~15,000 rows, 585.9 KiB)
finish at oslo: gather edge 2 from oslo
*/

-- case: three sites
-- at: bergen
SELECT n_name, sum(l_price) AS revenue
FROM lineitem JOIN orders ON l_order = o_id JOIN customer ON o_cust = c_id JOIN nation ON c_nation = n_id
WHERE o_date >= DATE '1995-01-01' AND n_name <> 'NORWAY'
GROUP BY n_name ORDER BY revenue DESC
/*
plan, result at bergen
fragment 1 at oslo: reads table orders
    scan, filter
    SELECT `o_id`, `o_cust`, `o_date` FROM orders WHERE o_date >= DATE '1995-01-01'
    → edge 1 to tromso (~500,000 rows, 9.5 MiB)
fragment 2 at bergen: reads table customer
    scan
    SELECT `c_id`, `c_nation` FROM customer
    → edge 2 to tromso (~150,000 rows, 1.7 MiB)
fragment 3 at bergen: reads table nation
    scan, filter
    SELECT `n_id`, `n_name` FROM nation WHERE n_name != 'NORWAY'
    → edge 3 to tromso, through the driver (~15 rows, 420 B)
fragment 4 at tromso: reads table lineitem; edge 1 from oslo; edge 2 from bergen; edge 3 from bergen
    scan, filter, join, aggregate, sort
    SELECT /*+ BROADCAST(`orders`, `customer`, `nation`) */ n_name, sum(l_price) AS revenue FROM lineitem AS lineitem JOIN edge_1 AS orders ON l_order = o_id JOIN edge_2 AS customer ON o_cust = c_id JOIN edge_3 AS nation ON c_nation = n_id WHERE o_date >= DATE '1995-01-01' AND n_name != 'NORWAY' GROUP BY n_name SORT BY revenue DESC
    → edge 4 to bergen, lanes merged in order (~2 rows, 99 B)
finish at bergen: gather edge 4 from tromso
*/

-- case: a tie goes to the member named first in the configuration
-- at: tromso
SELECT a.id FROM bergen.mixed AS a JOIN tromso.mixed AS b ON a.id = b.id
/*
plan, result at tromso
fragment 1 at tromso: reads table mixed
    scan
    SELECT `id` FROM mixed
    → edge 1 to bergen, through the driver (~10 rows, 80 B)
fragment 2 at bergen: reads table Mixed; edge 1 from tromso
    scan, join
    SELECT /*+ BROADCAST(`b`) */ a.id FROM Mixed AS a JOIN edge_1 AS b ON a.id = b.id
    → edge 2 to tromso (~100 rows, 1.6 KiB)
finish at tromso: gather edge 2 from bergen
*/

-- case: the same table twice with equal filters is brought once
-- at: bergen
SELECT a.c_name, b.c_name FROM orders JOIN customer AS a ON o_cust = a.c_id JOIN customer AS b ON o_id = b.c_id
/*
plan, result at bergen
fragment 1 at bergen: reads table customer
    scan
    SELECT `c_id`, `c_name` FROM customer
    → edge 1 to oslo (~150,000 rows, 4.6 MiB)
fragment 2 at oslo: reads table orders; edge 1 from bergen
    scan, join
    SELECT /*+ BROADCAST(`a`, `b`) */ a.c_name, b.c_name FROM orders AS orders JOIN edge_1 AS a ON o_cust = a.c_id JOIN edge_1 AS b ON o_id = b.c_id
    → edge 2 to bergen (~1,500,000 rows, 45.8 MiB)
finish at bergen: gather edge 2 from oslo
*/

-- case: the same table twice with different filters is brought twice
SELECT a.c_name, b.c_name FROM orders JOIN customer AS a ON o_cust = a.c_id JOIN customer AS b ON o_id = b.c_id
WHERE a.c_nation = 1 AND b.c_nation = 2
/*
plan, result at oslo
fragment 1 at bergen: reads table customer
    scan, filter
    SELECT `c_id`, `c_name`, `c_nation` FROM customer WHERE c_nation = 1
    → edge 1 to oslo (~1,500 rows, 52.7 KiB)
fragment 2 at bergen: reads table customer
    scan, filter
    SELECT `c_id`, `c_name`, `c_nation` FROM customer WHERE c_nation = 2
    → edge 2 to oslo (~1,500 rows, 52.7 KiB)
fragment 3 at oslo: reads table orders; edge 1 from bergen; edge 2 from bergen
    scan, filter, join
    SELECT /*+ BROADCAST(`a`, `b`) */ a.c_name, b.c_name FROM orders AS orders JOIN edge_1 AS a ON o_cust = a.c_id JOIN edge_2 AS b ON o_id = b.c_id WHERE a.c_nation = 1 AND b.c_nation = 2
    → edge 3 to oslo (~150 rows, 4.7 KiB)
finish at oslo: gather edge 3 from oslo
*/

-- case: equal filters, different columns
SELECT a.*, b.c_id FROM orders JOIN customer AS a ON o_cust = a.c_id JOIN customer AS b ON o_id = b.c_id
/*
plan, result at oslo
fragment 1 at bergen: reads table customer
    scan
    SELECT `c_id`, `c_name`, `c_nation` FROM customer
    → edge 1 to oslo (~150,000 rows, 5.1 MiB)
fragment 2 at oslo: reads table orders; edge 1 from bergen
    scan, join
    SELECT /*+ BROADCAST(`a`, `b`) */ a.*, b.c_id FROM orders AS orders JOIN edge_1 AS a ON o_cust = a.c_id JOIN edge_1 AS b ON o_id = b.c_id
    → edge 2 to oslo (~1,500,000 rows, 85.8 MiB)
finish at oslo: gather edge 2 from oslo
*/

-- case: parameters stay in the text by name
-- parameters: ['1995-01-01', 7]
SELECT c_name FROM orders JOIN customer ON o_cust = c_id WHERE o_date < CAST(? AS DATE) AND c_nation = ?
/*
plan, result at oslo
fragment 1 at bergen: reads table customer
    scan, filter
    SELECT `c_id`, `c_name`, `c_nation` FROM customer WHERE c_nation = :p1
    → edge 1 to oslo (~1,500 rows, 52.7 KiB)
fragment 2 at oslo: reads table orders; edge 1 from bergen
    scan, filter, join
    SELECT /*+ BROADCAST(`customer`) */ c_name FROM orders AS orders JOIN edge_1 AS customer ON o_cust = c_id WHERE o_date < CAST(:p0 AS DATE) AND c_nation = :p1
    → edge 2 to oslo (~5,000 rows, 117.2 KiB)
finish at oslo: gather edge 2 from oslo
*/

-- case: a correlated subquery
SELECT o_id FROM orders WHERE EXISTS (SELECT * FROM customer WHERE c_id = o_cust AND c_nation = 3)
/*
plan, result at oslo
fragment 1 at bergen: reads table customer
    scan, filter
    SELECT `c_id`, `c_nation` FROM customer WHERE c_nation = 3
    → edge 1 to oslo (~1,500 rows, 17.6 KiB)
fragment 2 at oslo: reads table orders; edge 1 from bergen
    scan, filter
    SELECT o_id FROM orders AS orders WHERE EXISTS (SELECT * FROM edge_1 AS customer WHERE c_id = o_cust AND c_nation = 3)
    → edge 2 to oslo (~750,000 rows, 5.7 MiB)
finish at oslo: gather edge 2 from oslo
*/

-- case: a table of another site in a scalar subquery
SELECT o_id, (SELECT max(c_name) FROM customer WHERE c_id = o_cust) AS name FROM orders WHERE o_total > 10
/*
plan, result at oslo
fragment 1 at bergen: reads table customer
    scan
    SELECT `c_id`, `c_name` FROM customer
    → edge 1 to oslo (~150,000 rows, 4.6 MiB)
fragment 2 at oslo: reads edge 1 from bergen; table orders
    scan, filter, aggregate
    SELECT o_id, (SELECT max(c_name) FROM edge_1 AS customer WHERE c_id = o_cust) AS name FROM orders AS orders WHERE o_total > 10
    → edge 2 to oslo (~500,000 rows, 11.4 MiB)
finish at oslo: gather edge 2 from oslo
*/

-- case: a WITH query, named like a table, is itself
WITH customer AS (SELECT n_id AS c_id FROM nation) SELECT o_id FROM orders JOIN customer ON o_cust = c_id
/*
plan, result at oslo
fragment 1 at bergen: reads table nation
    scan
    SELECT `n_id` FROM nation
    → edge 1 to oslo, through the driver (~25 rows, 100 B)
fragment 2 at oslo: reads edge 1 from bergen; table orders
    scan, join
    WITH customer AS (SELECT n_id AS c_id FROM edge_1 AS nation) SELECT o_id FROM orders AS orders JOIN customer ON o_cust = c_id
    → edge 2 to oslo (~1,500,000 rows, 11.4 MiB)
finish at oslo: gather edge 2 from oslo
*/

-- case: a WITH query that has the name of a scan
WITH scan_0 AS (SELECT n_id FROM nation) SELECT o_id FROM orders JOIN scan_0 ON o_cust = n_id
/*
plan, result at oslo
fragment 1 at bergen: reads table nation
    scan
    SELECT `n_id` FROM nation
    → edge 1 to oslo, through the driver (~25 rows, 100 B)
fragment 2 at oslo: reads edge 1 from bergen; table orders
    scan, join
    WITH scan_0 AS (SELECT n_id FROM edge_1 AS nation) SELECT o_id FROM orders AS orders JOIN scan_0 ON o_cust = n_id
    → edge 2 to oslo (~1,500,000 rows, 11.4 MiB)
finish at oslo: gather edge 2 from oslo
*/

-- case: an outer join keeps its rows
SELECT c_name, o_id FROM customer LEFT JOIN orders ON c_id = o_cust AND o_total > 5 WHERE c_nation = 1
/*
plan, result at oslo
fragment 1 at bergen: reads table customer
    scan, filter
    SELECT `c_id`, `c_name`, `c_nation` FROM customer WHERE c_nation = 1
    → edge 1 to oslo (~1,500 rows, 52.7 KiB)
fragment 2 at oslo: reads edge 1 from bergen; table orders
    scan, filter, join
    SELECT /*+ BROADCAST(`customer`) */ c_name, o_id FROM edge_1 AS customer LEFT JOIN orders AS orders ON c_id = o_cust AND o_total > 5 WHERE c_nation = 1
    → edge 2 to oslo (~5,000 rows, 156.2 KiB)
finish at oslo: gather edge 2 from oslo
*/
