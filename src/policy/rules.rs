//! The rules of a server: the first that fits answers.

use serde_json::{Map, Value, json};

use super::form::{Field, Kind as FieldKind};
use super::known::Known;
use super::question::{Kind, Question};
use super::verdict::{By, Refusal, Said, Step, Verdict};
use super::{Case, Policy, joined};
use crate::config::questions::{Rule, Then};

/// Bytes of arguments that conditions are told of; of more they are told nothing.
const MAX_ARGUMENTS: usize = 64 * 1024;

/// What the rules say: the steps on the way to it, and a verdict where one had a say.
pub(super) fn first(
    rules: &[Rule],
    question: &Question<'_>,
    kind: Kind,
    form: Option<&Known>,
) -> (Vec<Step>, Option<Verdict>) {
    let mut steps = Vec::new();
    if rules.is_empty() {
        return (steps, None);
    }
    let facts = facts(question, kind, form);
    for (number, rule) in rules.iter().enumerate() {
        let name = rule.name.clone();
        let by = By::Rule(name.unwrap_or_else(|| format!("{}", number + 1)));
        let holds = match rule.when.holds(&facts) {
            Ok(holds) => holds,
            Err(why) => {
                tracing::warn!(
                    server = question.server,
                    rule = by.name(),
                    why,
                    "a rule could not be judged"
                );
                steps.push(Step::new(by, Said::Failed).because(why));
                continue;
            }
        };
        if !holds {
            continue;
        }
        let verdict = match &rule.then {
            Then::Pass => {
                steps.push(Step::new(by, Said::Pass));
                return (steps, None);
            }
            Then::Decline if kind.is_elicitation() => Verdict::Decline,
            Then::Cancel if kind.is_elicitation() => Verdict::Cancel,
            Then::Accept(fields) if kind.is_elicitation() => match accept(fields, form) {
                Ok(verdict) => verdict,
                Err(why) => {
                    tracing::warn!(
                        server = question.server,
                        rule = by.name(),
                        why,
                        "a rule fills in what does not fit"
                    );
                    let why = format!("it fills in what does not fit: {why}");
                    steps.push(Step::new(by, Said::Failed).because(why));
                    continue;
                }
            },
            // Sampling and roots have no word for it.
            _ => Verdict::Refuse(Refusal::denied("the operator does not allow this question")),
        };
        steps.push(Step::new(by, verdict.said()));
        return (steps, Some(verdict));
    }
    (steps, None)
}

impl Policy {
    /// Whether the condition of each rule holds, or why that can't be told. Steps say nothing of rules
    /// that do not fit, and whoever wrote one wants to know.
    pub fn fitting_rules(&self, question: &Question<'_>, case: &Case) -> Vec<Result<bool, String>> {
        let facts = facts(question, case.kind, case.form.as_deref());
        let rules = self.config.rules.iter();
        rules.map(|rule| rule.when.holds(&facts)).collect()
    }
}

/// The content that a rule fills in, where it fits the form as a person's would have to.
fn accept(fields: &Map<String, Value>, form: Option<&Known>) -> Result<Verdict, String> {
    let Some(form) = form else {
        return Ok(Verdict::Accept(None));
    };
    let filled: Map<_, _> = fields
        .iter()
        .map(|(name, value)| {
            let kind = form.form.field(name).map(|field| field.kind);
            (name.clone(), as_kind(value, kind))
        })
        .collect();
    let content = Value::Object(filled).to_string();
    form.check(&content).map_err(|faults| joined(&faults))?;
    Ok(Verdict::Accept(Some(content)))
}

/// What a text of the configuration is in a field of this kind.
fn as_kind(value: &Value, kind: Option<FieldKind>) -> Value {
    let (Some(kind), Value::String(text)) = (kind, value) else {
        return value.clone();
    };
    let typed = match kind {
        FieldKind::Number | FieldKind::Integer => text
            .parse()
            .ok()
            .map(|number: serde_json::Number| Value::Number(number)),
        FieldKind::Boolean => text.parse().ok().map(Value::Bool),
        FieldKind::MultiSelect => Some(json!([text])),
        _ => None,
    };
    typed.unwrap_or_else(|| value.clone())
}

/// What conditions are told.
fn facts(question: &Question<'_>, kind: Kind, form: Option<&Known>) -> Map<String, Value> {
    let arguments = question
        .arguments
        .filter(|arguments| arguments.len() <= MAX_ARGUMENTS)
        .and_then(|arguments| serde_json::from_str(arguments).ok())
        .filter(Value::is_object);
    let fields = form
        .map_or(&[] as &[Field], |known| known.form.fields())
        .iter();
    let fields: Vec<_> = fields.map(|field| field.name.as_str()).collect();
    let person = &question.person;
    let facts = json!({
        "server": question.server,
        "tool": question.tool.unwrap_or_default(),
        "arguments": arguments.unwrap_or_else(|| json!({})),
        "message": question.message(),
        "mode": kind.name(),
        "fields": fields,
        "principal": {
            "name": person.name,
            "issuer": person.issuer,
            "subject": person.subject,
            "client_id": person.oauth_client,
        },
        "client": { "name": person.client.0, "version": person.client.1 },
        "headless": person.headless,
    });
    match facts {
        Value::Object(facts) => facts,
        _ => Map::new(),
    }
}
