//! The lanes of a recorded conversation: what of it may leave, by who said it and by the names of tools.

use keepspan::{ContextState, Spans};

macro_rules! conversation {
    ($($pattern:literal),* $(,)?) => {
        /// Tools that change nothing, by name; `*` is any end.
        const READS: &[&str] = &[$($pattern),*];

        /// What a session holds, and what of it may leave.
        #[derive(ContextState)]
        pub struct Conversation {
            /// System prompts and what people said: it never leaves.
            #[instruction(roles("system", "user"))]
            pub asked: Spans,
            /// What failed: it leaves last, as a pointer.
            #[negative_result(on_error)]
            pub failed: Spans,
            /// What a tool that changes nothing gave: it can be had again.
            #[evictable(tools($($pattern),*))]
            pub observed: Spans,
            /// What any other tool gave is a fact that it made: it leaves last, as a pointer.
            #[precondition(tools("*"))]
            pub effects: Spans,
            /// What the model said and called.
            #[evictable(otherwise)]
            pub said: Spans,
        }
    };
}

conversation! {
    "read*", "Read*", "NotebookRead", "Grep*", "grep*", "Glob*", "glob*", "LS", "ls", "cat", "view*", "View*", "open*", "find*",
    "search*", "get_*", "list_*", "web_search*", "WebSearch", "WebFetch", "calculate", "think",
}

/// Commands of any kind, so that neither a read nor a write can be told by the name.
const SHELLS: &[&str] =
    &["bash", "Bash", "sh", "shell*", "exec*", "local_shell*", "run_shell_command", "execute_bash*", "run_command*"];

/// What a call does to the world, as far as the tool's name says.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Act {
    Read,
    Shell,
    Write,
}

impl Act {
    /// O(patterns).
    pub fn of(tool: &str) -> Self {
        match tool {
            tool if matches(READS, tool) => Self::Read,
            tool if matches(SHELLS, tool) => Self::Shell,
            _ => Self::Write,
        }
    }
}

fn matches(patterns: &[&str], tool: &str) -> bool {
    patterns.iter().any(|pattern| match pattern.strip_suffix('*') {
        Some(start) => tool.starts_with(start),
        None => tool == *pattern,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tools_are_told_apart_by_name() {
        for read in ["read", "read_file", "Read", "Grep", "get_reservation_details", "view"] {
            assert_eq!(Act::of(read), Act::Read, "{read}");
        }
        for shell in ["bash", "Bash", "execute_bash"] {
            assert_eq!(Act::of(shell), Act::Shell, "{shell}");
        }
        for write in ["edit", "Edit", "str_replace_editor", "book_reservation", "catalog", "TodoWrite"] {
            assert_eq!(Act::of(write), Act::Write, "{write}");
        }
    }
}
