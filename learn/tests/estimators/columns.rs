//! Transformers of some columns each, with numbers of scikit-learn 1.9.1.

use tharsis_learn::base::Estimator;
use tharsis_learn::compose::{ColumnTransformer, Columns, FittedColumnTransformer, Remainder};
use tharsis_learn::linear_model::{FittedRidge, Ridge};
use tharsis_learn::model_selection::{GridSearchCV, ParamGrid};
use tharsis_learn::pipeline::{FeatureUnion, FittedPipeline, Pipeline};
use tharsis_learn::preprocessing::{
    MaxAbsScaler, MinMaxScaler, OneHotEncoder, PolynomialFeatures, StandardScaler, TargetEncoder,
};
use tharsis_learn::{Error, FitOptions, Named, Params, Save, Table};
use tharsis_numeric::random::default_rng;
use tharsis_numeric::{Chunks, DType, Tensor, arange, array, ones, stack, zeros};

/// Three samples of four features.
fn samples() -> Tensor {
    array([1.0, 10.0, 5.0, 2.0, 2.0, 30.0, 4.0, 2.0, 3.0, 20.0, 5.0, 8.0]).reshape(&[3, 4])
}

fn numbers(made: &Tensor) -> Vec<f64> {
    made.to_vec::<f64>().unwrap()
}

fn made(transformer: &ColumnTransformer) -> Vec<f64> {
    let x = samples();
    numbers(&transformer.fit(&x, ..).unwrap().transform(&x))
}

fn refusal<T>(made: Result<T, Error>) -> String {
    let error = made.err().expect("it is refused");
    assert_eq!(error.class(), "ValueError", "{error}");
    error.to_string()
}

#[test]
fn results_stand_in_the_order_of_the_parts_and_the_remainder_last() {
    let of = || {
        ColumnTransformer::new()
            .part("range", MinMaxScaler::new(), [1])
            .part("code", OneHotEncoder::new(), [-2])
            .dropped("none", [0])
    };
    assert_eq!(made(&of()), [0.0, 0.0, 1.0, 1.0, 1.0, 0.0, 0.5, 0.0, 1.0]);
    let all = of().remainder(Remainder::passthrough());
    assert_eq!(made(&all), [0.0, 0.0, 1.0, 2.0, 1.0, 1.0, 0.0, 2.0, 0.5, 0.0, 1.0, 8.0]);
    let mapped = of().remainder(Remainder::of(MaxAbsScaler::new())).weight("range", 10.0);
    assert_eq!(made(&mapped), [0.0, 0.0, 1.0, 0.25, 10.0, 1.0, 0.0, 0.25, 5.0, 0.0, 1.0, 1.0]);
    let x = samples();
    let model = all.fit(&x, ..).unwrap();
    assert_eq!(model.output_indices(), [("range", 0..1), ("code", 1..3), ("remainder", 3..4)]);
    assert_eq!(model.n_features_in, 4);
    // A column may be one of several parts.
    let twice = ColumnTransformer::new().passthrough("a", [3, 0]).passthrough("b", [0]);
    assert_eq!(made(&twice), [2.0, 1.0, 1.0, 2.0, 2.0, 2.0, 8.0, 3.0, 3.0]);
}

#[test]
fn columns_are_told_by_places_masks_ranges_and_names() {
    let names = ["a", "b", "c", "d"];
    let of =
        |columns: Columns| made(&ColumnTransformer::new().feature_names(names).passthrough("some", columns));
    let expected = [10.0, 5.0, 30.0, 4.0, 20.0, 5.0];
    assert_eq!(of([1, 2].into()), expected);
    assert_eq!(of([-3, -2].into()), expected);
    assert_eq!(of((1..3).into()), expected);
    assert_eq!(of([false, true, true, false].into()), expected);
    assert_eq!(of(["b", "c"].into()), expected);
    assert_eq!(of((..).into()), numbers(&samples()));
    let of = |columns: Columns| {
        let made = ColumnTransformer::new().passthrough("some", columns).fit(&samples(), ..);
        let place = made.as_ref().err().map(|error| error.location().file());
        assert_eq!(place, Some(file!()));
        refusal(made)
    };
    assert!(of([4].into()).starts_with("all features must be in [0, 3] or [-4, 0]"));
    assert!(of([-5].into()).starts_with("all features must be in [0, 3] or [-4, 0]"));
    assert!(of([i64::MIN].into()).starts_with("all features must be in [0, 3] or [-4, 0]"));
    assert!(of([true].into()).starts_with("a mask of 1 columns for 4 features"));
    assert!(
        of(["a"].into()).starts_with("Specifying the columns using strings is only supported for dataframes")
    );
    let named = ColumnTransformer::new().feature_names(names).passthrough("some", ["e"]);
    assert!(
        refusal(named.fit(&samples(), ..))
            .starts_with("A given column is not a column of the dataframe: 'e'")
    );
    let few = ColumnTransformer::new().feature_names(["a"]).passthrough("some", ["a"]);
    assert!(refusal(few.fit(&samples(), ..)).starts_with("1 names for 4 features"));
}

