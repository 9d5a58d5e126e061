-- literals
-- strings
SELECT 'a', "b", '', "", 'it''s', "say ""x""", 'a "b" c', "it's";
-- string escapes
SELECT 'a\'b', 'tab\t', 'nl\n', 'back\\slash', '\0', '\b', '\r', '\Z', '\%', '\_', '\q', 'a\
b';
-- unicode and octal escapes
SELECT '\u0041', '\U00000041', '\u00e9', '\101', '\041', 'é', '日本', '\u65e5', '\uD83D\uDE00', '😀';
-- raw strings
SELECT r'a\b', R"c\n", r'\d+', r'', r"it's";
-- adjacent strings
SELECT 'a' 'b', 'x' "y" 'z';
-- dollar in strings
SELECT '${env:HOME}', '$', '$$', '{x}', '${';
-- several lines in a string
SELECT 'one
two', "three
four";
-- integers
SELECT 1, 0, 007, 2147483647, 2147483648, -2147483648, -9223372036854775808, 123456789012345678901234567890;
-- integer suffixes
SELECT 1L, 1l, 1S, 1s, 1Y, 1y, -1L, -128Y;
-- decimals
SELECT 1.0, .5, 5., 1.50, 12345.67890, 0.1BD, 1BD, 1.5bd, -1.5;
-- doubles and floats
SELECT 1e3, 1E-3, 1.5e+10, .5e2, 1D, 1.5d, 1F, 1.5f, 1e3D, 1e3f, 1e3BD;
-- booleans and null
SELECT true, FALSE, null, NULL;
-- binary
SELECT X'1F', x'', X'abcdef', X "1f";
-- typed literals
SELECT DATE '2024-01-31', date'2024-01-31', TIMESTAMP '2024-01-31 10:00:00', TIMESTAMP_NTZ '2024-01-31 10:00:00', TIMESTAMP_LTZ'2024-01-31 10:00:00Z';
-- time literal
SELECT TIME '10:20:30';
-- intervals, units
SELECT INTERVAL 1 DAY, INTERVAL '1' DAY, INTERVAL 3 MONTHS, INTERVAL -1 YEAR, INTERVAL '2' WEEK, INTERVAL 1.5 SECONDS, INTERVAL - '3' HOURS, INTERVAL +2 DAYS;
-- intervals, several units
SELECT INTERVAL 1 YEAR 2 MONTHS, INTERVAL 1 DAY 2 HOURS 3 MINUTES, INTERVAL 1 DAY -2 HOURS;
-- intervals, unit to unit
SELECT INTERVAL '1-2' YEAR TO MONTH, INTERVAL '1 02:03:04.5' DAY TO SECOND, INTERVAL '2:3' HOUR TO MINUTE, INTERVAL -'1-2' YEAR TO MONTH;
-- intervals as strings
SELECT INTERVAL '1 day 2 hours', INTERVAL '3 months';
-- interval arithmetic
SELECT DATE '1998-12-01' - INTERVAL '90' DAY, d + INTERVAL 1 MONTH * 2 FROM t;
-- parameters
SELECT :a, :b + 1, x FROM t WHERE y = :c LIMIT :n;
-- positional parameters
SELECT ?, ? + 1, x FROM t WHERE y IN (?, ?);

