//! Faults that users of other agents reported of what was done on a pruned context: lost preconditions, consent that nobody
//! gave, the same thing done twice. A number is that of the public report.

use std::{
    cell::Cell,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
};

use keepspan::{
    Action, CommitError, ContextState, CounterError, Episode, EpisodeId, Failure, FallBackError, FellBack, Finish,
    Granted, Limits, ModelAnswer, NewSpan, OldestFirst, OneByteAToken, OpenError, Origin, Override, Permission,
    PushError, Refused, ResumeError, Role, SelectionError, Shown, SpanId, Spans, SummarizeError, SummaryText,
    TokenCount, TokenCounter, Window,
    action::{Canon, Canonical, Held, PermitError, Requirement, RunError, Settlement, Tried, consent, effect},
    audit::{Happening, History},
    evidence::{EvidenceError, Trust},
    store::{MemoryStore, Store},
};
use keepspan_tests::{Agent, Counting, Fault, Faulty, memory};

type Outcome<T = ()> = Result<T, Box<dyn std::error::Error>>;
type Shared = Arc<MemoryStore>;
type Windowed<St = Shared> = Window<Agent, St>;

const PLENTY: u64 = 1_000_000;

fn named(name: &str, limits: impl Into<Limits>) -> Episode {
    Episode::new(name, "p").budget(limits)
}

fn open<St: Store>(store: St, limits: impl Into<Limits>) -> Result<Windowed<St>, OpenError> {
    Window::open_with(store, named("e", limits), OneByteAToken)
}

fn resume<St: Store>(store: St, limits: impl Into<Limits>) -> Result<Windowed<St>, ResumeError> {
    Window::resume_with(store, named("e", limits), OneByteAToken)
}

fn summary(text: &str) -> Outcome<SummaryText> {
    Ok(ModelAnswer::new(Finish::Stop, text).try_into()?)
}

fn texts<C: ContextState, St>(window: &Window<C, St>) -> Vec<String> {
    window.render().iter().filter_map(|message| message.content().as_text().map(str::to_owned)).collect()
}

fn text(tokens: usize) -> String {
    "x".repeat(tokens)
}

/// Oldest first, without a model.
fn fall_back(window: &mut Windowed) -> Outcome<FellBack> {
    match window.lanes().externalize().wait()?.admit() {
        Ok(pass) => Ok(pass.fall_back(OldestFirst).wait()?),
        Err(refusal) => Ok(refusal.fall_back(OldestFirst).wait()?),
    }
}

/// A compaction by a summarizer that says what it wants.
fn compact<St: Store>(window: &mut Windowed<St>, spans: impl Into<keepspan::Selection>, says: &str) -> Outcome<SpanId> {
    let lanes = window.lanes().externalize().wait()?;
    Ok(lanes.work.summarize(spans, summary(says)?, &lanes.recap).wait()?)
}

fn filler<St>(window: &mut Windowed<St>, spans: usize, tokens: usize) -> Result<Vec<SpanId>, PushError> {
    (0..spans).map(|_| window.lanes().work.push(text(tokens))).collect()
}

fn intents(store: &Shared) -> Outcome<Vec<Happening>> {
    let history = History::read(store, &EpisodeId::new("e"))?;
    let all = history.entries().iter().flat_map(|entry| entry.happenings.clone());
    Ok(all.filter(|happening| matches!(happening, Happening::Intended { .. })).collect())
}

// What a later action depends on.

#[derive(Action)]
#[action(state = Agent, requires(target), destructive, check = Self::agrees)]
struct Truncate {
    database: &'static str,
    table: &'static str,
}

impl Truncate {
    fn agrees(&self, held: &Held<'_>) -> Result<(), String> {
        let Self { database, .. } = self;
        if held.names("target", database) { Ok(()) } else { Err(format!("`target` does not name {database}")) }
    }
}

/// B001: which database was safe had left the window, and a shared one was truncated.
#[test]
fn a_destructive_action_on_another_target_than_the_one_on_record_is_denied() -> Outcome {
    let store = memory();
    let mut window = open(store.clone(), Limits::of(16_000).trigger(12_000))?;
    let fact = "target=db-local";
    let id = window.lanes().target.push(NewSpan::tool("env", fact).reads("connection"))?;
    filler(&mut window, 14, 900)?;
    assert!(matches!(fall_back(&mut window)?, FellBack::Freed(_)));
    assert_eq!(texts(&window)[0], fact);

    let truncate = |database, table| Truncate { database, table };
    let (local, shared) = (truncate("db-local", "users"), truncate("db-shared", "users"));
    let evidence = window.lanes().target.cite(id)?;
    let Permission::Denied(denied) = window.permit(&shared)? else { return Err("another target".into()) };
    assert_eq!(denied.mismatch(), Some("`target` does not name db-shared"));

    // Only a pointer: the action waits until the words themselves are back.
    window.lanes().externalize().wait()?.target.evict(id).wait()?;
    let Permission::Denied(denied) = window.permit(&local)? else { return Err("a pointer".into()) };
    assert_eq!(denied.evicted(), [id]);
    assert_eq!(denied.bring_back().wait()?, [id]);
    assert_eq!(texts(&window)[0], fact);
    let done = window.permit(&local)?.fresh()?.justified_by(&evidence)?.run(|_| Ok("truncated"))?;
    assert_eq!(done.text(), Some("truncated"));
    assert!(
        matches!(&intents(&store)?[..], [Happening::Intended { requires, evidence, .. }] if requires == &["target"] && evidence == &[id])
    );

    // A newer reading took its place: neither the old one as evidence nor its database as the target.
    let newer = window.lanes().target.push(NewSpan::tool("env", "target=db-shared").reads("connection"))?;
    let permit = window.permit(&shared)?.fresh()?;
    let stale = permit.justified_by(&evidence).err();
    assert_eq!(stale, Some(EvidenceError::Stale { span: id, by: newer }));
    let old = truncate("db-local", "orders");
    let Permission::Denied(denied) = window.permit(&old)? else { return Err("superseded".into()) };
    assert_eq!(denied.mismatch(), Some("`target` does not name db-local"));
    Ok(())
}

