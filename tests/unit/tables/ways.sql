-- case: constants of every type
INSERT INTO reading VALUES (1, -128, 0.1D, 1e300, -1.5, X'00ff', TIMESTAMP '2024-01-01 00:00:00.25', TIMESTAMP_NTZ '1969-12-31T23:59:59', NULL, DATE '0001-01-01', 'it''s')
/*
tuples: 1 row of constants
(1,) [1, -128, 0.10000000149011612, 1e+300, '-1.500000000000000000', b'\x00\xff', 1704067200250000, -1000000, None, -719162, "it's"]
*/

-- case: whole numbers in every column that takes them
INSERT INTO reading (k, tiny, f, d, exact, s) VALUES (007, +5, 16777217, 9007199254740993, 12345678901234567890, -42), (2L, 3Y, 4S, 5, 6, 7)
/*
tuples: 2 rows of constants
(7,) [7, 5, 16777216.0, 9007199254740992.0, '12345678901234567890.000000000000000000', None, None, None, None, None, '-42']
(2,) [2, 3, 4.0, 5.0, '6.000000000000000000', None, None, None, None, None, '7']
*/

-- case: parameters
-- parameters: [1, 2.5, 3, 'ø', b'\x01', [1, None, 1099511627776]]
INSERT INTO reading (k, d, exact, s, bin, tags) VALUES (?, ?, ?, ?, ?, ?)
/*
tuples: 1 row of constants
(1,) [1, None, None, 2.5, '3.000000000000000000', b'\x01', None, None, [1, None, 1099511627776], None, 'ø']
*/

-- case: defaults, said and left out
INSERT INTO account (id, region, active, note) VALUES (1, 'n', true, DEFAULT), (2, 's', false, NULL) ON CONFLICT DO REPLACE
/*
tuples: 2 rows of constants
('n', 1) [1, 'n', '0.00', None, 'new', True]
('s', 2) [2, 's', '0.00', None, None, False]
*/

-- case: no -0 in a decimal, one in a double
INSERT INTO reading (k, d, exact) VALUES (1, -0.0, -0.0), (2, -0D, 0)
/*
tuples: 2 rows of constants
(1,) [1, None, None, 0.0, '0.000000000000000000', None, None, None, None, None, None]
(2,) [2, None, None, -0.0, '0.000000000000000000', None, None, None, None, None, None]
*/

-- case: a decimal is rounded half up
INSERT INTO account (id, region, active, balance) VALUES (1, 'n', true, 1.005), (2, 'n', true, -1.005), (3, 'n', true, 9999999999.994)
/*
tuples: 3 rows of constants
('n', 1) [1, 'n', '1.01', None, 'new', True]
('n', 2) [2, 'n', '-1.01', None, 'new', True]
('n', 3) [3, 'n', '9999999999.99', None, 'new', True]
*/

-- case: a decimal that does not fit
INSERT INTO account (id, region, active, balance) VALUES (1, 'n', true, 9999999999.995)
/*
column balance: 9999999999.995 does not fit decimal(12,2)
  INSERT INTO account (id, region, active, balance) VALUES (1, 'n', true, 9999999999.995)
                                                                          ^^^^^^^^^^^^^^
*/

-- case: a whole number that does not fit
INSERT INTO reading (k, tiny) VALUES (1, 128)
/*
column tiny: 128 is no tinyint
  INSERT INTO reading (k, tiny) VALUES (1, 128)
                                           ^^^
*/

-- case: a parameter that does not fit
-- parameters: [-129]
INSERT INTO reading (k, tiny) VALUES (1, ?)
/*
column tiny: -129 is no tinyint
  INSERT INTO reading (k, tiny) VALUES (1, ?)
                                           ^
*/

-- case: NULL where it is not taken
INSERT INTO account VALUES (1, 'n', NULL, NULL, NULL, true)
/*
column balance of account is NOT NULL
  INSERT INTO account VALUES (1, 'n', NULL, NULL, NULL, true)
                                      ^^^^
*/

-- case: NULL in the key
INSERT INTO account (id, region, active) VALUES (NULL, 'n', true)
/*
column id of account is NOT NULL
  INSERT INTO account (id, region, active) VALUES (NULL, 'n', true)
                                                   ^^^^
*/

