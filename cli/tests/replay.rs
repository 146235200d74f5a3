//! `keepspan replay`, on sessions made here and on recorded ones.

#![allow(clippy::indexing_slicing, clippy::arithmetic_side_effects, reason = "a test may panic")]

mod common;

use std::{
    fs,
    path::{Path, PathBuf},
};

use common::{HOSTILE, Outcome, Ran, keepspan};
use serde_json::{Value, json};

/// A session in the format of pi, a record a line.
struct Session {
    folder: tempfile::TempDir,
    lines: Vec<Value>,
}

impl Session {
    fn new() -> Outcome<Self> {
        let lines = vec![json!({ "type": "session", "id": "made", "cwd": "/w" })];
        Ok(Self { folder: tempfile::tempdir()?, lines })
    }

    fn message(&mut self, role: &str, content: Value, more: Value) {
        let mut message = json!({ "role": role, "content": content });
        if let (Some(message), Some(more)) = (message.as_object_mut(), more.as_object()) {
            message.extend(more.clone());
        }
        self.lines.push(json!({ "type": "message", "message": message }));
    }

    fn asks(&mut self, text: &str) {
        self.message("user", json!([{ "type": "text", "text": text }]), json!({}));
    }

    /// A call, and its result.
    fn calls(&mut self, id: &str, tool: &str, arguments: Value, result: &str, failed: bool) {
        self.message(
            "assistant",
            json!([{ "type": "toolCall", "id": id, "name": tool, "arguments": arguments }]),
            json!({}),
        );
        let answers = json!({ "toolCallId": id, "toolName": tool, "isError": failed });
        self.message("toolResult", json!([{ "type": "text", "text": result }]), answers);
    }

    fn file(&self) -> PathBuf {
        self.folder.path().join("session.jsonl")
    }

    fn write(&self) -> Outcome<String> {
        let text: String = self.lines.iter().map(|line| format!("{line}\n")).collect();
        fs::write(self.file(), text)?;
        Ok(path(&self.file()).to_owned())
    }
}

fn path(path: &Path) -> &str {
    path.to_str().unwrap_or_default()
}

/// More than the pointer that would stand for it.
const SCHEMA: &str = "export const ColorValueSchema = union(hex, name);\n// as a number is a place in the palette, so is a \
    name a name of the palette, and the empty word is what the terminal has; each colour of a theme is one of these, and what \
    is none of these is an error that names the colour, its place in the file and what was expected there\n";

/// A schema is read, twelve long files are, then an edit needs the schema; a booking is made, refused, made and made again.
fn made() -> Outcome<Session> {
    let mut session = Session::new()?;
    session.asks("Change the colours.");
    session.calls("c0", "read", json!({ "path": "theme.ts" }), SCHEMA, false);
    for number in 1..=12 {
        let text = format!("file number {number}\n{}", "let plain = words in lines;\n".repeat(80));
        session.calls(&format!("c{number}"), "read", json!({ "path": format!("other{number}.ts") }), &text, false);
    }
    session.calls("e1", "edit", json!({ "path": "dark.ts", "newText": "use ColorValueSchema here" }), "done", false);
    session.asks("Book it.");
    for (id, failed) in [("b1", true), ("b2", false), ("b3", false), ("b4", false)] {
        session.calls(id, "book_flight", json!({ "flight": "HAT001", "seats": 2 }), "an answer", failed);
    }
    session.message("assistant", json!([{ "type": "text", "text": "It is booked." }]), json!({}));
    Ok(session)
}

fn replayed(args: &[&str]) -> Outcome<Value> {
    let ran = keepspan(["replay", "--json"].into_iter().chain(args.iter().copied()))?;
    assert_eq!(ran.code, Some(0), "{args:?}: {}", ran.err);
    ran.json()?.into_iter().next().ok_or_else(|| "no line".into())
}

fn refused(args: &[&str]) -> Outcome<Ran> {
    keepspan(std::iter::once("replay").chain(args.iter().copied()))
}

const SMALL: [&str; 2] = ["--budget", "4000"];