/// B002: the task's progress survived a compaction and the house rules did not.
#[test]
fn house_rules_are_word_for_word_and_in_order_or_the_loss_is_an_error() -> Outcome {
    let rules = ["no co-author trailer", "tracker items as a table"];
    let store = memory();
    let mut window = open(store.clone(), 4_000)?;
    window.lanes().rules.push(rules[0])?;
    window.lanes().limits.push(rules[1])?;
    for _ in 0..18 {
        filler(&mut window, 1, 500)?;
        if window.utilization() > 4_000 {
            assert!(matches!(fall_back(&mut window)?, FellBack::Freed(_)));
        }
    }
    assert_eq!(texts(&window)[..2], rules);
    drop(window);
    assert_eq!(texts(&resume(store, 4_000)?)[..2], rules);

    let mut window = open(memory(), 4_000)?;
    window.lanes().rules.push(text(2_010))?;
    window.lanes().limits.push(text(2_010))?;
    let error = fall_back(&mut window).err().ok_or("what is protected does not fit")?;
    let Some(FallBackError::Unfittable { needed: 4_020, budget: 4_000, held, .. }) = error.downcast_ref() else {
        return Err(error);
    };
    assert_eq!(held.kept, 4_020);
    assert_eq!(texts(&window).len(), 2);
    Ok(())
}

#[derive(ContextState)]
struct ReadOnly {
    #[constraint(pinned)]
    rules: Spans,
}

#[derive(ContextState)]
struct Writer {
    #[constraint(pinned)]
    rules: Spans,
}

/// A tool of the agent that writes, declared by hand for the one that reads.
struct WriteFile;

impl Canonical for WriteFile {
    fn canonical(&self, form: &mut Canon) {
        "a.rs".canonical(form);
    }
}

impl Action for WriteFile {
    type State = ReadOnly;
    type Effect = effect::Ordinary;
    type Consent = consent::NotNeeded;
    const NAME: &'static str = "WriteFile";
    const REQUIRES: &'static [Requirement] = &[Requirement::of::<Writer, _>(|lanes| &lanes.rules)];
}

/// B003: an agent that only reads began to write after a compaction. What a window may permit is part of its type; a
/// declaration that gets past that permits nothing, and its episode is no other agent's.
#[test]
fn an_action_of_another_agent_is_not_permitted_by_hand_either() -> Outcome {
    let store = memory();
    let mut window = Window::<ReadOnly, _>::open(store.clone(), Episode::new("e", "p"))?;
    window.lanes().rules.push("read only")?;
    drop(window.lanes().externalize().wait()?);
    let refused = window.permit(&WriteFile).err();
    assert!(matches!(refused, Some(PermitError::NoLane { action: "WriteFile", lane: "rules" })), "{refused:?}");
    drop(window);
    assert!(matches!(
        Window::<Agent, _>::resume(store.clone(), Episode::new("e", "p")),
        Err(ResumeError::OtherLanes { .. })
    ));
    let window = Window::<ReadOnly, _>::resume(store, Episode::new("e", "p"))?;
    assert_eq!(texts(&window), ["read only"]);
    Ok(())
}

/// B006: a loop skipped every message until the system prompt alone was left, and the model answered that.
#[test]
fn the_question_stays_and_the_oldest_exchanges_leave_first_and_whole() -> Outcome {
    let mut window = open(memory(), Limits::of(1_200).trigger(1_000).keep(400))?;
    let lanes = window.lanes();
    let system = lanes.rules.push(NewSpan::notice(text(40)))?;
    let question = lanes.rules.push(NewSpan::human(text(60)))?;
    let mut exchanges = Vec::new();
    for n in 0..6 {
        let call = lanes.work.push(NewSpan::model(text(80)).calls([format!("c{n}")]))?;
        exchanges.push((call, lanes.work.push(NewSpan::tool("read", text(100)).answers(format!("c{n}")))?));
    }
    let open_call = lanes.work.push(NewSpan::model(text(80)).calls(["c6"]))?;
    let FellBack::Freed(report) = fall_back(&mut window)? else { return Err("freed nothing".into()) };
    let mut left: Vec<_> = report.tombstones().iter().map(|tombstone| tombstone.span()).collect();
    left.sort_unstable();
    let whole: Vec<_> = exchanges[..left.len() / 2].iter().flat_map(|(call, result)| [*call, *result]).collect();
    assert!(!left.is_empty() && left.len() < 12 && window.utilization() <= 1_000);
    assert_eq!(left, whole, "the oldest, and no half of one");
    let shown: Vec<_> = window.render().iter().map(|message| message.shown()).collect();
    assert_eq!(shown[..2], [Shown::Span(system), Shown::Span(question)]);
    assert_eq!(shown.last(), Some(&Shown::Span(open_call)));

    let mut window = open(memory(), 1_200)?;
    window.lanes().rules.push(NewSpan::human(text(1_150)))?;
    window.lanes().work.push(NewSpan::model(text(80)).calls(["c"]))?;
    let error = fall_back(&mut window).err().ok_or("the live turn does not fit")?;
    let Some(FallBackError::Unfittable { needed: 1_230, budget: 1_200, held, .. }) = error.downcast_ref() else {
        return Err(error);
    };
    assert_eq!((held.kept, held.pending), (1_150, 80));
    Ok(())
}

