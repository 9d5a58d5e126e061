"""Every bound and default of Skerry, in one place."""

from __future__ import annotations

import msgspec

KIB = 1024
MIB = 1024 * KIB
GIB = 1024 * MIB

# What a member keeps of a batch beside its body (measured). Credits count it too: else a window of tiny batches would
# hold more than its bytes, and empty ones would be free, and endless.
ENTRY_BYTES = 512

# The log: lines kept of a member that starts, in case that it does not; those shown of one that ended; who asked the
# queries that run, and the latest that have ended; causes of causes of an error
HELD_LINES = 100
LAST_LINES = 15
LOGGED_CALLERS = 4096
LOGGED_CALLERS_ENDED = 256
ERROR_CHAIN = 10

# The audit: characters of a statement in a line, which is all of any that may run by default; bytes of lines that wait
# for the disk; how often a full disk is tried; lines for refused connections in so much time; what `rotate_bytes` and
# `keep` may be
AUDIT_STATEMENT_CHARS = 1 * MIB
AUDIT_WAITING_BYTES = 32 * MIB
AUDIT_RETRY_S = 1.0
AUDIT_REFUSALS = 100
AUDIT_REFUSALS_S = 60.0
AUDIT_ROTATE_LEAST = 4 * KIB
AUDIT_KEEP_MAX = 1000

MESSAGE_CHARS = 600  # of Spark's words for an error

# Of a query that a member remembers: characters of its plan, and of why it ended
PLAN_CHARS = 100_000
REASON_CHARS = 10_000

WIRE_ERROR_CHARS = 100_000  # of an error that came over the wire
# Schemas of batches that are kept decoded: so many, none larger
SCHEMAS_KEPT = 1000
SCHEMA_KEPT_BYTES = 4 * KIB
SPARK_SCHEMAS = 1000  # of texts that ran lately; a few kilobytes each

# Pages that one task of Spark may have of its heap, and the least that one has
SPARK_PAGES = 8192
LEAST_PAGE_BYTES = MIB

# Small statements that a Spark keeps planned, how long each may be with its values, and how many it knows to have been
# asked for
KEPT_STATEMENTS = 100
KEPT_STATEMENT_CHARS = 16 * KIB
ASKED_STATEMENTS = 10_000
CALL_BYTES = 4 * MIB  # of rows that come as the answer to a call of the JVM, as text; more come by a socket

END_S = 30.0  # between a member's own end and that of its process: a JVM takes ten to be given up

LARGE_SQL_CHARS = 8 * KIB  # of a statement that leaves one planner to smaller ones
# Data connections that wait for their next channel: of one member to another, and how long
SPARE_CONNECTIONS = 8
SPARE_S = 1.0

KNOWN_PLANS = 200  # of statements asked lately, none longer
KNOWN_PLAN_CHARS = 8 * KIB

# Of one session, sent with each of its statements: variables, and bytes of all of them
VARIABLES = 100
VARIABLES_BYTES = 64 * KIB
# A mention of a variable says its value again, in the name of a column without one and in IDENTIFIER(x): of longer ones
# a short statement would have a long plan
VARIABLE_SHOWN_CHARS = 100
VARIABLE_NAME_CHARS = 500

DECIMAL_DIGITS = 38  # Spark's and Arrow's

PLANNER_START_S = 60.0  # the first reads all modules, on a host that may be busy with the start of Spark
PLANNER_STOP_S = 5.0  # it may still read its modules

# Batches of a group-by that wait to be sent to one member: more would go by a table that may be an old one by then.
GROUP_BATCHES_AHEAD = 8

STALL_TOLD_S = 1.0  # a channel that has waited so long for credit is told of in the log

# Connections that the system holds for a listener; and its pause when the system has no room for another one
LISTEN_BACKLOG = 512
ACCEPT_PAUSE_S = 0.1

ENDED_QUERIES = 1000  # whose late tasks are refused without a warning

