-- case: a table, its key behind the columns
CREATE TABLE t (a BIGINT, b STRING) PRIMARY KEY (a) DISTRIBUTED BY (a)
/*
CreateTable
CREATE TABLE `t` (
  `a` BIGINT NOT NULL,
  `b` STRING
) PRIMARY KEY (`a`)
DISTRIBUTED BY (`a`) IN (`oslo`, `bergen`, `tromso`)
WITH (buckets = 16384)
*/

-- case: its key among the columns, names in any case
create table if not exists T (`odd name` int not null default -5, B string, PRIMARY KEY (b, `ODD NAME`)) distributed by (B) in (Oslo, tromso) with (buckets = 3000);
/*
CreateTable
if not exists
CREATE TABLE `T` (
  `odd name` INT NOT NULL DEFAULT - 5,
  `B` STRING NOT NULL
) PRIMARY KEY (`B`, `odd name`)
DISTRIBUTED BY (`B`) IN (`oslo`, `tromso`)
WITH (buckets = 3000)
*/

-- case: a copy at every member
CREATE TABLE t (a INT, b DATE DEFAULT DATE '2024-02-29') PRIMARY KEY (a) DISTRIBUTED GLOBALLY
/*
CreateTable
CREATE TABLE `t` (
  `a` INT NOT NULL,
  `b` DATE DEFAULT DATE '2024-02-29'
) PRIMARY KEY (`a`)
DISTRIBUTED GLOBALLY
*/

-- case: every type
CREATE TABLE t (a INT, b BOOLEAN, c BYTE, d SMALLINT, e LONG, f REAL, g DOUBLE, h DEC, i NUMERIC(38, 18), j BINARY, k TIMESTAMP, l TIMESTAMP_NTZ, m TIMESTAMP_LTZ, r ARRAY<STRUCT<x: INT, _y1: MAP<STRING, DATE>>>, t MAP<STRING, INT>, s TIMESTAMP WITHOUT TIME ZONE) PRIMARY KEY (a) DISTRIBUTED BY (a)
/*
CreateTable
CREATE TABLE `t` (
  `a` INT NOT NULL,
  `b` BOOLEAN,
  `c` TINYINT,
  `d` SMALLINT,
  `e` BIGINT,
  `f` FLOAT,
  `g` DOUBLE,
  `h` DECIMAL(10,0),
  `i` DECIMAL(38,18),
  `j` BINARY,
  `k` TIMESTAMP,
  `l` TIMESTAMP_NTZ,
  `m` TIMESTAMP,
  `r` array<struct<x:int,_y1:map<string,date>>>,
  `t` map<string,int>,
  `s` TIMESTAMP_NTZ
) PRIMARY KEY (`a`)
DISTRIBUTED BY (`a`) IN (`oslo`, `bergen`, `tromso`)
WITH (buckets = 16384)
*/

-- case: defaults of many types
CREATE TABLE t (a INT, b DOUBLE DEFAULT 1, c DECIMAL(5, 2) DEFAULT 1.005, d STRING DEFAULT 'it''s', e BINARY DEFAULT X'00ff', f BOOLEAN DEFAULT true, g TIMESTAMP DEFAULT TIMESTAMP '2024-01-01 00:00:00.5', h INT NULL DEFAULT NULL, i FLOAT DEFAULT 1e3 NOT NULL) PRIMARY KEY (a) DISTRIBUTED BY (a)
/*
CreateTable
CREATE TABLE `t` (
  `a` INT NOT NULL,
  `b` DOUBLE DEFAULT 1,
  `c` DECIMAL(5,2) DEFAULT 1.005,
  `d` STRING DEFAULT 'it\'s',
  `e` BINARY DEFAULT X'00ff',
  `f` BOOLEAN DEFAULT TRUE,
  `g` TIMESTAMP DEFAULT TIMESTAMP '2024-01-01 00:00:00.5',
  `h` INT DEFAULT NULL,
  `i` FLOAT NOT NULL DEFAULT 1e3
) PRIMARY KEY (`a`)
DISTRIBUTED BY (`a`) IN (`oslo`, `bergen`, `tromso`)
WITH (buckets = 16384)
*/

-- case: no key
CREATE TABLE t (a INT) DISTRIBUTED BY (a)
/*
table t has no PRIMARY KEY: write PRIMARY KEY (column, …) behind the columns
  CREATE TABLE t (a INT) DISTRIBUTED BY (a)
               ^
*/

-- case: two keys
CREATE TABLE t (a INT, PRIMARY KEY (a)) PRIMARY KEY (a) DISTRIBUTED BY (a)
/*
the table has two PRIMARY KEYs
  CREATE TABLE t (a INT, PRIMARY KEY (a)) PRIMARY KEY (a) DISTRIBUTED BY (a)
                                                       ^
*/

-- case: a key at its column
CREATE TABLE t (a INT PRIMARY KEY) DISTRIBUTED BY (a)
/*
write PRIMARY KEY (column, …) behind the columns
  CREATE TABLE t (a INT PRIMARY KEY) DISTRIBUTED BY (a)
                        ^^^^^^^
*/

-- case: a key of what is no column
CREATE TABLE t (account INT) PRIMARY KEY (acount) DISTRIBUTED BY (account)
/*
PRIMARY KEY: the table has no column acount; did you mean account?
  CREATE TABLE t (account INT) PRIMARY KEY (acount) DISTRIBUTED BY (account)
                                            ^^^^^^
*/

-- case: a column twice in the key
CREATE TABLE t (a INT) PRIMARY KEY (a, A) DISTRIBUTED BY (a)
/*
PRIMARY KEY: column a stands there twice
  CREATE TABLE t (a INT) PRIMARY KEY (a, A) DISTRIBUTED BY (a)
                                         ^
*/

-- case: a key that has no bucket
CREATE TABLE t (a ARRAY<INT>) PRIMARY KEY (a) DISTRIBUTED BY (a)
/*
column a of type array<int> cannot be part of a key
  CREATE TABLE t (a ARRAY<INT>) PRIMARY KEY (a) DISTRIBUTED BY (a)
                                             ^
*/

-- case: a key with NULL as default
CREATE TABLE t (a INT DEFAULT NULL) PRIMARY KEY (a) DISTRIBUTED BY (a)
/*
the default of a is NULL, which the column does not take
  CREATE TABLE t (a INT DEFAULT NULL) PRIMARY KEY (a) DISTRIBUTED BY (a)
                                ^^^^
*/

-- case: rows that go nowhere
CREATE TABLE t (a INT) PRIMARY KEY (a)
/*
where do the rows of t go? write DISTRIBUTED BY (a), or DISTRIBUTED GLOBALLY for a copy at every member
  CREATE TABLE t (a INT) PRIMARY KEY (a)
                                        ^
*/

-- case: distributed outside of its key
CREATE TABLE t (a INT, b INT) PRIMARY KEY (a) DISTRIBUTED BY (b)
/*
DISTRIBUTED BY: column b is not part of the PRIMARY KEY (a); a key is unique only at its own member
  CREATE TABLE t (a INT, b INT) PRIMARY KEY (a) DISTRIBUTED BY (b)
                                                                ^
*/

