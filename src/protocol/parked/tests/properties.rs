//! What holds in whatever order things happen, at whatever times.

use proptest::prelude::*;
use proptest::sample::Index;

use super::*;

const KINDS: [Asks; 5] = [FORM, URL, SAMPLING, ROOTS, UNHEARD_OF];
const KINDS_OF_CLIENT: [ClientCapabilities; 3] = [EVERYTHING, FORMS_ONLY, NOTHING];

/// Answers that are none, to whatever question.
const MALFORMED: [&str; 4] = [
    "[]",
    "{}",
    r#"{"result":{"action":"accept"}}"#,
    r#"{"action":"ACCEPT","roots":{},"role":"user"}"#,
];

#[derive(Clone, Debug)]
enum Step {
    Ask(Asks),
    /// One of the questions so far, whether or not it is still open.
    Withdraw(Index),
    Progress,
    Log,
    Outcome,
    /// The server ends its request with addresses.
    Addresses,
    /// A person is done at one.
    Visited,
    Gone,
    End,
    /// The timer goes off, early or late.
    Timer,
    Retry(Returns),
}

#[derive(Clone, Debug)]
struct Returns {
    /// The round that it answers, counted from the last.
    behind: u32,
    capabilities: ClientCapabilities,
    /// To which of the keys so far; none is a key that never was.
    answers: Vec<(Option<Index>, Says)>,
}

#[derive(Clone, Debug)]
enum Says {
    Fitting,
    No,
    Malformed(Index),
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        12 => proptest::sample::select(&KINDS[..]).prop_map(Step::Ask),
        4 => any::<Index>().prop_map(Step::Withdraw),
        4 => Just(Step::Progress),
        4 => Just(Step::Log),
        1 => Just(Step::Outcome),
        4 => Just(Step::Addresses),
        2 => Just(Step::Visited),
        1 => Just(Step::Gone),
        1 => Just(Step::End),
        12 => Just(Step::Timer),
        16 => returns().prop_map(Step::Retry),
    ]
}

fn returns() -> impl Strategy<Value = Returns> {
    let behind = prop_oneof![6 => Just(0), 1 => 1..3_u32];
    let client =
        prop_oneof![3 => Just(EVERYTHING), 2 => proptest::sample::select(&KINDS_OF_CLIENT[..])];
    let key = prop_oneof![8 => any::<Index>().prop_map(Some), 1 => Just(None)];
    let says = prop_oneof![
        12 => Just(Says::Fitting),
        6 => Just(Says::No),
        1 => any::<Index>().prop_map(Says::Malformed),
    ];
    let answers = proptest::collection::vec((key, says), 0..4);
    (behind, client, answers).prop_map(|(behind, capabilities, answers)| Returns {
        behind,
        capabilities,
        answers,
    })
}

/// How much time passes before a step, in milliseconds.
fn pause() -> impl Strategy<Value = u64> {
    prop_oneof![4 => Just(0), 8 => 1..60_u64, 4 => Just(250), 2 => 1_000..60_000_u64, 1 => Just(600_000)]
}

/// Plays a server, its session and many clients, and watches what comes out.
struct Judge {
    call: Call,
    /// From here each question is taken once, when it is answered or withdrawn.
    book: Session,
    now: Instant,
    limits: Limits,
    /// What the attached client declared.
    capabilities: ClientCapabilities,
    asked: Vec<QuestionId>,
    keys: Vec<(String, QuestionId)>,
    round: u32,
    shown: Vec<String>,
    told: u32,
    progress: u32,
    log: u32,
    /// Whether the server has the call.
    in_flight: bool,
    done: bool,
}

/// What made the machine speak.
#[derive(Clone, Copy)]
enum Cause<'a> {
    Question,
    Retry(&'a [(String, &'a str)]),
    Other,
}