-- case: DEFAULT where there is none
INSERT INTO account (id, region, active) VALUES (1, 'n', DEFAULT)
/*
column active of account is NOT NULL
*/

-- case: a text for a number
INSERT INTO reading (k) VALUES ('1')
/*
Spark: a text for a column of type int is cast by Spark
VALUES ('1')
*/

-- case: a text for a date
INSERT INTO reading (k, day) VALUES (1, '2024-01-01')
/*
Spark: a text for a column of type date is cast by Spark
VALUES (1, '2024-01-01')
*/

-- case: a decimal for a whole number
INSERT INTO reading (k) VALUES (1.5)
/*
Spark: 1.5 for a column of type int is cast by Spark
VALUES (1.5)
*/

-- case: a double for a decimal
-- parameters: [0.5]
INSERT INTO reading (k, exact) VALUES (1, ?)
/*
Spark: a double for a column of type decimal(38,18) is cast by Spark
VALUES (1, :p0)
*/

-- case: a number beyond floats
INSERT INTO reading (k, f) VALUES (1, 1e300)
/*
Spark: a number beyond all floats is cast by Spark
VALUES (1, 1e300)
*/

-- case: a float
INSERT INTO reading (k, f) VALUES (1, 1.5F)
/*
Spark: a number of this form is read by Spark
VALUES (1, 1.5F)
*/

-- case: a date for a moment
INSERT INTO reading (k, at) VALUES (1, DATE '2024-01-01')
/*
Spark: a date for a column of type timestamp is cast by Spark
VALUES (1, DATE '2024-01-01')
*/

-- case: a moment with a zone
INSERT INTO reading (k, at) VALUES (1, TIMESTAMP '2024-01-01 00:00:00 Europe/Oslo')
/*
Spark: TIMESTAMP '2024-01-01 00:00:00 Europe/Oslo' is read by Spark
VALUES (1, TIMESTAMP '2024-01-01 00:00:00 Europe/Oslo')
*/

-- case: a day that no calendar has
INSERT INTO reading (k, day) VALUES (1, DATE '2024-02-30')
/*
there is no DATE '2024-02-30' (write DATE 'yyyy-mm-dd')
  INSERT INTO reading (k, day) VALUES (1, DATE '2024-02-30')
                                          ^^^^^^^^^^^^^^^^^
*/

-- case: an empty list
-- parameters: [[]]
INSERT INTO reading (k, tags) VALUES (1, ?)
/*
Spark: a list for a column of type array<bigint> is cast by Spark
VALUES (1, :p0)
*/

-- case: more digits than a decimal has
INSERT INTO reading (k, exact) VALUES (1, 1.00000000000000000000000000000000000001)
/*
Spark: a number of more than 38 digits is read by Spark
VALUES (1, 1.00000000000000000000000000000000000001)
*/

-- case: a double beyond all
INSERT INTO reading (k, d) VALUES (1, 1e999)
/*
Spark: a number of this form is read by Spark
VALUES (1, 1e999)
*/

-- case: a negation of a marker
-- parameters: [1]
INSERT INTO reading (k) VALUES (-?)
/*
Spark: an expression is computed by Spark
VALUES (- :p0)
*/

-- case: an expression
INSERT INTO reading (k) VALUES (1 + 1)
/*
Spark: a value is computed by Spark
VALUES (1 + 1)
*/

-- case: a query
INSERT INTO reading (k) SELECT 1
/*
Spark: a query gives the rows
SELECT 1
*/

-- case: update by key
UPDATE account SET balance = 5, note = DEFAULT, active = true WHERE 'n' = region AND id = 7
/*
tuples: 1 key and constants
('n', 7) (('5.00', 2), ('new', 4), (True, 5))
*/

-- case: update by several keys, each once
-- parameters: [2]
UPDATE account SET note = NULL WHERE id IN (1, 2.0, ?, 1) AND region IN ('n', 's')
/*
tuples: 4 keys and constants
('n', 1) ((None, 4),)
('n', 2) ((None, 4),)
('s', 1) ((None, 4),)
('s', 2) ((None, 4),)
*/

-- case: update to NULL where it is not taken
UPDATE account SET balance = NULL WHERE id = 1 AND region = 'n'
/*
column balance of account is NOT NULL
  UPDATE account SET balance = NULL WHERE id = 1 AND region = 'n'
                               ^^^^
*/

