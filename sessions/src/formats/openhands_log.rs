use crate::{detect::Head, error::Fault, records::Source, session::Session};

pub(crate) fn looks_like(_: &Head) -> bool {
    false
}

pub(crate) fn read(source: &mut Source<'_>, session: &mut Session<'_>) -> Result<(), Fault> {
    super::not_yet(source, session)
}