#[derive(Action)]
#[action(state = Agent, requires(target), check = Self::is_live)]
struct Begin {
    task: &'static str,
}

impl Begin {
    fn is_live(&self, held: &Held<'_>) -> Result<(), String> {
        let Self { task } = self;
        if held.names("target", task) { Ok(()) } else { Err(format!("{task} is not the live task")) }
    }
}

/// B008: a summary listed a request that had been replaced as pending, and the agent resumed that.
#[test]
fn a_replaced_request_is_not_resumed_whatever_a_summary_calls_pending() -> Outcome {
    let mut window = open(memory(), PLENTY)?;
    let first = window.lanes().target.push(NewSpan::human("do task-a").reads("the task"))?;
    let live = window.lanes().target.push(NewSpan::human("do task-b").reads("the task"))?;
    let spans = filler(&mut window, 7, 400)?;
    let said = compact(&mut window, spans, "pending: task-a, then task-b")?;
    assert_eq!(window.lanes().target.cite(first).err(), Some(EvidenceError::Stale { span: first, by: live }));
    let (old, new) = (Begin { task: "task-a" }, Begin { task: "task-b" });
    let Permission::Denied(denied) = window.permit(&old)? else { return Err("it was resumed".into()) };
    assert_eq!(denied.mismatch(), Some("task-a is not the live task"));
    assert_eq!(window.permit(&new)?.fresh()?.run(|_| Ok("begun"))?.text(), Some("begun"));
    assert_eq!(window.trust(said), Some(Trust::Hearsay), "it rests on what the program said");
    window.lanes().externalize().wait()?.target.evict(first).wait()?;
    let all: Vec<_> = window.render().iter().map(|message| message.shown()).collect();
    assert_eq!(all, [Shown::Pointer(first, first), Shown::Span(live), Shown::Summary(said)]);
    assert_eq!(texts(&window)[1], "do task-b");
    Ok(())
}

/// Text as bytes; an image at 6,000.
struct Images;

impl TokenCounter for Images {
    fn text(&self, text: &str) -> Result<TokenCount, CounterError> {
        OneByteAToken.text(text)
    }

    fn bytes(&self, _: &[u8]) -> Result<TokenCount, CounterError> {
        Ok(TokenCount::exact(6_000))
    }
}

/// B009: the images of a prompt that was not answered yet were folded into text, or a compaction ran again and again since
/// they were over its budget.
#[test]
fn an_unanswered_prompt_keeps_its_images_and_is_compacted_for_nothing_once() -> Outcome {
    let store = Arc::new(Counting::new(MemoryStore::new()));
    let limits = Limits::of(8_000).trigger(4_000);
    let mut window = Window::<Agent, _>::open_with(store.clone(), named("e", limits), Images)?;
    let image = vec![0xff_u8; 50_000];
    window.lanes().rules.push(NewSpan::human(text(100)))?;
    window.lanes().rules.push(NewSpan::human(image.clone()))?;
    drop(window.lanes().externalize().wait()?);
    for time in 1..=2 {
        store.commits();
        let refusal = window.lanes().externalize().wait()?.admit().err().ok_or("a model was asked")?;
        assert!(matches!(refusal.reason(), Refused::NothingToPrune { .. }), "{refusal}");
        let fell = refusal.fall_back(OldestFirst).wait()?;
        if time == 1 {
            assert!(matches!(fell, FellBack::Unchanged { .. }), "{fell:?}");
        } else {
            assert!(matches!(fell, FellBack::NoProgress { .. }), "{fell:?}");
        }
        assert_eq!((window.accounting().passes, window.accounting().fallbacks), (0, 0));
        let all = window.render();
        assert_eq!((all[0].content().as_bytes().len(), all[1].content().as_bytes()), (100, &image[..]));
        assert_eq!(store.commits(), 0, "nothing is written for nothing");
    }
    Ok(())
}

/// B010: a ladder of fallbacks dropped the system prompt, or every message, and called that compacted.
#[test]
fn what_fits_by_losing_the_prompt_is_not_called_compacted() -> Outcome {
    let mut window = open(memory(), 4_000)?;
    window.lanes().rules.push(NewSpan::notice(text(50)))?;
    let refused = window.lanes().rules.push(NewSpan::human(text(9_000)));
    assert!(matches!(refused, Err(PushError::LargerThanBudget { tokens: 9_000, budget: 4_000, .. })));
    window.lanes().rules.push(NewSpan::human(text(4_000)))?;
    let before = texts(&window);
    let error = fall_back(&mut window).err().ok_or("it does not fit")?;
    assert!(matches!(error.downcast_ref(), Some(FallBackError::Unfittable { needed: 4_050, budget: 4_000, .. })));
    assert_eq!(texts(&window), before, "the caller decides");
    Ok(())
}