-- operators
-- arithmetic
SELECT a + b, a - b, a * b, a / b, a % b, a DIV b, -a, +a, - -a, a - -b, -(-a), 2-1, 2 -1 FROM t;
-- precedence of arithmetic
SELECT a + b * c, (a + b) * c, a - b - c, a - (b - c), a / b / c, a * b % c DIV d, -a * b, -a + b, a + -b * c FROM t;
-- bits
SELECT a & b, a | b, a ^ b, ~a, a & b | c ^ d, ~a & b, a + b & c FROM t;
-- shifts
SELECT a << b, a >> b, a >>> b, a + b << c, a << b & c FROM t;
-- comparisons
SELECT a = b, a == b, a != b, a <> b, a < b, a <= b, a > b, a >= b, a <=> b, a !> b, a !< b FROM t;
-- precedence of comparisons
SELECT a = b = c, a + b = c, a | b = c, a < b AND c > d, NOT a = b FROM t;
-- booleans
SELECT a AND b OR c AND d, (a OR b) AND c, NOT a AND b, NOT (a AND b), ! a, NOT NOT a, a OR NOT b AND c FROM t;
-- concatenation
SELECT a || b || 'c', a || b + c, 'x' || a = b FROM t;
-- between
SELECT a BETWEEN 1 AND 2, a NOT BETWEEN 1 AND 2 AND b, NOT a BETWEEN b + 1 AND c * 2  FROM t;
-- in
SELECT a IN (1, 2), a NOT IN (1), (a, b) IN ((1, 2), (3, 4)), a + 1 IN (b), NOT a IN (1), a IN (b = c) FROM t;
-- like
SELECT a LIKE 'x%', a NOT LIKE '%_', a LIKE 'x\%', a LIKE b || '%', a ILIKE 'X%', a NOT ILIKE b, a LIKE '/%' ESCAPE '/', a NOT LIKE '!_' ESCAPE '!' FROM t;
-- like any, all, some
SELECT a LIKE ANY ('x%', 'y%'), a LIKE ALL ('x%', b), a NOT LIKE SOME ('x'), a NOT LIKE ALL ('x'), a ILIKE ANY ('X', 'Y') FROM t;
-- rlike
SELECT a RLIKE 'x.*', a NOT RLIKE '^a', a REGEXP 'b', a RLIKE r'\d+' FROM t;
-- is
SELECT a IS NULL, a IS NOT NULL, a IS TRUE, a IS NOT FALSE, a IS UNKNOWN, a IS NOT UNKNOWN, a = b IS NULL, NOT a IS NULL, a + b IS NOT NULL FROM t;
-- is distinct from
SELECT a IS DISTINCT FROM b, a IS NOT DISTINCT FROM b + 1, NOT a IS DISTINCT FROM b FROM t;
-- case
SELECT CASE WHEN a THEN 1 END, CASE WHEN a > 1 THEN 'x' WHEN b THEN 'y' ELSE 'z' END, CASE a WHEN 1 THEN 2 ELSE 3 END, CASE a + b WHEN 1 THEN CASE WHEN c THEN 1 END END FROM t;
-- cast
SELECT CAST(a AS INT), CAST(a AS STRING), cast(a + b AS decimal(10, 2)), TRY_CAST(a AS DATE), CAST(NULL AS DOUBLE), CAST('1' || b AS BIGINT) FROM t;
-- cast to every type
SELECT CAST(a AS BOOLEAN), CAST(a AS TINYINT), CAST(a AS BYTE), CAST(a AS SMALLINT), CAST(a AS SHORT), CAST(a AS INTEGER), CAST(a AS BIGINT), CAST(a AS LONG), CAST(a AS FLOAT), CAST(a AS REAL), CAST(a AS DOUBLE), CAST(a AS DATE), CAST(a AS TIMESTAMP), CAST(a AS TIMESTAMP_NTZ), CAST(a AS TIMESTAMP_LTZ), CAST(a AS BINARY), CAST(a AS DECIMAL), CAST(a AS DEC(5)), CAST(a AS NUMERIC(5, 2)), CAST(a AS CHAR(3)), CAST(a AS VARCHAR(10)), CAST(a AS VARIANT), CAST(a AS VOID) FROM t;
-- cast to nested types
SELECT CAST(a AS ARRAY<INT>), CAST(a AS MAP<STRING, ARRAY<DOUBLE>>), CAST(a AS STRUCT<x: INT, y STRING>), CAST(a AS STRUCT<x: ARRAY<STRUCT<y: INT NOT NULL>>, z: DATE COMMENT 'd'>), CAST(a AS ARRAY<ARRAY<ARRAY<INT>>>) FROM t;
-- cast to intervals
SELECT CAST(a AS INTERVAL YEAR), CAST(a AS INTERVAL YEAR TO MONTH), CAST(a AS INTERVAL DAY TO SECOND), CAST(a AS INTERVAL HOUR TO MINUTE), CAST(a AS INTERVAL) FROM t;
-- cast by colons
SELECT a::int, (a + b)::decimal(5, 2), '1'::int + 2, a.b::string, f(a)::date, a::int::string FROM t;
-- fields and items
SELECT a.b, a.b.c, a[0], a[b + 1], a['k'], a[0][1], a.b[0].c, f(x).y, f(x)[0].z, (a).b, a.b.c.d.e FROM t;
-- quoted names
SELECT `a b`, t.`c``d`, `select`, `a.b`.c FROM `t x` AS `y z`;
-- keywords as names
SELECT first, range, rows, any, window.start, t.order, t.select, date, timestamp, time, year, end, end + 1 end, CASE WHEN end > 1 THEN end ELSE a END end FROM t ORDER BY end;
-- star
SELECT *, t.*, a.b.*, count(*) FROM t;
-- star except
SELECT * EXCEPT (a), t.* EXCEPT (b, c.d) FROM t;
-- row constructor
SELECT (1, 2), (a, b) = (c, d), (1, 'x' AS y) FROM t;
-- aliases
SELECT a AS b, a b, a AS `b c`, a + 1 AS c, sum(a) total, a first FROM t;
-- several aliases
SELECT stack(2, 1, 2) AS (a), inline(x) AS (a, b) FROM t;
-- collation
SELECT a COLLATE UTF8_LCASE = 'x', max(a COLLATE UNICODE), collate(a, 'UNICODE') = 'x' FROM t;
-- collation of a type
SELECT CAST(a AS STRING COLLATE UTF8_LCASE) = 'x', a::STRING COLLATE UNICODE, TRY_CAST(b AS MAP<STRING, STRUCT<x: STRING COLLATE UNICODE_CI>>) FROM t;