-- case: distributed by what is no column
CREATE TABLE t (a INT) PRIMARY KEY (a) DISTRIBUTED BY (b)
/*
DISTRIBUTED BY: the table has no column b
  CREATE TABLE t (a INT) PRIMARY KEY (a) DISTRIBUTED BY (b)
                                                         ^
*/

-- case: distributed by nothing
CREATE TABLE t (a INT) PRIMARY KEY (a) DISTRIBUTED BY ()
/*
syntax error at ): expected a name
  CREATE TABLE t (a INT) PRIMARY KEY (a) DISTRIBUTED BY ()
                                                         ^
*/

-- case: distributed without saying how
CREATE TABLE t (a INT) PRIMARY KEY (a) DISTRIBUTED
/*
syntax error: expected BY (columns) or GLOBALLY at the end of the statement
  CREATE TABLE t (a INT) PRIMARY KEY (a) DISTRIBUTED
                                                    ^
*/

-- case: an unknown member
CREATE TABLE t (a INT) PRIMARY KEY (a) DISTRIBUTED BY (a) IN (oslo, berge)
/*
IN: unknown member berge; did you mean bergen? (members with data: oslo, bergen, tromso)
  CREATE TABLE t (a INT) PRIMARY KEY (a) DISTRIBUTED BY (a) IN (oslo, berge)
                                                                      ^^^^^
*/

-- case: a member twice
CREATE TABLE t (a INT) PRIMARY KEY (a) DISTRIBUTED BY (a) IN (oslo, OSLO)
/*
IN: member oslo stands there twice
  CREATE TABLE t (a INT) PRIMARY KEY (a) DISTRIBUTED BY (a) IN (oslo, OSLO)
                                                                      ^^^^
*/

-- case: some members of all
CREATE TABLE t (a INT) PRIMARY KEY (a) DISTRIBUTED GLOBALLY IN (oslo)
/*
DISTRIBUTED GLOBALLY is at all members: leave IN (…) out
  CREATE TABLE t (a INT) PRIMARY KEY (a) DISTRIBUTED GLOBALLY IN (oslo)
                                                              ^^
*/

-- case: two columns of one name
CREATE TABLE t (a INT, b INT, A STRING) PRIMARY KEY (a) DISTRIBUTED BY (a)
/*
two columns are called A
  CREATE TABLE t (a INT, b INT, A STRING) PRIMARY KEY (a) DISTRIBUTED BY (a)
                                ^
*/

-- case: an unknown type
CREATE TABLE t (a INTT) PRIMARY KEY (a) DISTRIBUTED BY (a)
/*
syntax error at INTT: expected a data type
  CREATE TABLE t (a INTT) PRIMARY KEY (a) DISTRIBUTED BY (a)
                    ^^^^
*/

-- case: a type that no file holds
CREATE TABLE t (a INT, b VARIANT) PRIMARY KEY (a) DISTRIBUTED BY (a)
/*
a column of type VARIANT is not admitted: no file of a table holds its values
  CREATE TABLE t (a INT, b VARIANT) PRIMARY KEY (a) DISTRIBUTED BY (a)
                           ^^^^^^^
*/

-- case: an interval
CREATE TABLE t (a INT, b INTERVAL YEAR TO MONTH) PRIMARY KEY (a) DISTRIBUTED BY (a)
/*
a column of type INTERVAL is not admitted: no file of a table holds its values
  CREATE TABLE t (a INT, b INTERVAL YEAR TO MONTH) PRIMARY KEY (a) DISTRIBUTED BY (a)
                           ^^^^^^^^
*/

-- case: lengths
CREATE TABLE t (a INT, b VARCHAR(10)) PRIMARY KEY (a) DISTRIBUTED BY (a)
/*
VARCHAR is not admitted: no site checks lengths; write STRING
  CREATE TABLE t (a INT, b VARCHAR(10)) PRIMARY KEY (a) DISTRIBUTED BY (a)
                           ^^^^^^^
*/

-- case: too many digits
CREATE TABLE t (a INT, b DECIMAL(39, 2)) PRIMARY KEY (a) DISTRIBUTED BY (a)
/*
DECIMAL(p, s) has 1 to 38 digits, s of them behind the point
  CREATE TABLE t (a INT, b DECIMAL(39, 2)) PRIMARY KEY (a) DISTRIBUTED BY (a)
                           ^^^^^^^
*/

-- case: a time of day
CREATE TABLE t (a INT, b TIME(3)) PRIMARY KEY (a) DISTRIBUTED BY (a)
/*
a column of type TIME is not admitted: no file of a table holds its values
  CREATE TABLE t (a INT, b TIME(3)) PRIMARY KEY (a) DISTRIBUTED BY (a)
                           ^^^^
*/

-- case: an odd name of a field
CREATE TABLE t (a INT, b STRUCT<`a b`: INT>) PRIMARY KEY (a) DISTRIBUTED BY (a)
/*
the name of a field has letters, digits and _ only
  CREATE TABLE t (a INT, b STRUCT<`a b`: INT>) PRIMARY KEY (a) DISTRIBUTED BY (a)
                                  ^^^^^
*/

-- case: a field twice
CREATE TABLE t (a INT, b STRUCT<x: INT, X: INT>) PRIMARY KEY (a) DISTRIBUTED BY (a)
/*
two fields are called X
  CREATE TABLE t (a INT, b STRUCT<x: INT, X: INT>) PRIMARY KEY (a) DISTRIBUTED BY (a)
                                          ^
*/

-- case: a default that is computed
CREATE TABLE t (a INT, b TIMESTAMP DEFAULT now()) PRIMARY KEY (a) DISTRIBUTED BY (a)
/*
the default of b is no constant: write a number, a text in quotes, DATE '…', TIMESTAMP '…', X'…', true, false or NULL
  CREATE TABLE t (a INT, b TIMESTAMP DEFAULT now()) PRIMARY KEY (a) DISTRIBUTED BY (a)
                                             ^^^
*/

-- case: a default that is a marker
CREATE TABLE t (a INT, b INT DEFAULT ?) PRIMARY KEY (a) DISTRIBUTED BY (a)
/*
the default of b is no constant: write a number, a text in quotes, DATE '…', TIMESTAMP '…', X'…', true, false or NULL
  CREATE TABLE t (a INT, b INT DEFAULT ?) PRIMARY KEY (a) DISTRIBUTED BY (a)
                                       ^
*/

-- case: a default of another type
CREATE TABLE t (a INT, b INT DEFAULT 'x') PRIMARY KEY (a) DISTRIBUTED BY (a)
/*
the default of b is no int: write it as one
  CREATE TABLE t (a INT, b INT DEFAULT 'x') PRIMARY KEY (a) DISTRIBUTED BY (a)
                                       ^^^
*/

-- case: a moment with an offset as default
CREATE TABLE t (a INT, b TIMESTAMP DEFAULT TIMESTAMP'2024-01-01 00:00:00+02:00') PRIMARY KEY (a) DISTRIBUTED GLOBALLY
/*
CreateTable
CREATE TABLE `t` (
  `a` INT NOT NULL,
  `b` TIMESTAMP DEFAULT TIMESTAMP '2024-01-01 00:00:00+02:00'
) PRIMARY KEY (`a`)
DISTRIBUTED GLOBALLY
*/

