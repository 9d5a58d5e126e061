-- Queries that differ in kind. Each starts with a line of flags:
--   name     unique
--   ordered  no: rows in any order | yes: in this order | ties a, b: ordered by these columns, equal ones in any order
--   error    the error class that Spark must answer with, instead of rows
--   for      what it is there to catch
-- A line `-- oracle:` starts the text that the oracle runs where it differs. By itself the oracle reads
-- `oslo.orders` as the part of `orders` at oslo. Parameters are in test_corpus.py, by name.
--
-- oslo: orders, lineitem, words (CSV); bergen: customer, nation, region, nasty; tromso: part, partsupp, supplier,
-- empty, notes (JSON); events has a part at each.

-- ============================================================ windows

-- name: window_rank | ordered: ties o_custkey, place | for: ranking needs whole partitions, so a window cannot be cut
SELECT o_custkey, o_orderkey, rank() OVER (PARTITION BY o_custkey ORDER BY o_orderpriority) AS place,
       dense_rank() OVER (PARTITION BY o_custkey ORDER BY o_orderpriority) AS dense,
       row_number() OVER (PARTITION BY o_custkey ORDER BY o_orderdate, o_orderkey) AS number,
       percent_rank() OVER (PARTITION BY o_custkey ORDER BY o_totalprice) AS share,
       cume_dist() OVER (PARTITION BY o_custkey ORDER BY o_totalprice) AS dist,
       ntile(3) OVER (PARTITION BY o_custkey ORDER BY o_orderkey) AS third
FROM orders WHERE o_custkey < 100 ORDER BY o_custkey, place;

-- name: window_frames | ordered: yes | for: ROWS, RANGE over days and unbounded frames side by side
SELECT o_custkey, o_orderkey, o_orderdate,
       sum(o_totalprice) OVER (PARTITION BY o_custkey ORDER BY o_orderdate, o_orderkey ROWS BETWEEN 2 PRECEDING AND CURRENT ROW) AS last3,
       count(*) OVER (PARTITION BY o_custkey ORDER BY o_orderdate RANGE BETWEEN INTERVAL 90 DAYS PRECEDING AND CURRENT ROW) AS quarter,
       max(o_totalprice) OVER (PARTITION BY o_custkey ROWS BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING) AS most,
       sum(o_totalprice) OVER (PARTITION BY o_custkey ORDER BY o_orderdate, o_orderkey ROWS BETWEEN 1 FOLLOWING AND 2 FOLLOWING) AS next2
FROM orders WHERE o_custkey BETWEEN 10 AND 60 ORDER BY o_custkey, o_orderdate, o_orderkey;

-- name: window_named | ordered: yes | for: a named window used twice, one window built on another
SELECT n_name, n_regionkey, row_number() OVER w AS number, lag(n_name) OVER w AS before, lead(n_name, 2, 'none') OVER w AS after,
       count(*) OVER (PARTITION BY n_regionkey) AS many
FROM nation WINDOW w AS (PARTITION BY n_regionkey ORDER BY n_name) ORDER BY n_regionkey, number;

-- name: window_ignore_nulls | ordered: yes | for: IGNORE NULLS of lag, first, last and nth over a table in parts
SELECT id, kind, lag(kind) IGNORE NULLS OVER (ORDER BY id) AS before, first_value(kind) IGNORE NULLS OVER w AS first_kind,
       last_value(kind) RESPECT NULLS OVER w AS last_kind, nth_value(kind, 2) IGNORE NULLS OVER w AS second_kind
FROM events WHERE id < 400 WINDOW w AS (ORDER BY id ROWS BETWEEN 3 PRECEDING AND 3 FOLLOWING) ORDER BY id;

-- name: window_over_groups | ordered: yes | for: a window over the result of GROUP BY, across two sites
SELECT n_name, o_orderpriority, count(*) AS many, rank() OVER (PARTITION BY n_name ORDER BY count(*) DESC, o_orderpriority) AS place,
       sum(sum(o_totalprice)) OVER (PARTITION BY n_name) AS of_nation
FROM orders JOIN customer ON o_custkey = c_custkey JOIN nation ON c_nationkey = n_nationkey
WHERE n_regionkey = 3 GROUP BY n_name, o_orderpriority ORDER BY n_name, place;

-- name: window_filtered_outside | ordered: yes | for: a filter on a window's result must not be pushed below it
SELECT * FROM (SELECT o_custkey, o_orderkey, row_number() OVER (PARTITION BY o_custkey ORDER BY o_totalprice DESC, o_orderkey) AS n FROM orders) AS t
WHERE n = 1 AND o_orderkey % 7 = 0 ORDER BY o_custkey;

-- name: window_doubles_nan | ordered: yes | for: NaN is the greatest in a window's order, NULL the least
SELECT id, f64, row_number() OVER (ORDER BY f64, id) AS place, max(f64) OVER (ORDER BY id ROWS UNBOUNDED PRECEDING) AS most FROM nasty ORDER BY id;

-- ============================================================ subqueries

-- name: scalar_correlated | ordered: yes | for: a correlated scalar subquery whose table is at another site
SELECT c_custkey, c_name, (SELECT max(o_totalprice) FROM orders WHERE o_custkey = c_custkey) AS most FROM customer WHERE c_custkey <= 200 ORDER BY c_custkey;

-- name: scalar_uncorrelated | ordered: no | for: a scalar subquery used as a value in WHERE and in SELECT
SELECT o_orderkey, o_totalprice - (SELECT avg(o_totalprice) FROM orders) AS above FROM orders WHERE o_totalprice > (SELECT avg(c_acctbal) * 80 FROM customer);

-- name: scalar_empty | ordered: no | for: a scalar subquery over no rows is NULL, a count over none is 0
SELECT r_name, (SELECT max(amount) FROM empty) AS nothing, (SELECT count(*) FROM empty WHERE id = r_regionkey) AS zero FROM region;

-- name: exists_correlated | ordered: yes | for: EXISTS (SELECT *) must not bring every column
SELECT c_custkey FROM customer WHERE EXISTS (SELECT * FROM orders WHERE o_custkey = c_custkey AND o_orderstatus = 'P') ORDER BY c_custkey;

-- name: not_exists_two_sites | ordered: no | for: an anti join on a condition that is not an equality
SELECT s_suppkey, s_name FROM supplier WHERE NOT EXISTS (SELECT 1 FROM customer WHERE c_nationkey = s_nationkey AND c_acctbal > s_acctbal + 1000);

-- name: in_subquery | ordered: no | for: IN over three sites, nested twice
SELECT o_orderkey, o_custkey FROM orders WHERE o_custkey IN (SELECT c_custkey FROM customer WHERE c_nationkey IN (SELECT s_nationkey FROM supplier WHERE s_acctbal < 0));

-- name: in_pair | ordered: no | for: IN with several columns
SELECT l_orderkey, l_linenumber FROM lineitem WHERE (l_partkey, l_suppkey) IN (SELECT ps_partkey, ps_suppkey FROM partsupp WHERE ps_availqty > 9900);

-- name: not_in_nulls | ordered: no | for: NOT IN over a set that holds NULL is never true
SELECT n_name FROM nation WHERE n_nationkey NOT IN (SELECT i32 FROM nasty);

-- name: not_in_null_side | ordered: no | for: NULL on the left of NOT IN, and NOT IN over nothing
SELECT id, i32 FROM nasty WHERE i32 NOT IN (SELECT n_nationkey FROM nation) AND i32 NOT IN (SELECT id FROM empty);

-- name: exists_in_select | ordered: yes | for: EXISTS and IN as values, under OR
SELECT n_nationkey, EXISTS (SELECT 1 FROM supplier WHERE s_nationkey = n_nationkey) AS has_supplier,
       n_regionkey IN (SELECT r_regionkey FROM region WHERE r_name LIKE 'A%') AS in_a
FROM nation WHERE n_nationkey < 5 OR EXISTS (SELECT 1 FROM customer WHERE c_nationkey = n_nationkey AND c_acctbal < -900) ORDER BY 1;

-- name: derived_table_column_aliases | ordered: yes | for: a derived table that renames its columns
SELECT t.k, t.total FROM (SELECT o_orderpriority, sum(o_totalprice) FROM orders GROUP BY o_orderpriority) AS t (k, total) ORDER BY k;

-- name: correlated_in_having | ordered: no | for: a subquery in HAVING that reads another site
SELECT o_custkey, count(*) AS many FROM orders GROUP BY o_custkey HAVING count(*) > (SELECT count(*) FROM nation WHERE n_regionkey = 1) * 6;

-- ============================================================ common table expressions

-- name: cte_twice | ordered: yes | for: a CTE named twice is read by both
WITH spent AS (SELECT o_custkey AS k, sum(o_totalprice) AS total FROM orders GROUP BY o_custkey)
SELECT a.k, a.total FROM spent AS a WHERE a.total > (SELECT 2 * avg(b.total) FROM spent AS b) ORDER BY a.k;

-- name: cte_nested | ordered: yes | for: a CTE inside a CTE, and one that uses an earlier one
WITH a AS (WITH inner_cte AS (SELECT n_nationkey AS k, n_name FROM nation) SELECT * FROM inner_cte WHERE k < 10),
     b (key, customers) AS (SELECT c_nationkey, count(*) FROM customer WHERE c_nationkey IN (SELECT k FROM a) GROUP BY c_nationkey)
SELECT a.n_name, b.customers FROM a LEFT JOIN b ON a.k = b.key ORDER BY a.n_name;

-- name: cte_shadows_table | ordered: yes | for: a CTE that has a table's name hides the table
WITH orders AS (SELECT r_regionkey AS o_orderkey, r_name AS what FROM region) SELECT * FROM orders ORDER BY o_orderkey;

-- name: cte_shadows_and_reads | ordered: yes | for: inside its own CTE the name still means the table
WITH nation AS (SELECT n_nationkey, upper(n_name) AS n_name FROM nation WHERE n_nationkey < 3) SELECT n.n_name, count(c_custkey) AS many
FROM nation AS n LEFT JOIN customer ON c_nationkey = n.n_nationkey GROUP BY n.n_name ORDER BY n.n_name;

-- name: cte_unused | ordered: no | for: a CTE nobody reads changes nothing
WITH unused AS (SELECT * FROM lineitem), used AS (SELECT count(*) AS n FROM supplier) SELECT n FROM used;

-- ============================================================ set operations

-- name: union_distinct | ordered: no | for: UNION removes duplicates across sites
SELECT c_nationkey AS k FROM customer UNION SELECT s_nationkey FROM supplier UNION SELECT n_nationkey FROM nation;

-- name: union_all_types | ordered: no | for: UNION ALL widens types: int, bigint and decimal become one
SELECT p_size AS v, 'part' AS src FROM part WHERE p_partkey < 50 UNION ALL SELECT n_nationkey, 'nation' FROM nation
UNION ALL SELECT c_acctbal, 'customer' FROM customer WHERE c_custkey < 20 UNION ALL SELECT NULL, NULL;

-- name: intersect_sites | ordered: no | for: INTERSECT compares NULLs as equal
SELECT i32 AS v FROM nasty INTERSECT SELECT CAST(NULL AS INT) UNION ALL SELECT 7;

-- name: intersect_all | ordered: no | for: INTERSECT ALL keeps the lesser count
SELECT c_nationkey FROM customer WHERE c_custkey < 300 INTERSECT ALL SELECT s_nationkey FROM supplier;

-- name: except_distinct | ordered: no | for: EXCEPT across sites
SELECT c_custkey FROM customer EXCEPT SELECT o_custkey FROM orders;

-- name: except_all | ordered: no | for: EXCEPT ALL subtracts counts
SELECT s_nationkey FROM supplier EXCEPT ALL SELECT n_nationkey FROM nation;