-- calls
-- plain calls
SELECT f(), f(a), F(a, b), Sum(a), `f`(a), f(g(h(a))), left(a, 1), right(a, 1), first(a), any(a), exists(a, x -> x > 1) FROM t;
-- words as functions
SELECT if(a, b, c), nullif(a, b), coalesce(a, b), struct(a, b AS c), named_struct('a', 1), array(1, 2), map('a', 1), date('2024-01-01'), int(a), string(a), year(a), like(a, b), ilike(a, b), rlike(a, b), replace(a, b), char(65) FROM t;
-- named arguments
SELECT f(a => 1, b => c + 1), mask(a, lowerChar => 'q', otherChar => 'o') FROM t;
-- lambdas
SELECT transform(a, x -> x + 1), transform(a, (x, i) -> x + i), filter(a, x -> x.y > 1 AND x IS NOT NULL), aggregate(a, 0, (acc, x) -> acc + x, acc -> acc * 10) FROM t;
-- aggregates
SELECT count(*), count(1), count(DISTINCT a), count(DISTINCT a, b), sum(DISTINCT a), sum(ALL a), avg(a) FROM t;
-- filter
SELECT count(*) FILTER (WHERE a > 1), sum(a) FILTER (WHERE b IN (1, 2)) FROM t;
-- within group
SELECT percentile_cont(0.5) WITHIN GROUP (ORDER BY a), listagg(a, ',') WITHIN GROUP (ORDER BY a DESC NULLS LAST, b), mode() WITHIN GROUP (ORDER BY a) FROM t;
-- nulls
SELECT first(a IGNORE NULLS), last(a) IGNORE NULLS, any_value(a IGNORE NULLS), first_value(a) RESPECT NULLS OVER (ORDER BY b), lag(a) IGNORE NULLS OVER (ORDER BY b) FROM t;
-- extract
SELECT EXTRACT(YEAR FROM d), extract(month FROM d + INTERVAL 1 DAY), EXTRACT(SECOND FROM ts) FROM t;
-- trim
SELECT TRIM(a), TRIM(BOTH 'x' FROM a), TRIM(LEADING FROM a), TRIM(TRAILING b FROM a || c), TRIM('x' FROM a), trim(BOTH FROM a), trim(a, b), TRIM(FROM a) FROM t;
-- substring
SELECT SUBSTRING(a FROM 2), SUBSTRING(a FROM 2 FOR 3), substring(a, 2, 3), SUBSTR(a FROM b + 1 FOR c), substr(a, 1) FROM t;
-- position and overlay
SELECT POSITION('x' IN a), position('x', a), OVERLAY(a PLACING 'x' FROM 2), OVERLAY(a PLACING b FROM 2 FOR c), overlay(a, 'x', 2) FROM t;
-- units as arguments
SELECT dateadd(DAY, 1, d), date_add(MONTH, 1, d), datediff(HOUR, a, b), timestampadd(MINUTE, 5, ts), timestampdiff(YEAR, a, b), date_add(d, 1), datediff(a, b) FROM t;
-- no brackets
SELECT current_date, current_timestamp, CURRENT_DATE, current_timestamp() FROM t;
-- who asks
SELECT current_user, user, SESSION_USER, current_path, `current_path`, current_user(), user(), session_user(), current_catalog(), current_database(), current_schema(), current_path() FROM t;

