//! Budgets and policies at run time: what cannot work is refused, with the numbers, and nothing is clamped (rule R12).

#![allow(clippy::unwrap_used, reason = "a test that unwraps fails")]

use keepspan::{
    Budget, BudgetError, ContextState, Episode, EpisodeId, FellBack, Field, Lane, LaneSpec, Limits, OldestFirst,
    OneByteAToken, OpenError, PolicyError, PushError, Refused, Spans, Window,
    kind::{Constraint, Evictable},
    policy,
    policy::{Act, Governed, Permits, Policy, Terms, Unrestricted},
    store::Store,
    tool::Answer,
};
use keepspan_tests::{Agent, FourBytes, memory};
use proptest::prelude::*;

type Outcome = Result<(), Box<dyn std::error::Error>>;

#[test]
fn what_is_not_set_follows_from_the_limit() {
    let budget = Budget::new(Limits::of(24_000)).unwrap();
    assert_eq!((budget.index(), budget.rationale(), budget.margin(), budget.trigger()), (600, 400, 600, 20_000));
    assert_eq!((budget.fixed(), budget.reserve(), budget.keep()), (0, 0, 0));
    assert_eq!((budget.tokens(), budget.limit(), budget.decision(), budget.room()), (24_000, 24_000, 1_000, 24_000));
    // 10,007 are left: 250.2, 166.8 and 8,339.2 are rounded, 1.5 times 167 as well.
    let budget = Budget::new(Limits::of(12_000).reserve(1_993).fixed(7)).unwrap();
    assert_eq!((budget.index(), budget.rationale(), budget.margin(), budget.trigger()), (251, 167, 251, 8_339));
    assert_eq!((budget.limit(), budget.room()), (10_007, 10_000));
    assert_eq!(Budget::new(24_000.into()), Budget::new(Limits::of(24_000)));
}

#[test]
fn what_cannot_work_is_refused_by_its_most_basic_fault() {
    let window = 8_000;
    for (limits, expected) in [
        (Limits::of(0), BudgetError::Empty),
        (Limits::of(131_072).reserve(131_072), BudgetError::AllReserved { reserve: 131_072, budget: 131_072 }),
        (Limits::of(100).reserve(200), BudgetError::AllReserved { reserve: 200, budget: 100 }),
        (Limits::of(window).reserve(window), BudgetError::AllReserved { reserve: 8_000, budget: 8_000 }),
        (Limits::of(window).keep(window), BudgetError::KeepReachesTrigger { keep: 8_000, fixed: 0, trigger: 6_666 }),
        (Limits::of(window).keep(8_001), BudgetError::KeepAboveBudget { keep: 8_001, budget: 8_000 }),
        (
            Limits::of(32_768).fixed(29_000).trigger(27_852),
            BudgetError::FixedReachesTrigger { fixed: 29_000, trigger: 27_852 },
        ),
        (Limits::of(3_000).fixed(3_200), BudgetError::AllFixed { fixed: 3_200, limit: 3_000 }),
        (Limits::of(3_000).fixed(3_000), BudgetError::AllFixed { fixed: 3_000, limit: 3_000 }),
        (Limits::of(24_000).trigger(24_001), BudgetError::TriggerAboveLimit { trigger: 24_001, limit: 24_000 }),
        (
            Limits::of(24_000).trigger(23_001),
            BudgetError::DecisionInBand { trigger: 23_001, limit: 24_000, index: 600, rationale: 400 },
        ),
        (Limits::of(24_000).margin(22_000), BudgetError::MarginOutOfReach { margin: 22_000, most: 22_000 }),
        (Limits::of(24_000).margin(399), BudgetError::MarginBelowRationale { margin: 399, rationale: 400 }),
        (Limits::of(24_000).trigger(0), BudgetError::FixedReachesTrigger { fixed: 0, trigger: 0 }),
        // Too little to decide anything in.
        (Limits::of(1), BudgetError::DecisionInBand { trigger: 0, limit: 1, index: 1, rationale: 1 }),
    ] {
        assert_eq!(Budget::new(limits), Err(expected), "{limits:?}");
    }
    // The same, one token inside.
    for limits in [
        Limits::of(24_000).trigger(23_000),
        Limits::of(24_000).margin(400),
        Limits::of(24_000).fixed(19_999),
        Limits::of(24_000).fixed(1_000).keep(18_999),
        Limits::of(24_000).keep(19_999),
        Limits::of(24_000).index(3_600),
    ] {
        assert!(Budget::new(limits).is_ok(), "{limits:?}");
    }
    assert!(Budget::new(Limits::of(24_000).keep(20_000)).is_err());
    assert!(Budget::new(Limits::of(24_000).index(3_601)).is_err());
}

