//! keepspan's side.

use std::{ops::Range, sync::Arc};

use keepspan::{
    Episode, EpisodeId, Message, NewSpan, SpanId, Tombstone, Window,
    store::{MemoryStore, Store},
};
use keepspan_tests::{Agent, FourBytes, memory};

use super::{Inputs, Lane, Side};

pub struct Typed {
    store: Arc<MemoryStore>,
    window: Window<Agent, Arc<MemoryStore>>,
    ids: Vec<SpanId>,
}

impl Side for Typed {
    type Rendered = Vec<Message>;
    type Evicted = Vec<Tombstone>;

    fn open() -> Self {
        let store = memory();
        let window = Window::open_with(store.clone(), Episode::new("e", "p").budget(u64::MAX), FourBytes).unwrap();
        Self { store, window, ids: Vec::new() }
    }

    fn fill(&mut self, lane: Lane, inputs: &Inputs) {
        let lanes = self.window.lanes();
        for (tool, text) in inputs.iter() {
            let span = NewSpan::tool(tool.clone(), text);
            let id = match lane {
                Lane::Evictable => lanes.work.push(span),
                Lane::Protected => lanes.schema.push(span),
            };
            self.ids.push(id.unwrap());
        }
    }

    fn externalize(&mut self) {
        drop(self.window.lanes().externalize().wait().unwrap());
    }

    fn evict(&mut self, lane: Lane, spans: Range<usize>) -> Vec<Tombstone> {
        let lanes = self.window.lanes().externalize().wait().unwrap();
        let ids = &self.ids[spans];
        match lane {
            Lane::Evictable => lanes.work.evict(ids).wait().unwrap(),
            Lane::Protected => lanes.schema.evict(ids).wait().unwrap(),
        }
    }

    fn render(&self) -> Vec<Message> {
        self.window.render()
    }

    fn trace(&self) -> (Vec<Vec<u8>>, u64) {
        (self.store.read(&EpisodeId::new("e"), 1, u64::MAX).unwrap(), self.window.utilization())
    }

    fn shown(&self) -> Vec<String> {
        self.render().iter().map(|message| message.content().as_text().unwrap().to_owned()).collect()
    }
}