// What a person said, and did not say.

#[derive(Action)]
#[action(state = Agent)]
struct RecreateDatabase {
    name: &'static str,
}

/// B012, B014: what the user had refused was done after a compaction, or came back as a mild preference.
#[test]
fn what_a_person_refused_is_refused_after_every_compaction_and_in_every_window() -> Outcome {
    let store = memory();
    let mut window = open(store.clone(), PLENTY)?;
    let no = window.lanes().failed.push(NewSpan::human("No. Never recreate the test database."))?;
    let request = RecreateDatabase { name: "test" };
    window.note_failure(&request, Failure::refused("the user said no").shown_in(no))?;
    for _ in 0..2 {
        let spans = filler(&mut window, 7, 400)?;
        compact(&mut window, spans, "they would rather keep the database")?;
        window.change_policy("p2").wait()?;
        window.lanes().target.push(NewSpan::tool("env", "another branch"))?;
    }
    let mut resumed = resume(store.clone(), PLENTY)?;
    let mut other = Windowed::open_with(store.clone(), named("other", PLENTY), OneByteAToken)?;
    for window in [&mut resumed, &mut other] {
        let Permission::Failed(known) = window.permit(&request)? else { return Err("it was forgotten".into()) };
        assert_eq!((known.is_refused(), known.why(), known.shown_in()), (true, "the user said no", Some(no)));
        assert_eq!(known.attempt().episode(), &EpisodeId::new("e"));
    }
    assert_eq!(texts(&resumed)[0], "No. Never recreate the test database.");
    // Another database is another matter, and a change of mind is said with its reason.
    window = resumed;
    assert!(matches!(window.permit(&RecreateDatabase { name: "scratch" })?, Permission::Fresh(_)));
    assert!(Override::because(" ").is_err());
    let Permission::Failed(known) = window.permit(&request)? else { return Err("it was forgotten".into()) };
    let permit =
        known.repeat(Override::because("the user changed their mind in s40")?).map_err(|no| no.into_inner())?;
    assert_eq!(permit.run(|_| Ok("recreated"))?.attempt().repeats(), Some("the user changed their mind in s40"));
    Ok(())
}

#[derive(Action)]
#[action(state = Agent, consent)]
struct Push {
    branch: &'static str,
}

/// B013: a background notice under the user's role, and a summary of it, were taken for the user's approval.
#[test]
fn consent_is_what_a_person_said_and_nothing_that_stands_under_their_role() -> Outcome {
    let store = memory();
    let mut window = open(store.clone(), PLENTY)?;
    let waiting = window.lanes().rules.push(NewSpan::model("awaiting: push?"))?;
    let notice = window.lanes().work.push(NewSpan::notice(format!("push finished {}", text(400))).role(Role::User))?;
    let result = window.lanes().work.push(NewSpan::tool("push", "yes").role(Role::User))?;
    let not_a_person = |span, origin| Some(EvidenceError::NotHuman { span, origin });
    assert_eq!(window.lanes().rules.consent(waiting).err(), not_a_person(waiting, Origin::Model));
    assert_eq!(window.lanes().work.consent(result).err(), not_a_person(result, Origin::Tool));
    assert_eq!(window.lanes().work.consent(notice).err(), not_a_person(notice, Origin::Notice));
    let said = compact(&mut window, notice, "the user approved the push")?;
    assert_eq!(window.trust(said), Some(Trust::Hearsay));
    assert!(window.lanes().work.consent(notice).is_err() && window.lanes().work.consent(said).is_err());
    assert_eq!(texts(&window)[0], "awaiting: push?", "it still waits");

    let yes = window.lanes().rules.push(NewSpan::human("yes, push it"))?;
    let consent = window.lanes().rules.consent(yes)?;
    let push = Push { branch: "main" };
    window.permit(&push)?.fresh()?.consented_by(consent)?.run(|_| Ok("pushed"))?;
    assert!(matches!(&intents(&store)?[..], [Happening::Intended { consent: Some(span), .. }] if *span == yes));
    // Their word is good for one time.
    let Permission::Done(done) = window.permit(&push)? else { return Err("it was pushed".into()) };
    let again = Override::because("the branch moved on")?;
    drop(done);
    let consent = window.lanes().rules.consent(yes)?;
    let Permission::Done(done) = window.permit(&push)? else { return Err("it was pushed".into()) };
    let permit = done.repeat(again).map_err(|denied| denied.into_inner())?;
    let spent = permit.consented_by(consent)?.run(|_| Ok("pushed twice"));
    assert!(matches!(spent, Err(RunError::Spent { action: "Push", span }) if span == yes), "{spent:?}");
    Ok(())
}

