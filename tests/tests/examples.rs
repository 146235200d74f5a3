//! The examples as a user runs them.

use std::{
    error::Error,
    path::Path,
    process::{Command, Output},
};

type Outcome = Result<(), Box<dyn Error>>;

fn example(name: &str, arguments: &[&std::ffi::OsStr]) -> std::io::Result<Output> {
    Command::new(env!("CARGO"))
        .current_dir(Path::new(env!("CARGO_MANIFEST_DIR")).join(".."))
        .args(["run", "--quiet", "-p", "keepspan-examples", "--example", name, "--"])
        .args(arguments)
        .output()
}

fn said(output: &Output) -> String {
    [&output.stdout, &output.stderr].map(|bytes| String::from_utf8_lossy(bytes).into_owned()).concat()
}

#[test]
fn the_plain_migration_ends_wrong_and_the_kept_one_right() -> Outcome {
    for (budget, seed) in [("1500", "3"), ("2400", "1"), ("6000", "11")] {
        let run = example("migration", &["--budget", budget, "--seed", seed].map(AsRef::as_ref))?;
        assert_eq!(run.status.code(), Some(0), "budget {budget}, seed {seed}: {}", said(&run));
    }
    Ok(())
}

#[test]
fn bad_arguments_and_files_are_told_apart_from_a_failed_run() -> Outcome {
    let folder = tempfile::tempdir()?;
    for (name, arguments, word) in [
        ("migration", ["--budget".as_ref(), "3".as_ref()], "budget"),
        ("side_effects", ["--corpus".as_ref(), folder.path().join("absent").as_os_str()], "absent"),
    ] {
        let run = example(name, &arguments)?;
        assert_eq!(run.status.code(), Some(2), "{}", said(&run));
        assert!(said(&run).contains(word), "{}", said(&run));
    }
    Ok(())
}

/// What `side_effects` counts with keepspan and, every call being sent, without.
const COUNTED: [&str; 6] = ["effects", "duplicates", "missing", "rejected", "refused", "astray"];

/// Every call is in one row, and so is every request that was sent for a call once more.
fn adds_up(source: &serde_json::Value) -> Outcome {
    let number = |of: &serde_json::Value| of.as_u64().ok_or("no number");
    let sum = |of: &serde_json::Value, fields: &[&str]| {
        fields.iter().map(|field| number(&of[*field])).sum::<Result<u64, _>>()
    };
    let calls = number(&source["calls"])?;
    assert_eq!(sum(source, &["wanted", "doubled", "rejected"])?, calls, "{source}");
    for mode in ["every", "list", "keepspan"] {
        let came = &source[mode];
        let rows = sum(came, &["effects", "rejected", "given_back", "refused", "denied"])?;
        assert_eq!(rows, calls + number(&came["again"])?, "{mode}: {came}");
    }
    let kept = &source["keepspan"];
    assert_eq!(sum(&kept["permits"], &["settled_done", "settled_not_done"])?, sum(kept, &["kills", "unanswered"])?);
    assert_eq!(kept["again"], 0, "none is sent again that may have arrived");
    Ok(())
}

#[test]
fn side_effects_are_done_once() -> Outcome {
    let corpus = std::env::var_os("KEEPSPAN_CORPUS");
    if corpus.is_none() {
        eprintln!("SKIPPED: the recorded ones, as KEEPSPAN_CORPUS is not set");
    }
    let help = said(&example("side_effects", &["--help".as_ref()])?);
    assert!(help.contains("made-up calls in the shape of recorded ones") && help.contains("Exit codes: 0 "), "{help}");
    let run = example("side_effects", &["--json".as_ref()])?;
    assert_eq!(run.status.code(), Some(0), "{}", said(&run));
    let sources: serde_json::Value = serde_json::from_slice(&run.stdout)?;
    let sources = sources.as_array().ok_or("no list")?;
    let expected = [
        ("made-up", [127, 113, 0, 6, 0, 5], [14, 0, 0, 2, 2, 0], vec![(94, [95, 2, 1])]),
        ("tau-bench", [30, 13, 0, 29, 0, 7], [17, 0, 0, 17, 10, 0], vec![]),
        (
            "tau2-bench",
            [316, 307, 0, 0, 0, 5],
            [9, 0, 0, 0, 0, 0],
            vec![(94, [95, 2, 1]), (94, [95, 2, 1]), (15, [16, 2, 1]), (99, [100, 2, 1])],
        ),
    ];
    assert_eq!(sources.len(), if corpus.is_some() { 3 } else { 1 });
    for (source, (name, plain, kept, storms)) in sources.iter().zip(expected) {
        assert_eq!(source["source"], name);
        let counted = |mode: &str| COUNTED.map(|what| source[mode][what].clone());
        assert_eq!(counted("every"), plain, "{name}");
        assert_eq!(counted("keepspan"), kept, "{name}");
        assert_eq!(source["recorded"], name != "made-up", "only what an agent did is called recorded");
        adds_up(source)?;
        let met: Vec<_> = source["storms"].as_array().into_iter().flatten().collect();
        assert_eq!(met.len(), storms.len(), "{name}");
        for (storm, (calls, effects)) in met.into_iter().zip(storms) {
            assert_eq!((&storm["calls"], &storm["effects"]), (&calls.into(), &effects.as_slice().into()), "{name}");
        }
    }
    let own = sources.first().ok_or("nothing")?;
    // A certificate that the customer asked for twice, and a booking again after it was cancelled.
    assert_eq!((&own["keepspan"]["permits"]["overridden"], &own["keepspan"]["repeats"]), (&2.into(), &2.into()));
    // The change that the gift card could not pay for, once it could.
    assert_eq!(own["keepspan"]["permits"]["retried"], 1);
    Ok(())
}
