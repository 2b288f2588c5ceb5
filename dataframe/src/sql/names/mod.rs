//! Names in statements, and those of columns.
//!
//! | concern | module |
//! |---|---|
//! | names of conditions over subqueries, and of casts | `distinct_names`, `name_texts` |
//! | names of values | `labels`, `value_names`, `base_columns`, `plain_names` |
//! | columns of one name | `namesakes`, `by_name` |
//! | several `*` in one list of columns | `several_stars` |
//! | names of columns in other letters | `letters`, `column_names` |
//! | keys that are no columns | `unknown_keys` |
//! | columns that are named behind a `*` | `stars` |
//! | fields of columns behind the names of tables | `fields` |
//! | names of rows that are compared with a value | `compared_names` |

pub(super) mod base_columns;
pub(super) mod by_name;
pub(super) mod column_names;
pub(super) mod compared_names;
pub(super) mod distinct_names;
pub(super) mod fields;
pub(super) mod labels;
pub(super) mod letters;
pub(super) mod name_texts;
pub(super) mod namesakes;
pub(super) mod plain_names;
pub(super) mod several_stars;
pub(super) mod stars;
pub(super) mod unknown_keys;
pub(super) mod value_names;