-- case: update to what does not fit
UPDATE account SET balance = 1e10BD WHERE id = 1 AND region = 'n'
/*
Spark: a number of this form is read by Spark
SELECT `account`.`region`, `account`.`id`, 1e10BD AS skerry_value_0 FROM scan_0 AS account WHERE id = 1 AND region = 'n'
*/

-- case: update to more than there is room for
UPDATE account SET balance = 10000000000 WHERE id = 1 AND region = 'n'
/*
column balance: 10000000000 does not fit decimal(12,2)
  UPDATE account SET balance = 10000000000 WHERE id = 1 AND region = 'n'
                               ^^^^^^^^^^^
*/

-- case: update of the key
UPDATE account SET id = 5 WHERE id = 1 AND region = 'n'
/*
Spark: a column of the key is set, so that rows move, which are read first
SELECT `account`.`region`, `account`.`id`, 5 AS skerry_value_0, `account`.`region` AS skerry_value_1, `account`.`balance` AS skerry_value_2, `account`.`opened` AS skerry_value_3, `account`.`note` AS skerry_value_4, `account`.`active` AS skerry_value_5 FROM scan_0 AS account WHERE id = 1 AND region = 'n'
*/

-- case: update of all
UPDATE account SET note = 'x'
/*
Spark: all rows are updated, whose keys are read first
SELECT `account`.`region`, `account`.`id`, 'x' AS skerry_value_0 FROM scan_0 AS account
*/

-- case: delete all
DELETE FROM account
/*
tuples: all rows, without a condition
*/

-- case: delete by key
DELETE FROM by_day WHERE day = DATE '2024-02-29' AND price IN (1, 2.50, 3.005, 4000, NULL)
/*
tuples: 2 keys
(19782, '1.00')
(19782, '2.50')
*/

-- case: no key equals NULL
DELETE FROM account WHERE id = NULL AND region = 'n'
/*
tuples: 0 keys
*/

-- case: no whole number is that large
DELETE FROM reading WHERE k = 2147483648
/*
tuples: 0 keys
*/

-- case: no whole number has a half
DELETE FROM reading WHERE k = 1.5
/*
tuples: 0 keys
*/

-- case: a text beside a number
DELETE FROM reading WHERE k = '1'
/*
Spark: a text is compared with a key of type int by Spark
SELECT `reading`.`k` FROM scan_0 AS reading WHERE k = '1'
*/

-- case: a text beside a date
DELETE FROM by_day WHERE day = '2024-02-29' AND price = 1
/*
Spark: a text for a column of type date is cast by Spark
SELECT `by_day`.`day`, `by_day`.`price` FROM scan_0 AS by_day WHERE day = '2024-02-29' AND price = 1
*/

-- case: a double beside a number
DELETE FROM reading WHERE k = 1e0
/*
Spark: a double is compared with a key of type int by Spark
SELECT `reading`.`k` FROM scan_0 AS reading WHERE k = 1e0
*/

-- case: a number beside a text
DELETE FROM account WHERE id = 1 AND region = 1
/*
Spark: 1 is compared with a key of type string by Spark
SELECT `account`.`region`, `account`.`id` FROM scan_0 AS account WHERE id = 1 AND region = 1
*/

-- case: a key that is a double
DELETE FROM by_double WHERE x = 1
/*
Spark: 1 is compared with a key of type double by Spark
SELECT `by_double`.`x` FROM scan_0 AS by_double WHERE x = 1
*/

-- case: so many digits that Spark rounds
DELETE FROM by_day WHERE day = DATE '2024-02-29' AND price = 1.0000000000000000000000000000000000001
/*
Spark: numbers that need more than 38 digits together are rounded by Spark
SELECT `by_day`.`day`, `by_day`.`price` FROM scan_0 AS by_day WHERE day = DATE '2024-02-29' AND price = 1.0000000000000000000000000000000000001
*/

-- case: half of the key
DELETE FROM account WHERE id = 1
/*
Spark: WHERE does not say region of the key
SELECT `account`.`region`, `account`.`id` FROM scan_0 AS account WHERE id = 1
*/