impl Judge {
    fn new(capabilities: ClientCapabilities, rounds: u32) -> Self {
        let limits = Limits {
            rounds,
            ..Limits::default()
        };
        Self {
            call: Call::new(limits, capabilities),
            book: Session::new(EVERYTHING),
            now: Instant::now(),
            limits,
            capabilities,
            asked: Vec::new(),
            keys: Vec::new(),
            round: 0,
            shown: Vec::new(),
            told: 0,
            progress: 0,
            log: 0,
            in_flight: true,
            done: false,
        }
    }

    fn play(&mut self, pause: u64, step: &Step) {
        self.now += Duration::from_millis(pause);
        match step {
            Step::Ask(asks) => {
                let message = question(*asks);
                let id = self.book.ask(self.now, None, &message).unwrap();
                self.asked.push(id);
                self.hear(Input::Question(id, &message), Cause::Question);
            }
            Step::Withdraw(index) => {
                if !self.asked.is_empty() {
                    let id = *index.get(&self.asked);
                    self.book.give_up(self.now, id);
                    self.hear(Input::Withdrawn(id), Cause::Other);
                }
            }
            Step::Progress => {
                let notice = self.notice('p');
                self.hear(Input::Progress(notice), Cause::Other);
            }
            Step::Log => {
                let notice = self.notice('l');
                self.hear(Input::Log(notice), Cause::Other);
            }
            Step::Outcome => self.conclude(response("result")),
            Step::Addresses => self.conclude(addresses(&["a"])),
            Step::Visited => self.hear(Input::Visited("a"), Cause::Other),
            Step::Gone => self.hear(Input::Gone, Cause::Other),
            Step::End => self.hear(Input::End, Cause::Other),
            Step::Timer => self.timer(),
            Step::Retry(returns) => self.come_back(returns),
        }
    }

    fn notice(&mut self, kind: char) -> Bytes {
        self.told += 1;
        format!("{kind}{}", self.told).into()
    }

    fn conclude(&mut self, response: Message) {
        self.in_flight = false;
        self.hear(Input::Outcome(response), Cause::Other);
    }

    fn hear(&mut self, input: Input<'_>, cause: Cause<'_>) {
        let before = self.call.state();
        let outputs = self.call.handle(self.now, input);
        self.watch(before, cause, outputs);
    }

    fn timer(&mut self) {
        let (before, picture) = (self.call.state(), format!("{:?}", self.call));
        let is_due = self.call.deadline().is_some_and(|due| due <= self.now);
        let outputs = self.call.handle_timeout(self.now);
        if !is_due {
            assert_eq!((outputs.len(), format!("{:?}", self.call)), (0, picture));
            return;
        }
        self.watch(before, Cause::Other, outputs);
    }

    fn come_back(&mut self, returns: &Returns) {
        let answers: Vec<_> = returns
            .answers
            .iter()
            .map(|(key, says)| self.answer(*key, says))
            .collect();
        let retry = Retry {
            round: self.round.saturating_sub(returns.behind),
            capabilities: returns.capabilities,
            answers: answers.clone(),
        };
        let (before, picture) = (self.call.state(), format!("{:?}", self.call));
        let in_time = self.call.deadline().is_some_and(|due| self.now < due);
        let is_away = matches!(before, State::Parked | State::ParkedDone | State::Visiting);
        let fits = is_away && in_time && retry.round == self.round;
        let open: Vec<_> = answers
            .iter()
            .filter(|(key, _)| self.is_open(key))
            .collect();
        let is_malformed = if before == State::Visiting {
            // Each address wants an answer, and one that says yes or no.
            let mut given = answers.iter().filter(|(key, _)| key == "u1");
            let fitting = given.next().is_some_and(|(_, it)| !MALFORMED.contains(it));
            !fitting || given.next().is_some()
        } else {
            open.iter().enumerate().any(|(at, (key, answer))| {
                MALFORMED.contains(answer) || open[..at].iter().any(|(other, _)| other == key)
            })
        };
        match self.call.retry(self.now, &retry) {
            Ok(outputs) => {
                assert!(fits && !is_malformed);
                let open: Vec<_> = open.iter().map(|(key, _)| self.question(key)).collect();
                self.capabilities = returns.capabilities;
                self.watch(before, Cause::Retry(&answers), outputs);
                assert!(open.iter().all(|id| !self.book.is_open(*id)));
                assert!(matches!(
                    (before, self.call.state()),
                    (_, State::Running | State::Delivered) | (State::ParkedDone, State::Visiting)
                ));
            }
            Err(rejected) => {
                match rejected {
                    Rejected::State(..) => assert!(!fits),
                    Rejected::Answer(_) => assert!(fits && is_malformed),
                    _ => panic!("{rejected}"),
                }
                assert_eq!(format!("{:?}", self.call), picture);
            }
        }
    }

