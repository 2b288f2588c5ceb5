//! Settings: where each may be said, and who wins.
//!
//! A flag wins over a variable (`THARSIS_<KEY>`), that over a file (`--config`), that over the default. Each
//! value remembers who said it, so that `tharsis config show` and every error can.
//!
//! [`key`] has the settings as data, [`parse`] and [`spill`] their texts, [`place`] the addresses of a node,
//! [`mod@file`] the file, [`flags`] the command line.

pub mod error;
pub mod file;
pub mod flags;
pub mod key;
pub mod parse;
pub mod place;
pub mod spill;

pub use error::Error;
pub use flags::Flags;
pub use key::Key;

use crate::output;
use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::fmt;
use std::path::PathBuf;
use std::time::Duration;
use tharsis::process::Security;
use tharsis::{join, machine, process};
use tharsis_protos::submission::QUOTA_VARIABLE;
use tharsis_raylet::descriptors;

/// The variable that names a settings file.
pub const FILE_VARIABLE: &str = "THARSIS_CONFIG";

/// The origin of a value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Origin {
    /// Nobody.
    Default,
    /// A line of a file.
    File(PathBuf, usize),
    /// The command line.
    Flag,
    /// A variable.
    Variable,
}

/// A value that holds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Value {
    /// As a flag would have it; checked.
    pub text: String,
    /// The origin of the value.
    pub origin: Origin,
}

/// All settings that have a value.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Settings {
    values: BTreeMap<Key, Value>,
}

impl Settings {
    /// Puts together what the command line, the environment and a file say.
    ///
    /// # Errors
    /// [`Error`], which names who said what is wrong.
    pub fn read(flags: &Flags) -> Result<Self, Error> {
        for name in std::env::vars_os().filter_map(|(name, _)| unknown_variable(&name)) {
            output::warn(&name);
        }
        let variable = |name: &str| std::env::var_os(name);
        let path = flags.config.clone().or_else(|| variable(FILE_VARIABLE).map(PathBuf::from));
        let said = path.as_ref().map(|path| file::read(path)).transpose()?.unwrap_or_default();
        let of_file = said.into_iter().map(|(key, said)| {
            let origin = Origin::File(path.clone().unwrap_or_default(), said.line);
            (key, Value { text: said.text, origin })
        });
        Self::resolve(flags, &variable, of_file.collect())
    }

    fn resolve(
        flags: &Flags,
        variable: &dyn Fn(&str) -> Option<OsString>,
        of_file: BTreeMap<Key, Value>,
    ) -> Result<Self, Error> {
        let mut values = BTreeMap::new();
        for key in Key::ALL {
            let default = || key.default_text().map(|text| Value { text, origin: Origin::Default });
            let of_variable = variable(&key.variable()).map(|text| of_variable(key, text)).transpose()?;
            let of_flag = flags.text(key).map(|text| Value { text: text.to_owned(), origin: Origin::Flag });
            let value = of_flag.or(of_variable).or_else(|| of_file.get(&key).cloned()).or_else(default);
            values.extend(value.map(|value| (key, value)));
        }
        let mut settings = Self { values };
        settings.follow()?;
        settings.check()?;
        Ok(settings)
    }

    /// The store size or the limits of the memory (which include the store) may be set without the other.
    /// Those that were not set are then adapted so that the store fits.
    fn follow(&mut self) -> Result<(), Error> {
        let left = machine::memory_bytes().saturating_sub(self.memory(Key::MinFreeMemory)?);
        if self.is_default(Key::MemoryLimit) && left < self.memory(Key::MemoryLimit)? {
            self.set_default(Key::MemoryLimit, left.max(machine::STORE_BYTES_MIN));
        }
        let (store, limit) = (self.memory(Key::Store)?, self.memory(Key::MemoryLimit)?);
        let most = self.soft_limit()?.map_or(limit, |soft| soft.min(limit));
        if most < store && self.is_default(Key::Store) {
            self.set_default(Key::Store, machine::default_store_bytes(most).min(most));
        } else if limit < store && self.is_default(Key::MemoryLimit) {
            self.set_default(Key::MemoryLimit, store);
        }
        Ok(())
    }

    /// An amount of memory in bytes; 0 where it has no value.
    ///
    /// # Errors
    /// [`Error::BadValue`].
    pub fn memory(&self, key: Key) -> Result<u64, Error> {
        Ok(self.get(key, parse::memory)?.map_or(0, |memory| memory.bytes(machine::memory_bytes())))
    }

    fn soft_limit(&self) -> Result<Option<u64>, Error> {
        self.value(Key::MemorySoftLimit).map(|_| self.memory(Key::MemorySoftLimit)).transpose()
    }

