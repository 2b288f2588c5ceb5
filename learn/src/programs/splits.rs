//! Splits of samples.

use super::args::{ARRAY_OR_NONE, RANDOM_STATE, array_if_given, function, seed, share, tensor_of};
use crate::model_selection::{TrainTestSplit, train_test_split};
use tharsis_numeric::Tensor;
use tharsis_numeric::protocol::{Failure, Scope, Value};
use tharsis_programs::{Bound, Kind, Param, Preset, Row};

const SIZE: Kind = Kind::OneOf(&[Kind::Real, Kind::Integer, Kind::None]);

/// The splits of samples.
pub(super) const ROWS: &[Row<Value, Scope>] = &[function(
    "sk.model_selection.train_test_split",
    &[
        Param::rest("arrays", Kind::Array),
        Param::new("test_size", SIZE, Preset::None).keyword(),
        Param::new("train_size", SIZE, Preset::None).keyword(),
        RANDOM_STATE,
        Param::new("shuffle", Kind::Boolean, Preset::Boolean(true)).keyword(),
        Param::new("stratify", ARRAY_OR_NONE, Preset::None).keyword(),
    ],
    "rows of arrays in a training and a test set, in turns; the order of a seed is not scikit-learn's",
    |args, _| {
        let arrays = args.take_rest().into_iter().map(tensor_of).collect::<Result<Vec<_>, _>>()?;
        let parts = split(&arrays, &options(args)?)?;
        Ok(Value::Tuple(parts.into_iter().map(Value::Tensor).collect()))
    },
)];

fn options(args: &Bound<Value>) -> Result<TrainTestSplit, Failure> {
    Ok(TrainTestSplit {
        test_size: share(args, "test_size")?,
        train_size: share(args, "train_size")?,
        random_state: seed(args)?,
        shuffle: args.boolean("shuffle")?,
        stratify: array_if_given(args, "stratify")?,
    })
}

/// The two parts of each array. Arrays are split by twos, each beside the first one: the same rows of all,
/// and the same check of their lengths.
fn split(arrays: &[Tensor], options: &TrainTestSplit) -> Result<Vec<Tensor>, Failure> {
    let mut parts = Vec::new();
    match arrays {
        [] => return Err(Failure::value("At least one array required as input")),
        [only] => {
            let [only] = train_test_split([only], options.clone())?;
            parts.extend([only.train, only.test]);
        }
        [first, others @ ..] => {
            for other in others {
                let [first, other] = train_test_split([first, other], options.clone())?;
                if parts.is_empty() {
                    parts.extend([first.train, first.test]);
                }
                parts.extend([other.train, other.test]);
            }
        }
    }
    for part in &parts {
        part.check()?;
    }
    Ok(parts)
}
