-- case: tables that are spread alike are joined where their rows are
-- rules: colocated
SELECT s.item, kind, qty FROM stock AS s JOIN moves AS m ON s.item = m.item WHERE day > 5
/*
plan, result at oslo
fragment 1 at oslo: reads table stock; table moves
    scan, filter, join
    SELECT s.item, kind, qty FROM stock AS s JOIN moves AS m ON s.item = m.item WHERE day > 5
    because stock and moves are spread alike, so rows with equal keys are there
    → edge 1 to oslo (~200,000 rows, 4.6 MiB)
fragment 2 at bergen: reads table stock; table moves
    scan, filter, join
    SELECT s.item, kind, qty FROM stock AS s JOIN moves AS m ON s.item = m.item WHERE day > 5
    because stock and moves are spread alike, so rows with equal keys are there
    → edge 1 to oslo (~200,000 rows, 4.6 MiB)
fragment 3 at tromso: reads table stock; table moves
    scan, filter, join
    SELECT s.item, kind, qty FROM stock AS s JOIN moves AS m ON s.item = m.item WHERE day > 5
    because stock and moves are spread alike, so rows with equal keys are there
    → edge 1 to oslo (~200,000 rows, 4.6 MiB)
finish at oslo: gather edge 1 from oslo, bergen, tromso
*/

-- case: groups of the key are whole at a member, and a copy is at each
-- rules: colocated
-- at: bergen
SELECT m.item, label, count(DISTINCT day) AS days FROM moves AS m LEFT JOIN stock AS s ON m.item = s.item LEFT JOIN kinds ON kind = id GROUP BY m.item, label HAVING sum(qty) > 3
/*
plan, result at bergen
fragment 1 at oslo: reads table moves; table stock; table kinds
    scan, filter, join, aggregate
    SELECT m.item, label, count(DISTINCT day) AS days FROM moves AS m LEFT JOIN stock AS s ON m.item = s.item LEFT JOIN kinds AS kinds ON kind = id GROUP BY m.item, label HAVING sum(qty) > 3
    because moves and stock are spread alike, so rows with equal keys are there; kinds is copied there
    → edge 1 to bergen (~1 row, 56 B)
fragment 2 at bergen: reads table moves; table stock; table kinds
    scan, filter, join, aggregate
    SELECT m.item, label, count(DISTINCT day) AS days FROM moves AS m LEFT JOIN stock AS s ON m.item = s.item LEFT JOIN kinds AS kinds ON kind = id GROUP BY m.item, label HAVING sum(qty) > 3
    because moves and stock are spread alike, so rows with equal keys are there; kinds is copied there
    → edge 1 to bergen (~1 row, 56 B)
fragment 3 at tromso: reads table moves; table stock; table kinds
    scan, filter, join, aggregate
    SELECT m.item, label, count(DISTINCT day) AS days FROM moves AS m LEFT JOIN stock AS s ON m.item = s.item LEFT JOIN kinds AS kinds ON kind = id GROUP BY m.item, label HAVING sum(qty) > 3
    because moves and stock are spread alike, so rows with equal keys are there; kinds is copied there
    → edge 1 to bergen (~1 row, 56 B)
finish at bergen: gather edge 1 from oslo, bergen, tromso
*/

-- case: other groups are merged
-- rules: colocated, aggregates
SELECT kind, sum(qty) AS n FROM stock JOIN moves ON stock.item = moves.item GROUP BY kind
/*
plan, result at oslo
fragment 1 at oslo: reads table moves; table stock
    scan, join, aggregate, sort
    SELECT kind, sum(qty) AS n FROM stock AS stock JOIN moves AS moves ON stock.item = moves.item GROUP BY kind SORT BY 1
    because moves and stock are spread alike, so rows with equal keys are there
    → edge 1 to oslo, lanes merged in order (~2,000 rows, 23.4 KiB)
fragment 2 at bergen: reads table moves; table stock
    scan, join, aggregate, sort
    SELECT kind, sum(qty) AS n FROM stock AS stock JOIN moves AS moves ON stock.item = moves.item GROUP BY kind SORT BY 1
    because moves and stock are spread alike, so rows with equal keys are there
    → edge 1 to oslo, lanes merged in order (~2,000 rows, 23.4 KiB)
fragment 3 at tromso: reads table moves; table stock
    scan, join, aggregate, sort
    SELECT kind, sum(qty) AS n FROM stock AS stock JOIN moves AS moves ON stock.item = moves.item GROUP BY kind SORT BY 1
    because moves and stock are spread alike, so rows with equal keys are there
    → edge 1 to oslo, lanes merged in order (~2,000 rows, 23.4 KiB)
finish at oslo: merge, aggregate edge 1 from oslo, bergen, tromso
*/