#[test]
fn a_refusal_has_the_numbers_and_the_way_out() {
    let said = |limits| Budget::new(limits).unwrap_err().to_string();
    assert_eq!(
        said(Limits::of(24_000).trigger(23_500)),
        "trigger 23_500 leaves 500 tokens of the limit 24_000, and deciding costs 1_000 (index 600 + rationale 400): \
         lower the trigger to 23_000, or let the decision read and write less"
    );
    assert!(said(Limits::of(24_000).rationale(u64::MAX)).ends_with("or raise the budget"));
    assert_eq!(
        said(Limits::of(8_000).fixed(10).keep(8_000)),
        "keep 8_000 and fixed 10 reach the trigger 6_666, so no pass could get below it: lower keep below 6_656"
    );
}

/// Numbers around each other, and around the largest there is.
fn number() -> impl Strategy<Value = u64> {
    let edges = [0, 1, 2, 3, 39, 40, 41, 59, 60, 61, 1_000, u64::MAX / 2, u64::MAX - 1, u64::MAX];
    prop_oneof![proptest::sample::select(edges.to_vec()), 0..2_000_u64, any::<u64>()]
}

fn maybe() -> impl Strategy<Value = Option<u64>> {
    proptest::option::weighted(0.4, number())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 20_000, ..ProptestConfig::default() })]

    /// Against the same rules in 128 bits, where nothing can wrap.
    #[test]
    fn a_budget_works_or_is_refused_whatever_the_numbers(
        tokens in number(),
        [fixed, trigger, index, rationale, margin, reserve, keep] in
            [maybe(), maybe(), maybe(), maybe(), maybe(), maybe(), maybe()],
    ) {
        let mut limits = Limits::of(tokens);
        let setters: [(_, fn(_, _) -> _); 7] = [
            (fixed, Limits::fixed),
            (trigger, Limits::trigger),
            (index, Limits::index),
            (rationale, Limits::rationale),
            (margin, Limits::margin),
            (reserve, Limits::reserve),
            (keep, Limits::keep),
        ];
        for (given, set) in setters {
            limits = given.map_or(limits, |tokens| set(limits, tokens));
        }
        let or = |given: Option<u64>, default: i128| given.map_or(default, i128::from);
        let limit = i128::from(tokens) - or(reserve, 0);
        let trigger = or(trigger, limit * 5 / 6);
        let (index, rationale) = (or(index, (limit + 39) / 40), or(rationale, (limit + 59) / 60));
        let most = i128::from(u64::MAX);
        let margin = or(margin, ((rationale * 3 + 1) / 2).min(most));
        let (fixed, keep) = (or(fixed, 0), or(keep, 0));
        let works = limit > 0
            && trigger <= limit
            && limit - trigger >= index + rationale
            && fixed + keep < trigger
            && keep <= i128::from(tokens)
            && margin >= rationale
            && margin < limit - fixed - keep - 2 * (index + rationale);
        match Budget::new(limits) {
            Ok(budget) => {
                prop_assert!(works, "{:?} was accepted", limits);
                let parts = [
                    budget.fixed(), budget.trigger(), budget.index(), budget.rationale(), budget.margin(),
                    budget.keep(), budget.limit(), budget.decision(),
                ];
                let expected = [fixed, trigger, index, rationale, margin, keep, limit, index + rationale];
                prop_assert_eq!(parts.map(i128::from), expected);
            }
            Err(error) => {
                prop_assert!(!works, "{:?} was refused: {}", limits, error);
                prop_assert!(error.to_string().contains(": "), "{} says what to do", error);
            }
        }
    }
}

