//! A process that acts: it races for one request with others, or ends at a given point of a batch of them.
//!
//! `act-child race STORE EFFECTS NAME REQUEST`: opens the store as soon as nobody else has it, and runs the request where it is
//! fresh; says what became of it. `act-child batch STORE EFFECTS POINT`: see [`batch`].

use std::{env, error::Error, io::Write as _, path::Path, process::abort, thread, time::Duration};

use keepspan::{
    Episode, Failure, Granted, Permission, Window,
    action::RunError,
    store::{EmbeddedStore, StoreError},
};
use keepspan_tests::{
    Agent,
    acts::{Send, Write, append, prepare, ready},
};

type Done<T = ()> = Result<T, Box<dyn Error>>;

fn say(line: &str) -> Done {
    let mut out = std::io::stdout().lock();
    writeln!(out, "{line}")?;
    Ok(out.flush()?)
}

/// Opens the store once nobody else has it.
fn wait_for(path: &Path) -> Done<EmbeddedStore> {
    for _ in 0..60_000 {
        match EmbeddedStore::open(path) {
            Err(StoreError::InUse { .. }) => thread::sleep(Duration::from_millis(1)),
            opened => return Ok(opened?),
        }
    }
    Err("the store was in use for a minute".into())
}

fn race(store: &Path, effects: &Path, name: &str, request: &str) -> Done {
    let (mut window, _) = ready(wait_for(store)?, name)?;
    let action = Write::to(request);
    let said = match window.permit(&action)? {
        Permission::Fresh(permit) => {
            let effect = |granted: Granted<'_, Write>| {
                append(effects, name)?;
                // So that a kill comes here as well.
                thread::sleep(Duration::from_millis(3));
                Ok::<_, Failure>(format!("{} by {name}", granted.to))
            };
            match permit.run(effect) {
                Ok(done) => format!("ran {}", done.text().unwrap_or_default()),
                Err(RunError::Taken { .. }) => "taken".to_owned(),
                Err(error) => return Err(error.into()),
            }
        }
        Permission::Done(done) => format!("done {}", done.text().unwrap_or_default()),
        Permission::Uncertain(_) => "uncertain".to_owned(),
        other => return Err(format!("{other:?}").into()),
    };
    say(&said)
}

/// A batch [c1 write, c2 send, c3 write that waits for a person], which ends the process at a point: `new`, before anything;
/// `c1 intent`, when the intent of c1 is on record; `c1 panic`, in the middle of it; `c1 effect`, when it is done and that
/// is not on record; `c1 outcome`, when it is; and so on for c2.
fn batch(store: &Path, effects: &Path, point: &str) -> Done {
    let mut window = Window::<Agent, _>::open(EmbeddedStore::open(store)?, Episode::new("batch", "p"))?;
    let spans = prepare(&mut window)?;
    drop(window.lanes().externalize().wait()?);
    let at = |here: &str| {
        if point == here {
            abort();
        }
    };
    let effect = |name: &str| {
        at(&format!("{name} intent"));
        assert!(point != format!("{name} panic"), "told to");
        append(effects, name)?;
        at(&format!("{name} effect"));
        Ok::<_, Failure>(format!("{name} done"))
    };
    at("new");
    window.permit(&Write::to("c1"))?.fresh()?.run(|_| effect("c1"))?;
    at("c1 outcome");
    let (evidence, yes) = (window.lanes().target.cite(spans.target)?, window.lanes().rules.consent(spans.yes)?);
    let c2 = Send { text: "c2".to_owned() };
    let permit = window.permit(&c2)?.fresh()?.justified_by(&evidence)?.consented_by(yes)?;
    permit.run(|_| effect("c2"))?;
    at("c2 outcome");
    Err("no such point".into())
}

fn main() -> Done {
    let arguments: Vec<_> = env::args().skip(1).collect();
    let arguments: Vec<_> = arguments.iter().map(String::as_str).collect();
    match arguments.as_slice() {
        ["race", store, effects, name, request] => race(Path::new(store), Path::new(effects), name, request),
        ["batch", store, effects, point] => batch(Path::new(store), Path::new(effects), point),
        _ => Err("`race STORE EFFECTS NAME REQUEST` or `batch STORE EFFECTS POINT`".into()),
    }
}