-- name: set_operations_mixed | ordered: yes | for: precedence of INTERSECT, ORDER BY and LIMIT over the whole
(SELECT n_nationkey AS k FROM nation WHERE n_nationkey < 12) UNION SELECT s_nationkey FROM supplier WHERE s_suppkey < 40
INTERSECT SELECT c_nationkey FROM customer WHERE c_acctbal < 0 ORDER BY k DESC LIMIT 9;

-- name: union_in_subquery | ordered: yes | for: aggregates over a union of sites
SELECT src, count(*) AS many, sum(bal) AS total FROM (SELECT 'c' AS src, c_acctbal AS bal FROM customer UNION ALL SELECT 's', s_acctbal FROM supplier) AS u GROUP BY src ORDER BY src;

-- ============================================================ grouping

-- name: grouping_sets | ordered: yes | for: GROUPING SETS and grouping_id
SELECT o_orderstatus, o_orderpriority, grouping_id() AS level, grouping(o_orderstatus) AS g, count(*) AS many, sum(o_totalprice) AS total
FROM orders GROUP BY GROUPING SETS ((o_orderstatus, o_orderpriority), (o_orderstatus), ()) ORDER BY level, o_orderstatus NULLS LAST, o_orderpriority NULLS LAST;

-- name: cube_sites | ordered: yes | for: CUBE over a join of two sites
SELECT r_name, c_mktsegment, count(*) AS many, grouping_id(r_name, c_mktsegment) AS level
FROM customer JOIN nation ON c_nationkey = n_nationkey JOIN region ON n_regionkey = r_regionkey GROUP BY CUBE (r_name, c_mktsegment) ORDER BY level, r_name, c_mktsegment;

-- name: rollup_nulls | ordered: no | for: ROLLUP's NULL beside a NULL of the data
SELECT kind, date_trunc('HOUR', ts) AS hour, count(*) AS many, grouping(kind) AS all_kinds FROM events GROUP BY ROLLUP (kind, date_trunc('HOUR', ts));

-- name: group_by_expression | ordered: yes | for: grouping by expression, by position and by alias
SELECT year(o_orderdate) AS y, o_orderstatus, count(*) AS n FROM orders GROUP BY 1, o_orderstatus ORDER BY y, 2;

-- name: group_by_all | ordered: yes | for: GROUP BY ALL and ORDER BY ALL
SELECT o_orderstatus, o_shippriority, max(o_orderdate) AS latest FROM orders GROUP BY ALL ORDER BY ALL;

-- name: having_alias | ordered: yes | for: HAVING on an alias and on an aggregate that is not in the output
SELECT c_nationkey, avg(c_acctbal) AS mean FROM customer GROUP BY c_nationkey HAVING mean > 4500 AND max(c_custkey) > 1400 ORDER BY c_nationkey;

-- name: aggregate_kinds | ordered: no | for: aggregates that cannot be summed from parts, FILTER and DISTINCT among them
SELECT count(*) AS n, count(value) AS v, count(DISTINCT kind) AS kinds, count(DISTINCT kind, tags) AS pairs, sum(amount) AS total, avg(amount) AS mean,
       min(value) AS least, max(value) AS most, min(ts) AS first_ts, stddev_samp(amount) AS dev, var_pop(amount) AS var, corr(amount, id) AS c,
       count(*) FILTER (WHERE kind = 'buy') AS buys, sum(DISTINCT CAST(amount AS INT) % 10) AS d, bool_or(kind IS NULL) AS some, median(id) AS mid,
       max_by(kind, id) AS last_kind, percentile(id, 0.25) AS quarter, count_if(isnan(value)) AS nans, bit_xor(id) AS x
FROM events;

-- name: aggregate_collected | ordered: yes | for: collected arrays, sorted so that they have one answer
SELECT kind, sort_array(collect_set(size(tags))) AS sizes, array_size(collect_list(id)) AS many, array_join(slice(sort_array(collect_list(CAST(id AS STRING))), 1, 5), '-') AS ids
FROM events GROUP BY kind ORDER BY kind NULLS FIRST;

-- name: distinct_rows | ordered: no | for: DISTINCT over parts of one table, NULL and arrays included
SELECT DISTINCT kind, tags FROM events;

-- name: distinct_count_by_group | ordered: yes | for: count(DISTINCT) by group over a join of sites
SELECT c_mktsegment, count(DISTINCT o_orderpriority) AS p, count(DISTINCT o_custkey) AS c, count(*) AS n FROM customer JOIN orders ON c_custkey = o_custkey GROUP BY c_mktsegment ORDER BY c_mktsegment;

-- name: global_aggregate | ordered: no | for: a result of one row
SELECT count(*) FROM lineitem;

-- ============================================================ generators and lateral

-- name: lateral_view_explode | ordered: no | for: LATERAL VIEW drops rows without elements
SELECT id, tag FROM events LATERAL VIEW explode(tags) t AS tag WHERE id < 300;

-- name: lateral_view_outer | ordered: no | for: OUTER keeps them, posexplode numbers the elements
SELECT id, pos, tag FROM events LATERAL VIEW OUTER posexplode(tags) t AS pos, tag WHERE id % 11 = 0;

-- name: lateral_view_twice | ordered: no | for: two LATERAL VIEWs, one over the other, and a map
SELECT id, k, v, e FROM nasty LATERAL VIEW explode(m) kv AS k, v LATERAL VIEW OUTER explode(arr) a AS e;

-- name: explode_in_select | ordered: no | for: a generator in SELECT, and inline over structs
SELECT id, inline(nested) FROM nasty WHERE id < 40;

-- name: lateral_subquery | ordered: yes | for: LATERAL reads the row before it, at another site
SELECT n_name, top.c_name, top.c_acctbal FROM nation, LATERAL (SELECT c_name, c_acctbal FROM customer WHERE c_nationkey = n_nationkey ORDER BY c_acctbal DESC, c_custkey LIMIT 2) AS top
WHERE n_regionkey = 2 ORDER BY n_name, top.c_acctbal DESC;

-- ============================================================ joins

-- name: left_join_on_filter | ordered: ties c_custkey | for: a filter in ON of an outer join keeps the row
SELECT c_custkey, o_orderkey FROM customer LEFT JOIN orders ON c_custkey = o_custkey AND o_orderstatus = 'F' WHERE c_custkey < 120 ORDER BY c_custkey;

-- name: left_join_where_filter | ordered: ties c_custkey | for: the same filter in WHERE drops it
SELECT c_custkey, o_orderkey FROM customer LEFT JOIN orders ON c_custkey = o_custkey WHERE c_custkey < 120 AND o_orderstatus = 'F' ORDER BY c_custkey;

-- name: left_join_missing | ordered: yes | for: WHERE … IS NULL after an outer join is an anti join
SELECT c_custkey FROM customer LEFT JOIN orders ON c_custkey = o_custkey WHERE o_orderkey IS NULL AND c_custkey < 400 ORDER BY c_custkey;

-- name: right_join | ordered: no | for: the side that is kept is on the right, with a filter on its own columns in ON
SELECT s_name, n_name FROM supplier RIGHT JOIN nation ON s_nationkey = n_nationkey AND n_regionkey <> 1 AND s_acctbal > 5000;

-- name: full_join_nulls | ordered: no | for: NULL keys match nothing and appear on both sides
SELECT a.id AS a_id, a.i32 AS a_key, b.id AS b_id, b.stars FROM nasty AS a FULL OUTER JOIN notes AS b ON a.i32 = b.word_id + 6;

-- name: full_join_null_safe | ordered: no | for: <=> matches NULL with NULL
SELECT a.id AS a_id, b.id AS b_id FROM nasty AS a FULL OUTER JOIN notes AS b ON a.i16 <=> b.word_id;

-- name: semi_join | ordered: yes | for: LEFT SEMI gives each row once
SELECT n_name FROM nation LEFT SEMI JOIN supplier ON n_nationkey = s_nationkey ORDER BY n_name;

-- name: anti_join | ordered: yes | for: LEFT ANTI with a condition on both sides
SELECT p_partkey FROM part LEFT ANTI JOIN lineitem ON p_partkey = l_partkey AND l_quantity > 40 AND p_size < 30 WHERE p_partkey < 400 ORDER BY p_partkey;

-- name: cross_join | ordered: no | for: a product of two sites
SELECT r_name, n.k FROM region CROSS JOIN (SELECT p_partkey AS k FROM part WHERE p_partkey <= 7) AS n;

-- name: self_join | ordered: yes | for: one table under two names
SELECT a.n_name AS one, b.n_name AS other FROM nation AS a JOIN nation AS b ON a.n_regionkey = b.n_regionkey AND a.n_nationkey < b.n_nationkey ORDER BY one, other;

-- name: natural_join | ordered: yes | for: NATURAL joins by the names in common and gives them once
SELECT * FROM (SELECT n_regionkey AS r_regionkey, n_name FROM nation) AS n NATURAL JOIN region ORDER BY n_name;

-- name: using_join | ordered: no | for: USING over a full join coalesces the key
SELECT k, a.x, b.y FROM (SELECT n_nationkey AS k, n_name AS x FROM nation WHERE n_nationkey < 15) AS a FULL JOIN (SELECT s_suppkey AS k, s_name AS y FROM supplier WHERE s_suppkey BETWEEN 10 AND 20) AS b USING (k);

-- name: three_site_join | ordered: yes | for: a table of every site in one join
SELECT n_name, p_brand, sum(l_extendedprice * (1 - l_discount)) AS revenue, count(*) AS n
FROM lineitem JOIN orders ON l_orderkey = o_orderkey JOIN customer ON o_custkey = c_custkey JOIN nation ON c_nationkey = n_nationkey
JOIN part ON l_partkey = p_partkey WHERE p_size = 10 AND n_regionkey IN (0, 4) GROUP BY n_name, p_brand ORDER BY n_name, p_brand;

-- name: range_join | ordered: no | for: a join without equality
SELECT r_name, p_partkey FROM region JOIN part ON p_size BETWEEN r_regionkey * 10 AND r_regionkey * 10 + 1 WHERE p_partkey < 200;

-- name: join_star | ordered: ties n_nationkey | for: SELECT * of a join: all columns, in Spark's order
SELECT * FROM nation JOIN region ON n_regionkey = r_regionkey ORDER BY n_nationkey;

-- name: join_qualified_star | ordered: yes | for: one side's star beside a single column
SELECT r.*, n.n_name AS nation FROM nation n JOIN region r ON n.n_regionkey = r.r_regionkey ORDER BY nation;

-- name: join_or_condition | ordered: no | for: OR between sites' columns cannot be pushed to either
SELECT s_suppkey, c_custkey FROM supplier JOIN customer ON s_nationkey = c_nationkey WHERE (s_acctbal < -500 OR c_acctbal > 9900) AND c_custkey < 700;

-- name: full_join_where | ordered: no | for: a WHERE that refuses NULLs makes a full join a half one
SELECT c_custkey, s_suppkey FROM customer FULL OUTER JOIN supplier ON c_custkey = s_suppkey * 20 WHERE coalesce(c_acctbal, -1) > 9000 OR s_suppkey IS NOT NULL;

-- ============================================================ empty tables, names, stars

-- name: empty_scan | ordered: no | for: no rows, yet names and types
SELECT * FROM empty;

-- name: empty_aggregate | ordered: no | for: aggregates of nothing: one row
SELECT count(*) AS n, sum(amount) AS total, max(name) AS last_name FROM empty;

-- name: empty_group | ordered: no | for: groups of nothing: no row
SELECT name, count(*) AS n FROM empty GROUP BY name;

-- name: empty_join | ordered: yes | for: outer join and union with a table of no rows at another site
SELECT r_name, amount FROM region LEFT JOIN empty ON r_regionkey = id UNION ALL SELECT name, amount FROM empty ORDER BY r_name;

-- name: empty_by_filter | ordered: no | for: a filter that is never true
SELECT o_orderkey, o_comment FROM orders WHERE 1 = 0;

-- name: qualified_table | ordered: yes | for: a table named with its site
SELECT o_orderkey, o_totalprice FROM oslo.orders WHERE o_orderkey < 100 ORDER BY o_orderkey;

