"""CREATE, DROP, RENAME and TRUNCATE TABLE: their forms, names and comments."""

from tests.support.ddl_cases.topic import Topic

FORMS = Topic(
    "create table",
    r"""
SET GLOBAL innodb_file_per_table = ON
CREATE TABLE plain (id INT PRIMARY KEY, name VARCHAR(20) NOT NULL DEFAULT '',
    note TEXT) ENGINE=InnoDB AUTO_INCREMENT=5 DEFAULT CHARSET=utf8mb4 COMMENT='it''s, (a) table; -- really'
CREATE TABLE IF NOT EXISTS plain (other INT)
CREATE TABLE like_plain LIKE plain
CREATE TABLE IF NOT EXISTS like_brackets (LIKE plain)
CREATE TABLE IF NOT EXISTS like_plain LIKE like_brackets
mariadb mysql9: CREATE TABLE from_select SELECT id, name, 1 + 1 AS two, 'x' AS letter, NOW(3) AS moment FROM plain
mariadb mysql9: CREATE TABLE from_both (extra INT, KEY (name)) CHARSET latin1 AS SELECT name, id FROM plain
mariadb mysql9: CREATE TABLE IF NOT EXISTS from_select SELECT 1 AS nothing
mariadb: CREATE OR REPLACE TABLE like_plain (a INT, b CHAR(3))
mariadb: CREATE OR REPLACE TABLE like_brackets LIKE like_plain
mariadb: CREATE OR REPLACE TABLE replaced AS SELECT 1 AS one
mariadb: CREATE OR REPLACE TABLE replaced AS SELECT 'x' AS two
CREATE TABLE `generated` (a INT, b INT AS (a + 1), c INT GENERATED ALWAYS AS (a * (b + 2)) STORED,
    d VARCHAR(10) GENERATED ALWAYS AS (CONCAT(')', a, '(')) VIRTUAL COMMENT 'x', e INT AS (b) STORED UNIQUE, KEY (b))
mysql57 mysql80 mysql9: ALTER TABLE `generated` ADD f INT AS (a) VIRTUAL NOT NULL,
    MODIFY c BIGINT AS (a + b) STORED NOT NULL
mariadb: CREATE TABLE generated2 (a INT, b INT AS (a + 1) PERSISTENT, c INT AS (a) VIRTUAL INVISIBLE)
mariadb mysql9: CREATE TABLE invisible (a INT, b INT INVISIBLE, c INT INVISIBLE DEFAULT 4,
    d INT NOT NULL DEFAULT 1 INVISIBLE)
mysql9: ALTER TABLE invisible ALTER COLUMN a SET INVISIBLE, ALTER b SET VISIBLE, MODIFY c INT VISIBLE
mariadb: ALTER TABLE invisible MODIFY a INT INVISIBLE, MODIFY b INT
CREATE TABLE checked (a INT CHECK (a > 0), b INT, CHECK (b <> a AND (b > 1 OR b < -1)),
    CONSTRAINT positive CHECK (b > 0), CONSTRAINT CHECK (a < 100))
mysql9: CREATE TABLE unenforced (a INT CONSTRAINT c1 CHECK (a > 0) NOT ENFORCED, b INT CHECK (b > 1) ENFORCED,
    CONSTRAINT c2 CHECK (a < b) NOT ENFORCED)
CREATE TABLE defaults (a INT DEFAULT -1, b DECIMAL(5,2) DEFAULT +1.50, c VARCHAR(20) DEFAULT 'a' COMMENT 'c',
    d DATETIME DEFAULT CURRENT_TIMESTAMP ON UPDATE CURRENT_TIMESTAMP, e BIT(3) DEFAULT b'101',
    f BINARY(2) DEFAULT 0x4142, g CHAR(3) DEFAULT _latin1'x', h DATE DEFAULT '2020-01-01', i INT DEFAULT NULL,
    j VARCHAR(9) DEFAULT 'it\'s' NULL, k FLOAT DEFAULT 1e3, l DOUBLE DEFAULT .5)
mariadb mysql9: CREATE TABLE expressions (a INT DEFAULT (1 + 2), b VARCHAR(40) DEFAULT (UUID()),
    c INT DEFAULT (ABS(-1)) NOT NULL, d DATE DEFAULT (CURRENT_DATE), e TEXT DEFAULT ('x'))
mariadb: CREATE TABLE bare (a INT DEFAULT 1, b VARCHAR(40) DEFAULT UUID() NOT NULL, c VARCHAR(9) DEFAULT CONCAT('a',
    'b') UNIQUE, d INT DEFAULT CASE a WHEN 1 THEN 2 ELSE 3 END, e DATE DEFAULT DATE '2020-01-01', f TEXT DEFAULT 'x')
mysql57 mysql80 mysql9: CREATE TABLE formats (a INT COLUMN_FORMAT DEFAULT, b INT COLUMN_FORMAT FIXED STORAGE DISK,
    c INT STORAGE MEMORY NOT NULL)
CREATE TABLE options (a INT PRIMARY KEY) ENGINE InnoDB ROW_FORMAT=COMPRESSED,
    KEY_BLOCK_SIZE=4 STATS_PERSISTENT=1 STATS_AUTO_RECALC=DEFAULT STATS_SAMPLE_PAGES 20,
    MAX_ROWS=100 MIN_ROWS 1 AVG_ROW_LENGTH=10 CHECKSUM=0 DELAY_KEY_WRITE=0
    PACK_KEYS=DEFAULT COMMENT 'x' INSERT_METHOD=NO CONNECTION='y'
mariadb: CREATE TABLE own_options (a INT, b VARCHAR(10)) ENGINE=Aria TRANSACTIONAL=1 PAGE_CHECKSUM=0
mariadb: CREATE TABLE compressed_pages (a INT) PAGE_COMPRESSED=1 `PAGE_COMPRESSION_LEVEL`=4
mysql57 mysql80 mysql9: CREATE TABLE space (a INT) TABLESPACE innodb_file_per_table COMPRESSION='none'
CREATE TABLE hash_parts (a INT, b INT) PARTITION BY HASH (a) PARTITIONS 3
CREATE TABLE range_parts (a INT, b DATE,
    KEY (b)) ENGINE=InnoDB PARTITION BY RANGE (a) SUBPARTITION BY HASH (TO_DAYS(b)) SUBPARTITIONS 2
    (PARTITION p0 VALUES LESS THAN (10) COMMENT = 'x', PARTITION p1 VALUES LESS THAN MAXVALUE)
CREATE TABLE list_parts (a INT, b INT) PARTITION BY LIST COLUMNS (a, b) (PARTITION p0 VALUES IN ((1, 2), (3, 4)),
    PARTITION p1 VALUES IN ((5, 6)))
CREATE TABLE key_parts (a INT PRIMARY KEY) PARTITION BY KEY () PARTITIONS 2
CREATE TEMPORARY TABLE passing (a INT)
ALTER TABLE passing ADD b INT
CREATE TABLE kept LIKE plain
DROP TEMPORARY TABLE passing
CREATE TEMPORARY TABLE kept (a INT)
ALTER TABLE kept DROP a, ADD z INT
DROP TABLE kept
ALTER TABLE kept ADD q INT
""",
)