-- case: a moment with a zone as default
CREATE TABLE t (a INT, b TIMESTAMP DEFAULT TIMESTAMP'2024-01-01 00:00:00 Europe/Oslo') PRIMARY KEY (a) DISTRIBUTED GLOBALLY
/*
the default of b is no timestamp: write TIMESTAMP '2024-01-31 12:00:00', which is UTC, or an offset behind it: '…+02:00'
  CREATE TABLE t (a INT, b TIMESTAMP DEFAULT TIMESTAMP'2024-01-01 00:00:00 Europe/Oslo') PRIMARY KEY (
                                             ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
*/

-- case: a default that does not fit
CREATE TABLE t (a INT, b TINYINT DEFAULT 128) PRIMARY KEY (a) DISTRIBUTED BY (a)
/*
the default of b: 128 is no tinyint
  CREATE TABLE t (a INT, b TINYINT DEFAULT 128) PRIMARY KEY (a) DISTRIBUTED BY (a)
                                           ^^^
*/

-- case: no default for what must not be NULL
CREATE TABLE t (a INT, b INT NOT NULL DEFAULT NULL) PRIMARY KEY (a) DISTRIBUTED BY (a)
/*
the default of b is NULL, which the column does not take
  CREATE TABLE t (a INT, b INT NOT NULL DEFAULT NULL) PRIMARY KEY (a) DISTRIBUTED BY (a)
                                                ^^^^
*/

-- case: an unknown option
CREATE TABLE t (a INT) PRIMARY KEY (a) DISTRIBUTED BY (a) WITH (bucket = 10)
/*
WITH: unknown option bucket; did you mean buckets? (options: buckets)
  CREATE TABLE t (a INT) PRIMARY KEY (a) DISTRIBUTED BY (a) WITH (bucket = 10)
                                                                  ^^^^^^
*/

-- case: too few buckets
CREATE TABLE t (a INT) PRIMARY KEY (a) DISTRIBUTED BY (a) WITH (buckets = 2)
/*
WITH: buckets is a number from 3 (one a member) to 65536
  CREATE TABLE t (a INT) PRIMARY KEY (a) DISTRIBUTED BY (a) WITH (buckets = 2)
                                                                            ^
*/

-- case: buckets of a copy
CREATE TABLE t (a INT) PRIMARY KEY (a) DISTRIBUTED GLOBALLY WITH (buckets = 20)
/*
WITH: a table that is DISTRIBUTED GLOBALLY has no buckets
  CREATE TABLE t (a INT) PRIMARY KEY (a) DISTRIBUTED GLOBALLY WITH (buckets = 20)
                                                                    ^^^^^^^
*/

-- case: a name that is taken
CREATE TABLE Account (a INT) PRIMARY KEY (a) DISTRIBUTED BY (a)
/*
table Account exists already (say IF NOT EXISTS, or DROP TABLE Account first)
  CREATE TABLE Account (a INT) PRIMARY KEY (a) DISTRIBUTED BY (a)
               ^^^^^^^
*/

-- case: a name of the configuration
CREATE TABLE orders (a INT) PRIMARY KEY (a) DISTRIBUTED BY (a)
/*
table orders is in the configuration already: choose another name
  CREATE TABLE orders (a INT) PRIMARY KEY (a) DISTRIBUTED BY (a)
               ^^^^^^
*/

-- case: a name with a schema
CREATE TABLE oslo.t (a INT) PRIMARY KEY (a) DISTRIBUTED BY (a)
/*
oslo.t: a table of our own is at all its members, and named without a schema
  CREATE TABLE oslo.t (a INT) PRIMARY KEY (a) DISTRIBUTED BY (a)
               ^^^^^^
*/

-- case: a name of ours
CREATE TABLE skerry_table_1 (a INT) PRIMARY KEY (a) DISTRIBUTED BY (a)
/*
a table's name has at most 128 printable characters, no dot, and no skerry_ in front
  CREATE TABLE skerry_table_1 (a INT) PRIMARY KEY (a) DISTRIBUTED BY (a)
               ^^^^^^^^^^^^^^
*/

-- case: no columns
CREATE TABLE t AS SELECT 1
/*
write the key first: CREATE TABLE t PRIMARY KEY (a) DISTRIBUTED BY (a) AS SELECT …
  CREATE TABLE t AS SELECT 1
                 ^^
*/

-- case: more than the statement
CREATE TABLE t (a INT) PRIMARY KEY (a) DISTRIBUTED BY (a) USING parquet
/*
syntax error at USING: the statement should end here
  CREATE TABLE t (a INT) PRIMARY KEY (a) DISTRIBUTED BY (a) USING parquet
                                                            ^^^^^
*/

-- case: parameters of a definition
-- parameters: [1]
DROP TABLE account
/*
DROP takes no parameters
*/

-- case: drop
DROP TABLE Account
/*
DropTable account
*/

-- case: drop what is not there
DROP TABLE acount
/*
unknown table acount; did you mean account?
  DROP TABLE acount
             ^^^^^^
*/

-- case: drop it if it is there
DROP TABLE IF EXISTS acount
/*
DropTable
*/

-- case: drop a table of the configuration
DROP TABLE orders
/*
table orders is one of the configuration, which Skerry only reads; CREATE TABLE makes tables that are written
  DROP TABLE orders
             ^^^^^^
*/

-- case: truncate
TRUNCATE TABLE account
/*
TruncateTable account
*/

-- case: flush
FLUSH TABLE account
/*
FlushTable account
*/

-- case: show
SHOW CREATE TABLE account
/*
ShowCreateTable account
*/

-- case: show one status
SHOW TABLE STATUS account
/*
ShowTableStatus account
*/

-- case: show all
SHOW TABLE STATUS
/*
ShowTableStatus
*/

-- case: begin
BEGIN
/*
Begin
*/

-- case: begin, with more words
BEGIN TRANSACTION
/*
Begin
*/

-- case: begin, in SQL's own words
START TRANSACTION
/*
Begin
*/

-- case: commit
COMMIT
/*
Commit
*/

-- case: rollback
ROLLBACK WORK
/*
Rollback
*/

-- case: rollback to somewhere
ROLLBACK TO x
/*
syntax error at TO: the statement should end here
  ROLLBACK TO x
           ^^
*/

-- case: another statement
GRANT ALL ON account TO x
/*
GRANT is no statement about tables of our own: these are CREATE TABLE, DROP TABLE, TRUNCATE TABLE, ALTER TABLE, INSERT, UPDATE, DELETE, MERGE, BEGIN, COMMIT, ROLLBACK, FLUSH TABLE, REBALANCE TABLES, SHOW CREATE TABLE, SHOW TABLE STATUS and SHOW REBALANCE
  GRANT ALL ON account TO x
  ^^^^^
*/

-- case: add a column
ALTER TABLE account ADD COLUMN owner STRING DEFAULT 'nobody' NOT NULL
/*
AlterTable, ADD COLUMN
CREATE TABLE `account` (
  `id` BIGINT NOT NULL,
  `region` STRING NOT NULL,
  `balance` DECIMAL(12,2) NOT NULL DEFAULT 0,
  `opened` DATE,
  `note` STRING DEFAULT 'new',
  `active` BOOLEAN NOT NULL,
  `owner` STRING NOT NULL DEFAULT 'nobody'
) PRIMARY KEY (`region`, `id`)
DISTRIBUTED BY (`region`) IN (`oslo`, `bergen`, `tromso`)
WITH (buckets = 16384)
*/

