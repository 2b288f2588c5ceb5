//! Clauses and statements that the library has not, or has in another way.
//!
//! | concern | module |
//! |---|---|
//! | clauses that are refused or written in another way | `understood`, `forms` |
//! | functions of other databases that are an expression | `calls` |
//! | `= ANY` and `<> ALL` of written lists | `any_lists` |
//! | orders by keys whose bounds nobody knows | `sort_keys` |
//! | `INTERSECT ALL` and `EXCEPT ALL` | `counted_sets` |
//! | `IS DISTINCT FROM` before `AND` and `OR` | `distinct_from` |
//! | `ASOF JOIN` | `asof_joins` |
//! | values within texts of JSON | `json_arrows` |
//! | joins: where they stand, those of other databases, and those without a condition | `joins` |
//! | plans as texts | `explain` |
//! | `SUMMARIZE`, `DESCRIBE`, `SHOW TABLES` | `summary`, `with_clauses`, `described` |
//! | `ORDER BY ALL`, `FETCH FIRST`, `TOP` | `order_all`, `limits` |
//! | `PIVOT` and `UNPIVOT` | `pivots`, `pivot_statements` |
//! | words in another order than that of the parser | `read_words` |
//! | `TABLESAMPLE` | `samples` |
//! | the order of rows | `order` |

pub(super) mod any_lists;
pub(super) mod asof_joins;
pub(super) mod calls;
pub(super) mod counted_sets;
pub(super) mod described;
pub(super) mod distinct_from;
pub(super) mod explain;
pub(super) mod forms;
pub(super) mod joins;
pub(super) mod json_arrows;
pub(super) mod limits;
pub(super) mod order;
pub(super) mod order_all;
pub(super) mod pivot_statements;
pub(super) mod pivots;
pub(super) mod read_words;
pub(super) mod samples;
pub(super) mod sort_keys;
pub(super) mod summary;
pub(super) mod understood;
pub(super) mod with_clauses;
