//! Parses the text of a setting into its value. The text may come from a flag, the environment or a file.
//!
//! Each function answers with what is wrong in words; who asked adds the name of the setting and the text.

use std::net::{IpAddr, SocketAddr};
use std::num::NonZeroU16;
use std::time::Duration;
use tharsis_identity::AUTHORITY_LIFETIME;
use tharsis_protos::message::is_host_name;

/// Said of a host that is none.
pub const NO_HOST: &str = "expected an address of this machine, such as 10.0.0.5, or its name";
/// Most threads of a node's network.
const NETWORK_THREADS_MAX: usize = 64;
/// Most log files.
const LOG_FILES_MAX: usize = 1000;
/// Smallest log file: several lines fit.
const LOG_FILE_BYTES_MIN: u64 = 4096;

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

/// An address of this machine, or its name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Host {
    /// An address.
    Address(IpAddr),
    /// A name, which is resolved when it is needed.
    Name(String),
}

/// An address of this machine, or a name that stands for one; with the port at which others reach it, if that
/// is named.
pub fn host(text: &str) -> Result<(Host, Option<u16>), String> {
    let (host, port) = match text.parse::<SocketAddr>() {
        Ok(whole) => (Host::Address(whole.ip()), Some(whole.port())),
        Err(_) => match text.parse::<IpAddr>() {
            Ok(address) => (Host::Address(address), None),
            Err(_) => named(text)?,
        },
    };
    if port == Some(0) {
        return Err("others connect to its port: name one from 1 to 65535, or none, and --port".to_owned());
    }
    if matches!(host, Host::Address(all) if all.is_unspecified()) {
        return Err(
            "others cannot connect to it; name one address of this machine, and --bind to listen on all"
                .to_owned(),
        );
    }
    Ok((host, port))
}

/// A name, with a port or without.
fn named(text: &str) -> Result<(Host, Option<u16>), String> {
    let (name, port) = match text.rsplit_once(':') {
        Some((name, port)) => (name, Some(port.parse().map_err(|_| NO_HOST.to_owned())?)),
        None => (text, None),
    };
    if is_host_name(name) { Ok((Host::Name(name.to_owned()), port)) } else { Err(NO_HOST.to_owned()) }
}

/// An address to listen on.
pub fn bind(text: &str) -> Result<IpAddr, String> {
    text.parse()
        .map_err(|_| "expected an address of this machine, or 0.0.0.0 or :: for all of them".to_owned())
}

/// Threads of a node's network.
pub fn network_threads(text: &str) -> Result<usize, String> {
    count(text, NETWORK_THREADS_MAX)
}

/// Number of log files that are kept.
pub fn log_files(text: &str) -> Result<usize, String> {
    count(text, LOG_FILES_MAX)
}

fn count(text: &str, most: usize) -> Result<usize, String> {
    let count = text.parse().ok().filter(|count| (1..=most).contains(count));
    count.ok_or_else(|| format!("expected a whole number from 1 to {most}"))
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

/// An amount of memory: a size, or a part of what the machine has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Memory {
    /// Bytes.
    Bytes(u64),
    /// Percent of the memory.
    Percent(u8),
}

impl Memory {
    /// Bytes of it on a machine with `all_bytes` of memory, rounded down.
    pub fn bytes(self, all_bytes: u64) -> u64 {
        match self {
            Self::Bytes(bytes) => bytes,
            Self::Percent(percent) => all_bytes / 100 * u64::from(percent),
        }
    }
}

/// A size, or a percentage with its sign.
pub fn memory(text: &str) -> Result<Memory, String> {
    if text.ends_with('%') { percent(text).map(Memory::Percent) } else { size(text).map(Memory::Bytes) }
}

/// Memory that has room for the smallest store.
pub fn store_memory(text: &str) -> Result<Memory, String> {
    match memory(text)? {
        Memory::Bytes(_) => store_size(text).map(Memory::Bytes),
        part @ Memory::Percent(_) => Ok(part),
    }
}

