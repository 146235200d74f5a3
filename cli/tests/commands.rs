//! Each command on a store that the library made.

#![allow(clippy::indexing_slicing, clippy::arithmetic_side_effects, reason = "a test may panic")]

mod common;

use common::{BYTES, HOSTILE, Migration, Outcome, SECRET, binary, empty, keepspan, made, made_twice, named};
use keepspan::{Abandonment, Action as _, Episode, Failure, NewSpan, Override, Permission, Window};
use serde_json::Value;

/// A line of `export`, by its event.
fn event<'a>(lines: &'a [Value], name: &str) -> Option<&'a Value> {
    let events = lines.iter().filter_map(|line| line["happenings"].as_array()).flatten();
    events.into_iter().find(|event| event["event"] == name)
}

#[test]
fn every_command_has_help_with_an_example() -> Outcome {
    let help = keepspan(["--help"])?;
    assert_eq!(help.code, Some(0));
    assert!(help.out.contains("Exit codes: 0 fine; 1 a fault was found"), "{}", help.out);
    let actions = keepspan(["actions", "--help"])?.out.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(actions.contains("the episode's own log"), "{actions}");
    assert!(actions.contains("another episode may have settled one"), "{actions}");
    for command in ["episodes", "log", "actions", "at", "show", "tombstone", "recall", "verify", "export", "report"] {
        let help = keepspan([command, "--help"])?;
        assert!(help.out.contains(&format!("Example: keepspan {command} run.db")), "{}", help.out);
        assert_eq!(help.code, Some(0));
    }
    Ok(())
}

#[test]
fn episodes_are_listed() -> Outcome {
    let made = made_twice()?;
    let listed = made.run("episodes", &[])?;
    assert!(listed.out.contains("migrate-42") && listed.out.contains("migrate-43"), "{listed:?}");
    let json = made.run("episodes", &["--json"])?.json()?;
    assert_eq!(json[0].as_array().map(Vec::len), Some(2));
    assert_eq!(json[0][0]["episode"], "migrate-42");
    assert_eq!(empty()?.run("episodes", &[])?.code, Some(0));
    Ok(())
}

#[test]
fn several_episodes_must_be_told_apart() -> Outcome {
    let made = made_twice()?;
    let asked = made.run("log", &[])?;
    assert_eq!(asked.code, Some(2));
    assert!(asked.err.contains("--episode: `migrate-42`, `migrate-43`"), "{}", asked.err);
    assert_eq!(made.run("log", &["--episode", "migrate-43"])?.code, Some(0));
    let near = made.run("log", &["--episode", "migrate-44"])?;
    assert!(near.code == Some(2) && near.err.contains("did you mean `migrate-4"), "{}", near.err);
    let far = made.run("log", &["-e", "x"])?;
    assert!(far.code == Some(2) && far.err.contains("the store has `migrate-42`, `migrate-43`"), "{}", far.err);
    Ok(())
}

/// Drops a column, by a schema that a tool gave.
#[derive(keepspan::Action)]
#[action(state = Migration, requires(schema), describe = in_words)]
struct DropColumn {
    column: &'static str,
}

/// A store with an attempt that was done, repeated by override, failed, was refused, timed out with a hostile reason, and
/// one whose process ended.
fn acted() -> Outcome<(common::Made, [DropColumn; 5])> {
    let made = empty()?;
    let mut window = Window::<Migration, _>::open(keepspan::store::open(&made.file)?, Episode::new("e", "p"))?;
    window.lanes().route(NewSpan::tool("describe_table", "a, b, c, d and e"))?;
    let requests = ["a", "b", "c", "d", "e"].map(|column| DropColumn { column });
    let [a, b, c, d, e] = &requests;
    window.permit(a)?.fresh()?.run(|_| Ok::<_, Failure>("dropped a"))?;
    let Permission::Done(done) = window.permit(a)? else { return Err("it was done".into()) };
    let again =
        done.repeat(Override::because(format!("it came back {HOSTILE}"))?).map_err(|denied| denied.to_string())?;
    again.run(|_| Ok::<_, Failure>("dropped a"))?;
    let refused = Failure::without_effect("b is a key");
    assert!(window.permit(b)?.fresh()?.run(|_| Err::<String, _>(refused)).is_err());
    let unknown = Failure::unknown(format!("timed out {HOSTILE}"));
    assert!(window.permit(c)?.fresh()?.run(|_| Err::<String, _>(unknown)).is_err());
    window.note_failure(d, Failure::refused("the user said no"))?;
    let running = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
        window.permit(e)?.fresh()?.run(|_| -> Result<String, Failure> { std::panic::resume_unwind(Box::new(())) })?;
        Ok::<_, Box<dyn std::error::Error>>(())
    }));
    assert!(running.is_err(), "it ended before its outcome was on record");
    drop(window);
    Ok((made, requests))
}

