//! Covariance matrices.

use super::args::class;
use super::model::{array, model, real};
use super::object::{Class, Instance};
use crate::covariance::{EmpiricalCovariance, FittedCovariance, LedoitWolf, OAS, ShrunkCovariance};
use tharsis_numeric::protocol::{Scope, Value};
use tharsis_programs::{Kind, Param, Preset, Row};

static EMPIRICAL: Class = Class::unsupervised("EmpiricalCovariance");
static SHRUNK: Class = Class::unsupervised("ShrunkCovariance");
static LEDOIT_WOLF: Class = Class::unsupervised("LedoitWolf");
static ORACLE: Class = Class::unsupervised("OAS");

const STORE_PRECISION: Param =
    Param::new("store_precision", Kind::Boolean, Preset::Boolean(true)).keyword().fixed();
const ASSUME_CENTERED: Param = Param::new("assume_centered", Kind::Boolean, Preset::Boolean(false)).keyword();

/// The covariance matrices.
pub(super) const ROWS: &[Row<Value, Scope>] = &[
    class(
        "sk.covariance.EmpiricalCovariance",
        &[STORE_PRECISION, ASSUME_CENTERED],
        "the covariance of samples",
        |args, _| Instance::made::<EmpiricalCovariance>(&EMPIRICAL, args),
    ),
    class(
        "sk.covariance.ShrunkCovariance",
        &[STORE_PRECISION, ASSUME_CENTERED, Param::new("shrinkage", Kind::Real, Preset::Real(0.1)).keyword()],
        "the covariance of samples with a given part of the identity",
        |args, _| Instance::made::<ShrunkCovariance>(&SHRUNK, args),
    ),
    class(
        "sk.covariance.LedoitWolf",
        &[
            STORE_PRECISION,
            ASSUME_CENTERED,
            Param::new("block_size", Kind::Integer, Preset::Integer(1000)).keyword().fixed(),
        ],
        "the covariance of samples with the part of the identity that makes its expected error least",
        |args, _| Instance::made::<LedoitWolf>(&LEDOIT_WOLF, args),
    ),
    class(
        "sk.covariance.OAS",
        &[STORE_PRECISION, ASSUME_CENTERED],
        "the covariance of normal samples with the part of the identity that makes its expected error least",
        |args, _| Instance::made::<OAS>(&ORACLE, args),
    ),
];

model!(
    FittedCovariance,
    maps: [],
    score: |m, x, _y, options| m.score(x, options),
    attributes: |m| {
        "covariance_" => array(&m.covariance),
        "location_" => array(&m.location),
        "precision_" => array(&m.precision),
        "shrinkage_" => real(m.shrinkage),
    },
);