    /// Whether nobody said it.
    pub fn is_default(&self, key: Key) -> bool {
        self.value(key).is_none_or(|value| value.origin == Origin::Default)
    }

    fn set_default(&mut self, key: Key, bytes: u64) {
        self.values.insert(key, Value { text: bytes.to_string(), origin: Origin::Default });
    }

    /// Checks relations between values, which the check of a single value cannot see.
    fn check(&self) -> Result<(), Error> {
        let (store, limit) = (self.memory(Key::Store)?, self.memory(Key::MemoryLimit)?);
        if limit < store {
            return Err(self.order(Key::Store, Key::MemoryLimit, "the store is a part of the memory"));
        }
        if let Some(soft) = self.soft_limit()? {
            if limit < soft {
                let reason = "nothing new is started before workers are ended";
                return Err(self.order(Key::MemorySoftLimit, Key::MemoryLimit, reason));
            }
            if soft < store {
                return Err(self.order(
                    Key::Store,
                    Key::MemorySoftLimit,
                    "the store is a part of the memory",
                ));
            }
        }
        let (free, all) = (self.memory(Key::MinFreeMemory)?, machine::memory_bytes());
        if 0 < free && all.saturating_sub(free) < store {
            let problem =
                format!("of {all} bytes of memory too few are left for the store, which has {store}");
            return Err(self.bad(Key::MinFreeMemory, self.text(Key::MinFreeMemory), problem));
        }
        let percent = |key| Ok::<_, Error>(self.get(key, parse::percent)?.unwrap_or_default());
        if percent(Key::SpillHighWater)? <= percent(Key::SpillLowWater)? {
            let reason = "the low water mark must be less than the high one";
            return Err(self.order(Key::SpillLowWater, Key::SpillHighWater, reason));
        }
        if self.values.contains_key(&Key::State) && self.values.contains_key(&Key::Etcd) {
            return Err(Error::Conflict {
                first: self.who(Key::State),
                second: self.who(Key::Etcd),
                reason: "the control store keeps its tables in one place",
            });
        }
        Ok(())
    }

    /// A value and who said it.
    pub fn value(&self, key: Key) -> Option<&Value> {
        self.values.get(&key)
    }

    /// The text of a value; empty where there is none.
    pub fn text(&self, key: Key) -> &str {
        self.value(key).map_or("", |value| &value.text)
    }

    /// A text as what it stands for; none where it has no value.
    ///
    /// # Errors
    /// [`Error::BadValue`].
    pub fn get<T>(&self, key: Key, parse: fn(&str) -> Result<T, String>) -> Result<Option<T>, Error> {
        let read = |value: &Value| parse(&value.text).map_err(|problem| self.bad(key, &value.text, problem));
        self.value(key).map(read).transpose()
    }

    /// An error about a value, with who said it.
    pub fn bad(&self, key: Key, value: &str, problem: String) -> Error {
        Error::BadValue { origin: self.who(key), value: error::shown(value), problem }
    }

    /// An error about two values that are in the wrong order.
    fn order(&self, less: Key, more: Key, reason: &'static str) -> Error {
        Error::Order {
            less: self.who(less),
            less_value: self.text(less).to_owned(),
            more: self.who(more),
            more_value: self.text(more).to_owned(),
            reason,
        }
    }

    /// The origin of a key's value, for messages to users.
    pub fn who(&self, key: Key) -> String {
        match self.value(key).map(|value| &value.origin) {
            Some(Origin::Variable) => key.variable(),
            Some(Origin::File(path, line)) => format!("{}, line {line}: {}", path.display(), key.name()),
            _ => key.flag(),
        }
    }

    /// Path at which the node listens for drivers and workers.
    pub fn socket(&self) -> PathBuf {
        PathBuf::from(self.text(Key::Socket))
    }

    /// The file with the cluster's secret.
    pub fn secret_file(&self) -> PathBuf {
        PathBuf::from(self.text(Key::SecretFile))
    }

    /// The folder of this user's identities in clusters.
    pub fn identity_dir(&self) -> PathBuf {
        PathBuf::from(self.text(Key::IdentityDir))
    }

    /// The security of the head or control store of these settings: certificates if it has an address for
    /// others, the secret otherwise.
    ///
    /// # Errors
    /// [`Error::BadValue`].
    pub fn security_of_head(&self) -> Result<Security, Error> {
        if self.value(Key::Host).is_none() {
            return Ok(Security::Secret(self.secret_file()));
        }
        self.identity()
    }

