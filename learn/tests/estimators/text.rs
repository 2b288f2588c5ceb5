//! Text of fitted models.

use tharsis_learn::linear_model::{LogisticRegression, Ridge};
use tharsis_learn::pipeline::Pipeline;
use tharsis_learn::preprocessing::StandardScaler;
use tharsis_numeric::{arange, array, zeros};

#[test]
fn a_model_tells_its_attributes() {
    let x = arange(4).reshape(&[4, 1]);
    let model = StandardScaler::new().fit(&x, ..).unwrap();
    assert_eq!(model.to_string(), "StandardScaler of 1 features\n  mean: 1.5\n  scale: 1.11803");
    let model = Ridge::new().alpha(0.5).fit(&zeros(&[2, 10]), &array([1.0, 2.0]), ..).unwrap();
    let text = "Ridge(alpha=0.5) of 10 features\n  coef: 0 0 0 0 0 0 0 0 and 2 more\n  intercept: 1.5";
    assert_eq!(model.to_string(), text);
}

#[test]
fn a_pipeline_tells_its_steps() {
    let x = array([-1.0, 1.0]).reshape(&[2, 1]);
    let pipeline =
        Pipeline::new().step("scale", StandardScaler::new()).last("model", LogisticRegression::new());
    let text = pipeline.fit(&x, &array([0i64, 1]), ..).unwrap().to_string();
    assert!(text.starts_with("scale -> model: LogisticRegression of 1 features, classes [0, 1]\n"), "{text}");
    assert!(text.contains("converged after"), "{text}");
}