-- name: qualified_columns | ordered: yes | for: columns named with table, and with site and table
SELECT orders.o_orderkey, oslo.orders.o_custkey FROM oslo.orders WHERE orders.o_orderkey < 50 ORDER BY orders.o_orderkey;
-- oracle:
SELECT orders.o_orderkey, orders.o_custkey FROM orders WHERE orders.o_orderkey < 50 ORDER BY orders.o_orderkey;

-- name: duplicate_names | ordered: yes | for: two columns of one name
SELECT n_name, n_name, n_nationkey AS n_name, 1 AS a, 2 AS a FROM nation ORDER BY n_nationkey;

-- name: unaliased_expressions | ordered: no | for: columns named as Spark names them
SELECT count(*), sum(o_totalprice), sum(o_totalprice * 2), max(o_orderdate) - min(o_orderdate), avg(o_totalprice) > 1000, 1 + 1, 'x', upper(min(o_clerk)),
       CAST(count(*) AS INT), CASE WHEN count(*) > 3 THEN 'many' ELSE 'few' END, count(DISTINCT o_custkey), sum(o_totalprice) FILTER (WHERE o_orderstatus = 'F'),
       -max(o_custkey), NOT bool_and(o_custkey > 0), max(o_orderkey) % 7, DATE '2024-01-01', 1.50, concat('a', 'b'), NULL
FROM orders;

-- name: unaliased_rows | ordered: no | for: names of expressions over rows
SELECT s LIKE 'p%', s || '!', i32 IS NULL, i32 IN (7, 8), i32 BETWEEN 0 AND 9, st.x, arr[0], m['a'], coalesce(i32, 0), substring(s, 1, 2), d + INTERVAL 1 DAY, id <=> i16, EXTRACT(YEAR FROM d)
FROM nasty WHERE id IN (3, 11, 20, 60) AND d > DATE '1000-01-01' AND d < DATE '9000-01-01';

-- name: names_unicode | ordered: yes | for: identifiers in quotes: other letters, spaces, capitals, a quote
SELECT `größe`, `odd name` AS `et navn`, id AS `ключ`, nasty.`odd name` AS `back``tick`, ID AS `Id` FROM nasty WHERE `größe` > 0 ORDER BY `ключ`;

-- name: names_case | ordered: yes | for: names in other case: found, and named as they were written
SELECT N_NAME, n_Name AS Upper, Nation.N_NationKey FROM NATION WHERE N_REGIONKEY = 1 ORDER BY N_nationkey;

-- name: select_star | ordered: no | for: every column of every type
SELECT * FROM nasty;

-- name: star_except | ordered: yes | for: a star without some columns
SELECT * EXCEPT (c_comment, c_address) FROM customer WHERE c_custkey < 30 ORDER BY c_custkey;

-- name: alias_reused | ordered: no | for: a later column that uses an earlier one's alias
SELECT l_quantity * 2 AS twice, twice + 1 AS more FROM lineitem WHERE l_orderkey < 40;

-- ============================================================ order and limit

-- name: order_nulls | ordered: yes | for: NULLS FIRST and LAST, ascending and descending, several keys
SELECT id, i16, dec5 FROM nasty ORDER BY i16 ASC NULLS LAST, dec5 DESC NULLS FIRST, id DESC;

-- name: order_nulls_default | ordered: yes | for: Spark puts NULL first when ascending, last when descending
SELECT id, s, flag FROM nasty ORDER BY flag DESC, s, id;

-- name: order_doubles | ordered: yes | for: NaN is greatest, -0.0 ties with 0.0
SELECT id, f64, f32 FROM nasty ORDER BY f64 DESC NULLS FIRST, f32, id;

-- name: order_by_hidden | ordered: yes | for: an expression that is not in the output
SELECT c_name FROM customer WHERE c_nationkey = 7 ORDER BY abs(c_acctbal - 5000), c_custkey;

-- name: order_by_position | ordered: yes | for: ORDER BY position and alias
SELECT s_nationkey AS k, s_name, -s_acctbal AS debt FROM supplier ORDER BY 1 DESC, debt, 2;

-- name: order_by_aggregate | ordered: yes | for: ORDER BY an aggregate that is not in the output
SELECT o_orderpriority FROM orders GROUP BY o_orderpriority ORDER BY sum(o_totalprice) DESC;

-- name: order_nested_types | ordered: yes | for: ORDER BY array, struct and binary
SELECT id FROM nasty ORDER BY arr DESC, st, bin NULLS LAST, id;

-- name: order_decimals_dates | ordered: yes | for: extreme decimals, dates and times in order
SELECT id, dec38, d, ts FROM nasty ORDER BY dec38, d DESC, ts, id;

-- name: order_text | ordered: yes | for: text is ordered by its bytes
SELECT id, s FROM nasty ORDER BY s DESC, id;

-- name: order_large | ordered: yes | for: every row of a large table in order
SELECT l_orderkey, l_linenumber, l_shipdate FROM lineitem ORDER BY l_shipdate DESC, l_orderkey, l_linenumber;

-- name: limit_offset | ordered: yes | for: LIMIT with OFFSET after an order
SELECT o_orderkey, o_totalprice FROM orders ORDER BY o_totalprice DESC, o_orderkey LIMIT 10 OFFSET 25;

-- name: limit_zero | ordered: no | for: LIMIT 0 gives names and types
SELECT * FROM lineitem LIMIT 0;

-- name: offset_beyond | ordered: no | for: OFFSET beyond the end
SELECT r_name FROM region ORDER BY r_name LIMIT 10 OFFSET 100;

-- name: limit_large | ordered: yes | for: a limit of more than one page
SELECT l_orderkey, l_linenumber FROM lineitem ORDER BY l_orderkey, l_linenumber LIMIT 9000;

-- name: limit_in_subquery | ordered: no | for: a limit inside counts before the join outside
SELECT count(*) AS n, sum(o_totalprice) AS total FROM (SELECT o_custkey, o_totalprice FROM orders ORDER BY o_orderkey LIMIT 500) AS t JOIN customer ON o_custkey = c_custkey WHERE c_nationkey < 12;

-- name: limit_all_filter_outside | ordered: no | for: a filter outside must not pass a limit inside
SELECT count(*) AS n FROM (SELECT p_partkey FROM part ORDER BY p_partkey LIMIT 100) AS t WHERE p_partkey % 2 = 0;

-- ============================================================ decimals and numbers

-- name: decimal_full | ordered: yes | for: 38 digits pass unharmed, and their arithmetic has Spark's types
SELECT id, dec38, dec38s, dec18 * dec5 AS product, dec18 / dec5 AS quotient, dec5 + dec18 AS added, CAST(dec38 AS STRING) AS text, CAST(dec38s AS DECIMAL(38, 2)) AS rounded
FROM nasty WHERE dec5 <> 0 ORDER BY id;

-- name: decimal_sums | ordered: no | for: sums and averages of decimals: exact, in wider types
SELECT sum(l_extendedprice * (1 - l_discount) * (1 + l_tax)) AS charge, avg(l_discount) AS d, sum(l_tax) AS t, avg(l_extendedprice * l_quantity) AS big FROM lineitem;

-- name: decimal_overflow | ordered: no | error: NUMERIC_VALUE_OUT_OF_RANGE | for: overflow is an error, never a wrapped number
SELECT dec38 * 10 AS too_much FROM nasty;

-- name: decimal_try | ordered: yes | for: the try_ functions give NULL instead
SELECT id, try_multiply(dec38, 10) AS a, try_add(i64, i64) AS b, try_divide(1, i32) AS c, try_cast(s AS INT) AS d FROM nasty ORDER BY id;

-- name: bigint_overflow | ordered: no | error: ARITHMETIC_OVERFLOW | for: a sum over int64 is an error
SELECT i64 + 1 AS too_much FROM nasty WHERE i64 > 100;

-- name: divide_by_zero | ordered: no | error: DIVIDE_BY_ZERO | for: an error of one row at another site
SELECT r_regionkey / (r_regionkey - 1) AS bad FROM region;

-- name: invalid_cast | ordered: no | error: CAST_INVALID_INPUT | for: text that is no number
SELECT CAST(s AS INT) AS bad FROM nasty WHERE s = 'plain';

-- name: literals | ordered: no | for: every form of literal keeps its type
SELECT 1Y AS a, 2S AS b, 3 AS c, 4L AS d, 1.5 AS e, 1.5D AS f, 1.5F AS g, 1.50BD AS h, 1e3 AS i, 'it''s' AS j, "double" AS k, X'1F00' AS l, DATE '2024-02-29' AS m,
       TIMESTAMP '2024-03-31 01:30:00' AS n, TIMESTAMP_NTZ '2024-03-31 02:30:00.000001' AS o, TRUE AS p, NULL AS q, INTERVAL '1 02:03:04.5' DAY TO SECOND AS r,
       99999999999999999999999999999999999999 AS s, -9223372036854775808 AS t, 0.1 + 0.2 AS u, 5 DIV 2 AS v, 5 / 2 AS w, -7 % 3 AS x, 1 = 1.0 AS y, '' AS z;

-- name: doubles_grouped | ordered: no | for: NaN is one group, -0.0 and 0.0 another
SELECT f64, count(*) AS many, min(id) AS first_id FROM nasty GROUP BY f64;

-- name: doubles_compared | ordered: yes | for: NaN equals itself and is above infinity
SELECT id, f64 = f64 AS same, f64 > CAST('Infinity' AS DOUBLE) AS above, f64 <=> f32 AS alike, isnan(f64) AS nan, nanvl(f64, 1) AS replaced FROM nasty ORDER BY id;

-- name: doubles_joined | ordered: no | for: NaN joins with NaN, -0.0 with 0.0
SELECT a.id AS a_id, b.id AS b_id FROM nasty AS a JOIN events AS b ON a.f64 = b.value WHERE b.id < 500;

-- name: doubles_distinct | ordered: no | for: DISTINCT over parts with NaN and both zeros
SELECT DISTINCT value FROM events WHERE value IS NULL OR isnan(value) OR value = 0 OR value > 1000;

-- ============================================================ text, time, nested types

-- name: text_escapes | ordered: no | for: quotes, backslashes, newlines and percent signs in literals
SELECT id, s FROM nasty WHERE s IN ('it''s', 'say "hi"', "back\\slash", 'two\nlines\tand a tab', '100%_sure', '${env:HOME}', '日本語') OR s LIKE '100\%\_%' OR s LIKE 'b#_ck%' ESCAPE '#' OR s RLIKE '^\\s';

-- name: text_raw | ordered: no | for: raw strings and unicode escapes
SELECT r'a\nb' AS raw, '\u00e6\U0001F3DD' AS letters, 'tab\there' AS tab, 'a' 'b' AS joined, length('🏝️') AS n, 'x\\y' AS slash, '\%' AS percent, '"' AS q, "'" AS p, '--not a comment' AS c, '/* nor this */' AS d;

-- name: text_functions | ordered: yes | for: functions over text of many scripts
SELECT id, length(s) AS n, octet_length(s) AS bytes, upper(s) AS up, reverse(s) AS back, trim(s) AS t, lpad(s, 5, '*') AS l, split(s, ' ') AS parts, regexp_replace(s, '[aeiou]', '_') AS r,
       instr(s, 'l') AS place, concat_ws('|', s, `odd name`) AS c, s || NULL AS nothing, md5(s) AS hash, translate(s, 'abc', 'xyz') AS tr, initcap(s) AS ini, replace(s, '\\', '/') AS sl
FROM nasty ORDER BY id;

-- name: like_forms | ordered: yes | for: LIKE, NOT LIKE, ILIKE, LIKE ANY and ALL
SELECT p_partkey, p_name FROM part WHERE p_name LIKE '%green%' AND p_name NOT LIKE 'a%' AND p_type ILIKE '%brass' OR p_name LIKE ANY ('sky%', '%olive') AND p_name LIKE ALL ('%e%', '%o%') ORDER BY p_partkey;