    /// By certificates, with the identities of this user.
    ///
    /// # Errors
    /// [`Error::BadValue`].
    pub fn identity(&self) -> Result<Security, Error> {
        let lifetime_ms = u64::try_from(self.certificate_lifetime()?.as_millis()).unwrap_or(u64::MAX);
        Ok(Security::Identity { folder: self.identity_dir(), lifetime_ms })
    }

    /// Lifetime of the certificates of nodes.
    ///
    /// # Errors
    /// [`Error::BadValue`].
    pub fn certificate_lifetime(&self) -> Result<Duration, Error> {
        Ok(self.get(Key::CertificateLifetime, parse::certificate_lifetime)?.unwrap_or_default())
    }

    /// Threads for connections with other nodes.
    ///
    /// # Errors
    /// [`Error::BadValue`].
    pub fn network_threads(&self) -> Result<usize, Error> {
        Ok(self.get(Key::NetworkThreads, parse::network_threads)?.unwrap_or(1))
    }

    /// Port at which other nodes reach it.
    ///
    /// # Errors
    /// [`Error::BadValue`].
    pub fn port(&self) -> Result<u16, Error> {
        Ok(self.get(Key::Port, parse::port)?.unwrap_or_default())
    }

    /// Time for which a node may be silent.
    ///
    /// # Errors
    /// [`Error::BadValue`].
    pub fn lease_ttl(&self) -> Result<Duration, Error> {
        Ok(self.get(Key::LeaseTtl, parse::lease_ttl)?.unwrap_or_default())
    }
}

/// The warning about a variable that looks like a setting but is none.
fn unknown_variable(name: &OsStr) -> Option<String> {
    const OTHERS: [&str; 8] = [
        FILE_VARIABLE,
        QUOTA_VARIABLE,
        join::TOKEN_VARIABLE,
        process::NODE_VARIABLE,
        descriptors::LIMIT_VARIABLE,
        process::WORKER_SCRATCH_VARIABLE,
        process::WORKER_SOCKET_VARIABLE,
        process::WORKER_START_VARIABLE,
    ];
    let name = name.to_string_lossy();
    let is_other = OTHERS.iter().chain(&crate::frames::STORAGE_VARIABLES).any(|other| *other == name);
    let said = name.strip_prefix("THARSIS_").filter(|_| !is_other)?;
    let key = said.to_lowercase();
    if Key::ALL.into_iter().any(|known| known.name() == key && known.variable() == name) {
        return None;
    }
    let nearest =
        file::nearest(&key).and_then(|near| Key::ALL.into_iter().find(|known| known.name() == near));
    let meant = nearest.map_or_else(String::new, |key| format!(", did you mean {}?", key.variable()));
    Some(format!(
        "{}: no setting is called like this variable{meant}",
        error::shown(&name.escape_debug().to_string())
    ))
}

fn of_variable(key: Key, text: OsString) -> Result<Value, Error> {
    let bad = |value: &str, problem: String| Error::BadValue {
        origin: key.variable(),
        value: error::shown(value),
        problem,
    };
    let text = text.into_string().map_err(|text| bad(&format!("{text:?}"), "is not UTF-8".to_owned()))?;
    (key.row().check)(&text).map_err(|problem| bad(&text, problem))?;
    Ok(Value { text, origin: Origin::Variable })
}

impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Default => f.write_str("default"),
            Self::File(path, line) => write!(f, "file {}, line {line}", path.display()),
            Self::Flag => f.write_str("flag"),
            Self::Variable => f.write_str("environment"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn resolve(flags: &[(Key, &str)], variables: &[(&str, &str)], file: &str) -> Result<Settings, Error> {
        let flags = Flags::given(flags);
        let variable = |name: &str| {
            variables.iter().find(|(key, _)| *key == name).map(|(_, text)| OsString::from(*text))
        };
        let path = PathBuf::from("t.toml");
        let said = file::parse(&path, file)?.into_iter();
        let of_file = said.map(|(key, said)| {
            (key, Value { text: said.text, origin: Origin::File(path.clone(), said.line) })
        });
        Settings::resolve(&flags, &variable, of_file.collect())
    }

    #[test]
    fn a_flag_wins_over_a_variable_over_a_file_over_the_default() {
        let file = "num_cpus = 3\nport = 7\nlog_level = \"info\"\n";
        let variables = [("THARSIS_NUM_CPUS", "2"), ("THARSIS_PORT", "6")];
        let settings = resolve(&[(Key::NumCpus, "1")], &variables, file).unwrap();
        let value = |key| settings.value(key).map(|v| (v.text.as_str(), v.origin.to_string())).unwrap();
        assert_eq!(value(Key::NumCpus), ("1", "flag".to_owned()));
        assert_eq!(value(Key::Port), ("6", "environment".to_owned()));
        assert_eq!(value(Key::LogLevel), ("info", "file t.toml, line 3".to_owned()));
        assert_eq!(value(Key::LeaseTtl), ("10s", "default".to_owned()));
        assert_eq!(settings.value(Key::Etcd), None);
    }

    #[test]
    fn a_bad_variable_is_named_also_when_a_flag_wins() {
        let error = resolve(&[(Key::NumCpus, "1")], &[("THARSIS_NUM_CPUS", "x")], "").unwrap_err();
        assert_eq!(error.to_string(), "THARSIS_NUM_CPUS: x: expected a number");
    }

    #[test]
    fn a_variable_that_is_no_setting_is_told_with_the_nearest() {
        let said = |name: &str| unknown_variable(OsStr::new(name));
        for known in ["THARSIS_NUM_CPUS", "THARSIS_CONFIG", "THARSIS_NODE", "HOME", "OTEL_THARSIS_X"] {
            assert_eq!(said(known), None);
        }
        let text = said("THARSIS_NUM_CPU").unwrap();
        assert!(text.contains("THARSIS_NUM_CPU:") && text.contains("mean THARSIS_NUM_CPUS?"), "{text}");
        assert!(said("THARSIS_num_cpus").is_some() && said("THARSIS_").is_some());
    }

    #[test]
    fn the_store_and_the_memory_limit_make_room_for_each_other() {
        let text = |settings: &Settings, key| settings.text(key).parse::<u64>().unwrap();
        let limited = resolve(&[(Key::MemoryLimit, "12MiB")], &[], "").unwrap();
        assert_eq!(text(&limited, Key::Store), 4 << 20);
        let large = (1_u64 << 60).to_string();
        let stored = resolve(&[(Key::Store, &large)], &[], "").unwrap();
        assert_eq!(text(&stored, Key::MemoryLimit), 1 << 60);
        let both = resolve(&[(Key::Store, "8MiB")], &[("THARSIS_MEMORY_LIMIT", "6MiB")], "");
        let text = both.unwrap_err().to_string();
        for part in ["--store is 8MiB", "THARSIS_MEMORY_LIMIT is 6MiB"] {
            assert!(text.contains(part), "{part}: {text}");
        }
    }

    #[test]
    fn limits_of_the_memory_may_be_parts_of_it_and_stand_in_order() {
        let all = machine::memory_bytes();
        let settings = resolve(&[(Key::MemoryLimit, "50%"), (Key::MemorySoftLimit, "10%")], &[], "").unwrap();
        assert_eq!(settings.memory(Key::MemoryLimit), Ok(all / 100 * 50));
        assert!(settings.memory(Key::Store).unwrap() <= all / 100 * 10);
        let free = resolve(&[], &[], "min_free_memory = \"40%\"").unwrap();
        assert!(free.memory(Key::MemoryLimit).unwrap() <= all - all / 100 * 40);
        let said = |flags: &[(Key, &str)]| resolve(flags, &[], "").unwrap_err().to_string();
        let text = said(&[(Key::MemoryLimit, "10%"), (Key::MemorySoftLimit, "20%")]);
        assert!(
            text.contains("--memory-soft-limit is 20%") && text.contains("--memory-limit is 10%"),
            "{text}"
        );
        let text = said(&[(Key::Store, "64MiB"), (Key::MemorySoftLimit, "32MiB")]);
        assert!(text.contains("--store is 64MiB") && text.contains("--memory-soft-limit is 32MiB"), "{text}");
        let text = said(&[(Key::Store, "64MiB"), (Key::MinFreeMemory, "100%")]);
        assert!(text.contains("--min-free-memory: 100%") && text.contains("67108864"), "{text}");
    }

    #[test]
    fn water_marks_in_the_wrong_order_name_both() {
        for low in ["80", "90"] {
            let text = resolve(&[(Key::SpillLowWater, low)], &[], "").unwrap_err().to_string();
            assert!(
                text.contains("--spill-low-water is") && text.contains("--spill-high-water is 80"),
                "{text}"
            );
        }
        assert!(resolve(&[], &[], "spill_low_water = 10\nspill_high_water = 11").is_ok());
    }

    #[test]
    fn two_places_for_the_tables_name_who_said_each() {
        let error = resolve(&[(Key::State, "f")], &[], "etcd = \"http://a:1\"").unwrap_err().to_string();
        assert!(error.contains("--state") && error.contains("t.toml, line 1: etcd"), "{error}");
    }
}