-- case: add columns
ALTER TABLE account ADD COLUMNS (owner STRING, parent BIGINT)
/*
AlterTable, ADD COLUMN
CREATE TABLE `account` (
  `id` BIGINT NOT NULL,
  `region` STRING NOT NULL,
  `balance` DECIMAL(12,2) NOT NULL DEFAULT 0,
  `opened` DATE,
  `note` STRING DEFAULT 'new',
  `active` BOOLEAN NOT NULL,
  `owner` STRING,
  `parent` BIGINT
) PRIMARY KEY (`region`, `id`)
DISTRIBUTED BY (`region`) IN (`oslo`, `bergen`, `tromso`)
WITH (buckets = 16384)
*/

-- case: add a column that old rows cannot have
ALTER TABLE account ADD COLUMN owner STRING NOT NULL
/*
column owner is NOT NULL, and rows that are there have no value: give it a DEFAULT
  ALTER TABLE account ADD COLUMN owner STRING NOT NULL
                                 ^^^^^
*/

-- case: add a column that is there
ALTER TABLE account ADD COLUMN Note STRING
/*
two columns are called Note
  ALTER TABLE account ADD COLUMN Note STRING
                                 ^^^^
*/

-- case: drop a column
ALTER TABLE account DROP COLUMN note
/*
AlterTable, DROP COLUMN
CREATE TABLE `account` (
  `id` BIGINT NOT NULL,
  `region` STRING NOT NULL,
  `balance` DECIMAL(12,2) NOT NULL DEFAULT 0,
  `opened` DATE,
  `active` BOOLEAN NOT NULL
) PRIMARY KEY (`region`, `id`)
DISTRIBUTED BY (`region`) IN (`oslo`, `bergen`, `tromso`)
WITH (buckets = 16384)
*/

-- case: drop a column of the key
ALTER TABLE account DROP COLUMN Region
/*
column Region is part of the PRIMARY KEY, and stays
  ALTER TABLE account DROP COLUMN Region
                                  ^^^^^^
*/

-- case: drop a column that is not there
ALTER TABLE account DROP COLUMN notes
/*
table account has no column notes; did you mean note?
  ALTER TABLE account DROP COLUMN notes
                                  ^^^^^
*/

-- case: drop it if it is there, and another
ALTER TABLE account DROP COLUMNS IF EXISTS (notes, opened)
/*
AlterTable, DROP COLUMN
CREATE TABLE `account` (
  `id` BIGINT NOT NULL,
  `region` STRING NOT NULL,
  `balance` DECIMAL(12,2) NOT NULL DEFAULT 0,
  `note` STRING DEFAULT 'new',
  `active` BOOLEAN NOT NULL
) PRIMARY KEY (`region`, `id`)
DISTRIBUTED BY (`region`) IN (`oslo`, `bergen`, `tromso`)
WITH (buckets = 16384)
*/

-- case: rename a column of the key
ALTER TABLE account RENAME COLUMN REGION TO area
/*
AlterTable, RENAME COLUMN
CREATE TABLE `account` (
  `id` BIGINT NOT NULL,
  `area` STRING NOT NULL,
  `balance` DECIMAL(12,2) NOT NULL DEFAULT 0,
  `opened` DATE,
  `note` STRING DEFAULT 'new',
  `active` BOOLEAN NOT NULL
) PRIMARY KEY (`area`, `id`)
DISTRIBUTED BY (`area`) IN (`oslo`, `bergen`, `tromso`)
WITH (buckets = 16384)
*/

-- case: rename in another case
ALTER TABLE account RENAME COLUMN note TO NOTE
/*
AlterTable, RENAME COLUMN
CREATE TABLE `account` (
  `id` BIGINT NOT NULL,
  `region` STRING NOT NULL,
  `balance` DECIMAL(12,2) NOT NULL DEFAULT 0,
  `opened` DATE,
  `NOTE` STRING DEFAULT 'new',
  `active` BOOLEAN NOT NULL
) PRIMARY KEY (`region`, `id`)
DISTRIBUTED BY (`region`) IN (`oslo`, `bergen`, `tromso`)
WITH (buckets = 16384)
*/

-- case: rename to one that is there
ALTER TABLE account RENAME COLUMN note TO id
/*
table account has a column id already
  ALTER TABLE account RENAME COLUMN note TO id
                                            ^^
*/

-- case: alter something else
ALTER TABLE account SET OWNER TO x
/*
syntax error at SET: expected ADD COLUMN, DROP COLUMN or RENAME COLUMN
  ALTER TABLE account SET OWNER TO x
                      ^^^
*/

-- case: insert what a query gives
-- parameters: [5]
INSERT INTO account (id, region, active) SELECT o_id, o_note, true FROM oslo.orders WHERE o_price > ? ON CONFLICT DO REPLACE
/*
Insert
id, region, active; REPLACE
query: SELECT o_id, o_note, TRUE FROM scan_0 AS orders WHERE o_price > :p0
{'p0': 5}
reason: a query gives the rows
*/

-- case: insert from a query in brackets, with a WITH
INSERT INTO TABLE account (id, region, active) WITH x AS (SELECT 1 AS a) (SELECT a, 'n', false FROM x)
/*
Insert
id, region, active; FAIL
query: WITH x AS (SELECT 1 AS a) (SELECT a, 'n', FALSE FROM x)
reason: a query gives the rows
*/

-- case: a join has an ON of its own
INSERT INTO account (id, region, active) SELECT o_id, o_note, c_vip FROM orders JOIN customer ON c_id = o_customer ON CONFLICT DO NOTHING
/*
Insert
id, region, active; NOTHING
query: SELECT o_id, o_note, c_vip FROM scan_0 AS orders JOIN scan_1 AS customer ON c_id = o_customer
reason: a query gives the rows
*/

-- case: insert what is computed, and a default
-- parameters: ['s']
INSERT INTO account (id, region, note, active) VALUES (1, upper('n'), DEFAULT, true), (2, ?, 'x', NOT false)
/*
Insert
id, region, note, active; FAIL
query: VALUES (1, upper('n'), CAST('new' AS STRING), TRUE), (2, :p0, 'x', NOT FALSE)
{'p0': 's'}
reason: a value is computed by Spark
*/

-- case: insert constants
INSERT INTO account VALUES (1, 'n', 2.5, NULL, DEFAULT, true)
/*
Insert
id, region, balance, opened, note, active; FAIL
constants
*/

-- case: insert with names
-- parameters: {'r': 'n', 'i': 1}
INSERT INTO account (region, id, active) VALUES (:r, :i, true)
/*
Insert
region, id, active; FAIL
constants
{'r': 'n', 'i': 1}
*/

-- case: insert, one column, no brackets
INSERT INTO by_double (x) VALUES 1.5, (2.5)
/*
Insert
x; FAIL
constants
*/