-- case: EXISTS asks about the own key
-- rules: colocated
-- at: front
SELECT item, cost FROM stock AS s WHERE NOT EXISTS (SELECT 1 FROM moves AS m WHERE m.item = s.item AND day > kind)
/*
plan, result at front
fragment 1 at oslo: reads table stock; table moves
    scan, filter
    SELECT item, cost FROM stock AS s WHERE NOT EXISTS (SELECT 1 FROM moves AS m WHERE m.item = s.item AND day > kind)
    because stock and moves are spread alike, so rows with equal keys are there
    → edge 1 to front (~10,000 rows, 234.4 KiB)
fragment 2 at bergen: reads table stock; table moves
    scan, filter
    SELECT item, cost FROM stock AS s WHERE NOT EXISTS (SELECT 1 FROM moves AS m WHERE m.item = s.item AND day > kind)
    because stock and moves are spread alike, so rows with equal keys are there
    → edge 1 to front (~10,000 rows, 234.4 KiB)
fragment 3 at tromso: reads table stock; table moves
    scan, filter
    SELECT item, cost FROM stock AS s WHERE NOT EXISTS (SELECT 1 FROM moves AS m WHERE m.item = s.item AND day > kind)
    because stock and moves are spread alike, so rows with equal keys are there
    → edge 1 to front (~10,000 rows, 234.4 KiB)
finish at front: gather edge 1 from oslo, bergen, tromso
*/

-- case: other columns than the key are equal at several members
-- rules: all
SELECT s.item, qty FROM stock AS s JOIN moves AS m ON s.kind = m.day
/*
plan, result at oslo
fragment 1 at bergen: reads table stock
    scan
    SELECT s.`item`, s.`kind` FROM stock AS s
    because stock is there
    → edge 1 to oslo (~20,000 rows, 234.4 KiB)
fragment 2 at tromso: reads table stock
    scan
    SELECT s.`item`, s.`kind` FROM stock AS s
    because stock is there
    → edge 1 to oslo (~20,000 rows, 234.4 KiB)
fragment 3 at bergen: reads table moves
    scan
    SELECT m.`day`, m.`qty` FROM moves AS m
    because moves is there
    → edge 2 to oslo (~900,000 rows, 6.9 MiB)
fragment 4 at tromso: reads table moves
    scan
    SELECT m.`day`, m.`qty` FROM moves AS m
    because moves is there
    → edge 2 to oslo (~900,000 rows, 6.9 MiB)
fragment 5 at oslo: reads table stock; edge 1 from bergen, tromso; table moves; edge 2 from bergen, tromso
    scan, join, union
    SELECT /*+ BROADCAST(`s`) */ s.item, qty FROM (SELECT `item`, `kind` FROM stock UNION ALL SELECT `item`, `kind` FROM edge_1) AS s JOIN (SELECT `day`, `qty` FROM moves UNION ALL SELECT `day`, `qty` FROM edge_2) AS m ON s.kind = m.day
    because the links take ~1.2 s, ~2.9 s at bergen; tables of our own are not joined where they are: a join does not equate all columns of DISTRIBUTED BY (item)
    → edge 3 to oslo (~1,800,000 rows, 20.6 MiB)
finish at oslo: gather edge 3 from oslo
*/