-- name: csv_table | ordered: yes | for: a table of CSV: quotes, newlines and empty fields
SELECT id, word, lang, meaning, length(meaning) AS n FROM words ORDER BY id;

-- name: csv_json_join | ordered: yes | for: CSV at one site with JSON at another
SELECT w.word, n.stars, n.by.name AS author, size(n.by.roles) AS roles FROM words AS w LEFT JOIN notes AS n ON w.id = n.word_id ORDER BY w.id, n.id;

-- name: dates_and_times | ordered: yes | for: arithmetic of dates, times and intervals
SELECT id, d + 1 AS a, date_add(d, -1) AS b, datediff(d, DATE '2000-01-01') AS c, add_months(d, 1) AS e, last_day(d) AS f, ts + INTERVAL 1 HOUR AS g, ts - INTERVAL '1 00:00:01' DAY TO SECOND AS h,
       tsn - TIMESTAMP_NTZ '2000-01-01 00:00:00' AS i, date_trunc('MONTH', ts) AS j, EXTRACT(DOW FROM d) AS k, date_format(ts, 'yyyy-MM-dd HH:mm:ss.SSSSSS') AS l, unix_micros(ts) AS m,
       months_between(ts, tsn) AS n, to_date('2024-02-29') AS o, make_date(2024, 2, 29) AS p, weekofyear(d) AS q, CAST(ts AS STRING) AS r, CAST(d AS TIMESTAMP) AS u, tsn > ts AS v
FROM nasty WHERE d BETWEEN DATE '1500-01-01' AND DATE '2500-01-01' AND (ts IS NULL OR ts BETWEEN TIMESTAMP '1500-01-01 00:00:00' AND TIMESTAMP '2500-01-01 00:00:00') ORDER BY id;

-- name: intervals | ordered: no | for: intervals made, multiplied and summed
SELECT max(o_orderdate) + INTERVAL '1-2' YEAR TO MONTH AS a, INTERVAL 3 DAYS * 2 AS b, TIMESTAMP '2024-03-31 01:30:00' - TIMESTAMP '2024-03-30 00:00:00' AS c,
       sum(INTERVAL 1 HOUR) AS d, make_dt_interval(1, 2, 3, 4.5) AS e, min(o_orderdate) - INTERVAL 1 MONTH AS f FROM orders WHERE o_orderkey < 1000;

-- name: time_is_fixed | ordered: no | for: now() is one moment in the whole query, at every site
SELECT count(DISTINCT t) AS moments, count(DISTINCT d) AS days FROM (SELECT now() AS t, current_date() AS d FROM events UNION ALL SELECT current_timestamp(), current_date FROM nation) AS x;

-- name: binary_values | ordered: yes | for: bytes that are no text
SELECT id, bin, hex(bin) AS h, length(bin) AS n, bin = X'616263' AS abc, base64(bin) AS b, sha2(bin, 256) AS sha FROM nasty ORDER BY bin, id;

-- name: struct_fields | ordered: yes | for: fields of structs, structs made, and stars of structs
SELECT id, st.x, st.y AS why, st.*, named_struct('a', id, 'b', s) AS made, struct(id, s) AS pair, nested[0].k AS k, nested.k AS ks FROM nasty WHERE st IS NOT NULL AND size(nested) > 0 ORDER BY id;

-- name: arrays | ordered: yes | for: arrays: elements, slices, sets, and NULLs inside
SELECT id, try_element_at(arr, 1) AS first_one, get(arr, 5) AS sixth, size(arr) AS n, array_contains(arr, 5) AS has5, array_distinct(arr) AS distinct_ones, sort_array(arr, FALSE) AS sorted,
       array_union(arr, array(1, NULL)) AS united, concat(arr, array(0)) AS longer, array_position(arr, 3) AS place, flatten(array(arr, array(9))) AS flat, sequence(1, 3) AS seq, arr = array(3, 1, 2) AS same
FROM nasty ORDER BY id;

-- name: higher_order | ordered: yes | for: lambdas: their variables are no columns
SELECT id, transform(arr, x -> x * 2L) AS doubled, filter(arr, x -> x > id % 4) AS some, aggregate(arr, 0L, (acc, x) -> acc + coalesce(x, 0)) AS total, exists(arr, x -> x IS NULL) AS has_null,
       forall(arrs, w -> length(w) < 5) AS short, transform(arrs, (w, i) -> concat(i, ':', w)) AS numbered, zip_with(arr, arrs, (a, b) -> named_struct('a', a, 'b', b)) AS zipped, transform(arr, id -> id + 1L) AS shadowed
FROM nasty ORDER BY id;

-- name: maps | ordered: yes | for: maps: keys, values, made from arrays, and lambdas over them
SELECT id, m['a'] AS a, element_at(m, 'ключ') AS k, map_keys(m) AS keys, map_values(m) AS vals, size(m) AS n, transform_values(m, (k, v) -> v + 1) AS more, map_filter(m, (k, v) -> v IS NOT NULL) AS kept,
       map('x', id) AS made, map_from_arrays(array('p', 'q'), array(1, 2)) AS from_arrays, map_contains_key(m, 'b') AS has_b
FROM nasty ORDER BY id;

-- name: json_text | ordered: yes | for: functions that read and write JSON
SELECT id, to_json(st) AS j, get_json_object('{"a":{"b":[1,2]}}', '$.a.b[1]') AS g, from_json('{"a":1,"b":"x"}', 'a INT, b STRING') AS f FROM nasty WHERE id < 9 ORDER BY id;

-- ============================================================ conditions and forms

-- name: conditions | ordered: yes | for: CASE, IF, NULLIF, IN, BETWEEN, <=>, and NULL in each
SELECT id, CASE WHEN i32 > 0 THEN 'up' WHEN i32 < 0 THEN 'down' END AS a, CASE flag WHEN TRUE THEN 1 WHEN FALSE THEN 0 ELSE -1 END AS b, if(i16 IS NULL, 'none', 'some') AS c, nullif(i32, 7) AS d,
       i32 IN (7, NULL) AS e, i16 NOT IN (0, 1) AS f, i8 BETWEEN -1 AND 127 AS g, i8 NOT BETWEEN 0 AND i16 AS h, i32 <=> NULL AS i, NOT flag AS j, flag AND NULL AS k, flag OR NULL AS l,
       flag IS NOT TRUE AS m, i32 IS DISTINCT FROM 7 AS n, nvl2(s, 1, 2) AS o, greatest(i8, i16, 0) AS p, least(f64, f32) AS q, decode(i32, 7, 'seven', 'other') AS r
FROM nasty ORDER BY id;

-- name: filter_precedence | ordered: yes | for: AND, OR and NOT keep their places, through NULL
SELECT id FROM nasty WHERE NOT (flag OR i32 = 7) AND i8 = 127 OR i16 IS NULL AND NOT flag OR (s > 'm') = (i8 > 0) ORDER BY id;

-- name: pivot | ordered: yes | for: PIVOT makes columns of values
SELECT * FROM (SELECT o_orderstatus, o_orderpriority, o_totalprice FROM orders) PIVOT (sum(o_totalprice) AS total, count(*) AS n FOR o_orderstatus IN ('F' AS done, 'O' AS open, 'P')) ORDER BY o_orderpriority;

-- name: unpivot | ordered: yes | for: UNPIVOT makes rows of columns, and drops NULLs
SELECT * FROM (SELECT id, CAST(i8 AS INT) AS i8, CAST(i16 AS INT) AS i16, i32 FROM nasty) UNPIVOT (v FOR src IN (i8, i16 AS small, i32)) ORDER BY id, src;

-- name: values_table | ordered: yes | for: VALUES as a table, joined with a site's
SELECT v.label, n_name FROM (VALUES (1, 'one'), (2, 'two'), (NULL, 'none')) AS v (k, label) LEFT JOIN nation ON n_nationkey = v.k ORDER BY v.label;

-- name: values_alone | ordered: yes | for: VALUES as the whole statement
VALUES (2, 'b', NULL), (1, 'a', 1.5) ORDER BY 1;

-- name: select_without_from | ordered: no | for: no table at all
SELECT 1 AS one, 'two' AS two, array(1, 2) AS three WHERE 1 < 2;

-- name: from_first | ordered: no | for: only constants of a table's rows
SELECT 1 AS one FROM region;

-- name: comments_and_layout | ordered: yes | for: comments inside and keywords in any case
select /* a comment */ N_name -- and one more
  , /* nested /* inside */ */ n_regionkey as K from nation Where n_nationkey <= 4 oRdEr By n_name;

-- name: keywords_as_names | ordered: yes | for: names that are keywords elsewhere
SELECT n_nationkey AS `order`, n_name AS date, n_regionkey AS `select`, 1 AS value, 2 AS `from` FROM nation AS `table` WHERE n_nationkey < 4 ORDER BY `order`;

-- ============================================================ parameters

-- name: parameters_positional | ordered: yes | for: ? in WHERE, IN and SELECT
SELECT o_orderkey, ? AS label FROM orders WHERE o_totalprice > ? AND o_orderstatus IN (?, ?) AND o_orderdate < ? ORDER BY o_orderkey;

-- name: parameters_named | ordered: yes | for: :name used twice, at two sites, also in LIMIT
SELECT c_custkey, o_orderkey, :label AS label FROM customer JOIN orders ON c_custkey = o_custkey WHERE c_nationkey = :nation AND o_totalprice > :least OR c_custkey = :nation ORDER BY c_custkey, o_orderkey LIMIT :many;

-- name: parameters_types | ordered: no | for: every type a client can send, NULL among them
SELECT :t AS t, :i AS i, :big AS big, :f AS f, :nan AS nan, :dec AS dec, :s AS s, :b AS b, :d AS d, :ts AS ts, :tsn AS tsn, :none AS none, :arr AS arr;
-- oracle:
SELECT TRUE AS t, 42 AS i, 1099511627776L AS big, 1.5D AS f, CAST('NaN' AS DOUBLE) AS nan, 123.4500BD AS dec, 'it''s ?' AS s, X'00FF' AS b, DATE '2024-02-29' AS d,
       TIMESTAMP '2024-03-31 01:30:00' AS ts, TIMESTAMP_NTZ '2024-03-31 02:30:00.000001' AS tsn, NULL AS none, array(1, 2, 3) AS arr;

-- name: parameters_hostile | ordered: no | for: a parameter's text is never SQL
SELECT count(*) AS n, ? AS text FROM nation WHERE n_name = ?;

-- ============================================================ a table with parts at every site

-- name: parts_scan | ordered: no | for: all parts, each row once
SELECT * FROM events;

-- name: parts_one | ordered: yes | for: one part by its site's name
SELECT id, ts, kind FROM bergen.events ORDER BY id;

-- name: parts_compared | ordered: no | for: parts of one table named apart in one query
SELECT 'oslo' AS site, count(*) AS n, sum(amount) AS total FROM oslo.events UNION ALL SELECT 'bergen', count(*), sum(amount) FROM bergen.events UNION ALL SELECT 'tromso', count(*), sum(amount) FROM tromso.events;

-- name: parts_filter | ordered: no | for: a filter goes to each part
SELECT id, value FROM events WHERE kind = 'buy' AND value > 10;

-- name: parts_count | ordered: no | for: a count over all parts
SELECT count(*) FROM events;

-- name: parts_group | ordered: yes | for: groups that span parts
SELECT kind, count(*) AS n, count(amount) AS m, sum(amount) AS total, avg(amount) AS mean, min(value) AS least, max(value) AS most, max(ts) AS latest FROM events GROUP BY kind ORDER BY kind NULLS LAST;

-- name: parts_group_doubles | ordered: no | for: sums of doubles over parts, and groups by an expression
SELECT id % 5 AS five, sum(value) AS total, avg(value) AS mean FROM events WHERE NOT isnan(value) AND abs(value) < 1000 GROUP BY id % 5;

