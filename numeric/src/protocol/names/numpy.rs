//! NumPy's names by subject, those of version 2.4, and the reasons for those that are no operations.

use super::Section;

/// NumPy's functions, the methods of its `Generator`, and what else programs may look for.
pub const NUMPY: &[Section] = &[
    Section {
        title: "Data types",
        names: "np.astype np.can_cast np.common_type np.datetime_data np.finfo np.iinfo np.iscomplexobj \
            np.isdtype np.isfortran np.isrealobj np.isscalar np.issubdtype np.iterable \
            np.min_scalar_type np.mintypecode np.promote_types np.result_type np.typename",
        reasons: &[
            (
                "np.common_type np.mintypecode np.typename",
                "letters of dtypes are not used here; result_type tells the common dtype",
            ),
            ("np.isfortran", "elements are always in C order"),
            ("np.isscalar np.iterable", "a question about values of Python"),
            ("np.datetime_data", "tensors hold numbers; frames have dates"),
        ],
        otherwise: Some(LATER),
    },
    Section {
        title: "Creation",
        names: "np.arange np.array np.asanyarray np.asarray np.asarray_chkfinite np.ascontiguousarray \
            np.asfortranarray np.asmatrix np.bmat np.c_ np.copy np.copyto np.diag np.diagflat \
            np.empty np.empty_like np.eye np.from_dlpack np.frombuffer np.fromfile np.fromfunction \
            np.fromiter np.fromregex np.fromstring np.full np.full_like np.geomspace np.identity \
            np.indices np.linspace np.logspace np.meshgrid np.mgrid np.ogrid np.ones np.ones_like \
            np.r_ np.require np.tri np.tril np.triu np.vander np.zeros np.zeros_like",
        reasons: &[
            (
                "np.asanyarray np.asmatrix np.bmat np.require",
                "there are no subclasses of tensors and no orders but C order; use asarray or block",
            ),
            ("np.ascontiguousarray np.asfortranarray", "elements are always in C order"),
            ("np.copyto", "tensors do not change; use where or setitem, which give a new tensor"),
            (
                "np.from_dlpack",
                "takes objects of this process; in Rust `Tensor::from_chunk` shares memory without a copy",
            ),
            (
                "np.frombuffer np.fromfile np.fromiter np.fromregex np.fromstring",
                "inputs of programs are literals, raw bytes or files; in Rust `Tensor::from_elements`",
            ),
            ("np.fromfunction", "takes a function of Python; in Rust `fromfunction`"),
            (
                "np.mgrid np.ogrid np.r_ np.c_",
                "written with an index expression of Python; use meshgrid, arange or concatenate",
            ),
        ],
        otherwise: Some(LATER),
    },
    Section {
        title: "Shapes and parts",
        names: "np.append np.array_split np.atleast_1d np.atleast_2d np.atleast_3d np.block \
            np.broadcast_arrays np.broadcast_shapes np.broadcast_to np.column_stack np.concat \
            np.concatenate np.delete np.dsplit np.dstack np.expand_dims np.flip np.fliplr np.flipud \
            np.hsplit np.hstack np.insert np.matrix_transpose np.moveaxis np.ndim np.pad \
            np.permute_dims np.ravel np.repeat np.reshape np.resize np.roll np.rollaxis np.rot90 \
            np.row_stack np.shape np.size np.split np.squeeze np.stack np.swapaxes np.tile \
            np.transpose np.trim_zeros np.unstack np.vsplit np.vstack",
        reasons: &[
            ("np.rollaxis", "replaced by moveaxis in NumPy itself"),
            ("np.row_stack", "deprecated in NumPy; use vstack"),
            ("np.trim_zeros", "the size of the result depends on all values; use a mask"),
        ],
        otherwise: Some(LATER),
    },
    Section {
        title: "Indexing",
        names: "np.argwhere np.choose np.compress np.diag_indices np.diag_indices_from np.extract \
            np.fill_diagonal np.flatnonzero np.index_exp np.ix_ np.mask_indices np.ndenumerate \
            np.ndindex np.nditer np.nested_iters np.nonzero np.place np.put np.put_along_axis \
            np.putmask np.ravel_multi_index np.s_ np.select np.take np.take_along_axis \
            np.tril_indices np.tril_indices_from np.triu_indices np.triu_indices_from \
            np.unravel_index np.where",
        reasons: &[
            ("np.index_exp np.s_", "written with an index expression of Python"),
            (
                "np.ndenumerate np.ndindex np.nditer np.nested_iters",
                "visits elements one by one in one process",
            ),
            ("np.fill_diagonal", "changes an array in place; use where with eye"),
            ("np.mask_indices", "takes a function of Python; use nonzero of a mask"),
        ],
        otherwise: Some(LATER),
    },
    Section {
        title: "Element-wise functions",
        names: "np.abs np.absolute np.acos np.acosh np.add np.angle np.arccos np.arccosh np.arcsin \
            np.arcsinh np.arctan np.arctan2 np.arctanh np.around np.asin np.asinh np.atan np.atan2 \
            np.atanh np.bitwise_and np.bitwise_count np.bitwise_invert np.bitwise_left_shift \
            np.bitwise_not np.bitwise_or np.bitwise_right_shift np.bitwise_xor np.cbrt np.ceil \
            np.clip np.conj np.conjugate np.copysign np.cos np.cosh np.deg2rad np.degrees np.divide \
            np.divmod np.equal np.exp np.exp2 np.expm1 np.fabs np.fix np.float_power np.floor \
            np.floor_divide np.fmax np.fmin np.fmod np.frexp np.frompyfunc np.gcd np.greater \
            np.greater_equal np.heaviside np.hypot np.i0 np.imag np.invert np.isclose np.iscomplex \
            np.isfinite np.isinf np.isnan np.isnat np.isneginf np.isposinf np.isreal np.lcm np.ldexp \
            np.left_shift np.less np.less_equal np.log np.log10 np.log1p np.log2 np.logaddexp \
            np.logaddexp2 np.logical_and np.logical_not np.logical_or np.logical_xor np.maximum \
            np.minimum np.mod np.modf np.multiply np.nan_to_num np.negative np.nextafter \
            np.not_equal np.piecewise np.positive np.pow np.power np.rad2deg np.radians np.real \
            np.real_if_close np.reciprocal np.remainder np.right_shift np.rint np.round np.sign \
            np.signbit np.sin np.sinc np.sinh np.spacing np.sqrt np.square np.subtract np.tan \
            np.tanh np.true_divide np.trunc np.unwrap np.vectorize",
        reasons: &[
            ("np.isnat", "tensors hold numbers; frames have dates"),
            ("np.real_if_close", "the dtype would depend on values"),
            (
                "np.frompyfunc np.vectorize np.piecewise",
                "takes functions of Python; in Rust `map_chunk`, or `where_` for each piece",
            ),
        ],
        otherwise: Some(LATER),
    },
    Section {
        title: "Reductions",
        names: "np.all np.allclose np.amax np.amin np.any np.apply_along_axis np.apply_over_axes \
            np.argmax np.argmin np.array_equal np.array_equiv np.count_nonzero np.cumprod np.cumsum \
            np.cumulative_prod np.cumulative_sum np.diff np.ediff1d np.max np.mean np.min \
            np.nanargmax np.nanargmin np.nancumprod np.nancumsum np.nanmax np.nanmean np.nanmin \
            np.nanprod np.nanstd np.nansum np.nanvar np.prod np.ptp np.std np.sum np.var",
        reasons: &[(
            "np.apply_along_axis np.apply_over_axes",
            "takes a function of Python; in Rust `apply_along_axis`, or reductions over several axes",
        )],
        otherwise: Some(LATER),
    },
    Section {
        title: "Sorting, searching, sets",
        names: "np.argpartition np.argsort np.intersect1d np.isin np.lexsort np.partition \
            np.searchsorted np.setdiff1d np.setxor1d np.sort np.sort_complex np.union1d np.unique \
            np.unique_all np.unique_counts np.unique_inverse np.unique_values",
        reasons: &[],
        otherwise: Some(LATER),
    },
    Section {
        title: "Statistics",
        names: "np.average np.bincount np.convolve np.corrcoef np.correlate np.cov np.digitize \
            np.gradient np.histogram np.histogram2d np.histogram_bin_edges np.histogramdd np.interp \
            np.median np.nanmedian np.nanpercentile np.nanquantile np.percentile np.quantile \
            np.trapezoid",
        reasons: &[],
        otherwise: Some(LATER),
    },
    Section {
        title: "Products",
        names: "np.cross np.diagonal np.dot np.einsum np.einsum_path np.inner np.kron np.matmul \
            np.matvec np.outer np.tensordot np.trace np.vdot np.vecdot np.vecmat",
        reasons: &[("np.einsum_path", "einsum chooses the order; `explain` of a tensor tells the products")],
        otherwise: Some(LATER),
    },
    Section {
        title: "Linear algebra (`np.linalg`)",
        names: "np.linalg.cholesky np.linalg.cond np.linalg.cross np.linalg.det np.linalg.diagonal \
            np.linalg.eig np.linalg.eigh np.linalg.eigvals np.linalg.eigvalsh np.linalg.inv \
            np.linalg.lstsq np.linalg.matmul np.linalg.matrix_norm np.linalg.matrix_power \
            np.linalg.matrix_rank np.linalg.matrix_transpose np.linalg.multi_dot np.linalg.norm \
            np.linalg.outer np.linalg.pinv np.linalg.qr np.linalg.slogdet np.linalg.solve \
            np.linalg.svd np.linalg.svdvals np.linalg.tensordot np.linalg.tensorinv \
            np.linalg.tensorsolve np.linalg.trace np.linalg.vecdot np.linalg.vector_norm",
        reasons: &[],
        otherwise: Some(LATER),
    },
    Section {
        title: "Fourier transforms (`np.fft`)",
        names: "np.fft.fft np.fft.fft2 np.fft.fftfreq np.fft.fftn np.fft.fftshift np.fft.hfft \
            np.fft.ifft np.fft.ifft2 np.fft.ifftn np.fft.ifftshift np.fft.ihfft np.fft.irfft \
            np.fft.irfft2 np.fft.irfftn np.fft.rfft np.fft.rfft2 np.fft.rfftfreq np.fft.rfftn",
        reasons: &[],
        otherwise: Some(LATER),
    },
    Section {
        title: "Random numbers (`Generator` methods)",
        names: "np.random.default_rng rng.beta rng.binomial rng.bit_generator rng.bytes rng.chisquare \
            rng.choice rng.dirichlet rng.exponential rng.f rng.gamma rng.geometric rng.gumbel \
            rng.hypergeometric rng.integers rng.laplace rng.logistic rng.lognormal rng.logseries \
            rng.multinomial rng.multivariate_hypergeometric rng.multivariate_normal \
            rng.negative_binomial rng.noncentral_chisquare rng.noncentral_f rng.normal rng.pareto \
            rng.permutation rng.permuted rng.poisson rng.power rng.random rng.rayleigh rng.shuffle \
            rng.spawn rng.standard_cauchy rng.standard_exponential rng.standard_gamma \
            rng.standard_normal rng.standard_t rng.triangular rng.uniform rng.vonmises rng.wald \
            rng.weibull rng.zipf",
        reasons: &[
            (
                "rng.bit_generator rng.bytes rng.spawn",
                "the generator is a function of seed and place, see `rng.random`; it has no state to hand over",
            ),
            ("rng.shuffle", "tensors do not change; use permutation, which gives a new tensor"),
        ],
        otherwise: Some(LATER),
    },
    Section {
        title: "Windows and polynomials",
        names: "np.bartlett np.blackman np.hamming np.hanning np.kaiser np.poly np.poly1d np.polyadd \
            np.polyder np.polydiv np.polyfit np.polyint np.polymul np.polysub np.polyval np.roots",
        reasons: &[
            (
                "np.bartlett np.blackman np.hamming np.hanning np.kaiser",
                "no windows; an expression of cos and arange makes them",
            ),
            (
                "np.poly np.polyadd np.polyder np.polydiv np.polyfit np.polyint np.polymul np.polysub \
                np.roots np.poly1d np.polyval",
                "old interface, replaced by numpy.polynomial in NumPy itself",
            ),
        ],
        otherwise: None,
    },
    Section {
        title: "Bits, text, dates, files, settings",
        names: "np.array2string np.array_repr np.array_str np.base_repr np.binary_repr np.busday_count \
            np.busday_offset np.datetime_as_string np.errstate np.format_float_positional \
            np.format_float_scientific np.genfromtxt np.get_include np.get_printoptions \
            np.getbufsize np.geterr np.geterrcall np.info np.is_busday np.load np.loadtxt \
            np.may_share_memory np.memmap np.ndarray np.packbits np.printoptions np.save np.savetxt \
            np.savez np.savez_compressed np.set_printoptions np.setbufsize np.seterr np.seterrcall \
            np.shares_memory np.show_config np.show_runtime np.test np.unpackbits",
        reasons: &[
            ("np.packbits np.unpackbits", "no dtype here has less than a byte"),
            (
                "np.array2string np.array_repr np.array_str np.base_repr np.binary_repr \
                np.format_float_positional np.format_float_scientific np.get_printoptions \
                np.set_printoptions np.printoptions",
                "text is made where results are read",
            ),
            (
                "np.busday_count np.busday_offset np.datetime_as_string np.is_busday",
                "tensors hold numbers; frames have dates",
            ),
            ("np.genfromtxt np.loadtxt np.savetxt", "frames read and write text files"),
            (
                "np.load np.save np.savez np.savez_compressed np.memmap",
                "programs name files as inputs and get large results as files; in Rust `npy::load`, `npy::save`, `npy::load_npz`, by blocks",
            ),
            (
                "np.errstate np.geterr np.geterrcall np.seterr np.seterrcall",
                "a program has `errstate` in its context; in Rust `errstate`",
            ),
            (
                "np.getbufsize np.setbufsize np.get_include np.info np.show_config np.show_runtime \
                np.test",
                "about NumPy itself",
            ),
            ("np.may_share_memory np.shares_memory", "tensors do not change, so it makes no difference"),
            ("np.ndarray", "the class itself; in Rust `Tensor`"),
        ],
        otherwise: None,
    },
];

/// The reason for names that will be operations.
const LATER: &str = "not written yet";