#[test]
fn a_window_has_the_budget_of_its_struct_or_of_its_episode() -> Outcome {
    let window = Window::<Agent, _>::open(memory(), Episode::new("e", "p"))?;
    assert_eq!(window.budget().map(Budget::tokens), Some(10_000));
    let own = Limits::of(5_000).fixed(500).reserve(1_000);
    let mut window = Window::<Agent, _>::open_with(memory(), Episode::new("e", "p").budget(own), FourBytes)?;
    assert_eq!(window.budget(), Budget::new(own).ok());
    // A token is four bytes; 3,500 are left for spans.
    let lanes = window.lanes();
    let refused = lanes.work.push("x".repeat(4 * 3_500 + 1));
    assert!(matches!(refused, Err(PushError::LargerThanBudget { tokens: 3_501, budget: 3_500, .. })));
    lanes.work.push("x".repeat(4 * 3_500))?;
    let endless = Window::<Agent, _>::open(memory(), Episode::new("e", "p").budget(u64::MAX))?;
    assert_eq!(endless.headroom(), Some(i64::MAX), "there is a budget");
    Ok(())
}

#[test]
fn an_impossible_budget_opens_no_window_and_writes_nothing() -> Outcome {
    let store = memory();
    let refused = Window::<Agent, _>::open(store.clone(), Episode::new("e", "p").budget(Limits::of(100).reserve(200)));
    assert!(matches!(refused, Err(OpenError::Budget(BudgetError::AllReserved { reserve: 200, budget: 100 }))));
    assert_eq!(store.length(&EpisodeId::new("e"))?, 0);
    Ok(())
}

policy! {
    /// What every agent keeps to.
    House { max_budget = 20_000, forbid(Mutation) }
}

policy! {
    /// For production.
    Strict: House { max_decision = 500 }
}

#[derive(ContextState)]
#[context(policy = Strict)]
struct Governor {
    #[evictable]
    work: Spans,
    #[derived]
    recap: Spans,
}

#[test]
fn an_episodes_budget_is_held_to_every_policy_above() -> Outcome {
    let store = memory();
    let open = |limits: Option<Limits>| {
        let episode = Episode::new("e", "p");
        let episode = limits.into_iter().fold(episode, Episode::budget);
        match Window::<Governor, _>::open(store.clone(), episode) {
            Err(OpenError::Policy(error)) => Some(error),
            _ => None,
        }
    };
    let (state, strict) = ("Governor", "Strict");
    let over = PolicyError::Budget { state, policy: "House", budget: 20_001, most: 20_000 };
    assert_eq!(open(Some(Limits::of(20_001).index(1).rationale(1))), Some(over));
    assert_eq!(
        over.to_string(),
        "`Governor`: budget 20_001 is above the 20_000 that the policy `House` allows: lower the budget"
    );
    let costly = PolicyError::Decision { state, policy: strict, index: 400, rationale: 101, most: 500 };
    assert_eq!(open(Some(Limits::of(20_000).index(400).rationale(101))), Some(costly));
    assert_eq!(open(None), Some(PolicyError::Unbounded { state, policy: "House", most: 20_000 }));
    assert_eq!(store.length(&EpisodeId::new("e"))?, 0);
    let mut window = Window::<Governor, _>::open(store, Episode::new("e", "p").budget(12_000))?;
    assert_eq!(window.budget().map(Budget::decision), Some(500));
    let lanes = window.lanes();
    lanes.work.push("x")?;
    assert!(lanes.recap.resident().is_empty());
    Ok(())
}

