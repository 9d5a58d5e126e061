-- Aggregates over tables with parts at several sites, for the rule `aggregates`; read by skerry.testing.corpus.
-- Each has a name, what it is for, and its order: no, yes, or ties with the places of the sort keys.

-- ==== merged in the member ====
-- name: global | for: one row, names that Spark makes | ordered: yes
SELECT count(*), count(value), sum(amount), min(ts), max(kind), avg(amount), avg(id), sum(id), min(value), max(value)
FROM events

-- name: global_filtered_to_nothing | for: no rows pass: counts are 0, all else is NULL | ordered: yes
SELECT count(*) AS n, sum(amount) AS s, avg(amount) AS a, stddev(value) AS sd, bool_or(id > 0) AS b FROM events WHERE id < 0

-- name: global_limit_none | for: LIMIT 0 of one row | ordered: yes
SELECT count(*) AS n FROM events LIMIT 0

-- name: global_offset | for: OFFSET skips the one row | ordered: yes
SELECT count(*) AS n FROM events OFFSET 1

-- name: global_order | for: an order of one row | ordered: yes
SELECT max(id) AS m FROM events ORDER BY m

-- name: by_string | for: NULL is a group | ordered: no
SELECT kind, count(*) AS n, sum(amount) AS total, avg(amount) AS mean, min(value), max(value) FROM events GROUP BY kind

-- name: by_hidden_keys | for: keys that are not listed | ordered: no
SELECT avg(amount) AS mean, count(*) FROM events GROUP BY kind, id % 3

-- name: by_alias_and_place | for: GROUP BY an alias and a number | ordered: no
SELECT upper(kind) AS k, id % 4, sum(amount) FROM events GROUP BY k, 2

-- name: by_all_of_nothing | for: GROUP BY ALL without a key is one group | ordered: no
SELECT count(*) + 1 AS n FROM events WHERE id < 0 GROUP BY ALL

-- name: by_all_constant | for: GROUP BY ALL of a constant: no rows, no group | ordered: no
SELECT 1 AS one, count(*) AS n FROM events WHERE id < 0 GROUP BY ALL

-- name: empty_sets | for: two sets of no key: no rows, no group | ordered: no
SELECT count(*) AS n FROM events WHERE id < 0 GROUP BY GROUPING SETS ((), ())

-- name: by_all | for: GROUP BY ALL | ordered: no
SELECT kind, id % 2 AS odd, count(*) AS n FROM events GROUP BY ALL

-- name: in_order_of_keys | for: the merge is the order | ordered: yes
SELECT kind, id % 5 AS r, count(*) AS n FROM events GROUP BY kind, id % 5 ORDER BY r DESC, kind NULLS LAST

-- name: in_order_of_keys_limited | for: first groups of each part are enough | ordered: yes
SELECT id % 7 AS r, kind, max(amount) AS m FROM events GROUP BY kind, id % 7 ORDER BY kind DESC, 1 LIMIT 6 OFFSET 2

-- name: filtered_aggregates | for: FILTER, of an average too | ordered: no
SELECT kind, sum(amount) FILTER (WHERE id % 2 = 0), avg(amount) FILTER (WHERE id % 2 = 1), count(*) FILTER (WHERE value > 0) FROM events GROUP BY kind

-- name: spreads | for: variances from moments | ordered: no
SELECT id % 3 AS r, stddev(amount), variance(amount), var_pop(id), stddev_pop(amount), std(id), var_samp(id) FROM events GROUP BY id % 3

-- name: spreads_of_one | for: one value has no sample variance | ordered: no
SELECT id % 50 AS r, stddev(amount) AS s, var_pop(amount) AS v FROM events WHERE id * 2 < 40 GROUP BY id % 50

-- name: booleans_and_bits | for: NULLs are skipped | ordered: no
SELECT kind, bool_and(id > 100), bool_or(id > 2500), every(id >= 0), some(amount > 0), any(value > 49), bit_and(id), bit_or(id), bit_xor(id), count_if(amount > 0) FROM events GROUP BY kind

-- name: nasty_doubles_as_keys | for: one NaN, one zero, NULL | ordered: no
SELECT f64, f32, count(*) AS n FROM strewn GROUP BY f64, f32

-- name: nasty_keys_in_order | for: Spark's order of NaN and infinity | ordered: yes
SELECT f64, count(*) AS n FROM strewn GROUP BY f64 ORDER BY f64 DESC

-- name: nasty_keys | for: types that members sort by | ordered: no
SELECT flag, s, count(*) AS n, min(id) AS first FROM strewn GROUP BY flag, s