#[test]
fn a_session_goes_through_a_window() -> Outcome {
    let session = made()?;
    let file = session.write()?;
    let told = replayed(&[&file, SMALL[0], SMALL[1]])?;
    assert_eq!((&told["format"], &told["file"]), (&json!("pi"), &json!("session.jsonl")));
    assert_eq!(
        told["settings"],
        json!({ "budget": 4000, "trigger": 3333, "fixed": 0, "keep": 0, "tokens": "bytes", "policy": "oldest_first" })
    );
    let total = &told["total"];
    assert_eq!((&total["entries"], &total["turns"]), (&json!(39), &json!(19)));
    let kept = &total["keepspan"];
    let number = |value: &Value| value.as_u64().unwrap_or_default();
    assert!(number(&kept["peak"]) <= 4_000, "{kept}");
    assert!(number(&total["full"]["peak"]) > 6_000, "{total}");
    assert_eq!(number(&kept["saved"]), number(&total["full"]["sent"]) - number(&kept["sent"]));
    assert!(number(&kept["evicted"]) > 10, "{kept}");
    assert_eq!((&kept["recalled"], &kept["changed"], &kept["unfittable"]), (&kept["evicted"], &json!(0), &json!(0)));
    assert!(
        number(&kept["fallbacks"]) > 0
            && number(&kept["refused"]["decision_in_band"]) + number(&kept["refused"]["over_budget"]) > 0,
        "{kept}"
    );
    assert_eq!(kept["resident"]["instructions"]["spans"], 2);
    // One failed first; of the other three the guard lets one through.
    assert_eq!((&total["repeated"]["calls"], &total["repeated"]["writes"]), (&json!(2), &json!(2)));
    let repeated = &told["conversations"][0]["repeated"]["most"][0];
    assert_eq!(
        (&repeated["tool"], &repeated["times"], &repeated["first_line"]),
        (&json!("book_flight"), &json!(2), &json!(34))
    );
    let late = &told["conversations"][0]["late"];
    assert_eq!((&late["plain"]["writes"], &late["keepspan"]["writes"]), (&json!(1), &json!(1)), "{late}");
    let worst = &late["worst"][0];
    assert_eq!(
        (&worst["mention"], &worst["line"], &worst["from_line"]),
        (&json!("ColorValueSchema"), &json!(29), &json!(4))
    );
    assert_eq!((&worst["plain_dropped"], &worst["keepspan_evicted"]), (&json!(true), &json!(true)));
    assert_eq!(told["import"]["repaired"], json!([]));
    Ok(())
}

#[test]
fn nothing_leaves_where_all_fits() -> Outcome {
    let session = made()?;
    let file = session.write()?;
    let total = replayed(&[&file])?["total"].take();
    assert_eq!(
        (&total["keepspan"]["evicted"], &total["keepspan"]["saved"], &total["plain"]["dropped"]),
        (&json!(0), &json!(0), &json!(0))
    );
    assert_eq!(total["keepspan"]["sent"], total["full"]["sent"]);
    Ok(())
}

#[test]
fn the_table_says_it_in_words() -> Outcome {
    let session = made()?;
    let file = session.write()?;
    let ran = refused(&[&file, SMALL[0], SMALL[1]])?;
    assert_eq!(ran.code, Some(0), "{}", ran.err);
    for word in [
        "came back as the file has them",
        "ColorValueSchema",
        "book_flight",
        "2 of these write",
        "made again",
        "pi; budget 4,000, trigger 3,333",
    ] {
        assert!(ran.out.contains(word), "{word}: {}", ran.out);
    }
    assert!(!ran.out.contains('\u{1b}'), "no colours in a pipe");
    Ok(())
}

#[test]
fn counters_and_policies_can_be_chosen() -> Outcome {
    let session = made()?;
    let file = session.write()?;
    let by = |args: &[&str]| replayed(&[&[file.as_str(), SMALL[0], SMALL[1]], args].concat());
    let (exact, estimate) = (by(&["--tokens", "o200k"])?, by(&[])?);
    assert_ne!(exact["total"]["tokens"], estimate["total"]["tokens"]);
    let largest = by(&["--policy", "largest", "--trigger", "3000", "--keep", "500", "--fixed", "200"])?;
    assert_eq!(largest["settings"]["policy"], "largest_tool_output");
    assert_eq!(largest["settings"]["trigger"], 3000);
    assert_eq!(largest["total"]["keepspan"]["changed"], 0);
    assert_eq!(by(&["--policy", "superseded"])?["settings"]["policy"], "superseded_reads");
    Ok(())
}