-- case: twice the key
DELETE FROM reading WHERE k = 1 AND k = 2
/*
Spark: WHERE asks for k twice
SELECT `reading`.`k` FROM scan_0 AS reading WHERE k = 1 AND k = 2
*/

-- case: more keys than go as tuples
DELETE FROM account WHERE id IN (0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20, 21, 22, 23, 24, 25, 26, 27, 28, 29, 30, 31, 32, 33, 34, 35, 36, 37, 38, 39, 40, 41, 42, 43, 44, 45, 46, 47, 48, 49, 50, 51, 52, 53, 54, 55, 56, 57, 58, 59, 60, 61, 62, 63, 64, 65, 66, 67, 68, 69) AND region IN ('0', '1', '2', '3', '4', '5', '6', '7', '8', '9', '10', '11', '12', '13', '14', '15', '16', '17', '18', '19', '20', '21', '22', '23', '24', '25', '26', '27', '28', '29', '30', '31', '32', '33', '34', '35', '36', '37', '38', '39', '40', '41', '42', '43', '44', '45', '46', '47', '48', '49', '50', '51', '52', '53', '54', '55', '56', '57', '58', '59')
/*
Spark: 4200 keys are more than the 4096 that go as tuples
SELECT `account`.`region`, `account`.`id` FROM scan_0 AS account WHERE id IN (0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20, 21, 22, 23, 24, 25, 26, 27, 28, 29, 30, 31, 32, 33, 34, 35, 36, 37, 38, 39, 40, 41, 42, 43, 44, 45, 46, 47, 48, 49, 50, 51, 52, 53, 54, 55, 56, 57, 58, 59, 60, 61, 62, 63, 64, 65, 66, 67, 68, 69) AND region IN ('0', '1', '2', '3', '4', '5', '6', '7', '8', '9', '10', '11', '12', '13', '14', '15', '16', '17', '18', '19', '20', '21', '22', '23', '24', '25', '26', '27', '28', '29', '30', '31', '32', '33', '34', '35', '36', '37', '38', '39', '40', '41', '42', '43', '44', '45', '46', '47', '48', '49', '50', '51', '52', '53', '54', '55', '56', '57', '58', '59')
*/

-- case: a column called default, and the word
INSERT INTO by_double (x, `DEFAULT`) VALUES (1, DEFAULT)
/*
tuples: 1 row of constants
(1.0,) [1.0, None]
*/

-- case: a number among texts of one column
INSERT INTO reading (k, s) VALUES (1, 'x'), (2, 5)
/*
Spark: numbers and texts in one column of VALUES are brought to one type by Spark
VALUES (1, 'x'), (2, 5)
*/

-- case: numbers of one column that 38 digits hold
INSERT INTO reading (k, exact) VALUES (1, 5), (2, 0.5), (3, NULL)
/*
tuples: 3 rows of constants
(1,) [1, None, None, None, '5.000000000000000000', None, None, None, None, None, None]
(2,) [2, None, None, None, '0.500000000000000000', None, None, None, None, None, None]
(3,) [3, None, None, None, None, None, None, None, None, None, None]
*/

-- case: numbers of one column that 38 digits do not hold
INSERT INTO reading (k, exact) VALUES (1, 12345678901234567890), (2, 0.1234567890123456789)
/*
Spark: numbers that need more than 38 digits together are rounded by Spark
VALUES (1, 12345678901234567890), (2, 0.1234567890123456789)
*/

-- case: a default among numbers
INSERT INTO account (id, region, active, balance) VALUES (1, 'n', true, DEFAULT), (2, 'n', true, 1 + 1)
/*
Spark: a value is computed by Spark
VALUES (1, 'n', TRUE, CAST(0 AS DECIMAL(12, 2))), (2, 'n', TRUE, 1 + 1)
*/

-- case: keys that 38 digits do not hold together
DELETE FROM by_day WHERE day = DATE '2024-02-29' AND price IN (123456789012345678901234567890, 0.123456789012345)
/*
Spark: numbers that need more than 38 digits together are rounded by Spark
SELECT `by_day`.`day`, `by_day`.`price` FROM scan_0 AS by_day WHERE day = DATE '2024-02-29' AND price IN (123456789012345678901234567890, 0.123456789012345)
*/
