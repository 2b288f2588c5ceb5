//! The rows of the array API standard (2024.12, and what 2025.12 adds), and how each is done here.

/// Rows of the standard that belong together.
#[derive(Clone, Copy, Debug)]
pub struct Group {
    /// Its heading.
    pub title: &'static str,
    /// All names, separated by spaces.
    pub names: &'static str,
    /// Names with a way of their own: names separated by spaces, and the way.
    ways: &'static [(&'static str, Way<'static>)],
    /// The way of the others.
    rule: Rule,
}

/// The way in which a row of the standard is done.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Way<'a> {
    /// By an operation of this name.
    Operation(std::borrow::Cow<'a, str>),
    /// Without an operation: by what this says.
    Otherwise(&'a str),
    /// Not at all, for this reason.
    Not(&'a str),
}

/// The way of those rows of a group that have no way of their own.
#[derive(Clone, Copy, Debug)]
enum Rule {
    /// By the operation of the same name behind this prefix.
    Prefix(&'static str),
    /// By the encoding of a dtype.
    DType,
    /// By the function of the operator, whose name is given behind this letter.
    Operator(&'static str),
}

impl Group {
    /// The way in which a row of this group is done.
    ///
    /// ```
    /// use tharsis_numeric::protocol::names::{ARRAY_API, Way};
    /// let way = |title: &str, name: &str| {
    ///     ARRAY_API.iter().find(|group| group.title == title).map(|group| group.way(name))
    /// };
    /// assert_eq!(way("Utilities", "all"), Some(Way::Operation("np.all".into())));
    /// assert_eq!(way("The array: reflected operators", "__radd__"), Some(Way::Operation("np.add".into())));
    /// ```
    pub fn way(&self, name: &str) -> Way<'static> {
        if let Some((_, way)) =
            self.ways.iter().find(|(names, _)| names.split(' ').any(|other| other == name))
        {
            return way.clone();
        }
        match self.rule {
            Rule::Prefix(prefix) => Way::Operation(format!("{prefix}{name}").into()),
            Rule::DType => Way::Otherwise("a value `{\"dt\": \"..\"}` of programs; `DType` in Rust"),
            Rule::Operator(letter) => {
                let bare = name.trim_matches('_');
                let bare = bare.strip_prefix(letter).unwrap_or(bare);
                let known = OPERATORS.iter().find(|(operator, _)| *operator == bare);
                Way::Operation(known.map_or(name, |(_, function)| function).to_owned().into())
            }
        }
    }
}

const fn operation(name: &'static str) -> Way<'static> {
    Way::Operation(std::borrow::Cow::Borrowed(name))
}

/// The functions of Python's operators.
const OPERATORS: &[(&str, &str)] = &[
    ("abs", "np.absolute"),
    ("add", "np.add"),
    ("and", "np.bitwise_and"),
    ("eq", "np.equal"),
    ("floordiv", "np.floor_divide"),
    ("ge", "np.greater_equal"),
    ("getitem", "getitem"),
    ("gt", "np.greater"),
    ("invert", "np.invert"),
    ("le", "np.less_equal"),
    ("lshift", "np.left_shift"),
    ("lt", "np.less"),
    ("matmul", "np.matmul"),
    ("mod", "np.remainder"),
    ("mul", "np.multiply"),
    ("ne", "np.not_equal"),
    ("neg", "np.negative"),
    ("or", "np.bitwise_or"),
    ("pos", "np.positive"),
    ("pow", "np.power"),
    ("rshift", "np.right_shift"),
    ("setitem", "setitem"),
    ("sub", "np.subtract"),
    ("truediv", "np.divide"),
    ("xor", "np.bitwise_xor"),
];

const ITEM: Way<'static> =
    Way::Otherwise("the client converts the one element of a reply; `Tensor::item` in Rust");
const DLPACK: Way<'static> = Way::Not(
    "shares memory between libraries of one process; in Rust `Tensor::from_chunk` takes memory without a copy",
);

/// All rows, by the groups of the standard.
pub const ARRAY_API: &[Group] = &[
    Group {
        title: "Constants",
        names: "e inf nan newaxis pi",
        ways: &[
            ("e inf nan pi", Way::Otherwise("numbers `{\"f\": ..}` of programs; `f64::consts` in Rust")),
            ("newaxis", Way::Otherwise("`{\"n\": 1}` in an index; `Index::NewAxis` in Rust")),
        ],
        rule: Rule::Prefix("np."),
    },
    Group {
        title: "Creation",
        names: "arange asarray empty empty_like eye from_dlpack full full_like linspace meshgrid ones \
            ones_like tril triu zeros zeros_like",
        ways: &[("from_dlpack", DLPACK)],
        rule: Rule::Prefix("np."),
    },
    Group {
        title: "Data types",
        names: "bool complex128 complex64 float32 float64 int16 int32 int64 int8 uint16 uint32 uint64 uint8",
        ways: &[],
        rule: Rule::DType,
    },
    Group {
        title: "Functions of data types",
        names: "astype can_cast finfo iinfo isdtype result_type",
        ways: &[],
        rule: Rule::Prefix("np."),
    },
    Group {
        title: "Element-wise functions",
        names: "abs acos acosh add asin asinh atan atan2 atanh bitwise_and bitwise_invert bitwise_left_shift \
            bitwise_or bitwise_right_shift bitwise_xor ceil clip conj copysign cos cosh divide equal exp \
            expm1 floor floor_divide greater greater_equal hypot imag isfinite isinf isnan less less_equal \
            log log10 log1p log2 logaddexp logical_and logical_not logical_or logical_xor maximum minimum \
            multiply negative nextafter not_equal positive pow real reciprocal remainder round sign signbit \
            sin sinh sqrt square subtract tan tanh trunc",
        ways: &[],
        rule: Rule::Prefix("np."),
    },
    Group { title: "Indexing", names: "take take_along_axis", ways: &[], rule: Rule::Prefix("np.") },
    Group {
        title: "Products",
        names: "matmul matrix_transpose tensordot vecdot",
        ways: &[],
        rule: Rule::Prefix("np."),
    },
    Group {
        title: "Manipulation",
        names: "broadcast_arrays broadcast_shapes broadcast_to concat expand_dims flip moveaxis permute_dims \
            repeat reshape roll squeeze stack tile unstack",
        ways: &[],
        rule: Rule::Prefix("np."),
    },
    Group {
        title: "Searching",
        names: "argmax argmin count_nonzero nonzero searchsorted where",
        ways: &[],
        rule: Rule::Prefix("np."),
    },
    Group {
        title: "Sets",
        names: "isin unique_all unique_counts unique_inverse unique_values",
        ways: &[],
        rule: Rule::Prefix("np."),
    },
    Group { title: "Sorting", names: "argsort sort", ways: &[], rule: Rule::Prefix("np.") },
    Group {
        title: "Statistics",
        names: "cumulative_prod cumulative_sum max mean min prod std sum var",
        ways: &[],
        rule: Rule::Prefix("np."),
    },
    Group { title: "Utilities", names: "all any diff", ways: &[], rule: Rule::Prefix("np.") },
    Group {
        title: "Inspection",
        names: "__array_namespace_info__ capabilities default_device default_dtypes devices dtypes",
        ways: &[(
            "__array_namespace_info__ capabilities default_device default_dtypes devices dtypes",
            operation("np.__array_namespace_info__"),
        )],
        rule: Rule::Prefix("np."),
    },
    Group {
        title: "The array: attributes",
        names: "T device dtype mT ndim shape size",
        ways: &[
            ("mT", operation("np.matrix_transpose")),
            ("ndim", operation("np.ndim")),
            ("shape", operation("np.shape")),
            ("size", operation("np.size")),
        ],
        rule: Rule::Prefix("nd."),
    },
    Group {
        title: "The array: methods",
        names: "__abs__ __add__ __and__ __array_namespace__ __bool__ __complex__ __dlpack__ __dlpack_device__ \
            __eq__ __float__ __floordiv__ __ge__ __getitem__ __gt__ __index__ __int__ __invert__ __le__ \
            __lshift__ __lt__ __matmul__ __mod__ __mul__ __ne__ __neg__ __or__ __pos__ __pow__ __rshift__ \
            __setitem__ __sub__ __truediv__ __xor__ to_device",
        ways: &[
            ("__array_namespace__", Way::Otherwise("the client's module with these names")),
            ("__bool__ __complex__ __float__ __index__ __int__", ITEM),
            ("__dlpack__ __dlpack_device__", DLPACK),
            ("to_device", operation("nd.to_device")),
        ],
        rule: Rule::Operator(""),
    },
    Group {
        title: "The array: operators in place",
        names: "__iadd__ __iand__ __ifloordiv__ __ilshift__ __imatmul__ __imod__ __imul__ __ior__ __ipow__ \
            __irshift__ __isub__ __itruediv__ __ixor__",
        ways: &[],
        rule: Rule::Operator("i"),
    },
    Group {
        title: "The array: reflected operators",
        names: "__radd__ __rand__ __rfloordiv__ __rlshift__ __rmatmul__ __rmod__ __rmul__ __ror__ __rpow__ \
            __rrshift__ __rsub__ __rtruediv__ __rxor__",
        ways: &[],
        rule: Rule::Operator("r"),
    },
    Group {
        title: "Fourier transforms",
        names: "fft fftfreq fftn fftshift hfft ifft ifftn ifftshift ihfft irfft irfftn rfft rfftfreq rfftn",
        ways: &[],
        rule: Rule::Prefix("np.fft."),
    },
    Group {
        title: "Linear algebra",
        names: "cholesky cross det diagonal eig eigh eigvals eigvalsh inv matmul matrix_norm matrix_power \
            matrix_rank matrix_transpose outer pinv qr slogdet solve svd svdvals tensordot trace vecdot \
            vector_norm",
        ways: &[],
        rule: Rule::Prefix("np.linalg."),
    },
];