/// B015: of paths, commands and numbers, next to nothing survived a summary.
#[test]
fn every_exact_value_is_found_again_through_the_tombstones() -> Outcome {
    let mut window = open(memory(), PLENTY)?;
    let mut stated = Vec::new();
    let mut spans = Vec::new();
    for n in 0..40_u64 {
        let exact = [
            format!("src/a{n}/b.rs"),
            format!("docs/{n}.md"),
            format!("/etc/k{n}.toml"),
            format!("cargo test -p c{n} -- --nocapture"),
            format!("git bisect start v{n} HEAD"),
            format!("{}", 7_919 * (n + 1)),
        ];
        let said = format!("decided {n}: {}; {}", exact.join("; "), text(60));
        spans.push(window.lanes().work.push(NewSpan::tool("shell", said))?);
        stated.push(exact);
    }
    for group in spans.chunks(8) {
        compact(&mut window, group, "files were looked at and it was decided")?;
    }
    let shown = texts(&window).concat();
    assert!(stated.iter().flatten().all(|exact| !shown.contains(exact.as_str())), "no summary has any of it");
    let tombstones = window.tombstones()?;
    assert_eq!(tombstones.iter().map(|tombstone| tombstone.span()).collect::<Vec<_>>(), spans);
    let mut found = 0;
    for (tombstone, exact) in tombstones.iter().zip(&stated) {
        let recalled = window.recall(tombstone.span()).wait()?;
        let text = recalled.content().as_text().ok_or("text")?;
        found += exact.iter().filter(|exact| text.contains(exact.as_str())).count();
        assert_eq!((tombstone.sha256(), recalled.cite()?.trust()), (recalled.sha256().ok_or("stored")?, Trust::Stored));
    }
    assert_eq!(found, 240);
    // No summary of what is not in the store.
    let unknown = SpanId::parse("s999").ok_or("an id")?;
    let lanes = window.lanes().externalize().wait()?;
    let refused = lanes.work.summarize(unknown, summary("s")?, &lanes.recap).wait();
    assert!(matches!(refused, Err(SummarizeError::Selection(SelectionError::Unknown { .. }))));
    Ok(())
}

/// B017: a call was removed and its narration stayed; the model then reported work that it never did.
#[test]
fn narration_and_its_evidence_leave_together_and_a_claim_on_them_is_not_made() -> Outcome {
    let mut window = open(memory(), PLENTY)?;
    let said = window.lanes().work.push(NewSpan::model("created the ticket").calls(["c1"]))?;
    let shows = window.lanes().work.push(NewSpan::tool("create_ticket", "ticket 7").answers("c1"))?;
    let left = window.lanes().externalize().wait()?.work.evict(shows).wait()?;
    assert_eq!(left.iter().map(|tombstone| tombstone.span()).collect::<Vec<_>>(), [said, shows], "no half of it");
    let all: Vec<_> = window.render().iter().map(|message| message.shown()).collect();
    assert_eq!(all, [Shown::Pointer(said, shows)]);
    let made_up = SpanId::parse("s40").ok_or("an id")?;
    let incomplete = window.assert_complete("the ticket was created", [shows, made_up]).err().ok_or("claimed")?;
    assert_eq!((incomplete.missing(), incomplete.unrecoverable()), (&[shows][..], &[made_up][..]));
    window.lanes().work.restore([said, shows]).wait()?;
    assert_eq!(window.assert_complete("the ticket was created", [shows])?.spans(), [shows]);
    Ok(())
}

// Done again, since nothing said that it was done.

/// B018: the line in place of a read said to run the tool again, and six files were read again.
#[test]
fn a_read_that_left_has_its_id_its_size_and_its_recall_and_is_counted() -> Outcome {
    let mut window = open(memory(), PLENTY)?;
    let mut spans = Vec::new();
    for n in 0..6 {
        let call = format!("c{n}");
        let turn = NewSpan::model(format!("read(src/{n}.rs)")).calls([call.as_str()]);
        spans.push(window.lanes().work.push(turn)?);
        let read = NewSpan::tool("read", text(1_500)).answers(call).reads(format!("src/{n}.rs"));
        spans.push(window.lanes().work.push(read)?);
    }
    let mut each = Vec::new();
    for pair in spans.chunks(2) {
        window.lanes().externalize().wait()?.work.evict(pair).wait()?;
        each.push(window.utilization());
    }
    let tombstones = window.tombstones()?;
    assert_eq!(tombstones.iter().map(|tombstone| tombstone.span()).collect::<Vec<_>>(), spans);
    for tombstone in tombstones.iter().filter(|tombstone| tombstone.name() == Some("read")) {
        let (id, line) = (tombstone.span(), tombstone.pointer().to_string());
        assert!(line.starts_with(&format!("[{id} work from read: 1500 tokens")), "{line}");
        assert!(line.contains(&format!("recall {id}]")) && !line.contains("again"), "{line}");
        assert_eq!(window.recall(id).wait()?.content().as_bytes().len(), 1_500);
    }
    let shown = texts(&window);
    assert_eq!(window.utilization(), shown.iter().map(|line| line.len() as u64).sum::<u64>(), "pointers are counted");
    assert!(each.windows(2).all(|two| two[1] < two[0]) && window.utilization() < 200, "{each:?}");
    Ok(())
}