-- case: too few values
INSERT INTO account (id, region, active) VALUES (1, 'n', true), (2, 's')
/*
row 2 has 2 values for 3 columns of account
  INSERT INTO account (id, region, active) VALUES (1, 'n', true), (2, 's')
                                                                  ^
*/

-- case: too few columns of a query
INSERT INTO account (id, region, active) SELECT 1, 'n'
/*
the query gives 2 columns, table account takes 3 here
  INSERT INTO account (id, region, active) SELECT 1, 'n'
                                           ^^^^^^
*/

-- case: a column that is not there
INSERT INTO account (id, regio, active) VALUES (1, 'n', true)
/*
table account has no column regio; did you mean region?
  INSERT INTO account (id, regio, active) VALUES (1, 'n', true)
                           ^^^^^
*/

-- case: a column twice
INSERT INTO account (id, region, active, ID) VALUES (1, 'n', true, 2)
/*
column ID stands there twice
  INSERT INTO account (id, region, active, ID) VALUES (1, 'n', true, 2)
                                           ^^
*/

-- case: a column that must have a value
INSERT INTO account (id, region) VALUES (1, 'n')
/*
column active is NOT NULL and has no default: the INSERT must give it a value
  INSERT INTO account (id, region) VALUES (1, 'n')
              ^^^^^^^
*/

-- case: an alias of a value
INSERT INTO by_double VALUES (1 AS x, 2)
/*
a value has no alias
  INSERT INTO by_double VALUES (1 AS x, 2)
                                ^
*/

-- case: an unknown policy
INSERT INTO by_double VALUES (1, 2) ON CONFLICT DO SOMETHING
/*
write ON CONFLICT DO FAIL, DO NOTHING or DO REPLACE
  INSERT INTO by_double VALUES (1, 2) ON CONFLICT DO SOMETHING
                                      ^^
*/

-- case: a policy without DO
INSERT INTO by_double VALUES (1, 2) ON CONFLICT NOTHING
/*
syntax error at ON: the statement should end here
  INSERT INTO by_double VALUES (1, 2) ON CONFLICT NOTHING
                                      ^^
*/

-- case: insert into a table of the configuration
INSERT INTO orders VALUES (1)
/*
table orders is one of the configuration, which Skerry only reads; CREATE TABLE makes tables that are written
  INSERT INTO orders VALUES (1)
              ^^^^^^
*/

-- case: insert into nowhere
INSERT INTO acount VALUES (1)
/*
unknown table acount; did you mean account?
  INSERT INTO acount VALUES (1)
              ^^^^^^
*/

-- case: insert over
INSERT OVERWRITE account VALUES (1)
/*
syntax error at OVERWRITE: expected INTO
  INSERT OVERWRITE account VALUES (1)
         ^^^^^^^^^
*/

-- case: a function that is refused
INSERT INTO account (id, region, active) VALUES (1, reflect('java.util.UUID', 'randomUUID'), true)
/*
function reflect is not admitted: it runs Java code at the site
  INSERT INTO account (id, region, active) VALUES (1, reflect('java.util.UUID', 'randomUUID'), true)
                                                      ^^^^^^^
*/

-- case: a function that is refused, in a query
INSERT INTO account (id, region, active) SELECT 1, reflect('java.util.UUID', 'randomUUID'), true
/*
function reflect is not admitted: it runs Java code at the site
  INSERT INTO account (id, region, active) SELECT 1, reflect('java.util.UUID', 'randomUUID'), true
                                                     ^^^^^^^
*/

-- case: an unknown column of a query
INSERT INTO account (id, region, active) SELECT o_idd, 'n', true FROM orders
/*
unknown column o_idd; did you mean o_id?
  INSERT INTO account (id, region, active) SELECT o_idd, 'n', true FROM orders
                                                  ^^^^^
*/

-- case: a marker without value
-- parameters: [1]
INSERT INTO by_double VALUES (?, ?)
/*
the statement has 2 parameters (?); values given: 1
*/

-- case: update by key
-- parameters: [1, 2]
UPDATE account SET balance = ?, note = DEFAULT WHERE id = ? AND region = 'n'
/*
Update
sets balance, note
constants
{'p0': 1, 'p1': 2}
*/

-- case: update by what is computed
UPDATE account SET balance = balance * 2 WHERE id = 1 AND region = 'n'
/*
Update
sets balance
query: SELECT `account`.`region`, `account`.`id`, balance * 2 AS skerry_value_0 FROM scan_0 AS account WHERE id = 1 AND region = 'n'
reason: a value is computed by Spark
*/

-- case: update by other tables
-- parameters: ['n']
UPDATE account AS a SET note = c.c_name, balance = 0 FROM customer c JOIN orders o ON o.o_customer = c.c_id, item WHERE a.id = c.c_id AND o.o_id = item.i_order AND a.region = ?
/*
Update
sets note, balance
query: SELECT `a`.`region`, `a`.`id`, c.c_name AS skerry_value_0, 0 AS skerry_value_1 FROM scan_0 AS a, scan_1 AS c JOIN scan_2 AS o ON o.o_customer = c.c_id, scan_3 AS item WHERE a.id = c.c_id AND o.o_id = item.i_order AND a.region = :p0
{'p0': 'n'}
reason: FROM joins other tables
*/

-- case: update by subqueries
UPDATE account SET balance = (SELECT max(o_price) FROM orders WHERE o_customer = account.id) WHERE id IN (SELECT c_id FROM customer WHERE c_vip)
/*
Update
sets balance
query: SELECT `account`.`region`, `account`.`id`, (SELECT max(o_price) FROM scan_1 AS orders WHERE o_customer = account.id) AS skerry_value_0 FROM scan_0 AS account WHERE id IN (SELECT c_id FROM scan_2 AS customer WHERE c_vip)
reason: a value is computed by Spark
*/

-- case: update all
UPDATE account SET active = false
/*
Update
sets active
query: SELECT `account`.`region`, `account`.`id`, FALSE AS skerry_value_0 FROM scan_0 AS account
reason: all rows are updated, whose keys are read first
*/

-- case: update the key
UPDATE account SET region = 's', balance = DEFAULT WHERE region = 'n' AND id = 7
/*
Update
sets region, balance
rows move
query: SELECT `account`.`region`, `account`.`id`, `account`.`id` AS skerry_value_0, 's' AS skerry_value_1, CAST(0 AS DECIMAL(12, 2)) AS skerry_value_2, `account`.`opened` AS skerry_value_3, `account`.`note` AS skerry_value_4, `account`.`active` AS skerry_value_5 FROM scan_0 AS account WHERE region = 'n' AND id = 7
reason: a column of the key is set, so that rows move, which are read first
*/

-- case: set twice
UPDATE account SET note = 'a', Note = 'b'
/*
column note is set twice
  UPDATE account SET note = 'a', Note = 'b'
                                 ^^^^
*/

-- case: set what is not there
UPDATE account SET notes = 'a'
/*
table account has no column notes; did you mean note?
  UPDATE account SET notes = 'a'
                     ^^^^^
*/

-- case: set a column of a table
UPDATE account SET account.note = 'a'
/*
a column of the table itself is set, named without its table
  UPDATE account SET account.note = 'a'
                            ^
*/