    fn answer(&self, key: Option<Index>, says: &Says) -> (String, &'static str) {
        if self.call.state() == State::Visiting {
            let key = if key.is_some() { "u1" } else { "never" };
            let answer = match says {
                Says::Malformed(index) => index.get(&MALFORMED),
                Says::No => DECLINE,
                Says::Fitting => ACCEPT,
            };
            return (key.to_owned(), answer);
        }
        let key = match key.filter(|_| !self.keys.is_empty()) {
            Some(index) => index.get(&self.keys).0.clone(),
            None => "never".to_owned(),
        };
        let answer = match (says, key.chars().next()) {
            (Says::Malformed(index), _) => index.get(&MALFORMED),
            (_, Some('s')) => SAMPLE,
            (_, Some('r')) => FILES,
            (Says::No, _) => DECLINE,
            (Says::Fitting, _) => ACCEPT,
        };
        (key, answer)
    }

    fn question(&self, key: &str) -> QuestionId {
        self.keys.iter().find(|(it, _)| it == key).unwrap().1
    }

    /// Whether the client was asked this in the last round, and the server still waits for it.
    fn is_open(&self, key: &str) -> bool {
        self.shown.iter().any(|it| it == key) && self.book.is_open(self.question(key))
    }

    /// What came out, in the light of what was before.
    fn watch(&mut self, before: State, cause: Cause<'_>, outputs: Vec<Output>) {
        let was_over = matches!(before, State::Delivered | State::Aborted);
        let is_attached = before == State::Running || matches!(cause, Cause::Retry(_));
        let last = outputs.len().saturating_sub(1);
        if was_over {
            assert_eq!(outputs.len(), usize::from(matches!(cause, Cause::Question)));
        }
        for (at, output) in outputs.into_iter().enumerate() {
            match output {
                Output::Forward(notice) => {
                    assert!(is_attached && !was_over);
                    self.listen(&notice);
                }
                Output::Round(round, asked) => {
                    assert!(is_attached && !was_over && at == last);
                    assert_eq!(self.call.state(), State::Parked);
                    self.see(round, &asked);
                }
                Output::Visits(round, visits) => {
                    assert!(is_attached && !was_over && at == last && !self.in_flight);
                    assert!(self.capabilities.url && !self.book.is_busy());
                    assert_eq!(self.call.state(), State::Visiting);
                    assert_eq!((round, visits.len()), (self.round + 1, 1));
                    assert!(round <= self.limits.rounds);
                    self.round = round;
                    self.shown.clear();
                }
                Output::Again => {
                    assert!(!self.in_flight && !was_over);
                    assert_eq!(self.call.state(), State::Running);
                    self.in_flight = true;
                }
                Output::Done(_) | Output::Declined | Output::Undeclared(_) => {
                    assert!(is_attached && !was_over && at == last && !self.done);
                    assert_eq!(self.call.state(), State::Delivered);
                    self.done = true;
                }
                Output::Answer(id, posted) => {
                    let Cause::Retry(answers) = cause else {
                        panic!("nobody answered")
                    };
                    let given = answers
                        .iter()
                        .find(|(key, _)| self.is_open(key) && self.question(key) == id);
                    assert_eq!(given.unwrap().1, posted);
                    self.leave(id);
                }
                Output::Dismiss(id) | Output::Refuse(id, ..) => self.leave(id),
                Output::Cancel => {
                    assert!(!was_over && at == 0 && self.in_flight);
                    assert_eq!(self.call.state(), State::Aborted);
                    self.in_flight = false;
                }
            }
        }
        self.look();
    }

