//! Values as SQL has them: types, times, numbers and texts.
//!
//! | concern | module |
//! |---|---|
//! | floats of files and of results | `floats` |
//! | times as texts, and lengths of time beside numbers | `times`, `interval_operators` |
//! | intervals by their lengths | `interval_lengths` |
//! | whether a statement has times or decimals | `types_within` |
//! | days and readings of a clock beside moments | `clocks`, `moment_types`, `sides_with_moments` |
//! | lists where texts are wanted | `lists` |
//! | texts, and decimals beside floats, in `VALUES`; those in queries of INSERT | `value_rows`, `value_numbers`, `inner_values` |
//! | types as SQL names them, those of moments, of unions, of recursive queries, and of tables | `type_names`, `zone_types`, `union_types`, `recursive_types`, `table_types` |
//! | parameters without a type in unions, and values that do not fit theirs | `untyped_sides`, `parameters` |
//! | types and names of the columns of FROM, and of the sides of unions | `typed_relations`, `union_names` |
//! | results that have no room | `overflow` |
//! | truth values of rows that move | `moving_rows` |
//! | marks between the digits of numbers | `digit_marks` |
//! | decimals that are rounded, those of files, and those beside floats | `digits`, `file_decimals`, `float_decimals`, `union_literals` |
//! | rows as texts | `row_texts` |

pub(super) mod clocks;
pub(super) mod digit_marks;
pub(super) mod digits;
pub(super) mod file_decimals;
pub(super) mod float_decimals;
pub(super) mod floats;
pub(super) mod inner_values;
pub(super) mod interval_lengths;
pub(super) mod interval_operators;
pub(super) mod lists;
pub(super) mod moment_types;
pub(super) mod moving_rows;
pub(super) mod overflow;
pub(super) mod parameters;
pub(super) mod recursive_types;
pub(super) mod row_texts;
pub(super) mod sides_with_moments;
pub(super) mod table_types;
pub(super) mod times;
pub(super) mod type_names;
pub(super) mod typed_relations;
pub(super) mod types_within;
pub(super) mod union_literals;
pub(super) mod union_names;
pub(super) mod union_types;
pub(super) mod untyped_sides;
pub(super) mod value_numbers;
pub(super) mod value_rows;
pub(super) mod zone_types;