/// What passes really cost is held to the policy as what was declared is; a fallback lets the price come down again.
#[test]
fn a_wordy_model_is_held_to_the_policys_ceiling() -> Outcome {
    let episode = Episode::new("e", "p").budget(12_000);
    let mut window = Window::<Governor, _>::open_with(memory(), episode, OneByteAToken)?;
    for n in 0..9 {
        window.lanes().work.push(format!("{n:0>1000}"))?;
    }
    let pass = window.lanes().externalize().wait()?.admit().map_err(|refusal| refusal.into_reason())?;
    let proposal = pass.parse(&Answer::prune(["s1", "s2"]).spent(900))?;
    assert!(matches!(pass.apply(proposal).wait()?, keepspan::Outcome::Pruned(_)));
    let refusal = window.lanes().externalize().wait()?.admit().err().ok_or("it was admitted")?;
    assert!(matches!(refusal.reason(), Refused::AbovePolicy { rationale: 900, most: 500, .. }), "{refusal}");
    for n in 0..5 {
        window.lanes().work.push(format!("{n:1>1000}"))?;
    }
    let refusal = window.lanes().externalize().wait()?.admit().err().ok_or("it was admitted")?;
    assert!(matches!(refusal.fall_back(OldestFirst).wait()?, FellBack::Freed(_)));
    assert!(window.prices().rationale < 900);
    Ok(())
}

/// Written by hand: permits all acts, and keeps constraints in place.
enum ByHand {}
impl Policy for ByHand {
    type Under = Unrestricted;
    const TERMS: Terms = Terms::of("ByHand").always_pinned::<Constraint>().present::<Evictable>();
}
impl<A: Act> Permits<A> for ByHand {}

#[derive(ContextState)]
#[context(policy = ByHand)]
struct Kept {
    #[constraint(pinned)]
    limits: Spans,
    #[evictable]
    work: Spans,
}

#[test]
fn a_policy_by_hand_permits_what_it_says() -> Outcome {
    let mut window = Window::<Kept, _>::open(memory(), Episode::new("e", "p"))?;
    let lanes = window.lanes();
    lanes.limits.push("no more than two retries")?;
    let secret = lanes.work.push("the key is 1234")?;
    lanes.work.discard(secret, keepspan::Mutation::new("a secret", "ask the vault")?).wait()?;
    Ok(())
}

/// A declaration by hand, which nothing held to its policy when it was compiled.
struct Forged;
enum Limit {}
impl Field for Limit {
    type Kind = Constraint;
    type State = Forged;
    const AT: (u16, &'static str) = (0, "limits");
}
impl Governed for Forged {
    type Policy = ByHand;
}
struct Handles<'w, St, S> {
    limits: Lane<'w, St, Limit, S>,
}
impl ContextState for Forged {
    type Lanes<'w, St: 'w, S: 'w> = Handles<'w, St, S>;
    const NAME: &'static str = "Forged";
    const LANES: &'static [LaneSpec] = &[LaneSpec::of::<Limit>(&[], &[], false, false)];
    const BUDGET: Option<Budget> = None;
    fn lend<'w, St, S>(lender: keepspan::__private::Lender<'w, St, S>) -> Handles<'w, St, S> {
        Handles { limits: lender.lane() }
    }
    fn declare(_: fn() -> Spans) -> Self {
        Self
    }
}

#[test]
fn a_declaration_by_hand_is_held_to_its_policy_when_it_opens() {
    let refused = Window::<Forged, _>::open(memory(), Episode::new("e", "p")).map(|mut window| {
        let _ = window.lanes().limits.resident();
    });
    let Err(OpenError::Policy(error)) = refused else { panic!("it opened") };
    assert_eq!(error.to_string(), "`Forged` has no `#[evictable]` field, and the policy `ByHand` asks for one: add it");
}
