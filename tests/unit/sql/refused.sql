-- code
-- reflect
SELECT reflect('java.lang.Runtime', 'getRuntime');
-- java_method
SELECT JAVA_METHOD('java.util.UUID', 'randomUUID');
-- try_reflect
SELECT try_reflect('java.util.UUID', 'randomUUID');
-- quoted reflect
SELECT `reflect`('java.util.UUID', 'randomUUID');
-- qualified reflect
SELECT system.builtin.reflect('java.util.UUID', 'randomUUID');
-- transform using
SELECT TRANSFORM (a) USING 'cat' AS (b) FROM t;
-- map using
SELECT MAP a USING 'cat' FROM t;
-- from transform
FROM t SELECT TRANSFORM (a) USING 'cat' AS (b);
-- transform behind a pipe
TABLE t |> SELECT TRANSFORM (a) USING 'cat' AS (b);
-- reflect behind a pipe
TABLE t |> EXTEND reflect('java.util.UUID', 'randomUUID') AS x;
-- reflect in a subquery behind a pipe
TABLE t |> WHERE a IN (FROM u |> SELECT reflect('java.util.UUID', 'randomUUID'));
-- reflect in a recursive query
WITH RECURSIVE x AS (SELECT 'a' AS a UNION ALL SELECT reflect('java.util.UUID', 'randomUUID') FROM x) SELECT * FROM x;
-- reflect behind a hint
SELECT /*+ x('/') */ reflect('java.util.UUID', 'randomUUID');
-- identifier clause
SELECT IDENTIFIER('reflect')('java.util.UUID', 'randomUUID');
-- identifier clause in parts
SELECT IDENTIFIER('ref' || 'lect')('java.util.UUID', 'randomUUID');
-- identifier clause of a parameter
SELECT * FROM IDENTIFIER(:name);

-- files
-- a path as a table
SELECT * FROM text.`/etc/passwd`;
-- a path as a table, parquet
SELECT * FROM parquet.`/tmp/x`;
-- a quoted path
SELECT * FROM `/etc/passwd`;
-- a path in IDENTIFIER
SELECT * FROM IDENTIFIER('text.`/etc/passwd`');
-- a path behind TABLE
TABLE text.`/etc/passwd`;
-- a path behind FROM
FROM text.`/etc/passwd`;
-- a path in a pipe
TABLE t |> JOIN text.`/etc/passwd`;
-- a path in a union of a pipe
TABLE t |> UNION ALL TABLE text.`/etc/passwd`;
-- a path in a recursive query
WITH RECURSIVE x AS (SELECT 'a' AS value UNION ALL SELECT value FROM text.`/etc/passwd`) SELECT * FROM x;
-- read_files
SELECT * FROM read_files('/etc/passwd');
-- input_file_name
SELECT input_file_name() FROM t;
-- _metadata
SELECT _metadata.file_path FROM t;
-- XSD in options
SELECT from_xml(a, 'b INT', map('rowValidationXSDPath', '/etc/passwd')) FROM t;
-- protobuf descriptor
SELECT from_protobuf(a, 'M', '/etc/passwd') FROM t;
-- XSD in other letters
SELECT from_xml(a, 'b INT', map('ROWVALIDATIONXSDPATH', '/etc/passwd')) FROM t;
-- options that are computed
SELECT from_xml(a, 'b INT', map(concat('rowValidation', 'XSDPath'), '/etc/passwd')) FROM t;
-- options from a column
SELECT from_xml(a, 'b INT', b) FROM t;
-- an external DTD
SELECT xpath_string(b, 'a/b') FROM t;
-- worker logs
SELECT * FROM python_worker_logs();