/// B019: what was kept by its hash had no handle in the window, and one file was read 66 times.
#[test]
fn every_recall_gives_the_same_bytes_and_every_cycle_is_on_record() -> Outcome {
    let store = memory();
    let mut window = open(store.clone(), 10_000)?;
    let read: String = (0..400).map(|line| format!("line {line:>8}\n")).collect();
    let id = window.lanes().work.push(NewSpan::tool("read", read.as_str()).reads("a.rs:1-400"))?;
    let mut sizes = Vec::new();
    for _ in 0..5 {
        window.lanes().externalize().wait()?.work.evict(id).wait()?;
        sizes.push(window.utilization());
        let handle = texts(&window).remove(0);
        let named = handle.rsplit("recall ").next().and_then(|rest| SpanId::parse(rest.trim_end_matches(']')));
        assert_eq!(named, Some(id), "{handle}");
        assert_eq!(window.recall(named.ok_or("a handle")?).wait()?.content().as_text(), Some(read.as_str()));
        assert_eq!(window.lanes().work.restore(id).wait()?, [id]);
        assert_eq!(texts(&window), [read.as_str()]);
    }
    assert!(sizes.iter().all(|size| *size == sizes[0]), "no cycle leaves anything behind: {sizes:?}");
    let history = History::read(&store, &EpisodeId::new("e"))?;
    let restored = history.entries().iter().flat_map(|entry| &entry.happenings);
    assert_eq!(restored.filter(|what| matches!(what, Happening::Restored { span } if *span == id)).count(), 5);
    Ok(())
}

#[derive(Action)]
#[action(state = Agent)]
struct UpdateProfile {
    city: &'static str,
}

/// B021: an outdated summary said that the profile was not updated, so it was updated again and again.
#[test]
fn what_was_done_is_done_whatever_an_older_summary_says() -> Outcome {
    let mut window = open(memory(), PLENTY)?;
    let spans = filler(&mut window, 10, 100)?;
    compact(&mut window, spans, "the profile is not updated")?;
    let update = UpdateProfile { city: "Oslo" };
    let mut runs = 0;
    for _ in 0..5 {
        match window.permit(&update)? {
            Permission::Fresh(permit) => {
                let done = permit.run(|request| {
                    runs += 1;
                    Ok(format!("city={}", request.city))
                })?;
                assert_eq!(done.text(), Some("city=Oslo"));
            }
            Permission::Done(done) => assert_eq!(done.text(), Some("city=Oslo"), "byte for byte"),
            other => return Err(format!("{other:?}").into()),
        }
        let spans = filler(&mut window, 3, 100)?;
        compact(&mut window, spans, "the profile is still not updated")?;
    }
    assert_eq!(runs, 1);
    Ok(())
}

#[derive(Action)]
#[action(state = Agent, requires(schema))]
struct Lookup {
    key: &'static str,
}

/// B022: an empty result read like a failed call, and the same key was looked up again and again.
#[test]
fn nothing_there_holds_until_what_it_was_true_for_has_changed() -> Outcome {
    let store = memory();
    let mut window = open(store.clone(), Limits::of(3_000).trigger(2_000))?;
    let version = |n: u32| NewSpan::tool("describe_store", format!("store version {n}")).reads("the store");
    window.lanes().schema.push(version(1))?;
    let lookup = Lookup { key: "k" };
    let empty = window.lanes().failed.push(NewSpan::tool("lookup", "k -> nothing"))?;
    let failed = window
        .permit(&lookup)?
        .fresh()?
        .run(|_| Err::<String, _>(Failure::without_effect("there is no k").shown_in(empty)));
    assert!(matches!(failed, Err(RunError::Failed { .. })));
    for _ in 0..2 {
        filler(&mut window, 8, 400)?;
        assert!(matches!(fall_back(&mut window)?, FellBack::Freed(_)));
        assert!(texts(&window).contains(&"k -> nothing".to_owned()));
        let Permission::Failed(known) = window.permit(&lookup)? else { return Err("it was looked up again".into()) };
        assert_eq!((known.why(), known.shown_in(), known.is_refused()), ("there is no k", Some(empty), false));
        assert_eq!(known.under().map(|(lane, _)| lane).collect::<Vec<_>>(), ["schema"]);
        window.lanes().schema.push(version(1))?;
    }
    // The same version read again is no change; another one is.
    assert!(matches!(window.tried(lookup.signature())?, Tried::Failed(_)));
    window.lanes().schema.push(version(2))?;
    let Tried::Never { before: Some(before) } = window.tried(lookup.signature())? else { return Err("changed".into()) };
    assert_eq!(before.why(), "there is no k");
    let permit = window.permit(&lookup)?.fresh()?;
    assert_eq!((permit.attempt(), permit.run(|_| Ok("k -> 5"))?.text()), (2, Some("k -> 5")));
    Ok(())
}

#[derive(Action)]
#[action(state = Agent)]
struct Shell {
    command: &'static str,
}

