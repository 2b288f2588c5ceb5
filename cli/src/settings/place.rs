//! The addresses of a node or control store: on which it listens, and at which others reach it.

use super::parse::{self, Host, NO_HOST};
use super::{Error, Key, Settings};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, ToSocketAddrs};

/// The addresses of a process.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Place {
    /// On which it listens; port 0 for a free one.
    pub listen: SocketAddr,
    /// Host that others are told, if it is not that of `listen`; with a port, if that is another one too.
    pub advertised: Option<String>,
}

impl Settings {
    /// Its address to listen on, and the host that others are told. `seen` is the address of this machine
    /// from which others are reached, for a process that need not say its own.
    ///
    /// # Errors
    /// [`Error::BadValue`] for a name that stands for no address, [`Error::Needs`] if nobody says at which
    /// address it is reached.
    pub fn place(&self, seen: Option<IpAddr>) -> Result<Place, Error> {
        let (host, told_port) = self.get(Key::Host, parse::host)?.unzip();
        let (bind, told_port) = (self.get(Key::Bind, parse::bind)?, told_port.flatten());
        let is_unknown = host.is_none() && seen.is_none();
        if is_unknown && bind.is_some_and(|bind| !bind.is_loopback()) {
            return Err(Error::Needs {
                setting: self.who(Key::Bind),
                other: Key::Host.flag(),
                reason: "others must be told at which address they reach this machine",
            });
        }
        let address = match (bind, &host) {
            (Some(bind), _) => bind,
            (None, Some(Host::Address(address))) => *address,
            (None, Some(Host::Name(name))) => self.resolve_host(name)?,
            (None, None) => seen.unwrap_or(Ipv4Addr::LOCALHOST.into()),
        };
        let told = match host {
            Some(Host::Name(name)) => Some(name),
            Some(Host::Address(told)) => Some(told.to_string()).filter(|_| told != address),
            None => seen.filter(|_| address.is_unspecified()).map(|seen| seen.to_string()),
        };
        // A port at which it is reached is that of this machine as well, unless this has another one.
        let port = match told_port {
            Some(told) if self.is_default(Key::Port) => told,
            _ => self.port()?,
        };
        let listen = SocketAddr::from((address, port));
        let advertised = match told_port.filter(|told| *told != port) {
            Some(port) => Some(with_port(&told.unwrap_or_else(|| address.to_string()), port)),
            None => told,
        };
        Ok(Place { listen, advertised })
    }

    fn resolve_host(&self, name: &str) -> Result<IpAddr, Error> {
        let found: Vec<IpAddr> =
            (name, 0).to_socket_addrs().into_iter().flatten().map(|found| found.ip()).collect();
        address_of_name(name, &found).ok_or_else(|| self.bad(Key::Host, name, NO_HOST.to_owned()))
    }
}

fn with_port(host: &str, port: u16) -> String {
    match host.parse::<IpAddr>() {
        Ok(address) => SocketAddr::from((address, port)).to_string(),
        Err(_) => format!("{host}:{port}"),
    }
}

