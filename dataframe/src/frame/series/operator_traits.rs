//! Rust's operators for series and frames.

/// Gives a type Rust's operators, by value and by reference.
macro_rules! operator_traits {
    ($type:ident, $operand:ident; $($trait:ident $method:ident $operator:ident),*) => {
        $(impl<T: Into<$operand>> std::ops::$trait<T> for &$type {
            type Output = $type;

            #[track_caller]
            fn $method(self, other: T) -> $type {
                self.operate($crate::frame::series::Operator::$operator, other)
            }
        }

        impl<T: Into<$operand>> std::ops::$trait<T> for $type {
            type Output = $type;

            #[track_caller]
            fn $method(self, other: T) -> $type {
                self.operate($crate::frame::series::Operator::$operator, other)
            }
        })*
    };
}
pub(crate) use operator_traits;
