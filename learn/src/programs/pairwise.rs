//! Distances and similarities of pairs of rows.

use super::args::{ARRAY_OR_NONE, array, array_if_given, function, real_if_given};
use crate::metrics::{
    Beside, Euclidean, Polynomial, Rbf, Sigmoid, cosine_distances, cosine_similarity, euclidean_distances,
    haversine_distances, laplacian_kernel, linear_kernel, manhattan_distances, polynomial_kernel, rbf_kernel,
    sigmoid_kernel,
};
use tharsis_numeric::Tensor;
use tharsis_numeric::protocol::{Failure, Scope, Value};
use tharsis_programs::{Bound, Kind, Param, Preset, Row};

type Args<'a> = &'a Bound<Value>;

const X: Param = Param::needed("X", Kind::Array);
const Y: Param = Param::new("Y", ARRAY_OR_NONE, Preset::None);
const GAMMA: Param = Param::new("gamma", Kind::OneOf(&[Kind::Real, Kind::None]), Preset::None);
const COEF0: Param = Param::new("coef0", Kind::Real, Preset::Integer(1));
const DENSE_OUTPUT: Param = Param::new("dense_output", Kind::Boolean, Preset::Boolean(true)).fixed();
const NORMS: Param = Param::new("Y_norm_squared", ARRAY_OR_NONE, Preset::None).keyword().fixed();
const OWN_NORMS: Param = Param::new("X_norm_squared", ARRAY_OR_NONE, Preset::None).keyword().fixed();

/// The distances and similarities.
pub(super) const ROWS: &[Row<Value, Scope>] = &[
    function(
        "sk.metrics.pairwise.euclidean_distances",
        &[X, Y, NORMS, Param::new("squared", Kind::Boolean, Preset::Boolean(false)).keyword(), OWN_NORMS],
        "roots of sums of squared differences",
        |args, _| {
            let options = Euclidean { y: array_if_given(args, "Y")?, squared: args.boolean("squared")? };
            matrix(euclidean_distances(&array(args, "X")?, options))
        },
    ),
    function(
        "sk.metrics.pairwise.manhattan_distances",
        &[X, Y],
        "sums of absolute differences",
        |args, _| beside(args, manhattan_distances),
    ),
    function("sk.metrics.pairwise.cosine_distances", &[X, Y], "1 less the cosines", |args, _| {
        beside(args, cosine_distances)
    }),
    function("sk.metrics.pairwise.cosine_similarity", &[X, Y, DENSE_OUTPUT], "cosines", |args, _| {
        beside(args, cosine_similarity)
    }),
    function("sk.metrics.pairwise.haversine_distances", &[X, Y], "distances on a sphere", |args, _| {
        beside(args, haversine_distances)
    }),
    function("sk.metrics.pairwise.linear_kernel", &[X, Y, DENSE_OUTPUT], "products of rows", |args, _| {
        beside(args, linear_kernel)
    }),
    function(
        "sk.metrics.pairwise.polynomial_kernel",
        &[X, Y, Param::new("degree", Kind::Real, Preset::Integer(3)), GAMMA, COEF0],
        "powers of products of rows",
        |args, _| {
            let options = Polynomial {
                y: array_if_given(args, "Y")?,
                degree: args.real("degree")?,
                gamma: real_if_given(args, "gamma")?,
                coef0: args.real("coef0")?,
            };
            matrix(polynomial_kernel(&array(args, "X")?, options))
        },
    ),
    function(
        "sk.metrics.pairwise.sigmoid_kernel",
        &[X, Y, GAMMA, COEF0],
        "hyperbolic tangents of products of rows",
        |args, _| {
            let options = Sigmoid {
                y: array_if_given(args, "Y")?,
                gamma: real_if_given(args, "gamma")?,
                coef0: args.real("coef0")?,
            };
            matrix(sigmoid_kernel(&array(args, "X")?, options))
        },
    ),
    function(
        "sk.metrics.pairwise.rbf_kernel",
        &[X, Y, GAMMA],
        "exponentials of negative squared distances",
        |args, _| radial(args, rbf_kernel),
    ),
    function(
        "sk.metrics.pairwise.laplacian_kernel",
        &[X, Y, GAMMA],
        "exponentials of negative sums of absolute differences",
        |args, _| radial(args, laplacian_kernel),
    ),
];

fn matrix(made: Tensor) -> Result<Value, Failure> {
    made.check()?;
    Ok(Value::Tensor(made))
}

fn beside(args: Args<'_>, metric: fn(&Tensor, Beside) -> Tensor) -> Result<Value, Failure> {
    matrix(metric(&array(args, "X")?, Beside { y: array_if_given(args, "Y")? }))
}

fn radial(args: Args<'_>, metric: fn(&Tensor, Rbf) -> Tensor) -> Result<Value, Failure> {
    let options = Rbf { y: array_if_given(args, "Y")?, gamma: real_if_given(args, "gamma")? };
    matrix(metric(&array(args, "X")?, options))
}
