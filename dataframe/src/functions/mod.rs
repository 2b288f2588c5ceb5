//! Functions of this crate that plans name: aggregates, windows and functions of rows that the library does
//! not have. Every process registers them, so that plans which came as bytes find them.

mod about_quantile;
pub(crate) mod arithmetic;
pub(crate) mod checked;
pub(crate) mod full_formats;
pub(crate) mod full_times;
pub(crate) mod json_values;
pub(crate) mod local_times;
mod moments;
pub(crate) mod moving;
mod named;
mod on_arrays;
mod only_row;
mod product;
mod quantile;
mod ranks;
pub(crate) mod rows;
mod sliding;
pub(crate) mod span_lengths;
pub(crate) mod spread;
mod text_function;
pub(crate) mod time_spans;
mod try_pair;
pub(crate) mod whole;
mod window_values;
mod windows;
pub(crate) mod zoned_texts;
pub(crate) mod zoned_times;

pub(crate) use moments::{kurtosis, skewness};
use moments::{kurtosis_of, skewness_of};
pub(crate) use only_row::only_row;
pub(crate) use product::product;
pub(crate) use quantile::quantile;
pub(crate) use sliding::{
    sliding_first, sliding_kurt, sliding_last, sliding_nunique, sliding_rank_max, sliding_rank_min,
    sliding_skew, sliding_sum, sliding_var,
};
pub(crate) use whole::{ewm_cov, ewm_sum, over_span};
pub(crate) use window_values::window_values;
pub(crate) use windows::{ewm_mean, last_present, next_present};

use self::about_quantile::about_quantile;
use self::rows::row_functions;
use datafusion::common::Result;
use datafusion::execution::registry::FunctionRegistry;
use datafusion::logical_expr::ScalarUDF;
use std::sync::Arc;

/// Adds all functions to a registry.
pub(crate) fn register(registry: &mut dyn FunctionRegistry) -> Result<()> {
    let sliding = [sliding_sum(), sliding_var(), sliding_skew(), sliding_kurt()];
    let in_order =
        [sliding_first(), sliding_last(), sliding_nunique(), sliding_rank_min(), sliding_rank_max()];
    let all = [product(), quantile(), about_quantile(), skewness(), kurtosis()];
    let all = all.into_iter().chain(sliding).chain(in_order);
    registry.register_udaf(window_values())?;
    registry.register_udaf(checked::sum())?;
    for aggregate in all.chain(moving::functions()) {
        registry.register_udaf(aggregate)?;
    }
    for window in [last_present(), next_present(), ewm_mean(), ewm_cov(), ewm_sum(), over_span()] {
        registry.register_udwf(window)?;
    }
    for function in row_functions() {
        registry.register_udf(Arc::clone(function))?;
    }
    registry.register_udf(full_formats::function())?;
    registry.register_udf(full_times::function())?;
    registry.register_udf(only_row::function())?;
    registry.register_udf(zoned_texts::function())?;
    // Its name elsewhere.
    let sign = ScalarUDF::clone(&datafusion::functions::math::signum()).with_aliases(["sign"]);
    registry.register_udf(Arc::new(sign))?;
    let functions = arithmetic::functions().into_iter().chain(checked::functions());
    let functions = functions.chain(spread::functions()).chain(local_times::functions());
    for function in functions
        .chain(zoned_times::functions())
        .chain(time_spans::functions())
        .chain(span_lengths::functions())
        .chain(json_values::functions())
    {
        registry.register_udf(function)?;
    }
    Ok(())
}