-- windows
-- over
SELECT row_number() OVER (ORDER BY a), rank() OVER (PARTITION BY a, b ORDER BY c DESC NULLS LAST, d), sum(a) OVER (), count(*) OVER (PARTITION BY a) FROM t;
-- frames
SELECT sum(a) OVER (ORDER BY b ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW), sum(a) OVER (ORDER BY b ROWS 2 PRECEDING), sum(a) OVER (ORDER BY b RANGE BETWEEN 1 PRECEDING AND 1 FOLLOWING), sum(a) OVER (ORDER BY b RANGE BETWEEN INTERVAL 1 DAY PRECEDING AND CURRENT ROW), sum(a) OVER (ROWS BETWEEN 1 + 1 PRECEDING AND UNBOUNDED FOLLOWING), sum(a) OVER (ORDER BY b RANGE UNBOUNDED PRECEDING) FROM t;
-- named windows
SELECT sum(a) OVER w, avg(a) OVER (w), max(a) OVER v FROM t WINDOW w AS (PARTITION BY b ORDER BY c), v AS (ORDER BY d ROWS 1 PRECEDING);
-- named windows before ORDER BY
SELECT a, sum(a) OVER w FROM t WINDOW w AS (PARTITION BY b ORDER BY c) ORDER BY a LIMIT 3;
-- named windows behind ORDER BY
SELECT a, sum(a) OVER w FROM t ORDER BY a WINDOW w AS (PARTITION BY b ORDER BY c) LIMIT 3;
-- filter and over
SELECT count(*) FILTER (WHERE a) OVER (PARTITION BY b) FROM t;

-- queries
-- select
SELECT a FROM t WHERE b > 1 GROUP BY a HAVING count(*) > 2 ORDER BY a LIMIT 10 OFFSET 5;
-- without from
SELECT 1, 1 + 1 WHERE true;
-- an alias called from
SELECT a, count(*) FROM FROM t GROUP BY a;
-- distinct and all
SELECT DISTINCT a, b FROM t;
-- all
SELECT ALL a FROM t;
-- comments
SELECT /* one /* two */ */ a -- three
, b FROM t -- four
;
-- lower case
select a from t where b between 1 and 2 group by a order by a desc nulls first limit 1;
-- order by
SELECT a FROM t ORDER BY a ASC, b DESC, c NULLS LAST, d ASC NULLS FIRST, 1, a + b DESC NULLS LAST;
-- order by all
SELECT a, b FROM t ORDER BY ALL;
-- limit all
SELECT a FROM t LIMIT ALL;
-- limit of an expression
SELECT a FROM t LIMIT 1 + 1 OFFSET 2 * 3;
-- offset alone
SELECT a FROM t OFFSET 5;
-- sort by, distribute by
SELECT a FROM t DISTRIBUTE BY a, b SORT BY a DESC, b;
-- cluster by
SELECT a FROM t CLUSTER BY a;
-- group by
SELECT a, count(*) FROM t GROUP BY a, b + 1, 1, CASE WHEN c THEN 1 END;
-- group by all
SELECT a, count(*) FROM t GROUP BY ALL;
-- grouping sets
SELECT a, b, count(*) FROM t GROUP BY GROUPING SETS ((a, b), (a), a, ());
-- grouping sets after columns
SELECT a, b, count(*) FROM t GROUP BY a, b GROUPING SETS ((a, b), ());
-- rollup and cube
SELECT a, b, count(*) FROM t GROUP BY ROLLUP (a, b), CUBE (c, (d, e)), f;
-- with rollup
SELECT a, b, count(*) FROM t GROUP BY a, b WITH ROLLUP;
-- with cube
SELECT a, b, count(*) FROM t GROUP BY a, b WITH CUBE;
-- nested grouping sets
SELECT a, b, count(*), grouping(a), grouping_id() FROM t GROUP BY GROUPING SETS (ROLLUP (a, b), CUBE (a, c));
-- having
SELECT a FROM t GROUP BY a HAVING sum(b) > 1 AND a IS NOT NULL;
-- having without group
SELECT sum(a) FROM t HAVING sum(a) > 1;
-- lateral column alias
SELECT a + 1 AS b, b * 2 AS c FROM t;

