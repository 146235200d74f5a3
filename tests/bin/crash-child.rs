//! The process that the crash test kills: it works on an episode in a file until then, and says before each commit that it
//! begins, and after it what it believes to be committed.

use std::{env, error::Error, io::Write as _, path::Path};

use keepspan::{
    Escalation, FallBackError, Finish, FixedTemplate, ModelAnswer, Mutation, NewSpan, OldestFirst, OneByteAToken,
    OpenError, Outcome, Report, SpanId, SummaryText, Window,
    store::{EmbeddedStore, Store as _},
    tool::Answer,
};
use keepspan_tests::{
    Agent,
    crash::{Work, believed},
};

type Windowed = Window<Agent, EmbeddedStore>;
type Done<T = ()> = Result<T, Box<dyn Error>>;

/// Numbers that look random, the same for the same seed.
struct Dice(u64);

impl Dice {
    fn below(&mut self, end: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % end
    }

    fn one<T: Copy>(&mut self, of: &[T]) -> Option<T> {
        of.get(usize::try_from(self.below(u64::try_from(of.len()).ok()?.max(1))).ok()?).copied()
    }

    /// Text that no compression nor deduplication makes smaller.
    fn text(&mut self, bytes: u64) -> String {
        let mut text = String::new();
        while (text.len() as u64) < bytes {
            text.push_str(&format!("{:016x}", self.below(u64::MAX)));
        }
        text
    }
}

fn say(line: &str) -> Done {
    let mut out = std::io::stdout().lock();
    writeln!(out, "{line}")?;
    Ok(out.flush()?)
}

/// One commit, announced and reported.
fn told<T>(window: &mut Windowed, step: impl FnOnce(&mut Windowed) -> Done<T>) -> Done<T> {
    say("begins")?;
    let done = step(window)?;
    say(&format!("done {}", believed(window)))?;
    Ok(done)
}

fn externalize(window: &mut Windowed) -> Done {
    told(window, |window| {
        drop(window.lanes().externalize().wait()?);
        Ok(())
    })
}

fn summary(text: String) -> Done<SummaryText> {
    Ok(ModelAnswer::new(Finish::Stop, text).try_into()?)
}

fn push(window: &mut Windowed, dice: &mut Dice, sizes: std::ops::Range<u64>) -> Done<SpanId> {
    let size = sizes.start + dice.below(sizes.end - sizes.start);
    let text = dice.text(size);
    let lanes = window.lanes();
    Ok(match dice.below(8) {
        0 => lanes.schema.push(text)?,
        1 => lanes.failed.push(text)?,
        2 => {
            let call = format!("call_{}", dice.below(u64::MAX));
            lanes.work.push(NewSpan::model(text).calls([call.as_str()]))?;
            lanes.work.push(NewSpan::tool("run", "done").answers(call.as_str()))?
        }
        _ => lanes.work.push(NewSpan::tool("read", text).reads(dice.below(4).to_string()))?,
    })
}

fn small(window: &mut Windowed, dice: &mut Dice) -> Done {
    for _ in 0..1 + dice.below(3) {
        push(window, dice, 1..200)?;
    }
    externalize(window)?;
    let lanes = window.lanes();
    let (resident, evicted) = (lanes.work.resident(), lanes.work.evicted());
    match dice.below(4) {
        0 => told(window, |window| Ok(window.change_policy(format!("p{}", dice.below(3)).as_str()).wait()?))?,
        1 => {
            if let Some(span) = dice.one(&evicted) {
                told(window, |window| Ok(window.lanes().work.restore(span).wait()?))?;
            }
        }
        2 => {
            let key = window.lanes().work.push(dice.text(20))?;
            let mutation = Mutation::new("a key", "ask")?;
            told(window, |window| Ok(window.lanes().work.discard(key, mutation).wait()?))?;
        }
        _ => {}
    }
    if window.utilization() > 2_500 && !resident.is_empty() {
        told(window, |window| Ok(window.lanes().externalize().wait()?.work.evict(resident).wait()?))?;
    }
    let schema = window.lanes().schema.resident();
    if schema.len() > 5 {
        told(window, |window| Ok(window.lanes().externalize().wait()?.schema.evict(schema).wait()?))?;
    }
    Ok(())
}

fn large(window: &mut Windowed, dice: &mut Dice) -> Done {
    for _ in 0..1 + dice.below(3) {
        push(window, dice, 100_000..2_000_000)?;
    }
    externalize(window)?;
    let resident = window.lanes().work.resident();
    if !resident.is_empty() {
        told(window, |window| Ok(window.lanes().externalize().wait()?.work.evict(resident).wait()?))?;
    }
    Ok(())
}

