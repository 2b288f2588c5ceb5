//! Refusals of calls, with the texts that Python 3.11 gives for functions of the same signatures.

use super::*;
use crate::param::{Kind, Preset};
use crate::row::{Form, Row};

#[derive(Clone, Debug, PartialEq)]
enum Word {
    None,
    Flag(bool),
    Whole(i128),
    Number(f64),
    Text(&'static str),
    Object,
}

impl Argument for Word {
    type Failure = Refusal;

    fn look(&self) -> Look<'_> {
        match self {
            Word::None => Look::None,
            Word::Flag(is_true) => Look::Boolean(*is_true),
            Word::Whole(whole) => Look::Integer(*whole),
            Word::Number(number) => Look::Real(*number),
            Word::Text(text) => Look::Text(text),
            Word::Object => Look::Object("Ridge"),
        }
    }

    fn preset(preset: &Preset) -> Word {
        match *preset {
            Preset::Boolean(is_true) => Word::Flag(is_true),
            Preset::Integer(whole) => Word::Whole(whole.into()),
            Preset::Real(number) => Word::Number(number),
            Preset::Text(text) => Word::Text(text),
            _ => Word::None,
        }
    }
}

/// The arguments of a call in the order of the parameters, in Python's words; those that are not given in
/// parentheses.
fn shown(bound: &mut Bound<Word>, _: &()) -> Result<Word, Refusal> {
    let mut texts = Vec::new();
    for (name, value) in bound.iter() {
        let text = format!("{name}={}", value.look());
        texts.push(if bound.is_given(name) { text } else { format!("({text})") });
    }
    texts.extend(bound.take_rest().iter().map(|value| format!("*{}", value.look())));
    Ok(Word::Text(texts.join(" ").leak()))
}

const RIDGE: Row<Word, ()> = Row {
    name: "sk.linear_model.Ridge",
    form: Form::Constructor,
    params: &[
        Param::new("alpha", Kind::Real, Preset::Real(1.0)),
        Param::new("fit_intercept", Kind::Boolean, Preset::Boolean(true)).keyword(),
        Param::new("copy", Kind::Boolean, Preset::Boolean(true)).keyword().fixed(),
        Param::new("max_iter", Kind::OneOf(&[Kind::Integer, Kind::None]), Preset::None).keyword(),
        Param::new("solver", Kind::Choice(&["auto", "svd", "sag"]), Preset::Text("auto"))
            .keyword()
            .only(Kind::Choice(&["auto", "svd"])),
        Param::new("verbose", Kind::Integer, Preset::Integer(0)).keyword().fixed(),
    ],
    doc: "",
    run: shown,
};

const SCALER: Row<Word, ()> = Row {
    name: "sk.preprocessing.StandardScaler",
    form: Form::Constructor,
    params: &[Param::new("copy", Kind::Boolean, Preset::Boolean(true)).keyword()],
    doc: "",
    run: shown,
};

const FIT: Row<Word, ()> = Row {
    name: "sk.fit",
    form: Form::Method,
    params: &[
        Param::needed("estimator", Kind::Object),
        Param::needed("X", Kind::Anything),
        Param::needed("y", Kind::Anything),
        Param::new("sample_weight", Kind::Anything, Preset::None),
    ],
    doc: "",
    run: shown,
};

const FBETA: Row<Word, ()> = Row {
    name: "sk.metrics.fbeta_score",
    form: Form::Function,
    params: &[
        Param::needed("y_true", Kind::Anything),
        Param::needed("y_pred", Kind::Anything),
        Param::needed("beta", Kind::Real).keyword(),
        Param::needed("gamma", Kind::Real).keyword(),
    ],
    doc: "",
    run: shown,
};

const SPLIT: Row<Word, ()> = Row {
    name: "sk.model_selection.train_test_split",
    form: Form::Function,
    params: &[
        Param::rest("arrays", Kind::Integer),
        Param::new("shuffle", Kind::Boolean, Preset::Boolean(true)).keyword(),
    ],
    doc: "",
    run: shown,
};