-- set operations
-- union
SELECT a FROM t UNION SELECT a FROM u;
-- union all
SELECT a FROM t UNION ALL SELECT a FROM u UNION ALL SELECT a FROM v;
-- union distinct
SELECT a FROM t UNION DISTINCT SELECT a FROM u;
-- intersect, except
SELECT a FROM t INTERSECT SELECT a FROM u EXCEPT SELECT a FROM v;
-- precedence of intersect
SELECT a FROM t UNION SELECT a FROM u INTERSECT SELECT a FROM v EXCEPT ALL SELECT a FROM w;
-- minus
SELECT a FROM t MINUS SELECT a FROM u;
-- intersect all, except all
SELECT a FROM t INTERSECT ALL SELECT a FROM u EXCEPT ALL SELECT a FROM v;
-- set operations in brackets
(SELECT a FROM t) UNION (SELECT a FROM u ORDER BY a LIMIT 1) ORDER BY a LIMIT 2;
-- set operations, nested
SELECT a FROM t UNION ALL (SELECT a FROM u EXCEPT (SELECT a FROM v));
-- order by of a union
SELECT a FROM t UNION ALL SELECT b FROM u ORDER BY 1 DESC LIMIT 3 OFFSET 1;
-- order by of an intersect
SELECT a FROM t INTERSECT SELECT b FROM u ORDER BY 1 DESC LIMIT 3 OFFSET 1;
-- order by of an except
SELECT a FROM t EXCEPT SELECT b FROM u ORDER BY 1 DESC LIMIT 3 OFFSET 1;
-- intersect distinct
WITH w AS (SELECT a FROM t) SELECT a FROM w INTERSECT DISTINCT SELECT a FROM u;
-- except distinct
WITH w AS (SELECT a FROM t) SELECT a FROM w EXCEPT DISTINCT SELECT a FROM u;
-- brackets around a query
(SELECT a FROM t);
-- brackets, then limit
(SELECT a FROM t ORDER BY a) LIMIT 3;

-- relations
-- aliases of tables
SELECT x.a FROM t AS x, u y, s.v, s.w AS z WHERE x.a = y.a;
-- column aliases of a table
SELECT a FROM t AS x(a, b);
-- three parts
SELECT c.s.t.a FROM c.s.t;
-- joins
SELECT * FROM t JOIN u ON t.a = u.a INNER JOIN v ON u.b = v.b LEFT JOIN w ON w.c = v.c AND w.d > 1;
-- outer joins
SELECT * FROM t LEFT OUTER JOIN u ON t.a = u.a RIGHT JOIN v ON v.a = u.a RIGHT OUTER JOIN x ON x.a = v.a FULL JOIN w ON w.a = t.a FULL OUTER JOIN y ON y.a = w.a;
-- semi and anti joins
SELECT * FROM t LEFT SEMI JOIN u ON t.a = u.a LEFT ANTI JOIN v ON t.a = v.a SEMI JOIN w ON t.a = w.a ANTI JOIN x ON t.a = x.a;
-- cross joins
SELECT * FROM t CROSS JOIN u, v JOIN w ON v.a = w.a;
-- join without on
SELECT * FROM t JOIN u;
-- using
SELECT * FROM t JOIN u USING (a) LEFT JOIN v USING (a, b);
-- natural joins
SELECT * FROM t NATURAL JOIN u NATURAL LEFT JOIN v;
-- joins in brackets
SELECT * FROM t JOIN (u JOIN v ON u.a = v.a) ON t.a = u.a;
-- joins in brackets first
SELECT * FROM (t JOIN u ON t.a = u.a) LEFT JOIN v ON v.a = t.a;
-- brackets around a table
SELECT * FROM (t);
-- brackets around a join with alias
SELECT * FROM (t JOIN u USING (a)) AS x;
-- subquery
SELECT x.a FROM (SELECT a FROM t) AS x;
-- subquery without alias
SELECT a FROM (SELECT a FROM t);
-- subquery, column aliases
SELECT b FROM (SELECT a FROM t) x(b);
-- subquery, union
SELECT * FROM (SELECT a FROM t UNION ALL SELECT a FROM u) x JOIN v ON x.a = v.a;
-- nested subqueries
SELECT * FROM (SELECT * FROM (SELECT * FROM (SELECT a FROM t) x) y) z;
-- values
SELECT * FROM VALUES (1, 'a'), (2, 'b') AS t(x, y);
-- values, one column
SELECT * FROM VALUES 1, 2, 3;
-- values in brackets
SELECT * FROM (VALUES (1, 2), (3, 4)) t(a, b);
-- values as a query
VALUES (1, 'a'), (2, 'b');
-- values, ordered
VALUES (1), (2) ORDER BY col1 LIMIT 1;
-- table functions
SELECT * FROM range(10), range(1, 10, 2) AS r(x);
-- generators as tables
SELECT * FROM explode(array(1, 2)) AS t(x), posexplode(array(1)) p, inline(array(struct(1, 2))), stack(2, 1, 2);
-- lateral view
SELECT a, b FROM t LATERAL VIEW explode(xs) x AS b;
-- lateral view outer
SELECT * FROM t LATERAL VIEW OUTER posexplode(xs) x AS i, b LATERAL VIEW explode(b) y AS c WHERE c > 1;
-- lateral view without names
SELECT * FROM t LATERAL VIEW explode(xs) x;
-- lateral subquery
SELECT * FROM t, LATERAL (SELECT t.a + 1 AS b) x;
-- lateral join
SELECT * FROM t LEFT JOIN LATERAL (SELECT u.b FROM u WHERE u.a = t.a LIMIT 1) AS x ON true JOIN LATERAL explode(t.xs) AS e(y);
-- pivot
SELECT * FROM t PIVOT (sum(a) AS s, avg(b) FOR c IN ('x' AS x, 'y'));
-- pivot over several columns
SELECT * FROM (SELECT a, b, c FROM t) PIVOT (sum(a) FOR (b, c) IN ((1, 2) AS x, (3, 4)));
-- unpivot
SELECT * FROM t UNPIVOT (v FOR n IN (a, b AS bb));
-- unpivot with nulls
SELECT * FROM t UNPIVOT INCLUDE NULLS (v FOR n IN (a, b)) AS p;
-- unpivot over several columns
SELECT * FROM t UNPIVOT EXCLUDE NULLS ((v, w) FOR n IN ((a, b) AS x, (c, d)));

