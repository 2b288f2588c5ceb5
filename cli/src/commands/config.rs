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
                (key.name().to_owned(), json!({"value": value.text, "source": value.origin.to_string()}))
            })
            .collect();
        return output::line(&Value::Object(all).to_string());
    }
    for (key, value) in known {
        output::line(&format!("{:<21} {:<32} {}", key.name(), value.text, value.origin))?;
    }
    Ok(())
}