/// B024: a failed call was dropped as worthless, although a command that fails may have written.
#[test]
fn a_failure_whose_effect_is_unknown_is_settled_before_anything_follows() -> Outcome {
    let store = memory();
    let mut window = open(store.clone(), PLENTY)?;
    let install = Shell { command: "make install" };
    let ran = window.permit(&install)?.fresh()?.run(|_| Err::<String, _>(Failure::unknown("exit 1: half installed")));
    assert!(matches!(&ran, Err(RunError::Uncertain { why, .. }) if why == "exit 1: half installed"), "{ran:?}");
    let noted = window.note_failure(&install, Failure::without_effect("it failed"));
    assert!(matches!(noted, Err(PermitError::Unsettled(_))), "an error is no proof of no effect");
    let noted = window.note_failure(&Shell { command: "ls" }, Failure::unknown("exit 1"));
    assert!(matches!(noted, Err(PermitError::Unknown { action: "Shell" })));
    let Permission::Uncertain(attempt) = window.permit(&install)? else { return Err("unresolved".into()) };
    attempt.settle(Settlement::not_done("looked: removed what was half there")?).wait()?;
    let ran = window.permit(&install)?.fresh()?.run(|_| Err::<String, _>(Failure::without_effect("exit 2: no space")));
    assert!(matches!(ran, Err(RunError::Failed { .. })));

    // First cause, last error and how many, after a compaction and a stop.
    let spans = filler(&mut window, 3, 400)?;
    compact(&mut window, spans, "make install did not work")?;
    drop(window);
    let window = resume(store.clone(), PLENTY)?;
    let Tried::Failed(last) = window.tried(install.signature())? else { return Err("it failed".into()) };
    assert_eq!((last.why(), last.attempt().number()), ("exit 2: no space", 2));
    let history = History::read(&store, &EpisodeId::new("e"))?;
    let said = history.entries().iter().flat_map(|entry| &entry.happenings).filter_map(|happening| match happening {
        Happening::Doubted { attempt, why, .. } | Happening::Failed { attempt, why, .. } => {
            Some((*attempt, why.as_str()))
        }
        Happening::NotDone { attempt, how, .. } => Some((*attempt, how.as_str())),
        _ => None,
    });
    let known = [(1, "exit 1: half installed"), (1, "looked: removed what was half there"), (2, "exit 2: no space")];
    assert_eq!(said.collect::<Vec<_>>(), known);
    Ok(())
}

#[derive(Action)]
#[action(state = Agent)]
struct Send<'a> {
    to: &'a str,
    body: &'a str,
}

/// B025: a message was sent, the compaction kept its topic and not that it was sent, and it was sent again.
#[test]
fn a_message_that_was_sent_is_not_sent_again_by_any_window() -> Outcome {
    let store = memory();
    let sent = Cell::new(0);
    let deliver = |request: Granted<'_, Send<'_>>| {
        sent.set(sent.get() + 1);
        Ok::<_, Failure>(format!("delivered to {} as e{}", request.to, sent.get()))
    };
    let message = Send { to: "P", body: "B" };
    let mut window = open(store.clone(), PLENTY)?;
    window.permit(&message)?.fresh()?.run(deliver)?;
    let call = window.lanes().work.push(NewSpan::model(text(200)).calls(["c1"]))?;
    let result = window.lanes().work.push(NewSpan::tool("send", "e1").answers("c1"))?;
    window.lanes().externalize().wait()?.work.evict([call, result]).wait()?;
    for _ in 0..3 {
        let spans = filler(&mut window, 6, 200)?;
        compact(&mut window, spans, "pending: send B to P")?;
    }
    let resumed = resume(store.clone(), PLENTY)?;
    let other = Windowed::open_with(store.clone(), named("other", PLENTY), OneByteAToken)?;
    for mut window in [resumed, other] {
        let Permission::Done(done) = window.permit(&message)? else { return Err("it would be sent again".into()) };
        assert_eq!((done.text(), done.attempt().number()), (Some("delivered to P as e1"), 1));
        assert_eq!(done.attempt().episode(), &EpisodeId::new("e"));
        assert!(matches!(window.permit(&Send { to: "P", body: "C" })?, Permission::Fresh(_)), "another message");
    }
    assert_eq!(sent.get(), 1);
    // A repeat that is wanted says why, and is on record.
    let mut window = resume(store.clone(), PLENTY)?;
    let Permission::Done(done) = window.permit(&message)? else { return Err("it was sent".into()) };
    let permit = done.repeat(Override::because("P lost it")?).map_err(|denied| denied.into_inner())?;
    assert_eq!(permit.run(deliver)?.text(), Some("delivered to P as e2"));
    let reasons: Vec<_> = intents(&store)?
        .into_iter()
        .map(|intended| match intended {
            Happening::Intended { attempt, repeats, .. } => (attempt, repeats),
            _ => (0, None),
        })
        .collect();
    assert_eq!(reasons, [(1, None), (2, Some("P lost it".to_owned()))]);
    Ok(())
}

// A process that dies in the middle.

/// What one call of a batch came to, as the window that goes on sees it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Seen {
    NotStarted,
    Done,
    Uncertain,
}

const BATCH: [(&str, &str); 2] = [("c1", "write a.rs"), ("c2", "call the webhook")];

