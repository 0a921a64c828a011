//! A dry run of a question: each step with its verdict, what the person would be shown, what the server
//! would get. Whoever writes a policy learns what it does before a server asks.

use std::process::Stdio;

use tempfile::TempDir;
use tokio::io::AsyncWriteExt;
use tokio::process::Command;

use crate::support::token::sha256;
use crate::support::{Client, EVERYTHING, Server, Setup, json, within};

const FORM: &str = r#"{"message":"Which one?","requestedSchema":{"type":"object","properties":{
    "entity_name":{"type":"string","title":"Name of it"},"count":{"type":"integer","minimum":1},
    "kind":{"type":"string","enum":["place","person"]}},"required":["entity_name"]}}"#;
const NAME: &str = r#"{"message":"Who are you?","requestedSchema":{"type":"object","properties":{"name":{"type":"string"}},"required":["name"]}}"#;
const LOGIN: &str = r#"{"message":"Sign in","requestedSchema":{"type":"object","properties":{"password":{"type":"string"}}}}"#;
const NESTED: &str =
    r#"{"message":"?","requestedSchema":{"type":"object","properties":{"a":{"type":"object"}}}}"#;

/// A configuration and the files of a dry run.
struct Dry {
    folder: TempDir,
    arguments: Vec<String>,
}

/// What a dry run said.
struct Told {
    code: Option<i32>,
    out: String,
    err: String,
}

impl Dry {
    /// A question to `memory`, whose policy is this flow YAML.
    fn new(questions: &str, form: &str) -> Self {
        Self::of(
            &format!(
                "servers:\n  memory: {{ url: http://127.0.0.1:1/mcp, questions: {questions} }}\n"
            ),
            form,
        )
    }

    fn of(config: &str, form: &str) -> Self {
        let dry = Self {
            folder: tempfile::tempdir().unwrap(),
            arguments: Vec::new(),
        };
        let config = dry.file("gateway.yaml", config);
        let form = dry.file("form.json", form);
        dry.with("--config", &config)
            .with("--form", &form)
            .with("--server", "memory")
    }

    fn file(&self, name: &str, text: &str) -> String {
        let path = self.folder.path().join(name);
        std::fs::write(&path, text).unwrap();
        path.display().to_string()
    }

    /// One option more, or another value for one.
    fn with(mut self, option: &str, value: &str) -> Self {
        if let Some(at) = self.arguments.iter().position(|it| it == option) {
            value.clone_into(&mut self.arguments[at + 1]);
        } else {
            self.arguments.extend([option.to_owned(), value.to_owned()]);
        }
        self
    }

    fn headless(mut self) -> Self {
        self.arguments.push("--headless".to_owned());
        self
    }

    fn answer(self, answer: &str) -> Self {
        let path = self.file("answer.json", answer);
        self.with("--answer", &path)
    }

    async fn run(self) -> Told {
        self.run_with("").await
    }

    async fn run_with(self, input: &str) -> Told {
        let mut command = Command::new(env!("CARGO_BIN_EXE_contraflow"));
        command
            .arg("ask")
            .args(&self.arguments)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .kill_on_drop(true);
        let mut child = command.spawn().unwrap();
        let mut stdin = child.stdin.take().unwrap();
        // A command that does not read its input is none the worse for it.
        stdin.write_all(input.as_bytes()).await.ok();
        drop(stdin);
        let output = within("the dry run", child.wait_with_output())
            .await
            .unwrap();
        Told {
            code: output.status.code(),
            out: String::from_utf8(output.stdout).unwrap(),
            err: String::from_utf8(output.stderr).unwrap(),
        }
    }

    /// What a dry run says that must go well.
    async fn said(self) -> Told {
        let told = self.run().await;
        assert_eq!(told.code, Some(0), "{}{}", told.out, told.err);
        assert_eq!(told.err, "");
        told
    }
}

impl Told {
    /// Each step with its verdict, in the order of the lines.
    fn steps(&self) -> Vec<String> {
        let mut blocks = self.out.split("\n\n");
        let lines = blocks.nth(1).unwrap().lines();
        lines
            .map(|line| {
                let words: Vec<_> = line.split_whitespace().take(2).collect();
                words.join(" ")
            })
            .collect()
    }