NAMES = Topic(
    "names",
    r"""
CREATE TABLE `back``tick` (`a``b` INT, `c d` INT, `PRIMARY` INT, `select` INT, `1` INT, `2x` INT, 3y INT, `é` INT,
    ü INT, `字` INT, $dollar INT, _under INT)
ALTER TABLE `back``tick` CHANGE `a``b` `b``a` BIGINT, ADD INDEX (`c d`), ADD KEY (`PRIMARY`), ADD UNIQUE (Ü)
ALTER TABLE `back``tick` DROP 3y, DROP `2x`, ADD `first` INT FIRST, ADD after_it INT AFTER `first`
CREATE TABLE 7up (a INT)
CREATE TABLE {db}.8up (a INT, b INT)
CREATE TABLE {db}.`t 1` (a INT, `A b` INT, status INT, date DATE, time TIME, text TEXT, enum ENUM('a'), bit BIT,
    value INT, type INT, comment INT, period INT, `vector` INT, serial INT, json INT, start INT, engine INT,
    visible INT, invisible INT, action INT, byte INT, ascii INT, unicode INT, uuid INT, checksum INT, `end` INT,
    first INT, after INT, algorithm INT, `offset` INT)
ALTER TABLE `t 1` MODIFY Status BIGINT, CHANGE VALUE Value2 INT, DROP COLUMN type, DROP comment, DROP first,
    DROP `period`, MODIFY after INT UNSIGNED FIRST
ALTER TABLE `t 1` ADD COLUMN period INT, ADD `system` INT AFTER period, ADD comment INT COMMENT 'comment',
    ADD KEY `offset` (`offset`), DROP engine, DROP `vector`
CREATE TABLE Cased (A INT, b INT, KEY K (a))
CREATE TABLE cased (c INT)
ALTER TABLE Cased DROP KEY k, ADD INDEX k2 (B), CHANGE a a INT
ALTER TABLE cased ADD C2 INT AFTER C
DROP TABLE Cased
CREATE TABLE таблица (колонка INT, КЛЮЧ INT PRIMARY KEY)
ALTER TABLE таблица MODIFY КОЛОНКА BIGINT, ADD INDEX ключи (ключ, колонка)
RENAME TABLE таблица TO `表`, `7up` TO `up7`
ALTER TABLE up7 RENAME 7up
DROP TABLE {db}.7up, `t 1`
""",
)

