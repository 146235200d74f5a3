//! keepspan with clients that have no hooks, where the program owns the loop: the lines to paste, compiled and tested.
//!
//! Each module is one recipe: what enters the window, and the request made from the window before each call. A request for which
//! the provider keeps or compacts the history itself is refused: nothing can be said of what the model is then shown.

pub mod async_openai;
pub mod genai;

/// A request whose history the provider keeps, or compacts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stateful;

impl std::fmt::Display for Stateful {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(
            "the provider is to keep or compact the history (`previous_response_id`, `conversation`, `context_management`), which the \
             window then does not see: leave these out, and send the window's",
        )
    }
}

impl std::error::Error for Stateful {}
