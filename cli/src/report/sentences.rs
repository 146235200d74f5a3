//! The top of the report: what happened, in plain sentences.

use super::story::{MarkKind, Pass, State, Story, number};
use crate::{
    attempts::{Attempt, State as Ending, which},
    words::{count, duration, percent, several, signed, time},
};

/// Uncertain attempts that are named; the table has all.
const NAMED: usize = 3;

/// How grave a sentence is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Weight {
    /// So it should be.
    Fine,
    /// Worth knowing.
    Note,
    /// Something is lost, missing or over its limit.
    Grave,
}

/// A sentence and its weight.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Sentence {
    pub weight: Weight,
    pub text: String,
}

fn fine(text: String) -> Sentence {
    Sentence { weight: Weight::Fine, text }
}

fn note(text: String) -> Sentence {
    Sentence { weight: Weight::Note, text }
}

fn grave(text: String) -> Sentence {
    Sentence { weight: Weight::Grave, text }
}

/// What an on-call person should know first, in the order of the questions.
pub fn sentences(story: &Story) -> Vec<Sentence> {
    let mut said: Vec<_> = uncertain(story).into_iter().collect();
    said.push(integrity(story));
    said.extend(story.gaps.iter().cloned().map(grave));
    said.push(run(story));
    if story.resumed > 0 {
        said.push(note(format!("It was resumed {}.", times(story.resumed))));
    }
    said.extend(actions(story));
    said.extend(peak(story));
    said.push(passes(story));
    said.extend(refusals(story));
    said.extend(fallbacks(story));
    said.push(left(story));
    said
}

fn uncertain(story: &Story) -> Option<Sentence> {
    let open: Vec<_> = story.actions.iter().filter(|attempt| attempt.is_uncertain()).collect();
    let name = |attempt: &&Attempt| format!("`{}` ({})", attempt.action, which(attempt.signature, attempt.attempt));
    let mut names: Vec<_> = open.iter().take(NAMED).map(name).collect();
    let more = open.len().saturating_sub(NAMED);
    if more > 0 {
        names.push(format!("{} more", count(number(more))));
    }
    let (are, each) = if open.len() == 1 { ("is", "It") } else { ("are", "Each") };
    let attempts = several(number(open.len()), "attempt");
    let names = names.join(", ");
    let text = format!(
        "{attempts} {are} uncertain: {names}. {each} may have taken effect: ask the system that it went to, and settle it."
    );
    (!open.is_empty()).then(|| grave(text))
}

/// What became of the attempts; the numbers add up.
fn actions(story: &Story) -> Option<Sentence> {
    let of = |is: fn(&Attempt) -> bool| number(story.actions.iter().filter(|attempt| is(attempt)).count());
    let became = [
        (of(|attempt| matches!(attempt.state, Ending::Done { .. })), "done"),
        (of(|attempt| matches!(attempt.state, Ending::Failed { .. })), "failed without effect"),
        (of(|attempt| matches!(attempt.state, Ending::Refused { .. })), "refused"),
        (of(|attempt| matches!(attempt.state, Ending::NotDone { .. })), "found not done"),
        (of(Attempt::is_uncertain), "uncertain"),
    ];
    let became = became.into_iter().filter(|(attempts, _)| *attempts > 0);
    let became: Vec<_> = became.map(|(attempts, what)| format!("{} {what}", count(attempts))).collect();
    let attempts = several(number(story.actions.len()), "attempt");
    let text = format!("{attempts} at actions: {}", became.join(", "));
    let sentence = match of(|attempt| attempt.repeats.is_some()) {
        0 => fine(format!("{text}.")),
        repeats => note(format!("{text}; {} repeated by override.", count(repeats))),
    };
    (!became.is_empty()).then_some(sentence)
}

fn integrity(story: &Story) -> Sentence {
    match &story.lossy {
        Some(lossy) => grave(format!("Lossy since turn {}: {}.", lossy.turn, lossy.why.trim_end_matches('.'))),
        None if story.gaps.is_empty() => fine("Everything that left the window can be brought back.".to_owned()),
        None => {
            grave("Everything that reached the store can be brought back, but not everything reached it.".to_owned())
        }
    }
}