-- name: nasty_numbers_as_keys | for: more of them | ordered: no
SELECT i8, dec5, count(*) AS n, min(id) AS first FROM strewn GROUP BY i8, dec5

-- name: nasty_times_as_keys | for: dates and timestamps at the ends of their range | ordered: no
SELECT d, ts, count(*) AS n FROM strewn GROUP BY d, ts

-- name: nasty_bytes_as_keys | for: binaries and timestamps without a zone | ordered: no
SELECT tsn, bin, count(*) AS n FROM strewn GROUP BY tsn, bin

-- name: nasty_ends | for: least and greatest of every type | ordered: yes
SELECT min(flag), max(flag), min(i8), max(i16), min(i32), max(i64), min(f32), max(f32), min(f64), max(f64), min(dec5), max(dec38), min(dec38s), min(s), max(s), min(bin), max(bin), min(d), max(d), min(ts), max(ts), min(tsn), max(tsn) FROM strewn

-- name: nasty_ends_by_group | for: groups without values | ordered: no
SELECT i16, min(f64), max(f64), min(s), max(bin), sum(i8), sum(i32), avg(dec5), avg(dec18), sum(dec18), avg(i16) FROM strewn GROUP BY i16

-- name: nasty_overflow | for: an overflow is an error | ordered: yes | error: OVERFLOW
SELECT sum(i64) FROM strewn WHERE i64 > 0

-- name: nasty_decimal_overflow | for: a sum beyond 38 digits is an error | ordered: yes | error: .
SELECT sum(dec38) FROM strewn WHERE dec38 > 0

-- name: nasty_nothing_left | for: no group | ordered: no
SELECT s, count(*) AS n, avg(dec18) AS a FROM strewn WHERE id > 1000 GROUP BY s

-- name: spelt_otherwise | for: names as they are written | ordered: no
SELECT KIND, COUNT(*), Sum(Amount) FROM Events AS E GROUP BY e.Kind

-- name: parenthesised | for: brackets around a call | ordered: yes
SELECT (count(*)), (max(id)) AS m FROM events

-- name: distinct | for: DISTINCT at every part | ordered: no
SELECT DISTINCT kind, id % 3 FROM events

-- name: distinct_ordered | for: the first distinct rows in order | ordered: yes
SELECT DISTINCT kind, id % 3 AS r FROM events ORDER BY r DESC, kind LIMIT 5

-- name: nasty_distinct_rows | for: one NaN, one zero | ordered: no
SELECT DISTINCT f64, dec5 FROM strewn

-- name: groups_only | for: GROUP BY without aggregates | ordered: no
SELECT kind FROM events GROUP BY kind

-- ==== merged by Spark ====
-- name: order_by_aggregate | for: what is sorted by is not a key | ordered: yes
SELECT kind, count(*) AS n, avg(amount) AS a FROM events GROUP BY kind ORDER BY n DESC, kind LIMIT 3

-- name: order_by_unlisted_aggregate | for: an aggregate in ORDER BY alone | ordered: yes
SELECT kind AS k FROM events GROUP BY kind ORDER BY max(id) DESC

-- name: having | for: HAVING over aggregates, keys and aliases | ordered: no
SELECT kind, sum(amount) AS total FROM events GROUP BY kind HAVING count(*) > 10 AND total > -1000000 AND kind != 'view'

-- name: having_global | for: HAVING without GROUP BY | ordered: no
SELECT max(id) AS m FROM events HAVING count(*) > 100000

-- name: computed | for: expressions of aggregates, names that Spark makes | ordered: no
SELECT kind, avg(amount) + 1, round(avg(value), 2) IS NULL, count(*) * 2 FROM events GROUP BY kind

-- name: computed_ratio | for: expressions of aggregates, decimals that are divided, names that Spark makes | ordered: no
SELECT kind, 100.0 * sum(amount) / sum(id), count(*) * 2 FROM events GROUP BY kind

-- name: computed_ordered | for: names that Spark makes, in order | ordered: ties 1
SELECT kind, sum(amount) - min(amount) FROM events GROUP BY kind ORDER BY 2 DESC LIMIT 4

-- name: computed_global | for: names that Spark makes, one row | ordered: yes
SELECT sum(amount) / count(*), max(ts) > min(ts), coalesce(sum(amount), 0) FROM events

-- name: share | for: CASE inside and arithmetic around | ordered: yes
SELECT 100.00 * sum(CASE WHEN kind = 'buy' THEN amount * (1 - 0.05) ELSE 0 END) / sum(amount) AS share FROM events