#[test]
fn nothing_is_left_of_no_columns() {
    let x = samples();
    for transformer in [
        ColumnTransformer::new(),
        ColumnTransformer::new().part("none", StandardScaler::new(), Columns::At(Vec::new())),
        ColumnTransformer::new().dropped("all", ..).remainder(Remainder::of(StandardScaler::new())),
    ] {
        let model = transformer.fit(&x, ..).unwrap();
        assert_eq!(*model.transform(&x).execute().unwrap().shape().unwrap(), [3, 0], "{model:?}");
    }
    let error =
        refusal(ColumnTransformer::new().part("a", StandardScaler::new(), [0]).fit(&zeros(&[0, 1]), ..));
    assert!(error.starts_with("Found array with 0 sample(s)"), "{error}");
    assert!(
        refusal(ColumnTransformer::new().fit(&zeros(&[3]), ..))
            .starts_with("Expected 2D array, got 1D array")
    );
    let model = ColumnTransformer::new().passthrough("a", [0]).fit(&x, ..).unwrap();
    let error = model.transform(&ones(&[2, 3])).check().unwrap_err().to_string();
    assert!(
        error.starts_with("X has 3 features, but ColumnTransformer is expecting 4 features as input."),
        "{error}"
    );
}

#[test]
fn a_union_maps_all_samples_by_each_part() {
    let x = array([1.0, 2.0, 4.0]).reshape(&[3, 1]);
    let union = FeatureUnion::new()
        .part("powers", PolynomialFeatures::new())
        .passthrough("same")
        .part("range", MinMaxScaler::new());
    let model = union.weight("range", 6.0).fit(&x, ..).unwrap();
    let expected = [1.0, 1.0, 1.0, 1.0, 0.0, 1.0, 2.0, 4.0, 2.0, 2.0, 1.0, 4.0, 16.0, 4.0, 6.0];
    assert_eq!(numbers(&model.transform(&x)), expected);
    let error = model.transform(&ones(&[2, 3])).check().unwrap_err().to_string();
    assert!(
        error.starts_with("X has 3 features, but FeatureUnion is expecting 1 features as input."),
        "{error}"
    );
    // Weights may come before their parts, as all options may.
    let union = FeatureUnion::new().weight("same", 3.0).passthrough("same").dropped("none");
    assert_eq!(numbers(&union.fit(&x, ..).unwrap().transform(&x)), [3.0, 6.0, 12.0]);
    let error = refusal(union.weight("smae", 2.0).fit(&x, ..));
    assert!(error.starts_with("Attempting to weight transformer \"smae\", but it is not present"), "{error}");
    let columns = ColumnTransformer::new().weight("same", 3.0).weight("none", 2.0).passthrough("same", [0]);
    assert_eq!(numbers(&columns.fit(&x, ..).unwrap().transform(&x)), [3.0, 6.0, 12.0]);
    let error = refusal(FeatureUnion::new().part("range", MinMaxScaler::new()).fit(&zeros(&[3, 0]), ..));
    assert!(error.starts_with("Found array with 0 feature(s)"), "{error}");
}

#[test]
fn names_and_weights_of_samples_are_refused_as_by_scikit_learn() {
    let x = samples();
    let part =
        |name: &str| ColumnTransformer::new().part("a", StandardScaler::new(), [0]).passthrough(name, [1]);
    assert!(refusal(part("a").fit(&x, ..)).starts_with("Names provided are not unique"));
    assert!(refusal(part("a__b").fit(&x, ..)).starts_with("Estimator names must not contain __"));
    let weighted = FitOptions::new().sample_weight(&ones(&[3]));
    let error = part("b").fit(&x, weighted).unwrap_err();
    assert_eq!(error.class(), "TypeError");
    let error = error.to_string();
    assert!(
        error.contains("ColumnTransformer.fit() got an unexpected keyword argument 'sample_weight'"),
        "{error}"
    );
}

