//! What took effect and should not have, from the airline's ledger alone, and the table that sets it side by side.

use std::{
    collections::{BTreeMap, BTreeSet},
    fmt::{Display, Write as _},
};

use keepspan::Signature;
use serde::Serialize;

use crate::{
    calls::Conversation,
    job::Tally,
    kept::Permits,
    service::{Effect, latest},
};

/// From how many identical calls on a conversation has a storm.
const STORM: usize = 10;

/// Of the effects that a conversation has with no fault, those that are wanted: not one whose request had taken effect before,
/// if that still stood, unless the customer asked for it twice.
pub fn wanted<'a>(undisturbed: &'a [Effect], conversation: &Conversation) -> Vec<&'a Effect> {
    let again: BTreeSet<_> = conversation.writes().filter(|(_, it)| it.again.is_some()).map(|(at, _)| at).collect();
    let stood = |at: usize, effect: &Effect| {
        matches!(latest(undisturbed.get(..at).unwrap_or_default(), &effect.request), Some((_, None)))
    };
    let wanted = |(at, effect): &(usize, &Effect)| again.contains(&effect.turn) || !stood(*at, effect);
    undisturbed.iter().enumerate().filter(wanted).map(|(_, effect)| effect).collect()
}

/// What one conversation came to in one mode.
pub struct Came {
    pub effects: Vec<Effect>,
    /// The turns whose requests were rejected.
    pub rejected: Vec<usize>,
    pub kills: u64,
    pub tally: Tally,
    pub permits: Permits,
}

/// What one mode came to on the conversations of a source.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Figures {
    pub kills: u64,
    pub left: u64,
    pub effects: u64,
    /// Effects beyond those that were wanted.
    pub duplicates: u64,
    /// Effects that were wanted and never happened.
    pub missing: u64,
    /// Wanted repeats of a request that had taken effect before.
    pub repeats: u64,
    /// Effects of a request that came in place of one that was rejected: the same tool, other arguments.
    pub corrected: u64,
    /// Requests that the airline rejected.
    pub rejected: u64,
    pub given_back: u64,
    pub refused: u64,
    pub denied: u64,
    pub permits: Permits,
    /// Requests that reached the airline for a call that had reached it before: no answer to the first came.
    pub again: u64,
    /// Calls to which no answer came, the process being alive.
    pub unanswered: u64,
    /// Conversations whose effects are not those that were wanted, in their order.
    pub astray: u64,
}

impl Figures {
    fn add(&mut self, conversation: &Conversation, wanted: &[&Effect], came: &Came) {
        let Came { effects, rejected, kills, tally, permits } = came;
        let (mut done, mut good, mut repeats) = (requests(effects), 0_u64, 0_u64);
        for (request, wanted) in requests(wanted.iter().copied()) {
            let done = done.remove(&request).unwrap_or_default().min(wanted);
            good = good.saturating_add(done);
            repeats = repeats.saturating_add(done.saturating_sub(1));
        }
        let order = |effect: &Effect| effect.request.signature();
        let astray = !effects.iter().map(order).eq(wanted.iter().map(|effect| order(effect)));
        for (sum, more) in [
            (&mut self.kills, *kills),
            (&mut self.left, tally.left),
            (&mut self.effects, count(effects.len())),
            (&mut self.duplicates, count(effects.len()).saturating_sub(good)),
            (&mut self.missing, count(wanted.len()).saturating_sub(good)),
            (&mut self.repeats, repeats),
            (&mut self.corrected, corrected(conversation, effects, rejected)),
            (&mut self.rejected, count(rejected.len())),
            (&mut self.again, again(effects, rejected)),
            (&mut self.unanswered, tally.unanswered),
            (&mut self.given_back, tally.given_back),
            (&mut self.refused, tally.refused),
            (&mut self.denied, tally.denied),
            (&mut self.permits.attempts, permits.attempts),
            (&mut self.permits.retried, permits.retried),
            (&mut self.permits.overridden, permits.overridden),
            (&mut self.permits.settled_done, permits.settled_done),
            (&mut self.permits.settled_not_done, permits.settled_not_done),
            (&mut self.permits.brought_back, permits.brought_back),
            (&mut self.astray, u64::from(astray)),
        ] {
            *sum = sum.saturating_add(more);
        }
    }
}