    /// The line of a step.
    #[track_caller]
    fn line(&self, step: &str) -> &str {
        let found = self.out.lines().find(|line| {
            let line = line.trim_start();
            line.strip_prefix(step)
                .is_some_and(|rest| rest.starts_with(' '))
        });
        found.unwrap_or_else(|| panic!("no {step}: {}", self.out))
    }

    /// The JSON that the server gets.
    #[track_caller]
    fn gets(&self) -> serde_json::Value {
        assert!(self.out.contains("The server gets"), "{}", self.out);
        json::parse(self.out.lines().last().unwrap())
    }

    #[track_caller]
    fn says(&self, text: &str) {
        assert!(self.out.contains(text), "{text}: {}", self.out);
    }
}

fn hook(name: &str) -> String {
    format!("{}/config/hooks/{name}", env!("CARGO_MANIFEST_DIR"))
}

/// Without a word of the operator a form goes to its person, past every step in its order.
#[tokio::test]
async fn every_step_is_told_in_its_order() {
    let told = Dry::new("{}", FORM).with("--tool", "create_entities");
    let told = told.with("--principal", "mira").said().await;
    assert_eq!(
        told.steps(),
        [
            "mode pass",
            "secrets pass",
            "schema pass",
            "limits -",
            "rule -",
            "before -",
            "person -",
            "answer -",
            "after -"
        ]
    );
    told.says("memory asks mira by a form, in a call of create_entities\n");
    assert!(
        told.line("limits")
            .contains("not counted in a dry run: at most 8 in one call")
    );
    told.says(
        "The person is asked, and shown:\n\n  Which one?\n  - entity_name (Name of it): text, required\n  \
         - count: a whole number\n  - kind: one of place, person\n",
    );
    told.says("Without an answer within 300s the server gets:\n{\"action\":\"cancel\"}\n");
}