/// A row, arguments by position and by name, and the outcome.
type Case<'a> = (&'a Row<Word, ()>, &'a [Word], &'a [(&'a str, Word)], &'a str);

/// The outcome of a call: its arguments, or its refusal.
fn outcome(row: &Row<Word, ()>, positional: &[Word], keywords: &[(&str, Word)]) -> String {
    let keywords = keywords.iter().map(|(name, value)| ((*name).to_owned(), value.clone())).collect();
    match row.call(Given { positional: positional.to_vec(), keywords }, &()) {
        Ok(Word::Text(text)) => text.to_owned(),
        Ok(other) => panic!("{other:?}"),
        Err(refusal) => refusal.to_string(),
    }
}

#[test]
fn arguments_are_bound_by_position_and_by_name() {
    let defaults = "(fit_intercept=True) (copy=True) (max_iter=None) (solver='auto') (verbose=0)";
    assert_eq!(outcome(&RIDGE, &[], &[]), format!("(alpha=1.0) {defaults}"));
    assert_eq!(outcome(&RIDGE, &[Word::Whole(2)], &[]), format!("alpha=2 {defaults}"));
    assert_eq!(outcome(&RIDGE, &[], &[("alpha", Word::Flag(true))]), format!("alpha=True {defaults}"));
    let named = [("verbose", Word::Flag(false)), ("max_iter", Word::Whole(9)), ("copy", Word::Flag(true))];
    assert_eq!(
        outcome(&RIDGE, &[], &named),
        "(alpha=1.0) (fit_intercept=True) copy=True max_iter=9 (solver='auto') verbose=False"
    );
    assert_eq!(
        outcome(&FIT, &[Word::Object, Word::Whole(1)], &[("y", Word::Whole(2))]),
        "estimator=Ridge() X=1 y=2 (sample_weight=None)"
    );
    assert_eq!(outcome(&SPLIT, &[Word::Whole(1), Word::Whole(2)], &[]), "(shuffle=True) *1 *2");
    assert_eq!(outcome(&SPLIT, &[], &[("shuffle", Word::Flag(false))]), "shuffle=False");
}

#[test]
fn calls_that_do_not_bind_are_refused_as_by_python() {
    let (one, two) = (Word::Whole(1), Word::Whole(2));
    let cases: &[Case<'_>] = &[
        (
            &RIDGE,
            &[],
            &[("alhpa", one.clone())],
            "Ridge.__init__() got an unexpected keyword argument 'alhpa'",
        ),
        (
            &RIDGE,
            std::slice::from_ref(&one),
            &[("alpha", one.clone())],
            "Ridge.__init__() got multiple values for argument 'alpha'",
        ),
        (
            &RIDGE,
            &[one.clone(), two.clone()],
            &[],
            "Ridge.__init__() takes from 1 to 2 positional arguments but 3 were given",
        ),
        (
            &RIDGE,
            &[one.clone(), two.clone()],
            &[("copy", Word::Flag(true))],
            "Ridge.__init__() takes from 1 to 2 positional arguments but 3 positional arguments (and 1 \
             keyword-only argument) were given",
        ),
        (
            &SCALER,
            &[Word::Flag(true)],
            &[],
            "StandardScaler.__init__() takes 1 positional argument but 2 were given",
        ),
        (&FIT, &[Word::Object, one.clone()], &[], "Ridge.fit() missing 1 required positional argument: 'y'"),
        (&FIT, &[Word::Object], &[], "Ridge.fit() missing 2 required positional arguments: 'X' and 'y'"),
        (&FIT, &[], &[], "fit() missing 3 required positional arguments: 'estimator', 'X', and 'y'"),
        (
            &FIT,
            &[Word::Object, one.clone(), one.clone(), one.clone(), one.clone()],
            &[],
            "Ridge.fit() takes from 3 to 4 positional arguments but 5 were given",
        ),
        (
            &FBETA,
            &[one.clone(), two.clone()],
            &[],
            "fbeta_score() missing 2 required keyword-only arguments: 'beta' and 'gamma'",
        ),
        (
            &FBETA,
            &[one.clone(), two.clone()],
            &[("beta", one.clone())],
            "fbeta_score() missing 1 required keyword-only argument: 'gamma'",
        ),
        (
            &FBETA,
            &[one.clone(), one.clone(), one.clone()],
            &[("beta", one.clone()), ("gamma", one.clone())],
            "fbeta_score() takes 2 positional arguments but 3 positional arguments (and 2 keyword-only \
             arguments) were given",
        ),
        // The unknown name is told before the missing arguments.
        (&FBETA, &[], &[("bta", one.clone())], "fbeta_score() got an unexpected keyword argument 'bta'"),
        (
            &SPLIT,
            &[],
            &[("arrays", one.clone())],
            "train_test_split() got an unexpected keyword argument 'arrays'",
        ),
    ];
    for (row, positional, keywords, text) in cases {
        assert_eq!(outcome(row, positional, keywords), format!("TypeError: {text}"));
    }
    let twice = [("alpha", one.clone()), ("alpha", two)];
    assert_eq!(
        outcome(&RIDGE, &[], &twice),
        "TypeError: Ridge.__init__() got multiple values for argument 'alpha'"
    );
}

#[test]
fn values_of_other_kinds_are_refused_as_by_scikit_learn() {
    let cases: &[Case<'_>] = &[
        (
            &RIDGE,
            &[Word::Text("1")],
            &[],
            "ValueError: The 'alpha' parameter of Ridge must be a float. Got '1' instead.",
        ),
        (
            &RIDGE,
            &[],
            &[("fit_intercept", Word::Whole(1))],
            "ValueError: The 'fit_intercept' parameter of Ridge must be an instance of 'bool'. Got 1 instead.",
        ),
        (
            &RIDGE,
            &[],
            &[("max_iter", Word::Number(1.0))],
            "ValueError: The 'max_iter' parameter of Ridge must be an int or None. Got 1.0 instead.",
        ),
        (
            &RIDGE,
            &[],
            &[("solver", Word::Text("lsqr"))],
            "ValueError: The 'solver' parameter of Ridge must be a str among {'auto', 'svd', 'sag'}. Got \
             'lsqr' instead.",
        ),
        (
            &RIDGE,
            &[],
            &[("solver", Word::Text("sag"))],
            "NotImplemented: the value 'sag' of the parameter 'solver' of Ridge is not implemented",
        ),
        (
            &RIDGE,
            &[],
            &[("copy", Word::Flag(false))],
            "NotImplemented: the value False of the parameter 'copy' of Ridge is not implemented",
        ),
        (
            &RIDGE,
            &[],
            &[("verbose", Word::Whole(1))],
            "NotImplemented: the value 1 of the parameter 'verbose' of Ridge is not implemented",
        ),
        (
            &FIT,
            &[Word::Whole(3), Word::None, Word::None],
            &[],
            "ValueError: The 'estimator' parameter of fit must be an estimator. Got 3 instead.",
        ),
        (
            &SPLIT,
            &[Word::Whole(3), Word::None],
            &[],
            "ValueError: The 'arrays' parameter of train_test_split must be an int. Got None instead.",
        ),
    ];
    for (row, positional, keywords, text) in cases {
        assert_eq!(outcome(row, positional, keywords), *text);
    }
}

#[test]
fn arguments_are_read_as_of_their_kinds() {
    let read = |given: Given<Word>| bind(&Callee::function("f".to_owned()), RIDGE.params, given).unwrap();
    let bound = read(Given::positional(vec![Word::Whole(2)]));
    assert_eq!(bound.real("alpha"), Ok(2.0));
    assert_eq!(bound.integer("alpha"), Ok(2));
    assert_eq!(bound.boolean("copy"), Ok(true));
    assert_eq!(bound.text("solver"), Ok("auto"));
    assert_eq!(bound.some("max_iter"), Ok(None));
    assert_eq!(bound.some("alpha"), Ok(Some(&Word::Whole(2))));
    assert_eq!((bound.is_given("alpha"), bound.is_given("copy")), (true, false));
    for wrong in [bound.boolean("alpha").err(), bound.integer("solver").err(), bound.real("bta").err()] {
        assert_eq!(wrong.map(|refusal| refusal.class), Some("Internal"));
    }
    let large = read(Given::positional(vec![Word::Whole(1 << 64)]));
    assert_eq!(large.integer("alpha").map_err(|refusal| refusal.class), Err("OverflowError"));
    assert_eq!(bound.without("y").to_string(), "TypeError: f() missing 1 required positional argument: 'y'");
}
