-- Queries with a limit over tables with parts at several sites, for the rule `topn`; read by skerry.testing.corpus.
-- Each has a name, what it is for, and its order: no, yes, or ties with the places of the sort keys.

-- ==== merged in the member ====
-- name: joined | for: a small table goes to every part | ordered: yes
SELECT e.id, n_name FROM events e JOIN nation ON n_nationkey = e.id % 25 ORDER BY n_name DESC, e.id LIMIT 12 OFFSET 5

-- name: joined_nan | for: NaN is the greatest number, NULL the least, -0.0 is 0.0 | ordered: ties 1, 0
SELECT id, value, n_name FROM events LEFT JOIN nation ON n_nationkey = id ORDER BY value DESC, id LIMIT 70

-- name: joined_nulls_last | for: NULLs where they are asked for | ordered: yes
SELECT value, id FROM nation RIGHT JOIN events ON n_nationkey = id % 30 ORDER BY value NULLS LAST, n_name, id LIMIT 40

-- name: joined_star | for: all columns of all relations | ordered: ties 0
SELECT * FROM events JOIN nation ON n_nationkey = id ORDER BY id LIMIT 8

-- name: joined_none | for: LIMIT 0 has the columns | ordered: yes
SELECT id, n_name FROM events JOIN nation ON n_nationkey = id ORDER BY id LIMIT 0

-- name: joined_beyond | for: an offset beyond all rows | ordered: yes
SELECT id, n_name FROM events JOIN nation ON n_nationkey = id ORDER BY id LIMIT 5 OFFSET 100000

-- name: joined_all | for: no bound, in order | ordered: yes
SELECT id, n_name, 'x' || kind AS k FROM events JOIN nation ON n_nationkey = id ORDER BY k DESC, id LIMIT ALL

-- name: semi | for: a row that has a partner, once | ordered: yes
SELECT kind, id FROM events LEFT SEMI JOIN nation ON n_nationkey = id ORDER BY kind, id LIMIT 10

-- name: anti | for: rows without a partner | ordered: yes
SELECT kind, id FROM events LEFT ANTI JOIN nation ON n_nationkey = id % 40 ORDER BY kind DESC, id LIMIT 10

-- ==== bounded again in Spark ====
-- name: hidden_key | for: the order is by what is not listed | ordered: yes
SELECT id FROM events ORDER BY amount * 2 DESC NULLS LAST, ts, id LIMIT 9

-- name: hidden_key_joined | for: the same, of a join, a decimal and a name that Spark gives | ordered: yes
SELECT e.id, amount + n_nationkey AS a, upper(kind) AS k FROM events e JOIN nation ON n_nationkey = e.id % 25
ORDER BY n_name, amount + n_nationkey, ts, e.id LIMIT 25

-- name: in_from | for: a bounded query in FROM | ordered: no
SELECT c_name, t.* FROM (SELECT id, value AS v, kind FROM events WHERE id > 20 ORDER BY v DESC, 1 LIMIT 15 OFFSET 2) t
JOIN customer ON c_custkey = t.id

-- name: in_from_joined | for: a bounded join in FROM | ordered: no
SELECT t.n, count(*) AS many FROM (SELECT n_name AS n, e.* FROM events e JOIN nation ON n_nationkey = id ORDER BY n, id LIMIT 15) t
JOIN orders ON o_custkey = t.id GROUP BY t.n

-- name: in_with | for: named twice | ordered: no
WITH t AS (SELECT * FROM events ORDER BY ts, id LIMIT 6) SELECT a.id, b.value FROM t a JOIN t b ON a.kind = b.kind

-- name: in_in | for: a set of first rows | ordered: no
SELECT o_orderkey FROM orders WHERE o_custkey IN (SELECT id FROM events ORDER BY value, id LIMIT 30)

-- name: in_scalar | for: one value | ordered: no
SELECT count(*) AS n FROM orders WHERE o_orderkey > (SELECT id FROM events ORDER BY amount DESC, id LIMIT 1)

-- name: below_window | for: a window over first rows | ordered: no
SELECT id, rank() OVER (ORDER BY id) AS r, n_name FROM (SELECT * FROM events ORDER BY ts DESC, id LIMIT 12) JOIN nation ON n_nationkey = id % 25

-- name: distinct_in_from | for: rows that differ | ordered: no
SELECT n_name, t.* FROM (SELECT DISTINCT kind AS k, id % 30 AS r FROM events ORDER BY length(k), r DESC, k LIMIT 25 OFFSET 2) t
JOIN nation ON n_nationkey = r

-- ==== unions ====
-- name: union_all | for: operands of one site and of several | ordered: yes
SELECT id, kind FROM events UNION ALL SELECT o_orderkey, o_comment FROM orders UNION ALL SELECT n_nationkey, n_name FROM nation
ORDER BY kind DESC, id LIMIT 20 OFFSET 3

-- name: union_numbers | for: whole numbers and doubles have one order | ordered: yes
SELECT value FROM events UNION ALL SELECT CAST(n_nationkey AS INT) FROM nation ORDER BY 1 DESC NULLS LAST LIMIT 60

-- name: union_rounded | for: whole numbers that a double may round are ordered above | ordered: yes
SELECT value FROM events UNION ALL SELECT o_custkey FROM orders UNION ALL SELECT n_nationkey FROM nation ORDER BY 1 DESC NULLS LAST LIMIT 60

-- name: union_below | for: the order stands above it | ordered: yes
SELECT b, a FROM (SELECT id AS a, kind AS b FROM events UNION ALL SELECT c_custkey, c_name FROM customer) u ORDER BY u.b, a LIMIT 20

-- name: union_types | for: numbers and strings together are ordered as neither is | error: CAST_INVALID_INPUT | ordered: yes
SELECT id FROM events UNION ALL SELECT o_comment FROM orders ORDER BY 1 LIMIT 5

-- name: named_after_try_cast | for: the same of TRY_CAST, at the root | ordered: yes
SELECT TRY_CAST(id AS STRING), kind FROM events ORDER BY id LIMIT 15