-- name: parts_merge | ordered: yes | for: sorted parts are merged: every row, in order
SELECT id, kind, value FROM events ORDER BY kind NULLS LAST, value DESC, id;

-- name: parts_merge_limit | ordered: yes | for: a merge that stops early
SELECT id, ts, amount FROM events ORDER BY ts, id LIMIT 40 OFFSET 7;

-- name: parts_merge_ties | ordered: ties ts | for: ties within and across parts
SELECT ts, kind, id FROM events ORDER BY ts;

-- name: parts_limit | ordered: no | for: a limit that every part alone could fill
SELECT count(*) AS n FROM (SELECT id FROM events LIMIT 100) AS t;

-- name: parts_distinct | ordered: no | for: DISTINCT over parts
SELECT DISTINCT kind, size(tags) AS n FROM events;

-- name: parts_join | ordered: yes | for: a table in parts joined with a whole one
SELECT n_name, count(*) AS n, sum(amount) AS total FROM events JOIN nation ON id % 25 = n_nationkey WHERE kind IS NOT NULL GROUP BY n_name ORDER BY n_name;

-- name: parts_small_first | ordered: yes | for: small relations first, which nothing connects: no product of them
SELECT r_name, p_mfgr, count(*) AS n, sum(amount) AS total FROM region, supplier, part, nation, events
WHERE id = p_partkey AND id % 100 = s_suppkey AND id % 25 = n_nationkey AND n_regionkey = r_regionkey AND kind IS NOT NULL
GROUP BY r_name, p_mfgr ORDER BY r_name, p_mfgr;

-- name: parts_self_join | ordered: yes | for: a table in parts joined with itself: pairs across parts
SELECT a.id AS one, b.id AS other FROM events AS a JOIN events AS b ON a.ts = b.ts AND a.id < b.id WHERE a.kind = 'buy' AND b.kind = 'buy' ORDER BY one, other;

-- name: parts_not_in | ordered: yes | for: an anti join against a table in parts
SELECT p_partkey FROM part WHERE p_partkey < 600 AND p_partkey NOT IN (SELECT id FROM events WHERE kind = 'view' AND id IS NOT NULL) ORDER BY p_partkey;

-- name: small_row_groups | ordered: no | for: many small row groups in one site's files
SELECT count(*) AS n, count(DISTINCT id) AS ids, sum(id) AS total FROM bergen.events WHERE value < 0;

-- ============================================================ what the planner's rules move

-- name: rules_star_after_filters | ordered: no | for: a moved condition's column is still one of the star's
SELECT * FROM orders JOIN customer ON o_custkey = c_custkey WHERE c_mktsegment = 'BUILDING' AND o_totalprice > 300000;

-- name: rules_names_in_any_case | ordered: no | for: names as they were written, from a block and from tables
SELECT d.*, C_Name, o.O_ORDERKEY FROM (SELECT O_CustKey, COUNT(*) AS N, max(o_orderkey) AS Last FROM orders GROUP BY o_custkey) AS d
JOIN customer ON d.O_CUSTKEY = c_custkey JOIN orders o ON o.o_orderkey = d.LAST WHERE C_NATIONKEY = 3;

-- name: rules_left_join_filters | ordered: no | for: a condition on the supplied side moves, the kept side keeps its rows
SELECT o_orderkey, c_name FROM orders LEFT JOIN customer ON o_custkey = c_custkey AND c_nationkey = 3 AND o_totalprice > 200000
WHERE o_orderkey < 2000;

-- name: rules_left_join_chain | ordered: no | for: reductions stop at rows that an outer join keeps
SELECT c_custkey, o_orderkey, l_linenumber FROM customer LEFT JOIN orders ON o_custkey = c_custkey AND o_orderstatus = 'F'
LEFT JOIN lineitem ON l_orderkey = o_orderkey AND l_quantity > 45 WHERE c_nationkey = 7 AND c_custkey < 800;

-- name: rules_full_join | ordered: no | for: nothing reduces a full join
SELECT n_name, s_name FROM nation FULL JOIN supplier ON n_nationkey = s_suppkey WHERE coalesce(n_nationkey, s_suppkey) < 30;

-- name: rules_anti_join | ordered: no | for: an anti join over sites
SELECT c_custkey FROM customer LEFT ANTI JOIN orders ON o_custkey = c_custkey WHERE c_nationkey = 5;

-- name: rules_not_exists | ordered: no | for: keys of the outer query reduce the table of NOT EXISTS
SELECT c_custkey, c_acctbal FROM customer WHERE c_nationkey = 5 AND NOT EXISTS (SELECT 1 FROM orders WHERE o_custkey = c_custkey AND o_orderstatus = 'O');

-- name: rules_not_in_nulls | ordered: no | for: NOT IN over a column with a null gives nothing, wherever it is answered
SELECT o_orderkey FROM orders JOIN nation ON o_orderkey = n_nationkey
WHERE n_nationkey NOT IN (SELECT CASE WHEN r_regionkey < 3 THEN r_regionkey END FROM region);

-- name: rules_scalar_in_place | ordered: no | for: a scalar subquery goes with its table
SELECT o_orderkey, c_name FROM orders JOIN customer ON o_custkey = c_custkey
WHERE c_acctbal > (SELECT avg(c_acctbal) * 1.8 FROM customer WHERE c_nationkey < 5) AND o_totalprice > 200000;

-- name: rules_disjunction | ordered: yes | for: each branch of an OR says something of both tables
SELECT p_brand, count(*) AS n, sum(l_quantity) AS q FROM lineitem, part
WHERE (p_partkey = l_partkey AND p_brand = 'Brand#12' AND l_quantity < 20) OR (p_partkey = l_partkey AND p_brand = 'Brand#23' AND p_size > 20 AND l_quantity > 40)
GROUP BY p_brand ORDER BY p_brand;

-- name: rules_cte_twice | ordered: ties total | for: a WITH query named twice, one of them inside a condition
WITH revenue AS (SELECT l_suppkey AS supplier_no, sum(l_extendedprice * (1 - l_discount)) AS total FROM lineitem WHERE l_quantity > 30 GROUP BY l_suppkey)
SELECT s_name, total FROM supplier, revenue WHERE s_suppkey = supplier_no AND total > (SELECT avg(total) * 1.2 FROM revenue) ORDER BY total DESC;

-- name: rules_cte_columns | ordered: no | for: a WITH query with a list of names, under another name
WITH d(k, n) AS (SELECT o_custkey, count(*) FROM orders GROUP BY o_custkey) SELECT x.k, x.n, c_name FROM d AS x JOIN customer ON c_custkey = x.k WHERE x.n > 20;

-- name: rules_block_types | ordered: no | for: a block's sums, averages and cases keep their types on the way
SELECT c_name, d.* FROM customer JOIN (SELECT o_custkey AS k, sum(o_totalprice) AS s, avg(o_totalprice) AS a, min(o_orderdate) AS first_day,
  count(DISTINCT o_orderstatus) AS n, sum(CASE WHEN o_orderpriority = '1-URGENT' THEN 1 ELSE 0 END) AS urgent, max(o_totalprice * 2 - 1) AS m
  FROM orders WHERE o_orderkey < 5000 GROUP BY o_custkey) AS d ON c_custkey = d.k WHERE c_nationkey < 4;

-- name: rules_block_limit | ordered: no | for: the first groups of a site travel, not its table; their own order decides which
SELECT c_name, total, orders FROM (SELECT o_custkey, sum(o_totalprice) AS total, count(*) AS orders FROM orders
  GROUP BY o_custkey ORDER BY total DESC, o_custkey LIMIT 10) AS t JOIN customer ON o_custkey = c_custkey WHERE total > 1;

-- name: rules_block_window | ordered: no | for: places, sums and neighbours of rows of a whole table, asked for at another site, with their types
SELECT c_name, place, third, before, total, share FROM (SELECT o_custkey, o_orderkey,
    row_number() OVER (PARTITION BY o_custkey ORDER BY o_totalprice DESC, o_orderkey) AS place,
    ntile(3) OVER (PARTITION BY o_custkey ORDER BY o_orderkey) AS third,
    lag(o_orderdate) OVER (PARTITION BY o_custkey ORDER BY o_orderkey) AS before,
    sum(o_totalprice) OVER (PARTITION BY o_custkey) AS total,
    percent_rank() OVER (PARTITION BY o_custkey ORDER BY o_orderkey) AS share FROM orders) AS t
  JOIN customer ON o_custkey = c_custkey WHERE place <= 2 AND c_nationkey = 3;

-- name: rules_cte_limit_twice | ordered: no | for: a WITH query with a limit is one computation, and travels once
WITH t(k) AS (SELECT o_custkey FROM orders GROUP BY o_custkey ORDER BY o_custkey LIMIT 20)
SELECT count(*) AS pairs FROM t AS a JOIN t AS b ON a.k = b.k JOIN customer ON c_custkey = a.k;

-- name: rules_cte_nested | ordered: no | for: WITH in WITH, and a name that two of them give
WITH a AS (SELECT n_nationkey AS k, n_name AS name FROM nation),
     b AS (WITH a AS (SELECT s_nationkey AS k, count(*) AS n FROM supplier GROUP BY s_nationkey), c AS (SELECT k, n FROM a WHERE n > 2)
           SELECT c.k, max(n) AS m FROM c GROUP BY c.k)
SELECT a.name, b.m FROM a JOIN b ON a.k = b.k;

-- name: rules_arms_types | ordered: no | for: types of arms are made one by Spark, names are the first arm's
SELECT 'o' AS Src, count(*) AS N, max(o_totalprice) AS most, max(o_orderdate) AS last FROM orders GROUP BY o_orderpriority
UNION ALL SELECT 'customers', max(c_nationkey), avg(c_acctbal), NULL FROM customer
UNION ALL SELECT s_name, s_suppkey, 1, CAST('2020-01-01' AS DATE) FROM supplier WHERE s_suppkey < 4;

-- name: rules_arms_names | ordered: yes | for: the first arm's columns are named by Spark, and ordered by that name
SELECT count(*), max(o_custkey) AS c FROM orders UNION ALL SELECT count(*), max(c_custkey) FROM customer UNION ALL
SELECT count(*), 0 FROM supplier ORDER BY `count(1)`;

-- name: rules_arms_limit | ordered: no | for: limits in arms, kept by their own order
(SELECT o_orderkey AS k FROM orders ORDER BY o_totalprice DESC, o_orderkey LIMIT 5) UNION ALL
((SELECT c_custkey FROM customer ORDER BY c_acctbal, c_custkey LIMIT 4) EXCEPT SELECT n_nationkey FROM nation) UNION ALL
(SELECT ps_partkey FROM partsupp GROUP BY ps_partkey ORDER BY ps_partkey OFFSET 1995);

-- name: rules_arms_sets | ordered: no | for: rows of sets travel once: over whole tables, joins and parts
SELECT o_custkey % 7 AS k, o_orderstatus AS s FROM orders UNION
SELECT c_nationkey, c_mktsegment FROM customer JOIN nation ON c_nationkey = n_nationkey EXCEPT
SELECT ps_suppkey, 'F' FROM partsupp JOIN supplier ON ps_suppkey = s_suppkey;

-- name: rules_arms_all | ordered: no | for: with ALL it matters how often a row comes
SELECT c_nationkey AS k FROM customer INTERSECT ALL SELECT s_nationkey FROM supplier EXCEPT ALL
SELECT n_nationkey FROM nation UNION ALL SELECT l_linenumber FROM lineitem WHERE l_orderkey < 20;

-- name: rules_chain | ordered: ties n_name | for: keys of keys: part reduces lineitem, which reduces orders, which reduce customers
SELECT n_name, count(*) AS n, sum(o_totalprice) AS total FROM part, lineitem, orders, customer, nation
WHERE p_partkey = l_partkey AND l_orderkey = o_orderkey AND o_custkey = c_custkey AND c_nationkey = n_nationkey AND p_type = 'ECONOMY ANODIZED STEEL'
GROUP BY n_name ORDER BY n_name;

