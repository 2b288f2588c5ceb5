//! Tables whose data are not there: what reads them is not run.

use std::collections::HashSet;
use std::path::Path;

/// Reason of records that are left out.
pub const REASON: &str = "data that are not there";
/// The folder that files write to; what is there comes from records before.
const SCRATCH: &str = "test_files/scratch";

/// Names of tables of files that do not exist, and of what is made of them.
#[derive(Debug, Default)]
pub struct Absent(HashSet<String>);

impl Absent {
    /// Whether a statement makes or reads such a table.
    pub fn concerns(&mut self, statement: &str) -> bool {
        let words: Vec<String> = words(statement).map(str::to_lowercase).collect();
        let is_absent = location(statement).is_some_and(is_missing);
        let reads = words.iter().any(|word| self.0.contains(word));
        if !is_absent && !reads {
            return false;
        }
        if words.first().is_some_and(|first| first == "create") {
            let kinds =
                ["create", "or", "replace", "unbounded", "external", "table", "view", "if", "not", "exists"];
            let name = words.iter().find(|word| !kinds.contains(&word.as_str()));
            self.0.extend(name.cloned());
        }
        true
    }
}

fn words(statement: &str) -> impl Iterator<Item = &str> {
    statement.split(|c: char| !c.is_alphanumeric() && c != '_').filter(|word| !word.is_empty())
}

/// The place of an external table.
fn location(statement: &str) -> Option<&str> {
    let at = statement.to_ascii_lowercase().find("location")?;
    statement.get(at..)?.split('\'').nth(1)
}

/// Whether a path names nothing. Patterns and addresses are taken to name something.
fn is_missing(path: &str) -> bool {
    let is_elsewhere = path.contains("://") || path.contains(['*', '$']) || path.contains(SCRATCH);
    !is_elsewhere && !Path::new(path).exists()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_reads_a_missing_file_is_left_out() {
        let mut absent = Absent::default();
        assert!(!absent.concerns("create table t as values (1)"));
        assert!(absent.concerns("CREATE EXTERNAL TABLE f STORED AS CSV LOCATION '/no/such.csv'"));
        assert!(absent.concerns("create or replace view v as select * from f"));
        assert!(absent.concerns("select count(*) from V"));
        assert!(!absent.concerns("select count(*) from t where name = 'flag'"));
    }
}