-- name: count_distinct | for: distinct first | ordered: no
SELECT kind, count(DISTINCT id % 3) AS n, sum(DISTINCT id % 3) AS s, sum(amount) AS total, count(*) AS c FROM events GROUP BY kind

-- name: count_distinct_global | for: distinct values of all parts | ordered: yes
SELECT count(DISTINCT kind), count(*), avg(amount) FROM events

-- name: count_distinct_of_several | for: several lists of values | ordered: no
SELECT id % 2 AS odd, count(DISTINCT kind) AS k, sum(DISTINCT id % 3) AS s, avg(amount) AS a FROM events GROUP BY id % 2

-- name: count_distinct_of_none | for: no rows at all | ordered: yes
SELECT count(DISTINCT kind) AS n, count(*) AS c, sum(amount) AS s FROM events WHERE id < 0

-- name: count_distinct_pairs | for: two columns together | ordered: yes
SELECT count(DISTINCT kind, id % 3) AS n FROM events

-- name: nasty_distinct | for: NaN and zeros are one each | ordered: yes
SELECT count(DISTINCT f64) AS n, count(*) AS c FROM strewn

-- name: rollup | for: grouping sets | ordered: no
SELECT kind, id % 2 AS odd, grouping(kind) AS g, grouping_id() AS gid, count(*) AS n, avg(amount) AS a FROM events GROUP BY ROLLUP (kind, id % 2)

-- name: cube_and_sets | for: grouping sets of other forms | ordered: no
SELECT kind, id % 2 AS odd, sum(amount) AS s FROM events GROUP BY GROUPING SETS ((kind), (id % 2), ()) HAVING count(*) > 5

-- name: with_cube | for: WITH CUBE | ordered: no
SELECT kind, flagged, count(*) AS n FROM (SELECT kind, id % 2 = 0 AS flagged FROM events) AS e GROUP BY kind, flagged WITH CUBE

-- name: nested_block | for: a block inside a query | ordered: no
SELECT n_name, c FROM nation JOIN (SELECT id % 25 AS k, count(*) AS c FROM events WHERE amount > 0 GROUP BY id % 25) AS e ON n_nationkey = k

-- name: scalar_block | for: a block in an expression | ordered: no
SELECT id, amount FROM events WHERE amount > (SELECT avg(amount) + 9000 FROM events)

-- name: with_block | for: a block in WITH, read twice | ordered: no
WITH t AS (SELECT kind, max(amount) AS m FROM events GROUP BY kind) SELECT a.kind, b.m FROM t AS a JOIN t AS b ON a.m < b.m

-- name: union_of_blocks | for: blocks as operands | ordered: no
SELECT kind, count(*) FROM events GROUP BY kind UNION ALL SELECT 'all', count(*) FROM events UNION SELECT kind, 1L FROM events GROUP BY kind

-- name: correlated_block | for: what reads a row from outside is not cut | ordered: no
SELECT n_name, (SELECT count(*) FROM events WHERE id % 25 = n_nationkey) AS c FROM nation

-- name: derived_table | for: filter and projection below | ordered: no
SELECT k, sum(a) AS s, avg(a), min(x) FROM (SELECT kind AS k, amount * 2 AS a, value AS x FROM events WHERE id > 50) AS t GROUP BY k

-- name: lateral_alias | for: an item that names another | ordered: yes
SELECT sum(id) AS s, s + 1 AS t, s / count(*) FROM events

-- ==== with small tables at every part ====
-- name: joined_with_small | for: each part is joined apart | ordered: no
SELECT n_name, count(*) AS n, avg(amount) AS a, sum(value) FROM events JOIN nation ON id % 25 = n_nationkey GROUP BY n_name

-- name: joined_with_two | for: two small tables, in order | ordered: yes
SELECT r_name, kind, max(amount) AS m FROM events, nation, region WHERE id % 25 = n_nationkey AND n_regionkey = r_regionkey AND r_name < 'D' GROUP BY r_name, kind ORDER BY r_name DESC, kind

-- name: joined_in_spark | for: merged by Spark, names that Spark makes | ordered: yes
SELECT n_name, sum(amount) / count(*) FROM nation JOIN events ON id % 25 = n_nationkey GROUP BY n_name HAVING count(*) > 3 ORDER BY 2 DESC LIMIT 5

-- name: joined_left | for: rows of the parts without a match stay | ordered: no
SELECT n_name, count(*) AS n, count(n_nationkey) AS c FROM events LEFT JOIN nation ON id % 40 = n_nationkey GROUP BY n_name

-- name: joined_anti | for: those without a match alone | ordered: no
SELECT kind, count(*) AS n FROM events LEFT ANTI JOIN nation ON id % 40 = n_nationkey GROUP BY kind

