//! What the compiler says to each case, word for word, and that it is said for the case's own reason.

use std::{collections::HashSet, error::Error, fs, path::PathBuf, process::Command};

use keepspan::{Budget, Limits};
use keepspan_ui_tests::{Case, Expected, cases, folder};

type Outcome = Result<(), Box<dyn Error>>;

/// The compiler whose words the snapshots hold.
const PINNED: &str = "rustc 1.95.0 ";

#[test]
fn every_case_fails_in_these_words() -> Outcome {
    let version = Command::new("rustc").arg("--version").output()?;
    let version = String::from_utf8_lossy(&version.stdout);
    if !version.starts_with(PINNED) {
        eprintln!("SKIPPED: the snapshots are of {PINNED}and this is {version}");
        return Ok(());
    }
    let tests = trybuild::TestCases::new();
    for case in cases()? {
        tests.compile_fail(case.path);
    }
    Ok(())
}

/// The errors of a snapshot: code and headline.
fn errors(stderr: &str) -> Vec<(String, String)> {
    let error = |line: &str| {
        let rest = line.strip_prefix("error")?;
        let (code, headline) = match rest.strip_prefix('[') {
            Some(rest) => rest.split_once("]: ")?,
            None => ("-", rest.strip_prefix(": ")?),
        };
        Some((code.to_owned(), headline.to_owned()))
    };
    stderr.lines().filter_map(error).collect()
}

#[test]
fn each_snapshot_has_exactly_the_errors_that_its_case_names() -> Outcome {
    let cases = cases()?;
    assert!(cases.len() >= 40, "{} cases", cases.len());
    for Case { path, expected } in cases {
        let stderr = fs::read_to_string(path.with_extension("stderr"))?;
        let found = errors(&stderr);
        let same = found.len() == expected.len()
            && found
                .iter()
                .zip(&expected)
                .all(|((code, headline), expected)| *code == expected.code && headline.starts_with(&expected.headline));
        assert!(!expected.is_empty() && same, "{}: expected {expected:?}, found {found:?}", path.display());
    }
    Ok(())
}

#[test]
fn the_headlines_of_keepspan_start_with_the_users_own_names() -> Outcome {
    for Case { path, expected } in cases()? {
        // Errors with another code, and two bounds of the standard library's, are the compiler's own words.
        let ours = |error: &&Expected| match error.code.as_str() {
            "E0277" => !error.headline.starts_with("the trait bound"),
            "E0080" => true,
            code => code == "-" && !error.headline.starts_with("unused `"),
        };
        for Expected { headline, .. } in expected.iter().filter(ours) {
            let text = headline.strip_prefix("evaluation panicked: ").unwrap_or(headline);
            assert!(text.starts_with('`'), "{}: {headline}", path.display());
        }
    }
    Ok(())
}

/// What is said when a build fails and when a window opens comes from one function.
#[test]
fn a_failed_build_says_what_an_error_at_run_time_says() -> Outcome {
    for (case, limits) in [
        ("empty", Limits::of(0)),
        ("reserve_above_budget", Limits::of(100).reserve(200)),
        ("fixed_above_budget", Limits::of(3_000).fixed(3_200)),
        ("keep_above_budget", Limits::of(8_000).keep(80_000)),
        ("trigger_above_limit", Limits::of(24_000).reserve(4_000).trigger(23_000)),
        ("decision_in_band", Limits::of(24_000).trigger(23_500)),
        ("decision_above_limit", Limits::of(24_000).rationale(24_000)),
        ("fixed_above_trigger", Limits::of(32_768).fixed(29_000).trigger(27_852)),
        ("keeps_the_window", Limits::of(8_000).keep(8_000)),
        ("margin_below_rationale", Limits::of(24_000).margin(399)),
        ("margin_out_of_reach", Limits::of(24_000).margin(23_000)),
    ] {
        let said = fs::read_to_string(folder().join(format!("cases/r12/{case}.stderr")))?;
        let Err(error) = Budget::new(limits) else { return Err(format!("{case} works").into()) };
        let expected = [("E0080".to_owned(), format!("evaluation panicked: `Migration`: {error}"))];
        assert_eq!(errors(&said), expected, "{case}");
    }
    Ok(())
}

#[test]
fn a_twin_differs_by_one_line() -> Outcome {
    let mut twins = 0;
    for case in cases()? {
        let Some(twin) = case.twin() else { continue };
        twins += 1;
        let (bad, good) = (fs::read_to_string(&case.path)?, fs::read_to_string(&twin)?);
        assert_eq!(bad.lines().count(), good.lines().count(), "{}", twin.display());
        let differing = bad.lines().zip(good.lines()).filter(|(bad, good)| bad != good).count();
        assert_eq!(differing, 1, "{}", twin.display());
    }
    assert!(twins >= 40, "{twins} twins");
    Ok(())
}

/// A snapshot or a twin whose case is gone would be checked by nothing.
#[test]
fn no_file_is_left_without_its_case() -> Outcome {
    let known: HashSet<PathBuf> = cases()?
        .iter()
        .flat_map(|case| ["rs", "stderr", "ok.rs"].map(|extension| case.path.with_extension(extension)))
        .collect();
    for rule in fs::read_dir(keepspan_ui_tests::folder().join("cases"))? {
        for file in fs::read_dir(rule?.path())? {
            let path = file?.path();
            assert!(known.contains(&path), "{} belongs to no case", path.display());
        }
    }
    Ok(())
}

/// The README shows the real message.
#[test]
fn the_readme_shows_what_the_compiler_says() -> Outcome {
    let folder = keepspan_ui_tests::folder();
    let readme = fs::read_to_string(folder.join("../README.md"))?;
    let stderr = fs::read_to_string(folder.join("cases/r1/evict_precondition.stderr"))?;
    let shown = stderr.split("\nhelp: the trait").next().unwrap_or_default().trim();
    assert!(readme.contains(shown), "the README does not show:\n{shown}");
    let budget = fs::read_to_string(folder.join("cases/r12/decision_in_band.stderr"))?;
    assert!(readme.contains(budget.trim()), "the README does not show:\n{budget}");
    Ok(())
}