-- case: an unknown column in WHERE
UPDATE account SET note = 'a' WHERE regio = 'n'
/*
unknown column regio; did you mean region?
  UPDATE account SET note = 'a' WHERE regio = 'n'
                                      ^^^^^
*/

-- case: a function that is refused, in SET
UPDATE account SET note = reflect('a', 'b') WHERE id = 1
/*
function reflect is not admitted: it runs Java code at the site
  UPDATE account SET note = reflect('a', 'b') WHERE id = 1
                            ^^^^^^^
*/

-- case: update nothing
UPDATE account
/*
syntax error: expected SET at the end of the statement
  UPDATE account
                ^
*/

-- case: delete all
DELETE FROM account
/*
Delete
constants
*/

-- case: delete by keys
-- parameters: [3]
DELETE FROM account a WHERE (a.region = 'n') AND id IN (1, 2, ?)
/*
Delete
constants
{'p0': 3}
*/

-- case: delete by a part of the key
DELETE FROM account WHERE id = 1
/*
Delete
query: SELECT `account`.`region`, `account`.`id` FROM scan_0 AS account WHERE id = 1
reason: WHERE does not say region of the key
*/

-- case: delete by more than the key
DELETE FROM account WHERE id = 1 AND region = 'n' AND balance > 0
/*
Delete
query: SELECT `account`.`region`, `account`.`id` FROM scan_0 AS account WHERE id = 1 AND region = 'n' AND balance > 0
reason: WHERE is more than columns of the key that equal constants
*/

-- case: delete by one of two
DELETE FROM account WHERE id = 1 OR region = 'n'
/*
Delete
query: SELECT `account`.`region`, `account`.`id` FROM scan_0 AS account WHERE id = 1 OR region = 'n'
reason: WHERE is more than columns of the key that equal constants
*/

-- case: delete by a query
DELETE FROM account WHERE id IN (SELECT o_id FROM orders)
/*
Delete
query: SELECT `account`.`region`, `account`.`id` FROM scan_0 AS account WHERE id IN (SELECT o_id FROM scan_1 AS orders)
reason: WHERE is more than columns of the key that equal constants
*/

-- case: delete with values for no marker
-- parameters: [1]
DELETE FROM account
/*
the statement has 0 parameters (?); values given: 1
*/

-- case: delete from others
DELETE FROM account USING orders WHERE id = o_id
/*
syntax error at USING: the statement should end here
  DELETE FROM account USING orders WHERE id = o_id
                      ^^^^^
*/

-- case: a table of a query
CREATE TABLE IF NOT EXISTS t PRIMARY KEY (k) DISTRIBUTED BY (k) IN (oslo) WITH (buckets = 9) AS SELECT o_id AS k FROM orders
/*
CreateAs
query: SELECT o_id AS k FROM scan_0 AS orders
*/

-- case: a table of a query that is there
CREATE TABLE IF NOT EXISTS account PRIMARY KEY (k) DISTRIBUTED GLOBALLY AS SELECT o_id AS k FROM orders
/*
CreateTable
if not exists
CREATE TABLE `account` (
  `id` BIGINT NOT NULL,
  `region` STRING NOT NULL,
  `balance` DECIMAL(12,2) NOT NULL DEFAULT 0,
  `opened` DATE,
  `note` STRING DEFAULT 'new',
  `active` BOOLEAN NOT NULL
) PRIMARY KEY (`region`, `id`)
DISTRIBUTED BY (`region`) IN (`oslo`, `bergen`, `tromso`)
WITH (buckets = 16384)
*/

-- case: a table of columns and of a query
CREATE TABLE t (k INT) PRIMARY KEY (k) DISTRIBUTED GLOBALLY AS SELECT o_id AS k FROM orders
/*
the query behind AS gives the columns: leave them out, or INSERT … SELECT afterwards
  CREATE TABLE t (k INT) PRIMARY KEY (k) DISTRIBUTED GLOBALLY AS SELECT o_id AS k FROM orders
                                                              ^^
*/

-- case: a table of neither
CREATE TABLE t PRIMARY KEY (k) DISTRIBUTED GLOBALLY
/*
syntax error: expected AS and a query, which gives the columns at the end of the statement
  CREATE TABLE t PRIMARY KEY (k) DISTRIBUTED GLOBALLY
                                                     ^
*/

-- case: merge
-- parameters: [7, 'gone', 'x', 3]
MERGE INTO account AS a USING (SELECT o_id, o_status FROM orders WHERE o_customer > ?) AS o ON a.id = o.o_id
  WHEN MATCHED AND o.o_status = ? THEN DELETE
  WHEN MATCHED THEN UPDATE SET a.note = ?, balance = DEFAULT
  WHEN NOT MATCHED BY TARGET AND o_id > ? THEN INSERT (id, region, active) VALUES (o.o_id, 'n', true)
  WHEN NOT MATCHED BY SOURCE AND note IS NULL THEN UPDATE SET opened = current_date()