fn in_words(request: &DropColumn) -> String {
    format!("of {}", request.column)
}

#[test]
fn actions_are_listed_and_the_uncertain_ones_stand_out() -> Outcome {
    let (made, requests) = acted()?;
    let listed = made.run("actions", &[])?;
    assert!(!listed.out.contains('\u{1b}'), "a reason acts on no terminal");
    let states: Vec<_> = listed.out.lines().filter_map(|line| line.split_once("  DropColumn")).map(|of| of.1).collect();
    let hostile = HOSTILE.replace('\u{1b}', "\\u{1b}");
    let expected = [
        " of a  done",
        &format!(" of a (attempt 2)  done; repeated: it came back {hostile}"),
        " of b  failed without effect: b is a key",
        &format!(" of c  uncertain: it may have taken effect: timed out {hostile}"),
        "  refused: the user said no",
        " of e  uncertain: no outcome is on record; its process stopped, its future was dropped, or it runs now",
    ];
    assert_eq!(states, expected, "{}", listed.out);
    let json = made.run("actions", &["--json"])?.json()?;
    assert_eq!(json[0][3]["state"], "uncertain");
    assert_eq!(json[0][0]["signature"], requests[0].signature().to_string());
    Ok(())
}

#[test]
fn the_log_tells_attempts_apart() -> Outcome {
    let (made, requests) = acted()?;
    let [a, _, _, d, e] = requests.map(|request| request.signature().to_string()[..8].to_owned());
    let log = made.run("log", &[])?.out;
    for said in [
        format!("`DropColumn` of a begins ({a})"),
        format!("`DropColumn` of a begins ({a}, attempt 2)"),
        format!("`DropColumn` was done ({a}, attempt 2)"),
        format!("`DropColumn` was refused ({d}): the user said no"),
        format!("`DropColumn` of e begins ({e})"),
    ] {
        assert!(log.contains(&said), "{said}: {log}");
    }
    Ok(())
}

/// The rows of the table of actions, as text.
fn rows(html: &str) -> Vec<Vec<String>> {
    let section = html.split_once("<h2>Actions</h2>").and_then(|(_, rest)| rest.split_once("</section>"));
    let body = section.and_then(|(section, _)| section.split_once("<tbody>")).map_or("", |(_, body)| body);
    let text =
        |cell: &str| cell.split_once('>').map_or("", |(_, rest)| rest.split("</td>").next().unwrap_or("")).to_owned();
    body.split("<tr>").skip(1).map(|row| row.split("<td").skip(1).map(text).collect()).collect()
}

#[test]
fn the_report_tells_actions_from_passes() -> Outcome {
    let (made, requests) = acted()?;
    let page = made.folder.path().join("out.html");
    assert_eq!(made.run("report", &["-o", page.to_str().unwrap_or_default()])?.code, Some(0));
    let html = std::fs::read_to_string(&page)?;
    let digits = requests.map(|request| request.signature().to_string()[..8].to_owned());
    let [a, b, c, d, e] = &digits;
    assert!(!html.contains("A pass was refused"), "no pass was tried");
    let said = html.split_once("<ul class=\"said\">").ok_or("it has sentences")?.1;
    let first = format!("<li class=\"grave\">2 attempts are uncertain: `DropColumn` ({c}), `DropColumn` ({e}). ");
    assert!(said.starts_with(&first), "{said:.200}");
    let counted =
        "6 attempts at actions: 2 done, 1 failed without effect, 1 refused, 2 uncertain; 1 repeated by override.";
    assert!(said.contains(counted), "{said:.900}");
    let rows = rows(&html);
    let of = |at: usize| rows.iter().map(|row| row[at].as_str()).collect::<Vec<_>>();
    assert_eq!(of(2), [a, a, b, c, d, e]);
    assert_eq!((of(3), of(4)), (vec!["DropColumn"; 6], vec!["1", "2", "1", "1", "1", "1"]));
    assert!(of(1).iter().all(|time| time.ends_with(" UTC")), "{rows:?}");
    let states = of(5);
    assert!(states[1].starts_with("done; repeated: it came back &lt;/script&gt;"), "{states:?}");
    assert!(states[3].starts_with("uncertain: it may have taken effect: timed out &lt;/script&gt;"), "{states:?}");
    assert!(states[5].starts_with("uncertain: no outcome is on record"), "{states:?}");
    // One for each: that of the attempt whose process ended is where it began.
    let marks = |class: &str| {
        html.split_once(&format!("<div class=\"row {class}\">"))
            .map_or(0, |(_, row)| row.split("</div>").next().unwrap_or_default().matches("title=").count())
    };
    assert_eq!(["acted", "failed", "uncertain", "refusal"].map(marks), [7, 2, 2, 0]);
    assert!(!html.contains("<img") && !html.contains("onerror=\"") && !html.contains('\u{1b}'));
    assert_eq!((html.matches("<script").count(), html.matches("</script").count()), (1, 1));
    let json = made.run("report", &["--json"])?.json()?;
    assert_eq!(json[0]["actions"], made.run("actions", &["--json"])?.json()?[0]);
    Ok(())
}