#[test]
fn what_is_larger_than_the_budget_never_enters() -> Outcome {
    let mut session = Session::new()?;
    session.asks("Read all of it.");
    session.calls("c1", "read", json!({ "path": "long" }), &"word after word ".repeat(3_000), false);
    session.message("assistant", json!([{ "type": "text", "text": "It is long." }]), json!({}));
    let told = replayed(&[&session.write()?, SMALL[0], SMALL[1]])?;
    let kept = &told["total"]["keepspan"];
    assert_eq!(
        (&kept["too_large"], &kept["resident"]["pending"]["spans"]),
        (&json!(1), &json!(0)),
        "its call is abandoned: {kept}"
    );
    assert_eq!(told["conversations"][0]["keepspan"]["too_large_at"], 4);
    Ok(())
}

#[test]
fn what_may_not_leave_is_not_made_to_fit() -> Outcome {
    let mut session = Session::new()?;
    for number in 0..8 {
        session.asks(&format!("Rule {number}: {}", "never do this and that. ".repeat(120)));
        session.message("assistant", json!([{ "type": "text", "text": "Yes." }]), json!({}));
    }
    let told = replayed(&[&session.write()?, SMALL[0], SMALL[1]])?;
    let kept = &told["total"]["keepspan"];
    assert!(kept["unfittable"].as_u64() > Some(1), "{kept}");
    assert_eq!(kept["resident"]["instructions"]["spans"], 8);
    Ok(())
}

#[test]
fn a_script_is_refused_as_a_model_is() -> Outcome {
    let session = made()?;
    let file = session.write()?;
    let script = session.folder.path().join("prune.jsonl");
    // s1 is what a person said, s3 the first read; s99 is nothing; after 12 entries too little could leave to pay for it.
    let asks = [
        json!({ "after": 3, "evict": ["s3"] }),
        json!({ "after": 20, "evict": ["s1"] }),
        json!({ "after": 20, "evict": ["s99"] }),
        json!({ "after": 20, "evict": ["s3", "s5", "s7"] }),
        json!({ "after": 20, "evict": ["s3"], "conversation": "another" }),
    ];
    fs::write(&script, asks.map(|ask| format!("{ask}\n")).concat())?;
    let told = replayed(&[&file, "--budget", "8000", "--script", path(&script)])?;
    let came = told["conversations"][0]["script"].as_array().cloned().unwrap_or_default();
    let why = |at: usize| came[at]["refused"].as_str().unwrap_or_default().to_owned();
    assert_eq!(came.len(), 4, "{came:?}");
    assert!(came[0]["by_gate"] == true && why(0).contains("insufficient reclamation"), "{came:?}");
    assert!(came[1]["by_gate"] == false && why(1).contains("s1 is in `asked`, whose spans never leave"), "{came:?}");
    assert!(why(2).contains("s99 does not exist"), "{came:?}");
    assert_eq!((&came[3]["refused"], &came[3]["left"]), (&Value::Null, &json!(6)), "each with its call: {came:?}");
    assert_eq!(told["total"]["keepspan"]["recalled"], told["total"]["keepspan"]["evicted"]);

    fs::write(&script, "{\"after\": 1}\n")?;
    let bad = refused(&[&file, "--script", path(&script)])?;
    assert!(bad.code == Some(2) && bad.err.contains("line 1: missing field `evict`"), "{}", bad.err);
    Ok(())
}

#[test]
fn a_store_that_is_kept_can_be_read() -> Outcome {
    let session = made()?;
    let file = session.write()?;
    let store = session.folder.path().join("kept.db");
    let args = [file.as_str(), SMALL[0], SMALL[1], "--store", path(&store)];
    replayed(&args)?;
    let verified = keepspan(["verify", path(&store)])?;
    assert!(verified.code == Some(0) && verified.out.contains("made: "), "{verified:?}");
    let schema = keepspan(["recall", path(&store), "s3"])?;
    assert_eq!(schema.out, SCHEMA);
    let both = session.folder.path().join("both.db");
    replayed(&[&file, &file, "--store", path(&both)])?;
    let episodes = keepspan(["episodes", path(&both)])?.out;
    assert!(episodes.contains("made  ") && episodes.contains("made (2)  "), "one name each: {episodes}");
    let again = refused(&args)?;
    assert!(again.code == Some(2) && again.err.contains("is there already"), "{}", again.err);
    Ok(())
}

