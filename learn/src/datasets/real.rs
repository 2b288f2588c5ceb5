//! Small real data sets, which are part of the program.

use crate::Result;
use tharsis_graph::Error as GraphError;
use tharsis_kernels::DType;
use tharsis_numeric::{Axes, Error, Tensor};

/// A data set with the names of what is in it.
#[derive(Clone, Debug)]
pub struct Dataset {
    /// The samples; (n, features), float64.
    pub data: Tensor,
    /// Their classes, int64, or their targets, float64; (n,).
    pub target: Tensor,
    /// Names of the features.
    pub feature_names: Vec<String>,
    /// Names of the classes; none for other targets.
    pub target_names: Vec<String>,
    /// Source, contents and licence.
    pub description: String,
}

/// scikit-learn's `load_iris`: four measures of flowers of three species of iris; (150, 4).
///
/// ```
/// let iris = tharsis_learn::datasets::load_iris()?;
/// assert_eq!(iris.data.shape()?, [150, 4]);
/// assert_eq!(iris.target_names, ["setosa", "versicolor", "virginica"]);
/// # Ok::<(), tharsis_learn::Error>(())
/// ```
///
/// # Errors
/// `DataCorrupt` if the file is malformed: a defect of this library.
#[track_caller]
pub fn load_iris() -> Result<Dataset> {
    let description = "Fisher's iris data: length and width of sepals and petals of 50 flowers of each of three species. UCI Machine Learning Repository, doi 10.24432/C56C76, CC BY 4.0, with two samples corrected to the values of the paper of 1936.";
    let file = File { name: "iris.csv", text: include_str!("../../data/iris.csv") };
    file.classes(&["setosa", "versicolor", "virginica"], description)
}

/// scikit-learn's `load_wine`: thirteen chemical measures of wines of three growers; (178, 13).
///
/// ```
/// let wine = tharsis_learn::datasets::load_wine()?;
/// assert_eq!(wine.data.shape()?, [178, 13]);
/// assert_eq!(wine.target.bincount(None, 3).to_vec::<i64>()?, [59, 71, 48]);
/// # Ok::<(), tharsis_learn::Error>(())
/// ```
///
/// # Errors
/// As [`load_iris`].
#[track_caller]
pub fn load_wine() -> Result<Dataset> {
    let description = "Chemical analysis of wines of one region of Italy, of three growers. Aeberhard and Forina, UCI Machine Learning Repository, doi 10.24432/C5PC7J, CC BY 4.0.";
    let file = File { name: "wine.csv", text: include_str!("../../data/wine.csv") };
    file.classes(&["class_0", "class_1", "class_2"], description)
}

/// scikit-learn's `load_breast_cancer`: thirty measures of cell nuclei, malignant or benign; (569, 30).
///
/// ```
/// let cancer = tharsis_learn::datasets::load_breast_cancer()?;
/// assert_eq!(cancer.data.shape()?, [569, 30]);
/// assert_eq!(cancer.target.bincount(None, 2).to_vec::<i64>()?, [212, 357]);
/// # Ok::<(), tharsis_learn::Error>(())
/// ```
///
/// # Errors
/// As [`load_iris`].
#[track_caller]
pub fn load_breast_cancer() -> Result<Dataset> {
    let description = "Features of cell nuclei in images of fine needle aspirates of breast masses: mean, standard error and worst value of ten measures. Wolberg, Mangasarian, Street and Street, UCI Machine Learning Repository, doi 10.24432/C5DW2B, CC BY 4.0.";
    let file = File { name: "breast_cancer.csv", text: include_str!("../../data/breast_cancer.csv") };
    file.classes(&["malignant", "benign"], description)
}