-- name: rules_self_join | ordered: no | for: one table twice, each mention with conditions of its own
SELECT a.n_name AS one, b.n_name AS other, s_name FROM nation a, nation b, supplier, customer
WHERE a.n_nationkey = s_nationkey AND b.n_nationkey = c_nationkey AND s_suppkey = c_custkey AND (a.n_regionkey = 1 OR b.n_regionkey = 2) AND a.n_name < b.n_name;

-- name: rules_parts_join | ordered: no | for: a table with a part at each site, reduced by a table of one
SELECT e.id, n_name FROM events e JOIN nation ON e.id = n_nationkey WHERE n_regionkey = 1;

-- name: rules_mixed_key_types | ordered: no | for: an equality of different types is Spark's own at every site
SELECT o_orderkey, r_name FROM orders JOIN region ON o_shippriority = r_regionkey JOIN nasty ON nasty.id = o_orderkey;

-- name: rules_using | ordered: no | for: columns that USING merges are left alone
SELECT k, a, b FROM (SELECT n_nationkey AS k, n_name AS a FROM nation) JOIN (SELECT s_nationkey AS k, count(*) AS b FROM supplier GROUP BY s_nationkey) USING (k);

-- name: rules_computed | ordered: no | for: patterns, first letters and products are made where their table is
SELECT code, sum(CASE WHEN is_building THEN o_totalprice ELSE 0 END) AS s, sum(worth) AS w, count(*) AS n
FROM (SELECT substring(c_phone, 1, 2) AS code, c_mktsegment LIKE 'BUILD%' AS is_building, c_acctbal * (1 - c_acctbal) AS worth, o_totalprice
      FROM orders JOIN customer ON o_custkey = c_custkey WHERE o_orderkey < 6000) AS d GROUP BY code;

-- name: rules_computed_nulls | ordered: no | for: a value of a NULL is not a value that an outer join left out
SELECT n_name, c_name LIKE 'C%' AS c, c_name IS NULL AS missing FROM nation LEFT JOIN (SELECT c_name, c_custkey FROM customer) AS d ON n_nationkey = c_custkey - 20
JOIN supplier ON s_suppkey = n_nationkey;

-- name: rules_sets | ordered: no | for: EXISTS and IN ask whether, not how often, and NOT IN minds a NULL
SELECT c_custkey FROM customer WHERE EXISTS (SELECT * FROM orders WHERE o_custkey = c_custkey AND o_totalprice > 250000)
AND c_custkey NOT IN (SELECT o_custkey FROM orders WHERE o_orderstatus = 'P') AND c_nationkey IN (SELECT s_nationkey FROM supplier);

-- name: rules_answer_scalar | ordered: no | for: a scalar of another site in WHERE, and one in a column with an alias, with their types
SELECT c_custkey, c_acctbal * (SELECT max(s_acctbal) FROM supplier) AS m, (SELECT count(*) FROM orders WHERE o_orderkey < 0) AS none
FROM customer WHERE c_acctbal > (SELECT avg(o_totalprice) / 20 FROM orders WHERE o_orderstatus = 'F');

-- name: rules_answer_no_row | ordered: no | for: a scalar without a row is NULL
SELECT n_nationkey, (SELECT s_name FROM supplier WHERE s_suppkey < 0) AS nobody FROM nation WHERE (SELECT o_orderkey FROM orders WHERE o_orderkey < 0) IS NULL;

-- name: rules_answer_named | ordered: no | for: a column that Spark names after its subquery
SELECT n_nationkey, (SELECT max(o_orderkey) FROM orders), n_nationkey < (SELECT max(s_suppkey) FROM supplier) FROM nation;

-- name: rules_answer_having | ordered: no | for: a scalar in HAVING
SELECT c_nationkey, sum(o_totalprice) AS s FROM orders JOIN customer ON o_custkey = c_custkey GROUP BY c_nationkey
HAVING sum(o_totalprice) > (SELECT 10 * sum(s_acctbal) FROM supplier WHERE s_acctbal > 0);

-- name: rules_answer_in | ordered: no | for: sets of another site: of groups, of two columns, of a union
SELECT c_custkey FROM customer WHERE c_custkey IN (SELECT o_custkey FROM orders GROUP BY o_custkey HAVING count(*) > 20)
AND (c_nationkey, c_custkey % 100) NOT IN (SELECT s_nationkey, s_suppkey FROM supplier JOIN partsupp ON s_suppkey = ps_suppkey WHERE ps_availqty > 9000)
AND c_nationkey IN (SELECT s_nationkey FROM supplier UNION SELECT CAST(p_size AS BIGINT) FROM part WHERE p_size < 3);

-- name: rules_answer_not_in_null | ordered: no | for: one NULL in the set of another site, and NOT IN is never true
SELECT n_nationkey FROM nation WHERE n_nationkey NOT IN (SELECT CASE WHEN s_suppkey > 3 THEN s_suppkey END FROM supplier WHERE s_suppkey < 50);

-- name: rules_answer_in_or | ordered: no | for: sets beside an OR: a row is true, false or neither
SELECT n_nationkey, (n_nationkey IN (SELECT CASE WHEN s_suppkey > 3 THEN s_suppkey END FROM supplier WHERE s_suppkey < 12)) IS NULL AS neither
FROM nation WHERE n_regionkey = 1 OR NOT EXISTS (SELECT * FROM supplier JOIN partsupp ON s_suppkey = ps_suppkey WHERE s_acctbal > 1000000);

-- name: rules_answer_group_alias | ordered: no | for: a subquery that groups by its own alias, which is a column around it too
WITH d AS (SELECT o_custkey AS k, sum(o_totalprice) AS m FROM orders GROUP BY k)
SELECT c_name, m FROM customer, d WHERE c_custkey = k AND m = (SELECT max(m) FROM d);

-- name: rules_answer_group_around | ordered: no | for: Spark groups by the alias and not by the column around
SELECT r_regionkey FROM (SELECT r_regionkey, r_name AS k FROM region) AS r WHERE r_regionkey IN
  (SELECT n FROM (SELECT s_nationkey AS k, count(*) AS n FROM supplier GROUP BY k) AS d) OR r_regionkey = 2;

-- name: rules_lookup_scalar | ordered: no | for: aggregates of another site for each key, with none for some of them
SELECT o_orderkey, (SELECT sum(s_acctbal) FROM supplier WHERE s_suppkey = o_custkey AND s_acctbal > 0) AS s,
  1 + (SELECT 2 * avg(s_acctbal) - min(s_suppkey) FROM supplier WHERE o_custkey = s_nationkey AND s_acctbal > 1000) AS a
FROM orders WHERE o_custkey < 200 AND o_totalprice > (SELECT 3 * max(ps_availqty) FROM partsupp WHERE ps_suppkey = o_custkey);

-- name: rules_lookup_count | ordered: no | for: a count of nothing is 0
SELECT o_orderkey, (SELECT count(*) FROM partsupp WHERE o_custkey = ps_suppkey AND ps_availqty > 5000) AS n FROM orders
WHERE o_orderkey < 9000 AND (SELECT 1 + count(DISTINCT ps_availqty) FROM partsupp WHERE ps_suppkey = o_custkey) < 80;

-- name: rules_lookup_keys | ordered: no | for: two keys, two tables, and whole numbers of two sizes
SELECT l_orderkey, l_linenumber FROM lineitem WHERE l_quantity > 40 AND l_orderkey < 3000 AND l_extendedprice / l_quantity >
  (SELECT max(ps_supplycost) + 900 FROM partsupp JOIN supplier ON s_suppkey = ps_suppkey WHERE ps_partkey = l_partkey AND ps_suppkey = l_suppkey AND s_acctbal > 0);

-- name: rules_lookup_null_keys | ordered: no | for: a NULL key has no group, on either side
SELECT a.id, (SELECT max(p_size) FROM part WHERE p_partkey = a.i64) AS m FROM nasty AS a
WHERE NOT EXISTS (SELECT 1 FROM part JOIN partsupp ON p_partkey = ps_partkey WHERE p_size = a.i32 AND ps_availqty > 9990);

-- name: rules_lookup_exists | ordered: no | for: EXISTS over a join of another site, with more than an equality
SELECT n_nationkey FROM nation WHERE EXISTS (SELECT * FROM supplier JOIN partsupp ON s_suppkey = ps_suppkey WHERE s_nationkey = n_nationkey AND ps_availqty > 9900 AND ps_suppkey > n_regionkey)
AND NOT EXISTS (SELECT 1 FROM supplier, partsupp WHERE s_suppkey = ps_suppkey AND n_nationkey = s_nationkey AND (ps_availqty < 10 OR s_suppkey < n_nationkey));

-- name: rules_lookup_not_in | ordered: no | for: IN and NOT IN over a join of another site
SELECT n_nationkey FROM nation WHERE n_nationkey IN (SELECT s_nationkey FROM supplier JOIN partsupp ON s_suppkey = ps_suppkey WHERE s_suppkey > n_regionkey AND ps_availqty > 9900)
AND n_regionkey NOT IN (SELECT s_suppkey % 3 FROM supplier JOIN partsupp ON s_suppkey = ps_suppkey WHERE s_nationkey = n_nationkey AND ps_availqty < 2000);

-- name: rules_joined_names | ordered: no | for: tables that travel joined have columns of one name, which the result keeps as written
SELECT O_OrderKey, n1.n_name, n2.N_Name, C_CUSTKEY FROM orders, customer, nation n1, nation n2
WHERE o_custkey = c_custkey AND c_nationkey = n1.n_nationkey AND n1.n_regionkey = n2.n_regionkey AND n2.n_name LIKE 'A%' AND o_orderkey < 500;

-- name: rules_joined_auto_names | ordered: no | for: names that Spark makes of such columns
SELECT max(n1.n_name), sum(c_acctbal * 2), upper(n2.n_name), count(*) FROM orders, customer, nation n1, nation n2
WHERE o_custkey = c_custkey AND c_nationkey = n1.n_nationkey AND n1.n_regionkey = n2.n_regionkey AND n2.n_name LIKE 'A%' GROUP BY upper(n2.n_name);

-- name: rules_joined_equal_columns | ordered: no | for: of equal columns one travels, and all are asked for
SELECT o_orderkey, c_nationkey, n_nationkey, s_nationkey + 1, l_linenumber AS n FROM orders, customer, nation, supplier, lineitem
WHERE o_custkey = c_custkey AND c_nationkey = n_nationkey AND s_nationkey = n_nationkey AND l_suppkey = s_suppkey AND l_orderkey = o_orderkey AND n_name = 'FRANCE';

-- name: rules_joined_aliases | ordered: ties n_name, o_orderkey | for: in ORDER BY the alias comes first
SELECT c_custkey AS n_name, n_name AS c_custkey, o_orderkey FROM orders JOIN customer ON o_custkey = c_custkey
JOIN nation ON c_nationkey = n_nationkey AND n_regionkey = 2 WHERE o_totalprice > 250000 ORDER BY n_name, o_orderkey;

-- name: rules_joined_distinct | ordered: yes | for: DISTINCT and ORDER BY over joined tables
SELECT DISTINCT n.n_name, r.r_name FROM orders, customer, nation AS n, region AS r
WHERE o_custkey = c_custkey AND c_nationkey = n.n_nationkey AND n.n_regionkey = r.r_regionkey AND r_name < 'ASIB' ORDER BY n.n_name;

-- name: rules_joined_having | ordered: ties n_name | for: groups of joined tables
SELECT n.n_name, count(*), sum(l_extendedprice * (1 - l_discount)) AS revenue FROM customer c, nation n, orders, lineitem
WHERE c.c_nationkey = n.n_nationkey AND o_custkey = c.c_custkey AND l_orderkey = o_orderkey AND c_mktsegment = 'BUILDING' AND l_returnflag = 'R'
GROUP BY n.n_name HAVING count(*) > 20 AND min(n.n_name) < 'M' ORDER BY n_name;