DEFAULT_PORT = 7100  # of a member whose URL or address names none

# Costs, or bytes, that differ by no more than this are the same: sizes are estimates, and so is what a job takes.
SAME_SHARE = 0.05

# Of a plan that came from another member: fragments, how deeply a text is nested (rules wrap what the client wrote in
# few brackets of their own), and rows that a bound may name.
PLAN_FRAGMENTS = 10_000
FRAGMENT_DEPTH = 200
ROWS_MAX = 2**63 - 1

WARNINGS_MAX = 10  # of one statement: a list of a thousand strings in the wrong quotes is one mistake

# Of a number in a statement: the exact value of a double has 770 digits at most. Python reads no whole number of more
# than 4300.
NUMBER_CHARS = 1000

# Sail's parser and planner recurse, and take ever longer the deeper they are; a full stack ends its process.
SAIL_OPERATORS_MAX = 300
SAIL_GROUPS_MAX = 50  # sorts of files in one table, each an operand of a UNION
# Its threads. A join keeps one a core for as long as it computes, after its cancel too. If all are kept, nothing else
# runs, not even a cancel. Idle ones cost nothing that could be measured.
SAIL_THREADS_LEAST = 64
SAIL_THREADS_PER_CORE = 16
SAIL_STACK_BYTES = 64 * MIB  # of each of its threads; memory is used as far as a stack has ever grown
# Its memory: of the machine's, if nobody said how much; of that, what sorts, joins and groups may take before they go
# to disk; and how often a member looks.
SAIL_MEMORY_SHARE = 0.6
SAIL_MEMORY_LEAST = 256 * MIB
SAIL_POOL_SHARE = 0.75
SAIL_WATCH_S = 0.1
# It grows by itself. Above this share of its memory at so many looks on end (10 s) it is replaced by a fresh one.
SAIL_RECYCLE_SHARE = 0.6
SAIL_RECYCLE_LOOKS = 100
# Some of its joins go on after a cancel. If it is so busy for so long after one (of one core), a fresh one takes over,
# unless it is fresh itself.
SAIL_WASTE_LOOK_S = 1.0
SAIL_WASTE_SHARE = 0.7
SAIL_WASTE_AGE_S = 10.0
# A job that is still at such a Sail so long after its successor took over: what goes on there may keep its threads.
SAIL_HELD_UP_S = 5.0
SAIL_START_S = 60.0
SAIL_FILES_ASKED = 200  # files of one table that are looked at one by one, to name two that differ

PATTERN_CHOICES = 100  # of SHOW … LIKE 'a|b': each is tried with every name
SQL_RELATIONS_MAX = 5000  # of one statement, those of a WITH counted as often as they are named
VALUE_ITEMS_MAX = 10_000_000  # characters or elements of one value whose size stands in the statement

# An engine whose process ended by itself is started again: pauses between tries that fail, and how long an error that
# looks like it waits for the process to be gone.
RESTART_FIRST_S = 1.0
RESTART_MAX_S = 30.0
# A Spark Connect server that does not answer is asked again so often, after pauses that double: 3 s in all.
CONNECT_TRIES = 6
CONNECT_FIRST_MS = 50
CONNECT_MAX_MS = 1_500
ENGINE_GONE_S = 2.0
# Statements that ran at such an end: kept, waiting for the others' next runs, refused after so many ends.
SUSPECTS = 1000
SUSPECT_ENDS = 2
SUSPECT_WAIT_S = 30.0
SUSPECT_REFUSED_S = 300.0

UNPAGED_LINES = 200  # of a result on a terminal without a pager

# A sink waits so long for room in memory before its batch goes to disk: for readers of about 10 MB/s and more.
SPILL_WAIT_S = 0.1

# A client says a lost execute that may change rows again only so long after it first sent it: then its member surely
# still knows the id. No member forgets ids sooner, not even if it gets the second one late.
REPEAT_S = 60.0
MARKER_LEAST_S = 90.0

