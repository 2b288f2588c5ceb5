//! `tharsis config`: the settings in effect, and the origin of each.

use crate::output;
use crate::settings::{Key, Settings};
use anyhow::Result;
use serde_json::{Map, Value, json};

/// Shows all settings.
///
/// # Errors
/// If they cannot be printed.
pub fn show(settings: &Settings, as_json: bool) -> Result<()> {
    let known = Key::ALL.into_iter().filter_map(|key| Some((key, settings.value(key)?)));
    if as_json {
        let all: Map<String, Value> = known
            .map(|(key, value)| {
                (key.name().to_owned(), json!({"value": value.text, "source": source(key, settings)}))
            })
            .collect();
        return output::line(&Value::Object(all).to_string());
    }
    for (key, value) in known {
        output::line(&format!("{:<21} {:<32} {}", key.name(), value.text, source(key, settings)))?;
    }
    Ok(())
}

/// The origin of a value. What a head with an authority offers differs from that of other nodes, unless it is
/// told.
fn source(key: Key, settings: &Settings) -> String {
    let origin = settings.value(key).map_or_else(String::new, |value| value.origin.to_string());
    let is_of_head = settings.value(Key::Host).is_some() && settings.is_default(key);
    if key == Key::NumCpus && is_of_head {
        format!("{origin}, of members; a head offers none")
    } else {
        origin
    }
}