#[test]
fn the_log_tells_what_happened() -> Outcome {
    let made = made()?;
    let log = made.run("log", &[])?;
    assert_eq!(log.code, Some(0), "{}", log.err);
    for said in [
        "opened",
        "externalized",
        "pass of the model",
        "came back",
        "evicted",
        "policy 2026-12",
        "discarded",
        "oldest_first",
        "refused",
    ] {
        assert!(log.out.contains(said), "{said}: {}", log.out);
    }
    assert!(!log.out.contains('\u{1b}'), "a reason acts on no terminal");
    assert!(!log.out.contains(SECRET) && !log.out.contains("hunter2"));
    let json = made.run("log", &["--json"])?.json()?;
    assert_eq!(json.len() + 1, log.out.lines().count(), "a line an entry, and one for what is missing");
    Ok(())
}

#[test]
fn an_abandoned_call_is_told_with_its_reason() -> Outcome {
    let made = empty()?;
    let episode = Episode::new("e", "p").trust_estimates();
    let mut window = Window::<Migration, _>::open(keepspan::store::open(&made.file)?, episode)?;
    let turn = window.lanes().route(NewSpan::model("I run it.").calls(["c1"]))?;
    window.abandon(turn, "c1", Abandonment::because("the worker died")?).wait()?;
    drop(window);
    let log = made.run("log", &[])?;
    assert!(log.out.contains("call `c1` of s1 was abandoned, s2 says so: the worker died"), "{}", log.out);
    let lines = made.run("export", &[])?.json()?;
    let told = event(&lines, "abandoned").ok_or("it is exported")?;
    assert_eq!((&told["turn"], &told["call"], &told["result"]["span"]), (&1.into(), &"c1".into(), &2.into()));
    Ok(())
}

#[test]
fn the_window_is_shown_as_it_was_at_a_turn() -> Outcome {
    let made = made()?;
    let early = made.run("at", &["2"])?;
    assert_eq!(early.code, Some(0), "{}", early.err);
    assert!(early.out.contains("Add an index on users.email.") && early.out.contains(&format!("users.id {SECRET}")));
    assert!(!early.out.contains("Turn 2:"), "the model had not answered yet");
    let late = made.run("at", &["28"])?;
    assert!(late.out.contains("Turn 26:") && late.out.contains("recall"), "pointers stand in place: {}", late.out);
    assert!(!made.run("at", &["28", "--no-text"])?.out.contains("Turn 26:"));
    let json = made.run("at", &["28", "--json"])?.json()?;
    assert_eq!(json[0]["turn"], 28);
    assert!(json[0]["messages"].as_array().is_some_and(|messages| messages.len() > 10));
    let beyond = made.run("at", &["29"])?;
    assert!(beyond.code == Some(2) && beyond.err.contains("the model had 28"), "{}", beyond.err);
    assert_eq!(made.run("at", &["0"])?.code, Some(2));
    Ok(())
}