    /// A question leaves, and it can do so once.
    fn leave(&mut self, id: QuestionId) {
        assert!(self.book.give_up(self.now, id).is_some());
    }

    /// Progress only rises, and logs come in their order.
    fn listen(&mut self, notice: &Bytes) {
        let (kind, number) = std::str::from_utf8(notice).unwrap().split_at(1);
        let number: u32 = number.parse().unwrap();
        let last = match kind {
            "p" => &mut self.progress,
            _ => &mut self.log,
        };
        assert!(number > std::mem::replace(last, number));
    }

    /// The client is asked, in a new round, all that is open; each question under the key that it
    /// always had, and nothing that the client can't be asked.
    fn see(&mut self, round: u32, asked: &[Asked]) {
        assert_eq!(round, self.round + 1);
        assert!(round <= self.limits.rounds);
        self.round = round;
        for it in asked {
            assert!(self.capabilities.allow(&it.message).is_ok());
            if let Some((_, id)) = self.keys.iter().find(|(key, _)| *key == it.key) {
                assert_eq!(*id, it.id);
            } else {
                assert!(self.keys.iter().all(|(_, id)| *id != it.id));
                self.keys.push((it.key.clone(), it.id));
            }
        }
        let open = self.asked.iter().filter(|id| self.book.is_open(**id));
        let shown: Vec<_> = asked.iter().map(|it| it.id).collect();
        assert_eq!(shown, open.copied().collect::<Vec<_>>());
        self.shown = asked.iter().map(|it| it.key.clone()).collect();
    }

    /// What holds between two events.
    fn look(&self) {
        let due = self.call.deadline();
        assert_eq!(self.call.is_in_flight(), self.in_flight);
        match self.call.state() {
            State::Running => assert!(due.is_some() || !self.book.is_busy()),
            State::Parked => assert!(due.is_some_and(|due| due <= self.now + self.limits.park)),
            State::ParkedDone | State::Visiting => {
                assert!(due.is_some_and(|due| due <= self.now + self.limits.park));
                assert!(!self.book.is_busy());
            }
            State::Delivered | State::Aborted => {
                assert!(due.is_none() && self.call.is_over() && !self.book.is_busy());
            }
        }
    }
}

proptest! {
    /// Every question leaves once or was withdrawn, never both; keys and rounds are never used again;
    /// a retry that is refused changes nothing; nothing is told to a client that is away, or after
    /// the outcome; the call is never at the server twice, and cancelled only while it is there;
    /// cancelling comes first; and when nobody comes back, time ends the call.
    #[test]
    fn whatever_happens_in_whatever_order(
        client in proptest::sample::select(&KINDS_OF_CLIENT[..2]),
        rounds in 0..6_u32,
        steps in proptest::collection::vec((pause(), step()), 0..120),
    ) {
        let mut judge = Judge::new(client, rounds);
        for (pause, step) in &steps {
            judge.play(*pause, step);
        }
        // At most the window of a round, or the pause before the call is made again, and the time to answer.
        for _ in 0..2 {
            if let Some(due) = judge.call.deadline() {
                judge.now = judge.now.max(due);
                judge.timer();
            }
        }
        prop_assert_eq!(judge.call.deadline(), None);
        if !judge.call.is_over() {
            // Its client still waits for the outcome.
            prop_assert_eq!(judge.call.state(), State::Running);
            judge.conclude(response("result"));
            prop_assert!(judge.done);
        }
        prop_assert!(judge.call.is_over() && !judge.book.is_busy());
    }
}
