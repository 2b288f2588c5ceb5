//! Parses the text of a setting into its value. The text may come from a flag, the environment or a file.
//!
//! Each function answers with what is wrong in words; who asked adds the name of the setting and the text.

use std::net::{IpAddr, ToSocketAddrs};
use std::num::NonZeroU16;
use std::time::Duration;

/// Certificates give their times in seconds, so a shorter one might never hold.
const CERTIFICATE_LIFETIME_MIN: Duration = Duration::from_secs(2);
/// Suffixes of sizes, longest first.
const SIZE_UNITS: [(&str, u64); 10] = [
    ("KiB", 1 << 10),
    ("MiB", 1 << 20),
    ("GiB", 1 << 30),
    ("TiB", 1 << 40),
    ("KB", 1_000),
    ("MB", 1_000_000),
    ("GB", 1_000_000_000),
    ("TB", 1_000_000_000_000),
    ("B", 1),
    ("", 1),
];
/// Units of durations, in ms.
const DURATION_UNITS: [(&str, u64); 4] = [("ms", 1), ("s", 1_000), ("m", 60_000), ("h", 3_600_000)];

/// Amount of a resource.
pub fn amount(text: &str) -> Result<f64, String> {
    let amount: f64 = text.parse().map_err(|_| "expected a number".to_owned())?;
    tharsis_types::resources::units("amount", amount).map(|_| amount).map_err(|bad| bad.to_string())
}

/// CPUs of a node.
pub fn cpus(text: &str) -> Result<f64, String> {
    let count: f64 = text.parse().map_err(|_| "expected a number".to_owned())?;
    let max = tharsis_types::limits::CPU_COUNT_MAX;
    let checked = tharsis_types::resources::cpu_units("CPU", count);
    checked.map(|_| count).map_err(|_| format!("expected a number of CPUs from 0 to {max}"))
}

/// Reads `true` or `false`.
pub fn switch(text: &str) -> Result<bool, String> {
    text.parse().map_err(|_| "expected true or false".to_owned())
}

/// An address of this machine, or a name that stands for one.
pub fn host(text: &str) -> Result<IpAddr, String> {
    let found = match text.parse() {
        Ok(address) => Some(address),
        Err(_) => (text, 0).to_socket_addrs().ok().and_then(|mut found| found.next()).map(|found| found.ip()),
    };
    match found {
        None => Err("expected an address of this machine, such as 10.0.0.5".to_owned()),
        Some(all) if all.is_unspecified() => {
            Err("others cannot connect to it; name one address of this machine".to_owned())
        }
        Some(address) => Ok(address),
    }
}

/// A port to listen on; 0 for a free one.
pub fn port(text: &str) -> Result<u16, String> {
    text.parse().map_err(|_| "expected a port from 0 to 65535 (0: any free one)".to_owned())
}

/// `HOST:PORT`, with a port that one can connect to.
pub fn host_and_port(text: &str) -> Result<String, String> {
    let (host, port) = text.rsplit_once(':').ok_or("expected HOST:PORT")?;
    if host.is_empty() || port.parse::<NonZeroU16>().is_err() {
        return Err("expected HOST:PORT with a port from 1 to 65535".into());
    }
    Ok(text.to_owned())
}

/// Addresses as [`host_and_port`], separated by commas.
pub fn hosts_and_ports(text: &str) -> Result<String, String> {
    let addresses: Result<Vec<_>, _> = text.split(',').map(|address| host_and_port(address.trim())).collect();
    Ok(addresses?.join(","))
}

/// A size in bytes: a whole number with a suffix.
pub fn size(text: &str) -> Result<u64, String> {
    let wrong =
        || "expected a size such as 512MiB; suffixes are B, KB, MB, GB, TB, KiB, MiB, GiB, TiB".to_owned();
    let (number, suffix) = split_number(text);
    let (_, unit) = SIZE_UNITS.iter().find(|(name, _)| *name == suffix).ok_or_else(wrong)?;
    if number.is_empty() {
        return Err(wrong());
    }
    let bytes = number.parse::<u64>().ok().and_then(|number| number.checked_mul(*unit));
    bytes.ok_or_else(|| format!("is out of range, the largest size is {} bytes", u64::MAX))
}

/// Size of an object store.
pub fn store_size(text: &str) -> Result<u64, String> {
    let bytes = size(text)?;
    let min = tharsis::machine::STORE_BYTES_MIN;
    if bytes < min { Err(format!("the smallest store is {min} bytes")) } else { Ok(bytes) }
}

/// A part of the store in percent, with or without the sign.
pub fn percent(text: &str) -> Result<u8, String> {
    let number = text.strip_suffix('%').unwrap_or(text).parse().ok();
    number
        .filter(|percent| (1..=100).contains(percent))
        .ok_or_else(|| "expected a percentage from 1 to 100".into())
}

/// Bytes per second: a size, with or without `/s`.
pub fn rate(text: &str) -> Result<u64, String> {
    match size(text.strip_suffix("/s").unwrap_or(text))? {
        0 => Err("nothing moves at 0 bytes per second".into()),
        rate => Ok(rate),
    }
}

/// A duration: a whole number with a unit.
pub fn duration(text: &str) -> Result<Duration, String> {
    let wrong = || "expected a duration with a unit, such as 10s; units are ms, s, m, h".to_owned();
    let (number, suffix) = split_number(text);
    let (_, unit_ms) = DURATION_UNITS.iter().find(|(name, _)| *name == suffix).ok_or_else(wrong)?;
    if number.is_empty() {
        return Err(wrong());
    }
    let ms = number.parse::<u64>().ok().and_then(|number| number.checked_mul(*unit_ms));
    ms.map(Duration::from_millis).ok_or_else(|| "is out of range".to_owned())
}