/// How often each request took effect.
fn requests<'a>(effects: impl IntoIterator<Item = &'a Effect>) -> BTreeMap<Signature, u64> {
    let mut requests = BTreeMap::new();
    for effect in effects {
        let times: &mut u64 = requests.entry(effect.request.signature()).or_default();
        *times = times.saturating_add(1);
    }
    requests
}

/// How many requests arrived for a turn that one had arrived for.
fn again(effects: &[Effect], rejected: &[usize]) -> u64 {
    let arrived = || effects.iter().map(|effect| effect.turn).chain(rejected.iter().copied());
    count(arrived().count()).saturating_sub(count(arrived().collect::<BTreeSet<_>>().len()))
}

/// Turns that took effect after another request of the same tool was rejected.
fn corrected(conversation: &Conversation, effects: &[Effect], rejected: &[usize]) -> u64 {
    let rejected: BTreeSet<_> = rejected.iter().collect();
    let rejected: Vec<_> = conversation.writes().filter(|(at, _)| rejected.contains(at)).collect();
    let corrects = |effect: &&Effect| {
        let other = |request: &crate::requests::Request| {
            request.tool == effect.request.tool && request.signature() != effect.request.signature()
        };
        rejected.iter().any(|(at, write)| *at < effect.turn && other(&write.request))
    };
    count(effects.iter().filter(corrects).map(|effect| effect.turn).collect::<BTreeSet<_>>().len())
}

/// A request that comes over and over.
#[derive(Clone, Debug, Serialize)]
pub struct Storm {
    pub conversation: String,
    pub tool: String,
    /// How often it comes.
    pub calls: usize,
    /// How often it took effect, by mode.
    pub effects: [u64; 3],
}

/// The three modes on the conversations of one source.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Compared {
    pub source: &'static str,
    /// Whether an agent made the calls; or they are made up.
    pub recorded: bool,
    pub conversations: u64,
    pub calls: u64,
    /// The effects that are wanted.
    pub wanted: u64,
    /// Those beyond, with no fault and every call sent.
    pub doubled: u64,
    /// What the airline rejects then.
    pub rejected: u64,
    pub every: Figures,
    pub list: Figures,
    pub keepspan: Figures,
    pub storms: Vec<Storm>,
}

impl Compared {
    /// Adds a conversation: what it comes to with no fault, the effects that are wanted of that, and what each mode came to.
    pub fn add(&mut self, conversation: &Conversation, undisturbed: &Came, wanted: &[&Effect], modes: &[Came; 3]) {
        for (sum, more) in [
            (&mut self.conversations, 1),
            (&mut self.calls, conversation.writes().count()),
            (&mut self.wanted, wanted.len()),
            (&mut self.doubled, undisturbed.effects.len().saturating_sub(wanted.len())),
            (&mut self.rejected, undisturbed.rejected.len()),
        ] {
            *sum = sum.saturating_add(count(more));
        }
        for (figures, came) in [&mut self.every, &mut self.list, &mut self.keepspan].into_iter().zip(modes) {
            figures.add(conversation, wanted, came);
        }
        self.storms.extend(storms(conversation, modes));
    }

    /// What should hold with keepspan and does not, in words.
    pub fn broken(&self) -> Vec<String> {
        let Figures { duplicates, missing, denied, astray, .. } = self.keepspan;
        let wrong = [
            (duplicates, "duplicate effects"),
            (missing, "effects that were wanted and never happened"),
            (denied, "calls that were denied for good"),
            (astray, "conversations whose effects are not the wanted ones in their order"),
        ];
        let wrong =
            wrong.into_iter().filter(|(number, _)| *number > 0).map(|(number, what)| format!("{number} {what}"));
        let storms = self.storms.iter().filter(|storm| !matches!(storm.effects, [_, _, 1]));
        let storms = storms.map(|Storm { conversation, tool, effects: [_, _, effects], .. }| {
            format!("the storm of `{tool}` in conversation {conversation} took effect {effects} times")
        });
        storms.chain(wrong).map(|what| format!("{}, with keepspan: {what}", self.source)).collect()
    }
}

