//! Operations of programs as data: each is a row with its parameters, which bind the arguments of a call,
//! check them, and print its signature.
//!
//! An operation that parsed its arguments by hand could take what its signature does not tell. Here the table
//! of parameters is both, so that they cannot differ. Values are those of the evaluator that runs the
//! program: they implement [`Argument`], and this crate knows neither tensors nor frames. What is refused has
//! the text and the class of Python.
//!
//! ```
//! use tharsis_programs::{Argument, Bound, Form, Given, Kind, Look, Param, Preset, Refusal, Row};
//!
//! #[derive(Clone, Debug, PartialEq)]
//! struct Number(f64);
//!
//! impl Argument for Number {
//!     type Failure = Refusal;
//!     fn look(&self) -> Look<'_> {
//!         Look::Real(self.0)
//!     }
//!     fn preset(preset: &Preset) -> Number {
//!         Number(if let Preset::Real(number) = preset { *number } else { f64::NAN })
//!     }
//! }
//!
//! const POWER: Row<Number, ()> = Row {
//!     name: "power",
//!     form: Form::Function,
//!     params: &[Param::needed("x", Kind::Real), Param::new("exponent", Kind::Real, Preset::Real(2.0))],
//!     doc: "a power of a number",
//!     run: |args: &mut Bound<Number>, _: &()| Ok(Number(args.real("x")?.powf(args.real("exponent")?))),
//! };
//!
//! assert_eq!(POWER.signature(), "(x, exponent=2.0)");
//! let made = POWER.call(Given::positional(vec![Number(3.0)]), &());
//! assert_eq!(made.ok(), Some(Number(9.0)));
//! let wrong = Given { positional: vec![Number(3.0)], keywords: vec![("exponnet".into(), Number(1.0))] };
//! let refusal = POWER.call(wrong, &()).expect_err("no such parameter");
//! assert_eq!(refusal.to_string(), "TypeError: power() got an unexpected keyword argument 'exponnet'");
//! ```

#![forbid(unsafe_code)]

mod argument;
mod bind;
mod look;
mod param;
mod refusal;
mod row;
mod unknown;

pub use argument::Argument;
pub use bind::{Bound, Callee, Given, bind};
pub use look::Look;
pub use param::{Kind, Made, Param, Place, Preset, signature};
pub use refusal::Refusal;
pub use row::{Form, Row};
pub use unknown::{check_context, check_keys, check_known, unknown_option};