/*
Merge
delete
update note, balance
insert id, region, active
update opened
query: SELECT CASE WHEN NOT `a`.`region` IS NULL AND NOT `o`.`skerry_mark` IS NULL AND (o.o_status = :p1) THEN 0 WHEN NOT `a`.`region` IS NULL AND NOT `o`.`skerry_mark` IS NULL THEN 1 WHEN NOT (NOT `a`.`region` IS NULL) AND (o_id > :p3) THEN 2 WHEN NOT (NOT `o`.`skerry_mark` IS NULL) AND (`a`.note IS NULL) THEN 3 END AS skerry_clause, `a`.`region`, `a`.`id`, CASE WHEN (CASE WHEN NOT `a`.`region` IS NULL AND NOT `o`.`skerry_mark` IS NULL AND (o.o_status = :p1) THEN 0 WHEN NOT `a`.`region` IS NULL AND NOT `o`.`skerry_mark` IS NULL THEN 1 WHEN NOT (NOT `a`.`region` IS NULL) AND (o_id > :p3) THEN 2 WHEN NOT (NOT `o`.`skerry_mark` IS NULL) AND (`a`.note IS NULL) THEN 3 END) = 1 THEN :p2 END AS skerry_value_0, CASE WHEN (CASE WHEN NOT `a`.`region` IS NULL AND NOT `o`.`skerry_mark` IS NULL AND (o.o_status = :p1) THEN 0 WHEN NOT `a`.`region` IS NULL AND NOT `o`.`skerry_mark` IS NULL THEN 1 WHEN NOT (NOT `a`.`region` IS NULL) AND (o_id > :p3) THEN 2 WHEN NOT (NOT `o`.`skerry_mark` IS NULL) AND (`a`.note IS NULL) THEN 3 END) = 1 THEN CAST(0 AS DECIMAL(12, 2)) END AS skerry_value_1, CASE WHEN (CASE WHEN NOT `a`.`region` IS NULL AND NOT `o`.`skerry_mark` IS NULL AND (o.o_status = :p1) THEN 0 WHEN NOT `a`.`region` IS NULL AND NOT `o`.`skerry_mark` IS NULL THEN 1 WHEN NOT (NOT `a`.`region` IS NULL) AND (o_id > :p3) THEN 2 WHEN NOT (NOT `o`.`skerry_mark` IS NULL) AND (`a`.note IS NULL) THEN 3 END) = 2 THEN o.o_id END AS skerry_value_2, CASE WHEN (CASE WHEN NOT `a`.`region` IS NULL AND NOT `o`.`skerry_mark` IS NULL AND (o.o_status = :p1) THEN 0 WHEN NOT `a`.`region` IS NULL AND NOT `o`.`skerry_mark` IS NULL THEN 1 WHEN NOT (NOT `a`.`region` IS NULL) AND (o_id > :p3) THEN 2 WHEN NOT (NOT `o`.`skerry_mark` IS NULL) AND (`a`.note IS NULL) THEN 3 END) = 2 THEN 'n' END AS skerry_value_3, CASE WHEN (CASE WHEN NOT `a`.`region` IS NULL AND NOT `o`.`skerry_mark` IS NULL AND (o.o_status = :p1) THEN 0 WHEN NOT `a`.`region` IS NULL AND NOT `o`.`skerry_mark` IS NULL THEN 1 WHEN NOT (NOT `a`.`region` IS NULL) AND (o_id > :p3) THEN 2 WHEN NOT (NOT `o`.`skerry_mark` IS NULL) AND (`a`.note IS NULL) THEN 3 END) = 2 THEN TRUE END AS skerry_value_4, CASE WHEN (CASE WHEN NOT `a`.`region` IS NULL AND NOT `o`.`skerry_mark` IS NULL AND (o.o_status = :p1) THEN 0 WHEN NOT `a`.`region` IS NULL AND NOT `o`.`skerry_mark` IS NULL THEN 1 WHEN NOT (NOT `a`.`region` IS NULL) AND (o_id > :p3) THEN 2 WHEN NOT (NOT `o`.`skerry_mark` IS NULL) AND (`a`.note IS NULL) THEN 3 END) = 3 THEN :skerry_today END AS skerry_value_5 FROM scan_0 AS a FULL OUTER JOIN (SELECT *, TRUE AS skerry_mark FROM (SELECT o_id, o_status FROM scan_1 AS orders WHERE o_customer > :p0) AS o) AS `o` ON a.id = o.o_id WHERE NOT (CASE WHEN NOT `a`.`region` IS NULL AND NOT `o`.`skerry_mark` IS NULL AND (o.o_status = :p1) THEN 0 WHEN NOT `a`.`region` IS NULL AND NOT `o`.`skerry_mark` IS NULL THEN 1 WHEN NOT (NOT `a`.`region` IS NULL) AND (o_id > :p3) THEN 2 WHEN NOT (NOT `o`.`skerry_mark` IS NULL) AND (`a`.note IS NULL) THEN 3 END) IS NULL
{'p0': 7, 'p1': 'gone', 'p2': 'x', 'p3': 3}
reason: MERGE reads the table and what is merged into it
*/

-- case: merge all columns
MERGE INTO by_day USING (VALUES (DATE '2024-01-01', 1.5, 2D) AS v(day, price, x)) AS v ON by_day.day = v.day WHEN MATCHED THEN UPDATE SET * WHEN NOT MATCHED THEN INSERT *
/*
Merge
update day, price, x
insert day, price, x
query: SELECT CASE WHEN NOT `by_day`.`day` IS NULL AND NOT `v`.`skerry_mark` IS NULL THEN 0 WHEN NOT (NOT `by_day`.`day` IS NULL) THEN 1 END AS skerry_clause, `by_day`.`day`, `by_day`.`price`, CASE WHEN (CASE WHEN NOT `by_day`.`day` IS NULL AND NOT `v`.`skerry_mark` IS NULL THEN 0 WHEN NOT (NOT `by_day`.`day` IS NULL) THEN 1 END) = 0 THEN `v`.`day` END AS skerry_value_0, CASE WHEN (CASE WHEN NOT `by_day`.`day` IS NULL AND NOT `v`.`skerry_mark` IS NULL THEN 0 WHEN NOT (NOT `by_day`.`day` IS NULL) THEN 1 END) = 0 THEN `v`.`price` END AS skerry_value_1, CASE WHEN (CASE WHEN NOT `by_day`.`day` IS NULL AND NOT `v`.`skerry_mark` IS NULL THEN 0 WHEN NOT (NOT `by_day`.`day` IS NULL) THEN 1 END) = 0 THEN `v`.`x` END AS skerry_value_2, CASE WHEN (CASE WHEN NOT `by_day`.`day` IS NULL AND NOT `v`.`skerry_mark` IS NULL THEN 0 WHEN NOT (NOT `by_day`.`day` IS NULL) THEN 1 END) = 1 THEN `v`.`day` END AS skerry_value_3, CASE WHEN (CASE WHEN NOT `by_day`.`day` IS NULL AND NOT `v`.`skerry_mark` IS NULL THEN 0 WHEN NOT (NOT `by_day`.`day` IS NULL) THEN 1 END) = 1 THEN `v`.`price` END AS skerry_value_4, CASE WHEN (CASE WHEN NOT `by_day`.`day` IS NULL AND NOT `v`.`skerry_mark` IS NULL THEN 0 WHEN NOT (NOT `by_day`.`day` IS NULL) THEN 1 END) = 1 THEN `v`.`x` END AS skerry_value_5 FROM scan_0 AS by_day RIGHT OUTER JOIN (SELECT *, TRUE AS skerry_mark FROM (VALUES (DATE '2024-01-01', 1.5, 2D) AS v(day, price, x)) AS v) AS `v` ON by_day.day = v.day WHERE NOT (CASE WHEN NOT `by_day`.`day` IS NULL AND NOT `v`.`skerry_mark` IS NULL THEN 0 WHEN NOT (NOT `by_day`.`day` IS NULL) THEN 1 END) IS NULL
reason: MERGE reads the table and what is merged into it
*/

-- case: merge with names that both have
MERGE INTO by_day t USING by_double AS s ON t.x = s.x WHEN NOT MATCHED AND x > 1 THEN INSERT (day, price, x) VALUES (DATE '2024-01-01', size(filter(array(1), x -> x > 0)), x) WHEN NOT MATCHED BY SOURCE AND x < 0 THEN DELETE
/*
Merge
insert day, price, x
delete
query: SELECT CASE WHEN NOT (NOT `t`.`day` IS NULL) AND (`s`.x > 1) THEN 0 WHEN NOT (NOT `s`.`skerry_mark` IS NULL) AND (`t`.x < 0) THEN 1 END AS skerry_clause, `t`.`day`, `t`.`price`, CASE WHEN (CASE WHEN NOT (NOT `t`.`day` IS NULL) AND (`s`.x > 1) THEN 0 WHEN NOT (NOT `s`.`skerry_mark` IS NULL) AND (`t`.x < 0) THEN 1 END) = 0 THEN DATE '2024-01-01' END AS skerry_value_0, CASE WHEN (CASE WHEN NOT (NOT `t`.`day` IS NULL) AND (`s`.x > 1) THEN 0 WHEN NOT (NOT `s`.`skerry_mark` IS NULL) AND (`t`.x < 0) THEN 1 END) = 0 THEN size(filter(array(1), x -> x > 0)) END AS skerry_value_1, CASE WHEN (CASE WHEN NOT (NOT `t`.`day` IS NULL) AND (`s`.x > 1) THEN 0 WHEN NOT (NOT `s`.`skerry_mark` IS NULL) AND (`t`.x < 0) THEN 1 END) = 0 THEN `s`.x END AS skerry_value_2 FROM scan_0 AS t FULL OUTER JOIN (SELECT *, TRUE AS skerry_mark FROM scan_1 AS s) AS `s` ON t.x = s.x WHERE NOT (CASE WHEN NOT (NOT `t`.`day` IS NULL) AND (`s`.x > 1) THEN 0 WHEN NOT (NOT `s`.`skerry_mark` IS NULL) AND (`t`.x < 0) THEN 1 END) IS NULL
reason: MERGE reads the table and what is merged into it
*/