/// scikit-learn's `load_digits`: images of 8 x 8 pixels from 0 to 16 of handwritten digits; (1797, 64).
///
/// ```
/// let digits = tharsis_learn::datasets::load_digits()?;
/// assert_eq!(digits.data.shape()?, [1797, 64]);
/// assert_eq!(digits.data.max(..).item()?.to_f64(), 16.0);
/// # Ok::<(), tharsis_learn::Error>(())
/// ```
///
/// # Errors
/// As [`load_iris`].
#[track_caller]
pub fn load_digits() -> Result<Dataset> {
    let description = "Handwritten digits of 13 people: counts of set pixels in 8 x 8 blocks of 4 x 4 pixels. The test set of Alpaydin and Kaynak, UCI Machine Learning Repository, doi 10.24432/C50P49, CC BY 4.0.";
    let file = File { name: "digits.csv", text: include_str!("../../data/digits.csv") };
    file.classes(&["0", "1", "2", "3", "4", "5", "6", "7", "8", "9"], description)
}

/// scikit-learn's `load_diabetes`: ten measures of patients and the progress of their disease a year later;
/// (442, 10). Each feature has mean 0 and squares that sum to 1.
///
/// ```
/// let diabetes = tharsis_learn::datasets::load_diabetes()?;
/// assert_eq!(diabetes.data.shape()?, [442, 10]);
/// let squares = diabetes.data.square().sum(0).to_vec::<f64>()?;
/// assert!(squares.iter().all(|sum| (sum - 1.0).abs() < 1e-12));
/// # Ok::<(), tharsis_learn::Error>(())
/// ```
///
/// # Errors
/// As [`load_iris`].
#[track_caller]
pub fn load_diabetes() -> Result<Dataset> {
    let description = "Age, sex, body mass index, blood pressure and six blood serum measures of diabetes patients, scaled, and a measure of the progress of the disease one year later. Efron, Hastie, Johnstone and Tibshirani, Least Angle Regression, Annals of Statistics 32 (2004).";
    let file = File { name: "diabetes.csv", text: include_str!("../../data/diabetes.csv") };
    let raw = file.read(description)?;
    let centered = raw.data.subtract(raw.data.mean(0));
    let norms = centered.square().sum(Axes::from(0).keepdims()).sqrt();
    Ok(Dataset { data: centered.divide(norms).execute()?, ..raw })
}

/// A table of numbers with a line of names, whose last column is the target.
struct File {
    name: &'static str,
    text: &'static str,
}

impl File {
    #[track_caller]
    fn read(&self, description: &str) -> Result<Dataset> {
        let mut lines = self.text.lines();
        let header = lines.next().ok_or_else(|| self.corrupt("it is empty"))?;
        let mut feature_names: Vec<String> = header.split(',').map(str::to_owned).collect();
        feature_names.pop();
        let width = feature_names.len();
        let (mut data, mut target) = (Vec::new(), Vec::new());
        for line in lines {
            let fields: std::result::Result<Vec<f64>, _> = line.split(',').map(str::parse::<f64>).collect();
            let fields = fields.map_err(|_| self.corrupt("a field is no number"))?;
            match fields.split_last() {
                Some((last, features)) if features.len() == width => {
                    data.extend_from_slice(features);
                    target.push(*last);
                }
                _ => return Err(self.corrupt("a line has too few or too many fields")),
            }
        }
        Ok(Dataset {
            data: Tensor::from_elements(&[target.len(), width], &data),
            target: Tensor::from_elements(&[target.len()], &target),
            feature_names,
            target_names: Vec::new(),
            description: description.to_owned(),
        })
    }

    /// A table whose targets are places in a list of names.
    #[track_caller]
    fn classes(&self, names: &[&str], description: &str) -> Result<Dataset> {
        let read = self.read(description)?;
        let target = read.target.astype(DType::I64).execute()?;
        Ok(Dataset { target, target_names: names.iter().map(|&name| name.to_owned()).collect(), ..read })
    }

    #[track_caller]
    fn corrupt(&self, reason: &str) -> Error {
        Error::here(GraphError::Corrupt { what: self.name.to_owned(), reason: reason.to_owned() })
    }
}