# Logins: names and passwords; hashes made at once, and who waits for a turn; failures of one user from one address
# before it has to wait, how long then, and how long they count; passwords that were right lately
USER_CHARS = 128
PASSWORD_BYTES = 1024
LOGINS_AT_ONCE = 2
LOGINS_WAITING = 100
LOGIN_FAILURES = 5
LOGIN_WAIT_FIRST_S = 1.0
LOGIN_WAIT_MAX_S = 60.0
LOGIN_FAILURES_S = 600.0
LOGIN_FAILURES_KEPT = 10_000
PASSWORDS_KNOWN = 1000
PASSWORDS_KNOWN_S = 300.0
# Tokens: clocks may differ by so much; roles in one; keys in a file
TOKEN_LEEWAY_S = 60
TOKEN_ROLES = 64
TOKEN_KEYS = 100
ACCESS_FILE_BYTES = 4 * MIB  # of users or keys
# The secret by which members know each other: the file, and each key in it
SECRET_FILE_BYTES = 64 * KIB
SECRET_LEAST_BYTES = 32

CONFIG_BYTES = 1 * MIB  # of skerry.yaml itself, which therefore cannot override it
# Rules: bytes of the file, brackets in one expression, expressions whose trees are kept, views that nobody uses now
RULES_BYTES = 256 * KIB
RULE_DEPTH = 50
RULES_KEPT = 1000
SEEN_VIEWS = 100
# What a part is taken to hold of which a user may see some rows or values only: the same whatever it holds.
VEILED_PART_BYTES = 64 * MIB
# A part whose source does not say how large it is counts as so many bytes.
UNTOLD_PART_BYTES = 256 * MIB
# Questions of one member to one catalog, database or store at a time; threads for all of them.
LOOKS_AT_ONCE = 2
# Tables of one site that were asked about by name, and are remembered; names of one schema.
ASKED_PARTS = 1000
VIEW_MENTIONS = 200
SCHEMA_TABLES = 10_000
SECRET_BYTES = 64 * KIB
# Of a Delta log what one version is made of, and the files of one; more give no statistics. So many rows of a
# checkpoint are in memory at once, and so many versions are remembered.
DELTA_LOG_BYTES = 256 * MIB
DELTA_FILES = 100_000
CHECKPOINT_ROWS = 1000
DELTA_LOGS_KEPT = 1000
LOOK_THREADS = 32
# A database: until it is connected, and between two answers of it; rows it sends at once; parts of a table.
JDBC_CONNECT_S = 10
JDBC_SILENCE_S = 300
JDBC_FETCH_ROWS = 5000
JDBC_PARTS_MAX = 1000
# An object store: until it is connected, and for each answer.
STORE_CONNECT_S = 5
STORE_ANSWER_S = 20
# Footers of its files that are read at once; so many of one table and no more, evenly chosen.
STORE_THREADS = 16
STORE_FOOTERS = 2000


# What users have taken: of so many users, and in so many steps it is forgotten.
SPENDERS = 10_000
SPENDING_STEPS = 60

