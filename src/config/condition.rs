//! A condition of a rule, in the Common Expression Language (CEL). The only place that knows the language.
//!
//! # Invariants
//! - A condition comes out of the configuration, never out of a request, and is bounded in size.
//! - It is read once. Whether it holds is a function of the facts: no clock, no network, no files.

use std::fmt;
use std::sync::Arc;

use cel::common::ast::{EntryExpr, Expr, MapExpr, StructExpr};
use cel::{Context, Env, IdedExpr, Program, Value};

use super::read::Fault;

/// Bytes of the longest condition.
const LONGEST: usize = 4096;

/// What a condition may name.
pub const NAMES: [&str; 9] = [
    "server",
    "tool",
    "arguments",
    "message",
    "mode",
    "fields",
    "principal",
    "client",
    "headless",
];

/// A condition that was read.
#[derive(Clone)]
pub struct Condition {
    text: Arc<str>,
    program: Arc<Program>,
}

const USUAL: &str = "write a CEL expression that is true or false, as `tool == \"create_entities\"`; it may \
                     name server, tool, arguments, message, mode, fields, principal, client and headless";

impl Condition {
    /// Reads a condition.
    ///
    /// # Errors
    /// When it is no expression, or names what no condition can know.
    pub(super) fn read(text: &str) -> Result<Self, Fault> {
        if text.trim().is_empty() {
            return Err(Fault::new("is no condition", USUAL));
        }
        if text.len() > LONGEST {
            return Err(Fault::new(
                "is longer than 4096 bytes",
                "make several rules of it",
            ));
        }
        let program =
            Program::compile(text).map_err(|_| Fault::new("is not an expression of CEL", USUAL))?;
        if !names_what_is_known(program.expression(), &NAMES) {
            return Err(Fault::new("names something that is not known", USUAL));
        }
        Ok(Self {
            text: text.into(),
            program: Arc::new(program),
        })
    }

    /// Whether it holds for these facts: the members of an object with the names of [`NAMES`].
    ///
    /// # Errors
    /// When it can't be told, as with a comparison of a number and a text; the reason, in words.
    pub fn holds(
        &self,
        facts: &serde_json::Map<String, serde_json::Value>,
    ) -> Result<bool, String> {
        let mut context = Context::with_env(Arc::new(Env::stdlib()));
        for (name, value) in facts {
            let value = cel::to_value(value).map_err(|error| error.to_string())?;
            context.add_variable_from_value(name.clone(), value);
        }
        match self.program.execute(&context) {
            Ok(Value::Bool(holds)) => Ok(holds),
            Ok(_) => Err("it is neither true nor false".to_owned()),
            Err(error) => Err(error.to_string()),
        }
    }
}

/// Whether an expression names these things only. A macro as `exists(f, …)` names one more within itself.
fn names_what_is_known(expression: &IdedExpr, known: &[&str]) -> bool {
    let all = |parts: &[IdedExpr]| parts.iter().all(|it| names_what_is_known(it, known));
    match &expression.expr {
        Expr::Unspecified | Expr::Literal(_) => true,
        Expr::Ident(name) => known.contains(&name.as_str()),
        Expr::Select(select) => names_what_is_known(&select.operand, known),
        Expr::List(list) => all(&list.elements),
        Expr::Call(call) => {
            let target = call.target.as_deref();
            target.is_none_or(|it| names_what_is_known(it, known)) && all(&call.args)
        }
        Expr::Map(MapExpr { entries }) | Expr::Struct(StructExpr { entries, .. }) => {
            entries.iter().all(|entry| match &entry.expr {
                EntryExpr::StructField(field) => names_what_is_known(&field.value, known),
                EntryExpr::MapEntry(entry) => {
                    names_what_is_known(&entry.key, known)
                        && names_what_is_known(&entry.value, known)
                }
            })
        }
        Expr::Comprehension(macros) => {
            let own = [
                Some(&macros.iter_var),
                macros.iter_var2.as_ref(),
                Some(&macros.accu_var),
            ];
            let own = own.into_iter().flatten().map(String::as_str);
            let within: Vec<_> = known.iter().copied().chain(own).collect();
            let inner = [&macros.loop_cond, &macros.loop_step, &macros.result];
            let outer = [&macros.iter_range, &macros.accu_init];
            outer.iter().all(|it| names_what_is_known(it, known))
                && inner.iter().all(|it| names_what_is_known(it, &within))
        }
    }
}

/// As it is written.
impl fmt::Display for Condition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl fmt::Debug for Condition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Condition({:?})", &*self.text)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn holds(condition: &str) -> Result<bool, String> {
        let facts = json!({
            "server": "memory", "tool": "create_entities", "arguments": { "n": 2, "list": ["a"] },
            "message": "Which name?", "mode": "form", "fields": ["entity_name", "description"],
            "principal": { "subject": "mira", "issuer": "https://login.example.com" },
            "client": { "name": "ci", "version": "1" }, "headless": false,
        });
        let condition = Condition::read(condition).unwrap_or_else(|fault| panic!("{fault:?}"));
        condition.holds(facts.as_object().unwrap())
    }

    #[test]
    fn a_condition_holds_or_does_not() {
        let table = [
            (
                r#"tool == "create_entities" && "entity_name" in fields"#,
                true,
            ),
            (r#"client.name == "ci""#, true),
            (r#"client.name == "ci" && headless"#, false),
            (r#"principal.subject.startsWith("mi")"#, true),
            (r#"message.matches("(?i)WHICH .*")"#, true),
            ("arguments.n > 1", true),
            ("size(fields) == 2 && !headless", true),
            (r#"fields.exists(f, f.endsWith("name"))"#, true),
            ("has(arguments.m) && arguments.m == 1", false),
            (r#"server in ["a", "b"] || mode == "url""#, false),
        ];
        for (condition, expected) in table {
            assert_eq!(holds(condition), Ok(expected), "{condition}");
        }
    }

    #[test]
    fn what_can_not_be_told_is_no_no() {
        for condition in [
            "arguments.m == 1",
            "tool",
            "arguments.n",
            r#"arguments.n > "x""#,
        ] {
            assert!(holds(condition).is_err(), "{condition}");
        }
    }

    #[test]
    fn what_is_no_condition_is_a_problem_of_the_file() {
        let long = "a".repeat(LONGEST + 1);
        for text in [
            "",
            " ",
            "tool ==",
            "tools == \"x\"",
            "a.b.c",
            "=",
            "fields.exists(f, g == f)",
            &long,
        ] {
            assert!(Condition::read(text).is_err(), "{text}");
        }
    }
}
