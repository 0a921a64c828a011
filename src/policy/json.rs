//! Reads a whole JSON text, and nothing that could be read in two ways.
//!
//! Of a member that is named twice most readers keep the last and say nothing, so who checks one
//! reading and forwards the bytes can be fooled (RFC 8259 §4: "the behavior of software that
//! receives such an object is unpredictable").
//!
//! # Invariants
//! - A member that is named twice, at any depth, is refused.
//! - So are numbers that no double can hold, and more than 128 levels.

use std::fmt;

use serde::de::{self, Deserialize, Deserializer, MapAccess, SeqAccess, Visitor};
use serde_json::{Map, Value};

/// The value of a JSON text.
///
/// # Errors
/// When it is no JSON, or ambiguous. The text names no value.
pub(super) fn value(raw: &str) -> Result<Value, serde_json::Error> {
    serde_json::from_str::<Plain>(raw).map(|plain| plain.0)
}

struct Plain(Value);

impl<'de> Deserialize<'de> for Plain {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(Whole).map(Self)
    }
}

struct Whole;

impl<'de> Visitor<'de> for Whole {
    type Value = Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a JSON value")
    }

    fn visit_unit<E>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_bool<E>(self, value: bool) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_i64<E>(self, value: i64) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_u64<E>(self, value: u64) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_f64<E>(self, value: f64) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_str<E>(self, value: &str) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_string<E>(self, value: String) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut array: A) -> Result<Value, A::Error> {
        let mut values = Vec::new();
        while let Some(Plain(value)) = array.next_element()? {
            values.push(value);
        }
        Ok(values.into())
    }

    fn visit_map<A: MapAccess<'de>>(self, mut object: A) -> Result<Value, A::Error> {
        let mut members = Map::new();
        while let Some((name, Plain(value))) = object.next_entry::<String, _>()? {
            if members.insert(name, value).is_some() {
                return Err(de::Error::custom("a member occurs twice"));
            }
        }
        Ok(members.into())
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_member_named_twice_is_refused_at_any_depth() {
        for raw in [
            r#"{"a":1,"a":1}"#,
            r#"{"a":1,"\u0061":2}"#,
            r#"[{"x":{"a":1,"b":2,"a":3}}]"#,
        ] {
            assert!(value(raw).is_err(), "{raw}");
        }
        assert!(value(r#"{"a":{"a":1},"A":2}"#).is_ok());
    }

    #[test]
    fn what_a_double_cannot_hold_is_refused() {
        for raw in ["1e400", "[-1e999]", r#""\ud800""#, "{} 1", ""] {
            assert!(value(raw).is_err(), "{raw}");
        }
        assert_eq!(
            value(" [1, -0, 1.5, 2e3] ").unwrap().to_string(),
            "[1,-0.0,1.5,2000.0]"
        );
    }

    proptest! {
        /// What is unambiguous means the same as to everybody else.
        #[test]
        fn unambiguous_text_reads_as_usual(raw in "[\\[\\]{}\":,a1 ]{0,24}") {
            if let Ok(value) = value(&raw) {
                prop_assert_eq!(value, serde_json::from_str::<Value>(&raw).unwrap());
            }
        }
    }
}