/// The address to listen on for a name that means `found` on this machine. Others ask their own name server:
/// a name that is loopback here alone (Debian's `127.0.1.1`) is reached at some address of this machine, so
/// all of them are listened on. Names of the usual loopback addresses mean this machine alone, as
/// `localhost`.
fn address_of_name(name: &str, found: &[IpAddr]) -> Option<IpAddr> {
    let mut found = found.iter().filter(|address| !address.is_unspecified());
    let first = *found.clone().next()?;
    let is_local = name == "localhost" || name.ends_with(".localhost");
    if is_local {
        return Some(first);
    }
    let others = found.find(|address| !address.is_loopback()).copied();
    let is_usual = first == IpAddr::V4(Ipv4Addr::LOCALHOST) || first == IpAddr::V6(Ipv6Addr::LOCALHOST);
    if others.is_none() && is_usual {
        return Some(first);
    }
    let all = if first.is_ipv4() { Ipv4Addr::UNSPECIFIED.into() } else { Ipv6Addr::UNSPECIFIED.into() };
    Some(others.unwrap_or(all))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::settings::Flags;

    fn place(texts: &[(Key, &str)], seen: Option<&str>) -> Result<(String, Option<String>), String> {
        let settings = Settings::read(&Flags::given(texts)).unwrap();
        let place =
            settings.place(seen.map(|seen| seen.parse().unwrap())).map_err(|error| error.to_string())?;
        Ok((place.listen.to_string(), place.advertised))
    }

    #[test]
    fn a_node_listens_where_it_is_reached_unless_it_is_told_otherwise() {
        let (host, bind, port) = (Key::Host, Key::Bind, (Key::Port, "7"));
        let of = |listen: &str, told: Option<&str>| Ok((listen.to_owned(), told.map(str::to_owned)));
        assert_eq!(place(&[port], None), of("127.0.0.1:7", None));
        assert_eq!(place(&[port], Some("10.0.0.2")), of("10.0.0.2:7", None));
        assert_eq!(place(&[(host, "10.0.0.1"), port], None), of("10.0.0.1:7", None));
        assert_eq!(place(&[(host, "10.0.0.1"), (bind, "10.0.0.1")], None), of("10.0.0.1:0", None));
        assert_eq!(place(&[(host, "10.0.0.1"), (bind, "0.0.0.0")], None), of("0.0.0.0:0", Some("10.0.0.1")));
        // A name need not be known here.
        let name = "head.tharsis.invalid";
        assert_eq!(place(&[(host, name), (bind, "::")], None), of("[::]:0", Some(name)));
        assert_eq!(place(&[(bind, "0.0.0.0")], Some("10.0.0.2")), of("0.0.0.0:0", Some("10.0.0.2")));
        assert_eq!(place(&[(bind, "10.0.0.3")], Some("10.0.0.2")), of("10.0.0.3:0", None));
        assert_eq!(place(&[(bind, "127.0.0.2")], None), of("127.0.0.2:0", None));
        // With the port at which it is reached, which may be that of a router.
        assert_eq!(place(&[(host, "10.0.0.1:9")], None), of("10.0.0.1:9", None));
        assert_eq!(place(&[(host, "10.0.0.1:7"), port], None), of("10.0.0.1:7", None));
        assert_eq!(place(&[(host, "10.0.0.1:9"), port], None), of("10.0.0.1:7", Some("10.0.0.1:9")));
        let named = format!("{name}:9");
        assert_eq!(place(&[(host, &named), (bind, "::"), port], None), of("[::]:7", Some(&named)));
        assert_eq!(place(&[(host, "[::1]:9"), port], None), of("[::1]:7", Some("[::1]:9")));
    }

    #[test]
    fn a_name_that_is_loopback_here_alone_is_reached_at_any_address() {
        let listen = |name: &str, found: &[&str]| {
            let found: Vec<IpAddr> = found.iter().map(|text| text.parse().unwrap()).collect();
            address_of_name(name, &found).map(|address| address.to_string())
        };
        let of = |text: &str| Some(text.to_owned());
        assert_eq!(listen("head", &["10.0.0.1", "10.0.0.2"]), of("10.0.0.1"));
        // Debian's installer writes the name of the machine into /etc/hosts as 127.0.1.1.
        assert_eq!(listen("head", &["127.0.1.1", "10.0.0.1"]), of("10.0.0.1"));
        assert_eq!(listen("head", &["127.0.1.1"]), of("0.0.0.0"));
        assert_eq!(listen("ip6-localhost", &["::1"]), of("::1"));
        assert_eq!(listen("localhost.localdomain", &["127.0.0.1"]), of("127.0.0.1"));
        assert_eq!(listen("localhost", &["127.0.0.1"]), of("127.0.0.1"));
        assert_eq!(listen("a.localhost", &["127.0.0.1"]), of("127.0.0.1"));
        assert_eq!(listen("head", &["0.0.0.0"]), None);
        assert_eq!(listen("head", &[]), None);
    }

    #[test]
    fn a_place_that_nobody_could_find_is_refused() {
        for bind in ["0.0.0.0", "::", "10.0.0.1"] {
            let text = place(&[(Key::Bind, bind)], None).unwrap_err();
            assert!(text.contains("--bind needs --host"), "{text}");
        }
        let text = place(&[(Key::Host, "head.tharsis.invalid")], None).unwrap_err();
        assert!(text.contains("--host: head.tharsis.invalid") && text.contains("its name"), "{text}");
    }
}