-- with
-- one
WITH x AS (SELECT a FROM t) SELECT * FROM x;
-- several
WITH x AS (SELECT a FROM t), y AS (SELECT a FROM x WHERE a > 1) SELECT * FROM x JOIN y USING (a);
-- columns
WITH x(b, c) AS (SELECT a, d FROM t) SELECT b FROM x;
-- nested
WITH x AS (WITH y AS (SELECT a FROM t) SELECT * FROM y) SELECT * FROM x;
-- in a subquery
SELECT * FROM (WITH x AS (SELECT a FROM t) SELECT * FROM x) z WHERE a IN (WITH y AS (SELECT 1 AS b) SELECT b FROM y);
-- before a union
WITH x AS (SELECT a FROM t) SELECT a FROM x UNION ALL SELECT a FROM x ORDER BY a;
-- without as
WITH x (SELECT a FROM t) SELECT * FROM x;
-- before brackets
WITH x AS (SELECT a FROM t) (SELECT a FROM x) ORDER BY a;

-- subqueries
-- scalar
SELECT (SELECT max(a) FROM t), a + (SELECT 1) FROM u WHERE b > (SELECT avg(b) FROM v);
-- in
SELECT * FROM t WHERE a IN (SELECT a FROM u) AND b NOT IN (SELECT b FROM v WHERE v.a = t.a);
-- several columns in
SELECT * FROM t WHERE (a, b) IN (SELECT a, b FROM u);
-- exists
SELECT * FROM t WHERE EXISTS (SELECT * FROM u WHERE u.a = t.a) AND NOT EXISTS (SELECT 1 FROM v WHERE v.b = t.b);
-- correlated
SELECT a, (SELECT count(*) FROM u WHERE u.a = t.a) FROM t ORDER BY (SELECT 1);
-- subquery in brackets
SELECT ((SELECT 1)), ((a)), (((SELECT 1)) + 1) FROM t;
-- subquery in case and call
SELECT CASE WHEN a > (SELECT 1) THEN 1 END, coalesce((SELECT max(a) FROM t), 0) FROM t;
-- in the list of in
SELECT a IN ((SELECT 1), 2) FROM t;

-- windows and rows
-- qualify
SELECT a, row_number() OVER (PARTITION BY b ORDER BY a) AS r FROM t QUALIFY r = 1;
-- qualify with a window of its own
SELECT a FROM t WHERE b > 1 QUALIFY rank() OVER (ORDER BY a DESC) <= 3 ORDER BY a LIMIT 2;
-- qualify behind having and window
SELECT a, sum(b) AS s, rank() OVER w AS r FROM t GROUP BY a HAVING sum(b) > 1 WINDOW w AS (ORDER BY sum(b)) QUALIFY r < 3 AND s > 0;
-- qualify in brackets
SELECT a FROM t AS x QUALIFY (row_number() OVER (ORDER BY a) = 1) OR NOT a IS NULL;
-- qualify as a name
SELECT qualify.a, a AS qualify FROM t AS qualify WHERE qualify.a > 1;