/// Size of a log file.
pub fn log_file_size(text: &str) -> Result<u64, String> {
    let bytes = size(text)?;
    if bytes < LOG_FILE_BYTES_MIN {
        return Err(format!("the smallest log file has {LOG_FILE_BYTES_MIN} bytes"));
    }
    Ok(bytes)
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
    if AUTHORITY_LIFETIME < time {
        return Err(format!(
            "must be at most {} h, the lifetime of the authority",
            AUTHORITY_LIFETIME.as_secs() / 3600
        ));
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
        return Err("expected URLs such as https://etcd-1:2379, several with commas".into());
    }
    for url in &endpoints {
        if !url.starts_with("http://") && !url.starts_with("https://") {
            return Err("the URL of an etcd server must begin with http:// or https://".into());
        }
    }
    Ok(endpoints.into_iter().map(str::to_owned).collect())
}

/// Whether a URL names this machine.
pub fn is_loopback_url(url: &str) -> bool {
    let rest = url.split_once("://").map_or(url, |(_, rest)| rest);
    let authority = rest.split('/').next().unwrap_or_default();
    let host = authority.rsplit_once(':').map_or(authority, |(host, _)| host);
    let host = host.trim_start_matches('[').trim_end_matches(']');
    host == "localhost" || host.parse::<std::net::IpAddr>().is_ok_and(|address| address.is_loopback())
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
    use std::net::Ipv6Addr;

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
    fn loopback_is_told_from_other_hosts() {
        for url in
            ["http://127.0.0.1:2379", "http://localhost:2379/", "http://[::1]:2379", "http://127.1.2.3"]
        {
            assert!(is_loopback_url(url), "{url}");
        }
        for url in
            ["http://10.0.0.1:2379", "http://127.0.0.1.example.com:1", "http://e:2379", "http://[fe80::1]:1"]
        {
            assert!(!is_loopback_url(url), "{url}");
        }
    }

    #[test]
    fn memory_is_a_size_or_a_part_of_what_there_is() {
        assert_eq!(memory("25%").map(|part| part.bytes(1 << 30)), Ok((1 << 30) / 100 * 25));
        assert_eq!(store_memory("64MiB"), Ok(Memory::Bytes(64 << 20)));
        for bad in ["0%", "101%", "%", "-1%", "1.5%", "", "4x"] {
            assert!(memory(bad).is_err(), "{bad}");
        }
        assert!(store_memory("1KiB").unwrap_err().contains("smallest"));
    }

    #[test]
    fn counts_and_sizes_of_logs_have_bounds() {
        assert_eq!(
            (network_threads("1"), network_threads("64"), log_files("1000")),
            (Ok(1), Ok(64), Ok(1000))
        );
        for bad in ["0", "65", "-1", "1.0", "", "x"] {
            assert!(network_threads(bad).unwrap_err().contains("from 1 to 64"), "{bad}");
        }
        assert!(log_files("0").is_err() && log_file_size("4095").unwrap_err().contains("4096"));
    }

    #[test]
    fn a_host_is_an_address_or_a_name_and_not_all_of_them() {
        let (address, name) = (Host::Address([10, 0, 0, 5].into()), Host::Name("head.example".to_owned()));
        assert_eq!(host("10.0.0.5"), Ok((address.clone(), None)));
        assert_eq!(host("10.0.0.5:7600"), Ok((address, Some(7600))));
        assert_eq!(host("[::1]:7600"), Ok((Host::Address(Ipv6Addr::LOCALHOST.into()), Some(7600))));
        assert_eq!(host("::1"), Ok((Host::Address(Ipv6Addr::LOCALHOST.into()), None)));
        assert_eq!(host("head.example"), Ok((name.clone(), None)));
        assert_eq!(host("head.example:7600"), Ok((name, Some(7600))));
        for bad in
            ["head:0", "10.0.0.5:0", "head:65536", "head:", "head:http", ":7600", "0.0.0.0:7600", "a:1:2"]
        {
            assert!(host(bad).is_err(), "{bad}");
        }
        assert!(host("0.0.0.0").unwrap_err().contains("--bind") && host("::").is_err());
        for bad in ["", "a b", "127.1", "http://a"] {
            assert!(host(bad).is_err(), "{bad}");
        }
        assert!(bind("0.0.0.0").is_ok() && bind("::").is_ok() && bind("localhost").is_err());
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
