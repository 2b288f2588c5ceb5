//! Tests of the table of settings, and the page of the documents that shows it.

use super::*;
use std::path::Path;

/// The page of settings has one row for each, with the text of the help.
#[test]
fn the_settings_page_shows_every_setting() {
    let page = Path::new(&std::env::var("CARGO_MANIFEST_DIR").unwrap()).join("../docs/settings.md");
    let text = std::fs::read_to_string(&page).unwrap();
    let (begin, end) = ("settings_page` -->\n", "<!-- end of settings -->");
    let (before, rest) = text.split_once(begin).unwrap();
    let (table, after) = rest.split_once(end).unwrap();
    // Values of this machine stand for those of any.
    let default = |key: Key| match key {
        Key::Socket | Key::SecretFile | Key::IdentityDir => "in the user's own folder".to_owned(),
        Key::Port => "a free one".to_owned(),
        Key::NumCpus => "those of the machine".to_owned(),
        Key::Store => "a third of the memory".to_owned(),
        Key::MemoryLimit => "nine tenths of the memory".to_owned(),
        Key::SpillDirs => "the user's own folder".to_owned(),
        Key::Lineage => format!("`{}MiB`", machine::LINEAGE_BYTES >> 20),
        key => key.default_text().map_or_else(|| "none".to_owned(), |text| format!("`{text}`")),
    };
    let row = |key: Key| {
        let of_whom = [(NODE, "nodes"), (STORE, "control stores"), (ASK, "commands"), (IDENTITY, "tokens")];
        let used_by = of_whom.into_iter().filter(|(bit, _)| key.row().used_by & bit != 0);
        let used_by: Vec<_> = used_by.map(|(_, name)| name).collect();
        let (help, used_by) = (key.row().help.replace('|', "\\|"), used_by.join(", "));
        format!("| `{}` | {help} | {} | {used_by} |\n", key.name(), default(key))
    };
    let rows: String = Key::ALL.into_iter().map(row).collect();
    let wanted = format!("| setting | meaning | default | of |\n|---|---|---|---|\n{rows}");
    if std::env::var_os("UPDATE_SETTINGS").is_some() {
        std::fs::write(&page, format!("{before}{begin}{wanted}{end}{after}")).unwrap();
    } else {
        assert_eq!(table, wanted, "run it with UPDATE_SETTINGS=1");
    }
}

#[test]
fn every_default_passes_its_own_check() {
    for key in Key::ALL {
        if let Some(text) = key.default_text() {
            assert_eq!((key.row().check)(&text), Ok(()), "{} = {text}", key.name());
        }
        assert!(key.row().used_by & ALL != 0);
    }
}