#[test]
fn the_page_has_it_all_and_runs_nothing_of_the_session() -> Outcome {
    let mut session = made()?;
    session.calls("h", HOSTILE, json!({ "path": HOSTILE, "see": "ColorValueSchema" }), HOSTILE, false);
    session.calls("i", HOSTILE, json!({ "path": HOSTILE, "see": "ColorValueSchema" }), HOSTILE, false);
    let file = session.write()?;
    let page = session.folder.path().join("page.html");
    let ran = refused(&[&file, SMALL[0], SMALL[1], "-o", path(&page)])?;
    assert_eq!(ran.code, Some(0), "{}", ran.err);
    assert!(!ran.out.contains('\u{1b}'), "a tool's name acts on no terminal");
    let page = fs::read_to_string(page)?;
    for word in
        ["The window over time", "Late references", "ColorValueSchema", "Made again", "book_flight", "What was read"]
    {
        assert!(page.contains(word), "{word}");
    }
    assert_eq!(page.matches("<script>").count(), 1, "only ours");
    assert!(!page.contains("<img"));
    let over = refused(&[&file, "-o", &file])?;
    assert!(over.code == Some(2) && over.err.contains("is what is read"), "{}", over.err);
    Ok(())
}

#[test]
fn faults_are_told_apart() -> Outcome {
    let session = made()?;
    let file = session.write()?;
    let empty = session.folder.path().join("empty.jsonl");
    fs::write(&empty, "")?;
    let junk = session.folder.path().join("junk.json");
    fs::write(&junk, "{\"a\": [1, 2]}")?;
    let absent = session.folder.path().join("absent.jsonl");
    for (args, code, word) in [
        (vec![path(&absent)], 3, "no such file"),
        (vec![path(&empty)], 3, "the file is empty"),
        (vec![path(&junk)], 3, "none of the formats: name one of claude-code, pi"),
        (vec![&file, "--format", "claud"], 2, "[possible values: claude-code, pi"),
        (vec![&file, "--budget", "0"], 2, "budget 0 holds nothing"),
        (vec![&file, "--budget", "100", "--fixed", "100"], 2, "fixed 100 "),
        (vec![&file, "--budget", "1000", "--trigger", "990"], 2, "lower the trigger"),
        (vec![&file, "--only", "nothing"], 2, "none of its 1 conversation is `nothing`"),
        (vec![&file, "--script", path(&absent)], 2, "absent.jsonl"),
        (vec![], 2, "<FILE>..."),
    ] {
        let ran = refused(&args)?;
        assert!(ran.code == Some(code) && ran.err.contains(word), "{args:?}: {:?} {}", ran.code, ran.err);
    }
    assert_eq!(replayed(&[&file, "--only", "1"])?["total"]["entries"], 39);
    Ok(())
}

#[test]
fn help_has_examples() -> Outcome {
    let help = refused(&["--help"])?;
    assert!(
        help.code == Some(0) && help.out.contains("Examples:") && help.out.contains("--script prune.jsonl"),
        "{}",
        help.out
    );
    Ok(())
}

/// The recorded sessions; says so where there are none.
fn corpus() -> Option<PathBuf> {
    let corpus = std::env::var_os("KEEPSPAN_CORPUS").map(PathBuf::from);
    if corpus.is_none() {
        eprintln!("SKIPPED: KEEPSPAN_CORPUS is not set");
    }
    corpus
}

fn recorded(corpus: &Path) -> Outcome<Vec<PathBuf>> {
    let mut files = Vec::new();
    for folder in fs::read_dir(corpus)? {
        let folder = folder?.path();
        if !folder.is_dir() || folder.ends_with("licences") {
            continue;
        }
        for file in fs::read_dir(folder)? {
            files.push(file?.path());
        }
    }
    files.sort();
    Ok(files)
}