-- statements
-- set
SET spark.sql.ansi.enabled=false;
-- add jar
ADD JAR '/tmp/x.jar';
-- add archive
ADD ARCHIVE '/tmp/x.zip';
-- create table
CREATE TABLE x AS SELECT 1;
-- create view
CREATE TEMPORARY VIEW v AS SELECT 1;
-- create function
CREATE FUNCTION f AS 'x.Y' USING JAR '/tmp/x.jar';
-- insert
INSERT INTO t SELECT 1;
-- insert directory
INSERT OVERWRITE DIRECTORY '/tmp/x' SELECT 1;
-- update
UPDATE t SET a = 1;
-- delete
DELETE FROM t;
-- merge
MERGE INTO t USING u ON t.a = u.a WHEN MATCHED THEN DELETE;
-- drop
DROP TABLE t;
-- truncate
TRUNCATE TABLE t;
-- use catalog
USE CATALOG x;
-- cache
CACHE TABLE t;
-- refresh
REFRESH TABLE t;
-- load
LOAD DATA INPATH '/tmp/x' INTO TABLE t;
-- declare, by a query
DECLARE VARIABLE x INT DEFAULT (SELECT 1);
-- execute immediate
EXECUTE IMMEDIATE 'SELECT 1';
-- call
CALL x();
-- begin
BEGIN SELECT 1; END;
-- two statements
SELECT 1; SELECT 2;
-- show functions
SHOW FUNCTIONS;
-- describe function
DESCRIBE FUNCTION abs;
-- explain insert
EXPLAIN INSERT INTO t SELECT 1;
-- with insert
WITH x AS (SELECT 1) INSERT INTO t SELECT * FROM x;

-- not the same at every site
-- current_user with an argument
SELECT current_user(1);
-- user that may be a column
SELECT user FROM range(1);
-- current_schema in LIMIT
SELECT 1 LIMIT length(current_schema());
-- monotonically_increasing_id
SELECT monotonically_increasing_id() FROM t;
-- spark_partition_id
SELECT spark_partition_id() FROM t;
-- tablesample
SELECT * FROM t TABLESAMPLE (10 PERCENT);
-- tablesample in a pipe
TABLE t |> TABLESAMPLE (10 PERCENT);
-- a day by name, without a name
SELECT DATE 'today';
-- timestamp now
SELECT CAST('now' AS TIMESTAMP);

-- not carried
-- a SELECT that is a call to Spark
SELECT 1 IN (SELECT (1));
-- a hint in another place
SELECT a /*+ BROADCAST(t) */ FROM t;
-- a pipe that loses a name
FROM t |> JOIN u ON t.a = u.a |> EXTEND 1 AS one |> WHERE t.a = 1;
-- an aggregate outside of AGGREGATE
TABLE t |> EXTEND sum(a);
-- no aggregate in AGGREGATE
TABLE t |> AGGREGATE a;
-- numbers in GROUP BY of AGGREGATE
FROM explode(array(3)) |> AGGREGATE count(*) GROUP BY 1;
-- rollup in AGGREGATE
TABLE t |> AGGREGATE count(*) GROUP BY ROLLUP (a);
-- SET over columns that are not known
FROM explode(array(3)) |> SET col = 1;
-- SET of no column
TABLE t |> SET x = 1;
-- several selects for one from
FROM t SELECT a SELECT b;
-- part of a variant path
SELECT b:`a"b` FROM t;
-- text of a variant path
SELECT b:['a'']'] FROM t;
-- nearest of another join
SELECT * FROM t RIGHT JOIN u APPROX NEAREST 5 BY DISTANCE t.a - u.a;
-- nearest of too many
SELECT * FROM t JOIN u APPROX NEAREST 100001 BY DISTANCE t.a - u.a;
-- a part of a name behind IDENTIFIER
SELECT IDENTIFIER('t').a FROM t;
-- a part of a name in IDENTIFIER
SELECT t.IDENTIFIER('a') FROM t;
-- an alias of several parts
SELECT a AS IDENTIFIER('b.c') FROM t;
-- columns of a pivot's alias
SELECT * FROM t PIVOT (sum(a) FOR b IN ('x')) AS p(x);
-- table argument
SELECT * FROM explode(TABLE (SELECT 1));
-- distribute by in a window
SELECT sum(a) OVER (DISTRIBUTE BY a SORT BY b) FROM t;
-- unknown function
SELECT sun(a) FROM t;
-- unknown table function
SELECT * FROM rangee(1);
-- unknown table
SELECT * FROM tt;
-- a comment in a hint
SELECT /*+ BROADCAST('*/') */ a FROM t;
-- string alias
SELECT a AS 'b' FROM t;
-- a decimal of too many digits
SELECT CAST(a AS DECIMAL(39, 0)) FROM t;
-- a decimal with more digits behind its point than it has
SELECT CAST(a AS ARRAY<DECIMAL(5, 10)>) FROM t;
