//! With one rule taken out of the core, exactly that rule's cases compile; with all in, exactly the twins do.

use std::{error::Error, io, path::PathBuf, sync::Mutex, thread};

use keepspan_ui_tests::{Case, Library, cases, library};

type Outcome = Result<(), Box<dyn Error>>;

/// The rules that are bounds of their own. The rest is held by privacy and borrows, which no `cfg` takes out.
const RULES: [&str; 13] = ["R1", "R2", "R9", "keep", "R13", "R3", "R4", "R5", "R18", "R23", "policy", "R20", "consent"];

/// The builds share a folder.
static BUILD: Mutex<()> = Mutex::new(());

/// Which of the programs compile; two at a time.
fn compiling(library: &Library, programs: &[PathBuf]) -> io::Result<Vec<(PathBuf, Result<(), String>)>> {
    let compile = |half: &[PathBuf]| {
        half.iter().map(|path| Ok((path.clone(), library.compile(path)?))).collect::<io::Result<Vec<_>>>()
    };
    let (one, other) = programs.split_at(programs.len() / 2);
    thread::scope(|scope| {
        let one = scope.spawn(|| compile(one));
        let mut all = compile(other)?;
        all.extend(one.join().map_err(|_| io::Error::other("a compiling thread stopped"))??);
        Ok(all)
    })
}

/// Cases that a bound of ours rejects.
fn held_by_a_bound() -> io::Result<Vec<Case>> {
    let bound = |case: &Case| {
        let ours = |rule: &str| RULES.contains(&rule);
        case.expected.iter().all(|error| error.code == "E0277" && ours(&error.rule) && error.headline.contains('`'))
            && !case
                .expected
                .iter()
                .any(|error| error.headline.contains("trait bound") || error.headline.contains("by keepspan alone"))
    };
    Ok(cases()?.into_iter().filter(bound).collect())
}

#[test]
fn every_twin_compiles() -> Outcome {
    let _build = BUILD.lock();
    let twins: Vec<_> = cases()?.iter().filter_map(Case::twin).collect();
    for (path, compiled) in compiling(&library(None)?, &twins)? {
        if let Err(said) = compiled {
            panic!("{} does not compile:\n{said}", path.display());
        }
    }
    Ok(())
}

#[test]
fn a_rule_taken_out_lets_exactly_its_own_cases_compile() -> Outcome {
    let _build = BUILD.lock();
    let cases = held_by_a_bound()?;
    let programs: Vec<_> = cases.iter().map(|case| case.path.clone()).collect();
    for rule in RULES {
        let own = |case: &Case| case.expected.iter().all(|error| error.rule == rule);
        let expected: Vec<_> = cases.iter().filter(|case| own(case)).map(|case| case.path.clone()).collect();
        assert!(!expected.is_empty(), "{rule} has no case");
        let mut found: Vec<_> = compiling(&library(Some(rule))?, &programs)?
            .into_iter()
            .filter_map(|(path, compiled)| compiled.is_ok().then_some(path))
            .collect();
        found.sort();
        assert_eq!(found, expected, "{rule} taken out");
        eprintln!("{rule}: {} of {} cases compile without it", found.len(), programs.len());
    }
    Ok(())
}