-- other orders
-- from first
FROM t SELECT a, count(*) WHERE b > 1 GROUP BY a HAVING count(*) > 1 ORDER BY a LIMIT 3;
-- from first, joined
FROM t JOIN u ON t.a = u.a SELECT t.a, u.b WHERE u.b IS NOT NULL;
-- from alone
FROM t AS x;
-- from first in brackets
SELECT * FROM (FROM t SELECT a) WHERE a IN (FROM u SELECT a) AND EXISTS (FROM u);
-- from first with qualify
FROM t SELECT a, rank() OVER (ORDER BY b) AS r QUALIFY r = 1;
-- table
TABLE t;
-- table of a schema
TABLE oslo.t;
-- table in set operations
TABLE t UNION ALL (TABLE u) ORDER BY a LIMIT 3;
-- table in with
WITH x AS (TABLE t) SELECT * FROM x WHERE a IN (TABLE x);

-- pipes
-- where
FROM t |> WHERE a > 1 |> WHERE b < 2;
-- select
TABLE t |> SELECT a, b + 1 AS c |> SELECT DISTINCT c;
-- select with group by and window
TABLE t |> SELECT a, sum(b) AS s GROUP BY a |> SELECT a, rank() OVER w AS r WINDOW w AS (ORDER BY s);
-- extend, set, drop
TABLE t |> EXTEND a + 1 AS x, x + 1 AS y |> SET a = 2, y = a |> DROP b, x;
-- as
TABLE t |> AS u |> WHERE u.a = 1;
-- aggregate
TABLE t |> AGGREGATE sum(b) AS s, count(*) GROUP BY a AS k, c + 1 |> WHERE s > 1;
-- aggregate without groups
SELECT a, b FROM t |> AGGREGATE sum(b), max(a) AS m;
-- groups without aggregates
TABLE t |> AGGREGATE GROUP BY a, b;
-- order and limit
TABLE t |> ORDER BY a DESC, b |> LIMIT 10 |> OFFSET 2;
-- sort, distribute, cluster
TABLE t |> DISTRIBUTE BY a |> SORT BY b |> CLUSTER BY a;
-- joins
FROM t |> JOIN u ON t.a = u.a |> LEFT JOIN v USING (a) |> CROSS JOIN w |> NATURAL JOIN x |> LEFT SEMI JOIN y ON y.a = t.a;
-- set operations
TABLE t |> UNION ALL TABLE u |> EXCEPT (SELECT 1, 2) |> INTERSECT DISTINCT VALUES (1, 2) |> MINUS ALL TABLE v;
-- pivot and unpivot
TABLE t |> SELECT a, b, c |> PIVOT (sum(b) AS s FOR c IN (1 AS x, 2)) |> UNPIVOT (v FOR n IN (x, y));
-- behind values and brackets
(VALUES (1, 2), (3, 4) AS t(a, b)) |> WHERE a > 1 |> SELECT b;
-- behind a union
SELECT a FROM t UNION ALL SELECT a FROM u |> AGGREGATE count(*);
-- in subqueries and with
WITH x AS (FROM t |> WHERE a > 1) SELECT * FROM (TABLE x |> EXTEND 1 AS one) WHERE a IN (TABLE u |> SELECT a) AND EXISTS (FROM u |> WHERE u.a = 1);
-- with before a pipe
WITH x AS (SELECT a FROM t) FROM x |> WHERE a > 1;
-- order and limit behind a pipe
FROM t |> WHERE a > 1 ORDER BY a LIMIT 3 OFFSET 1;
-- or of bits
SELECT a | b, a|b FROM t |> WHERE a | b > 1;

-- recursive with
-- numbers
WITH RECURSIVE x AS (SELECT 1 AS a UNION ALL SELECT a + 1 FROM x WHERE a < 3) SELECT * FROM x;
-- columns
WITH RECURSIVE x(n, s) AS (VALUES (1, 'a') UNION ALL SELECT n + 1, s || 'b' FROM x WHERE n < 3) SELECT n, s FROM x ORDER BY n;
-- over a table
WITH RECURSIVE x(id, depth) AS (SELECT a, 0 FROM t WHERE b IS NULL UNION ALL SELECT t.a, depth + 1 FROM t JOIN x ON t.b = x.id) SELECT max(depth) FROM x;
-- bounded
WITH RECURSIVE x(n) MAX RECURSION LEVEL 5 AS (SELECT 1 UNION ALL SELECT n + 1 FROM x), y AS (SELECT * FROM x) SELECT * FROM y LIMIT 3;