-- case: merge that moves rows
MERGE INTO by_day USING orders ON x = o_id WHEN MATCHED THEN UPDATE SET price = 1
/*
Merge
update price, day, x
query: SELECT CASE WHEN NOT `by_day`.`day` IS NULL AND NOT `orders`.`skerry_mark` IS NULL THEN 0 END AS skerry_clause, `by_day`.`day`, `by_day`.`price`, CASE WHEN (CASE WHEN NOT `by_day`.`day` IS NULL AND NOT `orders`.`skerry_mark` IS NULL THEN 0 END) = 0 THEN 1 END AS skerry_value_0, CASE WHEN (CASE WHEN NOT `by_day`.`day` IS NULL AND NOT `orders`.`skerry_mark` IS NULL THEN 0 END) = 0 THEN `by_day`.`day` END AS skerry_value_1, CASE WHEN (CASE WHEN NOT `by_day`.`day` IS NULL AND NOT `orders`.`skerry_mark` IS NULL THEN 0 END) = 0 THEN `by_day`.`x` END AS skerry_value_2 FROM scan_0 AS by_day INNER JOIN (SELECT *, TRUE AS skerry_mark FROM scan_1 AS orders) AS `orders` ON x = o_id WHERE NOT (CASE WHEN NOT `by_day`.`day` IS NULL AND NOT `orders`.`skerry_mark` IS NULL THEN 0 END) IS NULL
reason: MERGE reads the table and what is merged into it
*/

-- case: merge of one name twice
MERGE INTO by_day USING by_day ON true WHEN MATCHED THEN DELETE
/*
both are called by_day: give one of them an alias
  MERGE INTO by_day USING by_day ON true WHEN MATCHED THEN DELETE
             ^^^^^^
*/

-- case: merge without clauses
MERGE INTO by_day USING orders ON x = o_id
/*
syntax error: expected WHEN MATCHED or WHEN NOT MATCHED at the end of the statement
  MERGE INTO by_day USING orders ON x = o_id
                                            ^
*/

-- case: merge whose first clause takes all
MERGE INTO by_day USING orders ON x = o_id WHEN MATCHED THEN DELETE WHEN NOT MATCHED BY SOURCE THEN DELETE WHEN MATCHED AND x > 1 THEN UPDATE SET x = 1
/*
only the last WHEN MATCHED may leave its condition out
  MERGE INTO by_day USING orders ON x = o_id WHEN MATCHED THEN DELETE WHEN NOT MATCHED BY SOURCE THEN 
             ^^^^^^
*/

-- case: merge by chance
MERGE INTO by_day USING orders ON x = o_id WHEN MATCHED AND rand() > 0.5 THEN DELETE
/*
a condition of MERGE must give the same each time: compute such a value in USING
  MERGE INTO by_day USING orders ON x = o_id WHEN MATCHED AND rand() > 0.5 THEN DELETE
                                                              ^^^^
*/

-- case: merge with a query in a condition
MERGE INTO by_day USING orders ON x = o_id WHEN MATCHED AND x IN (SELECT o_id FROM orders) THEN DELETE
/*
MERGE takes no query here: join it in USING
  y USING orders ON x = o_id WHEN MATCHED AND x IN (SELECT o_id FROM orders) THEN DELETE
                                                    ^^^^^^
*/

-- case: merge inserts what is not there
MERGE INTO by_day t USING orders o ON x = o_id WHEN NOT MATCHED THEN INSERT (day, price) VALUES (o.o_date, t.price)
/*
WHEN NOT MATCHED has no row of t: only columns of o are there
  ATCHED THEN INSERT (day, price) VALUES (o.o_date, t.price)
                                                    ^^^^^^^
*/

-- case: merge inserts without a key
MERGE INTO by_day USING orders ON x = o_id WHEN NOT MATCHED THEN INSERT (day) VALUES (o_date)
/*
column price is NOT NULL and has no default: the INSERT must give it a value
  MERGE INTO by_day USING orders ON x = o_id WHEN NOT MATCHED THEN INSERT (day) VALUES (o_date)
             ^^^^^^
*/

-- case: merge changes by what is not there
MERGE INTO by_day USING orders ON x = o_id WHEN NOT MATCHED BY SOURCE THEN UPDATE SET x = o_id
/*
table by_day has no column o_id
  MERGE INTO by_day USING orders ON x = o_id WHEN NOT MATCHED BY SOURCE THEN UPDATE SET x = o_id
                                                                                            ^^^^
*/

-- case: merge deletes what is not there
MERGE INTO by_day USING orders ON x = o_id WHEN NOT MATCHED THEN DELETE
/*
syntax error at DELETE: expected INSERT: no row of the table is meant
  MERGE INTO by_day USING orders ON x = o_id WHEN NOT MATCHED THEN DELETE
                                                                   ^^^^^^
*/

-- case: merge sets another table
MERGE INTO by_day t USING orders o ON x = o_id WHEN MATCHED THEN UPDATE SET o.o_id = 1
/*
columns of t are set, and no others
  MERGE INTO by_day t USING orders o ON x = o_id WHEN MATCHED THEN UPDATE SET o.o_id = 1
                                                                              ^
*/

-- case: insert what was there
INSERT INTO by_day SELECT * FROM by_day VERSION AS OF 7
/*
Insert
day, price, x; FAIL
query: SELECT * FROM scan_0 AS by_day
as of: Moment(kind='version', value=7)
reason: a query gives the rows
*/

-- case: insert into what was there
INSERT INTO by_day VERSION AS OF 7 SELECT * FROM by_day
/*
tables of our own are read at one moment: say the same AS OF behind table by_day
  INSERT INTO by_day VERSION AS OF 7 SELECT * FROM by_day
                     ^^^^^^^^^^^^^^^
*/

-- case: update what was there
UPDATE by_day VERSION AS OF 7 SET x = 1 WHERE day = DATE '2024-01-01' AND price = 1
/*
AS OF is for SELECT, INSERT … SELECT and CREATE TABLE … AS: this statement reads what is there now
  UPDATE by_day VERSION AS OF 7 SET x = 1 WHERE day = DATE '2024-01-01' AND price = 1
                ^^^^^^^^^^^^^^^
*/

-- case: a table of what was there
CREATE TABLE t PRIMARY KEY (day) DISTRIBUTED GLOBALLY AS SELECT * FROM by_day TIMESTAMP AS OF '2024-01-01'
/*
CreateAs
query: SELECT * FROM scan_0 AS by_day
*/