-- name: joined_other_way | for: the small table's rows stay: all parts are needed at once | ordered: no
SELECT n_name, count(id) AS n FROM nation LEFT JOIN events ON id % 40 = n_nationkey AND id < 30 GROUP BY n_name

-- name: joined_with_itself | for: one mention is cut, the other is whole | ordered: no
SELECT a.kind, count(*) AS n FROM events AS a JOIN events AS b ON a.id = b.id + 1 GROUP BY a.kind

-- name: distinct_arrays | for: DISTINCT of a type that members do not sort by | ordered: no
SELECT DISTINCT tags FROM events

-- name: distinct_block | for: DISTINCT inside a query | ordered: no
SELECT n_name FROM nation WHERE n_nationkey IN (SELECT DISTINCT id % 9 FROM events)

-- name: arrays_as_keys | for: a type that members do not sort by | ordered: no
SELECT tags, count(*) AS n, avg(amount) AS a FROM events GROUP BY tags

-- name: spreads_in_spark | for: variances in an expression | ordered: no
SELECT kind, stddev(amount) / avg(amount) AS c, variance(id) AS v FROM events GROUP BY kind HAVING count(*) > 1

-- name: collected | for: lists and sets in any order | ordered: no
SELECT kind, array_sort(collect_list(id % 3)) AS l, array_sort(collect_set(id % 3)) AS s, count(*) AS n FROM events GROUP BY kind

-- name: nasty_decimals | for: averages round as Spark's | ordered: no
SELECT i16, avg(dec5) + 0 AS a, avg(dec18) * 1 AS b, sum(dec5) AS c FROM strewn GROUP BY i16 HAVING count(*) > 0

-- name: not_partial | for: what has no partial form | ordered: no
SELECT kind, percentile(amount, 0.5) AS p, approx_count_distinct(id) AS a FROM events GROUP BY kind

-- name: about_how_many | for: values are hashed alike however often they come | ordered: no
SELECT kind, approx_count_distinct(id % 20), approx_count_distinct(id % 20) + sum(amount) AS a, count(DISTINCT id % 20) AS d FROM events GROUP BY kind HAVING approx_count_distinct(id % 20) > 1

-- name: about_how_many_closely | for: the precision is said above the values | ordered: yes
SELECT approx_count_distinct(id % 50, 0.2), approx_count_distinct(ALL kind, 0.01D) AS k FROM events WHERE id > 3

-- name: arrays_and_samples | for: names of the same | ordered: no
SELECT kind, array_sort(array_agg(id % 3)) AS l, stddev_samp(amount) AS s, mean(id) AS m FROM events GROUP BY kind HAVING count(*) > 1

-- name: booleans_and_bits_in_spark | for: the same above a HAVING | ordered: no
SELECT kind, bool_and(id > 100) AS a, some(amount > 0) AS b, bit_and(id) AS c, bit_or(id) + 0 AS d, bit_xor(id) AS e, count_if(amount > 0) AS f FROM events GROUP BY kind HAVING every(id >= 0) AND any(id > 0)

-- name: sets_of_everything | for: grouping sets over all kinds of partial rows | ordered: no
SELECT kind, id % 3 AS r, grouping(kind) AS g, sum(amount) AS s, var_samp(id) AS v, bool_or(id > 9) AS b, count(DISTINCT id % 4) AS d, array_sort(collect_set(id % 3)) AS c FROM events GROUP BY GROUPING SETS ((kind, id % 3), (kind), ()) HAVING count(*) > 0

-- name: bitmaps | for: bits are put together bit by bit | ordered: no
SELECT kind, bitmap_count(bitmap_construct_agg(bitmap_bit_position(id))) AS n, hex(bitmap_construct_agg(bitmap_bit_position(id % 100))) AS h FROM events GROUP BY kind

-- name: bitmaps_of_nothing | for: a bitmap without bits | ordered: yes
SELECT hex(bitmap_construct_agg(bitmap_bit_position(id))) AS h, bitmap_count(bitmap_or_agg(b)) AS o, bitmap_count(bitmap_and_agg(b)) AS a FROM (SELECT id, CAST(kind AS BINARY) AS b FROM events WHERE id < 0) AS t

-- name: theta_sketches | for: the same bytes as of one pass, above its size and below | ordered: yes
SELECT theta_sketch_estimate(theta_sketch_agg(id)) AS n, hex(theta_sketch_agg(id, 6)) AS few, hex(theta_sketch_agg(kind)) AS kinds, hex(theta_sketch_agg(id) FILTER (WHERE id < 0)) AS none FROM events
