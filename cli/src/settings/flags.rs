//! Settings on the command line: one flag per key, made from the table of keys.

use super::error::shown;
use super::key::{Form, Key};
use clap::builder::{PathBufValueParser, StringValueParser, TypedValueParser, ValueParser};
use clap::error::ErrorKind;
use clap::{Arg, ArgMatches, Args, Command, FromArgMatches};
use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::ops::Deref;
use std::path::PathBuf;

const CONFIG: &str = "config";

/// Settings given on the command line.
#[derive(Clone, Debug, Default)]
pub struct Flags {
    /// The settings file.
    pub config: Option<PathBuf>,
    texts: BTreeMap<Key, String>,
}

/// The flags of commands that use the settings of `USED_BY`.
#[derive(Clone, Debug, Default)]
pub struct FlagsOf<const USED_BY: u8>(Flags);

/// Reads the value of a flag. One that is no text is refused with the name of the flag and its bytes,
/// escaped.
#[derive(Clone)]
pub struct TextParser<F>(pub F);

impl<T, F> TypedValueParser for TextParser<F>
where
    T: Clone + Send + Sync + 'static,
    F: Fn(&str) -> Result<T, String> + Clone + Send + Sync + 'static,
{
    type Value = T;

    fn parse_ref(&self, command: &Command, arg: Option<&Arg>, value: &OsStr) -> Result<T, clap::Error> {
        let Some(text) = value.to_str() else {
            let flag = arg.map_or_else(String::new, |arg| format!(" for '{arg}'"));
            let text = format!("invalid value {}{flag}: is not UTF-8\n", shown(&format!("{value:?}")));
            return Err(clap::Error::raw(ErrorKind::ValueValidation, text).with_cmd(command));
        };
        let read = self.0.clone();
        StringValueParser::new().try_map(move |text| read(&text)).parse_ref(command, arg, OsStr::new(text))
    }
}

impl Flags {
    /// The text typed for a key, already checked.
    pub fn text(&self, key: Key) -> Option<&str> {
        self.texts.get(&key).map(String::as_str)
    }

    /// Whether it was typed.
    pub fn has(&self, key: Key) -> bool {
        self.texts.contains_key(&key)
    }

    /// As if these had been typed.
    #[cfg(test)]
    pub fn given(texts: &[(Key, &str)]) -> Self {
        let texts = texts.iter().map(|(key, text)| (*key, (*text).to_owned())).collect();
        Self { config: None, texts }
    }
}

impl<const USED_BY: u8> Deref for FlagsOf<USED_BY> {
    type Target = Flags;

    fn deref(&self) -> &Flags {
        &self.0
    }
}

impl<const USED_BY: u8> Args for FlagsOf<USED_BY> {
    fn augment_args(command: Command) -> Command {
        let config = Arg::new(CONFIG)
            .long(CONFIG)
            .value_name("FILE")
            .value_parser(PathBufValueParser::new())
            .help("Settings file (TOML); flags and THARSIS_<KEY> variables win over it");
        Key::ALL
            .into_iter()
            .filter(|key| key.row().used_by & USED_BY != 0)
            .map(flag)
            .fold(command, Command::arg)
            .arg(config)
    }

    fn augment_args_for_update(command: Command) -> Command {
        Self::augment_args(command)
    }
}

impl<const USED_BY: u8> FromArgMatches for FlagsOf<USED_BY> {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Self, clap::Error> {
        let mut flags = Self::default();
        flags.update_from_arg_matches(matches)?;
        Ok(flags)
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), clap::Error> {
        let used = Key::ALL.into_iter().filter(|key| key.row().used_by & USED_BY != 0);
        let texts = used.filter_map(|key| Some((key, matches.get_one::<String>(key.name())?.clone())));
        self.0 = Flags { config: matches.get_one::<PathBuf>(CONFIG).cloned(), texts: texts.collect() };
        Ok(())
    }
}

fn flag(key: Key) -> Arg {
    let row = key.row();
    let check = row.check;
    let checked = TextParser(move |text: &str| check(text).map(|()| text.to_owned()));
    let arg = Arg::new(row.name)
        .long(row.name.replace('_', "-"))
        .value_name(row.value_name)
        .value_parser(ValueParser::new(checked))
        .allow_negative_numbers(true)
        .help(row.help);
    if row.form == Form::Switch {
        // `--allow-fake-resources` alone says yes.
        return arg.num_args(0..=1).require_equals(true).default_missing_value("true");
    }
    arg
}