COMMENTS = Topic(
    "comments",
    r"""
/* first */ CREATE /* a */ TABLE /* b */ a (x INT /* , y INT */, -- to the end of the line, z INT
    z INT, # so too, w INT
    v INT) /* the end */ -- really
CREATE TABLE b (x INT /*!50100 , y INT */ /*!99999 , z INT */ /*! , w INT */)
CREATE TABLE c (x INT /*M! , y INT */ /*M!100000 , z INT */ /*M!990000 , w INT */)
/*!40101 CREATE TABLE d (x INT, y VARCHAR(10) /* inner */ CHARACTER SET latin1) */
CREATE TABLE e (x INT, y INT) /*!50100 PARTITION BY HASH (x) PARTITIONS 2 */
CREATE TABLE /*!32312 IF NOT EXISTS*/ `e` (x INT)
CREATE TABLE f (x INT COMMENT '/* not one */', y VARCHAR(20) DEFAULT '-- nor this',
    z VARCHAR(20) DEFAULT "# nor 'this'") COMMENT='*/'
CREATE TABLE g (x INT DEFAULT 1, y INT AS (x--1)) --
mariadb mysql57 mysql80: CREATE TABLE h (x INT /*!50701 , y INT */ /*!80000 , z INT */)
mysql9: CREATE TABLE h (x INT /*!50701 , y INT */ /*!080013 , z INT */ /*!90000 , w INT */)
DROP /*!40000 TABLE */ g /* x */
ALTER TABLE a ADD u INT /* last */;
/*!50003 ALTER TABLE b*/ /*!50003 ADD q INT AFTER x */
ALTER TABLE b /*! ADD r INT */, DROP q
""",
)

DROPS = Topic(
    "drop, rename, truncate",
    r"""
CREATE TABLE a (x INT)
CREATE TABLE b (y INT)
CREATE TABLE c (z INT)
RENAME TABLE a TO tmp, b TO a, tmp TO b
RENAME TABLE a TO a2, a2 TO a3, b TO `b 2`
mysql57 mysql80 mysql9: RENAME TABLES c TO c2
mariadb: RENAME TABLES IF EXISTS missing TO still_missing, c WAIT 5 TO c2
ALTER TABLE a3 RENAME TO a4
ALTER TABLE a4 RENAME AS a5
ALTER TABLE a5 RENAME = a6
ALTER TABLE a6 RENAME a, ADD w INT
TRUNCATE TABLE a
TRUNCATE {db}.a
mariadb: TRUNCATE TABLE a WAIT 3
CREATE VIEW v AS SELECT * FROM a
RENAME TABLE v TO w
CREATE OR REPLACE ALGORITHM=MERGE DEFINER=CURRENT_USER SQL SECURITY INVOKER VIEW w AS SELECT 1 AS `table`
ALTER VIEW w AS SELECT 2 AS two
DROP VIEW w
DROP VIEW IF EXISTS w, v
DROP TABLE IF EXISTS nothing, a, nothing2
DROP TABLE `b 2`, c2 CASCADE
CREATE TABLE d (x INT)
DROP TABLES d RESTRICT
CREATE TABLE e (x INT)
CREATE TRIGGER tr BEFORE INSERT ON e FOR EACH ROW SET NEW.x = 1
CREATE PROCEDURE p() BEGIN CREATE TABLE by_procedure (a INT, b CHAR(3)); ALTER TABLE e ADD y INT; END
CREATE FUNCTION fn() RETURNS INT DETERMINISTIC RETURN 1
CREATE EVENT ev ON SCHEDULE AT '2037-01-01 00:00:00' DO DROP TABLE e
CREATE USER 'ddl_test'@'localhost'
GRANT SELECT ON {db}.* TO 'ddl_test'@'localhost'
RENAME USER 'ddl_test'@'localhost' TO 'ddl_test2'@'localhost'
DROP USER 'ddl_test2'@'localhost'
ANALYZE TABLE e
OPTIMIZE TABLE e
INSERT INTO e (x) VALUES (1)
UPDATE e SET x = 2
DROP EVENT ev
DROP TRIGGER tr
DROP FUNCTION fn
CALL p()
DROP PROCEDURE p
mariadb: SET STATEMENT max_statement_time = 100 FOR CREATE TABLE stated (a INT)
mariadb: SET STATEMENT sql_mode = 'ANSI_QUOTES', lock_wait_timeout = 5 FOR ALTER TABLE stated ADD b INT
mariadb: ALTER TABLE stated WAIT 5 ADD c INT
mariadb: ALTER TABLE stated NOWAIT ADD d INT
mariadb: ALTER ONLINE IGNORE TABLE IF EXISTS stated ADD e INT
mariadb: ALTER TABLE IF EXISTS missing ADD e INT
mariadb: DROP TABLE stated WAIT 5
mariadb: CREATE SEQUENCE s START WITH 10 INCREMENT BY 5
mariadb: CREATE TABLE with_sequence (id INT DEFAULT NEXT VALUE FOR s, n INT DEFAULT nextval(s))
mariadb: ALTER SEQUENCE s RESTART 100
mariadb: RENAME TABLE s TO s2
mariadb: CREATE OR REPLACE SEQUENCE s2 CACHE 5 CYCLE
mariadb: CREATE SEQUENCE IF NOT EXISTS s2
mariadb: DROP SEQUENCE s2
""",
)

TOPICS = (FORMS, NAMES, COMMENTS, DROPS)