fn run(story: &Story) -> Sentence {
    let (turns, spans) = (several(story.turns, "turn"), several(story.spans, "span"));
    let mut times = story.moments.iter().filter_map(|moment| moment.time);
    let when = match (times.next(), times.next_back()) {
        (Some(first), Some(last)) => format!(" in {}, from {}", duration(last.saturating_sub(first)), time(first)),
        (Some(first), None) => format!(" at {}", time(first)),
        _ => String::new(),
    };
    let text = match story.policies.as_slice() {
        [] => format!("{turns}, {spans}{when}."),
        [only] => format!("{turns}, {spans}{when}, under policy {}.", only.policy),
        [first, rest @ ..] => {
            let later: Vec<_> = rest.iter().map(|at| format!("{} from turn {} on", at.policy, at.turn)).collect();
            format!("{turns}, {spans}{when}, under policy {}, then {}.", first.policy, later.join(", then "))
        }
    };
    if story.policies.len() > 1 { note(text) } else { fine(text) }
}

fn peak(story: &Story) -> Option<Sentence> {
    let peak = story.peak()?;
    let (tokens, turn) = (count(peak.utilization), peak.turn);
    Some(match story.budget {
        None => fine(format!("At most {tokens} tokens in the window (turn {turn}); no limit was set.")),
        Some(budget) => {
            let of = format!("of {} ({})", count(budget.limit), percent(peak.utilization, budget.limit));
            match peak.utilization.checked_sub(budget.limit) {
                Some(over @ 1..) => grave(format!(
                    "The window peaked {} tokens over its limit: {tokens} {of} in turn {turn}.",
                    count(over)
                )),
                _ => fine(format!("The window peaked at {tokens} tokens {of} in turn {turn}.")),
            }
        }
    })
}

fn passes(story: &Story) -> Sentence {
    let passes: Vec<_> = story.passes.iter().filter(|pass| pass.fallback.is_none()).collect();
    if passes.is_empty() {
        return fine("No model decided what should leave.".to_owned());
    }
    let net = passes.iter().map(|pass| pass.net).fold(0, i64::saturating_add);
    let sum = |of: fn(&Pass) -> u64| passes.iter().map(|pass| of(pass)).fold(0, u64::saturating_add);
    let harm = number(passes.iter().filter(|pass| pass.net <= 0).count());
    let (gross, overhead) = (count(sum(|pass| pass.gross)), count(sum(|pass| pass.overhead)));
    let word = several(number(passes.len()), "pass");
    let text =
        format!("{word} of the model freed {} tokens net: {gross} left, {overhead} were spent on it", signed(net));
    match harm {
        0 => fine(format!("{text}.")),
        harm => note(format!("{text}; {} cost more than it freed.", several(harm, "pass"))),
    }
}

fn refusals(story: &Story) -> Option<Sentence> {
    match story.marks(MarkKind::Refusal) {
        0 => None,
        refusals => Some(note(format!("A pass was refused {}.", times(refusals)))),
    }
}

fn fallbacks(story: &Story) -> Option<Sentence> {
    let fallbacks: Vec<_> = story.passes.iter().filter(|pass| pass.fallback.is_some()).collect();
    let freed = fallbacks.iter().map(|pass| pass.net).fold(0, i64::saturating_add);
    let word = several(number(fallbacks.len()), "fallback");
    (!fallbacks.is_empty()).then(|| note(format!("{word} freed {} tokens net without asking a model.", signed(freed))))
}

fn left(story: &Story) -> Sentence {
    let left = number(story.departures.len());
    if left == 0 && story.removals.is_empty() {
        return fine("Nothing left the window.".to_owned());
    }
    let states = |state| number(story.departures.iter().filter(|span| span.state == state).count());
    let became = State::ALL.map(|(state, what)| (states(state), what)).into_iter().filter(|(spans, _)| *spans > 0);
    let became: Vec<_> = became.map(|(spans, what)| format!("{} {what}", count(spans))).collect();
    let mut text = format!("{} left the window", several(left, "span"));
    if !became.is_empty() {
        text = format!("{text}: now {}", became.join(", "));
    }
    match story.removals.len() {
        0 => fine(format!("{text}.")),
        removed => note(format!("{text}; {} removed for good.", several(number(removed), "span"))),
    }
}

fn times(number: u64) -> String {
    match number {
        1 => "once".to_owned(),
        2 => "twice".to_owned(),
        more => format!("{} times", count(more)),
    }
}
