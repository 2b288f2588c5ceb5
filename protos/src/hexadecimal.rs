//! Ids of nodes as people and other programs see them: sixteen hexadecimal digits in JSON, where a number
//! beyond 2^53 would be rounded by many readers, and a number elsewhere.

use serde::de::{Deserializer, Error, Visitor};
use serde::{Deserialize, Serialize, Serializer};
use std::fmt;

/// For fields with one id: `#[serde(with = "crate::hexadecimal")]`.
pub fn serialize<S: Serializer>(id: &u64, to: S) -> Result<S::Ok, S::Error> {
    Id(*id).serialize(to)
}

/// For fields with one id. A node of a former release has a number in JSON.
pub fn deserialize<'a, D: Deserializer<'a>>(from: D) -> Result<u64, D::Error> {
    Id::deserialize(from).map(|id| id.0)
}

/// For fields that may have an id.
pub mod option {
    use super::{Deserialize, Deserializer, Id, Serialize, Serializer};

    /// Writes the id, or that there is none.
    pub fn serialize<S: Serializer>(id: &Option<u64>, to: S) -> Result<S::Ok, S::Error> {
        id.map(Id).serialize(to)
    }

    /// Reads an id, or that there is none.
    pub fn deserialize<'a, D: Deserializer<'a>>(from: D) -> Result<Option<u64>, D::Error> {
        Ok(Option::<Id>::deserialize(from)?.map(|id| id.0))
    }
}

/// For lists of ids, each with a number.
pub mod counted {
    use super::{Deserialize, Deserializer, Id, Serializer};

    /// Writes each id and its number.
    pub fn serialize<S: Serializer>(ids: &[(u64, u32)], to: S) -> Result<S::Ok, S::Error> {
        to.collect_seq(ids.iter().map(|(id, count)| (Id(*id), *count)))
    }

    /// Reads each id and its number.
    pub fn deserialize<'a, D: Deserializer<'a>>(from: D) -> Result<Vec<(u64, u32)>, D::Error> {
        let ids = Vec::<(Id, u32)>::deserialize(from)?;
        Ok(ids.into_iter().map(|(id, count)| (id.0, count)).collect())
    }
}

struct Id(u64);

impl Serialize for Id {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        if to.is_human_readable() {
            to.collect_str(&format_args!("{:016x}", self.0))
        } else {
            to.serialize_u64(self.0)
        }
    }
}

impl<'a> Deserialize<'a> for Id {
    fn deserialize<D: Deserializer<'a>>(from: D) -> Result<Self, D::Error> {
        if from.is_human_readable() {
            from.deserialize_any(Digits).map(Id)
        } else {
            u64::deserialize(from).map(Id)
        }
    }
}

/// Reads hexadecimal digits, or a number.
struct Digits;

impl Visitor<'_> for Digits {
    type Value = u64;

    fn expecting(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        to.write_str("the hexadecimal digits of an id")
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<u64, E> {
        u64::from_str_radix(text, 16).map_err(|_| E::custom(format_args!("{text:?} is no id")))
    }

    fn visit_u64<E: Error>(self, id: u64) -> Result<u64, E> {
        Ok(id)
    }
}

#[cfg(test)]
mod tests {
    use crate::inventory::{Inventory, ObjectRow};
    use crate::report::{NodeRow, Report};

    #[test]
    fn ids_are_texts_in_json_and_numbers_on_the_wire() {
        let node = NodeRow { node: u64::MAX - 1, ..NodeRow::default() };
        let report = Report { node: (1 << 53) + 1, nodes: vec![node], ..Report::default() };
        let json = serde_json::to_value(&report).unwrap();
        assert_eq!(json["node"], "0020000000000001");
        assert_eq!(json["nodes"][0]["node"], "fffffffffffffffe");
        assert_eq!(serde_json::from_value::<Report>(json).unwrap(), report);
        let wire = postcard::to_stdvec(&report).unwrap();
        assert_eq!(postcard::from_bytes::<Report>(&wire).unwrap(), report);
        assert!(serde_json::from_value::<NodeRow>(serde_json::json!({"node": "x"})).is_err());
    }

    #[test]
    fn ids_in_lists_of_objects_are_texts() {
        let object = ObjectRow { borrowers: vec![(10, 2)], owner: Some(11), ..ObjectRow::default() };
        let inventory = Inventory { node: 12, objects: vec![object], ..Inventory::default() };
        let json = serde_json::to_value(&inventory).unwrap();
        assert_eq!(json["node"], "000000000000000c");
        assert_eq!(json["objects"][0]["borrowers"], serde_json::json!([["000000000000000a", 2]]));
        assert_eq!(json["objects"][0]["owner"], "000000000000000b");
        assert_eq!(serde_json::from_value::<Inventory>(json).unwrap(), inventory);
        let wire = postcard::to_stdvec(&inventory).unwrap();
        assert_eq!(postcard::from_bytes::<Inventory>(&wire).unwrap(), inventory);
    }

    #[test]
    fn a_number_of_a_former_release_is_read() {
        let mut json = serde_json::to_value(NodeRow::default()).unwrap();
        json["node"] = 7.into();
        assert_eq!(serde_json::from_value::<NodeRow>(json).unwrap().node, 7);
    }
}