/// What the operator says of all questions of a kind comes first, and the rest is not reached.
#[tokio::test]
async fn the_mode_is_the_first_to_speak() {
    let declined = Dry::new("{ elicitation: { form: decline } }", FORM);
    let declined = declined.said().await;
    assert_eq!(declined.steps()[0], "mode decline");
    assert!(
        declined
            .line("mode")
            .contains("questions.elicitation.form is `decline`")
    );
    assert!(declined.line("secrets").contains("not reached"));
    assert_eq!(declined.gets()["action"], "decline");
    // The server never sees the ability, and gets what one gets that asks nevertheless.
    let refused = Dry::new("{ elicitation: refuse }", FORM).said().await;
    assert_eq!(refused.steps()[0], "mode refuse");
    assert_eq!(refused.gets()["code"], -32601);
    assert_eq!(refused.gets()["data"]["reason"], "undeclared");
    // What can be read in two ways has no kind.
    let twice = FORM.replacen('{', r#"{"mode":"form","mode":"url","#, 1);
    let twice = Dry::new("{}", &twice).said().await;
    assert!(
        twice.line("mode").ends_with("the mode is ambiguous"),
        "{}",
        twice.out
    );
    assert_eq!(twice.gets()["code"], -32602);
}

#[tokio::test]
async fn a_form_that_asks_for_a_password() {
    let refused = Dry::new("{}", LOGIN).said().await;
    assert_eq!(refused.steps()[1], "secrets refuse");
    assert!(refused.line("schema").contains("not reached"));
    assert_eq!(refused.gets()["code"], -32602);
    assert_eq!(refused.gets()["data"]["reason"], "secrets");
    let flagged = Dry::new("{ secrets: flag }", LOGIN).said().await;
    assert_eq!(flagged.steps()[1], "secrets flag");
    assert!(
        flagged
            .line("secrets")
            .contains("the field `password` asks for a password; the message warns of it")
    );
    flagged.says("shown:\n\n  Careful: the field `password` asks for a password.");
    let allowed = Dry::new("{ secrets: allow }", LOGIN).said().await;
    assert_eq!(allowed.steps()[1], "secrets -");
    assert!(allowed.line("secrets").contains("not looked for"));
}

#[tokio::test]
async fn a_form_outside_of_what_the_protocol_allows() {
    let lenient = Dry::new("{}", NESTED).said().await;
    assert_eq!(lenient.steps()[2], "schema flag");
    assert!(lenient.line("schema").contains("/properties/a"));
    let strict = Dry::new("{ schema: strict }", NESTED).said().await;
    assert_eq!(strict.steps()[2], "schema refuse");
    assert_eq!(strict.gets()["data"]["reason"], "schema");
}

#[tokio::test]
async fn a_url_that_is_not_allowed() {
    let url = |host: &str| {
        format!(
            r#"{{"mode":"url","elicitationId":"1","message":"Go on","url":"https://{host}/x"}}"#
        )
    };
    let policy = "{ urls: { hosts: [\"*.example.com\"] } }";
    let refused = Dry::new(policy, &url("login.evil.test")).said().await;
    assert_eq!(refused.steps()[..2], ["mode pass", "url refuse"]);
    assert!(
        refused
            .line("url")
            .contains("the host login.evil.test is not allowed")
    );
    assert_eq!(refused.gets()["data"]["reason"], "url");
    let passed = Dry::new(policy, &url("login.example.com")).said().await;
    assert_eq!(passed.steps()[1], "url pass");
    passed.says("shown:\n\n  Go on\n  - link: https://login.example.com/x\n");
    let odd = url("xn--lgin-5qa.example.com");
    let odd = Dry::new(policy, &odd).answer(r#"{"action":"accept"}"#);
    let odd = odd.said().await;
    assert_eq!(odd.steps()[1], "url flag");
    odd.says("letters that can look like others");
    assert_eq!(odd.gets()["action"], "accept");
}

/// Each rule that was looked at is told: why it did not fit, which one answered, and what it fills in.
#[tokio::test]
async fn the_rule_that_answers_is_told_by_its_name() {
    let rules = r#"{ rules: [
        { name: no deletes, when: 'tool == "delete_entities"', refuse: true },
        { when: 'arguments.missing == 1', refuse: true },
        { when: '"entity_name" in fields', accept: { count: 0 } },
        { name: entity defaults, when: '"entity_name" in fields', accept: { entity_name: auto, count: 3 } },
        { when: 'true', decline: true } ] }"#;
    let told = Dry::new(rules, FORM).with("--tool", "create_entities");
    let told = told.said().await;
    assert_eq!(
        told.steps()[4..],
        [
            "rule -",
            "rule failed",
            "rule failed",
            "rule accept",
            "rule -",
            "before -",
            "person -",
            "answer -",
            "after -"
        ]
    );
    for line in [
        "1 \"no deletes\": its condition does not hold",
        "2: No such key: missing",
        "3: it fills in what does not fit: entity_name is required; count must be at least 1",
        "4 \"entity defaults\": its condition holds",
        "1 more not looked at: the first that fits decides",
    ] {
        told.says(line);
    }
    assert!(told.line("before").contains("not reached"));
    let expected = json::parse(r#"{"action":"accept","content":{"entity_name":"auto","count":3}}"#);
    assert_eq!(told.gets(), expected);
}

/// Two rules may have one name: it is still the right one that is told to answer.
#[tokio::test]
async fn rules_of_the_same_name_are_told_apart() {
    let rules = r#"{ rules: [ { name: x, when: 'tool == "a"', refuse: true }, { name: x, when: 'true', cancel: true } ] }"#;
    let told = Dry::new(rules, FORM).said().await;
    told.says("rule      -         1 \"x\": its condition does not hold");
    told.says("rule      cancel    2 \"x\": its condition holds");
}

/// Rules see the call, the person and the client that are said on the command line.
#[tokio::test]
async fn rules_see_what_the_options_say() {
    let dry = |when: &str| {
        let rules = format!("{{ rules: [ {{ when: '{when}', decline: true }} ] }}");
        let dry = Dry::new(&rules, FORM);
        let arguments = dry.file("arguments.json", r#"{"n":2}"#);
        dry.with("--tool", "create_entities")
            .with("--arguments", &arguments)
            .with("--client", "ci")
            .with("--principal", "alice@https://login.example.com")
    };
    for when in [
        r#"server == "memory" && mode == "form" && message == "Which one?""#,
        r#"tool == "create_entities" && arguments.n == 2"#,
        r#"client.name == "ci" && !headless"#,
        r#"principal.subject == "alice" && principal.issuer == "https://login.example.com""#,
    ] {
        let told = dry(when).said().await;
        assert_eq!(told.gets()["action"], "decline", "{when}");
    }
    let headless = dry("headless").headless().said().await;
    assert_eq!(headless.gets()["action"], "decline");
}

#[tokio::test]
async fn a_hook_before_the_person_runs_for_real() {
    let hook = hook("auto-fill.sh");
    let config = format!(
        "servers: {{ booking: {{ url: http://127.0.0.1:1/mcp, questions: {{ hooks: {{ before: {{ command: [\"{hook}\"] }} }} }} }} }}"
    );
    let form = r#"{"message":"Who?","requestedSchema":{"type":"object","properties":{"guests":{"type":"integer"},"name":{"type":"string"}}}}"#;
    let booking = |tool| {
        let dry = Dry::of(&config, form);
        dry.with("--server", "booking").with("--tool", tool)
    };
    let filled = booking("book_table").said().await;
    assert_eq!(filled.steps()[5], "before accept");
    assert!(filled.line("before").contains(&hook));
    assert_eq!(filled.gets()["content"]["name"], "Front desk");
    let passed = booking("other").said().await;
    assert_eq!(passed.steps()[5], "before pass");
    passed.says("The person is asked");
}

/// A hook that blocks or fails says why, and `on_error` what becomes of it.
#[tokio::test]
async fn a_hook_that_blocks_or_fails() {
    let hook = |script: &str, on_error: &str| {
        let command = format!("[sh, -c, 'told=$(cat); {script}']");
        let before = format!("{{ command: {command}, on_error: {on_error} }}");
        Dry::new(&format!("{{ hooks: {{ before: {before} }} }}"), FORM)
    };
    let blocked = hook("echo not today >&2; exit 2", "ask");
    let blocked = blocked.said().await;
    assert_eq!(blocked.steps()[5], "before decline");
    assert!(blocked.line("before").ends_with("sh: not today"));
    assert_eq!(blocked.gets()["action"], "decline");
    let failed = hook("echo no disk >&2; exit 7", "ask").said().await;
    assert_eq!(failed.steps()[5..7], ["before failed", "person -"]);
    assert!(
        failed
            .line("before")
            .contains("no disk; it counts as no opinion")
    );
    let ended = hook("exit 7", "cancel").said().await;
    assert_eq!(ended.steps()[5..7], ["before failed", "before cancel"]);
    assert_eq!(ended.gets()["action"], "cancel");
    // It can see that nobody will be asked.
    let script = "case $told in *session*dry-run*) echo it is dry >&2; exit 2;; esac";
    let seen = hook(script, "ask").said().await;
    assert!(seen.line("before").ends_with("it is dry"), "{}", seen.out);
}

/// The way back: what a person answers is put right, checked, and shown to the hook after it.
#[tokio::test]
async fn answers_good_and_bad() {
    let hooks = format!(
        "{{ hooks: {{ after: {{ command: [\"{}\"] }} }} }}",
        hook("check-names.sh")
    );
    let answered = |answer: &str| Dry::new(&hooks, NAME).answer(answer);
    let good = answered(r#"{"action":"accept","content":{"name":"  Mira "}}"#);
    let good = good.said().await;
    assert_eq!(
        good.steps()[6..],
        ["person accept", "answer pass", "after accept"]
    );
    assert_eq!(good.gets()["content"]["name"], "Mira");
    let short = answered(r#"{"action":"accept","content":{"name":"M"}}"#);
    let short = short.said().await;
    assert_eq!(short.steps()[8], "after decline");
    assert_eq!(short.gets()["action"], "decline");
    let early = answered(r#"{"action":"reject","content":{}}"#);
    let early = early.said().await;
    assert_eq!(
        early.steps()[6..],
        ["person decline", "answer pass", "after pass"]
    );
    assert!(early.line("answer").contains("put as the protocol has it"));
    assert_eq!(early.gets(), json::parse(r#"{"action":"decline"}"#));
    for (answer, why) in [
        (r#"{"action":"accept"}"#, "name is required"),
        (
            r#"{"action":"accept","content":{"name":7,"x":1}}"#,
            "the answer has a field that nobody asked for; name must be text",
        ),
        (
            r#"{"action":"maybe"}"#,
            "the answer must have the action accept, decline or cancel",
        ),
        ("7", "the answer can't be read"),
    ] {
        let bad = answered(answer).said().await;
        assert_eq!(bad.steps()[6..], ["person -", "answer again", "after -"]);
        assert!(bad.line("answer").contains(why), "{}", bad.out);
        bad.says("The person is asked again, twice at most, and shown:\n\n  Who are you?\n");
        bad.says("Please answer again.");
        assert!(!bad.out.contains("The server gets"), "{}", bad.out);
    }
}

/// Where nobody can be asked, rules and hooks may answer; else the server gets what the file says.
#[tokio::test]
async fn nobody_sits_there() {
    let alone = Dry::new("{}", FORM).headless().said().await;
    assert_eq!(alone.steps()[0], "mode refuse");
    assert!(alone.line("mode").contains("nobody can answer"));
    assert_eq!(alone.gets()["code"], -32601);
    let declined = Dry::new("{ when_client_cannot: decline }", FORM);
    let declined = declined.headless().said().await;
    assert_eq!(
        declined.steps()[5..8],
        ["before -", "client decline", "person -"]
    );
    assert_eq!(declined.gets()["action"], "decline");
    let rule = "{ rules: [ { when: 'headless', accept: { entity_name: nightly } } ] }";
    let filled = Dry::new(rule, FORM).headless().said().await;
    assert_eq!(filled.gets()["content"]["entity_name"], "nightly");
}

/// A key of which the configuration says that nobody sits there needs no option.
#[tokio::test]
async fn the_key_of_a_program() {
    let config = format!(
        "servers: {{ memory: {{ url: http://127.0.0.1:1/mcp, questions: {{ when_client_cannot: cancel }} }} }}\n\
         auth: {{ api_keys: [ {{ name: ci, sha256: \"{}\", headless: true }}, {{ name: desk, sha256: \"{}\" }} ] }}\n",
        sha256("a"),
        sha256("b")
    );
    let by = |principal: &str| Dry::of(&config, FORM).with("--principal", principal);
    let ci = by("key:ci").said().await;
    assert_eq!(ci.gets()["action"], "cancel");
    ci.says("memory asks key:ci by a form; nobody sits there (headless)");
    by("key:desk").said().await.says("The person is asked");
}

/// A JSON Schema alone is a question without a word, and it may come through a pipe.
#[tokio::test]
async fn a_schema_alone() {
    let schema = r#" { "type":"object", "properties": { "name": { "type":"string" } } } "#;
    let told = Dry::new("{ label: true }", schema).said().await;
    told.says("shown:\n\n  [memory] \n  - name: text\n");
    let piped = Dry::new("{}", "{}").with("--form", "-");
    let piped = piped.run_with(schema).await;
    assert_eq!(piped.code, Some(0), "{}", piped.err);
    piped.says("- name: text\n");
}

/// What a server writes can't move the cursor of whoever reads it.
#[tokio::test]
async fn no_tricks_with_the_terminal() {
    let form = r#"{"message":"a\u001b[2Jb\u202e","requestedSchema":{"type":"object","properties":{"x\u001b[1A":{"type":"string"}}}}"#;
    let told = Dry::new("{}", form).answer(r#"{"action":"accept","content":{"x\u001b[1A":1}}"#);
    let told = told.said().await;
    assert!(
        !told.out.contains(['\u{1b}', '\u{202e}']),
        "{}",
        told.out.escape_debug()
    );
}

/// What can't be tried is a problem, told plainly.
#[tokio::test]
async fn what_can_not_be_tried() {
    let problem = async |dry: Dry, expected: &str| {
        let told = dry.run().await;
        assert_eq!(
            (told.code, told.out.as_str()),
            (Some(1), ""),
            "{}",
            told.err
        );
        assert!(told.err.starts_with("contraflow: "), "{}", told.err);
        assert!(told.err.contains(expected), "{expected}: {}", told.err);
    };
    problem(
        Dry::new("{ secrets: no }", FORM),
        "gateway.yaml:2:64: servers.memory.questions.secrets: `no` is not known; write `refuse`, `flag` or `allow`",
    )
    .await;
    let unknown = |name| Dry::new("{}", FORM).with("--server", name);
    problem(
        unknown("memroy"),
        "gateway.yaml has no server `memroy`; write `memory`, if that is meant",
    )
    .await;
    problem(
        unknown("x"),
        "gateway.yaml has no server `x`; it has `memory`",
    )
    .await;
    let nowhere = Dry::new("{}", FORM).with("--form", "/nowhere/form.json");
    problem(nowhere, "/nowhere/form.json can't be read: No such file").await;
    problem(
        Dry::new("{}", "{\n\"a\":}"),
        "form.json is not JSON: expected value at line 2 column 5",
    )
    .await;
    problem(Dry::new("{}", "[]"), "form.json is not a JSON object").await;
    problem(
        Dry::new("{}", r#"{"jsonrpc":"2.0","method":"elicitation/create"}"#),
        "form.json is no question: write the `params` of an `elicitation/create`",
    )
    .await;
    problem(Dry::new("{}", FORM).answer(""), "answer.json is not JSON").await;
    let list = Dry::new("{}", FORM);
    let path = list.file("arguments.json", "[]");
    problem(
        list.with("--arguments", &path),
        "arguments.json is not a JSON object",
    )
    .await;
}

/// Wrong usage is told apart from a problem.
#[tokio::test]
async fn what_is_not_said() {
    let output = crate::support::gateway::run(&["ask", "--server", "memory"]).await;
    assert_eq!(output.status.code(), Some(2));
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(
        said.contains("--config") && said.contains("--form"),
        "{said}"
    );
}

/// What a dry run says is what the gateway does.
#[tokio::test]
async fn the_gateway_does_the_same() {
    let policy = "{ rules: [ { when: '\"entity_name\" in fields', accept: { entity_name: auto } } ], secrets: refuse }";
    let server = Server::start().await;
    let more = format!("{{ questions: {policy} }}");
    let gateway = Setup::new()
        .server_with("memory", &server, &more)
        .start()
        .await;
    let session = Client::new(&gateway, "memory").open(EVERYTHING).await;
    for (number, form) in [FORM, LOGIN].iter().enumerate() {
        let call = session.start(json::call(&number.to_string(), "ask", "{}"));
        let stream = server.called("ask").await.stream();
        let id = format!("\"q-{number}\"");
        // One event is one line.
        let params = json::parse(form).to_string();
        stream
            .send(&json::request(&id, "elicitation/create", &params))
            .await;
        let answer = json::parse(&server.answer_to(&id).await);
        let told = Dry::new(policy, form).said().await.gets();
        let got = answer.get("result").or_else(|| answer.get("error"));
        assert_eq!(got, Some(&told), "{form}");
        stream.result(&json::text_result("done")).await;
        call.await.unwrap().next().await;
    }
}

/// Nothing of a dry run is on the record: it did not happen.
#[tokio::test]
async fn nothing_is_recorded() {
    let folder = tempfile::tempdir().unwrap();
    let log = folder.path().join("audit.jsonl");
    let config = format!(
        "servers: {{ memory: {{ url: http://127.0.0.1:1/mcp }} }}\naudit: {{ file: \"{}\" }}\n",
        log.display()
    );
    let dry = Dry::of(&config, FORM).answer(r#"{"action":"cancel"}"#);
    assert_eq!(dry.said().await.gets()["action"], "cancel");
    assert!(!log.exists());
}

/// The page about questions shows what the command says of the rules that it shows.
#[tokio::test]
async fn the_page_shows_what_the_command_says() {
    let page = format!("{}/docs/questions.md", env!("CARGO_MANIFEST_DIR"));
    let page = std::fs::read_to_string(page).unwrap();
    let block = |kind: &str, word: &str| {
        let fence = format!("```{kind}\n");
        let mut blocks = page.split(fence.as_str()).skip(1);
        let block = blocks.find_map(|rest| {
            let block = rest.split("```").next().unwrap();
            block.contains(word).then(|| block.to_owned())
        });
        block.unwrap_or_else(|| panic!("no {kind} with {word}"))
    };
    let form = r#"{"message":"Which one?","requestedSchema":{"type":"object","properties":{"entity_name":{"type":"string"},"keep":{"type":"boolean"}},"required":["entity_name"]}}"#;
    let dry = Dry::of(&block("yaml", "no deletes"), form).with("--tool", "create_entities");
    assert_eq!(dry.said().await.out, block("text", "memory asks local"));
}