/// Runs what of the batch may run, and nothing else; what each call was found to be.
fn batch(window: &mut Windowed<Arc<Faulty>>, effects: &[AtomicU64; 2]) -> Outcome<Vec<Seen>> {
    let mut seen = Vec::new();
    for ((call, command), effects) in BATCH.into_iter().zip(effects) {
        let request = Shell { command };
        let result = match window.permit(&request)? {
            Permission::Fresh(permit) => {
                seen.push(Seen::NotStarted);
                permit.run(|request| {
                    let times = effects.fetch_add(1, Ordering::SeqCst) + 1;
                    Ok(format!("{}: {times}", request.command))
                })?
            }
            Permission::Done(done) => {
                seen.push(Seen::Done);
                done.into_inner()
            }
            Permission::Uncertain(_) => {
                seen.push(Seen::Uncertain);
                continue;
            }
            other => return Err(format!("{other:?}").into()),
        };
        if window.open_calls().iter().any(|open| *open.call == *call) {
            let text = result.text().ok_or("text")?;
            window.lanes().work.push(NewSpan::tool("shell", text).answers(call))?;
        }
    }
    drop(window.lanes().externalize().wait()?);
    Ok(seen)
}

/// B027: a crash in the middle of a batch of calls ran the whole batch again.
#[test]
fn after_a_crash_anywhere_in_a_batch_each_call_ran_once_at_most() -> Outcome {
    let mut found = Vec::new();
    for fault in [Fault::Fails, Fault::Unacknowledged] {
        for nth in 1.. {
            let store = Arc::new(Faulty::default());
            let effects = [AtomicU64::new(0), AtomicU64::new(0)];
            let times = || effects.each_ref().map(|times| times.load(Ordering::SeqCst));
            let mut window = open(store.clone(), PLENTY)?;
            window.lanes().work.push(NewSpan::model("three calls").calls(["c1", "c2", "c3"]))?;
            drop(window.lanes().externalize().wait()?);
            store.arm(nth, fault);
            let survived = batch(&mut window, &effects).is_ok();
            drop(window);
            store.arm(0, fault);
            let died = times();

            let mut window = resume(store.clone(), PLENTY)?;
            let seen = batch(&mut window, &effects)?;
            for (((seen, died), after), (call, command)) in seen.iter().zip(died).zip(times()).zip(BATCH) {
                let expected = match seen {
                    Seen::NotStarted => (0, 1),
                    Seen::Done => (1, 1),
                    Seen::Uncertain => (died, died),
                };
                assert!((died, after) == expected && after <= 1, "{fault:?} {nth}: {call} {seen:?} {died} {after}");
                let result = format!("{command}: 1");
                assert_eq!(texts(&window).contains(&result), *seen != Seen::Uncertain, "its result, from the log");
            }
            assert_eq!(
                window.open_calls().last().map(|open| open.call.to_string()),
                Some("c3".into()),
                "it still waits"
            );
            found.extend(seen);
            // Again, and nothing more happens.
            assert!(batch(&mut window, &effects)?.iter().all(|seen| *seen != Seen::NotStarted));
            if survived && times() == died && died == [1, 1] {
                break;
            }
        }
    }
    for seen in [Seen::NotStarted, Seen::Done, Seen::Uncertain] {
        assert!(found.contains(&seen), "no crash point led to {seen:?}");
    }
    Ok(())
}

#[derive(Action)]
#[action(state = Agent, consent, requires(target))]
struct Mail {
    to: &'static str,
}

/// B028: an approved mail was sent, the process died before that was on record, and the approval was used again.
#[test]
fn an_approved_mail_whose_outcome_was_lost_is_uncertain_and_its_approval_is_spent() -> Outcome {
    for was_sent in [true, false] {
        let store = Arc::new(Faulty::default());
        let mut window = open(store.clone(), PLENTY)?;
        window.lanes().target.push(NewSpan::human("customers of the pilot"))?;
        let yes = window.lanes().rules.push(NewSpan::human("yes, send it"))?;
        drop(window.lanes().externalize().wait()?);
        let consent = window.lanes().rules.consent(yes)?;
        let mail = Mail { to: "ada" };
        let mut sent = 0;
        let ran = window.permit(&mail)?.fresh()?.consented_by(consent)?.run(|request| {
            sent += 1;
            store.arm(1, Fault::Fails);
            Ok(format!("sent to {}", request.to))
        });
        assert!(matches!(&ran, Err(RunError::Unrecorded { source: CommitError::Store(_), .. })), "{ran:?}");
        drop(window);

        let mut window = resume(store.clone(), PLENTY)?;
        let Permission::Uncertain(attempt) = window.permit(&mail)? else { return Err("it would be sent again".into()) };
        assert_eq!((attempt.number(), sent), (1, 1));
        if was_sent {
            attempt.settle(Settlement::done("sent to ada", "the outbox has it")?).wait()?;
            let Permission::Done(done) = window.permit(&mail)? else { return Err("it was settled".into()) };
            assert_eq!((done.text(), done.settled()), (Some("sent to ada"), Some("the outbox has it")));
            continue;
        }
        attempt.settle(Settlement::not_done("the outbox is empty, and the service was down")?).wait()?;
        let consent = window.lanes().rules.consent(yes)?;
        let again = window.permit(&mail)?.fresh()?.consented_by(consent)?.run(|_| {
            sent += 1;
            Ok("sent")
        });
        assert!(matches!(again, Err(RunError::Spent { action: "Mail", span }) if span == yes), "{again:?}");
        assert_eq!(sent, 1);
        let yes = window.lanes().rules.push(NewSpan::human("yes, once more"))?;
        let consent = window.lanes().rules.consent(yes)?;
        assert_eq!(window.permit(&mail)?.fresh()?.consented_by(consent)?.run(|_| Ok("sent"))?.text(), Some("sent"));
    }
    Ok(())
}