-- name: rules_joined_correlated | ordered: no | for: subqueries that look at joined tables
SELECT o_orderkey, (SELECT max(s_acctbal) FROM supplier WHERE s_nationkey = n.n_nationkey) FROM orders, customer AS c, nation AS n
WHERE o_custkey = c.c_custkey AND c.c_nationkey = n_nationkey AND n_regionkey = 1 AND o_orderkey < 3000
AND EXISTS (SELECT 1 FROM lineitem, part WHERE l_orderkey = o_orderkey AND l_partkey = p_partkey AND p_size < n.n_nationkey AND l_quantity > 20);

-- name: rules_joined_commas | ordered: no | for: ON beside commas sees its own side only
SELECT o_orderkey, s_name FROM region, orders JOIN customer ON o_custkey = c_custkey, supplier JOIN nation ON s_nationkey = n_nationkey AND n_name < 'C'
WHERE c_nationkey = n_nationkey AND n_regionkey = r_regionkey AND (r_name = 'AFRICA' OR o_totalprice > 300000) AND o_orderkey < 2000;

-- name: rules_joined_on_the_way | ordered: no | for: parts at one site, orders at another, customers at a third
SELECT n_name, p_brand, count(*) AS n, sum(ps_supplycost) AS cost FROM part, partsupp, lineitem, orders, customer, nation
WHERE p_partkey = ps_partkey AND l_partkey = p_partkey AND l_suppkey = ps_suppkey AND l_orderkey = o_orderkey AND o_custkey = c_custkey
AND c_nationkey = n_nationkey AND p_size = 15 AND p_type LIKE '%BRASS' AND n_regionkey < 2 GROUP BY n_name, p_brand;

-- name: rules_joined_count | ordered: no | for: nothing is asked of the joined tables but how many rows they have
SELECT count(*), max(o_orderkey) FROM orders, customer, nation WHERE c_nationkey = n_nationkey AND n_name = 'PERU' AND c_acctbal < 0 AND o_orderkey < 40;

-- name: rules_joined_nulls | ordered: no | for: nulls equal nothing, -0.0 is 0.0 and NaN is NaN, wherever they are joined
SELECT a.id, b.id, a.f64, b.d, l_linenumber FROM nasty AS a, nasty AS b, lineitem WHERE a.s = b.s AND a.f64 = b.f64 AND a.i32 = l_linenumber AND l_orderkey < 40;

-- name: rules_joined_before_left | ordered: no | for: what a left join keeps is joined before it, its ON asks for their columns
SELECT c_custkey, n_name, o_orderkey, s_name FROM customer JOIN nation ON c_nationkey = n_nationkey AND n_regionkey = 3
LEFT JOIN orders ON o_custkey = c_custkey AND o_totalprice > 10000 * n_nationkey JOIN supplier ON s_nationkey = n_nationkey WHERE c_acctbal > 9000;

-- name: rules_apart_groups | ordered: no | for: groups of a join at two sites are made at one of them, and joined on at a third
SELECT s_name, d.n, d.total FROM (SELECT c_nationkey AS k, count(*) AS n, sum(o_totalprice) AS total, avg(o_totalprice) AS mean FROM orders JOIN customer ON o_custkey = c_custkey GROUP BY c_nationkey) AS d
JOIN supplier ON s_nationkey = d.k JOIN partsupp ON ps_suppkey = s_suppkey WHERE d.mean > 100000 AND ps_availqty < 100;

-- name: rules_apart_scalar | ordered: no | for: one value over two sites
SELECT ps_partkey, ps_suppkey FROM partsupp WHERE ps_supplycost * 300 > (SELECT avg(o_totalprice) FROM orders JOIN customer ON o_custkey = c_custkey WHERE c_acctbal < 0) AND ps_availqty > 9900;

-- name: rules_apart_sets | ordered: no | for: IN and EXISTS over two sites
SELECT p_partkey FROM part WHERE p_size IN (SELECT c_nationkey FROM orders JOIN customer ON o_custkey = c_custkey WHERE o_totalprice > 250000)
AND EXISTS (SELECT 1 FROM orders JOIN customer ON o_custkey = c_custkey WHERE c_acctbal > 9000) AND p_retailprice < 1200;

-- name: rules_apart_twice | ordered: no | for: a WITH query over two sites that is named twice, and its greatest
WITH t AS (SELECT c_nationkey AS k, max(o_totalprice) AS m, count(*) AS n FROM orders JOIN customer ON o_custkey = c_custkey GROUP BY c_nationkey)
SELECT ps_partkey, ps_comment, a.m, b.n FROM partsupp JOIN t AS a ON a.k = ps_suppkey JOIN t AS b ON b.k = ps_suppkey - 1 WHERE a.m > 300000 AND b.m < (SELECT max(m) FROM t);

-- name: rules_apart_outer | ordered: no | for: rows that the groups lack are kept, and groups of no customer are there
SELECT p_partkey, d.m FROM part LEFT JOIN (SELECT c_nationkey AS k, min(o_orderdate) AS m FROM customer LEFT JOIN orders ON o_custkey = c_custkey AND o_totalprice > 200000 GROUP BY c_nationkey) AS d
ON d.k = p_size AND d.m < DATE '1993-01-01' WHERE p_partkey < 200;

-- name: rules_apart_first | ordered: no | for: the first groups of a join at two sites
SELECT p_partkey, d.k, d.total FROM (SELECT c_nationkey AS k, sum(o_totalprice) AS total FROM orders JOIN customer ON o_custkey = c_custkey GROUP BY c_nationkey ORDER BY total DESC, k LIMIT 3) AS d
JOIN part ON p_size = d.k;

-- name: rules_subtree_left | ordered: ties n_name | for: what FROM begins with is joined at its site, a condition that asks for NULLs too
SELECT n_name, count(*) AS n, max(s_name) AS last FROM nation LEFT JOIN customer ON c_nationkey = n_nationkey AND c_acctbal > 9900 JOIN supplier ON s_nationkey = n_nationkey
LEFT JOIN partsupp ON ps_suppkey = s_suppkey AND ps_availqty < 20 WHERE (c_custkey IS NULL OR c_mktsegment = 'BUILDING') AND ps_partkey IS NULL GROUP BY n_name ORDER BY n_name;

-- name: rules_subtree_first | ordered: no | for: a left join and an anti join made before the join that they follow; columns with one name
SELECT o_orderkey, c.c_name, m.c_name, m.c_acctbal FROM orders AS o JOIN customer AS c ON o.o_custkey = c.c_custkey LEFT JOIN customer AS m ON m.c_custkey = c.c_custkey + 1 AND m.c_acctbal < 0
LEFT ANTI JOIN nation ON n_nationkey = c.c_nationkey AND n_regionkey < 3 WHERE o_orderkey < 3000;

-- name: rules_subtree_chain | ordered: no | for: two left joins, the second of which asks of the first; rows without either
SELECT p_partkey, s_name, count(l_orderkey), sum(l_quantity) FROM lineitem RIGHT JOIN part ON l_partkey = p_partkey AND l_quantity > 45 LEFT JOIN partsupp ON ps_partkey = p_partkey AND ps_availqty < 500
LEFT JOIN supplier ON s_suppkey = ps_suppkey AND s_acctbal > 5000 WHERE p_size < 30 AND (ps_comment LIKE '%a' OR ps_partkey IS NULL) GROUP BY p_partkey, s_name;

-- name: rules_subtree_full | ordered: no | for: NULLs, NaN and -0.0 as keys of a full join at one site, joined on with another's rows
SELECT a.id, b.id, p_partkey FROM nasty AS a FULL JOIN nasty AS b ON a.f64 = b.f64 AND a.s = b.s AND a.id <> b.id LEFT JOIN part ON p_partkey = coalesce(a.i32, b.i32) WHERE a.id IS NULL OR b.id IS NULL;

-- name: rules_subtree_semi | ordered: no | for: a semi join by a null-safe equality, commas, a subquery that asks for a column of the block
SELECT count(*), sum(o_totalprice) FROM orders, customer AS c LEFT SEMI JOIN nation AS n ON n.n_nationkey <=> c.c_nationkey AND n.n_name < 'J'
WHERE o_custkey = c.c_custkey AND EXISTS (SELECT 1 FROM supplier WHERE s_nationkey = c.c_nationkey AND s_acctbal > c_acctbal);

-- name: rules_subtree_snowflake | ordered: no | for: rows that have no part are kept, those of parts without a supplier too
SELECT l_orderkey, l_linenumber, s.s_suppkey FROM lineitem LEFT JOIN partsupp AS ps ON ps.ps_partkey = l_partkey AND ps.ps_suppkey = l_suppkey AND ps.ps_availqty < 5000
LEFT JOIN supplier AS s ON s.s_suppkey = ps.ps_suppkey AND s.s_acctbal > ps.ps_supplycost AND s.s_comment LIKE '%the%' WHERE l_orderkey < 5000;

-- name: rules_fields_joined | ordered: no | for: fields of a struct are called as the columns are, whichever tables are joined first
SELECT o_orderkey, to_json(struct(c.c_name, m.c_name)) AS f, to_json((c.c_custkey, m.c_custkey)) AS j FROM orders AS o JOIN customer AS c ON o.o_custkey = c.c_custkey
LEFT JOIN customer AS m ON m.c_custkey = c.c_custkey + 1 AND m.c_acctbal < 0 WHERE o_orderkey < 1000;

-- name: rules_fields_equal | ordered: no | for: what holds of a column by its name does not hold of its equal
SELECT o_orderkey, struct(substring(c_phone, 1, 2), o_orderstatus) AS f FROM orders JOIN customer ON o_custkey = c_custkey WHERE to_json(struct(c_custkey)) = '{"c_custkey":7}';

-- name: rules_fields_groups | ordered: no | for: fields that are called as groups are
SELECT to_json(struct(flag, max(i32))) AS j, count(*) AS n FROM nasty GROUP BY flag HAVING struct(flag).flag IS NOT NULL OR count(*) > 0;

-- name: rules_fields_lambda | ordered: no | for: variables of lambdas that are called as columns are
SELECT o_orderkey, transform(array('a', 'b'), c_phone -> upper(c_phone)) AS t, filter(array(1, 20), c_nationkey -> c_nationkey > 9) AS f FROM orders JOIN customer ON o_custkey = c_custkey WHERE o_orderkey < 500;

-- name: rules_grouped_join | ordered: no | for: a join of one site is grouped before it is joined with another's; counts of the other side too
SELECT n_name, sum(l_extendedprice * (1 - l_discount)) AS revenue, count(*) AS n, avg(l_quantity) AS a, min(o_orderdate) AS first, count(c_phone) AS phones, count(DISTINCT c_mktsegment) AS segments
FROM customer, orders, lineitem, nation WHERE c_custkey = o_custkey AND l_orderkey = o_orderkey AND c_nationkey = n_nationkey AND o_orderdate < DATE '1993-01-01' AND l_returnflag <> 'N'
GROUP BY n_name HAVING count(*) > 3;

-- name: rules_grouped_none | ordered: no | for: one row of no rows
SELECT count(*) AS n, sum(l_quantity) AS q, max(o_orderdate) AS d, avg(o_totalprice) AS a, count(l_tax) / 2 AS h FROM customer JOIN orders ON c_custkey = o_custkey
JOIN lineitem ON l_orderkey = o_orderkey WHERE c_acctbal > 100000;

-- name: rules_grouped_names | ordered: ties k | for: columns of one name, aliases that are columns, CASE and FILTER
SELECT x.o_custkey AS k, y.o_orderpriority AS c_name, sum(CASE WHEN x.o_orderstatus = 'F' THEN x.o_totalprice ELSE 0 END) AS f, sum(x.o_totalprice) FILTER (WHERE x.o_shippriority < 3) AS s
FROM orders AS x JOIN orders AS y ON x.o_orderkey = y.o_orderkey JOIN customer AS c ON c.c_custkey = x.o_custkey GROUP BY x.o_custkey, y.o_orderpriority HAVING max(c.c_acctbal) > 0 ORDER BY x.o_custkey;