# Tables of our own. A write goes as tuples if it has at most so many rows and bytes (T7); of a request of the execution
# protocol: bytes, of a reply to a cache miss too, and what it may list; columns of a table, which requests number with
# one byte; characters of a name; buckets.
WRITE_TUPLES = 4096
WRITE_TUPLES_BYTES = 1 * MIB
REQUEST_BYTES = 4 * MIB
MISS_REPLY_BYTES = 20 * MIB
REQUEST_ID_CHARS = 64
REQUEST_TABLES = 1000
REQUEST_PARAMETERS = 100_000
REQUEST_COLUMNS = 4096
VALUE_DEPTH = 20
# VALUES of a statement travel as a virtual table from so many rows on, and up to so many bytes
VIRTUAL_ROWS_LEAST = 100
VIRTUAL_BYTES = 256 * KIB
OWN_COLUMNS = 256
OWN_NAME_CHARS = 128
OWN_BUCKETS = 65_536
# What one statement writes by Spark, of which its initiator and each member hold all: rows, and bytes of all copies. A
# link is silent for a member while a message is under way: at 20 Mbit/s this is 1.7 s, of the 3 s that it waits
COMPUTED_ROWS = 100_000
COMPUTED_BYTES = 4 * MIB
# More is staged: rows travel in chunks of so many bytes, so many of them under way to a member, or from a client; a
# member takes part in so many such statements at once. It cuts rows into so many parts by their buckets, so many bytes
# at a time, and keeps so many bytes of all such statements in memory. It makes files of some parts at a time: so many
# rows or bytes.
STAGED_CHUNK_BYTES = 1 * MIB
STAGED_CHUNK_ROWS = 65_536
STAGED_AHEAD = 4
STAGED_AT_ONCE = 16
STAGED_PARTS = 64
STAGED_CUT_BYTES = 4 * MIB
STAGED_MEMORY_BYTES = 128 * MIB
STAGED_UNIT_ROWS = 65_536
STAGED_UNIT_BYTES = 64 * MIB
# A table is flushed at so many rows, bytes or so late; no more than the second pair waits in memory,
# history included; what a row takes there beside its values
FLUSH_ROWS = 20_000
FLUSH_BYTES = 16 * MIB
FLUSH_S = 60.0
OVERLAY_ROWS_MAX = 200_000
OVERLAY_BYTES_MAX = 256 * MIB
OVERLAY_ROW_BYTES = 200
# A group of files is split above so many rows. Who reads at an earlier moment finds it for so long.
GROUP_ROWS = 65_536
GROUP_FILES = 8  # of one group, before staged rows write it anew
HISTORY_S = 600.0
INDEXED_ROWS = 20_000_000  # whose keys' hashes are in memory, of one table
LOOKED_GROUPS = 64  # of files, whose hashes the loop looks at by itself
# Calls that wait for the disk, by number and bytes, and those of one commit; ids that are forgotten at once
STORE_WAITING = 10_000
STORE_WAITING_BYTES = 128 * MIB
STORE_TOGETHER = 1000
IDS_FORGOTTEN = 1000
# Definitions: tables of one cluster, and what all of them take on the wire; statements that wait for others' knowledge,
# for so long; those that are known by their id
OWN_TABLES = 1000
DEFINITIONS_BYTES = 4 * MIB
DEFINITIONS_AHEAD = 100_000  # versions that a keeper whose disk is an older copy may have forgotten
DEFINES_WAITING = 100
DEFINE_WAIT_S = 5.0
DEFINED_KEPT = 1000
# For the keeper's answer, which waits for others; and whether it knows more
DEFINED_WAIT_S = 15.0
CATCH_UP_S = 2.0
REACH_KEEPER_S = 5.0  # for a connection to the keeper, before a statement is sent to it
STATUS_WAIT_S = 3.0  # for each member's part of SHOW TABLE STATUS
# A move of a group: bytes of files that go at once, for which writes to them wait; for the source to have sent them,
# and how long it then keeps them for a commit that does not come; attempts, and the pause before the next; the least
# pause after a move, in which statements that met it are planned again; between looks whether members know of it; lines
# of a plan that are told
MOVE_BYTES = 32 * MIB
MOVE_SENT_S = 120.0
MOVE_KEPT_S = 30.0
MOVE_TRIES = 5
MOVE_PAUSE_S = 0.3
MOVE_APART_S = 0.4
MOVE_LOOK_S = 0.02
MOVES_TOLD = 1000
# Before a write that met another one is tried again: at first, and at most
CHANGE_PAUSE_S = 0.005
CHANGE_PAUSE_MAX_S = 0.2
# A statement is planned again so often if files of its tables have other columns, and if tables of our own were altered
# or have moved
STALE_FILES = 1
STALE_OWN = 4
# Writes whose texts are known: how many, and of how many letters; with so many rows of values the loop does them itself
CHANGES_KEPT = 500
CHANGE_KEPT_CHARS = 4000
CHANGE_ROWS_AT_ONCE = 16
# Transactions of several statements: what all that are open at one member hold; statements of each whose counts are
# known, for who says one again; those that ended, whose end is told, and those whose COMMIT nobody knows the end of
TRANSACTIONS_BYTES = 128 * MIB
TRANSACTION_COUNTS = 100
TRANSACTIONS_ENDED = 1000
TRANSACTIONS_DOUBTED = 16
TIMESTAMP_MAX = (1 << 63) - (1 << 53)  # SQLite's numbers have 63 bits; clocks run on from what they were told
# Of commits' shell: between looks at what is late; a record that nobody waits for may wait so long for others
COMMIT_TICK_S = 0.1
COMMIT_LAZY_S = 0.2
# files of our own tables that are remembered to be what was written
CHECKED_FILES = 100_000
# between two lines of the log about one member's clock
CLOCKS_TOLD_S = 60.0
# until definitions that found no room on a disk are written again
KEEP_PAUSE_S = 1.0
# until a disk that had no room is tried again
COMMIT_ROOM_S = 0.5
# Between looks at what is to be flushed; how many of them between looks at ids that are old, and until one that failed
# is tried again
UPKEEP_S = 1.0
FORGET_ROUNDS = 60
UPKEEP_PAUSE_ROUNDS = 30
# Of keys that a query names: more are not looked up, all members are asked
BUCKETS_ASKED = 1000
# Delta's log: commits between two checkpoints, commits kept before the last one; characters of a text in statistics,
# and rows of a file that are looked at to see whether values repeat
DELTA_CHECKPOINT = 50
DELTA_KEPT = 1000
STATS_CHARS = 64
STATS_SAMPLE_ROWS = 1000