#[test]
fn a_span_is_shown_with_and_without_its_text() -> Outcome {
    let made = made()?;
    let shown = made.run("show", &["s4"])?;
    assert_eq!(shown.code, Some(0), "{}", shown.err);
    for said in ["schema", "precondition", "describe_table", SECRET] {
        assert!(shown.out.contains(said), "{said}: {}", shown.out);
    }
    assert!(!made.run("show", &["4", "--no-text"])?.out.contains(SECRET));
    let json = made.run("show", &["s4", "--json"])?.json()?;
    assert_eq!((&json[0]["span"], &json[0]["lane"]), (&Value::from(4), &Value::from("schema")));
    assert!(json[0]["content"].as_str().is_some_and(|text| text.contains(SECRET)));
    assert!(made.run("show", &["s4", "--json", "--no-text"])?.json()?[0].get("content").is_none());
    Ok(())
}

#[test]
fn an_unknown_span_is_answered_with_the_range() -> Outcome {
    let made = made()?;
    for command in ["show", "tombstone", "recall"] {
        let unknown = made.run(command, &["s9999"])?;
        assert_eq!(unknown.code, Some(2));
        assert!(unknown.err.contains("s9999 does not exist") && unknown.err.contains("s1 to s"), "{}", unknown.err);
        assert_eq!(made.run(command, &["x17"])?.code, Some(2));
    }
    Ok(())
}

#[test]
fn a_tombstone_names_digest_policy_and_pointer() -> Outcome {
    let made = made()?;
    let evicted = evicted(&made)?;
    let told = made.run("tombstone", &[&evicted])?;
    assert_eq!(told.code, Some(0), "{}", told.err);
    assert!(
        told.out.contains("2026-11") && told.out.contains("sha256") && told.out.contains("pointer"),
        "{}",
        told.out
    );
    let json = made.run("tombstone", &[&evicted, "--json"])?.json()?;
    assert_eq!(json[0]["sha256"].as_str().map(str::len), Some(64));
    let resident = made.run("tombstone", &["s1"])?;
    assert!(resident.code == Some(2) && resident.err.contains("was never evicted"), "{}", resident.err);
    Ok(())
}

/// The first span that was evicted.
fn evicted(made: &common::Made) -> Outcome<String> {
    let lines = made.run("export", &[])?.json()?;
    let span = event(&lines, "evicted").and_then(|event| event["span"].as_u64()).ok_or("something was evicted")?;
    Ok(format!("s{span}"))
}

#[test]
fn recall_gives_the_bytes_as_they_entered() -> Outcome {
    let made = made()?;
    let recalled = made.run("recall", &["s6"])?;
    assert_eq!(recalled.code, Some(0), "{}", recalled.err);
    assert_eq!(recalled.out, format!("// file 2, users.id {SECRET}\n{}", "let x = 1;\n".repeat(150)));
    let json = made.run("recall", &["s6", "--json"])?.json()?;
    assert_eq!(json[0]["content"], recalled.out);
    Ok(())
}

#[test]
fn bytes_are_given_as_they_are_and_never_shown() -> Outcome {
    let made = made()?;
    let lines = made.run("export", &[])?.json()?;
    let happenings = lines.iter().filter_map(|line| line["happenings"].as_array()).flatten();
    let span = happenings.into_iter().find(|one| one["name"] == "screenshot").and_then(|one| one["span"].as_u64());
    let span = format!("s{}", span.ok_or("a screenshot was taken")?);
    assert_eq!(made.run("recall", &[&span])?.bytes, BYTES);
    assert_eq!(made.run("recall", &[&span, "--json"])?.json()?[0]["base64"], "AJ+Slg==");
    assert!(made.run("show", &[&span])?.out.contains("(4 bytes that are no text;"));
    Ok(())
}

#[test]
fn a_discarded_span_is_answered_with_the_way_to_recover() -> Outcome {
    let made = made()?;
    let lines = made.run("export", &[])?.json()?;
    let span =
        event(&lines, "discarded").and_then(|event| event["span"]["span"].as_u64()).ok_or("one was discarded")?;
    let recalled = made.run("recall", &[&format!("s{span}")])?;
    assert_eq!((recalled.code, recalled.out.as_str()), (Some(2), ""));
    assert!(recalled.err.contains("a password") && recalled.err.contains("ask the vault"), "{}", recalled.err);
    assert!(!recalled.err.contains('\u{1b}'));
    let shown = made.run("show", &[&format!("s{span}")])?;
    assert!(shown.code == Some(0) && shown.out.contains("ask the vault"), "{shown:?}");
    Ok(())
}

