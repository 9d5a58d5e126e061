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
-- identifier clause
SELECT IDENTIFIER('reflect')('java.util.UUID', 'randomUUID');
-- identifier clause as table
SELECT * FROM IDENTIFIER('t');

-- files
-- a path as a table
SELECT * FROM text.`/etc/passwd`;
-- a path as a table, parquet
SELECT * FROM parquet.`/tmp/x`;
-- a quoted path
SELECT * FROM `/etc/passwd`;
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
-- declare
DECLARE VARIABLE x INT;
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
-- current_user
SELECT current_user();
-- user without brackets
SELECT user;
-- current_catalog
SELECT current_catalog();
-- monotonically_increasing_id
SELECT monotonically_increasing_id() FROM t;
-- spark_partition_id
SELECT spark_partition_id() FROM t;
-- tablesample
SELECT * FROM t TABLESAMPLE (10 PERCENT);
-- version as of
SELECT * FROM t VERSION AS OF 1;
-- timestamp as of
SELECT * FROM t TIMESTAMP AS OF '2024-01-01';
-- date today
SELECT DATE 'today';
-- timestamp now
SELECT CAST('now' AS TIMESTAMP);

-- not carried yet
-- hints
SELECT /*+ BROADCAST(t) */ * FROM t;
-- pipe syntax
SELECT * FROM t |> WHERE a > 1;
-- pipe syntax with from
FROM t |> WHERE a > 1;
-- from first
FROM t SELECT a;
-- table
TABLE t;
-- recursive with
WITH RECURSIVE x AS (SELECT 1 AS a UNION ALL SELECT a + 1 FROM x WHERE a < 3) SELECT * FROM x;
-- qualify
SELECT a FROM t QUALIFY row_number() OVER (ORDER BY a) = 1;
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
-- string alias
SELECT a AS 'b' FROM t;