# The state of a group-by: rows that wait until they are dealt out to buckets; rows of a bucket that wait at least
# until they are folded; bytes of a batch that goes to disk. Shares of its budget: of rows that wait to be dealt out; of
# those that wait to be folded, which are worth it when memory is short; above which a state that was folded needs room;
# at which it stops to make room on disk; for one bucket that comes back from there; and how much more than all of it
# may ever be held.
FOLD_INTAKE_ROWS = 262_144
FOLD_PENDING_ROWS = 16_384
FOLD_SPILL_BYTES = 1 * MIB
FOLD_INTAKE_SHARE = 1 / 16
FOLD_PENDING_SHARE = 0.1
FOLD_FULL_SHARE = 0.75
FOLD_ROOMY_SHARE = 0.5
FOLD_BACK_SHARE = 0.125
FOLD_OVER_SHARE = 1.2


class CommitLimits(msgspec.Struct, frozen=True):
    """Of commits to tables of our own; units last in names."""

    # a peer's clock that is further ahead than this is refused
    clock_ahead_s: float = 5.0
    # the clock's durable mark: set so far ahead of the time, and at least so far ahead of the clock; set again when the
    # clock is so near
    clock_reserve_s: float = 1.0
    clock_least_s: float = 0.1
    clock_renew_s: float = 0.05
    # for locks that others hold; for all votes; for prepared writes that a read must know the end of
    lock_wait_s: float = 5.0
    vote_wait_s: float = 10.0
    read_wait_s: float = 10.0
    # for the answer of a decider elsewhere, and of all members about an id: longer than a decider waits for votes
    answer_wait_s: float = 15.0
    # for a connection to that decider, where nothing has been sent to it yet: as long as a read waits for one
    reach_wait_s: float = 5.0
    # and so much longer for each write at the member that has most: 20 s for 100,000
    write_wait_s: float = 0.0002
    # for a vote on staged rows: keys are compared and files are written before it
    staged_wait_s: float = 600.0
    # messages without an answer are said again
    repeat_s: float = 0.5
    # an outcome can be asked by its id for a day; ids are kept longer, for who asks knows only about when it began
    ids_asked_s: float = 24 * 3600.0
    ids_kept_s: float = 25 * 3600.0
    # at one member at once
    transactions: int = 10_000
    reads_waiting: int = 10_000