/// A time that is not nothing.
pub fn positive_duration(text: &str) -> Result<Duration, String> {
    let time = duration(text)?;
    if time.is_zero() { Err("must be more than nothing".to_owned()) } else { Ok(time) }
}

/// Time for which a node may be silent until it is declared dead.
pub fn lease_ttl(text: &str) -> Result<Duration, String> {
    let ttl = duration(text)?;
    tharsis_gcs::backend::check_ttl(ttl).map(|()| ttl).map_err(|bad| bad.to_string())
}

/// Lifetime of a node's certificate: long enough to be replaced in time.
pub fn certificate_lifetime(text: &str) -> Result<Duration, String> {
    let time = duration(text)?;
    if time < CERTIFICATE_LIFETIME_MIN {
        return Err(format!("must be at least {} s", CERTIFICATE_LIFETIME_MIN.as_secs()));
    }
    Ok(time)
}

/// Labels of a node: `key=value`, several with commas.
pub fn labels(text: &str) -> Result<Vec<(String, String)>, String> {
    text.split(',').filter(|label| !label.is_empty()).map(label).collect()
}

fn label(text: &str) -> Result<(String, String), String> {
    match text.split_once('=') {
        Some((key, value)) if !key.is_empty() => Ok((key.to_owned(), value.to_owned())),
        _ => Err("expected key=value, several with commas".into()),
    }
}

/// Custom resources as a JSON object of numbers.
pub fn resources(text: &str) -> Result<Vec<(String, f64)>, String> {
    let amounts: std::collections::BTreeMap<String, f64> =
        serde_json::from_str(text).map_err(|cause| format!("expected a JSON object of numbers: {cause}"))?;
    let mut checked = tharsis_types::Resources::default();
    for (name, amount) in &amounts {
        checked.set_custom(name, *amount).map_err(|bad| bad.to_string())?;
    }
    Ok(amounts.into_iter().collect())
}

/// URLs of the servers of an etcd, several with commas.
pub fn endpoints(text: &str) -> Result<Vec<String>, String> {
    let endpoints: Vec<_> = text.split(',').map(str::trim).filter(|url| !url.is_empty()).collect();
    if endpoints.is_empty() {
        return Err("expected URLs such as http://127.0.0.1:2379, several with commas".into());
    }
    for url in &endpoints {
        if !url.starts_with("http://") {
            return Err("the URL of an etcd server must begin with http://".into());
        }
    }
    Ok(endpoints.into_iter().map(str::to_owned).collect())
}

/// A name that can be part of a key.
pub fn cluster_name(text: &str) -> Result<String, String> {
    let is_good = |c: char| c.is_ascii_alphanumeric() || "-._".contains(c);
    if text.is_empty() || !text.chars().all(is_good) {
        return Err("expected letters, digits, dashes, dots and underscores".into());
    }
    Ok(text.to_owned())
}

fn split_number(text: &str) -> (&str, &str) {
    text.split_at(text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_have_suffixes() {
        assert_eq!(size("512MiB"), Ok(512 << 20));
        assert_eq!(size("4GB"), Ok(4_000_000_000));
        assert_eq!(size("7"), Ok(7));
        for bad in ["", "MiB", "4x", "-1", "1.5GB", "99999999999TiB", "18446744073709551616"] {
            assert!(size(bad).is_err(), "{bad}");
        }
        assert!(store_size("1KiB").unwrap_err().contains("smallest"));
    }

    #[test]
    fn percentages_are_parts_of_a_whole() {
        assert_eq!((percent("80"), percent("100%")), (Ok(80), Ok(100)));
        for bad in ["", "%", "0", "101", "-1", "0.8", "300", "80%%"] {
            assert!(percent(bad).unwrap_err().contains("1 to 100"), "{bad}");
        }
    }

    #[test]
    fn durations_need_a_unit() {
        assert_eq!(duration("10s"), Ok(Duration::from_secs(10)));
        assert_eq!(duration("250ms"), Ok(Duration::from_millis(250)));
        assert_eq!(duration("2h"), Ok(Duration::from_secs(7200)));
        assert!(duration("10").unwrap_err().contains("such as 10s"));
        for bad in ["", "s", "-1s", "1.5s", "10 s", "10d", "99999999999999999999h"] {
            assert!(duration(bad).is_err(), "{bad}");
        }
        assert!(lease_ttl("0s").unwrap_err().contains("0 ms"));
    }

    #[test]
    fn addresses_name_a_host_and_a_port_to_connect_to() {
        assert!(host_and_port("localhost:6379").is_ok());
        assert!(host_and_port("[::1]:6379").is_ok());
        assert_eq!(hosts_and_ports("a:1, b:2"), Ok("a:1,b:2".to_owned()));
        assert!(hosts_and_ports("a:1,").is_err() && hosts_and_ports("a:1,b").is_err());
        for bad in ["localhost", ":1", "localhost:", "localhost:0", "localhost:65536", "localhost:x"] {
            assert!(host_and_port(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn names_of_resources_and_labels_are_checked() {
        assert_eq!(labels("a=1,b="), Ok(vec![("a".into(), "1".into()), ("b".into(), String::new())]));
        assert!(labels("k").is_err() && labels("=v").is_err());
        assert!(resources("{\"CPU\":2}").unwrap_err().contains("reserved"));
        for bad in ["{\"tpu\":-1}", "{\"tpu\":1e300}", "{\"a\\nb\":1}", "[1]", "tpu=1", ""] {
            assert!(resources(bad).is_err(), "{bad}");
        }
    }
}