fn pass(window: &mut Windowed, dice: &mut Dice) -> Done<Option<Report>> {
    let lanes = window.lanes().externalize().wait()?;
    let pass = match lanes.admit() {
        Ok(pass) => pass,
        Err(refusal) => {
            let by_template = dice.below(2) == 0;
            let fell = if by_template {
                refusal.fall_back(FixedTemplate).wait()
            } else {
                refusal.fall_back(OldestFirst).wait()
            };
            // In the end there are only pointers left.
            return if let Err(FallBackError::Unfittable { .. }) = fell { Ok(None) } else { Ok(fell.map(|_| None)?) };
        }
    };
    let offers = pass.index().offers();
    let (evict, rest) = offers.split_at(offers.len().div_ceil(2));
    let answer =
        Answer::prune(evict.iter().map(|offer| offer.span().to_string())).with_rationale("not needed any more");
    // A summary is offered too, and is no source of another.
    let sources: Vec<_> = rest.iter().filter(|offer| offer.lane() == "work").map(|o| o.span().to_string()).collect();
    let answer = if sources.is_empty() { answer } else { answer.summarize(sources, format!("short {}", dice.0)) };
    let proposal = pass.parse(&answer)?;
    match pass.apply(proposal).wait() {
        Ok(Outcome::Pruned(report)) => Ok(Some(report)),
        Ok(Outcome::Unchanged) => Ok(None),
        // A summary that names many sources is not always the smaller.
        Err(keepspan::ApplyError::Summary(_) | keepspan::ApplyError::NotSmaller { .. }) => Ok(None),
        Err(error) => Err(error.into()),
    }
}

fn passes(window: &mut Windowed, dice: &mut Dice) -> Done {
    for _ in 0..3 {
        push(window, dice, 100..700)?;
    }
    externalize(window)?;
    let report = told(window, |window| pass(window, dice))?;
    externalize(window)?;
    let lanes = window.lanes();
    let (summaries, work) = (lanes.recap.resident(), lanes.work.resident());
    match dice.below(6) {
        0 => {
            if let Some(report) = report.filter(|_| window.utilization() < 2_500) {
                told(window, |window| Ok(window.undo(&report).wait()?))?;
            }
        }
        1 => {
            if let Some(span) = dice.one(&summaries).filter(|_| window.utilization() < 2_500) {
                told(window, |window| Ok(window.lanes().recap.reground(span).wait()?))?;
            }
        }
        2 => {
            let why = Escalation::because("no room")?;
            let text = summary(format!("all {}", dice.0))?;
            told(window, |window| {
                let lanes = window.lanes().externalize().wait()?;
                Ok(lanes.recap.escalate(summaries, text, why).wait().is_ok())
            })?;
        }
        3 => {
            let text = summary(format!("some {}", dice.0))?;
            told(window, |window| {
                let lanes = window.lanes().externalize().wait()?;
                Ok(lanes.work.summarize(work, text, &lanes.recap).wait().is_ok())
            })?;
        }
        _ => {}
    }
    Ok(())
}

fn redact(window: &mut Windowed, dice: &mut Dice) -> Done {
    let secret = window.lanes().work.push(dice.text(100))?;
    push(window, dice, 1..400)?;
    externalize(window)?;
    let mutation = Mutation::new("a key", "ask")?;
    if dice.below(2) == 0 {
        told(window, |window| Ok(window.lanes().externalize().wait()?.work.evict(secret).wait()?))?;
    }
    told(window, |window| Ok(window.lanes().work.redact(secret, mutation).wait()?))?;
    let resident = window.lanes().work.resident();
    if window.utilization() > 2_500 && !resident.is_empty() {
        told(window, |window| Ok(window.lanes().externalize().wait()?.work.evict(resident).wait()?))?;
    }
    Ok(())
}

fn main() -> Done {
    let arguments: Vec<_> = env::args().skip(1).collect();
    let [path, work, seed] = arguments.as_slice() else { return Err("a file, a kind of work and a seed".into()) };
    let work = Work::ALL.into_iter().find(|known| format!("{known:?}") == *work).ok_or("no such work")?;
    let mut dice = Dice(seed.parse::<u64>()?.max(1));
    let store = EmbeddedStore::open(Path::new(path))?;
    let begun = store.length(&keepspan::EpisodeId::new("e"))? > 0;
    let mut window = match begun {
        true => Windowed::resume_with(store, work.episode(), OneByteAToken)?,
        false => Windowed::open_with(store, work.episode(), OneByteAToken)
            .map_err(|error: OpenError| Box::<dyn Error>::from(error))?,
    };
    say(&format!("done {}", believed(&window)))?;
    loop {
        match work {
            Work::Create | Work::Small => small(&mut window, &mut dice)?,
            Work::Large => large(&mut window, &mut dice)?,
            Work::Passes => passes(&mut window, &mut dice)?,
            Work::Redact => redact(&mut window, &mut dice)?,
        }
    }
}