fn storms(conversation: &Conversation, modes: &[Came; 3]) -> Vec<Storm> {
    let mut calls: BTreeMap<Signature, (&str, usize)> = BTreeMap::new();
    for (_, write) in conversation.writes() {
        let (_, times) = calls.entry(write.request.signature()).or_insert((&write.request.tool, 0));
        *times = times.saturating_add(1);
    }
    let times = |request: &Signature, came: &Came| requests(&came.effects).get(request).copied().unwrap_or_default();
    let storms = calls.into_iter().filter(|(_, (_, calls))| *calls >= STORM);
    let storm = |(request, (tool, calls)): (Signature, (&str, usize))| Storm {
        conversation: conversation.name.clone(),
        tool: tool.to_owned(),
        calls,
        effects: modes.each_ref().map(|came| times(&request, came)),
    };
    storms.map(storm).collect()
}

fn count(number: usize) -> u64 {
    u64::try_from(number).unwrap_or(u64::MAX)
}

/// What a row of the table counts.
type Counts = fn(&Figures) -> u64;

const ROWS: [(&str, Counts); 18] = [
    ("processes killed in a call", |of| of.kills),
    ("answers lost", |of| of.unanswered),
    ("spans or messages that left memory", |of| of.left),
    ("calls sent again that had arrived", |of| of.again),
    ("effects (1)", |of| of.effects),
    ("  duplicates", |of| of.duplicates),
    ("  repeats that were wanted", |of| of.repeats),
    ("  in place of a rejected request", |of| of.corrected),
    ("rejected by the airline (2)", |of| of.rejected),
    ("not sent: done before (3)", |of| of.given_back),
    ("not sent: failed, and nothing changed (4)", |of| of.refused),
    ("not sent: denied for good (5)", |of| of.denied),
    ("wanted and never done", |of| of.missing),
    ("attempts since what it failed under changed", |of| of.permits.retried),
    ("attempts by override, each with its reason", |of| of.permits.overridden),
    ("uncertain, settled as done", |of| of.permits.settled_done),
    ("uncertain, settled as not done", |of| of.permits.settled_not_done),
    ("spans brought back for a permit", |of| of.permits.brought_back),
];

/// The table for reading.
pub fn table(all: &[Compared]) -> String {
    let mut page = String::new();
    for Compared { source, recorded, conversations, calls, wanted, doubled, rejected, every, list, keepspan, storms } in
        all
    {
        let kind = if *recorded { "recorded" } else { "in the shape of recorded ones" };
        let _ = writeln!(page, "{source}: {calls} write calls in {conversations} conversations, {kind}");
        let _ = writeln!(
            page,
            "with no fault: {wanted} effects that are wanted + {doubled} that repeat one + {rejected} rejected = {calls} calls\n"
        );
        line(&mut page, "", ["every call", "with a list", "keepspan"]);
        for (what, of) in &ROWS {
            line(&mut page, what, [of(every), of(list), of(keepspan)]);
        }
        for Storm { conversation, tool, calls, effects } in storms {
            line(&mut page, &format!("effects of {calls} x {tool}, {conversation}"), *effects);
        }
        let _ = writeln!(page, "  (1) to (5) add up to the {calls} calls and those sent again");
        let Figures { kills, unanswered, permits: Permits { settled_done, settled_not_done, .. }, .. } = keepspan;
        let _ = writeln!(
            page,
            "  keepspan: {kills} kills and {unanswered} lost answers left {} attempts uncertain; the airline, asked, had {settled_done} of them\n",
            settled_done.saturating_add(*settled_not_done)
        );
    }
    page
}

/// The last word, as the exit code has it.
pub fn verdict(all: &[Compared], kept: bool) -> String {
    let sum = |of: fn(&Compared) -> u64| all.iter().map(of).fold(0, u64::saturating_add);
    let [wanted, every, list] = [sum(|of| of.wanted), sum(|of| of.every.duplicates), sum(|of| of.list.duplicates)];
    match kept {
        true => format!(
            "As expected: with keepspan each of the {wanted} wanted effects happened once, and no other.\n\
             Sending every call had {every} effects too many, looking into a list of messages {list}."
        ),
        false => "NOT as expected: with keepspan not every wanted effect happened once and no other.".to_owned(),
    }
}

fn line(page: &mut String, what: &str, modes: [impl Display; 3]) {
    let [every, list, keepspan] = modes;
    let _ = writeln!(page, "  {what:<52} {every:>12} {list:>12} {keepspan:>12}");
}
