//! How long a call has been at work, and when that is too long. The time in which a person thinks is not the
//! call's, whichever limit it is.

use std::time::{Duration, Instant};

/// How long a server may take.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Patience {
    /// Until its answer begins.
    pub headers: Duration,
    /// Between two messages of its answer.
    pub idle: Duration,
    /// In all.
    pub call: Duration,
}

/// What a server took too long for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Late {
    /// To answer, or to begin to.
    Answer(Duration),
    /// To say anything more.
    Word(Duration),
}

/// When a call is late.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Due {
    /// It is.
    Over(Late),
    /// Not before so long.
    In(Duration),
    /// A person thinks, and nothing counts.
    Thinking,
}

/// The clock of one call.
#[derive(Clone, Debug)]
pub struct Clock {
    began: Instant,
    /// How many questions are before a person.
    asked: u32,
    asked_since: Option<Instant>,
    /// How long persons have thought, in all.
    thought: Duration,
    /// When it was sent, or its server last said something, and how long persons had thought then.
    last: Option<(Instant, Duration)>,
    /// Whether the answer has begun.
    headed: bool,
}

impl Clock {
    /// It begins.
    pub fn new(now: Instant) -> Self {
        Self {
            began: now,
            asked: 0,
            asked_since: None,
            thought: Duration::ZERO,
            last: None,
            headed: false,
        }
    }

    /// A person is asked something.
    pub fn ask(&mut self, now: Instant) {
        self.asked += 1;
        self.asked_since.get_or_insert(now);
    }

    /// One of the questions is over.
    pub fn answer(&mut self, now: Instant) {
        self.asked = self.asked.saturating_sub(1);
        if self.asked == 0
            && let Some(since) = self.asked_since.take()
        {
            self.thought += now.saturating_duration_since(since);
        }
    }

    /// It is sent to the server.
    pub fn send(&mut self, now: Instant) {
        self.last = Some((now, self.thought));
        self.headed = false;
    }

    /// The server says something that belongs to it.
    pub fn hear(&mut self, now: Instant) {
        // What was thought until now is not known as long as somebody thinks, and is before this.
        let thinking = self
            .asked_since
            .map(|since| now.saturating_duration_since(since));
        self.last = Some((now, self.thought + thinking.unwrap_or_default()));
        self.headed = true;
    }

    /// When it is late.
    pub fn due(&self, now: Instant, patience: &Patience) -> Due {
        if self.asked > 0 {
            return Due::Thinking;
        }
        let since = |from: Instant, thought: Duration| {
            let all = now.saturating_duration_since(from);
            all.saturating_sub(self.thought.saturating_sub(thought))
        };
        let worked = since(self.began, Duration::ZERO);
        let quiet = self.last.map(|(at, thought)| since(at, thought));
        let limit = if self.headed {
            (patience.idle, Late::Word as fn(Duration) -> Late)
        } else {
            (patience.headers, Late::Answer as fn(Duration) -> Late)
        };
        let left = patience.call.saturating_sub(worked);
        if left.is_zero() {
            return Due::Over(Late::Answer(patience.call));
        }
        match quiet.map(|quiet| limit.0.saturating_sub(quiet)) {
            Some(Duration::ZERO) => Due::Over(limit.1(limit.0)),
            Some(quiet) => Due::In(left.min(quiet)),
            None => Due::In(left),
        }
    }
}

#[cfg(test)]
#[expect(clippy::disallowed_methods, reason = "any moment will do")]
mod tests {
    use super::*;

    const fn seconds(seconds: u64) -> Duration {
        Duration::from_secs(seconds)
    }

    const PATIENCE: Patience = Patience {
        headers: seconds(5),
        idle: seconds(10),
        call: seconds(30),
    };

    /// A clock that begins at 0, and what time it is at a second.
    fn clock() -> (Clock, impl Fn(u64) -> Instant) {
        let start = Instant::now();
        (Clock::new(start), move |at| start + seconds(at))
    }

    #[test]
    fn an_answer_that_does_not_begin_is_late() {
        let (mut clock, at) = clock();
        assert_eq!(
            clock.due(at(20), &PATIENCE),
            Due::In(seconds(10)),
            "not sent"
        );
        clock.send(at(20));
        assert_eq!(clock.due(at(21), &PATIENCE), Due::In(seconds(4)));
        let late = Due::Over(Late::Answer(seconds(5)));
        assert_eq!(clock.due(at(25), &PATIENCE), late);
    }

    #[test]
    fn each_word_gives_it_time_for_the_next_but_not_for_ever() {
        let (mut clock, at) = clock();
        clock.send(at(0));
        for word in [4, 13, 22] {
            assert!(
                matches!(clock.due(at(word), &PATIENCE), Due::In(_)),
                "{word}"
            );
            clock.hear(at(word));
        }
        assert_eq!(clock.due(at(23), &PATIENCE), Due::In(seconds(7)));
        let late = Due::Over(Late::Answer(seconds(30)));
        assert_eq!(clock.due(at(30), &PATIENCE), late);
    }

    #[test]
    fn silence_is_late() {
        let (mut clock, at) = clock();
        clock.send(at(0));
        clock.hear(at(1));
        assert_eq!(clock.due(at(10), &PATIENCE), Due::In(seconds(1)));
        let late = Due::Over(Late::Word(seconds(10)));
        assert_eq!(clock.due(at(11), &PATIENCE), late);
    }

    #[test]
    fn the_time_in_which_a_person_thinks_counts_nowhere() {
        let (mut clock, at) = clock();
        clock.send(at(0));
        clock.hear(at(1));
        clock.ask(at(1));
        clock.ask(at(3));
        clock.answer(at(5));
        assert_eq!(clock.due(at(90), &PATIENCE), Due::Thinking);
        clock.answer(at(101));
        // One second of all, and none of the silence.
        assert_eq!(clock.due(at(101), &PATIENCE), Due::In(seconds(10)));
        assert_eq!(clock.due(at(110), &PATIENCE), Due::In(seconds(1)));
        let late = Due::Over(Late::Word(seconds(10)));
        assert_eq!(clock.due(at(111), &PATIENCE), late);
        clock.hear(at(111));
        assert_eq!(
            clock.due(at(129), &PATIENCE),
            Due::Over(Late::Word(seconds(10)))
        );
        clock.hear(at(129));
        assert_eq!(
            clock.due(at(130), &PATIENCE),
            Due::Over(Late::Answer(seconds(30)))
        );
    }

    #[test]
    fn a_word_while_a_person_thinks_is_no_gain_and_no_loss() {
        let (mut clock, at) = clock();
        clock.send(at(0));
        clock.ask(at(1));
        clock.hear(at(50));
        clock.answer(at(101));
        assert_eq!(clock.due(at(110), &PATIENCE), Due::In(seconds(1)));
        assert_eq!(
            clock.due(at(111), &PATIENCE),
            Due::Over(Late::Word(seconds(10)))
        );
    }

    #[test]
    fn what_is_sent_again_begins_to_be_answered_anew() {
        let (mut clock, at) = clock();
        clock.send(at(0));
        clock.hear(at(1));
        clock.send(at(8));
        assert_eq!(clock.due(at(12), &PATIENCE), Due::In(seconds(1)));
        assert_eq!(
            clock.due(at(13), &PATIENCE),
            Due::Over(Late::Answer(seconds(5)))
        );
    }
}