#[test]
fn a_redacted_span_is_answered_with_the_way_to_recover() -> Outcome {
    let made = made()?;
    let lines = made.run("export", &[])?.json()?;
    let span = event(&lines, "redacted").and_then(|event| event["spans"][0].as_u64()).ok_or("one was redacted")?;
    for command in ["recall", "show"] {
        let told = made.run(command, &[&format!("s{span}")])?;
        assert!(format!("{}{}", told.out, told.err).contains("a key of the build"), "{told:?}");
        assert!(!told.out.contains("0123456789abcdef"));
    }
    Ok(())
}

#[test]
fn a_span_that_no_commit_has_is_told_from_one_that_never_was() -> Outcome {
    let made = made()?;
    let log = made.run("log", &[])?;
    let lost = log.out.lines().last().filter(|line| line.contains("never reached the store")).ok_or("it is told")?;
    let span = lost.split_whitespace().next().ok_or("with its number")?;
    let shown = made.run("show", &[span])?;
    assert!(shown.code == Some(2) && shown.err.contains("nothing of it reached the store"), "{shown:?}");
    Ok(())
}

#[test]
fn export_is_one_json_object_a_log_entry_of_every_episode() -> Outcome {
    let made = made_twice()?;
    let lines = made.run("export", &[])?.json()?;
    let of = |name: &str| lines.iter().filter(|line| line["episode"] == name).count();
    assert!(of("migrate-42") > 40 && of("migrate-42") == of("migrate-43"));
    assert_eq!(lines.len(), of("migrate-42") + of("migrate-43"));
    let one = made.run("export", &["-e", "migrate-43"])?.json()?;
    assert_eq!(one.len(), of("migrate-43"));
    assert!(
        event(&one, "summarized").is_some_and(|event| event["sources"].as_array().is_some_and(|all| all.len() == 20))
    );
    Ok(())
}

#[test]
fn what_cannot_be_read_is_said_and_is_exit_code_3() -> Outcome {
    let made = made()?;
    let missing = keepspan(["log", "/no/such/run.db"])?;
    assert!(missing.code == Some(3) && missing.err.contains("/no/such/run.db: no such file"), "{missing:?}");
    let other = made.folder.path().join("notes.txt");
    std::fs::write(&other, "no store at all")?;
    let other = keepspan(["log", other.to_str().unwrap_or_default()])?;
    assert!(other.code == Some(3) && other.err.contains("not a keepspan store"), "{other:?}");
    let folder = keepspan(["log", made.folder.path().to_str().unwrap_or_default()])?;
    assert_eq!(folder.code, Some(3), "{folder:?}");
    let held = keepspan::store::open(&made.file)?;
    let in_use = made.run("log", &[])?;
    assert!(in_use.code == Some(3) && in_use.err.contains("open"), "{in_use:?}");
    drop(held);
    assert_eq!(empty()?.run("log", &[])?.code, Some(2));
    let verified = empty()?.run("verify", &[])?;
    assert_eq!(verified.code, Some(2), "a store without an episode is not intact, it is another one");
    assert!(verified.err.contains("the store has no episode yet"), "{}", verified.err);
    Ok(())
}

/// Evidence stays as it was found.
#[test]
fn no_command_changes_the_file() -> Outcome {
    let made = made()?;
    let before = (std::fs::read(&made.file)?, std::fs::metadata(&made.file)?.modified()?);
    for (command, args) in
        [("episodes", vec![]), ("log", vec![]), ("verify", vec![]), ("at", vec!["3"]), ("recall", vec!["s6"])]
    {
        assert_eq!(made.run(command, &args)?.code, Some(0), "{command}");
    }
    assert!(before == (std::fs::read(&made.file)?, std::fs::metadata(&made.file)?.modified()?));
    Ok(())
}

/// A process that was killed leaves a file that was never closed: the copy of an open one is such.
#[test]
fn a_store_that_was_not_closed_is_read_and_not_repaired() -> Outcome {
    let made = made()?;
    let writer = Window::<Migration, _>::open(keepspan::store::open(&made.file)?, Episode::new("killed", "p"))?;
    let copy = made.folder.path().join("copy.db");
    let before = std::fs::copy(&made.file, &copy).and_then(|_| std::fs::read(&copy))?;
    drop(writer);
    let verified = keepspan(["verify", copy.to_str().unwrap_or_default()])?;
    assert!(verified.code == Some(0) && verified.out.contains("killed: 1 record"), "{verified:?}");
    assert!(std::fs::read(&copy)? == before);
    Ok(())
}

