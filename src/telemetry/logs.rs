//! Log lines on standard error, for the person who runs the gateway.
//!
//! # Invariants
//! - Standard output stays free for what a command prints.
//! - Colours only on a terminal: a log collector gets plain text.

use std::io::IsTerminal;

use tracing_subscriber::EnvFilter;
use tracing_subscriber::util::SubscriberInitExt;

/// How log lines look.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum LogFormat {
    /// For eyes.
    #[default]
    Text,
    /// One JSON object a line.
    Json,
}

impl LogFormat {
    /// What `CONTRAFLOW_LOG_FORMAT` says: `json` or `text`, which is also what nothing means.
    ///
    /// # Errors
    /// [`LogError::Format`] for anything else.
    pub fn from_env() -> Result<Self, LogError> {
        Self::named(&std::env::var("CONTRAFLOW_LOG_FORMAT").unwrap_or_default())
    }

    fn named(name: &str) -> Result<Self, LogError> {
        match name.trim() {
            "json" => Ok(Self::Json),
            "" | "text" => Ok(Self::Text),
            other => Err(LogError::Format(other.to_owned())),
        }
    }
}

/// Why there are no logs.
#[derive(Debug, thiserror::Error)]
pub enum LogError {
    /// The filter in the environment can't be read.
    #[error("{variable} is no log filter")]
    Filter {
        /// The variable that holds it.
        variable: &'static str,
        /// What is wrong with it.
        source: tracing_subscriber::filter::ParseError,
    },
    /// The format in the environment is none.
    #[error("CONTRAFLOW_LOG_FORMAT is {0:?}: write `text` or `json`")]
    Format(String),
    /// Logs were started before in this process.
    #[error("logs are already on")]
    AlreadyOn,
}

/// Starts log lines for the whole process, on standard error.
///
/// `CONTRAFLOW_LOG`, else `RUST_LOG`, says which: `debug`, `warn`, `info,contraflow::auth=debug`.
/// Without either, or with an empty one, `info`.
pub fn init_logs(format: LogFormat) -> Result<(), LogError> {
    let builder = tracing_subscriber::fmt()
        .with_writer(std::io::stderr)
        .with_ansi(std::io::stderr().is_terminal())
        .with_env_filter(filter(|name| std::env::var(name).ok())?);
    match format {
        LogFormat::Text => builder.finish().try_init(),
        LogFormat::Json => builder.json().finish().try_init(),
    }
    .map_err(|_| LogError::AlreadyOn)
}

/// The filter that the environment names.
fn filter(variable: impl Fn(&str) -> Option<String>) -> Result<EnvFilter, LogError> {
    for name in ["CONTRAFLOW_LOG", "RUST_LOG"] {
        if let Some(text) = variable(name).filter(|text| !text.trim().is_empty()) {
            return EnvFilter::try_new(text).map_err(|source| LogError::Filter {
                variable: name,
                source,
            });
        }
    }
    Ok(EnvFilter::new("info"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::telemetry::Causes;

    #[test]
    fn a_format_is_text_or_json_and_a_slip_is_told() {
        for (name, format) in [("", "Text"), ("text", "Text"), ("json", "Json")] {
            assert_eq!(format!("{:?}", LogFormat::named(name).unwrap()), format);
        }
        let error = LogFormat::named("jsno").unwrap_err().to_string();
        assert_eq!(
            error,
            "CONTRAFLOW_LOG_FORMAT is \"jsno\": write `text` or `json`"
        );
    }

    fn chosen(environment: &[(&str, &str)]) -> String {
        filter(|name| {
            environment
                .iter()
                .find(|(key, _)| *key == name)
                .map(|(_, value)| (*value).to_owned())
        })
        .map_or_else(
            |error| Causes(&error).to_string(),
            |filter| filter.to_string(),
        )
    }

    #[test]
    fn the_own_variable_wins_over_the_common_one_and_info_is_the_default() {
        assert_eq!(chosen(&[]), "info");
        assert_eq!(chosen(&[("RUST_LOG", "warn")]), "warn");
        assert_eq!(
            chosen(&[("RUST_LOG", "warn"), ("CONTRAFLOW_LOG", "debug")]),
            "debug"
        );
        assert_eq!(
            chosen(&[("RUST_LOG", "warn"), ("CONTRAFLOW_LOG", " ")]),
            "warn"
        );
    }

    #[test]
    fn a_filter_that_cannot_be_read_is_an_error_that_names_the_variable() {
        let text = chosen(&[("CONTRAFLOW_LOG", "contraflow=loud=very")]);
        assert!(
            text.starts_with("CONTRAFLOW_LOG is no log filter: "),
            "{text}"
        );
    }
}