#[test]
fn every_recorded_session_comes_back_whole() -> Outcome {
    let Some(corpus) = corpus() else { return Ok(()) };
    let files = recorded(&corpus)?;
    assert!(files.len() >= 33, "{files:?}");
    for policy in ["oldest", "largest", "superseded"] {
        let mut evicted = 0;
        for file in &files {
            let total = replayed(&[path(file), "--budget", "8000", "--policy", policy])?["total"].take();
            let kept = &total["keepspan"];
            assert_eq!((&kept["recalled"], &kept["changed"]), (&kept["evicted"], &json!(0)), "{file:?}: {kept}");
            assert!(kept["sent"].as_u64() <= total["full"]["sent"].as_u64(), "{file:?}: {kept}");
            evicted += kept["evicted"].as_u64().unwrap_or_default();
        }
        assert!(evicted > 1_000, "{policy}: {evicted}");
    }
    Ok(())
}

#[test]
fn a_long_session_needs_what_was_read_long_before() -> Outcome {
    let Some(corpus) = corpus() else { return Ok(()) };
    let told = replayed(&[path(&corpus.join("pi/large-session.jsonl"))])?;
    assert_eq!((&told["import"]["calls"], &told["import"]["repairs"]["unanswered-call"]), (&json!(391), &json!(18)));
    let kept = &told["total"]["keepspan"];
    assert_eq!(kept["unfittable"], 0, "protected spans leave too, where the limit asks: {kept}");
    assert!(kept["peak"].as_u64() <= Some(32_000) && told["total"]["full"]["peak"].as_u64() > Some(150_000), "{kept}");
    let late = &told["total"]["late"];
    // Every edit and write mentions something, and by this measure more of it is far back than by that of the corpus (35, 23, 7).
    assert_eq!((&late["writes"], &late["back"]), (&json!(149), &json!([76, 49, 24])), "{late}");
    assert!(late["plain"]["writes"].as_u64() > Some(10), "{late}");
    let worst = told["conversations"][0]["late"]["worst"].as_array().cloned().unwrap_or_default();
    let schema =
        worst.iter().find(|one| one["mention"] == "ColorValueSchema" && one["line"] == 238).ok_or("no schema")?;
    assert!(schema["distance"].as_u64() > Some(49_000), "{schema}");
    assert_eq!(
        (&schema["from_line"], &schema["plain_dropped"], &schema["keepspan_evicted"]),
        (&json!(8), &json!(true), &json!(true))
    );
    Ok(())
}

#[test]
fn a_storm_is_stopped_and_a_retry_is_not() -> Outcome {
    let Some(corpus) = corpus() else { return Ok(()) };
    let storm = replayed(&[path(&corpus.join("tau2-bench/airline-gptoss-duplicate-writes.json"))])?;
    let most: Vec<_> = storm["conversations"]
        .as_array()
        .into_iter()
        .flatten()
        .filter_map(|one| one["repeated"]["most"].as_array())
        .flatten()
        .collect();
    let times =
        |tool: &str| most.iter().filter(|one| one["tool"] == tool).filter_map(|one| one["times"].as_u64()).max();
    assert_eq!(times("update_reservation_flights"), Some(93), "{most:?}");
    assert_eq!(storm["total"]["repeated"]["calls"], 300);
    // 27 of its 44 writes failed and were made again in one way or another: none of them is a repeat.
    let retried = replayed(&[path(&corpus.join("tau-bench/airline-gpt4o-writes.json"))])?;
    assert_eq!(retried["total"]["repeated"]["calls"], 1, "{retried}");
    Ok(())
}

#[test]
fn a_sessions_own_compaction_stands_beside_keepspan() -> Outcome {
    let Some(corpus) = corpus() else { return Ok(()) };
    let own = |name: &str| -> Outcome<Value> {
        Ok(replayed(&[path(&corpus.join(name))])?["conversations"][0]["own"][0].take())
    };
    let cleared = own("claude-code/token-usage-debug.jsonl")?;
    assert_eq!(
        (&cleared["kind"], &cleared["agent"]["spans"], &cleared["absent"]),
        (&json!("cleared"), &json!(11), &json!(0)),
        "{cleared}"
    );
    assert_eq!(cleared["tokens_saved"], 20_801);
    assert!(cleared["keepspan"]["after"].as_u64() <= cleared["left"].as_u64(), "{cleared}");
    let full = own("claude-code/multi-session-feature.jsonl")?;
    assert_eq!((&full["kind"], &full["tokens_before"]), (&json!("summary"), &json!(155_179)), "{full}");
    assert_eq!(full["agent"]["tokens"], full["before"], "all of it was out of context");
    assert!(full["agent"]["wanted"].as_u64() > Some(0), "{full}");
    Ok(())
}