-- name: rules_grouped_sets | ordered: no | for: ROLLUP over columns of both sides
SELECT c_nationkey, o_orderpriority, grouping(o_orderpriority) AS g, sum(o_totalprice) AS s, count(*) AS n FROM orders JOIN customer ON c_custkey = o_custkey GROUP BY ROLLUP (c_nationkey, o_orderpriority);

-- name: rules_grouped_nasty | ordered: no | for: NULLs and odd names as groups; extreme decimals and times as values
SELECT a.`odd name` AS k, s_nationkey, count(*) AS n, sum(a.dec5) AS d5, avg(a.dec18) AS d18, max(a.ts) AS t, bool_or(a.flag) AS f, count(a.d) AS d, sum(a.i16) AS i, avg(a.i8) AS i8, count_if(a.i8 > 0) AS p,
max(a.s) AS s, count(s_phone) AS phones FROM nasty AS a JOIN supplier ON s_nationkey = a.i32 AND (s_acctbal > 1000 OR a.i32 = 7) GROUP BY a.`odd name`, s_nationkey;

-- name: rules_grouped_too_large | ordered: no | for: a sum that is too large, of rows that the join drops
SELECT s_nationkey, sum(a.dec38) FILTER (WHERE a.dec38 < 100) AS s, count(a.dec38) AS c, count(*) AS n FROM nasty AS a JOIN supplier ON s_nationkey = a.i32 GROUP BY s_nationkey;

-- name: rules_guarded_on | ordered: no | for: what WHERE says is asked before what ON says, at every site
SELECT c_custkey, n_name FROM nation JOIN customer ON n_nationkey = c_nationkey AND 10 / n_regionkey > 2 WHERE n_regionkey <> 0 AND c_custkey IN (SELECT o_custkey FROM orders);

-- name: rules_guarded_by_on | ordered: no | for: of three tables what ON says is asked before what WHERE says
SELECT c_custkey, n_name, r_name FROM nation JOIN customer ON n_nationkey = c_nationkey AND n_regionkey <> 0 JOIN region ON n_regionkey = r_regionkey WHERE 10 / n_regionkey > 2 AND c_custkey < 100;

-- name: rules_guarded_by_hinted_on | ordered: no | for: … also where relations that arrive have hints
SELECT s_name, n_name, sum(l_quantity) AS q FROM lineitem JOIN supplier ON s_suppkey = l_suppkey AND l_linenumber <> 1 JOIN nation ON n_nationkey = s_nationkey AND s_acctbal > n_nationkey WHERE 10 / (l_linenumber - 1) > 4 GROUP BY s_name, n_name;

-- name: rules_guarded_between | ordered: no | for: of three tables BETWEEN of a value is asked before what ON says
SELECT c_custkey, s_name, n_name FROM nation JOIN customer ON n_nationkey = c_nationkey AND 10 / n_regionkey > 2 JOIN supplier ON n_nationkey = s_nationkey WHERE abs(n_regionkey) BETWEEN 1 AND 3 AND c_custkey < 100;

-- name: rules_typed_block | ordered: no | for: whole numbers of types that are easily mistaken travel
SELECT o_orderkey, t.days, t.least, t.hours FROM orders JOIN (SELECT c_custkey AS k, datediff(DAY, DATE '1995-06-17', DATE '1998-01-01') AS days, -2147483648 AS least, extract(HOUR FROM TIMESTAMP '2024-01-02 03:00:00' - TIMESTAMP '2024-01-01 00:00:00') AS hours FROM customer WHERE c_nationkey = 3) AS t ON o_custkey = t.k;

-- name: rules_listed_exists | ordered: no | for: EXISTS in the list, of a table with parts
SELECT id, CASE WHEN EXISTS (SELECT 1 FROM nation WHERE n_nationkey = events.id) THEN 'y' ELSE 'n' END AS e FROM events WHERE id < 200;

-- name: rules_guarded_value | ordered: no | for: the value of a subquery is asked before what it may guard
SELECT n_name, c_custkey FROM nation JOIN customer ON n_nationkey = c_nationkey WHERE n_regionkey <> (SELECT min(ps_partkey) - 1 FROM partsupp) AND 10 / n_regionkey > 2 AND c_custkey < 100;

-- name: rules_guarded_outer | ordered: no | for: WHERE that makes an inner join of an outer one is asked before ON
SELECT c_custkey, n_name FROM customer LEFT JOIN nation ON n_nationkey = c_nationkey AND 10 / n_regionkey > 2 WHERE n_regionkey <> 0 AND c_custkey IN (SELECT o_custkey FROM orders);

-- name: rules_named_after_cast | ordered: no | for: a cast without a name has its column's, and is what the order is by
SELECT sum(t.id) AS s FROM (SELECT CAST(amount AS STRING), id FROM events ORDER BY amount, id LIMIT 40) AS t JOIN region ON r_regionkey = 0;

-- name: rules_named_after_cast_having | ordered: yes | for: HAVING and ORDER BY mean the cast too
SELECT CAST(id AS STRING), count(*) AS n FROM events WHERE id < 300 GROUP BY id HAVING id < '25' ORDER BY id;

-- name: rules_grouping_above | ordered: yes | for: HAVING and ORDER BY ask of the grouping
SELECT kind, count(*) AS n, sum(id) AS s FROM events GROUP BY CUBE (kind) HAVING grouping(kind) = 1 OR sum(id) > 3 ORDER BY grouping_id(kind), n, s;

-- ============================================================ forms that are written in other ways

-- name: forms_qualify | ordered: yes | for: rows by their place in a window, of a table with parts; a condition outside stays outside
SELECT id, kind FROM (
  SELECT id, kind, ts FROM events WHERE id < 900 QUALIFY row_number() OVER (PARTITION BY kind ORDER BY ts DESC, id) <= 3
) WHERE id % 2 = 0 ORDER BY id;

-- name: forms_qualify_groups | ordered: no | for: QUALIFY over groups of a join of two sites
SELECT n_name, count(*) AS many, rank() OVER (ORDER BY count(*) DESC, n_name) AS place
FROM nation JOIN supplier ON s_nationkey = n_nationkey GROUP BY n_name HAVING count(*) > 1 QUALIFY place < 4 LIMIT 100;

-- name: forms_recursive | ordered: yes | for: a query that reads itself and tables of two sites, one in parts
WITH RECURSIVE steps(n, label, many) AS (
  SELECT n_nationkey, n_name, 0L FROM nation WHERE n_nationkey = 1
  UNION ALL
  SELECT n + 1, n_name, (SELECT count(*) FROM events WHERE kind = 'buy') FROM steps JOIN nation ON n_nationkey = n + 1 WHERE n < 9
)
SELECT * FROM steps WHERE n > 2 ORDER BY n;

-- name: forms_pipes | ordered: yes | for: operators of the pipe syntax over a table with parts and another site's
FROM events
|> WHERE id < 800
|> SET kind = coalesce(kind, 'none')
|> EXTEND id % 25 AS key
|> JOIN nation ON n_nationkey = key
|> AGGREGATE count(*) AS many, max(events.id) AS last GROUP BY n_name, kind AS what
|> WHERE many > 2
|> DROP last
|> AS counted
|> ORDER BY counted.many DESC, n_name, what
|> LIMIT 7;
-- oracle:
SELECT n_name, coalesce(kind, 'none') AS what, count(*) AS many FROM events JOIN nation ON n_nationkey = id % 25
WHERE id < 800 GROUP BY n_name, coalesce(kind, 'none') HAVING count(*) > 2 ORDER BY many DESC, n_name, what LIMIT 7;

-- name: forms_pipes_sets | ordered: no | for: set operations, PIVOT with an alias, and joins that keep relations' names
TABLE region |> SELECT r_name AS name |> UNION ALL (TABLE nation |> AS n |> JOIN region ON n.n_regionkey = r_regionkey |> WHERE region.r_name = 'ASIA' |> SELECT n.n_name)
|> EXCEPT SELECT 'CHINA' |> EXTEND length(name) AS size |> PIVOT (count(name) AS many FOR size IN (4 AS four, 5 AS five, 6)) AS p |> SELECT p.*;

-- name: forms_orders | ordered: no | for: FROM first, TABLE, hints, div and units
FROM (TABLE events) SELECT /*+ BROADCAST(events), REPARTITION(3) */ div(id, 100), timestampdiff(HOUR, min(ts), max(ts)), timestampadd(DAY, 1, max(ts)) GROUP BY div(id, 100);

-- name: forms_variant | ordered: no | for: paths into a variant made at the sites, and the names that Spark gives to them
SELECT v:id::int, v:tags[0]::string, v:kind::string FROM (SELECT parse_json(to_json(struct(id, kind, tags))) AS v FROM events WHERE id < 60) WHERE v:id::int > 5;

-- name: forms_nearest | ordered: no | for: the nearest rows of another site's table, filtered on both sides behind the join
SELECT e.id, n.n_name, r.r_name FROM events e JOIN nation n EXACT NEAREST 2 BY DISTANCE abs(e.id * 7 % 25 - n.n_nationkey) * 100 + n.n_nationkey
LEFT JOIN region AS r APPROX NEAREST BY SIMILARITY r.r_regionkey WHERE e.id < 40 AND n.n_name > 'C';

-- name: forms_itself | ordered: no | for: a table with parts next to itself, under one name
SELECT count(*), count(id), sum(n) FROM events LEFT SEMI JOIN events USING (id) CROSS JOIN (SELECT count(*) AS n FROM nation CROSS JOIN nation);

-- name: forms_sampled | ordered: no | for: samples that are bounds, over tables with parts
SELECT count(*), count(kind) < 31 FROM events TABLESAMPLE (30 ROWS) JOIN nation TABLESAMPLE (100 PERCENT) REPEATABLE (3) ON n_nationkey < 4;

-- name: forms_names | ordered: no | for: names in strings, pipes of one sign, days by name
FROM IDENTIFIER('eve' || 'nts') | WHERE IDENTIFIER('id') | 1 < 50 AND ts < TIMESTAMP 'tomorrow' | AGGREGATE IDENTIFIER('count')(*) AS many, max(date 'today') = current_date AS same GROUP BY kind AS IDENTIFIER('what');

-- name: forms_who_asks | ordered: no | for: who asks and where is one value for all sites, with the names that Spark gives
SELECT kind, session_user = current_user(), current_schema(), current_database(), current_catalog(), current_path, count(user) AS many
FROM events WHERE current_user IS NOT NULL AND id < 900 GROUP BY kind, current_user, current_schema() HAVING max(current_path()) = current_path();

-- name: forms_collated | ordered: no | for: a cast to a collation decides what equals what at each site and where the parts meet
SELECT count(*) AS n, count(DISTINCT CAST(upper(kind) AS STRING COLLATE UTF8_LCASE)) AS kinds, (SELECT count(*) FROM (SELECT upper(kind)::STRING COLLATE UTF8_LCASE AS k FROM events GROUP BY k)) AS grouped
FROM events JOIN nation ON CAST(lower(left(n_name, 1)) AS STRING COLLATE UTF8_LCASE) = upper(left(kind, 1)) COLLATE UTF8_LCASE;

-- name: forms_parts_of_one_name | ordered: no | for: parts of one table side by side, told apart by their sites
SELECT oslo.events.kind, count(*), max(bergen.events.id) FROM oslo.events JOIN bergen.events ON oslo.events.id % 50 = bergen.events.id % 50
WHERE oslo.events.id < 200 AND bergen.events.kind IS NOT NULL GROUP BY oslo.events.kind;
-- oracle:
SELECT o.kind, count(*), max(b.id) FROM oslo_events AS o JOIN bergen_events AS b ON o.id % 50 = b.id % 50
WHERE o.id < 200 AND b.kind IS NOT NULL GROUP BY o.kind;