#[test]
fn parameters_of_parts_have_their_names() {
    let x = samples();
    let mut transformer = ColumnTransformer::new()
        .part("scale", StandardScaler::new(), [0])
        .passthrough("same", [1])
        .remainder(Remainder::of(MinMaxScaler::new()));
    let texts = |of: &ColumnTransformer| -> Vec<String> {
        of.params().into_iter().map(|(name, value)| format!("{name}={value}")).collect()
    };
    let first = texts(&transformer);
    assert!(first.contains(&"scale__with_mean=True".to_owned()), "{first:?}");
    assert!(first.contains(&"same='passthrough'".to_owned()), "{first:?}");
    assert!(first.iter().any(|text| text.starts_with("remainder__clip=")), "{first:?}");
    transformer.set("scale__with_std", &false.into()).unwrap();
    transformer.set("same", &"drop".into()).unwrap();
    transformer.set("remainder", &"drop".into()).unwrap();
    assert_eq!(numbers(&transformer.fit(&x, ..).unwrap().transform(&x)), [-1.0, 0.0, 1.0]);
    let error = transformer.set("sclae__with_std", &false.into()).unwrap_err().to_string();
    assert!(
        error.starts_with("Invalid parameter 'sclae' for estimator ColumnTransformer(scale, same)."),
        "{error}"
    );
    assert!(transformer.set("same", &"other".into()).is_err());
    assert!(transformer.set("same__clip", &true.into()).is_err());
}

/// Labels of a frame whose columns have several meanings, as a part of a pipeline that is searched.
#[test]
fn parts_are_steps_of_pipelines_searches_and_named_models() {
    let generator = default_rng(5);
    let group = generator.integers(0, 3, &[120]);
    let length = generator.normal(5.0, 2.0, &[120]);
    let x = stack(&[&group.astype(DType::F64), &length], 1).execute().unwrap();
    let y = (group * 10 + &length).execute().unwrap();
    let columns = ColumnTransformer::new()
        .feature_names(["group", "length"])
        .part("code", OneHotEncoder::new(), ["group"])
        .part("scale", StandardScaler::new(), ["length"]);
    let pipeline = Pipeline::new().step("columns", columns).last("line", Ridge::new());
    let grid = ParamGrid::new()
        .values("columns__scale__with_std", [true, false])
        .values("line__alpha", [1e-6, 10.0]);
    let search = GridSearchCV::new(pipeline.clone(), grid).fit(&x, &y, ..).unwrap();
    assert!(0.999 < search.best_score, "{}", search.best_score);
    let model = pipeline.fit(&x, &y, ..).unwrap();
    let read = FittedPipeline::<FittedRidge>::from_bytes(&model.to_bytes().unwrap()).unwrap();
    assert_eq!(numbers(&model.predict(&x)), numbers(&read.predict(&x)));
    let table = Table::new(["group", "length"], &x).unwrap();
    let named = Named::new(pipeline).fit(&table, &y, ..).unwrap();
    assert!(0.99 < named.score(&table, &y, ..).unwrap());
    // Chunks, of unknown sizes too.
    let cut = x.rechunk(Chunks::PerAxis(vec![7, 1])).execute().unwrap();
    let some = cut.filter(&cut.get(&[(..).into(), 1.into()]).greater(-100.0));
    for other in [cut, some] {
        let union = FeatureUnion::new().part("range", MinMaxScaler::new()).passthrough("same");
        let [own, of_chunks] =
            [&x, &other].map(|x| numbers(&union.fit(x, ..).unwrap().transform(&x.clone())));
        assert_eq!(own, of_chunks);
    }
}

#[test]
fn samples_of_a_fit_are_mapped_by_other_folds_where_a_part_does_so() {
    let x = (arange(40) % 4).reshape(&[40, 1]).execute().unwrap();
    let y = (default_rng(3).normal(0.0, 1.0, &[40]) + (arange(40) % 4)).execute().unwrap();
    let own = |of: &dyn Fn() -> Option<tharsis_learn::Result<Tensor>>| numbers(&of().unwrap().unwrap());
    let encoder = TargetEncoder::new();
    let alone = own(&|| Some(encoder.fit_transform_any(&x, Some(&y), &(..).into())?.map(|made| made.1)));
    let part = ColumnTransformer::new().part("code", encoder.clone(), [0]);
    let together = own(&|| Some(part.fit_transform_any(&x, Some(&y), &(..).into())?.map(|made| made.1)));
    assert_eq!(alone, together);
    let model: FittedColumnTransformer = part.fit_any(&x, Some(&y), &(..).into()).unwrap();
    assert_ne!(numbers(&model.transform(&x)), together);
    // Targets that a part needs are asked for.
    assert!(part.fit(&x, ..).unwrap_err().to_string().contains("requires y to be passed"));
}
