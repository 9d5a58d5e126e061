Statements of somebody who wants more than rows. Each begins behind a line `### what it wants`; none is admitted, neither
from a client nor as a fragment of another member. `orders (o_id, o_cust, o_total, o_date)` is a table.
### code: a Java method
SELECT java_method('java.lang.System', 'getenv', 'PATH')
### code: reflect
SELECT reflect('java.lang.Runtime', 'getRuntime') FROM orders
### code: reflect that fails quietly
SELECT try_reflect('java.lang.System', 'exit', 0)
### code: in capitals
SELECT JAVA_METHOD('java.lang.System', 'getProperty', 'user.home')
### code: a quoted name
SELECT `reflect`('java.util.UUID', 'randomUUID')
### code: a name with spaces inside the quotes
SELECT ` reflect`('java.util.UUID', 'randomUUID')
### code: qualified
SELECT system.builtin.reflect('java.util.UUID', 'randomUUID')
### code: qualified by builtin alone
SELECT builtin.reflect('java.util.UUID', 'randomUUID')
### code: qualified by session
SELECT session.java_method('java.util.UUID', 'randomUUID')
### code: a comment between name and bracket
SELECT reflect /* x */ ('java.util.UUID', 'randomUUID')
### code: a line comment between name and bracket
SELECT reflect -- x
('java.util.UUID', 'randomUUID')
### code: behind a nested comment
SELECT /* /* */ */ java_method('java.util.UUID', 'randomUUID')
### code: in a lambda
SELECT transform(array(1), x -> reflect('java.util.UUID', 'randomUUID'))
### code: in a lambda of a lambda
SELECT aggregate(array(1), 0, (a, x) -> size(transform(array(1), y -> java_method('java.util.UUID', 'randomUUID'))))
### code: in a window
SELECT sum(o_id) OVER (PARTITION BY reflect('a', 'b')) FROM orders
### code: in a frame
SELECT sum(o_id) OVER (ORDER BY o_id ROWS BETWEEN reflect('a', 'b') PRECEDING AND CURRENT ROW) FROM orders
### code: in a named window
SELECT sum(o_id) OVER w FROM orders WINDOW w AS (ORDER BY reflect('a', 'b'))
### code: in a filter of an aggregate
SELECT sum(o_id) FILTER (WHERE reflect('a', 'b') = 'x') FROM orders
### code: within a group
SELECT listagg(o_id) WITHIN GROUP (ORDER BY reflect('a', 'b')) FROM orders
### code: in a join condition
SELECT 1 FROM orders a JOIN orders b ON reflect('a', 'b') = 'x'
### code: in HAVING
SELECT o_cust FROM orders GROUP BY o_cust HAVING reflect('a', 'b') = 'x'
### code: in GROUPING SETS
SELECT 1 FROM orders GROUP BY GROUPING SETS ((reflect('a', 'b')))
### code: in ORDER BY
SELECT o_id FROM orders ORDER BY java_method('a', 'b')
### code: in LIMIT
SELECT o_id FROM orders LIMIT CAST(reflect('a', 'b') AS INT)
### code: in OFFSET
SELECT o_id FROM orders LIMIT 1 OFFSET CAST(reflect('a', 'b') AS INT)
### code: in VALUES
VALUES (reflect('a', 'b'))
### code: in a CASE
SELECT CASE WHEN true THEN reflect('a', 'b') END
### code: in an array index
SELECT array(1)[CAST(reflect('a', 'b') AS INT)]
### code: in a struct
SELECT named_struct('a', java_method('a', 'b')).a
### code: in a named argument
SELECT mask('abc', upperChar => reflect('a', 'b'))
### code: in EXISTS
SELECT o_id FROM orders WHERE EXISTS (SELECT reflect('a', 'b'))
### code: in IN
SELECT o_id FROM orders WHERE o_id IN (SELECT reflect('a', 'b'))
### code: in a CTE that nobody reads
WITH x AS (SELECT java_method('a', 'b')) SELECT o_id FROM orders
### code: in a UNION
SELECT o_id FROM orders UNION ALL SELECT reflect('a', 'b')
### code: in a lateral view
SELECT 1 FROM orders LATERAL VIEW explode(array(reflect('a', 'b'))) v AS x
### code: as a generator
SELECT 1 FROM orders LATERAL VIEW java_method('a', 'b') v AS x
### code: as a table function
SELECT * FROM reflect('java.util.UUID', 'randomUUID')
### code: as a lateral table function
SELECT * FROM orders, LATERAL java_method('a', 'b')
### code: in a pivot
SELECT * FROM orders PIVOT (max(reflect('a', 'b')) FOR o_cust IN (1, 2))
### code: in the values of a pivot
SELECT * FROM orders PIVOT (sum(o_id) FOR o_cust IN (reflect('a', 'b')))
### code: in an extract
SELECT EXTRACT(YEAR FROM reflect('a', 'b'))
### code: in a trim
SELECT trim(BOTH reflect('a', 'b') FROM 'x')
### code: in a cast
SELECT CAST(reflect('a', 'b') AS INT)
### code: in a colon cast
SELECT reflect('a', 'b')::INT
### code: through a cast's type
SELECT CAST(1 AS `int), reflect(`)
### code: through a marker's name
SELECT :`x), reflect('a', 'b') --`
### code: through a quoted alias that ends a hint
SELECT /*+ BROADCAST(`a*/ , reflect('a', 'b') /*`) */ 1 FROM orders AS `a`
### code: in a hint's place
SELECT /*+ reflect('a', 'b') */ o_id FROM orders
### code: in IDENTIFIER as a function
SELECT IDENTIFIER('ref' || 'lect')('java.util.UUID', 'randomUUID')
### code: a Cyrillic letter
SELECT refleсt('java.util.UUID', 'randomUUID')
### code: a long s, which upper-cases to S
SELECT reflect('a', 'b') unıon ſelect 1
### code: TRANSFORM with a program
SELECT TRANSFORM(o_id) USING '/bin/sh -c id' FROM orders
### code: TRANSFORM with a row format
SELECT TRANSFORM(o_id) ROW FORMAT DELIMITED FIELDS TERMINATED BY ',' USING 'cat' AS (a STRING) FROM orders
### code: MAP with a program
MAP o_id USING 'cat' AS (a) FROM orders
### code: SELECT MAP with a program
SELECT MAP o_id USING 'cat' FROM orders
### code: REDUCE with a program
FROM orders REDUCE o_id USING 'cat' AS (a)
### code: a Python table function
SELECT * FROM my_udtf(TABLE(orders))
### code: a user's function
SELECT my_udf(o_id) FROM orders
### code: a Hive function by its class
SELECT `org.apache.hadoop.hive.ql.udf.UDFLength`(o_id) FROM orders
### code: CREATE FUNCTION
CREATE FUNCTION f AS 'com.example.Evil' USING JAR '/tmp/evil.jar'
### code: CREATE a SQL function
CREATE TEMPORARY FUNCTION f(x INT) RETURNS INT RETURN reflect('a', 'b')
### code: ADD JAR
ADD JAR '/tmp/evil.jar'
### code: ADD JAR over the network
ADD JAR ivy://com.example:evil:1.0
### code: ADD FILE
ADD FILE '/etc/passwd'
### code: ADD ARCHIVE
ADD ARCHIVE '/tmp/a.zip'
### code: LIST JAR
LIST JARS
### code: a protobuf class
SELECT from_protobuf(X'00', 'com.example.Evil')
### code: a protobuf descriptor
SELECT to_protobuf(named_struct('a', 1), 'A', '/etc/passwd')
### code: avro with a schema URL
SELECT from_avro(X'00', '{"type":"int"}', map('avroSchemaUrl', 'file:/etc/passwd'))
### code: schema of avro
SELECT schema_of_avro('{"type":"int"}')
### network: xpath
SELECT xpath('<!DOCTYPE a SYSTEM "http://127.0.0.1:1/x"><a/>', 'a')
### network: xpath_string
SELECT xpath_string('<!DOCTYPE a SYSTEM "http://127.0.0.1:1/x"><a/>', 'a')
### network: xpath_boolean
SELECT xpath_boolean(concat('<!DOCTYPE a SYSTEM "http://127.0.0.1:1/', o_id, '"><a/>'), 'a') FROM orders
### network: xpath_int
SELECT xpath_int('<a>1</a>', 'a')
### network: xpath_short
SELECT xpath_short('<a>1</a>', 'a')
### network: xpath_long
SELECT xpath_long('<a>1</a>', 'a')
### network: xpath_float
SELECT xpath_float('<a>1</a>', 'a')
### network: xpath_double
SELECT XPATH_DOUBLE('<a>1</a>', 'a')
### network: xpath_number
SELECT `xpath_number`('<a>1</a>', 'a')
### network: an HTTP request
SELECT http_request('GET', 'http://127.0.0.1:1/')
### network: a model
SELECT ai_query('x', 'y')
### network: a model's kin
SELECT ai_gen('x')
### network: a remote query
SELECT * FROM remote_query('x', query => 'SELECT 1')
### network: a stream
SELECT * FROM read_kafka(bootstrapServers => '127.0.0.1:1', subscribe => 'x')
### network: a JDBC table
SELECT * FROM jdbc.`jdbc:h2:mem:x`
### files: a path as a text table
SELECT * FROM text.`/etc/passwd`
### files: a path as a Parquet table
SELECT * FROM parquet.`/data/orders`
### files: a path with a scheme
SELECT * FROM csv.`file:///etc/passwd`
### files: a binary file
SELECT content FROM binaryFile.`/etc/shadow`
### files: a Delta path
SELECT * FROM delta.`/data/orders`
### files: a quoted path alone
SELECT * FROM `/etc/passwd`
### files: format and path in one pair of quotes
SELECT * FROM `text./etc/passwd`
### files: a path in a join
SELECT 1 FROM orders JOIN text.`/etc/passwd` p ON true
### files: a path in a subquery
SELECT (SELECT max(value) FROM text.`/etc/passwd`)
### files: a path in a CTE
WITH x AS (SELECT * FROM json.`/etc/passwd`) SELECT o_id FROM orders
### files: a path after a set operation
SELECT value FROM orders EXCEPT SELECT value FROM text.`/etc/passwd`
### files: a CTE whose name hides nothing
WITH text AS (SELECT 1) SELECT * FROM text.`/etc/passwd`
### files: read_files
SELECT * FROM read_files('/etc/passwd', format => 'text')
### files: cloud_files
SELECT * FROM cloud_files('/etc', 'text')
### files: list_files
SELECT * FROM list_files('/etc')
### files: a table function with a path
SELECT * FROM text('/etc/passwd')
### files: IDENTIFIER as a table
SELECT * FROM IDENTIFIER('text.`/etc/passwd`')
### files: IDENTIFIER of a marker
SELECT * FROM IDENTIFIER(:t)
### files: the names of files
SELECT input_file_name() FROM orders
### files: where a block starts
SELECT input_file_block_start() FROM orders
### files: how long a block is
SELECT input_file_block_length() FROM orders
### files: the hidden column
SELECT _metadata FROM orders
### files: a field of the hidden column
SELECT _metadata.file_path FROM orders
### files: the hidden column, qualified and quoted
SELECT o.`_METADATA`.file_path FROM orders o
### files: the hidden column in a condition
SELECT o_id FROM orders WHERE _metadata.file_size > 1
### files: an XSD in the options of from_xml
SELECT from_xml('<a/>', 'a INT', map('rowValidationXSDPath', '/etc/passwd'))
### files: an XSD in the options of schema_of_xml
SELECT schema_of_xml('<a/>', map('rowValidationXSDPath', '/etc/passwd'))
### files: the logs of Python workers
SELECT * FROM python_worker_logs()
### files: INSERT OVERWRITE DIRECTORY
INSERT OVERWRITE LOCAL DIRECTORY '/tmp/x' SELECT * FROM orders
### files: INSERT OVERWRITE DIRECTORY with a format
INSERT OVERWRITE DIRECTORY '/tmp/x' USING csv SELECT * FROM orders
### files: LOAD DATA
LOAD DATA LOCAL INPATH '/etc/passwd' INTO TABLE orders
### files: CREATE TABLE with a location
CREATE TABLE x (a STRING) USING text LOCATION '/etc/passwd'
### files: CREATE TABLE AS
CREATE TABLE x AS SELECT * FROM orders
### files: CREATE a view of a path
CREATE TEMPORARY VIEW v USING text OPTIONS (path '/etc/passwd')
### files: a version of a path
SELECT * FROM orders VERSION AS OF 1
### settings: SET
SET spark.sql.restrictedMode.enabled = false
### settings: SET alone shows all of them
SET
### settings: SET -v
SET -v
### settings: RESET
RESET
### settings: the time zone
SET TIME ZONE 'Europe/Oslo'
### settings: a catalog
SET CATALOG spark_catalog
### settings: a session variable
SET VARIABLE x = 1
### settings: DECLARE
DECLARE VARIABLE x STRING DEFAULT reflect('java.lang.System', 'getenv', 'PATH')
### settings: DECLARE, a type that is more than one
DECLARE VARIABLE x STRING) FROM text.`/etc/passwd` --
### settings: EXECUTE IMMEDIATE
EXECUTE IMMEDIATE 'SELECT reflect("a", "b")'
### settings: EXECUTE IMMEDIATE with values
EXECUTE IMMEDIATE 'SELECT ?' USING 1
### settings: a script
BEGIN SELECT 1; END
### settings: a compound statement with a handler
BEGIN DECLARE EXIT HANDLER FOR SQLEXCEPTION BEGIN END; SELECT 1; END
### settings: an IF statement
IF 1 = 1 THEN SELECT 1; END IF
### settings: a FOR loop
FOR x AS SELECT 1 DO SELECT 1; END FOR
### settings: CALL
CALL system.rollback_to_snapshot('x', 1)
### settings: who runs it
SELECT current_user(1)
### settings: who runs it, by a schema of Spark
SELECT system.builtin.current_user()
### settings: who runs it, by another name
SELECT session_user(DISTINCT 1)
### settings: who runs it, by the shortest name
SELECT user FROM range(1)
### settings: where it runs
SELECT current_catalog(*)
### settings: the schema
SELECT 1 LIMIT length(current_schema())
### settings: the path of names
SELECT builtin.current_path()
### statements: two
SELECT 1; SELECT 2
### statements: two, the second hidden by a comment
SELECT 1 /* ; */; SET x = 1 -- ;
### statements: INSERT
INSERT INTO orders VALUES (1, 2, 3, NULL)
### statements: INSERT after WITH
WITH x AS (SELECT 1) INSERT INTO orders SELECT * FROM x
### statements: FROM first, INSERT behind
FROM orders INSERT INTO x SELECT *
### statements: UPDATE
UPDATE orders SET o_id = 1
### statements: DELETE
DELETE FROM orders
### statements: MERGE
MERGE INTO orders USING orders b ON true WHEN MATCHED THEN DELETE
### statements: TRUNCATE
TRUNCATE TABLE orders
### statements: DROP
DROP TABLE orders
### statements: DROP VIEW of ours
DROP VIEW skerry_table_1
### statements: ALTER
ALTER TABLE orders SET LOCATION '/tmp/x'
### statements: MSCK
MSCK REPAIR TABLE orders
### statements: CACHE
CACHE TABLE x AS SELECT reflect('a', 'b')
### statements: REFRESH a path
REFRESH '/etc/passwd'
### statements: EXPLAIN of INSERT
EXPLAIN INSERT INTO orders SELECT 1
### statements: EXPLAIN of EXPLAIN
EXPLAIN EXPLAIN SELECT 1
### statements: EXPLAIN ANALYZE of SET
EXPLAIN ANALYZE SET x = 1
### statements: EXPLAIN CODEGEN
EXPLAIN CODEGEN SELECT 1
### statements: EXPLAIN of code
EXPLAIN ANALYZE FORMAT JSON SELECT java_method('a', 'b')
### statements: DESCRIBE a path
DESCRIBE text.`/etc/passwd`
### statements: DESCRIBE EXTENDED a query
DESCRIBE QUERY SELECT reflect('a', 'b')
### statements: SHOW CREATE TABLE
SHOW CREATE TABLE orders
### statements: SHOW TBLPROPERTIES
SHOW TBLPROPERTIES orders
### statements: ANALYZE of a path
ANALYZE TABLE text.`/etc/passwd` COMPUTE STATISTICS
### statements: ANALYZE with more behind it
ANALYZE TABLE orders COMPUTE STATISTICS FOR COLUMNS reflect('a', 'b')
### statements: a pipe
FROM orders |> SELECT reflect('a', 'b')
### statements: a pipe behind a query
SELECT o_id FROM orders |> WHERE reflect('a', 'b') = 'x'
### statements: TABLE
TABLE text.`/etc/passwd`
### statements: code in a subquery of a pipe
FROM orders |> WHERE o_id IN (FROM orders |> SELECT reflect('a', 'b'))
### statements: code in EXTEND
TABLE orders |> EXTEND java_method('a', 'b') AS x
### statements: code in SET
TABLE orders |> SET o_id = reflect('a', 'b')
### statements: code in AGGREGATE
TABLE orders |> AGGREGATE max(reflect('a', 'b')) GROUP BY o_id
### statements: code in the groups of AGGREGATE
TABLE orders |> AGGREGATE count(*) GROUP BY reflect('a', 'b')
### statements: code in the order of a pipe
TABLE orders |> ORDER BY reflect('a', 'b') |> LIMIT 1
### statements: code in a window of a pipe
TABLE orders |> SELECT count(*) OVER w WINDOW w AS (PARTITION BY reflect('a', 'b'))
### statements: a program behind a pipe
TABLE orders |> SELECT TRANSFORM (o_id) USING 'cat' AS (b)
### statements: a program behind FROM
FROM orders MAP o_id USING 'cat' AS b
### statements: a path joined by a pipe
TABLE orders |> JOIN text.`/etc/passwd` ON true
### statements: a path in a set operation of a pipe
TABLE orders |> UNION ALL TABLE text.`/etc/passwd`
### statements: a path in a pivot of a pipe
TABLE orders |> PIVOT (max((SELECT value FROM text.`/etc/passwd`)) FOR o_id IN (1))
### statements: a statement behind a pipe
TABLE orders |> INSERT INTO orders SELECT 1
### statements: an insert behind FROM
FROM orders INSERT INTO orders SELECT 1
### statements: code in QUALIFY
SELECT o_id FROM orders QUALIFY count(reflect('a', 'b')) OVER () > 0
### statements: a path in QUALIFY
SELECT o_id FROM orders QUALIFY row_number() OVER (ORDER BY o_id) IN (TABLE text.`/etc/passwd`)
### statements: IDENTIFIER behind TABLE
TABLE IDENTIFIER('skerry_table_1')
### files: a path in IDENTIFIER, in pieces, with a sample
SELECT * FROM IDENTIFIER('text' || '.`/etc/passwd`') TABLESAMPLE (5 ROWS)
### code: in what the nearest rows are ranked by
SELECT * FROM orders AS a JOIN orders AS b EXACT NEAREST BY DISTANCE reflect('a', 'b')
### code: in the size of a sample
SELECT * FROM orders TABLESAMPLE (reflect('a', 'b') ROWS)
### statements: IDENTIFIER behind a pipe
FROM orders |> JOIN IDENTIFIER('text.`/etc/passwd`')
### statements: a path in a recursive WITH
WITH RECURSIVE r AS (SELECT 1 AS n UNION ALL SELECT value FROM text.`/etc/passwd` JOIN r ON true) SELECT * FROM r
### statements: code in a recursive WITH
WITH RECURSIVE r AS (SELECT 'a' AS n UNION ALL SELECT reflect(n, 'b') FROM r WHERE n = 'a') SELECT * FROM r
### statements: a recursive WITH called like a view of ours
WITH RECURSIVE skerry_table_1 AS (SELECT 1 AS n UNION ALL SELECT n + 1 FROM skerry_table_1 WHERE n < 3) SELECT * FROM skerry_table_1
### statements: code in the base of a variant's path
SELECT reflect('a', 'b'):x FROM orders
### statements: code behind a variant's path
SELECT o_id:['a'] || reflect('a', 'b') FROM orders
### statements: a variant's path that ends early
SELECT o_id:['a\'], reflect(\'a\', \'b\'), [\''] FROM orders
### statements: a variant's path in quotes that ends early
SELECT o_id:`a, reflect('a', 'b') AS x` FROM orders
### statements: code in units
SELECT timestampadd(reflect('a', 'b'), 1, o_date) FROM orders
### statements: files in options of XML, in a comment's place
SELECT from_xml('<a/>', 'a INT', map('mode', 'x', 'rowValidation' 'XSDPath', '/etc/passwd'))
### statements: files in options of XML, by another map
SELECT from_xml('<a/>', 'a INT', map_from_arrays(array('rowValidationXSDPath'), array('/etc/passwd')))
### statements: files in options of XML, by name
SELECT from_xml('<a/>', 'a INT', options => map('rowValidationXSDPath', '/etc/passwd'))
### statements: IDENTIFIER in a recursive WITH
WITH RECURSIVE r AS (SELECT '1' AS n UNION ALL SELECT value FROM IDENTIFIER('text.`/etc/passwd`') JOIN r ON true) SELECT * FROM r
### names: a view of ours
SELECT * FROM skerry_table_1
### names: an edge of ours
SELECT * FROM skerry_edge_1
### names: a view of ours, in the global database
SELECT * FROM global_temp.skerry_table_1
### names: a WITH query that takes the name of a view
WITH skerry_table_1 AS (SELECT 1 AS o_id) SELECT * FROM orders
### names: a WITH query that takes the name of an edge
WITH `SKERRY_EDGE_12` AS (SELECT 1 AS o_id) SELECT * FROM orders
### names: four parts
SELECT * FROM a.b.c.d
### names: the information schema
SELECT * FROM information_schema.tables
### names: another catalog
SELECT * FROM spark_catalog.default.orders2
### names: a variable of the environment
SELECT * FROM ${env:SECRET}
### names: a variable of the system
SELECT ${system:user.home}
### names: a setting as a name
SELECT ${spark.app.name}
### quotes: never closed
SELECT 'abc
### quotes: a comment never closed
SELECT 1 /* reflect('a', 'b')
### quotes: a name never closed
SELECT * FROM `orders
### quotes: a string as an alias of a table
SELECT * FROM orders 'x'
### quotes: hexadecimal digits that are none
SELECT X'zz', reflect('a', 'b')
