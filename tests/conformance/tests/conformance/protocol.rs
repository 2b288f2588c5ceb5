//! The files of the protocol, as they are now: tests go through all that is in them.

use std::collections::BTreeMap;
use std::path::Path;

/// A call.
#[derive(Clone, Debug)]
pub struct Rpc {
    /// Its name.
    pub name: String,
    /// The package and the name of its service.
    pub service: String,
    /// The message that it sends.
    pub request: String,
}

/// All that the files say.
#[derive(Debug, Default)]
pub struct Protocol {
    /// All calls.
    pub rpcs: Vec<Rpc>,
    /// The fields of each message, with those of its alternatives: type, name and number.
    pub messages: BTreeMap<String, Vec<(String, String, u32)>>,
}

impl Protocol {
    pub fn read() -> Protocol {
        let folder = std::env::var("CARGO_MANIFEST_DIR").unwrap();
        let folder = Path::new(&folder).join("../../protos/proto");
        let mut protocol = Protocol::default();
        for file in std::fs::read_dir(folder).unwrap() {
            protocol.add(&std::fs::read_to_string(file.unwrap().path()).unwrap());
        }
        protocol
    }

    fn add(&mut self, text: &str) {
        let (mut package, mut service, mut message) = (String::new(), String::new(), String::new());
        for line in text.lines().map(str::trim) {
            let words: Vec<&str> =
                line.split([' ', '(', ')', ';', '{']).filter(|word| !word.is_empty()).collect();
            match words.as_slice() {
                ["package", name] => package = (*name).to_owned(),
                ["service", name] => service = format!("{package}.{name}"),
                ["rpc", name, rest @ ..] => {
                    let request = *rest.iter().find(|word| **word != "stream").unwrap();
                    let (name, request) = ((*name).to_owned(), request.to_owned());
                    self.rpcs.push(Rpc { name, service: service.clone(), request });
                }
                ["message", name, ..] => {
                    message = (*name).to_owned();
                    self.messages.entry(message.clone()).or_default();
                }
                [.., kind, name, "=", number] if !line.starts_with("//") => {
                    let field = ((*kind).to_owned(), (*name).to_owned(), number.parse().unwrap());
                    self.messages.entry(message.clone()).or_default().push(field);
                }
                _ => {}
            }
        }
    }

    /// The call of this name.
    pub fn rpc(&self, name: &str) -> &Rpc {
        self.rpcs.iter().find(|rpc| rpc.name == name).unwrap_or_else(|| panic!("{name} is in no file"))
    }

    /// Whether a message has the id of a node in it.
    pub fn names_a_node(&self, message: &str) -> bool {
        let fields = self.messages.get(message).map_or(&[][..], Vec::as_slice);
        let is_id =
            |name: &str| name == "node" || name == "holder" || name.ends_with("_node") || name == "node_id";
        fields.iter().any(|(kind, name, _)| kind == "fixed64" && is_id(name) || self.names_a_node(kind))
    }

    /// The numbers of the kinds of frames that links carry.
    pub fn frames(&self) -> Vec<u32> {
        self.messages["Message"].iter().map(|(_, _, number)| *number).collect()
    }
}

#[test]
fn the_files_of_the_protocol_are_understood() {
    let protocol = Protocol::read();
    assert!(protocol.rpcs.len() > 20 && protocol.frames().len() > 30);
    let link = protocol.rpc("Link");
    assert_eq!((link.service.as_str(), link.request.as_str()), ("tharsis.peer.v1.Peer", "Packet"));
    let named = |call: &str| protocol.names_a_node(&protocol.rpc(call).request);
    assert!(named("RegisterNode") && named("PutCodeUnit") && named("RegisterJob") && named("Link"));
    assert!(!named("KvPut") && !named("FinishJob") && !named("ListNodes"));
}