-- hints
-- join hints
SELECT /*+ BROADCAST(t), MERGE(u) SHUFFLE_HASH(t, u) */ t.a FROM t JOIN u ON t.a = u.a;
-- several
SELECT /*+ COALESCE(2) */ /*+ REPARTITION(3, a) REBALANCE */ DISTINCT a FROM t;
-- unknown
SELECT /*+ anything('/', "*", `x y`, 1.5) */ a, 2 * /* a comment */ 3 FROM t;

-- names and paths
-- variant paths
SELECT v:a, v:a.b, v:a.b[0].c, v:['x'], v:[0], v:a['y'][1], v:`a`, v:A FROM t;
-- variant paths and casts
SELECT v:a::int, t.v:b::string || 'x', f(v:a) + 1, m[1]:a, (v:a):b FROM t WHERE v:a.b::int > 1 AND v:c = :c;
-- alias of pivot
SELECT p.x, u.a FROM t PIVOT (sum(b) FOR c IN (1 AS x, 2)) AS p JOIN u ON u.a = p.x;
-- alias of pivot without as
SELECT * FROM (SELECT a, b, c FROM t) PIVOT (sum(b) FOR c IN (1, 2)) p;
-- div as a function
SELECT div(a, b), a DIV b, div(7, 2) DIV 2 FROM t;
-- all as a name
SELECT all, t.all, all + 1 FROM t GROUP BY all, b;
-- all in calls
SELECT count(ALL a), f(all), f(all, b), transform(x, all -> all + 1), transform(x, (all, i) -> all + i) FROM t;
-- units
SELECT timestampadd(DAY, 1, a), timestampdiff(MONTH, a, b), timediff(SECOND, a, b), TIMESTAMPADD(QUARTER, -1, a) FROM t;
-- types of places and zones
SELECT CAST(a AS GEOMETRY(4326)), CAST(a AS GEOGRAPHY(ANY)), CAST(a AS TIME(3) WITHOUT TIME ZONE), CAST(a AS TIMESTAMP WITHOUT TIME ZONE), CAST(a AS TIMESTAMP WITH LOCAL TIME ZONE) FROM t;
-- options of XML
SELECT from_xml(a, 'b INT', map('rowTag', 'r', 'mode', 'PERMISSIVE')), schema_of_xml('<a>1</a>', map('excludeAttribute', 'true')) FROM t;

-- names in strings
-- as aliases
WITH IDENTIFIER('v')(IDENTIFIER('x')) AS (VALUES (1)) SELECT u.* FROM v AS IDENTIFIER('u') JOIN t USING (IDENTIFIER('x'));
-- parts of a name
SELECT * FROM IDENTIFIER('s').t JOIN s.IDENTIFIER('u') LATERAL VIEW explode(a) IDENTIFIER('v') AS IDENTIFIER('e');

-- joins and samples
-- nearest
SELECT * FROM t JOIN u APPROX NEAREST 5 BY DISTANCE abs(t.a - u.a) WHERE t.a > 1;
-- nearest, one row
SELECT * FROM t x LEFT OUTER JOIN u AS y EXACT NEAREST BY SIMILARITY x.a * y.a INNER JOIN v ON v.a = x.a;
-- nearest in brackets
SELECT * FROM (t LEFT JOIN u APPROX NEAREST 2 BY SIMILARITY rand()) AS p;
-- nearest in a pipe
FROM t |> JOIN (SELECT 1 AS a) u EXACT NEAREST 1 BY DISTANCE u.a;
-- nearest as a name
SELECT approx, nearest FROM t AS approx JOIN u nearest ON approx.a = nearest.a;
-- samples
SELECT * FROM t TABLESAMPLE (5 ROWS) AS x, (SELECT 1) TABLESAMPLE (1 + 1 ROWS) REPEATABLE (7) y;
-- samples of the whole
SELECT * FROM t TABLESAMPLE (100 PERCENT) JOIN u TABLESAMPLE (BUCKET 2 OUT OF 2) REPEATABLE (0) ON true;
-- samples in a pipe
TABLE t |> TABLESAMPLE (5 ROWS) |> TABLESAMPLE (100 PERCENT) REPEATABLE (1);
-- pipes of one sign
TABLE t | WHERE a | 1 > 2 | EXTEND a | `b` AS c | ORDER BY c | LIMIT 3;
-- pipes of both signs
FROM t |> SELECT a, b | AGGREGATE sum(a) AS s GROUP BY b |> WHERE s > 1 | UNION ALL TABLE t;
-- ends behind a pipe
TABLE t |> WHERE a > 1 DISTRIBUTE BY a SORT BY b;
