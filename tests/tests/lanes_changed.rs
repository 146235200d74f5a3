//! Lanes that changed since an episode was written: told as a difference, and taken over only as a logged migration says.

use std::sync::Arc;

use keepspan::{
    Certainty, ContextState, CounterError, Episode, EpisodeId, Finish, LaneChange, Message, Migration, ModelAnswer,
    NewSpan, OneByteAToken, ResumeError, SpanId, Spans, SummaryText, TokenCount, TokenCounter, Window,
    audit::{self, Happening, History},
    store::{Batch, Blob, MemoryStore, Store as _},
};
use keepspan_tests::memory;

type Checked<T = ()> = Result<T, Box<dyn std::error::Error>>;

macro_rules! states {
    ($($name:ident { $($(#[$kind:meta])* $lane:ident,)* })*) => {
        $(
            #[derive(ContextState)]
            struct $name { $($(#[$kind])* $lane: Spans,)* }
        )*
    };
}

states! {
    Before {
        #[precondition] schema,
        #[constraint(pinned)] limits,
        #[evictable(otherwise)] work,
        #[evictable] notes,
        #[derived] recap,
    }
    Added {
        #[precondition] schema,
        #[constraint(pinned)] limits,
        #[scope_qualifier] target,
        #[evictable(otherwise)] work,
        #[evictable] notes,
        #[derived] recap,
    }
    RemovedEmpty {
        #[precondition] schema,
        #[constraint(pinned)] limits,
        #[evictable(otherwise)] work,
        #[derived] recap,
    }
    RemovedFull {
        #[constraint(pinned)] limits,
        #[evictable(otherwise)] work,
        #[evictable] notes,
        #[derived] recap,
    }
    Renamed {
        #[precondition] tables_as_read,
        #[constraint(pinned)] limits,
        #[evictable(otherwise)] work,
        #[evictable] notes,
        #[derived] recap,
    }
    Weakened {
        #[evictable] schema,
        #[constraint(pinned)] limits,
        #[evictable(otherwise)] work,
        #[evictable] notes,
        #[derived] recap,
    }
    RenamedAndWeakened {
        #[evictable] tables_as_read,
        #[constraint(pinned)] limits,
        #[evictable(otherwise)] work,
        #[evictable] notes,
        #[derived] recap,
    }
    Strengthened {
        #[precondition(pinned)] schema,
        #[constraint(pinned)] limits,
        #[evictable(otherwise)] work,
        #[invariant] notes,
        #[derived] recap,
    }
    Instructed {
        #[instruction] schema,
        #[constraint(pinned)] limits,
        #[evictable(otherwise)] work,
        #[evictable] notes,
        #[derived] recap,
    }
    OtherKind {
        #[invariant] schema,
        #[constraint(pinned)] limits,
        #[evictable(otherwise)] work,
        #[evictable] notes,
        #[derived] recap,
    }
    Unpinned {
        #[precondition] schema,
        #[constraint] limits,
        #[evictable(otherwise)] work,
        #[evictable] notes,
        #[derived] recap,
    }
    Reordered {
        #[derived] recap,
        #[evictable] notes,
        #[evictable(otherwise)] work,
        #[constraint(pinned)] limits,
        #[precondition] schema,
    }
    NotDerived {
        #[precondition] schema,
        #[constraint(pinned)] limits,
        #[evictable(otherwise)] work,
        #[evictable] notes,
        #[evictable] recap,
    }
    ManyAtOnce {
        #[evictable] tables_as_read,
        #[constraint] limits,
        #[evictable(otherwise)] work,
        #[derived] recap,
    }
}

fn id() -> EpisodeId {
    EpisodeId::new("e")
}

fn resume<C: ContextState>(
    store: &Arc<MemoryStore>,
    migration: Option<Migration>,
) -> Result<Window<C, Arc<MemoryStore>>, ResumeError> {
    let episode = Episode::new("e", "p");
    let episode = match migration {
        Some(migration) => episode.migrate(migration),
        None => episode,
    };
    Window::resume_with(store.clone(), episode, OneByteAToken)
}

/// Two spans in `schema`, one of them a pointer; one in `limits`; in `work` a pointer, one that a summary stands for, and
/// one more; none in `notes`; the summary in `recap`.
fn before() -> Checked<Arc<MemoryStore>> {
    let store = memory();
    let mut window = Window::<Before, _>::open_with(store.clone(), Episode::new("e", "p"), OneByteAToken)?;
    let lanes = window.lanes();
    let schema = [lanes.schema.push("users.id BIGINT")?, lanes.schema.push("orders.id BIGINT")?];
    lanes.limits.push("no downtime")?;
    let work = ["a", "b", "c"].map(|text| lanes.work.push(text.repeat(200)));
    let lanes = lanes.externalize().wait()?;
    lanes.schema.evict(schema[0]).wait()?;
    let [a, b, _] = work;
    lanes.work.evict(a?).wait()?;
    let short: SummaryText = ModelAnswer::new(Finish::Stop, "short").try_into()?;
    lanes.work.summarize(b?, short, &lanes.recap).wait()?;
    Ok(store)
}

/// What is said of the lanes; nothing is written.
fn said<C: ContextState>(store: &Arc<MemoryStore>, migration: Option<Migration>) -> Checked<String> {
    let records = History::read(store, &id())?.entries().len();
    let error = match resume::<C>(store, migration) {
        Err(error @ ResumeError::OtherLanes { .. }) => error.to_string(),
        Err(other) => return Err(other.into()),
        Ok(_) => return Err("it was taken".into()),
    };
    assert_eq!(History::read(store, &id())?.entries().len(), records);
    let said = error.strip_prefix("the lanes of episode `e` are not those of this struct: ");
    let said = said.and_then(|said| {
        said.strip_suffix(
            "; resume with the struct that wrote it, or say what became of each lane with `Episode::migrate`",
        )
    });
    Ok(said.ok_or(error.clone())?.to_owned())
}

fn because() -> Result<Migration, keepspan::Unexplained> {
    Migration::because("the lanes were too coarse")
}

fn s(number: u64) -> SpanId {
    let span = SpanId::parse(&format!("s{number}"));
    span.unwrap_or_else(|| panic!("s{number}"))
}

/// The window after a migration: everything is there, the log says why, and the next resume has nothing to migrate.
fn goes_on<C: ContextState>(
    migration: Option<Migration>,
    lanes: &[(&str, &str)],
) -> Checked<Window<C, Arc<MemoryStore>>> {
    let store = before()?;
    let reason = if migration.is_some() { "the lanes were too coarse" } else { "the same lanes in another order" };
    for migration in [migration, None] {
        let window = resume::<C>(&store, migration)?;
        let rendered: u64 = window.render().iter().map(|message| u64::from(message.tokens())).sum();
        assert_eq!(window.utilization(), rendered);
        for message in window.render() {
            let bytes = u64::try_from(message.content().as_bytes().len())?;
            assert_eq!(u64::from(message.tokens()), bytes, "counted again where it reads otherwise");
        }
        for (span, text) in [(1, "users.id BIGINT"), (4, &*"a".repeat(200)), (5, &*"b".repeat(200))] {
            assert_eq!(window.recall(s(span)).wait()?.content().as_text(), Some(text));
        }
        // Tombstones say the lane that it was.
        let gone: Vec<_> = window.tombstones()?.iter().map(|gone| (gone.span(), gone.lane().to_owned())).collect();
        assert_eq!(gone, [(s(1), "schema".to_owned()), (s(4), "work".to_owned()), (s(5), "work".to_owned())]);
    }
    let history = History::read(&store, &id())?;
    let migrated =
        history.entries().iter().flat_map(|entry| &entry.happenings).filter_map(|happening| match happening {
            Happening::Migrated { reason, lanes } => Some((reason.as_str(), lanes.as_slice())),
            _ => None,
        });
    let migrated: Vec<_> = migrated.collect();
    assert_eq!(migrated, [(reason, lanes)]);
    assert_eq!(history.resumed(), 2);
    assert!(audit::verify(&store, &id(), |_| {}).faults.is_empty());
    Ok(resume::<C>(&store, None)?)
}

const SAME: [(&str, &str); 5] =
    [("schema", "schema"), ("limits", "limits"), ("work", "work"), ("notes", "notes"), ("recap", "recap")];

#[test]
fn the_difference_is_told() -> Checked {
    let store = before()?;
    assert_eq!(said::<Added>(&store, None)?, "`target` is new");
    assert_eq!(said::<RemovedEmpty>(&store, None)?, "`notes` is gone (spans in it: 0)");
    assert_eq!(said::<RemovedFull>(&store, None)?, "`schema` is gone (spans in it: 2)");
    assert_eq!(said::<Renamed>(&store, None)?, "`schema` seems to be `tables_as_read` now");
    assert_eq!(said::<Weakened>(&store, None)?, "`schema` was `precondition` and is weakened to `evictable`");
    assert_eq!(
        said::<Strengthened>(&store, None)?,
        "`schema` was `precondition` and is `pinned precondition`, `notes` was `evictable` and is `invariant`"
    );
    assert_eq!(said::<OtherKind>(&store, None)?, "`schema` was `precondition` and is `invariant`");
    assert_eq!(said::<Unpinned>(&store, None)?, "`limits` was `pinned constraint` and is weakened to `constraint`");
    assert_eq!(said::<NotDerived>(&store, None)?, "`recap` held summaries and does not, or the reverse");
    assert_eq!(
        said::<ManyAtOnce>(&store, None)?,
        "`limits` was `pinned constraint` and is weakened to `constraint`, `schema` is gone (spans in it: 2), `notes` seems \
         to be `tables_as_read` now"
    );
    Ok(())
}

#[test]
fn a_migration_says_what_it_weakens_and_what_it_renames() -> Checked {
    let store = before()?;
    let said_of = |migration| said::<RenamedAndWeakened>(&store, Some(migration));
    let weakened = "`tables_as_read` was `precondition` and is weakened to `evictable`";
    assert_eq!(said_of(because()?)?, "`schema` is gone (spans in it: 2)");
    assert_eq!(said_of(because()?.weaken("tables_as_read"))?, "`schema` is gone (spans in it: 2)");
    assert_eq!(said_of(because()?.rename("schema", "tables_as_read"))?, weakened);
    let old = said_of(because()?.rename("schema", "tables_as_read").weaken("schema"))?;
    assert_eq!(old, format!("the migration names `schema`, and there is no such lane to name so, {weakened}"));
    assert_eq!(said::<Renamed>(&store, Some(because()?))?, "`schema` is gone (spans in it: 2)");
    assert_eq!(said::<RemovedFull>(&store, Some(because()?))?, "`schema` is gone (spans in it: 2)");
    assert_eq!(
        said::<Weakened>(&store, Some(because()?))?,
        "`schema` was `precondition` and is weakened to `evictable`"
    );
    let unpinned = "`limits` was `pinned constraint` and is weakened to `constraint`";
    assert_eq!(said::<Unpinned>(&store, Some(because()?.weaken("schema")))?, unpinned);
    // No migration makes text of summaries, or summaries of text.
    let summaries = "`recap` held summaries and does not, or the reverse";
    assert_eq!(said::<NotDerived>(&store, Some(because()?.weaken("recap")))?, summaries);
    assert!(Migration::because(" ").is_err());
    Ok(())
}

#[test]
fn what_a_migration_allows_goes_on() -> Checked {
    goes_on::<Added>(Some(because()?), &SAME)?;
    goes_on::<Strengthened>(Some(because()?), &SAME)?;
    goes_on::<OtherKind>(Some(because()?), &SAME)?;
    goes_on::<Unpinned>(Some(because()?.weaken("limits")), &SAME)?;
    let mut window = goes_on::<Weakened>(Some(because()?.weaken("schema")), &SAME)?;
    let lanes = window.lanes().externalize().wait()?;
    assert_eq!((lanes.schema.evicted(), lanes.schema.resident()), (vec![s(1)], vec![s(2)]));
    // No id is named any more for its kind.
    lanes.schema.evict(s(2)).wait()?;
    drop(lanes);
    assert_eq!(window.render()[0].shown(), keepspan::Shown::Pointer(s(1), s(2)));
    assert_eq!(lines(&window)[0].matches("s1").count(), 1, "{:?}", lines(&window));
    Ok(())
}

fn lines<C: ContextState>(window: &Window<C, Arc<MemoryStore>>) -> Vec<String> {
    window.render().iter().filter_map(|message| message.content().as_text().map(str::to_owned)).collect()
}

/// R8: what became protected is named from then on, and no pointer names more than any other would.
#[test]
fn pointers_name_what_became_protected() -> Checked {
    let store = memory();
    let mut window = Window::<Before, _>::open_with(store.clone(), Episode::new("e", "p"), OneByteAToken)?;
    let push =
        |n: usize| if n < 40 { window.lanes().notes.push(format!("{n}")) } else { window.lanes().work.push("w") };
    let ids: Vec<_> = (0..44).map(push).collect::<Result<_, _>>()?;
    let lanes = window.lanes().externalize().wait()?;
    lanes.notes.evict(&ids[..40]).wait()?;
    lanes.work.evict(&ids[40..]).wait()?;
    drop(lanes);
    assert_eq!(lines(&window).len(), 1);
    drop(window);
    let mut window = resume::<Strengthened>(&store, Some(because()?))?;
    let named = |ids: &[SpanId]| ids.iter().map(|id| format!(" {id}")).collect::<String>();
    let [one, other] =
        [&ids[..32], &ids[32..40]].map(|ids| format!("; notes{}; recall any of them by id]", named(ids)));
    let shown = lines(&window);
    assert!(shown.len() == 2 && shown[0].ends_with(&one) && shown[1].ends_with(&other), "{shown:?}");
    let tokens = shown.iter().map(|line| line.len() as u64).sum::<u64>();
    assert_eq!(window.utilization(), tokens);
    window.lanes().notes.restore(ids[5]).wait()?;
    drop(window);
    let window = resume::<Strengthened>(&store, None)?;
    assert_eq!(window.utilization(), lines(&window).iter().map(|line| line.len() as u64).sum::<u64>());
    Ok(())
}

/// R8: an instruction never leaves, and what left before it was one is named all the same.
#[test]
fn pointers_name_what_became_an_instruction() -> Checked {
    let store = memory();
    let mut window = Window::<Before, _>::open_with(store.clone(), Episode::new("e", "p"), OneByteAToken)?;
    let work = [window.lanes().work.push("w")?, window.lanes().work.push("w")?];
    let schema = [window.lanes().schema.push("users.id BIGINT")?, window.lanes().schema.push("orders.id BIGINT")?];
    let lanes = window.lanes().externalize().wait()?;
    lanes.work.evict(work).wait()?;
    lanes.schema.evict(schema).wait()?;
    drop(lanes);
    let before = lines(&window);
    assert!(before.len() == 1 && before[0].ends_with("; schema s3 s4; recall any of them by id]"), "{before:?}");
    drop(window);
    let mut window = resume::<Instructed>(&store, Some(because()?))?;
    assert_eq!(lines(&window), before);
    assert_eq!(window.lanes().schema.evicted(), schema);
    assert_eq!(window.lanes().schema.restore(schema[0]).wait()?, &schema[..1]);
    Ok(())
}

/// R16: what a provider signed after a pointer is whole as long as the line is the same, and no longer.
#[test]
fn a_line_that_changed_breaks_the_seals_after_it() -> Checked {
    let store = memory();
    let mut window = Window::<Before, _>::open_with(store.clone(), Episode::new("e", "p"), OneByteAToken)?;
    let ids = [window.lanes().notes.push("one")?, window.lanes().notes.push("two")?];
    window.lanes().externalize().wait()?.notes.evict(ids).wait()?;
    window.lanes().work.push(NewSpan::model("signed").sealed())?;
    // What changes after it is nothing to it.
    let ids = [window.lanes().notes.push("three")?, window.lanes().notes.push("four")?];
    window.lanes().externalize().wait()?.notes.evict(ids).wait()?;
    let intact = |messages: Vec<Message>| messages.iter().find_map(Message::seal_intact);
    assert_eq!(intact(window.render()), Some(true));
    drop(window);
    let copy = || -> Checked<Arc<MemoryStore>> {
        let copy = memory();
        let records = store.read(&id(), 0, u64::MAX)?;
        let blobs = ["one", "two", "signed", "three", "four"].map(Blob::new).to_vec();
        copy.commit(&Batch::new(id(), 0, blobs, records))?;
        Ok(copy)
    };
    assert_eq!(intact(resume::<Added>(&copy()?, Some(because()?))?.render()), Some(true));
    assert_eq!(intact(resume::<Strengthened>(&copy()?, Some(because()?))?.render()), Some(false));
    Ok(())
}

/// An estimate for pointers that name what is in `notes`.
struct Unsure;

impl TokenCounter for Unsure {
    fn text(&self, text: &str) -> Result<TokenCount, CounterError> {
        let count = OneByteAToken.text(text)?;
        Ok(if text.contains("; notes ") { TokenCount::estimate(count.tokens()) } else { count })
    }
}

/// R25: what is counted again can be less certain.
#[test]
fn a_window_is_as_certain_as_the_lines_that_were_counted_again() -> Checked {
    let store = memory();
    let mut window = Window::<Before, _>::open_with(store.clone(), Episode::new("e", "p"), Unsure)?;
    let ids = [window.lanes().notes.push("one")?, window.lanes().notes.push("two")?];
    window.lanes().externalize().wait()?.notes.evict(ids).wait()?;
    assert_eq!(window.certainty(), Certainty::UpperBound);
    drop(window);
    for migration in [Some(because()?), None] {
        let episode = Episode::new("e", "p");
        let episode = if let Some(migration) = migration { episode.migrate(migration) } else { episode };
        let window = Window::<Strengthened, _>::resume_with(store.clone(), episode, Unsure)?;
        assert_eq!(window.certainty(), Certainty::Estimate);
    }
    Ok(())
}

#[test]
fn under_another_name_it_is_what_it_was() -> Checked {
    let renamed = [("schema", "tables_as_read"), SAME[1], SAME[2], SAME[3], SAME[4]];
    let mut window = goes_on::<Renamed>(Some(because()?.rename("schema", "tables_as_read")), &renamed)?;
    let pointer = window.render()[0].content().as_text().map(str::to_owned);
    assert!(pointer.as_ref().is_some_and(|text| text.contains("tables_as_read")), "{pointer:?}");
    let lanes = window.lanes();
    assert_eq!((lanes.tables_as_read.evicted(), lanes.tables_as_read.resident()), (vec![s(1)], vec![s(2)]));
    lanes.tables_as_read.restore(s(1)).wait()?;
    assert_eq!(
        lanes.tables_as_read.content(s(1)).and_then(|text| text.as_text().map(str::to_owned)).as_deref(),
        Some("users.id BIGINT")
    );
    Ok(())
}

#[test]
fn another_order_is_logged_and_needs_no_migration() -> Checked {
    let mut window = goes_on::<Reordered>(None, &SAME)?;
    let lanes = window.lanes();
    assert_eq!(
        (lanes.limits.resident(), lanes.work.resident(), lanes.recap.resident()),
        (vec![s(3)], vec![s(6)], vec![s(7)])
    );
    assert_eq!(lanes.recap.reground(s(7)).wait()?, [s(5)]);
    Ok(())
}

#[test]
fn an_empty_lane_goes_without_becoming_another() -> Checked {
    goes_on::<RemovedEmpty>(Some(because()?), &[SAME[0], SAME[1], SAME[2], SAME[4]])?;
    Ok(())
}

#[test]
fn what_a_stronger_lane_holds_is_as_safe_as_if_it_had_always_been() -> Checked {
    let store = before()?;
    let mut window = resume::<Strengthened>(&store, Some(because()?))?;
    let lanes = window.lanes().externalize().wait()?;
    // `schema` is pinned now: its handle has no `evict`; what was a pointer comes back.
    lanes.schema.restore(s(1)).wait()?;
    assert_eq!(lanes.schema.resident(), [s(1), s(2)]);
    Ok(())
}

#[test]
fn changes_are_values() -> Checked {
    let store = before()?;
    let Err(ResumeError::OtherLanes { changes, .. }) = resume::<ManyAtOnce>(&store, None) else {
        return Err("taken".into());
    };
    let weakened = LaneChange::Weakened {
        lane: "limits".to_owned(),
        from: "pinned constraint".to_owned(),
        to: "constraint".to_owned(),
    };
    assert_eq!(changes.first(), Some(&weakened));
    Ok(())
}

/// A name that fits nothing is a mistake of whoever migrates, not a wish that came true.
#[test]
fn a_migration_names_lanes_that_are_there() -> Checked {
    let store = before()?;
    let typed = Migration::because("a slip")?.rename("shcema", "tables").weaken("limist");
    let Err(error) = resume::<Before>(&store, Some(typed.clone())) else {
        // The same lanes: there is nothing to migrate, and so nothing to say.
        let other = resume::<ManyAtOnce>(&store, Some(typed)).err().ok_or("it was taken")?.to_string();
        for name in ["shcema", "tables", "limist"] {
            assert!(other.contains(&format!("the migration names `{name}`")), "{other}");
        }
        return Ok(());
    };
    Err(error.into())
}