class GroupByLimits(msgspec.Struct, frozen=True):
    """Of an elastic group-by (docs/protocol.md, 16); units last in names."""

    # a state of more groups or bytes is split; one that fills so much memory goes to disk before anybody has answered
    split_groups: int = 1_000_000
    split_bytes: int = 128 * MIB
    memory_bytes: int = 192 * MIB
    # members that the first split recruits, if there are as many; a member that has not answered by then is passed over
    first_recruits: int = 2
    recruit_s: float = 5.0
    # what has no answer is said again, then after twice as long each time, up to `alive_s`; so often the manager says
    # something in any case, and who hears nothing for `lease_s` gives up
    repeat_s: float = 0.5
    alive_s: float = 5.0
    lease_s: float = 30.0
    # weights that do not agree are asked for again; without any progress for so long the group-by fails
    recount_s: float = 0.2
    count_s: float = 30.0
    # for all who took part to say that nothing is left
    end_s: float = 10.0


class Limits(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Units last in names. `skerry.yaml` may override any of them under `limits:`."""

    # frames and batches
    frame_bytes: int = 64 * MIB
    frame_bytes_before_login: int = 4 * KIB
    frame_bytes_from_client: int = 8 * MIB
    receive_bytes: int = 4 * MIB
    batch_bytes: int = 1 * MIB
    batch_rows: int = 16384
    # rows known to be short on average: so many of them make a batch, and nobody watches its bytes
    narrow_row_bytes: int = 1 * KIB
    narrow_batch_rows: int = 4096
    worker_buffer_bytes: int = 256 * KIB

    # channels
    first_credits_bytes: int = 4 * MIB
    reconnect_first_s: float = 0.05
    reconnect_max_s: float = 2.0
    wait_s: float = 30.0
    control_unacked_messages: int = 10_000
    control_unacked_bytes: int = 256 * MIB

    # sessions
    login_s: float = 5.0
    heartbeat_s: float = 1.0
    heartbeats_missed: int = 3
    # clients and tasks that are logged in; members have as many of their own
    connections: int = 2000
    connections_per_address: int = 1000
    # when so many have not logged in yet, the next one takes the place of the oldest; more than the 512 that the system
    # hands over at once, so that each has its turn
    connections_before_login: int = 600
    client_requests: int = 100

    # queries
    query_timeout_s: float = 3600.0
    marker_s: float = 120.0
    orphan_check_s: float = 1.0
    pending_queries: int = 1000
    cursor_lease_s: float = 300.0
    stop_s: float = 10.0
    # for queries that still run at a member that is told to stop
    drain_s: float = 30.0
    queries: int = 1000
    # of these so many run at once, in all and of one user; so many others wait for a place
    running_queries: int = 200
    running_queries_of_user: int = 100
    queued_queries: int = 500
    # of one query; 0: no bound. Seconds of Spark are those of all its fragments together, rows of an edge those of all
    # who send on it. A client may ask for less of these two
    result_rows: int = 0
    edge_rows: int = 0
    spark_s: float = 0.0
    # of all queries of one user that ended within `spending_s`: then it has to wait. 0: no bound
    result_rows_of_user: int = 0
    spark_s_of_user: float = 0.0
    spending_s: float = 3600.0
    history_queries: int = 200
    # transactions that are open, in all and of one user; rolled back after so long without a statement, and after so
    # long in any case: what they read is kept for 600 s
    transactions: int = 100
    transactions_of_user: int = 20
    transaction_idle_s: float = 60.0
    transaction_s: float = 480.0
    # of rows of our own tables that move between members, in a second
    move_bytes_s: int = 16 * MIB
    jobs: int = 1000
    cancelled_tags: int = 10_000

    # pages
    page_rows: int = 4096
    page_bytes: int = 1 * MIB
    # what a client asks for when it wants the whole result as Arrow
    bulk_page_bytes: int = 8 * MIB
    bulk_pages_ahead: int = 4
    # pages that one fetch may ask for at once; each has a batch at least, which bounds batches (`piece_bytes`)
    window_pages: int = 8

    # spools, per query and member
    spool_memory_bytes: int = 64 * MIB
    # free disk space that queries with fault policy `buffer` leave to others
    buffer_floor_bytes: int = 1 * GIB
    spool_disk_bytes: int = 16 * GIB
    # of all queries of one user at one member together, and of everybody's: then rows go to disk, then queries end
    spool_memory_bytes_of_user: int = 1 * GIB
    spool_disk_bytes_of_user: int = 64 * GIB
    spool_memory_bytes_in_all: int = 4 * GIB
    spool_disk_bytes_in_all: int = 256 * GIB
    sink_stalled_s: float = 30.0

    # processes that plan; what one statement may take of time and memory there
    planners: int = 3
    planning_s: float = 30.0
    planning_bytes: int = 2 * GIB

    # plans
    plans: int = 10_000
    plans_bytes: int = 64 * MIB
    sql_bytes: int = 1 * MIB
    # words and signs: 100,000 values in a list are 200,000
    sql_tokens: int = 250_000
    sql_depth: int = 50
    # of the fragments that one plan of another member has here
    plan_sql_bytes: int = 16 * MIB
    driver_rows: int = 4096
    driver_bytes: int = 1 * MIB
    broadcast_bytes: int = 10 * MIB
    # tables of one fragment that are no larger together are read by one task
    small_job_bytes: int = 2 * MIB
    # rows of one edge that are no more when all have arrived go into their job's plan; a fragment that could start
    # before they have arrived waits so long for it
    small_edge_bytes: int = 256 * KIB
    small_edge_wait_s: float = 0.3
    merge_groups: int = 100_000
    # of an elastic group-by: a member with more groups or bytes gives half of them to another one; one that finds none
    # to take them goes to disk, and so does one with more than `group_by_memory_bytes`
    group_by_groups: int = 1_000_000
    group_by_bytes: int = 128 * MIB
    group_by_memory_bytes: int = 192 * MIB
    # members that may have a part in one
    group_by_members: int = 16
    observed_edges: int = 40_000

    # tables
    table_files: int = 100_000
    # a catalog, a database or an object store that has not said in so much time what a table is now
    look_s: float = 30.0
    # and how long what a database or a store said of a table is taken to be so
    look_again_s: float = 5.0
    # those of one table are read in order: with fewer than `table_files`, each is gone before it is asked for again
    footers: int = 100_000
    # statistics of a table, gathered in the background: footers read, rows of the sample, columns
    stats_files: int = 200
    stats_sample_rows: int = 65_536
    stats_columns: int = 256
    # of formats without footers Spark reads all rows: of tables so large at most, in so much time, and it waits so long
    # for a moment without queries
    stats_scan_bytes: int = 1 * GIB
    stats_scan_s: float = 120.0
    stats_lull_s: float = 600.0
    # a query that comes ends the job, so often; then it goes on, or a busy site would never have statistics
    stats_put_off: int = 3
    # the file in which a member keeps statistics and sizes over its restarts
    kept_bytes: int = 16 * MIB

    @property
    def group_by(self) -> GroupByLimits:
        return GroupByLimits(self.group_by_groups, self.group_by_bytes, self.group_by_memory_bytes)

    @property
    def piece_bytes(self) -> int:
        """No batch is made larger, but for a single row: a window of pages takes half of a query's memory at most,
        and half of that is kept for the one batch that each of its pages has. Smaller ones would cost more than
        they hold.
        """
        share = max(ENTRY_BYTES, self.spool_memory_bytes // (4 * self.window_pages))
        return min(4 * self.batch_bytes, self.frame_bytes - 4 * KIB, share)
