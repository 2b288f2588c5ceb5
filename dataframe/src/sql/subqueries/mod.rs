//! Queries within queries.
//!
//! | concern | module |
//! |---|---|
//! | subqueries in orders, windows, joins and sets of groups | `asked`, `grouped` |
//! | subqueries that depend on the row around them | `dependent`, `laterals`, `combinations`, `combined_joins`, `plain`, `reads`, `same_rows` |
//! | rows around subqueries that are made once | `materialized` |
//! | `CROSS APPLY` and `OUTER APPLY` | `applies` |
//! | lateral queries that the library does not mark as such | `lateral_sides` |
//! | the bound on subqueries within each other | `levels` |

pub(super) mod applies;
pub(super) mod asked;
pub(super) mod combinations;
pub(super) mod combined_joins;
pub(super) mod dependent;
pub(super) mod grouped;
pub(super) mod lateral_sides;
pub(super) mod laterals;
pub(super) mod levels;
pub(super) mod materialized;
pub(super) mod plain;
pub(super) mod reads;
pub(super) mod same_rows;