#[test]
fn a_reader_that_stops_early_is_no_fault() -> Outcome {
    let made = made()?;
    for command in ["export", "log"] {
        let mut running = binary()
            .args([command, made.path()])
            .stdout(std::process::Stdio::piped())
            .stderr(std::process::Stdio::piped())
            .spawn()?;
        drop(running.stdout.take());
        let ran = running.wait_with_output()?;
        assert_eq!((ran.status.code(), ran.stderr.as_slice()), (Some(0), &b""[..]), "{command}");
    }
    Ok(())
}

#[test]
fn colours_are_for_terminals_and_can_be_forced() -> Outcome {
    let made = made()?;
    assert!(!made.run("show", &["s4"])?.out.contains('\u{1b}'));
    let forced =
        binary().args(["show", made.path(), "s4"]).env("CLICOLOR_FORCE", "1").env_remove("NO_COLOR").output()?;
    assert!(String::from_utf8_lossy(&forced.stdout).contains("\u{1b}["));
    let refused = binary().args(["show", made.path(), "s4"]).env("NO_COLOR", "1").output()?;
    assert!(!String::from_utf8_lossy(&refused.stdout).contains('\u{1b}'));
    Ok(())
}

#[test]
fn the_report_is_a_page_without_the_text_of_spans() -> Outcome {
    let made = made()?;
    let page = made.folder.path().join("out.html");
    let to = page.to_str().unwrap_or_default();
    let ran = made.run("report", &["-o", to])?;
    assert_eq!(ran.code, Some(0), "{}", ran.err);
    let html = std::fs::read_to_string(&page)?;
    assert!(html.contains("migrate-42") && html.contains("Lossy since turn"), "it says what happened");
    assert!(
        html.contains("never reached the store") && html.contains("redacted") && html.contains("It was resumed once.")
    );
    assert!(!html.contains(SECRET) && !html.contains("let x = 1"), "no text of a span");
    made.run("report", &["-o", to, "--with-text"])?;
    assert!(std::fs::read_to_string(&page)?.contains("let x = 1"));
    let json = made.run("report", &["--json"])?.json()?;
    assert_eq!((&json[0]["episode"], &json[0]["turns"]), (&Value::from("migrate-42"), &Value::from(28)));
    assert_eq!(made.run("report", &[])?.code, Some(2), "where to?");
    assert_eq!(made.run("report", &["-o", "/no/such/folder/out.html"])?.code, Some(2));
    Ok(())
}

/// Whatever a name, a reason or a text says, it is text on the page and on the terminal.
#[test]
fn hostile_text_is_harmless() -> Outcome {
    let made = named(HOSTILE)?;
    let page = made.folder.path().join("out.html");
    made.run("report", &["--with-text", "-o", page.to_str().unwrap_or_default()])?;
    let html = std::fs::read_to_string(&page)?;
    assert!(html.matches("&lt;/script&gt;").count() > 6, "each place shows it");
    assert!(!html.contains("<img") && !html.contains("onerror=\"") && !html.contains('\u{1b}'));
    assert_eq!((html.matches("<script").count(), html.matches("</script").count()), (1, 1));
    for outside in ["http://", "https://", "url(", "@import", "src=\""] {
        assert!(!html.contains(outside), "nothing is loaded: {outside}");
    }
    for command in ["episodes", "log", "verify"] {
        assert!(!made.run(command, &[])?.out.contains('\u{1b}'), "{command}");
    }
    assert!(!made.run("at", &["28"])?.out.contains('\u{1b}'));
    Ok(())
}

/// A page must not take the place of the store it is about, nor of another one.
#[test]
fn a_report_replaces_no_store() -> Outcome {
    let (made, other) = (made()?, made_twice()?);
    for path in [made.path(), other.path()] {
        let before = std::fs::read(path)?;
        let refused = made.run("report", &["-o", path])?;
        assert_eq!(refused.code, Some(2));
        assert!(refused.err.contains("is a store, which a page would replace"), "{}", refused.err);
        assert_eq!(std::fs::read(path)?, before);
    }
    Ok(())
}
