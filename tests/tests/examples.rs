//! The examples as a user runs them.

use std::{
    error::Error,
    path::{Path, PathBuf},
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
    let junk = folder.path().join("junk.json");
    std::fs::write(&junk, "{\"a\": [1, 2")?;
    let none = folder.path().join("none.json");
    std::fs::write(&none, "{}")?;
    for (name, arguments, word) in [
        ("migration", ["--budget".as_ref(), "3".as_ref()], "budget"),
        ("replay", ["--budget=9".as_ref(), junk.as_os_str()], "not JSON"),
        ("replay", ["--budget=9".as_ref(), none.as_os_str()], "no list of chat messages"),
        ("replay", ["--budget=9".as_ref(), folder.path().join("absent").as_os_str()], "absent"),
    ] {
        let run = example(name, &arguments)?;
        assert_eq!(run.status.code(), Some(2), "{}", said(&run));
        assert!(said(&run).contains(word), "{}", said(&run));
    }
    Ok(())
}

#[test]
fn replay_loses_nothing_of_recorded_conversations() -> Outcome {
    let Some(corpus) = std::env::var_os("KEEPSPAN_CORPUS").map(PathBuf::from) else {
        eprintln!("SKIPPED: KEEPSPAN_CORPUS is not set");
        return Ok(());
    };
    for folder in ["openai-chat", "tau-bench"] {
        for file in std::fs::read_dir(corpus.join(folder))? {
            let run = example("replay", &[file?.path().as_os_str()])?;
            assert_eq!(run.status.code(), Some(0), "{}", said(&run));
            assert!(said(&run).contains("every evicted span came back byte for byte"), "{}", said(&run));
        }
    }
    Ok(())
}
